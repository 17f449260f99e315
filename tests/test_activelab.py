"""ActiveLab's ordering: against cleanlab itself, against a slow version, and its laws."""

import contextlib
import importlib
import io
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from relook.activelab import TEMPERATURES, ActiveLab, Weights
from relook.errors import BadInput
from relook.scores import score_items, self_confidence
from relook.types import FloatArray, Labels, Posteriors

# Ten items: probabilities, the given label, and the answers since.
P = [
    [0.65, 0.09, 0.26], [0.09, 0.84, 0.07], [0.06, 0.04, 0.9], [0.93, 0.06, 0.01], [0.02, 0.93, 0.05],
    [0.07, 0.38, 0.55], [0.68, 0.18, 0.14], [0.27, 0.64, 0.09], [0.32, 0.49, 0.19], [0.24, 0.5, 0.26],
]  # fmt: skip
GIVEN = [0, 1, 0, 2, 1, 2, 1, 1, 2, 0]
ONE_ANSWER = {0: [0], 2: [2], 3: [0], 6: [0], 7: [1], 9: [1]}
UP_TO_THREE = ONE_ANSWER | {2: [2, 2], 3: [0, 2, 0], 6: [0, 0], 9: [1, 1]}
NEWCOMERS = [[0.5, 0.3, 0.2], [0.05, 0.05, 0.9]]

# What cleanlab 2.9.0's `get_active_learning_scores` gives for them, with a column for the given label and each answer.
OF_GIVEN_LABELS = [
    0.5444444444444444, 0.6711111111111111, 0.1511111111111111, 0.11777777777777777, 0.7311111111111112,
    0.4777777777777778, 0.23111111111111113, 0.5377777777777778, 0.23777777777777778, 0.2711111111111111,
]  # fmt: skip
OF_ONE_ANSWER = [
    0.37841740803573, 0.40905264716207757, 0.4275017748923393, 0.45037723594906226, 0.44305934514755246,
    0.3699876849957095, 0.3792727549861942, 0.3772573696558133, 0.3545559779402146, 0.3549284264063025,
]  # fmt: skip
OF_NEWCOMERS = [0.3554617876428575, 0.4269085413354995]
OF_UP_TO_THREE = [
    0.3993771175319172, 0.40788350750567565, 0.4448925570532608, 0.46610443465962603, 0.4413651164367879,
    0.36942173780602156, 0.4001704597959686, 0.3983014294390074, 0.35422827249109745, 0.37759630356115204,
]  # fmt: skip

POOLED_APART = 0.03
"""How far pooling the answers may move a score from cleanlab's, which weighs each position of an answer on its own.

Measured over the cases of `test_agrees_with_cleanlab_itself`, cleanlab 2.9.0 on numpy 2.4.6: with one answer an item
there is nothing to pool, and scores differ by 2.2e-16 at most; with up to five they differ by .012 at most, at a rank
correlation of .997 or more. The ten items of `UP_TO_THREE` differ by .023.
"""


def labels_of(given_labels: list[int], answers: dict[int, list[int]], *, classes: int = 3) -> Labels:
    counts = np.zeros((len(given_labels), classes), np.int64)
    for item, classes_said in answers.items():
        for said in classes_said:
            counts[item, said] += 1
    return Labels(np.array(given_labels), classes, counts if answers else None)


def posteriors_of(rows: list[list[float]]) -> Posteriors:
    return Posteriors(np.array(rows))


def sureness(labels: Labels, posteriors: Posteriors, rule: ActiveLab | None = None) -> FloatArray:
    """ActiveLab's s, lowest first: our score the right way up."""
    return -score_items((rule or ActiveLab()).fit(labels, posteriors), labels, posteriors)


