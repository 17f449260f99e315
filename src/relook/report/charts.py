"""Lines with bands as SVG: drawn twice, for a desk and for a phone, with names at the ends of the lines."""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from relook.figures import Line, Style, share_marks, short, spread, thinned, ticks, zero_marks
from relook.report.markup import attributes, count, figure, percent, text
from relook.types import FloatArray


class Size(msgspec.Struct, frozen=True):
    """The measures of a drawing in its own units; names at the lines' ends have at most so many letters."""

    width: int
    height: int
    left: int
    points: int
    letters: int = 17
    top: int = 28
    bottom: int = 40
    gap: int = 16
    numbers: bool = True


WIDE = Size(780, 430, 52, 400)
NARROW = Size(380, 330, 44, 200, letters=14, numbers=False)

_SAMPLE, _LETTER, _NUMBER = 26, 7.9, 50


class Axis(msgspec.Struct, frozen=True):
    """The upright axis: what it counts, its marks from the lowest to the highest, and how numbers are written.

    `written` is for the marks, `exact` for where a line ends.
    """

    title: str
    marks: tuple[float, ...]
    written: Callable[[float], str] = count
    exact: Callable[[float], str] = count

    @property
    def low(self) -> float:
        """The lowest mark."""
        return self.marks[0]

    @property
    def high(self) -> float:
        """The highest mark."""
        return self.marks[-1]


class _Place(msgspec.Struct, frozen=True):
    """Where numbers lie in a drawing."""

    size: Size
    axis: Axis
    answers: int
    names: float

    @property
    def right(self) -> float:
        """Where the lines end and their names begin."""
        return self.size.width - self.names

    def x(self, answers: ArrayLike) -> FloatArray:
        inner = self.right - self.size.left
        return self.size.left + np.asarray(answers, np.float64) / max(self.answers, 1) * inner

    def y(self, values: ArrayLike) -> FloatArray:
        inner = self.size.height - self.size.top - self.size.bottom
        span = max(self.axis.high - self.axis.low, 1e-12)
        return self.size.top + (self.axis.high - np.asarray(values, np.float64)) / span * inner


def share_axis(drawn: Sequence[Line]) -> Axis:
    """Return an axis for shares that are correct: from a round number below all lines to 100 %."""
    marks = share_marks(drawn)
    digits = 0 if marks[-1] - marks[-2] >= 0.01 else 1
    return Axis("labels correct", marks, lambda share: percent(share, digits), percent)


def zero_axis(title: str, drawn: Sequence[Line], *, exact: Callable[[float], str] = count) -> Axis:
    """Return an axis from zero to a round number above all lines."""
    return Axis(title, zero_marks(drawn), lambda value: f"{value:,.10g}", exact)


def line_figure(lines: Sequence[Line], axis: Axis, *, name: str, caption: str, size: Size | None = None) -> str:
    """Return a figure of lines: of one size, or of two of which the page shows the one that fits."""
    if size is not None:
        drawing = line_chart(lines, axis, size=size)
    else:
        drawing = f'<div class="wide">{line_chart(lines, axis, size=WIDE)}</div>'
        drawing += f'<div class="narrow">{line_chart(lines, axis, size=NARROW)}</div>'
    return figure(drawing, words=in_words(lines, axis, name=name), caption=caption)


def line_chart(lines: Sequence[Line], axis: Axis, *, size: Size) -> str:
    """Return the lines as one SVG."""
    longest = max(len(short(line.policy, size.letters)) for line in lines)
    names = _SAMPLE + _LETTER * longest + (_NUMBER if size.numbers else 0)
    place = _Place(size, axis, max(int(line.answers[-1]) for line in lines), round(names))
    parts = [_grid(place), *(_band(line, place) for line in lines), *(_path(line, place) for line in lines)]
    return _svg(size, [*parts, _names(lines, place)])


def in_words(lines: Sequence[Line], axis: Axis, *, name: str) -> str:
    """Say in words where each line begins and ends."""
    told = []
    for line in reversed(lines):
        between = ""
        if line.interval:
            between = f" (95 % interval {axis.exact(float(line.low[-1]))} to {axis.exact(float(line.high[-1]))})"
        begin, end = axis.exact(float(line.mean[0])), axis.exact(line.end)
        told.append(f"{line.policy}: {begin} at first, {end}{between} after {count(int(line.answers[-1]))} answers.")
    return f"Line chart, {name}. " + " ".join(told)


