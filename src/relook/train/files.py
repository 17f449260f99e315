"""The file of what was made of images and labels: posteriors in 16 bits, labels and ids."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def write(to: Path, values: NDArray[Any], *, given: NDArray[Any], ids: NDArray[Any]) -> None:
    """Write posteriors (M x N x C; N x C of one model), labels and ids as npz, whole or not at all.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp(), "posteriors.npz")
    >>> write(place, np.full((1, 2, 2), 0.5), given=np.array([0, 1]), ids=np.arange(2))
    >>> with np.load(place, allow_pickle=False) as found:
    ...     found["posteriors"].shape, found["posteriors"].dtype.name, found.files
    ((2, 2), 'float16', ['posteriors', 'labels', 'ids'])
    """
    draft = to.with_name(f".{to.name}.{os.getpid()}")
    shown = values[0] if values.ndim == 3 and len(values) == 1 else values
    try:
        with draft.open("wb") as file:
            np.savez_compressed(file, posteriors=shown.astype(np.float16), labels=given.astype(np.int64), ids=ids)
        draft.replace(to)
    finally:
        draft.unlink(missing_ok=True)
