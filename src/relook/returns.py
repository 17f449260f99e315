"""Answers that come back in a file: each row is judged by itself, and the same file sent twice changes nothing.

A row finds the item it is about by the number of its lease or, where that was lost, by its id and who answered. What
cannot be recorded is told by the number of its row and the cure; an empty answer is one that is still to come.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from relook import tables, taskfiles
from relook.campaign import Campaign
from relook.errors import BadInput
from relook.events import Answer, Checked, Lease
from relook.handouts import ANSWER, ID, LEASE, SECONDS, WHY, WORDS, item_of
from relook.ledger import Ledger
from relook.sheets import Sheet, numbers, texts
from relook.sources import COLUMNS, listed

if TYPE_CHECKING:
    import polars as pl

ANNOTATOR = "annotator"
"""The column of who answered, where a table has one."""


class Word(msgspec.Struct, frozen=True):
    """What a row says: where it stands, which item and lease, who, what, and how many seconds it took."""

    place: str
    id: str | None
    lease: int | None
    annotator: str | None
    said: str
    seconds: float | None = None
    why: str | None = None


class Told(msgspec.Struct, frozen=True):
    """An answer that can be recorded: the lease it is given to, and the number of what was said."""

    lease: Lease
    answer: int
    seconds: float | None = None


class Judged(msgspec.Struct, frozen=True, eq=False):
    """A file's rows: what can be recorded, what was before, what is empty still, and why others are refused."""

    good: Sequence[Told]
    before: int
    empty: int
    refused: Sequence[str]


class Recorded(msgspec.Struct, frozen=True):
    """What became of answers that could be recorded: those that count, and those that came too late to."""

    counted: int = 0
    late: int = 0


class Known(msgspec.Struct, frozen=True, eq=False):
    """What rows are judged by: a number for each id and for each word that is an answer."""

    items: Mapping[str, int]
    answers: Mapping[str, int]


def known(ids: Sequence[str], classes: Sequence[str]) -> Known:
    """Return what rows of a campaign are judged by; a class goes before a word that is none.

    >>> known(["a"], ["cat", "dog"]).answers
    {'cannot tell': -1, 'none of these': -2, 'cat': 0, 'dog': 1}
    """
    words = {word: number for number, word in WORDS.items()}
    return Known({name: row for row, name in enumerate(ids)}, words | {name: row for row, name in enumerate(classes)})


def read(path: Path) -> list[Word]:
    """Return what a table, or an export of Label Studio, says of the items."""
    if path.suffix.lower() == ".json":
        return list(_of_tasks(path))
    return list(_of_sheet(tables.sheet(path)))


def judged(words: Sequence[Word], ledger: Ledger, *, by: Known, annotator: str | None = None) -> Judged:
    """Judge rows one by one, by what a campaign handed out; all of them are `annotator`'s where one is named."""
    handed = _Handed(ledger)
    good: dict[int, Told] = {}
    says: dict[int, tuple[str, str]] = {}
    before = empty = 0
    refused: list[str] = []
    for word in words:
        if not word.said:
            empty += 1
            continue
        try:
            told = _told(word, by, handed=handed, annotator=annotator)
            _check_same(word, ledger.book.told(told.lease.number), by=by, answer=told.answer)
        except BadInput as error:
            refused.append(str(error))
            continue
        number = told.lease.number
        place, said = says.setdefault(number, (word.place, word.said))
        if said != word.said:
            good.pop(number, None)
            refused.append(
                f"{about(word)}: one answer was needed, but {place} says {said!r} and this row {word.said!r}; "
                "keep one of them"
            )
        elif ledger.book.told(number) is not None:
            before += 1
        else:
            good[number] = told
    return Judged(list(good.values()), before, empty, refused)


def record(campaign: Campaign, good: Sequence[Told], *, now: float) -> Recorded:
    """Tell a campaign the answers; those whose lease has ended are kept, but do not count."""
    told = [campaign.tell(each.lease, each.answer, now, seconds=each.seconds) for each in good]
    counted = sum(answer.counted for answer in told)
    return Recorded(counted, len(told) - counted)


# One row.


def _told(word: Word, by: Known, *, handed: _Handed, annotator: str | None) -> Told:
    return Told(_lease(word, by, handed=handed, annotator=annotator), number_of(word, by), word.seconds)


def number_of(word: Word, by: Known) -> int:
    """Return the number of what a row says: a class, or one of the words that are none."""
    answer = by.answers.get(word.said)
    if answer is not None:
        return answer
    near = difflib.get_close_matches(word.said, by.answers, 1)
    hint = f"is {near[0]!r} meant?" if near else f"write one of them, or {' or '.join(WORDS.values())}"
    raise BadInput(
        f"{about(word)}: a class ({listed(list(by.answers)[len(WORDS) :])}) was needed, but {word.said!r} came; {hint}"
    )


def _check_same(word: Word, earlier: Answer | Checked | None, *, by: Known, answer: int) -> None:
    if earlier is not None and earlier.answer != answer:
        recorded = next(name for name, number in by.answers.items() if number == earlier.answer)
        raise BadInput(
            f"{about(word)}: the answer that was recorded was needed, {recorded!r}, but {word.said!r} came; what is "
            "recorded stays, so let a reviewer decide by relook settle"
        )


