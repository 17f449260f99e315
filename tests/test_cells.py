"""What leaves as text runs in no spreadsheet, and comes back as it was."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from relook.cells import TRIGGERS, defused, marked, restored, write_csv
from tests.laws import catches

NUMBERS = st.from_regex(r"\A[+-]([0-9]{1,9}\.?[0-9]{0,4}|\.[0-9]{1,4})([eE][+-]?[0-9]{1,2})?\Z")
TEXTS = st.one_of(
    st.builds("".join, st.lists(st.sampled_from([*TRIGGERS, "'", '"', ",", ";", "a", "1", ".", " ", "\ufeff", "é"]))),
    st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    NUMBERS,
)
"""Texts of which many look dangerous."""
STRINGS = 20


def runs(cell: str) -> bool:
    """Say whether a spreadsheet may take a cell for a formula: the slow way, a number is none."""
    if not cell.startswith(tuple(TRIGGERS)):
        return False
    sign, digits = cell[0], cell[1:]
    if sign not in "+-" or not digits[:1] or digits[0] not in ".0123456789" or "_" in digits or not digits.isascii():
        return True
    try:
        float(digits)
    except ValueError:
        return True
    return digits != digits.strip()


def unguarded(cells: list[str]) -> list[str]:
    return [cell for cell in cells if runs(cell)]


def law(tried: settings, *, writing: Callable[[pl.DataFrame, Path], object], folder: Path) -> None:
    """Texts come back as they were, and none of them runs."""

    @tried
    @given(st.lists(TEXTS, min_size=STRINGS, max_size=STRINGS))
    def holds(texts: list[str]) -> None:
        path = folder / "cells.csv"
        writing(pl.DataFrame({"id": [str(row) for row in range(STRINGS)], "text": texts}), path)
        written = pl.read_csv(path, infer_schema=False)
        assert unguarded(written["text"].to_list()) == []
        assert restored(written["text"]).to_list() == texts

    holds()


def test_texts_come_back_as_they_were_and_none_runs(tmp_path: Path) -> None:
    """500 examples of 20 strings: 10,000."""
    law(settings(max_examples=500), writing=write_csv, folder=tmp_path)


def test_a_planted_writer_that_marks_nothing_is_caught(tmp_path: Path) -> None:
    catches(lambda tried: law(tried, writing=lambda frame, path: frame.write_csv(path), folder=tmp_path))


def test_what_runs_is_told_from_numbers() -> None:
    assert unguarded(["=1+1", "-1", "- 1", "-1+2", "@x", "\uff1d1", "+.5e3", "-"]) == [
        "=1+1", "- 1", "-1+2", "@x", "\uff1d1", "-",
    ]  # fmt: skip


def test_what_is_no_text_stays() -> None:
    numbers = pl.Series([-1, 2])
    assert defused(numbers) is numbers
    assert restored(numbers) is numbers
    assert defused(pl.Series(["=1", "a"], dtype=pl.Categorical)).to_list() == ["'=1", "a"]


def test_marks_are_counted() -> None:
    assert marked(pl.Series(["'=1", "'a", "''+x", None, "=1"])) == 2
    assert marked(pl.Series([1, 2])) == 0


def test_a_heading_is_defused_like_its_cells(tmp_path: Path) -> None:
    write_csv(pl.DataFrame({"=id": ["a"], "x": [-0.123456789]}), tmp_path / "x.tsv", separator="\t", decimals=3)
    assert (tmp_path / "x.tsv").read_text() == "'=id\tx\na\t-0.123\n"
