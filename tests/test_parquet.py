"""Parquet is read lazily, whoever wrote it, and a file that claims what it cannot hold is refused before it is read."""

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relook import parquet
from relook.datasets import table
from relook.errors import BadInput
from relook.tables import sheet
from tests.parquets import Part, built, changed, footer, parsed, with_footer

FRAME = pl.DataFrame(
    {
        "id": [str(row) for row in range(300)],
        "label": ["cat", "dog", None] * 100,
        "x": [row / 2 for row in range(300)],
        "files": [["a.png", "b.png"], [], None] * 100,
        "ok": [True, None, False] * 100,
    }
)


def saved(folder: Path, content: bytes) -> Path:
    (folder / "x.parquet").write_bytes(content)
    return folder / "x.parquet"


def packed(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def arrow(frame: pl.DataFrame = FRAME, **how: Any) -> bytes:
    return packed(lambda file: pq.write_table(frame.to_arrow(), file, **how))


PLAIN = packed(FRAME.write_parquet)
WRITERS: dict[str, bytes] = {
    "polars": PLAIN,
    "polars, snappy, small groups": packed(
        lambda file: FRAME.write_parquet(file, compression="snappy", row_group_size=7)
    ),
    "polars, unpacked": packed(lambda file: FRAME.write_parquet(file, compression="uncompressed")),
    "arrow": arrow(),
    "arrow, pages of version 2": arrow(data_page_version="2.0", compression="gzip", use_dictionary=False),
    "arrow, with an index of pages": arrow(write_page_index=True, data_page_size=64, compression="brotli"),
    "arrow, streams of bytes": arrow(use_dictionary=False, column_encoding={"x": "BYTE_STREAM_SPLIT"}),
    "arrow, differences": arrow(use_dictionary=False, column_encoding={"id": "DELTA_BYTE_ARRAY"}),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_of_any_writer_is_read(tmp_path: Path, writer: str) -> None:
    read = sheet(saved(tmp_path, WRITERS[writer]))
    assert (read.rows, read.columns, read.kind) == (300, tuple(FRAME.columns), "parquet")
    assert read.frame.collect().equals(FRAME)


def test_of_pandas_is_read_with_its_index(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"label": pd.Categorical(["cat", "dog"]), "n": [1, 2]}, index=["a", "b"])
    frame.to_parquet(tmp_path / "x.parquet")
    found = table.collection(tmp_path / "x.parquet")
    assert (found.ids.to_list(), found.classes) == (["a", "b"], ("cat", "dog"))


def test_names_that_look_like_patterns_are_names(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "x[1]*.parquet")
    assert sheet(tmp_path / "x[1]*.parquet").rows == 300


def lying(path: tuple[int, ...], change: Callable[[Any], Any]) -> bytes:
    return with_footer(PLAIN, changed(footer(PLAIN), path, change))


def with_page(change: Callable[[Part], Part]) -> bytes:
    """Return a file of which the first page says another thing in as many bytes."""
    page, end = parsed(PLAIN, 4)
    told = built(change(page))
    assert len(told) == end - 4
    return PLAIN[:4] + told + PLAIN[end:]


ROWS, SCHEMA, GROUPS = 3, 2, 4
CHUNK = (GROUPS, 0, 1, 0, 3)
LIES: dict[str, tuple[bytes, str]] = {
    "rows of the file": (lying((ROWS,), lambda rows: rows + 1), "301 rows, but 300 in its groups"),
    "rows of a group": (lying((GROUPS, 0, 3), lambda rows: rows - 1), "300 rows, but 299 in its groups"),
    "rows below zero": (lying((ROWS,), lambda _: -1), "rows below zero"),
    "values of a column": (
        lying((*CHUNK, 5), lambda values: values + 1),
        "a column lies outside, or has another number",
    ),
    "where a column lies": (lying((*CHUNK, 9), lambda _: 1 << 40), "a column lies outside"),
    "how long a column is": (lying((*CHUNK, 7), lambda _: 20), "its parts do not fit"),
    "no text for a name": (lying((SCHEMA, 1, 4), lambda _: b"\xff\xfe"), "the name of a column is no text"),
    "one column twice": (
        lying((SCHEMA, 1, 4), lambda _: b"label"),
        "columns must differ in name, but 'label' comes",
    ),
    "a footer longer than the file": (PLAIN[:-8] + b"\xff\xff\xff\x7fPAR1", "its footer is longer than itself"),
    "no footer": (PLAIN[:-8] + b"\0\0\0\0PAR1", "its parts do not fit"),
    "cut": (PLAIN[:-1], "but it does not start and end as one; write it again"),
    "encrypted": (PLAIN[:-4] + b"PARE", "an open parquet file was needed, but it is encrypted; write it without a key"),
    "an unpacked size below zero": (
        with_page(lambda page: changed(page, (2,), lambda size: -size)),
        "a page lies outside its column",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_found(tmp_path: Path, lie: str) -> None:
    content, sentence = LIES[lie]
    with pytest.raises(BadInput, match=sentence):
        sheet(saved(tmp_path, content))


def test_a_file_taken_apart_and_put_together_is_read(tmp_path: Path) -> None:
    assert sheet(saved(tmp_path, with_footer(PLAIN, footer(PLAIN)))).frame.collect().equals(FRAME)
    assert with_page(lambda page: page) == PLAIN


class Remark(pa.ExtensionType):  # type: ignore[misc]
    """A type that a program of its own registers."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "somebody.remark")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


NESTS: dict[str, tuple[pa.Table, str]] = {
    "a record": (pa.table({"s": [{"a": 1}]}), "column s must hold text, numbers or lists of them, but it is nested"),
    "a list of lists": (
        pa.table({"s": [[[1]]]}),
        "column s must hold text, numbers or lists of them, but it is nested",
    ),
    "a list of records": (pa.table({"s": [[{"a": 1}]]}), "but it is nested; write a column for each part"),
    "a map": (pa.table({"s": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}), "but it is nested"),
    "a type of its own": (
        pa.table({"s": pa.ExtensionArray.from_storage(Remark(), pa.array(["x"]))}),
        "plain columns were needed, but it holds an extension type of arrow, which is not opened; write text",
    ),
    "a number of its own": (
        pa.table({"s": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16)))}),
        "an extension type of arrow, which is not opened",
    ),
}


@pytest.mark.parametrize("nest", NESTS)
def test_nests_are_refused(tmp_path: Path, nest: str) -> None:
    content, sentence = NESTS[nest]
    pq.write_table(content, tmp_path / "x.parquet")
    with pytest.raises(BadInput, match=sentence):
        sheet(tmp_path / "x.parquet")


def test_too_many_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({str(place): [1] for place in range(10_001)}), tmp_path / "x.parquet")
    with pytest.raises(BadInput, match="10,000 columns at most were needed, but more came; write a row an answer"):
        sheet(tmp_path / "x.parquet")


def test_a_footer_that_is_too_long(tmp_path: Path) -> None:
    length = 17 << 20
    with pytest.raises(BadInput, match="a footer of 16 MB at most was needed, but 17 MB came; write larger groups"):
        sheet(saved(tmp_path, b"PAR1" + bytes(length) + length.to_bytes(4, "little") + b"PAR1"))


# Files of a few bytes that unpack into much; each is read in a process of its own, whose memory is measured.


def repeated(rows: int, length: int) -> pa.Table:
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["a" * length]))
    return pa.table({"id": [str(row) for row in range(rows)], "label": ["x"] * rows, "text": text})


def no_rows(path: Path) -> None:
    nothing = pa.table({"label": pa.nulls(1_000_000, pa.string())})
    with pq.ParquetWriter(path, nothing.schema) as writer:
        for _ in range(40):
            writer.write_table(nothing, row_group_size=1_000_000)


def much_text(path: Path) -> None:
    text = pa.table({"id": ["a" * (1 << 20)] * 30, "label": ["x"] * 30})
    with pq.ParquetWriter(path, text.schema, compression="zstd", use_dictionary=False) as writer:
        for _ in range(12):
            writer.write_table(text)


def plain_texts(path: Path) -> None:
    text = pa.table({"id": [str(row) for row in range(50)], "label": ["x"] * 50, "text": ["a" * (1 << 20)] * 50})
    with pq.ParquetWriter(path, text.schema, compression="zstd") as writer:
        for _ in range(8):
            writer.write_table(text)


BOMBS: dict[str, tuple[Callable[[Path], object], str]] = {
    "rows of nothing": (no_rows, "rows at most were needed for"),
    "cells of nothing": (
        lambda path: pq.write_table(pa.table({str(c): pa.nulls(1 << 20, pa.string()) for c in range(99)}), path),
        "99 columns, but it claims 1,048,576; is it what it claims to be?",
    ),
    "pages": (much_text, "but it unpacks into 270 MB; write it with less compression"),
    "a long text for many": (plain_texts, "256 MB in all was needed at most, but 400 MB came"),
    "a long category for many": (
        lambda path: pq.write_table(repeated(100_000, 1 << 20), path, compression="zstd"),
        "categories with less text were needed in column text, for 100,000 rows; write it as text",
    ),
    "a long cell": (
        lambda path: pq.write_table(repeated(10, 20 << 20), path, compression="zstd"),
        "but a cell of 20 MB came; is it what it claims to be?",
    ),
    "one id for all": (
        lambda path: pq.write_table(pa.table({"id": ["same"] * (1 << 20), "label": ["x"] * (1 << 20)}), path),
        "ids must differ, but 'same' stood in item 0 already",
    ),
}

CHILD = """
import sys, time
from pathlib import Path
from relook.datasets import arrays, table
from relook.errors import BadInput
path, started = Path(sys.argv[1]), time.process_time()
try:
    (arrays if path.suffix.startswith(".np") else table).collection(path)
except BadInput as error:
    print(error)
(peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(time.process_time() - started, int(peak) >> 10)
"""


def read_apart(path: Path) -> tuple[str, float, int]:
    """Read a file in a process of its own; return what it said, its seconds, and its megabytes."""
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    *said, measured = ran.stdout.splitlines()
    seconds, megabytes = measured.split()
    return "\n".join(said), float(seconds), int(megabytes)


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_are_refused_in_seconds(tmp_path: Path, bomb: str) -> None:
    make, sentence = BOMBS[bomb]
    make(tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 4_000_000
    said, seconds, megabytes = read_apart(tmp_path / "x.parquet")
    assert sentence in said
    assert seconds < 10
    assert megabytes < 1000


def test_a_guard_that_looks_at_nothing_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these checks is what refuses its file: without it another one does, or none."""
    path = saved(tmp_path, LIES["rows of the file"][0])
    monkeypatch.setattr(parquet, "_check_rows", lambda *_, **__: None)
    assert parquet.described(path).rows == 301


def test_names_that_polars_reads_otherwise_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two readers of one footer must agree, or what was checked is not what is read."""
    monkeypatch.setattr(parquet, "_text", lambda *_: "other")
    monkeypatch.setattr(parquet, "check_columns", lambda *_: None)
    with pytest.raises(BadInput, match="one name a column was needed, but the file tells of two; write it again"):
        sheet(saved(tmp_path, PLAIN))
