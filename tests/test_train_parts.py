"""Encoders, heads and networks as parts: each trained once, alike every time, and gone on from where that is asked."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from relook.errors import BadInput
from relook.train.augment import PLAIN
from relook.train.coteaching import CoTeaching
from relook.train.loop import Place
from relook.train.nets import Shape
from relook.train.parts import Encoder, Heads, Knn, Lda, Network, Shelf, Work
from relook.train.predict import Looks
from relook.train.recipe import FOLDS, Known, Recipe, made
from relook.train.schedule import Schedule
from relook.train.simclr import SimClr
from relook.train.vanilla import Vanilla

SMALL = Shape(blocks=(1,), channels=4, inputs=1)
PACE = Schedule(epochs=2, batch=16, rate=0.05, warmup=0, short="kept")
ENCODER = Encoder(SimClr(shape=SMALL, hidden=8, size=4), Schedule(epochs=1, batch=16, rate=0.1, warmup=0))
PLAINLY = Vanilla(shape=SMALL, views=(PLAIN,))
NETWORK = Network(PLAINLY, PACE)


def known(items: int = 48) -> Known:
    """Return small images of two kinds, bright at the top or at the bottom, with labels of all but the last four."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 60, (items, 1, 6, 6)).astype(np.uint8)
    label = np.arange(items) % 2
    images[label == 0, :, :3] += 150
    images[label == 1, :, 3:] += 150
    masses = np.eye(2, dtype=np.float32)[label]
    masses[-4:] = 0
    return Known(torch.from_numpy(images), masses)


def recipe(*parts: Network | Heads, folds: int = 2) -> Recipe:
    return Recipe("test", parts, "here", folds=folds)


def test_an_ensemble_across_families_keeps_its_models_and_comes_out_alike() -> None:
    both = recipe(replace(NETWORK, copies=2), Heads((ENCODER,), (Lda(), Knn(neighbours=3)), rounds=1))
    found = known()
    first, again = (made(both, found, work=Work(found.images, seed=5)) for _ in range(2))
    assert first.values.shape == (4, 48, 2)
    assert not first.in_sample
    np.testing.assert_array_equal(first.values, again.values)
    assert not np.array_equal(first.values[0], first.values[1]), "copies differ by their seeds"
    np.testing.assert_allclose(first.values.sum(2), 1, atol=1e-6)
    assert (first.values[2, :44].argmax(1) == np.arange(44) % 2).mean() > 0.9
    other = made(both, found, work=Work(found.images, seed=6))
    assert not np.array_equal(first.values, other.values)
    mean = made(replace(both, joined="mean"), found, work=Work(found.images, seed=5))
    np.testing.assert_allclose(mean.values, first.values.mean(0, keepdims=True), atol=1e-6)


def test_in_sample_is_marked_and_images_beyond_the_items_are_not_predicted() -> None:
    found = known()
    few = Known(found.images, found.masses[:20])
    told = made(recipe(Heads((ENCODER,), (Lda(),)), folds=0), few, work=Work(few.images))
    assert told.in_sample
    assert told.fold_of is None
    assert told.values.shape == (1, 20, 2)


def test_a_kept_training_is_not_trained_again_and_gives_the_same_bytes(tmp_path: Path) -> None:
    found, place = known(), Place(folder=tmp_path)
    first = made(recipe(NETWORK), found, work=Work(found.images, place=place))
    parts = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
    assert len(parts) == 2
    again = made(recipe(NETWORK), found, work=Work(found.images, place=place))
    np.testing.assert_array_equal(first.values, again.values)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")} == parts


