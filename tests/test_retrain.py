"""A trainer beside a campaign: whatever becomes of it, answering goes on and the last good ranking stays."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from relook import campaigns, charter, rankfiles, retrain
from relook.campaign import Campaign
from relook.campaigns import Opened
from relook.charter import Charter
from relook.errors import BadTraining, NotAllowed
from relook.events import Answer, Checked
from relook.retrain import Limits, Running, Snapshot, State
from relook.types import Labels, Posteriors
from tests import desks
from tests.commands import Said

NOW = 1_800_000_000.0

GOOD = "p = np.full((len(labels), labels.classes), .1)\np[np.arange(len(p)), labels.majority()] = .8\n"
DONE = "return Posteriors(p)"
UNCHECKED = """class Made:
    values, in_sample, about = p[None], False, {}
    def fingerprint(self):
        from relook.types import fingerprint
        return fingerprint(self.values)
return Made()"""
CUT = "import atexit\nf = 'fix/trainer/found.npy'\natexit.register(lambda: os.truncate(f, os.path.getsize(f) - 100))\n"
OTHER = "import atexit\natexit.register(lambda: np.save('fix/trainer/found.npy', p[None, ::-1]))\n"

FAULTS = {
    "exception": ("raise RuntimeError('no luck today')", "RuntimeError: no luck today"),
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", "ended by SIGKILL"),
    "silent": ("os._exit(0)", "found.npy"),
    "status": ("os._exit(7)", "it ended with status 7 and said nothing"),
    "NaN": (GOOD + "p[3, 1] = np.nan\n" + UNCHECKED, "item 3"),
    "above one": (GOOD + "p[3, 1] = 7\n" + UNCHECKED, "rows must be probabilities"),
    "cut": (GOOD + CUT + DONE, "found.npy"),
    "another file": (GOOD + OTHER + DONE, "the file that it finished was needed"),
    "shape": (GOOD + "return Posteriors(p[:-1])", "probabilities of 100 items and 3 classes were needed, but shape"),
    "worse than random": (GOOD + "p = np.roll(p, 1, axis=1)\n" + DONE, "probabilities better than chance were needed"),
    "memory": (GOOD + "np.empty(6 << 30, np.uint8)\n" + DONE, "out of memory: it may take 4 GiB"),
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> desks.Run:
    """Run commands in a folder with a set, and a campaign `fix` whose ranker learns by heart."""
    said = desks.at(tmp_path, monkeypatch, capsys)
    own = desks.trainer(Path(), GOOD + DONE)
    assert said("new", "fix", "--data", "pets", "--answers", "90", "--refit", "5", "--selector", own).status == 0
    return said


def faulty(body: str, *, minutes: float = 1.0, gib: float = 4.0) -> None:
    """Let the trainer of the campaign be another from here on."""
    desks.trainer(Path(), body)
    decided = charter.read(Path("fix"))
    often = msgspec.structs.replace(decided.retraining, timeout_minutes=minutes, memory_gib=gib)
    charter.write(msgspec.structs.replace(decided, retraining=often), Path("fix"))


def answered(run: desks.Run, name: str = "Ada", count: int = 6) -> Said:
    """Have somebody answer some items in a table, and send it back."""
    table = f"{name}-{time.monotonic_ns()}.csv"
    assert run("next", "fix", "-n", str(count), "--for", name, "--to", table).status == 0
    desks.fill(Path(table))
    return run("answers", "fix", table)


def stands_as_it_was(run: desks.Run, said: Said, why: str) -> None:
    """Check that answers were recorded, that the ranking stayed, that the status says why, and that people go on."""
    assert said.status == 0, said.err
    assert "6 answers recorded." in said.out
    assert "The last good ranking stays." in said.out
    assert why in said.out
    ledger, _ = campaigns.looked(Path("fix"))
    assert (ledger.ranking, ledger.spent) == (1, 6)
    status = run("status", "fix").out
    assert "Ranking 1," in status
    assert "training failed once, so this ranking stays" in status
    again = answered(run, "Bo")
    assert "6 answers recorded." in again.out
    assert "time to fit" not in again.out, "the next one waits"


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_harms_nobody(run: desks.Run, fault: str) -> None:
    body, why = FAULTS[fault]
    faulty(body)
    stands_as_it_was(run, answered(run), why)


def naive(running: Running, *, late: bool) -> Posteriors:
    """Take whatever there is, as it is: no look at how the process ended, at shape, content or sense."""
    values = np.load(running.folder / "trainer" / "found.npy", allow_pickle=False)
    found = Posteriors(np.full((1, desks.ITEMS, 3), 1 / 3))
    msgspec.structs.force_setattr(found, "values", values)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["killed", "NaN", "cut", "another file", "shape", "worse than random"])
def test_without_the_judge_a_fault_is_seen(run: desks.Run, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Negative control: each fault goes through, or ends the command, where nobody judges what came of it."""
    body, why = FAULTS[fault]
    faulty(body)
    monkeypatch.setattr(retrain, "_judged", naive)
    with pytest.raises((AssertionError, ValueError, OSError, IndexError)):
        stands_as_it_was(run, answered(run), why)


