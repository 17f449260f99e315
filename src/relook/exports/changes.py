"""Only what changed: a row an item whose label is not the one it came with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relook import streams
from relook.cleaned import Cleaned
from relook.streams import Stream

if TYPE_CHECKING:
    import polars as pl

    from relook.evidence import Evidence


def write(found: Cleaned, path: Path) -> None:
    """Write the changed items as csv, tsv, JSON lines or parquet."""
    import polars as pl

    label = pl.Enum(found.classes)
    schema: dict[str, Any] = {"id": pl.String} | ({"path": pl.String} if "files" in found.found.columns else {})
    schema |= {"given": label, "final": label, "votes": pl.String, "rule": pl.String}
    streams.write(Stream(schema, lambda: _blocks(found)), path)


def _blocks(found: Cleaned) -> Iterator[pl.DataFrame]:
    import polars as pl

    known = found.evidence
    for items, block in found.named():
        changed = np.flatnonzero(known.final[items] != known.given[items])
        rows = changed + items.start
        told = {"given": found.labels(known.given[rows]), "final": found.labels(known.final[rows])}
        votes = in_words(known, items)[changed]
        yield block[changed].with_columns(**told, votes=votes, rule=pl.lit(known.rule))


def in_words(known: Evidence, items: slice) -> pl.Series:
    """Return the votes of items in words, most first, such as `dog 2, cat 1`."""
    import polars as pl

    low, high = np.searchsorted(known.votes["item"].to_numpy(), (items.start, items.stop))
    some = known.votes.slice(low, high - low).sort("item", "count", descending=[False, True], maintain_order=True)
    names = pl.Series(known.classes, dtype=pl.String).gather(some["label"])
    words = some.select("item", said=names + " " + some["count"].cast(pl.String))
    told = words.group_by("item", maintain_order=True).agg(pl.col("said").str.join(", "))
    rows = pl.DataFrame({"item": np.arange(items.start, items.stop)}).cast(pl.UInt32)
    return rows.join(told, on="item", how="left", maintain_order="left")["said"].fill_null("")
