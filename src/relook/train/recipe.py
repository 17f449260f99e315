"""A recipe: parts that learn, how what they say is joined, and whether an item's own label was seen by what says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relook.errors import BadInput
from relook.train.crossing import (
    FloatArray,
    IntArray,
    Learn,
    averaged,
    fold_of,
    in_sample,
    number,
    out_of_sample,
    together,
)
from relook.train.parts import Part, Work

FOLDS = "folds.npy"
"""The folds of a training that a later one goes on from: an item stays in its fold."""


@dataclass(frozen=True)
class Recipe:
    """What is trained and how it predicts; it prints, compares and is kept as JSON.

    With `folds` 0 the parts see every label and then say what these very items are: in sample, as the paper does.
    Several `parts` make an ensemble across families; `joined` says whether their models stay apart (M x N x C) or are
    averaged. `unlabelled` names further images that the recipe was chosen with, `source` says where it is from.
    """

    name: str
    parts: tuple[Part, ...]
    source: str
    folds: int = 5
    repeats: int = 1
    joined: Literal["models", "mean"] = "models"
    unlabelled: str = ""

    def learner(self, work: Work) -> Learn:
        """Return what learns from masses and predicts rows."""
        learn = together([part.learner(work) for part in self.parts])
        return averaged(learn) if self.joined == "mean" else learn


class Known(NamedTuple):
    """Images, N x channels x H x W bytes; masses of the first of them, n x C; and which of these belong together.

    Images beyond the masses are no items: encoders learn from them, nothing is said of them.
    """

    images: Tensor
    masses: FloatArray
    groups: Sequence[str] | None = None


class Made(NamedTuple):
    """Probabilities, M x n x C, whether they are of items whose labels were seen, and the folds, -1 for none."""

    values: FloatArray
    in_sample: bool
    fold_of: IntArray | None = None


def tensor(images: NDArray[np.uint8]) -> Tensor:
    """Return images as torch takes them."""
    return torch.from_numpy(images)


def made(recipe: Recipe, known: Known, *, work: Work) -> Made:
    """Return what a recipe makes of images and labels."""
    _check(known)
    learn = _on_items(recipe.learner(work), known)
    masses = np.ascontiguousarray(known.masses, np.float32)
    if not recipe.folds:
        return Made(in_sample(learn, masses), in_sample=True)
    cuts = [_cut(recipe, known, work=work, repeat=repeat) for repeat in range(recipe.repeats)]
    values = [out_of_sample(_named(learn, repeat), masses, fold_of=fold) for repeat, fold in enumerate(cuts)]
    return Made(np.mean(values, axis=0), in_sample=False, fold_of=cuts[0])


def described(value: Any) -> Any:
    """Return a recipe, or any part of one, as JSON holds it: each record with its kind.

    >>> described(Recipe("none", (), "nobody"))["folds"]
    5
    """
    if is_dataclass(value):
        names = (field.name for field in fields(value))
        return {"kind": type(value).__name__} | {name: described(getattr(value, name)) for name in names}
    return [described(each) for each in value] if isinstance(value, tuple) else value


def _on_items(learn: Learn, known: Known) -> Learn:
    """Return a learner that is walked over the items alone; images beyond them have no label."""
    beyond = len(known.images) - len(known.masses)

    def padded(masses: FloatArray, asked: IntArray, *, name: str) -> FloatArray:
        return learn(np.pad(masses, ((0, beyond), (0, 0))), asked, name=name)

    return padded


def _named(learn: Learn, repeat: int) -> Learn:
    def named(masses: FloatArray, asked: IntArray, *, name: str) -> FloatArray:
        return learn(masses, asked, name=f"{name}-{repeat}" if repeat else name)

    return named


def _cut(recipe: Recipe, known: Known, *, work: Work, repeat: int) -> IntArray:
    """Return the folds: those of the training that is gone on from, where there is one, with new items dealt in."""
    found = fold_of(known.masses, recipe.folds, seed=number(work.seed, "repeat", repeat), groups=known.groups)
    shelf, name = work.shelf, f"{repeat}-{FOLDS}"
    if shelf.last is not None and (shelf.last / name).is_file():
        before = np.load(shelf.last / name, allow_pickle=False)
        found = np.where(before >= 0, before, found)
    if shelf.own is not None:
        shelf.own.mkdir(parents=True, exist_ok=True)
        np.save(shelf.own / name, found, allow_pickle=False)
    return found


def _check(known: Known) -> None:
    images, items = len(known.images), len(known.masses)
    if items > images:
        raise BadInput(f"training: an image for each of {items:,} items was needed, but {images:,} came; add the rest")
    if known.groups is not None and len(known.groups) != items:
        raise BadInput(f"training: a group for each of {items:,} items was needed, but {len(known.groups):,} came")
