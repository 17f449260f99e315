"""The log: a closed, versioned list of events, which JSON lines hold to the last digit."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook.campaign import Campaign
from relook.errors import BadLog
from relook.events import (
    SCHEMA,
    STATUS,
    Answer,
    Closed,
    Event,
    Expired,
    Lease,
    Ranking,
    Skipped,
    Started,
    Undone,
    from_lines,
    to_lines,
)
from relook.rules import Policy, Terms
from relook.scores import RandomOrder
from relook.types import Labels
from tests.campaigns import World, run, scripts, worlds
from tests.conftest import ROOT
from tests.history import check_history
from tests.laws import LAW, catches

count = st.integers(-4, 2**53)
time = st.floats(0, 1e18)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
name = st.none() | text
record = st.dictionaries(
    text, st.none() | st.booleans() | count | time | text | st.lists(count, max_size=3), max_size=3
)

PARTS: dict[str, st.SearchStrategy[Any]] = {
    "int": count,
    "float": time,
    "bool": st.booleans(),
    "str": text,
    "str | None": name,
    "int | None": st.none() | count,
    "float | None": st.none() | time,
    "dict[str, Any]": record,
    "tuple[str, ...]": st.lists(text, max_size=3).map(tuple),
    "list[int]": st.lists(count, max_size=3),
    "list[int] | None": st.none() | st.lists(count, max_size=3),
    "list[int | list[int]]": st.lists(count, max_size=3) | st.lists(st.lists(count, max_size=2), max_size=3),
    "list[float]": st.lists(time, max_size=3),
    "list[tuple[int, int]]": st.lists(st.tuples(count, count), max_size=3),
}
"""What a field may hold, by how its type is written."""


def written(hint: Any) -> str:
    return str(getattr(hint, "__name__", hint) if isinstance(hint, type) and not get_args(hint) else hint).replace(
        "typing.", ""
    )


def some(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Any event of a kind: every field holds what its type allows."""
    hints = get_type_hints(kind)
    fields = {}
    for field in kind.__struct_fields__:
        hint = hints[field]
        is_closed = get_origin(hint) is Literal
        fields[field] = st.sampled_from(get_args(hint)) if is_closed else PARTS[written(hint)]
    return st.builds(kind, **fields)


EVENTS: dict[type, st.SearchStrategy[Event]] = {kind: some(kind) for kind in get_args(Event)}


BY = ("by", "at", "why")

FIELDS: dict[str, tuple[str, ...]] = {
    "started": (
        *("schema", "software", "given", "items", "classes", "budget", "policy", "lease_seconds", "panel", "seed"),
        *("ids", "at", "names", "purpose", "continues", "hours", "by"),
    ),
    "ranking": ("number", "score", "posteriors", "in_sample", "at", "about"),
    "lease": ("number", "item", "annotator", "nth", "at", "until", "purpose"),
    "renewed": ("until", "at"),
    "expired": ("lease", "at"),
    "skipped": ("lease", "at"),
    "answer": ("lease", "item", "annotator", "answer", "ranking", "counted", "verdict", "at", "seconds"),
    "checked": ("lease", "item", "annotator", "answer", "counted", "verdict", "at", "seconds"),
    "undone": ("lease", "item", "answer", "verdict", "at"),
    "adjudicated": ("item", "answer", "verdict", *BY),
    "confirmed": ("item", *BY),
    "retracted": ("item", "verdict", *BY),
    "gold": ("item", "label", *BY),
    "mixed": ("gold", "repeat", *BY),
    "drawn": ("items", "chances", *BY),
    "budget": ("total", "by", "at", "hours", "why"),
    "changed": ("policy", "panel", "verdicts", *BY),
    "guideline": ("version", "hash", "text", *BY),
    "joined": ("name", "role", *BY),
    "paused": ("name", *BY),
    "resumed": ("name", *BY),
    "removed": ("name", "stand", "verdicts", *BY),
    "added": ("first", "given", "ids", "by", "at", "came_with", "why"),
    "withdrawn": ("items", *BY),
    "closed": ("at", "by", "why"),
    "reopened": BY,
}


