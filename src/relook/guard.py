"""The guard against silent misalignment: do these probabilities belong to these labels, in this order?

A class in the wrong column, or a row that belongs to another item, raises no error and ruins a ranking. What gives it
away is that another order of columns, or of rows, agrees with the given labels much better. Half of the labels may be
wrong and a model may know nothing: neither is misaligned. An order of columns is refused only where all of this holds
for the items whose classes would move, which are at least one in twenty:

1. On halves of the items that did not choose it, the other order agrees better by more than .10 and five standard
   errors.
2. A column as it stands says next to nothing about its class, while the other one says much: its mean probability where
   the class is given lies above its mean elsewhere, by five times what shuffled labels give.
3. Most items are in classes that find their column, and are found by it, above all others.

Orders of rows are few and need no search: the one that came is refused where another agrees better by more than .10 and
five standard errors (of runs of equal labels, for files that are sorted), and it agrees hardly better than chance.
Where this holds in part, a user is told, and nothing is refused.
"""

from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook.alignment import Matched
from relook.orders import other_orders
from relook.predictions import Predictions
from relook.rng import generator
from relook.sources import Names, counted, listed, whole
from relook.types import FloatArray, IntArray

RISE = 0.10
"""Agreement must rise by more than this before an order is doubted."""

ERRORS = 5.0
"""And by more than so many standard errors."""

MOVED = 0.05
"""Share of the items that must be in moved classes for a refusal; of fewer a user is told."""

REMAINING = 0.10
"""Share of the association that the columns as they stand may keep, and be doubted all the same."""

CLASSES = 1_000
"""Beyond so many classes the columns are not searched: the table of all pairs grows with the square."""

_CELLS, _ITEMS_A_CLASS = 2_000_000, 20


class Doubt(msgspec.Struct, frozen=True, eq=False):
    """Another order of columns or rows, how well it agrees, and whether that is reason enough to refuse what came."""

    kind: Literal["columns", "rows"]
    agreement: float
    sure: bool
    order: IntArray
    words: str


def doubt(both: Matched, seen: Predictions) -> Doubt | None:
    """Return the order of columns or rows that agrees much better than the one that came, if there is one.

    >>> from relook.sources import LabelTable, ProbabilityTable
    >>> from relook.alignment import matched
    >>> from relook.predictions import predictions
    >>> given = np.arange(300) % 3
    >>> p = np.full((300, 3), .1) + .7 * np.eye(3)[(given + 1) % 3]
    >>> both = matched(LabelTable("labels", given), ProbabilityTable("p", p))
    >>> found = doubt(both, predictions(both.labels, both.posteriors))
    >>> found.kind, found.agreement, found.order.tolist()
    ('columns', 1.0, [1, 2, 0])
    """
    found = [_columns(both, seen), _rows(both, seen)]
    sure = [one for one in found if one is not None and one.sure]
    if sure:
        return max(sure, key=lambda one: one.agreement)
    return next((one for one in found if one is not None), None)


def sentence(both: Matched, found: Doubt, *, seen: Predictions) -> str:
    """Return what looks wrong with the order, with the order that agrees better."""
    what = "its columns look permuted" if found.kind == "columns" else "its rows look out of order"
    return (
        f"{both.source}: {what}: the likeliest class is the given one for {seen.agreement():.1%} of the items as they "
        f"stand, but for {found.agreement:.1%} if {found.words}"
    )


def cure(both: Matched, found: Doubt) -> str:
    """Return how the order can be mended."""
    if found.kind == "rows":
        return "bring both files into one order, or give both a column of ids"
    if both.named:
        return "mend the names of its columns"
    order = np.argsort(found.order)
    told = f", or say --classes {','.join(both.classes[k] for k in order)}" if len(order) <= 20 else ""
    return f"put the columns into the order of the classes{told}"