class TestAgainstCleanlab:
    def test_given_labels_alone(self) -> None:
        labels, posteriors = labels_of(GIVEN, {}), posteriors_of(P)
        doubt = score_items(ActiveLab().fit(labels, posteriors), labels, posteriors)
        # cleanlab then takes (2 P(label) + 1 / C) / 3; ours is the doubt in it.
        np.testing.assert_allclose((2 * (1 - doubt) + 1 / 3) / 3, OF_GIVEN_LABELS, atol=1e-15)

    def test_one_answer(self) -> None:
        labels = labels_of([*GIVEN, -1, -1], ONE_ANSWER)
        expected = [*OF_ONE_ANSWER, *OF_NEWCOMERS]
        np.testing.assert_allclose(sureness(labels, posteriors_of([*P, *NEWCOMERS])), expected, atol=1e-14)

    def test_up_to_three_answers(self) -> None:
        found = sureness(labels_of(GIVEN, UP_TO_THREE), posteriors_of(P))
        assert np.abs(found - OF_UP_TO_THREE).max() < POOLED_APART
        assert rank_correlation(found, np.array(OF_UP_TO_THREE)) > 0.9

    def test_unlabelled_items_among_given_labels(self) -> None:
        labels, posteriors = labels_of([0, 1, -1, -1], {}), posteriors_of([*P[:2], *NEWCOMERS])
        doubt = score_items(ActiveLab().fit(labels, posteriors), labels, posteriors)
        # Of cleanlab: for these two .5444 and .6711, for the newcomers (max P + 1 / C) / 2.
        expected = [*OF_GIVEN_LABELS[:2], (0.5 + 1 / 3) / 2, (0.9 + 1 / 3) / 2]
        np.testing.assert_allclose((2 * (1 - doubt) + 1 / 3) / 3, expected, atol=1e-15)

    @pytest.mark.parametrize("most", [1, 2, 3, 5])
    @pytest.mark.parametrize("seed", range(5))
    def test_agrees_with_cleanlab_itself(self, most: int, seed: int) -> None:
        table, probabilities = random_table(seed, most=most)
        theirs = cleanlab_scores(table, probabilities)
        ours = sureness(labels_of_table(table, classes=5), Posteriors(probabilities))
        assert np.abs(ours - theirs).max() < (1e-14 if most == 1 else POOLED_APART)
        assert rank_correlation(ours, theirs) > 0.995


def random_table(seed: int, *, most: int, items: int = 300, classes: int = 5) -> tuple[FloatArray, FloatArray]:
    """Return answers as cleanlab takes them (NaN: none), the given label first, and probabilities."""
    rng = np.random.default_rng([seed, most])
    truth = rng.integers(classes, size=items)
    logits = np.log(np.eye(classes)[truth] + 0.2) + rng.normal(0, 1.5, (items, classes))
    table = np.full((items, 1 + most), np.nan)
    answered = rng.integers(0, most + 1, size=items) * (rng.random(items) < 0.6)
    for column in range(1 + most):
        right = rng.random(items) < (0.7 if column == 0 else 0.93)
        said = np.where(right, truth, rng.integers(classes, size=items))
        table[:, column] = np.where(answered >= column, said, np.nan)
    return table, np.exp(logits) / np.exp(logits).sum(1, keepdims=True)


def labels_of_table(table: FloatArray, *, classes: int) -> Labels:
    answers = {
        item: [int(said) for said in row[1:] if not np.isnan(said)]
        for item, row in enumerate(table)
        if len(row) > 1 and not np.isnan(row[1])
    }
    return labels_of([int(first) for first in table[:, 0]], answers, classes=classes)


def cleanlab_scores(table: FloatArray, probabilities: FloatArray) -> FloatArray:
    multiannotator: Any = importlib.import_module("cleanlab.multiannotator")
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(multiannotator.get_active_learning_scores(table, probabilities)[0])


def rank_correlation(a: FloatArray, b: FloatArray) -> float:
    return float(np.corrcoef(np.argsort(np.argsort(a)), np.argsort(np.argsort(b)))[0, 1])


