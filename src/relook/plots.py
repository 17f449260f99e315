"""The figures of a simulation as PNG or SVG files, for papers and slides: what the page shows, drawn by matplotlib.

The name of a file says its kind by its ending. Equal runs make equal files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from relook.errors import BadInput
from relook.figures import (
    LIGHT,
    Line,
    Style,
    leading,
    lines,
    minimal,
    row_shares,
    share_marks,
    short,
    spread,
    zero_marks,
)
from relook.runs import Matrix, Runs, Shelf, Tile, replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = (".png", ".svg")
"""What files can be."""

_INK, _SOFT, _RULE, _GIVEN = "#1a1f25", "#535c68", "#dfe3e8", LIGHT[2]
_DPI = 160
_TILE = (1.04, 1.72)
"""Width and height of a picture with its words, in inches."""

_RULES: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": _INK,
    "axes.edgecolor": _SOFT,
    "axes.labelcolor": _SOFT,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": _RULE,
    "xtick.color": _SOFT,
    "ytick.color": _SOFT,
    "ytick.major.size": 0,
    # Names inside an SVG are hashes: with a salt of their own they do not change from run to run.
    "svg.hashsalt": "relook",
}


class _Panel(msgspec.Struct, frozen=True):
    """Lines in one frame: what they show, the marks of the upright axis, and how its numbers are written."""

    title: str
    drawn: Sequence[Line]
    marks: Sequence[float]
    written: Callable[[float], str]


def cleaning_curves(path: Path, runs: Runs, *, title: str = "labels correct") -> None:
    """Draw the share of labels that are correct, answer by answer, with bands and bounds."""
    straight = minimal(runs)
    drawn = [*([] if straight is None else [straight]), *lines(runs)]
    with _figure(path, (7.6, 4.3)) as figure:
        panel = _Panel(title, drawn, share_marks(drawn), lambda share: f"{100 * share:.1f} %")
        _draw(figure.add_axes((0.075, 0.11, 0.905 - _names_width(drawn) / 7.6, 0.77)), panel)


def noise_left(path: Path, runs: Runs) -> None:
    """Draw the wrong labels left, on clear and on difficult items."""
    with _figure(path, (9.6, 3.6)) as figure:
        for place, (quantity, name) in enumerate((("clear_left", "clear"), ("difficult_left", "difficult"))):
            drawn = lines(runs, quantity)
            title = f"wrong labels left on {name} items"
            panel = _Panel(title, drawn, zero_marks(drawn), lambda count: f"{count:,.0f}")
            _draw(figure.add_axes((0.055 + 0.505 * place, 0.13, 0.435 - _names_width(drawn) / 9.6, 0.74)), panel)


def total_variation(path: Path, runs: Runs) -> None:
    """Draw the total variation between votes and true distributions, answer by answer."""
    drawn = lines(runs, "total_variation")
    with _figure(path, (7.6, 4.3)) as figure:
        panel = _Panel("total variation", drawn, zero_marks(drawn), lambda value: f"{value:.3f}")
        _draw(figure.add_axes((0.075, 0.11, 0.905 - _names_width(drawn) / 7.6, 0.77)), panel)


def noise_pattern(path: Path, runs: Runs) -> None:
    """Draw which classes the given labels mix up, for all and for difficult items."""
    _heat_maps(path, runs, matrices=runs.extra.given, called="given labels")


def confusion(path: Path, runs: Runs, *, policy: str | None = None) -> None:
    """Draw which classes are mixed up after a policy's last answer, for all and for difficult items."""
    named = policy or leading(runs)
    outcome = runs.extra.outcomes.get(named)
    _heat_maps(path, runs, matrices={} if outcome is None else outcome.confusion, called=f"after {named}")


