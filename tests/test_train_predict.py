"""Predictions: of each network, over one look or many, and the same again."""

import numpy as np
import pytest
import torch

from relook.train.augment import View, normalised
from relook.train.coteaching import CoTeaching
from relook.train.loop import trained
from relook.train.material import Material, Trained
from relook.train.predict import MIRRORED, Looks, embedded, predicted
from relook.train.schedule import Schedule
from relook.train.vanilla import Vanilla
from tests.learning import PLAIN, TINY, hot, pictures

SHORT = Schedule(epochs=1, batch=16, warmup=0)
LABELS = hot(np.arange(60) % 3)


@pytest.fixture(scope="module")
def found() -> Trained:
    return trained(Material(pictures(), LABELS), CoTeaching(0.3, shape=TINY), schedule=SHORT)


def test_a_row_an_item_and_a_layer_a_network(found: Trained) -> None:
    said = predicted(found, pictures(), batch=25)
    assert said.shape == (2, 60, 3)
    assert torch.allclose(said.sum(2), torch.ones(2, 60), atol=1e-5)
    assert torch.allclose(said, predicted(found, pictures()), atol=1e-5), "however many at once"


def test_the_mirror_image_is_looked_at_too(found: Trained) -> None:
    plain, turned = predicted(found, pictures()), predicted(found, pictures().flip(3))
    assert torch.allclose(predicted(found, pictures(), looks=MIRRORED), (plain + turned) / 2, atol=1e-6)


def test_drawn_looks_are_averaged_and_the_same_again(found: Trained) -> None:
    looks = Looks(drawn=4, view=View(), seed=3)
    said = predicted(found, pictures(), looks=looks)
    assert torch.equal(said, predicted(found, pictures(), looks=looks))
    assert not torch.equal(said, predicted(found, pictures(), looks=Looks(drawn=4, view=View(), seed=4)))
    plain = Looks(drawn=3, view=PLAIN[0])
    assert torch.allclose(predicted(found, pictures(), looks=plain), predicted(found, pictures()), atol=1e-4)


def test_the_chance_of_others_is_left_alone(found: Trained) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    predicted(found, pictures(), looks=Looks(drawn=2))
    assert torch.equal(torch.get_rng_state(), before)


def test_embedded_is_the_mean_of_an_image_and_its_mirror_image(found: Trained) -> None:
    shares = pictures().float() / 255
    with torch.no_grad():
        slow = sum(found.encoder(normalised(each, found.seen)) for each in (shares, shares.flip(3))) / 2
    assert torch.allclose(embedded(found, pictures(), batch=7), slow, atol=1e-5)


def test_passes_differ_and_come_again() -> None:
    method = Vanilla(shape=TINY, dropout=0.5, passes=5)
    found = trained(Material(pictures(), LABELS), method, schedule=SHORT)
    said = predicted(found, pictures())
    assert said.shape == (5, 60, 3)
    assert torch.equal(said, predicted(found, pictures()))
    assert (said.std(0) > 1e-4).any()
