"""MedMNIST's chest radiographs, 28 x 28 pixels (Yang et al. 2023): pneumonia in children, and 14 findings of adults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook import npfiles
from relook.errors import BadInput
from relook.npfiles import Stored
from relook.published import PUBLISHED
from relook.sources import listed
from relook.types import Dataset, Labels

SPLITS = ("train", "val", "test")

FINDINGS = (
    *("atelectasis", "cardiomegaly", "effusion", "infiltration", "mass", "nodule", "pneumonia", "pneumothorax"),
    *("consolidation", "edema", "emphysema", "fibrosis", "pleural", "hernia"),
)
"""The columns of ChestMNIST's labels, in the publisher's order."""

_SIDE = 28


class _Part(NamedTuple):
    """A split: its images, N x 28 x 28, and its labels, N x columns."""

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]


def pneumonia(folder: str | Path, *, split: str = "all") -> Dataset:
    """Return PneumoniaMNIST, normal or pneumonia; physicians graded it, so its labels are the truth as well.

    Ids are a split and a row of it, `train/0`.
    """
    parts = _parts(Path(folder), "pneumoniamnist", split=split, columns=1)
    made = _dataset(f"pneumoniamnist-{split}", parts, classes=("normal", "pneumonia"))
    return msgspec.structs.replace(made, truth=made.given.given)


def chest(folder: str | Path, *, question: str, split: str = "all") -> Dataset:
    """Return ChestMNIST asked for one of its 14 findings: is it there, yes or no?

    The labels were mined from reports, so that the truth is not known. Ids are a split and a row of it, `train/0`.
    """
    if question not in FINDINGS:
        raise BadInput(f"chestmnist: a question was needed ({listed(FINDINGS, 14)}), but {question!r} came; name one")
    parts = _parts(Path(folder), "chestmnist", split=split, columns=len(FINDINGS))
    column = FINDINGS.index(question)
    asked = {name: _Part(part.images, part.labels[:, [column]]) for name, part in parts.items()}
    return _dataset(f"chestmnist-{question}-{split}", asked, classes=(f"no {question}", question))


def _dataset(name: str, parts: Mapping[str, _Part], *, classes: tuple[str, str]) -> Dataset:
    labels = np.concatenate([part.labels[:, 0] for part in parts.values()]).astype(np.int64)
    return Dataset(
        name=name,
        classes=classes,
        ids=tuple(f"{split}/{row}" for split, part in parts.items() for row in range(len(part.labels))),
        given=Labels(labels, 2),
        images=cast("Sequence[Any]", np.concatenate([part.images for part in parts.values()])),
    )


def _parts(folder: Path, name: str, *, split: str, columns: int) -> dict[str, _Part]:
    """Return the splits that are asked for."""
    if split not in (*SPLITS, "all"):
        raise BadInput(f"{name}: the split must be {', '.join(SPLITS)} or all, but {split!r} came; name one of them")
    path = PUBLISHED[name].needed(folder, f"{name}.npz")
    found = npfiles.parts(path)
    return {part: _part(found, part, columns=columns, path=path) for part in (SPLITS if split == "all" else (split,))}


def _part(found: Mapping[str, Stored], split: str, *, columns: int, path: Path) -> _Part:
    images, labels = (_array(found, f"{split}_{what}", path=path) for what in ("images", "labels"))
    if images.ndim != 3 or images.shape[1:] != (_SIDE, _SIDE) or labels.shape != (len(images), columns):
        raise BadInput(
            f"{path}: N images of {_SIDE} x {_SIDE} and N x {columns} labels were needed as {split}, but "
            f"shapes {images.shape} and {labels.shape} came; get the size of {_SIDE} pixels"
        )
    if labels.size and labels.max() > 1:
        row = int((labels.max(1) > 1).argmax())
        raise BadInput(f"{path}: labels 0 and 1 were needed, but {split}/{row} has {labels[row].max()}; get it again")
    return _Part(images, labels)


def _array(found: Mapping[str, Stored], name: str, *, path: Path) -> NDArray[np.uint8]:
    if name not in found:
        raise BadInput(
            f"{path}: an array {name} was needed, but it holds {listed(list(found)) or 'none'}; get it again"
        )
    if found[name].dtype != np.uint8:
        raise BadInput(f"{path}: unsigned bytes were needed as {name}, but {found[name].dtype} came; get it again")
    return found[name].numbers()