def _lease(word: Word, by: Known, *, handed: _Handed, annotator: str | None) -> Lease:
    """Return the lease that a row answers: that of its number, else the one its person has or had of its item."""
    item = None if word.id is None else item_in(word, by)
    who = annotator if annotator is not None else word.annotator
    found = handed.latest(item, who) if word.lease is None else handed.numbered(word.lease)
    if found is None:
        raise BadInput(
            f"{about(word)}: an item that was handed out to {who or 'somebody'} was needed, but this one was not; "
            + ("name them with --for" if who is None else "check who answered")
        )
    if item is not None and found.item != item:
        raise BadInput(
            f"{about(word)}: the item of lease {found.number} was needed, but the row is about another; were rows "
            "of the columns id and lease moved apart?"
        )
    if who is not None and found.annotator != who:
        raise BadInput(
            f"{about(word)}: an item handed out to {who} was needed, but {found.annotator} holds lease "
            f"{found.number}; name them with --for"
        )
    return found


def item_in(word: Word, by: Known) -> int:
    """Return the item that a row is about."""
    name = str(word.id)
    item = by.items.get(name, item_of(name))
    if item is None or item >= len(by.items):
        raise BadInput(f"{about(word)}: the id of an item of this campaign was needed, but it has none of this name")
    return item


class _Handed:
    """All that was ever handed out: leases by their numbers, and the last one of each item and person."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._last: dict[tuple[int, str | None], int] = {}

    def numbered(self, number: int) -> Lease | None:
        """Return what was handed out under a number."""
        book = self._ledger.book
        if not 0 < number < book.rows:
            return None
        return Lease(number, book.item[number], book.people[book.who[number]], 0, 0.0, 0.0)

    def latest(self, item: int | None, who: str | None) -> Lease | None:
        """Return the last that somebody was handed of an item."""
        book = self._ledger.book
        if not self._last:
            self._last = {(book.item[row], book.people[book.who[row]]): row for row in range(1, book.rows)}
        return None if item is None else self.numbered(self._last.get((item, who), 0))


def about(word: Word) -> str:
    """Return where a row stands, in words."""
    return word.place if word.id is None else f"{word.place} (id {word.id})"


# Files.


def _of_sheet(sheet: Sheet) -> Iterator[Word]:
    if ANSWER not in sheet.columns or not {ID, LEASE} & set(sheet.columns):
        raise BadInput(
            f"{sheet.source}: columns {ANSWER} and {LEASE} or {ID} were needed, but {listed(sheet.columns)} came; send "
            "back the table that relook next wrote"
        )
    columns = {name: sheet.read([name])[name] for name in (ID, ANSWER, ANNOTATOR, WHY) if name in sheet.columns}
    cells = {name: texts(column, sheet, what="labels").to_list() for name, column in columns.items()}
    counts = {name: _numbers(sheet, name) for name in (LEASE, SECONDS) if name in sheet.columns}
    for row in range(sheet.rows):
        said, who, why = (_plain(cells.get(name, {}), row) for name in (ANSWER, ANNOTATOR, WHY))
        yield Word(
            sheet.place(row),
            _plain(cells.get(ID, {}), row) or None,
            _whole(counts.get(LEASE), row, place=sheet.place(row)),
            who or None,
            said,
            None if SECONDS not in counts else counts[SECONDS][row],
            why or None,
        )


def _numbers(sheet: Sheet, name: str) -> pl.Series:
    return numbers(sheet.read([name])[name], sheet)


def _plain(cells: Any, row: int) -> str:
    """Return a cell's text without blanks around it; an empty one says nothing."""
    return (cells[row] or "").strip() if cells else ""


def _whole(cells: pl.Series | None, row: int, *, place: str) -> int | None:
    number = None if cells is None else cells[row]
    if number is not None and number != int(number):
        raise BadInput(f"{place}: the whole number of a lease was needed, but {number} came; send the table back as is")
    return None if number is None else int(number)


def _of_tasks(path: Path) -> Iterator[Word]:
    shown, _, _ = taskfiles.tasks_in(path, COLUMNS)
    for task in shown:
        name, lease = task.data.get("item"), task.data.get(LEASE)
        if lease is None and name is None:
            raise BadInput(
                f"{task.place}: a task of relook next was needed, but it has neither item nor lease among its data"
            )
        given = [answer for answer in task.annotations if not (answer.was_cancelled or answer.skipped)]
        for answer in given:
            yield Word(
                task.place,
                None if name is None else str(name),
                lease if isinstance(lease, int) else None,
                _who(answer.completed_by) if lease is None else None,
                _chosen(answer),
                answer.lead_time,
            )
        if not given:
            yield Word(task.place, None if name is None else str(name), None, None, "")


def _who(completed_by: Any) -> str | None:
    """Return a name where Label Studio tells one; its numbers of people are names to nobody here."""
    return completed_by.get("email") if isinstance(completed_by, dict) else None


def _chosen(answer: taskfiles.Annotation) -> str:
    chosen = [part.value.get("choices", []) for part in answer.result or () if isinstance(part.value, dict)]
    return next((str(choices[0]) for choices in chosen if choices), "")
