"""How far class probabilities can be believed, measured on given labels: no truth is needed, and none is claimed."""

from __future__ import annotations

import msgspec
import numpy as np

from relook.types import FloatArray, Labels, Posteriors, blocks

BINS = 15
"""Items are put into so many bins of equal size by the probability of their likeliest class."""

LEAST = 1e-6
"""A probability counts as no less than this in the log loss: one certain mistake is not worth an infinity."""


class Calibration(msgspec.Struct, frozen=True):
    """What out-of-sample probabilities say about given labels, over the labelled items.

    `log_loss` is the mean of minus the logarithm of the given label's probability; `error` how far the likeliest
    class's probability is off its share of agreement, on average (expected calibration error); `agreement` the share of
    items whose likeliest class is the given one.
    """

    items: int
    log_loss: float
    error: float
    agreement: float

    def sentence(self) -> str:
        """Return it as it stands beside a ranking.

        >>> Calibration(100, 1.25, 0.031, 0.8).sentence()
        'Agrees with 80.0% of the given labels; log loss 1.250, calibration error 0.031 on them.'
        """
        return (
            f"Agrees with {self.agreement:.1%} of the given labels; log loss {self.log_loss:.3f}, "
            f"calibration error {self.error:.3f} on them."
        )


def calibration(posteriors: Posteriors, labels: Labels) -> Calibration:
    """Measure how the models' average fits the labels; of probabilities in sample this says nothing.

    >>> calibration(Posteriors([[0.8, 0.2], [0.4, 0.6]]), Labels([0, 0], 2)).agreement
    0.5
    """
    given, items = labels.label(), len(labels)
    likeliest, top, of_given = np.empty(items, np.int64), np.empty(items), np.ones(items)
    for block in blocks(items, posteriors.classes * posteriors.models):
        mean = posteriors.values[:, block].mean(0, dtype=np.float64)
        rows = np.arange(len(mean))
        likeliest[block] = mean.argmax(1)
        top[block], of_given[block] = mean[rows, likeliest[block]], mean[rows, given[block]]
    known = np.flatnonzero(given >= 0)
    if not len(known):
        return Calibration(0, 0.0, 0.0, 0.0)
    right = likeliest[known] == given[known]
    loss = -float(np.log(np.maximum(of_given[known], LEAST)).mean())
    return Calibration(len(known), loss, _error(top[known], right), float(right.mean()))


def _error(probability: FloatArray, right: np.ndarray) -> float:
    order = np.argsort(probability, kind="stable")
    bins = np.array_split(order, min(BINS, len(order)))
    gaps = [abs(probability[part].mean() - right[part].mean()) * len(part) for part in bins]
    return float(sum(gaps) / len(order))
