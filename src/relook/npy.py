"""Arrays of numbers in numpy's npy format and its archives; what they claim is checked before anything is made."""

from __future__ import annotations

import lzma
import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from relook.errors import BadInput

MOST_BYTES = 2**26
"""What an array may weigh where nothing else is said: the largest published one that is read has 61,518,912 bytes."""

BROKEN = (
    *(
        ValueError,
        OSError,
        EOFError,
        RuntimeError,
        IndexError,
        NotImplementedError,
        SyntaxError,
        struct.error,
        MemoryError,
    ),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, TypeError, KeyError, OverflowError, tokenize.TokenError),
)
"""What Python's zip files and numpy's headers raise on bytes that make no sense."""

MOST_LISTED = 2**20
"""What a zip archive's list of its members may weigh: Python reads all of it before a member can be asked for."""

_TAIL = 2**16 + 256

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def array(path: Path, *, most: int = MOST_BYTES) -> NDArray[Any]:
    """Return the array of an npy file.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "a.npy")
    >>> np.save(file, [1, 2])
    >>> array(file).tolist()
    [1, 2]
    """
    try:
        with path.open("rb") as file:
            return read(file, source=str(path), most=most)
    except OSError as error:
        raise BadInput(
            f"{path}: a file with an array was needed, but it cannot be opened ({error.strerror}); check the path"
        ) from None


def archive(path: Path) -> zipfile.ZipFile:
    """Open a zip archive of a few members, such as an npz file; one whose list of members is long is refused."""
    try:
        with path.open("rb") as file:
            file.seek(-min(_TAIL, path.stat().st_size), os.SEEK_END)
            tail = file.read()
        if any(size > MOST_LISTED for size in _listed(tail)):
            raise BadInput(f"{path}: an archive of a few files was needed, but it lists too many; is it another file?")
        return zipfile.ZipFile(path)
    except BadInput:
        raise
    except BROKEN as error:
        raise BadInput(f"{path}: a zip archive was needed, but it is broken ({error}); get it again") from None


def _listed(tail: bytes) -> Iterator[int]:
    """Yield how long the list of members is said to be, wherever an archive's end may be taken to stand."""
    long = [int.from_bytes(part[36:44], "little") for part in tail.split(b"PK\6\6")[1:]]
    yield from long
    for part in tail.split(b"PK\5\6")[1:]:
        size = int.from_bytes(part[8:12], "little")
        # The largest number says that the record before it, of a longer form, holds the length.
        if not (long and size == 2**32 - 1):
            yield size


def read(file: IO[bytes], *, source: str, most: int = MOST_BYTES) -> NDArray[Any]:
    """Return an array of plain numbers, whose header and content agree, from an npy file or a member of an npz."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            version = npy.read_magic(file)
            if version not in _HEADERS:
                raise BadInput(f"{source}: an array of plain numbers was needed, but npy {version} came; save it again")
            shape, by_columns, kind = _HEADERS[version](file)
        size = prod(shape) * kind.itemsize
        if kind.kind not in "biuf" or min(shape, default=0) < 0 or size > most:
            raise BadInput(
                f"{source}: plain numbers of at most {most:,} bytes were needed, but {kind} of shape {shape} came; is "
                "it another file?"
            )
        content = file.read(size)
        return np.frombuffer(content, kind, prod(shape)).reshape(shape, order="F" if by_columns else "C")
    except BadInput:
        raise
    except BROKEN as error:
        raise BadInput(f"{source}: an array of numbers was needed, but it is none ({error}); get it again") from None
