"""How a training is paced: its length, its batches, its optimiser and the rate of each step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from relook.errors import BadInput

ENCODER = "encoder"
"""The name that every learner gives the part of it that turns images into features."""

_LEAST: Mapping[str, float] = {"epochs": 1, "batch": 2} | dict.fromkeys(
    ("rate", "momentum", "decay", "lars", "warmup", "least", "encoder", "balance"), 0
)
_ONE_OF: Mapping[str, tuple[str, ...]] = {
    "optimizer": ("sgd", "adam"),
    "decayed": ("all", "weights"),
    "shape": ("cosine", "steps"),
    "short": ("dropped", "kept"),
}


@dataclass(frozen=True)
class Schedule:
    """How long and how fast a network learns.

    The rate rises over `warmup` epochs; then it falls along a cosine to `least`, or by ten after each epoch of `drops`.
    `lars` above 0 bounds each layer's step by so much of its weights (You et al. 2017). The encoder learns at the share
    `encoder` of the rate; at 0 it stays as it is, and so do its norms. With `balance` 1 items of each class are drawn
    equally often, with 0 as often as they are; what lies between is a power of the class's share.
    """

    epochs: int = 200
    batch: int = 512
    rate: float = 0.3
    optimizer: Literal["sgd", "adam"] = "sgd"
    momentum: float = 0.9
    nesterov: bool = False
    decay: float = 5e-4
    decayed: Literal["all", "weights"] = "all"
    lars: float = 0.0
    warmup: int = 5
    shape: Literal["cosine", "steps"] = "cosine"
    drops: tuple[int, ...] = ()
    least: float = 0.0
    short: Literal["dropped", "kept"] = "dropped"
    encoder: float = 1.0
    balance: float = 0.0

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if not getattr(self, name) >= least:
                raise BadInput(
                    f"schedule: {name} from {least} was needed, but {getattr(self, name)} came; make it larger"
                )
        for name, known in _ONE_OF.items():
            if getattr(self, name) not in known:
                raise BadInput(
                    f"schedule: for {name} one of {', '.join(known)} was needed, but {getattr(self, name)!r} came; "
                    "name one of them"
                )

    def rate_at(self, step: int, *, steps: int, an_epoch: int) -> float:
        """Return the rate of a step.

        >>> Schedule(rate=1.0, warmup=1).rate_at(5, steps=100, an_epoch=10)
        0.5
        >>> falling = Schedule(rate=1.0, warmup=0, shape="steps", drops=(4, 6))
        >>> [falling.rate_at(step, steps=80, an_epoch=10) for step in (39, 40, 60)]
        [1.0, 0.1, 0.01]
        """
        warm = self.warmup * an_epoch
        if step < warm:
            return self.rate * step / warm
        if self.shape == "steps":
            return max(self.rate / 10 ** sum(step >= epoch * an_epoch for epoch in self.drops), self.least)
        return self.least + (self.rate - self.least) * 0.5 * (1 + math.cos(math.pi * step / steps))

    def steps_an_epoch(self, items: int) -> int:
        """Return how many batches an epoch has; a last one of a single item is left out, as norms need two.

        >>> Schedule(batch=4).steps_an_epoch(10), Schedule(batch=4, short="kept").steps_an_epoch(10)
        (2, 3)
        """
        whole, rest = divmod(items, self.batch)
        return whole + (self.short == "kept" and rest > 1)


def optimizer(learner: nn.Module, schedule: Schedule) -> torch.optim.Optimizer:
    """Return the optimiser of all that learns, and keep the rest as it is."""
    if schedule.encoder == 0:
        for module in encoders(learner):
            module.requires_grad_(requires_grad=False).eval()
    groups = _groups(learner, schedule)
    kind: dict[str, Any] = {"fused": True} if groups[0]["params"][0].is_cuda else {}
    if schedule.optimizer == "adam":
        return torch.optim.Adam(groups, lr=schedule.rate, **kind)
    kind |= {"momentum": schedule.momentum, "nesterov": schedule.nesterov}
    return torch.optim.SGD(groups, lr=schedule.rate, **kind)


def _groups(learner: nn.Module, schedule: Schedule) -> list[dict[str, Any]]:
    """Return what learns, by its share of the rate and its decay."""
    found: dict[tuple[float, float], list[Tensor]] = {}
    for name, each in learner.named_parameters():
        if each.requires_grad:
            share = schedule.encoder if ENCODER in name.split(".") else 1.0
            decay = schedule.decay if schedule.decayed == "all" or each.ndim > 1 else 0.0
            found.setdefault((share, decay), []).append(each)
    # LARS decays before it measures, so that the optimiser must not do so once more.
    return [
        {"params": group, "share": share, "decayed": decay, "weight_decay": 0.0 if schedule.lars else decay}
        for (share, decay), group in found.items()
    ]


def encoders(learner: nn.Module) -> list[nn.Module]:
    """Return the parts of a learner that turn images into features; co-teaching has two."""
    return [module for name, module in learner.named_modules() if name.split(".")[-1] == ENCODER]


def stepped(found: torch.optim.Optimizer, schedule: Schedule, *, rate: float) -> None:
    """Take one step at a rate, and forget the gradients."""
    for group in found.param_groups:
        group["lr"] = rate * group["share"]
        if schedule.lars:
            _bound(group, schedule.lars)
    found.step()
    found.zero_grad(set_to_none=True)


@torch.no_grad()
def _bound(group: dict[str, Any], trust: float) -> None:
    """Scale each layer's gradient so that its step is at most the share `trust` of its weights (LARS, clipped)."""
    for weights in group["params"]:
        if weights.grad is None:
            continue
        size, slope = weights.norm(), weights.grad.norm()
        bound = trust * size / (slope + group["decayed"] * size + 1e-8)
        scale = torch.where((size > 0) & (slope > 0), (bound / max(group["lr"], 1e-12)).clamp(max=1), 1.0)
        weights.grad.add_(weights, alpha=group["decayed"]).mul_(scale)
