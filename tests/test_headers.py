"""What an image file says of itself is read right; what must not come in is refused, quickly and in little memory."""

import json
import struct
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from relook.errors import BadInput
from relook.headers import header
from relook.pictures import SUFFIXES
from relook.tree import OTHER_PICTURES
from tests.odd import chunk, noise, odd_images, png, saved, tiff

ODD = odd_images()
GREY = noise(9, 7)
SMALL = Image.fromarray(noise(40, 30, 3).astype(np.uint8))
WHOLE = {kind: saved(SMALL, kind) for kind in ("PNG", "JPEG", "WEBP", "TIFF")}
WHOLE |= {"TIFF by hand": tiff(GREY, 8, 1), "lossless WEBP": saved(SMALL, "WEBP", lossless=True)}


@pytest.mark.parametrize("name", ODD)
def test_size_and_kind_are_those_that_pillow_finds(name: str) -> None:
    content = ODD[name].content
    found, image = header(content, place=name), Image.open(BytesIO(content))
    # Pillow turns a TIFF before it tells its size.
    assert sorted((found.width, found.height)) == sorted(image.size)
    assert found.kind == image.format


@pytest.mark.parametrize("kind", WHOLE)
def test_a_file_that_was_cut_off_is_refused_wherever_that_was(kind: str) -> None:
    content = WHOLE[kind]
    header(content, place=kind)
    for end in range(len(content)):
        with pytest.raises(BadInput):
            header(content[:end], place=kind)


def ending(content: bytes, cut: int) -> bytes:
    return content[: len(content) - cut]


def patched(content: bytes, at: int, new: bytes) -> bytes:
    return content[:at] + new + content[at + len(new) :]


def with_header(width: int, height: int, bits: int = 8, kind: int = 0) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0))
    return FILE[:8] + head + FILE[33:]


def many_scans(number: int) -> bytes:
    content = saved(SMALL, "JPEG", progressive=True)
    last = content.rindex(b"\xff\xda")
    return content[:-2] + content[last:-2] * number + b"\xff\xd9"


def animated(kind: str) -> bytes:
    frames = [Image.new("RGB", (8, 8), (level, 0, 0)) for level in (0, 100, 200)]
    return saved(frames[0], kind, save_all=True, append_images=frames[1:])


