"""What people were told outlives a killed process and a lost power supply; each guard that sees to it is missed."""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from relook.errors import RelookError
from tests.crashes import Players, killed_at, opened, players, survived, traced
from tests.powerloss import TRACED, Disk, calls

SOON = 3.0
"""Seconds that a start after a crash may take."""


@pytest.fixture(scope="module")
def player() -> Iterator[Players]:
    with players() as process:
        yield process


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A campaign's folder, in memory where there is such a disk: a kill leaves what the system holds."""
    made = tmp_path / "campaign"
    made.mkdir()
    return made


def kill_at_random(player: Players, folder: Path, *, times: int, fault: str = "") -> int:
    """Kill a player so often, each time somewhere else, and check what is left; return how many were at work."""
    chance, killed = Random(0), 0
    opened(folder).close()
    for seed in range(times):
        number = player.start(folder, seed=seed, steps=1_000, fault=fault)
        time.sleep(chance.uniform(0.0, 0.15))
        os.kill(number, signal.SIGKILL)
        killed += player.ended() == -signal.SIGKILL
        assert survived(folder) < SOON
    return killed


class TestKilled:
    @pytest.mark.slow
    def test_at_a_hundred_instants(self, player: Players, folder: Path) -> None:
        assert kill_at_random(player, folder, times=100) == 100

    @pytest.mark.nightly
    @pytest.mark.timeout(3_600)
    def test_at_a_thousand_instants(self, player: Players, folder: Path) -> None:
        assert kill_at_random(player, folder, times=1_000) == 1_000

    @pytest.mark.slow
    def test_is_seen_where_people_are_told_before_the_commit(self, player: Players, folder: Path) -> None:
        with pytest.raises(AssertionError, match="things that people were told are lost"):
            kill_at_random(player, folder, times=50, fault="told before commit")


def kill_at_calls(player: Players, folder: Path, points: range, *, since: str) -> int:
    """Kill a player at such calls that change the disk, one by one, until it makes no more; return how many it made."""
    begun = folder.with_name("begun")
    begun.mkdir()
    if since != "creation":
        opened(begun).close()
    for call in points:
        shutil.rmtree(folder)
        shutil.copytree(begun, folder)
        ended = killed_at(player, folder, call=call, since="once it is open" if since == "work" else "from the start")
        if ended == 0:
            assert call > points.start
            return call
        assert ended == -signal.SIGKILL
        assert survived(folder) < SOON
    return points.stop


@pytest.mark.slow
@pytest.mark.parametrize(("since", "points"), [("creation", range(2, 60, 12)), ("work", range(3, 150, 14))])
def test_killed_at_calls_that_change_the_disk(
    player: Players, folder: Path, strace: str, since: str, points: range
) -> None:
    kill_at_calls(player, folder, points, since=since)


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("since", ["creation", "opening", "work"])
def test_killed_at_every_call_that_changes_the_disk(player: Players, folder: Path, strace: str, since: str) -> None:
    assert kill_at_calls(player, folder, range(1, 2_000), since=since) < 2_000


def lose_power(player: Players, folder: Path, *, states: int, fault: str = "") -> list[str]:
    """Let a player play once, then check so many states that its disk may be left in; return what is wrong."""
    begun, trace = folder.with_name("begun"), folder.with_name("trace")
    opened(folder).close()
    shutil.copytree(folder, begun)
    number = player.start(folder, seed=1, steps=25, fault=fault, waits="from the start")
    with traced(number, "-o", str(trace), "-y", "-xx", "-s", "1000000", "-e", f"trace={TRACED}"):
        assert player.ended() == 0
    made, chance, wrong = calls(trace, folder), Random(0), list[str]()
    assert len(made) > 300
    for _ in range(states):
        shutil.rmtree(folder)
        shutil.copytree(begun, folder)
        disk = Disk(folder)
        for call in made[: chance.randrange(len(made) + 1)]:
            disk.take(call)
        shutil.rmtree(folder)
        folder.mkdir()
        disk.left(folder, chance)
        wrong += _wrong(folder)
    return wrong


def _wrong(folder: Path) -> list[str]:
    try:
        took = survived(folder)
    except (AssertionError, RelookError) as error:
        return [repr(error)]
    return [] if took < SOON else [f"it took {took:.1f} seconds"]


class TestPowerLoss:
    @pytest.mark.slow
    def test_loses_nothing(self, player: Players, folder: Path, strace: str) -> None:
        assert lose_power(player, folder, states=60) == []

    @pytest.mark.nightly
    @pytest.mark.timeout(3_600)
    def test_loses_nothing_in_two_thousand_states(self, player: Players, folder: Path, strace: str) -> None:
        assert lose_power(player, folder, states=2_000) == []

    @pytest.mark.slow
    @pytest.mark.parametrize("fault", ["synced later", "never synced"])
    def test_is_seen_where_commits_are_not_synced(self, player: Players, folder: Path, strace: str, fault: str) -> None:
        assert lose_power(player, folder, states=15, fault=fault)
