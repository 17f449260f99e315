"""Posteriors by the votes of the most similar items, never one's own nor those of one's group."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from relook import heads
from relook.errors import BadInput
from relook.types import FloatArray, IntArray, Labels, Posteriors

CELLS = 2**24
"""Similarities that are held at a time, 32 bits each."""


class Knn(msgspec.Struct, frozen=True):
    """The `neighbours` items most alike by cosine vote for their labels: a trainer `(features, labels) -> posteriors`.

    A vote weighs `exp((cosine - 1) / temperature)`: near ones count for more. `smoothing` votes are dealt out by how
    common the classes are, so no class is impossible. An item's own label and its group's never vote, which leaves out
    as little as can be: there are no folds. Of several tables the mean of the cosines counts.

    >>> clouds = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]])
    >>> Knn(neighbours=1)(clouds, Labels([0, 0, 1, 1], 2)).mean().argmax(1).tolist()
    [0, 0, 1, 1]
    """

    neighbours: int = 30
    temperature: float = 0.1
    smoothing: float = 0.1
    targets: heads.Targets = "majority"

    def __post_init__(self) -> None:
        if self.neighbours < 1:
            raise BadInput(f"knn: at least 1 neighbour was needed, but {self.neighbours} came; 30 is usual")
        if not 0 < self.temperature < np.inf:
            raise BadInput(f"knn: a temperature above 0 was needed, but {self.temperature} came; .1 is usual")
        if not 0 < self.smoothing < np.inf:
            raise BadInput(f"knn: a smoothing above 0 was needed, but {self.smoothing} came; .1 votes are usual")

    def __call__(
        self, features: heads.Features, labels: Labels, *, groups: Sequence[str] | None = None, seed: int = 0
    ) -> Posteriors:
        """Return the posteriors; items of one group are predicted by the others alone. Nothing is left to chance."""
        own = np.arange(len(labels)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        values = self._voted(features, labels, own=own)
        return heads.told(values, labels, selector=self, groups=groups, seed=seed)

    def in_sample(self, features: heads.Features, labels: Labels) -> Posteriors:
        """Return the votes with each item's own among them: marked, for they repeat some of the labels."""
        return heads.told_in_sample(self._voted(features, labels, own=np.full(len(labels), -1)), labels, selector=self)

    def _voted(self, features: heads.Features, labels: Labels, *, own: IntArray) -> FloatArray:
        """Return the shares of the votes; nobody votes for an item of the same `own`, unless that is -1."""
        tables = heads.standardised(features, items=len(labels))
        target, shares = heads.targets(labels, self.targets)
        heads.check_classes(target)
        voters = np.flatnonzero(target >= 0)
        if len(np.unique(own[voters])) < 2 and own[0] >= 0:
            raise BadInput(
                "knn: labelled items of two groups were needed, one to vote for the other, but all are of one; "
                "do without the groups, or label items of another"
            )
        table, common = _directions(tables), _common(shares, own=own)
        values = np.empty((len(labels), labels.classes))
        step = max(1, CELLS // len(voters))
        with heads.threads(table.size * len(voters)):
            electorate = np.ascontiguousarray(table[voters].T)
            for low in range(0, len(labels), step):
                asked = slice(low, low + step)
                alike, mine = table[asked] @ electorate, own[asked, np.newaxis]
                alike[(mine == own[voters]) & (mine >= 0)] = -np.inf
                values[asked] = self._votes(alike, shares[voters]) + self.smoothing * common[asked]
        return values / values.sum(1, keepdims=True)

    def _votes(self, alike: FloatArray, shares: FloatArray) -> FloatArray:
        nearest = min(self.neighbours, alike.shape[1])
        voters = np.argpartition(alike, -nearest, axis=1)[:, -nearest:]
        weights = np.exp((np.take_along_axis(alike, voters, 1) - 1) / self.temperature)
        votes: FloatArray = np.einsum("nk,nkc->nc", weights, shares[voters])
        return votes


def _common(shares: FloatArray, *, own: IntArray) -> FloatArray:
    """Return how common each class is among the items that may vote for an item, N x C."""
    total = np.broadcast_to(shares.sum(0, dtype=np.float64), shares.shape)
    if own[0] >= 0:
        held = np.zeros((int(own.max()) + 1, shares.shape[1]))
        np.add.at(held, own, shares)
        total = np.maximum(total - held[own], 0)
    return total / total.sum(1, keepdims=True)


def _directions(tables: Sequence[FloatArray]) -> FloatArray:
    """Return rows whose inner products are the mean of the tables' cosines."""
    parts = []
    for table in tables:
        length = np.sqrt(np.einsum("nd,nd->n", table, table))[:, np.newaxis]
        parts.append(table / np.where(length > 0, length, 1) / len(tables) ** 0.5)
    return np.hstack(parts)
