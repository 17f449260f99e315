"""Images as files hold them: what is let in, what it weighs, and its pixels upright.

A file is read once: its size and hash are what it is known by later. Only PNG, JPEG, WebP and TIFF are opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relook.errors import BadInput

FORMATS = ("PNG", "JPEG", "WEBP", "TIFF")
"""Kinds of images that are opened, by Pillow's names."""

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff")
"""What the names of such files end in."""


def linked(
    root: Path, names: Sequence[Sequence[str]], *, step: Callable[[], object] | None = None
) -> tuple[list[list[int]], list[list[str]]]:
    """Read every file of every item and return their sizes and their SHA-256, a list an item; `step` follows each."""
    sizes: list[list[int]] = []
    hashes: list[list[str]] = []
    for files in names:
        contents = [(root / name).read_bytes() for name in files]
        sizes.append([len(content) for content in contents])
        hashes.append([hashlib.sha256(content).hexdigest() for content in contents])
        if step is not None:
            step()
    return sizes, hashes


def eight_bit(path: Path) -> NDArray[np.uint8]:
    """Return an image as bytes, H x W or H x W x 3, turned upright as its camera meant it."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(path, formats=FORMATS) as opened:
            upright: Any = ImageOps.exif_transpose(opened)
            return np.asarray(upright if upright.mode == "L" else upright.convert("RGB"))
    except (OSError, UnidentifiedImageError, ValueError) as error:
        raise BadInput(f"{path}: an image was needed, but it cannot be read ({error}); save it again") from None