def test_the_list_is_closed_and_versioned() -> None:
    """Another kind of event, or another field, is another version: raise SCHEMA, and keep reading the old one."""
    assert SCHEMA == 2
    assert {kind.__struct_config__.tag: kind.__struct_fields__ for kind in get_args(Event)} == FIELDS


def test_what_a_person_decides_says_by_whom_and_may_say_why() -> None:
    decisions = set(FIELDS) - {
        *("started", "ranking", "lease", "renewed", "expired", "skipped", "answer", "checked", "undone")
    }
    assert all({"by", "why"} <= set(FIELDS[tag]) for tag in decisions)


class TestLines:
    """What is written is read again: every kind of event, any name, any number, and every campaign's log."""

    def law(self, how: settings, write: Callable[[list[Event]], bytes] = to_lines) -> None:
        @how
        @given(st.lists(st.one_of(*EVENTS.values()), max_size=6))
        def check(events: list[Event]) -> None:
            lines = write(events)
            assert from_lines(lines) == events
            assert lines.count(b"\n") == len(events)

        check()

    def law_of_campaigns(self, how: settings, write: Callable[[list[Event]], bytes] = to_lines) -> None:
        @how
        @given(worlds(), scripts(40))
        def check(world: World, script: list[int]) -> None:
            campaign = world.start()
            run(campaign, world, script)
            assert from_lines(write(campaign.events)) == campaign.events

        check()

    def test_holds(self) -> None:
        self.law(LAW)

    def test_holds_for_campaigns(self) -> None:
        self.law_of_campaigns(LAW)

    def test_times_in_whole_seconds_are_caught(self) -> None:
        def coarse(events: list[Event]) -> bytes:
            return to_lines(msgspec.structs.replace(event, at=float(int(event.at))) for event in events)

        catches(partial(self.law, write=coarse))
        catches(partial(self.law_of_campaigns, write=coarse))

    def test_a_name_in_another_alphabet_that_is_lost_is_caught(self) -> None:
        def plain(events: list[Event]) -> bytes:
            return to_lines(events).decode("ascii", "ignore").encode()

        catches(partial(self.law, write=plain))


GOLDEN = b"""\
{"type":"started","schema":1,"software":"0.1.0","given":"a9bf71c8fe7a91625a79d48a85887791","items":2,"classes":2,"budget":3,"policy":{"name":"any",\
"score":{"name":"RandomOrder","seed":0},"stop":{"name":"Majority"},"returns":false,"given_weight":1.0,"batch":1},\
"lease_seconds":3600.0,"panel":null,"seed":0,"ids":null,"at":0.0}
{"type":"ranking","number":1,"score":{"name":"RandomOrder","seed":0},"posteriors":null,"in_sample":false,"at":0.0}
{"type":"lease","number":1,"item":1,"annotator":"Ada","nth":0,"at":1.0,"until":3601.0}
{"type":"answer","lease":1,"item":1,"annotator":"Ada","answer":1,"ranking":1,"counted":true,"verdict":1,"at":2.0}
{"type":"undone","lease":1,"item":1,"answer":1,"verdict":-1,"at":3.0}
{"type":"lease","number":2,"item":0,"annotator":null,"nth":0,"at":4.0,"until":3604.0}
{"type":"skipped","lease":2,"at":5.0}
{"type":"lease","number":3,"item":0,"annotator":null,"nth":0,"at":6.0,"until":3606.0}
{"type":"expired","lease":3,"at":3606.0}
{"type":"answer","lease":3,"item":0,"annotator":null,"answer":-1,"ranking":1,"counted":false,"verdict":-1,"at":3607.0}
{"type":"closed","at":3608.0}
"""


def flat(rows: Any) -> Any:
    return rows.items * 0.0


