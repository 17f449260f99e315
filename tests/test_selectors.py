"""Posteriors by logistic regression: out of sample, a column for every class, nothing learnt from the unlabelled."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relook.datasets import cifar10h, digits
from relook.errors import BadInput
from relook.selectors.logistic import Logistic, cross_fitted
from relook.types import FloatArray, IntArray, Labels, Posteriors


def clouds(items: int, classes: int = 3) -> tuple[FloatArray, IntArray]:
    """Well-parted classes in four dimensions."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, classes, items)
    return rng.normal(size=(items, 4)) + 6 * np.eye(classes, 4)[true], true


class TestOutOfSample:
    """Labels that are pure chance cannot be predicted by a model that never saw them."""

    def guessed(self, predict: Callable[[FloatArray, Labels], FloatArray]) -> float:
        rng = np.random.default_rng(0)
        features, labels = rng.normal(size=(300, 200)), rng.integers(0, 2, 300)
        return float((predict(features, Labels(labels, 2)).argmax(1) == labels).mean())

    def test_chance_is_not_predicted(self) -> None:
        loose = Logistic(logit_variance=1e6, repeats=2)
        assert 0.4 < self.guessed(lambda features, labels: loose(features, labels).mean()) < 0.6

    def test_a_model_that_saw_them_is_caught(self) -> None:
        from sklearn.linear_model import LogisticRegression

        def in_sample(features: FloatArray, labels: Labels) -> FloatArray:
            fitted: FloatArray = LogisticRegression(C=1e4).fit(features, labels.given).predict_proba(features)
            return fitted

        assert self.guessed(in_sample) > 0.95

    def test_marked_as_such(self) -> None:
        features, true = clouds(30)
        assert not cross_fitted(features, Labels(true, 3)).in_sample


class TestClasses:
    def test_learns_parted_classes(self) -> None:
        features, true = clouds(120)
        posteriors = cross_fitted(features, Labels(true, 3))
        assert posteriors.values.shape == (1, 120, 3)
        assert (posteriors.mean().argmax(1) == true).all()

    def test_every_class_has_a_column(self) -> None:
        features, true = clouds(60)
        true[0] = 4
        mean = cross_fitted(features, Labels(true, 6)).mean()
        assert mean.shape == (60, 6)
        assert mean[0, 4] == 0, "its only item trained no model that predicts it"
        assert (mean[1:, 4] > 0).sum() >= 40, "the other folds' models know it"
        assert (mean[:, [3, 5]] == 0).all(), "nobody has these"
        np.testing.assert_allclose(mean.sum(1), 1)

    def test_two_classes(self) -> None:
        features, true = clouds(40, classes=2)
        assert (cross_fitted(features, Labels(true, 2), folds=2).mean().argmax(1) == true).all()

    def test_labels_are_the_majority_of_given_and_answers(self) -> None:
        features, true = clouds(60)
        given, answers = (true + 1) % 3, np.zeros((60, 3), int)
        answers[np.arange(60), true] = 2
        assert (cross_fitted(features, Labels(given, 3, answers)).mean().argmax(1) == true).all()


class TestUnlabelled:
    def test_predicted_and_never_trained_on(self) -> None:
        features, true = clouds(150)
        given = np.where(np.arange(150) < 90, true, -1)
        mean = cross_fitted(features, Labels(given, 3)).mean()
        assert (mean.argmax(1) == true).all()
        np.testing.assert_allclose(mean.sum(1), 1)

    def test_they_change_nobody_else_s_model(self) -> None:
        """They have the others' own features here, for theirs count in the common scale."""
        features, true = clouds(60)
        twice = np.vstack([features, features])
        alone = cross_fitted(features, Labels(true, 3)).mean()
        among = cross_fitted(twice, Labels(np.concatenate([true, np.full(60, -1)]), 3)).mean()
        np.testing.assert_allclose(among[:60], alone, atol=2e-3)


class TestSettings:
    def test_the_same_for_a_seed(self) -> None:
        ten = digits.load()
        assert ten.features is not None
        features, labels = ten.features[:300], Labels(ten.given.given[:300], 10)
        first, again, other = (cross_fitted(features, labels, seed=seed).mean() for seed in (4, 4, 5))
        assert np.array_equal(first, again)
        assert not np.allclose(first, other)

    def test_repeats_are_averaged(self) -> None:
        features, true = clouds(60)
        labels = Labels(true, 3)
        twice = cross_fitted(features, labels, repeats=2).mean()
        once = cross_fitted(features, labels).mean()
        assert not np.allclose(twice, once, atol=1e-6)
        assert np.abs(twice - once).max() < 0.2

    def test_a_constant_feature_says_nothing(self) -> None:
        features, true = clouds(60)
        with_one = np.hstack([features, np.full((60, 1), 7.0)])
        plain = Logistic(logit_variance=4.0)(features, Labels(true, 3)).mean()
        np.testing.assert_allclose(Logistic(logit_variance=5.0)(with_one, Labels(true, 3)).mean(), plain, atol=1e-6)

    def test_scale_of_features_does_not_matter(self) -> None:
        features, true = clouds(60)
        other = features * np.array([1e-3, 1, 10, 1e4]) + 5
        plain = cross_fitted(features, Labels(true, 3)).mean()
        np.testing.assert_allclose(cross_fitted(other, Labels(true, 3)).mean(), plain, atol=1e-6)

    def test_is_a_record(self) -> None:
        assert Logistic(folds=3) == Logistic(folds=3, repeats=1, logit_variance=1.5)
        assert repr(Logistic()) == "Logistic(folds=5, repeats=1, logit_variance=1.5, targets='majority')"


