"""The images of a batch on the device: all of them lie there where they fit, else they stream in a batch ahead."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

SHARE = 0.5
"""So much of a graphics card's free memory may the images take; the rest is the training's."""


class Batches(Protocol):
    """Where the images of a batch come from."""

    def __call__(self, rows: Tensor, *, following: Tensor | None) -> Tensor:
        """Return the images of these rows on the device, and be ready for the rows that follow."""
        ...


def batches(images: Tensor, device: torch.device, *, most: int | None = None) -> Batches:
    """Return images on a device, or streamed there where they are more than `most` bytes.

    By itself, a graphics card takes as many as half of its free memory holds, and a processor all.
    """
    if most is None and device.type == "cuda":
        most = int(SHARE * torch.cuda.mem_get_info(device)[0])
    if most is None or images.nbytes <= most:
        return _Resident(images.to(device))
    return _Streamed(images) if device.type == "cpu" else _Ahead(images, device)


class _Resident:
    """All images lie on the device."""

    def __init__(self, images: Tensor) -> None:
        self.images = images

    def __call__(self, rows: Tensor, *, following: Tensor | None) -> Tensor:
        return self.images[rows]


class _Streamed:
    """Images are taken one batch at a time from where they are: in memory, or in a file that is mapped into it."""

    def __init__(self, images: Tensor) -> None:
        self.images = images

    def __call__(self, rows: Tensor, *, following: Tensor | None) -> Tensor:
        return self.images.index_select(0, rows)


class _Ahead:
    """Images travel to a graphics card on a stream of their own, while the batch before them is learnt from."""

    def __init__(self, images: Tensor, device: torch.device) -> None:
        self.images, self.device = images, device
        self.side = torch.cuda.Stream(device)
        self.pinned: list[tuple[Tensor, torch.cuda.Event]] = []
        self.sent: tuple[Tensor, Tensor] | None = None
        self.turn = 0

    def __call__(self, rows: Tensor, *, following: Tensor | None) -> Tensor:
        if self.sent is None or self.sent[0] is not rows:
            self.sent = rows, self._sent(rows)
        found = self.sent[1]
        now = torch.cuda.current_stream(self.device)
        now.wait_stream(self.side)
        found.record_stream(now)
        self.sent = None if following is None else (following, self._sent(following))
        return found

    def _sent(self, rows: Tensor) -> Tensor:
        """Gather rows into pinned memory and start their way to the card; two such places take turns."""
        if len(self.pinned) < 2:
            place = torch.empty(len(rows), *self.images.shape[1:], dtype=self.images.dtype, pin_memory=True)
            self.pinned.append((place, torch.cuda.Event()))
            self.turn = len(self.pinned) - 1
        else:
            self.turn = 1 - self.turn
        place, arrived = self.pinned[self.turn]
        arrived.synchronize()
        torch.index_select(self.images, 0, rows.cpu(), out=place[: len(rows)])
        with torch.cuda.stream(self.side):
            found = place[: len(rows)].to(self.device, non_blocking=True)
            arrived.record()
        return found