def test_a_log_of_the_first_release_is_read() -> None:
    """These lines were written by version 0.1.0: they never change."""
    events = from_lines(GOLDEN)
    assert to_lines(events) == GOLDEN
    assert [type(event) for event in events] == [
        *(Started, Ranking, Lease, Answer, Undone, Lease, Skipped, Lease, Expired, Answer, Closed)
    ]
    labels, policy = Labels(np.array([0, 1]), 2), Policy("any", RandomOrder(0))
    campaign = Campaign.replay(events, labels, policy, rankings={})
    assert (campaign.spent, campaign.reserved, campaign.ledger.closed, campaign.verdict(1)) == (0, 0, True, -1)
    assert campaign.ledger.book.told(3).counted is False  # type: ignore[union-attr]


def test_a_longer_log_of_schema_1_is_read() -> None:
    """Written by version 0.1.0: five people, everything that could happen then. The file never changes."""
    lines = (Path(__file__).parent / "logs" / "schema-1.jsonl").read_bytes()
    events = from_lines(lines)
    assert to_lines(events) == lines
    labels = Labels(np.array([0, 1, 2, -1, 0, 1, 2, 0]), 3)
    policy = Policy("any", RandomOrder(0), returns=True, given_weight=0.5, batch=2)
    campaign = Campaign.replay(events, labels, policy, rankings={})
    assert (campaign.spent, campaign.final().tolist()) == (16, [0, 1, 0, -1, 0, 1, 2, 0])
    assert [campaign.verdict(item) for item in range(8)] == [-1, 1, 0, -1, 0, 1, 2, -2]
    assert check_history(events).spent == 16


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        (b'{"type":"closed","at":2.0}\n{"type":"closed","at":', 2),
        (b"\n", 1),
        (b'{"type":"rested","at":2.0}\n', 1),
        (b'{"type":"closed"}\n', 1),
        (b'{"type":"closed","at":"noon"}\n', 1),
        (b'{"type":"closed","at":NaN}\n', 1),
        (b'{"type":"closed","at":2.0}\n[1]\n', 2),
        (b"\xff\xfe\n", 1),
        (b'{"type":"lease","number":1,"item":1,"annotator":"\xff\xc3","nth":0,"at":0,"until":1}\n', 1),
    ],
)
def test_a_line_that_is_no_event_is_named(lines: bytes, number: int) -> None:
    with pytest.raises(BadLog, match=f"log: every line must be one event, but line {number} is not .*restore a backup"):
        from_lines(lines)


def test_a_later_version_may_say_more_of_an_event() -> None:
    assert from_lines(b'{"type":"closed","at":2.0,"mood":"fine"}\n') == [Closed(2.0)]


def test_every_verdict_that_is_no_class_has_a_name() -> None:
    assert STATUS == {-1: "unsettled", -2: "unclear", -3: "outside", -4: "disputed"}


def test_numbers_of_numpy_can_be_written() -> None:
    """Labels, budgets, answers, weights and times often come out of arrays."""
    terms = Terms(np.float64(60), np.int64(3), np.int64(7), None, np.float64(1.5))  # type: ignore[arg-type]
    policy = Policy("flat", flat, given_weight=np.float32(0.5), batch=np.int64(2))  # type: ignore[arg-type]
    labels = Labels(np.array([0, 1], np.int8), np.array([0, 1]).max() + 1)
    campaign = Campaign(labels, policy, budget=np.int64(3), terms=terms)  # type: ignore[arg-type]
    lease = campaign.ask(np.str_("Ada"), np.float32(2))  # type: ignore[arg-type]
    assert lease is not None
    campaign.tell(lease, np.uint8(1), np.int64(3))  # type: ignore[arg-type]
    campaign.undo(np.str_("Ada"), np.int64(1), np.float64(4))  # type: ignore[arg-type]
    events = from_lines(to_lines(campaign.events))
    assert events == campaign.events
    again = Campaign.replay(events, labels, policy, rankings={1: None})
    assert again.events == events


def test_the_page_lists_every_event_with_its_fields() -> None:
    rows = [line.split(" | ") for line in (ROOT / "docs" / "events.md").read_text("utf-8").splitlines()]
    told = {row[0].strip("| `"): tuple(row[1].split(", ")) for row in rows if row[0].startswith("| `")}
    assert told == FIELDS
