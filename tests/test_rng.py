"""Chance as an argument: the same seed and names give the same stream, on every machine and in every release."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from relook.annotators import Crowd
from relook.rng import generator, uniform
from tests.laws import LAW, catches

GOLDEN = [
    [0.8449295819660342, 0.8215997947031167, 0.07776846064084397],
    [0.5514215852554385, 0.011390659887417831, 0.8105438012801395],
]
GOLDEN_STREAM = [10, 0, 43, 632]

Draw = Callable[[int, NDArray[Any], int], NDArray[np.float64]]


class TestUniform:
    """A number depends on (seed, item, nth) alone: not on which others are asked for, nor in what order."""

    def law(self, how: settings, draw: Draw) -> None:
        @how
        @given(
            st.integers(-(2**40), 2**40), st.lists(st.integers(0, 2**31), min_size=1, max_size=30), st.integers(-1, 9)
        )
        def check(seed: int, items: list[int], nth: int) -> None:
            together = draw(seed, np.array(items), nth)
            backwards = draw(seed, np.array(items[::-1], np.int64), nth)[::-1]
            alone = np.concatenate([draw(seed, np.array([item], np.uint32), nth) for item in items])
            assert together.tolist() == backwards.tolist() == alone.tolist()
            assert ((together >= 0) & (together < 1)).all()

        check()

    def test_holds(self) -> None:
        self.law(LAW, uniform)

    def test_numbers_drawn_one_after_the_other_are_caught(self) -> None:
        def sequential(seed: int, items: NDArray[Any], nth: int) -> NDArray[np.float64]:
            return np.random.default_rng([abs(seed), nth + 1]).random(len(items))

        catches(partial(self.law, draw=sequential))

    def test_they_stay_as_they_were_in_every_release(self) -> None:
        """Old campaigns and published figures rest on these numbers."""
        assert uniform(0, np.arange(3), 0).tolist() == GOLDEN[0]
        assert uniform(1234, np.array([0, 7, 4999]), 2).tolist() == GOLDEN[1]
        assert generator(0, "noise", "digits").integers(0, 1000, 4).tolist() == GOLDEN_STREAM

    def test_seed_item_and_nth_each_matter(self) -> None:
        items = np.arange(1000)
        drawn = [uniform(seed, items, nth) for seed in range(5) for nth in range(-1, 5)]
        assert len(np.unique(np.concatenate(drawn))) == 30_000

    def test_they_are_spread_evenly_and_independent(self) -> None:
        numbers = np.array([uniform(3, np.arange(20_000), nth) for nth in range(4)])
        for row in numbers:
            shares = np.histogram(row, bins=20, range=(0, 1))[0] / len(row)
            assert shares == pytest.approx(0.05, abs=0.008)
        correlation = np.corrcoef(numbers) - np.eye(4)
        assert np.abs(correlation).max() < 0.04
        assert abs(np.corrcoef(numbers[0][1:], numbers[0][:-1])[0, 1]) < 0.03


def test_streams_have_names() -> None:
    def first(seed: int, *names: str | int) -> int:
        return int(generator(seed, *names).integers(2**60))

    assert first(0, "noise", "digits") == first(0, "noise", "digits")
    assert (
        len({first(0), first(1), first(0, "a"), first(0, "b"), first(0, "a", "b"), first(0, "ab"), first(0, "a", 1)})
        == 7
    )


class TestCrowd:
    """The crowd answers alike in whatever order and however often it is asked."""

    def law(self, how: settings, make: Callable[[NDArray[np.float64], int], Callable[[int, int], int]]) -> None:
        questions = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=30)

        @how
        @given(st.integers(0, 2**32 - 1), questions, st.randoms())
        def check(seed: int, asked: list[tuple[int, int]], random: Any) -> None:
            truth = np.random.default_rng(seed).dirichlet(np.ones(3), 6)
            shuffled = random.sample(asked, len(asked))
            one, other = make(truth, seed), make(truth, seed)
            first = {question: one(*question) for question in asked}
            assert first == {question: other(*question) for question in shuffled}
            assert first == {question: one(*question) for question in shuffled}

        check()

    def test_holds(self) -> None:
        self.law(LAW, Crowd)

    def test_a_crowd_that_depends_on_the_order_of_calls_is_caught(self) -> None:
        def sequential(truth: NDArray[np.float64], seed: int) -> Callable[[int, int], int]:
            random = np.random.default_rng(seed)
            return lambda item, _: int(random.choice(truth.shape[1], p=truth[item]))

        catches(partial(self.law, make=sequential))
