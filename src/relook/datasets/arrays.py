"""Labels and class probabilities from numpy's files, npy and npz; nothing that holds Python objects is opened."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
)
from relook.types import IntArray

SUFFIXES = (".npy", ".npz")
"""Files that are read here."""

_LABELS = (*LABEL_NAMES, "labels", "given_labels", "y", "arr_0")
_PROBABILITIES = ("probabilities", "pred_probs", "posteriors", "probs", "p", "arr_0")
_IDS = (*ID_NAMES, "ids", "items", "paths", "images")


def labels(path: Path, *, columns: Columns = COLUMNS) -> LabelTable:
    """Return given labels: N whole numbers or texts, or N x K counts or answers; NaN and empty text are no label.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "labels.npy")
    >>> np.save(file, ["dog", "cat", ""])
    >>> labels(file).given.tolist(), labels(file).names
    ([1, 0, -1], ('cat', 'dog'))
    """
    source, parts = existing(path), _parts(path)
    name = _chosen(parts, _LABELS, asked=columns.label, source=source)
    array = parts[name]
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise BadInput(f"{source}: N labels, or N x K of them, were needed, but shape {array.shape} came; mend it")
    ids = _ids(parts, columns, source=source)
    if array.dtype.kind in "US":
        given, names = _from_text(array, source=source)
        return LabelTable(source, given, "answers", names=names, ids=ids)
    answers = array.dtype.kind == "f" and array.ndim == 2 and bool(np.isnan(array).any())
    return LabelTable(source, _from_numbers(array, source=source), "answers" if answers else "any", ids=ids)


def probabilities(path: Path, *, columns: Columns = COLUMNS) -> ProbabilityTable:
    """Return class probabilities, N x C or M x N x C; those of an npy file stay on the disk until they are used."""
    source, parts = existing(path), _parts(path)
    name = _chosen(parts, _PROBABILITIES, asked=None, source=source)
    values = parts[name]
    # Scores add along rows that lie in one piece, so that a row scores alike in any company.
    values = values if values.flags.c_contiguous else np.ascontiguousarray(values)
    return ProbabilityTable(source, values, ids=_ids(parts, columns, source=source))


def _parts(path: Path) -> Mapping[str, NDArray[Any]]:
    """Return the arrays of a file by name; the one of an npy file has numpy's name for what has none."""
    try:
        with path.open("rb") as file:
            head = file.read(6)
            if path.suffix.lower() == ".npz" and head.startswith(b"PK"):
                file.seek(0)
                with np.load(file, allow_pickle=False) as archive:
                    return {name: archive[name] for name in archive.files}
        if path.suffix.lower() == ".npz" or head != b"\x93NUMPY":
            raise BadInput(
                f"{path}: an array was needed, but this is no {path.suffix.lower()[1:]} file; save it with numpy"
            )
        return {"arr_0": _array(path)}
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise _unreadable(path, str(error)) from None
    except ValueError as error:
        raise error if isinstance(error, BadInput) else _unreadable(path, str(error)) from None


def _array(path: Path) -> NDArray[Any]:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        if "empty" not in str(error):
            raise
        # No row at all cannot be memory-mapped, and deserves its own message.
        return np.load(path, allow_pickle=False)


def _unreadable(path: Path, reason: str) -> BadInput:
    if "Object arrays" in reason or "Python objects" in reason:
        return BadInput(
            f"{path}: numbers or text were needed, but it holds Python objects, which are not opened; "
            "save array.astype(str), or array.astype(float)"
        )
    return BadInput(f"{path}: an array was needed, but the file is broken ({reason}); save it again")


def _chosen(parts: Mapping[str, NDArray[Any]], known: Sequence[str], *, asked: str | None, source: str) -> str:
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


def _ids(parts: Mapping[str, NDArray[Any]], columns: Columns, *, source: str) -> list[str] | None:
    found = [columns.id] if columns.id in parts else [name for name in _IDS if name in parts]
    if not found or len(parts) == 1:
        return None
    array = parts[str(found[0])]
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
    bad = ~missing & (array != np.floor(np.where(np.isfinite(array), array, 0.5)))
    if bad.any():
        where = tuple(int(part) for part in np.argwhere(bad)[0])
        raise BadInput(
            f"{source}, item {where[0]}: a class or a count was needed, but {array[where]:.4g} came; "
            "are these probabilities? pass them with --probabilities"
        )
    return np.where(missing, -1, np.where(missing, 0, array)).astype(np.int64)
