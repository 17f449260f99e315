"""ActiveLab's ordering of items, a rival: how far a consensus of people and model is from sure, after one more answer.

The rule is that of Goh and Mueller, *ActiveLab: active learning with re-labeling by humans* (2023), as cleanlab 2.9
computes it. Per item, with P the posteriors sharpened or flattened by one temperature, and with weights w of the model,
of a given label and of an answer:

    posterior(c) = [ w_model P(c) + sum over votes of w_vote (a if the vote is c, else (1 - a) / (C - 1)) ] / W
    s            = ( W posterior(consensus) + w / C ) / (W + w),      W = w_model + the sum of w_vote

where a is how often a vote agrees with the consensus and w the mean weight of an annotator. Low s is asked first.
"""

from collections.abc import Callable, Iterator
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook.errors import BadInput
from relook.types import FloatArray, IntArray, Labels, Posteriors, Rows, blocks

FLOOR = 1e-6
"""The least weight of anybody, and the least error that a weight is measured by."""

TINY = 1e-30
"""The least probability, before a temperature or a logarithm is applied."""

TEMPERATURES = (0.1, 0.2, 0.5, 0.8, 1.0, 2.0, 3.0, 5.0, 8.0)
"""Where the search for the temperature begins; it goes on between the neighbours of the best."""


class Weights(msgspec.Struct, frozen=True):
    """How far the model, a given label and an answer are trusted, and how often a vote agrees with the consensus."""

    model: float
    given: float
    answer: float
    agreement: float


class ActiveLab(msgspec.Struct, frozen=True):
    """ActiveLab's score, turned round: the less sure the consensus after one more answer, the sooner.

    `fit` finds the constants of a whole data set; after that the score looks at one row at a time. The given label
    counts as an answer. Where no item has two votes there is nothing to fit, and the order is that of self-confidence.

    Two things are simpler than in cleanlab, which knows who gave each answer. Labels here are counts, so people are
    pooled as two anonymous annotators: whoever gave the given labels, and whoever gave the answers since. And the last
    ties, of votes and posteriors both, go to the lowest class. A `temperature` that is given is kept; 1.0 leaves the
    posteriors as they are.

    >>> labels = Labels([0, 0, 1], 2, answers=[[0, 1], [1, 0], [0, 0]])
    >>> posteriors = Posteriors([[.4, .6], [.9, .1], [.2, .8]])
    >>> rule = ActiveLab().fit(labels, posteriors)
    >>> rows = Rows(np.arange(3), posteriors.values, labels.given, labels.answers, classes=2)
    >>> np.argsort(-rule(rows)).tolist()
    [0, 2, 1]
    """

    temperature: float | None = None
    by_votes: Weights | None = None
    by_quality: Weights | None = None
    newcomer: float = 1.0

    def fit(self, labels: Labels, posteriors: Posteriors | None) -> Self:
        """Return the rule with the temperature and weights that these labels and posteriors give it.

        The consensus is first what most votes say, then what the weights of that consensus make likeliest.
        """
        parts = _Parts(labels, _fitting(labels, posteriors))
        if not any((_votes(rows).sum(1) > 1).any() for rows in parts):
            return type(self)(self.temperature)
        temperature = _temperature(parts) if self.temperature is None else self.temperature
        by_votes = _weights(sum(_tally(rows, temperature, consensus=_most_voted) for rows in parts))

        def likeliest(rows: Rows, calibrated: FloatArray) -> IntArray:
            return _likeliest(rows, calibrated, weights=by_votes)

        tally = sum(_tally(rows, temperature, consensus=likeliest) for rows in parts)
        by_quality = _weights(tally)
        return type(self)(temperature, by_votes, by_quality, _newcomer(labels, by_quality))

    def __call__(self, rows: Rows) -> FloatArray:
        """Return the score of each row."""
        if self.temperature is None or self.by_votes is None or self.by_quality is None:
            return _doubt(rows)
        calibrated = _calibrated(rows, self.temperature)
        consensus = _likeliest(rows, calibrated, weights=self.by_votes)
        posterior, trust = _pooled(rows, calibrated, weights=self.by_quality)
        quality = posterior[np.arange(len(rows)), consensus]
        sure = (trust * quality + self.newcomer / posterior.shape[1]) / (trust + self.newcomer)
        return np.asarray(-sure)


_Consensus = Callable[[Rows, FloatArray], IntArray]


class _Parts:
    """The rows of a data set, in cache-sized blocks."""

    def __init__(self, labels: Labels, posteriors: Posteriors) -> None:
        self._labels, self._posteriors = labels, posteriors

    def __iter__(self) -> Iterator[Rows]:
        labels, posteriors = self._labels, self._posteriors
        for block in blocks(len(labels), labels.classes * posteriors.models):
            answers = None if labels.answers is None else labels.answers[block]
            items = np.arange(block.start, block.stop)
            yield Rows(items, posteriors.values[:, block], labels.given[block], answers, labels.classes)


def _fitting(labels: Labels, posteriors: Posteriors | None) -> Posteriors:
    if posteriors is None:
        raise BadInput("activelab: it needs class probabilities, but none came; pass them with --probabilities")
    if (posteriors.items, posteriors.classes) != (len(labels), labels.classes):
        raise BadInput(
            f"activelab: probabilities of {len(labels)} items and {labels.classes} classes were needed, but those of "
            f"{posteriors.items} and {posteriors.classes} came; are they those of another data set?"
        )
    return posteriors


def _votes(rows: Rows) -> FloatArray:
    return rows.given + rows.answers


def _doubt(rows: Rows) -> FloatArray:
    """One minus the label's probability; an unlabelled item stands where the whole formula puts it among these."""
    mean, label = rows.mean, rows.label
    classes = mean.shape[1]
    own = mean[np.arange(len(mean)), label]
    return np.where(label >= 0, 1 - own, 1 - (3 * mean.max(1) + 1 / classes) / 4)


