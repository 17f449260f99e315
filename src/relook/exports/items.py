"""A row an item: the label it came with, the one it has, and what speaks for that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relook import streams
from relook.cleaned import Cleaned
from relook.evidence import STATUSES
from relook.streams import Stream

if TYPE_CHECKING:
    import polars as pl

COUNT, BELIEF = "count:", "belief:"
"""What stands before the name of a class in the columns of votes and of beliefs."""


def write(found: Cleaned, path: Path) -> None:
    """Write the items as csv, tsv, JSON lines or parquet."""
    streams.write(stream(found), path)


def stream(found: Cleaned) -> Stream:
    """Return the items as a table.

    >>> from relook.campaign import Campaign
    >>> from relook.cleaned import cleaned
    >>> from relook.policies import named
    >>> from relook.types import Labels
    >>> table = stream(cleaned(Campaign(Labels([1], 2), named("random"), budget=1)))
    >>> next(table.blocks()).select("id", "given", "final", "status", "answers", "count:1").row(0)
    ('0', '1', '1', 'unseen', 0, 1)
    """
    return Stream(_schema(found), lambda: _blocks(found), decimals=6)


def _schema(found: Cleaned) -> Any:
    import polars as pl

    label = pl.Enum(found.classes)
    known: dict[str, Any] = {"id": pl.String}
    known |= {"path": pl.String} if "files" in found.found.columns else {}
    known |= {"given": label, "final": label, "status": pl.Enum(STATUSES), "answers": pl.UInt32}
    known |= {COUNT + name: pl.Int32 for name in found.classes}
    if found.evidence.posteriors is not None:
        known |= {BELIEF + name: pl.Float64 for name in found.classes}
    if found.priority is not None:
        known |= {"rank": pl.UInt32, "score": pl.Float64}
    return known | {"rule": pl.String}


def _blocks(found: Cleaned) -> Iterator[pl.DataFrame]:
    import polars as pl

    known, places, schema = found.evidence, found.places(), _schema(found)
    for items, block in found.named():
        columns: dict[str, Any] = {
            "given": found.labels(known.given[items]),
            "final": found.labels(known.final[items]),
            "status": found.statuses(items),
            "answers": pl.Series(known.heard[items]),
        }
        columns |= {COUNT + name: values for name, values in zip(found.classes, known.counts(items).T, strict=True)}
        believed = known.belief(items)
        if believed is not None:
            columns |= {BELIEF + name: values for name, values in zip(found.classes, believed.T, strict=True)}
        if places is not None and found.priority is not None:
            columns |= {"rank": places[items], "score": found.priority[items]}
        rule = pl.lit(known.rule).alias("rule")
        yield block.with_columns(**columns).with_columns(rule).select(*schema).cast(schema)
