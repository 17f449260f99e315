"""Labels and class probabilities from tables with named columns: csv, tsv, parquet and JSON lines."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from relook.errors import BadInput
from relook.sources import (
    COLUMNS,
    ID_NAMES,
    LABEL_NAMES,
    MISSING_TEXT,
    Columns,
    LabelTable,
    Names,
    ProbabilityTable,
    existing,
    listed,
    whole,
)
from relook.types import IntArray

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")
"""Files that are read here."""

ANNOTATOR_NAMES = ("annotator", "worker", "annotator_id", "worker_id")
"""What a column may be called that says who gave an answer, in a table with a row an answer."""

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_OTHER_MARKS = {
    ";": ("semicolons", "export it with commas between cells"),
    "\t": ("tabs", "name it .tsv"),
    ",": ("commas", "name it .csv"),
}
_FIRST_LINES = {".csv": 2, ".tsv": 2, ".jsonl": 1, ".ndjson": 1}
_PREFIXES = ("p_", "prob_", "proba_", "probability_")
_NO_CLASSES = ("", "unnamed: 0", "index", "predicted", "predicted_label", "prediction", "split", "fold", *LABEL_NAMES)
_NUMBER = re.compile(r"(-?(?:0|[1-9]\d*))(?:\.0*)?")
"""A class number, also as pandas writes a column that has missing ones; 007 is text."""


def labels(path: Path, *, columns: Columns = COLUMNS) -> LabelTable:
    r"""Return given labels from a table with a label column, and an id column where there is one.

    With a column annotator (or worker) each row is an answer, and an id may come once for each annotator.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "labels.csv")
    >>> _ = file.write_text("path,label\na.png,dog\nb.png,cat\nc.png,\n")
    >>> labels(file).given.tolist(), labels(file).names, labels(file).ids
    ([1, 0, -1], ('cat', 'dog'), ['a.png', 'b.png', 'c.png'])
    """
    source, frame = existing(path), _frame(path, columns)
    if columns.id is not None and columns.id not in frame.columns:
        raise BadInput(
            f"{source}: a column {columns.id!r} was needed for ids, but it has {listed(frame.columns)}; name another"
        )
    label = _label_column(frame.columns, columns.label, source=source)
    ids = _ids(frame, columns)
    given, names = _given(frame[label], source=source)
    people = _first(frame.columns, ANNOTATOR_NAMES)
    if people is not None and ids is not None and people != label:
        return _answers(source, given, names=names, ids=ids, people=_texts(frame[people]))
    naming = f"labels in column {label}" + (f", ids in column {_id_column(frame.columns, columns)}" if ids else "")
    return LabelTable(
        source,
        given,
        names=names,
        ids=ids,
        first_line=_FIRST_LINES.get(path.suffix.lower()),
        facts=(f"{source}: {naming}.",),
    )


def probabilities(path: Path, *, columns: Columns = COLUMNS) -> ProbabilityTable:
    """Return class probabilities from a table with a column a class, and an id column where there is one."""
    source, frame = existing(path), _frame(path, columns)
    ids, own = _ids(frame, columns), _id_column(frame.columns, columns)
    chosen, names = _class_columns([name for name in frame.columns if name != own], columns.classes, source=source)
    left = [name or "one without a name" for name in frame.columns if name not in chosen and name != own]
    facts = (f"{source}: columns that are no class are left out ({listed(left)}).",) if left else ()
    first_line = _FIRST_LINES.get(path.suffix.lower())
    if not len(frame):
        raise BadInput(f"{source}: at least one row of probabilities was needed, but none came; check the export")
    for name in chosen:
        _check_numbers(frame[name], source=source, first_line=first_line)
    values = np.ascontiguousarray(frame.select(chosen).to_numpy())
    values = values if values.dtype.kind == "f" else values.astype(np.float64)
    return ProbabilityTable(source, values, names=names, ids=ids, first_line=first_line, facts=facts)


def _frame(path: Path, columns: Columns) -> pl.DataFrame:
    import polars as pl

    suffix = path.suffix.lower()
    try:
        if suffix in _SEPARATORS:
            separator = _SEPARATORS[suffix]
            as_text, rows = _checked_lines(path, separator, columns=columns)
            overrides = dict.fromkeys(as_text, pl.String)
            frame = pl.read_csv(path, separator=separator, schema_overrides=overrides, infer_schema_length=None)
            # Blank lines at the end are rows to polars.
            return frame.head(rows)
        if suffix == ".parquet":
            return pl.read_parquet(path)
        return pl.read_ndjson(path, infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError, csv.Error) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(
            f"{path}: a {suffix[1:]} table was needed, but it cannot be read ({reason}); export it again, in UTF-8"
        ) from None


def _checked_lines(path: Path, separator: str, *, columns: Columns) -> tuple[list[str], int]:
    """Look at every line of a file, because a short one would be filled in silence.

    Return the columns to read as text, and how many rows there are. Ids and labels are text even where they look like
    numbers: 007 is not 7.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, delimiter=separator)
        heading = next(lines, [])
        _check_heading(heading, path)
        blank = rows = 0
        for fields in lines:
            if not fields:
                blank = blank or lines.line_num
            elif blank or len(fields) != len(heading):
                line, came = (blank, "none") if blank else (lines.line_num, str(len(fields)))
                raise BadInput(
                    f"{path}, line {line}: {len(heading)} cells were needed, as many as the heading has, "
                    f"but {came} came; mend the line"
                )
            rows += bool(fields)
    own = _id_column(heading, columns)
    text = [name for name in heading if name.lower() in (*LABEL_NAMES, *ANNOTATOR_NAMES) or name == columns.label]
    return (text if own is None else [own, *text]), rows


