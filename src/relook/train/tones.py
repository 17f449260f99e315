"""What becomes of the pixels of a view: colours by one matrix an image, blur, and holes."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

GREY = (0.299, 0.587, 0.114)
_TO_CHROMA = (GREY, (0.596, -0.274, -0.322), (0.211, -0.523, 0.312))
_FROM_CHROMA = ((1.0, 0.9561707, 0.6214326), (1.0, -0.2726886, -0.6468132), (1.0, -1.1037441, 1.7006231))

QUARTERS = 1 / math.sqrt(2 * math.log(2))
"""The blur in which a neighbour counts half, so that three pixels weigh 1/4, 1/2 and 1/4."""

NONE = 0.01
"""A blur so small that nothing is blurred."""


class Colours(NamedTuple):
    """Factors, and the share of the colour circle by which hue turns, N x 1 x 1; None for images without colour."""

    brightness: Tensor
    contrast: Tensor
    saturation: Tensor | None = None
    turn: Tensor | None = None


def coloured(images: Tensor, colours: Colours) -> Tensor:
    """Change brightness, contrast, saturation and hue by one matrix an image."""
    brightness, contrast = colours.brightness, colours.contrast
    if colours.saturation is None or colours.turn is None:
        middle = images.mean((1, 2, 3)).view(-1, 1, 1)
        moved = images * (brightness * contrast).unsqueeze(-1)
    else:
        weights = constant(GREY, images.device)
        unit, saturation = torch.eye(3, device=images.device), colours.saturation
        matrix = _hue(colours.turn) @ (saturation * unit + (1 - saturation) * weights.expand(3, 3))
        middle = torch.einsum("c,nchw->n", weights, images).view(-1, 1, 1) / images[0, 0].numel()
        moved = torch.einsum("nij,njhw->nihw", matrix * (brightness * contrast), images)
    return (moved + ((1 - contrast) * brightness * middle).unsqueeze(-1)).clamp(0, 1)


def _hue(turn: Tensor) -> Tensor:
    """Return the matrix that turns the colour circle by a share of it, keeping brightness, N x 3 x 3."""
    to_chroma, back = (constant(rows, turn.device) for rows in (_TO_CHROMA, _FROM_CHROMA))
    cosine, sine = torch.cos(2 * math.pi * turn.view(-1)), torch.sin(2 * math.pi * turn.view(-1))
    turned = torch.zeros(len(turn), 3, 3, device=turn.device)
    turned[:, 0, 0] = 1
    turned[:, 1, 1] = turned[:, 2, 2] = cosine
    turned[:, 1, 2], turned[:, 2, 1] = -sine, sine
    return back @ turned @ to_chroma


def blurred(images: Tensor, sigma: Tensor) -> Tensor:
    """Return images under a Gaussian of their own deviation, N x 1 x 1 x 1, as wide as a tenth of the side."""
    shown = images
    for axis in (2, 3):
        radius = max(1, images.shape[axis] // 20)
        taps = torch.arange(-radius, radius + 1, device=images.device)
        weights = torch.exp(-0.5 * (taps / sigma) ** 2)
        weights = weights / weights.sum(3, keepdim=True)
        ends = (0, 0, radius, radius) if axis == 2 else (radius, radius, 0, 0)
        padded, length = functional.pad(shown, ends, "reflect"), images.shape[axis]
        shown = padded.narrow(axis, 0, length) * weights[..., :1]
        for tap in range(1, 2 * radius + 1):
            shown = shown + padded.narrow(axis, tap, length) * weights[..., tap : tap + 1]
    return shown


def erased(images: Tensor, hole: Tensor) -> Tensor:
    """Return images whose pixels are black where their middle lies in a hole, N x (left, top, right, bottom)."""
    left, top, right, bottom = (edge.view(-1, 1, 1, 1) for edge in hole.unbind(1))
    down, across = ((torch.arange(side, device=images.device) + 0.5) / side for side in images.shape[2:])
    down = down.view(-1, 1)
    inside = (across >= left) & (across < right) & (down >= top) & (down < bottom)
    return images.masked_fill(inside, 0.0)


@functools.cache
def _kept(values: tuple[object, ...], device: torch.device) -> Tensor:
    return torch.tensor(values, device=device)


def constant(values: tuple[object, ...], device: torch.device) -> Tensor:
    """Return numbers on a device; they go there once, since a step that is replayed as a graph cannot send any."""
    return torch.tensor(values, device=device) if torch.compiler.is_compiling() else _kept(values, device)
