"""A campaign played out by simulated annotators: the same state machine that people will use, in a loop."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Literal, Protocol

import msgspec
import numpy as np

from relook.campaign import Campaign
from relook.curves import Curve, curve, visit_ends
from relook.errors import BadInput
from relook.events import UNSETTLED, Event
from relook.metrics import picks
from relook.rules import Policy, Terms, check_budget
from relook.scores import Score, is_rowwise
from relook.types import Dataset, FloatArray, IntArray, Labels, Posteriors

Annotator = Callable[[int, int], int]
"""Called with an item and how many answers it has, it gives the next one."""

OVERRUN = 100_000
"""Answers beyond the budget that the released code's protocol may use to finish the item it is on."""


class Update(Protocol):
    """Trains a model anew on the labels as they stand."""

    def __call__(self, labels: Labels) -> Posteriors:
        """Return the new posteriors."""
        ...


class Simulation(msgspec.Struct, frozen=True, eq=False):
    """One campaign to play out.

    `annotators`: one for a crowd without end, in which each answer comes from somebody new, or several for a panel that
    takes turns. `protocol`: `exact` never overspends; `paper-code` finishes the item it is on, as the released code
    does. With `update`, a model is trained anew every `update_every` answers. On a panel each person takes `hold` items
    at a time, as somebody does who answers in a table.
    """

    policy: Policy
    budget: int
    annotators: Sequence[Annotator]
    posteriors: Posteriors | None = None
    protocol: Literal["exact", "paper-code"] = "exact"
    seed: int = 0
    update: Update | None = None
    update_every: int = 500
    hold: int = 1

    def __post_init__(self) -> None:
        check_budget(self.budget)
        if not self.annotators:
            raise BadInput("simulation: at least one annotator was needed, but none came; pass a crowd or a panel")
        if self.update_every < 1:
            raise BadInput(f"simulation: an update every answer at most was needed, but {self.update_every} came")
        if self.hold < 1 or (self.hold > 1 and len(self.annotators) == 1):
            raise BadInput(
                f"simulation: a panel whose people hold an item or more was needed, but {self.hold} came for "
                f"{len(self.annotators)}; a crowd answers one at a time"
            )
        if self.protocol not in ("exact", "paper-code"):
            raise BadInput(f"simulation: protocol exact or paper-code was needed, but {self.protocol!r} came")
        again = self.update is not None or _looks_around(self.policy.score)
        if self.protocol == "paper-code" and (len(self.annotators) > 1 or again):
            raise BadInput(
                "simulation: the released code's protocol needs one crowd and a ranking that stays; take exact"
            )


class Run(msgspec.Struct, frozen=True, eq=False):
    """What came of a simulated campaign."""

    policy: str
    seed: int
    curve: Curve
    picks: IntArray
    answers: int
    final: IntArray
    labels: Labels
    events: Sequence[Event]

    @property
    def items(self) -> int:
        """Items that were answered at least once."""
        return int(self.curve.items_touched[-1])

    def row(self) -> dict[str, str | int | float]:
        """Return the run as a row of a table."""
        end = self.curve
        return {
            "policy": self.policy,
            "seed": self.seed,
            "answers": self.answers,
            "items": self.items,
            "share_correct": float(end.share_correct[-1]),
            "auc": end.auc(),
            "total_variation": float(end.total_variation[-1]),
            "clear_left": int(end.clear_left[-1]),
            "difficult_left": int(end.difficult_left[-1]),
        }


