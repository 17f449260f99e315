"""Many at once for the last answers of a budget: never one too many, never one left while work remains."""

import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import pytest

from relook import store
from relook.campaign import Campaign
from relook.errors import Busy, NotStored
from relook.events import Answer, Lease
from relook.locks import Lock
from relook.logbook import Sums, chained, entry
from relook.store.memory import Memory
from relook.writer import Action, Writer
from tests.crashes import GIVEN, PEOPLE, asking, new_campaign, rebuilt, telling
from tests.diaries import check_log
from tests.servers import Cluster

THREADS = 16


class Ticking:
    """A clock that many look at: each look takes a moment, so that leases end in the moment of their answers."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.5
        return self.now


def rush(work: Callable[[int], Any], people: int = THREADS) -> None:
    """Have so many threads do their work from the same moment on."""
    gate, failed = threading.Barrier(people), list[BaseException]()

    def run(number: int) -> None:
        gate.wait()
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(people)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


def spend(writer: Writer, chance: Random) -> Callable[[int], None]:
    """Return what each person does: take leases and answer, skip or leave them, until there is none for them."""
    choices = [chance.choices(["answer", "skip", "leave", "undo"], [6, 1, 1, 1], k=6) for _ in range(THREADS)]

    def work(number: int) -> None:
        for turn, choice in enumerate(choices[number]):
            lease = writer.do(asking(f"p{number}"), key=f"p{number}-{turn}")
            if lease is None:
                return
            if choice == "skip":
                writer.do(skipping(lease))
            elif choice != "leave":
                answer = writer.do(telling(lease), key=f"p{number}-{turn}-told")
                assert isinstance(answer, Answer)
                if choice == "undo" and answer.counted:
                    writer.do(lambda campaign, now: campaign.undo(f"p{number}", 1, now))

    return work


def skipping(lease: Lease) -> Action:
    return lambda campaign, now: campaign.skip(lease, now) if held(campaign, lease) else None


def held(campaign: Campaign, lease: Lease) -> bool:
    return lease.number in campaign.ledger.leases


def finish(writer: Writer) -> None:
    """Answer what is left, one after the other: while work remains, all of the budget can be spent."""
    status, turn = writer.status, 0
    while (lease := writer.do(asking(f"late {turn}"))) is not None:
        writer.do(telling(lease))
        turn += 1
    assert writer.status.spent + writer.status.reserved == status.budget


def race(kept: Any, seed: int) -> None:
    with closing(Writer(kept, rebuilt, clock=Ticking() if seed % 2 else time.monotonic)) as writer:
        rush(spend(writer, Random(seed)))
        assert writer.status.spent + writer.status.reserved <= writer.status.budget
        finish(writer)
        check_log(kept)


def in_memory(budget: int) -> Memory:
    made = Memory(GIVEN)
    made.append(store.beginning(new_campaign(budget), written="now"))
    return made


class TestThreads:
    def test_two_hundred_rounds(self) -> None:
        for seed in range(200):
            race(in_memory(1 + seed % 5), seed)

    @pytest.mark.nightly
    @pytest.mark.timeout(3_600)
    def test_five_thousand_rounds(self) -> None:
        for seed in range(5_000):
            race(in_memory(1 + seed % 5), seed)

    @pytest.mark.slow
    def test_on_a_disk(self, tmp_path: Path) -> None:
        for seed in range(10):
            (tmp_path / str(seed)).mkdir()
            store.create(tmp_path / str(seed), new_campaign(1 + seed % 5), written="now")
            race(store.opened(tmp_path / str(seed)), seed)

    @pytest.mark.slow
    def test_on_postgresql(self, postgres: Cluster) -> None:
        for seed in range(3):
            place = postgres.new_database()
            store.create(place, new_campaign(1 + seed % 5), written="now")
            race(store.opened(place), seed)

    def test_is_seen_where_everybody_decides_for_himself(self) -> None:
        """The control: without the one writer, many read what is left and then take it."""

        def now_and_here(self: Writer, action: Any, key: str | None = None) -> Any:
            seen = self._campaign.ledger.spent + self._campaign.ledger.reserved
            time.sleep(0.001)
            if seen < self._campaign.ledger.budget:
                self._campaign.ledger.budget += 1
                try:
                    return action(self._campaign, self._campaign.ledger.now)
                finally:
                    self._campaign.ledger.budget -= 1
            return None

        with closing(Writer(in_memory(3), rebuilt)) as writer:
            rush(lambda number: now_and_here(writer, lambda campaign, now: campaign.ask(f"p{number}", now)))
            ledger = writer._campaign.ledger
            assert ledger.spent + ledger.reserved > ledger.budget

    def test_the_schema_alone_keeps_the_budget(self, tmp_path: Path) -> None:
        """Whoever writes, with whatever program: the database sees the last answer taken once."""
        store.create(tmp_path, new_campaign(budget=3), written="now")
        taken: list[int] = []

        def take(number: int) -> None:
            with closing(sqlite3.connect(tmp_path / store.LOG, timeout=10)) as connection:
                try:
                    connection.execute("UPDATE sums SET reserved = reserved + 1")
                    connection.commit()
                    taken.append(number)
                except sqlite3.IntegrityError:
                    pass

        rush(take)
        assert len(taken) == 3

    def test_without_its_rule_it_does_not(self, tmp_path: Path) -> None:
        store.create(tmp_path, new_campaign(budget=3), written="now")
        with closing(sqlite3.connect(tmp_path / store.LOG)) as connection:
            connection.executescript(
                "ALTER TABLE sums RENAME TO kept; CREATE TABLE sums AS SELECT * FROM kept;"
                "UPDATE sums SET reserved = reserved + 4"
            )


def contend(folder: Path, who: str, start: float) -> list[int]:
    """Answer one item at a time in a process of its own, until none is left; return what was acknowledged."""
    time.sleep(max(0.0, start - time.monotonic()))
    told: list[int] = []
    while True:
        try:
            kept = store.opened(folder)
        except Busy:
            time.sleep(0.001)
            continue
        with closing(Writer(kept, rebuilt)) as writer:
            lease = writer.do(asking(who))
            if lease is None:
                return told
            writer.do(telling(lease))
            told.append(lease.number)


class TestProcesses:
    """Processes at one file: whoever holds its lock is alone, and what others read before is worth nothing."""

    def rounds(self, folder: Path, count: int) -> None:
        with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
            for seed in range(count):
                budget, place = 1 + seed % 5, folder / str(seed)
                place.mkdir()
                store.create(place, new_campaign(budget), written="now")
                start = time.monotonic() + (5 if seed == 0 else 0.01)
                told = [pool.submit(contend, place, who, start) for who in PEOPLE]
                numbers = [number for each in told for number in each.result()]
                assert sorted(numbers) == list(range(1, budget + 1))
                with closing(store.reading(place)) as kept:
                    assert kept.sums() == Sums(budget, 0, budget)
                    check_log(kept)
                shutil.rmtree(place)

    @pytest.mark.slow
    def test_forty_rounds(self, tmp_path: Path) -> None:
        self.rounds(tmp_path, 40)

    @pytest.mark.nightly
    @pytest.mark.timeout(3_600)
    def test_five_thousand_rounds(self, tmp_path: Path) -> None:
        self.rounds(tmp_path, 5_000)

    def test_is_seen_where_the_file_is_not_locked(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The control: without the lock two decide about the one answer that is left; the tables refuse the second."""
        store.create(tmp_path, new_campaign(1), written="now")
        with closing(store.opened(tmp_path)), pytest.raises(Busy):
            store.opened(tmp_path)
        monkeypatch.setattr(Lock, "take", lambda *_: None)
        with closing(store.opened(tmp_path)) as one, closing(store.opened(tmp_path)) as two:
            both = [
                chained([entry([Lease(1, 0, who, 0, 1.0, 601.0)])], kept.head, written="now")
                for who, kept in (("Ada", one), ("Bo", two))
            ]
            one.append(both[0])
            with pytest.raises(NotStored):
                two.append(both[1])


class TestWriters:
    """Several writers on one PostgreSQL database, the lock taken away: the tables let one of two go first."""

    @pytest.mark.slow
    def test_the_same_row_is_written_once(self, postgres: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        from relook.store import postgres as module

        place = postgres.new_database()
        store.create(place, new_campaign(budget=1), written="now")
        monkeypatch.setattr(module.PostgresServer, "_hold", lambda *_: None)
        outcomes: list[str] = []

        def take(number: int) -> None:
            with closing(store.opened(place)) as kept:
                rows = chained([entry([Lease(1, 0, f"p{number}", 0, 1.0, 601.0)])], kept.head, written="now")
                gate.wait()
                try:
                    kept.append(rows)
                    outcomes.append("written")
                except NotStored:
                    outcomes.append("refused")

        gate = threading.Barrier(4)
        rush(take, people=4)
        assert sorted(outcomes) == ["refused"] * 3 + ["written"]
