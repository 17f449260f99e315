"""Zip archives, read strictly: the directory at the end must be the truth about every byte before it.

Python's own reader believes the directory, loads all of it whatever its size, and lets entries share bytes, which is
what archives made to fill a disk live on.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import BinaryIO

import msgspec

from relook.archives.entries import (
    FREE,
    Entry,
    Limits,
    check_kind,
    dense,
    large,
    many,
    spoiled,
    text,
)
from relook.errors import BadInput

_END = struct.Struct("<4s4H2LH")
_LONG_PLACE = struct.Struct("<4sLQL")
_LONG_END = struct.Struct("<4sQ2H2L4Q")
_LISTED = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_COMMENT_MOST = 0xFFFF
_HALF, _WHOLE = 0xFFFF, 0xFFFFFFFF
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_STORED, _DEFLATED = 0, 8
_BLOCK = 1 << 16
_PIECE = 1 << 20


class _Listed(msgspec.Struct, frozen=True):
    """An entry as the directory tells of it."""

    name: bytes
    method: int
    crc: int
    packed: int
    size: int
    at: int


class _Directory(msgspec.Struct, frozen=True):
    """Where the directory lies, and of how many entries it tells."""

    count: int
    start: int
    size: int


def entries(file: BinaryIO, *, called: str, limits: Limits) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    """Yield every entry with its bytes, in pieces that are read when asked for."""
    directory = _directory(file, called)
    if directory.count > limits.entries:
        many(called, limits)
    # Counted before any is kept: a directory may hold more than it says.
    counted = islice(_listed(file, directory, called=called), directory.count + 1)
    if sum(1 for _ in counted) != directory.count:
        spoiled(called, "its directory does not have as many entries as it says")
    found = sorted(_listed(file, directory, called=called), key=lambda one: one.at)
    _check_sizes(found, called=called, limits=limits)
    ends = [one.at for one in found[1:]] + [directory.start]
    for one, following in zip(found, ends, strict=False):
        name = text(one.name, called=called, other="cp437")
        place = f"{called}, {name}"
        start = _start(file, one, place=place)
        if start + one.packed > following:
            spoiled(place, "its bytes overlap with others")
        yield Entry(name, one.size, folder=name.endswith("/")), _pieces(file, one, start=start, place=place)


def _check_sizes(found: Sequence[_Listed], *, called: str, limits: Limits) -> None:
    size, packed = sum(one.size for one in found), sum(one.packed for one in found)
    if size > limits.bytes:
        large(called, limits)
    if size > limits.ratio * packed + FREE:
        dense(called, limits)


def _directory(file: BinaryIO, called: str) -> _Directory:
    length = file.seek(0, 2)
    tail_at = max(length - _END.size - _COMMENT_MOST - _LONG_PLACE.size, 0)
    file.seek(tail_at)
    tail = file.read()
    place = tail.rfind(b"PK\5\6")
    if place < 0 or len(tail) - place < _END.size:
        spoiled(called, "the end of a zip archive is missing")
    _, disk, first_disk, here, count, size, start, comment = _END.unpack_from(tail, place)
    if place + _END.size + comment != len(tail):
        spoiled(called, "bytes follow its end")
    end = tail_at + place
    if (count == _HALF or _WHOLE in (size, start)) and tail.startswith(b"PK\6\7", max(place - _LONG_PLACE.size, 0)):
        end, disk, first_disk, here, count, size, start = _long_end(file, end, called=called)
    if disk or first_disk or here != count:
        spoiled(called, "it is a part of several")
    if start + size != end:
        spoiled(called, "its directory does not lie where it says")
    return _Directory(count, start, size)


def _long_end(file: BinaryIO, end: int, *, called: str) -> tuple[int, ...]:
    """Return what the end of an archive says that is too large for the plain form."""
    if end < _LONG_PLACE.size + _LONG_END.size:
        spoiled(called, "its long end is missing")
    file.seek(end - _LONG_PLACE.size)
    mark, _, at, _ = _LONG_PLACE.unpack(file.read(_LONG_PLACE.size))
    if mark != b"PK\6\7" or at + _LONG_END.size > end:
        spoiled(called, "its long end is missing")
    file.seek(at)
    mark, length, _, _, disk, first_disk, here, count, size, start = _LONG_END.unpack(file.read(_LONG_END.size))
    if mark != b"PK\6\6" or at + 12 + length != end - _LONG_PLACE.size:
        spoiled(called, "its long end does not lie where it says")
    return at, disk, first_disk, here, count, size, start


def _listed(file: BinaryIO, directory: _Directory, *, called: str) -> Iterator[_Listed]:
    """Yield the directory's entries; where it lies is read as it goes, so never more than one of them."""
    file.seek(directory.start)
    left = directory.size
    while left:
        head = file.read(min(left, _LISTED.size))
        if len(head) < _LISTED.size or not head.startswith(b"PK\1\2"):
            spoiled(called, "its directory is damaged")
        fields = _LISTED.unpack(head)
        flags, method, crc, packed, size = fields[3], fields[4], *fields[7:10]
        names, extras, comments, disk, _, attributes, at = fields[10:]
        left -= _LISTED.size + names + extras + comments
        if left < 0:
            spoiled(called, "its directory is damaged")
        name, extra = file.read(names), file.read(extras)
        file.seek(comments, 1)
        if _WHOLE in (size, packed, at):
            size, packed, at = _long(extra, (size, packed, at), called=called)
        shown = f"{called}, {text(name, called=called, other='cp437')}"
        if disk not in (0, _HALF):
            spoiled(shown, "it lies in another part")
        check_kind(attributes >> 16, place=shown)
        _check_method(flags, method, place=shown)
        if method == _STORED and packed != size:
            spoiled(shown, "its sizes contradict each other")
        yield _Listed(name, method, crc, packed, size, at)


