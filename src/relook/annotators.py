"""Simulated annotators: who answers when nobody is there.

An annotator is a callable `(item, nth) -> answer`: a class, or `CANNOT_TELL` or `NONE_OF_THESE` of `relook.events`.
`nth` counts the answers that the item has had since the campaign began, 0 for the first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from relook.errors import BadInput, NotAllowed
from relook.events import NONE_OF_THESE
from relook.noise import first_above, running_shares, shares
from relook.rng import uniform
from relook.types import FloatArray, IntArray

_COLUMN_PAYS = 2_000
_CHUNK = 4_096


class Annotator(Protocol):
    """Answers what class an item has, as the nth person to be asked about it."""

    def __call__(self, item: int, nth: int, /) -> int: ...


class Crowd:
    """A crowd whose answers follow each item's true distribution, N x C.

    The nth answer about an item depends on (seed, item, nth) only: whoever asks, in whatever order, hears the same.

    >>> crowd = Crowd(np.array([[.5, .5], [0., 1.]]), seed=3)
    >>> [crowd(0, nth) for nth in range(6)] == [crowd(0, nth) for nth in reversed(range(6))][::-1]
    True
    """

    __slots__ = ("_asked", "_columns", "_seed", "_steps")

    def __init__(self, truth: FloatArray, seed: int) -> None:
        self._steps = running_shares(shares(truth))
        self._seed = seed
        self._columns: dict[int, Sequence[int]] = {}
        self._asked: dict[int, int] = {}

    def __call__(self, item: int, nth: int) -> int:
        column = self._columns.get(nth)
        if column is not None and 0 <= item < len(column):
            return column[item]
        return self._answer(item, nth)

    def _answer(self, item: int, nth: int) -> int:
        items = self._steps.shape[1]
        _check_question(item, nth, items=items)
        asked = self._asked[nth] = self._asked.get(nth, 0) + 1
        # The nth answers of two thousand items cost about as much together as that of one alone: drawing them all pays
        # after so many questions, and a campaign that asks little about a large set is spared it.
        if asked * _COLUMN_PAYS > items:
            self._columns[nth] = _compact(first_above(self._steps, uniform(self._seed, np.arange(items), nth)))
            return self._columns[nth][item]
        return int(first_above(self._steps[:, item], uniform(self._seed, np.array([item]), nth)))


class SequentialCrowd:
    """The released code's crowd: one `RandomState(seed)`, one uniform number an answer, in the order of the questions.

    It ignores `nth`: another order of questions hears other answers, so two policies do not face the same crowd. It is
    for reproducing the paper's code to the digit; `Crowd` is for everything else.

    >>> crowd = SequentialCrowd(np.array([[.5, .5]]), seed=1234)
    >>> [crowd(0, 0) for _ in range(4)]
    [0, 1, 0, 1]
    """

    __slots__ = ("_classes", "_draws", "_items", "_steps")

    def __init__(self, truth: FloatArray, seed: int) -> None:
        rows = shares(truth)
        self._items, self._classes = len(rows), int(rows.shape[1])
        # One flat view of all items: a search in its part makes no list, and no array, an answer.
        self._steps: Sequence[float] = np.ascontiguousarray(running_shares(rows).T).reshape(-1).data
        self._draws = _stream(np.random.RandomState(seed))

    def __call__(self, item: int, nth: int) -> int:
        if not 0 <= item < self._items:
            _check_question(item, nth, items=self._items)
        low = item * self._classes
        # As the released code's choice: the first class whose running share exceeds the draw.
        return bisect_right(self._steps, next(self._draws), low, low + self._classes) - low


class Perfect:
    """An annotator who always gives the true class: the one of the minimal sampler.

    >>> Perfect(np.array([2, 0]))(0, 5)
    2
    """

    __slots__ = ("_true_class",)

    def __init__(self, true_class: IntArray) -> None:
        self._true_class = _compact(_classes(true_class))

    def __call__(self, item: int, nth: int) -> int:
        if item < 0 or item >= len(self._true_class):
            _check_question(item, nth, items=len(self._true_class))
        return self._true_class[item]


class ByConfusion:
    """Annotators who confuse classes alike on every item: row y of the C x C matrix holds their answers when y is true.

    >>> ByConfusion(np.array([0, 1]), np.array([[0., 1.], [1., 0.]]), seed=0)(1, 0)
    0
    """

    __slots__ = ("_crowd",)

    def __init__(self, true_class: IntArray, matrix: FloatArray, *, seed: int) -> None:
        rows, true = shares(matrix), _classes(true_class)
        if len(rows) != rows.shape[1]:
            raise BadInput(
                f"annotators: C x C confusions were needed, but shape {rows.shape} came; one row a true class"
            )
        if true.max() >= len(rows):
            item = int(true.argmax())
            raise BadInput(
                f"annotators: the matrix has {len(rows)} classes, but item {item} has class {true[item]}; add its row"
            )
        self._crowd = Crowd(rows[true], seed)

    def __call__(self, item: int, nth: int) -> int:
        return self._crowd(item, nth)


class Panel:
    """A finite panel: person j answers from the item's true distribution with probability `skills[j]`, else guesses.

    A person's answer about an item is one answer, the same whenever it is asked for. Called as an annotator, the panel
    answers in the order of its people: its nth answer is person n's, and when all have answered, that is an error.

    >>> panel = Panel(np.array([[1., 0.], [0., 1.]]), skills=(1.0, 0.5), seed=0)
    >>> panel.person(0)(1, 0), len(panel)
    (1, 2)
    """

    __slots__ = ("_crowds", "_seed", "_truth", "skills")

    def __init__(self, truth: FloatArray, skills: Sequence[float], *, seed: int) -> None:
        self._truth = shares(truth)
        if not len(skills):
            raise BadInput("panel: at least one person was needed, but no skills came; give one share a person")
        for person, skill in enumerate(skills):
            if not 0 <= skill <= 1:
                raise BadInput(
                    f"panel: a skill must lie in 0 to 1, but person {person} has {skill}; 1 is the crowd itself"
                )
        self.skills = tuple(float(skill) for skill in skills)
        self._seed = seed
        self._crowds: dict[float, Crowd] = {}

    def __len__(self) -> int:
        return len(self.skills)

    def __call__(self, item: int, nth: int) -> int:
        _check_question(item, nth, items=len(self._truth))
        if nth >= len(self.skills):
            raise NotAllowed(f"panel: all {len(self.skills)} people have answered item {item}; enlarge the panel")
        return self.person(nth)(item, nth)

    def person(self, number: int) -> Person:
        """Return the annotator who is this person of the panel, counted from 0."""
        if not 0 <= number < len(self.skills):
            raise BadInput(
                f"panel: people 0 to {len(self.skills) - 1} were needed, but person {number} came; enlarge it"
            )
        skill = self.skills[number]
        if skill not in self._crowds:
            self._crowds[skill] = Crowd(skill * self._truth + (1 - skill) / self._truth.shape[1], self._seed)
        # Person j is the jth answer of the crowd of that skill: with full skill a panel is the crowd dealt out.
        return Person(self._crowds[skill], number)


class Person:
    """One person of a panel, who gives one answer an item, however often asked.

    >>> person = Panel(np.array([[.5, .5]]), skills=(.9, .9), seed=0).person(1)
    >>> person(0, 0) == person(0, 7)
    True
    """

    __slots__ = ("_crowd", "_number")

    def __init__(self, crowd: Crowd, number: int) -> None:
        self._crowd = crowd
        self._number = number

    def __call__(self, item: int, nth: int) -> int:
        return self._crowd(item, self._number)


class Recorded:
    """Answers that people once gave: the nth answer about item i is `answers[i][nth]`; any class or code of an answer.

    Asking for more than were recorded raises `NotAllowed`, for an invented answer would pass as a person's.

    >>> Recorded([[2, 0], [1]])(0, 1)
    0
    """

    __slots__ = ("_answers",)

    def __init__(self, answers: Sequence[Sequence[int]]) -> None:
        self._answers = tuple(tuple(int(answer) for answer in row) for row in answers)
        if not self._answers:
            raise BadInput("recorded answers: at least one item was needed, but none came; give one row an item")
        for item, row in enumerate(self._answers):
            if row and min(row) < NONE_OF_THESE:
                raise BadInput(
                    f"recorded answers: classes or codes were needed, but item {item} has {min(row)}; see events"
                )

    def __call__(self, item: int, nth: int) -> int:
        _check_question(item, nth, items=len(self._answers))
        row = self._answers[item]
        if nth >= len(row):
            raise NotAllowed(
                f"recorded answers: item {item} has {len(row)}, but number {nth + 1} was asked for; lower the budget"
            )
        return row[nth]


def _stream(random: np.random.RandomState) -> Iterator[float]:
    # Numbers drawn by the thousand are the same ones as drawn singly, at a tenth of the cost.
    while True:
        yield from random.random_sample(_CHUNK).tolist()


def _compact(classes: IntArray) -> Sequence[int]:
    """Return the classes in a form that gives Python integers fastest: bytes where they fit."""
    return classes.astype(np.uint8).tobytes() if classes.max() < 256 else classes.tolist()


def _classes(true_class: IntArray) -> IntArray:
    values = np.asarray(true_class)
    if values.ndim != 1 or not len(values) or values.dtype.kind not in "iu":
        raise BadInput(
            f"annotators: one true class an item was needed, but {values.dtype} of shape {values.shape} came; "
            "take the argmax of a distribution"
        )
    if values.min() < 0:
        item = int(values.argmin())
        raise BadInput(
            f"annotators: classes of 0 or more were needed, but item {item} has {values[item]}; give its true class"
        )
    return values


def _check_question(item: int, nth: int, *, items: int) -> None:
    if not 0 <= item < items:
        raise BadInput(
            f"annotators: items 0 to {items - 1} are known, but item {item} was asked about; is it another set?"
        )
    if nth < 0:
        raise BadInput(
            f"annotators: answers are counted from 0, but answer {nth} of item {item} was asked for; use 0 or more"
        )
