"""Embeddings and probabilities that come along with items: a row an item, joined by what both of them name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from relook.alignment import checked_posteriors, class_names
from relook.collection import KEPT, Collection
from relook.datasets import arrays, table
from relook.errors import BadInput
from relook.sources import COLUMNS, Columns, LabelTable, Names, ProbabilityTable, VectorTable, counted, listed
from relook.types import FloatArray, IntArray

if TYPE_CHECKING:
    import polars as pl

JOINS = ("id", "path", "stem")
"""What a row may name an item by: its id, the path of its image, or the name of that file without folder and ending; a
column of the items' own source is said as `column:NAME`."""


class Joined(msgspec.Struct, frozen=True, eq=False):
    """A row of numbers for each item, NaN where there is none; the items that have none, and the rows of no item."""

    values: FloatArray
    missing: Sequence[str] = ()
    extra: Sequence[str] = ()
    facts: Names = ()


def embeddings(found: Collection, path: Path, *, by: str = "id", columns: Columns = COLUMNS) -> Joined:
    """Return the embeddings of items from npy (in their order), npz, parquet, csv, tsv or JSON lines.

    >>> import polars as pl, tempfile
    >>> from relook.collection import Form
    >>> items = pl.DataFrame({"id": ["a", "b"]})
    >>> answers = pl.DataFrame({"item": [0], "annotator": ["Ada"], "label": ["cat"]})
    >>> pets = Collection(source="pets", form=Form("csv"), classes=("cat",), ids=items["id"], items=items.lazy(),
    ...     answers=answers)
    >>> file = Path(tempfile.mkdtemp(), "e.npz")
    >>> np.savez(file, embeddings=[[1.0, 2.0], [3.0, 4.0]], ids=["b", "c"])
    >>> joined = embeddings(pets, file)
    >>> joined.values.tolist(), joined.missing, joined.extra
    ([[nan, nan], [1.0, 2.0]], ['a'], ['c'])
    """
    read = (arrays if path.suffix.lower() in arrays.SUFFIXES else table).embeddings(path, columns=columns)
    bad = ~np.isfinite(read.values).all(1)
    if bad.any():
        raise BadInput(
            f"{read.place(int(bad.argmax()))}: numbers were needed in each place of an embedding, but NaN or infinity "
            "came; compute it again, or leave its row out"
        )
    return _joined(found, read, values=read.values, by=by)


def probabilities(found: Collection, path: Path, *, by: str = "id", columns: Columns = COLUMNS) -> Joined:
    """Return the class probabilities of items, a column a class in the collection's order."""
    read = (arrays if path.suffix.lower() in arrays.SUFFIXES else table).probabilities(path, columns=columns)
    if read.values.ndim != 2:
        raise BadInput(
            f"{read.source}: N x C probabilities of one model were needed, but shape {read.values.shape} came; "
            "save their mean"
        )
    checked_posteriors(read)
    labels = LabelTable(found.source, np.zeros(1, np.int64), names=found.classes)
    named = class_names(labels, read, named=columns.classes)
    if set(named) != set(found.classes):
        other = min(set(named) ^ set(found.classes))
        raise BadInput(
            f"{read.source}: a column for each of the classes {listed(found.classes)} was needed, but {listed(named)} "
            f"came, and {other!r} is in one only; name the columns by the classes"
        )
    place = [named.index(name) for name in found.classes]
    values = read.values if place == sorted(place) else read.values[:, place]
    return _joined(found, read, values=values, by=by)