@pytest.mark.slow
def test_without_a_limit_of_memory_it_takes_what_it_wants(run: desks.Run) -> None:
    """Negative control of the memory limit."""
    body, why = FAULTS["memory"]
    faulty(body, gib=64.0)
    with pytest.raises(AssertionError):
        stands_as_it_was(run, answered(run), why)


HUNG = {"asleep": "time.sleep(600)", "stopped": "os.kill(os.getpid(), signal.SIGSTOP)\n" + GOOD + DONE}


@pytest.mark.slow
@pytest.mark.parametrize("how", HUNG)
def test_a_trainer_that_hangs_is_ended(run: desks.Run, how: str) -> None:
    faulty(HUNG[how], minutes=0.05)
    stands_as_it_was(run, answered(run), "a ranking within 0.05 minutes was needed, but none came")


@pytest.fixture
def opened(run: desks.Run) -> Iterator[Opened]:
    """The campaign, opened, with answers to learn from."""
    table = Path("tasks.csv")
    assert run("next", "fix", "-n", "6", "--for", "Ada", "--to", "tasks.csv").status == 0
    desks.fill(table)
    assert run("answers", "fix", "tasks.csv", "--no-train").status == 0
    with campaigns.opened(Path("fix"), clock=lambda: NOW) as found:
        yield found


def told_next(campaign: Campaign, now: float) -> Answer | Checked:
    lease = campaign.ask("Bo", now)
    assert lease is not None
    return campaign.tell(lease, 0, now)


BUSY = "while True:\n    np.linalg.svd(np.random.default_rng(0).random((300, 300)))"


@pytest.mark.slow
def test_people_answer_while_it_trains_and_one_trains_at_a_time(opened: Opened) -> None:
    faulty(BUSY)
    running = retrain.begin(opened, now=NOW)
    assert running is not None
    try:
        assert retrain.begin(opened, now=NOW) is None
        began, pairs = time.perf_counter(), 40
        for _ in range(pairs):
            assert opened.do(told_next).counted
        assert (time.perf_counter() - began) / pairs < 0.1, "seconds an item and its answer, on the disk for good"
        assert not running.ended()
    finally:
        running.stop()
    with pytest.raises(BadTraining, match="ended by SIGKILL"):
        retrain.outcome(running)
    after = retrain.begin(opened, now=NOW)
    assert after is not None, "the lock ended with the process"
    after.stop()


