"""Tables with named columns, csv, tsv, parquet and JSON lines: collections, and labels and probabilities to rank by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from relook import layouts
from relook.collection import Collection
from relook.errors import BadInput
from relook.meanings import NUMBER
from relook.roles import ANNOTATOR_NAMES, first, label_column, named
from relook.sheets import Sheet, numbers
from relook.sources import (
    COLUMNS,
    ID_NAMES,
    LABEL_NAMES,
    MISSING_TEXT,
    Columns,
    LabelTable,
    Names,
    ProbabilityTable,
    VectorTable,
    listed,
)
from relook.tables import KINDS, sheet
from relook.types import FloatArray, IntArray

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = tuple(KINDS)
"""Files that are read here."""

_PREFIXES = ("p_", "prob_", "proba_", "probability_")
_NO_CLASSES = ("", "unnamed: 0", "index", "predicted", "predicted_label", "prediction", "split", "fold", *LABEL_NAMES)


def collection(path: Path, *, columns: Columns = COLUMNS) -> Collection:
    r"""Return the items of a table and what was said about them, in any layout that `relook.layouts` knows.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "pets.csv")
    >>> _ = file.write_text("id,label,text\na,dog,woof\nb,cat,meow\n")
    >>> found = collection(file)
    >>> found.classes, found.labels().given.tolist(), found.content
    (('cat', 'dog'), [1, 0], 'text')
    """
    return layouts.collection(sheet(path), columns=columns)


def labels(path: Path, *, columns: Columns = COLUMNS) -> LabelTable:
    r"""Return given labels from a table with a label column, and an id column where there is one.

    With a column annotator (or worker) each row is an answer, and an id may come once for each annotator.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "labels.csv")
    >>> _ = file.write_text("path,label\na.png,dog\nb.png,cat\nc.png,\n")
    >>> labels(file).given.tolist(), labels(file).names, labels(file).ids
    ([1, 0, -1], ('cat', 'dog'), ['a.png', 'b.png', 'c.png'])
    """
    table = sheet(path)
    source = table.source
    if columns.id is not None:
        named(table.columns, columns.id, place=f"{source}: ids")
    label = label_column(table.columns, columns.label, source=source)
    own, people = _id_column(table.columns, columns), first(table.columns, ANNOTATOR_NAMES)
    frame = table.read(list(dict.fromkeys(name for name in (own, label, people) if name is not None)))
    ids = None if own is None else _texts(frame[own])
    given, names = _given(frame[label], source=source)
    if people is not None and ids is not None and people != label:
        return _answers(source, given, names=names, ids=ids, people=_texts(frame[people]))
    naming = f"labels in column {label}" + (f", ids in column {own}" if own is not None else "")
    facts = (*table.facts, f"{source}: {naming}.")
    return LabelTable(source, given, names=names, ids=ids, first_line=table.first_line, facts=facts)


def probabilities(path: Path, *, columns: Columns = COLUMNS) -> ProbabilityTable:
    """Return class probabilities from a table with a column a class, and an id column where there is one."""
    table = sheet(path)
    source, own = table.source, _id_column(table.columns, columns)
    chosen, names = _class_columns([name for name in table.columns if name != own], columns.classes, source=source)
    left = [name or "one without a name" for name in table.columns if name not in chosen and name != own]
    facts = (f"{source}: columns that are no class are left out ({listed(left)}).",) if left else ()
    if not table.rows:
        raise BadInput(f"{source}: at least one row of probabilities was needed, but none came; check the export")
    frame = table.read(chosen if own is None else [own, *chosen])
    values = np.ascontiguousarray(np.stack([_probabilities(frame[name], table) for name in chosen], axis=1))
    return ProbabilityTable(
        source,
        values,
        names=names,
        ids=None if own is None else _texts(frame[own]),
        first_line=table.first_line,
        facts=table.facts + facts,
    )


def embeddings(path: Path, *, columns: Columns = COLUMNS) -> VectorTable:
    """Return embeddings from a table with an id column, and a list an item or a column a number."""
    import polars as pl

    table = sheet(path)
    source, own = table.source, _id_column(table.columns, columns)
    others = [name for name in table.columns if name != own]
    lists = [name for name in others if isinstance(table.frame.collect_schema()[name], pl.List)]
    chosen = lists or [name for name in others if name.lower() not in _NO_CLASSES]
    if len(lists) > 1 or not chosen:
        came = listed(lists) if lists else "none"
        raise BadInput(f"{source}: one column of lists, or columns of numbers, were needed, but {came} came; leave one")
    frame = table.read(chosen if own is None else [own, *chosen])
    values = (
        _unpacked(frame[lists[0]], table) if lists else np.stack([_numbers(frame[name], table) for name in chosen], 1)
    )
    return VectorTable(
        source,
        values,
        ids=None if own is None else _texts(frame[own]),
        first_line=table.first_line,
        facts=table.facts + _left(others, chosen, source=source),
    )


def _left(names: Sequence[str], chosen: Sequence[str], *, source: str) -> Names:
    left = [name or "one without a name" for name in names if name not in chosen]
    return (f"{source}: columns that are left aside: {listed(left)}.",) if left else ()


def _numbers(column: pl.Series, table: Sheet) -> FloatArray:
    """Return a column of numbers; a missing one is refused, for a vector has no gaps."""
    values = numbers(column, table)
    if values.null_count():
        row = int(values.is_null().arg_max() or 0)
        raise BadInput(
            f"{table.place(row)}: a number was needed in column {column.name}, but none came; compute it again"
        )
    return values.to_numpy()


def _unpacked(lists: pl.Series, table: Sheet) -> FloatArray:
    """Return lists of one length as N x D."""
    lengths = lists.list.len()
    wrong = lengths.is_null() | (lengths != lengths[0]) | (lengths == 0)
    if wrong.fill_null(value=True).any():
        row = int(wrong.fill_null(value=True).arg_max() or 0)
        raise BadInput(
            f"{table.place(row)}: a list of {lengths[0]} numbers was needed in column {lists.name}, as in the first "
            f"row, but {lengths[row]} came; compute it again"
        )
    return _numbers(lists.explode(), table).reshape(len(lists), -1)


def _id_column(names: Sequence[str], columns: Columns) -> str | None:
    return columns.id if columns.id in names else first(names, ID_NAMES)


def _texts(column: pl.Series) -> list[str]:
    import polars as pl

    texts: list[str] = column.cast(pl.String).fill_null("").to_list()
    return texts


def _given(column: pl.Series, *, source: str) -> tuple[IntArray, Names | None]:
    """Return labels as numbers, -1 where there is none, and what they stand for unless they are numbers."""
    import polars as pl

    if column.dtype.is_nested() or column.dtype.is_temporal():
        raise BadInput(
            f"{source}: column {column.name} must hold a class an item, but it is {column.dtype}; name one with --label"
        )
    texts = column.cast(pl.String)
    found = texts.unique().drop_nulls().to_list()
    names = sorted(name for name in found if name not in MISSING_TEXT)
    if all(NUMBER.fullmatch(name) for name in names):
        number_of = {name: int(NUMBER.fullmatch(name)[1]) for name in names}  # type: ignore[index]
        meaning = None
    else:
        number_of, meaning = {name: number for number, name in enumerate(names)}, tuple(names)
    filled = texts.fill_null("").replace_strict(number_of, default=-1, return_dtype=pl.Int64)
    return filled.to_numpy(), meaning


def _answers(source: str, given: IntArray, *, names: Names | None, ids: list[str], people: list[str]) -> LabelTable:
    """Return a table with a row an answer as N x K answers, items in the order in which they come."""
    item_of: dict[str, int] = {}
    items = np.array([item_of.setdefault(name, len(item_of)) for name in ids])
    seen: dict[tuple[str, str], int] = {}
    for row, answer in enumerate(zip(ids, people, strict=True)):
        if seen.setdefault(answer, row) != row:
            raise BadInput(
                f"{source}, answer {row}: one answer a person was needed, but {answer[1]!r} answered {answer[0]!r} "
                "before; keep one"
            )
    order = np.argsort(items, kind="stable")
    starts = np.flatnonzero(np.diff(items[order], prepend=-1))
    nth = np.arange(len(items)) - np.repeat(starts, np.diff([*starts, len(items)]))
    table = np.full((len(item_of), int(nth.max()) + 1), -1)
    table[items[order], nth] = given[order]
    facts = (f"{source}: {len(items):,} answers of {len(set(people)):,} annotators on {len(item_of):,} items.",)
    return LabelTable(source, table, "answers", names=names, ids=list(item_of), facts=facts)


def _class_columns(names: list[str], classes: Names | None, *, source: str) -> tuple[list[str], Names]:
    """Return the columns that hold probabilities, and the classes that their names mean."""
    for prefix in _PREFIXES:
        found = [name for name in names if name.lower().startswith(prefix) and len(name) > len(prefix)]
        if len(found) > 1:
            return found, tuple(name[len(prefix) :] for name in found)
    if classes is not None and set(classes) <= set(names):
        return [name for name in names if name in classes], tuple(name for name in names if name in classes)
    found = [name for name in names if name.lower() not in _NO_CLASSES]
    if not found:
        raise BadInput(
            f"{source}: a column a class was needed, but it has {listed(names) or 'none'}; write one for each class"
        )
    return found, tuple(found)


def _probabilities(column: pl.Series, table: Sheet) -> FloatArray:
    import polars as pl

    if not column.dtype.is_numeric() and column.dtype != pl.String:
        raise _no_numbers(column, table.source)
    values = column.cast(pl.Float64, strict=False) if column.dtype == pl.String else column
    if (values.is_null() & column.is_not_null() & (column.cast(pl.String) != "")).any():
        raise _no_numbers(column, table.source)
    if values.null_count():
        row = int(values.is_null().arg_max() or 0)
        raise BadInput(
            f"{table.place(row)}: a probability was needed in column {column.name}, but none came; predict it again"
        )
    found = values.to_numpy()
    return found if found.dtype.kind == "f" else found.astype(np.float64)


def _no_numbers(column: pl.Series, source: str) -> BadInput:
    known = column.drop_nulls()
    came = f"{known[0]!r}" if len(known) else "nothing"
    return BadInput(
        f"{source}: probabilities were needed in column {column.name}, but it holds {came}; take it out, or name the "
        "columns of the classes with --classes"
    )
