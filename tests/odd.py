"""Valid images of odd kinds, each with the pixels that it must be read as, written byte by byte where that matters.

PNG and TIFF are written by the few lines below and not by Pillow, so that what is read is compared with what was meant.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[Any]

ORIENTED: dict[int, Callable[[Pixels], Pixels]] = {
    1: lambda pixels: pixels,
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: pixels[::-1, ::-1],
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: pixels.swapaxes(0, 1),
    6: lambda pixels: np.rot90(pixels, -1),
    7: lambda pixels: pixels.swapaxes(0, 1)[::-1, ::-1],
    8: lambda pixels: np.rot90(pixels),
}
"""What EXIF's orientations ask for, by its standard: what is stored -> what is seen."""


NAMES = (
    "with blanks .png",
    "caf\u00e9.png",
    "cafe\u0301.png",
    "\U0001f98a\u200d\U0001f43b.png",
    "two\nlines.png",
    "quote'\".png",
    "100%,;=+~$.png",
    "-dash.png",
    "=1+1.png",
    "\u202eright to left.png",
    "\u4e2d\u6587/\u0645.png",
    "x" * 251 + ".png",
)
"""Names that files may have."""


class Odd(NamedTuple):
    """A file, the pixels it must be read as, how far off these may be, and the 16-bit greys where it has them."""

    content: bytes
    seen: Pixels
    within: int = 0
    deep: Pixels | None = None


def noise(*shape: int, most: int = 255, seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(0, most + 1, shape)


def scaled(values: Pixels, bits: int) -> Pixels:
    return np.rint(values * (255 / (2**bits - 1))).astype(np.uint8)


def over_white(colours: Pixels, alpha: Pixels, bits: int = 8) -> Pixels:
    share = alpha / (2**bits - 1)
    share = share[..., None] if colours.ndim == 3 else share
    return np.rint(scaled(colours, bits) * share + 255 * (1 - share)).astype(np.uint8)


def png(pixels: Pixels, bits: int, kind: int, *, interlaced: bool = False, chunks: bytes = b"") -> bytes:
    """Return a PNG; pixels are H x W or H x W x channels of whole numbers below 2 ** bits."""
    height, width = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, interlaced)
    adam7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
    passes = [pixels[y::dy, x::dx] for y, x, dy, dx in adam7] if interlaced else [pixels]
    lines = b"".join(b"\0" + packed(line, bits) for part in passes if part.size for line in part)
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunks
    return content + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def packed(line: Pixels, bits: int, order: str = ">") -> bytes:
    values = line.ravel()
    if bits >= 8:
        return values.astype(f"{order}u{bits // 8}").tobytes()
    ones = (values[:, None] >> np.arange(bits - 1, -1, -1)) & 1
    return np.packbits(ones.astype(np.uint8).ravel()).tobytes()


def tiff(
    pixels: Pixels, bits: int, photometric: int, *, order: str = "<", more: tuple[tuple[int, int, list[int]], ...] = ()
) -> bytes:
    """Return a TIFF with one strip, not compressed; `more` are further tags as (tag, kind, values)."""
    height, width = pixels.shape[:2]
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    strip = b"".join(packed(line, bits, order) for line in pixels)
    tags = [
        (256, 3, [width]),
        (257, 3, [height]),
        (258, 3, [bits] * channels),
        (259, 3, [1]),
        (262, 3, [photometric]),
        (273, 4, [8]),
        (277, 3, [channels]),
        (278, 3, [height]),
        (279, 4, [len(strip)]),
        *more,
    ]
    start = 8 + len(strip) + len(strip) % 2
    entries, values = b"", b""
    behind = start + 2 + 12 * len(tags) + 4
    for tag, kind, numbers in sorted(tags):
        content = struct.pack(f"{order}{len(numbers)}{'HI'[kind - 3]}", *numbers)
        if len(content) > 4:
            content, values = (
                struct.pack(f"{order}I", behind + len(values)),
                values + content + b"\0" * (len(content) % 2),
            )
        entries += struct.pack(f"{order}HHI", tag, kind, len(numbers)) + content.ljust(4, b"\0")
    mark = b"II" if order == "<" else b"MM"
    body = struct.pack(f"{order}H", 42) + struct.pack(f"{order}I", start) + strip.ljust(start - 8, b"\0")
    return mark + body + struct.pack(f"{order}H", len(tags)) + entries + bytes(4) + values


