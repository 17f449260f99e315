"""Log loss, calibration error and agreement by their definitions, over the labelled items alone."""

import numpy as np
import pytest

from relook.calibration import LEAST, calibration
from relook.types import Labels, Posteriors


def test_is_what_the_definitions_say() -> None:
    from sklearn.metrics import log_loss

    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 500)
    target = rng.integers(4, size=500)
    found = calibration(Posteriors(p), Labels(target, 4))
    assert found.log_loss == pytest.approx(log_loss(target, p, labels=range(4)))
    assert found.agreement == (p.argmax(1) == target).mean()
    assert found.items == 500


def test_the_unlabelled_count_for_nothing() -> None:
    p = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    assert calibration(Posteriors(p), Labels(np.array([0, -1, 1]), 2)) == calibration(
        Posteriors(p[[0, 2]]), Labels(np.array([0, 1]), 2)
    )
    assert calibration(Posteriors(p), Labels(np.array([-1, -1, -1]), 2)).items == 0


def test_error_is_small_where_probabilities_hold_and_large_where_they_boast() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 20_000)
    target = (p.cumsum(1) > rng.random((20_000, 1))).argmax(1)
    sharp = p**4 / (p**4).sum(1, keepdims=True)
    assert calibration(Posteriors(p), Labels(target, 3)).error < 0.015
    assert calibration(Posteriors(sharp), Labels(target, 3)).error > 0.1


def test_a_certain_mistake_is_no_infinity() -> None:
    found = calibration(Posteriors(np.array([[1.0, 0.0]])), Labels(np.array([1]), 2))
    assert found.log_loss == pytest.approx(-np.log(LEAST))


def test_several_models_count_by_their_mean() -> None:
    models = np.array([[[1.0, 0.0]], [[0.2, 0.8]]])
    assert calibration(Posteriors(models), Labels(np.array([0]), 2)).log_loss == pytest.approx(-np.log(0.6))
