"""Discriminants by sums are those of scikit-learn, parts of sums add up, and odd tables do no harm."""

from itertools import product

import numpy as np
import pytest

from relook.discriminants import NOISES, TEMPERATURES, Sureness, fitted, softmax, sums, sureness, tempered
from relook.types import FloatArray, IntArray


def clouds(items: int = 200, width: int = 6, classes: int = 3) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(1)
    target = rng.integers(classes, size=items)
    table = rng.normal(size=(items, width)) @ rng.normal(size=(width, width)) + 2 * np.eye(classes, width)[target]
    return table, target


@pytest.mark.parametrize("shrinkage", [0.0, 0.3, 1.0])
def test_is_scikit_learn_s(shrinkage: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    from relook import discriminants

    monkeypatch.setattr(discriminants, "FLOOR", 0.0)
    table, target = clouds()
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage)
    slow = model.fit(table, target).predict_proba(table)
    fast = fitted(sums(table, np.eye(3)[target]), shrinkage=shrinkage).predict(table)
    if shrinkage in (0.0, 1.0):
        np.testing.assert_allclose(fast, slow, atol=1e-4)
    else:
        # scikit-learn shrinks each class's covariance in units of its standard deviations.
        assert (fast.argmax(1) == slow.argmax(1)).mean() > 0.97


def test_sums_of_parts_add_up_and_are_taken_out_again() -> None:
    table, target = clouds(items=20_000, width=4)
    shares = np.eye(3)[target]
    whole, part, rest = sums(table, shares), sums(table[:7_000], shares[:7_000]), sums(table[7_000:], shares[7_000:])
    for mine, theirs in ((part.plus(rest), whole), (whole.minus(part), rest)):
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-7)


def test_an_item_of_two_classes_counts_as_two_halves() -> None:
    table, target = clouds(items=50)
    halved, twice = np.eye(3)[target], np.vstack([table, table])
    halved[:10] = [0.5, 0.5, 0.0]
    hard = np.vstack([np.where(halved == 0.5, [1.0, 0.0, 0.0], halved), np.where(halved == 0.5, [0, 1.0, 0], halved)])
    soft = fitted(sums(table, halved))
    both = fitted(sums(twice, hard))
    np.testing.assert_allclose(soft.slopes, both.slopes, atol=1e-9)
    np.testing.assert_allclose(soft.offsets, both.offsets, atol=1e-9)


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(np.zeros((6, 3)), id="nothing varies"),
        pytest.param(np.repeat(np.eye(2), 3, axis=0) * 1e6, id="classes are points"),
        pytest.param(np.arange(6.0).reshape(6, 1) @ np.ones((1, 40)), id="one direction, more columns than rows"),
    ],
)
def test_odd_tables_give_probabilities(table: FloatArray) -> None:
    found = fitted(sums(table, np.repeat(np.eye(3)[:2], 3, axis=0))).predict(table)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-6)
    assert (found[:, 2] == 0).all(), "nobody has the third class"


def test_sureness_is_what_a_search_over_all_finds() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(300, 3)) * 5
    drawn = tempered(scores, Sureness(3.0, 0.2), common=np.full(3, 1 / 3))
    shares = np.eye(3)[[rng.choice(3, p=row) for row in drawn]]

    def loss(temperature: float, noise: float) -> float:
        likely = (1 - noise) * softmax(scores / temperature) + noise / 3
        return -float(np.log((likely * shares).sum(1)).mean())

    found = sureness(scores, shares, common=np.full(3, 1 / 3))
    assert found == min((Sureness(*each) for each in product(TEMPERATURES, NOISES)), key=lambda each: loss(*each))
    assert found.temperature in (2.0, 3.0, 4.0)
