"""Every event, in any order, kept in a store after each step: what it keeps is what the plain model says."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from relook import store
from relook.audit import audit
from relook.errors import NotStored
from relook.events import Event
from relook.logbook import Effect, Store, Sums, chained, effect, entry
from relook.store.memory import Memory
from relook.types import Labels
from tests.laws import FAULT, LAW
from tests.model import Model
from tests.servers import Cluster
from tests.test_campaign_stateful import Machine


class Stored(Machine):
    """The machine, with each step's events in a store, and every restart from what the store holds."""

    made: Callable[[Labels], Store]

    def alike(self) -> None:
        super().alike()
        if not hasattr(self, "kept"):
            self.kept, self.seen = type(self).made(self.given), 0
        new = self.campaign.events[self.seen :]
        if new:
            self.kept.append(chained([entry(new)], self.kept.head, written="now"))
            self.seen += len(new)
        model = self.model
        assert self.kept.sums() == Sums(model.paid, len(model.leases), model.budget)

    def restart(self, n: int) -> None:
        if hasattr(self, "kept"):
            self.kept.reopen()
            assert [row.event for row in self.kept.rows()] == self.campaign.events
        super().restart(n)

    def teardown(self) -> None:
        try:
            super().teardown()
            if hasattr(self, "kept"):
                found = audit(self.kept)
                assert (found.problems, found.head) == ((), self.kept.head)
        finally:
            if hasattr(self, "kept"):
                self.kept.close()


def follow(made: Callable[[Labels], Store], how: settings) -> int:
    """Let the machine run on stores that are made so, and return how many steps it made."""
    Stored.steps, Stored.made = 0, staticmethod(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("relook.checking.APART", Model.apart)
        run_state_machine_as_test(Stored, settings=how)
    return Stored.steps


def on_a_disk(folder: Path) -> Callable[[Labels], Store]:
    def made(given: Labels) -> Store:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        store.fill(folder, given, rows=[])
        return store.opened(folder)

    return made


def on_a_server(postgres: Cluster) -> Callable[[Labels], Store]:
    def made(given: Labels) -> Store:
        place = postgres.new_database()
        store.fill(place, given, rows=[])
        return store.opened(place)

    return made


def steps(examples: int) -> settings:
    return settings(LAW, max_examples=examples, stateful_step_count=100)


def test_two_thousand_steps_in_memory() -> None:
    assert follow(Memory, steps(30)) >= 2_000


@pytest.mark.slow
def test_a_thousand_steps_on_a_disk(tmp_path: Path) -> None:
    assert follow(on_a_disk(tmp_path / "x"), steps(20)) >= 1_000


@pytest.mark.nightly
@pytest.mark.timeout(7_200)
def test_a_hundred_thousand_steps_on_a_disk(tmp_path: Path) -> None:
    assert follow(on_a_disk(tmp_path / "x"), steps(1_500)) >= 100_000


@pytest.mark.nightly
@pytest.mark.timeout(7_200)
def test_twenty_thousand_steps_on_postgresql(postgres: Cluster) -> None:
    assert follow(on_a_server(postgres), steps(300)) >= 20_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["counted", "freed"])
def test_what_a_database_forgets_is_seen(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(event: Event) -> Effect:
        change = effect(event)
        return change if getattr(change, name) is None else Effect(change.spent, change.reserved, change.budget)

    monkeypatch.setattr("relook.store.tables.effect", forget)
    with pytest.raises((AssertionError, NotStored)):
        follow(on_a_disk(tmp_path / "x"), settings(FAULT, max_examples=30, stateful_step_count=50))


def test_the_sums_of_a_store_are_looked_at() -> None:
    class Forgetful(Memory):
        def sums(self) -> Sums:
            return Sums()

    with pytest.raises(AssertionError):
        follow(Forgetful, settings(FAULT, max_examples=20, stateful_step_count=20))