def simulate(dataset: Dataset, simulation: Simulation) -> Run:
    """Play a campaign out on a data set whose truth is known.

    >>> from relook.policies import named
    >>> dataset = Dataset("two", ("cat", "dog"), ("a", "b"), Labels([1, 1], 2), truth=np.array([[1., 0.], [0., 1.]]))
    >>> plan = Simulation(named("random"), 3, [lambda item, nth: [0, 1][item]])
    >>> simulate(dataset, plan).curve.share_correct[-1].item()
    1.0
    """
    truth = _known(dataset)
    campaign = play(dataset.given, simulation)
    events = campaign.events
    whole = curve(events, dataset.given, truth=truth, given_weight=simulation.policy.given_weight)
    if simulation.protocol == "paper-code":
        whole = whole.at_visits(visit_ends(events))
    return Run(
        simulation.policy.name,
        simulation.seed,
        whole,
        picks(events),
        campaign.spent,
        campaign.final(),
        campaign.labels(),
        events,
    )


def play(given: Labels, simulation: Simulation) -> Campaign:
    """Run a campaign until its budget is spent or nothing is left to ask, and return it."""
    people = simulation.annotators
    over = OVERRUN if simulation.protocol == "paper-code" else 0
    campaign = Campaign(
        given,
        simulation.policy,
        budget=simulation.budget + over,
        posteriors=simulation.posteriors,
        terms=Terms(panel=None if len(people) == 1 else len(people), seed=simulation.seed),
    )
    if over:
        _finish_items(campaign, people[0], budget=simulation.budget)
    elif simulation.update is not None or _looks_around(simulation.policy.score):
        _in_rounds(campaign, simulation)
    else:
        _answer(campaign, simulation, until=simulation.budget)
    return campaign


def _looks_around(score: Score) -> bool:
    """Whether an answer about one item moves others: the rule sees several rows, or is fitted to the whole set."""
    return not is_rowwise(score) or hasattr(score, "fit")


def _answer(campaign: Campaign, simulation: Simulation, *, until: int) -> bool:
    """Ask and tell until so many answers are spent; False when nothing more can be asked."""
    people = simulation.annotators
    if len(people) > 1:
        return _answer_in_turns(campaign, simulation, until=until)
    annotator, ask, tell, ledger = people[0], campaign.ask, campaign.tell, campaign.ledger
    while ledger.spent < until:
        lease = ask()
        if lease is None:
            return False
        tell(lease, annotator(lease.item, lease.nth))
    return True


def _answer_in_turns(campaign: Campaign, simulation: Simulation, *, until: int) -> bool:
    people = simulation.annotators
    names = [f"person {number}" for number in range(1, len(people) + 1)]
    turn, idle = 0, 0
    while campaign.spent < until:
        leases = list(islice(iter(partial(campaign.ask, names[turn]), None), simulation.hold))
        for lease in leases:
            campaign.tell(lease, people[turn](lease.item, lease.nth))
        idle = 0 if leases else idle + 1
        if idle == len(people):
            return False
        turn = (turn + 1) % len(people)
    return True


def _in_rounds(campaign: Campaign, simulation: Simulation) -> None:
    """Rank anew after every round of answers: by a model trained on them, or as the score looks at several rows."""
    every = simulation.update_every if simulation.update is not None else simulation.policy.batch
    posteriors = simulation.posteriors
    while campaign.spent < campaign.budget:
        before = campaign.spent
        more = _answer(campaign, simulation, until=min(before + every, campaign.budget))
        # When nothing more is asked, only items that come back with the next ranking are left, if there are any.
        if campaign.spent == before or not (more or simulation.policy.returns):
            return
        if campaign.spent < campaign.budget:
            posteriors = posteriors if simulation.update is None else simulation.update(campaign.labels())
            campaign.rank(posteriors)


def _finish_items(campaign: Campaign, annotator: Annotator, *, budget: int) -> None:
    settled = True
    while campaign.spent <= budget or not settled:
        lease = campaign.ask()
        if lease is None:
            return
        settled = campaign.tell(lease, annotator(lease.item, lease.nth)).verdict != UNSETTLED


def _known(dataset: Dataset) -> FloatArray:
    if dataset.truth is None:
        raise BadInput(f"{dataset.name}: a simulation needs the truth, but this set has none; pass --truth")
    return np.asarray(dataset.truth)
