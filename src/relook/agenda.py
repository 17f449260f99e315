"""What is asked next: the queue of a ranking, random checks before it, and how both follow the facts.

Whatever happens in a campaign, live or in a replay, comes by here once, so that both stand alike.
"""

from collections.abc import Callable
from typing import Any

from relook.checking import mixed_in
from relook.events import (
    UNSETTLED,
    Added,
    Adjudicated,
    Answer,
    Changed,
    Checked,
    Confirmed,
    Drawn,
    Event,
    Expired,
    Gold,
    Lease,
    Purpose,
    Removed,
    Retracted,
    Skipped,
    Undone,
    Withdrawn,
)
from relook.judging import Judge
from relook.ledger import Item, Ledger
from relook.queue import FIRST, Queue
from relook.rules import Policy
from relook.scores import checked, is_rowwise, score_items
from relook.types import Posteriors


class Agenda:
    """The order in which items are asked about, by a policy and the posteriors of the last ranking."""

    def __init__(self, ledger: Ledger, policy: Policy) -> None:
        self.ledger = ledger
        self.policy = policy
        self.score = policy.score
        self.judge: Judge
        self.queue: Queue
        self.draws: Queue
        self.changed: dict[int, None] = {}
        self.catching_up = False
        self._follow: dict[type, Callable[[Any], None]] = {
            Lease: self._leased,
            Answer: self._answered,
            Checked: self._checked,
            Undone: self._undone,
            Expired: self._ended,
            Skipped: self._ended,
            Drawn: self._drawn,
            Changed: self._moved,
            Removed: self._left,
            Added: self._grown,
            Withdrawn: self._withdrawn,
            Adjudicated: self._spoken,
            Confirmed: self._spoken,
            Retracted: self._spoken,
            Gold: self._spoken,
        }

    def follow(self, event: Event) -> None:
        """Keep in step with an event that the ledger has written down."""
        follow = self._follow.get(type(event))
        if follow is not None:
            follow(event)

    def take(self, annotator: str | None) -> tuple[int | None, Purpose]:
        """Return what this person should be asked next, and what for, and take it out; None when nothing is left."""
        item = self.queue.take(annotator)
        return self._left_over(annotator) if item is None else item, "label"

    def take_beside(self, annotator: str | None) -> tuple[int | None, Purpose]:
        """Return the same, looking first at what does not stand in the queue: gold items, repeats, random checks."""
        item, purpose = mixed_in(self.ledger, annotator) or (self.draws.take(annotator), "draw")
        if item is None:
            item, purpose = self.take(annotator)
            if item is None:
                return None, purpose
            purpose = "draw" if item in self.ledger.awaited else "label"
        self.queue.withdraw(item)
        self.draws.withdraw(item)
        return item, purpose

    def install(self, posteriors: Posteriors | None) -> None:
        """Order all items anew, by these posteriors."""
        ledger, policy = self.ledger, self.policy
        judge = Judge(ledger, policy, posteriors=posteriors)
        labels = ledger.labels()
        fit = getattr(policy.score, "fit", None)
        score = policy.score if fit is None else fit(labels, posteriors)
        scores = score_items(score, labels, posteriors, given_weight=policy.given_weight)
        # Only now is anything changed: posteriors that do not fit leave the campaign as it was.
        self.score, self.judge, self.queue = score, judge, Queue(scores, ledger)
        self.draws = Queue(scores[:0], ledger)
        self.changed.clear()
        for item, state in ledger.items.items():
            if state.lease is None:
                self._place(item, state)
                self._await(item, state)

    def requeue(self, item: int, state: Item) -> None:
        """Find an item that stands otherwise its new place."""
        ledger, changed = self.ledger, self.changed
        if ledger.drawn:
            self._await(item, state)
        if state.verdict == UNSETTLED and state.heard and not state.out:
            changed.pop(item, None)
            if state.lease is None:
                self.queue.announce(item, FIRST)
        elif ledger.is_askable(state) and self.queue.is_ranked(item):
            self.queue.withdraw(item)
            changed[item] = None
        else:
            self.queue.withdraw(item)
            changed.pop(item, None)
        if changed and ledger.counted % self.policy.batch == 0 and not self.catching_up:
            self.rescore_changed()

    def offer(self, item: int, state: Item) -> None:
        """Put an item back that was leased in vain."""
        self._await(item, state)
        if item not in self.changed:
            self._place(item, state)
        elif self.policy.batch == 1 and not self.catching_up:
            self.rescore_changed()

    def _place(self, item: int, state: Item) -> None:
        if not state.out and state.verdict == UNSETTLED and state.heard:
            self.queue.announce(item, FIRST)
        elif self.ledger.is_askable(state) and self.queue.is_ranked(item):
            self.queue.announce(item, self.queue.score(item))

    def _await(self, item: int, state: Item) -> None:
        """Want an item for a random check, or no longer."""
        place = self.ledger.awaited.get(item)
        if place is None:
            self.draws.withdraw(item)
        elif state.lease is None:
            self.draws.announce(item, -place)

    def rescore_changed(self) -> None:
        """Give the items that changed their new scores."""
        for item, score in self._waiting().items():
            self.queue.rescore(item, score)
            del self.changed[item]
            self._place(item, self.ledger.items[item])

    def _waiting(self) -> dict[int, float]:
        """Return the items that changed and that nobody holds, with their new scores."""
        known = self.ledger.items
        free = [item for item in self.changed if known[item].lease is None]
        if not is_rowwise(self.score):
            # What is settled waits for the next ranking: by its old score it would come back at once.
            return {item: self.queue.score(item) for item in free if known[item].verdict == UNSETTLED}
        if not free:
            return {}
        scores = checked(self.score(self.judge.rows(free)), free)
        return dict(zip(free, scores.tolist(), strict=True))

    def _left_over(self, annotator: str | None) -> int | None:
        """Take what is left for somebody whose queue is empty: what waits for a new score, then what they gave back."""
        ledger = self.ledger
        scores = {i: s for i, s in self._waiting().items() if not ledger.has_answer_of(ledger.items[i], annotator)}
        skipped = ledger.skipped.get(annotator, {})
        fresh = sorted(scores.keys() - skipped, key=lambda item: (-scores[item], item))
        back = [i for i in skipped if i in scores or self.queue.holds(i) or self.draws.holds(i)]
        item = next(iter([*fresh, *back]), None)
        if item is not None:
            self.queue.withdraw(item)
        return item

    def _leased(self, event: Lease) -> None:
        self.queue.withdraw(event.item)
        self.draws.withdraw(event.item)

    def _answered(self, event: Answer) -> None:
        if event.counted:
            self.requeue(event.item, self.ledger.items[event.item])

    def _checked(self, event: Checked) -> None:
        if event.counted:
            self.offer(event.item, self.ledger.items[event.item])

    def _undone(self, event: Undone) -> None:
        if not self.ledger.book.is_check(event.lease):
            self.requeue(event.item, self.ledger.items[event.item])

    def _ended(self, event: Expired | Skipped) -> None:
        item = self.ledger.book.item[event.lease]
        self.offer(item, self.ledger.items[item])

    def _spoken(self, event: Adjudicated | Confirmed | Gold | Retracted) -> None:
        self.requeue(event.item, self.ledger.items[event.item])

    def _drawn(self, event: Drawn) -> None:
        for item in event.items:
            if (state := self.ledger.items[item]).lease is None:
                self.offer(item, state)

    def _moved(self, event: Changed) -> None:
        self.install(self.judge.posteriors)

    def _left(self, event: Removed) -> None:
        for item in self.ledger.freed:
            self.requeue(item, self.ledger.items[item])

    def _grown(self, event: Added) -> None:
        self.queue.grow()
        self.draws.grow()

    def _withdrawn(self, event: Withdrawn) -> None:
        for item in event.items:
            self.requeue(item, self.ledger.items[item])
