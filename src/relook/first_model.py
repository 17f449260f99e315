"""A first model of a set from what comes with it: embeddings, numbers, text, or the small pictures of its images.

None of it was learnt elsewhere, so it knows little of pictures; embeddings of a good network make a better ranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relook.errors import BadInput
from relook.imported import Imported
from relook.selectors.logistic import Logistic
from relook.selectors.texts import described
from relook.sources import counted
from relook.types import Dataset, FloatArray, Labels, Posteriors

SIDE = 16
"""Pixels along a side of the small pictures that a model of images looks at."""


def predicted(dataset: Dataset, *, embeddings: FloatArray | None = None, seed: int = 0) -> tuple[Posteriors, str]:
    """Return out-of-sample class probabilities of every item, and in a sentence what they were made from.

    >>> from relook.datasets import digits
    >>> predicted(digits.load())[1]
    'Out of sample, 5 folds: logistic regression on the numbers of the items.'
    """
    found, what = features(dataset, embeddings=embeddings, seed=seed)
    known: NDArray[np.bool_] = np.asarray(np.isfinite(found).all(axis=1))
    if not known.any():
        raise BadInput(f"{dataset.name}: embeddings of its items were needed, but all are missing; join them anew")
    given = dataset.given.majority()
    labels = Labels(np.where(known, given, -1), dataset.given.classes)
    model = Logistic()
    posteriors = model(np.where(known[:, np.newaxis], found, 0), labels, groups=dataset.groups, seed=seed)
    folds = f"{model.folds} folds" + (" that keep groups together" if dataset.groups is not None else "")
    sentence = f"Out of sample, {folds}: logistic regression on {what}."
    if known.all():
        return posteriors, sentence
    # Of an item without an embedding nothing is known but how common its class is.
    shares = np.bincount(given[given >= 0], minlength=labels.classes) / max((given >= 0).sum(), 1)
    values = np.where(known[:, np.newaxis], posteriors.mean(), shares)
    lost = counted(int((~known).sum()), "item")
    return Posteriors(values), f"{sentence} {lost} without an embedding: predicted by how common the classes are."


def came_along(found: Imported, split: str | None = None) -> Posteriors | None:
    """Return the probabilities that a set was imported with, or None; what is not known of an item is not made up."""
    came = found.vectors("probabilities", split)
    if came is None:
        return None
    values = np.asarray(came)
    lost = np.isnan(values).any(1)
    if lost.any():
        raise BadInput(
            f"probabilities: a row for each item was needed, but {counted(int(lost.sum()), 'item')} have none, item "
            f"{int(lost.argmax())} first; predict them, or import the set without"
        )
    return Posteriors(values)


def features(dataset: Dataset, *, embeddings: FloatArray | None = None, seed: int = 0) -> tuple[FloatArray, str]:
    """Return numbers that describe each item, N x D, and in words what they are; embeddings go before all else.

    >>> from relook.datasets import digits
    >>> features(digits.load())[0].shape
    (1797, 64)
    """
    if embeddings is not None:
        return np.asarray(embeddings, np.float64), "the embeddings that came along"
    if dataset.features is not None:
        return np.asarray(dataset.features, np.float64), "the numbers of the items"
    if dataset.texts is not None:
        return described(dataset.texts, seed=seed), "pieces of the words of the texts"
    if dataset.images is not None:
        return _of_images(dataset.images), f"the pixels of pictures of {SIDE} x {SIDE}"
    raise BadInput(
        f"{dataset.name}: class probabilities were needed, but the set holds names alone, nothing to fit a model to; "
        "import it with --embeddings or --probabilities"
    )


def _of_images(images: Sequence[Any]) -> FloatArray:
    from PIL import Image

    rows = np.empty((len(images), SIDE * SIDE * 3), np.float32)
    for item in range(len(images)):
        small = Image.fromarray(np.asarray(images[item])).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX)
        rows[item] = np.asarray(small, np.float32).ravel()
    return rows / 255
