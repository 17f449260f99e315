"""CIFAR-10: 60,000 images of ten kinds of things, 32 x 32 pixels, each with one label (Krizhevsky 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from relook import cifar
from relook.types import Dataset, Labels


def load(folder: str | Path, *, split: str = "train") -> Dataset:
    """Return the images of a split in official order, with their official labels as the given ones and as the truth.

    Ids are rows of the split. The folder, or its folder `cifar10`, holds `cifar-10-batches-bin`, `cifar-10-batches-py`,
    or `images.tar.xz` with `train_labels.npy` and `test_labels.npy`.
    """
    images = cifar.images(Path(folder), split)
    return Dataset(
        name=f"cifar10-{split}",
        classes=cifar.CLASSES,
        ids=tuple(str(row) for row in range(len(images))),
        given=Labels(images.labels, len(cifar.CLASSES)),
        truth=cast("Any", images.labels),
        images=cast("Sequence[Any]", images),
    )
