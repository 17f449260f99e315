"""What a manager changes while a campaign runs: in its log, for everybody, and in its folder, for who reads it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from relook import campaigns, charter
from relook.campaign import Campaign
from relook.campaigns import Opened
from relook.charter import Rules
from relook.deciding import Decisions
from relook.errors import BadInput, NotAllowed
from relook.events import UNSETTLED, Changed
from relook.imported import MANIFEST, source_file
from relook.pace import Pace


class Meant(msgspec.Struct, frozen=True):
    """What a change of the rules means: items that are settled now, and those that are open again."""

    settled: int
    opened: int


def decide(found: Opened, action: Callable[[Decisions, float], Any], *, by: str, why: str | None) -> Any:
    """Do what somebody decided, for this reason, and return the event."""
    return found.do(lambda campaign, now: action(campaign.by(by, why), now))


def budget(found: Opened, answers: int, *, hours: float | None, by: str, why: str | None) -> None:
    """Set the budget, in the log and in the folder."""
    decide(found, lambda manager, now: manager.budget(answers, hours=hours, now=now), by=by, why=why)
    kept = msgspec.structs.replace(found.decided.budget, answers=answers, hours=hours)
    charter.write(msgspec.structs.replace(found.decided, budget=kept), found.folder)


def rules(found: Opened, rules: Rules, *, people: int | None, by: str, why: str | None) -> Meant:
    """Follow other rules from here on, or ask another number of people, and say what that means."""
    new = campaigns.policy(rules)
    kept = msgspec.structs.replace(found.decided.budget, people=people)
    before = found.decided.rules
    decided = msgspec.structs.replace(found.decided, rules=rules, before=before, budget=kept)
    # The folder first: whoever opens it after a crash finds the rules that the log holds among these two.
    charter.write(decided, found.folder)

    def change(campaign: Campaign, now: float) -> Meant:
        items = campaign.ledger.items
        was = {number: state.verdict for number, state in items.items()}
        changed: Changed = campaign.by(by, why).change(new, panel=people, now=now)
        settled = sum(verdict > UNSETTLED >= was[item] for item, verdict in changed.verdicts)
        opened = sum(was[item] > UNSETTLED >= verdict for item, verdict in changed.verdicts)
        return Meant(settled, opened)

    try:
        meant: Meant = found.do(change)
    except BaseException:
        charter.write(found.decided, found.folder)
        raise
    return meant


def free(found: Opened, annotator: str) -> int:
    """Give back all that somebody holds, unanswered and free of charge, and return how many items that is."""

    def given_back(campaign: Campaign, now: float) -> int:
        held = [lease for lease in campaign.ledger.leases.values() if lease.annotator == annotator]
        for lease in held:
            campaign.skip(lease, now)
        return len(held)

    count: int = found.do(given_back)
    return count


def moved(folder: Path, to: Path) -> None:
    """Say where the set of a campaign lies now."""
    decided = charter.read(folder)
    manifest = to / MANIFEST
    if not manifest.is_file() or source_file(manifest).hash != decided.items.manifest:
        raise BadInput(f"{to}: the set that the campaign began with was needed, but this is another; name its folder")
    place = os.path.relpath(to.resolve(), folder.resolve())
    charter.write(msgspec.structs.replace(decided, items=msgspec.structs.replace(decided.items, set=place)), folder)


def answers_in(hours: float, pace: Pace, *, least: int) -> int:
    """Return the answers that hours buy at the measured pace, those that are spent or handed out among them."""
    bought = pace.answers(hours)
    if bought < least:
        raise NotAllowed(
            f"set: {least:,} answers are spent or handed out, but {hours:g} hours are {bought:,} at {pace}; say more "
            "hours, or --answers"
        )
    return bought