def gallery(path: Path, shelves: Sequence[Shelf], *, classes: Sequence[str]) -> None:
    """Draw parts of a ranking as rows of pictures, with what is known of each."""
    widest = max((len(shelf.tiles) for shelf in shelves), default=0)
    if not widest:
        raise BadInput("gallery: at least one picture was needed, but none came; make it on a set with images")
    width, height = 1 / widest, 1 / len(shelves)
    with _figure(path, (_TILE[0] * widest, _TILE[1] * len(shelves))) as figure:
        for row, shelf in enumerate(shelves):
            bottom = 1 - (row + 1) * height
            title = bottom + height * (1 - 0.03 / _TILE[1])
            figure.text(0.05 * width, title, shelf.title, va="top", weight="bold", size=9)
            if shelf.wrong is not None:
                told = f"{100 * shelf.wrong:.0f} % of its labels are wrong"
                figure.text(1.3 * width, title, told, va="top", size=8, color=_SOFT)
            for column, tile in enumerate(shelf.tiles):
                _tile(figure, tile, box=((column + 0.05) * width, bottom, width, height), classes=classes)


def write_figures(folder: Path, runs: Runs, *, kinds: Sequence[str] = KINDS) -> list[Path]:
    """Write every figure that the runs have something to show for, and return the files."""
    drawn: list[tuple[str, Callable[[Path], None]]] = [
        ("cleaning-curves", lambda path: cleaning_curves(path, runs)),
        ("noise-left", lambda path: noise_left(path, runs)),
        ("total-variation", lambda path: total_variation(path, runs)),
    ]
    if runs.extra.given:
        drawn.append(("noise-pattern", lambda path: noise_pattern(path, runs)))
    if leading(runs) in runs.extra.outcomes:
        drawn.append(("confusion", lambda path: confusion(path, runs)))
    if runs.extra.gallery:
        drawn.append(("gallery", lambda path: gallery(path, runs.extra.gallery, classes=runs.extra.classes)))
    paths = []
    for name, draw in drawn:
        for kind in kinds:
            paths.append(folder / f"{name}{kind}")
            draw(paths[-1])
    return paths


