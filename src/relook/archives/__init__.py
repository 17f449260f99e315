"""Archives of images and tables, unpacked into a folder of their own: zip, and tar plain or packed.

All entries are looked at before the first is written. What is written are plain files and folders, each new, under
names that lead nowhere else.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from relook.archives import tars, zips
from relook.archives.entries import HEAD, LIMITS, Admitted, Entry, Limits, check_head, safe
from relook.collection import Collection
from relook.errors import BadInput
from relook.pictures import SUFFIXES, Step
from relook.sources import existing
from relook.tables import KINDS as TABLES
from relook.tree import SPLITS, is_leftover

__all__ = ["KINDS", "LIMITS", "Archive", "Limits", "is_archive", "opened"]

KINDS = {
    ".zip": "zip",
    ".tar": "tar",
    ".tar.gz": "gz",
    ".tgz": "gz",
    ".tar.bz2": "bz2",
    ".tbz": "bz2",
    ".tbz2": "bz2",
    ".tar.xz": "xz",
    ".txz": "xz",
}
"""What the names of archives end in, and how they are packed."""

_AS_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_BINARY"))
_ENTRIES_A_STEP = 256


class Archive(msgspec.Struct, frozen=True):
    """An archive that is unpacked for now: `source` is what to read, a folder or the one file that it holds."""

    path: Path
    folder: Path
    source: Path

    def carried(self, found: Collection) -> Collection:
        """Return what was read from it, with its images to be moved into the set, and its own name in place of ours."""
        parts: dict[str, object] = {
            "source": self.named(found.source),
            "facts": tuple(self.named(fact) for fact in found.facts),
        }
        if "files" in found.columns:
            root = self.source if self.source.is_dir() else self.source.parent
            files = found.items.select("files").collect()["files"].to_list()
            parts["pictures"] = _Moved(root, files)
        return msgspec.structs.replace(found, **parts)

    def named(self, text: str) -> str:
        """Return a text that tells of the archive, not of the folder it was unpacked into."""
        return text.replace(str(self.source), str(self.path)).replace(str(self.folder), str(self.path))


def is_archive(path: Path) -> bool:
    """Say by its name whether a file is an archive."""
    return _kind(path) is not None


@contextmanager
def opened(path: Path, *, beside: Path, limits: Limits = LIMITS, step: Step | None = None) -> Iterator[Archive]:
    """Unpack an archive beside the set that will be made of it, and leave nothing of that behind.

    What is refused meanwhile is told as being in the archive. `step` follows files that are unpacked.
    """
    kind = _kind(path)
    if kind is None:
        raise BadInput(f"{path}: an archive was needed ({', '.join(KINDS)}), but its name ends otherwise; rename it")
    folder = _made(beside)
    archive = Archive(path, folder, folder)
    try:
        existing(path)
        _unpack(archive, kind, limits=limits, step=step)
        archive = msgspec.structs.replace(archive, source=_source(folder))
        yield archive
    except BadInput as error:
        raise BadInput(archive.named(str(error))) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Moved(msgspec.Struct, frozen=True):
    """Unpacked images, moved to where they are to stay."""

    root: Path
    files: Sequence[Sequence[str]]

    def write(self, item: int, folder: Path) -> Sequence[str]:
        for name in self.files[item]:
            there, here = f"{folder}/{name}", f"{self.root}/{name}"
            try:
                os.rename(here, there)  # noqa: PTH104  # a Path a file costs more than the file
            except FileNotFoundError:
                # Its folder is not there yet, or an item before had the same image.
                if not Path(there).is_file():
                    Path(there).parent.mkdir(parents=True, exist_ok=True)
                    Path(here).rename(there)
        return self.files[item]


def _made(beside: Path) -> Path:
    """Make a folder of our own beside the one that is wanted."""
    folder = beside.absolute().with_name(f".{beside.name}-{os.getpid()}-unpacked")
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise BadInput(
            f"{folder.parent}: a folder to write in was needed, but it cannot be used ({error.strerror}); name another"
        ) from None
    return folder


def _kind(path: Path) -> str | None:
    name = path.name.lower()
    return next((KINDS[suffix] for suffix in KINDS if name.endswith(suffix)), None)


def _unpack(archive: Archive, kind: str, *, limits: Limits, step: Step | None) -> None:
    called = str(archive.path)
    admitted = Admitted(called, limits)
    try:
        with archive.path.open("rb", buffering=1 << 20) as file:
            for entry, _ in _entries(file, kind, called=called, limits=limits):
                admitted.add(entry)
            if not admitted.files:
                raise BadInput(f"{called}: at least one file was needed, but the archive holds none; pack it anew")
            file.seek(0)
            _write(_entries(file, kind, called=called, limits=limits), archive, step=step)
    except OSError as error:
        raise BadInput(
            f"{called}: room for what is in it was needed, but it cannot be unpacked ({error.strerror}); make room"
        ) from None


def _write(found: Iterator[tuple[Entry, Iterator[bytes]]], archive: Archive, *, step: Step | None) -> None:
    writer = _Writer(archive.folder, str(archive.path))
    number = told = 0
    for number, (entry, pieces) in enumerate(found, 1):
        writer.entry(entry, pieces)
        if step is not None and number - told == _ENTRIES_A_STEP:
            step(number - told)
            told = number
    if step is not None:
        step(number - told)


def _entries(file: BinaryIO, kind: str, *, called: str, limits: Limits) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    if kind == "zip":
        return zips.entries(file, called=called, limits=limits)
    return tars.entries(file, called=called, limits=limits, packed=kind)


class _Writer:
    """Writes entries as new files into a new folder, and so through no link."""

    def __init__(self, folder: Path, called: str) -> None:
        self._folder, self._called = str(folder), called
        self._made = {""}

    def entry(self, entry: Entry, pieces: Iterator[bytes]) -> None:
        name = safe(entry.name, called=self._called)
        above = name if entry.folder else name.rpartition("/")[0]
        if above not in self._made:
            os.makedirs(f"{self._folder}/{above}", exist_ok=True)  # noqa: PTH103
            self._made.add(above)
        if entry.folder:
            return
        head = b""
        with open(os.open(f"{self._folder}/{name}", _AS_NEW, 0o644), "wb", buffering=0) as file:  # noqa: PTH123
            for piece in pieces:
                head += piece[: HEAD - len(head)]
                file.write(piece)
        check_head(head, place=f"{self._called}, {name}")


def _source(folder: Path) -> Path:
    """Return what to read of what was unpacked: inside the one folder or file that all of it lies in."""
    there = [path for path in folder.iterdir() if not is_leftover(path.name)]
    if len(there) != 1 or there[0].suffix.lower() in SUFFIXES:
        return folder
    only = there[0]
    if only.is_file():
        return only
    inner = [path for path in only.iterdir() if not is_leftover(path.name)]
    wraps = any(path.is_dir() or path.suffix.lower() in TABLES for path in inner) and only.name.lower() not in SPLITS
    return _source(only) if wraps else folder
