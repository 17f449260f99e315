"""Where each pixel of a view is looked up: a crop, an affine map and a bending of every image, as one grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Crop(NamedTuple):
    """The share of the sides that is seen, where in the room that is left (-1 to 1), and whether mirrored; N each."""

    width: Tensor
    height: Tensor
    across: Tensor
    down: Tensor
    mirrored: Tensor


class Affine(NamedTuple):
    """By which angle an image turns, by which share of its sides it moves, and by which angle it leans; N each."""

    angle: Tensor
    across: Tensor
    down: Tensor
    lean: Tensor


def drawn_shape(shape: Sequence[int], side: int | None) -> list[int]:
    """Return the shape of views of images of a shape, N x channels x H x W: as they are, or `side` by `side`.

    >>> drawn_shape((9, 3, 32, 32), 24)
    [9, 3, 24, 24]
    """
    return [*shape] if side is None else [*shape[:2], side, side]


def grid(
    crop: Crop, shape: Sequence[int], *, affine: Affine | None, bend: Tensor | None, side: int | None = None
) -> Tensor:
    """Return where in images of a shape each pixel of a view is looked up, N x H x W x 2, from -1 to 1.

    The image is bent, then mapped, then cut.
    """
    theta = _crop(crop)
    if affine is not None:
        theta = _after(_affine(affine, ratio=shape[3] / shape[2]), theta)
    found = functional.affine_grid(theta, drawn_shape(shape, side), align_corners=False)
    if bend is None:
        return found
    # What is seen at a place of the bent image lies `bend` pixels away; the crop sees the bent image.
    moved = functional.grid_sample(bend, found, mode="bilinear", padding_mode="border", align_corners=False)
    across, down = 2 * moved[:, 0] / shape[3], 2 * moved[:, 1] / shape[2]
    return found + torch.stack([across, down], -1)


def smoothed(noise: Tensor, sigma: float) -> Tensor:
    """Return noise, N x 2 x H x W, under a Gaussian of `sigma` pixels that ends at four of them; beyond lie zeros."""
    radius = int(4 * sigma + 0.5)
    taps = torch.arange(-radius, radius + 1, device=noise.device)
    kernel = torch.exp(-0.5 * (taps / sigma) ** 2)
    kernel = (kernel / kernel.sum()).view(1, 1, 1, -1)
    planes = functional.conv2d(noise.flatten(0, 1).unsqueeze(1), kernel, padding=(0, radius))
    return functional.conv2d(planes, kernel.transpose(2, 3), padding=(radius, 0)).view_as(noise)


def _crop(crop: Crop) -> Tensor:
    theta = torch.zeros(len(crop.width), 2, 3, device=crop.width.device)
    theta[:, 0, 0] = crop.width * torch.where(crop.mirrored, -1.0, 1.0)
    theta[:, 1, 1] = crop.height
    theta[:, 0, 2] = (1 - crop.width) * crop.across
    theta[:, 1, 2] = (1 - crop.height) * crop.down
    return theta


def _affine(affine: Affine, *, ratio: float) -> Tensor:
    """Return where a place of the mapped image comes from, N x 2 x 3; the sides' `ratio` keeps angles true."""
    cosine, sine, lean = torch.cos(affine.angle), torch.sin(affine.angle), torch.tan(affine.lean)
    # The inverse of "lean, turn, move" in pixels: move back, turn back, stand upright.
    back = torch.zeros(len(cosine), 2, 3, device=cosine.device)
    back[:, 0, 0] = cosine + lean * -sine
    back[:, 0, 1] = (sine + lean * cosine) / ratio
    back[:, 1, 0] = -sine * ratio
    back[:, 1, 1] = cosine
    moved = 2 * torch.stack([affine.across, affine.down], 1)
    back[:, :, 2] = -(back[:, :, :2] @ moved.unsqueeze(2)).squeeze(2)
    return back


def _after(outer: Tensor, inner: Tensor) -> Tensor:
    """Return the map that does `inner` first, N x 2 x 3."""
    linear = outer[:, :, :2]
    return torch.cat([linear @ inner[:, :, :2], linear @ inner[:, :, 2:] + outer[:, :, 2:]], 2)
