"""Networks on a data set: its images as one block of bytes, what is known of their labels, and a recipe run on both."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook.errors import BadInput, MissingExtra
from relook.types import Dataset, FloatArray, Posteriors

if TYPE_CHECKING:
    from relook.train.recipe import Made, Recipe


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How networks are trained: by a recipe, over so many folds (0: in sample; None: as the recipe has it), on a device.

    `folder` keeps what a training has reached, so that one that was stopped goes on; `kept` holds the networks of the
    training before and its own, for one that starts warm.
    """

    recipe: str
    folds: int | None = None
    device: str = "cpu"
    folder: str | None = None


class Kept(msgspec.Struct, frozen=True):
    """Folders of networks: of the training that is gone on from, and of this one."""

    last: Path | None = None
    own: Path | None = None


def check_torch(what: str) -> None:
    """Refuse to train networks where torch is not installed."""
    from importlib.util import find_spec

    for part in ("torch", "safetensors"):
        if find_spec(part) is None:
            raise MissingExtra(f"{what}: {part} was needed, but it is not installed; run pip install 'relook[train]'")


def recipe_of(settings: Settings) -> Recipe:
    """Return the recipe that settings name, over as many folds as they say."""
    check_torch(f"recipe {settings.recipe}")
    from relook.train.recipes import recipe

    found = recipe(settings.recipe)
    return found if settings.folds is None else dataclasses.replace(found, folds=settings.folds)


def posteriors(
    dataset: Dataset, masses: FloatArray, *, settings: Settings, seed: int = 0, kept: Kept | None = None
) -> Posteriors:
    """Return what a recipe makes of a data set's images, when each item counts for each class as its masses say."""
    found = recipe_of(settings)
    from relook.train.loop import Place
    from relook.train.parts import Shelf, Work
    from relook.train.recipe import Known, made

    images = pixels(dataset)
    place = Place(settings.device, None if settings.folder is None else Path(settings.folder))
    shelf = Shelf() if kept is None else Shelf(kept.last, kept.own)
    work = Work(_tensor(images), seed=seed, place=place, shelf=shelf)
    return told(made(found, Known(work.images, masses, dataset.groups), work=work), found)


def told(made: Made, recipe: Recipe) -> Posteriors:
    """Return what was made as posteriors, which say the recipe and its folds."""
    from relook.train.recipe import described

    about = {"selector": described(recipe), "folds": recipe.folds, "in_sample": made.in_sample}
    return Posteriors(made.values, in_sample=made.in_sample, about=about)


def pixels(dataset: Dataset) -> NDArray[np.uint8]:
    """Return the images of a data set, N x channels x H x W bytes; grey ones have one channel."""
    if dataset.images is None:
        raise BadInput(
            f"{dataset.name}: images were needed to train a network, but the set has none; name a folder with them, or "
            "take --method logistic"
        )
    return stacked(dataset.images, where=dataset.name)


def stacked(images: Sequence[Any], *, where: str) -> NDArray[np.uint8]:
    """Return images of one size as one block, N x channels x H x W.

    >>> stacked([np.zeros((2, 3), np.uint8)] * 4, where="dots").shape
    (4, 1, 2, 3)
    """
    first = np.asarray(images[0])
    block = np.empty((len(images), *_channels_first(first).shape), np.uint8)
    for item in range(len(images)):
        image = np.asarray(images[item])
        if image.shape != first.shape:
            raise BadInput(
                f"{where}: images of one size were needed, but item 0 is {_size(first)} and item {item} {_size(image)}; "
                "bring them to one size"
            )
        if image.dtype != np.uint8:
            raise BadInput(f"{where}: images of bytes were needed, but item {item} is {image.dtype}; save it with 8 bits")
        block[item] = _channels_first(image)
    return block


def _channels_first(image: NDArray[Any]) -> NDArray[Any]:
    return image[np.newaxis] if image.ndim == 2 else image.transpose(2, 0, 1)


def _size(image: NDArray[Any]) -> str:
    return " x ".join(map(str, image.shape))


def _tensor(images: NDArray[np.uint8]) -> Any:
    import torch

    return torch.from_numpy(images)
