"""Posteriors without deep learning: classifiers on features, fitted to the labels as they are, noise and all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from relook.errors import BadInput
from relook.heads import Selector

FIRST, FULL = "lda", "average"
"""The selector of a first ranking, and that of the full one."""


def named(name: str, *, folds: int = 5, repeats: int = 1) -> Selector:
    """Return the selector that a name means.

    >>> named("logistic", repeats=3)
    Logistic(folds=5, repeats=3, logit_variance=1.5, targets='majority')
    """
    if name not in SELECTORS:
        known = ", ".join(SELECTORS)
        raise BadInput(f"selector: one of {known} was needed, but {name!r} came; check the spelling")
    return SELECTORS[name](folds, repeats)


def _logistic(folds: int, repeats: int) -> Selector:
    from relook.selectors.logistic import Logistic

    return Logistic(folds, repeats)


def _lda(folds: int, repeats: int) -> Selector:
    from relook.selectors.lda import Lda

    return Lda(folds, repeats)


def _knn(_folds: int, _repeats: int) -> Selector:
    from relook.selectors.knn import Knn

    return Knn()


def _average(folds: int, repeats: int) -> Selector:
    from relook.selectors.average import Average

    return Average((_lda(folds, repeats), _logistic(folds, repeats), _knn(folds, repeats)))


SELECTORS: Mapping[str, Callable[[int, int], Selector]] = MappingProxyType(
    {"logistic": _logistic, "lda": _lda, "knn": _knn, "average": _average}
)
"""What each name means, given folds and repeats; kNN leaves out one item, or group, at a time and needs neither."""
