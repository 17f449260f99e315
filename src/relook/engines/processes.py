"""Jobs side by side, in processes of their own on this machine."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import connection, get_context
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

import msgspec

from relook.errors import RelookError

Job = TypeVar("Job")
Result = TypeVar("Result")


class Processes(msgspec.Struct, frozen=True):
    """Runs as many jobs at a time as there are workers; the results come in the order of the jobs.

    The function is sent to each worker once, so it may carry large arrays. It must be one that another process can
    import: defined in a module, not in a session or inside another function.
    """

    workers: int = 2

    def __call__(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
        """Yield the result of each job; what a job raises is raised here."""
        workers: list[_Worker] = []
        try:
            workers.extend(_Worker(function) for _ in range(min(self.workers, len(jobs))))
            yield from _in_order(workers, jobs)
        finally:
            for worker in workers:
                worker.stop()


class _Worker:
    """One process, the pipe to it, and the number of the job it is at."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        # Started afresh, not forked: a fork copies locks that other threads hold, and pipes whose closing tells a
        # worker that there is nobody left to work for.
        context = get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_work, args=(there, function), daemon=True)
        self.process.start()
        there.close()
        self.at = -1

    def give(self, number: int, job: Any) -> None:
        self.at = number
        # A worker that has died is told of when its result is awaited.
        with suppress(BrokenPipeError):
            self.pipe.send(job)

    def take(self) -> Any:
        try:
            finished, result = self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            raise RelookError(
                f"processes: job {self.at} was to be finished, but its worker ended with status "
                f"{self.process.exitcode}; is memory short? take fewer jobs at a time"
            ) from None
        if not finished:
            raise result
        return result

    def stop(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()
        self.process.close()


def _in_order(workers: Sequence[_Worker], jobs: Sequence[Any]) -> Iterator[Any]:
    waiting = deque(enumerate(jobs))
    finished: dict[int, Any] = {}
    busy = {worker.pipe: worker for worker in workers}
    for worker in workers:
        worker.give(*waiting.popleft())
    following = 0
    while following < len(jobs):
        for pipe in connection.wait(list(busy)):
            worker = busy[pipe]  # type: ignore[index]  # a pipe of ours comes back as the object that went in
            finished[worker.at] = worker.take()
            if waiting:
                worker.give(*waiting.popleft())
            else:
                del busy[worker.pipe]
        while following in finished:
            yield finished.pop(following)
            following += 1


def _work(pipe: connection.Connection, function: Callable[[Any], Any]) -> None:
    """Do jobs until nobody sends any."""
    # An interrupt from the keyboard reaches the whole group; the one who started this process decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        try:
            answer: tuple[bool, Any] = True, function(job)
        except Exception as error:  # noqa: BLE001  # it is raised again where the results are awaited
            answer = False, error
        pipe.send(answer)
