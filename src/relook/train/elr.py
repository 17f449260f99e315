"""Early-learning regularisation (Liu et al. 2020): a network is held to what it said of an item before.

It learns right labels before it learns wrong ones by heart. So a moving mean t of what it said of each item is kept,
and `strength` log(1 - <p, t>) is added to the loss: the closer p stays to t, the smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from relook.errors import BadInput
from relook.train.augment import View
from relook.train.classifier import ONE_VIEW, Classifier, cross_entropies, weighted
from relook.train.learners import Batch, Facts
from relook.train.nets import RESNET18, Shape

_CLOSE = 1e-4
"""Probabilities keep so far from 0 and 1, as in the authors' code: the logarithm needs room."""


@dataclass(frozen=True)
class Elr:
    """The settings: what of its memory of an item a network keeps at each look, and how strongly it is held to it.

    The authors take 0.7 and 3 on CIFAR-10, the released code of the paper 0.9 and 3.
    """

    memory: float = 0.7
    strength: float = 3.0
    shape: Shape = RESNET18
    features: Literal["plain", "unit"] = "plain"
    views: tuple[View] = ONE_VIEW

    def __post_init__(self) -> None:
        if not (0 <= self.memory < 1 and self.strength >= 0):
            raise BadInput(
                "elr: a memory from 0 to below 1 and a strength from 0 were needed, but "
                f"{self.memory} and {self.strength} came; the authors take 0.7 and 3"
            )

    def network(self, facts: Facts) -> Remembering:
        """Return an untrained network."""
        return Remembering(self, facts)


class Remembering(nn.Module):
    """A classifier that remembers what it said of each item."""

    said: Tensor

    def __init__(self, settings: Elr, facts: Facts) -> None:
        super().__init__()
        self.settings = settings
        self.classifier = Classifier(facts, settings.shape, features=settings.features)
        self.register_buffer("said", torch.zeros(facts.items, facts.classes))

    @property
    def encoder(self) -> nn.Module:
        """The part that turns images into features."""
        return self.classifier.encoder

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Tensor:
        """Return the mean of the cross-entropy and of how far the network has gone from what it said."""
        logits = self.classifier(views[0])
        said = logits.float().softmax(1).clamp(_CLOSE, 1 - _CLOSE)
        held = self._remembered(batch.rows, said.detach())
        gone = (1 - (said * held).sum(1)).log()
        return weighted(cross_entropies(logits, batch.target) + self.settings.strength * gone, batch.weight)

    @torch.no_grad()
    def _remembered(self, rows: Tensor, said: Tensor) -> Tensor:
        """Return what is now remembered of these items: t <- memory t + (1 - memory) p / sum(p)."""
        held = self.said[rows].lerp(said / said.sum(1, keepdim=True), 1 - self.settings.memory)
        self.said.index_copy_(0, rows, held)
        return held

    def follow(self, done: float) -> None:
        """Do nothing: what was said is remembered as it is said."""

    def predict(self, images: Tensor) -> Tensor:
        """Return the network's probabilities, 1 x n x C."""
        return self.classifier.passes(images, 0)
