"""What each event does to the sums and to the answers that count: as the ledger has it, event by event."""

from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from relook import logbook, store
from relook.audit import Fold, audit
from relook.campaign import Campaign
from relook.errors import BadLog, NotAllowed
from relook.events import Budget, Checked, Event, Expired, Removed, Renewed, Skipped, Undone
from relook.logbook import Effect, Head, chained, checked, entry
from relook.writer import Writer
from tests.crashes import POSTERIORS, new_campaign, rebuilt

PEOPLE = ("Ada", "Grace", "Hedy", "Rosa", "Eve")


def live(campaign: Campaign, chance: Random, *, steps: int) -> list[Event]:
    """Let everything happen that changes the sums, and return all events."""
    now, leases = 0.0, list[Any]()
    boss = campaign.by("Maria")
    campaign.rank(POSTERIORS)
    for item in range(4):
        boss.know(item, 1)
    boss.mix(gold=0.3, repeat=0.3)
    for _ in range(steps):
        now += chance.choice((0.0, 1.0, 200.0))
        who = chance.choice(PEOPLE)
        try:
            turn(campaign, chance, who=who, now=now, leases=leases)
        except NotAllowed:
            continue
    return list(campaign.events)


def turn(campaign: Campaign, chance: Random, *, who: str, now: float, leases: list[Any]) -> None:
    boss, what = campaign.by("Maria"), chance.random()
    if what < 0.4:
        lease = campaign.ask(who, now)
        leases += [] if lease is None else [lease]
    elif what < 0.7 and leases:
        lease = leases.pop(chance.randrange(len(leases)))
        campaign.tell(lease, chance.randrange(3), now)
    elif what < 0.75 and leases:
        campaign.skip(leases.pop(), now)
    elif what < 0.85:
        campaign.undo(who, 1, now)
    elif what < 0.9:
        campaign.renew(now)
    elif what < 0.95:
        boss.budget(campaign.spent + campaign.reserved + chance.randrange(20), now=now)
    elif who == "Eve":
        boss.remove(who, chance.choice(("stand", "void")), now=now)


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_the_ledgers_after_each_event(seed: int) -> None:
    campaign = new_campaign(budget=20)
    events = live(campaign, Random(seed), steps=400)
    fold, ledger = Fold(), None
    for place, event in enumerate(events):
        fold.add(event)
        if place >= 1:
            ledger = rebuilt(events[: place + 1]).ledger if place % 50 == 1 or place == len(events) - 1 else None
        if ledger is not None:
            assert (fold.sums.spent, fold.sums.reserved) == (ledger.spent, ledger.reserved)
            assert fold.sums.budget == ledger.budget
        assert fold.sums.sound
        assert fold.doubled() == []
    kinds = {type(event) for event in events}
    assert {Undone, Skipped, Expired, Renewed, Budget, Checked, Removed} <= kinds


def test_a_database_takes_all_of_it(tmp_path: Path) -> None:
    campaign = new_campaign(budget=20)
    events = live(campaign, Random(1), steps=300)
    rows = chained([entry([event]) for event in events], Head(), written="now")
    store.fill(tmp_path, campaign.ledger.given, rows=rows)
    with closing(store.reading(tmp_path)) as kept:
        assert audit(kept).problems == ()
        assert (kept.sums().spent, kept.sums().budget) == (campaign.spent, campaign.budget)
    with closing(Writer(store.opened(tmp_path), rebuilt)) as writer:
        assert writer.status.spent == campaign.spent


def test_an_effect_that_is_forgotten_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(event: Event) -> Effect:
        return Effect() if isinstance(event, Expired) else real(event)

    real = logbook.effect
    monkeypatch.setattr("relook.audit.effect", forget)
    with pytest.raises(AssertionError):
        test_sums_are_the_ledgers_after_each_event(1)


def test_the_chain_says_where_it_breaks() -> None:
    rows = chained([entry(new_campaign().events)], Head(), written="now")
    assert list(checked(rows)) == rows
    for broken in (rows[1:], rows[::-1], [rows[0], rows[0]]):
        with pytest.raises(BadLog, match="does not follow from the rows before it"):
            list(checked(broken))
