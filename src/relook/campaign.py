"""The one state machine: who is asked about what, and what their answers settle.

The simulator drives it in a `for` loop and a server will drive it by two routes. It decides, writes the decision down
as an event, and the ledger applies that event; `replay` applies the same events again and stands where the writer
stood.
"""

from collections.abc import Mapping, Sequence
from typing import Self

from relook import __version__
from relook.agenda import Agenda
from relook.book import CHECKS
from relook.checking import may_be_asked
from relook.deciding import Decisions
from relook.errors import BadInput, BadLog, NotAllowed
from relook.events import (
    NONE_OF_THESE,
    SCHEMA,
    STATUS,
    UNSETTLED,
    Answer,
    Changed,
    Checked,
    Closed,
    Event,
    Expired,
    Lease,
    Ranking,
    Renewed,
    Skipped,
    Started,
    Undone,
)
from relook.ledger import Ledger
from relook.origins import check_ids, posteriors_of, start_of
from relook.rules import Policy, Terms, as_record, check_answer, check_budget, check_name
from relook.types import IntArray, Labels, Posteriors

FOREVER = float("inf")


class Campaign:
    """A relabelling campaign: `ask` for the next item, `tell` the answer, until the budget is spent or nothing is left.

    >>> from relook.scores import margin
    >>> given, posteriors = Labels([0, 0], 2), Posteriors([[.9, .1], [.2, .8]])
    >>> campaign = Campaign(given, Policy("margin", margin), budget=2, posteriors=posteriors)
    >>> lease = campaign.ask("Ada")
    >>> lease.item, campaign.tell(lease, 1).verdict == UNSETTLED, campaign.ask("Ada").item
    (1, True, 0)
    """

    def __init__(
        self,
        given: Labels,
        policy: Policy,
        *,
        budget: int,
        posteriors: Posteriors | None = None,
        terms: Terms = Terms(),
    ) -> None:
        started = Started(
            SCHEMA, __version__, given.fingerprint(), len(given), given.classes, check_budget(budget), policy.record(),
            terms.lease_seconds, terms.panel, terms.seed, terms.ids, terms.at, terms.names, terms.purpose,
            terms.continues, terms.hours, terms.by,
        )  # fmt: skip
        self._set_up(given, policy, started=started)
        self.rank(posteriors, now=terms.at)

    def _set_up(self, given: Labels, policy: Policy, *, started: Started) -> None:
        self.events: list[Event] = [started]
        self.ledger = Ledger(given, started)
        self._agenda = Agenda(self.ledger, policy)

    def ask(self, annotator: str | None = None, now: float = 0.0) -> Lease | None:
        """Lease the item that is worth most to this annotator, or return None: nothing for them now, or no budget left.

        Without a name each call is somebody new, as the paper's simulation has it.
        """
        now = self.pass_time(now)
        ledger = self.ledger
        if annotator is not None and type(annotator) is not str:
            annotator = check_name(annotator)
        if ledger.spent + ledger.reserved >= ledger.budget or ledger.closed:
            return None
        if not (ledger.plain or may_be_asked(ledger, annotator)):
            return None
        item, purpose = self._agenda.take(annotator) if ledger.plain else self._agenda.take_beside(annotator)
        if item is None:
            return None
        state = ledger.items.get(item)
        nth = state.heard if state is not None else 0
        lease = Lease(ledger.book.rows, item, annotator, nth, now, now + ledger.started.lease_seconds, purpose)
        ledger.lease(lease)
        self.events.append(lease)
        return lease

    def tell(self, lease: Lease, answer: int, now: float = 0.0, *, seconds: float | None = None) -> Answer | Checked:
        """Take an answer: a class, `CANNOT_TELL` or `NONE_OF_THESE`; `seconds` is how long it took, where measured.

        One that comes too late is kept but does not count. The same answer told twice is one answer; another one to
        the same lease is refused.
        """
        now = self.pass_time(now)
        ledger = self.ledger
        number, item = lease.number, lease.item
        if type(answer) is not int or not NONE_OF_THESE <= answer < ledger.given.classes:
            answer = check_answer(answer, ledger.given.classes)
        if ledger.leases.get(number) is not lease:
            if not ledger.holds(lease):
                return self._late(lease, answer, now=now)
            lease = ledger.leases[number]
        state = ledger.items[item]
        if lease.purpose in CHECKS:
            who, stands = lease.annotator, state.verdict
            known = Checked(number, item, who, answer, counted=True, verdict=stands, at=now, seconds=seconds)
            self.record(known)
            return known
        agenda = self._agenda
        verdict = agenda.judge.verdict_with(item, state, answer=answer)
        event = Answer(
            number,
            item,
            lease.annotator,
            answer,
            ledger.ranking,
            counted=True,
            verdict=verdict,
            at=now,
            seconds=seconds,
        )
        ledger.answer(event)
        self.events.append(event)
        agenda.requeue(item, state)
        return event

    def skip(self, lease: Lease, now: float = 0.0) -> None:
        """Give an item back unanswered, free of charge; this person sees it again after everything else."""
        now = self.pass_time(now)
        if not self.ledger.holds(lease):
            raise NotAllowed(f"lease {lease.number}: an open lease was needed, but it has ended; ask for another item")
        self.record(Skipped(lease.number, now))

    def undo(self, annotator: str | None, k: int = 1, now: float = 0.0) -> list[Undone]:
        """Take back this annotator's last k answers, newest first.

        Each returns to the budget, and its item is judged again.
        """
        now = self.pass_time(now)
        self.need_running("undo")
        book = self.ledger.book
        who = book.numbers.get(annotator)
        standing = 0 if who is None else book.standing[who]
        if who is None or not 1 <= k <= standing:
            raise NotAllowed(
                f"undo: {annotator} has {standing} answers that stand, but {k} were to be undone; undo fewer"
            )
        return [self._undo(book.latest[who], now) for _ in range(k)]

    def rank(self, posteriors: Posteriors | None, now: float = 0.0) -> Ranking:
        """Order all items anew, by these posteriors."""
        now = self.pass_time(now)
        self.need_running("rank")
        self._agenda.install(posteriors)
        return self._ranked(now)

    def _ranked(self, now: float) -> Ranking:
        """Write down which ranking is in force."""
        posteriors, score = self.posteriors, as_record(self._agenda.score)
        number = self.ledger.ranking + 1
        if posteriors is None:
            event = Ranking(number, score, None, in_sample=False, at=now)
        else:
            event = Ranking(number, score, posteriors.fingerprint(), posteriors.in_sample, now, posteriors.about)
        self.record(event)
        return event

    def change(self, changed: Changed, policy: Policy) -> Ranking:
        """Follow another policy from here on, and order all items anew by it; `by` people, with what it means."""
        self._agenda.policy = policy
        self.record(changed)
        return self._ranked(changed.at)

    def renew(self, now: float = 0.0) -> Renewed:
        """Give every open lease a fresh full term, as the program starts again: how long it was down costs nobody."""
        self._check_time(now)
        event = Renewed(now + self.ledger.started.lease_seconds, now)
        self.record(event)
        return event

    def by(self, name: str, why: str | None = None) -> Decisions:
        """Return what this person may decide about the campaign, each for this reason where one is given."""
        return Decisions(self, check_name(name), why=why)

    def close(self, now: float = 0.0, *, by: str | None = None, why: str | None = None) -> Closed:
        """End the campaign: open leases expire, and later answers are kept but do not count."""
        now = self.pass_time(now)
        self.need_running("close")
        for number in list(self.ledger.leases):
            self.expire(number, now)
        event = Closed(now, by, why)
        self.record(event)
        return event

    def drain(self) -> list[Event]:
        """Return the events since the last call, and keep them no longer: for a store that holds the log."""
        events, self.events = self.events, []
        return events

    @classmethod
    def replay(
        cls,
        events: Sequence[Event],
        given: Labels,
        policy: Policy,
        *,
        rankings: Mapping[int, Posteriors | None],
        ids: Sequence[str] | None = None,
    ) -> Self:
        """Return the campaign that wrote these events, standing where it stood.

        Facts come from the events alone; the queue is rebuilt from the posteriors of the last ranking, by its number.
        `policy` is the one that holds at the end of the log. Ids, where they come, must be those that the log knows.
        """
        started = start_of(events, given, policy=policy)
        if ids is not None:
            check_ids(events, ids)
        campaign = cls.__new__(cls)
        campaign._set_up(given.first(started.items), policy, started=started)
        agenda = campaign._agenda
        agenda.catching_up = policy.batch == 1
        last = max((n for n, event in enumerate(events) if type(event) is Ranking), default=0)
        if not last:
            raise BadLog("log: a ranking was needed after the start, but none came; was the log cut?")
        for place in range(1, len(events)):
            if place == last:
                agenda.install(posteriors_of(events[last], rankings))
            campaign.ledger.apply(events[place])
            if place > last:
                agenda.follow(events[place])
        campaign.events = list(events)
        if agenda.catching_up:
            agenda.catching_up = False
            agenda.rescore_changed()
        return campaign

    @property
    def spent(self) -> int:
        """Answers paid for."""
        return self.ledger.spent

    @property
    def reserved(self) -> int:
        """Answers that somebody is about to give."""
        return self.ledger.reserved

    @property
    def budget(self) -> int:
        """Answers that may be paid for."""
        return self.ledger.budget

    def verdict(self, item: int) -> int:
        """Return the class an item is settled as, or why it is not: UNSETTLED, UNCLEAR, OUTSIDE or DISPUTED."""
        state = self.ledger.items.get(item)
        return UNSETTLED if state is None else state.verdict

    def status(self, item: int) -> str:
        """Return an item's verdict in a word: settled, unsettled, unclear, outside or disputed."""
        return STATUS.get(self.verdict(item), "settled")

    def labels(self) -> Labels:
        """Return the labels as they stand, answers included."""
        return self.ledger.labels()

    def final(self) -> IntArray:
        """Return the label of every item: what it was settled as, else the given one."""
        return self.ledger.final()

    @property
    def posteriors(self) -> Posteriors | None:
        """Class probabilities of the ranking in force."""
        return self._agenda.judge.posteriors

    @property
    def policy(self) -> Policy:
        """What is asked next and when it is settled."""
        return self._agenda.policy

    def is_ranked(self, item: int) -> bool:
        """Say whether an item was there at the last ranking."""
        return self._agenda.queue.is_ranked(item)

    def record(self, event: Event) -> None:
        """Write an event down, and keep what is asked next in step."""
        self.ledger.apply(event)
        self.events.append(event)
        self._agenda.follow(event)

    def need_running(self, action: str) -> None:
        """Refuse what a closed campaign no longer does."""
        if self.ledger.closed:
            raise NotAllowed(f"{action}: an open campaign was needed, but this one is closed; start another")

    def pass_time(self, now: float) -> float:
        """Let leases end whose time is over."""
        ledger = self.ledger
        if not ledger.now <= now < FOREVER:
            self._check_time(now)
        deadlines = ledger.deadlines
        while deadlines and deadlines[0][0] <= now:
            number = deadlines.popleft()[1]
            if number in ledger.leases:
                self.expire(number, now)
        return now if type(now) is float else float(now)

    def _check_time(self, now: float) -> None:
        if not self.ledger.now <= now < FOREVER:
            raise BadInput(
                f"time: it must not go back, but {now} came after {self.ledger.now}; use a clock that never does"
            )

    def expire(self, number: int, now: float) -> None:
        """End a lease."""
        self.record(Expired(number, now))

    def _late(self, lease: Lease, answer: int, *, now: float) -> Answer | Checked:
        number, book = lease.number, self.ledger.book
        known = book.told(number)
        if known is not None and known.answer == answer:
            return known
        if known is not None:
            raise NotAllowed(
                f"answer: lease {number} was answered with {known.answer}, but {answer} came; undo that first"
            )
        item, ranking, verdict = lease.item, self.ledger.ranking, self.verdict(lease.item)
        event: Answer | Checked
        if book.is_check(number):
            event = Checked(number, item, lease.annotator, answer, counted=False, verdict=verdict, at=now)
        else:
            event = Answer(number, item, lease.annotator, answer, ranking, counted=False, verdict=verdict, at=now)
        self.record(event)
        return event

    def _undo(self, row: int, now: float) -> Undone:
        book = self.ledger.book
        item, answer = book.item[row], book.answer[row]
        state = self.ledger.items[item]
        verdict = state.verdict
        if not book.is_check(row):
            verdict = self._agenda.judge.verdict_with(item, state, answer=answer, by=-1)
        event = Undone(row, item, answer, verdict, now)
        self.record(event)
        return event