def warnings(both: Matched, seen: Predictions) -> Names:
    """Return what a user should know before trusting a ranking of these: classes without labels, chance, memory."""
    told = []
    has = np.bincount(seen.given[seen.labelled], minlength=len(both.classes))
    nobody = [both.classes[column] for column in np.flatnonzero(has == 0)]
    if nobody:
        told.append(f"No item is labelled {listed(nobody)}: if some should be, the labels or their classes are wrong.")
    unlabelled = len(both) - len(seen.labelled)
    if unlabelled:
        told.append(
            f"{unlabelled:,} of {counted(len(both), 'item')} without a label: they are ranked too, but agree with "
            "nothing."
        )
    agreement, chance, error = seen.agreement(), seen.chance(), seen.chance_error()
    if seen.in_sample():
        told.append(
            f"The probabilities look in-sample: they agree with {agreement:.1%} of the given labels, and surely. "
            "A model that has learnt these labels repeats their mistakes and hides them: predict each item by a model "
            "that was trained without it (cross-validation)."
        )
    elif error > 0 and agreement <= chance + 3 * error:
        told.append(
            f"The likeliest class agrees with the given label no better than chance ({chance:.1%}): either the model "
            "knows nothing, or these are the probabilities of other items. A ranking by them is worth nothing."
        )
    return tuple(told)


