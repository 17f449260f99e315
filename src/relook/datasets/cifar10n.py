"""CIFAR-10N: the 50,000 training images of CIFAR-10 with three human answers each (Wei et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from relook import cifar, npfiles
from relook.cifar import CLASSES
from relook.collection import KEPT, Collection, Form
from relook.errors import BadInput
from relook.pickledfiles import unpickled
from relook.published import PUBLISHED
from relook.publishers import Kind, sheet
from relook.sources import Names
from relook.types import Dataset, IntArray, Labels, one_hot

if TYPE_CHECKING:
    import polars as pl

ITEMS, ANSWERS, BATCH = 50_000, 3, 10
"""Images, answers an image, and images that a person was shown at a time."""

GIVEN: Mapping[str, str] = MappingProxyType(
    {
        "aggregate": "aggre_label",
        "worst": "worse_label",
        **{f"random{number}": f"random_label{number}" for number in range(1, ANSWERS + 1)},
    }
)
"""What can be taken as the given label, and what the publisher calls it; `answers` takes all three."""

_SET = PUBLISHED["cifar10n"]
_LABELS, _SIDE, _ORDER = (file.name for file in _SET.files)


def load(folder: str | Path, *, label: str = "aggregate", images: str | Path | None = None) -> Dataset:
    """Return CIFAR-10N in the order of CIFAR-10's training set, with the official labels as the truth.

    The given label is `aggregate` (the majority of the three answers; 9 % wrong), `worst` (40 %), `random1` to
    `random3` (one answer each; 17 to 18 %), or `answers`: all three, as counts. Ids are rows of the training set.
    `images` is a folder with CIFAR-10 in one of its layouts.
    """
    found = _labels(Path(folder))
    if label == "answers":
        given: IntArray = sum(one_hot(found[name], len(CLASSES)) for name in _each())  # type: ignore[assignment]
    elif label in GIVEN:
        given = found[GIVEN[label]]
    else:
        known = ", ".join([*GIVEN, "answers"])
        raise BadInput(f"cifar10n: the given label must be one of {known}, but {label!r} came; name one of them")
    return Dataset(
        name="cifar10n" if label == "aggregate" else f"cifar10n-{label}",
        classes=CLASSES,
        ids=tuple(str(row) for row in range(ITEMS)),
        given=Labels(given, len(CLASSES)),
        truth=cast("Any", found["clean_label"]),
        images=None if images is None else cast("Sequence[Any]", _images(Path(images), found["clean_label"])),
    )


def collection(folder: Path) -> Collection:
    """Return three answers an image with who gave them, and the seconds they took: a tenth of those for the batch.

    `image_order_c10.npy` says which training images a batch of ten showed. Without the file of annotators and times,
    answers are nobody's in particular.
    """
    import polars as pl

    found = _labels(folder)
    people, facts = _people(folder)
    numbers = np.concatenate([found[name] for name in _each()])
    answers = pl.DataFrame({"item": np.tile(np.arange(ITEMS), ANSWERS), **people}).with_columns(
        label=pl.Series([CLASSES[number] for number in numbers])
    )
    names = ("clean_label", *GIVEN.values())
    kept = {f"{KEPT}{name}": [CLASSES[number] for number in found[name]] for name in names}
    items = pl.DataFrame({"id": [str(row) for row in range(ITEMS)], **kept})
    return Collection(
        source=str(_SET.needed(folder, _LABELS)),
        form=Form("csv", "answers"),
        classes=CLASSES,
        ids=items["id"],
        items=items.lazy(),
        answers=answers,
        facts=facts,
    )


def _each() -> list[str]:
    return [GIVEN[f"random{number}"] for number in range(1, ANSWERS + 1)]


def _labels(folder: Path) -> dict[str, IntArray]:
    path = _SET.needed(folder, _LABELS)
    found = unpickled(path)
    for name in ("clean_label", *GIVEN.values()):
        values = found.get(name)
        if not isinstance(values, np.ndarray) or values.shape != (ITEMS,) or values.dtype.kind not in "iu":
            came = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else "none"
            raise BadInput(f"cifar10n: {path} must hold {ITEMS:,} numbers as {name}, but {came} came; get it again")
        bad = (values < 0) | (values >= len(CLASSES))
        if bad.any():
            row = int(bad.argmax())
            raise BadInput(
                f"cifar10n: {path} must hold classes 0 to 9 as {name}, but row {row:,} has {values[row]}; get it again"
            )
        found[name] = values.astype(np.int64)
    return found


def _people(folder: Path) -> tuple[dict[str, Any], Names]:
    """Return who gave each answer and in how many seconds, the first answers of all images first, and what was done."""
    import polars as pl

    rows = ITEMS * ANSWERS
    if _SET.place(folder, _SIDE) is None:
        who = {"annotator": pl.Series([None] * rows, dtype=pl.String)}
        return who, (f"There is no {_SIDE}: who gave an answer, and how long it took, is not known.",)
    names = [(f"Worker{number}-id", f"Work-time-in-seconds-{number}") for number in range(1, ANSWERS + 1)]
    kinds: dict[str, Kind] = {name: "text" for name, _ in names}
    kinds |= {name: "number" for _, name in names}
    path = _SET.needed(folder, _SIDE)
    table = sheet(path, {"Image-batch": "text", **kinds})
    _check_batches(table, path)
    order = _order(folder)
    annotators, seconds = np.empty((ANSWERS, ITEMS), object), np.empty((ANSWERS, ITEMS))
    for answer, (worker, time) in enumerate(names):
        annotators[answer, order] = np.repeat(table[worker].to_numpy(), BATCH)
        seconds[answer, order] = np.repeat(table[time].to_numpy() / BATCH, BATCH)
    people = {"annotator": pl.Series(annotators.ravel().tolist(), dtype=pl.String), "seconds": seconds.ravel()}
    return people, (
        f"Seconds are a {BATCH}th of what a batch of {BATCH} images took.",
        "Who gave which of an image's three answers is the publisher's word: nothing in the answers confirms it.",
    )


def _check_batches(table: pl.DataFrame, path: Path) -> None:
    """Refuse a table whose rows are not the batches, in their order."""
    wanted = [f"{first}--{first + BATCH - 1}" for first in range(0, ITEMS, BATCH)]
    came = table["Image-batch"].to_list()
    if came != wanted:
        least = min(len(came), len(wanted))
        row = next((row for row, (one, other) in enumerate(zip(came, wanted, strict=False)) if one != other), least)
        what = repr(came[row]) if row < least else f"{len(came):,} rows"
        raise BadInput(
            f"{path}, line {row + 2}: batches of ten images in their order were needed, {len(wanted):,} of them, but "
            f"{what} came; get the file again"
        )


def _order(folder: Path) -> IntArray:
    path = _SET.needed(folder, _ORDER)
    order = npfiles.single(path).numbers()
    sound = order.shape == (ITEMS,) and order.dtype.kind in "iu"
    if not sound or not np.array_equal(np.sort(order), np.arange(ITEMS)):
        raise BadInput(
            f"cifar10n: {path} must hold each of {ITEMS:,} rows once, but {order.dtype} of shape {order.shape} came, "
            "or a row twice; get it again"
        )
    return order


def _images(folder: Path, labels: IntArray) -> cifar.Images:
    images = cifar.images(folder, "train")
    if not np.array_equal(images.labels, labels):
        row = int((images.labels != labels).argmax())
        raise BadInput(
            f"cifar10n: the images' labels must be the official ones of the answers, but row {row:,} differs; "
            "are they the training images in their official order?"
        )
    return images
