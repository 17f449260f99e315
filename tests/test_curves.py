"""Curves: one pass over the log gives what counting anew after every answer gives."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from statistics import mean, stdev
from typing import NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook.curves import Curve, band, curve, difficult, true_entropy, visit_ends
from relook.events import Answer, Event, Undone
from relook.types import FloatArray, Labels
from tests.campaigns import World, counted, given_votes, run, scripts, worlds
from tests.laws import LAW, catches

Draw = Callable[[Sequence[Event], Labels, FloatArray, float], Curve]


class Point(NamedTuple):
    """The quantities of a curve at one number of answers, in the order of its fields."""

    share_correct: float
    total_variation: float
    clear_left: int
    difficult_left: int
    items_touched: int
    turned_wrong: int


def counted_anew(events: Sequence[Event], world: World, truth: FloatArray) -> tuple[int, Point]:
    """How many answers stand, and how clean the labels are, from the facts of the log alone."""
    weight, labels = world.policy.given_weight, world.given
    known = counted(events, labels, weight)
    right = variation = clear = hard = turned = 0.0
    for item, shares in enumerate(truth.tolist()):
        counts = labels.given_counts[item].tolist()
        came = counts.index(max(counts)) if counts.count(max(counts)) == 1 else -1
        verdict = known["verdicts"].get(item, -1)
        is_right, was_right = (
            label == shares.index(max(shares)) for label in (verdict if verdict >= 0 else came, came)
        )
        entropy = -sum(share * math.log(share) for share in shares if share) / math.log(len(shares))
        right += is_right
        clear += not is_right and entropy <= 0.3
        hard += not is_right and entropy > 0.3
        turned += was_right and not is_right
        votes = known["votes"].get(item, given_votes(labels, weight, item))
        shown = [vote / sum(votes) for vote in votes] if sum(votes) else [1 / len(votes)] * len(votes)
        variation += sum(abs(share - vote) for share, vote in zip(shares, shown, strict=True)) / 2
    items = len(labels)
    touched = len(known["answers"])
    return known["spent"], Point(right / items, variation / items, int(clear), int(hard), touched, int(turned))


def drawn(events: Sequence[Event], given_labels: Labels, truth: FloatArray, weight: float) -> Curve:
    return curve(events, given_labels, truth=truth, given_weight=weight)


class TestCurve:
    """Each point is the labels as they were when so many answers stood for the last time."""

    def law(self, how: settings, draw: Draw) -> None:
        @how
        @given(worlds(), scripts(40), st.integers(0, 2**32 - 1))
        def check(world: World, script: list[int], seed: int) -> None:
            random = np.random.default_rng(seed)
            truth = random.integers(0, 6, (len(world.given), world.given.classes)) + 0.0
            truth[:, 0] += truth.sum(1) == 0
            truth /= truth.sum(1, keepdims=True)
            campaign = world.start()
            run(campaign, world, script)
            points = [counted_anew(campaign.events[:end], world, truth) for end in range(1, len(campaign.events) + 1)]
            last = dict(points)
            expected = [last[answers] for answers in range(campaign.spent + 1)]
            found = draw(campaign.events, world.given, truth, world.policy.given_weight)
            assert found.answers == campaign.spent
            for name in Point._fields:
                values = [getattr(point, name) for point in expected]
                assert getattr(found, name) == pytest.approx(values, abs=1e-6), name

        check()

    def test_holds(self) -> None:
        self.law(LAW, drawn)

    def test_a_curve_that_ignores_what_was_undone_is_caught(self) -> None:
        def deaf(events: Sequence[Event], given_labels: Labels, truth: FloatArray, weight: float) -> Curve:
            return drawn([event for event in events if not isinstance(event, Undone)], given_labels, truth, weight)

        catches(partial(self.law, draw=deaf))

    def test_a_curve_that_counts_late_answers_is_caught(self) -> None:
        def lenient(events: Sequence[Event], given_labels: Labels, truth: FloatArray, weight: float) -> Curve:
            late = [msgspec.structs.replace(e, counted=True) if isinstance(e, Answer) else e for e in events]
            return drawn(late, given_labels, truth, weight)

        catches(partial(self.law, draw=lenient))

    def test_a_curve_that_gives_each_given_label_a_vote_is_caught(self) -> None:
        catches(partial(self.law, draw=lambda events, labels, truth, _: drawn(events, labels, truth, 1.0)))

    def test_a_curve_that_takes_every_answer_for_a_class_is_caught(self) -> None:
        def literal(events: Sequence[Event], given_labels: Labels, truth: FloatArray, weight: float) -> Curve:
            last = given_labels.classes - 1
            classed = [
                msgspec.structs.replace(e, answer=e.answer if e.answer >= 0 else last) if isinstance(e, Answer) else e
                for e in events
            ]
            return drawn(classed, given_labels, truth, weight)

        catches(partial(self.law, draw=literal))


def plain(*shares: float) -> Curve:
    return Curve(*(np.array(shares) for _ in Curve.__struct_fields__))


class TestSummaries:
    """What is told of a curve: its area, when it reaches a share, its course from visit to visit."""

    def test_the_area_is_the_mean_of_the_trapezoids(self) -> None:
        assert plain(0.5, 0.7, 1.0).auc() == pytest.approx(((0.5 + 0.7) / 2 + (0.7 + 1.0) / 2) / 2)
        assert plain(0.7).auc() == 0.7

    def test_answers_to_a_share(self) -> None:
        falling_back = plain(0.5, 0.8, 0.7, 0.9)
        assert [falling_back.answers_to(share) for share in (0.5, 0.75, 0.9, 0.95)] == [0, 1, 3, None]

    def test_straight_from_visit_to_visit(self) -> None:
        whole = plain(0.0, 0.9, 0.3, 0.9, 0.9, 0.5, 0.4)
        assert whole.at_visits(np.array([2, 5])).share_correct == pytest.approx([0, 0.15, 0.3, 1.1 / 3, 1.3 / 3, 0.5])
        assert whole.at_visits(np.array([], int)).share_correct.tolist() == [0.0]
        assert whole.at_visits(np.array([2, 99])).answers == 2

    def test_visits_end_where_an_item_is_left(self) -> None:
        verdicts = [-1, 1, 0, -1, -1, -4]
        events: list[Event] = [
            Answer(n, item=n, annotator=None, answer=0, ranking=1, counted=True, verdict=verdict, at=0.0)
            for n, verdict in enumerate(verdicts)
        ]
        assert visit_ends(events).tolist() == [2, 3, 6]

    def test_a_band_is_mean_and_spread_as_far_as_all_go(self) -> None:
        shares = [(0.5, 0.6, 0.9), (0.5, 0.8), (0.5, 0.7, 1.0)]
        found = band([plain(*each) for each in shares])
        assert found.mean == pytest.approx([0.5, 0.7])
        assert found.deviation == pytest.approx([0, stdev([0.6, 0.8, 0.7])])
        half = 1.96 * stdev([0.6, 0.8, 0.7]) / math.sqrt(3)
        assert found.low == pytest.approx([0.5, mean([0.6, 0.8, 0.7]) - half])
        assert found.high == pytest.approx([0.5, mean([0.6, 0.8, 0.7]) + half])

    def test_one_run_has_no_spread(self) -> None:
        assert band([plain(0.5, 0.6)], "clear_left").deviation.tolist() == [0.0, 0.0]


class TestDifficult:
    """An item is difficult above 0.3 of the entropy that a coin with as many sides has, and not at it."""

    def test_entropy_is_a_share_of_its_most(self) -> None:
        truth = np.array([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0]])
        assert true_entropy(truth) == pytest.approx([0, 1, math.log(2) / math.log(3)])

    def test_strictly_above(self, monkeypatch: pytest.MonkeyPatch) -> None:
        truth = np.array([[0.5, 0.5, 0.0, 0.0], [0.6, 0.4, 0.0, 0.0]])
        monkeypatch.setattr("relook.curves.DIFFICULT_ABOVE", 0.5)
        assert difficult(truth).tolist() == [False, False]
        monkeypatch.setattr("relook.curves.DIFFICULT_ABOVE", 0.4999)
        assert difficult(truth).tolist() == [True, False]

    def test_a_class_that_nobody_has_makes_items_clearer(self) -> None:
        shares = 0.96, 0.04
        entropy = -sum(share * math.log(share) for share in shares)
        assert difficult(np.array([[*shares]])).tolist() == [entropy / math.log(2) > 0.3]
        assert difficult(np.array([[0.9, 0.1]])).tolist() == [True]
        assert difficult(np.array([[0.9, 0.1, 0.0, 0.0]])).tolist() == [False]


def test_no_answers_are_a_point() -> None:
    """Nothing was asked: the labels are as they came, the unlabelled item is wrong."""
    found = curve([], Labels(np.array([0, 1, -1]), 2), truth=np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]]))
    values = [getattr(found, name).tolist() for name in Point._fields]
    assert values == [[1 / 3], [1 / 3], [1], [1], [0], [0]]
    assert found.answers == 0
