"""Simulated annotators: the crowd answers alike in any order, the sequential one repeats the released code's draws."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook.annotators import Annotator, ByConfusion, Crowd, Panel, Perfect, Recorded, SequentialCrowd
from relook.errors import BadInput, NotAllowed
from relook.events import CANNOT_TELL, NONE_OF_THESE
from relook.noise import draw
from relook.rng import uniform
from relook.types import FloatArray
from tests.laws import FAULT, LAW

Make = Callable[[FloatArray, int], Annotator]

ENOUGH = 4_100
"""Items of which two single questions are answered singly before the column of all answers is drawn."""


@st.composite
def truths(example: st.DrawFn, items: st.SearchStrategy[int]) -> FloatArray:
    """True distributions, some of them unanimous, in a cycle of up to six rows."""
    classes = example(st.integers(2, 6))
    row = st.lists(st.integers(0, 9), min_size=classes, max_size=classes).filter(any)
    counts = np.array(example(st.lists(row, min_size=1, max_size=6)), float)
    return np.resize(counts / counts.sum(1, keepdims=True), (example(items), classes))


def heard(annotator: Annotator, questions: Iterable[tuple[int, int]]) -> dict[tuple[int, int], int]:
    return {(item, nth): annotator(item, nth) for item, nth in questions}


class TestAnyOrder:
    """The law: the same questions in another order, or some of them twice, hear the same answers."""

    def law(self, make: Make, how: settings = LAW) -> None:
        @how
        @given(truths(st.integers(1, 30)), st.integers(0, 2**32), st.data())
        def check(truth: FloatArray, seed: int, example: st.DataObject) -> None:
            question = st.tuples(st.integers(0, len(truth) - 1), st.integers(0, 6))
            questions = example.draw(st.lists(question, min_size=1, max_size=40))
            shuffled = example.draw(st.permutations(questions))
            assert heard(make(truth, seed), questions) == heard(make(truth, seed), shuffled)

        check()

    @pytest.mark.parametrize(
        "make",
        [
            pytest.param(Crowd, id="crowd"),
            pytest.param(lambda truth, seed: Panel(truth, [0.3, 0.9] * 4, seed=seed), id="panel"),
            pytest.param(lambda truth, seed: Panel(truth, [0.3, 0.9] * 4, seed=seed).person(5), id="person"),
            pytest.param(
                lambda truth, seed: ByConfusion(truth.argmax(1), np.full((6, 6), 1 / 6), seed=seed), id="confusion"
            ),
        ],
    )
    def test_holds(self, make: Make) -> None:
        self.law(make)

    def test_a_crowd_that_answers_in_turn_is_caught(self) -> None:
        with pytest.raises(AssertionError):
            self.law(SequentialCrowd, FAULT)


class LateColumn:
    """A planted fault: once the answers of all items are drawn together, they are others than before."""

    def __init__(self, truth: FloatArray, seed: int) -> None:
        self.first, self.later, self.asked = Crowd(truth, seed), Crowd(truth, seed + 1), 0

    def __call__(self, item: int, nth: int) -> int:
        self.asked += 1
        return self.first(item, nth) if self.asked < 3 else self.later(item, nth)


class TestColumn:
    """The law: answers drawn for all items at once are those drawn one by one, by a slow walk up the running sum."""

    def law(self, make: Make, how: settings = LAW) -> None:
        @how
        @given(truths(st.just(ENOUGH)), st.integers(0, 2**32), st.integers(0, 9), st.data())
        def check(truth: FloatArray, seed: int, nth: int, example: st.DataObject) -> None:
            crowd = make(truth, seed)
            for item in example.draw(st.lists(st.integers(0, ENOUGH - 1), min_size=6, max_size=12)):
                number, answer = float(uniform(seed, np.array([item]), nth)[0]), 0
                steps = (truth[item].cumsum() / truth[item].cumsum()[-1]).tolist()
                while number >= steps[answer]:
                    answer += 1
                assert crowd(item, nth) == answer

        check()

    def test_holds(self) -> None:
        self.law(Crowd)

    @pytest.mark.parametrize("fault", [LateColumn, lambda truth, seed: Crowd(truth[::-1], seed)])
    def test_fault_is_caught(self, fault: Make) -> None:
        with pytest.raises(AssertionError):
            self.law(fault, FAULT)

    def test_both_paths_were_walked(self) -> None:
        crowd = Crowd(np.full((ENOUGH, 2), 0.5), seed=0)
        assert [(crowd(item, 0), sorted(crowd._columns))[1] for item in (5, 6, 7)] == [[], [], [0]]


class TestFrequencies:
    """The law: answers follow the distribution, and an item's second answer knows nothing of its first."""

    def law(self, make: Make, how: settings = LAW) -> None:
        @how
        @given(truths(st.just(1)), st.integers(0, 2**32), st.integers(0, 5))
        def check(row: FloatArray, seed: int, nth: int) -> None:
            items = 600
            crowd = make(np.resize(row, (items, row.shape[1])), seed)
            pairs = Counter((crowd(item, nth), crowd(item, nth + 1)) for item in range(items))
            for first, of_first in enumerate(row[0]):
                for second, of_second in enumerate(row[0]):
                    expected = items * of_first * of_second
                    assert abs(pairs[first, second] - expected) <= 6 * np.sqrt(expected) + 6

        check()

    def test_holds(self) -> None:
        self.law(Crowd)

    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param(lambda truth, seed: Panel(truth, [1.0], seed=seed).person(0), id="never another answer"),
            pytest.param(lambda truth, seed: Panel(truth, [0.8] * 7, seed=seed), id="guesses among them"),
        ],
    )
    def test_fault_is_caught(self, fault: Make) -> None:
        with pytest.raises(AssertionError):
            self.law(fault, FAULT)


