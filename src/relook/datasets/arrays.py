"""Labels, answers, counts, images and class probabilities from numpy's files, npy and npz."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook import layouts
from relook.collection import KEPT, NUMBER, VIEWS, Collection, Form
from relook.errors import BadInput
from relook.npfiles import SUFFIXES, Stored, parts
from relook.rasters import Rasters, is_raster
from relook.roles import EACH
from relook.sheets import COLUMNS_MOST, Sheet
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
from relook.types import IntArray

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SUFFIXES", "collection", "labels", "probabilities"]

_LABELS = (*LABEL_NAMES, "labels", "given_labels", "y", "arr_0")
_PROBABILITIES = ("probabilities", "pred_probs", "posteriors", "probs", "p", "arr_0")
_EMBEDDINGS = ("embeddings", "embedding", "features", "x", "arr_0")
_IDS = (*ID_NAMES, "ids", "items", "paths", "images")
_COUNTS, _ANSWERS = ("counts", "label_counts"), ("answers", "annotations", "labels_multiannotator")
_IMAGES = ("images", "image", "x", "pixels")
_LINES, _NUMBER = ("id", "text", "split", "group", "source"), "number "
_SINGLE: Mapping[str, Names] = MappingProxyType(
    {
        "id": _IDS,
        "text": ("texts", "text"),
        "split": ("split",),
        "group": ("group",),
        "source": ("source",),
        "classes": ("classes", "class_names"),
        "annotators": ("annotators", "workers"),
    }
)


def collection(path: Path, *, columns: Columns = COLUMNS) -> Collection:
    """Return the items of an array or an archive of arrays: labels, answers (N x M) or counts (N x C), and images.

    Which of the two N x K numbers are is said by the array's name (`counts` or `answers`), by `--label '*'` (a column a
    class) or by `--annotator '*'` (a column an annotator).

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "pets.npz")
    >>> np.savez(file, counts=[[3, 0], [1, 4]], classes=["cat", "dog"], ids=["a", "b"])
    >>> found = collection(file)
    >>> found.ids.to_list(), found.classes, found.labels().given.tolist()
    (['a', 'b'], ('cat', 'dog'), [[3, 0], [1, 4]])
    """
    source, found = str(path), parts(path)
    if columns.question is not None:
        raise BadInput(
            f"{source}: a table with named columns was needed for --question {columns.question}, but these are arrays; "
            "save the one that answers it as labels"
        )
    taken = _taken(found, columns, source=source)
    images = [found[name] for name in taken.get("images", ())]
    frame, said = _frame(found, taken, columns=columns, source=source)
    if not len(frame):
        raise BadInput(f"{source}: at least one item was needed, but its arrays have no row; save it again")
    kind = path.suffix.lower()[1:]
    sheet = Sheet(source=source, kind=kind, frame=frame.lazy(), columns=tuple(frame.columns), rows=len(frame))
    made = layouts.collection(sheet, columns=said)
    # What is known stands under its role; the columns of the frame between are nobody's own.
    known = {name.replace(NUMBER + _NUMBER, NUMBER, 1): name for name in made.columns if not name.startswith(KEPT)}
    used = {role: names[0] for role, names in taken.items() if len(names) == 1}
    return msgspec.structs.replace(
        made,
        form=Form(kind, made.form.layout, used, made.form.settings),
        items=made.items.select(**known),
        pictures=Rasters(images) if images else None,
        facts=(*_facts(found, taken, source=source), *made.facts[1:]),
    )


def labels(path: Path, *, columns: Columns = COLUMNS) -> LabelTable:
    """Return given labels: N whole numbers or texts, or N x K counts or answers; NaN and empty text are no label.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "labels.npy")
    >>> np.save(file, ["dog", "cat", ""])
    >>> labels(file).given.tolist(), labels(file).names
    ([1, 0, -1], ('cat', 'dog'))
    """
    source, found = str(path), parts(path)
    array = found[_chosen(found, _LABELS, asked=columns.label, source=source)].array()
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise BadInput(f"{source}: N labels, or N x K of them, were needed, but shape {array.shape} came; mend it")
    ids = _ids(found, columns, source=source)
    if array.dtype.kind in "US":
        given, names = _from_text(array, source=source)
        return LabelTable(source, given, "answers", names=names, ids=ids)
    answers = array.dtype.kind == "f" and array.ndim == 2 and bool(np.isnan(array).any())
    return LabelTable(source, _from_numbers(array, source=source), "answers" if answers else "any", ids=ids)


def probabilities(path: Path, *, columns: Columns = COLUMNS) -> ProbabilityTable:
    """Return class probabilities, N x C or M x N x C; those of an npy file stay on the disk until they are used."""
    source, found = str(path), parts(path)
    values = found[_chosen(found, _PROBABILITIES, asked=None, source=source)].array()
    # Scores add along rows that lie in one piece, so that a row scores alike in any company.
    values = values if values.flags.c_contiguous else np.ascontiguousarray(values)
    return ProbabilityTable(source, values, ids=_ids(found, columns, source=source))


def embeddings(path: Path, *, columns: Columns = COLUMNS) -> VectorTable:
    """Return embeddings, N x D, of an npy file in its own order, of an npz file with ids where there are some."""
    source, found = str(path), parts(path)
    stored = found[_chosen(found, _EMBEDDINGS, asked=columns.label, source=source)]
    if len(stored.shape) != 2 or stored.dtype.kind != "f":
        raise BadInput(
            f"{source}: embeddings of N x D numbers with a point were needed, but {stored} came; save them so"
        )
    return VectorTable(source, stored.array(), ids=_ids(found, columns, source=source))


def _chosen(parts: Mapping[str, Stored], known: Sequence[str], *, asked: str | None, source: str) -> str:
    if asked is not None:
        if asked not in parts or source.lower().endswith(".npy"):
            came = "it is a single array" if source.lower().endswith(".npy") else f"it holds {listed(list(parts))}"
            raise BadInput(f"{source}: an array {asked!r} was needed, but {came}; leave out --label, or name another")
        return asked
    found = [name for name in parts if name in known] if len(parts) > 1 else list(parts)
    if len(found) != 1:
        came = listed(found or list(parts)) or "none"
        raise BadInput(
            f"{source}: one array to read was needed, but it holds {came}; name that of the labels with --label, "
            "or save one alone as npy"
        )
    return found[0]


def _ids(parts: Mapping[str, Stored], columns: Columns, *, source: str) -> list[str] | None:
    found = [columns.id] if columns.id in parts else [name for name in _IDS if name in parts]
    if not found or len(parts) == 1:
        return None
    array = parts[str(found[0])].array()
    if array.ndim != 1 or array.dtype.kind not in "USiu":
        raise BadInput(
            f"{source}: ids must be N texts or numbers, but {found[0]} is {array.dtype} of shape {array.shape}; mend it"
        )
    return (
        [str(name) for name in _texts(array, source=source).tolist()]
        if array.dtype.kind == "S"
        else list(map(str, array.tolist()))
    )


def _texts(array: NDArray[Any], *, source: str) -> NDArray[np.str_]:
    if array.dtype.kind == "U":
        points = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if ((points > 0x10FFFF) | ((points >= 0xD800) & (points < 0xE000))).any():
            raise BadInput(f"{source}: text in Unicode was needed, but other bytes came; save array.astype(str)")
    try:
        return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{source}: text in UTF-8 was needed, but {error.object!r} came; save array.astype(str)"
        ) from None


def _from_text(array: NDArray[Any], *, source: str) -> tuple[IntArray, Names]:
    """Return numbers for texts, in the order of the sorted texts, and -1 where there is none."""
    found, place = np.unique(_texts(array, source=source), return_inverse=True)
    names = [name for name in found.tolist() if name not in MISSING_TEXT]
    number_of = {name: number for number, name in enumerate(names)}
    numbers = np.array([number_of.get(name, -1) for name in found.tolist()], np.int64)
    return numbers[place].reshape(array.shape), tuple(names)


def _from_numbers(array: NDArray[Any], *, source: str) -> IntArray:
    if array.dtype.kind in "iub":
        return array.astype(np.int64) if array.dtype.kind == "b" else array
    if array.dtype.kind != "f":
        raise BadInput(f"{source}: whole numbers or text were needed, but {array.dtype} came; save one class an item")
    missing = np.isnan(array)
    # A number that whole numbers of eight bytes end before is none of theirs either.
    bad = ~missing & ((array != np.floor(np.where(np.isfinite(array), array, 0.5))) | (np.abs(array) >= 2.0**63))
    if bad.any():
        where = tuple(int(part) for part in np.argwhere(bad)[0])
        raise BadInput(
            f"{source}, item {where[0]}: a class or a count was needed, but {array[where]:.4g} came; "
            "are these probabilities? pass them with --probabilities"
        )
    return np.where(missing, -1, np.where(missing, 0, array)).astype(np.int64)


# Arrays as a table, which is then laid out like any other.

Taken = dict[str, tuple[str, ...]]


def _taken(found: Mapping[str, Stored], columns: Columns, *, source: str) -> Taken:
    """Return the names of the arrays that have a role: as the user says, else as they are called."""
    taken: Taken = {role: _single(found, role, columns=columns, source=source) for role in _SINGLE}
    taken["numbers"] = tuple(_there(found, name, source=source) for name in columns.numbers or ())
    taken["images"] = _images(found, columns, source=source)
    used = {name for names in taken.values() for name in names}
    left = {name: part for name, part in found.items() if name not in used}
    if left or not taken["images"]:
        asked = columns.label.removesuffix(EACH) if columns.label is not None else None
        taken["label"] = (_chosen(left, (*_LABELS, *_COUNTS, *_ANSWERS), asked=asked or None, source=source),)
    return {role: names for role, names in taken.items() if names}


def _single(found: Mapping[str, Stored], role: str, *, columns: Columns, source: str) -> Names:
    """Return the array of a role that one array has, or none; the only array there is holds labels or images."""
    asked: str | None = getattr(columns, role, None) if role in _LINES else None
    if asked is not None:
        return (_there(found, asked, source=source),)
    own = [name for name in _SINGLE[role] if len(found) > 1 and name in found and not is_raster(found[name])]
    return tuple(own[:1])


def _there(found: Mapping[str, Stored], name: str, *, source: str) -> str:
    if name not in found:
        raise BadInput(f"{source}: an array {name!r} was to be taken, but it holds {listed(list(found))}; name another")
    return name


def _images(found: Mapping[str, Stored], columns: Columns, *, source: str) -> Names:
    if columns.files is not None:
        if len(columns.files) > VIEWS:
            raise BadInput(f"{source}: {VIEWS} arrays of images at most were needed, but more came; name fewer")
        return tuple(_there(found, name, source=source) for name in columns.files)
    own = [name for name, part in found.items() if is_raster(part) and (name.lower() in _IMAGES or len(found) == 1)]
    return tuple(own[:1])


def _frame(found: Mapping[str, Stored], taken: Taken, *, columns: Columns, source: str) -> tuple[pl.DataFrame, Columns]:
    """Return the arrays as a table, and what its columns are."""
    import polars as pl

    rows = _rows(found, taken, source=source)
    cells: dict[str, Any] = {role: _line(found[taken[role][0]], source=source) for role in _LINES if role in taken}
    said = Columns(files=())
    if "label" in taken:
        told, said = _labels(found, taken, columns=columns, source=source)
        cells |= told
    else:
        cells["label"] = [None] * rows
        said = Columns(classes=columns.classes, files=())
    for name in taken.get("numbers", ()):
        cells |= _numbers(found[name], source=source)
    numbers = tuple(name for name in cells if name.startswith(_NUMBER))
    return pl.DataFrame(cells), msgspec.structs.replace(said, numbers=numbers)


def _rows(found: Mapping[str, Stored], taken: Taken, *, source: str) -> int:
    """Return how many items there are, and refuse arrays that disagree."""
    names = [name for role, names in taken.items() if role not in ("classes", "annotators") for name in names]
    rows = {name: found[name].shape[0] if found[name].shape else 1 for name in names}
    if len(set(rows.values())) > 1:
        several = ", ".join(f"{count:,} of {name}" for name, count in rows.items())
        raise BadInput(f"{source}: arrays of one length were needed, a row an item, but {several} came; save them anew")
    return next(iter(rows.values()))


def _line(stored: Stored, *, source: str) -> list[str]:
    """Return an array of one text or whole number an item as texts."""
    array = stored.array() if len(stored.shape) == 1 else np.zeros(0)
    if array.dtype.kind not in "USiu":
        raise BadInput(f"{source}: N texts or whole numbers were needed, but {stored} came; name another array")
    return list(map(str, _texts(array, source=source).tolist()))


def _numbers(stored: Stored, *, source: str) -> dict[str, NDArray[Any]]:
    """Return an array of numbers, one or several an item, a column each."""
    fits = stored.dtype.kind in "iufb" and len(stored.shape) in (1, 2) and math.prod(stored.shape[1:]) <= COLUMNS_MOST
    if not fits:
        raise BadInput(f"{source}: N numbers, or N x D of them, were needed, but {stored} came; name another array")
    array = stored.array()
    if array.ndim == 1:
        return {f"{_NUMBER}{stored.name}": array}
    return {f"{_NUMBER}{stored.name} {place}": np.ascontiguousarray(array[:, place]) for place in range(array.shape[1])}


def _labels(
    found: Mapping[str, Stored], taken: Taken, *, columns: Columns, source: str
) -> tuple[dict[str, Any], Columns]:
    """Return labels, answers or counts as columns, and what they are."""
    name = taken["label"][0]
    array = _one_or_two(found[name], source=source)
    classes = columns.classes or (
        tuple(_line(found[taken["classes"][0]], source=source)) if "classes" in taken else None
    )
    said = Columns(classes=classes, uncertain=columns.uncertain, files=())
    if array.ndim == 1:
        return {"label": _cells(array, said, source=source)}, said
    heads = [str(place) for place in range(array.shape[1])]
    if _are_counts(name, array, columns=columns, source=source):
        what, heads = "class", list(classes or heads)
        said = msgspec.structs.replace(said, label=f"label {EACH}")
        parts: Any = [_from_numbers(array[:, place], source=source) for place in range(array.shape[1])]
    else:
        what = "annotator"
        heads = _line(found[taken["annotators"][0]], source=source) if "annotators" in taken else heads
        said = msgspec.structs.replace(said, annotator=f"label {EACH}")
        parts = [_cells(array[:, place], said, source=source) for place in range(array.shape[1])]
    if len(heads) != len(parts) or len(set(heads)) < len(heads):
        raise BadInput(
            f"{source}: a name of its own for each of the {len(parts)} columns of {name} was needed, one {what} each, "
            f"but {listed(heads)} came; name them all"
        )
    return {f"label {head}": part for head, part in zip(heads, parts, strict=True)}, said


def _one_or_two(stored: Stored, *, source: str) -> NDArray[Any]:
    array = stored.array() if len(stored.shape) in (1, 2) else np.zeros((0, 0, 0))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 3 or (array.ndim == 2 and not 0 < array.shape[1] <= COLUMNS_MOST):
        raise BadInput(
            f"{source}: labels as N, or N x K of them with K up to {COLUMNS_MOST:,}, were needed, but {stored} came; "
            "name another with --label"
        )
    return array


def _cells(array: NDArray[Any], said: Columns, *, source: str) -> pl.Series:
    """Return labels as cells, null where there is none: NaN, and -1 unless it is named as a class."""
    import polars as pl

    if array.dtype.kind in "US":
        return pl.Series(_texts(array, source=source).tolist(), dtype=pl.String)
    numbers = pl.Series(np.ascontiguousarray(_from_numbers(array, source=source)))
    missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(len(array), bool)
    if "-1" not in (said.classes or ()):
        missing = missing | (array == -1)
    return numbers.set(pl.Series(missing), None) if missing.any() else numbers


def _are_counts(name: str, array: NDArray[Any], *, columns: Columns, source: str) -> bool:
    """Say whether N x K numbers are counts, a column a class, or answers, a column an annotator."""
    counts = (columns.label or "").endswith(EACH) or (columns.annotator is None and name in _COUNTS)
    answers = columns.annotator == EACH or array.dtype.kind in "US" or (columns.label is None and name in _ANSWERS)
    if counts == answers:
        raise BadInput(
            f"{source}: {name} has {array.shape[1]} columns, and it was needed to know what they are, but "
            f"{'both' if counts else 'neither'} came; pass --label '*' if each is a class with counts, or "
            "--annotator '*' if each is an annotator"
        )
    return counts


def _facts(found: Mapping[str, Stored], taken: Taken, *, source: str) -> Names:
    """Say which array is what, and what else is there."""
    used = [f"{role} in {', '.join(names)}" for role, names in taken.items()]
    own = {name for names in taken.values() for name in names}
    left = [str(part) for name, part in found.items() if name not in own]
    said = f"{source}: {'; '.join(used)}."
    return (said, f"{source}: left aside: {listed(left)}.") if left else (said,)
