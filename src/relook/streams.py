"""Tables that are written block by block, so that a million rows cost no more memory than a few thousand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from relook.cells import defused
from relook.errors import BadInput

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
"""Kinds of files that a table is written to."""

ROWS = 16_384
"""Rows of a block."""


class Stream(msgspec.Struct, frozen=True, eq=False):
    """A table that comes in blocks: the names and types of its columns, and what yields the blocks, each time anew.

    In csv and tsv, numbers that are not whole have so many `decimals` (None: as many as they need).
    """

    schema: Mapping[str, Any]
    blocks: Callable[[], Iterator[pl.DataFrame]]
    decimals: int | None = None


def write(stream: Stream, path: Path) -> None:
    """Write a table in the form that the file's name ends in.

    csv and tsv are for people: cells that a spreadsheet would run are marked.

    >>> import polars as pl
    >>> import tempfile
    >>> table = pl.DataFrame({"id": ["=1", "b"]})
    >>> path = Path(tempfile.mkdtemp(), "table.csv")
    >>> write(Stream(table.schema, lambda: iter([table])), path)
    >>> path.read_text().split()
    ['id', "'=1", 'b']
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        _lazy(stream).sink_parquet(path)
    elif suffix == ".jsonl":
        with path.open("wb") as file:
            for block in stream.blocks():
                block.write_ndjson(file)
    elif suffix in (".csv", ".tsv"):
        _write_lines(stream, path, separator="," if suffix == ".csv" else "\t")
    else:
        raise BadInput(
            f"{path}: a table of one of these kinds was needed: {', '.join(SUFFIXES)}, but {suffix or 'no suffix'} "
            "came; name one with --to"
        )


def _lazy(stream: Stream) -> pl.LazyFrame:
    import polars as pl
    from polars.io.plugins import register_io_source

    def read(_columns: Any, _predicate: Any, _rows: Any, _size: Any) -> Iterator[pl.DataFrame]:
        yield from stream.blocks()

    return register_io_source(read, schema=pl.Schema(stream.schema))


def _write_lines(stream: Stream, path: Path, *, separator: str) -> None:
    import polars as pl

    heading = defused(pl.Series(list(stream.schema), dtype=pl.String)).to_list()
    with path.open("wb") as file:
        pl.DataFrame(schema=heading).write_csv(file, separator=separator)
        for block in stream.blocks():
            cells = [defused(column).rename(name) for column, name in zip(block, heading, strict=True)]
            plain = pl.DataFrame(cells)
            plain.write_csv(file, separator=separator, include_header=False, float_precision=stream.decimals)
