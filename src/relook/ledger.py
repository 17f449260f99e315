"""The facts of a campaign: a fold over its events.

Nothing here decides anything: every event says what happened, verdicts included, and `apply` writes it down or
refuses an event that the ones before it rule out.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relook.errors import BadInput, BadLog
from relook.events import (
    DISPUTED,
    NONE_OF_THESE,
    SCHEMA,
    UNSETTLED,
    Answer,
    Closed,
    Event,
    Expired,
    Lease,
    Ranking,
    Skipped,
    Started,
    Undone,
)
from relook.rules import Policy
from relook.types import IntArray, Labels, Posteriors


class Item:
    """What is known of an item that somebody was asked about."""

    __slots__ = ("answers", "given", "heard", "lease", "people", "tally", "verdict", "votes")

    def __init__(self, given: list[float]) -> None:
        self.given = given
        self.votes = given.copy()
        # A place a class, and two at the end, which the answers that are no class count from: -1 and -2.
        self.tally = [0] * (len(given) - NONE_OF_THESE)
        self.heard = 0
        self.answers: list[int] = []
        self.people: list[str | None] = []
        self.verdict = UNSETTLED
        self.lease: int | None = None

    def has_answer_of(self, annotator: str | None) -> bool:
        """Say whether this person's answer counts here; nobody in particular (None) is somebody else each time."""
        return annotator is not None and annotator in self.people

    def count(self, answer: int, by: int) -> None:
        """Count an answer in (1) or out (-1); votes come from whole counts, so that no rounding error stays behind."""
        self.tally[answer] += by
        self.heard += by
        if answer >= 0:
            self.votes[answer] = self.given[answer] + self.tally[answer]

    @property
    def counts(self) -> list[int]:
        """How many answers each class got."""
        return self.tally[:NONE_OF_THESE]


