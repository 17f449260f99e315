"""The images of a batch on the device: all of them lie there where they fit, else they stream in a batch ahead."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from relook.train.steps import stream

SHARE = 0.5
"""So much of a graphics card's free memory may the images take; the rest is the training's."""


class Batches(Protocol):
    """Where the images of a batch come from; `home` is where rows must lie to ask for them."""

    home: torch.device

    def __call__(self, rows: Tensor, *, following: Tensor | None) -> Tensor:
        """Return the images of these rows on the device, and be ready for the rows that follow."""
        ...


def batches(images: Tensor, device: torch.device, *, most: int | None = None) -> Batches:
    """Return images on a device, or streamed there where they are more than `most` bytes.

    By itself, a graphics card takes as many as half of its free memory holds, and a processor all.
    """
    if _fits(images, device, most=most):
        return _Resident(images.to(device))
    return _Streamed(images) if device.type == "cpu" else _Ahead(images, device)


def near(images: Tensor, device: torch.device, *, most: int | None = None) -> Tensor:
    """Return images on the device where they fit, else where they are."""
    return images.to(device) if _fits(images, device, most=most) else images


def _fits(images: Tensor, device: torch.device, *, most: int | None) -> bool:
    if most is not None or device.type != "cuda":
        return most is None or images.nbytes <= most
    return images.device.type == "cuda" or images.nbytes <= SHARE * torch.cuda.mem_get_info(device)[0]


class _Resident:
    """All images lie on the device."""

    def __init__(self, images: Tensor) -> None:
        self.images, self.home = images, images.device

    def __call__(self, rows: Tensor, *, following: Tensor | None) -> Tensor:
        return self.images[rows]


class _Streamed:
    """Images are taken one batch at a time from where they are: in memory, or in a file that is mapped into it."""

    def __init__(self, images: Tensor) -> None:
        self.images, self.home = images, images.device

    def __call__(self, rows: Tensor, *, following: Tensor | None) -> Tensor:
        return self.images.index_select(0, rows)


class _Ahead:
    """Images travel to a graphics card on a stream of their own, while the batch before them is learnt from."""

    def __init__(self, images: Tensor, device: torch.device) -> None:
        self.images, self.device, self.home = images, device, images.device
        self.side = stream(device)
        self.places: list[tuple[Tensor, Any]] = []
        self.sent: tuple[Tensor, Tensor] | None = None

    def __call__(self, rows: Tensor, *, following: Tensor | None) -> Tensor:
        if self.sent is None or not torch.equal(self.sent[0], rows):
            self.sent = rows, self._sent(rows)
        found = self.sent[1]
        now = torch.cuda.current_stream(self.device)
        now.wait_stream(self.side)
        found.record_stream(now)
        self.sent = None if following is None else (following, self._sent(following))
        return found

    def _sent(self, rows: Tensor) -> Tensor:
        """Gather rows into pinned memory and start their way to the card; two such places take turns."""
        cuda: Any = torch.cuda
        place, arrived = self.places.pop(0) if len(self.places) > 1 else (torch.empty(0), cuda.Event())
        arrived.synchronize()
        if len(place) < len(rows):
            place = torch.empty(len(rows), *self.images.shape[1:], dtype=self.images.dtype, pin_memory=True)
        torch.index_select(self.images, 0, rows, out=place[: len(rows)])
        with torch.cuda.stream(self.side):
            found = place[: len(rows)].to(self.device, non_blocking=True)
            arrived.record()
        self.places.append((place, arrived))
        return found
