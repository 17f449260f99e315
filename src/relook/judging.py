"""What people's answers make of an item, by the rules of a campaign."""

import numpy as np

from relook.belief import AnswerModel
from relook.events import CANNOT_TELL, DISPUTED, NONE_OF_THESE, OUTSIDE, UNCLEAR, UNSETTLED
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
        self._by_belief = uses_belief(policy.stop)

    def verdict(self, item: int, state: Item, *, tally: list[int] | None = None) -> int:
        """Judge an item as it stands, or as it would stand with this tally; a last word holds whatever people say."""
        if state.out and item in self.ledger.words:
            return state.verdict
        return self.of_people(item, self.ledger.tally(state) if tally is None else tally)

    def of_people(self, item: int, tally: list[int]) -> int:
        """Judge an item by people's answers alone."""
        heard, stop = sum(tally), self.policy.stop
        if heard > tally[CANNOT_TELL] + tally[NONE_OF_THESE]:
            votes = self.ledger.votes(item, tally)
            if self._by_belief:
                belief = self.belief(item, tally)
                if stop(votes, belief):
                    return int(belief.argmax())
            elif stop(votes, None):
                return votes.index(max(votes))
        if tally[CANNOT_TELL] >= 2:
            return UNCLEAR
        if tally[NONE_OF_THESE] >= 2:
            return OUTSIDE
        panel = self.ledger.panel
        return DISPUTED if panel is not None and heard >= panel else UNSETTLED

    def belief(self, item: int, tally: list[int]) -> FloatArray:
        """Return the belief about an item's class."""
        model: AnswerModel = getattr(self.policy.stop, "model", AnswerModel())
        return model.belief(self.rows([item], [tally]))[0]

    def rows(self, items: list[int], tallies: list[list[int]]) -> Rows:
        """Return what a score sees of some items."""
        ledger, posteriors = self.ledger, self.posteriors
        numbers = np.array(items)
        counts = np.array(tallies)[:, :NONE_OF_THESE]
        votes = [ledger.votes(item, tally) for item, tally in zip(items, tallies, strict=True)]
        return Rows(
            numbers,
            None if posteriors is None else posteriors.values.take(numbers, axis=1),
            ledger.given.given[numbers],
            counts,
            ledger.given.classes,
            self.policy.given_weight,
            np.array(votes, np.float64),
        )
