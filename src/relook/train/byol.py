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

from relook.train.augment import Statistics, View, drawn, normalised
from relook.train.nets import RESNET18, ResNet, Shape


@dataclass(frozen=True)
class Recipe:
    """The settings of a pre-training."""

    shape: Shape = RESNET18
    epochs: int = 200
    batch: int = 512
    rate: float = 2.0
    decay: float = 1e-5
    warmup: int = 10
    momentum: float = 0.99
    hidden: int = 4096
    size: int = 256
    first: View = View()
    second: View = View(solarised=0.2)


class Byol(nn.Module):
    """The network that learns, and the slow copy that it learns from."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        features = recipe.shape.features
        self.encoder = ResNet(recipe.shape)
        self.projector = head(features, recipe.hidden, recipe.size)
        self.predictor = head(recipe.size, recipe.hidden, recipe.size)
        self.slow = copy.deepcopy(nn.Sequential(self.encoder, self.projector)).requires_grad_(False)

    def loss(self, first: Tensor, second: Tensor) -> Tensor:
        """Return how far the predictions of two views are from the slow copy's account of the other, 0 to 4."""
        views = torch.cat([first, second])
        said = self.predictor(self.projector(self.encoder(views)))
        with torch.no_grad():
            aimed = self.slow(views).roll(len(first), 0)
        return 4 - 4 * functional.cosine_similarity(said.float(), aimed.float()).mean()

    @torch.no_grad()
    def follow(self, weight: Tensor | float) -> None:
        """Let the slow copy follow: `weight` is what it keeps of itself."""
        fast = [*self.encoder.parameters(), *self.projector.parameters()]
        torch._foreach_lerp_(list(self.slow.parameters()), fast, 1 - weight)


def head(inputs: int, hidden: int, out: int) -> nn.Sequential:
    """Return the two layers that BYOL puts on top of an encoder."""
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden), nn.ReLU(True), nn.Linear(hidden, out)
    )


def momentum(recipe: Recipe, done: float) -> float:
    """Return what the slow copy keeps of itself when a share of the training is done.

    >>> momentum(Recipe(momentum=.99), 0.0), momentum(Recipe(momentum=.99), 1.0)
    (0.99, 1.0)
    """
    return 1 - (1 - recipe.momentum) * (math.cos(math.pi * done) + 1) / 2
