"""The table of the paper's bounds holds what it must, notices what does not agree, and was measured as it says."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks import bounds, record
from tests.conftest import ROOT

ISSUE = {
    ("oracle", 10, 4455): (0.9944, 0.8870),
    ("oracle-once", 10, 4455): (0.9528, 0.8781),
    ("ce", 10, 4455): (0.9547, 0.8747),
    ("paper-code", 10, 4455): (0.9522, 0.8756),
    ("paper", 10, 4455): (0.9552, 0.8773),
    ("random", 10, 4455): (0.8691, 0.7852),
    ("oracle", 10, 3000): (0.9584, 0.8406),
    ("random", 10, 3000): (0.8140, 0.7579),
    ("oracle", 2, 2307): (0.9878, 0.9369),
    ("oracle-once", 2, 2307): (0.9646, 0.9318),
    ("random", 2, 2307): (0.8901, 0.8684),
}
"""What must be reached, written down a second time."""


def played(seeds: int = 2) -> list[dict[str, Any]]:
    """Results that agree with the reference in everything."""
    found = []
    for row in bounds.PAPER:
        counts = bounds.COUNTS[row["tau"]]
        before = {"before": {"clear": counts["clear"], "difficult": counts["difficult"]}}
        found += [
            row | before | {"protocol": protocol, "seed": seed}
            for protocol in bounds.PROTOCOLS
            for seed in range(seeds)
        ]
    return found


def failed(results: Sequence[dict[str, Any]]) -> list[str]:
    rows = [f"{row['policy']} {row['budget']} {row['protocol']}" for row in bounds.table(results) if not row["passed"]]
    return rows + [each["what"] for each in bounds.checks(results) if not each["passed"]]


def test_the_reference_is_what_must_be_reached() -> None:
    table = {(r["policy"], r["tau"], r["budget"]): (r["share_correct"], r["auc"]) for r in bounds.PAPER}
    assert table.pop(("minimal", 10, 4455))[0] == 1.0
    assert table == ISSUE
    assert bounds.COUNTS[2] == {"wrong": 769, "clear": 520, "difficult": 249, "budget": 2307}
    assert bounds.COUNTS[10] == {"wrong": 1485, "clear": 1152, "difficult": 333, "budget": 4455}
    assert (bounds.SHARE_ALLOWED, bounds.AUC_ALLOWED) == (0.004, 0.003)


def test_the_minimal_samplers_line_is_straight() -> None:
    wrong, items, budget = 1485, 5000, 4455
    start, needed = 1 - wrong / items, 2 * wrong
    area = needed * (start + 1) / 2 + (budget - needed)
    row = next(row for row in bounds.PAPER if row["policy"] == "minimal")
    assert row["auc"] == pytest.approx(area / budget, abs=5e-5)


def test_results_that_agree_pass() -> None:
    assert failed(played()) == []


@pytest.mark.parametrize(
    ("policy", "quantity", "off", "failing"),
    [
        ("oracle", "share_correct", 0.0039, []),
        ("oracle", "share_correct", -0.0041, ["oracle 4455 exact"]),
        ("random", "auc", 0.0029, []),
        ("random", "auc", -0.0031, ["random 4455 exact"]),
    ],
)
def test_a_mean_that_is_off_fails_its_row_alone(policy: str, quantity: str, off: float, failing: list[str]) -> None:
    results = played()
    for run in results:
        if (run["policy"], run["budget"], run["protocol"]) == (policy, 4455, "exact"):
            run[quantity] += off
    assert failed(results) == failing


def test_a_wrong_count_and_a_wrong_sign_fail() -> None:
    results = played()
    for run in results:
        if run["tau"] == 2:
            run["before"] = {"clear": 521, "difficult": 249}
    assert failed(results) == ["tau 2: wrong", "tau 2: clear", "tau 2: 3 x wrong"]
    results = played()
    for run in results:
        if (run["policy"], run["protocol"]) == ("ce", "exact"):
            run["auc"] = 0.8757
    assert failed(results) == ["AUC, paper-code minus ce"]


def test_scales_differ_in_seeds() -> None:
    smoke, whole = bounds.jobs("smoke", seed=3), bounds.jobs("paper")
    assert {piece.seed for piece in smoke} == {3, 4}
    assert len(whole) == len(bounds.PAPER) * len(bounds.PROTOCOLS) * 5
    assert len(set(whole)) == len(whole)


def test_the_committed_table_was_measured_and_passes() -> None:
    found = json.loads((ROOT / "benchmarks" / "results" / "bounds.json").read_text("utf-8"))
    assert found["command"] == "relook reproduce bounds --scale paper --seed 0"
    assert found["passed"] is True
    assert [(r["policy"], r["tau"], r["budget"], r["protocol"]) for r in found["rows"]] == [
        (r["policy"], r["tau"], r["budget"], protocol) for r in bounds.PAPER for protocol in bounds.PROTOCOLS
    ]
    for row in found["rows"]:
        theirs = next(r for r in bounds.PAPER if all(r[key] == row[key] for key in ("policy", "tau", "budget")))
        assert row["seeds"] == 5
        assert abs(row["share_correct"] - theirs["share_correct"]) <= 0.004
        assert abs(row["auc"] - theirs["auc"]) <= 0.003
        assert row["reference_auc"] == theirs["auc"]
    assert all(each["passed"] for each in found["checks"])
    assert {"machine", "commit", "seconds", "seed"} <= set(found)
    page = (ROOT / "benchmarks" / "results" / "bounds.md").read_text("utf-8")
    assert page == record.page("bounds", found, columns=bounds.PAGE), "bounds.md is not the page of bounds.json"


def test_one_run_is_played_as_the_simulator_plays_it(data_dir: Any) -> None:
    piece = bounds.Piece("random", 2, 100, "exact", 0)
    run = bounds.player(data_dir)(piece)
    assert run["before"] == {"clear": 520, "difficult": 249}
    assert run["answers"] == 100
    assert run == bounds.player(data_dir)(piece)


def test_the_machine_is_told_in_words() -> None:
    assert "cores, " in record.machine()
    assert "/" not in record.commit()