def _calibrated(rows: Rows, temperature: float) -> FloatArray:
    return _softened(np.log(np.maximum(rows.mean.astype(np.float64), TINY)), temperature)


def _softened(logs: FloatArray, temperature: float) -> FloatArray:
    shares: FloatArray = np.exp(logs / temperature)
    shares /= np.add.reduce(shares, axis=1, keepdims=True)
    return shares


def _most_voted(rows: Rows, calibrated: FloatArray) -> IntArray:
    """What most votes say; a tie goes to the class that the model finds likelier."""
    votes = _votes(rows)
    likelier: IntArray = np.where(votes == votes.max(1, keepdims=True), calibrated, -1).argmax(1)
    return likelier


def _pooled(rows: Rows, calibrated: FloatArray, *, weights: Weights) -> tuple[FloatArray, FloatArray]:
    """Return CROWDLAB's posterior, n x C, and the weight of all it rests on, n."""
    spread = (1 - weights.agreement) / max(calibrated.shape[1] - 1, 1)
    said = weights.given * rows.given + weights.answer * rows.answers
    people = np.add.reduce(said, axis=1)
    trust = people + weights.model
    mixed = weights.model * calibrated + weights.agreement * said + spread * (people[:, np.newaxis] - said)
    return mixed / trust[:, np.newaxis], trust


def _likeliest(rows: Rows, calibrated: FloatArray, *, weights: Weights) -> IntArray:
    """What the posterior finds likeliest; a tie goes to what most votes say."""
    posterior, _ = _pooled(rows, calibrated, weights=weights)
    voted = _most_voted(rows, calibrated)
    tied = posterior[np.arange(len(rows)), voted] == posterior.max(1)
    return np.where(tied, voted, posterior.argmax(1))


def _tally(rows: Rows, temperature: float, *, consensus: _Consensus) -> NDArray[Any]:
    """Add up what the weights are made of; every sum runs over items, so that those of blocks add up too.

    Votes and items with any; then over items with two votes or more: their number, the model's errors, the share of
    votes that agree with the consensus, the pairs of a given label or an answer with another vote and those that agree,
    and how often each class is the consensus.
    """
    calibrated = _calibrated(rows, temperature)
    agreed, votes, size = consensus(rows, calibrated), _votes(rows), _votes(rows).sum(1)
    many = size > 1
    given, answers, others = rows.given[many], rows.answers[many], votes[many] - 1
    agreed, most, most_size = agreed[many], votes[many], size[many]
    errors = (calibrated[many].argmax(1) != agreed).sum()
    share = (most[np.arange(len(most)), agreed] / most_size).sum()
    pairs = [(part.sum(1) * (most_size - 1)).sum() for part in (given, answers)]
    alike = [(part * others).sum() for part in (given, answers)]
    sums = [size.sum(), (size > 0).sum(), many.sum(), errors, share, *pairs, *alike]
    return np.concatenate([sums, np.bincount(agreed, minlength=votes.shape[1])])


def _weights(tally: Any) -> Weights:
    votes, voted, many, errors, share = tally[:5].tolist()
    pairs, alike, classes = tally[5:7], tally[7:9], tally[9:]
    # The error of always naming the commonest class: a voter no better than that has no weight.
    chance = max(1 - float(classes.max()) / many, FLOOR)
    known = pairs > 0
    agreement = np.where(known, alike / np.where(known, pairs, 1), 0)
    agreement[~known] = agreement[known].mean()
    given, answer = np.maximum(1 - (1 - agreement) / chance, FLOOR).tolist()
    model = max(1 - errors / many / chance, FLOOR) * float(np.sqrt(votes / voted))
    return Weights(model, given, answer, share / many)


def _newcomer(labels: Labels, weights: Weights) -> float:
    """The mean weight of an annotator, were each vote of an item from another one, in the same order everywhere."""
    given = int(labels.given.sum(1).max()) if labels.given.ndim == 2 else int(labels.given.max() >= 0)
    answers = 0 if labels.answers is None else int(labels.answers.sum(1).max())
    return (given * weights.given + answers * weights.answer) / (given + answers)


def _temperature(parts: _Parts) -> float:
    """The temperature at which the posteriors fit the tallied votes best, in cross-entropy."""
    place = int(_misfit(parts, TEMPERATURES).argmin())
    best = TEMPERATURES[place]
    finer: list[float] = []
    if place:
        finer += np.linspace(TEMPERATURES[place - 1], best, 4, endpoint=False).tolist()
    if best != TEMPERATURES[-1]:
        finer += np.linspace(best, TEMPERATURES[place + 1], 5).tolist()
    return float(finer[int(_misfit(parts, finer).argmin())])


def _misfit(parts: _Parts, temperatures: Any) -> FloatArray:
    return np.asarray(sum(_cross_entropies(rows, temperatures) for rows in parts))


def _cross_entropies(rows: Rows, temperatures: Any) -> FloatArray:
    voted = _votes(rows).sum(1) > 0
    votes = _votes(rows)[voted]
    # In this search cleanlab 2.9 tallies an item's classes from the first column on, whichever they are, wherever some
    # answers are missing. That flattens the posteriors, and ranks better than the search it means; it is kept, so that
    # the rival is the one that people run.
    votes = np.take_along_axis(votes, np.argsort(votes == 0, axis=1, kind="stable"), axis=1)
    shares = votes / votes.sum(1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.log(rows.mean[voted].astype(np.float64))
    fits = [np.log(np.maximum(_softened(logs, temperature), TINY)) for temperature in temperatures]
    return np.array([-(shares * fit).sum() for fit in fits])
