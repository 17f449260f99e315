"""Where a training runs, what it leaves there, and what is said where the place cannot take it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from relook.errors import BadInput
from relook.train.journal import Moment
from relook.train.steps import Mode


@dataclass(frozen=True)
class Place:
    """Where a training runs and what it leaves: the device, a folder of checkpoints, and how many steps between.

    `mode` is how a step runs on a graphics card (by itself as a graph), `most` how many bytes of images may lie on the
    device (by itself half of its free memory; larger sets stream in), and `watch` is told how far the training is,
    twice a second at most.
    """

    device: str = "cpu"
    folder: Path | None = None
    every: int = 500
    mode: Mode | None = None
    most: int | None = None
    watch: Callable[[Moment], None] | None = None


HERE = Place()
"""On the processor, and nothing is kept."""


def device_named(name: str) -> torch.device:
    """Return a device, if it is there; under torchrun each process has a graphics card of its own.

    >>> device_named("cpu")
    device(type='cpu')
    """
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise BadInput(
            f"training: the name of a device was needed, but {name} came; take cpu, cuda or cuda:1"
        ) from error
    if device.type != "cuda":
        return device
    if not torch.cuda.is_available():
        raise BadInput(
            f"training: a graphics card was needed for {name}, but this machine has none; take the device cpu"
        )
    _, _, index = name.partition(":")
    number = int(index or os.environ.get("LOCAL_RANK", "0"))
    if number >= torch.cuda.device_count():
        raise BadInput(
            f"training: graphics card {number} was needed, but {torch.cuda.device_count()} are there, counted "
            "from 0; take a lower number"
        )
    return torch.device("cuda", number)


@contextmanager
def room(batch: int, device: torch.device) -> Iterator[None]:
    """Say which batch to try where the memory does not hold this one."""
    before = _taken(device)
    try:
        yield
    except (torch.OutOfMemoryError, RuntimeError) as error:
        if not _is_memory(error):
            raise
        need = max(_peak(device) - before + _asked(str(error)), 1) / batch
        less = fitting(batch, need=need, free=_free(device, before))
        if not less:
            raise BadInput(
                f"training: memory for one image was needed, but {device} does not hold it beside the network; take a "
                "smaller network or smaller images"
            ) from error
        raise BadInput(
            f"training: memory for {batch:,} images at once was needed, but {device} has less; try a batch of {less:,}"
        ) from error


def fitting(batch: int, *, need: float, free: float) -> int:
    """Return the batch halved until it fits by what an image needs, at least once.

    >>> fitting(512, need=10.0, free=1500.0), fitting(512, need=1.0, free=1e9)
    (128, 256)
    """
    batch //= 2
    while batch and batch * need > free:
        batch //= 2
    return batch


def _is_memory(error: RuntimeError) -> bool:
    text = str(error)
    return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator" in text or "not enough memory" in text


def _asked(text: str) -> int:
    """Return the bytes that could not be had, as far as the message says how many."""
    found = re.search(r"allocate ([\d.]+) ?(bytes|KiB|MiB|GiB)?", text)
    if found is None:
        return 0
    return int(float(found[1].rstrip(".")) * 1024 ** ("bytes", "KiB", "MiB", "GiB").index(found[2] or "bytes"))


def _taken(device: torch.device) -> int:
    if device.type != "cuda":
        return 0
    torch.cuda.reset_peak_memory_stats(device)
    return torch.cuda.memory_allocated(device)


def _peak(device: torch.device) -> int:
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0


def _free(device: torch.device, before: int) -> float:
    """Return the bytes that a batch may take."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory - before
    names: Any = getattr(os, "sysconf_names", {})
    return (
        float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        if "SC_AVPHYS_PAGES" in names
        else float("inf")
    )
