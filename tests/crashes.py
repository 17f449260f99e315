"""A campaign that is killed: a program that plays one, keeps a diary of what it was told, and dies where it must.

`python -m tests.crashes` imports everything once, then forks a player for each line of its input (a JSON list of
folder, seed, steps, fault and when to wait for a tracer), and prints its number, then how it ended.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np

from relook import store
from relook.audit import audit
from relook.campaign import Campaign
from relook.errors import NotAllowed, NotStored
from relook.events import Event, Lease
from relook.rules import Policy, Terms
from relook.scores import margin
from relook.store import sqlite
from relook.types import Labels, Posteriors
from relook.writer import Action, Writer
from tests.conftest import ROOT
from tests.diaries import check_log, told_in

ITEMS, BUDGET = 40, 100_000
GIVEN = Labels(np.arange(ITEMS) % 3, 3)
POSTERIORS = Posteriors(np.random.default_rng(0).dirichlet(np.ones(3), ITEMS))
POLICY = Policy("margin", margin, returns=True)
PEOPLE = ("Ada", "Grace", "Hedy", "Rosa")


class Rankings:
    """The same posteriors whatever the number of a ranking."""

    def get(self, number: int) -> Posteriors:
        return POSTERIORS


def new_campaign(budget: int = BUDGET) -> Campaign:
    return Campaign(GIVEN, POLICY, budget=budget, posteriors=POSTERIORS, terms=Terms(lease_seconds=600.0))


def rebuilt(events: list[Event]) -> Campaign:
    return Campaign.replay(events, GIVEN, POLICY, rankings=Rankings())  # type: ignore[arg-type]


def opened(folder: Path) -> Writer:
    if not (folder / store.LOG).exists():
        store.create(folder, new_campaign(), written="2026-11-19T00:00:00Z")
    return Writer(store.opened(folder), rebuilt)


def play(folder: Path, seed: int, *, steps: int, waits: str = "") -> None:
    """Ask and answer by keys, skip, undo and rank now and then, and note in a diary what was asked and told."""
    diary = os.open(folder / "diary", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    chance = Random(seed)
    if waits == "from the start":
        await_tracer()
    one = opened(folder)
    if waits == "once it is open":
        (folder / "ready").touch()
        await_tracer()

    def do(what: Callable[..., Any], name: str) -> Any:
        key = f"{seed}-{name}"
        os.write(diary, json.dumps({"key": key}).encode() + b"\n")
        result = insist(lambda: one.do(what, key=key))
        os.write(diary, json.dumps({"key": key, "result": msgspec.to_builtins(result)}).encode() + b"\n")
        return result

    for step in range(steps):
        who = chance.choice(PEOPLE)
        lease = do(asking(who), f"ask-{step}")
        if lease is None:
            do(lambda campaign, now, who=who: taken_back(campaign, who, now), f"undo-{step}")
        elif chance.random() < 0.8:
            do(telling(lease), f"tell-{step}")
        elif chance.random() < 0.5:
            do(lambda campaign, now, lease=lease: campaign.skip(lease, now), f"skip-{step}")
        if chance.random() < 0.1:
            do(lambda campaign, now: campaign.rank(POSTERIORS, now), f"rank-{step}")
    one.close()


def insist(ask: Callable[[], Any], patience: float = 5.0) -> Any:
    """Ask again by the same key where a disk or a server fails, for so many seconds."""
    until = time.monotonic() + patience
    while True:
        try:
            return ask()
        except NotStored:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def asking(who: str | None) -> Action:
    return lambda campaign, now: campaign.ask(who, now)


def telling(lease: Lease) -> Action:
    return lambda campaign, now: campaign.tell(lease, lease.item % 3, now)


def await_tracer() -> None:
    while "TracerPid:\t0\n" in Path("/proc/self/status").read_text():
        time.sleep(0.001)


def taken_back(campaign: Campaign, who: str, now: float) -> list[Any]:
    """Undo this person's answers, as far as there are three of them."""
    try:
        return list(campaign.undo(who, 3, now))
    except NotAllowed:
        return []


def tell_before_commit(self: Writer, decided: Any) -> None:
    for asked in decided:
        asked.tell()
    time.sleep(0.002)
    _commit(self, decided)


_commit = Writer._commit


FAULTS: dict[str, Callable[[], None]] = {
    "": lambda: None,
    "told before commit": lambda: setattr(Writer, "_commit", tell_before_commit),
    "synced later": lambda: sqlite.SETTINGS.update(synchronous=1),
    "never synced": lambda: sqlite.SETTINGS.update(synchronous=0),
}
"""Guards that are taken out, one by one: a test that does not see it shows nothing."""


def survived(folder: Path) -> float:
    """Start again, with no hand's help, check everything, and return how many seconds the start took.

    They are seconds of this process: a machine that others use makes every start slow.
    """
    began = time.process_time()
    one = opened(folder)
    took = time.process_time() - began
    assert one.status.health == "green"
    one.close()
    kept = store.reading(folder)
    try:
        found = audit(kept)
        assert not found.problems, found.problems
        diary = folder / "diary"
        check_log(kept, told_in(diary.read_bytes()) if diary.exists() else ())
    finally:
        kept.close()
    return took


class Players:
    """A process that forks players."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def start(self, folder: Path, *, seed: int, steps: int, fault: str = "", waits: str = "") -> int:
        """Fork a player and return its number."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps([str(folder), seed, steps, fault, waits]) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def ended(self) -> int:
        """Return how the player ended: a status, or minus a signal."""
        return int(self._line())

    def _line(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "the players' process has ended"
        return line


CALLS = "pwrite64,fdatasync,fsync,ftruncate,unlink,rename"
"""What changes a disk."""


def killed_at(player: Players, folder: Path, *, call: int, since: str) -> int:
    """Let a player play until it is killed at its nth call that changes the disk, and return how it ended."""
    number = player.start(folder, seed=1, steps=12, waits=since)
    if since == "once it is open":
        await_ready(folder)
    inject = f"inject={CALLS}:signal=KILL:when={call}"
    with traced(number, "-o", os.devnull, "-e", f"trace={CALLS}", "-e", inject):
        return player.ended()


def await_ready(folder: Path) -> None:
    """Wait until a player has opened its campaign, so that what is traced is its work."""
    while not (folder / "ready").exists():
        time.sleep(0.001)


@contextmanager
def traced(number: int, *options: str) -> Iterator[None]:
    """Trace a process until it ends."""
    program = shutil.which("strace")
    assert program
    with subprocess.Popen([program, "-f", "-qqq", *options, "-p", str(number)], stderr=subprocess.DEVNULL):
        yield


@contextmanager
def players() -> Iterator[Players]:
    """Start a process that forks players, and end it."""
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crashes"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=here
    )
    try:
        yield Players(process)
    finally:
        process.communicate()


def _serve() -> None:
    import ctypes
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        # All that is imported at its first use is, once, for all players.
        play(Path(folder), 0, steps=3)
        opened(Path(folder)).close()
    for line in sys.stdin:
        folder, seed, steps, fault, waits = json.loads(line)
        child = os.fork()
        if not child:
            status = 1
            try:
                # Where only a parent may trace, this lets anybody.
                ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
                FAULTS[fault]()
                play(Path(folder), seed, steps=steps, waits=waits)
                status = 0
            except BaseException as error:  # noqa: BLE001
                sys.stderr.write(f"{error!r}\n")
            finally:
                os._exit(status)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
