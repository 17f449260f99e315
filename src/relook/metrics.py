"""How well a ranking finds what is wrong, and what became of each item that was visited."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook.curves import difficult
from relook.errors import BadInput
from relook.events import UNSETTLED, Answer, Event, Undone
from relook.types import FloatArray, IntArray, Labels

KINDS = ("clear_corrected", "clear_not_corrected", "difficult_corrected", "difficult_not_corrected", "was_right")
"""What a visit can come to: a wrong label, clear or difficult, corrected or not; or a label that was right before."""


def picks(events: Sequence[Event]) -> IntArray:
    """Return the items in the order they were visited: one entry a visit, however many answers it took.

    >>> picks([]).tolist()
    []
    """
    visits: list[int] = []
    going: set[int] = set()
    for answer in _standing(events):
        if answer.item not in going:
            visits.append(answer.item)
        if answer.verdict == UNSETTLED:
            going.add(answer.item)
        else:
            going.discard(answer.item)
    return np.array(visits, np.int64)


def kinds(events: Sequence[Event], given: Labels, *, truth: FloatArray) -> dict[str, int]:
    """Count what became of the visits, by `KINDS`; one that was cut short leaves its item with the label it came with.

    >>> from relook.events import Answer
    >>> visit = [Answer(1, 0, None, 0, 1, True, -1, 0.), Answer(2, 0, None, 0, 1, True, 0, 0.)]
    >>> kinds(visit, Labels([1], 2), truth=np.array([[1., 0.]]))["clear_corrected"]
    1
    """
    came, hard = given.label() == truth.argmax(1), difficult(truth)
    right, true = came.copy(), truth.argmax(1)
    counts = dict.fromkeys(KINDS, 0)
    going: dict[int, bool] = {}
    for answer in _standing(events):
        item, verdict = answer.item, answer.verdict
        going.setdefault(item, bool(right[item]))
        right[item] = verdict == true[item] if verdict >= 0 else came[item]
        if verdict != UNSETTLED:
            counts[_kind(right_before=going.pop(item), right_after=right[item], hard=hard[item])] += 1
    for item, before in going.items():
        counts[_kind(right_before=before, right_after=right[item], hard=hard[item])] += 1
    return counts


def _standing(events: Sequence[Event]) -> list[Answer]:
    """Return the answers that stand at the end, each with the verdict that it left its item with."""
    undone = {event.lease for event in events if type(event) is Undone}
    if not undone:
        return [event for event in events if type(event) is Answer and event.counted]
    standing: dict[int, Answer] = {}
    of_item: dict[int, list[int]] = {}
    for event in events:
        if type(event) is Answer and event.counted:
            standing[event.lease] = event
            of_item.setdefault(event.item, []).append(event.lease)
        elif type(event) is Undone:
            del standing[event.lease]
            leases = of_item[event.item]
            leases.remove(event.lease)
            if leases:
                standing[leases[-1]] = msgspec.structs.replace(standing[leases[-1]], verdict=event.verdict)
    return list(standing.values())


def _kind(*, right_before: bool, right_after: bool, hard: bool) -> str:
    if right_before:
        return "was_right"
    return f"{'difficult' if hard else 'clear'}_{'corrected' if right_after else 'not_corrected'}"


def precision_at(scores: FloatArray, wrong: NDArray[np.bool_], *, k: int) -> float:
    """Return the share of wrong labels among the k items with the highest scores.

    >>> precision_at(np.array([.9, .5, .1]), np.array([True, False, True]), k=2)
    0.5
    """
    if not 1 <= k <= len(scores):
        raise BadInput(f"precision: k from 1 to {len(scores)} was needed, but {k} came; there are {len(scores)} items")
    return float(wrong[np.argsort(-scores, kind="stable")[:k]].mean())


def average_precision(scores: FloatArray, wrong: NDArray[np.bool_]) -> float:
    """Return the precision averaged over the places of the wrong labels in the ranking.

    >>> average_precision(np.array([.9, .5, .1]), np.array([True, False, True])).__round__(3)
    0.833
    """
    _need_both(wrong, "average precision")
    ordered = wrong[np.argsort(-scores, kind="stable")]
    found = np.cumsum(ordered)
    return float((found / np.arange(1, len(ordered) + 1))[ordered].mean())


def roc_auc(scores: FloatArray, positive: NDArray[np.bool_]) -> float:
    """Return the chance that a positive item scores above a negative one; a tie is half.

    >>> roc_auc(np.array([.9, .5, .5]), np.array([True, True, False]))
    0.75
    """
    _need_both(positive, "ROC-AUC")
    if positive.all():
        raise BadInput("ROC-AUC: items of both kinds were needed, but all are positive; it means nothing here")
    _, place, size = np.unique(scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(size) - (size - 1) / 2
    positives = int(positive.sum())
    negatives = len(scores) - positives
    return float((middle[place][positive].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def answers_per_item(events: Sequence[Event], truth: FloatArray) -> dict[str, float]:
    """Return the mean number of answers of the items asked about, clear ones against difficult ones.

    >>> answers_per_item([], np.array([[1., 0.]]))
    {'clear': 0.0, 'difficult': 0.0}
    """
    items = np.array([answer.item for answer in _standing(events)], np.int64)
    counts = np.bincount(items, minlength=len(truth))
    hard = difficult(truth)
    parts = {"clear": counts[~hard & (counts > 0)], "difficult": counts[hard & (counts > 0)]}
    return {name: float(part.mean()) if len(part) else 0.0 for name, part in parts.items()}


def _need_both(wrong: NDArray[np.bool_], where: str) -> None:
    if not wrong.any():
        raise BadInput(f"{where}: at least one item to find was needed, but there is none; it means nothing here")
