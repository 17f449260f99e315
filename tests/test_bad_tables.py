"""Whatever a broken file holds, reading it ends in a collection, or in BadInput that says where and what to do.

Two ways to break files, for each importer: bytes of valid ones are turned, cut, doubled and written over until 2,000
are refused; and tables of the right form are drawn whose parts do not fit. Some valid files are odd; they are read.
"""

import io
import itertools
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook import layouts
from relook.collection import Collection
from relook.datasets import arrays, table
from relook.sources import Columns
from tests.laws import catches
from tests.malformed import Outcome, mutations, outcome
from tests.parquets import changed, footer, places, with_footer

REFUSED = 2_000
"""So many malformed files of each kind are refused, one way and the other."""

PETS = pl.DataFrame(
    {
        "id": ["a", "b,c", 'd"e', "7"],
        "label": ["x", "y", None, "x"],
        "text": ["hi", "=1+1", "é\nü", ""],
        "n": [1.5, None, 3, 4],
        "path": ["a.png", None, "b.png", ""],
    }
)
MANY = pl.DataFrame(
    {
        "id": [str(row) for row in range(200)],
        "label": ["x", "y"] * 100,
        "n": [row / 2 for row in range(200)],
        "files": [["a"], []] * 100,
        "d": [None, True] * 100,
    }
)


