"""Writes docs/recipe-table.md from the recipes themselves: `python -m tests.recipe_table`, or `make docs`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from relook.train.augment import PLAIN, View
from relook.train.nets import Shape
from relook.train.parts import Network
from relook.train.recipe import Recipe
from relook.train.recipes import RECIPES, WHOSE
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "recipe-table.md"

HEAD = """# The recipes, number by number

The paper's text, the paper's released code and our own default of each method, written from `relook.train.recipes` by
`make docs`; a test compares. What a line leaves empty its recipe does not have. Where a recipe takes a number from
elsewhere, its source says so.
"""

OF_METHOD = {
    "shape": "network",
    "views": "an image is drawn with",
    "noise": "share of labels that is dropped",
    "warmup": "epochs before any is dropped",
    "gradual": "epochs until all of it is dropped",
}
OF_SCHEDULE = {
    "shape": "rate falls by",
    "warmup": "epochs of warm-up",
    "short": "last batch",
    "encoder": "encoder's share",
}
"""What settings are called in the table, where their own name says too little."""

COLUMNS = ("paper", "released code", "relook")

OFF = {"", "0", "False", "all"}


def page() -> str:
    """Return the page: a table a method."""
    methods = dict.fromkeys(name.partition("/")[0] for name in RECIPES if "/" in name)
    tables = [_table(method, [f"{method}/{whose}" for whose in WHOSE], heads=COLUMNS) for method in methods]
    own = [name for name in RECIPES if "/" not in name]
    return "\n".join([HEAD, *tables, _table("Recipes for one set, or to try", own, heads=own)])


def _table(title: str, names: Sequence[str], *, heads: Sequence[str]) -> str:
    columns = [_lines(RECIPES[name]) if name in RECIPES else {} for name in names]
    keys = dict.fromkeys(key for column in columns for key in column)
    told = [key for key in keys if any(column.get(key, "") not in OFF for column in columns)]
    rows = [f"| {key} | {' | '.join(column.get(key, '') for column in columns)} |" for key in told]
    line = f"|---{'|---' * len(heads)}|"
    return "\n".join([f"## {title}", "", f"| | {' | '.join(heads)} |", line, *rows, ""])


def _lines(recipe: Recipe) -> dict[str, str]:
    """Return what a recipe says, a line each."""
    found = {"source": recipe.source, "predicts": f"{recipe.folds} folds" if recipe.folds else "in sample"}
    for part in recipe.parts:
        if isinstance(part, Network):
            found |= _of_network(part)
        else:
            found |= {field.name: _said(getattr(part, field.name)) for field in fields(part)}  # type: ignore[arg-type]
    return found


def _of_network(part: Network) -> dict[str, str]:
    found = {"method": type(part.method).__name__}
    for record, names in ((part.method, OF_METHOD), (part.schedule, OF_SCHEDULE)):
        found |= {names.get(field.name, field.name): _said(getattr(record, field.name)) for field in fields(record)}
    if part.noise == "estimated":
        found[OF_METHOD["noise"]] = "the estimated noise rate"
    drawn = f"{part.looks.drawn} drawn views" if part.looks.drawn else "as it is"
    found["an image is looked at"] = "as it is, and its mirror image" if part.looks.mirror else drawn
    found["begins with"] = _said(part.start)
    if part.renewed is not None:
        found["an update"] = f"{part.renewed.epochs} epochs at {part.renewed.rate:g}"
    return found


def _said(value: Any) -> str:
    """Return a setting in few words."""
    if isinstance(value, View):
        told = ", ".join(f"{f.name} {_said(getattr(value, f.name))}" for f in fields(value) if _differs(value, f.name))
        return told or "nothing"
    if isinstance(value, Shape):
        return f"{'-'.join(map(str, value.blocks))} {value.kind} blocks from {value.channels}, {value.stem} stem"
    if is_dataclass(value):
        told = ", ".join(f"{field.name} {_said(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__name__} ({told})"
    if isinstance(value, tuple):
        return " to ".join(map(_said, value)) if value and isinstance(value[0], float) else "; ".join(map(_said, value))
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _differs(view: View, name: str) -> bool:
    return bool(getattr(view, name) != getattr(PLAIN, name))


def write(target: Path = PAGE) -> None:
    """Write the page."""
    target.write_text(page(), "utf-8")


if __name__ == "__main__":
    write()
