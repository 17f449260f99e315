"""Campaigns on disk: one way to make a campaign's folder and one to open it, for commands and a server alike.

A folder holds `campaign.toml` (what was decided), `log.db` (what happened), `rankings/` (the class probabilities behind
each ranking) and, where a set came along or its features were made, these. The set itself stays where it is: the folder
knows it by a hash.
"""

from __future__ import annotations

import calendar
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from relook import charter, imported, npfiles, rankfiles, retraining, store
from relook.campaign import Campaign
from relook.charter import Charter, Rules
from relook.cleaned import Cleaned
from relook.errors import BadInput
from relook.events import Changed, Event, Ranking, Started
from relook.evidence import evidence
from relook.imported import Imported, source_file
from relook.ledger import Ledger
from relook.logbook import checked
from relook.origins import start_of
from relook.policies import Setting, loaded
from relook.ranking import ranking_policy
from relook.rules import Policy, Terms
from relook.stopping import named as settling
from relook.types import Dataset, Labels, Posteriors, ids_fingerprint
from relook.writer import Leases, Limits, Writer

SET, FEATURES = "set", "features.npy"
"""A set that was made for the campaign, and what models learn from where that took long to make."""

Clock = Callable[[], float]


class Opened(msgspec.Struct, frozen=True, eq=False):
    """A campaign that this process may write to: its folder, what was decided, its items, and its one writer."""

    folder: Path
    decided: Charter
    source: Imported
    dataset: Dataset
    writer: Writer
    clock: Clock

    def do(self, action: Callable[[Campaign, float], Any]) -> Any:
        """Do something to the campaign at this time, and return what came of it once it is on the disk for good."""
        return self.writer.do(action)

    @property
    def now(self) -> float:
        """The campaign's time: it goes on in the log, whatever clock this process has."""
        passed: float = self.writer.do(lambda _, now: now)
        return passed

    @property
    def campaign(self) -> Campaign:
        """The campaign as it stands."""
        found: Campaign = self.writer.do(lambda campaign, _: campaign)
        return found


class Begun(msgspec.Struct, frozen=True):
    """When a campaign began, by whom, and the head of the log that it continues."""

    at: float
    by: str | None = None
    continues: str | None = None


def policy(rules: Rules) -> Policy:
    """Return the policy that rules mean."""
    stop, weight = settling(rules.settle)
    return ranking_policy(rules.policy, setting=Setting(seed=rules.seed, stop=stop, given_weight=weight))


def agreed(decided: Charter, events: Sequence[Event]) -> Policy:
    """Return the policy that holds at the end of a log.

    Rules are changed in the folder first and in the log after it, so those before may be the ones that hold.
    """
    record = next(event.policy for event in reversed(events) if isinstance(event, Started | Changed))
    known = [policy(rules) for rules in (decided.rules, decided.before) if rules is not None]
    return next((found for found in known if found.record() == record), known[0])


def items(folder: Path, decided: Charter) -> Imported:
    """Return the set that a campaign is about, and refuse one that is another now."""
    place = Path(os.path.normpath(folder / decided.items.set))
    if not (place / imported.MANIFEST).is_file():
        raise BadInput(
            f"{folder}: its items were needed in {place}, but no set is there; move it back, or say where it is now: "
            f"relook set {folder} --data FOLDER"
        )
    if source_file(place / imported.MANIFEST).hash != decided.items.manifest:
        raise BadInput(
            f"{folder}: the set that the campaign began with was needed in {place}, but another is there now; put it "
            "back, or begin a new campaign on this one"
        )
    found = imported.read(place)
    imported.verify(found, only=(imported.ITEMS, imported.ANSWERS))
    return found


def dataset(folder: Path, decided: Charter) -> Dataset:
    """Return the items with what models learn from: embeddings, or features that were made once."""
    found = items(folder, decided).dataset(decided.items.split)
    path = folder / FEATURES
    if not path.is_file():
        return found
    return msgspec.structs.replace(found, features=npfiles.single(path).array())


def trainer(settings: Mapping[str, Any]) -> Callable[[Dataset, Labels, int], Posteriors]:
    """Return the trainer that settings mean: a method of relook's, or one of the user's own, as `mine.py:train`."""
    method = str(settings.get("method", ""))
    if ":" not in method:
        return retraining.trainer(settings)
    own: Callable[[Dataset, Labels, int], Posteriors] = loaded(method, what="trainer")
    return own


