"""Images as files hold them: what is let in, what it weighs, and its pixels upright.

A file is read once: its size and hash are what it is known by later. Only PNG, JPEG, WebP and TIFF are opened, by the
bytes they begin with. Nothing is decoded until somebody looks.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from stat import S_ISREG
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook.errors import BadInput
from relook.headers import header
from relook.sources import Names, counted

SUFFIXES = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".tif", ".tiff")
"""What the names of images end in."""

SIDE = 144
"""The longer side of a small picture, in pixels; smaller ones stay as they are."""

LARGEST = 400_000_000
"""A file of an image has at most so many bytes."""

Step = Callable[[int], object]
"""Called with a number of items whenever so many are done."""

_PIXELS_KEPT = 64
_AT_ONCE, _WEIGHT_OF_A_FILE, _WEIGHT_OF_A_STEP = 1 << 16, 1 << 15, 1 << 24
_AS_FILE = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_DEPTHS = (8, 10, 12, 14, 16)


class Linked(msgspec.Struct, frozen=True):
    """Files by the number of their item, with what they weigh and are known by; `facts` are what was seen of them."""

    items: Sequence[int]
    names: Sequence[str]
    sizes: Sequence[int]
    hashes: Sequence[str]
    facts: Names = ()


def linked(
    root: Path, names: Sequence[Sequence[str]], *, called: str | None = None, step: Step | None = None
) -> Linked:
    """Read every file of every item once, for its size and SHA-256; refuse what is no whole image of ours.

    `called` is what messages say for the root. Names are paths inside the root, with `/`.
    """
    files = _Files(root, str(root) if called is None else called)
    flat = [(item, name) for item, several in enumerate(names) for name in several]
    sizes: list[int] = []
    hashes: list[str] = []
    paged = told = weight = 0
    for item, name in flat:
        content = files.read(name)
        paged += _checked(content, f"{files.called}/{name}") > 1
        sizes.append(len(content))
        hashes.append(sha256(content).hexdigest())
        weight += len(content) + _WEIGHT_OF_A_FILE
        if step is not None and weight > _WEIGHT_OF_A_STEP:
            step(item - told)
            told, weight = item, 0
    if step is not None:
        step(len(names) - told)
    first = f"{files.called}: the first page is taken of {counted(paged, 'TIFF')} with more than one."
    items, every = [item for item, _ in flat], [name for _, name in flat]
    return Linked(items, every, sizes, hashes, (first,) if paged else ())


def inside(name: str, *, called: str) -> str:
    """Return the name of a file, which must stay inside the folder that it is told from.

    >>> inside("./cat/1.png", called="pets")
    'cat/1.png'
    """
    plain = name.removeprefix("./")
    parts = plain.split("/")
    if name.startswith("/") or (len(name) > 1 and name[1] == ":" and name[0].isalpha()):
        raise BadInput(f"{called}: paths from its own folder on were needed, but {name!r} starts elsewhere; cut it")
    if ".." in parts:
        raise BadInput(f"{called}: paths that stay in the folder were needed, but {name!r} leads out; move the file")
    if "." in parts or "" in parts or "\0" in plain:
        raise BadInput(f"{called}: the path of a file was needed, but {name!r} came; write folder/name")
    return plain


def eight_bit(path: Path) -> NDArray[np.uint8]:
    """Return an image as bytes, H x W or H x W x 3, turned upright as its camera meant it.

    What is transparent lies over white; CMYK and palettes become red, green and blue. Deeper greys are taken to have 8,
    10, 12, 14 or 16 bits, the fewest that hold the largest value, and all of them are shown.
    """
    return decoded(_content_at(path), place=str(path))


def decoded(content: bytes, *, place: str) -> NDArray[np.uint8]:
    """Return the bytes of an image's file as pixels, as `eight_bit` does."""
    with _opened(content, place) as image:
        return _as_bytes(_upright(image), place)


def full_depth(path: Path) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Return an image upright with all bits of its greys, uint16 where they have more than 8; colours have 8."""
    with _opened(_content_at(path), str(path)) as image:
        upright = _upright(image)
        return _deep(upright, str(path)) if upright.mode.startswith("I") else _as_bytes(upright, str(path))


def small(content: bytes, *, place: str, side: int = SIDE) -> bytes:
    """Return the bytes of an image's file as those of a small picture; a large JPEG is never decoded whole."""
    with _opened(content, place) as image:
        image.draft(None, (side, side))
        return packed(_as_bytes(_upright(image), place), side=side)


def packed(pixels: NDArray[Any], *, side: int = SIDE) -> bytes:
    """Return an image as a file of few bytes: a tiny one as PNG to the pixel, a larger one made small, as JPEG."""
    from PIL import Image

    if pixels.dtype != np.uint8 or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] == 3)):
        came = f"{pixels.dtype} of shape {pixels.shape}"
        raise BadInput(f"image: uint8 of shape H x W or H x W x 3 was needed, but {came} came; convert it")
    image = Image.fromarray(pixels)
    file = BytesIO()
    if max(image.size) <= _PIXELS_KEPT:
        image.save(file, "PNG", optimize=True)
    else:
        image.thumbnail((side, side))
        image.save(file, "JPEG", quality=82)
    return file.getvalue()


def content_of(root: Path, name: str) -> bytes:
    """Return the bytes of an image's file, which lies under a folder."""
    return _Files(root, str(root)).read(name)


