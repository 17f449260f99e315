"""An encoder with a linear layer on top, and the cross-entropy with soft and weighted targets: what methods share."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from relook.train.learners import Batch, Facts
from relook.train.nets import Shape


class Classifier(nn.Module):
    """Features of an encoder, perhaps of unit length, some of them dropped, and a linear layer to logits."""

    def __init__(
        self, facts: Facts, shape: Shape, *, dropout: float = 0.0, features: Literal["plain", "unit"] = "plain"
    ) -> None:
        super().__init__()
        self.encoder = facts.begun(shape)
        self.dropout, self.features = dropout, features
        self.last = nn.Linear(self.encoder.features, facts.classes)
        nn.init.zeros_(self.last.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits, n x C."""
        return self.last(functional.dropout(self.described(images), self.dropout, self.training))

    def described(self, images: Tensor) -> Tensor:
        """Return the features that the linear layer reads, n x D."""
        found = self.encoder(images)
        return functional.normalize(found, dim=1) if self.features == "unit" else found

    def passes(self, images: Tensor, count: int) -> Tensor:
        """Return probabilities of passes with dropout (one without, where `count` is 0), M x n x C."""
        found = self.described(images)
        drawn = [functional.dropout(found, self.dropout) for _ in range(count)] or [found]
        return torch.stack([self.last(each).float().softmax(1) for each in drawn])


def smoothed(target: Tensor, share: float) -> Tensor:
    """Return targets of which a share is spread over all classes.

    >>> smoothed(torch.tensor([[1.0, 0.0]]), 0.1).tolist()
    [[0.95, 0.05]]
    """
    return (1 - share) * target + share / target.shape[1]


def cross_entropies(logits: Tensor, target: Tensor) -> Tensor:
    """Return the cross-entropy of each item with its soft target."""
    return -(target * logits.float().log_softmax(1)).sum(1)


def weighted(losses: Tensor, batch: Batch) -> Tensor:
    """Return the mean loss of a batch, each item counted by its weight."""
    return (losses * batch.weight).sum() / batch.weight.sum()
