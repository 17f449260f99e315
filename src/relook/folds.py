"""Folds for predictions by models that saw neither an item nor its group: how they are cut, and the walk over them.

It needs numpy alone and knows nothing of how a model learns: it drives classifiers on features and networks alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relook.errors import BadInput

IntArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.floating[Any]]


class Fold(NamedTuple):
    """One step of the walk: its number, the rows of items to learn from, and the rows of items to predict."""

    number: int
    train: IntArray
    asked: IntArray


Fit = Callable[[Fold], FloatArray]
"""Learns from a fold's rows and returns probabilities of those that are asked for, a row each, a column a class."""


def cut(
    target: IntArray, *, folds: int, rng: np.random.Generator, groups: Sequence[str] | NDArray[Any] | None = None
) -> IntArray:
    """Return the fold of each item: every class is shuffled, then dealt out one by one; -1 for the unlabelled (-1).

    Groups are dealt like items, of the class that most of their items have and the largest first, so no group is split:
    an unlabelled item of one lies in its fold, and may be predicted, but trains nothing.

    >>> cut(np.array([0, 0, 1, 1, -1]), folds=2, rng=np.random.default_rng(0)).tolist()
    [0, 1, 0, 1, -1]
    >>> cut(np.array([0, 1, 1, -1]), folds=2, rng=np.random.default_rng(0), groups=["a", "a", "b", "b"]).tolist()
    [0, 0, 1, 1]
    """
    if groups is None:
        _check_enough(int((target >= 0).sum()), folds, what="item")
        return _dealt(target, np.ones(len(target), np.int64), folds=folds, rng=rng)
    names, group_of = np.unique(np.asarray(groups), return_inverse=True)
    class_of, size = _of_groups(target, group_of, groups=len(names))
    _check_enough(int((class_of >= 0).sum()), folds, what="group")
    return _dealt(class_of, size, folds=folds, rng=rng)[group_of]


def out_of_fold(fit: Fit, target: IntArray, *, fold_of: IntArray, classes: int) -> FloatArray:
    """Return probabilities of every item, N x C, each by models that never saw it; the unlabelled are their mean.

    A class that a fold's model never saw has probability 0 there, whatever the model says.

    >>> def common(fold):
    ...     return np.tile(np.bincount(target[fold.train], minlength=2) / len(fold.train), (len(fold.asked), 1))
    >>> target, fold_of = np.array([0, 0, 0, 1, 1, -1]), np.array([0, 0, 1, 0, 1, -1])
    >>> out_of_fold(common, target, fold_of=fold_of, classes=2).round(2).tolist()
    [[0.5, 0.5], [0.5, 0.5], [0.67, 0.33], [0.5, 0.5], [0.67, 0.33], [0.58, 0.42]]
    """
    predicted = np.zeros((len(target), classes))
    for number in range(int(fold_of.max()) + 1):
        train = np.flatnonzero((target >= 0) & (fold_of != number))
        unseen = np.bincount(target[train], minlength=classes) == 0
        if (~unseen).sum() < 2:
            left = f"only class {int((~unseen).argmax())} is" if len(train) else "no labelled item is"
            raise BadInput(
                f"folds: two classes were needed to learn from, but without fold {number} {left} left; "
                "label items of another"
            )
        # An unlabelled item trains no model, so all of them may predict it.
        asked = np.flatnonzero((fold_of < 0) | (fold_of == number))
        shares = np.array(fit(Fold(number, train, asked)), np.float64)
        shares[:, unseen] = 0
        predicted[asked] += normalised(shares, otherwise=~unseen)
    return normalised(predicted, otherwise=np.ones(classes, bool))


def repeated(fit: Callable[[int], Fit], target: IntArray, *, cuts: Sequence[IntArray], classes: int) -> FloatArray:
    """Return the mean of the out-of-fold probabilities over several cuts; `fit(number of the cut)` gives its fit.

    >>> target = np.array([0, 1, 0, 1])
    >>> cuts = [cut(target, folds=2, rng=np.random.default_rng(seed)) for seed in range(3)]
    >>> even = lambda repeat: lambda fold: np.ones((len(fold.asked), 2))
    >>> repeated(even, target, cuts=cuts, classes=2)[0].tolist()
    [0.5, 0.5]
    """
    total = np.zeros((len(target), classes))
    for number, fold_of in enumerate(cuts):
        total += out_of_fold(fit(number), target, fold_of=fold_of, classes=classes)
    return total / len(cuts)


def normalised(shares: FloatArray, *, otherwise: NDArray[np.bool_]) -> FloatArray:
    """Return rows that sum to one; a row of zeros is spread over the classes of `otherwise`.

    >>> normalised(np.array([[1.0, 3.0], [0.0, 0.0]]), otherwise=np.array([True, False])).tolist()
    [[0.25, 0.75], [1.0, 0.0]]
    """
    totals = shares.sum(1, keepdims=True)
    return np.where(totals > 0, shares, otherwise) / np.where(totals > 0, totals, otherwise.sum())


def _dealt(target: IntArray, size: IntArray, *, folds: int, rng: np.random.Generator) -> IntArray:
    labelled = rng.permutation(np.flatnonzero(target >= 0))
    # Largest first: so the folds of a class differ by no more than one group of it.
    dealt = labelled[np.lexsort((-size[labelled], target[labelled]))]
    fold_of = np.full(len(target), -1)
    fold_of[dealt] = np.arange(len(dealt)) % folds
    return fold_of


def _of_groups(target: IntArray, group_of: IntArray, *, groups: int) -> tuple[IntArray, IntArray]:
    """Return the class that most labelled items of each group have (-1: none is labelled), and their number."""
    labelled = np.flatnonzero(target >= 0)
    classes = int(target.max(initial=0)) + 1
    pair, votes = np.unique(group_of[labelled] * classes + target[labelled], return_counts=True)
    fewest_first = np.argsort(votes, kind="stable")
    class_of = np.full(groups, -1)
    class_of[pair[fewest_first] // classes] = pair[fewest_first] % classes
    return class_of, np.bincount(group_of[labelled], minlength=groups)


def _check_enough(labelled: int, folds: int, *, what: str) -> None:
    if folds < 2:
        raise BadInput(f"folds: at least 2 were needed, but {folds} came; 5 is usual")
    if labelled < folds:
        raise BadInput(
            f"folds: a labelled {what} for each of {folds} was needed, but {labelled} came; take fewer folds"
        )
