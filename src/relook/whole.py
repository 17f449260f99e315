"""Files and folders that appear whole or not at all, beside a note of what made them, and never over anybody's own.

The note lies next to what it is about, so that no reader of that format trips over it: `labels.csv` has
`labels.csv.about.json`. By the note, what is there is known again as ours.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from relook.errors import BadInput

ABOUT = ".about.json"
"""What is added to the name of a file or folder for the note about it."""

Over = Literal["own", "any"]
"""What may be written over: what we wrote and nobody changed since, or any file, and a folder that we wrote."""

_BLOCK = 1 << 20


def about(target: Path) -> Path:
    """Return where the note about a file or folder lies.

    >>> about(Path("out/labels.csv")).as_posix()
    'out/labels.csv.about.json'
    """
    return target.with_name(target.name + ABOUT)


def check_target(target: Path, *, sources: Sequence[Path] = (), kept: Path | None = None, over: Over = "own") -> None:
    """Refuse a target that cannot be written, that is read, that lies in a folder to be kept, or that is not ours."""
    place = target.resolve()
    if not place.name or not place.parent.is_dir():
        raise BadInput(f"{target}: a folder to write into was needed, but {target.parent} is none; make it first")
    for source in map(Path.resolve, sources):
        if source == place or place in source.parents:
            raise BadInput(f"{target}: a place beside the source was needed, but {source} is read; name another")
    if kept is not None and kept.resolve() in (place, *place.parents):
        raise BadInput(f"{target}: a place outside of {kept} was needed, for sets stay as they are; name another")
    if target.is_symlink():
        raise BadInput(f"{target}: a name of its own was needed, but this one is a link to elsewhere; name another")
    if not target.exists() or (target.is_dir() and not any(target.iterdir())) or is_own(target):
        return
    if target.is_dir() and (over == "own" or _note(target) is None):
        cure = "name another, or remove it yourself"
        raise BadInput(f"{target}: a new folder was needed, but this one holds what relook did not write; {cure}")
    if over == "own":
        raise BadInput(f"{target}: a new file was needed, but relook did not write this one; add --replace to lose it")


def is_own(target: Path) -> bool:
    """Say whether something is what we wrote there, and nobody changed it since."""
    note = _note(target)
    return note is not None and note.get("content") == content(target)


@contextmanager
def whole(target: Path, note: Mapping[str, Any]) -> Iterator[Path]:
    """Give a name to write a file or a folder under, which becomes the target once all is written, with its note.

    It ends as the target's does, so that a writer sees what kind of file is wanted.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp(), "labels.txt")
    >>> with whole(target, {"rule": "vote"}) as draft:
    ...     _ = draft.write_text("cat")
    >>> target.read_text(), is_own(target)
    ('cat', True)
    """
    target = target.absolute()
    draft, gone = (target.with_name(f".{os.getpid()}{kind}-{target.name}") for kind in ("new", "old"))
    try:
        yield draft
        told = msgspec.json.encode({**note, "content": content(draft)})
        synced(draft)
        _exchange(draft, target, gone=gone)
        with drafted(about(target)) as written:
            written.write_bytes(msgspec.json.format(told, indent=1) + b"\n")
    finally:
        for left in (draft, gone):
            _remove(left)


@contextmanager
def drafted(target: Path) -> Iterator[Path]:
    """Give a name to write a file under, which becomes the target once all is written; no draft is left behind.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp(), "labels.txt")
    >>> with drafted(target) as draft:
    ...     _ = draft.write_text("cat")
    >>> target.read_text(), draft.exists()
    ('cat', False)
    """
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Make a folder beside a target, to write into, and leave nothing of it behind.

    >>> import tempfile
    >>> with beside(Path(tempfile.mkdtemp(), "pets")) as made:
    ...     made.is_dir(), made.name.startswith(".pets-")
    (True, True)
    >>> made.exists()
    False
    """
    made = target.absolute().with_name(f".{target.name}-{os.getpid()}")
    made.mkdir()
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def content(path: Path) -> str:
    """Return a hash of a file, or of the names and sizes of all files in a folder.

    >>> import tempfile
    >>> content(Path(tempfile.mkdtemp()))[:8]
    'e3b0c442'
    """
    digest = hashlib.sha256()
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if not file.is_dir():
                told = f"{file.relative_to(path).as_posix()}\0{file.lstat().st_size}\0"
                digest.update(told.encode("utf-8", "surrogateescape"))
        return digest.hexdigest()
    with path.open("rb") as bytes_of:
        for block in iter(lambda: bytes_of.read(_BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


def _note(target: Path) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(about(target).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _exchange(draft: Path, target: Path, *, gone: Path) -> None:
    """Give what was written its name; a folder of that name steps aside for it, and comes back if that fails."""
    if not target.is_dir():
        draft.replace(target)
        return
    target.rename(gone)
    try:
        draft.replace(target)
    except OSError:
        gone.rename(target)
        raise


def synced(draft: Path) -> None:
    """Have the disk hold a file, or the files right in a folder, before it gets the name that others look for."""
    for path in draft.iterdir() if draft.is_dir() else [draft]:
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
