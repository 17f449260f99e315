"""Predictions by what never saw an item's label: one walk over the folds for networks and heads, alone and together.

How much an item counts for each class is its row of *masses*, N x C: one 1 for a label, shares for soft targets, all of
it times a weight, and zeros where there is no label. A row of zeros trains nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from relook.errors import BadInput
from relook.folds import Fold, cut, out_of_fold

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]


class Learn(Protocol):
    """What learns from masses and says what some rows are."""

    def __call__(self, masses: FloatArray, asked: IntArray, /, *, name: str) -> FloatArray:
        """Return M x n x C probabilities of rows; the name keeps this training apart from others."""
        ...


WHOLE = "whole"
"""The name of a training on every label."""


def labels_of(masses: FloatArray) -> IntArray:
    """Return the class that counts most of each item, -1 where there is no label.

    >>> labels_of(np.array([[0.0, 3.0], [0.6, 0.4], [0.0, 0.0]])).tolist()
    [1, 0, -1]
    """
    return np.where(masses.sum(1) > 0, masses.argmax(1), -1)


def fold_of(masses: FloatArray, folds: int, *, seed: int, groups: Sequence[str] | None = None) -> IntArray:
    """Return the fold of each item, -1 for those without a label or a group that has one."""
    return cut(labels_of(masses), folds=folds, rng=np.random.default_rng(number(seed, "folds")), groups=groups)


def out_of_sample(learn: Learn, masses: FloatArray, *, fold_of: IntArray) -> FloatArray:
    """Return what is said of every item by models that saw neither its label nor those of its group, M x N x C.

    >>> def common(masses, asked, *, name):
    ...     return np.tile(masses.sum(0) / masses.sum(), (1, len(asked), 1))
    >>> masses = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 3.0], [0.0, 1.0], [0.0, 0.0]])
    >>> out_of_sample(common, masses, fold_of=np.array([0, 1, 0, 1, -1]))[0].tolist()
    [[0.5, 0.5], [0.25, 0.75], [0.5, 0.5], [0.25, 0.75], [0.375, 0.625]]
    """
    said: dict[int, FloatArray] = {}

    def of(model: int) -> Callable[[Fold], FloatArray]:
        def told(fold: Fold) -> FloatArray:
            if fold.number not in said:
                said[fold.number] = learn(only(masses, fold.train), fold.asked, name=f"fold-{fold.number}")
            return said[fold.number][model]

        return told

    target, classes = labels_of(masses), masses.shape[1]
    found = [out_of_fold(of(0), target, fold_of=fold_of, classes=classes)]
    more = range(1, min(len(each) for each in said.values()))
    found += [out_of_fold(of(model), target, fold_of=fold_of, classes=classes) for model in more]
    return np.stack(found)


def in_sample(learn: Learn, masses: FloatArray) -> FloatArray:
    """Return what is said of every item by models that saw all labels, M x N x C, as the paper has it."""
    seen = masses.sum(0) > 0
    if seen.sum() < 2:
        raise BadInput(
            f"training: labels of two classes were needed in sample, but {int(seen.sum())} came; label items of another"
        )
    return learn(masses, np.arange(len(masses)), name=WHOLE)


def together(parts: Sequence[Learn]) -> Learn:
    """Return a learner whose models are those of all parts: an ensemble across families."""

    def learn(masses: FloatArray, asked: IntArray, *, name: str) -> FloatArray:
        return np.concatenate([part(masses, asked, name=f"{name}/{place}") for place, part in enumerate(parts)])

    return learn


def averaged(part: Learn) -> Learn:
    """Return a learner that says the mean of what a learner's models say."""

    def learn(masses: FloatArray, asked: IntArray, *, name: str) -> FloatArray:
        return part(masses, asked, name=name).mean(0, keepdims=True)

    return learn


def self_trained(part: Learn, *, rounds: int, weight: float) -> Learn:
    """Return a learner that takes what it says of items without a label for soft targets, and learns again.

    Items of the fold that is held out are among them: their labels are not known here, so what is said of them comes
    from the labels of others alone.
    """

    def learn(masses: FloatArray, asked: IntArray, *, name: str) -> FloatArray:
        free = np.flatnonzero(masses.sum(1) == 0)
        known = masses
        for again in range(rounds if len(free) else 0):
            said = part(known, free, name=f"{name}/round-{again}").mean(0)
            known = masses.copy()
            known[free] = weight * said
        return part(known, asked, name=f"{name}/last")

    return learn


def only(masses: FloatArray, rows: IntArray) -> FloatArray:
    """Return masses with the labels of some rows alone.

    >>> only(np.eye(2), np.array([1])).tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """
    kept = np.zeros_like(masses)
    kept[rows] = masses[rows]
    return kept


def number(seed: int, *names: str | int) -> int:
    """Return a number that depends on a seed and these names alone: the seed of a part of the work.

    >>> number(0, "fold-1") == number(0, "fold-2")
    False
    """
    words = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=6).digest(), "little")
