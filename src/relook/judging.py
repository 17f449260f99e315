"""What people's answers make of an item, by the rules of a campaign."""

import numpy as np

from relook.belief import AnswerModel
from relook.events import DISPUTED, NONE_OF_THESE, OUTSIDE, UNCLEAR, UNSETTLED
from relook.ledger import Item, Ledger
from relook.rules import Policy, check_beliefs
from relook.stopping import uses_belief
from relook.types import FloatArray, Posteriors, Rows


class Judge:
    """Gives the verdict on an item, and the rows that scores see, on one policy and its posteriors."""

    def __init__(self, ledger: Ledger, policy: Policy, *, posteriors: Posteriors | None) -> None:
        check_beliefs(policy, posteriors)
        self.ledger = ledger
        self.policy = policy
        self.posteriors = posteriors
        self._stop = policy.stop
        self._by_belief = uses_belief(policy.stop)

    def verdict(self, item: int, state: Item) -> int:
        """Judge an item as it stands; a last word holds whatever people say."""
        if state.out and item in self.ledger.words:
            return state.verdict
        return self.of_people(item, self.ledger.tally(state), heard=state.heard)

    def verdict_with(self, item: int, state: Item, *, answer: int, by: int = 1) -> int:
        """Judge an item as it would stand with one more answer (1), or without one of its own (-1)."""
        ledger = self.ledger
        if state.out and item in ledger.words:
            return state.verdict
        tally = ledger.tally(state) if state.last else ledger.no_tally.copy()
        tally[answer] += by
        return self.of_people(item, tally, heard=state.heard + by)

    def of_people(self, item: int, tally: list[int], *, heard: int) -> int:
        """Judge an item by people's answers alone: how many gave each, which is used up, and how many did at all."""
        unclear, outside = tally.pop(), tally.pop()
        if heard > unclear + outside:
            belief = self.belief(item, tally) if self._by_belief else None
            votes = self.ledger.votes(item, tally)
            if self._stop(votes, belief):
                return votes.index(max(votes)) if belief is None else int(belief.argmax())
        if unclear >= 2:
            return UNCLEAR
        if outside >= 2:
            return OUTSIDE
        panel = self.ledger.panel
        return DISPUTED if panel is not None and heard >= panel else UNSETTLED

    def belief(self, item: int, counts: list[int]) -> FloatArray:
        """Return the belief about an item's class, of which so many gave each."""
        model: AnswerModel = getattr(self.policy.stop, "model", AnswerModel())
        return model.belief(self._rows([item], [counts.copy()]))[0]

    def rows(self, items: list[int]) -> Rows:
        """Return what a score sees of some items that people spoke of."""
        ledger = self.ledger
        return self._rows(items, [ledger.tally(ledger.items[item])[:NONE_OF_THESE] for item in items])

    def _rows(self, items: list[int], counts: list[list[int]]) -> Rows:
        ledger, posteriors = self.ledger, self.posteriors
        numbers, answers = np.array(items), np.array(counts)
        votes = [ledger.votes(item, own) for item, own in zip(items, counts, strict=True)]
        return Rows(
            numbers,
            None if posteriors is None else posteriors.values.take(numbers, axis=1),
            ledger.given.given[numbers],
            answers,
            ledger.given.classes,
            self.policy.given_weight,
            np.array(votes, np.float64),
        )
