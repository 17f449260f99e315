"""What it costs to be sure: answers a second that are on the disk before anybody is thanked, beside the disk itself.

    python -m benchmarks.durability [--to FOLDER] [--disk FOLDER] [--seconds S]

Wall seconds: the disk is what is measured. `--disk` names a folder on it; each figure is the best of three rounds,
taken in turns, so that a machine that others use slows all of them alike.
"""

import argparse
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import record
from relook import store
from relook.audit import audit
from relook.campaign import Campaign
from relook.events import Event, Lease
from relook.policies import named
from relook.rules import Terms
from relook.types import Labels, Posteriors
from relook.writer import Action, Writer

ITEMS, CLASSES = 50_000, 10
ROUNDS = 3
THREADS = 64
COLUMNS = {"what": "what", "found": "found", "unit": "unit"}


def synced_writes(disk: Path, seconds: float) -> float:
    """Return how often a second the disk takes a page and says that it has it."""
    path = disk / "synced"
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        os.pwrite(file, bytes(4096 * 256), 0)
        os.fsync(file)

        def write(number: int) -> None:
            os.pwrite(file, b"x" * 4120, 4096 * (number % 200))
            os.fdatasync(file)

        return rate(write, seconds)
    finally:
        os.close(file)
        path.unlink()


def plain_sqlite(disk: Path, seconds: float) -> float:
    """Return how many rows a second a plain SQLite table takes, each in a commit that is synced."""
    path = disk / "plain.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE answer (id INTEGER PRIMARY KEY, item INTEGER, label INTEGER)")
        found = rate(lambda number: connection.execute("INSERT INTO answer VALUES (NULL, ?, 1)", (number,)), seconds)
    for left in disk.glob("plain.db*"):
        left.unlink()
    return found


def rate(work: Callable[[int], Any], seconds: float) -> float:
    """Return how often a second something can be done."""
    began, done = perf_counter(), 0
    while perf_counter() - began < seconds:
        work(done)
        done += 1
    return done / (perf_counter() - began)


class Played:
    """A campaign on a disk, with a writer and leases to answer."""

    def __init__(self, disk: Path) -> None:
        rng = np.random.default_rng(0)
        self.given = Labels(rng.integers(0, CLASSES, ITEMS), CLASSES)
        self.posteriors = Posteriors(rng.dirichlet(np.ones(CLASSES), ITEMS))
        self.policy = named("default")
        self.folder = Path(tempfile.mkdtemp(dir=disk))
        campaign = Campaign(self.given, self.policy, budget=10**9, posteriors=self.posteriors, terms=Terms(1e9))
        store.create(self.folder, campaign, written="2026-11-19T00:00:00Z")
        self.writer = self.opened()

    def opened(self) -> Writer:
        return Writer(store.opened(self.folder), self.rebuilt)

    def rebuilt(self, events: list[Event]) -> Campaign:
        return Campaign.replay(events, self.given, self.policy, rankings={1: self.posteriors})

    def leases(self, count: int) -> list[Lease]:
        return list(self.writer.do(lambda campaign, now: [campaign.ask(None, now) for _ in range(count)]))

    def end(self) -> None:
        self.writer.close()
        shutil.rmtree(self.folder)


def telling(lease: Lease) -> Action:
    return lambda campaign, now: campaign.tell(lease, 1, now)


def single_answers(played: Played, seconds: float) -> float:
    """Return how many answers a second one person can give, each on the disk before the next."""
    leases = played.leases(15_000)
    return rate(lambda number: played.writer.do(telling(leases[number]), key=f"{leases[number].number}"), seconds)


def together(played: Played, seconds: float) -> float:
    """Return how many answers a second many threads can give, each told only when its own answer is on the disk."""
    share = 500
    leases = played.leases(share * THREADS)
    until, done = perf_counter() + seconds, [0] * THREADS

    def work(thread: int) -> None:
        for lease in leases[thread * share : (thread + 1) * share]:
            if perf_counter() > until:
                return
            played.writer.do(telling(lease), key=f"{lease.number}")
            done[thread] += 1

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(THREADS)]
    began = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (perf_counter() - began)


def restart(played: Played) -> tuple[float, float, int]:
    """Return the seconds of a start on the log there is, those of a verification, and the log's length."""
    played.writer.close()
    began = perf_counter()
    played.writer = played.opened()
    started = perf_counter() - began
    with closing(store.reading(played.folder)) as kept:
        began = perf_counter()
        found = audit(kept)
    assert not found.problems, found.problems
    return started, perf_counter() - began, found.head.seq


def measured(disk: Path, seconds: float) -> dict[str, Any]:
    """Return the rows, and what was needed."""
    fsyncs, plain, single, many = list[float](), list[float](), list[float](), list[float]()
    for _ in range(ROUNDS):
        played = Played(disk)
        fsyncs.append(synced_writes(disk, seconds))
        single.append(single_answers(played, seconds))
        plain.append(plain_sqlite(disk, seconds))
        many.append(together(played, seconds))
        started, verified, length = restart(played)
        played.end()
    ratio = max(single) / max(fsyncs)
    rows = [
        ("pages that the disk takes and syncs", f"{max(fsyncs):,.0f}", "a second"),
        ("plain SQLite, a row a synced commit", f"{max(plain):,.0f}", "a second"),
        ("single answers, each durable before the next", f"{max(single):,.0f}", "a second"),
        ("single answers for each sync of the disk", f"{ratio:.2f}", ""),
        (f"answers of {THREADS} threads, each durable before it is told", f"{max(many):,.0f}", "a second"),
        (f"start on a log of {length:,} events", f"{started:.2f}", "seconds"),
        (f"relook log verify on {length:,} events", f"{verified:.2f}", "seconds"),
    ]
    checks = [
        check("single answers for each sync of the disk", "at least 0.5", f"{ratio:.2f}", holds=ratio >= 0.5),
        check("answers together", "at least 3,000 a second", f"{max(many):,.0f}", holds=max(many) >= 3_000),
        check("start after a crash", "under 3 seconds", f"{started:.2f}", holds=started < 3),
    ]
    return {"rows": [dict(zip(COLUMNS, row, strict=True)) for row in rows], "checks": checks}


def check(what: str, needed: str, found: str, *, holds: bool) -> dict[str, Any]:
    return {"what": what, "needed": needed, "found": found, "holds": holds}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--to", type=Path, default=Path("benchmarks/results"))
    options.add_argument("--disk", type=Path, default=Path.cwd())
    options.add_argument("--seconds", type=float, default=4.0)
    chosen = options.parse_args()
    began = perf_counter()
    found = {
        "title": "Answers that are on the disk before anybody is thanked, by the one writer on SQLite.",
        "command": f"python -m benchmarks.durability --seconds {chosen.seconds:g}",
        "machine": f"{record.machine()}; two cores shared with others",
        "commit": record.commit(),
        "seed": 0,
        **measured(chosen.disk, chosen.seconds),
    }
    found["seconds"] = round(perf_counter() - began)
    record.write(chosen.to, "durability", found=found, columns=COLUMNS)
    print(record.page("durability", found, columns=COLUMNS))
    return 0 if all(row["holds"] for row in found["checks"]) else 1


if __name__ == "__main__":
    sys.exit(main())
