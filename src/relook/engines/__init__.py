"""Engines: ways to run many jobs, each called as `engine(function, jobs)` and giving the results in the jobs' order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from relook.engines.processes import Processes
from relook.engines.serial import serial
from relook.errors import BadInput

Job = TypeVar("Job")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs a function on every job; the results come in the order of the jobs, whatever ran when."""

    def __call__(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
        """Yield the result of each job."""
        ...


def side_by_side(jobs: int) -> Engine:
    """Return the engine that runs so many jobs at a time: in this process for one, else in processes of their own.

    >>> side_by_side(1) is serial, side_by_side(4)
    (True, Processes(workers=4))
    """
    if jobs < 1:
        raise BadInput(f"jobs: at least 1 at a time was needed, but {jobs} came; take as many as there are cores")
    return serial if jobs == 1 else Processes(jobs)
