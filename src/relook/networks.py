"""Networks on a data set: its images as one block of bytes, what is known of their labels, and a recipe run on both."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook import heads
from relook.errors import BadInput, MissingExtra
from relook.sources import counted
from relook.types import Dataset, FloatArray, Posteriors
from relook.unlabelled import further

if TYPE_CHECKING:
    from relook.train.recipe import Recipe


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How networks are trained: by a recipe, over so many folds, on a device.

    With 0 folds items are predicted in sample, with None as the recipe has it. `folder` keeps what a training has
    reached, so that one that was stopped goes on. `unlabelled` names further images to learn from without labels
    (`relook.unlabelled`), which may lie in the folder `data`.
    """

    recipe: str | None = None
    folds: int | None = None
    device: str = "cpu"
    folder: str | None = None
    unlabelled: str | None = None
    data: str | None = None


PLAIN = Settings()
"""Our own recipe of a method, on the processor."""


class Kept(msgspec.Struct, frozen=True):
    """Folders of networks: of the training that is gone on from, and of this one."""

    last: Path | None = None
    own: Path | None = None


NOTHING_KEPT = Kept()
"""Every training begins anew, and leaves nothing."""

BY_RECIPE = "ssl"
"""The method that stands for whatever a recipe is of, where a recipe alone is named."""

METHODS = ("vanilla", "coteaching", "elr", "dropout", "ssl", "ssl-linear", "ssl-finetune", "ssl-coteaching")
"""Methods that train networks; each has recipes of its name."""


def check_torch(what: str) -> None:
    """Refuse to train networks where torch is not installed."""
    from importlib.util import find_spec

    for part in ("torch", "safetensors"):
        if find_spec(part) is None:
            raise MissingExtra(f"{what}: {part} was needed, but it is not installed; run pip install 'relook[train]'")


def recipe_of(settings: Settings) -> Recipe:
    """Return the recipe that settings name, over as many folds as they say."""
    name = settings.recipe or ""
    check_torch(f"recipe {name}")
    from relook.train.recipes import recipe

    found = recipe(name)
    return found if settings.folds is None else dataclasses.replace(found, folds=settings.folds)


def posteriors(
    dataset: Dataset, masses: FloatArray, *, settings: Settings, seed: int = 0, kept: Kept = NOTHING_KEPT
) -> Posteriors:
    """Return what a recipe makes of a data set's images, when each item counts for each class as its masses say."""
    found = recipe_of(settings)
    from relook.train.loop import Place
    from relook.train.parts import Shelf, Work
    from relook.train.recipe import Known, described, made, tensor

    images = pixels(dataset)
    more = further(_unlabelled(settings, found, dataset=dataset), dataset, folder=settings.data)
    if more:
        images = np.concatenate([images, stacked([dataset.images[0], *more], where="unlabelled images")[1:]])  # type: ignore[index]
    place = Place(settings.device, None if settings.folder is None else Path(settings.folder))
    work = Work(tensor(images), seed=seed, place=place, shelf=Shelf(kept.last, kept.own))
    told = made(found, Known(work.images, masses, dataset.groups), work=work)
    if told.in_sample:
        return heads.told_in_sample(told.values, dataset.given, selector=described(found))
    return heads.told(told.values, dataset.given, selector=described(found), groups=dataset.groups, seed=seed)


def sentence(found: Posteriors) -> str:
    """Return in words what a recipe's posteriors were made by.

    >>> sentence(Posteriors([[0.5, 0.5]], about={"selector": {"name": "tiny", "folds": 2}}))
    'Out of sample, 2 folds: recipe tiny, 1 model.'
    """
    recipe = found.about["selector"]
    models = counted(found.models, "model")
    if found.in_sample:
        return f"In sample, as the models saw these very labels: recipe {recipe['name']}, {models}."
    return f"Out of sample, {recipe['folds']} folds: recipe {recipe['name']}, {models}."


def _unlabelled(settings: Settings, recipe: Recipe, *, dataset: Dataset) -> str:
    """Return the name of further images: those asked for, else those that a recipe of CIFAR-10 was chosen with."""
    if settings.unlabelled is not None:
        return settings.unlabelled
    return recipe.unlabelled if dataset.name.startswith("cifar10h") else ""


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
            came = f"item 0 is {_size(first)} and item {item} {_size(image)}"
            raise BadInput(f"{where}: images of one size were needed, but {came}; bring them to one size")
        if image.dtype != np.uint8:
            raise BadInput(f"{where}: 8 bits a pixel were needed, but item {item} is {image.dtype}; save it so")
        block[item] = _channels_first(image)
    return block


def _channels_first(image: NDArray[Any]) -> NDArray[Any]:
    return image[np.newaxis] if image.ndim == 2 else image.transpose(2, 0, 1)


def _size(image: NDArray[Any]) -> str:
    return " x ".join(map(str, image.shape))
