"""A model trained beside a campaign, in a process of its own that can do answering no harm.

The process gets a snapshot of the labels and writes class probabilities, and that is all: it opens no log. Whoever owns
the campaign judges what it wrote and ranks by it, or keeps the ranking there is. One process trains at a time, because
it holds a lock that ends with it. It may take so much time and memory; after a failure the next one waits, longer after
each.

`python -m relook.retrain FOLDER` is the process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from relook import campaigns, charter, npfiles, rankfiles
from relook.campaigns import Opened
from relook.errors import BadTraining, NotAllowed, RelookError
from relook.events import Ranking
from relook.predictions import predictions
from relook.progress import answers_since
from relook.sources import counted
from relook.types import Labels, Posteriors
from relook.whole import drafted, synced

FOLDER = "trainer"
"""The folder, in a campaign's own, of what the process gets and leaves."""

SNAPSHOT, FOUND, ABOUT, OUTPUT, STATE, LOCK = (
    "snapshot.npz",
    "found.npy",
    "found.json",
    "output.txt",
    "state.json",
    "lock",
)

_FIRST_WAIT, _LONGEST_WAIT = 60.0, 3600.0
_GRACE = 30.0
_ERRORS = 2.0
"""Probabilities must agree with the labels better than chance does by so many standard deviations."""


class Limits(msgspec.Struct, frozen=True):
    """What training may take."""

    seconds: float
    bytes: int


class State(msgspec.Struct, frozen=True):
    """How the trainer is: when the last one began, how long it took, and why it failed, if it did."""

    at: float
    seconds: float = 0.0
    answers: int = 0
    failures: int = 0
    why: str | None = None

    @property
    def not_before(self) -> float:
        """When the next may begin by itself."""
        if not self.failures:
            return self.at
        return self.at + min(_FIRST_WAIT * 2 ** (self.failures - 1), _LONGEST_WAIT)


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """What is learnt from: the labels as they stand, after so many answers."""

    labels: Labels
    answers: int


class Said(msgspec.Struct, frozen=True):
    """What the process says of the class probabilities that it found: what they are known by, and what made them."""

    fingerprint: str
    in_sample: bool
    about: dict[str, Any]


class Running(msgspec.Struct, frozen=True, eq=False):
    """A process that trains; it `began` at this time of the campaign, `since` by a clock that never goes back."""

    folder: Path
    process: subprocess.Popen[bytes]
    snapshot: Snapshot
    limits: Limits
    began: float
    since: float

    @property
    def seconds(self) -> float:
        """How long ago it began."""
        return time.monotonic() - self.since

    def ended(self) -> bool:
        """Say whether it has ended."""
        return self.process.poll() is not None

    def wait(self) -> bool:
        """Wait until it ends, or end it when its time is over; False: it was ended."""
        try:
            self.process.wait(self.limits.seconds)
        except subprocess.TimeoutExpired:
            self.stop()
            return False
        return True

    def stop(self) -> None:
        """End it, and whatever it started."""
        _kill(self.process.pid)
        self.process.wait()


# The owner's side.


def due(found: Opened, *, now: float) -> str | None:
    """Say why it is time to train, or return None: nothing to learn or to ask, too early, or waiting."""
    often, campaign = found.decided.retraining, found.campaign
    before = state(found.folder)
    since = answers_since(campaign.ledger)
    done = campaign.ledger.closed or not campaign.ledger.left
    if often.trainer is None or done or not since or (before and now < before.not_before):
        return None
    if since >= often.answers:
        return f"{counted(since, 'answer')} since the last ranking"
    last = before.at if before else campaign.ledger.started.at
    if often.minutes is not None and now - last >= often.minutes * 60:
        return f"{counted(since, 'answer')} and {often.minutes:g} minutes since the last ranking"
    return None


def begin(found: Opened, *, now: float) -> Running | None:
    """Start to train on the labels as they stand, or return None where a process is at it already."""
    often, campaign = found.decided.retraining, found.campaign
    if often.trainer is None:
        raise NotAllowed(
            f"{found.folder}: a model to train was needed, but its class probabilities came along and stay as they are"
        )
    snapshot = Snapshot(campaign.labels(), campaign.spent)
    limits = Limits(often.timeout_minutes * 60, int(often.memory_gib * 2**30))
    return start(found.folder, snapshot, limits=limits, now=now)


