"""The one state machine: who is asked about what, and what their answers settle.

The simulator drives it in a `for` loop and a server will drive it by two routes. It decides, writes the decision down
as an event, and the ledger applies that event; `replay` applies the same events again and stands where the writer
stood.
"""

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from relook import __version__
from relook.belief import AnswerModel
from relook.errors import BadInput, BadLog, NotAllowed
from relook.events import (
    CANNOT_TELL,
    DISPUTED,
    NONE_OF_THESE,
    OUTSIDE,
    SCHEMA,
    STATUS,
    UNCLEAR,
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
from relook.ledger import Item, Ledger, posteriors_of, start_of
from relook.queue import FIRST, Queue
from relook.rules import Policy, Terms, as_record, check_answer, check_beliefs, check_budget, check_name
from relook.scores import checked, is_rowwise, score_items
from relook.stopping import uses_belief
from relook.types import FloatArray, IntArray, Labels, Posteriors, Rows

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
            terms.lease_seconds, terms.panel, terms.seed, terms.ids, terms.at,
        )  # fmt: skip
        self._set_up(given, policy, started=started)
        self.rank(posteriors, now=terms.at)

    def _set_up(self, given: Labels, policy: Policy, *, started: Started) -> None:
        self.policy = policy
        self.events: list[Event] = [started]
        self.ledger = Ledger(given, started)
        self._score = policy.score
        self._by_belief = uses_belief(policy.stop)
        self.posteriors: Posteriors | None = None
        self._queue: Queue
        self._natural: dict[int, float] = {}
        self._changed: dict[int, None] = {}
        self._catching_up = False

    def ask(self, annotator: str | None = None, now: float = 0.0) -> Lease | None:
        """Lease the item that is worth most to this annotator, or return None: nothing for them, or no budget left.

        Without a name each call is somebody new, as the paper's simulation has it.
        """
        now = self._pass_time(now)
        ledger = self.ledger
        if annotator is not None and type(annotator) is not str:
            annotator = check_name(annotator)
        if ledger.spent + ledger.reserved >= ledger.budget or ledger.closed:
            return None
        item = self._queue.take(annotator)
        if item is None:
            item = self._left_over(annotator)
            if item is None:
                return None
        state = ledger.items.get(item)
        nth = state.heard if state is not None else 0
        lease = Lease(ledger.last_lease + 1, item, annotator, nth, now, now + ledger.started.lease_seconds)
        ledger.lease(lease)
        self.events.append(lease)
        return lease

    def tell(self, lease: Lease, answer: int, now: float = 0.0) -> Answer:
        """Take an answer: a class, `CANNOT_TELL` or `NONE_OF_THESE`.

        One that comes too late is kept but does not count. The same answer told twice is one answer; another one to
        the same lease is refused.
        """
        now = self._pass_time(now)
        ledger = self.ledger
        number, item = lease.number, lease.item
        if type(answer) is not int or not NONE_OF_THESE <= answer < ledger.given.classes:
            answer = check_answer(answer, ledger.given.classes)
        if ledger.leases.get(number) is not lease and not ledger.holds(lease):
            return self._late(lease, answer, now=now)
        state = ledger.items[item]
        verdict = self._verdict(item, state, answer=answer, by=1)
        event = Answer(number, item, lease.annotator, answer, ledger.ranking, counted=True, verdict=verdict, at=now)
        ledger.answer(event)
        self.events.append(event)
        self._requeue(item, state)
        return event

    def skip(self, lease: Lease, now: float = 0.0) -> None:
        """Give an item back unanswered, free of charge; this person sees it again after everything else."""
        now = self._pass_time(now)
        if not self.ledger.holds(lease):
            raise NotAllowed(f"lease {lease.number}: an open lease was needed, but it has ended; ask for another item")
        self._record(Skipped(lease.number, now))
        self._offer(lease.item, self.ledger.items[lease.item])

    def undo(self, annotator: str | None, k: int = 1, now: float = 0.0) -> list[Undone]:
        """Take back this annotator's last k answers, newest first.

        Each returns to the budget, and its item is judged again.
        """
        now = self._pass_time(now)
        self._need_running("undo")
        standing = self.ledger.standing.get(annotator, [])
        if not 1 <= k <= len(standing):
            raise NotAllowed(
                f"undo: {annotator} has {len(standing)} answers that stand, but {k} were to be undone; undo fewer"
            )
        return [self._undo(standing[-1], now) for _ in range(k)]

    def rank(self, posteriors: Posteriors | None, now: float = 0.0) -> Ranking:
        """Order all items anew, by these posteriors."""
        now = self._pass_time(now)
        self._need_running("rank")
        self._install(posteriors)
        fingerprint = None if posteriors is None else posteriors.fingerprint()
        in_sample = posteriors is not None and posteriors.in_sample
        event = Ranking(self.ledger.ranking + 1, as_record(self._score), fingerprint, in_sample, now)
        self._record(event)
        return event

    def close(self, now: float = 0.0) -> None:
        """End the campaign: open leases expire, and later answers are kept but do not count."""
        now = self._pass_time(now)
        self._need_running("close")
        for number in list(self.ledger.leases):
            self._expire(number, now)
        self._record(Closed(now))

    @classmethod
    def replay(
        cls, events: Sequence[Event], given: Labels, policy: Policy, *, rankings: Mapping[int, Posteriors | None]
    ) -> Self:
        """Return the campaign that wrote these events, standing where it stood.

        Facts come from the events alone; the queue is rebuilt from the posteriors of the last ranking, by its number.
        """
        started = start_of(events, given, policy=policy)
        campaign = cls.__new__(cls)
        campaign._set_up(given, policy, started=started)
        campaign._catching_up = policy.batch == 1
        last = max((n for n, event in enumerate(events) if type(event) is Ranking), default=0)
        if not last:
            raise BadLog("log: a ranking was needed after the start, but none came; was the log cut?")
        for place in range(1, len(events)):
            if place == last:
                campaign._install(posteriors_of(events[last], rankings))
            campaign.ledger.apply(events[place])
            if place > last:
                campaign._follow(events[place])
        campaign.events = list(events)
        if campaign._catching_up:
            campaign._catching_up = False
            campaign._rescore_changed()
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

    def _record(self, event: Event) -> None:
        self.ledger.apply(event)
        self.events.append(event)

    def _need_running(self, action: str) -> None:
        if self.ledger.closed:
            raise NotAllowed(f"{action}: an open campaign was needed, but this one is closed; start another")

    def _pass_time(self, now: float) -> float:
        ledger = self.ledger
        if not ledger.now <= now < FOREVER:
            raise BadInput(f"time: it must not go back, but {now} came after {ledger.now}; use a clock that never does")
        deadlines = ledger.deadlines
        while deadlines and deadlines[0][0] <= now:
            number = deadlines.popleft()[1]
            if number in ledger.leases:
                self._expire(number, now)
        return now if type(now) is float else float(now)

    def _expire(self, number: int, now: float) -> None:
        item = self.ledger.leases[number].item
        self._record(Expired(number, now))
        self._offer(item, self.ledger.items[item])

    def _late(self, lease: Lease, answer: int, *, now: float) -> Answer:
        number = lease.number
        known = self.ledger.answered.get(number)
        if known is not None and known.answer == answer:
            return known
        if known is not None:
            raise NotAllowed(
                f"answer: lease {number} was answered with {known.answer}, but {answer} came; undo that first"
            )
        ranking, verdict = self.ledger.ranking, self.verdict(lease.item)
        event = Answer(number, lease.item, lease.annotator, answer, ranking, counted=False, verdict=verdict, at=now)
        self._record(event)
        return event

    def _undo(self, answer: Answer, now: float) -> Undone:
        state = self.ledger.items[answer.item]
        verdict = self._verdict(answer.item, state, answer=answer.answer, by=-1)
        event = Undone(answer.lease, answer.item, answer.answer, verdict, now)
        self._record(event)
        self._requeue(answer.item, state)
        return event

    def _verdict(self, item: int, state: Item, *, answer: int, by: int) -> int:
        """Judge the item as it will stand with this answer (1), or without it (-1)."""
        state.count(answer, by)
        try:
            return self._judge(item, state)
        finally:
            state.count(answer, -by)

    def _judge(self, item: int, state: Item) -> int:
        tally, stop = state.tally, self.policy.stop
        if state.heard > tally[CANNOT_TELL] + tally[NONE_OF_THESE]:
            if self._by_belief:
                belief = self._belief(item, state)
                if stop(state.votes, belief):
                    return int(belief.argmax())
            elif stop(state.votes, None):
                return state.votes.index(max(state.votes))
        if tally[CANNOT_TELL] >= 2:
            return UNCLEAR
        if tally[NONE_OF_THESE] >= 2:
            return OUTSIDE
        panel = self.ledger.started.panel
        return DISPUTED if panel is not None and state.heard >= panel else UNSETTLED

    def _belief(self, item: int, state: Item) -> FloatArray:
        model: AnswerModel = getattr(self.policy.stop, "model", AnswerModel())
        return model.belief(self._rows([item], [state]))[0]

    def _rows(self, items: list[int], states: list[Item]) -> Rows:
        given, posteriors = self.ledger.given, self.posteriors
        numbers = np.array(items)
        return Rows(
            numbers,
            None if posteriors is None else posteriors.values.take(numbers, axis=1),
            given.given[numbers],
            np.array([state.counts for state in states]),
            given.classes,
            self.policy.given_weight,
            np.array([state.votes for state in states], np.float64),
        )

    def _install(self, posteriors: Posteriors | None) -> None:
        check_beliefs(self.policy, posteriors)
        labels = self.ledger.labels()
        fit = getattr(self.policy.score, "fit", None)
        score = self.policy.score if fit is None else fit(labels, posteriors)
        scores = score_items(score, labels, posteriors, given_weight=self.policy.given_weight)
        # Only now is anything changed: posteriors that do not fit leave the campaign as it was.
        self._score, self.posteriors, self._queue = score, posteriors, Queue(scores, self.ledger)
        self._natural.clear()
        self._changed.clear()
        for item, state in self.ledger.items.items():
            if state.lease is None:
                self._place(item, state)

    def _requeue(self, item: int, state: Item) -> None:
        """Find an item whose answers changed its new place."""
        if state.verdict == UNSETTLED and state.heard:
            self._changed.pop(item, None)
            self._natural.pop(item, None)
            if state.lease is None:
                self._queue.announce(item, FIRST)
        elif self.ledger.is_askable(state):
            self._queue.withdraw(item)
            self._changed[item] = None
        else:
            self._queue.withdraw(item)
            self._changed.pop(item, None)
        if self._changed and self.ledger.counted % self.policy.batch == 0 and not self._catching_up:
            self._rescore_changed()

    def _offer(self, item: int, state: Item) -> None:
        """Put an item back that was leased in vain."""
        if item not in self._changed:
            self._place(item, state)
        elif self.policy.batch == 1 and not self._catching_up:
            self._rescore_changed()

    def _place(self, item: int, state: Item) -> None:
        if state.verdict == UNSETTLED and state.heard:
            self._queue.announce(item, FIRST)
        elif self.ledger.is_askable(state):
            natural = self._natural.get(item)
            self._queue.announce(item, self._queue.score(item) if natural is None else natural)

    def _rescore_changed(self) -> None:
        scores = self._waiting()
        self._natural.update(scores)
        for item in scores:
            del self._changed[item]
            self._place(item, self.ledger.items[item])

    def _waiting(self) -> dict[int, float]:
        """Return the items that changed and that nobody holds, with their new scores."""
        known = self.ledger.items
        free = [item for item in self._changed if known[item].lease is None]
        if not is_rowwise(self._score):
            # What is settled waits for the next ranking: by its old score it would come back at once.
            return {item: self._queue.score(item) for item in free if known[item].verdict == UNSETTLED}
        if not free:
            return {}
        scores = checked(self._score(self._rows(free, [known[item] for item in free])), free)
        return dict(zip(free, scores.tolist(), strict=True))

    def _left_over(self, annotator: str | None) -> int | None:
        """Take what is left for somebody whose queue is empty: what waits for a new score, then what they gave back."""
        ledger = self.ledger
        scores = {i: s for i, s in self._waiting().items() if not ledger.items[i].has_answer_of(annotator)}
        skipped = ledger.skipped.get(annotator, {})
        fresh = sorted(scores.keys() - skipped, key=lambda item: (-scores[item], item))
        back = [item for item in skipped if item in scores or self._queue.holds(item)]
        item = next(iter([*fresh, *back]), None)
        if item is not None:
            self._queue.withdraw(item)
        return item

    def _follow(self, event: Event) -> None:
        """Keep the queue of a replay in step with the events after its ranking."""
        if isinstance(event, Lease):
            self._queue.withdraw(event.item)
        elif (isinstance(event, Answer) and event.counted) or isinstance(event, Undone):
            self._requeue(event.item, self.ledger.items[event.item])
        elif isinstance(event, Expired | Skipped):
            item = self.ledger.ended[event.lease].item
            self._offer(item, self.ledger.items[item])
