"""What selectors on features share: comparable tables, targets, folds by a seed, and what a result says of itself.

A selector takes one table of features, N x D, or several as a tuple. Each column is brought to mean 0 and deviation 1;
then each table is scaled so that all of them vary as much in sum, whatever their widths: none drowns the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol

import msgspec
import numpy as np

from relook import folds as cutting
from relook.calibration import calibration
from relook.checks import as_array
from relook.discriminants import ROWS
from relook.errors import BadInput
from relook.rng import generator
from relook.rules import as_record
from relook.types import FloatArray, IntArray, Labels, Posteriors, one_hot

Features = FloatArray | tuple[FloatArray, ...]
"""One table, N x D, or several of the same items."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """How labels are taken for targets.

    Of an item that several people have answered the label that stands is learnt, or each class by its share of the
    `votes`. An answered item counts `answered_weight` times; with `learns_from` answered nothing else counts at all.
    """

    targets: Literal["majority", "votes"] = "majority"
    answered_weight: float = 1.0
    learns_from: Literal["all", "answered"] = "all"

    def __post_init__(self) -> None:
        if not 0 < self.answered_weight < np.inf:
            raise BadInput(
                f"targets: an answered item must count more than 0 times, but {self.answered_weight} came; 1 is usual"
            )


Targets = Literal["majority", "votes"] | Taken
"""What is learnt of an item that several people have answered, in a word or in all that can be said of it."""

LARGE = 2e10
"""A product of so many multiplications gains from a second thread; smaller ones wait for it on a busy machine."""


class Selector(Protocol):
    """Makes class probabilities from features and labels, each item by models that never saw it or its group."""

    def __call__(
        self, features: Features, labels: Labels, *, groups: Sequence[str] | None = None, seed: int = 0
    ) -> Posteriors:
        """Return the posteriors."""
        ...


def standardised(features: Features, *, items: int) -> tuple[FloatArray, ...]:
    """Return each table with columns of mean 0 and deviation 1, in 32 bits; constant columns become zero.

    >>> [table.tolist() for table in standardised((np.array([[1.0, 5.0], [3.0, 5.0]]),), items=2)]
    [[[-1.0, 0.0], [1.0, 0.0]]]
    """
    tables = features if isinstance(features, tuple) else (features,)
    if not tables:
        raise BadInput("features: one table or several were needed, but an empty tuple came; pass N x D numbers")
    return tuple(_standardised(_checked(table, items=items)) for table in tables)


def joined(tables: Sequence[FloatArray]) -> FloatArray:
    """Return standardised tables side by side, scaled so that the squares of each have the same sum a row, on average.

    >>> joined([np.array([[1.0], [-1.0]]), np.array([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]])]).round(2).tolist()
    [[1.41, 0.82, 0.82, 0.82], [-1.41, -0.82, -0.82, -0.82]]
    """
    if len(tables) == 1:
        return tables[0]
    width = sum(table.shape[1] for table in tables)
    return np.hstack([table * (width / (len(tables) * table.shape[1])) ** 0.5 for table in tables])


def targets(labels: Labels, kind: Targets) -> tuple[IntArray, FloatArray]:
    """Return each item's class (-1: it teaches nothing) and how much it counts for each class, N x C.

    >>> both = Labels([0, 1], 2, answers=[[0, 3], [0, 0]])
    >>> targets(both, "majority")[1].tolist(), targets(both, "votes")[1].tolist()
    ([[0.0, 1.0], [0.0, 1.0]], [[0.25, 0.75], [0.0, 1.0]])
    >>> targets(both, Taken(answered_weight=3))[1].tolist(), targets(both, Taken(learns_from="answered"))[0].tolist()
    ([[0.0, 3.0], [0.0, 1.0]], [1, -1])
    """
    taken = kind if isinstance(kind, Taken) else Taken(targets=kind)
    if taken.targets == "votes":
        target, shares = labels.majority(), labels.distribution().astype(np.float32)
    else:
        target = labels.label()
        shares = one_hot(target, labels.classes).astype(np.float32)
    answered = np.zeros(len(labels), bool) if labels.answers is None else labels.answers.sum(1) > 0
    if taken.learns_from == "answered":
        target, shares = np.where(answered, target, -1), shares * answered[:, np.newaxis]
    if taken.answered_weight != 1:
        shares[answered] *= taken.answered_weight
    return target, shares


def taking(selector: Any, taken: Taken) -> Any:
    """Return a selector, or the mean of several, that takes labels so.

    >>> from relook.selectors import named
    >>> taking(named("lda"), Taken(answered_weight=3.0)).targets.answered_weight
    3.0
    """
    if hasattr(selector, "members"):
        return msgspec.structs.replace(selector, members=tuple(taking(each, taken) for each in selector.members))
    return msgspec.structs.replace(selector, targets=taken)


def cuts(target: IntArray, *, folds: int, repeats: int, groups: Sequence[str] | None, seed: int) -> list[IntArray]:
    """Return as many ways to cut the folds as there are repeats; all selectors of one seed share them."""
    return [
        cutting.cut(target, folds=folds, rng=generator(seed, "folds", repeat), groups=groups)
        for repeat in range(repeats)
    ]


def check_settings(selector: str, *, folds: int, repeats: int) -> None:
    """Refuse folds and repeats that cannot be."""
    if folds < 2:
        raise BadInput(f"{selector}: at least 2 folds were needed, but {folds} came; 5 is usual")
    if repeats < 1:
        raise BadInput(f"{selector}: at least 1 repeat was needed, but {repeats} came; 1 is usual")


def check_classes(target: IntArray) -> None:
    """Refuse labels of one class alone."""
    seen = np.unique(target[target >= 0])
    if len(seen) < 2:
        came = f"all labelled items are of class {seen[0]}" if len(seen) else "no item is labelled"
        raise BadInput(f"labels: two classes were needed to learn from, but {came}; label items of another")


def told(
    values: FloatArray, labels: Labels, *, selector: Any, groups: Sequence[str] | None = None, seed: int = 0
) -> Posteriors:
    """Return out-of-sample posteriors that say what made them: a record, the labels' hash, groups, seed, calibration.

    >>> told(np.array([[0.5, 0.5]]), Labels([0], 2), selector=len).about["calibration"]["agreement"]
    1.0
    """
    plain = Posteriors(values)
    measured = calibration(plain, labels)
    return Posteriors(
        plain.values,
        about=_about(labels, selector=selector, groups=groups, seed=seed)
        | {"calibration": {field: getattr(measured, field) for field in measured.__struct_fields__}},
    )


def told_in_sample(values: FloatArray, labels: Labels, *, selector: Any) -> Posteriors:
    """Return posteriors of models that saw these very items, marked so; how well they fit says nothing."""
    return Posteriors(values, in_sample=True, about=_about(labels, selector=selector, groups=None, seed=0))


@contextmanager
def threads(multiplications: float) -> Iterator[None]:
    """Use one thread where products are small: a second gains little there, and on a busy machine they wait for it."""
    if multiplications > LARGE:
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def _about(labels: Labels, *, selector: Any, groups: Sequence[str] | None, seed: int) -> dict[str, Any]:
    return {
        "selector": selector if isinstance(selector, dict) else as_record(selector),
        "labels": labels.fingerprint(),
        "answers": 0 if labels.answers is None else int(labels.answers.sum()),
        "groups": None if groups is None else len(set(groups)),
        "seed": seed,
    }


def _checked(features: FloatArray, *, items: int) -> FloatArray:
    table = as_array(features, "features")
    if table.ndim != 2 or table.shape[1] == 0 or table.dtype.kind not in "fiu":
        raise BadInput(
            f"features: N x D numbers were needed, but {table.dtype} of shape {table.shape} came; one row an item"
        )
    if len(table) != items:
        raise BadInput(
            f"features: {items} items have labels, but {len(table)} have features; pass those of the same items"
        )
    finite = np.isfinite(table).all(1)
    if not finite.all():
        row = int((~finite).argmax())
        raise BadInput(f"features: each number must be finite, but item {row} holds NaN or an infinity; embed it again")
    return table


def _standardised(table: FloatArray) -> FloatArray:
    centre, spread = table.mean(0, dtype=np.float64), table.std(0, dtype=np.float64)
    # A column that varies by no more than its rounding says nothing: it becomes zero.
    scale = np.where(spread > 1e-6 * np.abs(centre), spread, np.inf)
    made = np.empty(table.shape, np.float32)
    for low in range(0, len(table), ROWS):
        made[low : low + ROWS] = (table[low : low + ROWS] - centre) / scale
    return made
