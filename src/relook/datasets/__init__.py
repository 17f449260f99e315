"""Data sets by name: `load("digits")`, `load("cifar10h", folder)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relook.collection import GIVEN, NUMBER, Collection, Form
from relook.datasets import cifar10, cifar10h, cifar10n, digits, medmnist, noisy_cxr
from relook.errors import BadInput
from relook.published import FOLDER, data_folder
from relook.types import Dataset

__all__ = ["EMBEDDED", "FOLDER", "IN_FOLDER", "NAMES", "ArrayPictures", "collected", "collection", "load"]

EMBEDDED: Mapping[str, Callable[..., Dataset]] = MappingProxyType({"digits": digits.load})
"""Data sets that come with relook's own dependencies."""

IN_FOLDER: Mapping[str, Callable[..., Dataset]] = MappingProxyType(
    {
        "cifar10": cifar10.load,
        "cifar10h": cifar10h.load,
        "cifar10n": cifar10n.load,
        "chestmnist": medmnist.chest,
        "noisy_cxr": noisy_cxr.load,
        "pneumoniamnist": medmnist.pneumonia,
    }
)
"""Data sets whose files lie in the user's folder, in the layout of their publishers."""

NAMES = (*EMBEDDED, *IN_FOLDER)
"""Data sets that are asked for by their names."""

ANSWERED: Mapping[str, Callable[[Path], Collection]] = MappingProxyType(
    {"cifar10h": cifar10h.collection, "cifar10n": cifar10n.collection, "noisy_cxr": noisy_cxr.collection}
)
"""Data sets of which more is known than a label an item: who answered what, or what labels were made of."""


def load(name: str, folder: str | Path | None = None, *, settings: Mapping[str, Any] | None = None) -> Dataset:
    """Return a data set by its name; `settings` are the keywords of its own `load`.

    The folder falls back to the environment variable RELOOK_DATA.

    >>> len(load("digits", settings={"rate": 0.1}))
    1797
    """
    chosen = dict(settings or {})
    if name in EMBEDDED:
        _check_settings(EMBEDDED[name], chosen, name=name)
        return EMBEDDED[name](**chosen)
    if name not in NAMES:
        known = ", ".join(sorted(NAMES))
        raise BadInput(f"dataset: one of {known} was needed, but {name!r} came; pass arrays for a set of your own")
    _check_settings(IN_FOLDER[name], chosen, name=name)
    return IN_FOLDER[name](data_folder(folder, what=f"dataset {name}"), **chosen)


def collection(name: str, folder: str | Path | None = None, *, settings: Mapping[str, Any] | None = None) -> Collection:
    """Return a data set with the single answers of people where they are known, else with its given labels.

    >>> collection("digits").ids[:2].to_list()
    ['0', '1']
    """
    if name in ANSWERED and not settings:
        return ANSWERED[name](data_folder(folder, what=f"dataset {name}"))
    return collected(load(name, folder, settings=settings))


def collected(dataset: Dataset) -> Collection:
    """Return a data set as a collection: its given labels, images, features, texts and groups.

    >>> found = collected(load("digits"))
    >>> found.content, found.labels().given[:3].tolist() == load("digits").given.given[:3].tolist()
    ('images', True)
    """
    import polars as pl

    columns: dict[str, Any] = {"id": pl.Series(list(dataset.ids), dtype=pl.String)}
    if dataset.features is not None:
        columns |= {f"{NUMBER}{column}": dataset.features[:, column] for column in range(dataset.features.shape[1])}
    columns |= {"text": dataset.texts} if dataset.texts is not None else {}
    columns |= {"group": dataset.groups} if dataset.groups is not None else {}
    items, labels = np.nonzero(dataset.given.given_counts)
    single = dataset.given.given.ndim == 1
    who = pl.Series([GIVEN if single else None] * len(items), dtype=pl.String)
    named = [dataset.classes[label] for label in labels]
    answers = pl.DataFrame({"item": items, "annotator": who, "label": named})
    if not single:
        answers = answers.with_columns(count=dataset.given.given_counts[items, labels])
    return Collection(
        source=dataset.name,
        form=Form("published", "items" if single else "counts"),
        classes=dataset.classes,
        ids=columns["id"],
        items=pl.DataFrame(columns).lazy(),
        answers=answers,
        pictures=None if dataset.images is None else ArrayPictures(dataset.images),
    )


class ArrayPictures:
    """Images of a data set, written out as PNG when they are imported, named after the item's number."""

    __slots__ = ("_images",)

    def __init__(self, images: Sequence[NDArray[np.uint8]]) -> None:
        self._images = images

    def write(self, item: int, folder: Path) -> Sequence[str]:
        """Write an item's image and return the name of its file."""
        from PIL import Image

        name = f"{item:06d}.png"
        Image.fromarray(np.asarray(self._images[item])).save(folder / name)
        return [name]


def _check_settings(loader: Callable[..., Dataset], settings: Mapping[str, Any], *, name: str) -> None:
    parts = [part for part in inspect.signature(loader).parameters.values() if part.kind is part.KEYWORD_ONLY]
    unknown = sorted(set(settings) - {part.name for part in parts})
    if unknown:
        known = ", ".join(part.name for part in parts)
        raise BadInput(f"dataset {name}: its settings are {known}, but {unknown[0]!r} came; leave it out")
    missing = [part.name for part in parts if part.default is part.empty and part.name not in settings]
    if missing:
        raise BadInput(f"dataset {name}: the setting {missing[0]!r} was needed, but it did not come; say it")
