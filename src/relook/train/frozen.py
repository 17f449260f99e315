"""Networks as they are: images in, a row of numbers each out, on as many threads as torch would use for one of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

BATCH = 16
"""Images that go through at once: what they become on the way stays in the processor's cache."""

VERSION = 1
"""Raised whenever the same network would describe the same image by other numbers."""

Colours = tuple[float, float, float]


@dataclass(frozen=True)
class Frozen:
    """A network that describes images, and how it wants them.

    `side` is in pixels; `mean` is taken from each colour, of 0 to 1, which `deviation` then divides. `weights` is a
    hash of the network's numbers.
    """

    name: str
    network: Callable[[Tensor], Tensor]
    weights: str
    side: int = 224
    mean: Colours = (0.485, 0.456, 0.406)
    deviation: Colours = (0.229, 0.224, 0.225)

    @property
    def key(self) -> str:
        """What the numbers for an image depend on, as a hash."""
        parts = [VERSION, self.name, self.weights, self.side, self.mean, self.deviation, str(numbers())]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def frozen_of(name: str, network: nn.Module, *, side: int, mean: Colours, deviation: Colours) -> Frozen:
    """Return a network to be used as it is, laid out and with numbers as the processor likes them."""
    digest = hashlib.sha256()
    for key, tensor in sorted(network.state_dict().items()):
        digest.update(key.encode() + tensor.contiguous().numpy().tobytes())
    laid = network.eval().to(numbers()).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return Frozen(name, laid, digest.hexdigest(), side, mean, deviation)


def numbers() -> torch.dtype:
    """Return the numbers to compute with: those of 16 bits where the processor has steps for them, else 32."""
    able: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return torch.bfloat16 if able.get("avx512_bf16") or able.get("amx_bf16") else torch.float32


def described(frozen: Frozen, batches: Iterable[Callable[[], NDArray[np.uint8]]]) -> Iterator[NDArray[np.float32]]:
    """Yield what describes each batch of images, in their order: the mean over each image and its mirror image.

    A batch is made, N x side x side x 3, where it is described: every thread reads, scales and describes its own, so
    that none waits for another.
    """
    threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from pool.map(lambda make: _described(frozen, make()), batches)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


@torch.inference_mode()
def _described(frozen: Frozen, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    mean, deviation = (torch.tensor(colours).view(1, 3, 1, 1) for colours in (frozen.mean, frozen.deviation))
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255
    x = ((images - mean) / deviation).to(numbers())
    rows: Any = (frozen.network(x).float() + frozen.network(x.flip(3)).float()) / 2
    return rows.numpy()
