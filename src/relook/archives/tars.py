"""Tar archives, plain or packed by gzip, bzip2 or xz, read as they come: one header after another.

Python's own reader keeps every header, and reads a long name of any length into memory; what is packed may be both.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import BinaryIO, Protocol

import msgspec

from relook.archives.entries import FREE, Entry, Limits, dense, large, many, odd, spoiled, text
from relook.errors import BadInput

_BLOCK, _READ, _PIECE = 512, 1 << 16, 1 << 20
_EXTRA_MOST = 1 << 20
_MEMORY_OF_XZ = 1 << 27
_FILES, _FOLDER, _LONG_NAME, _LONG_LINK = b"0\0007", b"5", b"L", b"K"
_NEXT, _ALL = b"x", b"g"
_ODD = b"12346"
_EMPTY = bytes(_BLOCK)


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, packed: bytes, /, max_length: int = -1) -> bytes: ...


class _Gunzip:
    """Gzip's with the manners of the other two."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(zlib.MAX_WBITS | 16)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, packed: bytes, /, max_length: int = -1) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + packed, max_length)


def _unxz() -> _Decompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY_OF_XZ)


PACKED: Mapping[str, Callable[[], _Decompressor] | None] = MappingProxyType(
    {"tar": None, "gz": _Gunzip, "bz2": bz2.BZ2Decompressor, "xz": _unxz}
)
"""How a tar archive may be packed."""


def entries(file: BinaryIO, *, called: str, limits: Limits, packed: str) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    """Yield every entry with its bytes, in pieces; those that nobody asks for are passed over."""
    stream = _Stream(file, PACKED[packed], called=called, limits=limits)
    long = _Long()
    for _ in range(limits.entries + 1):
        block = stream.exactly(_BLOCK)
        if block == _EMPTY:
            stream.end()
            return
        head = _head(block, called=called)
        if head.kind in (_LONG_NAME, _LONG_LINK, _NEXT, _ALL):
            long = long.and_also(head, _extra(stream, head.size, called=called), called=called)
            continue
        name, size = long.name or head.name, head.size if long.size is None else long.size
        long = _Long()
        place = f"{called}, {name}"
        if head.kind in _ODD:
            odd(place)
        if head.kind != _FOLDER and head.kind not in _FILES:
            spoiled(place, f"it is of a kind that nobody knows ({head.kind!r})")
        data = _Data(stream, size)
        yield Entry(name, size, folder=head.kind == _FOLDER or name.endswith("/")), data.pieces()
        for _ in data.pieces():
            pass
        stream.exactly(-size % _BLOCK)
    many(called, limits)


class _Stream:
    """An archive's bytes, unpacked as they are asked for and counted."""

    def __init__(
        self, file: BinaryIO, make: Callable[[], _Decompressor] | None, *, called: str, limits: Limits
    ) -> None:
        self._file, self._make, self._called, self._limits = file, make, called, limits
        self._inner = None if make is None else make()
        self._kept = b""
        self._came = self._used = 0

    def exactly(self, size: int) -> bytes:
        """Return so many bytes; refuse an archive that ends before."""
        parts, left = [], size
        while left:
            part = self.some(left)
            if not part:
                spoiled(self._called, "it breaks off")
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def end(self) -> None:
        """Read what follows the end, which must be nothing but zeros."""
        while part := self.some(_PIECE):
            if part.count(0) != len(part):
                spoiled(self._called, "bytes follow its end")

    def some(self, most: int) -> bytes:
        """Return at most so many bytes, none at the end."""
        try:
            found = self._file.read(most) if self._inner is None else self._unpacked(most)
        except (zlib.error, lzma.LZMAError, EOFError, OSError) as error:
            if isinstance(error, BadInput):
                raise
            spoiled(self._called, f"its bytes are damaged ({error})")
        self._came += len(found)
        if self._came > self._limits.bytes + 4 * _BLOCK * self._limits.entries:
            large(self._called, self._limits)
        if self._inner is not None and self._came > self._limits.ratio * self._used + FREE:
            dense(self._called, self._limits)
        return found

    def _unpacked(self, most: int) -> bytes:
        while self._inner is not None:
            if self._inner.eof and not self._following():
                return b""
            wanted = self._inner.needs_input
            block = (self._kept or self._file.read(_READ)) if wanted else b""
            self._used += 0 if self._kept else len(block)
            self._kept = b"" if wanted else self._kept
            found = self._inner.decompress(block, most)
            if found:
                return found
            if wanted and not block and not self._inner.eof:
                spoiled(self._called, "it breaks off")
        return b""

    def _following(self) -> bool:
        """Say whether another packed part follows the one that has ended; zeros between them mean nothing."""
        rest = b"" if self._inner is None else self._inner.unused_data.lstrip(b"\0")
        while not rest:
            block = self._file.read(_READ)
            if not block:
                return False
            self._used += len(block)
            rest = block.lstrip(b"\0")
        self._kept = rest
        self._inner = None if self._make is None else self._make()
        return True


