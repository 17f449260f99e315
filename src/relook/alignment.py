"""Labels and class probabilities, as files hold them, brought together: rows by id or by order, classes by column.

Nothing is renamed, filled or dropped in silence: what was decided stands in `facts`. Whether the outcome can be right
is for the guard to say.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from relook.errors import BadInput
from relook.sources import LabelTable, Names, ProbabilityTable, counted, listed, whole
from relook.types import IntArray, Labels, Posteriors


class Matching(msgspec.Struct, frozen=True):
    """What a user says about two files: the classes in column order, what becomes of items without probabilities."""

    classes: Names | None = None
    missing: Literal["refuse", "leave out"] = "refuse"


MATCHING = Matching()
"""Nothing said: classes as the files name them, and no item may be missing."""


class Matched(msgspec.Struct, frozen=True, eq=False):
    """Labels and posteriors of the same items in one order, classes in column order, and what was decided on the way.

    `file_rows` is the row of the probabilities' file for each item, where they were joined by id; `named` says that the
    columns had names that are no numbers.
    """

    classes: Names
    labels: Labels
    posteriors: Posteriors
    ids: Sequence[str] | None
    source: str
    joined: Literal["id", "order"]
    file_rows: IntArray | None = None
    named: bool = False
    facts: Names = ()

    def __len__(self) -> int:
        return len(self.labels)

    def name(self, item: int) -> str:
        """Return the id of an item, or its row number."""
        return str(item) if self.ids is None else self.ids[item]


def matched(labels: LabelTable, probabilities: ProbabilityTable, *, matching: Matching = MATCHING) -> Matched:
    """Bring labels and probabilities together, by id where both have ids, else row by row.

    >>> labels = LabelTable("labels", np.array([0, 1]), names=("cat", "dog"), ids=["a", "b"])
    >>> p = ProbabilityTable("p", np.array([[.9, .1], [.2, .8]]), names=("dog", "cat"), ids=["b", "a"])
    >>> both = matched(labels, p)
    >>> both.labels.given.tolist(), both.posteriors.mean().tolist()
    ([1, 0], [[0.2, 0.8], [0.9, 0.1]])
    """
    names = class_names(labels, probabilities, named=matching.classes)
    given, counting = _in_columns(labels, names, probabilities=probabilities)
    if labels.ids is None or probabilities.ids is None:
        ids = labels.ids if labels.ids is not None else probabilities.ids
        rows, joining = None, _joined_by_order(labels, probabilities)
        posteriors = checked_posteriors(probabilities)
    else:
        join = _Join(labels, probabilities, labels.ids, probabilities.ids)
        rows, kept, joining = join.rows(matching.missing)
        given, ids = given[kept], [labels.ids[item] for item in kept.tolist()]
        posteriors = _in_order(checked_posteriors(probabilities), rows)
        if not _labelled(given):
            raise BadInput(
                f"{labels.source}: labels were needed, but no item of {probabilities.source} has one; check both"
            )
    return Matched(
        classes=names,
        labels=Labels(given, len(names)),
        posteriors=posteriors,
        ids=ids,
        source=probabilities.source,
        joined="order" if rows is None else "id",
        file_rows=rows,
        named=probabilities.names is not None and not whole(probabilities.names),
        facts=labels.facts + probabilities.facts + _naming(labels, probabilities, names=names) + counting + joining,
    )


def class_names(labels: LabelTable, probabilities: ProbabilityTable, *, named: Names | None) -> Names:
    """Return the classes in column order: as told, else the columns' names, else the labels' names, sorted."""
    columns, classes = probabilities.names, probabilities.classes
    if named is not None:
        return _told(named, probabilities)
    if columns is not None and not (labels.names is not None and whole(columns) and not whole(labels.names)):
        return columns
    if labels.names is None or whole(labels.names):
        return tuple(str(number) for number in range(classes))
    if len(labels.names) != classes:
        raise BadInput(
            f"{labels.source}: {classes} classes were needed, as many as {probabilities.source} has columns, "
            f"but it names {len(labels.names)} ({listed(labels.names)}); name all in column order with --classes a,b,c"
        )
    return labels.names


def _naming(labels: LabelTable, probabilities: ProbabilityTable, *, names: Names) -> Names:
    numbered = labels.names is None or whole(labels.names)
    if numbered and not whole(names):
        return (f"Labels are numbers: each is the place of a column of {probabilities.source}, 0 is {names[0]}.",)
    if not numbered and names == labels.names and names != probabilities.names:
        return (f"{probabilities.source} does not name its columns: they are taken as the classes in sorted order.",)
    return ()


def _told(named: Names, probabilities: ProbabilityTable) -> Names:
    source, columns = probabilities.source, probabilities.names
    if len(set(named)) != len(named):
        double = next(name for place, name in enumerate(named) if name in named[:place])
        raise BadInput(f"--classes: names must differ, but {double!r} comes twice; name each column once")
    if len(named) != probabilities.classes:
        raise BadInput(
            f"--classes: {probabilities.classes} names were needed, one a column of {source}, but {len(named)} came; "
            "name the classes in column order"
        )
    if columns is not None and not whole(columns) and columns != named:
        if set(columns) == set(named):
            return columns
        unknown = next(name for name in named if name not in columns)
        raise BadInput(f"--classes: columns of {source} were needed, but {unknown!r} is none; it has {listed(columns)}")
    return named


def _in_columns(labels: LabelTable, names: Names, *, probabilities: ProbabilityTable) -> tuple[IntArray, Names]:
    """Return given labels as classes in column order, or as counts, and what was decided about them."""
    if labels.given.ndim == 1:
        return _as_classes(labels, labels.given, names=names), ()
    width = labels.given.shape[1]
    if labels.kind == "any" and width == len(names):
        return _counts(labels), (
            f"{labels.source} holds counts of answers, a column a class; the majority is the given label.",
        )
    if labels.names is None and labels.given.max() >= len(names):
        item = int((labels.given.max(1) >= len(names)).argmax())
        raise BadInput(
            f"{labels.place(item)}: counts in {len(names)} columns (as {probabilities.source} has classes), or answers "
            f"from 0 to {len(names) - 1}, were needed, but {width} columns and {labels.given[item].max()} came; "
            "are these the labels of this data set?"
        )
    answers = _as_classes(labels, labels.given, names=names)
    counts = np.zeros((len(answers), len(names)), np.int32)
    for column in answers.T:
        known = np.flatnonzero(column >= 0)
        counts[known, column[known]] += 1
    return counts, (f"{labels.source} holds up to {width} answers an item; their majority is the given label.",)


def _counts(labels: LabelTable) -> IntArray:
    if labels.given.min() < 0:
        item = int((labels.given.min(1) < 0).argmax())
        raise BadInput(
            f"{labels.place(item)}: counts cannot be negative, but {labels.given[item].min()} came; "
            f"if these are answers of {labels.given.shape[1]} annotators, write NaN for a missing one"
        )
    return labels.given


def _as_classes(labels: LabelTable, given: IntArray, *, names: Names) -> IntArray:
    """Return labels as columns, -1 where there is none; text that spells numbers is numbers."""
    numbered = labels.names is None or whole(labels.names)
    # A number is a class's name where classes are numbers, else the place of its column.
    wanted = names if not numbered or whole(names) else tuple(str(column) for column in range(len(names)))
    found = _found_numbers(given, wanted) if labels.names is None else _found_names(given, labels.names, wanted=wanted)
    if found.min() < -1:
        _refuse_label(labels, tuple(int(part) for part in np.argwhere(found < -1)[0]), names=names)
    return found


def _found_numbers(given: IntArray, wanted: Names) -> IntArray:
    numbers = np.array([int(name) for name in wanted])
    order = np.argsort(numbers)
    place = np.minimum(np.searchsorted(numbers, given, sorter=order), len(numbers) - 1)
    column = order[place]
    return np.where(given == -1, -1, np.where(numbers[column] == given, column, -2))


def _found_names(given: IntArray, own: Names, *, wanted: Names) -> IntArray:
    column_of = {name: column for column, name in enumerate(wanted)}
    # The last one is for -1, no label.
    columns = np.array([column_of.get(name, -2) for name in own] + [-1])
    return columns[given]


def _refuse_label(labels: LabelTable, where: tuple[int, ...], *, names: Names) -> None:
    number = int(labels.given[where])
    came = str(number) if labels.names is None else repr(labels.names[number])
    known = f"0 to {len(names) - 1} (-1: unlabelled)" if _plain(names) else listed(names, 12)
    cure = (
        "are these the labels of this data set?"
        if labels.names is None
        else "mend it, or name the classes with --classes"
    )
    if _plain(names) and _count_from_one(labels, len(names)):
        told = ",".join(str(column + 1) for column in range(len(names)))
        cure = f"if they count from 1, pass --classes {told if len(names) <= 20 else '1,2,...'}"
    raise BadInput(f"{labels.place(where[0])}: a class was needed, {known}, but {came} came; {cure}")


def _plain(names: Names) -> bool:
    return names == tuple(str(column) for column in range(len(names)))


def _count_from_one(labels: LabelTable, classes: int) -> bool:
    if labels.names is not None and not whole(labels.names):
        return False
    known = labels.given[labels.given >= 0] if labels.names is None else np.array([int(name) for name in labels.names])
    return int(known.min()) == 1 and int(known.max()) == classes


def checked_posteriors(probabilities: ProbabilityTable) -> Posteriors:
    """Return probabilities that can be some, and say of rounded ones what they are."""
    try:
        return Posteriors(probabilities.values)
    except BadInput as error:
        raise _rounded(probabilities) or BadInput(f"{probabilities.source}: {error}") from None


def _rounded(probabilities: ProbabilityTable) -> BadInput | None:
    """Return what is wrong with rows that hold probabilities, but too few digits of them."""
    values = probabilities.values
    if values.dtype.kind != "f" or not (values >= 0).all():
        return None
    away = np.abs(values.sum(-1, dtype=np.float64) - 1).reshape(-1, len(probabilities)).max(0)
    if not away.max() < 0.05:
        return None
    row = int(away.argmax())
    return BadInput(
        f"{probabilities.place(row)}: probabilities must sum to one within 0.001, but they are {away[row]:.3f} away; "
        "are they rounded? write five digits or more"
    )


def _joined_by_order(labels: LabelTable, probabilities: ProbabilityTable) -> Names:
    if len(labels) != len(probabilities):
        shape = probabilities.values.shape
        turned = (
            "; is it transposed? save p.T"
            if len(labels) == shape[-1]
            else "; are the probabilities those of another data set?"
        )
        raise BadInput(
            f"{probabilities.source}: a row for each of the {counted(len(labels), 'item')} of {labels.source} was "
            f"needed, but {counted(len(probabilities), 'row')} came{turned}"
        )
    without = [table.source for table in (labels, probabilities) if table.ids is None]
    verb = "have" if len(without) == 2 else "has"
    return (f"Joined by order, row by row: {' and '.join(without)} {verb} no ids.",)


def _in_order(posteriors: Posteriors, rows: IntArray) -> Posteriors:
    # A copy of large probabilities is spared where they lie in order already.
    if len(rows) == posteriors.items and bool((rows == np.arange(len(rows))).all()):
        return posteriors
    return Posteriors(posteriors.values[:, rows])


def _labelled(given: IntArray) -> bool:
    return bool((given >= 0).any() if given.ndim == 1 else given.any())


class _Join(msgspec.Struct, frozen=True, eq=False):
    """A join by id of two tables that both have ids."""

    labels: LabelTable
    probabilities: ProbabilityTable
    wanted: Sequence[str]
    there: Sequence[str]

    def rows(self, missing: str) -> tuple[IntArray, IntArray, Names]:
        """Return the row of probabilities for each item kept, the items kept, and what was decided."""
        row_of = {name: row for row, name in enumerate(self.there)}
        rows = np.fromiter((row_of.get(name, -1) for name in self.wanted), np.int64, len(self.wanted))
        lost, kept = np.flatnonzero(rows < 0), np.flatnonzero(rows >= 0)
        facts = [f"Joined by id: {counted(len(kept), 'item')} in both files."]
        if len(lost):
            names = [self.wanted[item] for item in lost.tolist()]
            self._check_lost(names, missing)
            facts.append(_left_out(names, here=self.labels.source, there=self.probabilities.source))
        if len(self.there) > len(kept):
            known = set(self.wanted)
            extra = [name for name in self.there if name not in known]
            facts.append(_left_out(extra, here=self.probabilities.source, there=self.labels.source))
        return rows[kept], kept, tuple(facts)

    def _check_lost(self, lost: list[str], missing: str) -> None:
        source, asked = self.probabilities.source, self.labels.source
        if len(lost) == len(self.wanted):
            raise BadInput(
                f"{source}: the ids of {asked} were needed, but none is there ({self.wanted[0]!r} in one, "
                f"{self.there[0]!r} in the other); are the probabilities those of another data set?"
            )
        if missing == "refuse":
            raise BadInput(
                f"{source}: a row for each of the {len(self.wanted):,} ids of {asked} was needed, but {len(lost):,} "
                f"are missing ({listed(lost, 3)}); predict them, or leave them out with --allow-missing"
            )


def _left_out(names: list[str], *, here: str, there: str) -> str:
    return f"Left out: {counted(len(names), 'item')} of {here} that {there} lacks ({listed(names, 3)})."
