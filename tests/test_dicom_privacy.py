"""Names planted in every place of DICOM files are nowhere in what relook writes (P1, P5), and a leak is found."""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
import polars as pl
import pydicom
import pytest
from PIL import Image

from relook.collection import GIVEN, KEPT, Collection, Form
from relook.datasets import dicom
from relook.datasets.dicom import Site
from relook.imported import Imported, Origin, source_file, write
from tests.dicoms import NAMES, NUMBER, PLANTED, WORD, planted, saved, strings

FILES = 500
STRINGS = 60


def needles() -> set[bytes]:
    """Return what is planted in every way that bytes spell it, in small letters."""
    found: set[bytes] = set()
    for text in PLANTED:
        for spelled in (text, text.lower(), text.upper()):
            codes = ["utf-8", "utf-16-le", "utf-16-be"]
            codes += [code for code in ("latin-1", "iso8859-5", "iso8859-7") if _fits(spelled, code)]
            raw = {spelled.encode(code) for code in codes}
            found |= raw | {each.hex().encode() for each in raw}
            found |= {part for each in raw for part in _base64(each)}
    whole = int(NUMBER)
    found |= {whole.to_bytes(4, "little"), whole.to_bytes(4, "big")}
    return found


def _fits(text: str, code: str) -> bool:
    return text.encode(code, "replace").decode(code) == text


