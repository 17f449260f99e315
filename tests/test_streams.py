"""Tables are written block by block in the form that a file's name says, as their source was written."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from relook.errors import BadInput
from relook.streams import SUFFIXES, Stream, write

TABLE = pl.DataFrame({"id": ["a", "é\nb", None, ""], "number": [1.5, -2.0, None, 0.1], "label": ["x", "y", "x", None]})


def blocks() -> Iterator[pl.DataFrame]:
    yield from TABLE.iter_slices(3)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_blocks_become_one_table(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"table{suffix}"
    write(Stream(TABLE.schema, blocks), path)
    scanned = {
        ".parquet": pl.scan_parquet(path),
        ".jsonl": pl.scan_ndjson(path),
        ".csv": pl.scan_csv(path),
        ".tsv": pl.scan_csv(path, separator="\t"),
    }
    assert scanned[suffix].collect().equals(TABLE)


def test_no_block_at_all_is_an_empty_table(tmp_path: Path) -> None:
    for suffix in SUFFIXES:
        write(Stream(TABLE.schema, lambda: iter(())), tmp_path / f"table{suffix}")
    assert pl.read_parquet(tmp_path / "table.parquet").schema == TABLE.schema
    assert (tmp_path / "table.csv").read_text() == "id,number,label\n"
    assert (tmp_path / "table.jsonl").read_text() == ""


def test_text_is_written_as_its_source_was(tmp_path: Path) -> None:
    settings = {"separator": ";", "newline": "\r\n", "encoding": "utf-16"}
    write(Stream(TABLE.schema, blocks, settings=settings), tmp_path / "table.csv")
    text = (tmp_path / "table.csv").read_bytes().decode("utf-16")
    assert text.startswith('id;number;label\r\na;1.5;x\r\n"é\nb";-2.0;y\r\n')
    write(Stream(TABLE.schema, blocks, settings=settings), tmp_path / "table.jsonl")
    assert (tmp_path / "table.jsonl").read_bytes().decode("utf-16").count("\r\n") == 4


def test_decimals_are_as_many_as_wanted(tmp_path: Path) -> None:
    write(Stream(TABLE.schema, blocks, decimals=2), tmp_path / "table.csv")
    assert pl.read_csv(tmp_path / "table.csv", infer_schema=False)["number"].to_list() == [
        "1.50",
        "-2.00",
        None,
        "0.10",
    ]


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"a table of one of these kinds was needed: .*, but \.xls came; name one with --to"
    ):
        write(Stream(TABLE.schema, blocks), tmp_path / "table.xls")
