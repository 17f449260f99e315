"""Arrays in numpy's files, npy and npz: their headers first, then only what is asked for, and never more than is said.

Nothing that holds Python objects is opened. What an archive unpacks into is counted while it comes.
"""

from __future__ import annotations

import lzma
import math
import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from relook.errors import BadInput
from relook.sources import existing, listed

SUFFIXES = (".npy", ".npz")
"""What the names of such files end in."""

ENTRIES_MOST, LISTED_MOST = 1_000, 1 << 20
"""So many entries an archive may have, and so many bytes its list of them: Python reads all of it before any entry."""

UNPACKED_FREE, UNPACKED_A_BYTE = 256 << 20, 200
"""So many bytes an array may unpack into in any case; above that, so many a byte of its own."""

NUMBERS_MOST = 1 << 26
"""So many bytes plain numbers may unpack into: the largest published array that is read has 61,518,912."""

BROKEN = (
    *(OSError, EOFError, ValueError, SyntaxError, TypeError, LookupError, AttributeError, OverflowError),
    *(MemoryError, RuntimeError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
"""What Python's zip files and numpy's headers raise on bytes that make no sense."""

_MAGIC, _ZIP = b"\x93NUMPY", b"PK"
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_TAIL = (1 << 16) + 256
_PIECE = 1 << 20
_ROWS_MOST = (1 << 32) - 2


class Stored(msgspec.Struct, frozen=True, eq=False):
    """An array as a file tells of it; `packed` is how many bytes of an archive hold it."""

    path: Path
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    columnwise: bool
    start: int
    packed: int | None = None

    @property
    def length(self) -> int:
        """How long it is when unpacked."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.name} ({self.dtype}, {' x '.join(map(str, self.shape)) or 'one value'})"

    def array(self) -> NDArray[Any]:
        """Return the whole array; that of an npy file stays on the disk until it is used."""
        order: Any = "F" if self.columnwise else "C"
        with _reading(self.path):
            if not self.length:
                return np.zeros(self.shape, self.dtype)
            if self.packed is None:
                return np.memmap(self.path, self.dtype, "r", offset=self.start, shape=self.shape, order=order)
            return np.frombuffer(self._unpacked(), self.dtype).reshape(self.shape, order=order)

    def numbers(self) -> NDArray[Any]:
        """Return the whole array where it is one of plain numbers, and not more of them than any publisher packs."""
        if self.dtype.kind not in "biuf" or (self.packed is not None and self.length > NUMBERS_MOST):
            raise BadInput(
                f"{self.path}: plain numbers, packed ones of at most {NUMBERS_MOST:,} bytes, were needed, but {self} "
                "came; is it another file?"
            )
        return self.array()

    def _unpacked(self) -> bytearray:
        packed = self.packed or 0
        if self.length > max(UNPACKED_FREE, UNPACKED_A_BYTE * packed):
            raise BadInput(
                f"{self.path}: {UNPACKED_FREE >> 20} MB at most were needed from {packed:,} bytes, but "
                f"{self.name} unpacks into {self.length >> 20:,} MB; save it as npy"
            )
        content = bytearray()
        with _opened(self) as file:
            while piece := file.read(min(_PIECE, self.length - len(content))):
                content += piece
            self._check_end(file, len(content))
        return content

    def rows(self) -> Iterator[NDArray[Any]]:
        """Yield its rows one by one; no more than one is unpacked at a time."""
        if self.packed is None or self.columnwise:
            yield from self.array()
            return
        size = self.length // max(1, self.shape[0])
        with _opened(self) as file:
            for _ in range(self.shape[0]):
                row = file.read(size)
                if len(row) < size:
                    self._check_end(file, 0)
                yield np.frombuffer(row, self.dtype).reshape(self.shape[1:])
            self._check_end(file, self.length)

    def _check_end(self, file: IO[bytes], came: int) -> None:
        if came != self.length or file.read(1):
            raise _broken(self.path, f"{self.name} has another length than it says")


def parts(path: Path) -> dict[str, Stored]:
    """Return the arrays of a file by name; the one of an npy file has numpy's name for what has none."""
    existing(path)
    packed = path.suffix.lower() == ".npz"
    with _reading(path):
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
        if not head.startswith(_ZIP if packed else _MAGIC):
            kind = "npz" if packed else "npy"
            raise BadInput(f"{path}: an array was needed, but this is no {kind} file; save it with numpy")
        return _archived(path) if packed else {"arr_0": _single(path)}


def single(path: Path) -> Stored:
    """Return the only array of a file.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "a.npy")
    >>> np.save(file, [1, 2])
    >>> single(file).array().tolist()
    [1, 2]
    """
    found = parts(path)
    if len(found) != 1:
        came = listed(list(found)) or "none"
        raise BadInput(f"{path}: a single array was needed, but it holds {came}; save one with numpy.save")
    return next(iter(found.values()))


def archive(path: Path) -> zipfile.ZipFile:
    """Open a zip archive of a few entries, such as an npz file, and refuse another before its list is read."""
    with path.open("rb") as file:
        file.seek(-min(_TAIL, path.stat().st_size), os.SEEK_END)
        short = all(size <= LISTED_MOST for size in _listed(file.read()))
    if short:
        found = zipfile.ZipFile(path)
        if len(found.infolist()) <= ENTRIES_MOST:
            return found
        found.close()
    raise BadInput(
        f"{path}: {ENTRIES_MOST:,} entries at most were needed in an archive, but it lists more; save those you need"
    )


def _listed(tail: bytes) -> Iterator[int]:
    """Yield how long the list of entries is said to be, wherever an archive's end may be taken to stand."""
    long = [int.from_bytes(part[36:44], "little") for part in tail.split(b"PK\6\6")[1:]]
    yield from long
    for part in tail.split(b"PK\5\6")[1:]:
        size = int.from_bytes(part[8:12], "little")
        # The largest number says that the record before it, of a longer form, holds the length.
        if not (long and size == (1 << 32) - 1):
            yield size


def _single(path: Path) -> Stored:
    with path.open("rb") as file:
        found = _stored(path, "arr_0", file=file)
    if found.start + found.length != path.stat().st_size:
        raise _broken(path, "it has another length than it says")
    return found


def _archived(path: Path) -> dict[str, Stored]:
    with archive(path) as opened:
        return dict(_entry(path, opened, held=held) for held in opened.infolist())


def _entry(path: Path, opened: zipfile.ZipFile, *, held: zipfile.ZipInfo) -> tuple[str, Stored]:
    name = held.filename.removesuffix(".npy")
    if opened.getinfo(held.filename) is not held:
        raise BadInput(f"{path}: arrays must differ in name, but {name!r} comes twice; save it again")
    with opened.open(held) as file:
        if not held.filename.endswith(".npy") or file.read(len(_MAGIC)) != _MAGIC:
            raise BadInput(f"{path}: arrays were needed, but {held.filename!r} in it is none; save it with numpy")
    with opened.open(held) as file:
        packed = min(held.compress_size, path.stat().st_size)
        return name, _stored(path, name, file=file, packed=packed)


def _stored(path: Path, name: str, *, file: IO[bytes], packed: int | None = None) -> Stored:
    """Return what the header of an array says, where it can be so."""
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise _broken(path, f"{name} is in version {version} of the format")
    with warnings.catch_warnings():
        # Files of Python 2 are as good as any.
        warnings.simplefilter("ignore")
        shape, columnwise, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise BadInput(
            f"{path}: numbers or text were needed, but it holds Python objects, which are not opened; "
            "save array.astype(str), or array.astype(float)"
        )
    if any(isinstance(side, bool) or not 0 <= side <= _ROWS_MOST for side in shape):
        raise _broken(path, f"{name} has shape {shape}")
    if not dtype.itemsize and math.prod(shape) > 1:
        raise _broken(path, f"{name} has values of no length")
    return Stored(path, name, dtype, tuple(map(int, shape)), bool(columnwise), file.tell(), packed)


@contextmanager
def _opened(stored: Stored) -> Iterator[IO[bytes]]:
    """Open an array in an archive behind its header."""
    with _reading(stored.path), archive(stored.path) as opened, opened.open(f"{stored.name}.npy") as file:
        file.read(stored.start)
        yield file


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say of what goes wrong where an array is unpacked that its file is at fault."""
    try:
        yield
    except BROKEN as error:
        raise error if isinstance(error, BadInput) else _broken(path, str(error)) from None


def _broken(path: Path, reason: str) -> BadInput:
    first = (reason.splitlines() or ["it ends in the middle"])[0][:200]
    return BadInput(f"{path}: an array was needed, but the file is broken ({first}); save it again")
