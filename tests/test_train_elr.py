"""Early-learning regularisation: what is remembered and the gradient, against the formula."""

import numpy as np
import pytest
import torch

from relook.errors import BadInput
from relook.train.elr import Elr
from tests.learning import FACTS, TINY, batch, images, slow_cross_entropies, soft


def test_what_was_said_is_remembered_as_a_moving_mean() -> None:
    torch.manual_seed(0)
    network = Elr(memory=0.7, shape=TINY).network(FACTS).eval()
    rows, slow = torch.tensor([7, 2, 5]), np.zeros((12, 3))
    for turn in range(3):
        shown = images() + turn
        network.loss((shown[:3],), batch(soft(3), rows=rows))
        said = network.classifier(shown[:3]).detach().softmax(1).numpy()
        for place, row in enumerate(rows.tolist()):
            slow[row] = 0.7 * slow[row] + 0.3 * said[place] / said[place].sum()
        assert np.allclose(network.said.numpy(), slow, atol=1e-6)
    assert not network.said[[0, 1, 3, 4, 6, 8, 9, 10, 11]].any()


def test_the_loss_and_its_gradient_are_those_of_the_formula() -> None:
    torch.manual_seed(0)
    network = Elr(memory=0.9, strength=3.0, shape=TINY).network(FACTS).eval()
    network.said.copy_(soft(seed=5))
    held = network.said.clone()
    shown, target, weight = images(), soft(), torch.arange(1.0, 13.0)
    loss = network.loss((shown,), batch(target, weight=weight))
    torch.autograd.backward(loss)
    found = [each.grad.clone() for each in network.parameters() if each.grad is not None]
    logits = network.classifier(shown)
    slow = slow_cross_entropies(logits, target)
    said = logits.detach().double().softmax(1)
    remembered = 0.9 * held.double() + 0.1 * said
    terms = slow + 3.0 * np.log(1 - (said * remembered).sum(1).numpy())
    assert float(loss.detach()) == pytest.approx(np.average(terms, weights=weight), rel=1e-5)
    network.zero_grad()
    # d/dz of the cross-entropy is p - y, of log(1 - <p, t>) it is -p (t - <p, t>) / (1 - <p, t>): Liu et al., lemma 2.
    inner = (said * remembered).sum(1, keepdim=True)
    slope = (said - target) - 3.0 * said * (remembered - inner) / (1 - inner)
    logits.backward((slope * weight[:, None] / weight.sum()).float())
    for gradient, each in zip(found, network.parameters(), strict=True):
        assert each.grad is not None
        assert torch.allclose(gradient, each.grad, atol=1e-5)


def test_what_is_remembered_is_part_of_what_is_kept() -> None:
    assert "said" in Elr(shape=TINY).network(FACTS).state_dict()


def test_a_network_that_is_sure_stays_finite() -> None:
    network = Elr(memory=0.0, shape=TINY).network(FACTS).eval()
    with torch.no_grad():
        network.classifier.last.bias.copy_(torch.tensor([1000.0, 0.0, 0.0]))
    assert network.loss((images(),), batch(torch.eye(3)[torch.zeros(12, dtype=torch.long)])).isfinite()


def test_numbers_that_are_no_shares_are_refused() -> None:
    with pytest.raises(BadInput, match=r"elr: a memory from 0 to below 1 and a strength from 0 were needed, but 1\.0"):
        Elr(memory=1.0)