class TestSequential:
    """The law: the answers are those of one `RandomState`, asked for one choice an answer."""

    def law(self, make: Make, how: settings = LAW) -> None:
        @how
        @given(truths(st.integers(1, 30)), st.integers(0, 2**32 - 1), st.data())
        def check(truth: FloatArray, seed: int, example: st.DataObject) -> None:
            questions = example.draw(st.lists(st.integers(0, len(truth) - 1), min_size=1, max_size=30))
            crowd, random = make(truth, seed), np.random.RandomState(seed)
            for item in questions:
                assert crowd(item, 0) == random.choice(truth.shape[1], 1, p=truth[item])[0]

        check()

    def test_holds(self) -> None:
        self.law(SequentialCrowd)

    def test_the_crowd_of_any_order_is_caught(self) -> None:
        with pytest.raises(AssertionError):
            self.law(Crowd, FAULT)

    def test_goes_on_beyond_one_chunk_of_draws(self) -> None:
        truth = np.random.default_rng(0).dirichlet(np.ones(7), 50)
        crowd, random = SequentialCrowd(truth, seed=1234), np.random.RandomState(1234)
        for number in range(10_000):
            steps, draw_, label = (
                (truth[number % 50].cumsum() / truth[number % 50].cumsum()[-1]),
                random.random_sample(),
                0,
            )
            while draw_ >= steps[label]:
                label += 1
            assert crowd(number % 50, number) == label


class TestPanel:
    def test_with_full_skills_its_people_are_the_crowd_dealt_out(self) -> None:
        truth = np.random.default_rng(0).dirichlet(np.ones(5), 40)
        panel, crowd = Panel(truth, [1.0] * 6, seed=3), Crowd(truth, seed=3)
        for item in range(40):
            for nth in range(6):
                assert panel.person(nth)(item, 0) == panel.person(nth)(item, 4) == panel(item, nth) == crowd(item, nth)

    def test_skill_is_the_share_of_answers_that_are_no_guess(self) -> None:
        truth = np.resize([[1.0, 0.0, 0.0, 0.0]], (20_000, 4))
        panel = Panel(truth, [0.0, 0.6, 1.0], seed=0)
        right = [np.mean([panel.person(j)(item, 0) == 0 for item in range(20_000)]) for j in range(3)]
        assert right == pytest.approx([0.25, 0.7, 1.0], abs=0.02)
        assert panel.skills == (0.0, 0.6, 1.0)

    def test_people_differ(self) -> None:
        panel = Panel(np.full((100, 2), 0.5), [1.0] * 5, seed=0)
        answers = [tuple(panel.person(j)(item, 0) for item in range(100)) for j in range(len(panel))]
        assert all(one != other for one, other in pairwise(answers))

    def test_ends_when_all_have_answered(self) -> None:
        with pytest.raises(NotAllowed, match="all 2 people have answered item 1; enlarge the panel"):
            Panel(np.eye(2), [1.0, 1.0], seed=0)(1, 2)


def test_perfect_gives_the_true_class() -> None:
    perfect = Perfect(np.array([2, 0, 300]))
    assert [perfect(item, nth) for item in range(3) for nth in range(2)] == [2, 2, 0, 0, 300, 300]


def test_confusion_follows_its_matrix() -> None:
    matrix = np.array([[0.7, 0.3, 0.0], [0.0, 0.2, 0.8], [0.0, 0.0, 1.0]])
    true = np.resize([0, 1, 2], 30_000)
    confused = ByConfusion(true, matrix, seed=0)
    answers = np.array([confused(item, 1) for item in range(30_000)])
    shares = [np.bincount(answers[true == y], minlength=3) / 10_000 for y in range(3)]
    np.testing.assert_allclose(shares, matrix, atol=0.02)
    assert (np.array(shares)[matrix == 0] == 0).all()


