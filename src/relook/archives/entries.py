"""What every archive must keep to, whatever its kind: names that stay inside, and bounds on what comes out of it.

Bytes are counted as they really come, because what an archive says of itself may be a lie.
"""

from __future__ import annotations

import re
import stat
from typing import NoReturn

import msgspec

from relook.errors import BadInput
from relook.tree import plainly

FREE = 10_000_000
"""So many bytes may come out before their number is compared with that of the archive's own."""

_DEEPEST, _LONGEST, _LONGEST_PART = 32, 1024, 255
_DRIVE = re.compile(r"[A-Za-z]:")
_NESTED = tuple(
    f".{suffix}"
    for suffix in (
        "zip",
        "npz",
        "jar",
        "tar",
        "tgz",
        "tbz",
        "tbz2",
        "txz",
        "gz",
        "bz2",
        "xz",
        "lzma",
        "zst",
        "7z",
        "rar",
    )
)
_MAGIC = (
    b"PK\3\4",
    b"PK\5\6",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\0",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"\x28\xb5\x2f\xfd",
)
HEAD = 512
"""So many first bytes tell whether a file is an archive."""


class Limits(msgspec.Struct, frozen=True):
    """What may come out of an archive: bytes, files and folders, and bytes for each of its own."""

    bytes: int = 2_000_000_000
    entries: int = 200_000
    ratio: int = 200


LIMITS = Limits()
"""What may come out where nothing else is said."""


class Entry(msgspec.Struct, frozen=True):
    """A file or a folder in an archive, its size as the archive tells it."""

    name: str
    size: int
    folder: bool = False


class Admitted:
    """Entries so far: each name is looked at once, and beside those before it."""

    def __init__(self, called: str, limits: Limits) -> None:
        self._called, self._limits = called, limits
        self._known: dict[str, str] = {}
        self.files = self.bytes = 0

    def add(self, entry: Entry) -> None:
        """Refuse an entry that may not come out, alone or beside the others."""
        name = safe(entry.name, called=self._called)
        if not name and not entry.folder:
            spoiled(self._called, "a file in it has no name")
        if not name:
            return
        above = name.rpartition("/")[0]
        if above and self._known.get(plainly(f"{above}/")) != f"{above}/":
            for end in (at for at, letter in enumerate(name) if letter == "/"):
                self._enter(f"{name[:end]}/")
        self._enter(f"{name}/" if entry.folder else name)
        self.files += not entry.folder
        self.bytes += entry.size
        if entry.folder and entry.size:
            spoiled(f"{self._called}, {name}", "a folder holds bytes")
        self._check_bounds()

    def _enter(self, name: str) -> None:
        key = plainly(name)
        # A name stands for one thing, a file or a folder.
        other = key.removesuffix("/") if key.endswith("/") else f"{key}/"
        seen = self._known.get(key, self._known.get(other))
        if seen is None:
            self._known[key] = name
        elif seen != name or not name.endswith("/"):
            raise BadInput(
                f"{self._called}: names that differ were needed, but {name!r} comes beside {seen!r}; rename one"
            )

    def _check_bounds(self) -> None:
        if len(self._known) > self._limits.entries:
            many(self._called, self._limits)
        if self.bytes > self._limits.bytes:
            large(self._called, self._limits)


def safe(name: str, *, called: str) -> str:
    """Return a name without a leading `./`, which must stay inside the folder that an archive is unpacked into.

    >>> safe("./cat/1.png", called="pets.tar")
    'cat/1.png'
    """
    plain = name.removeprefix("./").removesuffix("/")
    parts = plain.split("/")
    if name in (".", "./"):
        return ""
    wrong = (
        name.startswith("/")
        or "\\" in name
        or "\0" in name
        or any(part in ("", ".", "..") or _DRIVE.match(part) for part in parts)
    )
    if wrong:
        raise BadInput(
            f"{called}: names of files inside the archive were needed, but {name!r} leads elsewhere; pack it anew"
        )
    if len(parts) > _DEEPEST or len(plain) > _LONGEST or any(len(part.encode()) > _LONGEST_PART for part in parts):
        raise BadInput(
            f"{called}: names of at most {_LONGEST_PART} bytes in {_DEEPEST} folders were needed, but "
            f"{plain[:60]!r}... is longer; rename it"
        )
    if parts[-1].lower().endswith(_NESTED):
        nested(f"{called}, {plain}")
    return plain


def check_kind(mode: int, *, place: str) -> None:
    """Refuse what is neither a file nor a folder, by its mode (0: not told)."""
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        odd(place)


def check_head(head: bytes, *, place: str) -> None:
    """Refuse an archive in an archive by its first bytes, whatever its name."""
    if head.startswith(_MAGIC) or head[257:262] == b"ustar":
        nested(place)


def text(name: bytes, *, called: str, other: str | None = None) -> str:
    """Return a name as text: UTF-8, else in the encoding that its kind of archive had before, where it had one."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        if other is None:
            raise BadInput(f"{called}: names in UTF-8 were needed, but {name!r} came; pack it anew") from None
        return name.decode(other)


def odd(place: str) -> NoReturn:
    """Refuse a link, a device or a pipe."""
    raise BadInput(f"{place}: files and folders were needed, but this is a link or a device; pack what it stands for")


def nested(place: str) -> NoReturn:
    """Refuse an archive in an archive."""
    raise BadInput(f"{place}: files were needed, but this is an archive in an archive; unpack it first")


def many(called: str, limits: Limits) -> NoReturn:
    """Refuse too many entries."""
    raise BadInput(f"{called}: at most {limits.entries:,} entries were needed, but it has more; unpack it yourself")


def large(called: str, limits: Limits) -> NoReturn:
    """Refuse too many bytes."""
    raise BadInput(
        f"{called}: at most {limits.bytes / 1e9:g} GB were to come out of it, but there are more; "
        "allow more, or unpack it yourself"
    )


def dense(called: str, limits: Limits) -> NoReturn:
    """Refuse what grows too much."""
    raise BadInput(
        f"{called}: at most {limits.ratio} times its own bytes were to come out of it, but there are more, "
        "as in an archive made to fill a disk; unpack it yourself"
    )


def spoiled(place: str, why: str) -> NoReturn:
    """Refuse damaged or contradictory bytes."""
    raise BadInput(f"{place}: a sound archive was needed, but {why}; copy or pack it anew")
