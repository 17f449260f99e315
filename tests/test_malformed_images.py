"""Two thousand broken images and folders: each is read, or refused with its place and a cure, quickly and in bounds.

Some are valid files with faults at random, some are made of sound parts that do not go together.
"""

import re
import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from relook import imported, pictures
from relook.datasets import folder
from relook.errors import BadInput
from relook.headers import header
from relook.sources import Missing
from tests.malformed import mutations, outcome
from tests.odd import chunk, noise, odd_images, packed, png, saved, tiff

VALID = [odd.content for odd in odd_images().values() if len(odd.content) < 20_000]
SEEN_MOST = 4_000_000
"""Larger images are taken in, but not decoded here."""


def taken_in(path: Path) -> None:
    """Import the folder that a file lies in as far as images go, and look at what was let in."""
    root = path.parent.parent
    found = folder.collection(root)
    pictures.linked(root, found.items.collect()["files"].to_list())
    content = path.read_bytes()
    size = header(content, place=str(path))
    if size.width * size.height <= SEEN_MOST:
        pictures.eight_bit(path)
        pictures.full_depth(path)
        pictures.small(content, place=str(path))


def imported_whole(path: Path) -> None:
    root = path.parent.parent
    imported.write(folder.collection(root), root.with_name("set"), origin=imported.Origin(root=root))


def plainly_opened(path: Path) -> None:
    """The planted fault: Pillow as it comes."""
    with Image.open(path) as image:
        image.load()


def most_memory() -> int:
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def names(folder_: Path) -> list[str]:
    return sorted(path.name for path in folder_.iterdir())


def planted(tmp_path: Path) -> Path:
    path = tmp_path / "pets" / "cat" / "a.png"
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.slow
def test_faults_at_random_are_refused_or_read(tmp_path: Path) -> None:
    path = planted(tmp_path)
    before, began = most_memory(), perf_counter()
    found = outcome(mutations(VALID, 2000), path, taken_in)
    assert found.wrong == []
    assert found.refused > 800
    assert found.read > 200
    assert perf_counter() - began < 60
    assert most_memory() - before < 1e9
    assert names(tmp_path) == ["pets"]


@pytest.mark.slow
def test_a_set_is_made_of_sound_images_only(tmp_path: Path) -> None:
    path = planted(tmp_path)
    for content in mutations(VALID, 100, seed=1):
        found = outcome([content], path, imported_whole)
        assert found.wrong == []
        left = names(tmp_path)
        assert left == (["pets", "set"] if found.read else ["pets"])
        if found.read:
            for made in (tmp_path / "set").iterdir():
                made.unlink()
            (tmp_path / "set").rmdir()


def test_a_reader_that_does_less_is_caught(tmp_path: Path) -> None:
    found = outcome(mutations(VALID, 200), planted(tmp_path), plainly_opened)
    assert len(found.wrong) > 20


numbers = st.sampled_from([0, 1, 2, 7, 8, 16, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1]) | st.integers(
    0, 300
)
short = st.binary(max_size=60)


@st.composite
def pngs(draw: st.DrawFn) -> bytes:
    """Chunks with right checksums in any order, their fields drawn."""
    fields = (draw(numbers), draw(numbers), *(draw(st.sampled_from([0, 1, 2, 3, 4, 6, 8, 16, 255])) for _ in range(5)))
    parts = [chunk(b"IHDR", struct.pack(">IIBBBBB", *fields))]
    lines = b"".join(b"\0" + packed(line, 8) for line in noise(9, 7))
    for _ in range(draw(st.integers(0, 6))):
        name = draw(
            st.sampled_from([b"PLTE", b"tRNS", b"IDAT", b"acTL", b"fcTL", b"zTXt", b"iCCP", b"eXIf", b"IHDR", b"gAMA"])
        )
        whole = name == b"IDAT" and draw(st.booleans())
        parts.append(chunk(name, zlib.compress(lines) if whole else draw(short)))
    parts += [chunk(b"IEND", b"")] * draw(st.integers(0, 2))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@st.composite
def tiffs(draw: st.DrawFn) -> bytes:
    """A sound file with tags written over or added."""
    known = [
        256,
        257,
        258,
        259,
        262,
        266,
        273,
        274,
        277,
        278,
        279,
        284,
        317,
        320,
        322,
        323,
        324,
        325,
        338,
        339,
        34665,
        700,
    ]
    more = tuple(
        (
            draw(st.sampled_from(known)),
            draw(st.sampled_from([3, 4])),
            draw(st.lists(st.integers(0, 65535), min_size=1, max_size=5)),
        )
        for _ in range(draw(st.integers(1, 4)))
    )
    return tiff(
        noise(9, 7),
        draw(st.sampled_from([8, 16])),
        draw(st.integers(0, 8)),
        order=draw(st.sampled_from("<>")),
        more=more,
    )