def saved(image: Any, kind: str, **settings: Any) -> bytes:
    file = BytesIO()
    image.save(file, kind, **settings)
    return file.getvalue()


def plain(content: bytes, mode: str = "RGB") -> Pixels:
    """Return what a plain reader sees: where a kind loses bits, that is what must be seen."""
    return np.asarray(Image.open(BytesIO(content)).convert(mode))


def odd_images() -> dict[str, Odd]:
    """Return every image by a name that says what is odd about it."""
    every: dict[str, Odd] = {}
    for family in (_pngs, _depths, _turned, _tiffs, _jpegs, _webps, _tiny):
        for name, image in family():
            assert name not in every
            every[name] = image
    return every


def _pngs() -> Iterator[tuple[str, Odd]]:
    for interlaced in (False, True):
        way = "interlaced" if interlaced else "plain"
        for bits in (1, 2, 4, 8, 16):
            grey = noise(11, 13, most=2**bits - 1, seed=bits)
            deep = grey.astype(np.uint16) if bits == 16 else None
            yield (
                f"png grey {bits} {way}",
                Odd(png(grey, bits, 0, interlaced=interlaced), scaled(grey, bits), deep=deep),
            )
        for bits in (1, 2, 4, 8):
            numbers, colours = noise(11, 13, most=2**bits - 1, seed=bits), noise(2**bits, 3, seed=bits)
            palette = chunk(b"PLTE", colours.astype(np.uint8).tobytes())
            made = png(numbers, bits, 3, interlaced=interlaced, chunks=palette)
            yield f"png palette {bits} {way}", Odd(made, colours[numbers])
            alpha = noise(2**bits, seed=bits + 1)
            clear = palette + chunk(b"tRNS", alpha.astype(np.uint8).tobytes())
            made = png(numbers, bits, 3, interlaced=interlaced, chunks=clear)
            yield f"png palette {bits} clear {way}", Odd(made, over_white(colours[numbers], alpha[numbers]), 1)
        for bits in (8, 16):
            most = 2**bits - 1
            rgb, alpha = noise(9, 7, 3, most=most, seed=bits), noise(9, 7, most=most, seed=bits + 1)
            yield f"png rgb {bits} {way}", Odd(png(rgb, bits, 2, interlaced=interlaced), scaled(rgb, bits), 1)
            rgba = np.dstack([rgb, alpha])
            seen = over_white(rgb, alpha, bits)
            yield f"png rgba {bits} {way}", Odd(png(rgba, bits, 6, interlaced=interlaced), seen, 2)
            grey = rgb[..., 0]
            made = png(np.dstack([grey, alpha]), bits, 4, interlaced=interlaced)
            seen = over_white(grey, alpha, bits)
            # Pillow takes deep greys with transparency for colours.
            seen = np.dstack([seen] * 3) if bits == 16 else seen
            yield f"png grey alpha {bits} {way}", Odd(made, seen, 2)
        rgb = noise(9, 7, 3, seed=3)
        key = chunk(b"tRNS", struct.pack(">HHH", *rgb[4, 4].tolist()))
        white = np.where((rgb == rgb[4, 4]).all(2)[..., None], 255, rgb)
        yield f"png rgb one colour clear {way}", Odd(png(rgb, 8, 2, interlaced=interlaced, chunks=key), white)
        grey = noise(9, 7, seed=4)
        key = chunk(b"tRNS", struct.pack(">H", int(grey[4, 4])))
        made = png(grey, 8, 0, interlaced=interlaced, chunks=key)
        yield f"png grey one value clear {way}", Odd(made, np.where(grey == grey[4, 4], 255, grey))