class TestRealLabels:
    """What the default is good for, on labels that are wrong on purpose."""

    def right(self, posteriors: Posteriors, true: IntArray) -> float:
        return float((posteriors.mean().argmax(1) == true).mean())

    def test_digits(self) -> None:
        ten = digits.load()
        assert ten.features is not None
        assert self.right(cross_fitted(ten.features, ten.given), ten.true_class) > 0.91
        assert (ten.given.given == ten.true_class).mean() < 0.83

    @pytest.mark.slow
    def test_embeddings_under_30_percent_noise(self, data_dir: Path) -> None:
        paper = cifar10h.load(data_dir, subset="paper", tau=10.0)
        table = np.load(data_dir / "embeddings" / "cifar10-test-byol60k.npy", allow_pickle=False)
        posteriors = cross_fitted(table[[int(name) for name in paper.ids]], paper.given)
        assert 0.69 < self.right(posteriors, paper.true_class) < 0.715


FEATURES, LABELS = np.arange(12.0).reshape(6, 2), Labels(np.array([0, 1, 0, 1, 0, 1]), 2)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Logistic(folds=1), "at least 2 folds were needed, but 1 came; 5 is usual"),
        (lambda: Logistic(repeats=0), "at least 1 repeat was needed, but 0 came; 1 is usual"),
        (lambda: Logistic(logit_variance=0.0), "the logit variance must be above 0, but 0.0 came; 1.5 is usual"),
        (
            lambda: cross_fitted(FEATURES[:, 0], LABELS),
            r"N x D numbers were needed, but float64 of shape \(6,\) ",
        ),
        (
            lambda: cross_fitted(FEATURES[:5], LABELS),
            "6 items have labels, but 5 have features; pass those of the same",
        ),
        (
            lambda: cross_fitted(FEATURES / 0.0, LABELS),
            "each number must be finite, but item 0 holds NaN",
        ),
        (lambda: cross_fitted(FEATURES, LABELS, folds=7), "a labelled item for each of 7 was needed, but 6 came; take"),
        (
            lambda: cross_fitted(FEATURES, Labels(np.zeros(6, int), 2)),
            "labels: two classes were needed to learn from, but all labelled items are of class 0; label items of an",
        ),
        (
            lambda: cross_fitted(FEATURES, Labels(np.eye(6, dtype=int)[5], 2), folds=2),
            r"two classes were needed to learn from, but without fold \d only class 0 is left",
        ),
    ],
)
def test_bad_input(act: Callable[[], Any], message: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(BadInput, match=message):
        act()


class TestGroups:
    """Items of one group are predicted by models that saw none of them."""

    def twins(self) -> tuple[FloatArray, Labels, list[str]]:
        """Items that come twice, with labels that nothing predicts but the twin."""
        rng = np.random.default_rng(0)
        points = rng.normal(size=(150, 60))
        labels = rng.integers(2, size=150)
        return np.repeat(points, 2, axis=0), Labels(np.repeat(labels, 2), 2), [str(row // 2) for row in range(300)]

    def agreement(self, groups: list[str] | None) -> float:
        features, labels, _ = self.twins()
        found = Logistic(logit_variance=1e4)(features, labels, groups=groups)
        return float((found.mean().argmax(1) == labels.given).mean())

    def test_a_twin_tells_nothing_where_it_is_in_the_group(self) -> None:
        _, _, groups = self.twins()
        assert self.agreement(None) > 0.65
        assert self.agreement(groups) < 0.6

    def test_an_unlabelled_item_of_a_group_is_predicted_without_it(self) -> None:
        features, labels, groups = self.twins()
        given = labels.given.copy()
        given[1::2] = -1
        found = Logistic(logit_variance=1e4)(features, Labels(given, 2), groups=groups)
        right = found.mean().argmax(1) == labels.given
        assert right[1::2].mean() < 0.62
        alone = Logistic(logit_variance=1e4)(features, Labels(given, 2))
        assert (alone.mean().argmax(1) == labels.given)[1::2].mean() > 0.8

    def test_too_few_groups_are_refused(self) -> None:
        features, labels, _ = self.twins()
        with pytest.raises(BadInput, match="a labelled group for each of 5 was needed, but 2 came; take fewer folds"):
            Logistic()(features, labels, groups=["a"] * 150 + ["b"] * 150)