@pytest.mark.slow
def test_without_the_lock_two_train_at_a_time(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control of the lock."""
    faulty(HUNG["asleep"])
    monkeypatch.setattr(retrain, "_locked", lambda own, **_: os.open(own / "lock", os.O_RDWR | os.O_CREAT))
    both = [retrain.begin(opened, now=NOW) for _ in range(2)]
    for running in both:
        assert running is not None
        running.stop()


@pytest.mark.slow
def test_one_that_hangs_after_its_starter_died_is_ended_by_the_next(opened: Opened) -> None:
    faulty(HUNG["stopped"], minutes=0.01)
    first = retrain.begin(opened, now=NOW)
    assert first is not None
    second = retrain.begin(opened, now=NOW + 7200)
    assert second is not None
    assert first.process.wait(10) == -signal.SIGKILL
    second.stop()


@pytest.mark.slow
def test_a_ranking_is_swapped_whole_and_old_files_go(opened: Opened) -> None:
    for number in range(2, 6):
        running = retrain.begin(opened, now=NOW)
        assert running is not None
        assert running.wait()
        posteriors = retrain.outcome(running)
        ranking = retrain.install(opened, running, posteriors=posteriors)
        assert (ranking.number, ranking.posteriors) == (number, posteriors.fingerprint())
        kept = rankfiles.read(rankfiles.place(opened.folder, number), fingerprint=ranking.posteriors)
        assert kept.values.shape == (1, desks.ITEMS, 3)
    left = sorted(path.name for path in (opened.folder / "rankings").iterdir())
    assert left == ["000001.npy", "000004.npy", "000005.npy"]
    state = retrain.state(opened.folder)
    assert state is not None
    assert (state.failures, state.why) == (0, None)


@pytest.mark.slow
def test_without_a_limit_of_time_it_hangs(opened: Opened) -> None:
    """Negative control of the timeout: nobody else ends it then."""
    faulty(HUNG["asleep"], minutes=0.02)
    brief = msgspec.structs.replace(opened, decided=charter.read(Path("fix")))
    running = retrain.begin(brief, now=NOW)
    assert running is not None
    with pytest.raises(subprocess.TimeoutExpired):
        running.process.wait(3 * running.limits.seconds)
    running.stop()


@pytest.mark.slow
def test_a_crash_between_the_file_and_the_event_leaves_the_ranking_before(
    run: desks.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(run, count=4)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with campaigns.opened(Path("fix"), clock=lambda: NOW) as found:
        running = retrain.begin(found, now=NOW)
        assert running is not None
        assert running.wait()
        posteriors = retrain.outcome(running)
        with monkeypatch.context() as crash:
            crash.setattr(Opened, "do", killed)
            with pytest.raises(KeyboardInterrupt):
                retrain.install(found, running, posteriors=posteriors)
    assert rankfiles.place(Path("fix"), 2).is_file()
    assert "Ranking 1," in run("status", "fix").out
    assert run("next", "fix", "-n", "1", "--for", "Bo", "--to", "b.csv").status == 0
    assert "Ranking 2 is in force" in run("retrain", "fix").out


def test_a_class_that_nobody_has_left_empties_no_ranking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    desks.made(desks.at(tmp_path, monkeypatch, capsys))
    decided = charter.read(Path("fix"))
    found = campaigns.dataset(Path("fix"), decided)
    posteriors = campaigns.trained(decided, found, labels=Labels(np.minimum(desks.GIVEN, 1), 3))
    assert np.isfinite(posteriors.values).all()
    assert posteriors.values[..., 2].max() == 0


def limits_of(seconds: float = 60.0) -> Limits:
    return Limits(seconds, 4 << 30)


def test_it_is_time_after_so_many_answers_or_minutes(opened: Opened) -> None:
    every = opened.decided.retraining

    def due(decided: Charter, *, now: float = NOW) -> str | None:
        return retrain.due(msgspec.structs.replace(opened, decided=decided), now=now)

    def often(**changed: object) -> Charter:
        retraining = msgspec.structs.replace(every, **changed)
        return msgspec.structs.replace(opened.decided, retraining=retraining)

    assert due(often()) == "6 answers since the last ranking"
    assert due(often(answers=7)) is None
    started = opened.campaign.ledger.started.at
    assert due(often(answers=7, minutes=10.0), now=started + 599) is None
    assert due(often(answers=7, minutes=10.0), now=started + 601) == ("6 answers and 10 minutes since the last ranking")
    assert due(often(trainer=None)) is None


def test_after_failures_it_waits_longer_and_longer() -> None:
    waits = [State(at=100.0, failures=failures).not_before - 100 for failures in range(9)]
    assert waits == [0, 60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_a_snapshot_holds_the_answers_alone(tmp_path: Path) -> None:
    given = Labels(np.array([0, 1, 2]), 3)
    labels = Labels(given.given, 3, np.array([[0, 2, 0], [0, 0, 0], [1, 0, 0]]))
    retrain._write_snapshot(Snapshot(labels, 3), tmp_path / "s.npz")
    found = retrain.read_snapshot(tmp_path / "s.npz", given)
    np.testing.assert_array_equal(found.counts, labels.counts)
    retrain._write_snapshot(Snapshot(given, 0), tmp_path / "s.npz")
    np.testing.assert_array_equal(retrain.read_snapshot(tmp_path / "s.npz", given).counts, given.counts)


def test_probabilities_that_came_along_are_not_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = desks.at(tmp_path, monkeypatch, capsys)
    values = np.full((desks.ITEMS, 3), 0.1) + 0.7 * np.eye(3)[desks.TRUE]
    np.savez("p.npz", probabilities=values, ids=desks.IDS, classes=desks.CLASSES)
    words = ("new", "fix", "--data", "pets", "--answers", "90", "--probabilities", "p.npz")
    assert run(*words).status == 0
    said = run("retrain", "fix")
    assert (said.status, "its class probabilities came along and stay as they are" in said.err) == (2, True)
    with campaigns.opened(Path("fix"), clock=lambda: NOW) as found, pytest.raises(NotAllowed, match="a model to train"):
        retrain.begin(found, now=NOW)
