"""Two thousand broken DICOM files: each is read or refused with a sentence, in seconds, under a gigabyte."""

import re
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pydicom
import pytest

from relook.apart import Apart
from relook.datasets import dicom
from relook.datasets.dicom import Site
from relook.errors import BadInput
from relook.pseudonyms import SiteKey
from relook.radiograph import write
from relook.sources import Columns
from tests.dicoms import BY_GDCM, UNPACKED, colored, picture, radiograph, saved

FILES = 2000
SECONDS = 10
MEGABYTES = 1000

Fault = Callable[[bytes, np.random.Generator], bytes]


def corpus(folder: Path) -> list[bytes]:
    """Return sound files, one in each packing, and coloured and several ones."""
    made = [
        saved(radiograph(picture(8, seed=3), bits=8), folder / name, name)
        for name in (*UNPACKED, *BY_GDCM)
        if name != "big"
    ]
    made.append(saved(radiograph(picture(12)), folder / "big", "big"))
    made.append(saved(radiograph(picture(12)), folder / "deep", "jpeg 2000"))
    color = np.random.default_rng(0).integers(0, 256, (12, 10, 3), dtype=np.uint8)
    made.append(saved(colored(color), folder / "color"))
    made.append(saved(colored(color), folder / "packed color", "jpeg"))
    frames = np.stack([picture(12)] * 3)
    made.append(saved(radiograph(frames, NumberOfFrames=3), folder / "frames"))
    return [path.read_bytes() for path in made]


# Faults in the structure: explicit, little endian elements are found by their tag.


def _element(raw: bytes, group: int, number: int) -> int:
    return raw.find(struct.pack("<HH", group, number), 132)


def other_bytes(raw: bytes, rng: np.random.Generator) -> bytes:
    told = bytearray(raw)
    for place in rng.integers(128, len(raw), rng.integers(1, 30)):
        told[place] = rng.integers(256)
    return bytes(told)


def other_pixels(raw: bytes, rng: np.random.Generator) -> bytes:
    told, start = bytearray(raw), max(_element(raw, 0x7FE0, 0x0010), 132)
    for place in rng.integers(start, min(len(raw), start + int(rng.choice([30, 300, 30000]))), rng.integers(1, 20)):
        told[place] = rng.integers(256)
    return bytes(told)


def cut_off(raw: bytes, rng: np.random.Generator) -> bytes:
    return raw[: rng.integers(132, len(raw))]


def lying_length(raw: bytes, rng: np.random.Generator) -> bytes:
    told = bytearray(raw)
    tags = [(0x28, 0x10), (0x28, 0x11), (0x08, 0x18), (0x10, 0x20), (0x7FE0, 0x10), (0x28, 0x100), (0x02, 0x10)]
    place = _element(raw, *tags[rng.integers(len(tags))])
    length = int(rng.choice([0, 1, 3, 255, 65534, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF]))
    wide = raw[place + 4 : place + 6] in (b"OB", b"OW", b"UN")
    told[place + (8 if wide else 6) : place + (12 if wide else 8)] = (
        struct.pack("<I", length) if wide else struct.pack("<H", length & 0xFFFF)
    )
    return bytes(told)


def _short(raw: bytes, group: int, number: int, value: int) -> bytes:
    place = _element(raw, group, number)
    return raw if place < 0 else raw[: place + 8] + struct.pack("<H", value) + raw[place + 10 :]


def huge(raw: bytes, rng: np.random.Generator) -> bytes:
    sizes = [0, 1, 25, 31, 5000, 6000, 30000, 65535]
    raw = _short(raw, 0x28, 0x10, int(rng.choice(sizes)))
    return _short(raw, 0x28, 0x11, int(rng.choice(sizes)))


def wrong_bits(raw: bytes, rng: np.random.Generator) -> bytes:
    number = int(rng.choice([0x02, 0x06, 0x100, 0x101, 0x102, 0x103]))
    return _short(raw, 0x28, number, int(rng.choice([0, 1, 2, 3, 4, 7, 8, 9, 12, 16, 24, 32, 64, 1000, 65535])))


def missing(raw: bytes, rng: np.random.Generator) -> bytes:
    made = pydicom.dcmread(_file(raw))
    tags = list(made.keys())
    for place in rng.permutation(len(tags))[: rng.integers(1, 4)]:
        del made[tags[place]]
    return _bytes(made)


def nested(raw: bytes, rng: np.random.Generator) -> bytes:
    """Open thousands of sequences in each other, with lengths that nobody tells."""
    place = _element(raw, 0x28, 0x02)
    opened = struct.pack("<HH2sHI", 0x08, 0x1140, b"SQ", 0, 0xFFFFFFFF) + struct.pack(
        "<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF
    )
    return raw[:place] + opened * int(rng.integers(1, 5000)) + raw[place:]


