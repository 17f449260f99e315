"""A first model of a set from what comes with it: embeddings, numbers, text, or the small pictures of its images.

None of it was learnt elsewhere, so it knows little of pictures; embeddings of a good network make a better ranking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook import selectors
from relook.calibration import Calibration
from relook.errors import BadInput
from relook.heads import Selector
from relook.imported import Imported
from relook.selectors import texts
from relook.sources import counted
from relook.types import Dataset, FloatArray, Labels, Posteriors

WORDS: Mapping[str, str] = MappingProxyType(
    {"Lda": "linear discriminants", "Logistic": "logistic regression", "Knn": "nearest neighbours"}
)
"""What selectors are called in a sentence, by their records' names."""

SIDE = 16
"""Pixels along a side of the small pictures that a model of images looks at."""


def predicted(
    dataset: Dataset,
    *,
    embeddings: FloatArray | tuple[FloatArray, ...] | None = None,
    selector: Selector | None = None,
    seed: int = 0,
) -> Posteriors:
    """Return out-of-sample class probabilities of every item, by the usual selector or the one that is asked for.

    Several embeddings are joined; an item that has not all of them is predicted by how common the classes are.

    >>> from relook.datasets import digits
    >>> predicted(digits.load()).about["features"]
    'the numbers of the items'
    """
    return fitted_to(dataset, features(dataset, embeddings=embeddings, seed=seed), selector=selector, seed=seed)


def fitted_to(
    dataset: Dataset, described: tuple[tuple[FloatArray, ...], str], *, selector: Selector | None = None, seed: int = 0
) -> Posteriors:
    """Return what `predicted` does from numbers that are there already: what `features` returned."""
    tables, what = described
    model = selectors.named(selectors.FULL) if selector is None else selector
    known = np.logical_and.reduce([np.isfinite(table).all(axis=1) for table in tables])
    if not known.any():
        raise BadInput(f"{dataset.name}: embeddings of its items were needed, but all are missing; join them anew")
    lost = int((~known).sum())
    if not lost:
        found = model(tables, dataset.given, groups=dataset.groups, seed=seed)
        return msgspec.structs.replace(found, about=found.about | {"features": what})
    groups = None if dataset.groups is None else [dataset.groups[item] for item in np.flatnonzero(known).tolist()]
    part = model(tuple(table[known] for table in tables), _of(dataset.given, known), groups=groups, seed=seed)
    given = dataset.given.label()
    # Of an item without an embedding nothing is known but how common its class is.
    shares = np.bincount(given[given >= 0], minlength=dataset.given.classes) / max((given >= 0).sum(), 1)
    values = np.tile(shares, (len(dataset), 1))
    values[known] = part.mean()
    return Posteriors(values, about=part.about | {"features": what, "without": lost})


def sentence(found: Posteriors) -> str:
    """Return in words what posteriors were made from, and how well they fit the given labels.

    >>> from relook.datasets import digits
    >>> sentence(predicted(digits.load(), selector=selectors.named("lda")))
    'Out of sample, 5 folds: linear discriminants on the numbers of the items. Agrees with ...'
    """
    about = found.about
    made, folds = _words(about["selector"]), _folds(about["selector"])
    together = " that keep groups together" if about["groups"] is not None else ""
    told = f"Out of sample, {folds}{together}: {made} on {about['features']}."
    if about.get("without"):
        lost = counted(about["without"], "item")
        told += f" {lost} without an embedding: predicted by how common the classes are."
    return f"{told} {Calibration(**about['calibration']).sentence()}"


def _words(record: dict[str, Any]) -> str:
    if "members" not in record:
        return WORDS.get(record["name"], record["name"])
    members = [_words(member) for member in record["members"]]
    return f"the mean of {', '.join(members[:-1])} and {members[-1]}" if members[1:] else members[0]


def _folds(record: dict[str, Any]) -> str:
    """Return how items were kept out of the models that predict them."""
    found = [each for each in (record, *record.get("members", ())) if "folds" in each]
    if not found:
        return "no item with a vote on itself"
    folds, repeats = found[0]["folds"], found[0]["repeats"]
    return f"{folds} folds" if repeats == 1 else f"{repeats} times {folds} folds"


def _of(labels: Labels, known: NDArray[np.bool_]) -> Labels:
    """Return the labels of some items."""
    answers, came = (None if part is None else part[known] for part in (labels.answers, labels.came_with))
    return Labels(labels.given[known], labels.classes, answers, came)


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


def features(
    dataset: Dataset, *, embeddings: FloatArray | tuple[FloatArray, ...] | None = None, seed: int = 0
) -> tuple[tuple[FloatArray, ...], str]:
    """Return numbers that describe each item, tables of N x D, and in words what they are; embeddings go before all.

    >>> from relook.datasets import digits
    >>> features(digits.load())[0][0].shape
    (1797, 64)
    """
    if embeddings is not None:
        tables = embeddings if isinstance(embeddings, tuple) else (embeddings,)
        joined = f"{len(tables)} embeddings joined" if len(tables) > 1 else "the embeddings that came along"
        return tuple(np.asarray(table) for table in tables), joined
    if dataset.features is not None:
        return (np.asarray(dataset.features),), "the numbers of the items"
    if dataset.texts is not None:
        return (texts.described(dataset.texts, seed=seed),), "pieces of the words of the texts"
    if dataset.images is not None:
        return (_of_images(dataset.images),), f"the pixels of pictures of {SIDE} x {SIDE}"
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