class _Data:
    """The bytes of one entry, handed out once."""

    def __init__(self, stream: _Stream, size: int) -> None:
        self._stream, self._left = stream, size

    def pieces(self) -> Iterator[bytes]:
        while self._left:
            piece = self._stream.exactly(min(self._left, _PIECE))
            self._left -= len(piece)
            yield piece


class _Head(msgspec.Struct, frozen=True):
    """A header of 512 bytes."""

    name: str
    size: int
    kind: bytes


class _Long(msgspec.Struct, frozen=True):
    """What stands before a header because it does not fit into one."""

    name: str | None = None
    size: int | None = None

    def and_also(self, head: _Head, content: bytes, *, called: str) -> _Long:
        if head.kind == _LONG_LINK:
            return self
        if head.kind == _LONG_NAME:
            return msgspec.structs.replace(self, name=text(content.rstrip(b"\0"), called=called))
        records = _records(content, called=called)
        if any(key.startswith("GNU.sparse") for key in records) or (
            head.kind == _ALL and {"path", "size"} & set(records)
        ):
            spoiled(called, "it holds a file with holes, or one name for all")
        if head.kind == _ALL:
            return self
        size = records.get("size")
        if size is not None and not (size.isascii() and size.isdigit() and len(size) < 20):
            spoiled(called, "a size is no number")
        return _Long(records.get("path", self.name), self.size if size is None else int(size))


def _head(block: bytes, *, called: str) -> _Head:
    told = _number(block[148:156], called=called)
    if told != sum(block) - sum(block[148:156]) + 8 * 32:
        spoiled(called, "a header is damaged")
    name = block[:100].split(b"\0", 1)[0]
    if block[257:263] == b"ustar\0" and block[345]:
        name = block[345:500].split(b"\0", 1)[0] + b"/" + name
    kind = block[156:157]
    size = 0 if kind in _ODD else _number(block[124:136], called=called)
    return _Head(text(name, called=called), size, kind)


def _number(field: bytes, *, called: str) -> int:
    """Return a number: octal digits, or where they do not fit the number itself."""
    if field[0] & 0x80:
        number = int.from_bytes(field[1:], "big")
        return number if field[0] == 0x80 else spoiled(called, "a number is negative")
    digits = field.strip(b" \0")
    if not digits:
        return 0
    if digits.strip(b"01234567"):
        spoiled(called, "a number is none")
    return int(digits, 8)


def _extra(stream: _Stream, size: int, *, called: str) -> bytes:
    if size > _EXTRA_MOST:
        spoiled(called, "a name is longer than any")
    content = stream.exactly(size)
    stream.exactly(-size % _BLOCK)
    return content


def _records(content: bytes, *, called: str) -> dict[str, str]:
    """Return the records of an extended header: each is its length, a blank, and key=value."""
    found = {}
    while content:
        length = content.split(b" ", 1)[0]
        if not length.isdigit() or len(length) > 7 or not len(length) + 3 < int(length) <= len(content):
            spoiled(called, "an extended header is damaged")
        record, content = content[len(length) + 1 : int(length)], content[int(length) :]
        key, mark, value = record.removesuffix(b"\n").partition(b"=")
        if not mark:
            spoiled(called, "an extended header is damaged")
        if key in (b"path", b"size") or key.startswith(b"GNU.sparse"):
            found[text(key, called=called)] = text(value, called=called)
    return found
