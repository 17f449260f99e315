"""Archives made byte by byte: sound ones, and those that somebody makes who means harm."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Files = Mapping[str, bytes]


class Member(NamedTuple):
    """An entry of a zip archive, with what its headers say where that is not the truth."""

    name: bytes
    content: bytes = b""
    method: int = 8
    flags: int = 0
    mode: int = 0o100644
    size: int | None = None
    crc: int | None = None
    local_name: bytes | None = None
    extra: bytes = b""


def zipped(members: Sequence[Member], *, comment: bytes = b"", count: int | None = None, before: bytes = b"") -> bytes:
    """Return a zip archive; `count` is what its end says instead of the truth."""
    body, listed = before, b""
    for one in members:
        packed = deflated(one.content) if one.method == 8 else one.content
        crc = zlib.crc32(one.content) if one.crc is None else one.crc
        size = len(one.content) if one.size is None else one.size
        name = one.name if one.local_name is None else one.local_name
        sizes = (crc, len(packed), size)
        listed += directory_entry(one, len(body), sizes)
        body += (
            struct.pack("<4s5H3L2H", b"PK\3\4", 20, one.flags, one.method, 0, 33, *sizes, len(name), 0) + name + packed
        )
    return body + listed + end(len(members) if count is None else count, len(listed), len(body), comment)


def directory_entry(one: Member, at: int, sizes: tuple[int, int, int]) -> bytes:
    lengths = (len(one.name), len(one.extra), 0)
    fields = (0x0314, 20, one.flags, one.method, 0, 33, *sizes, *lengths, 0, 0, one.mode << 16, at)
    return struct.pack("<4s6H3L5H2L", b"PK\1\2", *fields) + one.name + one.extra


def end(count: int, size: int, start: int, comment: bytes = b"") -> bytes:
    if count < 0xFFFF:
        return struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, size, start, len(comment)) + comment
    long = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start)
    place = struct.pack("<4sLQL", b"PK\6\7", 0, start + size, 1)
    return long + place + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, size, start, len(comment)) + comment


def deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


def overlapping(files: int = 250, size: int = 10_000_000) -> bytes:
    """Return the flat kind of bomb: entries that share one kernel of packed zeros."""
    kernel = deflated(bytes(size))
    crc = zlib.crc32(bytes(size))
    head = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 33, crc, len(kernel), size, 1, 0) + b"0"
    body, listed = head + kernel, b""
    for number in range(files):
        listed += directory_entry(Member(b"0" if not number else b"%d" % number), 0, (crc, len(kernel), size))
    return body + listed + end(files, len(listed), len(body))


def nested_to_the_left(files: int = 1000, size: int = 2_000_000) -> bytes:
    """Return the better bomb: each entry's bytes hold the headers of all after it, quoted, and the same kernel."""
    kernel = deflated(bytes(size))
    parts: list[tuple[bytes, bytes]] = []
    behind, unpacked = kernel, bytes(size)
    for number in reversed(range(files)):
        name = b"%04d" % number
        fields = (20, 0, 8, 0, 33, zlib.crc32(unpacked) if number > files - 3 else 0, len(behind), len(unpacked))
        head = struct.pack("<4s5H3L2H", b"PK\3\4", *fields, 4, 0) + name
        parts.append((head, name))
        quoted = struct.pack("<BHH", 0, len(head), len(head) ^ 0xFFFF) + head
        behind, unpacked = quoted + behind, unpacked if number < files - 3 else head + unpacked
    # Only where each header lies matters to a reader that looks for overlaps.
    first = parts[-1][0]
    body = first + behind[5 + len(first) :]
    listed, at = b"", 0
    for head, name in reversed(parts):
        crc, packed, length = struct.unpack_from("<3L", head, 14)
        listed += directory_entry(Member(name), at, (crc, packed, length))
        at += len(head) + 5
    return body + listed + end(files, len(listed), len(body))


def many_empty_zipped(number: int, *, said: int | None = None) -> bytes:
    """Return a zip archive of empty files; `said` is how many its end says there are."""
    name = np.char.zfill(np.arange(number).astype("S7"), 7)
    local = np.zeros(number, [("head", "S30"), ("name", "S7")])
    local["head"] = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 0, 0, 33, 0, 0, 0, 7, 0)
    listed = np.zeros(number, [("head", "S42"), ("at", "<u4"), ("name", "S7")])
    listed["head"] = directory_entry(Member(b"0000000", method=0), 0, (0, 0, 0))[:42]
    listed["at"] = np.arange(number) * 37
    local["name"] = listed["name"] = name
    directory = listed.tobytes()
    return local.tobytes() + directory + end(number if said is None else said, len(directory), 37 * number)


def head(
    name: bytes,
    size: int = 0,
    kind: bytes = b"0",
    *,
    link: bytes = b"",
    magic: bytes = b"ustar\x0000",
    mode: int = 0o644,
) -> bytes:
    """Return a header of tar, its checksum right."""
    length = b"%011o\0" % size if size < 8**11 else b"\x80" + size.to_bytes(11, "big")
    block = struct.pack(
        "100s8s8s8s12s12s8s1s100s8s",
        name,
        b"%07o\0" % mode,
        b"0000000\0",
        b"0000000\0",
        length,
        b"0" * 11 + b"\0",
        b" " * 8,
        kind,
        link,
        magic,
    )
    block = block.ljust(512, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def tarred(*parts: bytes) -> bytes:
    return b"".join(parts) + bytes(1024)


def entry(name: str | bytes, content: bytes = b"", kind: bytes = b"0", **more: Any) -> bytes:
    name = name.encode() if isinstance(name, str) else name
    return head(name, len(content), kind, **more) + padded(content)


def record(key: str, value: str) -> bytes:
    body = f" {key}={value}\n".encode()
    length = len(body) + 1
    while len(str(length)) + len(body) != length:
        length = len(str(length)) + len(body)
    return str(length).encode() + body


def zip_of(files: Files) -> bytes:
    """Return what Python's own writer makes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def tar_of(files: Files, form: int = tarfile.PAX_FORMAT) -> bytes:
    """Return what Python's own writer makes."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as archive:
        for name, content in files.items():
            told = tarfile.TarInfo(name)
            told.size = len(content)
            archive.addfile(told, io.BytesIO(content))
    return made.getvalue()


PACKERS: Mapping[str, Callable[[bytes], bytes]] = {
    ".tar": bytes,
    ".tar.gz": lambda content: gzip.compress(content, mtime=0),
    ".tar.bz2": bz2.compress,
    ".tar.xz": lzma.compress,
}
