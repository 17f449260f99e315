"""Networks as they are: rows in order whatever the threads, mirror images averaged, and a key of all that matters."""

from functools import partial

import numpy as np
import pytest
import torch

from relook.train import frozen
from relook.train.frozen import Frozen, described, frozen_of
from tests.networks import Tiny

PLAIN = {"side": 8, "mean": (0.0, 0.0, 0.0), "deviation": (1.0, 1.0, 1.0)}


def tiny(**changed: object) -> Frozen:
    return frozen_of("tiny", Tiny(), **{**PLAIN, **changed})  # type: ignore[arg-type]


def part_of(found: np.ndarray, first: int) -> np.ndarray:
    return found[first : first + 2]


def images(count: int = 7) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, 8, 8, 3), dtype=np.uint8)


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_come_in_order_and_threads_are_as_before(threads: int) -> None:
    before, found = torch.get_num_threads(), images()
    torch.set_num_threads(threads)
    try:
        rows = np.concatenate(list(described(tiny(), [partial(part_of, found, first) for first in (0, 2, 4)])))
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    whole = np.concatenate(list(described(tiny(), [lambda: found[:6]])))
    assert np.allclose(rows, whole, atol=1e-3)


def test_the_mean_of_an_image_and_its_mirror_image() -> None:
    found = images(2)
    (rows,) = described(tiny(), [lambda: found])
    quarters = (found / 255).transpose(0, 3, 1, 2).reshape(2, 3, 2, 4, 2, 4).mean((3, 5))
    slow = (quarters + quarters[..., ::-1]) / 2
    assert np.abs(rows - slow.reshape(2, 12)).max() < 3e-3
    assert np.abs(rows - quarters.reshape(2, 12)).max() > 3e-3, "without the mirror image it is another row"


def test_pixels_are_taken_as_the_network_learnt_them() -> None:
    found = images(2)
    (plain,) = described(tiny(), [lambda: found])
    (moved,) = described(tiny(mean=(0.5, 0.5, 0.5), deviation=(0.25, 0.25, 0.25)), [lambda: found])
    assert np.abs((plain - 0.5) / 0.25 - moved).max() < 2e-2


def test_an_error_in_a_batch_is_told() -> None:
    def torn() -> np.ndarray:
        raise ValueError("torn")

    with pytest.raises(ValueError, match="torn"):
        list(described(tiny(), [torn, lambda: images(1)]))


def test_a_key_of_all_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {tiny().key, tiny(side=9).key, tiny(mean=(0.1, 0.0, 0.0)).key, tiny(deviation=(2.0, 1.0, 1.0)).key}
    keys.add(frozen_of("other", Tiny(), **PLAIN).key)  # type: ignore[arg-type]
    torch.manual_seed(0)
    keys |= {frozen_of("tiny", torch.nn.Conv2d(3, 2, 1), **PLAIN).key for _ in range(2)}  # type: ignore[arg-type]
    monkeypatch.setattr(frozen, "numbers", lambda: torch.float64)
    keys.add(tiny().key)
    assert len(keys) == 8
    monkeypatch.undo()
    assert tiny().key == tiny().key


def test_short_numbers_where_the_processor_has_steps_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True}, raising=False)
    assert frozen.numbers() == torch.bfloat16
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True}, raising=False)
    assert frozen.numbers() == torch.float32
