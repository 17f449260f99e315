"""CIFAR-10H: the 10,000 test images of CIFAR-10 with about 51 human answers each (Peterson et al. 2019)."""

from __future__ import annotations

import io
import lzma
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from relook.curves import difficult
from relook.errors import BadInput
from relook.noise import paper_code_labels
from relook.types import Dataset, FloatArray, IntArray, Labels, true_distribution

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

_ITEMS, _PAPER_ITEMS, _PAPER_SEED = 10_000, 5_000, 1234
_ROW = 1 + 3 * 32 * 32
_WHERE = "github.com/jcpeterson/cifar-10h (its folder data)"


def load(folder: str | Path, *, subset: str = "all", tau: float = 10.0, images: str | Path | None = None) -> Dataset:
    """Return CIFAR-10H with the given labels that the paper's released code draws at a temperature.

    The subset `all` is the test set in its order; `paper` is the 5,000 items that the released code really uses: every
    difficult one and a fixed draw of the others, in its order. Ids are rows of the CIFAR-10 test set. tau 2 and 10 are
    the paper's 15 % and 30 % noise. `images` is a folder with `cifar-10-batches-bin/test_batch.bin`, or else with
    `images.tar.xz` and `test_labels.npy`; they are read when asked for.
    """
    counts = _counts(Path(folder))
    truth = true_distribution(counts, len(CLASSES))
    if subset == "all":
        rows: IntArray = np.arange(_ITEMS)
        given = _labels_of_all(truth, tau)
    elif subset == "paper":
        rows = paper_rows(truth)
        given = paper_code_labels(truth[rows], tau)
    else:
        raise BadInput(
            f"cifar10h: the subset must be all or paper, but {subset!r} came; paper is the paper's 5,000 images"
        )
    return Dataset(
        name="cifar10h" if subset == "all" else f"cifar10h-{subset}",
        classes=CLASSES,
        ids=tuple(str(row) for row in rows),
        given=Labels(given, len(CLASSES)),
        truth=counts[rows].astype(np.float64),
        images=None if images is None else cast("Sequence[Any]", _images(Path(images), rows, truth=truth)),
    )


def paper_rows(truth: FloatArray) -> IntArray:
    """Return the 5,000 rows of the test set that the paper's released code uses, in its order.

    All difficult items, then a draw of the rest by `RandomState(1234)`, then a shuffle by the same one.
    """
    random = np.random.RandomState(_PAPER_SEED)
    hard = difficult(truth)
    kept, rest = np.flatnonzero(hard), np.flatnonzero(~hard)
    rows = np.concatenate([kept, random.choice(rest, _PAPER_ITEMS - len(kept), replace=False)])
    random.shuffle(rows)
    return rows


def _labels_of_all(truth: FloatArray, tau: float) -> IntArray:
    # The released code permutes the full set before it draws. The labels are its own; the order stays the publisher's,
    # so that arrays made elsewhere for the test set fit row by row.
    order = np.random.RandomState(_PAPER_SEED).permutation(len(truth))
    given = np.empty(len(truth), np.int64)
    given[order] = paper_code_labels(truth[order], tau)
    return given


def _counts(folder: Path) -> IntArray:
    path = folder / "cifar10h" / "cifar10h-counts.npy"
    if not path.is_file() and (folder / path.name).is_file():
        path = folder / path.name
    if not path.is_file():
        raise BadInput(f"cifar10h: {path} was needed, but there is no such file; get {path.name} from {_WHERE}")
    counts = _array(path)
    if counts.shape != (_ITEMS, len(CLASSES)) or counts.dtype.kind not in "iu":
        came = f"{counts.dtype} of shape {counts.shape}"
        raise BadInput(f"cifar10h: {path} must hold 10000 x 10 counts, but {came} came; get it from {_WHERE}")
    return counts


def _array(path: Path) -> IntArray:
    try:
        return cast("IntArray", np.load(path, allow_pickle=False))
    except (ValueError, EOFError) as error:
        raise BadInput(
            f"cifar10h: {path} must be an array of numbers, but it is none ({error}); get it again"
        ) from None


class BinaryImages:
    """Images in the official binary layout, memory-mapped: a label byte, then 1,024 red, green and blue bytes a row."""

    __slots__ = ("_pixels", "_rows", "labels")

    def __init__(self, path: Path, rows: IntArray) -> None:
        if path.stat().st_size != _ITEMS * _ROW:
            came = f"{path.stat().st_size:,}"
            raise BadInput(f"cifar10h: {path} must have {_ITEMS * _ROW:,} bytes, but it has {came}; unpack it again")
        table = np.memmap(path, np.uint8, "r", shape=(_ITEMS, _ROW))
        self.labels = np.asarray(table[:, 0], np.int64)
        self._pixels = table[:, 1:].reshape(_ITEMS, 3, 32, 32)
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, item: int) -> NDArray[np.uint8]:
        return np.ascontiguousarray(self._pixels[self._rows[item]].transpose(1, 2, 0))


class PackedImages:
    """Images as JPEG in `images.tar.xz`, named `test/CLASS/NUMBER.jpg`, numbered within their class in official order.

    The archive is read through at the first image, which takes some seconds; after that the test images stay in memory.
    """

    __slots__ = ("_jpegs", "_path", "_rows", "labels")

    def __init__(self, path: Path, rows: IntArray) -> None:
        names = path.with_name("test_labels.npy")
        if not names.is_file():
            raise BadInput(f"cifar10h: {names} was needed beside {path.name}, but there is no such file; add it")
        self.labels = _array(names)
        if self.labels.shape != (_ITEMS,):
            raise BadInput(
                f"cifar10h: {names} must hold 10000 labels, but shape {self.labels.shape} came; get it again"
            )
        self._path, self._rows = path, rows
        self._jpegs: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, item: int) -> NDArray[np.uint8]:
        from PIL import Image

        row = self._rows[item]
        label = self.labels[row]
        name = f"test/{CLASSES[label]}/{(self.labels[:row] == label).sum():04d}.jpg"
        if not self._jpegs:
            self._unpack()
        if name not in self._jpegs:
            raise BadInput(f"cifar10h: {name} was needed in {self._path}, but it is not there; get the archive again")
        return np.asarray(Image.open(io.BytesIO(self._jpegs[name])).convert("RGB"))

    def _unpack(self) -> None:
        try:
            with tarfile.open(self._path) as archive:
                for member in archive:
                    packed = archive.extractfile(member) if member.name.startswith("test/") else None
                    if packed is not None:
                        self._jpegs[member.name] = packed.read()
        except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
            raise BadInput(
                f"cifar10h: {self._path} must be an archive, but it is broken ({error}); get it again"
            ) from None


def _images(folder: Path, rows: IntArray, *, truth: FloatArray) -> BinaryImages | PackedImages:
    binary, packed = folder / "cifar-10-batches-bin" / "test_batch.bin", folder / "images.tar.xz"
    if binary.is_file():
        images: BinaryImages | PackedImages = BinaryImages(binary, rows)
    elif packed.is_file():
        images = PackedImages(packed, rows)
    else:
        raise BadInput(
            f"cifar10h: {binary} or {packed.name} beside it was needed, but neither is there; "
            "get CIFAR-10, binary version, and unpack it there"
        )
    # People agree with the official label on 99 % of the images: anything much below is another order or another set.
    agreement = float((images.labels == truth.argmax(1)).mean())
    if agreement < 0.9:
        raise BadInput(
            f"cifar10h: the images' labels should agree with the answers, but only {agreement:.0%} do; "
            "are they the test images in their official order?"
        )
    return images
