"""Arrays in numpy's files, npy and npz: their headers first, then only what is asked for, and never more than is said.

Nothing that holds Python objects is opened. What an archive unpacks into is counted while it comes.
"""

from __future__ import annotations

import math
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
from numpy.typing import NDArray

from relook.errors import BadInput
from relook.sources import existing

SUFFIXES = (".npy", ".npz")
"""What the names of such files end in."""

ENTRIES_MOST = 1_000
UNPACKED_FREE, UNPACKED_A_BYTE = 256 << 20, 200
"""So many bytes an array may unpack into in any case; above that, so many a byte of its own."""

_MAGIC, _ZIP, _ENTRY = b"\x93NUMPY", b"PK", b"PK\x01\x02"
_DIRECTORY = 16 << 20
_PIECE = 1 << 20
_ROWS_MOST = (1 << 32) - 2
_BROKEN = (
    OSError,
    EOFError,
    ValueError,
    SyntaxError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
    NotImplementedError,
    RuntimeError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


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
        if not self.length:
            return np.zeros(self.shape, self.dtype)
        if self.packed is None:
            return np.memmap(self.path, self.dtype, "r", offset=self.start, shape=self.shape, order=order)
        if self.length > max(UNPACKED_FREE, UNPACKED_A_BYTE * self.packed):
            raise BadInput(
                f"{self.path}: {UNPACKED_FREE >> 20} MB at most were needed from {self.packed:,} bytes, but "
                f"{self.name} unpacks into {self.length >> 20:,} MB; save it as npy"
            )
        content = bytearray()
        with _opened(self) as file:
            while piece := file.read(min(_PIECE, self.length - len(content))):
                content += piece
            self._check_end(file, len(content))
        return np.frombuffer(content, self.dtype).reshape(self.shape, order=order)

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
    suffix = path.suffix.lower()
    with path.open("rb") as file:
        head = file.read(len(_MAGIC))
    if not head.startswith(_ZIP if suffix == ".npz" else _MAGIC):
        raise BadInput(f"{path}: an array was needed, but this is no {suffix[1:]} file; save it with numpy")
    with _reading(path):
        return _archived(path) if suffix == ".npz" else {"arr_0": _single(path)}


def _single(path: Path) -> Stored:
    with path.open("rb") as file:
        found = _stored(path, "arr_0", file=file)
    if found.start + found.length != path.stat().st_size:
        raise _broken(path, "it has another length than it says")
    return found


def _archived(path: Path) -> dict[str, Stored]:
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _DIRECTORY))
        many = file.read().count(_ENTRY) > ENTRIES_MOST
    if not many:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) <= ENTRIES_MOST:
                return dict(_entry(path, archive, held=held) for held in entries)
    raise BadInput(f"{path}: {ENTRIES_MOST:,} arrays at most were needed, but more came; save those you need")


def _entry(path: Path, archive: zipfile.ZipFile, *, held: zipfile.ZipInfo) -> tuple[str, Stored]:
    name = held.filename.removesuffix(".npy")
    if archive.getinfo(held.filename) is not held:
        raise BadInput(f"{path}: arrays must differ in name, but {name!r} comes twice; save it again")
    with archive.open(held) as file:
        if not held.filename.endswith(".npy") or file.read(len(_MAGIC)) != _MAGIC:
            raise BadInput(f"{path}: arrays were needed, but {held.filename!r} in it is none; save it with numpy")
    with archive.open(held) as file:
        packed = min(held.compress_size, path.stat().st_size)
        return name, _stored(path, name, file=file, packed=packed)


def _stored(path: Path, name: str, *, file: IO[bytes], packed: int | None = None) -> Stored:
    """Return what the header of an array says, where it can be so."""
    version = np.lib.format.read_magic(file)
    with warnings.catch_warnings():
        # Files of Python 2 are as good as any.
        warnings.simplefilter("ignore")
        known = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, columnwise, dtype = known[version](file)
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
    with _reading(stored.path), zipfile.ZipFile(stored.path) as archive, archive.open(f"{stored.name}.npy") as file:
        file.read(stored.start)
        yield file


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say of what goes wrong where an array is unpacked that its file is at fault."""
    try:
        yield
    except _BROKEN as error:
        raise error if isinstance(error, BadInput) else _broken(path, str(error)) from None


def _broken(path: Path, reason: str) -> BadInput:
    first = (reason.splitlines() or ["it ends in the middle"])[0][:200]
    return BadInput(f"{path}: an array was needed, but the file is broken ({first}); save it again")
