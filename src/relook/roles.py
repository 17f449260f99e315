"""Which column of a table holds what: as the user says, else as the columns are called; never by what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from relook.collection import GIVEN, VIEWS
from relook.errors import BadInput
from relook.sources import ID_NAMES, LABEL_NAMES, Columns, Names, listed

ANNOTATOR_NAMES = ("annotator", "worker", "annotator_id", "worker_id")
"""What a column may be called that says who gave an answer, in a table with a row an answer."""

ITEM_NAMES = (*ID_NAMES, "task")
"""What a column of items may be called there."""

FILES_NAMES = ("path", "image", "file", "filename", "file_name", "files")
"""What a column of paths to images may be called."""

GROUP_NAMES = ("group", "patient", "patient_id", "product")
"""What a column may be called that says which items belong together."""

AT_NAMES, SECONDS_NAMES = ("at", "timestamp"), ("seconds", "duration", "lead_time")
"""What columns may be called that say when an answer came, and how long it took."""

EACH = "*"
"""Stands for a column each: of an annotator where it is the annotator, of a class where it is the label."""


class Roles(msgspec.Struct, frozen=True, kw_only=True):
    """What the columns of a table are: one for each role, or none; `each` maps columns to annotators or classes."""

    layout: str
    id: str | None = None
    label: str | None = None
    annotator: str | None = None
    text: str | None = None
    split: str | None = None
    group: str | None = None
    source: str | None = None
    at: str | None = None
    seconds: str | None = None
    files: Names = ()
    numbers: Names = ()
    each: Mapping[str, str] = {}

    @property
    def named(self) -> dict[str, str]:
        """The column of each role that one has, as a form keeps them."""
        single = {role: getattr(self, role) for role in _SINGLE if getattr(self, role) is not None}
        return single | ({"files": self.files[0]} if len(self.files) == 1 else {})

    def sentence(self, source: str) -> str:
        """Say which column is what."""
        said = [f"{what} in column {column}" for role, what in _SINGLE.items() if (column := getattr(self, role))]
        said += [
            f"{what} in {listed(found)}" for what, found in (("files", self.files), ("numbers", self.numbers)) if found
        ]
        if self.each:
            what = "an annotator" if self.layout == "wide" else "a class"
            said.append(f"a column {what}: {listed(list(self.each))}")
        return f"{source}: {', '.join(said)}."


_SINGLE = {
    "id": "ids",
    "label": "labels",
    "annotator": "annotators",
    "text": "text",
    "split": "splits",
    "group": "groups",
    "source": "sources",
    "at": "times",
    "seconds": "seconds",
}


def roles(names: Sequence[str], columns: Columns, *, source: str) -> Roles:
    """Return what each column is, and how the rows are laid out.

    >>> from relook.sources import Columns
    >>> found = roles(["id", "label", "breed"], Columns(label="breed"), source="pets.csv")
    >>> found.layout, found.id, found.label
    ('items', 'id', 'breed')
    """
    layout = _layout(names, columns)
    known = ITEM_NAMES if layout == "answers" else ID_NAMES
    single: dict[str, Any] = {
        "id": named(names, columns.id, known=known, place=f"{source}: ids"),
        "text": named(names, columns.text, known=("text",), place=f"{source}: text"),
        "split": named(names, columns.split, known=("split",), place=f"{source}: splits"),
        "group": named(names, columns.group, known=GROUP_NAMES, place=f"{source}: groups"),
        "source": named(names, columns.source, known=("source",), place=f"{source}: sources"),
    }
    if layout == "answers":
        single["annotator"] = named(names, columns.annotator, known=ANNOTATOR_NAMES, place=f"{source}: annotators")
        single["at"], single["seconds"] = first(names, AT_NAMES), first(names, SECONDS_NAMES)
    single["label"] = _label(names, columns, layout=layout, source=source)
    lists: dict[str, Any] = {
        "files": _files(names, columns, source=source),
        "numbers": _numbers(names, columns, source=source),
    }
    each: dict[str, str] = {}
    if layout in ("wide", "counts"):
        taken = {*single.values(), *lists["files"], *lists["numbers"], ""}
        each = _each(names, columns, taken=taken, source=source)
    return Roles(layout=layout, each=each, **single, **lists)


def first(names: Sequence[str], known: Sequence[str]) -> str | None:
    """Return the first column that is called as one of some names, in capitals or not.

    >>> first(["Path", "ID"], ("id", "path"))
    'ID'
    """
    lowered = {name.lower(): name for name in reversed(names)}
    return next((lowered[name] for name in known if name in lowered), None)


def named(names: Sequence[str], asked: str | None, *, known: Sequence[str] = (), place: str) -> str | None:
    """Return the column that is asked for, which must be there, else the first that is called as one known."""
    if asked is None:
        return first(names, known)
    if asked not in names:
        source, _, what = place.rpartition(": ")
        raise BadInput(f"{source}: a column {asked!r} was needed for {what}, but it has {listed(names)}; name another")
    return asked


def label_column(names: Sequence[str], asked: str | None, *, source: str) -> str:
    """Return the column of labels: the one asked for, else the only one that is called so."""
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


def _layout(names: Sequence[str], columns: Columns) -> str:
    if columns.annotator is not None and EACH in columns.annotator:
        return "wide"
    if columns.label is not None and EACH in columns.label:
        return "counts"
    return "items" if columns.annotator is None and first(names, ANNOTATOR_NAMES) is None else "answers"


def _label(names: Sequence[str], columns: Columns, *, layout: str, source: str) -> str | None:
    if columns.question is not None:
        if columns.label is not None or layout in ("wide", "counts"):
            raise BadInput(
                f"{source}: one column of yes and no was needed for --question {columns.question}, but labels are "
                "named too; name one of both"
            )
        return named(names, columns.question, place=f"{source}: the question")
    if layout == "counts":
        return None
    if layout == "wide" and columns.label is None:
        return first(names, (GIVEN, *LABEL_NAMES))
    return label_column(names, columns.label, source=source)


def _files(names: Sequence[str], columns: Columns, *, source: str) -> Names:
    if columns.files is None:
        found = first(names, FILES_NAMES)
        return () if found is None else (found,)
    if len(columns.files) > VIEWS:
        raise BadInput(
            f"{source}: {VIEWS} columns of images at most were needed, but {len(columns.files)} came; name fewer"
        )
    for name in columns.files:
        named(names, name, place=f"{source}: images")
    return columns.files


def _numbers(names: Sequence[str], columns: Columns, *, source: str) -> Names:
    found: list[str] = []
    for asked in columns.numbers or ():
        if EACH in asked:
            found += starred(names, asked, place=f"{source}: numbers")
        else:
            named(names, asked, place=f"{source}: numbers")
            found.append(asked)
    return tuple(dict.fromkeys(found))


def starred(names: Sequence[str], pattern: str, *, place: str) -> dict[str, str]:
    """Return the columns that fit a pattern with one star, and what stands in place of the star.

    >>> starred(["id", "rater_Ada", "rater_Bo"], "rater_*", place="pets.csv: annotators")
    {'rater_Ada': 'Ada', 'rater_Bo': 'Bo'}
    """
    before, _, after = pattern.partition(EACH)
    short = len(before) + len(after)
    found = {
        name: name[len(before) : len(name) - len(after)]
        for name in names
        if name.startswith(before) and name.endswith(after) and len(name) > short
    }
    if not found:
        raise BadInput(f"{place}: columns like {pattern} were needed, but it has {listed(names)}; mend the pattern")
    return found


def _each(names: Sequence[str], columns: Columns, *, taken: set[str | None], source: str) -> dict[str, str]:
    left = [name for name in names if name not in taken]
    wide = columns.annotator is not None and EACH in columns.annotator
    pattern, what = (columns.annotator, "annotators") if wide else (columns.label, "classes")
    return starred(left, str(pattern), place=f"{source}: {what}")
