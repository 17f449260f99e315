"""Tables as text, safe to open in a spreadsheet: a cell that would run as a formula is marked, and read without it.

A text that starts with one of `TRIGGERS` gets an apostrophe in front; so does one where only apostrophes stand before
it, so that taking one off gives back every text. A text that is a plain number, such as -1, is none to a spreadsheet.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

TRIGGERS = "=+-@\t\r\n＝＋－＠"  # noqa: RUF001
"""What a formula may start with, as spreadsheets read it: also in full width."""

_MARK = "'"
_RISKY = rf"^{_MARK}*[{TRIGGERS.replace('-', '')}-]"
_MARKED = rf"^{_MARK}({_MARK}*[{TRIGGERS.replace('-', '')}-])"
_NUMBER = r"^[+-](?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def defused(cells: pl.Series) -> pl.Series:
    """Return cells that no spreadsheet runs: text gets an apostrophe where it needs one, all else stays.

    >>> import polars as pl
    >>> defused(pl.Series(["=1+1", "-1", "'=x", "it's", None])).to_list()
    ["'=1+1", '-1', "''=x", "it's", None]
    """
    import polars as pl

    if isinstance(cells.dtype, pl.Categorical | pl.Enum):
        cells = cells.cast(pl.String)
    if cells.dtype != pl.String:
        return cells
    risky = cells.str.contains(_RISKY) & ~cells.str.contains(_NUMBER)
    return cells.zip_with(~risky, _MARK + cells) if risky.any() else cells


def restored(cells: pl.Series) -> pl.Series:
    """Return cells as they were before they were defused.

    >>> import polars as pl
    >>> restored(pl.Series(["'=1+1", "-1", "''=x", "it's", None])).to_list()
    ['=1+1', '-1', "'=x", "it's", None]
    """
    return cells.str.replace(_MARKED, "$1") if marked(cells) else cells


def marked(cells: pl.Series) -> int:
    """Return how many cells carry the apostrophe that keeps spreadsheets from running them."""
    import polars as pl

    if cells.dtype != pl.String or not cells.str.starts_with(_MARK).any():
        return 0
    return int(cells.str.contains(_MARKED).sum())


def write_csv(frame: pl.DataFrame, path: Path, *, separator: str = ",", decimals: int | None = None) -> None:
    """Write a table as text that is safe to open in a spreadsheet; its heading is defused like its cells."""
    import polars as pl

    cells = {name: defused(column) for name, column in zip(_heading(frame), frame, strict=True)}
    pl.DataFrame(cells).write_csv(path, separator=separator, float_precision=decimals)


def _heading(frame: pl.DataFrame) -> list[str]:
    import polars as pl

    names: list[str] = defused(pl.Series(frame.columns, dtype=pl.String)).to_list()
    return names