def _check_method(flags: int, method: int, *, place: str) -> None:
    if flags & _ENCRYPTED:
        raise BadInput(f"{place}: a file without a password was needed, but it is encrypted; unpack it yourself")
    if method not in (_STORED, _DEFLATED):
        raise BadInput(
            f"{place}: a stored or deflated file was needed, but it is packed by method {method}; pack it anew"
        )


def _long(extra: bytes, known: tuple[int, int, int], *, called: str) -> tuple[int, int, int]:
    """Return size, packed size and place where they are too large for the plain form."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            wanted = [value == _WHOLE for value in known]
            if length >= 8 * sum(wanted) and at + 4 + length <= len(extra):
                values = iter(struct.unpack_from(f"<{sum(wanted)}Q", extra, at + 4))
                size, packed, place = (
                    next(values) if long else value for value, long in zip(known, wanted, strict=True)
                )
                return size, packed, place
        at += 4 + length
    return spoiled(called, "a long size is missing")


def _start(file: BinaryIO, one: _Listed, *, place: str) -> int:
    """Return where an entry's bytes begin, whose own header must say what the directory says."""
    file.seek(one.at)
    head = file.read(_LOCAL.size)
    if len(head) < _LOCAL.size or not head.startswith(b"PK\3\4"):
        spoiled(place, "it does not lie where the directory says")
    fields = _LOCAL.unpack(head)
    _check_method(fields[2], fields[3], place=place)
    names, extras = fields[9:]
    if file.read(names) != one.name or fields[3] != one.method:
        spoiled(place, "the directory calls it something else")
    return one.at + _LOCAL.size + names + extras


def _pieces(file: BinaryIO, one: _Listed, *, start: int, place: str) -> Iterator[bytes]:
    crc = produced = 0
    for piece in _unpacked(file, one, start=start, place=place):
        produced += len(piece)
        if produced > one.size:
            break
        crc = zlib.crc32(piece, crc)
        yield piece
    if produced != one.size or crc != one.crc:
        spoiled(place, "other bytes came out than the directory says")


def _unpacked(file: BinaryIO, one: _Listed, *, start: int, place: str) -> Iterator[bytes]:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    file.seek(start)
    left = one.packed
    try:
        while left:
            block = file.read(min(left, _BLOCK))
            left -= len(block)
            if not block:
                break
            if one.method == _STORED:
                yield block
                continue
            while block:
                yield inflater.decompress(block, _PIECE)
                block = inflater.unconsumed_tail
        if one.method == _DEFLATED:
            yield inflater.flush()
            if not inflater.eof or inflater.unused_data:
                spoiled(place, "its bytes end elsewhere than the directory says")
    except zlib.error:
        spoiled(place, "its bytes are damaged")
