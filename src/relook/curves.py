"""How clean the labels are after each answer: a log and the truth, folded into a curve in one vectorised pass."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook.events import UNSETTLED, Answer, Event, Undone
from relook.types import FloatArray, IntArray, Labels

DIFFICULT_ABOVE = 0.3
"""An item is difficult when the entropy of its true distribution, in base C, is above this."""


class Curve(msgspec.Struct, frozen=True, eq=False):
    """The state of the labels after each answer; index 0 is before the first one.

    `share_correct` and `total_variation` are means over items; the others count items: wrong ones that are clear or
    difficult, those that were answered, and those whose given label was right and now is not.
    """

    share_correct: FloatArray
    total_variation: FloatArray
    clear_left: FloatArray
    difficult_left: FloatArray
    items_touched: FloatArray
    turned_wrong: FloatArray

    @property
    def answers(self) -> int:
        """Answers spent by the end."""
        return len(self.share_correct) - 1

    def auc(self) -> float:
        """Return the average share correct over the answers, by the trapezoid rule."""
        share = self.share_correct
        return float(share[0]) if len(share) == 1 else float(np.trapezoid(share) / (len(share) - 1))

    def answers_to(self, share: float) -> int | None:
        """Return after how many answers the share correct first reaches this, or None."""
        reached = self.share_correct >= share
        return int(reached.argmax()) if reached.any() else None

    def at_visits(self, ends: IntArray) -> "Curve":
        """Return the curve drawn straight from the end of one visit to the next, as the paper's code draws it."""
        places = np.unique(np.concatenate([[0], ends[ends <= self.answers]]))
        axis = np.arange(places[-1] + 1)
        return Curve(*(np.interp(axis, places, getattr(self, name)[places]) for name in self.__struct_fields__))


class Band(msgspec.Struct, frozen=True, eq=False):
    """One quantity of several runs on a common axis: mean, standard deviation, and the 95 % interval of the mean."""

    mean: FloatArray
    deviation: FloatArray
    low: FloatArray
    high: FloatArray


def band(curves: Sequence[Curve], quantity: str = "share_correct") -> Band:
    """Return the mean of a quantity over runs, with its spread, as far as the shortest run goes.

    >>> given, truth = Labels([0], 2), np.array([[1., 0.]])
    >>> band([curve([], given, truth=truth)]).mean.tolist()
    [1.0]
    """
    length = min(each.answers for each in curves) + 1
    values = np.array([getattr(each, quantity)[:length] for each in curves])
    mean = values.mean(0)
    deviation = values.std(0, ddof=1) if len(values) > 1 else np.zeros(length)
    half = 1.96 * deviation / np.sqrt(len(values))
    return Band(mean, deviation, mean - half, mean + half)


def difficult(truth: FloatArray) -> NDArray[np.bool_]:
    """Say of each item whether people disagree much about it: entropy in base C above 0.3.

    >>> difficult(np.array([[1., 0.], [.5, .5]])).tolist()
    [False, True]
    """
    return true_entropy(truth) > DIFFICULT_ABOVE


def true_entropy(truth: FloatArray) -> FloatArray:
    """Return the entropy of each item's true distribution as a share of log C.

    >>> true_entropy(np.array([[1., 0.], [.5, .5]])).tolist()
    [0.0, 1.0]
    """
    log = np.log(np.where(truth > 0, truth, 1))
    return np.abs((truth * log).sum(1) / max(np.log(truth.shape[1]), 1e-12))


