"""The estimate of how many labels are wrong: how far off it is where the truth is known, which it never sees."""

import numpy as np
import pytest

from relook.discriminants import fitted, sums
from relook.errors import BadInput
from relook.train.crossing import fold_of, out_of_sample
from relook.train.noise_rate import MOST, noise_rate
from relook.train.parts import Lda


def wrong(truth: np.ndarray, share: float) -> np.ndarray:
    """Return labels of which a share is drawn evenly from the other classes."""
    rng = np.random.default_rng(5)
    given, flipped = truth.copy(), rng.random(len(truth)) < share
    given[flipped] = (truth[flipped] + rng.integers(1, 10, flipped.sum())) % 10
    return given


@pytest.mark.parametrize(("share", "off"), [(0.0, 0.02), (0.1, 0.03), (0.2, 0.03), (0.4, 0.04)])
def test_the_estimate_is_close_on_digits(share: float, off: float) -> None:
    from sklearn.datasets import load_digits

    digits = load_digits()
    given = wrong(digits.target, share)
    masses = np.eye(10)[given]

    def learn(known: np.ndarray, asked: np.ndarray, *, name: str) -> np.ndarray:
        return Lda().said(digits.data, known, asked=asked)[np.newaxis]

    said = out_of_sample(learn, masses, fold_of=fold_of(masses, 5, seed=0))[0]
    assert abs(noise_rate(said, given) - (given != digits.target).mean()) <= off


def test_no_more_than_half_is_taken_to_be_wrong_and_no_label_counts_for_nothing() -> None:
    sure = np.tile([0.9, 0.1], (10, 1))
    assert noise_rate(sure, np.ones(10, np.int64)) == MOST
    assert noise_rate(sure, np.full(10, -1)) == 0.0
    assert noise_rate(sure, np.zeros(10, np.int64)) == 0.0


def test_a_label_for_each_row_is_needed() -> None:
    with pytest.raises(BadInput, match="noise rate: labels of 2 rows were needed"):
        noise_rate(np.full((2, 2), 0.5), np.zeros(3, np.int64))


def test_heads_in_closed_form_weigh_what_they_learn_from() -> None:
    rng = np.random.default_rng(0)
    table, shares = rng.normal(size=(40, 3)), np.eye(2)[rng.integers(2, size=40)]
    twice = np.concatenate([np.arange(40), np.arange(10)])
    weighed = shares * np.where(np.arange(40) < 10, 2.0, 1.0)[:, np.newaxis]
    np.testing.assert_allclose(
        Lda().said(table, weighed, asked=np.arange(40)),
        fitted(sums(table[twice], shares[twice]), shrinkage=0.1).predict(table),
        atol=1e-5,
    )
