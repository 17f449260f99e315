"""Disks that fail, fill up, or cannot be written: nobody is told what is not kept, and work goes on afterwards."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from relook import store
from relook.errors import NotStored
from tests.conftest import ROOT
from tests.crashes import Players, await_ready, opened, players, survived, traced

pytestmark = pytest.mark.slow

FAILURES = {
    "full": "pwrite64:error=ENOSPC:when=30..60",
    "full for a moment": "pwrite64:error=ENOSPC:when=25",
    "fails to write": "pwrite64:error=EIO:when=40..44",
    "fails to sync": "fdatasync:error=EIO:when=4..6",
    "fails to sync once": "fdatasync:error=EIO:when=5",
}


@pytest.fixture(scope="module")
def player() -> Iterator[Players]:
    with players() as process:
        yield process


def play_on(player: Players, folder: Path, failure: str, *, fault: str = "") -> int:
    """Let a player play on a disk that fails at such calls, and return how it ended."""
    opened(folder).close()
    number = player.start(folder, seed=1, steps=20, fault=fault, waits="once it is open")
    await_ready(folder)
    with traced(number, "-o", os.devnull, "-e", f"trace={failure.partition(':')[0]}", "-e", f"inject={failure}"):
        return player.ended()


@pytest.mark.parametrize("failure", FAILURES)
def test_a_disk_that_fails_for_a_while(player: Players, tmp_path: Path, strace: str, failure: str) -> None:
    assert play_on(player, tmp_path, FAILURES[failure]) == 0
    assert survived(tmp_path) < 3


def test_a_disk_that_fails_for_good_ends_in_no_lie(player: Players, tmp_path: Path, strace: str) -> None:
    assert play_on(player, tmp_path, "pwrite64:error=ENOSPC:when=40+") == 1
    survived(tmp_path)


def test_is_seen_where_people_are_told_before_the_commit(player: Players, tmp_path: Path, strace: str) -> None:
    play_on(player, tmp_path, "pwrite64:error=ENOSPC:when=40+", fault="told before commit")
    with pytest.raises(AssertionError, match="things that people were told are lost"):
        survived(tmp_path)


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("call", ["pwrite64:error=ENOSPC", "pwrite64:error=EIO", "fdatasync:error=EIO"])
def test_a_disk_that_fails_at_any_call(player: Players, tmp_path: Path, strace: str, call: str) -> None:
    for place in range(1, 60):
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        assert play_on(player, tmp_path, f"{call}:when={place}..{place + 3}") == 0
        assert survived(tmp_path) < 3


def test_a_small_disk_fills_up_and_is_emptied(tmp_path: Path) -> None:
    program = shutil.which("unshare")
    if program is None or subprocess.run([program, "-Urm", "true"], check=False, capture_output=True).returncode:
        pytest.skip("unshare: this machine lets nobody mount a disk of his own")
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    steps = f"mount -t tmpfs -o size=800k none {tmp_path} && {sys.executable} -m tests.full_disk {tmp_path}"
    ran = subprocess.run([program, "-Urm", "sh", "-c", steps], check=False, capture_output=True, text=True, env=here)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(NotStored, match="a folder that can be written to was needed"):
        store.fill(tmp_path / "no" / "log.db", opened(tmp_path)._store.given(), rows=[])
