"""What the figures of a simulation show, whoever draws them: lines with bands, bounds, styles and shares.

The page draws them as SVG by itself, `relook.plots` by matplotlib; both get the same numbers, colours and dashes here.
"""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from relook.curves import band
from relook.policies import BOUNDS
from relook.runs import Matrix, Runs
from relook.types import FloatArray, IntArray

POINTS = 400
"""A line is drawn through at most so many points; more would not be seen."""

LIGHT = ("#6b7280", "#0b5cad", "#d06a00", "#6b1239", "#379a5f", "#4a3a06")
"""Colours of lines on white: grey for what others are measured by, then five that the colour-blind tell apart too."""

DARK = ("#8b939e", "#5aa9ff", "#f08a2c", "#f7c6dc", "#36a877", "#e9e08a")
"""The same on black."""

_DASHES: tuple[tuple[int, ...], ...] = ((), (9, 4), (2, 3), (12, 3, 2, 3), (5, 2))
_STARTS = ("share_correct", "clear_left", "difficult_left")
_KEPT = {"default": 1, "paper": 2, "margin": 3}
_GREY: dict[str, tuple[int, ...]] = {"random": (), "oracle": (1, 3), "oracle-once": (6, 3, 1, 3), "minimal": (4, 4)}


class Style(msgspec.Struct, frozen=True):
    """How a policy is drawn: the number of its colour in `LIGHT` and `DARK`, and its dashes (none: a solid line)."""

    colour: int
    dash: tuple[int, ...] = ()


class Line(msgspec.Struct, frozen=True, eq=False):
    """One quantity of a policy along the answers: the mean over seeds and its 95 % interval.

    `interval` is False where there is a single run and so no interval.
    """

    policy: str
    answers: IntArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    style: Style
    interval: bool = True

    @property
    def end(self) -> float:
        """The mean after the last answer."""
        return float(self.mean[-1])


def thinned(length: int, most: int = POINTS) -> IntArray:
    """Return at most so many of the places 0 to length - 1, evenly spread, the first and the last among them.

    >>> thinned(10, 4).tolist(), thinned(3, 4).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if length <= most:
        return np.arange(length)
    return np.rint(np.linspace(0, length - 1, most)).astype(np.int64)


def is_bound(runs: Runs, policy: str) -> bool:
    """Say whether a policy looks at the truth and so is a bound to compare with, not a rule to use."""
    return policy in BOUNDS or policy in runs.extra.bounds


def rules(runs: Runs) -> list[str]:
    """Return the policies that are no bounds, the cleanest labels first."""
    return _ranked(runs, (policy for policy in runs.policies if not is_bound(runs, policy)))


def bounds(runs: Runs) -> list[str]:
    """Return the policies that are bounds, the cleanest labels first."""
    return _ranked(runs, (policy for policy in runs.policies if is_bound(runs, policy)))


def leading(runs: Runs) -> str:
    """Return the policy that a report tells about first: the default one, else the rule with the cleanest labels."""
    own = [policy for policy in rules(runs) if policy != "random"]
    return "default" if "default" in own else (own or rules(runs) or bounds(runs))[0]


def styles(runs: Runs) -> dict[str, Style]:
    """Give each policy a colour and dashes of its own; the common ones look alike in every report."""
    coloured = [name for name in runs.policies if name not in _GREY and not is_bound(runs, name)]
    found = _numbered(coloured) | {name: Style(0, dash) for name, dash in _GREY.items()}
    others = [name for name in runs.policies if name not in found]
    return found | {name: Style(0, _DASHES[1 + place % 4]) for place, name in enumerate(others)}


def lines(runs: Runs, quantity: str = "share_correct", *, most: int = POINTS) -> list[Line]:
    """Return a line a policy: bounds first, so that the rules are drawn above them."""
    looks = styles(runs)
    return [
        _line(runs, policy, quantity=quantity, most=most, style=looks[policy])
        for policy in [*bounds(runs), *reversed(rules(runs))]
    ]


class Start(msgspec.Struct, frozen=True):
    """How the labels were before the first answer, on average over the runs."""

    share_correct: float
    clear: float
    difficult: float

    @property
    def wrong(self) -> float:
        """Wrong labels, clear and difficult."""
        return self.clear + self.difficult


def start(runs: Runs) -> Start:
    """Return how the labels were before the first answer; seeds may begin with other given labels."""
    curves = list(runs.curves.values())
    return Start(*(float(np.mean([getattr(curve, name)[0] for curve in curves])) for name in _STARTS))


def minimal(runs: Runs) -> Line | None:
    """Return the paper's line of the minimal sampler: straight to no wrong label by two answers for each wrong one.

    There is none where the policy `minimal` was simulated, or nothing is wrong.
    """
    first = start(runs)
    if "minimal" in runs.policies or not first.wrong:
        return None
    needed, end = round(2 * first.wrong), max(curve.answers for curve in runs.curves.values())
    answers = np.array([0, min(needed, end)])
    shares = first.share_correct + (1 - first.share_correct) * answers / needed
    return Line("minimal", answers, shares, shares, shares, Style(0, _GREY["minimal"]), interval=False)


def answers_to(runs: Runs, policy: str, *, share: float) -> int | None:
    """Return after how many answers the mean share correct of a policy first reaches this, or None."""
    reached = band(runs.curves_of(policy)).mean >= share
    return int(reached.argmax()) if reached.any() else None


def milestones(runs: Runs) -> list[float]:
    """Return a few round shares that lie between the start and the best end of a rule."""
    begin = start(runs).share_correct
    best = max(float(band(runs.curves_of(policy)).mean[-1]) for policy in rules(runs) or runs.policies)
    between = [share for share in (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99) if begin < share <= best]
    return between[-4:]


def ticks(low: float, high: float, *, most: int = 6) -> list[float]:
    """Return round numbers from low to high, both included where they are round themselves.

    >>> ticks(0.7, 1.0), ticks(0, 4455)
    ([0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0], [0.0, 1000.0, 2000.0, 3000.0, 4000.0])
    """
    span = high - low
    if span <= 0:
        return [low]
    power = 10 ** np.floor(np.log10(span / most))
    steps = [power * factor for factor in (1, 2, 2.5, 5, 10, 20)]
    step = next(step for step in steps if span / step <= most + 1e-9)
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    # Adding zero turns -0 into 0.
    return [float(f"{place * step:.10g}") + 0.0 for place in np.arange(first, last + 1)]


def share_marks(drawn: Sequence[Line]) -> tuple[float, ...]:
    """Return the marks of an axis for shares that are correct: from a round number below all lines to 1."""
    lowest = min(float(line.low.min()) for line in drawn)
    step = next(step for step in (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2) if 1 - lowest <= 7 * step)
    last = round(1 / step)
    first = min(max(0, int(np.floor(lowest / step + 1e-9))), last - 1)
    return tuple(round(place * step, 10) for place in range(first, last + 1))


def zero_marks(drawn: Sequence[Line]) -> tuple[float, ...]:
    """Return the marks of an axis from zero to a round number above all lines."""
    highest = max(float(line.high.max()) for line in drawn) or 1.0
    marks = ticks(0, highest, most=8)
    above = [] if marks[-1] >= highest else [round(2 * marks[-1] - marks[-2], 10)]
    return (*marks, *above)


def row_shares(matrix: Matrix) -> FloatArray:
    """Return each true class's labels as shares; a class without items stays zero."""
    counts = np.asarray(matrix, np.float64)
    return counts / np.maximum(counts.sum(1, keepdims=True), 1e-12)


