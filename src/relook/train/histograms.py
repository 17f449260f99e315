"""Histogram normalisation of radiographs, image by image before training: a stretch between two shares, or equalised.

Exposures differ from one radiograph to the next, and what a network is to learn from does not.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_BLOCK = 2**24
"""Pixels that are counted at once: eight bytes each."""


def stretched(images: Tensor, *, low: float = 0.01, high: float = 0.99) -> Tensor:
    """Return images whose brightness runs from 0 to 255 between two shares of their pixels, N x channels x H x W bytes.

    >>> stretched(torch.tensor([[[[10, 20, 30]]]], dtype=torch.uint8), low=0.0, high=1.0).flatten().tolist()
    [0, 128, 255]
    """

    def table(counts: Tensor) -> Tensor:
        below = counts.cumsum(1)
        total = below[:, -1:]
        dark, light = ((below > share * (total - 1)).int().argmax(1, keepdim=True) for share in (low, high))
        levels = torch.arange(256, device=counts.device)
        return ((levels - dark) * 255.0 / (light - dark).clamp(min=1)).round().clamp(0, 255)

    return _mapped(images, table)


def equalised(images: Tensor) -> Tensor:
    """Return images in which every brightness is about as frequent, channel by channel, N x channels x H x W bytes."""

    def table(counts: Tensor) -> Tensor:
        seen = counts > 0
        brightest = 255 - seen.flip(1).int().argmax(1, keepdim=True)
        step = (counts.sum(1, keepdim=True) - counts.gather(1, brightest)) // 255
        before = counts.cumsum(1) - counts
        levels = torch.arange(256, device=counts.device)
        spread = (step // 2 + before) // step.clamp(min=1)
        return torch.where(step > 0, spread, levels).clamp(0, 255)

    return _mapped(images, table)


def _mapped(images: Tensor, table: Callable[[Tensor], Tensor]) -> Tensor:
    """Return what a table, made from the counts of the 256 levels of each channel, makes of each pixel."""
    planes = images.flatten(0, 1).flatten(1)
    out = torch.empty_like(planes)
    rows = max(1, _BLOCK // max(1, planes.shape[1]))
    for start in range(0, len(planes), rows):
        pixels = planes[start : start + rows].long()
        counts = torch.zeros(len(pixels), 256, dtype=torch.long, device=images.device)
        counts.scatter_add_(1, pixels, torch.ones((), dtype=torch.long, device=images.device).expand_as(pixels))
        out[start : start + rows] = table(counts).to(torch.uint8).gather(1, pixels)
    return out.view_as(images)