class _Sample(msgspec.Struct, frozen=True, eq=False):
    """Labelled items, all or a fair draw of them, with their probabilities: n given labels, n x C."""

    given: IntArray
    values: FloatArray
    likeliest: IntArray

    @property
    def classes(self) -> int:
        return self.values.shape[1]

    def part(self, chosen: NDArray[Any]) -> "_Sample":
        return _Sample(self.given[chosen], self.values[chosen], self.likeliest[chosen])

    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Return how many items each class is given to, and the sums of their probabilities, C x C."""
        order = np.argsort(self.given, kind="stable")
        given = self.given[order]
        starts = np.flatnonzero(np.diff(given, prepend=-1))
        sums = np.zeros((self.classes, self.classes))
        sums[given[starts]] = np.add.reduceat(self.values[order].astype(np.float64), starts, axis=0)
        return np.bincount(given, minlength=self.classes).astype(np.float64), sums

    def association(self, order: IntArray) -> tuple[float, float]:
        """Return the mean probability of the given label's column above chance, and that in standard deviations.

        The deviation is the exact one under shuffled labels.
        """
        items, values = len(self.given), self.values[:, order].astype(np.float64)
        shares = np.bincount(self.given, minlength=self.classes) / items
        column, row = values.mean(0), values @ shares
        chance = float(column @ shares)
        excess = float(values[np.arange(items), self.given].mean()) - chance
        centred = values - column - row[:, np.newaxis] + chance
        variance = float((centred**2).mean(0) @ shares) / max(items - 1, 1)
        return excess, excess / max(float(np.sqrt(variance)), 1e-12)


def _columns(both: Matched, seen: Predictions) -> Doubt | None:
    """Return the order of columns that agrees better, by the three conditions above."""
    if len(both.classes) > CLASSES:
        return None
    sample = _sample(both, seen)
    counts, sums = sample.sums()
    order = _best_order(counts, sums)
    moved = order != np.arange(len(order))
    if not moved.any():
        return None
    inside, rise = moved[sample.given], _rise_on_halves(sample)
    if not inside.any() or not _clear(rise[inside]):
        return None
    as_came, _ = sample.part(inside).association(np.arange(len(order)))
    as_moved, errors = sample.part(inside).association(order)
    if errors < ERRORS:
        return None
    convincing = as_came <= REMAINING * as_moved and _found_share(counts, sums, order=order) >= 0.5
    if not (convincing or _clear(rise)):
        return None
    agreement = float((seen.likeliest[seen.labelled] == order[seen.given[seen.labelled]]).mean())
    sure = convincing and float(inside.mean()) >= MOVED
    return Doubt("columns", agreement, sure=sure, order=order, words=_moves(both.classes, order))


def _sample(both: Matched, seen: Predictions) -> _Sample:
    items = seen.labelled
    most = max(_ITEMS_A_CLASS * len(both.classes), _CELLS // len(both.classes))
    if len(items) > most:
        items = np.sort(generator(0, "guard").choice(items, most, replace=False))
    values = both.posteriors.values[:, items]
    return _Sample(seen.given[items], values[0] if len(values) == 1 else values.mean(0), seen.likeliest[items])


def _best_order(counts: FloatArray, sums: FloatArray) -> IntArray:
    """Return the column for each class that brings most probability above chance to the given labels."""
    above = sums - np.outer(counts, sums.sum(0) / counts.sum())
    own = np.diag(above)
    if (own[:, np.newaxis] >= above).all():
        return np.arange(len(own))
    from scipy.optimize import linear_sum_assignment

    found: IntArray = linear_sum_assignment(above, maximize=True)[1]
    return found


def _rise_on_halves(sample: _Sample) -> FloatArray:
    """Return 1, 0 or -1 an item: what an order found on the other half of the items does to its agreement."""
    even = np.arange(len(sample.given)) % 2 == 0
    rise = -(sample.likeliest == sample.given).astype(np.float64)
    for half in (even, ~even):
        if half.any() and not half.all():
            order = _best_order(*sample.part(~half).sums())
            rise[half] += sample.likeliest[half] == order[sample.given[half]]
    return rise


def _clear(rise: FloatArray) -> bool:
    return bool(rise.mean() > max(RISE, ERRORS * float(rise.std()) / np.sqrt(len(rise))))


def _found_share(counts: FloatArray, sums: FloatArray, *, order: IntArray) -> float:
    """Return the share of the moved items whose class and column find each other above all others."""
    classes = np.arange(len(order))
    above = sums / np.maximum(counts, 1)[:, np.newaxis] - sums.sum(0) / counts.sum()
    own, other = above[classes, classes], above[classes, order]
    found = (other >= above.max(1)) & (other >= above[:, order].max(0)) & (other > 3 * own)
    moved = order != classes
    return float(counts[found & moved].sum() / counts[moved].sum())


def _moves(classes: Names, order: IntArray) -> str:
    if len(order) == 2:
        return "the two columns are swapped"
    if (order == np.arange(len(order))[::-1]).all():
        return "the columns are taken in reverse"
    moved = np.flatnonzero(order != np.arange(len(order)))
    named = "column {}" if whole(classes) else "column {} ({})"
    return listed([f"{named.format(order[k], classes[order[k]])} is {classes[k]}" for k in moved], 10)


def _rows(both: Matched, seen: Predictions) -> Doubt | None:
    """Return the order of rows that agrees better, if the rows as they stand agree little better than chance."""
    labelled = seen.labelled
    given, chance, error = seen.given[labelled], seen.chance(), seen.chance_error()
    right = seen.likeliest[labelled] == given
    above = float(right.mean()) - chance
    if above > max(3 * error, REMAINING * (1 - chance)):
        return None
    best: Doubt | None = None
    for other in other_orders(both, seen.given):
        there = seen.likeliest[other.rows[labelled]] == given
        agreement = float(there.mean())
        # An order made from the labels suits the predictions of any sorted file. An honest one shows in labels that
        # agree above chance; but of two classes half may be wrong, and then they agree with nothing.
        by_half = other.by_label and len(both.classes) == 2
        may_remain = error if by_half else max(3 * error, (not other.by_label) * REMAINING * (agreement - chance))
        rise = there.astype(np.float64) - right
        clear = rise.mean() > max(RISE, ERRORS * _error_of_runs(rise, given))
        if clear and above <= may_remain and (best is None or agreement > best.agreement):
            best = Doubt("rows", agreement, sure=not by_half, order=other.rows, words=other.words)
    return best


def _error_of_runs(rise: FloatArray, given: IntArray) -> float:
    """Return the standard error of a mean whose items come in runs of one label, as in a sorted file."""
    starts = np.flatnonzero(np.diff(given, prepend=-1))
    runs = np.add.reduceat(rise - rise.mean(), starts)
    plain = float(rise.std()) / np.sqrt(len(rise))
    return max(plain, float(np.sqrt((runs**2).sum())) / len(rise))
