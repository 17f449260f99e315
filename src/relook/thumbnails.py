"""The images of an imported set, opened when they are looked at; small pictures of them are kept, made once.

A thumbnail is known by the hash of its image's file, so alike images share one, and a file that has changed since it
was imported is noticed instead of shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relook import pictures
from relook.errors import BadInput
from relook.pictures import SIDE, Step
from relook.whole import drafted

THUMBNAILS = "thumbnails"
"""The folder of an imported set that they are kept in."""

_STARTS = (b"\x89PNG", b"\xff\xd8\xff")
_AT_A_TIME = 64

Engine = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]


class LinkedImages:
    """The first image of each item, opened when it is looked at.

    Files lie under `root`; `hashes` are what they were known by when they were imported. Small pictures are kept in the
    folder `kept`, where one is named.
    """

    __slots__ = ("_files", "_hashes", "_kept", "_root")

    def __init__(
        self, root: Path, files: Sequence[Sequence[str]], *, hashes: Sequence[Sequence[str]], kept: Path | None = None
    ) -> None:
        self._root, self._files, self._hashes, self._kept = root, files, hashes, kept

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, item: int) -> NDArray[np.uint8]:
        path, content = self._content(item)
        return pictures.decoded(content, place=str(path))

    def packed(self, item: int, *, side: int = SIDE) -> bytes:
        """Return an item's first image as a small file, the kept one where it has been looked at before."""
        kept = self._place(item) if side == SIDE else None
        if kept is not None and kept.is_file():
            content = kept.read_bytes()
            if content.startswith(_STARTS):
                return content
        path, content = self._content(item)
        made = pictures.small(content, place=str(path), side=side)
        if kept is not None:
            _keep(kept, made)
        return made

    def known_by(self, item: int) -> str | None:
        """Return the hash of an item's first image as it was imported, or None where it has none."""
        return next(iter(self._hashes[item]), None)

    def failures(self, items: Sequence[int]) -> list[str]:
        """Make the thumbnails of some items, and return what is wrong with those whose image cannot be shown."""
        found = []
        for item in items:
            try:
                self.packed(item)
            except BadInput as error:
                found.append(str(error))
        return found

    def _place(self, item: int) -> Path | None:
        hashes = self._hashes[item]
        return None if self._kept is None or not hashes else self._kept / hashes[0][:2] / hashes[0]

    def _content(self, item: int) -> tuple[Path, bytes]:
        if not self._files[item]:
            raise BadInput(f"images: item {item} was to be shown, but it has no image; leave it out")
        path = self._root / self._files[item][0]
        content = pictures.content_of(self._root, self._files[item][0])
        if hashlib.sha256(content).hexdigest() != self._hashes[item][0]:
            raise BadInput(f"{path}: the image that was imported was needed, but the file has changed; import it again")
        return path, content


def make_all(images: LinkedImages, *, engine: Engine, step: Step | None = None) -> list[str]:
    """Make every thumbnail that is not there yet, and return what is wrong with images that cannot be shown.

    `engine` says where: `serial`, or `Processes(2)` for two at a time.
    """
    parts = [range(begin, min(begin + _AT_A_TIME, len(images))) for begin in range(0, len(images), _AT_A_TIME)]
    wrong: list[str] = []
    for part, found in zip(parts, engine(images.failures, parts), strict=True):
        wrong += found
        if step is not None:
            step(len(part))
    return wrong


def _keep(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; a set that may not be written to is looked at all the same."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with drafted(path) as draft:
            draft.write_bytes(content)
