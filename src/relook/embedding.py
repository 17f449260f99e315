"""Embeddings of images by a pretrained network, kept by the content of each image: none is described twice.

What is kept lies in a folder a network and its settings, in files of at most 1,024 rows, each written whole or not at
all. A file that is broken is passed over, and its images are described again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook import npfiles
from relook.errors import BadInput, MissingExtra
from relook.imported import Imported
from relook.pictures import Step, shallow
from relook.sources import listed
from relook.thumbnails import LinkedImages
from relook.whole import check_target, drafted, whole

if TYPE_CHECKING:
    from relook.train.frozen import Frozen

EMBEDDED = "embedded"
"""The folder of an imported set that they are kept in, where no other is named."""

ROWS = 1_024
"""So many rows at most are kept in one file, and lost where a run is killed."""

MODEL = "efficientnet-lite1"
"""The network that is taken where none is named."""

FOREIGN = ("torchvision", "timm")
"""Packages whose networks can be used, where the user has them, as `timm:NAME`."""


class Images(Protocol):
    """Images of items, read when they are looked at: an imported set's, an array, or a list of arrays."""

    def __len__(self) -> int: ...

    def __getitem__(self, item: int, /) -> Any: ...


class Embedded(msgspec.Struct, frozen=True, eq=False):
    """A row of numbers for each item, NaN where it has no image, and how many images had to be described for it."""

    values: NDArray[np.float32]
    new: int


def model(name: str = MODEL, *, weights: Path | None = None) -> Frozen:
    """Return a pretrained network: an EfficientNet-Lite, or `torchvision:NAME` or `timm:NAME` with weights at hand.

    `weights` is a file of torch's or of safetensors, for networks of these packages.
    """
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise MissingExtra("embed: torch was needed, but it is not installed; pip install 'relook[embed]'")
    from relook.train import efficientnet, foreign

    package, _, network = name.partition(":")
    if package in FOREIGN and network:
        return foreign.network(package, network, weights=weights)
    if name not in efficientnet.VARIANTS:
        known = listed([*efficientnet.VARIANTS, *(f"{package}:NAME" for package in FOREIGN)])
        raise BadInput(f"embed: a network was needed ({known}), but {name!r} came; take one of these")
    if weights is not None:
        raise BadInput(f"embed: {name} has weights of its own, but {weights} came; leave them out")
    return efficientnet.frozen(name)


def embedded(images: Images, frozen: Frozen, *, kept: Path | None = None, step: Step | None = None) -> Embedded:
    """Return embeddings of images: uint8 or uint16, H x W or H x W x 3, of any size, or those of an imported set.

    Rows are looked up in the folder `kept` by the content of the images, and new ones are added to it.
    """
    keys = [_key(images, item) for item in range(len(images))]
    cache = _Cache(None if kept is None else kept / frozen.key)
    firsts: dict[bytes, int] = {}
    for item, key in enumerate(keys):
        if key and key not in cache.rows:
            firsts.setdefault(key, item)
    told = step or (lambda _: None)
    told(sum(key not in firsts for key in keys))
    try:
        for key, row in _new(images, frozen, items=firsts):
            cache.add(key, row)
            told(1)
    finally:
        cache.flush()
    return Embedded(_rows_of(keys, cache.rows), len(firsts))


def _rows_of(keys: Sequence[bytes], rows: Mapping[bytes, NDArray[np.float32]]) -> NDArray[np.float32]:
    width = len(next(iter(rows.values()), ()))
    values = np.full((len(keys), width), np.nan, np.float32)
    for item, key in enumerate(keys):
        if key:
            values[item] = rows[key]
    return values


def embed(
    found: Imported, frozen: Frozen, *, to: Path | None = None, cache: Path | None = None, step: Step | None = None
) -> tuple[Path, Embedded]:
    """Write embeddings of a set's images, into the set where no file is named: `relook rank` then learns from them."""
    target = to or found.folder / "embeddings.npy"
    if to is None and target.name in found.manifest.hashes:
        raise BadInput(
            f"{found.folder}: a set without embeddings was needed, but it was imported with some; name a file with --to"
        )
    if found.manifest.content != "images":
        raise BadInput(
            f"{found.folder}: images were needed, but it holds {found.manifest.content}; import it with images"
        )
    check_target(target)
    made = embedded(found.images(), frozen, kept=cache or found.folder / EMBEDDED, step=step)
    with (
        whole(target, {"network": frozen.name, "weights": frozen.weights, "side": frozen.side}) as draft,
        draft.open("wb") as file,
    ):
        np.save(file, made.values, allow_pickle=False)
    return target, made


