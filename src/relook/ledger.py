"""The facts of a campaign: a fold over its events.

Nothing here decides anything: every event says what happened, verdicts included, and `apply` writes it down or
refuses an event that the ones before it rule out. What people decide about a campaign is folded in `decided`.
"""

from array import array
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
import numpy as np

from relook.book import CHECKS, ENDED, TOLD, Book
from relook.decided import APPLY, CHECK
from relook.errors import BadInput, BadLog
from relook.events import (
    DISPUTED,
    NONE_OF_THESE,
    UNSETTLED,
    Adjudicated,
    Answer,
    Checked,
    Confirmed,
    Event,
    Expired,
    Gold,
    Guideline,
    Lease,
    Mixed,
    Ranking,
    Renewed,
    Reopened,
    Role,
    Skipped,
    Started,
    Undone,
)
from relook.types import IntArray, Labels


class Item(msgspec.Struct, gc=False, eq=False):
    """What is known of an item that somebody was asked about, or decided on.

    `last` is the row of its newest answer that stands, `heard` how many do. An item that is `out` is asked about no
    more: a reviewer spoke, its label is known, or it was withdrawn.
    """

    last: int = 0
    heard: int = 0
    verdict: int = UNSETTLED
    lease: int | None = None
    out: bool = False


class Ledger:
    """Budget, leases, votes and verdicts, as the events so far have made them."""

    def __init__(self, given: Labels, started: Started) -> None:
        if given.answers is not None:
            raise BadInput(
                "labels: a campaign starts from given labels alone, but answers came too; pass all as counts"
            )
        self.started = started
        self.budget, self.hours = started.budget, started.hours
        self.spent = self.reserved = self.counted = 0
        self.ranking, self.closed = 0, False
        self.now = started.at
        self.panel = started.panel
        self.items: dict[int, Item] = {}
        self.leases: dict[int, Lease] = {}
        self.book = Book()
        self.skipped: dict[str | None, dict[int, None]] = {}
        self.deadlines: deque[tuple[float, int]] = deque()
        self._stand_by()
        self.hold(started.policy)
        self.extend(given)
        own_checks: dict[type, Callable[[Any], bool]] = {
            Lease: self._may_lease,
            Renewed: self._may_renew,
            Answer: self._may_answer,
            Checked: self._may_check,
            Undone: self._may_undo,
        }
        own: dict[type, Callable[[Any], None]] = {
            Ranking: self.ranked,
            Lease: self.lease,
            Renewed: self.renew,
            Expired: self.release,
            Skipped: self.skip,
            Answer: self.answer,
            Checked: self.check,
            Undone: self.undo,
        }
        self._check = own_checks | {kind: partial(check, self) for kind, check in CHECK.items()}
        self._apply = own | {kind: partial(write, self) for kind, write in APPLY.items()}

    def _stand_by(self) -> None:
        """Begin with nothing decided."""
        self.words: dict[int, Adjudicated | Confirmed | Gold] = {}
        self.gold: list[int] = []
        self.withdrawn: set[int] = set()
        self.mixed: Mixed | None = None
        self.checked: dict[str | None, set[int]] = {}
        self.drawn: dict[int, int] = {}
        self.draws = 0
        self.awaited: dict[int, int] = {}
        self.guideline: Guideline | None = None
        self.people: dict[str, Role] = {}
        self.paused: set[str | None] = set()
        self.removed: set[str] = set()
        self.freed: list[int] = []
        self.plain = True

    def hold(self, policy: Mapping[str, Any]) -> None:
        """Follow a policy, as a log keeps it, from here on."""
        self.policy = policy
        weight = float(policy.get("given_weight", 1.0))
        self._weight: float = weight if weight != 1 else 1
        self._returns = bool(policy.get("returns", False))

    def extend(self, given: Labels) -> None:
        """Have these given labels, all of them, from here on."""
        self.given = given
        self._classes = given.classes
        self.no_tally = [0] * (given.classes - NONE_OF_THESE)
        self._labels = array("i", given.given.astype(np.int32).tobytes()) if given.given.ndim == 1 else None

    def apply(self, event: Event) -> None:
        """Write an event down, or refuse one that cannot have followed."""
        kind = type(event)
        if kind is Started or not event.at >= self.now:
            raise BadLog(
                f"log: events must follow in time on one start, but {kind.__name__} at {event.at} follows {self.now}"
            )
        if self.closed and kind is not Reopened and not (isinstance(event, Answer | Checked) and not event.counted):
            raise BadLog(f"log: only late answers may follow the close, but {kind.__name__} came; is a line too many?")
        if kind is not Expired and kind is not Renewed and self._overdue(event.at):
            raise BadLog(f"log: leases must end when their time is over, but {kind.__name__} came; is a line missing?")
        if kind in self._check and not self._check[kind](event):
            raise BadLog(f"log: {event} contradicts what came before it; was a line edited, moved or taken out?")
        self._apply[kind](event)
        self.now = event.at
        if kind in APPLY:
            self.plain = not (self.drawn or self.mixed or self.paused or self.removed)

    def item(self, number: int) -> Item:
        """Return what is known of an item, which is from now on one that somebody was asked about."""
        state = self.items.get(number)
        if state is None:
            state = self.items[number] = Item()
        return state

    def tally(self, state: Item) -> list[int]:
        """Return how many gave each answer: a place a class, and two at the end, counted from there as -1 and -2."""
        tally = self.no_tally.copy()
        row, answer, on_item = state.last, self.book.answer, self.book.on_item
        while row:
            tally[answer[row]] += 1
            row = on_item[row]
        return tally

    def votes(self, item: int, counts: list[int]) -> list[float]:
        """Turn how many named each class into votes: the given label is added, at its weight."""
        if self._labels is None:
            weight = self._weight
            return [
                weight * given + count for given, count in zip(self.given.given[item].tolist(), counts, strict=True)
            ]
        label = self._labels[item]
        if label >= 0:
            counts[label] += self._weight  # type: ignore[call-overload]
        return counts  # type: ignore[return-value]

    def has_answer_of(self, state: Item, annotator: str | None) -> bool:
        """Say whether this person's answer counts here; nobody in particular (None) is somebody else each time."""
        row, book = state.last, self.book
        who = book.numbers.get(annotator, 0)
        if who:
            while row:
                if book.who[row] == who:
                    return True
                row = book.on_item[row]
        return False

    def labels(self) -> Labels:
        """Return the labels as they stand: given ones and every answer that counts."""
        if not self.spent:
            return self.given
        counts = np.zeros((len(self.given), self._classes), np.int32)
        items, answers = self.book.votes()
        np.add.at(counts, (items, answers), 1)
        return Labels(self.given.given, self._classes, counts, self.given.came_with)

    def final(self) -> IntArray:
        """Return the label of every item: what it was settled as, else the given one (-1: none)."""
        labels = self.given.label().astype(np.int64)
        for number, state in self.items.items():
            if state.verdict >= 0:
                labels[number] = state.verdict
        return labels

    def holds(self, lease: Lease) -> bool:
        """Say whether a lease is open still, or refuse one that this campaign never gave."""
        number, book = lease.number, self.book
        known = 0 < number < book.rows
        if not known or (book.item[number], book.people[book.who[number]]) != (lease.item, lease.annotator):
            raise BadInput(
                f"lease {number}: a lease of this campaign was needed, but it never gave this one; ask again"
            )
        return number in self.leases

    def is_askable(self, state: Item) -> bool:
        """Say whether more answers about an item are wanted, and somebody may be there to give one."""
        if state.out:
            return False
        if state.verdict == UNSETTLED:
            return True
        panel = self.panel
        return self._returns and state.verdict >= 0 and (panel is None or state.heard < panel)

    def ranked(self, event: Ranking) -> None:
        """Another ranking is in force."""
        if event.number != self.ranking + 1:
            raise BadLog(
                f"log: ranking {self.ranking + 1} was needed next, but {event.number} came; is a line missing?"
            )
        self.ranking = event.number
        self.now = event.at

    def lease(self, event: Lease) -> None:
        """Somebody holds an item; a place in the budget is reserved."""
        number, book = event.number, self.book
        if number != book.rows or self.spent + self.reserved >= self.budget or self.closed:
            raise BadLog(f"log: lease {number} cannot follow lease {self.last_lease} with {self.left} answers left")
        state = self.items.get(event.item) or self.item(event.item)
        heard = state.last > 0 and self.has_answer_of(state, event.annotator)
        if state.lease is not None or heard != (event.purpose == "repeat"):
            raise BadLog(f"log: lease {number} needs item {event.item} to be free for {event.annotator}, but it is not")
        state.lease = number
        book.open(event.item, event.annotator, purpose=event.purpose)
        self.leases[number] = event
        self.deadlines.append((event.until, number))
        self.reserved += 1
        self.now = event.at
        if self.skipped:
            self.skipped.get(event.annotator, {}).pop(event.item, None)
        if event.purpose in CHECKS:
            self.checked.setdefault(event.annotator, set()).add(event.item)

    def renew(self, event: Renewed) -> None:
        """Every open lease lasts until then."""
        for number, lease in self.leases.items():
            self.leases[number] = msgspec.structs.replace(lease, until=event.until)
        self.deadlines = deque((event.until, number) for number in self.leases)
        self.now = event.at

    def release(self, event: Expired | Skipped) -> None:
        """A lease ended without an answer; its place in the budget is free."""
        lease = self.leases.pop(event.lease, None)
        if lease is None:
            raise BadLog(f"log: lease {event.lease} must be open to end, but it is not; is a line missing?")
        self.items[lease.item].lease = None
        self.book.state[event.lease] = ENDED
        self.reserved -= 1
        self.now = event.at

    def skip(self, event: Skipped) -> None:
        """As above, and the person who gave the item back sees it again last; a check never comes back."""
        lease = self.leases.get(event.lease)
        self.release(event)
        if lease is not None and lease.annotator is not None and lease.purpose not in CHECKS:
            self.skipped.setdefault(lease.annotator, {})[lease.item] = None

    def answer(self, event: Answer) -> None:
        """An answer came: it costs one and counts, or came too late for either."""
        self.now = event.at
        row, book = event.lease, self.book
        book.write(event)
        book.ranking[row] = event.ranking
        if not event.counted:
            return
        del self.leases[row]
        self.reserved -= 1
        self.spent += 1
        self.counted += 1
        state = self.items[event.item]
        state.lease = None
        book.on_item[row] = state.last
        state.last = row
        state.heard += 1
        state.verdict = event.verdict
        if self.awaited and book.is_draw(row):
            self.awaited.pop(event.item, None)

    def check(self, event: Checked) -> None:
        """A repeat or a gold item was answered: it costs one and is no vote."""
        self.now = event.at
        self.book.write(event)
        if event.counted:
            del self.leases[event.lease]
            self.reserved -= 1
            self.spent += 1
            self.items[event.item].lease = None

    def undo(self, event: Undone) -> None:
        """A person's latest answer was taken back: it neither costs nor counts any longer."""
        row, book, state = event.lease, self.book, self.items[event.item]
        book.take_back(row)
        if book.is_check(row):
            self.checked[book.people[book.who[row]]].discard(event.item)
        else:
            self.uncount(row)
            state.verdict = event.verdict
        self.spent -= 1
        self.now = event.at

    def uncount(self, row: int) -> None:
        """Let an answer be a vote no longer; a random check waits for another one."""
        item = self.book.item[row]
        state = self.items[item]
        state.last = self.book.unlink(state.last, row)
        state.heard -= 1
        if self.book.is_draw(row) and item not in self.withdrawn and not isinstance(self.words.get(item), Gold):
            self.awaited[item] = self.drawn[item]

    @property
    def left(self) -> int:
        """Answers that can still be asked for."""
        return self.budget - self.spent - self.reserved

    @property
    def last_lease(self) -> int:
        """The number of the latest lease, 0 before the first."""
        return self.book.rows - 1

    def _overdue(self, at: float) -> bool:
        deadlines = self.deadlines
        while deadlines and deadlines[0][1] not in self.leases:
            deadlines.popleft()
        return bool(deadlines) and deadlines[0][0] <= at

    def _may_lease(self, event: Lease) -> bool:
        if not (self.ranking and 0 <= event.item < len(self.given) and event.number == self.last_lease + 1):
            return False
        state = self.items.get(event.item)
        if not self._may_be_asked(event, state) or not self.paused.isdisjoint((None, event.annotator)):
            return False
        nth = 0 if state is None else state.heard
        timely = event.until == event.at + self.started.lease_seconds
        return event.nth == nth and timely and event.annotator not in self.removed

    def _may_be_asked(self, event: Lease, state: Item | None) -> bool:
        if event.purpose == "draw" or event.item in self.awaited:
            return event.purpose == "draw" and event.item in self.awaited
        if event.purpose == "label":
            return state is None or self.is_askable(state)
        asked = event.item in self.checked.get(event.annotator, ())
        known = isinstance(self.words.get(event.item), Gold)
        return (
            self.mixed is not None and event.annotator is not None and not asked and known == (event.purpose == "gold")
        )

    def _may_renew(self, event: Renewed) -> bool:
        return event.until == event.at + self.started.lease_seconds

    def _may_answer(self, event: Answer) -> bool:
        if not self._is_told(event) or self.book.is_check(event.lease):
            return False
        return event.ranking == self.ranking and self._is_verdict(event)

    def _may_check(self, event: Checked) -> bool:
        unmoved = self._is_told(event) and event.verdict == self.items[event.item].verdict
        return unmoved and self.book.is_check(event.lease)

    def _is_told(self, event: Answer | Checked) -> bool:
        """Say whether an open lease may have been answered so, or one that ended unanswered too late."""
        row, book = event.lease, self.book
        if not 0 < row < book.rows or (event.counted != (row in self.leases)):
            return False
        if (book.item[row], book.people[book.who[row]]) != (event.item, event.annotator):
            return False
        if not event.counted and (book.state[row] != ENDED or event.verdict != self.items[event.item].verdict):
            return False
        return NONE_OF_THESE <= event.answer < self._classes

    def _may_undo(self, event: Undone) -> bool:
        row, book = event.lease, self.book
        if not 0 < row < book.rows or book.state[row] != TOLD or book.latest[book.who[row]] != row:
            return False
        if (event.item, event.answer) != (book.item[row], book.answer[row]):
            return False
        return self._is_verdict(event) and (not book.is_check(row) or event.verdict == self.items[event.item].verdict)

    def _is_verdict(self, event: Answer | Undone) -> bool:
        if event.item in self.words:
            return event.verdict == self.items[event.item].verdict
        return DISPUTED <= event.verdict < self._classes
