"""What a training starts from, and a sentence for each thing that cannot be learnt from."""

import numpy as np
import pytest
import torch

from relook.errors import BadInput
from relook.train.augment import Statistics
from relook.train.loop import Place, trained
from relook.train.material import Material, Trained
from relook.train.schedule import Schedule
from relook.train.vanilla import Vanilla
from tests.learning import TINY, hot, pictures, soft

SHORT = Schedule(epochs=1, batch=16, warmup=0)
LABELS = hot(np.arange(60) % 3)


def attempt(found: Material, *, schedule: Schedule = SHORT, device: str = "cpu") -> None:
    trained(found, Vanilla(shape=TINY), schedule=schedule, place=Place(device=device))


class TestRefusals:
    @pytest.mark.parametrize("wrong", [torch.zeros(20, 3, 8, 8), torch.zeros(20, 8, 8, dtype=torch.uint8)])
    def test_images_that_are_no_bytes(self, wrong: torch.Tensor) -> None:
        with pytest.raises(BadInput, match=r"N x channels x H x W bytes were needed, but torch\.\w+ of shape"):
            attempt(Material(wrong, LABELS[:20]))

    def test_fewer_items_than_a_batch(self) -> None:
        with pytest.raises(BadInput, match="a batch of at most 60 images was needed, but 512 came; take a smaller"):
            attempt(Material(pictures(), LABELS), schedule=Schedule(batch=512))

    def test_fewer_labelled_items_than_a_batch(self) -> None:
        few = LABELS * (torch.arange(60) < 9)[:, None]
        with pytest.raises(BadInput, match="a batch of at most 9 images was needed, but 16 came"):
            attempt(Material(pictures(), few))

    def test_a_short_batch_may_be_all_there_is(self) -> None:
        attempt(Material(pictures(), LABELS), schedule=Schedule(epochs=1, batch=512, short="kept"))

    @pytest.mark.parametrize("targets", [LABELS.long(), LABELS[:, 0], LABELS[:50]])
    def test_targets_that_are_no_shares(self, targets: torch.Tensor) -> None:
        with pytest.raises(BadInput, match="60 rows of a share for each class were needed, but torch"):
            attempt(Material(pictures(), targets))

    @pytest.mark.parametrize("row", [[float("nan"), 0.5, 0.5], [0.5, 0.2, 0.2], [2.0, -1.0, 0.0], [1.0, 1.0, 1.0]])
    def test_rows_that_do_not_sum_to_1(self, row: list[float]) -> None:
        targets = LABELS.clone()
        targets[17] = torch.tensor(row)
        with pytest.raises(BadInput, match=r"shares that sum to 1 were needed, but row 17 holds \["):
            attempt(Material(pictures(), targets))

    def test_one_class_and_no_label(self) -> None:
        with pytest.raises(
            BadInput, match="labels of two classes were needed, but 1 came; there is nothing to tell apart"
        ):
            attempt(Material(pictures(), hot([1] * 60)))
        with pytest.raises(BadInput, match="labels of two classes were needed, but 0 came"):
            attempt(Material(pictures(), torch.zeros(60, 3)))

    def test_no_targets_for_a_method_that_needs_them(self) -> None:
        with pytest.raises(BadInput, match="training: Vanilla needs targets, but none came; hand in shares, N x C"):
            attempt(Material(pictures()))

    @pytest.mark.parametrize("weights", [torch.ones(59), -torch.ones(60), torch.full((60,), float("nan"))])
    def test_weights_that_are_none(self, weights: torch.Tensor) -> None:
        with pytest.raises(BadInput, match="weights: 60 numbers from 0 were needed, but other ones came"):
            attempt(Material(pictures(), LABELS, weights))

    @pytest.mark.skipif(torch.cuda.is_available(), reason="a graphics card is there")
    def test_a_graphics_card_that_is_not_there(self) -> None:
        with pytest.raises(BadInput, match="a graphics card was needed for cuda, but this machine has none; take"):
            attempt(Material(pictures(), LABELS), device="cuda")

    def test_a_network_of_another_shape_to_go_on_from(self) -> None:
        found = trained(Material(pictures(), hot(np.arange(60) % 4, 4)), Vanilla(shape=TINY), schedule=SHORT)
        with pytest.raises(BadInput, match="a network of the same shape, classes and items was needed to go on from"):
            attempt(Material(pictures(), LABELS, start=found))


class TestRows:
    def test_rows_without_a_label_or_a_weight_are_not_learnt_from(self) -> None:
        weights = torch.ones(60)
        weights[3] = 0
        found = Material(pictures(), LABELS * (torch.arange(60) % 2)[:, None], weights)
        assert found.learnt().tolist() == [row for row in range(60) if row % 2 and row != 3]
        assert Material(pictures()).learnt().tolist() == list(range(60))

    def test_rare_classes_are_drawn_as_often_as_common_ones(self) -> None:
        targets = hot([0] * 40 + [1] * 15 + [2] * 5)
        found = Material(pictures(), targets)
        assert found.chances(0) is None
        equal = found.chances(1.0)
        assert equal is not None
        assert torch.allclose(equal @ targets / equal.sum(), torch.full((3,), 1 / 3))
        half = found.chances(0.5)
        assert half is not None
        roots = np.sqrt([40, 15, 5])
        assert np.allclose((half @ targets / half.sum()).numpy(), roots / roots.sum())

    def test_soft_targets_are_drawn_by_their_shares(self) -> None:
        targets = soft(60)
        found = Material(pictures(), targets).chances(1.0)
        assert found is not None
        slow = [sum(row[each] / float(targets[:, each].sum()) for each in range(3)) for row in targets.tolist()]
        assert np.allclose(found.numpy(), slow, rtol=1e-5)

    def test_another_target_is_another_material(self) -> None:
        one, other = (Material(pictures(), targets).hashed() for targets in (LABELS, LABELS.roll(1, 0)))
        assert one != other
        assert one == Material(pictures(), LABELS.double()).hashed()
        start = Trained(torch.nn.Linear(2, 2), Statistics((0.0,), (1.0,)))
        assert Material(pictures(), LABELS, start=start).hashed() != one
