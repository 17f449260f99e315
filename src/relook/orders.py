"""Orders in which the rows of files are often saved, beside the one in which they came."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from relook.alignment import Matched
from relook.types import IntArray


class Order(msgspec.Struct, frozen=True, eq=False):
    """An order of rows in words, with the row of probabilities that it pairs with each item."""

    words: str
    rows: IntArray
    by_label: bool = False


def other_orders(both: Matched, given: IntArray) -> list[Order]:
    """Return the orders that differ from the one that came."""
    items = np.arange(len(both))
    if both.joined == "id":
        return _order_of_the_file(both)
    names = np.argsort(np.argsort(np.array(both.classes)))
    by_class = np.lexsort((items, np.where(given >= 0, names[given], -1)))
    orders = [
        Order("they are sorted by class, as folders of images are", _inverse(by_class), by_label=True),
        Order("they are taken in reverse", items[::-1]),
        Order("they begin one row too early", np.roll(items, -1)),
        Order("they begin one row too late", np.roll(items, 1)),
        *_orders_by_name(both),
    ]
    return [order for order in orders if not (order.rows == items).all()]


def _orders_by_name(both: Matched) -> list[Order]:
    if both.ids is None:
        # Files called 0.png to 9.png, or 1.png to 10.png, and listed by name.
        keys = [("the row numbers as text (0, 1, 10, 2)", _sorted([str(row) for row in range(len(both))]))]
        keys += [("the row numbers as text (1, 10, 2)", _sorted([str(row + 1) for row in range(len(both))]))]
    else:
        keys = [("their ids as text (1, 10, 2)", _sorted(both.ids))]
        keys += [("their ids as numbers (1, 2, 10)", _sorted([_natural(name) for name in both.ids]))]
    orders = [Order(f"they are sorted by {what}", _inverse(order)) for what, order in keys]
    return orders + [Order(f"the labels are sorted by {what}", order) for what, order in keys]


def _order_of_the_file(both: Matched) -> list[Order]:
    rows = both.file_rows
    if rows is None or not (np.sort(rows) == np.arange(len(rows))).all() or (rows == np.arange(len(rows))).all():
        return []
    # Item i is paired with the row that stands at place i in the file, whatever its id.
    return [Order("they are joined by order: the ids do not belong to their rows", _inverse(rows))]


def _inverse(order: IntArray) -> IntArray:
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return inverse


def _sorted(keys: Sequence[Any]) -> IntArray:
    return np.array(sorted(range(len(keys)), key=keys.__getitem__))


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key by which numbers inside names sort as numbers."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
