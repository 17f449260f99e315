"""Arrays of images, written out as PNG with every bit they have."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relook.errors import BadInput
from relook.npfiles import Stored

SIDE_MOST, PIXELS_MOST = 65_535, 100_000_000
"""So long a side of an image may be, and of so many pixels it may be made."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _COLOURS = 0, 2


def is_raster(stored: Stored) -> bool:
    """Say whether an array can hold images: N x H x W or N x H x W x 3 of bytes, or of two bytes."""
    shape, dtype = stored.shape, stored.dtype
    deep = dtype.kind == "u" and dtype.itemsize in (1, 2)
    return deep and (len(shape) == 3 or (len(shape) == 4 and shape[3] in (1, 3))) and min(shape, default=0) > 0


def png(pixels: NDArray[Any]) -> bytes:
    """Return an image, H x W or H x W x 3, of uint8 or uint16, as a PNG file with every bit.

    >>> png(np.zeros((2, 2), np.uint16))[1:4]
    b'PNG'
    """
    height, width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder(">")).reshape(height, -1).view(np.uint8)
    colour = _COLOURS if pixels.ndim == 3 and pixels.shape[2] == 3 else _GREY
    head = struct.pack(">IIBBBBB", width, height, 8 * pixels.dtype.itemsize, colour, 0, 0, 0)
    lines = np.zeros((height, rows.shape[1] + 1), np.uint8)
    lines[:, 1:] = rows
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )


class Rasters:
    """Images of items as one array or several, an image of each an item; rows are unpacked in order, one at a time."""

    __slots__ = ("_names", "_next", "_rows", "_stored")

    def __init__(self, stored: Sequence[Stored]) -> None:
        self._stored = tuple(stored)
        self._rows: tuple[Iterator[NDArray[Any]], ...] = ()
        self._next = -1
        for part in stored:
            if not is_raster(part) or max(part.shape[1:3]) > SIDE_MOST or np.prod(part.shape[1:3]) > PIXELS_MOST:
                raise BadInput(
                    f"{part.path}: images of uint8 or uint16, N x H x W or N x H x W x 3, of {PIXELS_MOST:,} pixels at "
                    f"most were needed, but {part} came; convert them"
                )

    def write(self, item: int, folder: Path) -> Sequence[str]:
        """Write the images of an item into a folder, and return the names of the files."""
        if item != self._next:
            self._rows = tuple(part.rows() for part in self._stored)
            for _ in range(item):
                self._step()
        names = []
        for view, pixels in enumerate(self._step(), 1):
            name = f"{item}.png" if len(self._stored) == 1 else f"{item}-{view}.png"
            (folder / name).write_bytes(png(pixels))
            names.append(name)
        self._next = item + 1
        return names

    def _step(self) -> list[NDArray[Any]]:
        return [next(rows) for rows in self._rows]
