"""What became of every lease, a row each: arrays instead of objects, so that a million answers take little room.

The answers that stand on an item, and those that stand of a person, are chains through the rows, the newest first.
"""

from array import array
from collections.abc import Iterator
from math import isnan, nan

import numpy as np

from relook.events import Answer, Checked, Purpose
from relook.types import IntArray

OPEN, ENDED, TOLD, LATE, UNDONE, VOID = range(6)
"""What became of a lease: it ended unanswered; its answer counts, came too late, was taken back, or counts no more."""

PURPOSES: tuple[Purpose, ...] = ("label", "draw", "gold", "repeat")
"""What a lease is for, as the rows number it; answers to the last two are no votes."""

CHECKS = ("gold", "repeat")

_GROWTH = 1_024

_COLUMNS = {"state": np.int8, "purpose": np.int8, "answer": np.int32, "item": np.int32}
"""Columns that are looked at as arrays, and what they hold."""


class Book:
    """The rows of all leases, by number; row 0 stands for none."""

    def __init__(self) -> None:
        self.rows = 1
        self.item = array("i", [0])
        self.who = array("i", [0])
        self.purpose = array("b", [0])
        self.state = array("b", [UNDONE])
        self.answer = array("i", [0])
        self.verdict = array("i", [0])
        self.ranking = array("i", [0])
        self.at = array("d", [0.0])
        self.seconds = array("d", [nan])
        self.on_item = array("i", [0])
        self.of_person = array("i", [0])
        self.people: list[str | None] = [None]
        self.numbers: dict[str | None, int] = {None: 0}
        self.latest = [0]
        self.standing = [0]

    def open(self, item: int, annotator: str | None, *, purpose: Purpose = "label") -> None:
        """Begin the next row."""
        row = self.rows
        if row == len(self.item):
            self._grow()
        self.rows = row + 1
        self.item[row] = item
        who = self.numbers.get(annotator)
        if who is None:
            who = self.person(annotator)
        self.who[row] = who
        if purpose != "label":
            self.purpose[row] = PURPOSES.index(purpose)

    def person(self, annotator: str | None) -> int:
        """Return the number of a person, who is known from now on."""
        who = self.numbers.setdefault(annotator, len(self.people))
        if who == len(self.people):
            self.people.append(annotator)
            self.latest.append(0)
            self.standing.append(0)
        return who

    def write(self, event: Answer | Checked) -> None:
        """Write an answer into its row, as one that stands, or as one that came too late."""
        row, latest = event.lease, self.latest
        self.answer[row] = event.answer
        self.verdict[row] = event.verdict
        self.at[row] = event.at
        if event.seconds is not None:
            self.seconds[row] = event.seconds
        if event.counted:
            self.state[row] = TOLD
            who = self.who[row]
            self.of_person[row] = latest[who]
            latest[who] = row
            self.standing[who] += 1
        else:
            self.state[row] = LATE

    def take_back(self, row: int) -> None:
        """Take back the newest answer of a person."""
        who = self.who[row]
        self.latest[who] = self.of_person[row]
        self.standing[who] -= 1
        self.state[row] = UNDONE

    def unlink(self, last: int, row: int) -> int:
        """Take a row out of the chain of its item, and return the newest row of what is left."""
        if last == row:
            return self.on_item[row]
        after = last
        while self.on_item[after] != row:
            after = self.on_item[after]
        self.on_item[after] = self.on_item[row]
        return last

    def chain(self, last: int) -> Iterator[int]:
        """Yield the rows that stand on an item, the newest first."""
        while last:
            yield last
            last = self.on_item[last]

    def of(self, annotator: str | None) -> Iterator[int]:
        """Yield the rows that stand of a person, the newest first."""
        row = self.latest[self.numbers[annotator]] if annotator in self.numbers else 0
        while row:
            yield row
            row = self.of_person[row]

    def is_check(self, row: int) -> bool:
        """Say whether a lease is for a repeat or a gold item."""
        return PURPOSES[self.purpose[row]] in CHECKS

    def is_draw(self, row: int) -> bool:
        """Say whether a lease is for a random check."""
        return PURPOSES[self.purpose[row]] == "draw"

    def votes(self) -> tuple[IntArray, IntArray]:
        """Return the items and classes of all answers that stand and name a class."""
        held = {name: np.frombuffer(getattr(self, name), kind)[: self.rows] for name, kind in _COLUMNS.items()}
        stand = (held["state"] == TOLD) & (held["purpose"] < PURPOSES.index(CHECKS[0])) & (held["answer"] >= 0)
        return held["item"][stand], held["answer"][stand]

    def told(self, row: int) -> Answer | Checked | None:
        """Return the answer that was given to a lease, whatever became of it."""
        if not 0 < row < self.rows or self.state[row] in (OPEN, ENDED):
            return None
        item, annotator, answer = self.item[row], self.people[self.who[row]], self.answer[row]
        seconds = None if isnan(self.seconds[row]) else self.seconds[row]
        counted, verdict, at = self.state[row] != LATE, self.verdict[row], self.at[row]
        if self.is_check(row):
            return Checked(row, item, annotator, answer, counted, verdict, at, seconds)
        return Answer(row, item, annotator, answer, self.ranking[row], counted, verdict, at, seconds)

    def _grow(self) -> None:
        more = max(_GROWTH, len(self.item) // 8)
        for column in (self.item, self.who, self.answer, self.verdict, self.ranking, self.on_item, self.of_person):
            column.frombytes(bytes(4 * more))
        for column in (self.purpose, self.state):
            column.frombytes(bytes(more))
        self.at.frombytes(bytes(8 * more))
        self.seconds.extend([nan] * more)