def install(found: Opened, running: Running, *, posteriors: Posteriors) -> Ranking:
    """Rank by what was found, and remove the files of old rankings."""
    number = found.campaign.ledger.ranking + 1
    target = rankfiles.place(found.folder, number)
    target.parent.mkdir(exist_ok=True)
    # The file has its name before the log tells of it, so no event ever names one that is not there.
    (running.folder / FOLDER / FOUND).replace(target)
    ranking: Ranking = found.do(lambda campaign, now: campaign.rank(posteriors, now))
    rankfiles.discard(found.folder, keep=found.decided.retraining.keep)
    return ranking


def state(folder: Path) -> State | None:
    """Return how the last training went, or None where there was none."""
    try:
        return msgspec.json.decode((folder / FOLDER / STATE).read_bytes(), type=State)
    except (OSError, msgspec.MsgspecError):
        return None


def start(folder: Path, snapshot: Snapshot, *, limits: Limits, now: float) -> Running | None:
    """Start the process that trains, or return None where one is at it already."""
    own = folder / FOLDER
    own.mkdir(exist_ok=True)
    lock = _locked(own, now=now)
    if lock is None:
        return None
    try:
        for name in (FOUND, ABOUT):
            (own / name).unlink(missing_ok=True)
        _write_snapshot(snapshot, own / SNAPSHOT)
        with (own / OUTPUT).open("wb") as said:
            process = subprocess.Popen(  # noqa: S603  # our own program, on a folder of ours
                [
                    sys.executable,
                    "-m",
                    "relook.retrain",
                    str(folder.absolute()),
                    str(limits.seconds),
                    str(limits.bytes),
                ],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                # It holds the lock by this file as long as it lives, however long we do.
                pass_fds=(lock,),
                start_new_session=True,
            )
        os.pwrite(lock, f"{process.pid} {now + limits.seconds + _GRACE:.0f}\n".encode(), 0)
    finally:
        os.close(lock)
    return Running(folder, process, snapshot, limits, began=now, since=time.monotonic())


def outcome(running: Running) -> Posteriors:
    """Return what a process found once it has ended, or say why it must not rank; either way the state is kept."""
    before, why = state(running.folder), None
    try:
        return _judged(running, late=running.seconds >= running.limits.seconds)
    except (RelookError, OSError) as error:
        why = str(error)
        raise BadTraining(why) from None
    finally:
        failures = 0 if why is None else (0 if before is None else before.failures) + 1
        _write_state(State(running.began, running.seconds, running.snapshot.answers, failures, why), running.folder)


def _judged(running: Running, *, late: bool) -> Posteriors:
    own, status = running.folder / FOLDER, running.process.returncode
    if late:
        minutes = running.limits.seconds / 60
        raise BadTraining(f"trainer: a ranking within {minutes:g} minutes was needed, but none came; it was ended")
    if status != 0:
        raise BadTraining(f"trainer: a ranking was needed, but {_ending(own, status)}; see {own / OUTPUT}")
    labels = running.snapshot.labels
    found = npfiles.single(own / FOUND).array()
    if found.ndim != 3 or found.shape[1:] != (len(labels), labels.classes):
        raise BadTraining(
            f"trainer: probabilities of {len(labels)} items and {labels.classes} classes were needed, but shape "
            f"{found.shape} came; check the trainer"
        )
    said = msgspec.json.decode((own / ABOUT).read_bytes(), type=Said)
    posteriors = Posteriors(found, said.in_sample, said.about)
    if posteriors.fingerprint() != said.fingerprint:
        raise BadTraining("trainer: the file that it finished was needed, but another came; was it cut?")
    seen = predictions(labels, posteriors)
    agreement, chance = seen.agreement(), seen.chance()
    if agreement <= chance + _ERRORS * seen.chance_error():
        raise BadTraining(
            f"trainer: probabilities better than chance were needed, but they agree with {agreement:.1%} of the labels "
            f"and chance with {chance:.1%}; what it learns from cannot tell the classes"
        )
    return posteriors


