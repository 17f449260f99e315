"""A row an answer that stands: who, about what, what they said, when, how long it took, and under which ranking."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relook import streams
from relook.cleaned import Cleaned
from relook.evidence import SAID
from relook.streams import ROWS, Stream

if TYPE_CHECKING:
    import polars as pl

ALWAYS = ("id", "annotator", "label")
"""Columns that are always there; the others come where anything of them is known."""


def write(found: Cleaned, path: Path) -> None:
    """Write the answers as csv, tsv, JSON lines or parquet."""
    streams.write(stream(found), path)


def stream(found: Cleaned) -> Stream:
    """Return the answers as a table; labels that items came with are answers of `given`."""
    import polars as pl

    told = found.evidence.answers
    known = [name for name in SAID[1:] if name in ALWAYS or told[name].null_count() < len(told)]
    schema: dict[str, Any] = {"id": pl.String} | {name: told.schema[name] for name in known}
    schema["annotator"] = pl.String
    return Stream(schema, lambda: _blocks(found, list(schema)))


def _blocks(found: Cleaned, names: list[str]) -> Iterator[pl.DataFrame]:
    import polars as pl

    for block in found.evidence.answers.iter_slices(ROWS):
        yield block.with_columns(
            id=found.evidence.ids.gather(block["item"]), annotator=pl.col("annotator").cast(pl.String)
        ).select(names)
