"""What Python is made to run while something is read: events by which code that hides in a file shows itself."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

RUNNING = ("pickle.find_class", "exec", "os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect")

_listening: list[list[str]] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _listening and event in RUNNING and not _is_of_module(arguments[0]):
        _listening[-1].append(event)


def _is_of_module(ran: object) -> bool:
    """Say whether what is run is a module that lies on the disk: whatever is read first may import its reader."""
    return isinstance(ran, CodeType) and Path(ran.co_filename).is_file()


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
