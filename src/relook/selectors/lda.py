"""Posteriors by linear discriminants: a closed form, so the first ranking of a big set is there within a minute."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

import msgspec
import numpy as np

from relook import heads, regression
from relook.discriminants import ROWS, Sums, Sureness, fitted, sums, sureness, tempered
from relook.errors import BadInput
from relook.folds import Fit, Fold, repeated
from relook.types import FloatArray, IntArray, Labels, Posteriors

SOME = 4_096
"""So many items are enough to measure how sure a model may be."""


class Lda(msgspec.Struct, frozen=True):
    """Cross-fitted linear discriminants: a trainer `(features, labels) -> posteriors`, fitted by sums alone.

    Classes are Gaussian with one covariance, shrunk by `shrinkage` towards the same variance in every direction (0: not
    at all). On noisy labels they are far too sure, so how sure they may be is measured inside each fold's own items,
    by models without one fold more; of two folds nothing is left for that. `targets="votes"` lets an item count for
    each class by its share of answers.

    >>> clouds = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]])
    >>> Lda(folds=2)(clouds, Labels([0, 0, 0, 1, 1, 1], 2)).mean().argmax(1).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    folds: int = 5
    repeats: int = 1
    shrinkage: float = 0.2
    targets: heads.Targets = "majority"

    def __post_init__(self) -> None:
        heads.check_settings("lda", folds=self.folds, repeats=self.repeats)
        if not 0 <= self.shrinkage <= 1:
            raise BadInput(f"lda: a shrinkage from 0 to 1 was needed, but {self.shrinkage} came; .2 is usual")

    def __call__(
        self, features: heads.Features, labels: Labels, *, groups: Sequence[str] | None = None, seed: int = 0
    ) -> Posteriors:
        """Return the posteriors; items of one group are predicted by models that saw none of them."""
        table = _compact(features, items=len(labels))
        target, shares = heads.targets(labels, self.targets)
        heads.check_classes(target)
        cuts = heads.cuts(target, folds=self.folds, repeats=self.repeats, groups=groups, seed=seed)
        with heads.threads(table.size * table.shape[1]):
            fits = (self._fit(table, shares, fold_of=fold_of) for fold_of in cuts)
            values = repeated(lambda _: next(fits), target, cuts=cuts, classes=labels.classes)
        return heads.told(values, labels, selector=self, groups=groups, seed=seed)

    def in_sample(self, features: heads.Features, labels: Labels) -> Posteriors:
        """Return what one model that learnt from every item says of them: marked, for it repeats some of its labels."""
        table = _compact(features, items=len(labels))
        target, shares = heads.targets(labels, self.targets)
        heads.check_classes(target)
        with heads.threads(table.size * table.shape[1]):
            values = fitted(sums(table, shares), shrinkage=self.shrinkage).predict(table)
        return heads.told_in_sample(values, labels, selector=self)

    def _fit(self, table: FloatArray, shares: FloatArray, *, fold_of: IntArray) -> Fit:
        """Return the fit of one cut: the sums of each fold are taken once, and a model is the whole without one."""
        members = [np.flatnonzero((fold_of == fold) & (shares.sum(1) > 0)) for fold in range(self.folds)]
        parts = [sums(table[rows], shares[rows]) for rows in members]
        whole = reduce(Sums.plus, parts)

        def fit(fold: Fold) -> FloatArray:
            seen = whole.minus(parts[fold.number])
            common = seen.weights / seen.weights.sum()
            inner = [other for other in range(self.folds) if other != fold.number]
            sure = Sureness(1.0, 0.0)
            if len(inner) > 1:
                rows = [_some(members[other], SOME // len(inner)) for other in inner]
                models = [fitted(seen.minus(parts[other]), shrinkage=self.shrinkage) for other in inner]
                scores = [model.scores(table[asked]) for model, asked in zip(models, rows, strict=True)]
                sure = sureness(np.vstack(scores), shares[np.concatenate(rows)], common=common)
            model = fitted(seen, shrinkage=self.shrinkage)
            said = [tempered(model.scores(table[rows]), sure, common=common) for rows in _blocks(fold.asked)]
            return np.vstack(said)

        return fit


def _compact(features: heads.Features, *, items: int) -> FloatArray:
    """Return the joined table; one that is wider than long is turned, which changes no distance."""
    table = heads.joined(heads.standardised(features, items=items))
    return regression.turned(table).table if table.shape[1] > items else table


def _some(rows: IntArray, most: int) -> IntArray:
    """Return rows at even steps, no more than that many."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def _blocks(rows: IntArray) -> list[IntArray]:
    return [rows[low:high] for low, high in pairwise([*range(0, len(rows), ROWS), len(rows)])]
