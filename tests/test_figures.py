"""What figures show: lines keep their ends, names stand apart, colours are told apart, numbers are those of runs."""

import itertools

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relook.figures import (
    DARK,
    LIGHT,
    answers_to,
    bounds,
    leading,
    lines,
    milestones,
    minimal,
    mixed_up,
    row_shares,
    rules,
    share_marks,
    spread,
    start,
    styles,
    thinned,
    ticks,
    zero_marks,
)
from relook.runs import Runs
from tests import samples


@pytest.fixture(scope="module")
def whole() -> Runs:
    return samples.runs()


@given(st.integers(1, 20_000), st.integers(2, 500))
def test_thinning_keeps_the_ends_and_the_order(length: int, most: int) -> None:
    kept = thinned(length, most)
    assert (kept[0], kept[-1]) == (0, length - 1)
    assert len(kept) == min(length, most)
    gaps = np.diff(kept)
    assert (gaps > 0).all()
    assert len(gaps) == 0 or gaps.max() <= np.ceil((length - 1) / max(len(kept) - 1, 1)) + 1


@given(st.lists(st.floats(0, 400), min_size=1, max_size=20), st.floats(1, 15))
def test_names_stand_apart_in_order_and_inside(wanted: list[float], gap: float) -> None:
    heights = spread(sorted(wanted), gap=gap, low=10, high=390)
    assert all(after - before >= gap - 1e-6 for before, after in itertools.pairwise(heights))
    assert heights[0] >= 10 - 1e-6
    assert heights[-1] <= 390 + 1e-6


@given(st.lists(st.floats(20, 380), min_size=1, max_size=8))
def test_names_that_have_room_are_not_moved(wanted: list[float]) -> None:
    apart = [
        height for place, height in enumerate(sorted(wanted)) if place == 0 or height - sorted(wanted)[place - 1] > 12
    ]
    if all(after - before >= 12 for before, after in itertools.pairwise(apart)):
        assert spread(apart, gap=12, low=0, high=400) == pytest.approx(apart)


@given(st.floats(0, 1e6), st.floats(1e-3, 1e6), st.integers(3, 10))
def test_marks_are_round_and_inside(low: float, span: float, most: int) -> None:
    marks = ticks(low, low + span, most=most)
    slack = 1e-6 * max(span, low)
    assert all(low - slack <= mark <= low + span + slack for mark in marks)
    assert len(marks) <= most + 1
    assert marks == sorted(marks)
    assert "-0.0" not in map(str, marks)


def test_an_axis_of_shares_holds_all_lines_and_ends_at_one(whole: Runs) -> None:
    drawn = lines(whole)
    marks = share_marks(drawn)
    assert marks[-1] == 1.0
    assert marks[0] <= min(line.low.min() for line in drawn) < marks[1]


def test_an_axis_from_zero_holds_all_lines(whole: Runs) -> None:
    for quantity in ("clear_left", "difficult_left", "total_variation"):
        drawn = lines(whole, quantity)
        marks = zero_marks(drawn)
        highest = max(line.high.max() for line in drawn)
        assert marks[0] == 0
        assert highest <= marks[-1] <= 1.5 * highest


def test_a_line_is_the_mean_over_seeds_and_its_band_the_interval_of_the_mean(whole: Runs) -> None:
    line = next(line for line in lines(whole) if line.policy == "margin")
    ends = [row["share_correct"] for row in whole.rows_of("margin")]
    assert line.end == pytest.approx(np.mean(ends))
    assert line.high[-1] - line.end == pytest.approx(1.96 * np.std(ends, ddof=1) / 3**0.5)
    assert line.interval


def test_a_single_run_has_no_interval() -> None:
    drawn = lines(samples.runs(seeds=1, policies=("margin", "random"), against=None))
    assert [line.interval for line in drawn] == [False, False]


def test_rules_come_by_how_clean_they_leave_the_labels_and_bounds_apart(whole: Runs) -> None:
    ends = [np.mean([row["share_correct"] for row in whole.rows_of(policy)]) for policy in rules(whole)]
    assert ends == sorted(ends, reverse=True)
    assert bounds(whole) == ["oracle"]
    assert leading(whole) == "default"


def test_without_the_default_the_best_rule_leads(whole: Runs) -> None:
    rows = tuple(row for row in whole.rows if row["policy"] in ("random", "paper", "margin", "oracle"))
    rest = msgspec.structs.replace(whole, rows=rows)
    assert leading(rest) == rules(rest)[0] == "margin"
    alone = msgspec.structs.replace(whole, rows=tuple(row for row in whole.rows if row["policy"] == "random"))
    assert leading(alone) == "random"