def _ending(own: Path, status: int) -> str:
    """Say how a process ended that did not finish."""
    if status < 0:
        return f"it was ended by {signal.Signals(-status).name}"
    lines = [line for line in (own / OUTPUT).read_text("utf-8", "replace").splitlines() if line.strip()]
    return f"it stopped: {lines[-1]}" if lines else f"it ended with status {status} and said nothing"


def _locked(own: Path, *, now: float) -> int | None:
    """Return a file whose lock we hold, or None where another process trains; one whose time is over is ended."""
    import fcntl

    lock = os.open(own / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    for _ in range(2):
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        holder, _, until = os.pread(lock, 100, 0).decode("ascii", "replace").strip().partition(" ")
        if not (holder.isdigit() and until.isdigit() and now > float(until)):
            break
        # Whoever started it is gone, and it hangs: a process that is stopped does not hear its own alarm.
        _kill(int(holder))
        _wait_for(lock, seconds=5.0)
    os.close(lock)
    return None


def _wait_for(lock: int, *, seconds: float) -> None:
    import fcntl

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(0.02)


def _kill(pid: int) -> None:
    """End a process and all that it started: it leads a session of its own."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _write_state(found: State, folder: Path) -> None:
    with drafted(folder / FOLDER / STATE) as draft:
        draft.write_bytes(msgspec.json.encode(found))


def _write_snapshot(snapshot: Snapshot, path: Path) -> None:
    """Write labels as they stand: the answers alone, for the given labels are the set's."""
    counts = snapshot.labels.answers
    items, classes = (np.zeros(0, np.int64),) * 2 if counts is None else np.nonzero(counts)
    times = np.zeros(0, np.int32) if counts is None else counts[items, classes]
    with drafted(path) as draft, draft.open("wb") as file:
        np.savez(file, items=items, classes=classes, counts=times)


# The process's side.


def read_snapshot(path: Path, given: Labels) -> Labels:
    """Return the labels that a snapshot and the given ones make."""
    with np.load(path, allow_pickle=False) as stored:
        counts = np.zeros((len(given), given.classes), np.int32)
        counts[stored["items"], stored["classes"]] = stored["counts"]
    return Labels(given.given, given.classes, counts, given.came_with)


def limit(limits: Limits) -> None:
    """Let this process take so much memory and time, and go last on the processor."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted = limits.bytes if most == resource.RLIM_INFINITY else min(limits.bytes, most)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, most))
    # Whoever started us ends us when our time is over; should they be gone, this does.
    signal.setitimer(signal.ITIMER_REAL, limits.seconds + _GRACE / 2)
    os.nice(10)


def leave(posteriors: Posteriors, folder: Path) -> None:
    """Write what was found, and then what it is known by."""
    own = folder / FOLDER
    rankfiles.write(posteriors, own / FOUND)
    said = Said(posteriors.fingerprint(), posteriors.in_sample, posteriors.about)
    with drafted(own / ABOUT) as draft:
        draft.write_bytes(msgspec.json.encode(said))
        synced(draft)


def train(folder: Path, trained: Callable[[Labels], Posteriors], *, given: Labels) -> None:
    """Train on a folder's snapshot and leave what was found."""
    leave(trained(read_snapshot(folder / FOLDER / SNAPSHOT, given)), folder)


def main(words: list[str]) -> int:
    """Train as a process, and say what went wrong in one line."""
    folder, seconds, size = Path(words[0]), float(words[1]), int(words[2])
    try:
        limit(Limits(seconds, size))
        decided = charter.read(folder)
        found = campaigns.dataset(folder, decided)
        train(folder, lambda labels: campaigns.trained(decided, found, labels=labels), given=found.given)
    except MemoryError:
        raise SystemExit(f"out of memory: it may take {size / 2**30:g} GiB, as campaign.toml says") from None
    except RelookError as error:
        raise SystemExit(str(error)) from None
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
