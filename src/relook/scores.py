"""How much an item is worth asking about: higher means sooner.

A score is called with `Rows` and returns one number a row. It looks at one row at a time, so that one answer costs
one row's work; a score that looks at several says so by `rowwise = False` and is computed whole at every ranking.
Sums run along a row in C order by `einsum` and `reduce`, never by a matrix product, so that a row scores alike to the
bit in any company.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook.belief import AnswerModel
from relook.errors import BadInput
from relook.rng import uniform
from relook.types import FloatArray, IntArray, Labels, Posteriors, Rows, blocks

TINY = 1e-12
"""Added inside logarithms, as the paper's code does: a few certain and wrong rows would dominate otherwise."""

AMBIGUITY_ALLOWED = 0.3
"""Entropy, as a share of log C, that the paper's code does not hold against an item."""


class Score(Protocol):
    """A rule that says how much asking about each item is worth."""

    def __call__(self, rows: Rows) -> NDArray[Any]:
        """Return one number a row: higher means sooner."""
        ...


def noisiness(rows: Rows) -> FloatArray:
    """Cross-entropy from the votes to the posteriors, CE: how badly the labels fit.

    An item that nobody has voted on stands by the label it came with, and without one counts as a uniform guess.
    """
    return _cross_entropy(rows, _log(rows.mean))


def ambiguity(rows: Rows) -> FloatArray:
    """Entropy of the posteriors, H: how hard the item looks."""
    mean = rows.mean
    return -np.einsum("ij,ij->i", mean, _log(mean))


def phi(rows: Rows) -> FloatArray:
    """The paper's equation: noisiness minus ambiguity, so that clear mistakes come before hard cases.

    >>> p = np.array([[[.98, .01, .01], [.4, .3, .3]]])
    >>> phi(Rows(np.arange(2), p, np.array([1, 1]), classes=3)).round(2).tolist()
    [4.49, 0.12]
    """
    mean = rows.mean
    log = _log(mean)
    return _cross_entropy(rows, log) + np.einsum("ij,ij->i", mean, log)


def phi_clipped(rows: Rows) -> FloatArray:
    """The rule of the paper's released code: ambiguity counts only above 0.3 log C."""
    mean = rows.mean
    log = _log(mean)
    scale = 1 / max(np.log(mean.shape[1]), TINY)
    entropy = np.einsum("ij,ij->i", mean, log) * -scale
    return _cross_entropy(rows, log) * scale - np.maximum(entropy - AMBIGUITY_ALLOWED, 0)


def phi_ensemble(rows: Rows) -> FloatArray:
    """The paper's equation, with the mean of the models' entropies in place of the entropy of their mean."""
    return noisiness(rows) - _mean_entropy(rows.probabilities)


def bald(rows: Rows) -> FloatArray:
    """What the models disagree about: the entropy of their mean minus the mean of their entropies."""
    return ambiguity(rows) - _mean_entropy(rows.probabilities)


def margin(rows: Rows) -> FloatArray:
    """Probability of the likeliest other class minus that of the current label."""
    mean = np.array(rows.mean)
    picked, label = np.arange(len(mean)), rows.label
    own = np.where(label >= 0, mean[picked, label], 0)
    mean[picked, label] = np.where(label >= 0, -1, mean[picked, label])
    return mean.max(1) - own


def self_confidence(rows: Rows) -> FloatArray:
    """One minus the probability of the current label."""
    mean, label = rows.mean, rows.label
    return np.where(label >= 0, 1 - mean[np.arange(len(mean)), label], 1)


class ValuePerAnswer(msgspec.Struct, frozen=True):
    """What one more answer buys: the gain in right labels expected of asking until the label flips, per answer.

    Answers update a belief about the item, so a settled item is asked about again when doubt remains. To settle on a
    class takes `agree` votes and a lead of `lead`; both come from the stopping rule.
    """

    model: AnswerModel = AnswerModel()
    agree: float = 0.0
    lead: float = 1.0

    def __call__(self, rows: Rows) -> FloatArray:
        """Return the value of each row."""
        sharpened = self.model.sharpened(rows.mean.astype(np.float64, copy=False))
        wrong, right = self.model.answer_chances(sharpened)
        log_wrong, log_right = np.log(wrong), np.log(right)
        belief = self.model.after_answers(rows, sharpened=sharpened, gain=log_right - log_wrong)
        votes, label, picked = rows.votes, rows.label, np.arange(len(rows))
        needed = (votes[picked, label] + self.lead)[:, np.newaxis] - votes
        if self.agree:
            needed = np.maximum(needed, self.agree - votes)
        needed = np.ceil(np.maximum(needed, 1, out=needed), out=needed)
        kept = np.where(label >= 0, belief[picked, label], 0)
        spared = (right - wrong) * belief
        spared += wrong
        spared *= needed - 1
        log_right *= needed
        log_wrong *= needed
        gained = np.exp(log_right, out=log_right)
        gained *= belief
        gained -= kept[:, np.newaxis] * np.exp(log_wrong, out=log_wrong)
        # The sums run over the other classes: the label's own terms are left out.
        for terms in (gained, spared):
            terms[picked, label] = np.where(label >= 0, 0, terms[picked, label])
        return np.add.reduce(gained, axis=1) / (1 + np.add.reduce(spared, axis=1))


class TrueValue(msgspec.Struct, frozen=True, eq=False):
    """The oracle of the paper's code: the true chance of a wrong label, per answer expected until a majority forms."""

    truth: FloatArray

    def __call__(self, rows: Rows) -> FloatArray:
        """Return the value of each row."""
        truth, label = self.truth[rows.items], rows.label
        own = np.where(label >= 0, truth[np.arange(len(truth)), label], 0)
        return (1 - own) / expected_answers(truth, label)


