"""What the bytes of an image file say of it before anything is decoded: its kind, its size, and whether all of it came.

Files from strangers are judged here, by their own first bytes and not by their names, so that one that would fill the
memory, or that was cut off on its way, is refused where it comes in.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook.errors import BadInput

Kind = Literal["PNG", "JPEG", "WEBP", "TIFF"]

PIXELS = 100_000_000
"""An image has at most so many pixels."""

SCANS = 100
"""A progressive JPEG has about ten; each costs as much as the whole image to decode."""

BITS = 16
"""A grey value or a colour has at most so many bits."""

_SEGMENTS, _PIECES = 10_000, 1_000_000
_START_OF_SCAN, _END_OF_IMAGE = b"\xff\xda", b"\xff\xd9"
_FRAMES_OF_JPEG = frozenset((0xC0, 0xC1, 0xC2, 0xC9, 0xCA))
_OTHER_FRAMES = frozenset((0xC3, 0xC5, 0xC6, 0xC7, 0xCB, 0xCD, 0xCE, 0xCF))
_BARE_MARKERS = frozenset((0x01, *range(0xD0, 0xD9)))
_DEPTHS_OF_PNG = MappingProxyType({0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)})
_LAST_OF_PNG = b"\0\0\0\0IEND\xaeB`\x82"
_NUMBERS_OF_TIFF = MappingProxyType({1: "u1", 3: "u2", 4: "u4"})
_COMPRESSIONS = frozenset((1, 2, 3, 4, 5, 7, 8, 32773, 32946))
"""Of TIFF: none, the three of fax machines, LZW, JPEG, deflate twice, and packed bits."""

_WIDTH, _HEIGHT, _DEPTH, _COMPRESSION, _FORMAT = 256, 257, 258, 259, 339
_PLACES = ((273, 279), (324, 325))
"""Tags of TIFF that say where pixels lie and how many bytes they take: in strips, or in tiles."""

_OTHERS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"GIF8", "GIF"),
    (0, b"BM", "BMP"),
    (0, b"<svg", "SVG"),
    (0, b"<?xml", "XML, such as SVG,"),
    (0, b"%PDF", "PDF"),
    (0, b"8BPS", "Photoshop"),
    (4, b"ftyp", "HEIF, AVIF or video"),
    (4, b"jP  ", "JPEG 2000"),
    (128, b"DICM", "DICOM"),
)


class Header(msgspec.Struct, frozen=True):
    """What an image file says of itself; `pages` is 2 where a TIFF has more than one."""

    kind: Kind
    width: int
    height: int
    pages: int = 1


def header(content: bytes, *, place: str) -> Header:
    """Return what an image file says of itself; refuse one that is no image of ours, too large, animated or cut off.

    >>> from io import BytesIO
    >>> from PIL import Image
    >>> Image.new("L", (3, 2)).save(file := BytesIO(), "PNG")
    >>> header(file.getvalue(), place="a.png")
    Header(kind='PNG', width=3, height=2, pages=1)
    """
    magic, parse = _PARSERS.get(content[:2], (b"", None))
    if parse is None or not content.startswith(magic):
        raise BadInput(
            f"{place}: a PNG, JPEG, WebP or TIFF image was needed, but {_came(content)} came; save it as one of these"
        )
    try:
        found = parse(content, place)
    except (IndexError, struct.error, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        _cut(place, "its header breaks off")
    if found.width < 1 or found.height < 1:
        raise BadInput(f"{place}: an image with pixels was needed, but it has {_size(found)}; save it again")
    if found.width * found.height > PIXELS:
        raise BadInput(
            f"{place}: an image of at most {PIXELS // 10**6} megapixels was needed, but {_size(found)} came; "
            "make it smaller"
        )
    return found


def _jpeg(content: bytes, place: str) -> Header:
    at, found = _after_frame(content, place)
    begin = content.find(_START_OF_SCAN, at)
    # Where the very end is that of an image, and even all bytes hold few marks of a scan, no more need be looked at.
    if begin < 0 or content.count(_START_OF_SCAN) > SCANS or not content.endswith(_END_OF_IMAGE):
        end = content.find(_END_OF_IMAGE, begin) if begin >= 0 else -1
        if end < 0:
            _cut(place, "a JPEG ends with FF D9")
        scans = content.count(_START_OF_SCAN, begin, end)
        if scans > SCANS:
            raise BadInput(f"{place}: at most {SCANS} scans were needed, but it has {scans:,}; save it as a plain JPEG")
    return found


def _after_frame(content: bytes, place: str) -> tuple[int, Header]:
    """Return where the header of a JPEG's frame ends, and what it says."""
    at = 2
    for _ in range(_SEGMENTS):
        if content[at] != 0xFF:
            _unsound(place, "JPEG", why=f"byte {at:,} begins no segment")
        marker = content[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _BARE_MARKERS:
            at += 2
        elif marker in _FRAMES_OF_JPEG:
            bits, height, width, parts = struct.unpack_from(">BHHB", content, at + 4)
            if bits != 8 or parts not in (1, 3, 4):
                _unsound(place, "JPEG", why=f"it has {parts} colours of {bits} bits, not 1, 3 or 4 of 8")
            return at + 10, Header("JPEG", width, height)
        elif marker in _OTHER_FRAMES or marker in (0xD9, 0xDA):
            _unsound(place, "JPEG", why=f"its frame is of another kind (marker {marker:X})")
        else:
            length = content[at + 2] << 8 | content[at + 3]
            if length < 2:
                _unsound(place, "JPEG", why=f"a segment at byte {at:,} has no length")
            at += 2 + length
    return _unsound(place, "JPEG", why=f"it has more than {_SEGMENTS:,} segments before its frame")


def _png(content: bytes, place: str) -> Header:
    length, name, width, height, bits, colours = struct.unpack_from(">I4sIIBB", content, 8)
    if length != 13 or name != b"IHDR" or zlib.crc32(content[12:29]) != struct.unpack_from(">I", content, 29)[0]:
        _unsound(place, "PNG", why="it does not begin with a header")
    if bits not in _DEPTHS_OF_PNG.get(colours, ()):
        _unsound(place, "PNG", why=f"it has {bits} bits of colour type {colours}")
    at, frames = 33, 1
    for _ in range(_SEGMENTS):
        length, name = struct.unpack_from(">I4s", content, at)
        if name in (b"IDAT", b"IEND"):
            break
        if name == b"acTL":
            frames = struct.unpack_from(">I", content, at + 8)[0]
        at += 12 + length
    if name != b"IDAT":
        _unsound(place, "PNG", why="it holds no pixels")
    if frames > 1:
        _animated(place)
    if not content.endswith(_LAST_OF_PNG) and content.find(_LAST_OF_PNG, at) < 0:
        _cut(place, "a PNG ends with IEND")
    return Header("PNG", width, height)


def _webp(content: bytes, place: str) -> Header:
    length, name, kind = struct.unpack_from("<I4s4s", content, 4)
    if name != b"WEBP":
        _unsound(place, "WebP", why=f"it is RIFF of another kind ({name.decode('latin-1')!r})")
    if len(content) < length + 8:
        _cut(place, f"a WebP of {length + 8:,} bytes was announced, {len(content):,} came")
    if kind == b"VP8X":
        if content[20] & 2:
            _animated(place)
        width, height = (int.from_bytes(content[at : at + 3], "little") + 1 for at in (24, 27))
    elif kind == b"VP8L" and content[20] == 0x2F:
        (bits,) = struct.unpack_from("<I", content, 21)
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8 " and content[23:26] == b"\x9d\x01\x2a":
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", content, 26))
    else:
        _unsound(place, "WebP", why="it does not begin with an image")
    return Header("WEBP", width, height)


def _tiff(content: bytes, place: str) -> Header:
    order = "<" if content.startswith(b"II") else ">"
    (start,) = struct.unpack_from(f"{order}I", content, 4)
    (count,) = struct.unpack_from(f"{order}H", content, start)
    end = start + 2 + 12 * count
    tags = dict(_tags(content, place, order=order, entries=range(start + 2, end, 12)))
    if _WIDTH not in tags or _HEIGHT not in tags:
        _unsound(place, "TIFF", why="its width or height is missing")
    _check_samples(place, tags)
    for begins, lengths in _PLACES:
        if begins in tags and lengths in tags:
            several = min(len(tags[begins]), len(tags[lengths]))
            if (tags[begins][:several] + tags[lengths][:several]).max() > len(content):
                _cut(place, "pixels of the TIFF lie behind its end")
    (following,) = struct.unpack_from(f"{order}I", content, end)
    return Header("TIFF", int(tags[_WIDTH][0]), int(tags[_HEIGHT][0]), pages=2 if following else 1)


def _tags(content: bytes, place: str, *, order: str, entries: Iterable[int]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the numbers of a TIFF's first page that matter here, by their tags."""
    for at in entries:
        tag, kind, number = struct.unpack_from(f"{order}HHI", content, at)
        if tag in _TAGS and kind in _NUMBERS_OF_TIFF and number:
            if number > _PIECES:
                _unsound(place, "TIFF", why=f"it has {number:,} pieces")
            one = np.dtype(f"{order}{_NUMBERS_OF_TIFF[kind]}")
            inside = number * one.itemsize <= 4
            (there,) = (at + 8,) if inside else struct.unpack_from(f"{order}I", content, at + 8)
            yield tag, np.frombuffer(content, one, number, there).astype(np.int64)


def _check_samples(place: str, tags: Mapping[int, NDArray[np.int64]]) -> None:
    bits = int(tags[_DEPTH].max()) if _DEPTH in tags else 1
    whole = _FORMAT not in tags or bool(np.isin(tags[_FORMAT], (1, 4)).all())
    if bits > BITS or not whole:
        came = f"{bits} bits" if whole else f"{bits} bits with a sign or a fraction"
        raise BadInput(
            f"{place}: colours of at most {BITS} bits, without a sign, were needed, but {came} came; "
            "save it with 8 or 16 bits"
        )
    if _COMPRESSION in tags and int(tags[_COMPRESSION][0]) not in _COMPRESSIONS:
        _unsound(place, "TIFF", why=f"its compression ({int(tags[_COMPRESSION][0])}) is an uncommon one")


_TAGS = frozenset((_WIDTH, _HEIGHT, _DEPTH, _COMPRESSION, _FORMAT, *(tag for pair in _PLACES for tag in pair)))

_PARSERS: Mapping[bytes, tuple[bytes, Callable[[bytes, str], Header]]] = MappingProxyType(
    {
        magic[:2]: (magic, parse)
        for magic, parse in (
            (b"\xff\xd8\xff", _jpeg),
            (b"\x89PNG\r\n\x1a\n", _png),
            (b"RIFF", _webp),
            (b"II*\0", _tiff),
            (b"MM\0*", _tiff),
        )
    }
)
"""What each kind begins with, by the first two bytes."""


def _came(content: bytes) -> str:
    if not content:
        return "an empty file"
    known = [name for at, magic, name in _OTHERS if content.startswith(magic, at)]
    return known[0] if known else "something else"


def _size(found: Header) -> str:
    return f"{found.width:,} x {found.height:,} pixels"


def _cut(place: str, why: str) -> NoReturn:
    raise BadInput(f"{place}: a whole image was needed, but it is cut off ({why}); copy the file again")


def _animated(place: str) -> NoReturn:
    raise BadInput(f"{place}: a still image was needed, but it is animated; save the frame that is meant")


def _unsound(place: str, kind: str, *, why: str) -> NoReturn:
    raise BadInput(f"{place}: a sound {kind} was needed, but {why}; save it again as a PNG")