def other_syntax(raw: bytes, rng: np.random.Generator) -> bytes:
    syntaxes = ["1", "1.98", "1.99", "2", "4.50", "4.51", "4.57", "4.70", "4.80", "4.81", "4.90", "4.91", "5", "4.201"]
    place = _element(raw, 0x02, 0x10)
    (length,) = struct.unpack("<H", raw[place + 6 : place + 8])
    told = f"1.2.840.10008.1.2.{rng.choice(syntaxes)}".encode()[:length].ljust(length, b"\0")
    return raw[: place + 8] + told + raw[place + 8 + length :]


def _file(raw: bytes) -> "pydicom.filebase.DicomBytesIO":
    return pydicom.filebase.DicomBytesIO(raw)


def _bytes(made: pydicom.FileDataset) -> bytes:
    into = pydicom.filebase.DicomBytesIO()
    pydicom.dcmwrite(into, made)
    return into.getvalue()


FAULTS: list[Fault] = [
    other_bytes,
    other_pixels,
    cut_off,
    lying_length,
    huge,
    wrong_bits,
    missing,
    nested,
    other_syntax,
]


def broken(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the broken files, each with the name of its fault."""
    sound, rng = corpus(folder), np.random.default_rng(20)
    for number in range(FILES):
        fault = FAULTS[number % len(FAULTS)]
        yield fault.__name__, fault(sound[int(rng.integers(len(sound)))], rng)


def _peak(apart: Apart) -> float:
    """The most that the process that reads has taken, in MB, as the kernel marks it: 0 where it has ended."""
    status = Path(f"/proc/{apart._process.pid}/status") if apart._process is not None else None
    found = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status is not None and status.exists() else None
    return 0.0 if found is None else int(found[1]) / 1024


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")
def test_two_thousand_broken_files(tmp_path: Path) -> None:
    out, path = tmp_path / "out", tmp_path / "in" / "a.dcm"
    out.mkdir()
    path.parent.mkdir()
    slowest, largest, ends = 0.0, 0.0, Counter[str]()
    with Apart(SiteKey(bytes(32))) as apart:
        for fault, raw in broken(tmp_path / "sound"):
            path.write_bytes(raw)
            start = time.perf_counter()
            try:
                header = apart.header(path)
                if header is not None:
                    apart.write(path, out, names=[f"{view}.png" for view in range(header.frames)])
                ends[f"{fault}: read"] += 1
            except BadInput as error:
                ends[f"{fault}: {_end(str(error), path)}"] += 1
            slowest = max(slowest, time.perf_counter() - start)
            largest = max(largest, _peak(apart))
    assert slowest < SECONDS
    assert 20 < largest < MEGABYTES, f"a process that reads took {largest:.0f} MB"
    assert sorted(file.name for file in path.parent.iterdir()) == ["a.dcm"]
    assert {file.suffix for file in out.iterdir()} == {".png"}
    # A corpus of which nothing crashes a decoder, or everything is refused, tries nothing.
    told = Counter(end.split(": ")[1] for end in ends.elements())
    assert set(told) == {"read", "refused", "crashed"}, ends


def _end(message: str, path: Path) -> str:
    if not message.startswith(f"{path}: "):
        return "without the name of the file"
    return "crashed" if "crashed" in message else "refused"


def test_an_error_that_nobody_foresaw_is_no_sentence_without_the_process(tmp_path: Path) -> None:
    """The planted fault: read in this process, a broken file raises something else, so the test above can fail."""
    raw = saved(radiograph(picture(12)), tmp_path / "a.dcm").read_bytes()
    (tmp_path / "a.dcm").write_bytes(_short(raw, 0x28, 0x10, 1000))
    with pytest.raises(ValueError, match="pixel data") as error:
        write(tmp_path / "a.dcm", tmp_path, names=["a.png"])
    assert not isinstance(error.value, BadInput)


def test_a_broken_file_among_sound_ones_is_named(tmp_path: Path) -> None:
    saved(radiograph(picture()), tmp_path / "in" / "a.dcm")
    raw = saved(radiograph(picture(), name="2"), tmp_path / "in" / "b.dcm").read_bytes()
    (tmp_path / "in" / "b.dcm").write_bytes(raw[:400])
    with pytest.raises(BadInput, match=r"b\.dcm: "):
        dicom.collection(tmp_path / "in", columns=Columns(classes=("a", "b")), site=Site(tmp_path / "key"))
