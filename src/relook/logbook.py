r"""How a campaign's log is kept: rows in a chain of hashes, what each event does to the sums, and what a store can do.

A row holds one event's JSON line exactly as it was written. Its hash is that of the row before it and of all that the
row holds, so no row can be changed, moved, put in or taken out without every later hash telling. The sums (answers
spent, answers reserved, the budget) and the answers that count are kept beside the log by every store, in the same
transaction; they can be computed from it, by `effect`, at any time.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from relook.errors import BadLog
from relook.events import Answer, Budget, Checked, Event, Expired, Lease, Removed, Skipped, Started, Undone, from_lines
from relook.types import Labels

GENESIS = "0" * 64
"""What the first row follows."""


class Entry(msgspec.Struct, frozen=True):
    """What one action wrote: its events' lines, and the key and the result that a repetition of it gets back."""

    lines: tuple[str, ...] = ()
    key: str | None = None
    result: str | None = None


class Row(msgspec.Struct, frozen=True):
    """One row of a log; `written` is the time of day, in UTC, at which it was handed to the store."""

    seq: int
    line: str
    key: str | None
    result: str | None
    written: str
    hash: str

    @property
    def event(self) -> Event:
        """The event that the line holds."""
        return from_lines(self.line.encode())[0]


class Head(msgspec.Struct, frozen=True):
    """Where a log ends: so many rows, and the hash of the last."""

    seq: int = 0
    hash: str = GENESIS


class Sums(msgspec.Struct, frozen=True):
    """Answers paid for, answers that somebody is about to give, and how many there may be in all."""

    spent: int = 0
    reserved: int = 0
    budget: int = 0

    def after(self, change: "Effect") -> "Sums":
        """Return the sums after an event."""
        budget = self.budget if change.budget is None else change.budget
        return Sums(self.spent + change.spent, self.reserved + change.reserved, budget)

    @property
    def sound(self) -> bool:
        """Whether these can be: nothing below zero, and no more than the budget."""
        return min(self.spent, self.reserved, self.budget) >= 0 and self.spent + self.reserved <= self.budget


class Counted(msgspec.Struct, frozen=True, order=True):
    """An answer that counts: one an item and person, unless nobody in particular (None) gave it."""

    lease: int
    item: int
    annotator: str | None
    answer: int


class Effect(msgspec.Struct, frozen=True):
    """What an event does to the sums and to the answers that count.

    `freed` is the lease whose answer counts no longer, `gone` the person all of whose answers do not.
    """

    spent: int = 0
    reserved: int = 0
    budget: int | None = None
    counted: Counted | None = None
    freed: int | None = None
    gone: str | None = None


NOTHING = Effect()


def effect(event: Event) -> Effect:
    """Return what an event does to the sums and to the answers that count: the one place that knows.

    >>> effect(Lease(1, 7, "Ada", 0, 0.0, 60.0))
    Effect(spent=0, reserved=1, budget=None, counted=None, freed=None, gone=None)
    """
    match event:
        case Lease():
            return Effect(reserved=1)
        case Expired() | Skipped():
            return Effect(reserved=-1)
        case Answer(counted=True):
            counted = Counted(event.lease, event.item, event.annotator, event.answer)
            return Effect(spent=1, reserved=-1, counted=counted)
        case Checked(counted=True):
            return Effect(spent=1, reserved=-1)
        case Undone():
            return Effect(spent=-1, freed=event.lease)
        case Removed(stand=False):
            return Effect(gone=event.name)
        case Started():
            return Effect(budget=event.budget)
        case Budget():
            return Effect(budget=event.total)
    return NOTHING


def entry(events: Iterable[Event], *, key: str | None = None, result: str | None = None) -> Entry:
    """Return what an action wrote, its events as the log will hold them."""
    encoder = msgspec.json.Encoder()
    return Entry(tuple(encoder.encode(event).decode() for event in events), key, result)


def chained(entries: Iterable[Entry], head: Head, *, written: str) -> list[Row]:
    """Return the rows that entries become after this head; the last row of an entry has its key and its result.

    >>> from relook.events import Closed
    >>> [row] = chained([entry([Closed(at=2.0)])], Head(), written="2026-11-19T12:00:00Z")
    >>> row.seq, row.line, row.hash[:8]
    (1, '{"type":"closed","at":2.0}', '64391e5f')
    """
    rows = list[Row]()
    seq, before = head.seq, head.hash
    for each in entries:
        for place, line in enumerate(each.lines, 1):
            key, result = (each.key, each.result) if place == len(each.lines) else (None, None)
            seq += 1
            before = link(Row(seq, line, key, result, written, ""), before)
            rows.append(Row(seq, line, key, result, written, before))
    return rows


def link(row: Row, before: str) -> str:
    """Return the hash that a row must have after the row of that hash."""
    beside = msgspec.json.encode([row.seq, row.written, row.key, row.result])
    return hashlib.sha256(b"\n".join([before.encode(), beside, row.line.encode("utf-8", "surrogatepass")])).hexdigest()


def checked(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows as long as the chain holds, and say where it does not."""
    before = GENESIS
    for seq, row in enumerate(rows, 1):
        if row.seq != seq or row.hash != link(row, before):
            raise BadLog(
                f"log: row {seq} does not follow from the rows before it, so one was changed, moved or taken out; "
                "see: relook log verify"
            )
        before = row.hash
        yield row


class Store(Protocol):
    """Where a log is kept for good. One thread uses it; `relook.testing.check_store` tries one of your own."""

    @property
    def head(self) -> Head:
        """Where the log ends."""
        ...

    def append(self, rows: Sequence[Row]) -> None:
        """Keep these rows and what they do to the sums, all of them or none, for good before this returns.

        Raises `NotStored` where a row cannot be, or where the disk or the server fails.
        """
        ...

    def rows(self, after: int = 0) -> Iterator[Row]:
        """Yield the rows after so many, in their order."""
        ...

    def results(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the results of those keys that have one."""
        ...

    def sums(self) -> Sums:
        """Return the sums as they are kept beside the log."""
        ...

    def counted(self) -> list[Counted]:
        """Return the answers that count, as they are kept beside the log, by lease."""
        ...

    def given(self) -> Labels:
        """Return the labels that the campaign began with."""
        ...

    def reopen(self) -> None:
        """Begin anew after a failure; what is found then is on the disk for good."""
        ...

    def close(self) -> None:
        """Let go of it, so that another may write."""
        ...
