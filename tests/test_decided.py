"""The facts of what people decide: kept from the log alone, and refused where a log contradicts itself."""

from collections.abc import Sequence
from typing import Any, get_args

import msgspec
import numpy as np
import pytest

from relook.campaign import Campaign
from relook.errors import BadLog
from relook.events import Event, Gold, Mixed
from relook.rules import Policy, Terms
from relook.stopping import Agree
from relook.types import Labels, Posteriors, Rows
from tests.campaigns import counted, facts
from tests.history import Broken, check_history


def last_first(rows: Rows) -> Any:
    """Items from the last to the first."""
    return rows.items * 1.0


GIVEN = Labels(np.zeros(8, int), 3)
POSTERIORS = Posteriors(np.stack([np.arange(8), 20 - np.arange(8), np.full(8, 2)], 1) / 22)
MORE = Posteriors(np.concatenate([POSTERIORS.values[0], [[0.2, 0.3, 0.5]]]))
FIRST = Policy("first", last_first, Agree(2), given_weight=0.0)
SECOND = Policy("second", last_first, Agree(1), given_weight=0.0)
RANKINGS = {1: POSTERIORS, 2: POSTERIORS, 3: MORE}


class Script:
    """One campaign in which every kind of event happens."""

    def __init__(self) -> None:
        terms = Terms(100.0, panel=2)
        self.campaign = Campaign(GIVEN, FIRST, budget=30, posteriors=POSTERIORS, terms=terms)
        self.max = self.campaign.by("Max", "so it is")
        self.now = 0.0

    def say(self, who: str, answer: int) -> None:
        self.now += 1
        lease = self.campaign.ask(who, self.now)
        assert lease is not None
        self.campaign.tell(lease, answer, self.now)

    def run(self) -> list[Event]:
        campaign, people = self.campaign, self.max
        people.join("Ada", now=0.0)
        people.guide("Choose.", now=0.0)
        for who, answer in (("Ada", 0), ("Bo", 1), ("Ada", 2), ("Bo", 2)):
            self.say(who, answer)
        people.confirm(7, now=4.0)
        people.retract(7, now=4.0)
        people.adjudicate(7, 1, now=4.0)
        people.know(0, 1, now=4.0)
        people.mix(gold=1.0, now=4.0)
        self.say("Ada", 1)
        people.mix(now=5.0)
        people.draw([3, 6], [0.5, 0.5], now=5.0)
        self.say("Bo", 0)
        campaign.undo("Bo", now=6.0)
        skipped, kept = campaign.ask("Bo", 6.0), campaign.ask("Ada", 6.0)
        assert skipped is not None
        assert kept is not None
        campaign.skip(skipped, 6.0)
        campaign.renew(200.0)
        people.budget(40, hours=2.0, now=200.0)
        people.pause("Bo", now=200.0)
        people.resume("Bo", now=200.0)
        people.withdraw([kept.item], now=201.0)
        people.change(SECOND, panel=None, now=202.0)
        people.add(Labels(np.array([2]), 3), ["new"], now=203.0)
        campaign.rank(MORE, 204.0)
        people.remove("Ada", "void", now=205.0)
        people.close(now=206.0)
        people.reopen(now=207.0)
        return campaign.events


LOG = Script().run()
PLACE = {type(event).__struct_config__.tag: place for place, event in enumerate(LOG)}


def replay(events: Sequence[Event], policy: Policy = SECOND) -> Campaign:
    return Campaign.replay(events, GIVEN, policy, rankings=RANKINGS)


def test_every_kind_of_event_happens_and_is_replayed() -> None:
    assert {type(event) for event in LOG} == set(get_args(Event))
    campaign = replay(LOG)
    assert facts(campaign) == counted(LOG, GIVEN, 0.0)
    assert check_history(LOG, stored={"spent": campaign.spent, "budget": 40}).budget == 40


@pytest.mark.parametrize("end", range(2, len(LOG)))
def test_any_beginning_is_replayed(end: int) -> None:
    part = LOG[:end]
    policy = SECOND if end > PLACE["changed"] else FIRST
    assert facts(replay(part, policy)) == counted(part, GIVEN, 0.0)


@pytest.mark.parametrize(
    ("tag", "field", "value"),
    [
        ("adjudicated", "item", 8),
        ("adjudicated", "answer", 3),
        ("adjudicated", "verdict", 2),
        ("confirmed", "item", 6),
        ("retracted", "item", 6),
        ("retracted", "verdict", 3),
        ("gold", "item", -1),
        ("gold", "label", 3),
        ("gold", "label", -1),
        ("mixed", "gold", 1.5),
        ("mixed", "repeat", -0.5),
        ("drawn", "items", [3, 3]),
        ("drawn", "items", [3, 8]),
        ("drawn", "items", [3, 0]),
        ("drawn", "chances", [0.5]),
        ("drawn", "chances", [0.5, 0.0]),
        ("budget", "total", 5),
        ("renewed", "until", 301.0),
        ("changed", "panel", 0),
        ("changed", "verdicts", [(7, 2)]),
        ("changed", "verdicts", [(5, 1)]),
        ("guideline", "version", 2),
        ("guideline", "hash", "0"),
        ("guideline", "text", "Choose!"),
        ("paused", "name", None),
        ("resumed", "name", "Ada"),
        ("removed", "name", "Dee"),
        ("removed", "verdicts", [(7, 0)]),
        ("added", "first", 7),
        ("added", "given", []),
        ("added", "given", [3]),
        ("added", "given", [[1, 0, 0]]),
        ("withdrawn", "items", [8]),
        ("withdrawn", "items", [6, 6]),
        ("checked", "item", 1),
        ("checked", "annotator", "Bo"),
        ("checked", "answer", 3),
        ("checked", "verdict", 0),
        ("checked", "counted", False),
    ],
)
def test_a_line_that_was_edited_is_refused(tag: str, field: str, value: Any) -> None:
    place = PLACE[tag]
    edited = [*LOG[:place], msgspec.structs.replace(LOG[place], **{field: value}), *LOG[place + 1 :]]
    with pytest.raises(BadLog, match=r"log: |ranking \d"):
        replay(edited)


HARMLESS = (
    *("joined", "guideline", "budget", "mixed", "skipped", "confirmed", "retracted", "removed", "reopened", "added"),
    *("adjudicated", "renewed", "ranking", "resumed", "withdrawn"),
)
"""Without its last line a sound campaign is left: only a hash over all lines, as a store keeps it, could tell."""


@pytest.mark.parametrize("tag", [tag for tag in PLACE if tag not in HARMLESS])
def test_a_line_that_is_gone_is_refused(tag: str) -> None:
    rest = LOG[: PLACE[tag]] + LOG[PLACE[tag] + 1 :]
    with pytest.raises((BadLog, Broken)):
        check_history(replay(rest).events)


def test_a_gold_item_is_leased_as_gold_only_where_it_is_and_mixing_is_on() -> None:
    place = next(n for n, event in enumerate(LOG) if isinstance(event, Gold))
    with pytest.raises(BadLog, match="contradicts what came before it"):
        replay([*LOG[:place], *LOG[place + 1 :]])
    place = next(n for n, event in enumerate(LOG) if isinstance(event, Mixed))
    with pytest.raises(BadLog, match="contradicts what came before it"):
        replay([*LOG[:place], *LOG[place + 1 :]])