def curve(events: Sequence[Event], given: Labels, *, truth: FloatArray, given_weight: float = 1.0) -> Curve:
    """Return the state of the labels after each answer of a log.

    An item's label is what it was settled as, else the given one. Where answers were undone, a point is the state in
    which so many stood for the last time.

    >>> settled = Answer(lease=0, item=1, annotator="Ada", answer=0, ranking=0, counted=True, verdict=0, at=0.0)
    >>> curve([settled], Labels([0, 1], 2), truth=np.array([[1., 0.], [1., 0.]])).share_correct.tolist()
    [0.5, 1.0]
    """
    steps = _Steps(events)
    label, right, hard = given.label(), truth.argmax(1), difficult(truth)
    right_given = label == right
    items = steps.items
    right_after = np.where(steps.verdicts >= 0, steps.verdicts, label[items]) == right[items]
    gained = steps.changes(right_after, right_given)
    turned = steps.changes(right_given[items] & ~right_after, np.zeros(len(given)))
    answered = steps.changes(steps.running(steps.signs) > 0, np.zeros(len(given)))
    start, apart = _variations(steps, given, truth=truth, weight=given_weight)
    items_all = len(given)
    return Curve(
        steps.sums(right_given.sum(), gained) / items_all,
        steps.sums(start.sum(), steps.changes(apart, start)) / items_all,
        steps.sums((~right_given & ~hard).sum(), -gained * ~hard[items]),
        steps.sums((~right_given & hard).sum(), -gained * hard[items]),
        steps.sums(0, answered),
        steps.sums(0, turned),
    )


def visit_ends(events: Sequence[Event]) -> IntArray:
    """Return after how many answers each item was left settled, for a log of one item at a time.

    >>> visit_ends([]).tolist()
    []
    """
    steps = _Steps(events)
    return np.cumsum(steps.signs)[steps.verdicts != UNSETTLED]


class _Steps:
    """The answers that counted, and those taken back, in the order of time; sums run along each item's own steps."""

    def __init__(self, events: Sequence[Event]) -> None:
        kept = [e for e in events if (type(e) is Answer and e.counted) or type(e) is Undone]
        self.items = np.array([e.item for e in kept], np.int64)
        self.answers = np.array([e.answer for e in kept], np.int64)
        self.verdicts = np.array([e.verdict for e in kept], np.int64)
        self.signs = np.array([1 if type(e) is Answer else -1 for e in kept], np.int64)
        self.order = np.argsort(self.items, kind="stable")
        ordered = self.items[self.order]
        self.first = np.ones(len(ordered), bool)
        self.first[1:] = ordered[1:] != ordered[:-1]
        # Of the steps that leave equally many answers standing only the last counts: what came between was undone.
        spent = np.cumsum(self.signs)
        final = int(spent[-1]) if len(spent) else 0
        self._standing = np.full(final + 1, -1)
        within = np.flatnonzero(spent <= final)
        self._standing[spent[within]] = within

    def changes(self, after: NDArray[Any], start: NDArray[Any]) -> FloatArray:
        """Return by how much each step changed its item's quantity: `after` has a value a step, `start` an item."""
        moved = after[self.order].astype(np.float64)
        before = np.empty_like(moved)
        before[1:] = moved[:-1]
        before[self.first] = start[self.items[self.order[self.first]]]
        out = np.empty_like(moved)
        out[self.order] = moved - before
        return out

    def running(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of the values of an item's steps up to and with each step."""
        ordered = values[self.order]
        total = np.cumsum(ordered, axis=0)
        starts = np.flatnonzero(self.first)
        before = (total - ordered)[starts]
        sizes = np.diff(np.append(starts, len(ordered)))
        out = np.empty_like(total)
        out[self.order] = total - np.repeat(before, sizes, axis=0)
        return out

    def sums(self, start: float, changes: FloatArray) -> FloatArray:
        """Return start and the state after each answer that stands, from the changes of all steps."""
        totals = np.concatenate([np.cumsum(changes), [0.0]])
        return start + totals[self._standing]


def _variations(steps: _Steps, given: Labels, *, truth: FloatArray, weight: float) -> tuple[FloatArray, FloatArray]:
    """Total variation between the truth and the votes: of each item at the start, and of each step's item after it."""
    votes = given.given_counts * weight
    added = np.zeros((len(steps.items), given.classes), np.float32)
    classed = np.flatnonzero(steps.answers >= 0)
    added[classed, steps.answers[classed]] = steps.signs[classed]
    after = votes[steps.items] + steps.running(added)
    return _apart(votes, truth), _apart(after, truth[steps.items])


def _apart(votes: FloatArray, truth: FloatArray) -> FloatArray:
    """Half the absolute difference of the shares; an item without votes counts as a uniform guess."""
    totals = votes.sum(1, keepdims=True)
    shares = np.where(totals > 0, votes / np.where(totals > 0, totals, 1), 1 / votes.shape[1])
    return np.asarray(0.5 * np.abs(truth - shares).sum(1))
