"""Labels and class probabilities as files hold them, before their rows and classes are brought together."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from relook.errors import BadInput
from relook.types import FloatArray, IntArray

Names = tuple[str, ...]

MISSING_TEXT = frozenset({"", "nan", "NaN"})
"""Text that stands for no label: an empty cell, or what pandas makes of one."""

ID_NAMES = ("id", "item", "path", "image", "__index_level_0__")
"""What a column of ids may be called, best first; the last one is the index of a pandas frame in a parquet file."""

LABEL_NAMES = ("label", "given", "given_label", "class")
"""What a column of given labels may be called."""


Answer = Literal["yes", "no", "missing"]
"""What a mark of a multi-label file can be taken for, where one of its columns is asked as a question."""


Missing = Literal["refused", "allowed"]
"""What becomes of images that nothing is said of, and of rows whose image is missing."""


class Columns(msgspec.Struct, frozen=True):
    """What a user says about a file: which column holds what, and which classes there are.

    `question` names one column of a multi-label file, asked as yes or no; `blank` and `uncertain` say what its empty
    cells and its -1 are taken for, which is never guessed. `numbers` are the columns that describe an item.
    """

    id: str | None = None
    label: str | None = None
    classes: Names | None = None
    annotator: str | None = None
    text: str | None = None
    files: Names | None = None
    numbers: Names | None = None
    split: str | None = None
    group: str | None = None
    source: str | None = None
    question: str | None = None
    blank: Answer | None = None
    uncertain: Answer | None = None


COLUMNS = Columns()
"""Nothing said: columns are found by their names."""


class LabelTable(msgspec.Struct, frozen=True, eq=False):
    """Given labels as a file holds them: N of them, or N x K counts or answers (-1: none).

    `names` says what the numbers stand for where labels came as text; `first_line` is item 0's in a file of lines.
    N x K numbers are counts if K is the number of classes, unless it is known that they are answers.
    """

    source: str
    given: IntArray
    kind: Literal["any", "answers"] = "any"
    names: Names | None = None
    ids: Sequence[str] | None = None
    first_line: int | None = None
    facts: Names = ()

    def __post_init__(self) -> None:
        if not len(self.given):
            raise BadInput(f"{self.source}: at least one label was needed, but the file holds none; check the export")
        _check_ids(self)
        if self.given.size and not (self.given >= 0).any():
            raise BadInput(
                f"{self.source}: labels were needed, but every item is unlabelled; name the right column with --label"
            )

    def __len__(self) -> int:
        return len(self.given)

    def place(self, item: int) -> str:
        """Return where an item stands in the file, in words."""
        return _place(self, item)


class ProbabilityTable(msgspec.Struct, frozen=True, eq=False):
    """Class probabilities as a file holds them: N x C or M x N x C; `names` are its columns' where they have names."""

    source: str
    values: FloatArray
    names: Names | None = None
    ids: Sequence[str] | None = None
    first_line: int | None = None
    facts: Names = ()

    def __post_init__(self) -> None:
        shape = self.values.shape
        if len(shape) not in (2, 3) or 0 in shape:
            raise BadInput(
                f"{self.source}: N x C or M x N x C probabilities were needed, but shape {shape} came; "
                "give each item a row and each class a column"
            )
        if shape[-1] < 2:
            raise BadInput(
                f"{self.source}: at least two classes were needed, but one column came; add 1 - p as a column"
            )
        _check_ids(self)

    def __len__(self) -> int:
        return self.values.shape[-2]

    @property
    def classes(self) -> int:
        """Number of classes, C."""
        return self.values.shape[-1]

    def place(self, item: int) -> str:
        """Return where an item stands in the file, in words."""
        return _place(self, item)


class VectorTable(msgspec.Struct, frozen=True, eq=False):
    """Embeddings as a file holds them, N x D."""

    source: str
    values: FloatArray
    ids: Sequence[str] | None = None
    first_line: int | None = None
    facts: Names = ()

    def __post_init__(self) -> None:
        if 0 in self.values.shape:
            raise BadInput(
                f"{self.source}: embeddings were needed, but there are none ({self.values.shape}); save them"
            )
        _check_ids(self)

    def __len__(self) -> int:
        return len(self.values)

    def place(self, item: int) -> str:
        """Return where an item stands in the file, in words."""
        return _place(self, item)


def existing(path: Path) -> str:
    """Return the name of a file that is there and not empty."""
    if not path.exists():
        raise BadInput(f"{path}: a file was needed, but there is none of this name; check the path")
    if not path.is_file():
        raise BadInput(f"{path}: a file was needed, but this is a folder; name the file in it")
    if path.stat().st_size == 0:
        raise BadInput(f"{path}: a file with labels or probabilities was needed, but it is empty; export it again")
    return str(path)


def whole(names: Names) -> bool:
    """Say whether all names are whole numbers, written as numbers are.

    >>> whole(("0", "10")), whole(("01", "cat"))
    (True, False)
    """
    # Not by way of a number: one of thousands of digits cannot be read.
    return all(name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") for name in names)


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names with commas, the first few of many.

    >>> listed(["a", "b", "c"], 2)
    'a, b, ...'
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def names_in(text: str | None) -> Names | None:
    """Return names that a user wrote with commas between them.

    >>> names_in("a, b"), names_in(None)
    (('a', 'b'), None)
    """
    return None if text is None else tuple(name.strip() for name in text.split(","))


def counted(number: int, what: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "item"), counted(1200, "item")
    ('1 item', '1,200 items')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _check_ids(table: LabelTable | ProbabilityTable | VectorTable) -> None:
    ids = table.ids
    if ids is None:
        return
    if len(ids) != len(table):
        raise BadInput(
            f"{table.source}: an id for each of {len(table):,} rows was needed, but {len(ids):,} came; save both anew"
        )
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if not name:
            raise BadInput(
                f"{_place(table, row)}: an id was needed, but the cell is empty; fill it, or name another with --id"
            )
        if first.setdefault(name, row) != row:
            raise BadInput(
                f"{_place(table, row)}: ids must differ, but {name!r} was in {_row(table, first[name])} already; "
                "remove one, or name another column with --id"
            )


def _place(table: LabelTable | ProbabilityTable | VectorTable, item: int) -> str:
    name = "" if table.ids is None or not len(table.ids) > item else f" (id {table.ids[item]})"
    return f"{table.source}, {_row(table, item)}{name}"


def _row(table: LabelTable | ProbabilityTable | VectorTable, item: int) -> str:
    return f"item {item}" if table.first_line is None else f"line {item + table.first_line}"
