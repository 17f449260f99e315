"""The time that an import of 50,000 images takes is measured, and one that takes too long would be told."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import pictures_in, record
from tests.conftest import ROOT
from tests.odd import noise, png


def test_the_figures_that_are_kept_hold() -> None:
    found = json.loads((ROOT / "benchmarks" / "results" / "pictures_in.json").read_text("utf-8"))
    assert found["checks"] == pictures_in.checks(found["rows"])
    assert [check["holds"] for check in found["checks"] if check["needed"]] == [True, True]
    page = (ROOT / "benchmarks" / "results" / "pictures_in.md").read_text("utf-8")
    assert page == record.page("pictures_in", found, columns=pictures_in.COLUMNS)


@pytest.mark.parametrize(("cpu", "holds"), [(0.5, True), (2.1, False)])
def test_what_takes_too_long_does_not_hold(cpu: float, *, holds: bool) -> None:
    rows: list[dict[str, Any]] = [
        {"way": "in one process", "name": name, "cpu": took, "wall": 1.0}
        for name, took in (("bare", 1.0), ("ours", cpu))
    ]
    assert [check["holds"] for check in pictures_in.checks(rows)] == [holds, True]


def test_both_look_at_every_image(tmp_path: Path) -> None:
    for name in ("cat/1.png", "dog/1.png"):
        (tmp_path / "pets" / name).parent.mkdir(parents=True)
        (tmp_path / "pets" / name).write_bytes(png(noise(4, 5), 8, 0))
    assert pictures_in.bare(tmp_path / "pets", tmp_path) == 2
    assert pictures_in.ours(tmp_path / "pets", tmp_path / "set") == 2
    cpu, wall = pictures_in.timed(pictures_in.ours, tmp_path / "pets", tmp_path / "other")
    assert cpu > 0
    assert wall > 0
    assert not (tmp_path / "other").exists()
