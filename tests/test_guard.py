"""The guard refuses orders that were planted, and leaves honest data alone: wrong labels, weak models and all."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from relook import guard
from relook.alignment import Matched, matched
from relook.guard import Doubt, cure, doubt, sentence, warnings
from relook.orders import other_orders
from relook.predictions import Predictions, predictions
from relook.selectors.logistic import cross_fitted
from relook.sources import LabelTable, ProbabilityTable
from relook.types import Labels, Posteriors

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]


def met(given: Ints, values: Floats, **said: Any) -> tuple[Matched, Predictions]:
    both = matched(LabelTable("labels", given, ids=said.pop("ids", None)), ProbabilityTable("p", values, **said))
    return both, predictions(both.labels, both.posteriors)


def doubted(given: Ints, values: Floats, **said: Any) -> Doubt | None:
    return doubt(*met(given, values, **said))


def refused(given: Ints, values: Floats, **said: Any) -> bool:
    found = doubted(given, values, **said)
    return found is not None and found.sure


def softmax(scores: Floats) -> Floats:
    scores = np.exp(scores - scores.max(1, keepdims=True))
    return scores / scores.sum(1, keepdims=True)


def flipped(true: Ints, kind: str, rate: float, *, classes: int, rng: np.random.Generator) -> Ints:
    """Return labels wrong at a rate: at random, into the next class, or two classes into each other."""
    wrong = rng.random(len(true)) < rate
    if kind == "symmetric":
        return np.where(wrong, (true + rng.integers(1, classes, len(true))) % classes, true)
    if kind == "next":
        return np.where(wrong, (true + 1) % classes, true)
    one, other = rng.permutation(classes)[:2]
    return np.where(wrong & (true == one), other, np.where(wrong & (true == other), one, true))


def world(seed: int, **said: Any) -> tuple[Ints, Floats]:
    """Return given labels and probabilities that belong together: any size, balance, noise and skill of the model.

    The model may confuse classes, prefer some, be over- or underconfident, or know nothing; the file may be sorted.
    """
    rng = np.random.default_rng(seed)
    classes = said.get("classes", int(rng.choice([2, 3, 5, 10, 20, 50])))
    items = said.get("items", int(rng.choice([60, 200, 600, 2000])))
    shares = rng.dirichlet(np.full(classes, rng.choice([1.0, 3.0, 100.0])))
    true = rng.choice(classes, items, p=shares)
    if rng.random() < 0.2:
        true = np.sort(true)
    kind = str(rng.choice(["symmetric", "next", "swapped"]))
    most = 0.45 if classes == 2 or kind == "next" else 0.5
    rate = said.get("rate", float(rng.choice([0.0, 0.1, 0.2, 0.4 if kind == "swapped" else most])))
    given = flipped(true, kind, rate, classes=classes, rng=rng)
    skill = said.get("skill", float(rng.choice([0.0, 0.0, 0.5, 2.0, 5.0])))
    seen = np.where(rng.random(items) < 0.5, true, given)
    scores = skill * np.eye(classes)[seen] + 0.5 * skill * rng.random((classes, classes))[true]
    scores += rng.normal(0, 1, (items, classes)) + rng.normal(0, rng.choice([0.0, 0.5]), classes)
    return given, softmax(scores * rng.choice([0.5, 1.0, 2.0]))


def digits(rate: float) -> tuple[Ints, Floats]:
    from relook.datasets.digits import load

    found = load(rate=rate)
    return found.given.given, cross_fitted(found.features, found.given, folds=2).mean()  # type: ignore[arg-type]


class TestHonest:
    def test_worlds_are_left_alone(self) -> None:
        alarms = [seed for seed in range(400) if refused(*world(seed))]
        assert alarms == []

    def test_worlds_are_hardly_ever_doubted(self) -> None:
        assert sum(doubted(*world(seed)) is not None for seed in range(400)) <= 6

    @pytest.mark.parametrize("rate", [0.4, 0.5])
    @pytest.mark.parametrize("kind", ["symmetric", "next", "swapped"])
    def test_half_of_the_labels_may_be_wrong(self, rate: float, kind: str) -> None:
        rng = np.random.default_rng(1)
        rate = min(rate, 0.45) if kind == "next" else min(rate, 0.4) if kind == "swapped" else rate
        for classes in (3, 10):
            true = rng.integers(0, classes, 2000)
            given = flipped(true, kind, rate, classes=classes, rng=rng)
            assert doubted(given, softmax(4 * np.eye(classes)[true] + rng.normal(0, 1, (2000, classes)))) is None

    def test_a_model_may_know_nothing(self) -> None:
        for seed in range(40):
            rng = np.random.default_rng(seed)
            classes = int(rng.choice([2, 5, 30]))
            values = softmax(rng.normal(0, 3, (500, classes)))
            assert doubted(rng.integers(0, classes, 500), values) is None
            assert doubted(np.sort(rng.integers(0, classes, 500)), values) is None

    @pytest.mark.parametrize("says", [0, 1])
    def test_a_model_may_always_say_the_same(self, says: int) -> None:
        rng = np.random.default_rng(0)
        given = (rng.random(1000) < 0.1).astype(int)
        values = np.clip(rng.normal(0.8, 0.02, 1000), 0, 1)
        columns = (values, 1 - values) if says == 0 else (1 - values, values)
        assert doubted(given, np.stack(columns, 1)) is None

    def test_a_rare_class_may_be_found_by_few(self) -> None:
        rng = np.random.default_rng(0)
        given = (rng.random(5000) < 0.02).astype(int)
        score = 1.5 * given + rng.normal(0, 1, 5000) - 3
        both, seen = met(given, np.stack([1 / (1 + np.exp(score)), 1 - 1 / (1 + np.exp(score))], 1))
        assert doubt(both, seen) is None
        assert warnings(both, seen) == ()

    @pytest.mark.parametrize("rate", [0.0, 0.2, 0.45])
    def test_digits_are_left_alone(self, rate: float) -> None:
        assert doubted(*digits(rate)) is None


ORDERS: dict[str, Callable[[int], Any]] = {
    "shifted": lambda classes: np.roll(np.arange(classes), 1),
    "reversed": lambda classes: np.arange(classes)[::-1],
    "two swapped": lambda classes: np.array([1, 0, *range(2, classes)]),
    "sorted as text": lambda classes: np.array(sorted(range(classes), key=str)),
}


class TestColumns:
    @pytest.mark.parametrize(
        ("name", "classes"),
        [
            *((name, classes) for name in ("shifted", "reversed", "two swapped") for classes in (2, 3, 12)),
            ("sorted as text", 12),
        ],
    )
    @pytest.mark.parametrize("rate", [0.0, 0.3])
    def test_planted_order_is_refused_and_named(self, name: str, classes: int, rate: float) -> None:
        order = ORDERS[name](classes)
        rng = np.random.default_rng(classes)
        true = rng.integers(0, classes, 3000)
        given = flipped(true, "symmetric", rate, classes=classes, rng=rng)
        values = softmax(4 * np.eye(classes)[true] + rng.normal(0, 1, (3000, classes)))
        assert doubted(given, values) is None
        # Column j of the file holds class order[j]: class k stands in column argsort(order)[k].
        found = doubted(given, values[:, order])
        assert found is not None
        assert (found.kind, found.sure) == ("columns", True)
        assert found.order.tolist() == np.argsort(order).tolist()
        aligned = float((values.argmax(1) == given).mean())
        assert found.agreement == pytest.approx(aligned)

    def test_any_order_of_digits_is_refused(self) -> None:
        given, values = digits(0.3)
        rng = np.random.default_rng(0)
        for _ in range(10):
            order = rng.permutation(10)
            found = doubted(given, values[:, order])
            assert found is not None
            assert found.sure
            assert found.order.tolist() == np.argsort(order).tolist()

    def test_labels_are_swapped_when_most_are(self) -> None:
        rng = np.random.default_rng(0)
        true = rng.integers(0, 2, 1000)
        values = softmax(3 * np.eye(2)[true] + rng.normal(0, 1, (1000, 2)))
        assert not refused(np.where(rng.random(1000) < 0.4, 1 - true, true), values)
        assert refused(np.where(rng.random(1000) < 0.7, 1 - true, true), values)

    def test_unlabelled_items_and_counts_are_no_hindrance(self) -> None:
        given, values = world(5, classes=5, items=1000, rate=0.1, skill=5.0)
        assert refused(np.where(np.arange(1000) % 3 == 0, -1, given), values[:, ::-1])
        assert refused(np.eye(5, dtype=int)[given] * 3, values[:, ::-1])

    def test_several_models_are_taken_together(self) -> None:
        given, values = world(5, classes=5, items=1000, rate=0.1, skill=5.0)
        assert refused(given, np.stack([values, values])[:, :, ::-1])
        assert not refused(given, np.stack([values, values]))

    def test_few_of_many_classes_are_told_not_refused(self) -> None:
        rng = np.random.default_rng(0)
        given = rng.integers(0, 60, 12_000)
        values = softmax(5 * np.eye(60)[given] + rng.normal(0, 1, (12_000, 60)))
        found = doubted(given, values[:, [1, 0, *range(2, 60)]])
        assert found is not None
        assert not found.sure
        assert found.words == "column 1 is 0, column 0 is 1"

    def test_more_classes_than_are_searched_are_let_pass(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given = np.random.default_rng(0).integers(0, 5, 500)
        values = 0.1 + 0.5 * np.eye(5)[4 - given]
        assert refused(given, values)
        monkeypatch.setattr(guard, "CLASSES", 4)
        assert doubted(given, values) is None

    def test_a_fair_draw_of_many_items_tells_as_much(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given, values = world(5, classes=5, items=2000, rate=0.1, skill=5.0)
        monkeypatch.setattr(guard, "_CELLS", 1500)
        found = doubted(given, values[:, ::-1])
        assert found is not None
        assert found.order.tolist() == [4, 3, 2, 1, 0]

    def test_with_its_conditions_off_the_guard_cries_wolf(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The control of the honest worlds: without the rise that is asked for they would be refused."""
        monkeypatch.setattr(guard, "_clear", lambda _: True)
        monkeypatch.setattr(guard, "ERRORS", -1e9)
        monkeypatch.setattr(guard, "REMAINING", np.inf)
        monkeypatch.setattr(guard, "_found_share", lambda *_, **__: 1.0)
        assert sum(refused(*world(seed)) for seed in range(60)) > 10


