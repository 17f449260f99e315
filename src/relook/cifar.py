"""CIFAR-10's images and labels, a split at a time in official order, from each of the layouts that they come in."""

from __future__ import annotations

import io
import lzma
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from relook import npfiles
from relook.errors import BadInput
from relook.pickledfiles import unpickled
from relook.types import IntArray

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

SPLITS: Mapping[str, int] = MappingProxyType({"train": 50_000, "test": 10_000})
"""How many images the splits have."""

BINARY, PYTHON, PACKED = "cifar-10-batches-bin", "cifar-10-batches-py", "images.tar.xz"
"""The folders of the official layouts, and an archive of the images as JPEG by class, with their labels beside it."""

_BATCH, _PIXELS = 10_000, 3 * 32 * 32
_BATCHES = {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}
_WHERE = "get CIFAR-10 with relook datasets get cifar10, or from its page"
_MOST_JPEG = 2**20


class Images(Protocol):
    """The images of a split, read when they are looked at, and their official labels."""

    labels: IntArray

    def __len__(self) -> int: ...

    def __getitem__(self, item: int, /) -> NDArray[np.uint8]: ...


class BinaryImages:
    """Images in the official binary layout, memory-mapped: a label byte, then 1,024 red, green and blue bytes a row."""

    __slots__ = ("_tables", "labels")

    def __init__(self, folder: Path, split: str) -> None:
        self._tables = [_table(folder / BINARY / f"{name}.bin") for name in _BATCHES[split]]
        self.labels = _checked(np.concatenate([table[:, 0] for table in self._tables]), folder / BINARY)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, item: int) -> NDArray[np.uint8]:
        batch, row = divmod(range(len(self))[item], _BATCH)
        return _image(self._tables[batch][row, 1:])


class PythonImages:
    """Images in the official python layout, in memory; what is in its files is read, never run."""

    __slots__ = ("_tables", "labels")

    def __init__(self, folder: Path, split: str) -> None:
        batches = [_batch(folder / PYTHON / name) for name in _BATCHES[split]]
        self._tables = [pixels for pixels, _ in batches]
        self.labels = _checked(np.concatenate([labels for _, labels in batches]), folder / PYTHON)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, item: int) -> NDArray[np.uint8]:
        batch, row = divmod(range(len(self))[item], _BATCH)
        return _image(self._tables[batch][row])


class PackedImages:
    """Images as JPEG in `images.tar.xz`, named `test/CLASS/NUMBER.jpg`, numbered within their class in official order.

    The archive is read through at the first image, which takes some seconds; after that the split stays in memory.
    """

    __slots__ = ("_jpegs", "_numbers", "_path", "_split", "labels")

    def __init__(self, folder: Path, split: str) -> None:
        self._path, self._split = folder / PACKED, split
        path = folder / f"{split}_labels.npy"
        if not path.is_file():
            raise BadInput(f"cifar10: {path} was needed beside {PACKED}, but there is no such file; add it")
        labels = npfiles.single(path).numbers()
        if labels.shape != (SPLITS[split],) or labels.dtype.kind not in "iu":
            came = f"{labels.dtype} of shape {labels.shape}"
            raise BadInput(f"cifar10: {path} must hold {SPLITS[split]} labels, but {came} came; get it again")
        self.labels = _checked(labels, path)
        self._numbers = np.empty(len(labels), np.int64)
        for label in range(len(CLASSES)):
            self._numbers[self.labels == label] = np.arange((self.labels == label).sum())
        self._jpegs: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, item: int) -> NDArray[np.uint8]:
        name = f"{self._split}/{CLASSES[self.labels[item]]}/{self._numbers[item]:04d}.jpg"
        if not self._jpegs:
            self._unpack()
        if name not in self._jpegs:
            raise BadInput(f"cifar10: {name} was needed in {self._path}, but it is not there; get the archive again")
        return _decoded(self._jpegs[name], f"{self._path}, {name}")

    def _unpack(self) -> None:
        try:
            with tarfile.open(self._path) as archive:
                for member in archive:
                    if member.isfile() and member.name.startswith(f"{self._split}/") and member.size <= _MOST_JPEG:
                        self._jpegs[member.name] = cast("Any", archive.extractfile(member)).read()
        except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
            raise BadInput(
                f"cifar10: {self._path} must be an archive, but it is broken ({error}); get it again"
            ) from None


