"""DICOM files are read in a process of its own: one that a broken file crashes, fills or hangs costs only that file.

The process is `python -m relook.apart`. It is told what to do and tells what came of it in lines of JSON; pixels go
from it to the disk. What decoders say on their own is thrown away: it may hold names of patients.
"""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from relook.errors import BadInput, MissingExtra
from relook.pseudonyms import SiteKey
from relook.radiograph import Header, header, write

MEMORY = 3 * 2**29
"""Bytes of address space that the process may take; what libraries only reserve counts, so it fills half of that."""

SECONDS = 60
"""How long a file may take."""


class Order(msgspec.Struct, frozen=True):
    """What is to be done with a file: tell its header, or write its images under these names into a folder."""

    path: bytes
    folder: bytes = b""
    names: tuple[str, ...] = ()


class Reply(msgspec.Struct, frozen=True):
    """What came of it: a header, what was wrong with the file, or the name of an error that nobody foresaw."""

    header: Header | None = None
    refused: str = ""
    broken: str = ""


class Apart:
    """Reads DICOM files in a process that is started when it is first needed, and again after a crash."""

    def __init__(self, key: SiteKey) -> None:
        _check_installed()
        self._key = key
        self._process: subprocess.Popen[bytes] | None = None

    def header(self, path: Path) -> Header | None:
        """Return what is let in of a file, or None for a DICOMDIR."""
        return self._asked(path, Order(os.fsencode(path))).header

    def write(self, path: Path, folder: Path, *, names: Sequence[str]) -> None:
        """Write the images of a file into a folder as PNG, a name an image."""
        self._asked(path, Order(os.fsencode(path), os.fsencode(folder), tuple(names)))

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)

    def __enter__(self) -> Apart:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _asked(self, path: Path, order: Order) -> Reply:
        process = self._process or self._started()
        line = _sent(process, msgspec.json.encode(order))
        if not line.endswith(b"\n"):
            self.close()
            raise BadInput(
                f"{path}: a DICOM file was needed, but its decoder crashed, or took more than {SECONDS} s or "
                f"{MEMORY / 2**30:g} GB; leave the file out, or export it unpacked"
            )
        reply = msgspec.json.decode(line, type=Reply)
        if reply.refused:
            raise BadInput(reply.refused)
        if reply.broken:
            raise BadInput(f"{path}: a DICOM file was needed, but it is broken ({reply.broken}); export it again")
        return reply

    def _started(self) -> subprocess.Popen[bytes]:
        # -P: what lies in the folder that the user stands in is no module.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "relook.apart"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"},
        )
        weakref.finalize(self, _end, self._process)
        # Not by the command line or the environment, which others can read.
        _sent(self._process, self._key.hex.encode())
        return self._process


def _sent(process: subprocess.Popen[bytes], line: bytes) -> bytes:
    """Send a line and return the one that comes back: nothing from a process that has ended."""
    if process.stdin is None or process.stdout is None:
        return b""
    try:
        process.stdin.write(line + b"\n")
        process.stdin.flush()
        return process.stdout.readline()
    except BrokenPipeError:
        return b""


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.communicate()


def _check_installed() -> None:
    from importlib.util import find_spec

    absent = [package for package, name in (("pydicom", "pydicom"), ("python-gdcm", "gdcm")) if not find_spec(name)]
    if absent:
        raise MissingExtra(
            f"DICOM: {' and '.join(absent)} was needed, but it is not installed; pip install 'relook[dicom]'"
        )


def _serve() -> None:
    """Answer orders until there are no more; the first line is the site's key."""
    orders, replies = sys.stdin.buffer, _own_output()
    _limit()
    key = SiteKey(bytes.fromhex(orders.readline().decode("ascii")))
    replies.write(b"\n")
    replies.flush()
    with Path(os.devnull).open("wb") as nowhere:
        for line in orders:
            reply = _timed(msgspec.json.decode(line, type=Order), key, nowhere=nowhere)
            replies.write(msgspec.json.encode(reply) + b"\n")
            replies.flush()


def _own_output() -> IO[bytes]:
    """Return where replies go; libraries that write to where output usually goes write into nothing."""
    import logging
    import warnings

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    replies = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return replies


def _limit() -> None:
    """Bound the memory, and leave no image of it on the disk after a crash."""
    try:
        import resource
    except ImportError:  # there is none on Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _timed(order: Order, key: SiteKey, *, nowhere: IO[Any]) -> Reply:
    import faulthandler

    # A watch of its own ends the process, whatever a decoder is at.
    faulthandler.dump_traceback_later(SECONDS, exit=True, file=nowhere)
    try:
        return _answered(order, key)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _answered(order: Order, key: SiteKey) -> Reply:
    path = Path(os.fsdecode(order.path))
    try:
        if order.names:
            write(path, Path(os.fsdecode(order.folder)), names=order.names)
            return Reply()
        return Reply(header(path, key))
    except BadInput as error:
        return Reply(refused=str(error).encode("utf-8", "backslashreplace").decode())
    except Exception as error:  # noqa: BLE001  # decoders raise anything; its text may hold what stands in the file
        return Reply(broken=type(error).__name__)


if __name__ == "__main__":
    _serve()
