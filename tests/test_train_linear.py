"""The head on a frozen encoder: both ways to keep logits small, in closed form."""

import numpy as np
import pytest
import torch

from relook.errors import BadInput
from relook.train.linear import Head, Linear
from tests.learning import FACTS, TINY, batch, images, slow_cross_entropies, soft, value


def large(network: Head) -> torch.Tensor:
    """Make the logits of a head large, and return what it is shown."""
    with torch.no_grad():
        network.classifier.last.weight.mul_(40)
    return images()


def logits(network: Head, shown: torch.Tensor) -> torch.Tensor:
    found = network.encoder(shown)
    return found @ network.classifier.last.weight.T + network.classifier.last.bias


def test_the_released_penalty_in_closed_form() -> None:
    torch.manual_seed(0)
    network = Linear(dropout=0.0, smoothing=0.1, penalty=0.3, bound=10, shape=TINY).network(FACTS).eval()
    shown, target = large(network), soft()
    plain = logits(network, shown)
    z = plain.detach().numpy()
    assert np.abs(z).max() > 5, "large enough to be squashed"
    expected = slow_cross_entropies(plain, 0.9 * target + 0.1 / 3).mean() + 0.3 * np.mean((10 * np.tanh(z / 10)) ** 2)
    assert value(network.loss((shown,), batch(target))) == pytest.approx(expected, rel=1e-5)


def test_the_text_squashes_logits() -> None:
    torch.manual_seed(0)
    network = Linear(dropout=0.0, smoothing=0.0, penalty=0.0, squash=20.0, shape=TINY).network(FACTS).eval()
    shown, target = large(network), soft()
    squashed = 20 * torch.tanh(logits(network, shown) / 20)
    expected = slow_cross_entropies(squashed, target).mean()
    assert value(network.loss((shown,), batch(target))) == pytest.approx(expected, rel=1e-5)
    assert torch.allclose(network.predict(shown)[0], squashed.softmax(1), atol=1e-5), "and so do predictions"


def test_dropout_is_for_training_alone() -> None:
    torch.manual_seed(0)
    network = Linear(dropout=0.5, shape=TINY).network(FACTS)
    shown = images()
    network.eval()
    assert torch.equal(network.predict(shown), network.predict(shown))
    network.classifier.train()
    network.encoder.eval()
    assert not torch.equal(network.classifier(shown), network.classifier(shown))


def test_bounds_below_0_are_refused() -> None:
    with pytest.raises(BadInput, match="linear: a bound above 0, and squash and penalty from 0, were needed, but 0"):
        Linear(bound=0)
