"""Softmax regression with an L2 penalty: one optimum, found fast on tables that are long and wide.

The table is turned into its principal directions once; there the curvature of the loss is almost diagonal, and scaled
by it a few dozen steps are enough. Losses are summed in 32 bits, block by block. It needs numpy and scipy alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relook.discriminants import ROWS, Discriminant

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]

TOLERANCE = 1e-6
"""A fit ends where a step improves the loss by less than this share of it."""

STEPS = 200
"""It ends after so many steps in any case: a little smoother than the optimum, no worse a ranking."""


class Turned(NamedTuple):
    """A table in its principal directions, N x min(N, D), 32 bits, and how much it varies along each."""

    table: FloatArray
    variances: FloatArray


def turned(table: FloatArray) -> Turned:
    """Return a centred table in its principal directions; distances and inner products of its rows stay as they are.

    >>> turned(np.array([[1.0, 1.0], [-1.0, -1.0]])).variances.round(6).tolist()
    [2.0, 0.0]
    """
    rows = np.ascontiguousarray(table, np.float32)
    items, width = rows.shape
    if width <= items:
        found = np.zeros((width, width))
        for low in range(0, items, ROWS):
            found += rows[low : low + ROWS].T @ rows[low : low + ROWS]
        spread, directions = np.linalg.eigh(found)
        return Turned(rows @ directions[:, ::-1].astype(np.float32), np.maximum(spread[::-1], 0) / items)
    spread, directions = np.linalg.eigh((rows @ rows.T).astype(np.float64))
    spread, directions = np.maximum(spread[::-1], 0), directions[:, ::-1]
    return Turned((directions * np.sqrt(spread)).astype(np.float32), spread / items)


def fitted(found: Turned, shares: FloatArray, *, rows: IntArray, penalty: float) -> Discriminant:
    """Return the slopes and offsets that minimise the loss over some rows plus `penalty / 2` times the squared slopes.

    `shares`, N x C, says how much of each class an item is. The search begins at zero: an end that is nearly reached
    then knows nothing of other rows. A class that none of the rows has is left out: its offset is minus infinity.
    """
    from scipy.optimize import minimize

    there = np.flatnonzero(shares[rows].sum(0) > 0)
    parts = shares[np.ix_(rows, there)].astype(np.float32)
    loss = _Loss(found.table, parts, rows, penalty, _scale(found, parts, penalty=penalty))
    limits = {"maxiter": STEPS, "ftol": TOLERANCE, "gtol": 0}
    ended = minimize(loss, np.zeros(loss.scale.size), jac=True, method="L-BFGS-B", options=limits)
    both = ended.x.reshape(loss.scale.shape) * loss.scale
    slopes, offsets = np.zeros((len(both) - 1, shares.shape[1])), np.full(shares.shape[1], -np.inf)
    slopes[:, there], offsets[there] = both[:-1], both[-1]
    return Discriminant(slopes, offsets)


class _Loss(NamedTuple):
    """The loss as a function of slopes and offsets, each divided by its scale."""

    table: FloatArray
    shares: FloatArray
    rows: IntArray
    penalty: float
    scale: FloatArray

    def __call__(self, searched: FloatArray) -> tuple[float, FloatArray]:
        both = searched.reshape(self.scale.shape) * self.scale
        slopes, offsets = both[:-1].astype(np.float32), both[-1].astype(np.float32)
        loss, gradient = 0.5 * self.penalty * float((both[:-1] ** 2).sum()), np.zeros_like(both)
        for low in range(0, len(self.rows), ROWS):
            table, shares = self.table[self.rows[low : low + ROWS]], self.shares[low : low + ROWS]
            scores = table @ slopes + offsets
            scores -= scores.max(1, keepdims=True)
            weight = shares.sum(1, keepdims=True)
            loss -= float(np.einsum("nc,nc->", shares, scores, dtype=np.float64))
            np.exp(scores, out=scores)
            total = scores.sum(1, keepdims=True)
            loss += float((weight * np.log(total)).sum(dtype=np.float64))
            scores *= weight / total
            scores -= shares
            gradient[:-1] += table.T @ scores
            gradient[-1] += scores.sum(0, dtype=np.float64)
        gradient[:-1] += self.penalty * both[:-1]
        return loss, (gradient * self.scale).ravel()


def _scale(found: Turned, parts: FloatArray, *, penalty: float) -> FloatArray:
    """Return one over the root of the curvature along each slope (D rows) and offset (the last row), C columns."""
    common = parts.mean(0, dtype=np.float64)
    curved = len(parts) * np.outer(np.append(found.variances, 1.0), common * (1 - common))
    curved[:-1] += penalty
    return 1 / np.sqrt(np.maximum(curved, 1e-12 * curved.max()))
