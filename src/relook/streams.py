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

    In csv and tsv, numbers that are not whole have so many `decimals` (None: as many as they need). `settings` says how
    text is written: its separator, newline and encoding.
    """

    schema: Mapping[str, Any]
    blocks: Callable[[], Iterator[pl.DataFrame]]
    decimals: int | None = None
    settings: Mapping[str, str] = {}


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
    elif suffix in SUFFIXES:
        texts = _objects(stream) if suffix == ".jsonl" else _lines(stream, "\t" if suffix == ".tsv" else ",")
        # No end of line is translated: one inside a cell is the cell's own.
        with path.open("w", encoding=stream.settings.get("encoding", "utf-8"), newline="") as file:
            file.writelines(texts)
    else:
        raise BadInput(
            f"{path}: a table of one of these kinds was needed: {', '.join(SUFFIXES)}, but {suffix or 'no suffix'} "
            "came; name one with --to"
        )


def _lazy(stream: Stream) -> pl.LazyFrame:
    import polars as pl
    from polars.io.plugins import register_io_source

    def read(*_wanted: Any) -> Iterator[pl.DataFrame]:
        yield from stream.blocks()

    return register_io_source(read, schema=pl.Schema(stream.schema))


def _objects(stream: Stream) -> Iterator[str]:
    newline = stream.settings.get("newline", "\n")
    for block in stream.blocks():
        yield block.write_ndjson().replace("\n", newline)


def _lines(stream: Stream, separator: str) -> Iterator[str]:
    import polars as pl

    heading = defused(pl.Series(list(stream.schema), dtype=pl.String)).to_list()
    separator, newline = (
        stream.settings.get(name, usual) for name, usual in (("separator", separator), ("newline", "\n"))
    )
    yield pl.DataFrame(schema=heading).write_csv(separator=separator, line_terminator=newline)
    for block in stream.blocks():
        cells = [defused(column).rename(name) for column, name in zip(block, heading, strict=True)]
        yield pl.DataFrame(cells).write_csv(
            include_header=False, separator=separator, line_terminator=newline, float_precision=stream.decimals
        )
