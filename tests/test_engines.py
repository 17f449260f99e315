"""Every engine gives the same results in the same order, hands on what goes wrong, and leaves nobody behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import active_children
from pathlib import Path

import pytest

from relook.engines import Engine, side_by_side
from relook.engines.processes import Processes
from relook.engines.serial import serial
from relook.errors import BadInput, RelookError
from tests.conftest import ROOT, spelled

ENGINES = [serial, Processes(1), Processes(2), Processes(5)]


def square(number: int) -> int:
    return number * number


def slow_first(number: int) -> int:
    time.sleep(0.2 if number == 0 else 0)
    return number


def refuse_odd(number: int) -> int:
    if number % 2:
        raise BadInput(f"number: an even one was needed, but {number} came; add one")
    return number


def die_at_two(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("engine", ENGINES, ids=spelled)
@pytest.mark.parametrize("function", [square, slow_first])
def test_results_come_in_the_order_of_the_jobs(engine: Engine, function: Callable[[int], int]) -> None:
    assert list(engine(function, range(7))) == [function(number) for number in range(7)]


@pytest.mark.parametrize("engine", ENGINES, ids=spelled)
def test_no_jobs_give_no_results(engine: Engine) -> None:
    assert list(engine(square, [])) == []


@pytest.mark.parametrize("engine", ENGINES, ids=spelled)
def test_what_a_job_raises_is_raised_where_its_result_is_awaited(engine: Engine) -> None:
    with pytest.raises(BadInput, match="number: an even one was needed, but 3 came; add one"):
        list(engine(refuse_odd, [0, 2, 3, 4]))


def test_a_worker_that_dies_is_told_of() -> None:
    with pytest.raises(RelookError, match="processes: job 2 was to be finished, but its worker ended with status -9"):
        list(Processes(2)(die_at_two, range(4)))


def test_results_can_be_had_one_by_one_and_left_early() -> None:
    results = Processes(2)(square, range(50))
    assert [next(results), next(results)] == [0, 1]
    assert len(active_children()) == 2
    del results
    assert active_children() == []


def test_side_by_side_picks_an_engine() -> None:
    assert side_by_side(1) is serial
    assert side_by_side(3) == Processes(3)
    with pytest.raises(BadInput, match="jobs: at least 1 at a time was needed, but 0 came"):
        side_by_side(0)


ORPHANS = """
import os, time
from pathlib import Path
from relook.engines.processes import Processes

def wait(number):
    Path(f"worker-{os.getpid()}").touch()
    time.sleep(0.3)
    return number

if __name__ == "__main__":
    list(Processes(2)(wait, range(1000)))
"""


def test_workers_end_when_nobody_is_left_to_work_for(tmp_path: Path) -> None:
    script = tmp_path / "orphans.py"
    script.write_text(ORPHANS, "utf-8")
    parent = subprocess.Popen(
        [sys.executable, str(script)], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}
    )
    _wait_until(lambda: len(list(tmp_path.glob("worker-*"))) == 2)
    workers = [int(path.name.partition("-")[2]) for path in tmp_path.glob("worker-*")]
    assert all(_is_alive(worker) for worker in workers)
    parent.kill()
    parent.wait()
    _wait_until(lambda: not any(_is_alive(worker) for worker in workers))


def _is_alive(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    try:
        # Without a parent that asks for its status a process that has ended may stay listed as a zombie.
        return stat.read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "waited for a minute in vain"
        time.sleep(0.05)
