"""Answers as packages about crowds take them: cleanlab's wide frame, crowd-kit's long one, and counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook import streams
from relook.cleaned import Cleaned, signed
from relook.errors import BadInput
from relook.sources import whole
from relook.streams import ROWS, Stream
from relook.types import IntArray, blocks

if TYPE_CHECKING:
    import polars as pl

_CELLS = 1 << 21


class _Votes(msgspec.Struct, frozen=True, eq=False):
    """Votes in the order of their items: item, column of who gave it, and class, by number; and the columns' names."""

    items: IntArray
    people: IntArray
    labels: IntArray
    names: list[str]


def write_cleanlab(found: Cleaned, path: Path) -> None:
    """Write a row an item and a column an annotator: classes by number, nothing where nobody answered."""
    streams.write(_wide(found), path)


def write_crowd_kit(found: Cleaned, path: Path) -> None:
    """Write a row an answer: task, worker, label."""
    import polars as pl

    schema = {"task": pl.String, "worker": pl.String, "label": pl.Enum(found.classes)}
    streams.write(Stream(schema, lambda: _long(found)), path)


def write_counts(found: Cleaned, path: Path) -> None:
    """Write N x C counts of votes, the given label's among them: npy in the items' order, or npz with their ids."""
    shape = len(found), len(found.classes)
    if path.suffix.lower() == ".npz":
        _write_archive(found, path, counts=found.evidence.counts())
        return
    with path.open("wb") as file:
        header = {"descr": "<i4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks(*shape):
            file.write(np.ascontiguousarray(found.evidence.counts(block), "<i4").tobytes())


def write_labels(found: Cleaned, path: Path) -> None:
    """Write the final label of each item: npy in the items' order, or npz with their ids.

    Labels are numbers, -1 for none: those that classes are called by where they are numbers, else their places. Only
    what came as an array of names leaves as one.
    """
    final, names = found.evidence.final, found.classes
    if found.found.form.kind in ("npy", "npz") and not whole(names):
        labels = np.array([*names, ""])[final]
    else:
        labels = np.array([*(map(int, names) if whole(names) else range(len(names))), -1])[final]
    if path.suffix.lower() == ".npz":
        _write_archive(found, path, labels=labels)
    else:
        np.save(path, labels, allow_pickle=False)


def _write_archive(found: Cleaned, path: Path, **values: NDArray[Any]) -> None:
    ids = np.array(found.evidence.ids.to_list())
    np.savez(path, allow_pickle=False, ids=ids, classes=np.array(found.classes), **values)


def _votes(found: Cleaned) -> _Votes:
    """Return every vote on its own: so many of one class that nobody in particular gave are as many rows."""
    import polars as pl

    told = found.evidence.answers.select("item", "annotator", pl.col("label").to_physical(), "count")
    told = told.filter(pl.col("label").is_not_null())
    if (np.diff(told["item"].to_numpy().astype(np.int64)) < 0).any():
        told = told.sort("item", maintain_order=True)
    times = told["count"].fill_null(1).to_numpy()
    if (times > 1).any():
        told = told[np.repeat(np.arange(len(told)), times)]
    who = signed(told)
    names = who.unique(maintain_order=True)
    numbers, codes = who.to_physical().to_numpy(), names.to_physical().to_numpy()
    place = np.zeros(int(codes.max(initial=0)) + 1, np.int32)
    place[codes] = np.arange(len(codes))
    return _Votes(told["item"].to_numpy(), place[numbers], told["label"].to_numpy(), names.cast(pl.String).to_list())


def _long(found: Cleaned) -> Iterator[pl.DataFrame]:
    import polars as pl

    votes = _votes(found)
    names = pl.Series(votes.names, dtype=pl.String)
    for low in range(0, len(votes.items), ROWS):
        some = slice(low, low + ROWS)
        ids, people = found.evidence.ids.gather(votes.items[some]), names.gather(votes.people[some])
        yield pl.DataFrame({"task": ids, "worker": people, "label": found.labels(votes.labels[some].astype(np.int64))})


def _wide(found: Cleaned) -> Stream:
    import polars as pl

    votes = _votes(found)
    if "id" in votes.names:
        raise BadInput(
            "export: a column of ids was needed beside one for each annotator, but one of them is called 'id'; rename "
            "them, or take --as crowd-kit"
        )
    schema: dict[str, Any] = {"id": pl.String} | dict.fromkeys(votes.names, pl.Int32)
    return Stream(schema, lambda: _wide_blocks(found, votes))


def _wide_blocks(found: Cleaned, votes: _Votes) -> Iterator[pl.DataFrame]:
    import polars as pl

    width = len(votes.names)
    rows = max(1, min(ROWS, _CELLS // max(width, 1)))
    for low in range(0, len(found), rows):
        ids = found.evidence.ids.slice(low, rows)
        inside = slice(*np.searchsorted(votes.items, (low, low + len(ids))))
        cells = np.full((width, len(ids)), -1, np.int32)
        cells[votes.people[inside], votes.items[inside].astype(np.int64) - low] = votes.labels[inside]
        columns = {name: pl.Series(row) for name, row in zip(votes.names, cells, strict=True)}
        told = pl.DataFrame(columns).with_columns(pl.all().replace(-1, None)) if columns else pl.DataFrame()
        yield pl.DataFrame({"id": ids}).hstack(told)