def trained(decided: Charter, found: Dataset, *, labels: Labels) -> Posteriors:
    """Train a campaign's model on labels as they stand."""
    often = decided.retraining
    if often.trainer is None:
        raise BadInput(f"{decided.name}: its class probabilities came along, so there is no model to train")
    posteriors = trainer(often.trainer)(found, labels, decided.rules.seed)
    if often.features is None or "features" not in posteriors.about:
        return posteriors
    return msgspec.structs.replace(posteriors, about=posteriors.about | {"features": often.features})


def make(folder: Path, decided: Charter, *, found: Dataset, posteriors: Posteriors | None, begun: Begun) -> Campaign:
    """Begin a campaign by its charter, with a first ranking; `keep` keeps what happens next too."""
    charter.write(decided, folder)
    if posteriors is not None:
        rankfiles.write(posteriors, rankfiles.place(folder, 1))
    terms = Terms(
        lease_seconds=decided.rules.hold_hours * 3600,
        panel=decided.budget.people,
        seed=decided.rules.seed,
        ids=ids_fingerprint(found.ids),
        at=begun.at,
        names=tuple(found.classes),
        purpose=decided.purpose,
        continues=begun.continues,
        hours=decided.budget.hours,
        by=begun.by,
    )
    budget = decided.budget.answers
    return Campaign(found.given, policy(decided.rules), budget=budget, posteriors=posteriors, terms=terms)


def keep(folder: Path, campaign: Campaign) -> None:
    """Make the log of a campaign that has just begun."""
    written = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(campaign.ledger.started.at))
    store.create(folder, campaign, written=written)


def head(folder: Path) -> str:
    """Return the hash of the last row of a campaign's log."""
    stored = store.reading(folder)
    try:
        return stored.head.hash
    finally:
        stored.close()


@contextmanager
def opened(folder: Path, *, clock: Clock, leases: Leases = "run on") -> Iterator[Opened]:
    """Open a campaign to work on, alone: its items, its decisions and its writer.

    A command's clock is the time of day, by which leases run on while nobody is here. A server's is one that never goes
    back, and its start renews leases.
    """
    decided = charter.read(folder)
    source = items(folder, decided)
    found = dataset(folder, decided)
    writer = Writer(
        store.opened(folder),
        lambda events: _rebuilt(folder, decided, events=events, given=found.given),
        clock=clock,
        limits=Limits(leases=leases),
    )
    try:
        yield Opened(folder, decided, source, found, writer, clock)
    finally:
        writer.close()


def looked(folder: Path) -> tuple[Ledger, list[Event]]:
    """Return the facts of a campaign and what happened, to look at while another process may write."""
    stored = store.reading(folder)
    try:
        events = [row.event for row in checked(stored.rows())]
        given = stored.given()
    finally:
        stored.close()
    ledger = Ledger(given, start_of(events, given))
    for event in events[1:]:
        ledger.apply(event)
    return ledger, events


def time_of(folder: Path, day: float) -> float:
    """Return the campaign's time at a time of day: that of its last event, and what has passed since it was written."""
    stored = store.reading(folder)
    try:
        last = next(stored.rows(after=stored.head.seq - 1))
    finally:
        stored.close()
    written = calendar.timegm(time.strptime(last.written, "%Y-%m-%dT%H:%M:%SZ"))
    return last.event.at + max(day - written, 0.0)


def cleaned_items(folder: Path, *, rule: str = "vote") -> tuple[Cleaned, Sequence[Event]]:
    """Return the items of a campaign with the label of each and what speaks for it, and the campaign's events."""
    decided = charter.read(folder)
    source = items(folder, decided)
    found = source.collection(decided.items.split)
    _, events = looked(folder)
    known = evidence(found, events=events, posteriors=in_force(folder, events), rule=rule)
    return Cleaned(found=found, evidence=known, imported=source), events


def in_force(folder: Path, events: Sequence[Event]) -> Posteriors | None:
    """Return the class probabilities of the ranking in force, mapped, or None where it has none."""
    return rankfiles.find(folder, [event for event in events if isinstance(event, Ranking)])


def _rebuilt(folder: Path, decided: Charter, *, events: Sequence[Event], given: Labels) -> Campaign:
    """Return a campaign as its log has it, with the queue of the ranking in force."""
    number = max(event.number for event in events if isinstance(event, Ranking))
    return Campaign.replay(events, given, agreed(decided, events), rankings={number: in_force(folder, events)})
