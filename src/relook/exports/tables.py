"""The table that a set came as, with its labels replaced: a row whose label did not change is the row that came.

A table with a row an item has the final label in its column of labels. One with a row an answer, a column an annotator
or a column a class has the new answers beside the old ones; what the final label is, it does not say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from relook import streams
from relook.cleaned import Cleaned, signed
from relook.collection import GIVEN, KEPT, NUMBER
from relook.errors import BadInput
from relook.meanings import NUMBER as NUMBER_OF_A_CLASS
from relook.roles import EACH
from relook.sources import whole
from relook.streams import Stream

if TYPE_CHECKING:
    import polars as pl

_DESCRIBING = ("text", "files", "split", "group", "source")


def write(found: Cleaned, path: Path) -> None:
    """Write the table in the layout that it came in."""
    layouts = {"items": _of_items, "answers": _of_answers, "wide": _of_annotators, "counts": _of_classes}
    stream, form = layouts[found.found.form.layout](found), found.found.form
    if path.suffix.lower() == f".{form.kind}":
        stream = msgspec.structs.replace(stream, settings=form.settings)
    streams.write(stream, path)


def _kept(found: Cleaned) -> dict[str, Any]:
    """Return the source's own columns and their types."""
    kinds = found.found.items.collect_schema()
    return {name.removeprefix(KEPT): kind for name, kind in kinds.items() if name.startswith(KEPT)}


def _rows(found: Cleaned) -> Iterator[tuple[slice, pl.DataFrame]]:
    """Yield the rows as they came."""
    import polars as pl

    own = _kept(found)
    for items, block in found.blocks([KEPT + name for name in own]):
        yield items, block.select(pl.col(KEPT + name).alias(name) for name in own)


# A row an item.


def _of_items(found: Cleaned) -> Stream:
    label = found.found.form.columns["label"]
    cells = _cells(found, label)
    return Stream(_kept(found), lambda: _relabelled(found, label, cells=cells))


def _relabelled(found: Cleaned, label: str, *, cells: pl.Series) -> Iterator[pl.DataFrame]:
    import polars as pl

    known = found.evidence
    for items, block in _rows(found):
        changed = pl.Series(known.final[items] != known.given[items], dtype=pl.Boolean)
        final = cells.gather(np.maximum(known.final[items], 0))
        yield block.with_columns(pl.when(changed).then(final).otherwise(pl.col(label)).alias(label))


def _cells(found: Cleaned, label: str) -> pl.Series:
    """Return what stands for each class in a column of labels: what stood there most often, else how it is spelled."""
    import polars as pl

    seen = []
    for items, block in _rows(found):
        pairs = pl.DataFrame({"class": found.evidence.given[items], "cell": block[label]})
        seen.append(pairs.filter(pl.col("class") >= 0).group_by("class", "cell").len())
    counts = (
        pl.concat(seen).group_by("class", "cell").agg(pl.col("len").sum()).sort("len", pl.col("cell").cast(pl.String))
    )
    written = dict(counts.select("class", "cell").iter_rows())
    spelled = _spelled(found, counts["cell"])
    names = [
        spelled[place] if written.get(place) is None else str(written[place]) for place in range(len(found.classes))
    ]
    kind = _kept(found)[label]
    if kind == pl.Boolean:
        return pl.Series([name.lower() in ("true", "yes") for name in names], dtype=pl.Boolean)
    return _cast(names, kind, column=label)


def _cast(names: list[str], kind: Any, *, column: str) -> pl.Series:
    """Return names of classes as a column of the source holds them."""
    import polars as pl

    try:
        return pl.Series(names, dtype=pl.String).cast(kind)
    except pl.exceptions.PolarsError:
        raise BadInput(
            f"export: classes that column {column} can hold were needed, for it is {kind}, but they are called "
            f"{', '.join(names[:3])}; take --as items"
        ) from None


def _spelled(found: Cleaned, cells: pl.Series) -> list[str]:
    """Return how the source writes each class: by its place where it writes numbers for names, else by its name."""
    import polars as pl

    form, seen = found.found.form, cells.cast(pl.String).drop_nulls().unique().to_list()
    if "question" in form.settings:
        return [form.settings.get(name, name) for name in found.classes]
    texts = [text for text in seen if text]
    if texts and not whole(found.classes) and all(map(NUMBER_OF_A_CLASS.fullmatch, texts)):
        return [str(place) for place in range(len(found.classes))]
    return list(found.classes)


# A column an annotator, a column a class.


def _of_annotators(found: Cleaned) -> Stream:
    """Return the table with the new answers in the columns of those who gave them, new people in new columns."""
    import polars as pl

    each, own = found.found.form.settings["each"], _kept(found)
    before, _, after = each.partition(EACH)
    there = [name for name in own if name.startswith(before) and name.endswith(after)]
    told = _since(found).with_columns(column=pl.concat_str(pl.lit(before), "who", pl.lit(after)))
    schema = own | {name: own[there[0]] for name in told["column"].unique(maintain_order=True) if name not in own}
    cells = pl.concat([block[name].cast(pl.String).unique() for _, block in _rows(found) for name in there])
    spelled = _cast(_spelled(found, cells), own[there[0]], column=there[0])
    return Stream(schema, lambda: _answered(found, told, schema=schema, spelled=spelled))


