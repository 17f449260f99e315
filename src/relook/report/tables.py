"""The tables of a simulation: where each policy ended, how it differs from another, and what it needs to get there."""

from collections.abc import Mapping, Sequence

import numpy as np

from relook.figures import answers_to, bounds, milestones, rules, styles
from relook.report.charts import sample
from relook.report.markup import THIN, Cell, Column, count, paragraph, percent, signed, table, text
from relook.runs import Paired, Runs, paired

Row = tuple[str, Sequence[Cell]]

_ENDS = (
    Column("Correct", "share of labels"),
    Column("AUC", "mean share"),
    Column("Total variation", "from the truth"),
    Column("Clear", "wrong, left"),
    Column("Difficult", "wrong, left"),
    Column("Answers", "spent"),
    Column("Items", "asked about"),
)
_NONE = "\u2013"


def ends(runs: Runs) -> str:
    """Return where each policy ended."""
    several = any(len(runs.rows_of(policy)) > 1 for policy in runs.policies)
    spread = ": mean over seeds \u00b1 standard deviation" if several else ""
    groups = _by_kind(runs, {policy: _end(runs.rows_of(policy)) for policy in runs.policies})
    return table([Column("Policy", number=False), *_ENDS], groups, caption=f"The end of each policy{spread}")


def differences(runs: Runs) -> str:
    """Return how each policy differs from the one that others are compared with; nothing where none is named."""
    against = runs.extra.against
    if against is None or against not in runs.policies:
        return ""
    cells: dict[str, list[Cell]] = {}
    for quantity in ("share_correct", "auc"):
        for each in paired(runs, against, quantity=quantity):
            cells.setdefault(each.policy, []).extend(_difference(each))
    shares = Column("Correct", "points"), Column("95 % interval"), Column("Higher", "in seeds")
    areas = Column("AUC"), Column("95 % interval"), Column("Higher", "in seeds")
    shown = table(
        [Column("Policy", number=False), *shares, *areas],
        _by_kind(runs, cells),
        caption=f"The difference from {against}, seed by seed",
    )
    note = "In each seed all policies face the same crowd, so differences are paired. The interval is Student's t."
    return shown + paragraph(note, "note")


def needed(runs: Runs) -> str:
    """Return how many answers each policy needs until so many labels are correct."""
    shares = milestones(runs)
    if not shares:
        return ""
    columns = [Column(percent(share, 1 if share == 0.975 else 0), "correct") for share in shares]
    cells = {policy: [_reached(runs, policy, share=share) for share in shares] for policy in runs.policies}
    caption = f"Answers needed until so many labels are correct on average ({_NONE}: not reached)"
    return table([Column("Policy", number=False), *columns], _by_kind(runs, cells), caption=caption)


def _by_kind(runs: Runs, cells: Mapping[str, Sequence[Cell]]) -> dict[str, list[Row]]:
    looks = styles(runs)
    kinds = {"": rules(runs), "Bounds, which know the truth": bounds(runs)}
    return {
        title: [(f"{sample(looks[policy])}{text(policy)}", cells[policy]) for policy in names if policy in cells]
        for title, names in kinds.items()
    }


def _end(rows: Sequence[dict[str, float]]) -> list[Cell]:
    exact = _spread(rows, "auc", digits=4), _spread(rows, "total_variation", digits=4)
    counted = [_spread(rows, name, digits=0) for name in ("clear_left", "difficult_left", "answers", "items")]
    return [_spread(rows, "share_correct", digits=2, scale=100, unit=f"{THIN}%"), *exact, *counted]


def _spread(rows: Sequence[dict[str, float]], quantity: str, *, digits: int, scale: float = 1, unit: str = "") -> Cell:
    values = np.array([row[quantity] for row in rows], np.float64) * scale
    deviation = f"\u00b1{THIN}{values.std(ddof=1):,.{digits}f}" if len(values) > 1 else ""
    return Cell(f"{values.mean():,.{digits}f}{unit}", deviation)


def _difference(each: Paired) -> list[Cell]:
    scale, digits = (100, 2) if each.quantity == "share_correct" else (1, 4)
    between = _NONE
    if each.low is not None and each.high is not None:
        between = f"{signed(each.low * scale, digits)} to {signed(each.high * scale, digits)}"
    return [Cell(signed(each.mean * scale, digits)), Cell(between), Cell(f"{each.wins} of {each.seeds}")]


def _reached(runs: Runs, policy: str, *, share: float) -> Cell:
    found = answers_to(runs, policy, share=share)
    return Cell(_NONE if found is None else count(found))