def _depths() -> Iterator[tuple[str, Odd]]:
    """Greys in sixteen bits that use fewer: a scanner's twelve, say."""
    for bits in (8, 10, 12, 14, 16):
        grey = noise(9, 7, most=2**bits - 1, seed=bits)
        grey[0, 0] = 2**bits - 1
        deep = grey.astype(np.uint16)
        yield f"png grey 16 with {bits} used", Odd(png(grey, 16, 0), scaled(grey, bits), deep=deep)
        for order in "<>":
            name = f"tiff grey 16 with {bits} used {order}"
            yield name, Odd(tiff(grey, 16, 1, order=order), scaled(grey, bits), deep=deep)


def _turned() -> Iterator[tuple[str, Odd]]:
    smooth = np.add.outer(np.arange(24) * 5, np.arange(16) * 7)[..., None] + np.array([0, 20, 30])
    smooth[:8, :8] = 250
    image = Image.fromarray(smooth.clip(0, 255).astype(np.uint8))
    for number, turn in ORIENTED.items():
        exif = Image.Exif()
        exif[0x0112] = number
        for kind in ("PNG", "JPEG", "WEBP", "TIFF"):
            content = saved(image, kind, exif=exif)
            unturned = plain(saved(image, kind))
            yield f"{kind.lower()} orientation {number}", Odd(content, turn(unturned))


def _tiffs() -> Iterator[tuple[str, Odd]]:
    for order in "<>":
        ones, grey, rgb = noise(9, 13, most=1), noise(9, 13), noise(9, 13, 3)
        yield f"tiff one bit, black is 0 {order}", Odd(tiff(ones, 1, 1, order=order), scaled(ones, 1))
        yield f"tiff one bit, white is 0 {order}", Odd(tiff(ones, 1, 0, order=order), scaled(1 - ones, 1))
        yield f"tiff grey 8 {order}", Odd(tiff(grey, 8, 1, order=order), grey)
        yield f"tiff grey 8, white is 0 {order}", Odd(tiff(grey, 8, 0, order=order), 255 - grey)
        yield f"tiff rgb 8 {order}", Odd(tiff(rgb, 8, 2, order=order), rgb)
        deep = noise(9, 13, 3, most=65535)
        yield f"tiff rgb 16 {order}", Odd(tiff(deep, 16, 2, order=order), scaled(deep, 16), 1)
        colours = noise(256, 3)
        table = (320, 3, (colours * 257).T.ravel().tolist())
        yield f"tiff palette 8 {order}", Odd(tiff(grey, 8, 3, order=order, more=(table,)), colours[grey])
        alpha = noise(9, 13, seed=5)
        made = tiff(np.dstack([rgb, alpha]), 8, 2, order=order, more=((338, 3, [2]),))
        yield f"tiff rgba 8 {order}", Odd(made, over_white(rgb, alpha), 1)
        ink = noise(9, 13, 4)
        seen = np.rint((255 - ink[..., :3]) * ((255 - ink[..., 3:]) / 255)).astype(np.uint8)
        yield f"tiff cmyk 8 {order}", Odd(tiff(ink, 8, 5, order=order), seen, 2)
        few = noise(9, 13, most=15)
        if order == "<":
            yield "tiff grey 4", Odd(tiff(few, 4, 1), scaled(few, 4))
    image = Image.fromarray(noise(40, 30, 3).astype(np.uint8))
    for name in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "raw"):
        yield f"tiff packed by {name}", Odd(saved(image, "TIFF", compression=name), np.asarray(image))
    yield "tiff packed by jpeg", Odd(made := saved(image, "TIFF", compression="jpeg"), plain(made))
    fax = Image.fromarray((noise(40, 30, most=1) * 255).astype(np.uint8)).convert("1")
    for name in ("group3", "group4"):
        yield f"tiff packed by {name}", Odd(saved(fax, "TIFF", compression=name), np.asarray(fax.convert("L")))
    second = Image.new("RGB", (5, 5))
    pages = saved(image, "TIFF", save_all=True, append_images=[second])
    yield "tiff of two pages", Odd(pages, np.asarray(image))


