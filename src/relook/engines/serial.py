"""One job after another, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


def serial(function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
    """Yield the function's result for each job.

    >>> list(serial(abs, [-1, 2]))
    [1, 2]
    """
    yield from map(function, jobs)
