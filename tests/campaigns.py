"""Small campaigns for laws: worlds to draw, a script that several people follow, and the facts of a log, recounted."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from relook.activelab import ActiveLab
from relook.book import ENDED, LATE
from relook.campaign import Campaign
from relook.events import (
    Added,
    Adjudicated,
    Answer,
    Budget,
    Changed,
    Checked,
    Closed,
    Confirmed,
    Drawn,
    Event,
    Expired,
    Gold,
    Guideline,
    Joined,
    Lease,
    Mixed,
    Paused,
    Ranking,
    Removed,
    Renewed,
    Reopened,
    Resumed,
    Retracted,
    Skipped,
    Started,
    Undone,
    Withdrawn,
)
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
            known = campaign.ledger.book.told(lease.number)
            campaign.tell(lease, self.answer(pick) if known is None else known.answer, self.now)
        elif kind == "skip" and (in_time := [lease for lease in open_leases if lease.until > self.now]):
            campaign.skip(in_time[pick % len(in_time)], self.now)
        elif kind.startswith("undo") and (standing := list(campaign.ledger.book.of(who))):
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


def said(campaign: Campaign, item: int) -> list[tuple[str | None, int]]:
    """Who gave which answer about an item, of those that stand, the oldest first."""
    book = campaign.ledger.book
    rows = list(book.chain(campaign.ledger.items[item].last))
    return [(book.people[book.who[row]], book.answer[row]) for row in reversed(rows)]


def facts(campaign: Campaign) -> Facts:
    """What a campaign knows, as plain values."""
    ledger = campaign.ledger
    book, rows = ledger.book, range(1, ledger.book.rows)
    told = {row: book.told(row) for row in rows}
    unanswered = [row for row in rows if book.state[row] in (ENDED, LATE)]
    return {
        "spent": campaign.spent,
        "reserved": campaign.reserved,
        "budget": campaign.budget,
        "ranking": ledger.ranking,
        "closed": ledger.closed,
        "now": ledger.now,
        "leases": {number: (lease.item, lease.annotator) for number, lease in ledger.leases.items()},
        "until": {number: lease.until for number, lease in ledger.leases.items()},
        "ended": {row: (book.item[row], book.people[book.who[row]]) for row in unanswered},
        "answers": {n: said(campaign, n) for n, s in ledger.items.items() if s.heard},
        "votes": {n: ledger.votes(n, ledger.tally(s)[:-2]) for n, s in ledger.items.items()},
        "verdicts": {n: s.verdict for n, s in ledger.items.items()},
        "standing": {who: list(book.of(who))[::-1] for who in book.people if list(book.of(who))},
        "skipped": {who: list(items) for who, items in ledger.skipped.items() if items},
        "told": {row: (event.answer, event.counted) for row, event in told.items() if event is not None},
    } | decided(campaign)


def decided(campaign: Campaign) -> Facts:
    """What people decided, as plain values."""
    ledger = campaign.ledger
    mixed = ledger.mixed
    return {
        "panel": ledger.panel,
        "policy": ledger.policy["name"],
        "items": len(ledger.given),
        "words": {item: type(word).__name__ for item, word in ledger.words.items()},
        "gold": sorted(ledger.gold),
        "withdrawn": sorted(ledger.withdrawn),
        "out": sorted(item for item, state in ledger.items.items() if state.out),
        "mixed": None if mixed is None else (mixed.gold, mixed.repeat),
        "checked": {who: sorted(items) for who, items in ledger.checked.items() if items},
        "awaited": sorted(ledger.awaited, key=lambda item: ledger.awaited[item]),
        "guideline": None if ledger.guideline is None else ledger.guideline.text,
        "people": dict(ledger.people),
        "paused": set(ledger.paused),
        "removed": set(ledger.removed),
    }


def given_votes(given: Labels, weight: float, item: int) -> list[float]:
    """The votes that an item starts with, counted plainly."""
    if given.given.ndim == 2:
        return [weight * int(count) for count in given.given[item]]
    return [weight * (label == int(given.given[item])) for label in range(given.classes)]


def counted(events: Sequence[Event], given: Labels, weight: float) -> Facts:
    """Count the facts of a log once more, with lists and dictionaries alone."""
    started = events[0]
    assert isinstance(started, Started)
    known: Facts = {"spent": 0, "ranking": 0, "closed": False, "budget": started.budget, "weight": weight}
    known |= {"panel": started.panel, "policy": started.policy["name"], "mixed": None, "guideline": None, "draws": 0}
    known |= {name: {} for name in ("leases", "until", "ended", "answers", "verdicts", "standing", "skipped", "told")}
    known |= {name: {} for name in ("words", "checked", "purpose", "people", "drawn", "awaited", "by")}
    known |= {"gold": set(), "withdrawn": set(), "paused": set(), "removed": set(), "given": given.first(started.items)}
    for event in events:
        known["now"] = event.at
        COUNT[type(event)](known, event)
    known["reserved"] = len(known["leases"])
    known["items"] = len(known["given"])
    known["out"] = sorted({*known["words"], *known["withdrawn"]})
    for name in ("gold", "withdrawn"):
        known[name] = sorted(known[name])
    known["awaited"] = sorted(known["awaited"], key=lambda item: known["awaited"][item])
    known["votes"] = {}
    for item in known["verdicts"]:
        votes = given_votes(known["given"], known["weight"], item)
        told = [answer for _, _, answer in known["answers"].get(item, [])]
        known["votes"][item] = [votes[label] + told.count(label) for label in range(given.classes)]
    known["answers"] = {item: [each[1:] for each in told] for item, told in known["answers"].items() if told}
    known["checked"] = {who: sorted(items) for who, items in known["checked"].items() if items}
    for name in ("standing", "skipped"):
        known[name] = {key: value for key, value in known[name].items() if value}
    for name in ("given", "weight", "purpose", "drawn", "draws", "by"):
        del known[name]
    return known


def _leased(known: Facts, event: Lease) -> None:
    known["leases"][event.number] = known["by"][event.number] = (event.item, event.annotator)
    known["until"][event.number] = event.until
    known["purpose"][event.number] = event.purpose
    known["verdicts"].setdefault(event.item, -1)
    gone = known["skipped"].get(event.annotator, [])
    gone[:] = [item for item in gone if item != event.item]
    if event.purpose in ("gold", "repeat"):
        known["checked"].setdefault(event.annotator, set()).add(event.item)


def _renewed(known: Facts, event: Renewed) -> None:
    known["until"] = dict.fromkeys(known["leases"], event.until)


def _ended(known: Facts, event: Expired | Skipped) -> None:
    item, who = known["ended"][event.lease] = known["leases"].pop(event.lease)
    del known["until"][event.lease]
    if isinstance(event, Skipped) and who is not None and known["purpose"][event.lease] in ("label", "draw"):
        known["skipped"].setdefault(who, []).append(item)


def _told(known: Facts, event: Answer | Checked) -> None:
    known["told"][event.lease] = (event.answer, event.counted)
    if not event.counted:
        return
    del known["leases"][event.lease]
    del known["until"][event.lease]
    known["spent"] += 1
    known["standing"].setdefault(event.annotator, []).append(event.lease)
    if isinstance(event, Answer):
        known["answers"].setdefault(event.item, []).append((event.lease, event.annotator, event.answer))
        known["verdicts"][event.item] = event.verdict
        if known["purpose"][event.lease] == "draw":
            known["awaited"].pop(event.item, None)


def _undone(known: Facts, event: Undone) -> None:
    item, who = known["by"][event.lease]
    assert known["standing"][who].pop() == event.lease
    known["spent"] -= 1
    if known["purpose"][event.lease] in ("gold", "repeat"):
        known["checked"][who].discard(item)
    else:
        _no_vote(known, event.lease)
        known["verdicts"][item] = event.verdict


def _no_vote(known: Facts, lease: int) -> None:
    item, _ = known["by"][lease]
    known["answers"][item] = [each for each in known["answers"][item] if each[0] != lease]
    gone = item in known["withdrawn"] or item in known["gold"]
    if known["purpose"][lease] == "draw" and not gone:
        known["awaited"][item] = known["drawn"][item]


def _spoken(known: Facts, event: Adjudicated | Confirmed | Gold | Retracted) -> None:
    if isinstance(event, Retracted):
        del known["words"][event.item]
        known["verdicts"][event.item] = event.verdict
        return
    known["words"][event.item] = type(event).__name__
    if isinstance(event, Adjudicated):
        known["verdicts"][event.item] = event.verdict
    if isinstance(event, Gold):
        known["verdicts"][event.item] = event.label
        known["gold"].add(event.item)
        known["awaited"].pop(event.item, None)


def _drawn(known: Facts, event: Drawn) -> None:
    for item in event.items:
        known["draws"] += 1
        known["verdicts"].setdefault(item, -1)
        known["drawn"][item] = known["awaited"][item] = known["draws"]


def _changed(known: Facts, event: Changed) -> None:
    known |= {"policy": event.policy["name"], "panel": event.panel, "weight": event.policy["given_weight"]}
    known["verdicts"].update(event.verdicts)


def _removed(known: Facts, event: Removed) -> None:
    known["people"].pop(event.name, None)
    known["removed"].add(event.name)
    known["paused"].discard(event.name)
    if not event.stand:
        for lease in known["standing"].pop(event.name, []):
            if known["purpose"][lease] not in ("gold", "repeat"):
                _no_vote(known, lease)
        known["checked"].pop(event.name, None)
    known["verdicts"].update(event.verdicts)


def _joined(known: Facts, event: Joined) -> None:
    known["people"][event.name] = event.role
    known["removed"].discard(event.name)


def _added(known: Facts, event: Added) -> None:
    known["given"] = known["given"].and_then(Labels(np.array(event.given), known["given"].classes))


def _withdrawn(known: Facts, event: Withdrawn) -> None:
    for item in event.items:
        known["verdicts"].setdefault(item, -1)
        known["withdrawn"].add(item)
        known["awaited"].pop(item, None)


def _mixed(known: Facts, event: Mixed) -> None:
    known["mixed"] = (event.gold, event.repeat) if event.gold + event.repeat else None


COUNT: Mapping[type, Callable[[Facts, Any], object]] = {
    Started: lambda *_: None,
    Ranking: lambda known, event: known.update(ranking=event.number),
    Lease: _leased,
    Renewed: _renewed,
    Expired: _ended,
    Skipped: _ended,
    Answer: _told,
    Checked: _told,
    Undone: _undone,
    Adjudicated: _spoken,
    Confirmed: _spoken,
    Retracted: _spoken,
    Gold: _spoken,
    Mixed: _mixed,
    Drawn: _drawn,
    Budget: lambda known, event: known.update(budget=event.total),
    Changed: _changed,
    Guideline: lambda known, event: known.update(guideline=event.text),
    Joined: _joined,
    Paused: lambda known, event: known["paused"].add(event.name),
    Resumed: lambda known, event: known["paused"].discard(event.name),
    Removed: _removed,
    Added: _added,
    Withdrawn: _withdrawn,
    Closed: lambda known, _: known.update(closed=True),
    Reopened: lambda known, _: known.update(closed=False),
}


def run(campaign: Campaign, world: World, script: Sequence[int]) -> Driver:
    """Follow a script to its end, and return who followed it."""
    driver = Driver(campaign, world)
    for _ in driver.follow(script):
        pass
    return driver