FILE, JPEG, WEBP = png(GREY, 8, 0), WHOLE["JPEG"], WHOLE["WEBP"]
FRAME = JPEG.index(b"\xff\xc0")
BAD: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "a PNG, JPEG, WebP or TIFF image was needed, but an empty file came; save it"),
    "text": (b"no image", "image was needed, but something else came"),
    "a drawing": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image was needed, but SVG came"),
    "a page": (b"%PDF-1.7", "image was needed, but PDF came"),
    "a BigTIFF": (b"II+\0" + bytes(20), "image was needed, but something else came"),
    "too many pixels": (with_header(50_000, 50_000), "at most 100 megapixels was needed, but 50,000 x 50,000 pixels"),
    "one line too many": (
        with_header(10_000, 10_001),
        "megapixels was needed, but 10,000 x 10,001 pixels came; make it",
    ),
    "no pixels": (with_header(0, 7), "an image with pixels was needed, but it has 0 x 7 pixels; save"),
    "three bits": (with_header(9, 7, 3), "a sound PNG was needed, but it has 3 bits of colour type 0; save"),
    "another checksum": (patched(FILE, 30, b"xx"), "sound PNG was needed, but it does not begin with a header"),
    "no IDAT": (FILE[:33] + chunk(b"IEND", b""), "sound PNG was needed, but it holds no pixels"),
    "an animated PNG": (animated("PNG"), "a still image was needed, but it is animated; save the frame"),
    "an animated WebP": (animated("WEBP"), "a still image was needed, but it is animated"),
    "a PNG without an end": (ending(FILE, 12), "a whole image was needed, but it is cut off .a PNG ends with IEND"),
    "a JPEG without an end": (ending(JPEG, 2), "a whole image was needed, but it is cut off .a JPEG ends with FF D9"),
    "a WebP without an end": (ending(WEBP, 1), "it is cut off .a WebP of .* bytes was announced"),
    "a TIFF without an end": (
        patched(tiff(GREY, 8, 1), tiff(GREY, 8, 1).index(struct.pack("<HHI", 279, 4, 1)) + 8, b"\xff\xff\xff\0"),
        "it is cut off .pixels of the TIFF lie behind its end",
    ),
    "ten thousand scans": (many_scans(10_000), "at most 100 scans were needed, but it has 10,010; save"),
    "a JPEG of 12 bits": (patched(JPEG, FRAME + 4, b"\x0c"), "it has 3 colours of 12 bits, not 1, 3 or 4 of 8"),
    "a lossless JPEG": (patched(JPEG, FRAME, b"\xff\xc3"), "its frame is of another kind .marker C3"),
    "a JPEG without segments": (b"\xff\xd8\xff\xe0\0\0" + JPEG, "a segment at byte 2 has no length"),
    "a JPEG with a hole": (JPEG[:20] + b"\0\0" + JPEG[20:], "byte 20 begins no segment"),
    "a JPEG of segments alone": (
        b"\xff\xd8" + b"\xff\xe0\0\2" * 20_000 + JPEG[2:],
        "more than 10,000 segments before its",
    ),
    "a sound": (b"RIFF\x10\0\0\0WAVEfmt " + bytes(20), "sound WebP was needed, but it is RIFF of another kind .'WAVE'"),
    "a WebP of nothing": (b"RIFF\x10\0\0\0WEBPjunk" + bytes(20), "it does not begin with an image"),
    "a TIFF without a size": (
        tiff(GREY, 8, 1).replace(struct.pack("<HHI", 256, 3, 1), bytes(8)),
        "its width or height is",
    ),
    "a TIFF of 32 bits": (
        saved(Image.fromarray(GREY.astype(np.int32)), "TIFF"),
        "but 32 bits with a sign or a fraction",
    ),
    "a TIFF of fractions": (
        saved(Image.fromarray(GREY.astype(np.float32)), "TIFF"),
        "16 bits, without a sign, were needed, but 32",
    ),
    "a TIFF of 64 bits": (
        tiff(GREY, 8, 1).replace(struct.pack("<HHIH", 258, 3, 1, 8), struct.pack("<HHIH", 258, 3, 1, 64)),
        "but 64 bits came; save it with 8 or 16",
    ),
    "a TIFF packed oddly": (saved(SMALL, "TIFF", compression="lzma"), "its compression .34925. is an uncommon one"),
    "a TIFF in pieces": (
        tiff(GREY, 8, 1).replace(struct.pack("<HHI", 273, 4, 1), struct.pack("<HHI", 273, 4, 10**9)),
        "it has 1,000,000,000 pieces",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_headers_are_refused(what: str) -> None:
    content, message = BAD[what]
    with pytest.raises(BadInput, match=f"^a: .*{message}"):
        header(content, place="a")


def test_a_progressive_image_has_few_scans() -> None:
    header(many_scans(50), place="a")


OTHERS = {"AVIF", "BLP", "BMP", "DDS", "EPS", "GIF", "ICNS", "ICO", "JPEG2000", "MSP", "PALM", "PCX", "PDF"} | {
    *("PPM", "QOI", "SGI", "SPIDER", "TGA", "XBM")
}
MAGIC = {
    "BUFR": b"BUFR",
    "CUR": b"\0\0\2\0",
    "DCX": b"\xb1\x68\xde\x3a",
    "FITS": b"SIMPLE  =                    T",
    "FLI": bytes(4) + b"\x11\xaf" + bytes(122),
    "FPX": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    "FTEX": b"FTEX",
    "GBR": struct.pack(">II", 28, 2),
    "GD": b"\xff\xfe",
    "GRIB": b"GRIB\0\0\0\1",
    "HDF5": b"\x89HDF\r\n\x1a\n",
    "IM": b"Image type: L image\r\n",
    "IMT": b"\x0cwidth 1\nheight 1\n",
    "IPTC": b"\x1c\1\0",
    "MCIDAS": b"\0\0\0\0\0\0\0\4",
    "MIC": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1Image",
    "MPEG": b"\0\0\1\xb3",
    "PCD": bytes(2048) + b"PCD_",
    "PIXAR": b"\x80\xe8\0\0",
    "PSD": b"8BPS\0\1",
    "SUN": b"\x59\xa6\x6a\x95",
    "VTF": b"VTF\0",
    "WAL": bytes(100),
    "WMF": b"\xd7\xcd\xc6\x9a\0\0",
    "EMF": b"\1\0\0\0" + bytes(36) + b" EMF",
    "XPM": b"/* XPM */",
    "XVTHUMB": b"P7 332",
}


@pytest.mark.parametrize("kind", sorted(OTHERS))
def test_what_pillow_writes_in_other_kinds_is_refused(kind: str) -> None:
    Image.init()
    if kind not in Image.SAVE:
        pytest.skip(f"this Pillow writes no {kind}")
    modes = {"MSP": "1", "XBM": "1", "SPIDER": "F", "BLP": "P", "PALM": "P"}
    with pytest.raises(BadInput, match="a PNG, JPEG, WebP or TIFF image was needed, but"):
        header(saved(SMALL.convert(modes.get(kind, "RGB")), kind), place=f"{kind}.png")


@pytest.mark.parametrize("kind", MAGIC)
def test_what_pillow_reads_in_other_kinds_is_refused(kind: str) -> None:
    with pytest.raises(BadInput, match="a PNG, JPEG, WebP or TIFF image was needed, but"):
        header(MAGIC[kind].ljust(4096, b"\0"), place=f"{kind}.png")


def test_every_other_kind_of_pillows_is_among_them() -> None:
    Image.init()
    ours = {"PNG", "JPEG", "WEBP", "TIFF", "MPO", "DIB"}
    assert set(Image.OPEN) - ours <= OTHERS | set(MAGIC)
    endings = {end for end, kind in Image.registered_extensions().items()}
    assert endings <= OTHER_PICTURES | set(SUFFIXES)


BOMB = r"""
import json, re, sys, time
from pathlib import Path
from relook import imported
from relook.datasets import folder
from relook.errors import BadInput

def largest():
    # What getrusage tells is no less than what the parent had.
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024

root = Path(sys.argv[1])
warm = imported.write(folder.collection(root / "good"), root / "warm", origin=imported.Origin(root=root / "good"))
began, before = time.process_time(), largest()
try:
    imported.write(folder.collection(root / "bad"), root / "set", origin=imported.Origin(root=root / "bad"))
except BadInput as error:
    said = str(error)
print(json.dumps([said, time.process_time() - began, largest(), largest() - before]))
"""

BOMBS: dict[str, tuple[bytes, str]] = {
    "50,000 x 50,000 PNG": (with_header(50_000, 50_000), "at most 100 megapixels"),
    "1 x 1,000,000,000 TIFF": (
        tiff(GREY, 8, 1)
        .replace(struct.pack("<HHIHH", 257, 3, 1, 9, 0), struct.pack("<HHII", 257, 4, 1, 10**9))
        .replace(struct.pack("<HHIHH", 256, 3, 1, 7, 0), struct.pack("<HHII", 256, 4, 1, 1)),
        "at most 100 megapixels was needed, but 1 x 1,000,000,000",
    ),
    "JPEG of 10,000 scans": (many_scans(10_000), "at most 100 scans"),
    "animated WebP": (animated("WEBP"), "it is animated"),
    "segments without end": (b"\xff\xd8" + b"\xff\xe0\0\2" * 20_000_000, "more than 10,000 segments"),
    "scans without end": (JPEG[:-2] + b"\xff\xda" * 40_000_000 + b"\xff\xd9", "at most 100 scans"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BOMBS)
def test_bombs_are_refused_in_little_time_and_memory(what: str, tmp_path: Path) -> None:
    content, message = BOMBS[what]
    for name, bytes_ in (("good", FILE), ("bad", content)):
        (tmp_path / name / "cat").mkdir(parents=True)
        (tmp_path / name / "cat" / "a.png").write_bytes(bytes_)
    ran = subprocess.run([sys.executable, "-c", BOMB, str(tmp_path)], capture_output=True, text=True, check=True)
    said, seconds, memory, grown = json.loads(ran.stdout)
    assert message in said
    assert "bad/cat/a.png: " in said
    assert seconds < 2
    assert memory < 300e6
    assert grown < 100e6 + len(content)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "good", "warm"]
