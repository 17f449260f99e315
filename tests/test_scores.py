"""Scores: row-wise to the bit, equal to slow formulas, and told apart from what is no score."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook.activelab import ActiveLab
from relook.belief import AnswerModel
from relook.errors import BadInput
from relook.scores import (
    RandomOrder,
    Score,
    TrueValue,
    ValuePerAnswer,
    ambiguity,
    bald,
    expected_answers,
    is_rowwise,
    margin,
    noisiness,
    phi,
    phi_clipped,
    phi_ensemble,
    rows_of,
    score_items,
    self_confidence,
    top,
)
from relook.types import FloatArray, IntArray, Labels, Posteriors, Rows
from tests.laws import LAW, catches

Make = Callable[[FloatArray], Score]


def always(score: Score) -> Make:
    def make(_: FloatArray) -> Score:
        return score

    return make


SCORES: dict[str, Make] = {
    "noisiness": always(noisiness),
    "ambiguity": always(ambiguity),
    "phi": always(phi),
    "phi_clipped": always(phi_clipped),
    "phi_ensemble": always(phi_ensemble),
    "bald": always(bald),
    "margin": always(margin),
    "self_confidence": always(self_confidence),
    "value": always(ValuePerAnswer()),
    "value, two people": always(ValuePerAnswer(agree=2.0, lead=2.0)),
    "value, another model": always(ValuePerAnswer(AnswerModel(sharpness=1.5, kappa=0.1, given_bonus=0.7))),
    "true value": TrueValue,
    "random": always(RandomOrder(7)),
}
"""Every score of the module, by what it may know of the truth."""


class Case(msgspec.Struct, frozen=True, eq=False):
    labels: Labels
    posteriors: Posteriors
    truth: FloatArray
    weight: float
    cuts: list[int]

    def rows(self, low: int = 0, high: int | None = None) -> Rows:
        block = slice(low, len(self.labels) if high is None else high)
        return rows_of(self.labels, self.posteriors, block=block, given_weight=self.weight)


def shares(random: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Distributions, some sharp, some flat, some certain."""
    values = random.exponential(1.0, shape) ** random.choice([0.2, 1.0, 6.0])
    values *= random.random(shape) < random.choice([0.5, 1.0])
    values[..., 0] += values.sum(-1) == 0
    return values / values.sum(-1, keepdims=True)