@st.composite
def jpegs(draw: st.DrawFn) -> bytes:
    """The segments of a sound file, some dropped, doubled, mixed or filled with other bytes."""
    content = saved(Image.fromarray(noise(16, 16, 3).astype(np.uint8)), "JPEG", progressive=draw(st.booleans()))
    segments = re.split(rb"(?=\xff[\xc0-\xfe])", content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(segments) - 1))
        change = draw(st.sampled_from(["drop", "double", "swap", "fill"]))
        if change == "drop":
            segments[at] = b""
        elif change == "double":
            segments.insert(at, segments[at])
        elif change == "swap":
            segments[at], segments[-2] = segments[-2], segments[at]
        else:
            segments[at] = segments[at][:4] + draw(short)
    return b"".join(segments)


@st.composite
def webps(draw: st.DrawFn) -> bytes:
    """Chunks of a sound file and others, under an outer length that may be wrong."""
    inner = saved(Image.fromarray(noise(9, 7, 3).astype(np.uint8)), "WEBP", lossless=draw(st.booleans()))[12:]
    parts = b""
    for _ in range(draw(st.integers(0, 3))):
        content = draw(short)
        name = draw(st.sampled_from([b"VP8X", b"ANIM", b"ANMF", b"ALPH", b"EXIF", b"ICCP", b"VP8L", b"VP8 "]))
        parts += name + struct.pack("<I", draw(st.sampled_from([len(content), 0, 2**32 - 1]))) + content
    body = b"WEBP" + (parts + inner if draw(st.booleans()) else inner + parts)
    return b"RIFF" + struct.pack("<I", draw(st.sampled_from([len(body), len(body), 4, 2**32 - 1]))) + body


@pytest.mark.slow
@pytest.mark.parametrize("files", [pngs(), tiffs(), jpegs(), webps()], ids=["png", "tiff", "jpeg", "webp"])
def test_sound_parts_that_do_not_go_together(files: st.SearchStrategy[bytes], tmp_path: Path) -> None:
    path = planted(tmp_path)

    @settings(max_examples=500)
    @given(content=files)
    def law(content: bytes) -> None:
        began = perf_counter()
        assert outcome([content], path, taken_in).wrong == []
        assert perf_counter() - began < 10

    law()
    assert names(tmp_path) == ["pets"]


parts_of_names = st.sampled_from(
    [
        "cat",
        "Cat",
        "dog",
        "train",
        "test",
        ".hidden",
        "__MACOSX",
        "Thumbs.db",
        " ",
        "caf\u00e9",
        "cafe\u0301",
        "a\nb",
        "-",
        "1",
    ]
)
endings = st.sampled_from([*[".png"] * 5, ".PNG", ".jpg", ".txt", ".csv", "", ".gif", ".zip"])
IMAGE = png(noise(4, 5), 8, 0)
contents = st.sampled_from([*[IMAGE] * 9, b"", b"text", IMAGE[:-1]])
targets = st.sampled_from(["/etc/passwd", "..", ".", "../..", "cat", "nowhere", "cat/1.png", "/", "../canary.png"])


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[str, bytes | str]]:
    """Files and links by their paths: bytes are what a file holds, text is where a link leads."""
    made: list[tuple[str, bytes | str]] = []
    for _ in range(draw(st.integers(0, 8))):
        above = "/".join(draw(st.lists(parts_of_names, max_size=3)))
        name = f"{above}/{draw(parts_of_names)}{draw(endings)}".lstrip("/")
        leads = draw(st.integers(0, 9)) == 0
        made.append((name, draw(targets) if leads else draw(contents)))
    return made


def planted_tree(root: Path, parts: list[tuple[str, bytes | str]]) -> None:
    for name, content in parts:
        path = root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                path.symlink_to(content)
            elif not path.is_symlink():
                path.write_bytes(content)
        except OSError:
            continue


def end_of(root: Path, missing: Missing) -> str:
    """Import a folder and return what came of it: what was refused, or nothing."""
    try:
        found = folder.collection(root, missing=missing)
        imported.write(found, root.with_name("set"), origin=imported.Origin(root=root))
    except BadInput as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_folders_of_anything_are_refused_or_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    seen = {"read": 0, "refused": 0}

    @settings(max_examples=300)
    @given(parts=trees())
    def law(parts: list[tuple[str, bytes | str]]) -> None:
        above = tmp_path_factory.mktemp("tree")
        (above / "canary.png").write_bytes(png(noise(4, 5), 8, 0))
        planted_tree(above / "pets", parts)
        for missing in MISSING:
            said = end_of(above / "pets", missing)
            assert not said or (str(above / "pets") in said and ";" in said)
            seen["refused" if said else "read"] += 1
        assert {path.name for path in above.iterdir()} <= {"canary.png", "pets", "set"}
        assert not any("canary" in name for name in listed_files(above / "set"))

    law()
    assert min(seen.values()) > 20


def listed_files(made: Path) -> list[str]:
    if not made.exists():
        return []
    names: list[list[str]] = imported.read(made).items().collect()["files"].to_list()
    return [name for several in names for name in several]


MISSING: tuple[Missing, ...] = ("refused", "allowed")
READERS: dict[str, Callable[[bytes], object]] = {
    "header": lambda content: header(content, place="a; b"),
    "pixels": lambda content: pictures.decoded(content, place="a; b"),
}


@pytest.mark.parametrize("reader", READERS)
def test_every_sound_image_is_one_to_these_tests(reader: str) -> None:
    for content in VALID:
        READERS[reader](content)
    assert Image.open(BytesIO(VALID[0])).format == "PNG"
