"""Small campaigns for laws: worlds to draw, a script that several people follow, and the facts of a log, recounted."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from relook.activelab import ActiveLab
from relook.campaign import Campaign
from relook.events import Answer, Closed, Event, Expired, Lease, Ranking, Skipped, Started, Undone
from relook.rules import Policy, Terms
from relook.scores import RandomOrder, Score, ValuePerAnswer, margin, noisiness, phi
from relook.stopping import Agree, Confidence, Majority, Margin, Stop
from relook.types import FloatArray, Labels, Posteriors, Rows

LEASE = 10.0
PEOPLE: tuple[str | None, ...] = (None, "Ada", "Bo", "Cy")
Facts = dict[str, Any]


class Relative:
    """A score that looks at several rows, and says so."""

    rowwise = False

    def __call__(self, rows: Rows) -> FloatArray:
        scores = margin(rows)
        return np.asarray(scores - scores.mean())


ROWWISE: tuple[Score, ...] = (margin, phi, noisiness, ValuePerAnswer(), ValuePerAnswer(agree=2, lead=2), RandomOrder(3))
WHOLE: tuple[Score, ...] = (Relative(), ActiveLab())
RULES: tuple[Stop, ...] = (Majority(), Agree(1), Agree(2), Margin(2), Confidence(0.1))
WEIGHTS = (1.0, 0.0, 0.5, 2.0, 0.1)


class World(NamedTuple):
    """What a campaign starts from, and the posteriors of its rankings to come."""

    given: Labels
    policy: Policy
    posteriors: tuple[Posteriors, ...]
    budget: int
    terms: Terms

    def start(self, kind: type[Campaign] = Campaign) -> Campaign:
        return kind(self.given, self.policy, budget=self.budget, posteriors=self.posteriors[0], terms=self.terms)

    def rankings(self) -> Mapping[int, Posteriors | None]:
        """Posteriors by the number of their ranking, as the script takes them."""
        return {number: self.posteriors[(number - 1) % len(self.posteriors)] for number in range(1, 200)}

    def replay(self, events: Sequence[Event], kind: type[Campaign] = Campaign) -> Campaign:
        return kind.replay(events, self.given, self.policy, rankings=self.rankings())


def some_posteriors(random: np.random.Generator, items: int, classes: int, models: int = 1) -> Posteriors:
    """Posteriors with ties, certainties and zeros among them."""
    values = random.integers(0, 4, (models, items, classes)) + 0.0
    values[..., 0] += values.sum(2) == 0
    return Posteriors(values / values.sum(2, keepdims=True))


def some_given(random: np.random.Generator, items: int, classes: int, *, kind: str) -> Labels:
    """Given labels, some missing: one class an item, or counts."""
    if kind == "counts":
        return Labels(random.integers(0, 3, (items, classes)), classes)
    return Labels(random.integers(-1, classes, items), classes)


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    scores: Sequence[Score] = ROWWISE,
    batches: Sequence[int] = (1, 2, 4),
    panels: Sequence[int | None] = (None, None, 1, 2, 3),
    rules: Sequence[Stop] = RULES,
    rankings: int = 3,
) -> World:
    """Campaigns of a few items, of every kind."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    items, classes, kind = draw(st.integers(1, 6)), draw(st.integers(2, 4)), draw(st.integers(0, 59))
    weight, returns = WEIGHTS[kind % 5], kind % 4 < 2
    score, rule = draw(st.sampled_from(scores)), draw(st.sampled_from(rules))
    policy = Policy("drawn", score, rule, returns, weight, draw(st.sampled_from(batches)))
    return World(
        some_given(random, items, classes, kind="counts" if kind % 3 == 0 else "classes"),
        policy,
        tuple(some_posteriors(random, items, classes) for _ in range(rankings)),
        draw(st.integers(0, 25)),
        Terms(LEASE, draw(st.sampled_from(panels))),
    )


def scripts(longest: int) -> st.SearchStrategy[list[int]]:
    """What people do one after the other: each number is one step, read by `Driver`."""
    step = st.integers(0, 2**20 - 1)
    # Lists of up to 40 would have five steps on average: the length is drawn first.
    return st.integers(0, longest).flatmap(lambda count: st.lists(step, min_size=count, max_size=count))


KINDS = (
    "ask",
    "ask",
    "ask",
    "tell",
    "tell",
    "tell",
    "tell",
    "retell",
    "skip",
    "undo",
    "undo more",
    "wait",
    "rank",
    "ask",
)