class RandomOrder(msgspec.Struct, frozen=True):
    """A fixed random order, which looks at nothing."""

    seed: int = 0

    def __call__(self, rows: Rows) -> FloatArray:
        """Return the place of each row in the order."""
        return uniform(self.seed, rows.items, -1)


def expected_answers(truth: FloatArray, label: IntArray) -> FloatArray:
    """Return how many answers each item takes, on average, until a majority forms; exact up to three ties.

    A label that nobody would give takes two, one that everybody gives takes one.

    >>> expected_answers(np.array([[1., 0.], [0., 1.], [.5, .5]]), np.array([0, 0, 0])).tolist()
    [1.0, 2.0, 1.5]
    """
    others = truth.copy()
    picked = np.arange(len(truth))
    others[picked, label] = np.where(label >= 0, 0, others[picked, label])
    first, second, third = (np.add.reduce(others**power, axis=1) for power in (1, 2, 3))
    ties = (first**2 - second) + (first**3 - 3 * first * second + 2 * third)
    sure = truth.max(1) == 1
    return np.where(sure, 1 + (first > 0.5), 1 + first + ties)


def score_items(
    score: Score, labels: Labels, posteriors: Posteriors | None, *, given_weight: float = 1.0
) -> FloatArray:
    """Return the score of every item, computed in cache-sized blocks of rows.

    >>> labels, posteriors = Labels([0, 1], 2), Posteriors([[.9, .1], [.9, .1]])
    >>> score_items(margin, labels, posteriors).tolist()
    [-0.8, 0.8]
    """
    items = len(labels)
    if posteriors is not None and (posteriors.items, posteriors.classes) != (items, labels.classes):
        raise BadInput(
            f"posteriors: {items} items of {labels.classes} classes were needed, but {posteriors.items} of "
            f"{posteriors.classes} came; are the probabilities those of another data set?"
        )
    width = labels.classes * (1 if posteriors is None else posteriors.models)
    parts = blocks(items, width) if is_rowwise(score) else iter([slice(0, items)])
    out = np.empty(0)
    for block in parts:
        rows = rows_of(labels, posteriors, block=block, given_weight=given_weight)
        part = checked(score(rows), range(block.start, block.stop))
        if not block.start:
            out = np.empty(items, part.dtype)
        out[block] = part
    return out


def rows_of(labels: Labels, posteriors: Posteriors | None, *, block: slice, given_weight: float = 1.0) -> Rows:
    """Return the rows of a slice of items, as a score sees them."""
    return Rows(
        np.arange(block.start, block.stop),
        None if posteriors is None else posteriors.values[:, block],
        labels.given[block],
        None if labels.answers is None else labels.answers[block],
        labels.classes,
        given_weight,
    )


def is_rowwise(score: Score) -> bool:
    """Say whether the score looks at one row at a time."""
    return bool(getattr(score, "rowwise", True))


def checked(part: NDArray[Any], items: Sequence[int]) -> FloatArray:
    """Return what a score gave for some items, or say which item it failed on."""
    values = np.asarray(part)
    if values.shape != (len(items),):
        raise BadInput(
            f"score: one number a row was needed, but {len(items)} rows gave shape {values.shape}; return an array of "
            f"n numbers"
        )
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    if np.isnan(values).any():
        item = items[int(np.isnan(values).argmax())]
        raise BadInput(f"score: numbers were needed, but item {item} got NaN; guard the rule")
    return values


def top(scores: FloatArray, k: int) -> IntArray:
    """Return the k items with the highest scores, best first; on a tie the lower item comes first.

    >>> top(np.array([.1, .9, .9, .5]), 3).tolist()
    [1, 2, 3]
    """
    if k < 0:
        raise BadInput(f"top: a number of items was needed, but {k} came; pass 0 or more")
    kept: IntArray = np.empty(0, np.int64)
    for block in blocks(len(scores), 1):
        part = scores[block]
        full = len(kept) >= k > 0
        inside = np.flatnonzero(part > scores[kept].min()) if full else np.arange(len(part))
        if len(inside):
            kept = _best(scores, np.concatenate([kept, inside + block.start]), k=k)
    return kept[np.argsort(-scores[kept], kind="stable")]


def _best(scores: FloatArray, items: IntArray, *, k: int) -> IntArray:
    if len(items) <= k or not k:
        return items[:k]
    values = scores[items]
    threshold = np.partition(values, len(values) - k)[len(values) - k]
    above = items[values > threshold]
    return np.sort(np.concatenate([above, items[values == threshold][: k - len(above)]]))


def _log(probabilities: FloatArray) -> FloatArray:
    # In half precision TINY would be nothing and the logarithm of zero infinite.
    log = probabilities + np.promote_types(probabilities.dtype, np.float32).type(TINY)
    return np.log(log, out=log)


def _cross_entropy(rows: Rows, log: FloatArray) -> FloatArray:
    if rows.untouched and (rows.label >= 0).all():
        return -log[np.arange(len(log)), rows.label]
    votes = rows.votes
    totals = np.add.reduce(votes, axis=1, keepdims=True)
    if not totals.all():
        votes = np.where(totals > 0, votes, rows.given)
        totals = np.add.reduce(votes, axis=1, keepdims=True)
    shares = np.where(totals > 0, votes / np.where(totals > 0, totals, 1), 1 / votes.shape[1])
    return -np.einsum("ij,ij->i", shares.astype(log.dtype), log)


def _mean_entropy(probabilities: FloatArray) -> FloatArray:
    entropies = [np.einsum("ij,ij->i", model, _log(model)) for model in probabilities]
    # One by one: numpy adds many models in another order where there is but one row.
    return -reduce(np.add, entropies) / len(entropies)
