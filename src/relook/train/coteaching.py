"""Co-teaching (Han et al. 2018): two networks, each of which learns what the other finds easy.

Of each batch a network learns from the items with the smallest losses in the eyes of the other one, as many as are
expected to be labelled right; so the mistakes of one network are not fed back to it. At first both learn from all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from relook.errors import BadInput
from relook.train.augment import View
from relook.train.classifier import ONE_VIEW, Classifier, cross_entropies, smoothed, weighted
from relook.train.learners import Batch, Facts
from relook.train.nets import RESNET18, Shape


@dataclass(frozen=True)
class CoTeaching:
    """The settings of co-teaching.

    `noise` is the estimated share of wrong labels, and so the share of each batch that is not learnt from: none of it
    in the first `warmup` epochs, then more with each of `gradual` epochs until it is all of it.
    """

    noise: float
    warmup: int = 10
    gradual: int = 10
    shape: Shape = RESNET18
    smoothing: float = 0.0
    features: Literal["plain", "unit"] = "plain"
    views: tuple[View] = ONE_VIEW

    def __post_init__(self) -> None:
        if not (0 <= self.noise < 1 and self.warmup >= 0 and self.gradual >= 1):
            raise BadInput(
                "co-teaching: a noise from 0 to below 1, a warmup from 0 and a gradual from 1 were needed, but "
                f"{self.noise}, {self.warmup} and {self.gradual} came; estimate the share of wrong labels first"
            )

    def network(self, facts: Facts) -> Pair:
        """Return two untrained networks, or two that begin with the same encoder."""
        return Pair(self, facts)

    def dropped(self, epoch: Tensor) -> Tensor:
        """Return the share of a batch that is not learnt from in an epoch, counted from 0.

        >>> method = CoTeaching(0.4, warmup=2, gradual=4)
        >>> [float(method.dropped(torch.tensor(epoch))) for epoch in (1.9, 2.0, 3.5, 9.0)]
        [0.0, 0.1, 0.2, 0.4]
        """
        return self.noise * ((epoch.double().floor() - self.warmup + 1) / self.gradual).clamp(0, 1)


class Pair(nn.Module):
    """Two classifiers that choose for each other what to learn from."""

    def __init__(self, settings: CoTeaching, facts: Facts) -> None:
        super().__init__()
        self.settings = settings
        self.first, self.second = (Classifier(facts, settings.shape, features=settings.features) for _ in range(2))

    @property
    def encoder(self) -> nn.Module:
        """The part of the first network that turns images into features."""
        return self.first.encoder

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Tensor:
        """Return the sum of both networks' mean losses, each over what the other finds easy."""
        target = smoothed(batch.target, self.settings.smoothing)
        first, second = (cross_entropies(network(views[0]), target) for network in (self.first, self.second))
        dropped = self.settings.dropped(batch.epoch)
        chosen = [batch.weight * easy(losses, dropped) for losses in (second, first)]
        return weighted(first, chosen[0]) + weighted(second, chosen[1])

    def follow(self, done: float) -> None:
        """Do nothing: a step is all there is to do."""

    def predict(self, images: Tensor) -> Tensor:
        """Return probabilities of both networks, 2 x n x C."""
        return torch.cat([network.passes(images, 0) for network in (self.first, self.second)])


def easy(losses: Tensor, dropped: Tensor) -> Tensor:
    """Return 1 for the int((1 - dropped) n) items of smallest loss (one at least), and 0 for the others.

    >>> easy(torch.tensor([0.3, 0.1, 0.9, 0.2]), torch.tensor(0.5)).tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    kept = ((1 - dropped.double()) * len(losses)).floor().clamp(min=1)
    ranks = losses.detach().argsort(stable=True).argsort(stable=True)
    return (ranks < kept).to(losses.dtype)