def _check_heading(heading: list[str], path: Path) -> None:
    for mark, (called, cure) in _OTHER_MARKS.items():
        if len(heading) == 1 and mark in heading[0]:
            raise BadInput(f"{path}: one column was found, but line 1 has {called}; {cure}")
    if all(_is_number(name) for name in heading) and (len(heading) == 1 or not whole(tuple(heading))):
        raise BadInput(f"{path}: the names of columns were needed in line 1, but {listed(heading)} came; add a heading")
    for name in heading:
        if heading.count(name) > 1:
            raise BadInput(f"{path}: columns must differ in name, but {name!r} comes twice in line 1; rename one")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first(names: Sequence[str], known: Sequence[str]) -> str | None:
    lowered = {name.lower(): name for name in reversed(names)}
    return next((lowered[name] for name in known if name in lowered), None)


def _id_column(names: Sequence[str], columns: Columns) -> str | None:
    return columns.id if columns.id in names else _first(names, ID_NAMES)


def _label_column(names: Sequence[str], asked: str | None, *, source: str) -> str:
    found = [name for name in names if name == asked or (asked is None and name.lower() in LABEL_NAMES)]
    if len(found) == 1:
        return found[0]
    if asked is not None:
        raise BadInput(
            f"{source}: a column {asked!r} of labels was needed, but it has {listed(names)}; name one of them"
        )
    came = f"both {' and '.join(found)} came" if found else f"it has {listed(names)}"
    wanted = "one column of labels" if found else f"a column of labels ({', '.join(LABEL_NAMES)})"
    raise BadInput(f"{source}: {wanted} was needed, but {came}; name it with --label")


def _ids(frame: pl.DataFrame, columns: Columns) -> list[str] | None:
    own = _id_column(frame.columns, columns)
    return None if own is None else _texts(frame[own])


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
    if all(_NUMBER.fullmatch(name) for name in names):
        number_of = {name: int(_NUMBER.fullmatch(name)[1]) for name in names}  # type: ignore[index]
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


def _check_numbers(column: pl.Series, *, source: str, first_line: int | None) -> None:
    if not column.dtype.is_numeric():
        known = column.drop_nulls()
        came = f"{known[0]!r}" if len(known) else "nothing"
        raise BadInput(
            f"{source}: probabilities were needed in column {column.name}, but it holds {came}; "
            "take it out, or name the columns of the classes with --classes"
        )
    if column.null_count():
        row = int(column.is_null().arg_max() or 0)
        place = f"item {row}" if first_line is None else f"line {row + first_line}"
        raise BadInput(
            f"{source}, {place}: a probability was needed in column {column.name}, but none came; predict it again"
        )