def _joined(found: Collection, read: VectorTable | ProbabilityTable, *, values: FloatArray, by: str) -> Joined:
    if read.ids is None:
        return _by_order(found, read, values=values)
    wanted, there = _names(found, by), _distinct(read.ids, source=read.source, by=by)
    row_of = {name: row for row, name in enumerate(there)}
    rows: IntArray = np.fromiter((row_of.get(name, -1) for name in wanted), np.int64, len(wanted))
    if (rows < 0).all():
        raise BadInput(
            f"{read.source}: rows that name items by {by} were needed, but none of {len(there):,} does ({there[0]!r} "
            f"in one, {wanted[0]!r} in the other); pass --join {', '.join(JOINS)} or {KEPT}NAME"
        )
    known = set(wanted)
    missing = [str(found.ids[item]) for item in np.flatnonzero(rows < 0).tolist()]
    extra = [own for own, name in zip(read.ids, there, strict=True) if name not in known]
    facts = [f"{read.source}: joined by {by}: {counted(len(wanted) - len(missing), 'item')} of {len(wanted):,}."]
    facts += [f"{read.source}: no row for {counted(len(missing), 'item')} ({listed(missing, 3)})."] if missing else []
    facts += [f"{read.source}: {counted(len(extra), 'row')} of no item ({listed(extra, 3)})."] if extra else []
    return Joined(_rows(values, rows), missing, extra, (*read.facts, *facts))


def _by_order(found: Collection, read: VectorTable | ProbabilityTable, *, values: FloatArray) -> Joined:
    if len(values) != len(found):
        raise BadInput(
            f"{read.source}: a row for each of {counted(len(found), 'item')} was needed, for it has no ids, but "
            f"{len(values):,} came; save ids with them"
        )
    return Joined(values, facts=(*read.facts, f"{read.source}: joined by order, row by row: it has no ids."))


def _rows(values: FloatArray, rows: IntArray) -> FloatArray:
    """Return the row of each item, NaN where it has none; nothing is copied where all are in order."""
    if _in_order(rows, len(values)):
        return values
    filled = values[rows]
    filled[rows < 0] = np.nan
    return filled


def _in_order(rows: IntArray, length: int) -> bool:
    return len(rows) == length and bool((rows == np.arange(length)).all())


def _names(found: Collection, by: str) -> list[str]:
    """Return what each item is named by."""
    if by == "id":
        return found.ids.to_list()
    if by in JOINS:
        paths = _paths(found)
        return _distinct(paths, source=found.source, by=by)
    if by not in found.columns or not by.startswith(KEPT):
        raise BadInput(
            f"{found.source}: one of {', '.join(JOINS)} or {KEPT}NAME was needed to join by, but {by!r} came; it has "
            f"{listed([name for name in found.columns if name.startswith(KEPT)]) or 'no columns of its own'}"
        )
    return _distinct(_column(found, by).to_list(), source=found.source, by=by)


def _paths(found: Collection) -> list[str]:
    """Return the path of each item's first image, or its id where there are no paths, for ids may be paths."""
    if "files" not in found.columns:
        return found.ids.to_list()
    import polars as pl

    paths: list[str] = found.items.select(pl.col("files").list.first().fill_null("")).collect()["files"].to_list()
    return paths


def _column(found: Collection, name: str) -> pl.Series:
    import polars as pl

    return found.items.select(pl.col(name).cast(pl.String).fill_null("")).collect()[name]


def _distinct(names: Sequence[str], *, source: str, by: str) -> list[str]:
    """Return names to join by, stems where that is wanted, and refuse two that are alike."""
    keys = [_stem(name) for name in names] if by == "stem" else list(names)
    if len(set(keys)) == len(keys):
        return keys
    first: dict[str, int] = {}
    for row, key in enumerate(keys):
        if first.setdefault(key, row) != row and key:
            raise BadInput(
                f"{source}: names that differ were needed to join by {by}, but {names[first[key]]!r} and "
                f"{names[row]!r} are alike; join by another"
            )
    return keys


def _stem(name: str) -> str:
    r"""Return a file's name without folder and ending, as Linux and Windows write paths.

    >>> _stem("a/b.c/1.2.png"), _stem("a\\2.png")
    ('1.2', '2')
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    return last.rpartition(".")[0] or last
