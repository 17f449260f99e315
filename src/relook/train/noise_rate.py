"""How many given labels are wrong, estimated without the truth: what co-teaching drops by default."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relook.errors import BadInput

SUREST = 0.2
"""The share of each predicted class that counts: where the model is surest, for there it is seldom wrong."""

MOST = 0.5
"""No more is ever taken to be wrong: where most labels were, nothing could be learnt from them."""


def noise_rate(posteriors: NDArray[np.floating[Any]], given: NDArray[np.integer[Any]]) -> float:
    """Return the estimated share of wrong labels, from out-of-sample probabilities, N x C, and labels (-1: none).

    Among the fifth of each predicted class that the model is surest of, it is the share of labels of another class. A
    weak model is wrong even there, and the estimate then is too high; noise that grows with difficulty is seen less
    there, and the estimate then is too low.

    >>> posteriors = np.array([[0.9, 0.1]] * 10 + [[0.1, 0.9]] * 10)
    >>> noise_rate(posteriors, np.array([1] + [0] * 9 + [1] * 10))
    0.25
    """
    if given.shape != posteriors.shape[:1]:
        raise BadInput(
            f"noise rate: a label for each of {len(posteriors):,} rows was needed, but shape {given.shape} came"
        )
    likeliest, sureness = posteriors.argmax(1), posteriors.max(1)
    other, counted = 0, 0
    for label in range(posteriors.shape[1]):
        told = np.flatnonzero((likeliest == label) & (given >= 0))
        surest = told[np.argsort(-sureness[told], kind="stable")][: math.ceil(SUREST * len(told))]
        other, counted = other + int((given[surest] != label).sum()), counted + len(surest)
    return min(other / counted, MOST) if counted else 0.0
