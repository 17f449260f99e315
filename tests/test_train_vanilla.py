"""The plain method: its loss as written down slowly, and passes with dropout."""

import numpy as np
import pytest
import torch

from relook.train.vanilla import Vanilla
from tests.learning import FACTS, TINY, batch, images, slow_cross_entropies, soft, value


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("features", ["plain", "unit"])
def test_the_loss_is_the_weighted_mean_of_cross_entropies(smoothing: float, features: str) -> None:
    torch.manual_seed(0)
    network = Vanilla(shape=TINY, smoothing=smoothing, features=features).network(FACTS).eval()  # type: ignore[arg-type]
    shown, target, weight = images(), soft(), torch.arange(1.0, 13.0)
    found = network.encoder(shown).detach()
    if features == "unit":
        found = found / found.square().sum(1, keepdim=True).sqrt()
    logits = found @ network.classifier.last.weight.T + network.classifier.last.bias
    losses = slow_cross_entropies(logits, (1 - smoothing) * target + smoothing / 3)
    expected = float((losses * np.arange(1, 13)).sum() / np.arange(1, 13).sum())
    assert value(network.loss((shown,), batch(target, weight=weight))) == pytest.approx(expected, rel=1e-5)


def test_an_item_that_weighs_twice_counts_like_two() -> None:
    torch.manual_seed(0)
    network = Vanilla(shape=TINY).network(FACTS).eval()
    shown, target = images(3), soft(3)
    twice = network.loss((shown,), batch(target, weight=torch.tensor([1.0, 2.0, 1.0])))
    rows = [0, 1, 1, 2]
    assert value(network.loss((shown[rows],), batch(target[rows]))) == pytest.approx(value(twice), rel=1e-5)


def test_one_prediction_without_dropout_and_many_with() -> None:
    torch.manual_seed(0)
    plain = Vanilla(shape=TINY, dropout=0.5).network(FACTS).eval()
    shown = images()
    once = plain.predict(shown)
    assert once.shape == (1, 12, 3)
    assert torch.equal(once, plain.predict(shown)), "without passes nothing is dropped"
    assert torch.allclose(once[0], plain.classifier(shown).softmax(1), atol=1e-6)
    drawn = Vanilla(shape=TINY, dropout=0.5, passes=7).network(FACTS).eval().predict(shown)
    assert drawn.shape == (7, 12, 3)
    assert torch.allclose(drawn.sum(2), torch.ones(7, 12), atol=1e-5)
    assert (drawn.std(0) > 1e-4).any(), "passes differ"


def test_passes_drop_half_of_the_features_and_double_the_others() -> None:
    torch.manual_seed(0)
    network = Vanilla(shape=TINY, dropout=0.5, passes=4000).network(FACTS).eval()
    features = network.encoder(images(1)).detach()
    # Four features: all sixteen ways to drop them are as likely, and each gives a known prediction.
    ways = [
        network.classifier.last(features * 2 * torch.tensor([(way >> bit) & 1 for bit in range(4)])).softmax(1)
        for way in range(16)
    ]
    expected = torch.cat(ways).mean(0)
    assert torch.allclose(network.predict(images(1)).mean((0, 1)), expected, atol=0.02)
