"""The belief about an item: Bayes' rule over the answers, whatever their order."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook.belief import AnswerModel
from relook.types import FloatArray, Rows
from tests.laws import LAW, catches

Believe = Callable[[AnswerModel, Rows], FloatArray]


def rows_of(posteriors: FloatArray, given_labels: list[int], answers: list[list[int]]) -> Rows:
    classes = posteriors.shape[-1]
    counts = [[row.count(label) for label in range(classes)] for row in answers]
    return Rows(np.arange(len(answers)), posteriors, np.array(given_labels), np.array(counts), classes)


def bayes(model: AnswerModel, p: list[float], given_label: int, answers: list[int]) -> list[float]:
    """Prior times the chance of each answer in turn, normalised after every one."""
    classes = range(len(p))
    powers = [each**model.sharpness for each in p]
    prior = [0.99 * power / sum(powers) + 0.001 for power in powers]
    belief = [each * math.exp(model.given_bonus * (label == given_label)) for label, each in enumerate(prior)]
    for answer in answers:
        for truth in classes:
            confused = (1 - model.kappa) * (answer == truth) + model.kappa * prior[answer]
            belief[truth] *= (1 - model.eps) * confused + model.eps / len(p)
        belief = [each / sum(belief) for each in belief]
    return [each / sum(belief) for each in belief]


class TestBayes:
    """The belief is the prior, turned by one answer after the other."""

    def law(self, how: settings, believe: Believe) -> None:
        @how
        @given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 3), st.sampled_from(["plain", "drawn"]))
        def check(seed: int, classes: int, models: int, kind: str) -> None:
            random = np.random.default_rng(seed)
            rule = (
                AnswerModel() if kind == "plain" else AnswerModel(*random.uniform([0.5, 0, 0.01, 0], [3, 0.3, 0.3, 2]))
            )
            posteriors = random.dirichlet(np.full(classes, 0.5), (models, 4))
            given_labels = random.integers(-1, classes, 4).tolist()
            answers = [random.integers(0, classes, count).tolist() for count in (0, 1, 3, 9)]
            found = believe(rule, rows_of(posteriors, given_labels, answers))
            for item in range(4):
                mean = posteriors[:, item].mean(0).tolist()
                expected = bayes(rule, mean, given_labels[item], answers[item])
                assert found[item] == pytest.approx(expected, rel=1e-9, abs=1e-12)
            assert found.sum(1) == pytest.approx(1)

        check()

    def test_holds(self) -> None:
        self.law(LAW, lambda model, rows: model.belief(rows))

    def test_an_answer_that_is_heard_twice_is_caught(self) -> None:
        def doubled(model: AnswerModel, rows: Rows) -> FloatArray:
            assert rows.answer_counts is not None
            twice = rows.answer_counts + (rows.answer_counts > 2)
            return model.belief(Rows(rows.items, rows.posteriors, rows.given_labels, twice, rows.classes))

        catches(partial(self.law, believe=doubled))

    def test_a_given_label_that_is_forgotten_is_caught(self) -> None:
        def forgetful(model: AnswerModel, rows: Rows) -> FloatArray:
            nothing = np.full_like(rows.given_labels, -1)
            return model.belief(Rows(rows.items, rows.posteriors, nothing, rows.answer_counts, rows.classes))

        catches(partial(self.law, believe=forgetful))


def test_a_hundred_answers_do_not_underflow() -> None:
    answers = [[0] * 500 + [1] * 500]
    belief = AnswerModel().belief(rows_of(np.array([[[0.5, 0.5]]]), [0], answers))
    assert belief.tolist() == [[0.5, 0.5]]


def test_a_wrong_answer_is_likelier_where_the_model_confuses() -> None:
    """The model wavers between 0 and 1: that somebody says 1 speaks less against 0 than that they say 2."""
    posteriors = np.array([[[0.5, 0.49, 0.01]], [[0.5, 0.49, 0.01]]])
    wrong, right = AnswerModel(kappa=0.3).answer_chances(AnswerModel().sharpened(posteriors[0]))
    assert wrong[0, 1] > wrong[0, 2]
    assert (right > wrong).all()


def test_posteriors_are_left_alone() -> None:
    posteriors = np.array([[[0.6, 0.4]]])
    AnswerModel(sharpness=1.0).belief(rows_of(posteriors, [0], [[1]]))
    assert posteriors.tolist() == [[[0.6, 0.4]]]