def test_recorded_answers_come_in_their_order() -> None:
    recorded = Recorded([[2, 0, CANNOT_TELL], [], [NONE_OF_THESE]])
    assert [recorded(0, nth) for nth in (2, 0, 1)] == [CANNOT_TELL, 2, 0]
    assert recorded(2, 0) == NONE_OF_THESE
    with pytest.raises(NotAllowed, match="item 0 has 3, but number 4 was asked for; lower the budget"):
        recorded(0, 3)
    with pytest.raises(NotAllowed, match="item 1 has 0, but number 1 was asked for"):
        recorded(1, 0)


def test_real_crowd_answers_as_on_cifar10h(data_dir: Path) -> None:
    """A single answer is right with .954 on average (0.954 of the recorded ones agree with their majority)."""
    counts = np.load(data_dir / "cifar10h" / "cifar10h-counts.npy", allow_pickle=False)
    truth = counts / counts.sum(1, keepdims=True)
    crowd, right = Crowd(truth, seed=0), truth.argmax(1).tolist()
    share = np.mean([crowd(item, nth) == right[item] for item in range(10_000) for nth in range(3)])
    assert share == pytest.approx(truth.max(1).mean(), abs=0.005)
    assert truth.max(1).mean() == pytest.approx(0.954, abs=0.002)


@pytest.mark.parametrize("make", [Crowd, SequentialCrowd])
def test_a_campaign_of_answers_takes_microseconds_each(make: Make) -> None:
    """A loose bound: about 0.4 microseconds were measured, and a draw by numpy a question costs above 10."""
    truth = np.random.default_rng(0).dirichlet(np.ones(10), 5_000)
    order = np.random.default_rng(1).permutation(5_000).tolist()
    questions = [(item, nth) for item in order for nth in range(1 + item % 3)][:4_500]
    taken = []
    for seed in range(5):
        start = time.process_time()
        crowd = make(truth, seed)
        for item, nth in questions:
            crowd(item, nth)
        taken.append((time.process_time() - start) / len(questions))
    assert min(taken) < 4e-6


TRUTH = np.eye(3)


@pytest.mark.parametrize("make", [Crowd, SequentialCrowd])
@pytest.mark.parametrize(("item", "nth"), [(3, 0), (-1, 0), (3, 1)])
def test_an_item_out_of_range_is_named(make: Make, item: int, nth: int) -> None:
    crowd = make(TRUTH, 0)
    heard(crowd, [(0, 0), (1, 0), (2, 0)])
    with pytest.raises(BadInput, match=f"items 0 to 2 are known, but item {item} was asked about; is it another set"):
        crowd(item, nth)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Crowd(TRUTH, 0)(0, -1), "answers are counted from 0, but answer -1 of item 0 was asked for"),
        (lambda: Crowd(TRUTH * 2, 0), "item 0 sums to 2.000"),
        (lambda: SequentialCrowd(TRUTH * 2, 0), "item 0 sums to 2.000"),
        (lambda: Perfect(np.array([1]))(-1, 0), "items 0 to 0 are known, but item -1 was"),
        (lambda: Perfect(np.array([1]))(1, 0), "items 0 to 0 are known, but item 1 was"),
        (
            lambda: Perfect(np.array([0.5])),
            r"one true class an item was needed, but float64 of shape \(1,\) came; take",
        ),
        (lambda: Perfect(TRUTH.astype(int)), r"one true class an item was needed, but int64 of shape \(3, 3\)"),
        (lambda: Perfect(np.array([0, -1])), "classes of 0 or more were needed, but item 1 has -1; give its true"),
        (
            lambda: ByConfusion(np.array([0]), np.eye(3)[:2], seed=0),
            r"C x C confusions were needed, but shape \(2, 3\) came",
        ),
        (
            lambda: ByConfusion(np.array([0, 3]), TRUTH, seed=0),
            "matrix has 3 classes, but item 1 has class 3; add its row",
        ),
        (lambda: Panel(TRUTH, [], seed=0), "at least one person was needed, but no skills came; give one share"),
        (lambda: Panel(TRUTH, [0.5, 1.2], seed=0), "a skill must lie in 0 to 1, but person 1 has 1.2; 1 is the crowd"),
        (lambda: Panel(TRUTH, [0.5], seed=0).person(1), "people 0 to 0 were needed, but person 1 came; enlarge it"),
        (lambda: Panel(TRUTH, [0.5], seed=0)(7, 0), "items 0 to 2 are known, but item 7 was"),
        (lambda: Recorded([]), "at least one item was needed, but none came; give one row an item"),
        (lambda: Recorded([[0], [-3]]), "classes or codes were needed, but item 1 has -3; see events"),
        (lambda: Recorded([[0]])(1, 0), "items 0 to 0 are known, but item 1 was"),
    ],
)
def test_bad_input(act: Callable[[], Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        act()


def test_the_crowd_draws_as_a_noise_model_does() -> None:
    truth = np.random.default_rng(0).dirichlet(np.ones(4), 100)
    together = draw(truth, uniform(5, np.arange(100), 2)).tolist()
    assert [Crowd(truth, seed=5)(item, 2) for item in range(100)] == together
