"""Predictions by what never saw an item's label: folds, groups, ensembles and self-training."""

import numpy as np
import pytest

from relook.errors import BadInput
from relook.train.crossing import (
    FloatArray,
    IntArray,
    Learn,
    averaged,
    fold_of,
    in_sample,
    number,
    only,
    out_of_sample,
    self_trained,
    together,
)
from relook.train.parts import Knn

CLASSES = 5


def copies(groups: int = 60, each: int = 4) -> tuple[FloatArray, FloatArray, IntArray, list[str]]:
    """Return features, masses, the planted class and groups of items that are copies of each other, mislabelled alike.

    What an item looks like says nothing about the class that its group was planted with, so only a copy can tell it.
    """
    rng = np.random.default_rng(0)
    table = np.repeat(rng.normal(size=(groups, 16)), each, axis=0)
    planted = np.repeat(rng.integers(CLASSES, size=groups), each)
    return table, np.eye(CLASSES)[planted], planted, [f"patient {item // each}" for item in range(len(table))]


def memory(table: FloatArray) -> Learn:
    def learn(masses: FloatArray, asked: IntArray, *, name: str) -> FloatArray:
        return Knn(neighbours=1, smoothing=1e-6).said(table, masses, asked=asked)[np.newaxis]

    return learn


def test_mislabelled_copies_in_a_group_do_not_look_out_of_sample() -> None:
    table, masses, planted, groups = copies()
    whole = fold_of(masses, 5, seed=0, groups=groups)
    said = out_of_sample(memory(table), masses, fold_of=whole)
    assert (said[0].argmax(1) == planted).mean() < 0.5
    # Negative control: with folds that split groups the copies give each other away.
    split = fold_of(masses, 5, seed=0)
    said = out_of_sample(memory(table), masses, fold_of=split)
    assert (said[0].argmax(1) == planted).mean() > 0.9


def test_nobody_learns_from_the_items_of_the_fold_nor_of_those_without_a_label() -> None:
    masses = np.eye(2)[np.arange(20) % 2].astype(np.float32)
    masses[17:] = 0
    cut = fold_of(masses, 4, seed=3)
    asked_by: dict[str, IntArray] = {}

    def learn(known: FloatArray, asked: IntArray, *, name: str) -> FloatArray:
        asked_by[name] = asked
        assert not known[asked].any(), "an item that is asked for was learnt from"
        np.testing.assert_array_equal(known, only(masses, np.flatnonzero((cut >= 0) & (cut != int(name[-1])))))
        return np.full((1, len(asked), 2), 0.5)

    said = out_of_sample(learn, masses, fold_of=cut)
    assert said.shape == (1, 20, 2)
    assert sorted(asked_by) == ["fold-0", "fold-1", "fold-2", "fold-3"]
    assert all({17, 18, 19} <= set(asked.tolist()) for asked in asked_by.values())


def test_every_model_of_an_ensemble_is_kept_and_trained_once() -> None:
    trained: list[str] = []

    def sure_of(label: int) -> Learn:
        def learn(masses: FloatArray, asked: IntArray, *, name: str) -> FloatArray:
            trained.append(name)
            return np.tile(np.eye(2)[label], (2, len(asked), 1))

        return learn

    both = together([sure_of(0), sure_of(1)])
    masses = np.eye(2)[np.arange(8) % 2]
    said = out_of_sample(both, masses, fold_of=np.arange(8) // 2 % 2)
    assert said[:, 0].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert sorted(trained) == ["fold-0/0", "fold-0/1", "fold-1/0", "fold-1/1"]
    assert averaged(both)(masses, np.arange(3), name="x").tolist() == [[[0.5, 0.5]] * 3]


def test_self_training_learns_from_what_it_said_and_never_from_a_label_held_out() -> None:
    masses = np.eye(2)[[0, 1, 0, 1]]
    masses[2:] = 0
    seen: list[FloatArray] = []

    def learn(known: FloatArray, asked: IntArray, *, name: str) -> FloatArray:
        seen.append(known.copy())
        return np.tile([0.25, 0.75], (1, len(asked), 1))

    self_trained(learn, rounds=1, weight=0.5)(masses, np.array([2, 3]), name="x")
    np.testing.assert_array_equal(seen[0], masses)
    np.testing.assert_array_equal(seen[1], [[1, 0], [0, 1], [0.125, 0.375], [0.125, 0.375]])


def test_in_sample_sees_every_label_and_needs_two_classes() -> None:
    def learn(known: FloatArray, asked: IntArray, *, name: str) -> FloatArray:
        assert name == "whole"
        return known[asked][np.newaxis]

    masses = np.eye(2)[[0, 1, 1]]
    assert in_sample(learn, masses).tolist() == [masses.tolist()]
    with pytest.raises(BadInput, match="labels of two classes were needed in sample"):
        in_sample(learn, np.eye(2)[[1, 1]])


def test_the_chance_of_a_part_depends_on_its_name() -> None:
    assert len({number(0, "a", "b"), number(0, "ab"), number(1, "a", "b"), number(0, "b", "a")}) == 4
