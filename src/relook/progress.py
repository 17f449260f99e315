"""How a campaign stands: money, time, items, people and the ranking, as a command and a manager's page show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from relook.book import LATE, TOLD
from relook.events import STATUS, UNSETTLED, Event, Ranking
from relook.ledger import Ledger
from relook.pace import Pace, pace


class Person(msgspec.Struct, frozen=True):
    """What somebody has done: answers that stand, those that came late, items held, how often an item settled so."""

    name: str
    answers: int = 0
    late: int = 0
    holds: int = 0
    agrees: float | None = None
    part: str = "annotator"


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a campaign stands.

    `changed` counts settled items whose label is not the one they came with; `waiting` those that people began and
    nothing has settled; `hours` are those that the budget was agreed in; `age` is how many seconds ago the ranking in
    force was made, and `since` how many answers.
    """

    budget: int
    spent: int
    reserved: int
    pace: Pace
    items: int
    settled: int
    changed: int
    waiting: int
    unclear: int
    outside: int
    disputed: int
    people: Sequence[Person]
    ranking: int
    age: float
    since: int
    hours: float | None
    paused: bool
    closed: bool

    @property
    def left(self) -> int:
        """Answers that can still be asked for."""
        return self.budget - self.spent - self.reserved

    @property
    def seen(self) -> int:
        """Items that somebody gave an answer about."""
        return self.settled + self.waiting + self.unclear + self.outside + self.disputed


def progress(ledger: Ledger, events: Sequence[Event], *, now: float) -> Progress:
    """Return where a campaign stands.

    >>> from relook.campaign import Campaign
    >>> from relook.policies import named
    >>> from relook.types import Labels
    >>> campaign = Campaign(Labels([0, 1], 2), named("random"), budget=3)
    >>> stands = progress(campaign.ledger, campaign.events, now=60.0)
    >>> stands.left, stands.settled, stands.age
    (3, 0, 60.0)
    """
    heard = {number: state for number, state in ledger.items.items() if state.heard}
    given, final = ledger.given.label(), ledger.final()
    verdicts = Counter(STATUS.get(state.verdict, "settled") for state in heard.values())
    changed = sum(state.verdict > UNSETTLED and final[number] != given[number] for number, state in heard.items())
    ranking = next(event for event in reversed(events) if isinstance(event, Ranking))
    return Progress(
        budget=ledger.budget,
        spent=ledger.spent,
        reserved=ledger.reserved,
        pace=pace(events),
        items=len(ledger.given),
        settled=verdicts["settled"],
        changed=int(changed),
        waiting=verdicts["unsettled"],
        unclear=verdicts["unclear"],
        outside=verdicts["outside"],
        disputed=verdicts["disputed"],
        people=_people(ledger),
        ranking=ranking.number,
        age=max(now - ranking.at, 0.0),
        since=answers_since(ledger),
        hours=ledger.hours,
        paused=None in ledger.paused,
        closed=ledger.closed,
    )


def answers_since(ledger: Ledger) -> int:
    """Return how many answers that stand came since the ranking in force was made."""
    book = ledger.book
    under = np.array(book.ranking[: book.rows]) == ledger.ranking
    return int((under & (np.array(book.state[: book.rows]) == TOLD)).sum())


def _people(ledger: Ledger) -> list[Person]:
    """Return what everybody has done, by name: those who joined, and those who answered or hold something."""
    book = ledger.book
    who, state, item, answer = (
        np.array(getattr(book, name)[: book.rows]) for name in ("who", "state", "item", "answer")
    )
    verdicts = np.full(len(ledger.given), UNSETTLED)
    for number, known in ledger.items.items():
        verdicts[number] = known.verdict
    judged = (state == TOLD) & (answer >= 0) & (verdicts[item] > UNSETTLED)
    holds = Counter(lease.annotator for lease in ledger.leases.values())
    found = []
    for name in sorted({*(person for person in book.people if person is not None), *ledger.people}):
        own = who == book.numbers.get(name, -1)
        of = own & judged
        agrees = float((answer[of] == verdicts[item[of]]).mean()) if of.any() else None
        answers, late = (int((own & (state == kind)).sum()) for kind in (TOLD, LATE))
        found.append(Person(name, answers, late, holds[name], agrees, _part(ledger, name)))
    return found


def _part(ledger: Ledger, name: str) -> str:
    """Return what part somebody takes, in a word."""
    if name in ledger.removed:
        return "removed"
    return "paused" if name in ledger.paused else ledger.people.get(name, "annotator")