def _jpegs() -> Iterator[tuple[str, Odd]]:
    smooth = np.add.outer(np.arange(60), np.arange(50))
    grey = Image.fromarray(smooth.astype(np.uint8))
    image = Image.merge("RGB", [grey, grey.rotate(90).resize(grey.size), grey.rotate(180)])
    ways: dict[str, dict[str, Any]] = {
        "baseline": {},
        "progressive": {"progressive": True},
        "optimised": {"optimize": True},
        "best quality": {"quality": 100, "subsampling": 0},
        "restarts": {"restart_marker_blocks": 2},
        "colour profile": {"icc_profile": b"profile" * 20_000},
        "comment": {"comment": b"\xff\xd9 is no end here"},
        "resolution": {"dpi": (300, 300)},
    }
    for name, settings in ways.items():
        content = saved(image, "JPEG", **settings)
        yield f"jpeg {name}", Odd(content, plain(content))
    content = saved(grey, "JPEG")
    yield "jpeg grey", Odd(content, plain(content, "L"))
    content = saved(grey, "JPEG", progressive=True)
    yield "jpeg grey progressive", Odd(content, plain(content, "L"))
    content = saved(image.convert("CMYK"), "JPEG", quality=95)
    yield "jpeg cmyk", Odd(content, plain(content))
    assert np.abs(plain(content).astype(int) - np.asarray(image)).mean() < 4
    content = saved(image, "JPEG")
    yield "jpeg with zeros behind it", Odd(content + bytes(512), plain(content))
    yield "jpeg with a film behind it", Odd(content + bytes(noise(100_000).tolist()), plain(content))
    yield "jpeg with bytes to fill", Odd(content[:2] + b"\xff\xff\xff" + content[2:], plain(content))
    exif = Image.Exif()
    exif[0x010E] = "broken"
    broken = saved(image, "JPEG", exif=exif.tobytes()[:-4] + b"\xff" * 4)
    yield "jpeg with broken tags", Odd(broken, plain(content))


def _webps() -> Iterator[tuple[str, Odd]]:
    rgb, alpha = noise(20, 30, 3), noise(20, 30, seed=1)
    image, clear = Image.fromarray(rgb.astype(np.uint8)), Image.fromarray(np.dstack([rgb, alpha]).astype(np.uint8))
    yield "webp lossy", Odd(made := saved(image, "WEBP"), plain(made))
    yield "webp lossless", Odd(saved(image, "WEBP", lossless=True), rgb)
    lossless = saved(clear, "WEBP", lossless=True, exact=True)
    yield "webp lossless and clear", Odd(lossless, over_white(rgb, alpha), 1)
    lossy = saved(clear, "WEBP", exact=True)
    parts = plain(lossy, "RGBA")
    yield "webp lossy and clear", Odd(lossy, over_white(parts[..., :3], parts[..., 3]), 1)
    yield "webp with a profile", Odd(saved(image, "WEBP", lossless=True, icc_profile=b"profile"), rgb)


def _tiny() -> Iterator[tuple[str, Odd]]:
    dot = Image.fromarray(np.full((1, 1), 77, np.uint8))
    for kind in ("PNG", "JPEG", "TIFF"):
        yield f"{kind.lower()} of one pixel", Odd(saved(dot, kind), np.full((1, 1), 77))
    wide = noise(1, 5000)
    yield "png of one line", Odd(png(wide, 8, 0), wide)
    yield "png of one column", Odd(png(wide.T, 8, 0), wide.T)
    yield "webp of one pixel", Odd(saved(dot.convert("RGB"), "WEBP", lossless=True), np.full((1, 1, 3), 77))
    yield "png with bytes behind it", Odd(png(wide, 8, 0) + b"more", wide)
    chunks = chunk(b"tEXt", b"Comment\0hello") + chunk(b"gAMA", struct.pack(">I", 45455))
    yield "png with text", Odd(png(wide, 8, 0, chunks=chunks), wide)
