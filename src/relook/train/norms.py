"""Norms on a graphics card: normalise, add the shortcut and cut off below zero in one pass, where torch takes three.

Between convolutions a residual network for small images mostly waits for memory. This saves a third of its reading and
writing without a compiler's minute, and leaves the network, its names and its checkpoints as they are.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from relook.train.nets import Basic, Bottleneck, ResNet

_TILE = 4096
_RUNS = 512


@contextmanager
def fast(learner: nn.Module) -> Iterator[None]:
    """Let the residual networks of a learner normalise in one pass."""
    patched: list[Any] = []
    if importlib.util.find_spec("triton") is not None:
        for each in learner.modules():
            if isinstance(each, Basic | Bottleneck):
                patched.append(each)
                each.forward = partial(_block, each)  # type: ignore[method-assign]
            elif isinstance(each, ResNet):
                patched.append(each.layers)
                each.layers.forward = partial(_walked, each.layers)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for each in patched:
            del each.forward


def _block(block: Basic | Bottleneck, x: Tensor) -> Tensor:
    shortcut = block.shortcut
    beside = _walked(shortcut, x) if isinstance(shortcut, nn.Sequential) else shortcut(x)
    return _walked(block.path, x, added=beside)


def _walked(layers: nn.Sequential, x: Tensor, *, added: Tensor | None = None) -> Tensor:
    """Go through layers; a norm takes what follows it along: a rectifier, or at the end what is added."""
    rest = list(layers)
    while rest:
        layer = rest.pop(0)
        if not isinstance(layer, nn.BatchNorm2d):
            x = layer(x)
            continue
        follows = bool(rest) and isinstance(rest[0], nn.ReLU)
        beside = None if rest else added
        x = _normed(layer, x, added=beside, rectified=follows or beside is not None)
        if follows:
            rest.pop(0)
    return x


def _normed(norm: nn.BatchNorm2d, x: Tensor, *, added: Tensor | None, rectified: bool) -> Tensor:
    if norm.training:
        function: Any = _Normed
        return function.apply(x, added, norm.weight, norm.bias, (norm, rectified))
    found = norm(x) if added is None else norm(x) + added
    return torch.relu(found) if rectified else found


class _Normed(torch.autograd.Function):
    """The norm over a batch, with its way back."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        """Normalise; the running mean and variance follow."""
        from relook.train import kernels

        x, added, weight, bias, (norm, rectified) = given
        x, beside = _rowwise(x), None if added is None else _rowwise(added)
        rows, channels = x.numel() // x.shape[1], x.shape[1]
        sizes = _sizes(rows, channels)
        parts, kept = (torch.empty(size, device=x.device) for size in ((sizes["runs"], 2, channels), (4, channels)))
        out = torch.empty_like(x)
        tile = {"BM": sizes["lines"], "BC": sizes["columns"], "num_warps": 8}
        kernels.sums[(sizes["blocks"], sizes["runs"])](x, parts, rows, channels, sizes["run"], **tile)
        kernels.settled[(_cut(channels, 8),)](
            x, parts, weight, bias, norm.running_mean, norm.running_var, norm.num_batches_tracked, kept,
            rows, channels, sizes["runs"], norm.momentum, norm.eps, BR=sizes["power"], BC=8, num_warps=4,
        )  # fmt: skip
        ctx.flags = {"RECTIFIED": rectified, "ADDED": beside is not None}
        kernels.normed[(_cut(rows, sizes["lines"]), sizes["blocks"])](
            x, x if beside is None else beside, kept, out, rows, channels, **ctx.flags, **tile
        )
        ctx.save_for_backward(x, out if beside is not None else x, kept)
        return out

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        """Bring gradients back to the input, to what was added, and to weight and bias."""
        from relook.train import kernels

        x, out, kept = ctx.saved_tensors
        slope = _rowwise(slopes[0])
        rows, channels = x.numel() // x.shape[1], x.shape[1]
        sizes = _sizes(rows, channels)
        parts = torch.empty((sizes["runs"], 2, channels), device=x.device)
        weight_slope, bias_slope = (torch.empty(channels, device=x.device) for _ in range(2))
        x_slope = torch.empty_like(x)
        added_slope = torch.empty_like(x) if ctx.flags["ADDED"] else x_slope
        tile = {"BM": sizes["lines"], "BC": sizes["columns"], "num_warps": 8}
        kernels.slope_sums[(sizes["blocks"], sizes["runs"])](
            slope, x, out, kept, parts, rows, channels, sizes["run"], **ctx.flags, **tile
        )
        kernels.slopes_settled[(_cut(channels, 8),)](
            parts, weight_slope, bias_slope, channels, sizes["runs"], BR=sizes["power"], BC=8, num_warps=4
        )
        kernels.slopes[(_cut(rows, sizes["lines"]), sizes["blocks"])](
            slope, x, out, kept, weight_slope, bias_slope, x_slope, added_slope, rows, channels, **ctx.flags, **tile
        )
        return x_slope, added_slope if ctx.flags["ADDED"] else None, weight_slope, bias_slope, None


def _rowwise(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def _sizes(rows: int, channels: int) -> dict[str, int]:
    """Return how rows and channels are cut into tiles, and rows into runs that are summed by themselves."""
    columns = min(128, 1 << max(3, (channels - 1).bit_length()))
    lines = _TILE // columns
    blocks = _cut(channels, columns)
    most = max(1, min(_RUNS, 1056 // blocks, _cut(rows, lines)))
    run = _cut(_cut(rows, most), lines) * lines
    runs = _cut(rows, run)
    return {
        "columns": columns, "lines": lines, "blocks": blocks, "run": run, "runs": runs,
        "power": 1 << (runs - 1).bit_length(),
    }  # fmt: skip


def _cut(whole: int, size: int) -> int:
    """Return how many pieces of a size make the whole, the last one perhaps smaller."""
    return (whole + size - 1) // size
