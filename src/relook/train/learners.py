"""What a training and a method know of each other: the facts of a set, a batch of it, and a network that learns."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn

from relook.errors import BadInput
from relook.train.augment import View
from relook.train.nets import ResNet, Shape


@dataclass(frozen=True)
class Facts:
    """What a network must know of the set it learns from, and an encoder to begin with, where there is one."""

    items: int
    classes: int
    channels: int = 3
    encoder: nn.Module | None = None

    def begun(self, shape: Shape) -> Any:
        """Return a copy of the encoder to begin with, or an untrained one of this shape; it tells its `features`."""
        if self.encoder is None:
            return ResNet(replace(shape, inputs=self.channels))
        if not isinstance(getattr(self.encoder, "features", None), int):
            raise BadInput(
                f"encoder: a module that says how many features it makes was needed, but {type(self.encoder).__name__} "
                "does not; set its attribute features to their number"
            )
        return copy.deepcopy(self.encoder).requires_grad_()


class Batch(NamedTuple):
    """What is known of the items of a batch: rows of the set, targets (n x C), weights, and how far the training is.

    `epoch` counts the epochs done, with the part of the one that runs; it is a number on the device.
    """

    rows: Tensor
    target: Tensor
    weight: Tensor
    epoch: Tensor


class Learner(Protocol):
    """A network while it learns; `encoder` is the part that turns images into features.

    One that learns from labels has `predict` too: images to probabilities of M networks or passes, M x n x C.
    """

    encoder: nn.Module

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Tensor:
        """Return what is to become small."""
        ...

    def follow(self, done: float) -> None:
        """Do what is due after a step, when a share of the training is done."""
        ...


class Method(Protocol):
    """The settings of a method, a frozen dataclass."""

    @property
    def views(self) -> tuple[View, ...]:
        """How the views of an image are drawn: one for labels, two to learn without."""
        ...

    def network(self, facts: Facts) -> Any:
        """Return an untrained network, a `Learner`."""
        ...
