"""What a trained network says of images: features, and probabilities, perhaps of many looks at each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from relook.train.augment import View, drawn, normalised
from relook.train.loop import chance_kept, sow
from relook.train.material import Trained

BATCH = 1024


@dataclass(frozen=True)
class Looks:
    """How an image is looked at: as it is and perhaps as its mirror image, or in so many drawn views (of a seed)."""

    mirror: bool = False
    drawn: int = 0
    view: View = field(default_factory=View)
    seed: int = 0


ONCE = Looks()
"""Each image as it is."""

MIRRORED = Looks(mirror=True)
"""Each image and its mirror image."""


def predicted(found: Trained, images: Tensor, *, looks: Looks = ONCE, batch: int = BATCH) -> Tensor:
    """Return class probabilities, M x N x C: of each network or pass, the mean over all looks at an image."""
    network: Any = found.network
    return torch.cat(list(_told(found, images, said=network.predict, looks=looks, batch=batch)), 1)


def embedded(found: Trained, images: Tensor, *, looks: Looks = MIRRORED, batch: int = BATCH) -> Tensor:
    """Return what the encoder makes of images, N x D: the mean over all looks at an image."""
    return torch.cat(list(_told(found, images, said=found.encoder, looks=looks, batch=batch)))


@torch.no_grad()
def _told(
    found: Trained, images: Tensor, *, said: Callable[[Tensor], Tensor], looks: Looks, batch: int
) -> Iterator[Tensor]:
    """Yield what is said of each batch, the mean over all looks."""
    device = next(found.network.parameters()).device
    with chance_kept(device.type), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        for start in range(0, len(images), batch):
            sow(looks.seed, "look", start)
            shown = _looked(images[start : start + batch].to(device), looks)
            normal = (normalised(each, found.seen).contiguous(memory_format=torch.channels_last) for each in shown)
            yield torch.stack([said(each).float() for each in normal]).mean(0).cpu()


def _looked(images: Tensor, looks: Looks) -> Iterator[Tensor]:
    """Yield the looks at a batch as shares of brightness."""
    for _ in range(looks.drawn):
        yield drawn(images, looks.view)
    if not looks.drawn:
        yield images.float() / 255
        if looks.mirror:
            yield images.flip(3).float() / 255
