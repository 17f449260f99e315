"""Linear discriminants in closed form: Gaussian classes that share one covariance, shrunk towards a sphere.

All that is learnt are sums over items. Sums of parts add up and can be taken out again, so models without a fold cost
one pass over the table for all folds together. It needs numpy alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]

ROWS = 8_192
"""Rows of a table that are looked at together."""

FLOOR = 1e-4
"""The covariance has at least this share of the table's whole variance in every direction."""

TEMPERATURES, NOISES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0), (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
"""How sure a discriminant may turn out to be: scores are divided by one, and a share of labels may be chance."""


class Sums(NamedTuple):
    """What items add to a discriminant: their weight in each class, C; sums of each class, C x D; products, D x D."""

    weights: FloatArray
    totals: FloatArray
    products: FloatArray

    def plus(self, other: Sums) -> Sums:
        """Return the sums of both."""
        return Sums(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def minus(self, other: Sums) -> Sums:
        """Return the sums without those of some of their items."""
        return Sums(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class Discriminant(NamedTuple):
    """Linear scores of the classes: `table @ slopes + offsets`; one that was never seen has offset minus infinity."""

    slopes: FloatArray
    offsets: FloatArray

    def scores(self, table: FloatArray) -> FloatArray:
        """Return the log of what each class says of each row, up to a constant a row, n x C."""
        return table @ self.slopes.astype(table.dtype) + self.offsets

    def predict(self, table: FloatArray) -> FloatArray:
        """Return class probabilities, n x C, block by block."""
        shares = np.empty((len(table), len(self.offsets)), np.float32)
        for low in range(0, len(table), ROWS):
            shares[low : low + ROWS] = softmax(self.scores(table[low : low + ROWS]))
        return shares


def sums(table: FloatArray, shares: FloatArray) -> Sums:
    """Return the sums of items whose row of shares, N x C, says how much of each class they are (one, or weighed).

    >>> sums(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [0.5, 0.5]])).totals.tolist()
    [[2.5, 4.0], [1.5, 2.0]]
    """
    classes, width = shares.shape[1], table.shape[1]
    found = Sums(np.zeros(classes), np.zeros((classes, width)), np.zeros((width, width)))
    for low in range(0, len(table), ROWS):
        rows, parts = table[low : low + ROWS], shares[low : low + ROWS].astype(table.dtype, copy=False)
        root = np.sqrt(parts.sum(1, keepdims=True))
        weighed = rows if (root == 1).all() else rows * root
        found = found.plus(Sums(parts.sum(0, dtype=np.float64), parts.T @ rows, weighed.T @ weighed))
    return found


def fitted(seen: Sums, *, shrinkage: float = 0.2) -> Discriminant:
    """Return the discriminant of sums; 0 takes the covariance as it is, 1 the same variance in every direction.

    >>> table, shares = np.array([[0.0], [2.0], [8.0], [10.0]]), np.repeat(np.eye(2), 2, axis=0)
    >>> fitted(sums(table, shares)).predict(np.array([[1.0], [5.0], [9.0]])).round(2).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    """
    there = seen.weights > 1e-9
    weights = np.where(there, seen.weights, 1.0)
    means = np.where(there[:, np.newaxis], seen.totals / weights[:, np.newaxis], 0.0)
    total, width = seen.weights[there].sum(), seen.totals.shape[1]
    within = (seen.products - (seen.totals * there[:, np.newaxis]).T @ means) / total
    centre = seen.totals.sum(0) / total
    whole = max(np.trace(seen.products) / total - centre @ centre, 0.0) / width
    sphere = max(np.trace(within) / width, 0.0)
    covariance = (1 - shrinkage) * (within + within.T) / 2
    covariance[np.diag_indices(width)] += shrinkage * sphere + FLOOR * whole + np.finfo(np.float64).tiny ** 0.5
    slopes = np.linalg.solve(covariance, means.T)
    priors = np.log(np.where(there, weights / total, 1.0))
    offsets = priors - 0.5 * np.einsum("cd,dc->c", means, slopes)
    return Discriminant(slopes, np.where(there, offsets, -np.inf))


class Sureness(NamedTuple):
    """How sure a discriminant may be: its scores are divided by `temperature`, and `noise` of the labels are chance."""

    temperature: float
    noise: float


def tempered(scores: FloatArray, sureness: Sureness, *, common: FloatArray) -> FloatArray:
    """Return class probabilities from scores, with how common classes are in place of what is chance.

    >>> tempered(np.array([[0.0, 1000.0]]), Sureness(2.0, 0.5), common=np.array([0.8, 0.2])).tolist()
    [[0.4, 0.6]]
    """
    return (1 - sureness.noise) * softmax(scores / sureness.temperature) + sureness.noise * common


def sureness(scores: FloatArray, shares: FloatArray, *, common: FloatArray) -> Sureness:
    """Return the one of `TEMPERATURES` and `NOISES` with the least log loss on items that the discriminant never saw.

    >>> sureness(np.array([[9.0, 0.0], [9.0, 0.0]]), np.eye(2), common=np.array([0.5, 0.5])).noise
    0.7
    """

    def loss(one: Sureness) -> float:
        likely = tempered(scores, one, common=common)
        return -float((shares * np.log(np.maximum(likely, np.finfo(np.float32).tiny))).sum())

    return min((Sureness(each, noise) for each in TEMPERATURES for noise in NOISES), key=loss)


def softmax(scores: FloatArray) -> FloatArray:
    """Return each row's exponentials as shares; minus infinity is a share of 0.

    >>> softmax(np.array([[0.0, 0.0], [1000.0, -np.inf]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    raised = np.exp(scores - scores.max(1, keepdims=True))
    shares: FloatArray = raised / raised.sum(1, keepdims=True)
    return shares