@st.composite
def cases(draw: st.DrawFn, *, most_classes: int = 300, kinds: tuple[str, ...] = ("<f4", "<f8")) -> Case:
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    items, models = draw(st.integers(1, 12)), draw(st.sampled_from([1, 2, 3, 4, 9]))
    classes = draw(st.sampled_from([2, 3, 4, 5, 10, 17, 100, most_classes]).filter(lambda c: c <= most_classes))
    kind = draw(st.integers(0, 59))
    given_labels = random.integers(-1 if kind % 2 else 0, classes, items)
    if kind % 3 == 0:
        given_labels = random.integers(0, 3, (items, classes)) * (random.random((items, 1)) < 0.8)
    answers = random.integers(0, 3, (items, classes)) * (random.random((items, classes)) < 0.4) if kind % 4 else None
    return Case(
        Labels(given_labels, classes, answers),
        Posteriors(shares(random, (models, items, classes)).astype(kinds[kind % len(kinds)])),
        shares(random, (items, classes)),
        (0.0, 0.5, 1.0, 2.0)[kind // 4 % 4],
        sorted({0, items, *random.integers(0, items + 1, 3).tolist()}),
    )


def bits(values: Any) -> bytes:
    return np.asarray(values).tobytes()


class TestRowWise:
    """A row scores alike to the bit alone, in any block, and in the whole array."""

    def law(self, how: settings, make: Make) -> None:
        @how
        @given(cases())
        def check(case: Case) -> None:
            score = make(case.truth)
            whole = score(case.rows())
            blocks = [score(case.rows(low, high)) for low, high in zip(case.cuts, case.cuts[1:], strict=False)]
            alone = [score(case.rows(item, item + 1)) for item in range(len(case.labels))]
            assert bits(np.concatenate(blocks)) == bits(whole)
            assert bits(np.concatenate(alone)) == bits(whole)

        check()

    @pytest.mark.parametrize("name", SCORES)
    def test_holds(self, name: str) -> None:
        self.law(LAW, SCORES[name])

    def test_a_matrix_product_is_caught(self) -> None:
        def product(rows: Rows) -> FloatArray:
            mean = rows.mean
            return np.asarray(-(mean * np.log(mean + mean.dtype.type(1e-12))) @ np.ones(mean.shape[1], mean.dtype))

        catches(partial(self.law, make=always(product)))

    def test_a_sum_across_rows_is_caught(self) -> None:
        def centred(rows: Rows) -> FloatArray:
            scores = margin(rows)
            return np.asarray(scores - scores.mean())

        catches(partial(self.law, make=always(centred)))

    def test_a_rule_that_sees_where_its_block_begins_is_caught(self) -> None:
        catches(partial(self.law, make=always(lambda rows: noisiness(rows) + 1e-9 * np.arange(len(rows)))))

    def test_a_sum_over_models_that_depends_on_the_rows_is_caught(self) -> None:
        def stacked(rows: Rows) -> FloatArray:
            entropies = [np.einsum("ij,ij->i", each, np.log(each + 1e-9)) for each in rows.probabilities]
            return np.asarray(np.add.reduce(np.stack(entropies), axis=0))

        catches(partial(self.law, make=always(stacked)))


class TestCompany:
    """An item scores alike to the bit whether others have answers or not, and however its votes come to the score."""

    def law(self, how: settings, make: Make) -> None:
        @how
        @given(cases())
        def check(case: Case) -> None:
            score, labels = make(case.truth), case.labels
            nobody = Labels(labels.given, labels.classes)
            empty = Labels(labels.given, labels.classes, np.zeros((len(labels), labels.classes), int))
            before = score_items(score, nobody, case.posteriors, given_weight=case.weight)
            after = score_items(score, empty, case.posteriors, given_weight=case.weight)
            assert bits(before + 0.0) == bits(after + 0.0)
            rows, some = case.rows(), np.arange(len(labels))[::2]
            counts = labels.answers if labels.answers is not None else empty.answers
            picked = Rows(
                some,
                case.posteriors.values.take(some, axis=1),
                labels.given[some],
                None if counts is None else counts[some],
                labels.classes,
                case.weight,
                rows.votes[some],
            )
            assert bits(score(picked) + 0.0) == bits(score(rows)[::2] + 0.0)

        check()

    @pytest.mark.parametrize("name", SCORES)
    def test_holds(self, name: str) -> None:
        self.law(LAW, SCORES[name])

    def test_an_untouched_label_without_weight_that_counts_as_a_vote_is_caught(self) -> None:
        def by_votes(rows: Rows) -> FloatArray:
            if rows.untouched:
                return noisiness(rows)
            votes = rows.votes + 1e-300
            return np.asarray(-np.einsum("ij,ij->i", votes / votes.sum(1, keepdims=True), np.log(rows.mean + 1e-12)))

        catches(partial(self.law, make=always(by_votes)))


def slow_votes(case: Case, item: int) -> list[float]:
    given_counts = case.labels.given_counts[item].tolist()
    answers = [0] * case.labels.classes if case.labels.answers is None else case.labels.answers[item].tolist()
    return [case.weight * count + answer for count, answer in zip(given_counts, answers, strict=True)]


def slow_label(case: Case, item: int) -> int:
    """The class with most votes; where there are none the given one; where there is none, -1."""
    for votes in (slow_votes(case, item), case.labels.given_counts[item].tolist()):
        if max(votes) > 0:
            return votes.index(max(votes))
    return -1


class Slow:
    """The formulas of the paper and its code, one item and one class at a time."""

    def __init__(self, case: Case, item: int) -> None:
        self.models = case.posteriors.values[:, item].astype(float).tolist()
        self.classes = range(case.labels.classes)
        self.p = [sum(model[c] for model in self.models) / len(self.models) for c in self.classes]
        self.label = slow_label(case, item)
        shown = slow_votes(case, item)
        if sum(shown) == 0:
            shown = case.labels.given_counts[item].tolist()
        self.q = [vote / sum(shown) for vote in shown] if sum(shown) else [1 / len(shown)] * len(shown)

    def cross_entropy(self) -> float:
        return -sum(self.q[c] * math.log(self.p[c] + 1e-12) for c in self.classes)

    def entropy(self, p: list[float]) -> float:
        return -sum(p[c] * math.log(p[c] + 1e-12) for c in self.classes)

    def marginal_entropy(self) -> float:
        return sum(self.entropy(model) for model in self.models) / len(self.models)

    def scores(self) -> dict[str, float]:
        ce, h, log = self.cross_entropy(), self.entropy(self.p), math.log(len(self.classes))
        others = [self.p[c] for c in self.classes if c != self.label]
        own = self.p[self.label] if self.label >= 0 else 0.0
        return {
            "noisiness": ce,
            "ambiguity": h,
            "phi": ce - h,
            "phi_clipped": ce / log - max(h / log - 0.3, 0.0),
            "phi_ensemble": ce - self.marginal_entropy(),
            "bald": h - self.marginal_entropy(),
            "margin": max(others) - own,
            "self_confidence": 1 - own,
        }


FORMULAS = ("noisiness", "ambiguity", "phi", "phi_clipped", "phi_ensemble", "bald", "margin", "self_confidence")


class TestFormulas:
    """Each score is its formula."""

    def law(self, how: settings, scores: dict[str, Make]) -> None:
        @how
        @given(cases(most_classes=10))
        def check(case: Case) -> None:
            exact = case.posteriors.values.dtype == np.float64
            for item in range(len(case.labels)):
                expected = Slow(case, item).scores()
                for name, make in scores.items():
                    found = float(make(case.truth)(case.rows(item, item + 1))[0])
                    assert found == pytest.approx(expected[name], abs=1e-9 if exact else 2e-5), name

        check()

    def test_holds(self) -> None:
        self.law(LAW, {name: SCORES[name] for name in FORMULAS})

    def test_entropy_of_the_wrong_sign_is_caught(self) -> None:
        catches(partial(self.law, scores={"phi": always(lambda rows: noisiness(rows) + ambiguity(rows))}))

    def test_entropy_of_the_mean_for_the_mean_of_entropies_is_caught(self) -> None:
        catches(partial(self.law, scores={"phi_ensemble": always(phi)}))

    def test_a_margin_that_may_pick_the_label_itself_is_caught(self) -> None:
        def careless(rows: Rows) -> FloatArray:
            own = np.where(rows.label >= 0, rows.mean[np.arange(len(rows)), rows.label], 0)
            return np.asarray(rows.mean.max(1) - own)

        catches(partial(self.law, scores={"margin": always(careless)}))


def slow_value(case: Case, item: int, score: ValuePerAnswer) -> float:
    """Value per answer as it is written down: belief by Bayes' rule, answers to a flip, gain and cost summed up."""
    model, classes = score.model, range(case.labels.classes)
    p = case.posteriors.values[:, item].astype(float).mean(0).tolist()
    powers = [each**model.sharpness for each in p]
    r = [0.99 * power / sum(powers) + 0.001 for power in powers]

    def q(c: int, y: int) -> float:
        confused = (1 - model.kappa) * (c == y) + model.kappa * r[c]
        return (1 - model.eps) * confused + model.eps / len(classes)

    answers = [0] * len(classes) if case.labels.answers is None else case.labels.answers[item].tolist()
    given_counts = case.labels.given_counts[item].tolist()
    logs = [
        math.log(r[y])
        + model.given_bonus * given_counts[y]
        + sum(count * math.log(q(c, y)) for c, count in enumerate(answers))
        for y in classes
    ]
    weights = [math.exp(each - max(logs)) for each in logs]
    belief = [each / sum(weights) for each in weights]
    votes, j = slow_votes(case, item), slow_label(case, item)
    gain, cost = 0.0, 1.0
    for y in classes:
        if y != j:
            lead = (votes[j] if j >= 0 else 0) + score.lead - votes[y]
            needed = math.ceil(max(1, lead, score.agree - votes[y]))
            gain += belief[y] * q(y, y) ** needed - (belief[j] * q(y, j) ** needed if j >= 0 else 0)
            cost += (needed - 1) * sum(belief[z] * q(y, z) for z in classes)
    return gain / cost


class TestValuePerAnswer:
    """Value per answer is what is written down about it."""

    def law(self, how: settings, make: Callable[[ValuePerAnswer], Score]) -> None:
        @how
        @given(cases(most_classes=5, kinds=("<f8",)), st.sampled_from([0.0, 1.0, 2.0]), st.sampled_from([1.0, 2.0]))
        def check(case: Case, agree: float, lead: float) -> None:
            for model in (AnswerModel(), AnswerModel(sharpness=1.3, kappa=0.15, eps=0.1, given_bonus=0.5)):
                rule = ValuePerAnswer(model, agree, lead)
                found = make(rule)(case.rows())
                for item in range(len(case.labels)):
                    assert found[item] == pytest.approx(slow_value(case, item, rule), rel=1e-9, abs=1e-12)

        check()

    def test_holds(self) -> None:
        self.law(LAW, lambda rule: rule)

    def test_one_answer_too_few_is_caught(self) -> None:
        catches(partial(self.law, make=lambda rule: msgspec.structs.replace(rule, lead=rule.lead - 1)))

    def test_answers_that_do_not_move_the_belief_are_caught(self) -> None:
        def stubborn(rule: ValuePerAnswer) -> Score:
            return lambda rows: rule(msgspec.structs.replace(rows, answer_counts=None, vote_counts=rows.votes))

        catches(partial(self.law, make=stubborn))

    def test_doubt_that_the_answers_take_away_lowers_it(self) -> None:
        """A model says class 1, the label is 0: asking is worth much, and no longer once two people said 0."""
        posteriors = Posteriors(np.array([[0.1, 0.9]]))
        values = [
            score_items(ValuePerAnswer(), Labels(np.array([0]), 2, np.array([[count, 0]])), posteriors)[0]
            for count in range(4)
        ]
        assert values[0] > 0.3
        assert values == sorted(values, reverse=True)
        assert values[2] < 0.1


def slow_expected(p: list[float], label: int) -> float:
    """One answer, and another for as long as each brings up a class that had no vote; at most three ties."""

    def more(seen: set[int], depth: int) -> float:
        left = [c for c in range(len(p)) if c not in seen]
        if depth == 1:
            return sum(p[c] for c in left)
        return sum(p[c] * (1 + more(seen | {c}, depth - 1)) for c in left)

    return 1 + more({label}, 3)


class TestExpectedAnswers:
    """How many answers an item takes follows the recursion of the paper's code."""

    def law(self, how: settings, expected: Callable[[FloatArray, IntArray], FloatArray]) -> None:
        @how
        @given(cases(most_classes=5))
        def check(case: Case) -> None:
            labels = np.array([slow_label(case, item) for item in range(len(case.labels))])
            found = expected(case.truth, labels)
            for item, label in enumerate(labels.tolist()):
                assert found[item] == pytest.approx(slow_expected(case.truth[item].tolist(), label))
            value = TrueValue(case.truth)(case.rows())
            own = np.where(labels >= 0, case.truth[np.arange(len(labels)), labels], 0)
            assert value == pytest.approx((1 - own) / found)

        check()

    def test_holds(self) -> None:
        self.law(LAW, expected_answers)

    def test_a_class_that_is_sure_to_the_last_digit_takes_one_answer_or_two(self) -> None:
        """Shares too small to show in the others' sum do not make a right label look wrong."""
        truth = np.array([[1.0, 1e-20, 0.0], [1.0, 1e-20, 0.0]])
        assert expected_answers(truth, np.array([0, 1])).tolist() == [1.0, 2.0]

    def test_two_ties_instead_of_three_are_caught(self) -> None:
        def shallow(truth: FloatArray, label: IntArray) -> FloatArray:
            others = truth * (np.arange(truth.shape[1]) != label[:, np.newaxis])
            first, second = others.sum(1), (others**2).sum(1)
            return np.asarray(1 + first + first**2 - second)

        catches(partial(self.law, expected=shallow))


class TestTop:
    """The first k of all items, sorted by score and then by number, whatever the blocks they are read in."""

    def law(self, how: settings, best: Callable[[FloatArray, int], IntArray]) -> None:
        @how
        @given(st.lists(st.integers(-3, 3), max_size=40), st.integers(0, 45))
        def check(values: list[int], k: int) -> None:
            scores = np.array(values, float)
            expected = sorted(range(len(values)), key=lambda item: -values[item])[:k]
            assert best(scores, k).tolist() == expected

        check()

    def test_holds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for cells in (3, 7, 65_536):
            monkeypatch.setattr("relook.types.CELLS", cells)
            self.law(LAW, top)

    def test_ties_in_any_order_are_caught(self) -> None:
        catches(partial(self.law, best=lambda scores, k: np.argsort(scores, kind="stable")[::-1][:k]))

    def test_infinite_scores_are_scores(self) -> None:
        assert top(np.array([0.0, -np.inf, np.inf, np.inf]), 3).tolist() == [2, 3, 0]

    def test_a_negative_number_of_items_is_refused(self) -> None:
        with pytest.raises(BadInput, match="top: a number of items was needed, but -1 came; pass 0 or more"):
            top(np.zeros(3), -1)


class TestScoreItems:
    """All items are scored in blocks, of arrays in memory and on disk, and what is no score is refused."""

    @pytest.mark.parametrize("name", SCORES)
    def test_blocks_do_not_show(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        random = np.random.default_rng(5)
        truth = shares(random, (200, 7))
        posteriors = Posteriors(shares(random, (3, 200, 7)))
        labels = Labels(random.integers(-1, 7, 200), 7, random.integers(0, 2, (200, 7)))
        whole = score_items(SCORES[name](truth), labels, posteriors)
        monkeypatch.setattr("relook.types.CELLS", 100)
        assert bits(score_items(SCORES[name](truth), labels, posteriors)) == bits(whole)

    def test_posteriors_on_disk(self, tmp_path: Path) -> None:
        posteriors = Posteriors(shares(np.random.default_rng(0), (50, 4)).astype(np.float32))
        np.save(tmp_path / "p.npy", posteriors.values[0])
        file = np.load(tmp_path / "p.npy", mmap_mode="r")
        mapped = Posteriors(file)
        assert np.shares_memory(mapped.values, file)
        labels = Labels(np.zeros(50, int), 4)
        assert bits(score_items(phi, labels, mapped)) == bits(score_items(phi, labels, posteriors))

    @pytest.mark.parametrize("name", FORMULAS)
    def test_half_precision_is_precise_enough(self, name: str) -> None:
        values = np.array([[1.0, 0.0, 0.0], [0.25, 0.25, 0.5]])
        labels = Labels(np.array([1, 0]), 3)
        whole = [score_items(SCORES[name](values), labels, Posteriors(values.astype(kind))) for kind in ("<f2", "<f8")]
        assert whole[0] == pytest.approx(whole[1], abs=1e-5)

    def test_a_class_that_nobody_has_scores_like_any(self) -> None:
        posteriors = Posteriors(np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]))
        for make in SCORES.values():
            assert np.isfinite(score_items(make(posteriors.values[0]), Labels(np.array([0, 1]), 3), posteriors)).all()

    def test_whole_numbers_are_scores(self) -> None:
        assert score_items(lambda rows: rows.items % 2, Labels(np.array([0, 0]), 2), None).tolist() == [0.0, 1.0]

    def test_a_score_that_looks_at_several_rows_sees_all_of_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Ranks:
            rowwise = False

            def __call__(self, rows: Rows) -> FloatArray:
                return np.asarray(np.argsort(np.argsort(rows.mean[:, 0])) / len(rows))

        monkeypatch.setattr("relook.types.CELLS", 2)
        posteriors = Posteriors(np.array([[0.3, 0.7], [0.9, 0.1], [0.1, 0.9]]))
        labels = Labels(np.zeros(3, int), 2)
        assert (is_rowwise(Ranks()), is_rowwise(margin)) == (False, True)
        assert score_items(Ranks(), labels, posteriors) == pytest.approx([1 / 3, 2 / 3, 0])

    def test_posteriors_of_another_data_set_are_refused(self) -> None:
        with pytest.raises(
            BadInput, match=r"posteriors: 2 items of 3 classes were needed, but 2 of 2 came; are the prob"
        ):
            score_items(margin, Labels(np.array([0, 1]), 3), Posteriors(np.full((2, 2), 0.5)))

    def test_missing_posteriors_are_missed(self) -> None:
        with pytest.raises(BadInput, match="score: this rule needs class probabilities, but none came"):
            score_items(margin, Labels(np.array([0]), 2), None)

    @pytest.mark.parametrize("value", [0.5, np.zeros((1, 3)), np.zeros(2)])
    def test_what_is_not_one_number_a_row_is_refused(self, value: Any) -> None:
        with pytest.raises(BadInput, match="score: one number a row was needed, but 3 rows gave shape"):
            score_items(lambda _: np.asarray(value), Labels(np.zeros(3, int), 2), None)

    def test_nan_is_refused_with_the_item(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("relook.types.CELLS", 4)
        with pytest.raises(BadInput, match="score: numbers were needed, but item 4 got NaN; guard the rule"):
            score_items(
                lambda rows: np.where(rows.items == 4, np.nan, 1.0),
                Labels(np.zeros(6, int), 2),
                None,
            )

    def test_the_fitted_rival_is_row_wise_too(self) -> None:
        random = np.random.default_rng(3)
        posteriors = Posteriors(shares(random, (60, 4)))
        labels = Labels(random.integers(0, 4, 60), 4, random.integers(0, 2, (60, 4)))
        fitted = ActiveLab().fit(labels, posteriors)
        whole = score_items(fitted, labels, posteriors)
        alone = [fitted(rows_of(labels, posteriors, block=slice(item, item + 1)))[0] for item in range(60)]
        assert bits(alone) == bits(whole)
