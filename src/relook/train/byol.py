"""BYOL (Grill et al. 2020): a network learns to predict, from one view of an image, a slow copy's account of another.

No label is used. The slow copy follows by a moving average whose weight rises from `momentum` to 1 along a cosine.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from relook.train.augment import View
from relook.train.learners import Batch, Facts
from relook.train.nets import RESNET18, Shape, head


@dataclass(frozen=True)
class Byol:
    """The settings of BYOL: a network, what is put on top of it, and how slowly the copy follows."""

    shape: Shape = RESNET18
    hidden: int = 4096
    size: int = 256
    momentum: float = 0.99
    views: tuple[View, View] = (View(), View(solarised=0.2))

    def network(self, facts: Facts) -> Twins:
        """Return an untrained network."""
        return Twins(self, facts)


class Twins(nn.Module):
    """The network that learns, and the slow copy that it learns from."""

    def __init__(self, settings: Byol, facts: Facts) -> None:
        super().__init__()
        self.encoder = facts.begun(settings.shape)
        self.projector = head(self.encoder.features, settings.hidden, out=settings.size)
        self.predictor = head(settings.size, settings.hidden, out=settings.size)
        self.slow = copy.deepcopy(nn.Sequential(self.encoder, self.projector)).requires_grad_(requires_grad=False)
        self.momentum = settings.momentum

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Tensor:
        """Return how far the predictions of two views are from the slow copy's account of the other, 0 to 4."""
        both = torch.cat(views)
        said = self.predictor(self.projector(self.encoder(both)))
        with torch.no_grad():
            aimed = self.slow(both).roll(len(views[0]), 0)
        return 4 - 4 * functional.cosine_similarity(said.float(), aimed.float()).mean()

    @torch.no_grad()
    def follow(self, done: float) -> None:
        """Let the slow copy follow, when a share of the training is done."""
        fast = [*self.encoder.parameters(), *self.projector.parameters()]
        torch._foreach_lerp_([*self.slow.parameters()], fast, 1 - kept(self.momentum, done))


def kept(momentum: float, done: float) -> float:
    """Return what the slow copy keeps of itself when a share of the training is done.

    >>> kept(0.99, 0.0), kept(0.99, 1.0)
    (0.99, 1.0)
    """
    return 1 - (1 - momentum) * (math.cos(math.pi * done) + 1) / 2
