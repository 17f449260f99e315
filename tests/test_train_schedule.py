"""Rates, optimisers and what they leave alone, each against its formula."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from relook.errors import BadInput
from relook.train.schedule import Schedule, optimizer, stepped
from relook.train.vanilla import Vanilla
from tests.learning import FACTS, TINY, batch, images, soft


def rates(schedule: Schedule, *, steps: int, an_epoch: int) -> list[float]:
    return [schedule.rate_at(step, steps=steps, an_epoch=an_epoch) for step in range(steps)]


class TestRate:
    def test_it_rises_and_falls_along_a_cosine(self) -> None:
        found = rates(Schedule(rate=2.0, warmup=1), steps=100, an_epoch=10)
        assert found[0] == 0
        assert found[10] == pytest.approx(2 * 0.5 * (1 + np.cos(np.pi * 0.1)))
        assert max(found) == found[10]
        assert found[-1] < 0.001

    def test_it_never_falls_below_the_least(self) -> None:
        found = rates(Schedule(rate=2.0, warmup=0, least=0.1), steps=100, an_epoch=10)
        assert found[50] == pytest.approx(0.1 + 1.9 / 2)
        assert 0.1 < found[-1] < 0.101
        steps = rates(Schedule(rate=2.0, warmup=0, shape="steps", drops=(1, 2), least=0.1), steps=100, an_epoch=10)
        assert steps[0] == 2
        assert steps[15] == pytest.approx(0.2)
        assert steps[25] == 0.1

    def test_the_paper_divides_by_ten_at_80_and_120_epochs(self) -> None:
        plan = Schedule(epochs=160, batch=256, rate=0.1, warmup=0, shape="steps", drops=(80, 120), short="kept")
        an_epoch = plan.steps_an_epoch(5000)
        assert an_epoch == 20
        found = rates(plan, steps=160 * an_epoch, an_epoch=an_epoch)
        assert found == pytest.approx([0.1] * 1600 + [0.01] * 800 + [0.001] * 800)


class TestRefusals:
    @pytest.mark.parametrize(
        "wrong", [{"epochs": 0}, {"batch": 1}, {"rate": -1.0}, {"encoder": -0.1}, {"rate": np.nan}]
    )
    def test_numbers_below_the_least(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(
            BadInput, match=rf"schedule: {next(iter(wrong))} from \d was needed, but .* came; make it larger"
        ):
            Schedule(**wrong)

    @pytest.mark.parametrize("name", ["optimizer", "decayed", "shape", "short"])
    def test_words_that_nobody_knows(self, name: str) -> None:
        wrong: dict[str, Any] = {name: "lamb"}
        with pytest.raises(
            BadInput, match=rf"schedule: for {name} one of .* was needed, but 'lamb' came; name one of them"
        ):
            Schedule(**wrong)


class TestSteps:
    def test_a_last_batch_of_one_is_left_out(self) -> None:
        kept, dropped = Schedule(batch=8, short="kept"), Schedule(batch=8)
        assert [kept.steps_an_epoch(items) for items in (7, 8, 9, 10, 16)] == [1, 1, 1, 2, 2]
        assert [dropped.steps_an_epoch(items) for items in (7, 8, 9, 10, 16)] == [0, 1, 1, 1, 2]


def small() -> nn.Module:
    torch.manual_seed(0)
    return Vanilla(shape=TINY).network(FACTS)


def gradients(network: nn.Module) -> dict[str, torch.Tensor]:
    torch.autograd.backward(network.loss((images(),), batch(soft())))  # type: ignore[operator]
    return {name: each.grad.clone() for name, each in network.named_parameters() if each.grad is not None}


def walked(schedule: Schedule, *, rate: float, steps: int = 1) -> tuple[dict, dict, dict]:  # type: ignore[type-arg]
    """What a network was, its last gradients, and what it is after some steps."""
    network = small()
    found = optimizer(network, schedule)
    for _ in range(steps):
        before = {name: each.detach().clone() for name, each in network.named_parameters()}
        slopes = gradients(network)
        stepped(found, schedule, rate=rate)
    return before, slopes, dict(network.named_parameters())


class TestOptimizer:
    def test_sgd_with_decay_is_its_formula(self) -> None:
        before, slopes, after = walked(Schedule(decay=0.1, momentum=0.9), rate=0.5)
        for name, old in before.items():
            assert torch.allclose(after[name], old - 0.5 * (slopes[name] + 0.1 * old), atol=1e-6), name

    def test_nesterov_looks_ahead(self) -> None:
        network, schedule = small(), Schedule(decay=0.0, momentum=0.9, nesterov=True)
        found, speed = optimizer(network, schedule), torch.zeros(3, 4)
        slow = network.classifier.last.weight.detach().clone()  # type: ignore[union-attr, operator]
        for _ in range(3):
            slope = gradients(network)["classifier.last.weight"]
            stepped(found, schedule, rate=0.5)
            speed = 0.9 * speed + slope
            slow = slow - 0.5 * (slope + 0.9 * speed)
        assert torch.allclose(network.classifier.last.weight, slow, atol=1e-6)  # type: ignore[union-attr, arg-type]

    def test_adam_moves_by_the_rate_at_first(self) -> None:
        before, slopes, after = walked(Schedule(optimizer="adam", decay=0.0), rate=0.01)
        moved = (after["classifier.last.weight"] - before["classifier.last.weight"]).detach()
        assert torch.allclose(moved, -0.01 * slopes["classifier.last.weight"].sign(), atol=1e-4)

    def test_norms_and_biases_may_be_spared_decay(self) -> None:
        before, slopes, after = walked(Schedule(decay=0.1, decayed="weights"), rate=0.5)
        for name, old in before.items():
            decay = 0.1 if old.ndim > 1 else 0.0
            assert torch.allclose(after[name], old - 0.5 * (slopes[name] + decay * old), atol=1e-6), name

    @pytest.mark.parametrize("trust", [0.001, 0.02])
    def test_lars_bounds_each_layer_by_its_weights(self, trust: float) -> None:
        before, slopes, after = walked(Schedule(decay=0.1, momentum=0.0, lars=trust), rate=0.5)
        scales = set()
        for name, old in before.items():
            size, slope = float(old.norm()), float(slopes[name].norm())
            scale = min(trust * size / (slope + 0.1 * size + 1e-8) / 0.5, 1) if size and slope else 1.0
            scales.add(scale)
            assert torch.allclose(after[name], old - 0.5 * scale * (slopes[name] + 0.1 * old), atol=1e-6), name
        assert len(scales) > 3

    def test_lars_with_a_rate_of_zero_moves_nothing(self) -> None:
        before, _, after = walked(Schedule(lars=0.02), rate=0.0)
        assert all(torch.equal(before[name], after[name]) for name in before)

    def test_the_encoder_learns_slowly(self) -> None:
        before, slopes, after = walked(Schedule(decay=0.0, encoder=0.1), rate=0.5)
        for name, old in before.items():
            rate = 0.05 if "encoder" in name else 0.5
            assert torch.allclose(after[name], old - rate * slopes[name], atol=1e-6), name

    def test_a_frozen_encoder_stays_as_it_is_with_its_norms(self) -> None:
        network = small().train()
        found, schedule = optimizer(network, plan := Schedule(encoder=0.0)), plan
        before = {name: each.clone() for name, each in network.state_dict().items()}
        gradients(network)
        stepped(found, schedule, rate=0.5)
        changed = {name for name, each in network.state_dict().items() if not torch.equal(each, before[name])}
        assert changed == {"classifier.last.weight", "classifier.last.bias"}
