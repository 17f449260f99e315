"""Several processes that train one network, each on its own device, as `torchrun` starts them on one machine.

Each takes its share of every batch. Norms see the whole batch, gradients are added up, and what a method remembers of
items is told to all, so that the network becomes what one process would have made of it, but for rounding.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


def count() -> int:
    """Return how many processes train together."""
    return distributed.get_world_size() if _joined() else 1


def number() -> int:
    """Return this process's number; 0 writes what is written."""
    return distributed.get_rank() if _joined() else 0


def part(items: int) -> slice:
    """Return this process's share of a batch.

    >>> part(5)
    slice(0, 5, None)
    """
    return slice(items * number() // count(), items * (number() + 1) // count())


@contextmanager
def together(device: torch.device) -> Iterator[None]:
    """Join the other processes, where torchrun has started some."""
    if _joined() or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield
    finally:
        distributed.destroy_process_group()


@contextmanager
def norms_shared(learner: nn.Module) -> Iterator[None]:
    """Let norms see the whole batch; what they hold, and their names, stay as they are."""
    norms: list[Any] = [each for each in learner.modules() if isinstance(each, _NORMS)] if count() > 1 else []
    for each in norms:
        each.forward = partial(_normed, each)
    try:
        yield
    finally:
        for each in norms:
            del each.forward


def add_slopes(learnt: Sequence[Tensor]) -> None:
    """Make every gradient the mean over the processes, all of them in one message."""
    if count() == 1:
        return
    slopes = [each.grad for each in learnt if each.grad is not None]
    whole = torch.cat([slope.flatten() for slope in slopes])
    distributed.all_reduce(whole)
    whole /= count()
    start = 0
    for slope in slopes:
        slope.copy_(whole[start : start + slope.numel()].view_as(slope))
        start += slope.numel()


def mean(value: Tensor) -> Tensor:
    """Return the mean of a number over the processes."""
    if count() > 1:
        value = value.clone()
        distributed.all_reduce(value)
        value /= count()
    return value


def gathered(rows: Tensor) -> Tensor:
    """Return the rows of all processes in their order; what comes back reaches the process that a row came from."""
    if count() == 1:
        return rows
    lengths = torch.zeros(count(), dtype=torch.long, device=rows.device)
    lengths[number()] = len(rows)
    distributed.all_reduce(lengths)
    before, after = int(lengths[: number()].sum()), int(lengths[number() + 1 :].sum())
    return _summed(functional.pad(rows, (0, 0, before, after)))


def memories(learner: nn.Module) -> Mapping[str, Tensor]:
    """Return what a method remembers of items: its buffers, without those of norms."""
    inside = {id(buffer) for each in learner.modules() if isinstance(each, _NORMS) for buffer in each.buffers()}
    return {name: each for name, each in learner.named_buffers() if id(each) not in inside and each.is_floating_point()}


@contextmanager
def memories_shared(learner: nn.Module) -> Iterator[None]:
    """Tell all processes what each came to remember of its own items."""
    known = memories(learner) if count() > 1 else {}
    before = {name: each.clone() for name, each in known.items()}
    yield
    for name, each in known.items():
        moved = each - before[name]
        distributed.all_reduce(moved)
        each.copy_(before[name] + moved)


def _joined() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _summed(value: Tensor) -> Tensor:
    """Return the sum over the processes; its gradient is the sum of theirs."""
    whole = value.detach().clone()
    distributed.all_reduce(whole)
    # Nothing is added but the way back to what was summed.
    found: Any = whole + (value - value.detach())
    if found.requires_grad:
        found.register_hook(_slope_summed)
    return found


def _slope_summed(slope: Tensor) -> Tensor:
    whole = slope.clone()
    distributed.all_reduce(whole)
    return whole


def _normed(norm: Any, x: Tensor) -> Tensor:
    """Normalise by the mean and variance of the whole batch."""
    if not norm.training:
        return functional.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)
    axes = [axis for axis in range(x.ndim) if axis != 1]
    shape = [1, -1, *([1] * (x.ndim - 2))]
    wide = x.float()
    own = torch.full((1,), x.numel() / x.shape[1], device=x.device)
    total = _summed(torch.cat([wide.sum(axes), own]))
    items = total[-1]
    mean = total[:-1] / items
    rest = wide - mean.view(shape)
    variance = _summed((rest**2).sum(axes)) / items
    with torch.no_grad():
        norm.num_batches_tracked += 1
        norm.running_mean.lerp_(mean.detach(), norm.momentum)
        norm.running_var.lerp_(variance.detach() * items / (items - 1), norm.momentum)
    found = rest * torch.rsqrt(variance + norm.eps).view(shape)
    return (found * norm.weight.view(shape) + norm.bias.view(shape)).to(x.dtype)