def test_a_named_bound_is_drawn_as_one(whole: Runs) -> None:
    extra = msgspec.structs.replace(whole.extra, bounds=("margin",))
    assert "margin" in bounds(msgspec.structs.replace(whole, extra=extra))


def test_many_policies_all_look_different() -> None:
    names = ["default", "paper", "random", "oracle", *(f"mine.py:rule_{number}" for number in range(20))]
    rows = tuple({"policy": name, "seed": 0, "share_correct": 0.5} for name in names)
    looks = styles(Runs(rows, {}))
    assert len(set(looks.values())) == len(set(looks))
    assert set(names) <= set(looks)


def test_the_common_policies_look_alike_in_every_report(whole: Runs) -> None:
    rows = tuple(row for row in reversed(whole.rows) if row["policy"] in ("paper", "random"))
    assert styles(msgspec.structs.replace(whole, rows=rows))["paper"] == styles(whole)["paper"]


def test_the_minimal_line_takes_two_answers_for_each_wrong_label(whole: Runs) -> None:
    line, first = minimal(whole), start(whole)
    assert line is not None
    assert first.wrong == 24
    assert line.answers.tolist() == [0, 48]
    assert line.mean.tolist() == [first.share_correct, 1.0]


def test_the_minimal_line_ends_with_the_answers() -> None:
    line = minimal(samples.runs(seeds=1, answers=12, policies=("random",), against=None))
    assert line is not None
    assert line.answers.tolist() == [0, 12]
    assert line.mean[1] == pytest.approx(0.6 + 0.4 * 12 / 48)


def test_a_simulated_minimal_sampler_needs_no_line() -> None:
    assert minimal(samples.runs(seeds=1, policies=("random", "minimal"), against=None)) is None


def test_answers_to_a_share_are_read_off_the_mean(whole: Runs) -> None:
    mean = np.mean([curve.share_correct for curve in whole.curves_of("paper")], axis=0)
    found = answers_to(whole, "paper", share=0.75)
    assert found is not None
    assert mean[found] >= 0.75 > mean[found - 1]
    assert answers_to(whole, "paper", share=0.999) is None


def test_milestones_lie_between_start_and_best(whole: Runs) -> None:
    best = max(np.mean([row["share_correct"] for row in whole.rows_of(policy)]) for policy in rules(whole))
    assert milestones(whole)
    assert all(0.6 < share <= best for share in milestones(whole))


def test_shares_of_a_row_leave_a_class_without_items_at_zero() -> None:
    assert row_shares(((3.0, 1.0), (0.0, 0.0))).tolist() == [[0.75, 0.25], [0.0, 0.0]]


def test_pairs_that_are_mixed_up_come_by_their_number_and_without_the_diagonal() -> None:
    before, after = (
        ((90.0, 2.0, 0.0), (7.0, 80.0, 1.0), (0.0, 0.0, 70.0)),
        ((92.0, 0.0, 0.0), (3.0, 85.0, 0.0), (0.0, 0.0, 70.0)),
    )
    assert mixed_up(before, after) == [(1, 0, 7.0, 3.0), (0, 1, 2.0, 0.0), (1, 2, 1.0, 0.0)]
    assert mixed_up(before, None, most=1) == [(1, 0, 7.0, None)]


# How people with each kind of colour blindness see a colour: Machado and others 2009, full severity, linear RGB.
SEEN = {
    "all": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(colour: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(light: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(np.maximum(to_xyz @ np.clip(light, 0, 1) / np.array([0.9505, 1, 1.089]), 1e-6))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("eyes", SEEN)
def test_colours_are_told_apart(palette: tuple[str, ...], eyes: str) -> None:
    for one, other in itertools.combinations(palette, 2):
        apart = np.linalg.norm(lab(SEEN[eyes] @ linear(one)) - lab(SEEN[eyes] @ linear(other)))
        assert apart > 12, f"{one} and {other}: {apart:.1f}"


@pytest.mark.parametrize(("palette", "paper"), [(LIGHT, "#ffffff"), (DARK, "#14171a")], ids=["light", "dark"])
def test_lines_stand_out_from_the_paper(palette: tuple[str, ...], paper: str) -> None:
    weights = np.array([0.2126, 0.7152, 0.0722])
    for colour in palette:
        dim, bright = sorted((float(linear(colour) @ weights), float(linear(paper) @ weights)))
        assert (bright + 0.05) / (dim + 0.05) >= 3, colour
