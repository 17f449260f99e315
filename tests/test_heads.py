"""The laws of every selector: out of sample, groups apart, a record of itself, and one sentence for bad input."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from relook import heads
from relook.errors import BadInput
from relook.selectors import SELECTORS, named
from relook.selectors.average import Average
from relook.selectors.knn import Knn
from relook.selectors.lda import Lda
from relook.selectors.logistic import Logistic
from relook.types import FloatArray, Labels, Posteriors

NAMES = list(SELECTORS)


def clouds(items: int = 120, classes: int = 3) -> tuple[FloatArray, Labels]:
    rng = np.random.default_rng(0)
    true = rng.integers(0, classes, items)
    return rng.normal(size=(items, 5)) + 6 * np.eye(classes, 5)[true], Labels(true, classes)


def twins() -> tuple[FloatArray, Labels, list[str]]:
    """Items that come twice, with labels that nothing predicts but the twin."""
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(150, 60)), rng.integers(2, size=150)
    return np.repeat(points, 2, axis=0), Labels(np.repeat(labels, 2), 2), [str(row // 2) for row in range(300)]


EAGER: dict[str, heads.Selector] = {
    "logistic": Logistic(logit_variance=1e4),
    "lda": Lda(shrinkage=0.0),
    "knn": Knn(neighbours=1),
    "average": Average((Logistic(logit_variance=1e4), Lda(shrinkage=0.0), Knn(neighbours=1))),
}
"""Selectors that follow the labels as closely as they can: they show what leaks."""


def agreement(found: Posteriors, labels: Labels) -> float:
    return float((found.mean().argmax(1) == labels.given).mean())


@pytest.mark.parametrize("name", NAMES)
class TestEverySelector:
    def test_learns_parted_classes(self, name: str) -> None:
        features, labels = clouds()
        found = named(name)(features, labels)
        assert agreement(found, labels) == 1
        assert not found.in_sample

    def test_labels_by_chance_are_not_repeated(self, name: str) -> None:
        rng = np.random.default_rng(1)
        labels = Labels(rng.integers(2, size=300), 2)
        assert 0.4 < agreement(EAGER[name](rng.normal(size=(300, 60)), labels), labels) < 0.6

    def test_a_twin_tells_nothing_where_it_is_in_the_group(self, name: str) -> None:
        features, labels, groups = twins()
        assert agreement(EAGER[name](features, labels, groups=groups), labels) < 0.6
        assert agreement(EAGER[name](features, labels), labels) > 0.65, "split groups leak, and it is seen"

    def test_a_label_that_one_item_alone_has_is_not_recalled(self, name: str) -> None:
        features, labels = clouds()
        planted = labels.given.copy()
        planted[7] = 3
        found = EAGER[name](features, Labels(planted, 4)).mean()
        assert found[7, 3] == 0

    def test_the_unlabelled_are_predicted_and_teach_nothing(self, name: str) -> None:
        features, labels = clouds()
        partly = Labels(np.where(np.arange(120) < 80, labels.given, -1), 3)
        assert agreement(named(name)(features, partly), labels) == 1

    def test_the_same_for_a_seed(self, name: str) -> None:
        features, labels = clouds()
        first, again = (named(name)(features, labels, seed=3).values for _ in range(2))
        assert np.array_equal(first, again)

    def test_more_columns_than_items(self, name: str) -> None:
        features, labels = clouds(60)
        wide = np.hstack([features, np.random.default_rng(0).normal(size=(60, 200)) * 0.01])
        wide[:, :5] *= 100
        found = named(name)((wide[:, :5], wide[:, 5:]), labels)
        assert agreement(found, labels) > 0.85

    def test_says_what_made_it(self, name: str) -> None:
        features, labels, groups = twins()
        answers = np.zeros((300, 2), int)
        answers[0, 1] = 3
        found = named(name)(features, Labels(labels.given, 2, answers), groups=groups, seed=5)
        assert found.about["selector"]["name"] == name.capitalize()
        assert (found.about["answers"], found.about["groups"], found.about["seed"]) == (3, 150, 5)
        assert found.about["labels"] == labels.fingerprint()
        assert set(found.about["calibration"]) == {"items", "log_loss", "error", "agreement"}

    def test_labels_are_those_that_stand(self, name: str) -> None:
        features, labels = clouds()
        answers = np.zeros((120, 3), int)
        answers[np.arange(120), labels.given] = 2
        found = named(name)(features, Labels((labels.given + 1) % 3, 3, answers))
        assert agreement(found, labels) == 1

    @pytest.mark.parametrize(
        ("features", "given", "message"),
        [
            (np.ones((6, 2)), [0] * 6, "two classes were needed to learn from, but all labelled items are of class 0"),
            (np.ones((6, 2)), [-1] * 6, "two classes were needed to learn from, but no item is labelled; label"),
            ((), [0, 1], "one table or several were needed, but an empty tuple came; pass N x D numbers"),
            (np.full((2, 2), np.nan), [0, 1], "each number must be finite, but item 0 holds NaN or an infinity"),
            ([[1.0], [1.0, 2.0]], [0, 1], "features: rows of one length were needed, but their lengths differ"),
            (np.ones((3, 2)), [0, 1], "features: 2 items have labels, but 3 have features; pass those of the same"),
        ],
    )
    def test_bad_input_is_one_sentence(self, name: str, features: FloatArray, given: list[int], message: str) -> None:
        with pytest.raises(BadInput, match=message):
            named(name)(features, Labels(np.array(given), 2))

    def test_a_class_of_one_item(self, name: str) -> None:
        features, labels = clouds(30)
        given = labels.given.copy()
        given[0] = 3
        found = named(name)(features, Labels(given, 4)).mean()
        assert found[0, 3] == 0
        assert (found[1:, 3] > 0).any()


@pytest.mark.parametrize("name", ["logistic", "lda", "average"])
def test_fewer_items_than_folds(name: str) -> None:
    with pytest.raises(BadInput, match="a labelled item for each of 5 was needed, but 4 came; take fewer folds"):
        named(name)(np.arange(4.0)[:, np.newaxis], Labels(np.array([0, 1, 0, 1]), 2))


class TestInSample:
    @pytest.mark.parametrize("name", ["logistic", "lda", "knn"])
    def test_is_marked_and_repeats_labels(self, name: str) -> None:
        rng = np.random.default_rng(1)
        features, labels = rng.normal(size=(100, 90)), Labels(rng.integers(2, size=100), 2)
        selector = EAGER[name]
        assert isinstance(selector, Logistic | Lda | Knn)
        found = selector.in_sample(features, labels)
        assert found.in_sample
        assert agreement(found, labels) > 0.95
        assert "calibration" not in found.about

    def test_an_average_with_one_in_it_is_marked(self) -> None:
        def by_heart(
            features: heads.Features, labels: Labels, *, groups: Sequence[str] | None = None, seed: int = 0
        ) -> Posteriors:
            return Lda().in_sample(features, labels)

        features, labels = clouds()
        assert Average((Lda(), by_heart))(features, labels).in_sample


class TestSeveralTables:
    @pytest.mark.parametrize("name", NAMES)
    def test_none_drowns_the_others(self, name: str) -> None:
        """A wide table of noise in large units stands beside a narrow one that tells the classes."""
        features, labels = clouds()
        noise = np.random.default_rng(0).normal(size=(120, 400)) * 1e4
        both = named(name)((features, noise), labels)
        glued = named(name)(np.hstack([features, noise]), labels)
        assert agreement(both, labels) > max(0.95, agreement(glued, labels))

    def test_one_table_is_itself(self) -> None:
        features, labels = clouds()
        assert np.array_equal(Lda()((features,), labels).values, Lda()(features, labels).values)


class TestVotes:
    """An item that several people answered counts for each class by its share, where that is asked for."""

    @pytest.mark.parametrize(
        ("hard", "soft"),
        [
            (Logistic(), Logistic(targets="votes")),
            (Lda(), Lda(targets="votes")),
            (Knn(neighbours=5), Knn(neighbours=5, targets="votes")),
        ],
    )
    def test_shares_of_answers_come_out(self, hard: heads.Selector, soft: heads.Selector) -> None:
        """Nothing tells the items apart, and each has two votes of three for class 0."""
        features = np.random.default_rng(0).normal(size=(300, 3))
        labels = Labels(np.array([[2, 1, 0]] * 290 + [[0, 3, 0]] * 5 + [[0, 0, 3]] * 5), 3)
        said = soft(features, labels).mean().mean(0)
        assert abs(said[0] - 0.64) < 0.04
        assert hard(features, labels).mean().mean(0)[0] > 0.9


class TestKnn:
    def test_is_a_slow_loop_over_items(self) -> None:
        rng = np.random.default_rng(0)
        features, labels = rng.normal(size=(80, 6)), Labels(rng.integers(-1, 3, 80), 3)
        groups = [str(item % 30) for item in range(80)]
        fast = Knn(neighbours=7)(features, labels, groups=groups).mean()
        table = (features - features.mean(0)) / features.std(0)
        table /= np.linalg.norm(table, axis=1, keepdims=True)
        for item in range(80):
            others = [each for each in range(80) if labels.given[each] >= 0 and groups[each] != groups[item]]
            near = sorted(others, key=lambda each: -float(table[item] @ table[each]))[:7]
            votes = 0.1 * np.bincount(labels.given[others], minlength=3) / len(others)
            for each in near:
                votes = votes + np.eye(3)[labels.given[each]] * np.exp((table[item] @ table[each] - 1) / 0.1)
            np.testing.assert_allclose(fast[item], votes / votes.sum(), atol=1e-4)

    def test_blocks_do_not_matter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from relook.selectors import knn

        features, labels = clouds()
        whole = Knn()(features, labels).values
        monkeypatch.setattr(knn, "CELLS", 500)
        np.testing.assert_allclose(Knn()(features, labels).values, whole, atol=1e-6)

    def test_more_neighbours_than_items(self) -> None:
        features, labels = clouds(20)
        assert np.isfinite(Knn(neighbours=500)(features, labels).values).all()

    def test_one_group_has_nobody_to_vote(self) -> None:
        features, labels = clouds(20)
        with pytest.raises(BadInput, match="labelled items of two groups were needed, one to vote for the other"):
            Knn()(features, labels, groups=["a"] * 20)


class TestLda:
    def test_folds_by_sums_are_folds_fitted_anew(self) -> None:
        """What is taken out of the sums is as good as never in them."""
        from relook.discriminants import Sureness, fitted, sums, sureness, tempered
        from relook.folds import Fold, out_of_fold

        rng = np.random.default_rng(4)
        features, labels = clouds()
        labels = Labels(np.where(rng.random(120) < 0.2, rng.integers(3, size=120), labels.given), 3)
        (fold_of,) = heads.cuts(labels.given, folds=5, repeats=1, groups=None, seed=0)
        table, shares = heads.joined(heads.standardised(features, items=120)), np.eye(3)[labels.given]

        def slow(fold: Fold) -> FloatArray:
            held = []
            for other in sorted(set(range(5)) - {fold.number}):
                rows = fold.train[fold_of[fold.train] != other]
                held.append(fitted(sums(table[rows], shares[rows])).scores(table[fold_of == other]))
            order = np.concatenate([np.flatnonzero(fold_of == other) for other in range(5) if other != fold.number])
            common = shares[fold.train].mean(0)
            sure: Sureness = sureness(np.vstack(held), shares[order], common=common)
            model = fitted(sums(table[fold.train], shares[fold.train]))
            return tempered(model.scores(table[fold.asked]), sure, common=common)

        expected = out_of_fold(slow, labels.given, fold_of=fold_of, classes=3)
        np.testing.assert_allclose(Lda()(features, labels).mean(), expected, atol=1e-4)

    def test_noisy_labels_make_it_less_sure(self) -> None:
        features, labels = clouds(600)
        rng = np.random.default_rng(0)
        wrong = Labels(np.where(rng.random(600) < 0.3, rng.integers(3, size=600), labels.given), 3)
        found = Lda()(features, wrong)
        assert agreement(found, labels) == 1
        assert 0.7 < found.mean().max(1).mean() < 0.9
        assert found.about["calibration"]["error"] < 0.1


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: named("forest"), "selector: one of logistic, lda, knn, average was needed, but 'forest' came"),
        (lambda: Lda(folds=1), "lda: at least 2 folds were needed, but 1 came"),
        (lambda: Lda(repeats=0), "lda: at least 1 repeat was needed, but 0 came"),
        (lambda: Lda(shrinkage=1.5), "a shrinkage from 0 to 1 was needed, but 1.5 came; .2 is usual"),
        (lambda: Knn(neighbours=0), "at least 1 neighbour was needed, but 0 came; 30 is usual"),
        (lambda: Knn(temperature=0.0), "knn: a temperature above 0 was needed, but 0.0 came; .1 is usual"),
        (lambda: Knn(smoothing=-1.0), "a smoothing above 0 was needed, but -1.0 came; .1 votes are usual"),
        (lambda: Average(()), "a selector or more were needed, but none came; lda, logistic and knn are usual"),
    ],
)
def test_settings_that_cannot_be(act: Callable[[], object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        act()
