"""What the models' average says of each item beside its given label: agreement, chance, signs of learning by heart."""

import msgspec
import numpy as np

from relook.types import FloatArray, IntArray, Labels, Posteriors, blocks

_IN_SAMPLE_ITEMS, _IN_SAMPLE_AGREEMENT, _IN_SAMPLE_CONFIDENCE = 200, 0.995, 0.98


class Predictions(msgspec.Struct, frozen=True, eq=False):
    """What the models' average says of each item: its likeliest class, that one's probability, and the given label's.

    `given` is the label with most votes, -1 where there is none; `given_probability` is 0 there.
    """

    given: IntArray
    likeliest: IntArray
    probability: FloatArray
    given_probability: FloatArray

    @property
    def labelled(self) -> IntArray:
        """Items that have a given label."""
        return np.flatnonzero(self.given >= 0)

    def agreement(self) -> float:
        """Return the share of labelled items whose likeliest class is the given one."""
        labelled = self.labelled
        return float((self.likeliest[labelled] == self.given[labelled]).mean())

    def chance(self) -> float:
        """Return the agreement that the shares of the classes alone would bring."""
        labelled = self.labelled
        return _chance(self.given[labelled], self.likeliest[labelled])

    def chance_error(self) -> float:
        """Return the standard deviation of the agreement when the labels are shuffled."""
        labelled = self.labelled
        return _chance_error(self.given[labelled], self.likeliest[labelled])

    def in_sample(self) -> bool:
        """Say whether the models look as if they had learnt these very labels by heart."""
        labelled = self.labelled
        return (
            len(labelled) >= _IN_SAMPLE_ITEMS
            and self.agreement() >= _IN_SAMPLE_AGREEMENT
            and float(self.given_probability[labelled].mean()) >= _IN_SAMPLE_CONFIDENCE
        )


def predictions(labels: Labels, posteriors: Posteriors) -> Predictions:
    """Return what the models' average says of each item, read once and block by block.

    >>> seen = predictions(Labels([0, 0], 2), Posteriors([[.9, .1], [.2, .8]]))
    >>> seen.likeliest.tolist(), seen.given_probability.tolist(), seen.agreement()
    ([0, 1], [0.9, 0.2], 0.5)
    """
    given = labels.label()
    items = len(given)
    likeliest, probability = np.empty(items, np.int32), np.empty(items)
    given_probability = np.zeros(items)
    for block in blocks(items, posteriors.classes * posteriors.models):
        mean = _mean(posteriors, block)
        rows, label = np.arange(len(mean)), given[block]
        likeliest[block] = mean.argmax(1)
        probability[block] = mean[rows, likeliest[block]]
        given_probability[block] = np.where(label >= 0, mean[rows, label], 0)
    return Predictions(given, likeliest, probability, given_probability)


def _mean(posteriors: Posteriors, block: slice) -> FloatArray:
    values = posteriors.values[:, block]
    return values[0] if posteriors.models == 1 else values.mean(0)


def _chance(given: IntArray, likeliest: IntArray) -> float:
    classes = 1 + int(max(given.max(), likeliest.max()))
    shares = np.bincount(given, minlength=classes) @ np.bincount(likeliest, minlength=classes)
    return float(shares) / len(given) ** 2


def _chance_error(given: IntArray, likeliest: IntArray) -> float:
    items, classes = len(given), 1 + int(max(given.max(), likeliest.max()))
    rows, columns = np.bincount(given, minlength=classes) / items, np.bincount(likeliest, minlength=classes) / items
    chance = float(rows @ columns)
    squares = float((rows * columns) @ (1 - 2 * (rows + columns - chance)))
    squares += float(rows @ columns**2) + float(columns @ rows**2) - chance**2
    return float(np.sqrt(max(squares, 0) / max(items - 1, 1)))
