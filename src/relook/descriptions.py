"""What a table knows of each item beside its labels: paths of images, text, numbers, splits, groups and sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relook.collection import KEPT, NUMBER, VIEWS
from relook.errors import BadInput
from relook.roles import Roles
from relook.sheets import Sheet, reading
from relook.sources import Names, counted

if TYPE_CHECKING:
    import polars as pl

_ROW = "relook:row"
_OUTSIDE = r"^[/\\]|^[A-Za-z]:|(?:^|[/\\])\.\.(?:[/\\]|$)|[\x00-\x1f]|^[A-Za-z][A-Za-z0-9+.-]*://"
"""Paths that lead out of the folder they are said to lie in, as any system reads them, or into the network."""


def items(sheet: Sheet, found: Roles) -> pl.LazyFrame:
    """Return the items of a table with a row each: what is known, and every column of the source's own by its name."""
    import polars as pl

    ids = pl.col(_ROW) if found.id is None else pl.col(found.id)
    kept = [pl.col(name).alias(KEPT + name) for name in sheet.columns]
    known = [part.alias(name) for name, part in _known(sheet, found).items()]
    return sheet.frame.with_row_index(_ROW).select(ids.cast(pl.String).alias("id"), *known, *kept)


def gathered(sheet: Sheet, found: Roles, *, rows: pl.Series) -> list[pl.Series]:
    """Return what a table with a row an answer knows of its items, where each row of one tells the same."""
    import polars as pl

    known = _known(sheet, found)
    if not known:
        return []
    with reading(sheet.source):
        table = sheet.frame.select(part.alias(name) for name, part in known.items()).collect().with_columns(item=rows)
    groups = table.group_by("item", maintain_order=True)
    differ = groups.agg(pl.exclude("item").n_unique()).drop("item")
    for name in differ.columns:
        if (differ[name] > 1).any():
            item = int((differ[name] > 1).arg_max() or 0)
            row = int((rows == item).arg_max() or 0)
            raise BadInput(
                f"{sheet.place(row)}: one {name.removeprefix(NUMBER)} an item was needed, but the answers about this "
                f"one tell of {differ[name][item]}; write the same in each row"
            )
    return groups.agg(pl.exclude("item").first()).drop("item").get_columns()


def checked(sheet: Sheet, found: Roles) -> Names:
    """Refuse numbers that are missing and paths that lead out of their folder; say how many items have no image."""
    import polars as pl

    kinds = sheet.frame.collect_schema()
    for role, name in _words(found).items():
        if kinds[name].is_nested() or kinds[name] == pl.Binary:
            raise BadInput(
                f"{sheet.source}: text was needed in column {name}, but it is {kinds[name]}; name another with --{role}"
            )
    for name in found.numbers:
        if not (kinds[name].is_numeric() or kinds[name] == pl.String):
            raise BadInput(
                f"{sheet.source}: numbers were needed in column {name}, but it is {kinds[name]}; leave it out of them"
            )
        missing = pl.col(name).cast(pl.Float64, strict=False).fill_nan(None).is_null()
        _refuse_first(sheet, name, bad=missing, needed="a number was needed for each item")
    if not found.files:
        return ()
    for name in found.files:
        _refuse_first(
            sheet, name, bad=_leads_out(sheet, name), needed="a path below the folder of the images was needed"
        )
    files = _files(sheet, found)
    _refuse_first(sheet, found.files[0], bad=files.list.len() > VIEWS, needed=f"{VIEWS} images an item were needed")
    with reading(sheet.source):
        without = int(sheet.frame.select((files.list.len() == 0).sum()).collect(engine="streaming").item())
    return (f"{sheet.source}: {counted(without, 'item')} without an image.",) if without else ()


def _words(found: Roles) -> dict[str, str]:
    """Return the columns that hold a text an item, by what they are."""
    single = {"text": found.text, "split": found.split, "group": found.group, "source": found.source}
    return {role: column for role, column in single.items() if column is not None}


def _known(sheet: Sheet, found: Roles) -> dict[str, pl.Expr]:
    """Return the columns of items by their names in a collection."""
    import polars as pl

    known = {role: pl.col(column).cast(pl.String) for role, column in _words(found).items()}
    if found.files:
        known["files"] = _files(sheet, found)
    for name in found.numbers:
        known[NUMBER + name] = pl.col(name).cast(pl.Float64)
    return known


def _files(sheet: Sheet, found: Roles) -> pl.Expr:
    """Return the paths of an item's images as a list, empty ones left out."""
    import polars as pl

    if _lists(sheet, found.files):
        return pl.col(found.files[0]).list.drop_nulls().fill_null([])
    cells = [pl.when(pl.col(name).cast(pl.String) != "").then(pl.col(name).cast(pl.String)) for name in found.files]
    return pl.concat_list(cells).list.drop_nulls()


def _leads_out(sheet: Sheet, name: str) -> pl.Expr:
    import polars as pl

    if _lists(sheet, (name,)):
        return pl.col(name).list.eval(pl.element().str.contains(_OUTSIDE)).list.any()
    return pl.col(name).cast(pl.String).str.contains(_OUTSIDE)


def _refuse_first(sheet: Sheet, name: str, *, bad: pl.Expr, needed: str) -> None:
    """Refuse a table by its first row of which something is bad."""
    with reading(sheet.source):
        if not sheet.frame.select(bad.any()).collect(engine="streaming").item():
            return
        row = int(sheet.frame.select(bad.fill_null(value=False).arg_max()).collect().item())
        came = sheet.frame.select(name).slice(row, 1).collect().item()
    raise BadInput(
        f"{sheet.place(row)}: {needed} in column {name}, but {came!r} came; mend it, or leave the column out"
    )


def _lists(sheet: Sheet, files: Names) -> bool:
    """Say whether a column of files holds lists of them."""
    import polars as pl

    kinds = sheet.frame.collect_schema()
    lists = [name for name in files if isinstance(kinds[name], pl.List)]
    for name in files:
        kind = kinds[name]
        inner = kind.inner if isinstance(kind, pl.List) else kind
        fits = isinstance(inner, pl.String | pl.Categorical | pl.Enum | pl.Null)
        if not fits or (lists and len(files) > 1):
            raise BadInput(
                f"{sheet.source}: paths of images as text, or one column of lists of them, were needed, but column "
                f"{name} is {kinds[name]}; name others, or none, with --files"
            )
    return bool(lists)