def mixed_up(before: Matrix, after: Matrix | None, *, most: int = 8) -> list[tuple[int, int, float, float | None]]:
    """Return the pairs of true class and wrong label that were commonest, with their items before and after."""
    given = np.array(before, np.float64)
    np.fill_diagonal(given, 0)
    places = np.argsort(-given, axis=None, kind="stable")[:most]
    pairs = [(int(place) // len(given), int(place) % len(given)) for place in places if given.flat[place] > 0]
    return [
        (true, label, float(given[true, label]), None if after is None else after[true][label]) for true, label in pairs
    ]


def short(policy: str, most: int = 17) -> str:
    """Return a policy's name as a drawing shows it: a rule of one's own without its file, cut where it is long.

    >>> short("rules/mine.py:cautious"), short("a name that goes on and on")
    ('cautious', 'a name that goes\u2026')
    """
    last = policy.rpartition(":")[2] or policy
    return last if len(last) <= most else last[: most - 1] + "\u2026"


def spread(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Return heights near the wanted ones, which rise: a gap apart and, where there is room, between low and high.

    >>> spread([10, 11, 50], gap=5, low=0, high=100)
    [8.0, 13.0, 50.0]
    """
    clusters: list[list[float]] = []
    for height in wanted:
        clusters.append([height])
        # A cluster is its members' wanted heights; it stands where they are moved least on average.
        while len(clusters) > 1 and _top(clusters[-1], gap) < _top(clusters[-2], gap) + gap * len(clusters[-2]):
            clusters[-2:] = [clusters[-2] + clusters[-1]]
    found = [_top(cluster, gap) + gap * place for cluster in clusters for place in range(len(cluster))]
    for place in range(len(found) - 1, -1, -1):
        found[place] = min(found[place], high - gap * (len(found) - 1 - place))
    for place in range(len(found)):
        found[place] = max(found[place], low + gap * place)
    return found


def _top(cluster: Sequence[float], gap: float) -> float:
    middle = sum(cluster) / len(cluster)
    return middle - gap * (len(cluster) - 1) / 2


def _ranked(runs: Runs, policies: Iterable[str]) -> list[str]:
    return sorted(policies, key=lambda policy: -mean_of(runs.rows_of(policy), "share_correct"))


def mean_of(rows: Sequence[dict[str, float]], quantity: str) -> float:
    """Return the mean of a quantity over rows."""
    return float(np.mean([row[quantity] for row in rows]))


def _numbered(names: Sequence[str]) -> dict[str, Style]:
    kept = {name: _KEPT[name] for name in names if name in _KEPT}
    free = [number for number in range(1, len(names) + len(LIGHT)) if number not in kept.values()]
    rest = (name for name in names if name not in kept)
    return {name: _style(number) for name, number in (kept | dict(zip(rest, free, strict=False))).items()}


def _style(number: int) -> Style:
    colour = 1 + (number - 1) % (len(LIGHT) - 1)
    # A sixth rule takes the first colour again, with the dashes of another.
    turn = (number - 1) // (len(LIGHT) - 1)
    return Style(colour, _DASHES[(colour - 1 + 2 * turn) % len(_DASHES)])


def _line(runs: Runs, policy: str, *, quantity: str, most: int, style: Style) -> Line:
    curves = runs.curves_of(policy)
    along = band(curves, quantity)
    places = thinned(len(along.mean), most)
    parts = (along.mean[places], along.low[places], along.high[places])
    return Line(policy, places, *parts, style, interval=len(curves) > 1)