class Ledger:
    """Budget, leases, votes and verdicts, as the events so far have made them."""

    def __init__(self, given: Labels, started: Started) -> None:
        if given.answers is not None:
            raise BadInput(
                "labels: a campaign starts from given labels alone, but answers came too; pass all as counts"
            )
        self.given = given
        self.started = started
        self.budget = started.budget
        self.spent = 0
        self.reserved = 0
        self.counted = 0
        self.ranking = 0
        self.closed = False
        self.now = started.at
        self.items: dict[int, Item] = {}
        self.leases: dict[int, Lease] = {}
        self.ended: dict[int, Lease] = {}
        self.answered: dict[int, Answer] = {}
        self.standing: dict[str | None, list[Answer]] = {}
        self.skipped: dict[str | None, dict[int, None]] = {}
        self.deadlines: deque[tuple[float, int]] = deque()
        self.last_lease = 0
        self._weight = float(started.policy.get("given_weight", 1.0))
        self._returns = bool(started.policy.get("returns", False))
        self._check: dict[type, Callable[[Any], bool]] = {
            Lease: self._may_lease,
            Answer: self._may_answer,
            Undone: self._may_undo,
        }
        self._apply: dict[type, Callable[[Any], None]] = {
            Ranking: self.ranked,
            Lease: self.lease,
            Expired: self.release,
            Skipped: self.skip,
            Answer: self.answer,
            Undone: self.undo,
            Closed: self.close,
        }

    def apply(self, event: Event) -> None:
        """Write an event down, or refuse one that cannot have followed."""
        kind = type(event)
        if kind is Started or not event.at >= self.now:
            raise BadLog(
                f"log: events must follow in time on one start, but {kind.__name__} at {event.at} follows {self.now}"
            )
        if self.closed and not (isinstance(event, Answer) and not event.counted):
            raise BadLog(f"log: only late answers may follow the close, but {kind.__name__} came; is a line too many?")
        if kind is not Expired and self._overdue(event.at):
            raise BadLog(f"log: leases must end when their time is over, but {kind.__name__} came; is a line missing?")
        if kind in self._check and not self._check[kind](event):
            raise BadLog(f"log: {event} contradicts what came before it; was a line edited, moved or taken out?")
        self._apply[kind](event)

    def item(self, number: int) -> Item:
        """Return what is known of an item, which is from now on one that somebody was asked about."""
        state = self.items.get(number)
        if state is None:
            state = self.items[number] = Item(self._given_votes(number))
        return state

    def labels(self) -> Labels:
        """Return the labels as they stand: given ones and every answer that counts."""
        if not self.spent:
            return self.given
        counts = np.zeros((len(self.given), self.given.classes), np.int32)
        for number, state in self.items.items():
            if state.heard:
                counts[number] = state.counts
        return Labels(self.given.given, self.given.classes, counts, self.given.came_with)

    def final(self) -> IntArray:
        """Return the label of every item: what it was settled as, else the given one (-1: none)."""
        labels = self.given.label().astype(np.int64)
        for number, state in self.items.items():
            if state.verdict >= 0:
                labels[number] = state.verdict
        return labels

    def holds(self, lease: Lease) -> bool:
        """Say whether a lease is open still, or refuse one that this campaign never gave."""
        number = lease.number
        known = self.leases.get(number) or self.ended.get(number) or self.answered.get(number)
        if known is None or (known.item, known.annotator) != (lease.item, lease.annotator):
            raise BadInput(
                f"lease {number}: a lease of this campaign was needed, but it never gave this one; ask again"
            )
        return number in self.leases

    def is_askable(self, state: Item) -> bool:
        """Say whether more answers about an item are wanted, and somebody may be there to give one."""
        if state.verdict == UNSETTLED:
            return True
        panel = self.started.panel
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
        number = event.number
        if number <= self.last_lease or self.spent + self.reserved >= self.budget or self.closed:
            raise BadLog(f"log: lease {number} cannot follow lease {self.last_lease} with {self.left} answers left")
        state = self.item(event.item)
        if state.lease is not None or state.has_answer_of(event.annotator):
            raise BadLog(f"log: lease {number} needs item {event.item} to be free for {event.annotator}, but it is not")
        state.lease = number
        self.last_lease = number
        self.leases[number] = event
        self.deadlines.append((event.until, number))
        self.reserved += 1
        self.now = event.at
        if self.skipped:
            self.skipped.get(event.annotator, {}).pop(event.item, None)

    def release(self, event: Expired | Skipped) -> None:
        """A lease ended without an answer; its place in the budget is free."""
        lease = self.leases.pop(event.lease, None)
        if lease is None:
            raise BadLog(f"log: lease {event.lease} must be open to end, but it is not; is a line missing?")
        self.items[lease.item].lease = None
        self.ended[event.lease] = lease
        self.reserved -= 1
        self.now = event.at

    def skip(self, event: Skipped) -> None:
        """As above, and the person who gave the item back sees it again last."""
        lease = self.leases.get(event.lease)
        self.release(event)
        if lease is not None and lease.annotator is not None:
            self.skipped.setdefault(lease.annotator, {})[lease.item] = None

    def answer(self, event: Answer) -> None:
        """An answer came: it costs one and counts, or came too late for either."""
        self.now = event.at
        if not event.counted:
            self.answered[event.lease] = event
            return
        del self.leases[event.lease]
        self.answered[event.lease] = event
        self.reserved -= 1
        self.spent += 1
        self.counted += 1
        state = self.items[event.item]
        state.lease = None
        state.answers.append(event.answer)
        state.people.append(event.annotator)
        state.count(event.answer, 1)
        state.verdict = event.verdict
        standing = self.standing.get(event.annotator)
        if standing is None:
            standing = self.standing[event.annotator] = []
        standing.append(event)

    def undo(self, event: Undone) -> None:
        """A person's latest answer was taken back: it neither costs nor counts any longer."""
        answer = self.answered[event.lease]
        self.standing[answer.annotator].pop()
        state = self.items[answer.item]
        place = _last(state, answer)
        del state.answers[place], state.people[place]
        state.count(answer.answer, -1)
        state.verdict = event.verdict
        self.spent -= 1
        self.now = event.at

    def close(self, event: Closed) -> None:
        """Nothing more happens but late answers."""
        if self.leases:
            raise BadLog(f"log: leases must end before a campaign closes, but {len(self.leases)} are open")
        self.closed = True
        self.now = event.at

    @property
    def left(self) -> int:
        """Answers that can still be asked for."""
        return self.budget - self.spent - self.reserved

    def _overdue(self, at: float) -> bool:
        deadlines = self.deadlines
        while deadlines and deadlines[0][1] not in self.leases:
            deadlines.popleft()
        return bool(deadlines) and deadlines[0][0] <= at

    def _may_lease(self, event: Lease) -> bool:
        if not (self.ranking and 0 <= event.item < len(self.given) and event.number == self.last_lease + 1):
            return False
        state = self.items.get(event.item)
        if state is not None and not self.is_askable(state):
            return False
        nth = 0 if state is None else state.heard
        return event.nth == nth and event.until == event.at + self.started.lease_seconds

    def _may_answer(self, event: Answer) -> bool:
        known = self.leases.get(event.lease) if event.counted else self.ended.get(event.lease)
        if (
            known is None
            or (event.lease in self.answered)
            or (known.item, known.annotator) != (event.item, event.annotator)
        ):
            return False
        if not event.counted and event.verdict != self.items[event.item].verdict:
            return False
        classes = self.given.classes
        return event.ranking == self.ranking and NONE_OF_THESE <= event.answer < classes and self._is_verdict(event)

    def _may_undo(self, event: Undone) -> bool:
        answer = self.answered.get(event.lease)
        standing = self.standing.get(answer.annotator) if answer is not None else None
        if not standing or standing[-1] is not answer:
            return False
        return (event.item, event.answer) == (answer.item, answer.answer) and self._is_verdict(event)

    def _is_verdict(self, event: Answer | Undone) -> bool:
        return DISPUTED <= event.verdict < self.given.classes

    def _given_votes(self, number: int) -> list[float]:
        given, weight = self.given.given, self._weight
        if given.ndim == 2:
            return [weight * count for count in given[number].tolist()]
        votes: list[float] = [0] * self.given.classes
        label = int(given[number])
        if label >= 0:
            votes[label] = weight if weight != 1 else 1
        return votes