class TestAgainstASlowVersion:
    @given(st.integers(0, 10_000), st.integers(1, 4), st.sampled_from([2, 3, 6]))
    def test_fitted_constants_and_scores(self, seed: int, most: int, classes: int) -> None:
        table, probabilities = random_table(seed, most=most, items=40, classes=classes)
        labels = labels_of_table(table, classes=classes)
        rule = ActiveLab(temperature=1.7).fit(labels, Posteriors(probabilities))
        expected, weights = slowly(table, probabilities, temperature=1.7)
        assert rule.by_quality is not None
        found = [rule.by_quality.model, rule.by_quality.given, rule.by_quality.answer, rule.by_quality.agreement]
        np.testing.assert_allclose(found, weights, rtol=1e-9)
        np.testing.assert_allclose(-score_items(rule, labels, Posteriors(probabilities)), expected, rtol=1e-9)

    def test_temperature_by_trying_all(self) -> None:
        for seed in range(20):
            table, probabilities = random_table(seed, most=2, items=60, classes=4)
            rule = ActiveLab().fit(labels_of_table(table, classes=4), Posteriors(probabilities))
            assert rule.temperature == slow_temperature(table, probabilities)

    def test_a_fit_in_blocks_is_the_fit_of_the_whole(self, monkeypatch: pytest.MonkeyPatch) -> None:
        table, probabilities = random_table(0, most=2, items=500)
        labels, posteriors = labels_of_table(table, classes=5), Posteriors(probabilities)
        whole = ActiveLab().fit(labels, posteriors)
        monkeypatch.setattr("relook.types.CELLS", 5 * 37)
        parted = ActiveLab().fit(labels, posteriors)
        assert whole.temperature == parted.temperature
        for one, other in ((whole.by_votes, parted.by_votes), (whole.by_quality, parted.by_quality)):
            assert one is not None
            assert other is not None
            np.testing.assert_allclose(values(one), values(other), rtol=1e-12)


def values(weights: Weights) -> list[float]:
    return [weights.model, weights.given, weights.answer, weights.agreement]


def slowly(table: FloatArray, probabilities: FloatArray, *, temperature: float) -> tuple[list[float], list[float]]:
    """The docstring's formula, a vote at a time; people pooled as given label and answers."""
    items, classes = probabilities.shape
    model = probabilities ** (1 / temperature)
    model = model / model.sum(1, keepdims=True)
    votes = [[(column > 0, int(said)) for column, said in enumerate(row) if not np.isnan(said)] for row in table]
    consensus = [_most_voted(votes[i], model[i]) for i in range(items)]
    weights = _weights(votes, model, consensus=consensus)
    posteriors = [_posterior(votes[i], model[i], weights=weights) for i in range(items)]
    consensus = [int(np.argmax(posterior)) for posterior in posteriors]
    weights = _weights(votes, model, consensus=consensus)
    people = [weights[1]] + [weights[2]] * (max(len(row) for row in votes) - 1)
    newcomer, scores = sum(people) / len(people), []
    for i in range(items):
        trust = weights[0] + sum(weights[1 + is_answer] for is_answer, _ in votes[i])
        quality = _posterior(votes[i], model[i], weights=weights)[consensus[i]]
        scores.append((trust * quality + newcomer / classes) / (trust + newcomer))
    return scores, weights


def _most_voted(votes: list[tuple[bool, int]], model: FloatArray) -> int:
    said = [c for _, c in votes]
    best = max(said.count(c) for c in range(len(model)))
    return max((c for c in range(len(model)) if said.count(c) == best), key=lambda c: model[c])


def _posterior(votes: list[tuple[bool, int]], model: FloatArray, *, weights: list[float]) -> NDArray[Any]:
    posterior, total, agreement = weights[0] * model, weights[0], weights[3]
    for is_answer, said in votes:
        weight = weights[1 + is_answer]
        total += weight
        for c in range(len(model)):
            share = agreement if c == said else (1 - agreement) / (len(model) - 1)
            posterior[c] = posterior[c] + weight * share
    return np.asarray(posterior / total)


def _weights(votes: list[list[tuple[bool, int]]], model: FloatArray, *, consensus: list[int]) -> list[float]:
    many = [i for i, row in enumerate(votes) if len(row) > 1]
    commonest = max(sum(consensus[i] == c for i in many) for c in range(model.shape[1]))
    chance = max(1 - commonest / len(many), 1e-6)
    pairs = [
        (is_answer, said == other)
        for i in many
        for place, (is_answer, said) in enumerate(votes[i])
        for position, (_, other) in enumerate(votes[i])
        if place != position
    ]
    people = []
    for kind in (False, True):
        alike = np.mean([same for is_answer, same in pairs if is_answer == kind])
        people.append(max(1 - (1 - float(alike)) / chance, 1e-6))
    errors = float(np.mean([np.argmax(model[i]) != consensus[i] for i in many]))
    agreement = float(np.mean([np.mean([said == consensus[i] for _, said in votes[i]]) for i in many]))
    return [max(1 - errors / chance, 1e-6) * float(np.mean([len(row) for row in votes])) ** 0.5, *people, agreement]