def _base64(raw: bytes) -> Iterator[bytes]:
    """Yield the part of a string's base64 that is the same whatever stands around it, for each of its three places."""
    for before in range(3):
        told = base64.b64encode(b"\0" * before + raw + b"\0" * (-(len(raw) + before) % 3))
        # What shares its six bits with a neighbour is left out.
        yield told[(before * 8 + 5) // 6 : (before + len(raw)) * 8 // 6]


def written(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield all that lies in a folder: names, bytes, and what packed files hold."""
    for path in sorted(folder.rglob("*")):
        yield f"the name of {path.name}", str(path.relative_to(folder)).encode("utf-8", "surrogateescape")
        if path.is_file():
            yield path.name, path.read_bytes()
            yield f"{path.name}, unpacked", b"\n".join(_unpacked(path))


def _unpacked(path: Path) -> Iterator[bytes]:
    if path.suffix == ".parquet":
        yield json.dumps(pl.read_parquet(path).to_dicts(), ensure_ascii=False, default=str).encode()
        yield json.dumps(pl.read_parquet_metadata(path)).encode()
    elif path.suffix == ".png":
        with Image.open(path) as image:
            yield image.tobytes() + repr(image.info).encode()
        yield from (zlib.decompress(part) for part in _text_chunks(path.read_bytes()))


def _text_chunks(png: bytes) -> Iterator[bytes]:
    for found in re.finditer(rb"zTXt[^\0]+\0\0", png):
        yield png[found.end() :]


def leaks(folder: Path, others: Iterable[bytes] = ()) -> list[str]:
    """Return where something planted stands, or one of some other strings."""
    wanted = re.compile(
        b"|".join(re.escape(needle) for needle in sorted(needles().union(others), key=len, reverse=True))
    )
    found = []
    for place, raw in written(folder):
        hit = wanted.search(raw) or wanted.search(raw.lower())
        if hit:
            found.append(f"{place}: {hit[0]!r}")
    return found


def planted_folder(folder: Path, *, files: int = FILES) -> dict[str, str]:
    """Write files whose names, folders and contents say who they are of; return a label for each path."""
    labels = {}
    for number in range(files):
        charset = list(NAMES)[number % len(NAMES)]
        name = f"{WORD} {NUMBER}/{NAMES[charset]} {number % 20}/{NAMES[charset]}^{WORD}-{NUMBER}-{number}.dcm"
        made = planted(number, charset)
        if number < len(NAMES):
            inside = sum(1 for _ in strings(made))
            assert inside + 6 >= STRINGS, f"{inside} planted strings, and six in preamble, header, name and folders"
        saved(made, folder / name)
        labels[name] = ("normal", "pneumonia")[number % 2]
    return labels


def table(labels: dict[str, str]) -> Collection:
    ids = pl.Series(list(labels), dtype=pl.String)
    items = pl.DataFrame({"id": ids, KEPT + "name": [f"{WORD} {NUMBER}"] * len(ids)})
    answers = pl.DataFrame({"item": range(len(ids)), "annotator": [GIVEN] * len(ids), "label": list(labels.values())})
    return Collection(
        source=f"{WORD}.csv",
        form=Form("csv", columns={"id": WORD}),
        classes=("normal", "pneumonia"),
        ids=ids,
        items=items.lazy(),
        answers=answers,
    )


def plain_hashes(folder: Path) -> set[bytes]:
    """Return the hashes of files, patients and instances that a dictionary would undo."""
    known = set()
    for path in folder.rglob("*.dcm"):
        made = pydicom.dcmread(path, stop_before_pixels=True)
        parts = [path.read_bytes(), str(made.PatientID).encode(), str(made.SOPInstanceUID).encode(), path.name.encode()]
        known |= {hashlib.new(kind, part).hexdigest().encode() for kind in ("md5", "sha1", "sha256") for part in parts}
    return known


@pytest.mark.slow
def test_nothing_that_was_planted_is_in_what_is_written(tmp_path: Path) -> None:
    source = tmp_path / WORD
    labels = planted_folder(source)
    found = dicom.collection(source, labels=table(labels), site=Site(tmp_path / "site.key"))
    origin = Origin(sources=tuple(source_file(path) for path in source.rglob("*.dcm")), root=source)
    (tmp_path / "out").mkdir()
    made, _ = write(found, tmp_path / "out" / "set", origin=origin)
    assert len(made) == FILES
    assert made.dataset().given.given.sum() == FILES // 2
    assert leaks(tmp_path / "out", plain_hashes(source)) == []
    key = (tmp_path / "site.key").read_text().strip()
    assert not any(key.encode() in raw or bytes.fromhex(key) in raw for _, raw in written(tmp_path / "out"))


# A search that cannot find is no test: each of these lets something out in a way of its own.


def by_column(found: Collection, folder: Path) -> Collection:
    return msgspec.structs.replace(
        found, items=found.items.with_columns(pl.lit(f"x{NAMES['ISO_IR 144']}").alias(KEPT + "n"))
    )


def by_fact(found: Collection, folder: Path) -> Collection:
    return msgspec.structs.replace(found, facts=(f"{folder}/{WORD}: read.",))


def by_hash(found: Collection, folder: Path) -> Collection:
    return msgspec.structs.replace(found, anonymous=False)


def by_encoded_column(found: Collection, folder: Path) -> Collection:
    told = base64.b64encode(f"it is {WORD}, {NUMBER}".encode()).decode()
    return msgspec.structs.replace(found, items=found.items.with_columns(pl.lit(told).alias(KEPT + "n")))


def by_wide_letters(found: Collection, folder: Path) -> Collection:
    told = f"{NAMES['ISO_IR 192']}".encode("utf-16-le").hex()
    return msgspec.structs.replace(found, items=found.items.with_columns(pl.lit(told).alias(KEPT + "n")))


LEAKS: list[Callable[[Collection, Path], Collection]] = [
    by_column,
    by_fact,
    by_hash,
    by_encoded_column,
    by_wide_letters,
]


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_found(leak: Callable[[Collection, Path], Collection], tmp_path: Path) -> None:
    source = tmp_path / "in"
    labels = planted_folder(source, files=4)
    found = dicom.collection(source, labels=table(labels), site=Site(tmp_path / "site.key"))
    (tmp_path / "out").mkdir()
    origin = Origin(sources=tuple(source_file(path) for path in source.rglob("*.dcm")))
    assert leaks(write(found, tmp_path / "out" / "sound", origin=origin)[0].folder, plain_hashes(source)) == []
    made: Imported = write(leak(found, source), tmp_path / "out" / "leaky", origin=origin)[0]
    assert leaks(made.folder, plain_hashes(source)) != []


@pytest.mark.parametrize("where", ["pixels", "text"])
def test_a_name_in_a_png_is_found(where: str, tmp_path: Path) -> None:
    from PIL.PngImagePlugin import PngInfo

    image, text = Image.new("L", (8, 8)), PngInfo()
    if where == "pixels":
        image.frombytes(WORD.encode() * 8)
    else:
        text.add_text("Author", NAMES["ISO_IR 126"], zip=True)
    image.save(tmp_path / "a.png", pnginfo=text)
    assert leaks(tmp_path) != []
