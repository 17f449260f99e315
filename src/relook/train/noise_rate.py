"""How many given labels are wrong, estimated without the truth: what co-teaching drops by default."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relook.discriminants import softmax, sureness
from relook.errors import BadInput

SUREST = 0.2
"""The share of each predicted class that counts: where the model is surest, for there it is seldom wrong."""

DOUBTFUL = 0.5
"""A model that is less sure than this on average, once its sureness is fitted to the labels, is weak everywhere."""

MOST = 0.5
"""No more is ever taken to be wrong: where most labels were, nothing could be learnt from them."""


def noise_rate(posteriors: NDArray[np.floating[Any]], given: NDArray[np.integer[Any]]) -> float:
    """Return the estimated share of wrong labels, from out-of-sample probabilities, N x C, and labels (-1: none).

    Among the fifth of each predicted class that the model is surest of, it is the share of labels of another class.
    Noise that grows with difficulty is seen less there, and the estimate then is too low. A weak model is wrong even
    there: of one that is, it is the share of labels that come by chance, where these explain the labels best.

    >>> posteriors = np.array([[0.9, 0.1]] * 10 + [[0.1, 0.9]] * 10)
    >>> noise_rate(posteriors, np.array([1] + [0] * 9 + [1] * 10))
    0.25
    """
    if given.shape != posteriors.shape[:1]:
        raise BadInput(
            f"noise rate: labels of {len(posteriors):,} rows were needed, but shape {given.shape} came; pass as many"
        )
    known = given >= 0
    if not known.any():
        return 0.0
    chance, doubt = _chance(posteriors[known], given[known])
    return min(chance if doubt > DOUBTFUL else _among_the_surest(posteriors[known], given[known]), MOST)


def _among_the_surest(posteriors: NDArray[np.floating[Any]], given: NDArray[np.integer[Any]]) -> float:
    likeliest, most = posteriors.argmax(1), posteriors.max(1)
    other, counted = 0, 0
    for label in range(posteriors.shape[1]):
        told = np.flatnonzero(likeliest == label)
        surest = told[np.argsort(-most[told], kind="stable")][: math.ceil(SUREST * len(told))]
        other, counted = other + int((given[surest] != label).sum()), counted + len(surest)
    return other / counted


def _chance(posteriors: NDArray[np.floating[Any]], given: NDArray[np.integer[Any]]) -> tuple[float, float]:
    """Return the share of wrong labels that come by chance, and how doubtful the model is about the others."""
    scores, hot = np.log(np.maximum(posteriors, 1e-12)), np.eye(posteriors.shape[1])[given]
    common = hot.mean(0)
    found = sureness(scores, hot, common=common)
    doubt = 1 - softmax(scores / found.temperature).max(1).mean()
    return float(found.noise * (1 - (common**2).sum())), float(doubt)