def _key(images: Images, item: int) -> bytes:
    """Return what an image is known by: the hash of its file or of its pixels, nothing where there is none."""
    if isinstance(images, LinkedImages):
        return bytes.fromhex(images.known_by(item) or "")
    pixels = np.ascontiguousarray(images[item])
    return hashlib.sha256(f"{pixels.dtype} {pixels.shape} ".encode() + pixels.tobytes()).digest()


def _new(images: Images, frozen: Frozen, *, items: Mapping[bytes, int]) -> Iterator[tuple[bytes, NDArray[np.float32]]]:
    from relook.train.frozen import BATCH, described

    keys, places = list(items), list(items.values())
    parts = [places[first : first + BATCH] for first in range(0, len(places), BATCH)]
    batches: list[Callable[[], NDArray[np.uint8]]] = [_Scaled(images, part, frozen.side) for part in parts]
    rows = (row for batch in described(frozen, batches) for row in batch)
    yield from zip(keys, rows, strict=True)


class _Scaled(msgspec.Struct, frozen=True):
    """Some images, read and scaled to squares when they are called for."""

    images: Images
    items: Sequence[int]
    side: int

    def __call__(self) -> NDArray[np.uint8]:
        from PIL import Image

        size, how = (self.side, self.side), Image.Resampling.BICUBIC
        read = (Image.fromarray(_checked(self.images[item], item)).convert("RGB") for item in self.items)
        return np.stack([np.asarray(image.resize(size, how)) for image in read])


def _checked(image: Any, item: int) -> NDArray[np.uint8]:
    pixels = np.asarray(image)
    if pixels.dtype == np.uint16 and pixels.ndim == 2 and pixels.size:
        return shallow(pixels)
    if pixels.dtype.kind == "f" and np.isnan(pixels).any():
        raise BadInput(f"images: bytes were needed for pixels, but item {item} has NaN among them; read it again")
    if (
        pixels.dtype != np.uint8
        or pixels.ndim not in (2, 3)
        or (pixels.ndim == 3 and pixels.shape[2] != 3)
        or not pixels.size
    ):
        raise BadInput(
            f"images: uint8 of H x W or H x W x 3 was needed, but item {item} is {pixels.dtype} of shape "
            f"{pixels.shape}; convert it"
        )
    return pixels


class _Cache:
    """Rows by the content of their image, those on the disk and those to be put there."""

    __slots__ = ("_folder", "_waiting", "rows")

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._waiting: list[bytes] = []
        self.rows: dict[bytes, NDArray[np.float32]] = {}
        for path in sorted(folder.glob("*.npz")) if folder is not None else ():
            self.rows.update(_rows(path))

    def add(self, key: bytes, row: NDArray[np.float32]) -> None:
        self.rows[key] = row
        self._waiting.append(key)
        if len(self._waiting) == ROWS:
            self.flush()

    def flush(self) -> None:
        """Put on the disk what is not there yet."""
        waiting, self._waiting = self._waiting, []
        if self._folder is None or not waiting:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        keys = np.frombuffer(b"".join(waiting), np.uint8).reshape(len(waiting), -1)
        name = hashlib.sha256(keys.tobytes()).hexdigest()[:32]
        with drafted(self._folder / f"{name}.npz") as draft, draft.open("wb") as file:
            np.savez(file, keys=keys, rows=np.stack([self.rows[key] for key in waiting]))


def _rows(path: Path) -> dict[bytes, NDArray[np.float32]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            keys, rows = found["keys"], found["rows"]
        return {key.tobytes(): row for key, row in zip(keys, rows, strict=True)}
    except npfiles.BROKEN:
        return {}
