"""The fast softmax regression ends where scikit-learn's slow one does."""

import numpy as np
import pytest

from relook.discriminants import softmax
from relook.regression import fitted, turned
from relook.types import FloatArray, IntArray


def clouds(items: int, width: int, classes: int) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(2)
    target = rng.integers(classes, size=items)
    frame = rng.normal(size=(width, width)) * (1 + np.arange(width)) ** -1.0
    table = (rng.normal(size=(items, width)) + 1.5 * rng.normal(size=(classes, width))[target]) @ frame
    return table - table.mean(0), target


@pytest.mark.parametrize(("items", "width", "classes"), [(400, 20, 5), (60, 150, 3)])
def test_is_scikit_learn_s(items: int, width: int, classes: int) -> None:
    from sklearn.linear_model import LogisticRegression

    table, target = clouds(items, width, classes)
    train = np.arange(0, items, 2)
    slow = LogisticRegression(C=0.5, tol=1e-9, max_iter=10_000).fit(table[train], target[train])
    found = turned(table)
    fast = fitted(found, np.eye(classes)[target], rows=train, penalty=2.0)
    np.testing.assert_allclose(fast.predict(found.table), slow.predict_proba(table), atol=5e-3)


def test_two_classes_weigh_slopes_twice() -> None:
    """Of two classes scikit-learn fits one slope where there are two here, each half as long: a half of its penalty."""
    from sklearn.linear_model import LogisticRegression

    table, target = clouds(200, 8, 2)
    slow = LogisticRegression(C=1.0, tol=1e-9, max_iter=10_000).fit(table, target)
    found = turned(table)
    fast = fitted(found, np.eye(2)[target], rows=np.arange(200), penalty=2.0)
    np.testing.assert_allclose(fast.predict(found.table), slow.predict_proba(table), atol=5e-3)


def test_the_gradient_vanishes_at_the_end_also_for_soft_targets() -> None:
    table, _ = clouds(300, 10, 4)
    shares = np.random.default_rng(0).dirichlet(np.ones(4), 300)
    found = turned(table)
    model = fitted(found, shares, rows=np.arange(300), penalty=3.0)
    rest = softmax(found.table @ model.slopes + model.offsets) - shares
    gradient = found.table.T @ rest + 3.0 * model.slopes
    assert np.abs(gradient).max() < 0.02 * np.abs(found.table.T @ (0.25 - shares)).max()
    assert np.abs(rest.sum(0)).max() < 0.1


def test_turning_keeps_inner_products() -> None:
    for table in (clouds(50, 7, 2)[0], clouds(20, 60, 2)[0]):
        found = turned(table)
        assert found.table.shape == (len(table), min(table.shape))
        np.testing.assert_allclose(found.table @ found.table.T, table @ table.T, atol=1e-3)
        np.testing.assert_allclose((found.table**2).mean(0), found.variances, atol=1e-4)


def test_a_class_that_no_row_has_is_never_said() -> None:
    table, target = clouds(60, 5, 3)
    found = turned(table)
    model = fitted(found, np.eye(4)[target], rows=np.flatnonzero(target != 1), penalty=1.0)
    assert (model.predict(found.table)[:, [1, 3]] == 0).all()