def packed(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def arrow(**how: Any) -> bytes:
    return packed(lambda file: pq.write_table(MANY.to_arrow(), file, **how))


ARRAYS: dict[str, Any] = {
    "labels": np.arange(20) % 3,
    "ids": np.array([f"i{row}" for row in range(20)]),
    "images": np.arange(20 * 9, dtype=np.uint8).reshape(20, 3, 3),
    "embeddings": np.ones((20, 3)),
}
VALID: dict[str, list[bytes]] = {
    "csv": [PETS.write_csv().encode(), MANY.drop("files").write_csv().encode(), PETS.write_csv().encode("utf-16")],
    "tsv": [PETS.write_csv(separator="\t").encode()],
    "jsonl": [PETS.write_ndjson().encode(), MANY.write_ndjson().encode()],
    "parquet": [
        packed(PETS.write_parquet),
        packed(lambda file: MANY.write_parquet(file, compression="uncompressed")),
        packed(lambda file: MANY.write_parquet(file, compression="snappy", row_group_size=50)),
        arrow(),
        arrow(data_page_version="2.0", use_dictionary=False, compression="gzip"),
        arrow(use_dictionary=False, column_encoding={"n": "BYTE_STREAM_SPLIT"}, compression="none"),
    ],
    "npy": [
        packed(lambda file, array=array: np.save(file, array))  # type: ignore[misc]
        for array in (np.arange(20), np.array(["a", "b", ""] * 9), np.array([0.0, 1, np.nan]))
    ],
    "npz": [packed(lambda file: np.savez(file, **ARRAYS)), packed(lambda file: np.savez_compressed(file, **ARRAYS))],
}


def used(found: Collection, folder: Path) -> None:
    """Use all there is of a collection, as an import does."""
    found.items.collect()
    found.labels()
    if found.pictures is not None:
        found.pictures.write(0, folder)
        found.pictures.write(len(found) - 1, folder)


def reading(path: Path, columns: Columns = Columns()) -> None:  # noqa: B008
    reader = arrays if path.suffix in arrays.SUFFIXES else table
    used(reader.collection(path, columns=columns), path.parent)


def files_below(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*")}


@pytest.mark.slow
@pytest.mark.parametrize("kind", VALID)
def test_bytes_that_are_broken(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "here"
    place.mkdir()
    path = place / f"x.{kind}"
    sound = outcome(VALID[kind], path, reading)
    assert sound == Outcome(len(VALID[kind]), 0, [])
    found = outcome(mutations(VALID[kind], REFUSED * 5 // 4), path, reading)
    assert not found.wrong, "\n".join(found.wrong[:9])
    assert found.refused >= REFUSED
    assert files_below(tmp_path) <= {
        Path("here"),
        path.relative_to(tmp_path),
        *map(Path, ("here/0.png", "here/19.png")),
    }


def test_a_planted_reader_that_lets_its_own_errors_out_is_caught(tmp_path: Path) -> None:
    def careless(path: Path) -> None:
        json.loads(path.read_bytes())

    found = outcome(mutations(VALID["jsonl"], 50), tmp_path / "x.jsonl", careless)
    assert len(found.wrong) == 50


# Tables of the right form, of which something does not fit.

CELLS = st.sampled_from(
    ["x", "", "1", "-1", "0.5", "nan", "a.png", "../b", "=1", "'", '"', ",", "\n", "yes", "9" * 400, "é"]
)
NAMES = st.sampled_from(["id", "label", "path", "text", "worker", "at", "seconds", "split", "n", "", "cat", "Label"])
SAID = st.sampled_from(
    [
        Columns(),
        Columns(),
        Columns(annotator="*"),
        Columns(label="*"),
        Columns(label="n"),
        Columns(question="n", blank="no"),
        Columns(classes=("x", "1")),
        Columns(numbers=("n",), files=()),
        Columns(id="text", files=("path", "n")),
    ]
)
ROWS = st.lists(st.lists(CELLS, max_size=5), max_size=5)


def as_text(heading: list[str], rows: list[list[str]], mark: str) -> bytes:
    """Write cells without any care for quotes, and rows of any length."""
    return "\n".join(mark.join(row) for row in [heading, *rows]).encode()


def as_objects(heading: list[str], rows: list[list[str]], mark: str) -> bytes:
    values: dict[str, Any] = {"0.5": 0.5, "1": 1, "nan": None, "yes": True, ",": ["a"], '"': {"a": 1}, "'": [[1]]}
    lines = [{name: values.get(cell, cell) for name, cell in zip(heading, row, strict=False)} for row in rows]
    return "\n".join(json.dumps(line) for line in lines).encode() or b"\n"


def law(tried: settings, folder: Path, *, kind: str, seen: list[int]) -> None:
    """A drawn table ends in a collection or in BadInput, whatever a user says of its columns."""

    @tried
    @given(st.lists(NAMES, max_size=5), ROWS, SAID)
    def holds(heading: list[str], rows: list[list[str]], said: Columns) -> None:
        write = as_objects if kind == "jsonl" else as_text
        content = write(heading, rows, "\t" if kind == "tsv" else ",")
        found = outcome([content], folder / f"x.{kind}", lambda path: reading(path, said))
        assert not found.wrong, found.wrong
        seen.append(found.refused)

    holds()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_tables_that_do_not_fit(tmp_path: Path, kind: str) -> None:
    seen: list[int] = []
    law(settings(max_examples=REFUSED * 5 // 4), tmp_path, kind=kind, seen=seen)
    assert sum(seen) > REFUSED * 3 // 4


def test_a_planted_error_of_a_reader_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "texts", lambda *_, **__: 1 / 0)
    catches(lambda tried: law(tried, tmp_path, kind="csv", seen=[]))


NUMBERS = [0, 1, -1, 2, 3, 127, 199, 201, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 40, -(1 << 63), (1 << 63) - 1]


def footers(seed: int, number: int) -> Iterator[bytes]:
    """Yield parquet files with one to three parts of their footer changed."""
    rng = np.random.default_rng(seed)
    kept = [(content, footer(content), list(places(footer(content)))) for content in VALID["parquet"]]
    for turn in range(number):
        content, record, every = kept[turn % len(kept)]
        for _ in range(int(rng.integers(1, 4))):
            path = every[int(rng.integers(len(every)))]
            told = NUMBERS[int(rng.integers(len(NUMBERS)))]
            text = rng.bytes(int(rng.integers(6)))
            record = changed(record, path, lambda old, told=told, text=text: text if isinstance(old, bytes) else told)  # type: ignore[misc]
        yield with_footer(content, record)


@pytest.mark.slow
def test_parquet_that_tells_other_things_of_itself(tmp_path: Path) -> None:
    found = outcome(footers(0, REFUSED * 2), tmp_path / "x.parquet", reading)
    assert not found.wrong, "\n".join(found.wrong[:9])
    assert found.refused >= REFUSED


SHAPES = ("()", "(0,)", "(3,)", "(3, 2)", "(-1,)", "(3, 0)", "(2, 2, 2)", "(9999999999,)", "3", "None")
KINDS = ("'<i8'", "'|b1'", "'<f4'", "'<U2'", "'|S3'", "'|O'", "'<c8'", "'|u1'", "'<M8[s]'", "[('a','<i8')]")
ENDS = (b"\n", b" " * 50 + b"\n", b"", b"}")
VERSIONS = (b"\x01\x00", b"\x01\x00", b"\x02\x00", b"\x03\x00")
ASKED = (Columns(), Columns(label="*"), Columns(annotator="*"), Columns(classes=("a", "b"), files=("x",)))


def array_file(rng: np.random.Generator) -> bytes:
    """Return an npy file whose header need not fit its bytes, nor its length the header."""
    kind, shape = (each[int(rng.integers(len(each)))] for each in (KINDS, SHAPES))
    end, version = (each[int(rng.integers(len(each)))] for each in (ENDS, VERSIONS))
    text = f"{{'descr': {kind}, 'fortran_order': {bool(rng.integers(2))}, 'shape': {shape}}}".encode() + end
    told = len(text) + (0, 0, 0, 1, -1)[int(rng.integers(5))]
    length = told.to_bytes(2 if version[0] == 1 else 4, "little")
    return b"\x93NUMPY" + version + length + text + rng.bytes(int(rng.integers(49)))


def archive_file(rng: np.random.Generator) -> bytes:
    """Return an npz file of one to three such arrays, under names that have a meaning."""
    names = rng.permutation(["labels", "x", "counts", "ids", "split"])[: int(rng.integers(1, 4))]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names.tolist():
            archive.writestr(f"{name}.npy", array_file(rng))
    return file.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "drawn"), [("npy", array_file), ("npz", archive_file)], ids=["npy", "npz"])
@pytest.mark.parametrize("said", ASKED, ids=lambda said: f"{said.label} {said.annotator} {said.files}")
def test_arrays_that_do_not_fit(
    tmp_path: Path, kind: str, drawn: Callable[[np.random.Generator], bytes], said: Columns
) -> None:
    rng = np.random.default_rng(ASKED.index(said))
    files = (drawn(rng) for _ in range(REFUSED * 5 // 16))
    found = outcome(files, tmp_path / f"x.{kind}", lambda path: reading(path, said))
    assert not found.wrong, "\n".join(found.wrong[:9])
    assert found.refused > REFUSED // 4


# Odd ones that are valid.


def odd_ones() -> Iterator[tuple[str, bytes, list[tuple[str, str]]]]:
    """Yield files that people really have, by name, with the ids and labels that a second reader finds in them."""
    rows = [("a", "x"), ("b,c", 'say "y"'), ("d\ne", "é\tè"), ("7", "007"), ("Cat", "cat"), ("cafe\u0301", "caf\u00e9")]
    ways = itertools.product(
        range(1, len(rows) + 1), ("utf-8", "utf-8-sig", "utf-16"), ("\n", "\r\n"), (0, 1, 3), (",", "\t"), (False, True)
    )
    for take, encoding, end, closing, mark, always in ways:
        cells = [("id", "label"), *rows[:take]]
        lines = [mark.join(quoted(cell, always=always) for cell in row) for row in cells]
        content = (end.join(lines) + end * closing).encode(encoding)
        yield "x.csv" if mark == "," else "x.tsv", content, rows[:take]


def quoted(cell: str, *, always: bool) -> str:
    return f'"{cell.replace(chr(34), chr(34) * 2)}"' if always or set(cell) & set(',"\n\t') else cell


def test_odd_ones_are_read_right(tmp_path: Path) -> None:
    files = list(odd_ones())
    assert len(files) > 300
    for name, content, rows in files:
        (tmp_path / name).write_bytes(content)
        found = table.collection(tmp_path / name)
        labels = found.answers["label"].cast(pl.String).to_list()
        assert list(zip(found.ids.to_list(), labels, strict=True)) == rows, content
