"""What Python is made to run while something is read: events by which code that hides in a file shows itself."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

RUNNING = ("pickle.find_class", "exec", "os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect")

_listening: list[list[str]] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _listening and event in RUNNING:
        _listening[-1].append(event)


sys.addaudithook(_hook)


@contextmanager
def watched() -> Iterator[list[str]]:
    """Yield a list that takes down every event of something being run."""
    seen: list[str] = []
    _listening.append(seen)
    try:
        yield seen
    finally:
        _listening.remove(seen)