class _Files:
    """Reads files under a folder, and none that a link leads to elsewhere."""

    def __init__(self, root: Path, called: str) -> None:
        self.called = called
        self._root = os.path.realpath(root)
        self._prefix = os.path.join(self._root, "")  # noqa: PTH118  # a Path a file costs more than the file
        self._folder: str | None = None

    def read(self, name: str) -> bytes:
        folder, _, _ = name.rpartition("/")
        try:
            if folder != self._folder:
                self._stays(inside(name, called=self.called).rpartition("/")[0])
                self._folder = folder
            return self._content(name)
        except (OSError, ValueError) as error:
            if isinstance(error, BadInput):
                raise
            reason = getattr(error, "strerror", None) or str(error)
            raise BadInput(
                f"{self.called}/{name}: a file that can be read was needed, but it cannot ({reason}); check the path"
            ) from None

    def _stays(self, name: str) -> str:
        """Return where a name leads, links followed, which must be inside the root."""
        there = os.path.realpath(self._prefix + name)
        if there != self._root and not there.startswith(self._prefix):
            raise BadInput(
                f"{self.called}/{name}: a file inside the folder was needed, but a link leads out of it; copy the file"
            )
        return there

    def _content(self, name: str) -> bytes:
        try:
            file = os.open(self._prefix + name, _AS_FILE)
        except OSError:
            # A link, or nothing: a link is followed where it stays inside.
            inside(name, called=self.called)
            file = os.open(self._stays(name), _AS_FILE)
        try:
            content = os.read(file, _AT_ONCE)
            return content if 0 < len(content) < _AT_ONCE else content + self._rest(file, name)
        finally:
            os.close(file)

    def _rest(self, file: int, name: str) -> bytes:
        known = os.fstat(file)
        if not S_ISREG(known.st_mode):
            raise BadInput(f"{self.called}/{name}: an ordinary file was needed, but it is none; leave it out")
        if known.st_size > LARGEST:
            raise BadInput(
                f"{self.called}/{name}: an image of at most {LARGEST // 10**6} MB was needed, but "
                f"{known.st_size // 10**6:,} MB came; make it smaller"
            )
        with os.fdopen(file, "rb", closefd=False) as rest:
            return rest.read(LARGEST)


def _content_at(path: Path) -> bytes:
    there = path.resolve()
    return content_of(there.parent, there.name)


def _checked(content: bytes, place: str) -> int:
    """Refuse what is no whole image of ours, and return how many pages it has."""
    found = header(content, place=place)
    if found.kind == "TIFF":
        # There are more ways to lay out a TIFF than anybody reads.
        with _opened(content, place):
            return found.pages
    return 1


@contextmanager
def _opened(content: bytes, place: str) -> Iterator[Any]:
    """Open an image, and turn whatever its bytes bring about into a sentence."""
    from PIL import Image, JpegImagePlugin, PngImagePlugin, TiffImagePlugin, WebPImagePlugin  # noqa: F401

    kind = header(content, place=place).kind
    try:
        # Pillow warns of tags that it cannot read and of what is larger than it likes; neither changes a pixel.
        with warnings.catch_warnings(action="ignore"), Image.open(BytesIO(content), formats=(kind,)) as image:
            yield image
    except BadInput:
        raise
    except Exception as error:  # noqa: BLE001  # a decoder of damaged bytes may raise anything
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(
            f"{place}: an image was needed, but it cannot be read ({reason}); save it again as a PNG"
        ) from None


def _upright(image: Any) -> Any:
    from PIL import ImageOps

    image.load()
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # noqa: BLE001  # tags that nobody can read turn nothing
        return image


def shallow(deep: NDArray[np.uint16]) -> NDArray[np.uint8]:
    """Return deep greys as bytes; they are taken to have 8, 10, 12, 14 or 16 bits, the fewest that hold the largest.

    >>> shallow(np.array([[0, 1023]], np.uint16)).tolist()
    [[0, 255]]
    """
    wide = deep.astype(np.uint32)
    bits = next(bits for bits in _DEPTHS if int(wide.max()) < 1 << bits)
    most = (1 << bits) - 1
    return ((wide * 255 + most // 2) // most).astype(np.uint8)


def _as_bytes(image: Any, place: str) -> NDArray[np.uint8]:
    if image.mode.startswith("I"):
        return shallow(_deep(image, place))
    if image.mode == "F":
        raise BadInput(f"{place}: pixels of 8 or 16 bits were needed, but fractions came; save it with 16 bits")
    grey = image.mode in ("1", "L", "LA", "La")
    if image.has_transparency_data:
        image = _over_white(image)
    return np.asarray(image.convert("L" if grey else "RGB"))


def _over_white(image: Any) -> Any:
    from PIL import Image

    white = Image.new("RGBA", image.size, "white")
    straight = image.convert("LA") if image.mode == "La" else image
    white.alpha_composite(straight.convert("RGBA"))
    return white.convert("RGB")


def _deep(image: Any, place: str) -> NDArray[np.uint16]:
    values = np.asarray(image)
    if values.min() < 0 or values.max() > np.iinfo(np.uint16).max:
        raise BadInput(
            f"{place}: greys from 0 to 65,535 were needed, but {values.min():,} to {values.max():,} came; "
            "save it with 16 bits"
        )
    return values.astype(np.uint16)
