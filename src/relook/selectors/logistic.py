"""Posteriors by logistic regression, each item predicted by models that never saw its label."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from relook import heads
from relook.errors import BadInput
from relook.folds import Fold, repeated
from relook.regression import Turned, fitted, turned
from relook.types import FloatArray, Labels, Posteriors

MANY = 10
"""Above so many classes logits vary in proportion to their number."""


class Logistic(msgspec.Struct, frozen=True):
    """Cross-fitted L2 logistic regression on standardised features: a trainer `(features, labels) -> posteriors`.

    `repeats` averages over as many ways to cut the folds. `logit_variance` is how much the penalty expects a logit to
    vary: small values are safer on noisy labels, large ones follow the labels more closely. It is spread over the
    features, so that one default suits a few pixels and long embeddings. The default is the one of .15, .5, 1.5, 5 and
    15 that predicts held-out given labels best (log loss 1.369 on CIFAR-10H's noisy labels): no truth is needed for it.
    Of more than ten classes each must stand out from more others: there it grows with their number.
    `targets="votes"` lets an item count for each class by its share of answers.

    >>> crisp = Logistic(folds=2, logit_variance=100.0)(np.array([[0.], [.1], [.9], [1.]]), Labels([0, 0, 1, 1], 2))
    >>> crisp.mean().argmax(1).tolist()
    [0, 0, 1, 1]
    """

    folds: int = 5
    repeats: int = 1
    logit_variance: float = 1.5
    targets: heads.Targets = "majority"

    def __post_init__(self) -> None:
        heads.check_settings("logistic", folds=self.folds, repeats=self.repeats)
        if not 0 < self.logit_variance < np.inf:
            raise BadInput(
                f"logistic: the logit variance must be above 0, but {self.logit_variance} came; 1.5 is usual"
            )

    def __call__(
        self, features: heads.Features, labels: Labels, *, groups: Sequence[str] | None = None, seed: int = 0
    ) -> Posteriors:
        """Return the posteriors; items of one group are predicted by models that saw none of them."""
        tables = heads.standardised(features, items=len(labels))
        target, shares = heads.targets(labels, self.targets)
        heads.check_classes(target)
        cuts = heads.cuts(target, folds=self.folds, repeats=self.repeats, groups=groups, seed=seed)
        with heads.threads(sum(table.size for table in tables) * labels.classes):
            found = turned(heads.joined(tables))
            penalty = self._penalty(tables, labels.classes)

            def fit(fold: Fold) -> FloatArray:
                model = fitted(found, shares, rows=fold.train, penalty=penalty)
                return model.predict(found.table[fold.asked])

            values = repeated(lambda _: fit, target, cuts=cuts, classes=labels.classes)
        return heads.told(values, labels, selector=self, groups=groups, seed=seed)

    def in_sample(self, features: heads.Features, labels: Labels) -> Posteriors:
        """Return what one model that learnt from every item says of them: marked, for it repeats some of its labels."""
        tables = heads.standardised(features, items=len(labels))
        target, shares = heads.targets(labels, self.targets)
        heads.check_classes(target)
        with heads.threads(sum(table.size for table in tables) * labels.classes):
            found: Turned = turned(heads.joined(tables))
            model = fitted(
                found, shares, rows=np.flatnonzero(target >= 0), penalty=self._penalty(tables, labels.classes)
            )
            values = model.predict(found.table)
        return heads.told_in_sample(values, labels, selector=self)

    def _penalty(self, tables: Sequence[FloatArray], classes: int) -> float:
        return sum(table.shape[1] for table in tables) / (self.logit_variance * max(1.0, classes / MANY))


def cross_fitted(
    features: FloatArray, labels: Labels, *, seed: int = 0, folds: int = 5, repeats: int = 1
) -> Posteriors:
    """Return out-of-sample class probabilities by logistic regression on features, N x D, and the labels' majority.

    Folds hold each class in equal parts; a class that a fold's models never saw gets probability 0 there. Unlabelled
    items are predicted by all models and train none.

    >>> from relook.datasets import digits
    >>> posteriors = cross_fitted(digits.load().features, digits.load().given, folds=2)
    >>> posteriors.items, posteriors.classes, posteriors.in_sample
    (1797, 10, False)
    """
    return Logistic(folds=folds, repeats=repeats)(features, labels, seed=seed)
