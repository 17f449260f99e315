"""Further images that are no items: encoders that learn without labels are better for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from relook import cifar, npfiles
from relook.errors import BadInput
from relook.published import data_folder
from relook.rasters import is_raster
from relook.types import Dataset

CIFAR = "cifar10"
"""All images of CIFAR-10; with :test or :train behind it those of one split."""


def further(name: str, dataset: Dataset, *, folder: str | Path | None = None) -> list[NDArray[np.uint8]]:
    """Return images, each H x W x 3 or H x W, that a name or a file stands for, without those of the data set itself.

    >>> from relook.datasets import digits
    >>> further("", digits.load())
    []
    """
    if not name:
        return []
    if name.partition(":")[0] != CIFAR:
        return _of_file(Path(name))
    place = data_folder(folder, what="unlabelled images")
    split = name.partition(":")[2]
    own = {int(row) for row in dataset.ids} if dataset.name.startswith("cifar10h") else set()
    found = []
    for each in cifar.SPLITS if not split else (split,):
        images = cifar.images(place, each)
        found += [images[row] for row in range(len(images)) if each != "test" or row not in own]
    return found


def _of_file(path: Path) -> list[NDArray[np.uint8]]:
    stored = npfiles.single(path)
    if not is_raster(stored):
        raise BadInput(
            f"{path}: unlabelled images were needed, N x H x W or N x H x W x 3 bytes, or cifar10, cifar10:test or "
            f"cifar10:train, but {stored.dtype} of shape {stored.shape} came"
        )
    return list(stored.array())
