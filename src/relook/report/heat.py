"""Confusion of classes as heat maps: the diagonal stays pale, since what is mixed up is what one looks for."""

from collections.abc import Sequence

import numpy as np

from relook.figures import mixed_up, row_shares
from relook.report.markup import THIN, Cell, Column, count, figure, percent, plural, signed, table, text
from relook.runs import Matrix
from relook.types import FloatArray

DRAWN = 20
"""Up to so many classes a heat map is drawn; with more, only the commonest pairs are told."""

_STRONGEST = 0.62
_SPAN, _LEFT, _TOP = 340, 74, 62
_READABLE = 15


def heat_map(
    matrix: Matrix, classes: Sequence[str], *, name: str, most: float, axes: tuple[str, str] = ("true", "label")
) -> str:
    """Return one heat map: true classes down, labels across, cells as shares of their row; `most` is the full colour.

    `axes` names what stands down and what stands across, where it is something else.
    """
    size = _SPAN / len(classes)
    down = f'<text class="title end" x="{_LEFT - 6}" y="{_TOP - 6}">{text(axes[0])} \u2193</text>'
    across = f'<text class="title" x="{_LEFT}" y="10">{text(axes[1])} \u2192</text>'
    inside = _headings(classes, size=size) + down + across + _cells(row_shares(matrix), size=size, most=most)
    called = f"{name[0].upper()}{name[1:]}: {plural(float(np.sum(matrix)), 'item')}"
    words = f"Heat map, {name}: shares of each row. {_in_words(matrix, classes)}"
    drawing = f'<svg class="heat" viewBox="0 0 420 408" width="420" height="408" aria-hidden="true">{inside}</svg>'
    return figure(drawing, words=words, caption="", title=called)


def strongest(*matrices: Matrix) -> float:
    """Return the largest share off the diagonal, which gets the full colour in all maps."""
    shares = [row_shares(matrix) for matrix in matrices]
    return max(float((each - np.diag(np.diag(each))).max()) for each in shares) or 1.0


def commonest(
    given: Matrix,
    final: Matrix | None,
    *,
    classes: Sequence[str],
    policy: str = "",
    headings: tuple[str, str, str] = ("True class", "Wrong label", "given"),
) -> str:
    """Return a table of the pairs of classes that were mixed up most, before and, where `final` is known, after."""
    rows = []
    for true, label, before, after in mixed_up(given, final):
        cells = [Cell(classes[label], number=False), Cell(count(before))]
        if after is not None:
            cells += [Cell(count(after)), Cell(signed(100 * (after / before - 1), 0) + THIN + "%")]
        rows.append((text(classes[true]), cells))
    caption = "The pairs that differ most often, in items" + ("" if final is None else "; left: mean over seeds")
    columns = [Column(headings[0], number=False), Column(headings[1], number=False), Column(headings[2])]
    if final is not None:
        columns += [Column("left", f"with {policy}"), Column("change")]
    return table(columns, {"": rows}, caption=caption) if rows else ""


def _headings(classes: Sequence[str], *, size: float) -> str:
    parts = ""
    for place, name in enumerate(classes):
        shown = text(name if len(name) <= 11 else name[:10] + "\u2026")
        middle = (place + 0.5) * size
        x, y = _LEFT + middle, _TOP - 6
        parts += f'<text class="end" x="{_LEFT - 6}" y="{_TOP + middle + 4:.1f}">{shown}</text>'
        parts += f'<text x="{x:.1f}" y="{y}" transform="rotate(-40 {x:.1f} {y})">{shown}</text>'
    return parts


def _cells(shares: FloatArray, *, size: float, most: float) -> str:
    parts = ""
    for (true, label), value in np.ndenumerate(shares):
        share = float(value)
        x, y = _LEFT + label * size, _TOP + true * size
        kind, strength = ("same", 1.0) if true == label else ("cell", _STRONGEST * min(share / most, 1))
        box = f'x="{x:.1f}" y="{y:.1f}" width="{size - 1:.1f}" height="{size - 1:.1f}"'
        parts += f'<rect class="{kind}" {box} fill-opacity="{strength:.3f}"/>'
        if size >= _READABLE and share >= 0.005:
            middle = f'x="{x + size / 2 - 0.5:.1f}" y="{y + size / 2 + 4:.1f}"'
            parts += f'<text class="middle" {middle}>{100 * share:.0f}</text>'
    return parts


def _in_words(matrix: Matrix, classes: Sequence[str]) -> str:
    shares = row_shares(matrix)
    same = ", ".join(f"{name} {percent(float(shares[place, place]), 0)}" for place, name in enumerate(classes))
    pairs = ", ".join(
        f"{classes[true]} as {classes[label]} {percent(float(shares[true, label]), 0)}"
        for true, label, _, _ in mixed_up(matrix, None, most=5)
    )
    return f"The same: {same}. Mixed up most: {pairs or 'none'}."
