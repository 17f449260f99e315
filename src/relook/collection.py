"""Items and what was said about them, as a source holds them: classes by name, nothing numbered yet.

Every reader of a format returns a `Collection`; what is imported, ranked or exported is made from one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

from relook.errors import BadInput
from relook.sources import Names, listed, whole
from relook.types import Labels

if TYPE_CHECKING:
    import polars as pl

GIVEN = "given"
"""The annotator to whom a given label belongs."""

VIEWS = 8
"""So many images an item may have, such as a frontal and a lateral one."""

KEPT = "column:"
"""Columns of a source's own stand under their name with this before it, untouched: they can leave as they came."""

NUMBER = "number:"
"""Columns of numbers that describe an item stand under their name with this before it."""

COLUMNS = ("id", "files", "text", "split", "group", "source")
"""Columns of items that relook knows, beside numbers and kept ones; `files` is a list of paths, a path an image."""

ANSWERS = ("item", "annotator", "label", "count", "at", "seconds")
"""Columns of answers: the item's row number, who (null: nobody in particular), the class, how many people said so
(where people are only counted), when (seconds since 1970), how long it took; the last three only where known."""


class Form(msgspec.Struct, frozen=True):
    """How a source was laid out, so that its items can leave as they came.

    `kind` is the format; `layout` says what a row is: an item, an answer, an item with a column an annotator (wide), or
    an item with a column a class (counts). `columns` names the source's own column for what relook knows; `settings` is
    what else a writer must know, such as the mark between cells.
    """

    kind: str
    layout: str = "items"
    columns: Mapping[str, str] = {}
    settings: Mapping[str, str] = {}


class Pictures(Protocol):
    """Images that are no ordinary files where they come from: in an archive, an array, or DICOM."""

    def write(self, item: int, folder: Path) -> Sequence[str]:
        """Write an item's images into a folder, re-encoded where that is needed, and return the names of the files."""
        ...


