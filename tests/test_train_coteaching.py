"""Co-teaching: what each network learns from, by sorting in numpy, and the share that is dropped, by hand."""

import numpy as np
import pytest
import torch

from relook.errors import BadInput
from relook.train.coteaching import CoTeaching, easy
from relook.train.learners import Facts
from relook.train.nets import ResNet
from tests.learning import FACTS, TINY, batch, images, slow_cross_entropies, soft, value


def chosen(losses: np.ndarray, dropped: float) -> list[int]:
    """The rows of smallest loss, sorted."""
    return sorted(np.argsort(losses, kind="stable")[: max(int((1 - dropped) * len(losses)), 1)].tolist())


class TestChoice:
    @pytest.mark.parametrize("dropped", [0.0, 0.05, 0.1, 0.3, 0.45, 0.7, 0.99])
    @pytest.mark.parametrize("count", [1, 2, 10, 64, 100])
    def test_the_smallest_losses_are_kept(self, dropped: float, count: int) -> None:
        losses = np.random.default_rng(count).random(count)
        found = easy(torch.from_numpy(losses), torch.tensor(dropped, dtype=torch.float64))
        assert found.nonzero()[:, 0].tolist() == chosen(losses, dropped)

    def test_equal_losses_are_as_many(self) -> None:
        assert easy(torch.ones(10), torch.tensor(0.3).double().round(decimals=6)).tolist() == [1.0] * 7 + [0.0] * 3

    @pytest.mark.parametrize("epoch", [0.0, 2.5, 40.0])
    def test_each_network_learns_what_the_other_finds_easy(self, epoch: float) -> None:
        torch.manual_seed(0)
        method = CoTeaching(0.4, warmup=2, gradual=2, shape=TINY)
        network = method.network(FACTS).eval()
        shown, target = images(), soft()
        losses = [slow_cross_entropies(each(shown), target) for each in (network.first, network.second)]
        dropped = {0.0: 0.0, 2.5: 0.2, 40.0: 0.4}[epoch]
        rows = [chosen(each, dropped) for each in losses]
        assert epoch == 0 or rows[0] != rows[1], "or who judges whom does not show"
        expected = losses[0][rows[1]].mean() + losses[1][rows[0]].mean()
        own = losses[0][rows[0]].mean() + losses[1][rows[1]].mean()
        found = value(network.loss((shown,), batch(target, epoch=epoch)))
        assert found == pytest.approx(expected, rel=1e-5)
        assert epoch == 0 or abs(found - own) > 1e-3, "a network that judges for itself is told apart"

    def test_what_is_dropped_teaches_nothing(self) -> None:
        torch.manual_seed(0)
        network = CoTeaching(0.5, warmup=0, gradual=1, shape=TINY).network(FACTS).eval()
        shown, target = images(), soft()
        with torch.no_grad():
            judged = slow_cross_entropies(network.second(shown), target)
        rows = chosen(judged, 0.5)
        torch.autograd.backward(network.loss((shown,), batch(target)))
        found = [each.grad.clone() for each in network.first.parameters() if each.grad is not None]
        network.zero_grad()
        alone = -(target[rows] * network.first(shown[rows]).log_softmax(1)).sum(1).mean()
        torch.autograd.backward(alone)
        for gradient, each in zip(found, network.first.parameters(), strict=True):
            assert each.grad is not None
            assert torch.allclose(gradient, each.grad, atol=1e-6)

    def test_weights_count_among_what_is_kept(self) -> None:
        torch.manual_seed(0)
        network = CoTeaching(0.5, warmup=0, gradual=1, shape=TINY).network(FACTS).eval()
        shown, target, weight = images(), soft(), torch.arange(1.0, 13.0)
        losses = [slow_cross_entropies(each(shown), target) for each in (network.first, network.second)]
        kept = [chosen(each, 0.5) for each in reversed(losses)]
        means = [np.average(each[rows], weights=weight[rows]) for each, rows in zip(losses, kept, strict=True)]
        assert value(network.loss((shown,), batch(target, weight=weight))) == pytest.approx(sum(means), rel=1e-5)


class TestDropped:
    def test_nothing_at_first_then_step_by_step(self) -> None:
        method = CoTeaching(0.3, warmup=3, gradual=5)
        found = [float(method.dropped(torch.tensor(epoch + 0.7))) for epoch in range(10)]
        assert found == pytest.approx([0, 0, 0, 0.06, 0.12, 0.18, 0.24, 0.3, 0.3, 0.3])

    def test_the_released_way_is_all_at_once(self) -> None:
        method = CoTeaching(0.28, warmup=25, gradual=1)
        assert [float(method.dropped(torch.tensor(float(epoch)))) for epoch in (0, 24, 25, 159)] == [0, 0, 0.28, 0.28]

    @pytest.mark.parametrize("wrong", [{"noise": 1.0}, {"noise": -0.1}, {"noise": 0.3, "gradual": 0}])
    def test_shares_that_are_none_are_refused(self, wrong: dict[str, float]) -> None:
        with pytest.raises(
            BadInput, match="co-teaching: a noise from 0 to below 1, a warmup from 0 and a gradual from 1"
        ):
            CoTeaching(**wrong)  # type: ignore[arg-type]


def test_two_networks_say_two_things_and_start_apart() -> None:
    torch.manual_seed(0)
    network = CoTeaching(0.3, shape=TINY).network(FACTS).eval()
    found = network.predict(images())
    assert found.shape == (2, 12, 3)
    assert torch.allclose(found[1], network.second(images()).softmax(1), atol=1e-6)
    assert (found[0] - found[1]).abs().max() > 1e-3


def test_both_begin_with_the_encoder_that_is_handed_in() -> None:
    encoder = ResNet(TINY)
    network = CoTeaching(0.3).network(Facts(12, 3, encoder=encoder))
    copies = [network.first.encoder, network.second.encoder]
    weights = encoder.state_dict()
    assert all(torch.equal(each.state_dict()[name], old) for each in copies for name, old in weights.items())
    assert copies[0] is not copies[1]
    assert copies[0] is not encoder
    assert not torch.equal(network.first.last.weight, network.second.last.weight)
