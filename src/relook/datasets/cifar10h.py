"""CIFAR-10H: the 10,000 test images of CIFAR-10 with about 51 human answers each (Peterson et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from relook import cifar, npfiles
from relook.cifar import CLASSES
from relook.collection import Collection, Form
from relook.curves import difficult
from relook.errors import BadInput
from relook.noise import paper_code_labels
from relook.published import PUBLISHED
from relook.publishers import Kind, sheet
from relook.sources import Names, counted
from relook.types import Dataset, FloatArray, IntArray, Labels, true_distribution

if TYPE_CHECKING:
    import polars as pl

_ROW = "cifar10_test_test_idx"
"""What the publisher calls the column of rows of the test set."""

_ITEMS, _PAPER_ITEMS, _PAPER_SEED = 10_000, 5_000, 1234


def load(folder: str | Path, *, subset: str = "all", tau: float = 10.0, images: str | Path | None = None) -> Dataset:
    """Return CIFAR-10H with the given labels that the paper's released code draws at a temperature.

    The subset `all` is the test set in its order; `paper` is the 5,000 items that the released code really uses: every
    difficult one and a fixed draw of the others, in its order. Ids are rows of the CIFAR-10 test set. tau 2 and 10 are
    the paper's 15 % and 30 % noise. `images` is a folder with CIFAR-10 in one of its
    layouts (`relook.cifar`); they are read when asked for.
    """
    counts = _counts(Path(folder))
    truth = true_distribution(counts, len(CLASSES))
    if subset == "all":
        rows: IntArray = np.arange(_ITEMS)
        given = _labels_of_all(truth, tau)
    elif subset == "paper":
        rows = paper_rows(truth)
        given = paper_code_labels(truth[rows], tau)
    else:
        raise BadInput(
            f"cifar10h: the subset must be all or paper, but {subset!r} came; paper is the paper's 5,000 images"
        )
    return Dataset(
        name="cifar10h" if subset == "all" else f"cifar10h-{subset}",
        classes=CLASSES,
        ids=tuple(str(row) for row in rows),
        given=Labels(given, len(CLASSES)),
        truth=counts[rows].astype(np.float64),
        images=None if images is None else cast("Sequence[Any]", _images(Path(images), rows, truth=truth)),
    )


def paper_rows(truth: FloatArray) -> IntArray:
    """Return the 5,000 rows of the test set that the paper's released code uses, in its order.

    All difficult items, then a draw of the rest by `RandomState(1234)`, then a shuffle by the same one.
    """
    random = np.random.RandomState(_PAPER_SEED)
    hard = difficult(truth)
    kept, rest = np.flatnonzero(hard), np.flatnonzero(~hard)
    rows = np.concatenate([kept, random.choice(rest, _PAPER_ITEMS - len(kept), replace=False)])
    random.shuffle(rows)
    return rows


def _labels_of_all(truth: FloatArray, tau: float) -> IntArray:
    # The released code permutes the full set before it draws. The labels are its own; the order stays the publisher's,
    # so that arrays made elsewhere for the test set fit row by row.
    order = np.random.RandomState(_PAPER_SEED).permutation(len(truth))
    given = np.empty(len(truth), np.int64)
    given[order] = paper_code_labels(truth[order], tau)
    return given


def _counts(folder: Path) -> IntArray:
    path = PUBLISHED["cifar10h"].needed(folder, "cifar10h-counts.npy")
    counts = npfiles.single(path).numbers()
    if counts.shape != (_ITEMS, len(CLASSES)) or counts.dtype.kind not in "iu":
        came = f"{counts.dtype} of shape {counts.shape}"
        raise BadInput(f"cifar10h: {path} must hold 10000 x 10 counts, but {came} came; get it again")
    return counts


def collection(folder: Path) -> Collection:
    """Return the answers of people: each with its annotator and seconds where `cifar10h-raw.csv` is, else as counts.

    Ids are rows of the test set. Attention checks, which show no image of it, are left out and counted.
    """
    import polars as pl

    path = PUBLISHED["cifar10h"].place(folder, "cifar10h-raw.csv")
    if path is None:
        counts = _counts(folder)
        items, labels = np.nonzero(counts)
        answers = pl.DataFrame(
            {
                "item": items,
                "annotator": pl.Series([None] * len(items), dtype=pl.String),
                "label": [CLASSES[label] for label in labels],
                "count": counts[items, labels],
            }
        )
        path = PUBLISHED["cifar10h"].needed(folder, "cifar10h-counts.npy")
        form = Form("npy", "counts")
        facts: Names = ("Answers are counted: who gave which is not known.",)
    else:
        answers, facts = _single_answers(path)
        form = Form("csv", "answers", {"item": _ROW, "annotator": "annotator_id", "label": "chosen_category"})
    ids = pl.Series("id", [str(row) for row in range(_ITEMS)])
    items_table = pl.DataFrame([ids]).lazy()
    return Collection(
        source=str(path), form=form, classes=CLASSES, ids=ids, items=items_table, answers=answers, facts=facts
    )


def _single_answers(path: Path) -> tuple[pl.DataFrame, Names]:
    import polars as pl

    kinds: dict[str, Kind] = dict.fromkeys(("is_attn_check", _ROW), "whole")
    table = sheet(path, kinds | {"annotator_id": "text", "chosen_category": "text", "reaction_time": "number"})
    shown = table.filter(pl.col("is_attn_check") == 0)
    if not shown[_ROW].is_between(0, _ITEMS - 1).all():
        raise BadInput(
            f"{path}: rows of the test set, 0 to {_ITEMS - 1:,}, were needed in column {_ROW}, but others came; "
            "get the file again"
        )
    seconds = pl.when(pl.col("reaction_time") > 0).then(pl.col("reaction_time") / 1000)
    answers = shown.select(item=_ROW, annotator="annotator_id", label="chosen_category", seconds=seconds)
    checks, unknown = table.height - shown.height, int(answers["seconds"].null_count())
    facts = (f"{counted(checks, 'attention check')} left out.",)
    return answers, facts + ((f"{counted(unknown, 'time')} below 0: taken as unknown.",) if unknown else ())


def _images(folder: Path, rows: IntArray, *, truth: FloatArray) -> cifar.Picked:
    images = cifar.images(folder, "test")
    # People agree with the official label on 99 % of the images: anything much below is another order or another set.
    agreement = float((images.labels == truth.argmax(1)).mean())
    if agreement < 0.9:
        raise BadInput(
            f"cifar10h: the images' labels should agree with the answers, but only {agreement:.0%} do; "
            "are they the test images in their official order?"
        )
    return cifar.Picked(images, rows)
