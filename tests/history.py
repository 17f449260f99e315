"""One checker of a campaign's history for all tests: what holds of every log, whoever wrote it and whatever broke.

It shares no code with the ledger: one pass over the events, with dictionaries. Each law that is broken is named.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from relook.events import (
    Added,
    Adjudicated,
    Answer,
    Budget,
    Changed,
    Checked,
    Closed,
    Event,
    Expired,
    Gold,
    Lease,
    Ranking,
    Removed,
    Renewed,
    Reopened,
    Retracted,
    Skipped,
    Started,
    Undone,
    Withdrawn,
)

UNSETTLED = -1


class Broken(AssertionError):
    """A history that cannot be: which law, at which event."""


class History:
    """What a log comes to: `spent`, `reserved`, `budget`, `verdicts`, and the votes that stand."""

    def __init__(self, started: Started) -> None:
        self.started = started
        self.budget = started.budget
        self.returns = bool(started.policy.get("returns", False))
        self.items = started.items
        self.now = started.at
        self.spent = 0
        self.ranking = 0
        self.closed = False
        self.leases: dict[int, Lease] = {}
        self.until: dict[int, float] = {}
        self.held: dict[int, int] = {}
        self.ended: set[int] = set()
        self.told: dict[int, Answer | Checked] = {}
        self.votes: dict[tuple[int, str], int] = {}
        self.standing: dict[int, Answer | Checked] = {}
        self.verdicts: dict[int, int] = {}
        self.fixed: dict[int, int] = {}

    @property
    def reserved(self) -> int:
        """Answers that somebody is about to give."""
        return len(self.held)

    def facts(self) -> dict[str, Any]:
        """What a store keeps beside its log, to be compared with it."""
        return {
            "spent": self.spent,
            "reserved": self.reserved,
            "budget": self.budget,
            "ranking": self.ranking,
            "closed": self.closed,
        }


def check_history(
    events: Sequence[Event],
    *,
    acknowledged: Iterable[Event] = (),
    unknown: Iterable[int] | None = None,
    stored: Mapping[str, Any] | None = None,
) -> History:
    """Return what a log comes to, or raise `Broken` with the law it breaks.

    `acknowledged`: events that a client was told of: each is in the log, once, unchanged. `unknown`: leases whose
    answer was sent and never acknowledged; where it comes, the log may hold no other answer than these and the
    acknowledged ones.
    `stored`: facts that were kept beside the log, by the names of `History.facts`, which must be what the log comes to.
    """
    started = events[0] if events else None
    law(isinstance(started, Started), "a log begins with a start", started)
    assert isinstance(started, Started)
    history = History(started)
    for event in events[1:]:
        law(not isinstance(event, Started), "a log has one start", event)
        law(event.at >= history.now, "time does not go back", event)
        history.now = event.at
        _step(history, event)
        law(0 <= history.spent + history.reserved <= history.budget, "spent and reserved are within the budget", event)
    _acknowledged(history, events, list(acknowledged), unknown)
    if stored is not None:
        rebuilt = {name: value for name, value in history.facts().items() if name in stored}
        law(rebuilt == dict(stored), f"what is stored is what the log comes to, {rebuilt}", stored)
    return history


def law(holds: object, what: str, event: object) -> None:
    """Raise where a law does not hold."""
    if not holds:
        raise Broken(f"{what}: {event}")


def _acknowledged(history: History, events: Sequence[Event], told: list[Event], unknown: Iterable[int] | None) -> None:
    logged = Counter(map(repr, events))
    for event in told:
        law(logged[repr(event)] == 1, "what was acknowledged is in the log once, unchanged", event)
    if unknown is None:
        return
    allowed = {event.lease for event in told if isinstance(event, Answer | Checked)} | set(unknown)
    for lease, answer in history.told.items():
        law(lease in allowed, "every answer in the log was sent by somebody", answer)


def _step(history: History, event: Event) -> None:
    late = isinstance(event, Answer | Checked) and not event.counted
    law(not history.closed or late or isinstance(event, Reopened), "a closed campaign takes late answers alone", event)
    if isinstance(event, Lease):
        _lease(history, event)
    elif isinstance(event, Answer | Checked):
        _answer(history, event)
    elif isinstance(event, Expired | Skipped):
        law(event.lease in history.until, "a lease that ends was open", event)
        _end(history, event.lease)
        history.ended.add(event.lease)
    elif isinstance(event, Undone):
        _undo(history, event)
    elif isinstance(event, Ranking):
        law(event.number == history.ranking + 1, "rankings are numbered one after the other", event)
        history.ranking = event.number
    else:
        _decide(history, event)


def _lease(history: History, event: Lease) -> None:
    law(event.number == len(history.leases) + 1, "leases are numbered one after the other", event)
    law(0 <= event.item < history.items, "a lease is of an item of the campaign", event)
    law(event.item not in history.held, "one lease an item at a time", event)
    law(all(until > event.at for until in history.until.values()), "leases end when their time is over", event)
    twice = event.annotator is not None and (event.item, event.annotator) in history.votes
    law(twice == (event.purpose == "repeat"), "nobody answers an item twice, but to repeat it", event)
    settled = history.verdicts.get(event.item, UNSETTLED) != UNSETTLED
    again = history.returns and event.item not in history.fixed
    law(event.purpose != "label" or not settled or again, "what is settled is not asked about again", event)
    history.leases[event.number] = event
    history.until[event.number] = event.until
    history.held[event.item] = event.number


def _answer(history: History, event: Answer | Checked) -> None:
    lease = history.leases.get(event.lease)
    law(lease is not None, "an answer belongs to a lease", event)
    assert lease is not None
    law(event.lease not in history.told, "a lease is answered once", event)
    law((lease.item, lease.annotator) == (event.item, event.annotator), "an answer is its lease's own", event)
    check = lease.purpose in ("gold", "repeat")
    law(check == isinstance(event, Checked), "repeats and gold items are never votes", event)
    law(not isinstance(event, Answer) or event.ranking == history.ranking, "rankings never go back", event)
    history.told[event.lease] = event
    if not event.counted:
        law(event.lease in history.ended, "an answer that does not count came too late", event)
        return
    law(event.lease in history.until, "an answer that counts came in time", event)
    law(event.at < history.until[event.lease], "an answer that counts came in time", event)
    _end(history, event.lease)
    history.spent += 1
    history.standing[event.lease] = event
    if isinstance(event, Answer):
        if event.annotator is not None:
            law((event.item, event.annotator) not in history.votes, "one vote an item and person", event)
            history.votes[event.item, event.annotator] = event.lease
        _judge(history, event.item, event.verdict)


def _undo(history: History, event: Undone) -> None:
    answer = history.standing.pop(event.lease, None)
    law(
        answer is not None and (answer.item, answer.answer) == (event.item, event.answer), "what is undone stood", event
    )
    assert answer is not None
    history.spent -= 1
    if isinstance(answer, Answer):
        history.votes.pop((answer.item, answer.annotator or ""), None)
        _judge(history, event.item, event.verdict)


def _end(history: History, lease: int) -> None:
    del history.until[lease]
    del history.held[history.leases[lease].item]


def _judge(history: History, item: int, verdict: int) -> None:
    fixed = history.fixed.get(item)
    law(fixed is None or verdict == fixed, "a last word holds", (item, verdict))
    history.verdicts[item] = verdict


def _decide(history: History, event: Event) -> None:
    if isinstance(event, Adjudicated | Gold):
        verdict = event.verdict if isinstance(event, Adjudicated) else event.label
        history.verdicts[event.item] = history.fixed[event.item] = verdict
    elif isinstance(event, Retracted):
        history.fixed.pop(event.item, None)
        history.verdicts[event.item] = event.verdict
    elif isinstance(event, Changed):
        history.returns = bool(event.policy.get("returns", False))
        for item, verdict in event.verdicts:
            _judge(history, item, verdict)
    elif isinstance(event, Removed):
        _remove(history, event)
    else:
        _agree(history, event)


def _agree(history: History, event: Event) -> None:
    if isinstance(event, Renewed):
        history.until = dict.fromkeys(history.until, event.until)
    elif isinstance(event, Budget):
        history.budget = event.total
    elif isinstance(event, Added):
        law(event.first == history.items, "items are numbered on", event)
        history.items += len(event.given)
    elif isinstance(event, Withdrawn):
        law(not set(event.items) & set(history.held), "nobody holds what is withdrawn", event)
    elif isinstance(event, Closed):
        law(not history.held, "leases end before the close", event)
        history.closed = True
    elif isinstance(event, Reopened):
        history.closed = False


def _remove(history: History, event: Removed) -> None:
    law(
        all(history.leases[lease].annotator != event.name for lease in history.until),
        "who is removed holds nothing",
        event,
    )
    if not event.stand:
        gone = [lease for lease, answer in history.standing.items() if answer.annotator == event.name]
        for lease in gone:
            answer = history.standing.pop(lease)
            history.votes.pop((answer.item, event.name), None)
    for item, verdict in event.verdicts:
        _judge(history, item, verdict)
