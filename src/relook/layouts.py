"""A table with a row an item, a row an answer, a column an annotator or a column a class, as a collection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from relook import descriptions
from relook.collection import GIVEN, Collection, Form
from relook.errors import BadInput
from relook.meanings import Meaning, meaning
from relook.roles import Roles, roles
from relook.sheets import Sheet, numbers, texts
from relook.sources import COLUMNS, Columns, Names, counted

if TYPE_CHECKING:
    import polars as pl

_TOGETHER = 64
"""So many columns of annotators or classes are read at once."""


def collection(sheet: Sheet, *, columns: Columns = COLUMNS) -> Collection:
    """Return the items of a table and what was said about them; columns are found as `relook.roles` says."""
    found = roles(sheet.columns, columns, source=sheet.source)
    if not sheet.rows:
        raise BadInput(
            f"{sheet.source}: at least one row was needed, but there is none below the heading; export again"
        )
    facts = (*sheet.facts, found.sentence(sheet.source))
    if found.layout == "answers":
        return _of_answers(sheet, found, columns=columns, facts=facts)
    ids = _ids(sheet, found)
    if found.id is None:
        facts = (*facts, f"{sheet.source}: no column of ids, so rows are numbered from 0.")
    if found.layout == "counts":
        answers, sense = _counts(sheet, found, columns=columns)
    else:
        said = _given(sheet, found) if found.layout == "items" else _wide(sheet, found)
        answers, sense = _named(said, columns, source=sheet.source)
    return Collection(
        source=sheet.source,
        form=_form(sheet, found, sense=sense, columns=columns),
        classes=sense.classes,
        ids=ids,
        items=descriptions.items(sheet, found),
        answers=answers,
        first_line=sheet.first_line,
        facts=(*facts, *sense.facts, *descriptions.checked(sheet, found)),
    )


def _form(sheet: Sheet, found: Roles, *, sense: Meaning, columns: Columns) -> Form:
    each = {"wide": columns.annotator, "counts": columns.label}.get(found.layout)
    settings = {**sheet.settings, **sense.settings} | ({} if each is None else {"each": each})
    return Form(sheet.kind, found.layout, found.named, settings)


# Ids and labels, which are read; all else stays where it is.


def _ids(sheet: Sheet, found: Roles) -> pl.Series:
    """Return the ids as text: those of the column, else the numbers of the rows."""
    import polars as pl

    if found.id is None:
        return pl.int_range(sheet.rows, eager=True).cast(pl.String).alias("id")
    return texts(sheet.read([found.id])[found.id], sheet, what="ids").alias("id")


def _given(sheet: Sheet, found: Roles) -> pl.DataFrame:
    """Return the labels that items came with, as answers of `given`."""
    import polars as pl

    labels = texts(sheet.read([str(found.label)])[str(found.label)], sheet, what="labels")
    return pl.DataFrame([labels.alias("label")]).with_columns(item=pl.int_range(pl.len(), dtype=pl.UInt32))


def _wide(sheet: Sheet, found: Roles) -> pl.DataFrame:
    """Return the cells of all annotators that hold something, a row an answer."""
    import polars as pl

    people = ({} if found.label is None else {found.label: GIVEN}) | dict(found.each)
    parts = []
    for names in _blocks(list(people)):
        block = sheet.read(names)
        for cells in block:
            answers = pl.DataFrame([texts(cells, sheet, what="labels").alias("label")]).select(
                "label", item=pl.int_range(pl.len(), dtype=pl.UInt32), annotator=pl.lit(people[cells.name])
            )
            parts.append(answers.filter(pl.col("label").is_not_null() & (pl.col("label") != "")))
    return pl.concat(parts).sort("item", maintain_order=True)


def _blocks(names: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), _TOGETHER):
        yield list(names[start : start + _TOGETHER])


def _named(said: pl.DataFrame, columns: Columns, *, source: str) -> tuple[pl.DataFrame, Meaning]:
    """Return answers by the names of classes, those left out that are none, and what the texts mean."""
    import polars as pl

    counts = said.lazy().group_by("label", maintain_order=True).len().collect(engine="streaming")
    sense = meaning(dict(counts.iter_rows()), columns, source=source)
    changed = {text: name for text, name in sense.names.items() if text is not None and text != name}
    labels = pl.col("label").replace(changed) if changed else pl.col("label")
    if sense.names.get(None) is not None:
        labels = pl.when(pl.col("label").is_null()).then(pl.lit(sense.names[None])).otherwise(labels)
    said = said.with_columns(labels.alias("label"))
    if None in sense.names.values():
        said = said.filter(pl.col("label").is_not_null())
    if set(sense.names.values()) - {None} <= set(sense.classes):
        said = said.with_columns(pl.col("label").cast(pl.Enum(list(sense.classes))))
    if "annotator" not in said.columns:
        said = said.with_columns(annotator=pl.lit(GIVEN, dtype=pl.Categorical))
    return said, sense


def _counts(sheet: Sheet, found: Roles, *, columns: Columns) -> tuple[pl.DataFrame, Meaning]:
    """Return how many people said each class of each item."""
    import polars as pl

    classes = columns.classes or tuple(found.each.values())
    if set(classes) != set(found.each.values()):
        raise BadInput(
            f"{sheet.source}: --classes with a name for each of {len(found.each)} columns of counts was needed, but "
            f"{', '.join(map(repr, sorted(set(classes) ^ set(found.each.values()))[:3]))} is in one only; leave it out"
        )
    parts = []
    for names in _blocks(list(found.each)):
        for cells in sheet.read(names):
            counts = pl.DataFrame([_whole(cells, sheet).alias("count")]).select(
                item=pl.int_range(pl.len(), dtype=pl.UInt32),
                annotator=pl.lit(None, dtype=pl.Categorical),
                label=pl.lit(found.each[cells.name], dtype=pl.Enum(list(classes))),
                count="count",
            )
            parts.append(counts.filter(pl.col("count") > 0))
    return pl.concat(parts).sort("item", maintain_order=True), Meaning({}, classes)


def _whole(cells: pl.Series, sheet: Sheet) -> pl.Series:
    """Return counts: whole numbers that are there and not below zero."""
    import polars as pl

    found = numbers(cells, sheet)
    bad = found.is_null() | (found < 0) | (found != found.floor()) | (found >= 1 << 31)
    if bad.fill_null(value=True).any():
        row = int(bad.fill_null(value=True).arg_max() or 0)
        raise BadInput(
            f"{sheet.place(row)}: how many people said {cells.name} was needed, but {cells[row]!r} came; write a whole "
            "number, 0 where nobody did"
        )
    return found.cast(pl.UInt32)


# A row an answer.


def _of_answers(sheet: Sheet, found: Roles, *, columns: Columns, facts: Names) -> Collection:
    """Return a table with a row an answer, items in the order in which they come."""
    import polars as pl

    if found.id is None:
        raise BadInput(
            f"{sheet.source}: a column of items was needed, for each row is an answer of {found.annotator}, but it has "
            "none that is called so; name it with --id"
        )
    more = descriptions.checked(sheet, found)
    rows = sheet.read([found.id, str(found.annotator), str(found.label)])
    told = {"id": rows[found.id], "annotator": rows[str(found.annotator)]}
    who = pl.DataFrame([_filled(texts(cells, sheet, what=what), sheet).alias(what) for what, cells in told.items()])
    ids = who["id"].unique(maintain_order=True)
    places = pl.DataFrame([ids]).with_row_index("item")
    said = who.join(places, on="id", how="left", maintain_order="left").select(
        "item", "annotator", texts(rows[str(found.label)], sheet, what="labels").alias("label"), *_moments(sheet, found)
    )
    answers, sense = _named(said, columns, source=sheet.source)
    many = (
        f"{sheet.source}: {counted(len(answers), 'answer')} of {counted(answers['annotator'].n_unique(), 'annotator')} "
        f"on {counted(len(ids), 'item')}."
    )
    return Collection(
        source=sheet.source,
        form=_form(sheet, found, sense=sense, columns=columns),
        classes=sense.classes,
        ids=ids,
        items=pl.DataFrame([ids, *descriptions.gathered(sheet, found, rows=said["item"])]).lazy(),
        answers=answers,
        facts=(*facts, *sense.facts, many, *more),
    )


def _filled(cells: pl.Series, sheet: Sheet) -> pl.Series:
    empty = cells.is_null() | (cells == "")
    if empty.any():
        raise BadInput(
            f"{sheet.place(int(empty.arg_max() or 0))}: an item and an annotator were needed for each answer, but "
            f"column {cells.name} is empty; fill it"
        )
    return cells


def _moments(sheet: Sheet, found: Roles) -> list[pl.Series]:
    """Return when answers came, in seconds since 1970, and how long they took, where there are such columns."""
    moments = []
    if found.at is not None:
        moments.append(_instants(sheet.read([found.at])[found.at], sheet).alias("at"))
    if found.seconds is not None:
        moments.append(numbers(sheet.read([found.seconds])[found.seconds], sheet).alias("seconds"))
    return moments


def _instants(cells: pl.Series, sheet: Sheet) -> pl.Series:
    """Return times as seconds since 1970: of numbers as they are, of dates and times in UTC where no zone is said."""
    import polars as pl

    if isinstance(cells.dtype, pl.Datetime | pl.Date):
        return cells.cast(pl.Datetime("us")).dt.epoch("us").cast(pl.Float64) / 1e6
    if cells.dtype != pl.String or cells.cast(pl.Float64, strict=False).is_not_null().any():
        return numbers(cells, sheet)
    return pl.Series(cells.name, [_instant(cell, sheet, row=row) for row, cell in enumerate(cells)], pl.Float64)


def _instant(cell: str | None, sheet: Sheet, *, row: int) -> float | None:
    if not cell:
        return None
    try:
        moment = datetime.fromisoformat(cell)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise BadInput(
            f"{sheet.place(row)}: the time of an answer was needed, but {cell!r} came; write seconds since 1970, or "
            "2024-01-31 12:00:00"
        ) from None
