"""Folds are equal, split no group, and no model predicts what it has seen."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from relook.errors import BadInput
from relook.folds import Fold, cut, out_of_fold, repeated
from relook.types import FloatArray, IntArray
from tests.laws import FAULT, LAW

Folds = Callable[..., IntArray]


class TestFolds:
    """The law: folds are as equal as can be, so is every class among them, and the unlabelled are in none."""

    def law(self, folds_of: Folds, how: settings = LAW) -> None:
        @how
        @given(st.lists(st.integers(-1, 4), min_size=5, max_size=60), st.integers(2, 5), st.integers(0, 99))
        def check(target: list[int], folds: int, seed: int) -> None:
            labels = np.array(target)
            assume((labels >= 0).sum() >= folds)
            fold_of = folds_of(labels, folds=folds, rng=np.random.default_rng(seed))
            assert ((fold_of < 0) == (labels < 0)).all()
            for group in (labels >= 0, *(labels == label for label in range(5))):
                sizes = np.bincount(fold_of[group], minlength=folds)
                assert sizes.shape == (folds,)
                assert sizes.max() - sizes.min() <= 1

        check()

    def test_holds(self) -> None:
        self.law(cut)

    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param(
                lambda target, folds, rng: np.where(target < 0, -1, rng.permutation(len(target)) % folds),
                id="not by class",
            ),
            pytest.param(
                lambda target, folds, rng: cut(np.abs(target), folds=folds, rng=rng),
                id="the unlabelled among them",
            ),
        ],
    )
    def test_fault_is_caught(self, fault: Folds) -> None:
        with pytest.raises(AssertionError):
            self.law(fault, FAULT)

    def test_chance_decides_who_is_where(self) -> None:
        target = np.zeros(50, int)
        cuts = [cut(target, folds=5, rng=np.random.default_rng(seed)).tolist() for seed in (0, 0, 1)]
        assert cuts[0] == cuts[1] != cuts[2]


class TestGroups:
    """The law: a group lies in one fold, and folds of a class differ by no more than its largest group."""

    def law(self, folds_of: Folds, how: settings = LAW) -> None:
        @how
        @given(st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 12)), min_size=8, max_size=60), st.integers(2, 4))
        def check(items: list[tuple[int, int]], folds: int) -> None:
            target, group_of = (np.array(part) for part in zip(*items, strict=True))
            labelled = np.unique(group_of[target >= 0])
            assume(len(labelled) >= folds)
            names = [f"patient {group}" for group in group_of]
            fold_of = folds_of(target, folds=folds, rng=np.random.default_rng(0), groups=names)
            for group in np.unique(group_of):
                assert len(set(fold_of[group_of == group].tolist())) == 1
            assert ((fold_of >= 0) == np.isin(group_of, labelled)).all()
            assert set(fold_of.tolist()) >= set(range(folds))

        check()

    def test_holds(self) -> None:
        self.law(cut)

    def test_fault_is_caught(self) -> None:
        with pytest.raises(AssertionError):
            self.law(lambda target, folds, rng, groups: cut(target, folds=folds + 0 * len(groups), rng=rng), FAULT)

    def test_folds_of_a_class_differ_by_one_group_of_it_at_most(self) -> None:
        rng = np.random.default_rng(3)
        sizes = rng.integers(1, 20, 60)
        class_of = rng.integers(0, 3, 60)
        group_of, target = np.repeat(np.arange(60), sizes), np.repeat(class_of, sizes)
        fold_of = cut(target, folds=4, rng=rng, groups=group_of)
        for label in range(3):
            held = np.bincount(fold_of[target == label], minlength=4)
            assert held.max() - held.min() <= sizes[class_of == label].max()

    def test_a_group_counts_for_the_class_that_most_of_its_items_have(self) -> None:
        target = np.array([0, 0, 1, 0, 0, 1, 1, 1, 0, 1])
        groups = ["a", "a", "a", "b", "b", "c", "c", "d", "d", "d"]
        fold_of = cut(target, folds=2, rng=np.random.default_rng(0), groups=groups)
        of = dict(zip(groups, fold_of.tolist(), strict=True))
        assert of["a"] != of["b"]
        assert of["c"] != of["d"]


def even(fold: Fold) -> FloatArray:
    """Say nothing of two classes."""
    return np.ones((len(fold.asked), 2))


TARGET = np.array([0, 1, 0, 1, 2, 2, 0, 1, -1])
FOLD_OF = np.array([0, 1, 1, 0, 0, 1, 0, 1, -1])


class TestOutOfFold:
    def test_no_model_predicts_what_it_has_seen(self) -> None:
        asked: list[IntArray] = []

        def fit(fold: Fold) -> FloatArray:
            assert not np.intersect1d(fold.train, fold.asked).size
            assert (TARGET[fold.train] >= 0).all()
            assert (FOLD_OF[fold.train] != fold.number).all()
            asked.append(fold.asked)
            return np.ones((len(fold.asked), 3))

        out_of_fold(fit, TARGET, fold_of=FOLD_OF, classes=3)
        assert np.bincount(np.concatenate(asked)).tolist() == [1] * 8 + [2]

    def test_a_class_that_was_never_seen_has_nothing(self) -> None:
        target = np.array([0, 1, 0, 1, 2])
        found = out_of_fold(
            lambda fold: np.ones((len(fold.asked), 4)), target, fold_of=np.array([0, 0, 1, 1, 1]), classes=4
        )
        assert found.tolist() == [[1 / 3] * 3 + [0]] * 2 + [[0.5, 0.5, 0, 0]] * 3

    def test_a_model_that_says_nothing_of_what_it_saw_says_all_alike(self) -> None:
        found = out_of_fold(lambda fold: np.zeros((len(fold.asked), 3)), TARGET, fold_of=FOLD_OF, classes=3)
        assert np.allclose(found, 1 / 3)

    def test_cuts_are_averaged_and_numbered(self) -> None:
        numbers: list[int] = []

        def fit(number: int) -> Callable[[Fold], FloatArray]:
            numbers.append(number)
            return lambda fold: np.tile(np.eye(3)[number], (len(fold.asked), 1))

        found = repeated(fit, TARGET, cuts=[FOLD_OF, FOLD_OF], classes=3)
        assert numbers == [0, 1]
        assert found.tolist() == [[0.5, 0.5, 0.0]] * 9


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: cut(TARGET, folds=1, rng=np.random.default_rng(0)), "folds: at least 2 were needed, but 1 came"),
        (lambda: cut(TARGET, folds=9, rng=np.random.default_rng(0)), "a labelled item for each of 9 was needed, but 8"),
        (
            lambda: cut(TARGET, folds=3, rng=np.random.default_rng(0), groups=["a"] * 4 + ["b"] * 5),
            "a labelled group for each of 3 was needed, but 2 came; take fewer folds",
        ),
        (
            lambda: out_of_fold(
                lambda fold: np.ones((len(fold.asked), 2)), np.array([0, 1]), fold_of=np.array([0, 1]), classes=2
            ),
            "two classes were needed to learn from, but without fold 0 only class 1 is left; label items",
        ),
        (
            lambda: out_of_fold(
                lambda fold: np.ones((len(fold.asked), 2)), np.array([0, 1]), fold_of=np.array([0, 0]), classes=2
            ),
            "two classes were needed to learn from, but without fold 0 no labelled item is left",
        ),
    ],
)
def test_bad_input(act: Callable[[], object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        act()
