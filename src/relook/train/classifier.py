"""An encoder with a linear layer on top, and the cross-entropy with soft and weighted targets: what methods share."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from relook.train.augment import View
from relook.train.learners import Facts
from relook.train.nets import Shape

ONE_VIEW = (View(crop=(0.6, 1.0), grey=0.0),)
"""How images are drawn to learn labels, where nothing else is asked for."""


class Classifier(nn.Module):
    """Features of an encoder, perhaps of unit length, some of them dropped, and a linear layer to logits.

    Where `squash` is above 0 no logit is larger.
    """

    def __init__(
        self,
        facts: Facts,
        shape: Shape,
        *,
        dropout: float = 0.0,
        features: Literal["plain", "unit"] = "plain",
        squash: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder = facts.begun(shape)
        self.dropout, self.features, self.squash = dropout, features, squash
        self.last = nn.Linear(self.encoder.features, facts.classes)
        nn.init.zeros_(self.last.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits, n x C."""
        return self.logits(functional.dropout(self.described(images), self.dropout, self.training))

    def logits(self, features: Tensor) -> Tensor:
        """Return the logits of features, n x C."""
        found = self.last(features)
        return bounded(found, self.squash) if self.squash else found

    def described(self, images: Tensor) -> Tensor:
        """Return the features that the linear layer reads, n x D."""
        found = self.encoder(images)
        return functional.normalize(found, dim=1) if self.features == "unit" else found

    def passes(self, images: Tensor, count: int) -> Tensor:
        """Return probabilities of passes with dropout (one without, where `count` is 0), M x n x C."""
        found = self.described(images)
        drawn = [functional.dropout(found, self.dropout) for _ in range(count)] or [found]
        return torch.stack([self.logits(each).float().softmax(1) for each in drawn])


def bounded(logits: Tensor, bound: float) -> Tensor:
    """Return logits squashed to what lies between -bound and bound, small ones hardly changed."""
    return bound * (logits / bound).tanh()


def smoothed(target: Tensor, share: float) -> Tensor:
    """Return targets of which a share is spread over all classes.

    >>> smoothed(torch.tensor([[1.0, 0.0]]), 0.1).tolist()
    [[0.95, 0.05]]
    """
    return (1 - share) * target + share / target.shape[1]


def cross_entropies(logits: Tensor, target: Tensor) -> Tensor:
    """Return the cross-entropy of each item with its soft target."""
    return -(target * logits.float().log_softmax(1)).sum(1)


def weighted(losses: Tensor, weight: Tensor) -> Tensor:
    """Return the mean loss, each item counted by its weight."""
    return (losses * weight).sum() / weight.sum()