def _answered(
    found: Cleaned, told: pl.DataFrame, *, schema: Mapping[str, Any], spelled: pl.Series
) -> Iterator[pl.DataFrame]:
    import polars as pl

    for items, block in _rows(found):
        empty = [pl.lit(None, dtype=schema[name]).alias(name) for name in schema if name not in block.columns]
        columns = block.with_columns(empty).to_dict()
        for (name,), part in _within(told, items).group_by("column"):
            answers = spelled.gather(part["label"].to_physical()).cast(schema[str(name)])
            columns[str(name)] = columns[str(name)].scatter(part["item"] - items.start, answers)
        yield pl.DataFrame(columns).select(*schema)


def _of_classes(found: Cleaned) -> Stream:
    """Return the table with the new answers counted in."""
    each = found.found.form.settings["each"]
    names = [each.replace(EACH, name) for name in found.classes]
    return Stream(_kept(found), lambda: _counted(found, names))


def _counted(found: Cleaned, names: list[str]) -> Iterator[pl.DataFrame]:
    import polars as pl

    told = _since(found)
    for items, block in _rows(found):
        more = np.zeros((len(names), len(block)), np.int64)
        part = _within(told, items)
        np.add.at(more, (part["label"].to_physical().to_numpy(), part["item"].to_numpy() - items.start), 1)
        columns = {}
        for name, added in zip(names, more, strict=True):
            total = block[name].cast(pl.Float64).fill_null(0).cast(pl.Int64) + added
            columns[name] = block[name].zip_with(pl.Series(added == 0), total.cast(block[name].dtype))
        yield block.with_columns(**columns)


def _since(found: Cleaned) -> pl.DataFrame:
    """Return the answers that came in a campaign and name a class."""
    import polars as pl

    answers = found.evidence.answers
    told = answers.with_columns(who=signed(answers))
    return told.filter(pl.col("ranking").is_not_null() & pl.col("label").is_not_null()).sort(
        "item", maintain_order=True
    )


def _within(told: pl.DataFrame, items: slice) -> pl.DataFrame:
    """Return the answers about some items, of a table in the order of the items."""
    low, high = np.searchsorted(told["item"].to_numpy(), (items.start, items.stop))
    return told.slice(low, high - low)


# A row an answer.


def _of_answers(found: Cleaned) -> Stream:
    """Return a row an answer, in the order of the items; an item that nobody said anything of has a row without one."""
    import polars as pl

    own, form, kinds = found.found.columns, found.found.form, found.found.items.collect_schema()
    if "files" in own and "files" not in form.columns:
        raise BadInput(
            "export: one column of images was needed to leave as it came, but there are more; take --as items"
        )
    kept = {name: form.columns[name] for name in _DESCRIBING if name in own}
    kept |= {name: name.removeprefix(NUMBER) for name in own if name.startswith(NUMBER)}
    said = {"id": pl.String, "who": pl.String, "label": pl.String, "at": pl.Float64, "seconds": pl.Float64}
    roles = {"who": "annotator"}
    told = {
        form.columns[roles.get(name, name)]: kind
        for name, kind in said.items()
        if roles.get(name, name) in form.columns
    }
    schema = told | {new: pl.String if name == "files" else kinds[name] for name, new in kept.items()}
    called = {
        name: form.columns[roles.get(name, name)] for name in said if roles.get(name, name) in form.columns
    } | kept
    return Stream(schema, lambda: _answers(found, called))


def _answers(found: Cleaned, called: Mapping[str, str]) -> Iterator[pl.DataFrame]:
    import polars as pl

    answers = found.evidence.answers
    told = (
        answers.with_columns(who=signed(answers).cast(pl.String))
        .filter(pl.col("label").is_not_null())
        .sort("item", maintain_order=True)
    )
    spelled = pl.Series(_spelled(found, pl.Series([], dtype=pl.String)), dtype=pl.String)
    kept = [name for name in called if name in found.found.columns and name != "id"]
    for items, block in found.blocks(kept):
        part = _within(told, items)
        part = part.select("item", "who", "at", "seconds", label=spelled.gather(part["label"].to_physical()))
        rows = block.with_columns(item=pl.int_range(items.start, items.stop, dtype=pl.UInt32, eager=True))
        both = rows.join(part, on="item", how="left", maintain_order="left_right")
        both = both.with_columns(pl.col("who").fill_null(GIVEN))
        if "files" in kept:
            both = both.with_columns(pl.col("files").list.first())
        yield both.select(pl.col(name).alias(new) for name, new in called.items())