class Collection(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Items and what was said about them.

    `ids` are unique names; `items` has a row for each of them in the same order, with a column `id` and any of
    `COLUMNS`, numbers and kept columns. Answers hold a class by its name; labels that items came with are answers of
    `given`. `pictures` are images that must be written out first; where there are none, `files` may name ordinary ones.
    Where the items are `anonymous`, the files that they were read from are named nowhere.

    >>> import polars as pl
    >>> answers = pl.DataFrame({"item": [0, 1], "annotator": [GIVEN, GIVEN], "label": ["dog", "cat"]})
    >>> items = pl.DataFrame({"id": ["a.png", "b.png"]})
    >>> names = ("cat", "dog")
    >>> pets = Collection(
    ...     source="pets.csv", form=Form("csv"), classes=names, ids=items["id"], items=items.lazy(), answers=answers
    ... )
    >>> pets.labels().given.tolist()
    [1, 0]
    """

    source: str
    form: Form
    classes: Names
    ids: pl.Series
    items: pl.LazyFrame
    answers: pl.DataFrame
    pictures: Pictures | None = None
    first_line: int | None = None
    anonymous: bool = False
    facts: Names = ()

    def __post_init__(self) -> None:
        _check_ids(self)
        _check_classes(self)
        msgspec.structs.force_setattr(self, "answers", _checked_answers(self))
        unknown = [name for name in self.columns if name not in COLUMNS and not name.startswith((KEPT, NUMBER))]
        if unknown:
            raise BadInput(
                f"{self.source}: columns of items were needed, but {listed(unknown)} came; "
                f"keep them as {KEPT}{unknown[0]}"
            )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def columns(self) -> list[str]:
        """Names of the items' columns."""
        return self.items.collect_schema().names()

    @property
    def content(self) -> str:
        """What the items are: images, text, numbers, or names alone."""
        columns = self.columns
        if self.pictures is not None or "files" in columns:
            return "images"
        if "text" in columns:
            return "text"
        return "numbers" if any(name.startswith(NUMBER) for name in columns) else "names"

    def place(self, item: int) -> str:
        """Return where an item stands in its source, in words."""
        row = f"item {item}" if self.first_line is None else f"line {item + self.first_line}"
        return f"{self.source}, {row} (id {self.ids[item]})"

    def labels(self) -> Labels:
        """Return the labels by number: one class an item (-1: none), or N x C counts where an item has several.

        Beside counts stands what `given` said of each item, which decides a tie.
        """
        items, numbers = self.answers["item"].to_numpy(), self.answers["label"].to_physical().to_numpy()
        times = self.answers["count"].to_numpy() if "count" in self.answers.columns else None
        counts = np.bincount(items, weights=times, minlength=len(self))
        if not len(counts) or counts.max() <= 1:
            given = np.full(len(self), -1)
            given[items] = numbers
            return Labels(given, len(self.classes))
        first = (self.answers["annotator"] == GIVEN).fill_null(value=False).to_numpy()
        came_with = np.full(len(self), -1)
        came_with[items[first]] = numbers[first]
        cells = items.astype(np.int64) * len(self.classes) + numbers
        table = np.bincount(cells, weights=times, minlength=len(self) * len(self.classes))
        counts = table.reshape(len(self), -1).astype(np.int32)
        return Labels(counts, len(self.classes), came_with=came_with)


def in_order(names: Sequence[str]) -> Names:
    """Return the names of classes in the order that numbers them: as numbers where all are, else as text.

    >>> in_order(["10", "9"]), in_order(["b", "a"])
    (('9', '10'), ('a', 'b'))
    """
    return tuple(sorted(names, key=lambda name: (len(name), name)) if whole(tuple(names)) else sorted(names))


def _check_ids(found: Collection) -> None:
    import polars as pl

    ids = found.ids
    if not len(ids):
        raise BadInput(f"{found.source}: at least one item was needed, but it has not one; check the export")
    if ids.dtype != pl.String:
        raise BadInput(f"{found.source}: ids must be text, but {ids.dtype} came; write them as text")
    empty = ids.is_null() | (ids == "")
    if empty.any():
        row = int(empty.arg_max() or 0)
        raise BadInput(f"{_row(found, row)}: an id was needed, but there is none; fill it, or name another with --id")
    # Sorted hashes take a tenth of the memory that sets of names do.
    hashes = np.sort(ids.hash().to_numpy())
    if (hashes[1:] == hashes[:-1]).any() and ids.n_unique() < len(ids):
        row = int((~ids.is_first_distinct()).arg_max() or 0)
        first = int((ids == ids[row]).arg_max() or 0)
        raise BadInput(
            f"{_row(found, row)}: ids must differ, but {ids[row]!r} stood in {_row(found, first, source='')} already; "
            "remove one, or name another column with --id"
        )


def _row(found: Collection, row: int, *, source: str | None = None) -> str:
    place = f"item {row}" if found.first_line is None else f"line {row + found.first_line}"
    return place if source == "" else f"{found.source}, {place}"


def _check_classes(found: Collection) -> None:
    if len(set(found.classes)) < len(found.classes):
        double = next(name for place, name in enumerate(found.classes) if name in found.classes[:place])
        raise BadInput(f"{found.source}: classes must differ in name, but {double!r} comes twice; name each once")
    if not found.classes or "" in found.classes:
        came = "none" if not found.classes else "one without a name"
        raise BadInput(f"{found.source}: names of classes were needed, but {came} came; say --classes a,b,c")


def _checked_answers(found: Collection) -> pl.DataFrame:
    import polars as pl

    answers = found.answers
    labels, known = answers["label"], pl.Enum(list(found.classes))
    # Labels of these very classes need no look at each of them.
    labels = labels if labels.dtype == known else labels.cast(pl.String)
    unknown = labels.is_null() | (labels.dtype != known and ~labels.is_in(list(found.classes)))
    if unknown.any():
        row = int(unknown.arg_max() or 0)
        raise BadInput(
            f"{found.place(int(answers['item'][row]))}: a class was needed, {listed(found.classes)}, but "
            f"{labels[row]!r} came; mend it, or name all with --classes"
        )
    kinds: dict[str, Any] = {
        "item": pl.UInt32,
        "annotator": pl.Categorical,
        "label": known,
        "count": pl.UInt32,
    }
    answers = answers.with_columns(labels).cast({name: kinds[name] for name in kinds if name in answers.columns})
    _check_once(found, answers)
    return answers.select([name for name in ANSWERS if name in answers.columns])


def _check_once(found: Collection, answers: pl.DataFrame) -> None:
    """Refuse two answers of one person about one item."""
    import polars as pl

    items = answers["item"].to_numpy()
    if (items[1:] > items[:-1]).all():
        return
    named = answers.filter(pl.col("annotator").is_not_null()).select("item", "annotator")
    # A number for each pair, sorted, takes a tenth of the room that a table of pairs does.
    pairs = named["item"].to_numpy().astype(np.uint64) << np.uint64(32) | named["annotator"].to_physical().to_numpy()
    pairs.sort()
    if (pairs[1:] == pairs[:-1]).any():
        item, who = named.row(int(named.is_duplicated().arg_max() or 0))
        times = named.filter((pl.col("item") == item) & (pl.col("annotator") == who)).height
        raise BadInput(
            f"{found.place(item)}: one answer a person was needed, but {who} gave {times:,}; keep one of them"
        )