def test_a_warm_start_changes_the_start_and_neither_the_targets_nor_the_folds(tmp_path: Path) -> None:
    found = known()
    begun = made(recipe(NETWORK), found, work=Work(found.images, shelf=Shelf(None, tmp_path / "a")))
    answered = found.masses.copy()
    answered[0] = [0, 1]
    answered[-1] = [1, 0]
    new = found._replace(masses=answered)
    still = replace(NETWORK, renewed=replace(PACE, epochs=1, rate=0.0))
    warm = made(recipe(still), new, work=Work(found.images, shelf=Shelf(tmp_path / "a", tmp_path / "b")))
    anew = made(recipe(still), new, work=Work(found.images))
    assert begun.fold_of is not None
    assert warm.fold_of is not None
    before = begun.fold_of >= 0
    np.testing.assert_array_equal(warm.fold_of[before], begun.fold_of[before])
    assert warm.fold_of[-1] >= 0, "an item that has a label now has a fold"
    # At a rate of 0 nothing is learnt: but for the norms, what was said before is said again.
    off = {
        name: np.abs(each.values - begun.values)[0, before].mean() for name, each in (("warm", warm), ("anew", anew))
    }
    assert off["warm"] < off["anew"] / 2
    assert (tmp_path / "b" / f"0-{FOLDS}").is_file()


def test_a_fold_that_moved_would_leak_what_the_network_before_has_seen(tmp_path: Path) -> None:
    found = known()
    shelf = Shelf(None, tmp_path / "a")
    begun = made(recipe(NETWORK), found, work=Work(found.images, seed=1, shelf=shelf))
    changed = found.masses.copy()
    changed[:10] = [0, 1]
    moved = found._replace(masses=changed)
    warm = made(recipe(NETWORK), moved, work=Work(found.images, seed=1, shelf=Shelf(tmp_path / "a", tmp_path / "b")))
    assert begun.fold_of is not None
    assert warm.fold_of is not None
    np.testing.assert_array_equal(warm.fold_of, begun.fold_of)
    # Negative control: cut anew, the folds of the changed labels are others.
    anew = made(recipe(NETWORK), moved, work=Work(found.images, seed=1))
    assert anew.fold_of is not None
    assert not np.array_equal(anew.fold_of, begun.fold_of)


@pytest.mark.parametrize("start", [ENCODER, None])
def test_the_noise_rate_of_co_teaching_is_estimated_from_labels_alone(start: Encoder | None) -> None:
    found = known()
    masses = found.masses.copy()
    masses[:12] = masses[:12, ::-1]
    two = CoTeaching(0.0, warmup=1, gradual=1, shape=SMALL, views=(PLAIN,))
    part = Network(two, PACE, start, noise="estimated", quick=replace(PACE, epochs=6))
    work = Work(found.images)
    ready = part._ready(work, masses, name="x")
    assert 0 < ready.method.noise <= 0.5
    assert part._ready(work, found.masses, name="x").method.noise <= ready.method.noise
    assert replace(part, noise="fixed")._ready(work, masses, name="x") is not ready


def test_images_may_be_looked_at_in_drawn_views_and_passes_with_dropout_stay_apart() -> None:
    found = known()
    looked = Network(replace(PLAINLY, dropout=0.5, passes=3), PACE, looks=Looks(drawn=2))
    told = made(recipe(looked, folds=0), found, work=Work(found.images))
    assert told.values.shape == (3, 48, 2)
    assert not np.array_equal(told.values[0], told.values[1])


def test_neighbours_vote_as_they_do_one_by_one() -> None:
    rng = np.random.default_rng(3)
    table, masses = rng.normal(size=(30, 5)), np.eye(3, dtype=np.float32)[rng.integers(3, size=30)]
    masses[20:] = 0
    asked = np.arange(18, 30)
    found = Knn(neighbours=4, temperature=0.2, smoothing=1.0).said(table, masses, asked=asked)
    directions = table / np.linalg.norm(table, axis=1, keepdims=True)
    for row, item in enumerate(asked):
        alike = directions[:20] @ directions[item]
        votes = masses[:20].mean(0).astype(np.float64)
        for near in np.argsort(-alike)[:4]:
            votes += np.exp((alike[near] - 1) / 0.2) * masses[near]
        np.testing.assert_allclose(found[row], votes / votes.sum(), atol=1e-5)


def test_what_does_not_fit_is_refused() -> None:
    found = known()
    with pytest.raises(BadInput, match="an image for each of 48 items was needed, but 9 came"):
        made(recipe(NETWORK), found._replace(images=found.images[:9]), work=Work(found.images[:9]))
    with pytest.raises(BadInput, match="a group for each of 48 items was needed, but 1 came"):
        made(recipe(NETWORK), found._replace(groups=["a"]), work=Work(found.images))