@contextmanager
def _figure(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    """Yield an empty figure in the house style and write it when it is drawn."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if path.suffix not in KINDS:
        raise BadInput(f"figure: a file ending in {' or '.join(KINDS)} was needed, but {path.name} came; rename it")
    with mpl.rc_context(_RULES):
        figure = Figure(figsize=size, dpi=_DPI)
        FigureCanvasAgg(figure)
        yield figure
        buffer = BytesIO()
        undated = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        figure.savefig(buffer, format=path.suffix[1:], metadata=undated)
    replace_file(path, buffer.getvalue())


def _draw(axes: Axes, panel: _Panel) -> None:
    for line in panel.drawn:
        colour, width = LIGHT[line.style.colour], 1.3 if line.style.colour == 0 else 1.9
        if line.interval:
            axes.fill_between(line.answers, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(line.answers, line.mean, color=colour, linewidth=width, linestyle=_dashes(line.style))
    last = max(float(line.answers[-1]) for line in panel.drawn)
    axes.set_xlim(0, max(last, 1))
    axes.set_ylim(panel.marks[0], panel.marks[-1])
    # Marks are rounder than ends: "70 %", not "70.0 %".
    axes.set_yticks(panel.marks, [panel.written(mark).replace(".0 %", " %") for mark in panel.marks])
    axes.set_title(panel.title, pad=20, color=_INK)
    axes.set_xlabel("answers", loc="right")
    axes.xaxis.set_major_formatter(lambda answers, _: f"{answers:,.0f}")
    _name_ends(axes, panel, last=last)


def _names_width(drawn: Sequence[Line]) -> float:
    """Return how many inches the names at the ends of the lines need, with their numbers."""
    return 0.95 + 0.072 * max(len(short(line.policy)) for line in drawn)


def _dashes(style: Style) -> Any:
    return (0, tuple(dash * 0.55 for dash in style.dash)) if style.dash else "solid"


def _name_ends(axes: Axes, panel: _Panel, *, last: float) -> None:
    """Write each line's name and last value beside the axes, apart from each other, with a sample of its look."""
    low, high = axes.get_ylim()
    early = [line for line in panel.drawn if line.answers[-1] < 0.85 * last and line.end > high - 0.01 * (high - low)]
    for line in early:
        axes.annotate(
            short(line.policy), (float(line.answers[-1]), line.end), (0, 4), textcoords="offset points", ha="center"
        )
    ends = sorted((line for line in panel.drawn if line not in early), key=lambda line: line.end)
    inch = _DPI / axes.bbox.width
    gap = 13 * (high - low) / (axes.bbox.height * 72 / _DPI)
    place = axes.get_yaxis_transform()
    for line, y in zip(ends, spread([line.end for line in ends], gap=gap, low=low, high=high), strict=True):
        look: dict[str, Any] = {"color": LIGHT[line.style.colour], "linestyle": _dashes(line.style), "clip_on": False}
        axes.plot([1 + 0.06 * inch, 1 + 0.27 * inch], [y, y], transform=place, linewidth=1.6, **look)
        named = f"{short(line.policy)}  {panel.written(line.end)}"
        axes.text(1 + 0.33 * inch, y, named, transform=place, va="center", size=9)
    axes.set_ylim(low, high)


def _heat_maps(path: Path, runs: Runs, *, matrices: dict[str, Matrix], called: str) -> None:
    if not matrices:
        raise BadInput(f"confusion, {called}: counts of labels by class were needed, but the runs hold none")
    classes = runs.extra.classes or tuple(str(number) for number in range(len(next(iter(matrices.values())))))
    with _figure(path, (9.6, 4.5)) as figure:
        for place, (part, matrix) in enumerate(matrices.items()):
            axes = figure.add_axes((0.085 + 0.5 * place, 0.03, 0.40, 0.76))
            _heat_map(axes, row_shares(matrix), classes=classes)
            axes.set_title(f"{part} items, {called}", pad=8)


def _heat_map(axes: Axes, shares: Any, *, classes: Sequence[str]) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    apart = np.where(np.eye(len(shares), dtype=bool), np.nan, shares)
    colours = LinearSegmentedColormap.from_list("apart", ["#ffffff", "#6c9ece"]).with_extremes(bad="#eceff2")
    axes.imshow(apart, cmap=colours, vmin=0, vmax=max(float(np.nanmax(apart)), 1e-9) if len(shares) > 1 else 1)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    numbers = range(len(classes))
    axes.set_xticks(numbers, [short(name, 12) for name in classes], rotation=40, ha="left", rotation_mode="anchor")
    axes.set_yticks(numbers, [short(name, 12) for name in classes])
    axes.tick_params(length=0, labelsize=8 if len(classes) <= 12 else 6, top=True, labeltop=True, labelbottom=False)
    if len(classes) > 20:
        return
    for (true, label), share in np.ndenumerate(shares):
        if share >= 0.005:
            axes.text(label, true, f"{100 * share:.0f}", ha="center", va="center", size=8 if len(classes) <= 12 else 6)


def _tile(figure: Figure, tile: Tile, *, box: tuple[float, float, float, float], classes: Sequence[str]) -> None:
    from PIL import Image

    left, bottom, width, height = box
    high = [bottom + height * inches / _TILE[1] for inches in (0.57, 0.53, 0.27, 0.23)]
    picture = figure.add_axes((left, high[0], 0.9 * width, height * 0.94 / _TILE[1]))
    pixels = np.asarray(Image.open(BytesIO(tile.image)))
    picture.imshow(pixels, cmap="gray", interpolation="nearest" if max(pixels.shape[:2]) <= 16 else "bilinear")
    picture.set_anchor("NW")
    picture.set_axis_off()
    shares = tile.truth if tile.truth is not None else tile.posterior
    named = short(tile.given, 12)
    if shares is not None:
        likeliest = classes[int(np.argmax(shares))]
        named += "" if likeliest == tile.given else f" \u2192 {short(likeliest, 12)}"
        bars = figure.add_axes((left, high[2], 0.86 * width, height * 0.13 / _TILE[1]))
        bars.bar(
            range(len(shares)), shares, 0.8, color=[_GIVEN if name == tile.given else LIGHT[0] for name in classes]
        )
        bars.set(ylim=(0, 1), xticks=[], yticks=[])
        bars.grid(visible=False)
    figure.text(left, high[1], named, va="top", size=6.8 if len(named) <= 17 else 5.4, weight="bold")
    told = f"CE {tile.noisiness:.2f}   H {tile.ambiguity:.2f}"
    figure.text(left, high[3], told, va="top", size=6.2, color=_SOFT)
