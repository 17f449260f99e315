"""What arrays must be to come in: whole numbers, classes, counts, probabilities. The row that is not is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relook.errors import BadInput

if TYPE_CHECKING:
    from relook.types import FloatArray, IntArray


def as_array(values: Any, where: str) -> NDArray[Any]:
    """Return values as an array, or refuse rows of different lengths."""
    try:
        return np.asanyarray(values)
    except ValueError:
        raise BadInput(f"{where}: rows of one length were needed, but their lengths differ; fill in the gaps") from None


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array in C order that nobody can write to."""
    view = np.ascontiguousarray(values).view()  # a row in any other order scores alone unlike among others
    view.flags.writeable = False
    return view


def whole_numbers(values: Any, where: str) -> IntArray:
    """Return values as whole numbers, or refuse what are none."""
    array = as_array(values, where)
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind != "f":
        raise BadInput(f"{where}: whole numbers were needed, but {array.dtype} came; map class names to numbers first")
    bad = ~(np.isfinite(array) & (array == np.floor(array)))
    if bad.any():
        row = int(np.argwhere(bad)[0][0])
        raise BadInput(
            f"{where}: whole numbers were needed, but item {row} holds {shown(array[row])}; were probabilities passed?"
        )
    return array.astype(np.int64)


def check_counts(counts: IntArray, classes: int, *, where: str) -> None:
    """Refuse what are not N x C counts."""
    if counts.ndim != 2 or counts.shape[1] != classes:
        raise BadInput(f"{where}: N x {classes} counts were needed, but shape {counts.shape} came; one column a class")
    if counts.size and counts.min() < 0:
        row = int((counts.min(1) < 0).argmax())
        raise BadInput(f"{where}: counts cannot be negative, but item {row} holds {shown(counts[row])}")


def check_classes(given: IntArray, classes: int) -> None:
    """Refuse labels that are neither a class nor -1."""
    if given.size and (given.max() >= classes or given.min() < -1):
        row = int(((given >= classes) | (given < -1)).argmax())
        raise BadInput(
            f"labels: classes 0 to {classes - 1} were needed (-1: unlabelled), but item {row} has {given[row]}; "
            "are the labels of this data set?"
        )


def check_probabilities(rows: FloatArray, *, model: int, first: int) -> None:
    """Refuse rows that do not sum to one, naming the first; half precision is allowed to be coarser."""
    coarse = rows.dtype == np.float16
    allowed = 1e-2 if coarse else 1e-3
    with np.errstate(invalid="ignore", over="ignore"):
        totals = rows.sum(1, dtype=np.float32) if coarse else rows @ np.ones(rows.shape[1], rows.dtype)
        # Comparisons are written so that NaN fails them.
        if np.abs(totals - 1).max() <= allowed and rows.min() >= 0:
            return
        bad = ~((np.abs(totals - 1) <= allowed) & (rows.min(1) >= 0))
    row = int(bad.argmax())
    where = f"model {model}, item {first + row}"
    if not np.isfinite(rows[row]).all():
        raise BadInput(f"posteriors: probabilities were needed, but {where} holds {shown(rows[row])}; predict it again")
    if rows[row].min() < 0:
        raise BadInput(
            f"posteriors: probabilities cannot be negative, but {where} holds {shown(rows[row])}; were logits passed?"
        )
    came = f"{where} sums to {totals[row]:.3f}"
    raise BadInput(f"posteriors: rows must be probabilities, but {came}; were logits passed?")


def shown(row: NDArray[Any]) -> str:
    """Return the first numbers of a row in words."""
    return (
        "[" + ", ".join(f"{value:.4g}" for value in np.atleast_1d(row)[:6]) + ("]" if np.size(row) <= 6 else ", ...]")
    )
