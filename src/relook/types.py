"""The nouns: labels, posteriors, a data set, and the rows that a score sees. All are checked once, here at the door."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import index
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from relook.checks import as_array, check_classes, check_counts, check_probabilities, frozen, shown, whole_numbers
from relook.errors import BadInput

IntArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.floating[Any]]

CELLS = 65_536
"""Cells of a block: it stays in the processor's cache, whatever the number of classes."""


def blocks(items: int, width: int) -> Iterator[slice]:
    """Yield slices of items whose rows of that width fill one cache-sized block each.

    >>> [block.stop for block in blocks(5, 32_768)]
    [2, 4, 5]
    """
    step = max(1, CELLS // max(width, 1))
    for low in range(0, items, step):
        yield slice(low, min(low + step, items))


class Labels(msgspec.Struct, frozen=True, eq=False):
    """The labels items came with, and the answers since.

    `given` has one class an item (-1: unlabelled) or N x C counts; `answers` is N x C counts of new answers, or None.
    Where `given` are counts, `came_with` may say which label each item came with (-1: none): it decides a tie.

    >>> labels = Labels([0, 1, -1], 2, answers=[[0, 2], [0, 0], [0, 0]])
    >>> labels.majority().tolist()
    [1, 1, -1]
    """

    given: IntArray
    classes: int
    answers: IntArray | None = None
    came_with: IntArray | None = None

    def __post_init__(self) -> None:
        if self.classes < 1:
            raise BadInput(f"labels: at least one class was needed, but {self.classes} came; name the classes")
        msgspec.structs.force_setattr(self, "classes", index(self.classes))
        given = whole_numbers(self.given, "labels")
        if given.ndim == 2:
            check_counts(given, self.classes, where="labels")
        elif given.ndim == 1:
            check_classes(given, self.classes)
        else:
            raise BadInput(f"labels: one class an item or N x C counts were needed, but shape {given.shape} came")
        if not len(given):
            raise BadInput("labels: at least one item was needed, but the set is empty; check the file")
        msgspec.structs.force_setattr(self, "given", frozen(given))
        if self.answers is not None:
            answers = whole_numbers(self.answers, "answers")
            check_counts(answers, self.classes, where="answers")
            if len(answers) != len(given):
                raise BadInput(f"answers: a row for each of {len(given)} items was needed, but {len(answers)} came")
            msgspec.structs.force_setattr(self, "answers", frozen(answers))
        if self.came_with is not None:
            came = whole_numbers(self.came_with, "labels that items came with")
            if came.shape != (len(given),):
                raise BadInput(
                    f"labels: one that each of {len(given)} items came with was needed, but shape {came.shape} came"
                )
            check_classes(came, self.classes)
            msgspec.structs.force_setattr(self, "came_with", frozen(came))

    def __len__(self) -> int:
        return len(self.given)

    @property
    def given_counts(self) -> IntArray:
        """Given labels as N x C counts."""
        return one_hot(self.given, self.classes) if self.given.ndim == 1 else self.given

    @property
    def counts(self) -> IntArray:
        """Given labels and answers together, N x C."""
        if self.answers is None:
            return self.given_counts
        return np.add(self.given_counts, self.answers, dtype=np.int64)  # a byte would not hold the sum of two

    def label(self) -> IntArray:
        """Return the label of each item: the class with more votes than any other, the one it came with on a tie.

        It is -1 where there is neither: a tie between answers alone says nothing.

        >>> Labels([[1, 1], [0, 2], [1, 1]], 2, came_with=[1, 0, -1]).label().tolist()
        [1, 1, -1]
        """
        if self.answers is None and self.given.ndim == 1:
            return self.given
        counts = self.counts
        top = majority(counts)
        tied = (counts == counts.max(1, keepdims=True)).sum(1) > 1
        came = self.given if self.given.ndim == 1 else self.came_with
        return np.where(tied, -1 if came is None else came, top)

    def majority(self) -> IntArray:
        """Return the class with most votes an item: the lowest one on a tie, -1 where there is no vote."""
        return majority(self.counts)

    def distribution(self) -> FloatArray:
        """Return the votes of each item as shares, N x C; a row without votes stays zero."""
        counts = self.counts.astype(np.float64)
        return counts / np.maximum(counts.sum(1, keepdims=True), 1)

    def first(self, items: int) -> Labels:
        """Return the labels of the first so many items."""
        if items >= len(self):
            return self
        answers = None if self.answers is None else self.answers[:items]
        came_with = None if self.came_with is None else self.came_with[:items]
        return Labels(self.given[:items], self.classes, answers, came_with)

    def and_then(self, more: Labels) -> Labels:
        """Return these given labels with those of more items after them.

        >>> Labels([0, 1], 2).and_then(Labels([1], 2)).given.tolist()
        [0, 1, 1]
        """
        came_with = None
        if self.came_with is not None or more.came_with is not None:
            parts = [part.came_with if part.came_with is not None else [-1] * len(part) for part in (self, more)]
            came_with = np.concatenate(parts)
        return Labels(np.concatenate([self.given, more.given]), self.classes, came_with=came_with)

    def fingerprint(self) -> str:
        """Return a hash of the given labels, the same whatever kind of whole numbers holds them."""
        return _digest(self.given, "<i8")


def ids_fingerprint(ids: Iterable[str]) -> str:
    """Return a hash of items' ids in their order, which no other ids have, however they are cut into words.

    >>> ids_fingerprint(["a", "b"]) == ids_fingerprint(["ab"])
    False
    """
    digest = hashlib.blake2b(b"ids", digest_size=16)
    for name in ids:
        text = name.encode("utf-8", "surrogatepass")
        digest.update(len(text).to_bytes(8, "little") + text)
    return digest.hexdigest()


class Posteriors(msgspec.Struct, frozen=True, eq=False):
    """Class probabilities of M models for N items, M x N x C (one model may come as N x C).

    `in_sample` says that the models were trained on these very items and labels. `about` tells, as a log keeps it, what
    made them: the selector, a hash of the labels it learnt from, how well they are calibrated.

    >>> Posteriors([[.9, .1], [.2, .8]]).mean().shape
    (2, 2)
    """

    values: FloatArray
    in_sample: bool = False
    about: dict[str, Any] = {}

    def __post_init__(self) -> None:
        values = as_array(self.values, "posteriors")
        if values.ndim == 2:
            values = values[np.newaxis]
        if values.ndim != 3 or 0 in values.shape:
            raise BadInput(f"posteriors: N x C or M x N x C numbers were needed, but shape {values.shape} came")
        if values.dtype.kind != "f":
            raise BadInput(f"posteriors: probabilities were needed, but {values.dtype} came; were labels passed?")
        for model in range(len(values)):
            for block in blocks(*values.shape[1:]):
                check_probabilities(values[model, block], model=model, first=block.start)
        msgspec.structs.force_setattr(self, "values", frozen(values))

    @property
    def models(self) -> int:
        """Number of models, M."""
        return self.values.shape[0]

    @property
    def items(self) -> int:
        """Number of items, N."""
        return self.values.shape[1]

    @property
    def classes(self) -> int:
        """Number of classes, C."""
        return self.values.shape[2]

    def mean(self) -> FloatArray:
        """Return the models' average, N x C."""
        return self.values[0] if self.models == 1 else self.values.mean(0)

    def fingerprint(self) -> str:
        """Return a hash of the content."""
        return fingerprint(self.values)


class Dataset(msgspec.Struct, frozen=True, eq=False):
    """Items with the labels they came with and, in a simulation, their true label distributions.

    `images[i]` is uint8 (H x W or H x W x 3), read when asked for; `features` is N x D; a group is, say, a patient.
    """

    name: str
    classes: tuple[str, ...]
    ids: Sequence[str]
    given: Labels
    truth: FloatArray | None = None
    features: FloatArray | None = None
    images: Sequence[Any] | None = None
    texts: Sequence[str] | None = None
    groups: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if len(self.classes) != self.given.classes:
            raise BadInput(f"{self.name}: labels have {self.given.classes} classes, but {len(self.classes)} names came")
        for part, names in (("ids", self.ids), ("class names", self.classes)):
            if len(set(names)) != len(names):
                double = next(name for name, times in Counter(names).items() if times > 1)
                raise BadInput(f"{self.name}: {part} must differ, but {double!r} comes twice; make them unique")
        for part in ("ids", "truth", "features", "images", "texts", "groups"):
            held = len(self.given) if getattr(self, part) is None else len(getattr(self, part))
            if held != len(self.given):
                raise BadInput(f"{self.name}: {len(self.given)} items have labels, but {part} holds {held}")
        if self.truth is not None:
            msgspec.structs.force_setattr(self, "truth", true_distribution(self.truth, len(self.classes)))

    def __len__(self) -> int:
        return len(self.given)

    @property
    def true_class(self) -> IntArray:
        """The class that most people would say, the lowest one on a tie."""
        if self.truth is None:
            raise BadInput(f"{self.name}: the truth was needed, but this set has none; simulate on a set that has")
        return self.truth.argmax(1)


def true_distribution(truth: ArrayLike, classes: int) -> FloatArray:
    """Return the truth as N x C shares, from shares, from counts of answers, or from one class an item.

    >>> true_distribution([[3, 1], [0, 2]], 2).tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    values = as_array(truth, "truth")
    if values.ndim == 1 and values.dtype.kind in "iu":
        check_classes(values, classes)
        if (values < 0).any():
            raise BadInput(f"truth: every item needs a class, but item {int((values < 0).argmax())} has none")
        values = one_hot(values, classes)
    if values.ndim != 2 or values.shape[1] != classes:
        raise BadInput(f"truth: N x {classes} shares or counts were needed, but shape {values.shape} came")
    if values.dtype.kind not in "biuf":
        raise BadInput(f"truth: shares or counts were needed, but {values.dtype} came; map class names to numbers")
    values = values.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        totals = values.sum(1)
    bad = ~(np.isfinite(totals) & (totals > 0) & (values.min(1) >= 0))
    if bad.any():
        row = int(bad.argmax())
        raise BadInput(f"truth: rows must hold shares or counts of answers, but item {row} holds {shown(values[row])}")
    # Shares are left as they are: divided again, their last bit would move whenever a data set is copied or sent.
    totals = np.where(np.abs(totals - 1) <= 1e-12, 1.0, totals)
    return frozen(values / totals[:, np.newaxis])


class Rows(msgspec.Struct, frozen=True, eq=False):
    """What a score sees of n items: their numbers, votes and posteriors, each row an item, in C order.

    `posteriors` is M x n x C or None; `given_labels` is one class a row (-1: unlabelled) or n x C counts. A caller
    that has counted the votes hands them over as `vote_counts`.
    """

    items: IntArray
    posteriors: FloatArray | None
    given_labels: IntArray
    answer_counts: IntArray | None = None
    classes: int = 2
    given_weight: float = 1.0
    vote_counts: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.items)

    @property
    def probabilities(self) -> FloatArray:
        """Posteriors of every model, M x n x C."""
        if self.posteriors is None:
            raise BadInput("score: this rule needs class probabilities, but none came; pass them with --probabilities")
        return self.posteriors

    @property
    def mean(self) -> FloatArray:
        """Posteriors averaged over the models, n x C."""
        values = self.probabilities
        return values[0] if len(values) == 1 else values.mean(0)

    @property
    def given(self) -> FloatArray:
        """Given labels as n x C counts."""
        given = self.given_labels
        return (one_hot(given, self.classes) if given.ndim == 1 else given).astype(np.float64)

    @property
    def answers(self) -> FloatArray:
        """New answers, n x C counts."""
        if self.answer_counts is None:
            return np.zeros((len(self), self.classes))
        return self.answer_counts.astype(np.float64)

    @property
    def votes(self) -> FloatArray:
        """Given labels at their weight plus the answers, n x C."""
        if self.vote_counts is not None:
            return self.vote_counts
        given = self.given * self.given_weight
        return given if self.answer_counts is None else given + self.answer_counts

    @property
    def label(self) -> IntArray:
        """The class with most votes, n: where nobody has voted the given one, -1 where there is none at all."""
        if self.untouched:
            return self.given_labels
        label = majority(self.votes)
        if label.min() >= 0:
            return label
        return np.where(
            label < 0, self.given_labels if self.given_labels.ndim == 1 else majority(self.given_labels), label
        )

    @property
    def untouched(self) -> bool:
        """Whether `label` alone tells all votes: one given label an item at most, and no answer."""
        return self.answer_counts is None and self.given_labels.ndim == 1


def one_hot(classes_of: IntArray, classes: int) -> IntArray:
    """Return N x C counts of one vote an item; -1 gives a row of zeros.

    >>> one_hot(np.array([1, -1]), 2).tolist()
    [[0, 1], [0, 0]]
    """
    counts = np.zeros((len(classes_of), classes), np.int32)
    labelled = np.flatnonzero(classes_of >= 0)
    counts[labelled, classes_of[labelled]] = 1
    return counts


def majority(votes: NDArray[Any]) -> IntArray:
    """Return the class with most votes an item, the lowest one on a tie, -1 for a row of zeros.

    >>> majority(np.array([[1, 1], [0, 2], [0, 0]])).tolist()
    [0, 1, -1]
    """
    top = votes.argmax(1)
    return np.where(votes[np.arange(len(votes)), top] > 0, top, -1)


def fingerprint(values: NDArray[Any]) -> str:
    """Return a hash of an array's type, shape and content.

    >>> fingerprint(np.arange(3)) == fingerprint(np.arange(3).copy())
    True
    """
    return _digest(values, values.dtype.str)


def _digest(values: NDArray[Any], kind: str) -> str:
    digest = hashlib.blake2b(f"{kind}{values.shape}".encode(), digest_size=16)
    flat = values.reshape(-1) if values.flags.c_contiguous else values.ravel()
    for block in blocks(flat.size, 1):
        digest.update(flat[block].astype(kind, copy=False).tobytes())
    return digest.hexdigest()