def slow_temperature(table: FloatArray, probabilities: FloatArray) -> float:
    def misfit(temperature: float) -> float:
        model = probabilities ** (1 / temperature)
        model = model / model.sum(1, keepdims=True)
        total = 0.0
        for row, shares in zip(table, model, strict=True):
            _, tally = np.unique(row[~np.isnan(row)], return_counts=True)
            total -= sum(n / tally.sum() * np.log(p) for n, p in zip(tally, shares, strict=False))
        return total

    place = int(np.argmin([misfit(t) for t in TEMPERATURES]))
    below = list(np.linspace(TEMPERATURES[place - 1], TEMPERATURES[place], 4, endpoint=False)) if place else []
    above = list(np.linspace(TEMPERATURES[place], TEMPERATURES[place + 1], 5)) if place < len(TEMPERATURES) - 1 else []
    return float(min(below + above, key=misfit))


@st.composite
def worlds(draw: st.DrawFn, *, answered: bool) -> tuple[Labels, Posteriors]:
    """Labels, some missing, with or without answers, and posteriors of one model or two."""
    items, classes = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    values = rng.dirichlet(np.full(classes, 0.3), (draw(st.integers(1, 2)), items)).astype(dtype)
    answers = rng.integers(0, 3, (items, classes)) if answered else None
    return Labels(rng.integers(-1, classes, items), classes, answers), Posteriors(values)


class TestLaws:
    @given(worlds(answered=False))
    def test_before_any_answer_it_is_self_confidence(self, world: tuple[Labels, Posteriors]) -> None:
        labels, posteriors = world
        ours = score_items(ActiveLab().fit(labels, posteriors), labels, posteriors)
        plain = score_items(self_confidence, labels, posteriors)
        labelled = labels.given >= 0
        assert np.array_equal(ours[labelled], plain[labelled])

    @given(worlds(answered=True))
    def test_rows_score_alike_in_any_company(self, world: tuple[Labels, Posteriors]) -> None:
        labels, posteriors = world
        rule = ActiveLab().fit(labels, posteriors)
        together = score_items(rule, labels, posteriors)
        assert np.isfinite(together).all()
        assert labels.answers is not None
        for item in range(len(labels)):
            own = Labels(labels.given[[item]], labels.classes, labels.answers[[item]])
            assert score_items(rule, own, Posteriors(posteriors.values[:, [item]]))[0] == together[item]

    def test_a_fit_forgets_the_last_one(self) -> None:
        before, posteriors = labels_of(GIVEN, ONE_ANSWER), posteriors_of(P)
        refitted = ActiveLab().fit(before, posteriors).fit(labels_of(GIVEN, {}), posteriors)
        assert refitted.by_votes is None

    def test_a_temperature_that_is_given_is_kept(self) -> None:
        rule = ActiveLab(temperature=1.0).fit(labels_of(GIVEN, ONE_ANSWER), posteriors_of(P))
        assert rule.temperature == 1.0

    def test_given_labels_of_nobody_twice_asked_weigh_what_answers_weigh(self) -> None:
        labels = labels_of([0, -1, -1], {1: [0, 0], 2: [0, 1]}, classes=2)
        rule = ActiveLab().fit(labels, posteriors_of([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]))
        assert rule.by_quality is not None
        assert rule.by_quality.given == rule.by_quality.answer


class TestBadInput:
    def test_no_probabilities(self) -> None:
        with pytest.raises(BadInput, match="activelab: it needs class probabilities, but none came"):
            ActiveLab().fit(labels_of(GIVEN, {}), None)

    @pytest.mark.parametrize("rows", [P[:4], [[0.5, 0.5]] * 10])
    def test_probabilities_of_another_set(self, rows: list[list[float]]) -> None:
        with pytest.raises(BadInput, match=r"activelab: probabilities of 10 items and 3 classes were needed"):
            ActiveLab().fit(labels_of(GIVEN, {}), posteriors_of(rows))
