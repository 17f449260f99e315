"""What it costs to be sure: answers a second that are on the disk before anybody is thanked, beside the disk itself.

    python -m benchmarks.durability [--to FOLDER] [--disk FOLDER] [--seconds S]

Wall seconds: the disk is what is measured. `--disk` names a folder on it; what is compared is measured in
turns of a fifth of a second, and medians are shown: a machine that others use slows all of them alike.
"""

import argparse
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
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
from relook.types import FloatArray, Labels, Posteriors
from relook.writer import Action, Writer

ITEMS, CLASSES = 50_000, 10
ROUNDS, SLICE = 3, 0.2
THREADS = 64
Work = Callable[[int], Any]
"""Something that is done over and over; it is told how often it was."""

COLUMNS = {"what": "what", "found": "found", "unit": "unit"}


@contextmanager
def synced_writes(disk: Path) -> Iterator[Work]:
    """Write a page over an old one, and have the disk say that it has it."""
    with _scratch(disk) as file:
        os.pwrite(file, bytes(4096 * 256), 0)
        os.fsync(file)

        def write(number: int) -> None:
            os.pwrite(file, b"x" * 4096, 4096 * (number % 200))
            os.fdatasync(file)

        yield write


@contextmanager
def synced_appends(disk: Path) -> Iterator[Work]:
    """Write a page to the end of a file, as any log must, and have the disk say that it has it."""
    with _scratch(disk) as file:

        def write(_: int) -> None:
            os.write(file, b"x" * 4096)
            os.fdatasync(file)

        yield write


@contextmanager
def _scratch(disk: Path) -> Iterator[int]:
    number, name = tempfile.mkstemp(dir=disk)
    try:
        yield number
    finally:
        os.close(number)
        Path(name).unlink()


@contextmanager
def plain_sqlite(disk: Path) -> Iterator[Work]:
    """Write a row to a plain SQLite table, in a commit that is synced."""
    folder = Path(tempfile.mkdtemp(dir=disk))
    with closing(sqlite3.connect(folder / "plain.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE answer (id INTEGER PRIMARY KEY, item INTEGER, label INTEGER)")
        yield lambda number: connection.execute("INSERT INTO answer VALUES (NULL, ?, 1)", (number,))
    shutil.rmtree(folder)


def rate(work: Work, seconds: float) -> float:
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


@contextmanager
def single_answers(played: Played) -> Iterator[Work]:
    """Answer as one person, each answer on the disk before the next."""
    leases = iter(played.leases(15_000))

    def answer(_: int) -> None:
        lease = next(leases)
        played.writer.do(telling(lease), key=f"{lease.number}")

    yield answer


def in_turns(played: Played, disk: Path, seconds: float) -> FloatArray:
    """Return how often a second each can be done, a row a turn: what slows one of them slows the others."""
    with ExitStack() as stack:
        works = [
            stack.enter_context(work)
            for work in (synced_writes(disk), synced_appends(disk), plain_sqlite(disk), single_answers(played))
        ]
        return np.array([[rate(work, SLICE) for work in works] for _ in range(int(seconds / SLICE) + 1)])


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
    turns, many = list[FloatArray](), list[float]()
    for _ in range(ROUNDS):
        played = Played(disk)
        turns.append(in_turns(played, disk, seconds))
        many.append(together(played, seconds))
        started, verified, length = restart(played)
        played.end()
    found = np.concatenate(turns)
    writes, appends, plain, single = np.median(found, 0)
    ratio, of_appends, of_plain = (float(np.median(found[:, 3] / found[:, place])) for place in range(3))
    rows = [
        ("pages that the disk takes over old ones and syncs", f"{writes:,.0f}", "a second"),
        ("pages that the disk appends to a file and syncs", f"{appends:,.0f}", "a second"),
        ("plain SQLite, a row a synced commit", f"{plain:,.0f}", "a second"),
        ("single answers, each durable before the next", f"{single:,.0f}", "a second"),
        ("single answers for each page over an old one", f"{ratio:.2f}", ""),
        ("single answers for each appended page", f"{of_appends:.2f}", ""),
        ("single answers for each commit of plain SQLite", f"{of_plain:.2f}", ""),
        (f"answers of {THREADS} threads, each durable before it is told", f"{max(many):,.0f}", "a second"),
        (f"start on a log of {length:,} events", f"{started:.2f}", "seconds"),
        (f"relook log verify on {length:,} events", f"{verified:.2f}", "seconds"),
    ]
    checks = [
        check("single answers for each page over an old one", "at least 0.5", f"{ratio:.2f}", holds=ratio >= 0.5),
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
