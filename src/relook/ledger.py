"""The facts of a campaign: a fold over its events.

Nothing here decides anything: every event says what happened, verdicts included, and `apply` writes it down or
refuses an event that the ones before it rule out.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relook.errors import BadLog
from relook.events import SCHEMA, UNSETTLED, Answer, Closed, Event, Expired, Lease, Ranking, Skipped, Started, Undone
from relook.rules import Policy
from relook.types import IntArray, Labels, Posteriors


class Item:
    """What is known of an item that somebody was asked about."""

    __slots__ = ("answers", "lease", "people", "verdict", "votes")

    def __init__(self, votes: list[float]) -> None:
        self.votes = votes
        self.answers: list[int] = []
        self.people: list[str | None] = []
        self.verdict = UNSETTLED
        self.lease: int | None = None

    def has_answer_of(self, annotator: str | None) -> bool:
        """Say whether this person's answer counts here; nobody in particular (None) is somebody else each time."""
        return annotator is not None and annotator in self.people

    def counts(self, classes: int) -> list[int]:
        """Return how many answers each class got."""
        counts = [0] * classes
        for answer in self.answers:
            if answer >= 0:
                counts[answer] += 1
        return counts


class Ledger:
    """Budget, leases, votes and verdicts, as the events so far have made them."""

    def __init__(self, given: Labels, started: Started) -> None:
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
        self.ended: dict[int, int] = {}
        self.answered: dict[int, Answer] = {}
        self.standing: dict[str | None, list[Answer]] = {}
        self.skipped: dict[str | None, dict[int, None]] = {}
        self.deadlines: deque[tuple[float, int]] = deque()
        self.last_lease = 0
        self._weight = float(started.policy.get("given_weight", 1.0))
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
        if type(event) is Started or event.at < self.now:
            kind = type(event).__name__
            raise BadLog(f"log: events must follow in time on one start, but {kind} at {event.at} follows {self.now}")
        self._apply[type(event)](event)

    def item(self, number: int) -> Item:
        """Return what is known of an item, which is from now on one that somebody was asked about."""
        state = self.items.get(number)
        if state is None:
            state = self.items[number] = Item(self._given_votes(number))
        return state

    def labels(self) -> Labels:
        """Return the labels as they stand: given ones and every answer that counts."""
        if not self.counted:
            return self.given
        counts = np.zeros((len(self.given), self.given.classes), np.int32)
        for number, state in self.items.items():
            if state.answers:
                counts[number] = state.counts(self.given.classes)
        return Labels(self.given.given, self.given.classes, counts)

    def final(self) -> IntArray:
        """Return the label of every item: what it was settled as, else the given one (-1: none)."""
        labels = self.given.majority() if self.given.given.ndim == 2 else self.given.given.copy()
        for number, state in self.items.items():
            if state.verdict >= 0:
                labels[number] = state.verdict
        return labels

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
        self.ended[event.lease] = lease.item
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
        lease = self.leases.pop(event.lease, None)
        if lease is None or lease.item != event.item or event.ranking != self.ranking:
            raise BadLog(
                f"log: an answer to lease {event.lease} on item {event.item} was not due under ranking {event.ranking}"
            )
        self.answered[event.lease] = event
        self.reserved -= 1
        self.spent += 1
        self.counted += 1
        state = self.items[event.item]
        state.lease = None
        state.answers.append(event.answer)
        state.people.append(event.annotator)
        if event.answer >= 0:
            state.votes[event.answer] += 1
        state.verdict = event.verdict
        standing = self.standing.get(event.annotator)
        if standing is None:
            standing = self.standing[event.annotator] = []
        standing.append(event)

    def undo(self, event: Undone) -> None:
        """A person's latest answer was taken back: it neither costs nor counts any longer."""
        answer = self.answered.get(event.lease)
        standing = self.standing.get(answer.annotator, []) if answer else []
        if not standing or standing[-1] is not answer or self.closed:
            raise BadLog(f"log: only somebody's last standing answer can be undone, but lease {event.lease} is not one")
        standing.pop()
        state = self.items[answer.item]
        place = _last(state, answer)
        del state.answers[place], state.people[place]
        if answer.answer >= 0:
            state.votes[answer.answer] -= 1
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
    for place in range(len(state.answers) - 1, -1, -1):
        if state.people[place] == answer.annotator and state.answers[place] == answer.answer:
            return place
    raise BadLog(f"log: item {answer.item} holds no answer {answer.answer} of {answer.annotator} to undo")


def start_of(events: Sequence[Event], given: Labels, *, policy: Policy) -> Started:
    """Return the start of a log, or say why these labels and this policy are not those it began with."""
    started = events[0] if events else None
    if not isinstance(started, Started):
        raise BadLog(f"log: a campaign's start was needed first, but {type(started).__name__} came; was the log cut?")
    if started.schema > SCHEMA:
        raise BadLog(
            f"log: schema {SCHEMA} or older was needed, but relook {started.software} wrote {started.schema}; "
            "install a newer relook"
        )
    if started.given != given.fingerprint() or started.classes != given.classes:
        raise BadLog("log: the given labels it began with were needed, but others came; pass those labels")
    if started.policy != policy.record():
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