def _points(line: Line, values: FloatArray, *, place: _Place) -> list[str]:
    kept = thinned(len(line.answers), place.size.points)
    across, down = place.x(line.answers[kept]), place.y(values[kept])
    return [f"{x:.1f} {y:.1f}" for x, y in zip(across.tolist(), down.tolist(), strict=True)]


def _svg(size: Size, parts: Sequence[str]) -> str:
    box = f"0 0 {size.width} {size.height}"
    return f'<svg viewBox="{box}" width="{size.width}" height="{size.height}" aria-hidden="true">{"".join(parts)}</svg>'


def _grid(place: _Place) -> str:
    size, axis = place.size, place.axis
    right, base = place.right, size.height - size.bottom
    parts = [f'<text class="title" x="0" y="12">{text(axis.title)}</text>']
    for value in axis.marks:
        y = float(place.y(value))
        kind = "base" if value == axis.low else "grid"
        parts.append(f'<path class="{kind}" d="M{size.left} {y:.1f}H{right}"/>')
        parts.append(f'<text class="end" x="{size.left - 8}" y="{y + 4:.1f}">{text(axis.written(value))}</text>')
    for value in ticks(0, place.answers, most=6 if size.width > 500 else 4):
        x = float(place.x(value))
        parts.append(f'<path class="base" d="M{x:.1f} {base}v5"/>')
        parts.append(f'<text class="middle" x="{x:.1f}" y="{base + 19}">{text(count(value))}</text>')
    parts.append(f'<text class="title end" x="{right}" y="{size.height - 2}">answers</text>')
    return "".join(parts)


def sample(style: Style) -> str:
    """Return a bit of line in a policy's look, to stand before its name."""
    box = 'class="sample" viewBox="0 0 24 10" width="24" height="10" aria-hidden="true"'
    return f'<svg {box}><path{_look(style)} d="M0 5h24"/></svg>'


def _look(style: Style) -> str:
    dash = " ".join(map(str, style.dash)) or None
    return attributes({"class": f"line c{style.colour}", "stroke-dasharray": dash})


def _band(line: Line, place: _Place) -> str:
    if not line.interval:
        return ""
    outline = [*_points(line, line.high, place=place), *reversed(_points(line, line.low, place=place))]
    return f'<path class="band c{line.style.colour}" d="M{"L".join(outline)}Z"/>'


def _path(line: Line, place: _Place) -> str:
    return f'<path{_look(line.style)} d="M{"L".join(_points(line, line.mean, place=place))}"/>'


def _names(lines: Sequence[Line], place: _Place) -> str:
    """Write each line's name and last value beside its end; names that would overlap are moved apart."""
    # A line that reaches the top early has room for its name there; every other name stands in the margin.
    inside = [line for line in lines if _done_early(line, place)]
    outside = sorted((line for line in lines if line not in inside), key=lambda line: -line.end)
    wanted = [float(place.y(line.end)) for line in outside]
    heights = spread(wanted, gap=place.size.gap, low=10, high=place.size.height - place.size.bottom + 4)
    parts = [_name(line, place, y=y) for line, y in zip(outside, heights, strict=True)]
    for line in inside:
        x, y = float(place.x(line.answers[-1])), float(place.y(line.end)) - 8
        named = text(short(line.policy, place.size.letters))
        parts.append(f'<text class="name middle" x="{x:.1f}" y="{y:.1f}">{named}</text>')
    return "".join(parts)


def _done_early(line: Line, place: _Place) -> bool:
    return bool(line.answers[-1] < 0.85 * place.answers and place.y(line.end) < place.size.top + 4)


def _name(line: Line, place: _Place, *, y: float) -> str:
    right = place.right
    x, end = float(place.x(line.answers[-1])), float(place.y(line.end))
    leader = f'<path class="leader" d="M{x + 2:.1f} {end:.1f}L{right + 8} {y:.1f}"/>'
    drawn = f'<path{_look(line.style)} d="M{right + 8} {y:.1f}h14"/>'
    # On a phone there is no room for numbers; they stand in the table.
    value = f'<tspan class="value"> {text(place.axis.exact(line.end))}</tspan>' if place.size.numbers else ""
    named = text(short(line.policy, place.size.letters))
    label = f'<text class="name" x="{right + _SAMPLE}" y="{y + 4:.1f}">{named}{value}</text>'
    return leader + drawn + label