class Driver:
    """Makes the steps of a script on a campaign: ask, tell, give back, take back, wait, rank anew."""

    def __init__(self, campaign: Campaign, world: World) -> None:
        self.campaign = campaign
        self.world = world
        self.now = 0.0
        self.leases: list[Lease] = []

    def follow(self, script: Sequence[int]) -> Iterator[str]:
        """Make every step, and yield what kind it was of after it; a step that cannot be made here is passed over."""
        for number in script:
            kind = KINDS[number % len(KINDS)]
            if self.step(kind, PEOPLE[number // 16 % len(PEOPLE)], number // 64):
                yield kind

    def step(self, kind: str, who: str | None, pick: int) -> bool:
        campaign = self.campaign
        open_leases = list(campaign.ledger.leases.values())
        if kind == "ask":
            lease = campaign.ask(who, self.now)
            self.leases += [lease] if lease is not None else []
        elif kind == "tell" and open_leases:
            campaign.tell(open_leases[pick % len(open_leases)], self.answer(pick), self.now)
        elif kind == "retell" and self.leases:
            lease = self.leases[pick % len(self.leases)]
            known = campaign.ledger.answered.get(lease.number)
            campaign.tell(lease, self.answer(pick) if known is None else known.answer, self.now)
        elif kind == "skip" and (in_time := [lease for lease in open_leases if lease.until > self.now]):
            campaign.skip(in_time[pick % len(in_time)], self.now)
        elif kind.startswith("undo") and (standing := campaign.ledger.standing.get(who)):
            campaign.undo(who, 1 if kind == "undo" else 1 + pick % len(standing), self.now)
        elif kind == "wait":
            self.now += (1.0, LEASE - 1.0, LEASE, 0.5)[pick % 4]
        elif kind == "rank":
            campaign.rank(self.world.rankings()[campaign.ledger.ranking + 1], self.now)
        else:
            return False
        return True

    def answer(self, pick: int) -> int:
        """A class mostly, sometimes one of the two answers that are none."""
        return (pick // 7) % self.world.given.classes if pick % 5 else -1 - pick % 2


def drained(campaign: Campaign, now: float) -> list[Event]:
    """Let three people and somebody without a name ask and answer on until nothing is asked; return what happened."""
    before, idle = len(campaign.events), 0
    for turn in range(200):
        who = PEOPLE[turn % len(PEOPLE)]
        lease = campaign.ask(who, now)
        idle = idle + 1 if lease is None else 0
        if idle == len(PEOPLE):
            break
        if lease is not None:
            campaign.tell(lease, (lease.item + lease.nth + turn // 5) % campaign.ledger.given.classes, now)
    return campaign.events[before:]


def facts(campaign: Campaign) -> Facts:
    """What a campaign knows, as plain values."""
    ledger = campaign.ledger
    return {
        "spent": campaign.spent,
        "reserved": campaign.reserved,
        "ranking": ledger.ranking,
        "closed": ledger.closed,
        "now": ledger.now,
        "leases": {number: (lease.item, lease.annotator) for number, lease in ledger.leases.items()},
        "ended": {number: (lease.item, lease.annotator) for number, lease in ledger.ended.items()},
        "answers": {n: list(zip(s.people, s.answers, strict=True)) for n, s in ledger.items.items() if s.answers},
        "votes": {n: s.votes for n, s in ledger.items.items()},
        "verdicts": {n: s.verdict for n, s in ledger.items.items()},
        "standing": {who: [a.lease for a in answers] for who, answers in ledger.standing.items() if answers},
        "skipped": {who: list(items) for who, items in ledger.skipped.items() if items},
        "told": {number: (a.answer, a.counted) for number, a in ledger.answered.items()},
    }


def given_votes(given: Labels, weight: float, item: int) -> list[float]:
    """The votes that an item starts with, counted plainly."""
    if given.given.ndim == 2:
        return [weight * int(count) for count in given.given[item]]
    return [weight * (label == int(given.given[item])) for label in range(given.classes)]


def counted(events: Sequence[Event], given: Labels, weight: float) -> Facts:
    """Count the facts of a log once more, with lists and dictionaries alone."""
    known: Facts = {"spent": 0, "reserved": 0, "ranking": 0, "closed": False, "now": 0.0}
    known |= {name: {} for name in ("leases", "ended", "answers", "votes", "verdicts", "standing", "skipped", "told")}
    for event in events:
        known["now"] = event.at
        _count(known, event)
    known["spent"] = sum(len(answers) for answers in known["answers"].values())
    known["reserved"] = len(known["leases"])
    for item in known["verdicts"]:
        votes = given_votes(given, weight, item)
        said = [answer for _, answer in known["answers"].get(item, [])]
        known["votes"][item] = [votes[label] + said.count(label) for label in range(given.classes)]
    for name in ("answers", "standing", "skipped"):
        known[name] = {key: value for key, value in known[name].items() if value}
    return known


def _count(known: Facts, event: Event) -> None:
    match event:
        case Ranking():
            known["ranking"] = event.number
        case Lease():
            known["leases"][event.number] = (event.item, event.annotator)
            known["verdicts"].setdefault(event.item, -1)
            gone = known["skipped"].get(event.annotator, [])
            gone[:] = [item for item in gone if item != event.item]
        case Expired() | Skipped():
            item, who = known["ended"][event.lease] = known["leases"].pop(event.lease)
            if isinstance(event, Skipped) and who is not None:
                known["skipped"].setdefault(who, []).append(item)
        case Answer():
            known["told"][event.lease] = (event.answer, event.counted)
            if event.counted:
                del known["leases"][event.lease]
                known["answers"].setdefault(event.item, []).append((event.annotator, event.answer))
                known["standing"].setdefault(event.annotator, []).append(event.lease)
                known["verdicts"][event.item] = event.verdict
        case Undone():
            _take_back(known, event)
        case Closed():
            known["closed"] = True
        case Started():
            pass


def _take_back(known: Facts, event: Undone) -> None:
    who = next(who for who, leases in known["standing"].items() if leases and leases[-1] == event.lease)
    known["standing"][who].pop()
    answers = known["answers"][event.item]
    last = max(n for n, answer in enumerate(answers) if answer == (who, event.answer))
    del answers[last]
    known["verdicts"][event.item] = event.verdict


def run(campaign: Campaign, world: World, script: Sequence[int]) -> Driver:
    """Follow a script to its end, and return who followed it."""
    driver = Driver(campaign, world)
    for _ in driver.follow(script):
        pass
    return driver