def confused(seed: int) -> tuple[Ints, Floats]:
    """Return labels, and a model that mostly says other classes than the given ones, but in no clear order."""
    rng = np.random.default_rng(seed)
    classes, items = int(rng.integers(2, 6)), int(rng.choice([60, 200, 1000]))
    given = rng.choice(classes, items, p=rng.dirichlet(np.ones(classes)))
    confusion = rng.dirichlet(np.full(classes, 0.4), classes)
    said = np.array([rng.choice(classes, p=confusion[label]) for label in given])
    values = 0.1 / classes + 0.9 * np.eye(classes)[said]
    return given, rng.dirichlet(np.ones(classes), items) * 0.3 + 0.7 * values if seed % 2 else values


class TestConditions:
    """Each condition spares somebody whom the others would refuse."""

    @staticmethod
    def surely(given: Ints, values: Floats) -> bool:
        found = doubted(given, values)
        return found is not None and found.kind == "columns" and found.sure

    def test_enough_items_must_say_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given, values = confused(60)
        assert not self.surely(given, values)
        exact = guard._Sample.association
        monkeypatch.setattr(guard._Sample, "association", lambda self, order: (exact(self, order)[0], 99.0))
        assert self.surely(given, values)

    def test_columns_must_say_nothing_as_they_stand(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given, values = confused(393)
        assert not self.surely(given, values)
        monkeypatch.setattr(guard, "REMAINING", 9.0)
        assert self.surely(given, values)

    def test_classes_and_columns_must_find_each_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given, values = confused(5)
        assert not self.surely(given, values)
        monkeypatch.setattr(guard, "_found_share", lambda *_, **__: 1.0)
        assert self.surely(given, values)

    def test_what_shuffled_labels_give_is_exact(self) -> None:
        given, values = confused(44)
        order = np.roll(np.arange(values.shape[1]), 1)
        sample = guard._Sample(given, values, values.argmax(1))
        rng, labels = np.random.default_rng(0), given.copy()
        means = []
        for _ in range(4000):
            rng.shuffle(labels)
            means.append(values[np.arange(len(labels)), order[labels]].mean())
        excess, errors = sample.association(order)
        here = values[np.arange(len(given)), order[given]].mean()
        assert excess == pytest.approx(here - np.mean(means), abs=0.002)
        assert errors == pytest.approx((here - np.mean(means)) / np.std(means), rel=0.06)


class TestRows:
    GIVEN, VALUES = world(9, classes=4, items=1500, rate=0.2, skill=5.0)

    @pytest.mark.parametrize(
        ("order", "words"),
        [
            (np.arange(1500)[::-1], "they are taken in reverse"),
            (np.array(sorted(range(1500), key=str)), "they are sorted by the row numbers as text (0, 1, 10, 2)"),
            (
                np.array(sorted(range(1500), key=lambda row: str(row + 1))),
                "they are sorted by the row numbers as text (1, 10, 2)",
            ),
            (np.argsort(GIVEN, kind="stable"), "they are sorted by class, as folders of images are"),
            (np.roll(np.arange(1500), 1), "they begin one row too late"),
            (np.roll(np.arange(1500), -1), "they begin one row too early"),
        ],
    )
    def test_planted_order_is_refused_and_named(self, order: Ints, words: str) -> None:
        found = doubted(self.GIVEN, self.VALUES[order])
        assert found is not None
        assert (found.kind, found.sure) == ("rows", True)
        # Orders that are nearly alike fit nearly alike: the one that is named pairs the rows rightly.
        assert (order[found.order] == np.arange(1500)).mean() > 0.99
        assert words in [other.words for other in other_orders(met(self.GIVEN, self.VALUES)[0], self.GIVEN)]
        if not words.startswith("they begin"):
            assert found.words == words

    def test_in_the_order_of_the_ids_are_refused(self) -> None:
        rng = np.random.default_rng(0)
        numbers = rng.permutation(1500)
        ids = [f"img{number}.png" for number in numbers]
        by_text, by_number = np.argsort(np.array(ids)), np.argsort(numbers)
        for order, words in ((by_text, "sorted by their ids as text"), (by_number, "sorted by their ids as numbers")):
            found = doubted(self.GIVEN, self.VALUES[order], ids=ids)
            assert found is not None
            assert words in found.words
            assert (order[found.order] == np.arange(1500)).all()

    def test_ids_that_do_not_belong_to_their_rows_are_refused(self) -> None:
        ids = [str(number) for number in np.random.default_rng(0).permutation(1500)]
        both = matched(
            LabelTable("labels", self.GIVEN, ids=sorted(ids)),
            ProbabilityTable("p", self.VALUES, ids=ids),
        )
        found = doubt(both, predictions(both.labels, both.posteriors))
        assert found is not None
        assert found.words == "they are joined by order: the ids do not belong to their rows"
        assert found.agreement == pytest.approx(float((self.VALUES.argmax(1) == self.GIVEN).mean()))

    def test_joined_by_ids_that_belong_are_left_alone(self) -> None:
        order = np.random.default_rng(0).permutation(1500)
        ids = [str(number) for number in range(1500)]
        both = matched(
            LabelTable("labels", self.GIVEN, ids=ids),
            ProbabilityTable("p", self.VALUES[order], ids=[ids[row] for row in order]),
        )
        assert doubt(both, predictions(both.labels, both.posteriors)) is None

    def test_shuffled_rows_are_told_as_chance(self) -> None:
        shuffled = self.VALUES[np.random.default_rng(0).permutation(1500)]
        both, seen = met(self.GIVEN, shuffled)
        assert doubt(both, seen) is None
        assert any("no better than chance" in warning for warning in warnings(both, seen))

    def test_sorted_files_with_wrong_labels_are_left_alone(self) -> None:
        for seed in range(60):
            rng = np.random.default_rng(seed)
            true = np.sort(rng.integers(0, 2 + seed % 3, 600))
            classes = 2 + seed % 3
            given = flipped(true, "symmetric", 0.4, classes=classes, rng=rng)
            assert doubted(given, softmax(4 * np.eye(classes)[true] + rng.normal(0, 1, (600, classes)))) is None

    def test_runs_of_a_sorted_file_are_few_witnesses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Twelve runs of labels, each predicted as one class: six fit in reverse by luck, and three as they are."""
        runs = np.arange(12) % 4
        said = np.array([0, 1, 2, 0, 2, 3, 1, 0, 3, 2, 3, 0])
        given, values = np.repeat(runs, 50), 0.1 + 0.6 * np.eye(4)[np.repeat(said, 50)]
        assert ((said == runs).sum(), (said[::-1] == runs).sum()) == (3, 6)
        assert guard._rows(*met(given, values)) is None
        monkeypatch.setattr(guard, "_error_of_runs", lambda rise, _: float(rise.std()) / np.sqrt(len(rise)))
        assert guard._rows(*met(given, values)) is not None

    def test_two_classes_are_told_not_refused_for_the_order_made_from_them(self) -> None:
        rng = np.random.default_rng(3)
        given = rng.integers(0, 2, 800)
        found = doubted(given, softmax(5 * np.eye(2)[np.sort(given)] + rng.normal(0, 1, (800, 2))))
        assert found is not None
        assert (found.kind, found.sure) == ("rows", False)


class TestWords:
    def test_columns(self) -> None:
        given = np.arange(300) % 3
        values = 0.1 + 0.7 * np.eye(3)[(given + 1) % 3]
        both, seen = met(given, values)
        found = doubt(both, seen)
        assert found is not None
        assert sentence(both, found, seen=seen) == (
            "p: its columns look permuted: the likeliest class is the given one for 0.0% of the items as they stand, "
            "but for 100.0% if column 1 is 0, column 2 is 1, column 0 is 2"
        )
        assert cure(both, found) == "put the columns into the order of the classes, or say --classes 2,0,1"
        mended = ProbabilityTable("p", values, names=("2", "0", "1"))
        both = matched(LabelTable("labels", given), mended)
        assert predictions(both.labels, both.posteriors).agreement() == 1

    def test_named_columns(self) -> None:
        given = np.arange(300) % 3
        both, seen = met(given, 0.1 + 0.7 * np.eye(3)[(given + 1) % 3], names=("cat", "dog", "eel"))
        found = doubt(both, seen)
        assert found is not None
        assert found.words == "column 1 (dog) is cat, column 2 (eel) is dog, column 0 (cat) is eel"
        assert cure(both, found) == "mend the names of its columns"

    def test_two_columns_and_a_reverse(self) -> None:
        for classes, words in ((2, "the two columns are swapped"), (4, "the columns are taken in reverse")):
            given = np.random.default_rng(0).integers(0, classes, 400)
            found = doubted(given, 0.1 + (1 - 0.1 * classes) * np.eye(classes)[classes - 1 - given])
            assert found is not None
            assert found.words == words

    def test_rows(self) -> None:
        both, seen = met(TestRows.GIVEN, TestRows.VALUES[::-1])
        found = doubt(both, seen)
        assert found is not None
        assert re.fullmatch(
            r"p: its rows look out of order: the likeliest class is the given one for \d\d\.\d% of the items as they "
            r"stand, but for \d\d\.\d% if they are taken in reverse",
            sentence(both, found, seen=seen),
        )
        assert cure(both, found) == "bring both files into one order, or give both a column of ids"


class TestWarnings:
    def test_in_sample(self) -> None:
        rng = np.random.default_rng(0)
        given = rng.integers(0, 3, 400)
        learnt = softmax(9 * np.eye(3)[given] + rng.normal(0, 1, (400, 3)))
        both, seen = met(given, learnt)
        assert seen.in_sample()
        assert [w for w in warnings(both, seen) if w.startswith("The probabilities look in-sample: they agree with")]
        assert not met(given[:150], learnt[:150])[1].in_sample(), "too few items to tell"
        assert not met(given, 0.5 * learnt + 1 / 6)[1].in_sample(), "right, but not sure"
        assert not met(np.where(np.arange(400) < 8, (given + 1) % 3, given), learnt)[1].in_sample()

    def test_out_of_sample_digits_are_not_called_in_sample(self) -> None:
        both, seen = met(*digits(0.0))
        assert seen.agreement() > 0.9
        assert warnings(both, seen) == ()

    def test_classes_that_nobody_has(self) -> None:
        given, values = world(9, classes=4, items=500, rate=0.1, skill=5.0)
        both, seen = met(np.where(given == 2, 1, given), values)
        assert warnings(both, seen) == (
            "No item is labelled 2: if some should be, the labels or their classes are wrong.",
        )

    def test_a_single_item_is_not_measured_against_chance(self) -> None:
        both, seen = met(np.array([1]), np.array([[0.1, 0.9]]))
        assert [warning.split(":")[0] for warning in warnings(both, seen)] == ["No item is labelled 0"]

    def test_unlabelled_items(self) -> None:
        given, values = world(9, classes=4, items=500, rate=0.1, skill=5.0)
        both, seen = met(np.where(np.arange(500) < 20, -1, given), values)
        assert "20 of 500 items without a label: they are ranked too, but agree with nothing." in warnings(both, seen)

    def test_what_chance_brings_is_exact(self) -> None:
        rng = np.random.default_rng(0)
        given, said = rng.choice(3, 300, p=[0.8, 0.15, 0.05]), rng.choice(3, 300, p=[0.6, 0.1, 0.3])
        seen = Predictions(given, said, np.ones(300), np.ones(300))
        shuffles = np.array([(rng.permutation(given) == said).mean() for _ in range(4000)])
        assert seen.chance() == pytest.approx(shuffles.mean(), abs=0.002)
        assert seen.chance_error() == pytest.approx(shuffles.std(), rel=0.05)


def test_predictions_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    values = rng.dirichlet(np.ones(4), (2, 50))
    given = rng.integers(-1, 4, 50)
    seen = predictions(Labels(given, 4), Posteriors(values))
    for item in range(50):
        mean = (values[0, item] + values[1, item]) / 2
        assert seen.likeliest[item] == mean.argmax()
        assert seen.probability[item] == pytest.approx(mean.max())
        assert seen.given_probability[item] == pytest.approx(mean[given[item]] if given[item] >= 0 else 0)


@pytest.mark.slow
@pytest.mark.parametrize("subset", ["all", "paper"])
def test_real_labels_and_a_real_network(data_dir: Path, subset: str) -> None:
    from relook.datasets import cifar10h

    found = cifar10h.load(data_dir, subset=subset, tau=10.0)
    rows = np.array(found.ids, int)
    features = np.load(data_dir / "embeddings" / "cifar10-test-byol60k.npy", allow_pickle=False)[rows][:, :64]
    values = cross_fitted(features.astype(np.float32), found.given, folds=2).mean()
    given: Ints = found.given.given
    assert doubted(given, values) is None
    assert refused(given, np.roll(values, 1, axis=1))
    assert refused(given, values[:, ::-1])
    assert refused(given, values[::-1])
    assert refused(given, values[np.argsort(given, kind="stable")])