def _last(state: Item, answer: Answer) -> int:
    given = list(zip(state.people, state.answers, strict=True))
    return len(given) - 1 - given[::-1].index((answer.annotator, answer.answer))


def start_of(events: Sequence[Event], given: Labels, *, policy: Policy | None = None) -> Started:
    """Return the start of a log, or say why these labels, or this policy where one came, are not its own."""
    started = events[0] if events else None
    if not isinstance(started, Started):
        raise BadLog(f"log: a campaign's start was needed first, but {type(started).__name__} came; was the log cut?")
    if started.schema > SCHEMA:
        raise BadLog(
            f"log: schema {SCHEMA} or older was needed, but relook {started.software} wrote {started.schema}; "
            "install a newer relook"
        )
    if (started.given, started.items, started.classes) != (given.fingerprint(), len(given), given.classes):
        raise BadLog("log: the given labels it began with were needed, but others came; pass those labels")
    if policy is not None and started.policy != policy.record():
        raise BadLog(f"log: policy {started.policy} was needed, but {policy.record()} came; pass the one it began with")
    return started


def posteriors_of(event: Event, rankings: Mapping[int, Posteriors | None]) -> Posteriors | None:
    """Return the posteriors that a ranking used, or say that they are missing or others."""
    if not isinstance(event, Ranking):
        raise BadLog(f"log: a ranking was needed, but {type(event).__name__} came")
    posteriors = rankings.get(event.number)
    found = None if posteriors is None else posteriors.fingerprint()
    if found != event.posteriors:
        raise BadLog(
            f"ranking {event.number}: posteriors {event.posteriors} were needed, but {found} came; pass its file"
        )
    return posteriors