class Picked:
    """Some of the images, by their row in the split."""

    __slots__ = ("_images", "_rows")

    def __init__(self, images: Images, rows: Sequence[int] | IntArray) -> None:
        self._images, self._rows = images, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, item: int) -> NDArray[np.uint8]:
        return self._images[int(self._rows[item])]


LAYOUTS: Mapping[str, Callable[[Path, str], Images]] = MappingProxyType(
    {BINARY: BinaryImages, PYTHON: PythonImages, PACKED: PackedImages}
)
"""What the layouts are known by in a folder, best first."""


def images(folder: Path, split: str) -> Images:
    """Return the images of a split from the first layout that is in a folder, or in its folder `cifar10`."""
    if split not in SPLITS:
        raise BadInput(f"cifar10: the split must be {' or '.join(SPLITS)}, but {split!r} came; name one of them")
    for place in (folder, folder / "cifar10"):
        for name, layout in LAYOUTS.items():
            if (place / name).exists():
                return layout(place, split)
    known = ", ".join(LAYOUTS)
    raise BadInput(f"cifar10: one of {known} was needed in {folder}, but none is there; {_WHERE}")


def _table(path: Path) -> NDArray[np.uint8]:
    wanted = _BATCH * (1 + _PIXELS)
    size = path.stat().st_size if path.is_file() else 0
    if size != wanted:
        raise BadInput(f"cifar10: {path} must have {wanted:,} bytes, but it has {size:,}; unpack it again")
    return np.memmap(path, np.uint8, "r", shape=(_BATCH, 1 + _PIXELS))


def _batch(path: Path) -> tuple[NDArray[np.uint8], IntArray]:
    if not path.is_file():
        raise BadInput(f"cifar10: {path} was needed, but there is no such file; unpack the archive again")
    found = unpickled(path)
    pixels, labels = found.get("data"), found.get("labels")
    sound = isinstance(pixels, np.ndarray) and pixels.shape == (_BATCH, _PIXELS) and pixels.dtype == np.uint8
    if (
        not sound
        or type(labels) is not list
        or len(labels) != _BATCH
        or any(type(label) is not int for label in labels)
    ):
        raise BadInput(
            f"cifar10: {path} must hold {_BATCH:,} rows of {_PIXELS:,} bytes as data and {_BATCH:,} labels, but it "
            f"holds {', '.join(map(repr, list(found)[:8])) or 'nothing'}; get the archive again"
        )
    return cast("NDArray[np.uint8]", pixels), np.array(np.clip(labels, -1, len(CLASSES)), np.int64)


def _checked(labels: NDArray[Any], where: Path) -> IntArray:
    found = labels.astype(np.int64)
    bad = (found < 0) | (found >= len(CLASSES))
    if bad.any():
        row = int(bad.argmax())
        raise BadInput(f"cifar10: labels must be 0 to 9, but row {row:,} of {where} has {labels[row]}; get it again")
    return found


def _image(row: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(row.reshape(3, 32, 32).transpose(1, 2, 0))


def _decoded(content: bytes, where: str) -> NDArray[np.uint8]:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=["JPEG"]) as opened:
            if max(opened.size) > 32:
                raise BadInput(f"cifar10: {where} must have 32 x 32 pixels, but {opened.size} came; get it again")
            return np.asarray(opened.convert("RGB"))
    except (OSError, SyntaxError) as error:
        raise BadInput(f"cifar10: {where} must be a JPEG image, but it is none ({error}); get it again") from None
