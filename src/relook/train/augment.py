"""Augmentations of a whole batch on its device: one resampling and one change of colours an image.

Images come as bytes, N x channels x H x W, and leave as floats with mean 0 and deviation 1 a channel, as far as
`Statistics` say so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

_GREY = (0.299, 0.587, 0.114)
_TO_CHROMA = (_GREY, (0.596, -0.274, -0.322), (0.211, -0.523, 0.312))
_FROM_CHROMA = ((1.0, 0.9561707, 0.6214326), (1.0, -0.2726886, -0.6468132), (1.0, -1.1037441, 1.7006231))


@dataclass(frozen=True)
class View:
    """How one view of an image is drawn.

    `crop` is the least and largest share of the area that is cut out, `ratio` how far its sides may differ. Brightness,
    contrast and saturation are multiplied by up to 1 +- their number, hue turns by up to its share of a circle.
    """

    crop: tuple[float, float] = (0.2, 1.0)
    ratio: float = 4 / 3
    flip: float = 0.5
    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.2
    hue: float = 0.1
    colour: float = 0.8
    grey: float = 0.2
    solarised: float = 0.0
    blurred: float = 0.0


@dataclass(frozen=True)
class Statistics:
    """Mean and deviation of each channel, as shares of full brightness."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]


def statistics(images: Tensor) -> Statistics:
    """Return the mean and deviation of each channel of a whole set."""
    channels = images.flatten(2).transpose(0, 1).flatten(1)
    parts = [(part.float() / 255) for part in channels]
    return Statistics(tuple(float(part.mean()) for part in parts), tuple(float(part.std()) for part in parts))


def normalised(images: Tensor, seen: Statistics) -> Tensor:
    """Return shares of brightness as numbers around 0."""
    mean, deviation = torch.tensor([seen.mean, seen.deviation], device=images.device).view(2, 1, -1, 1, 1)
    return (images - mean) / deviation


def drawn(images: Tensor, view: View) -> Tensor:
    """Return one random view of each image, as shares of brightness."""
    shares = images.float() / 255
    cut = functional.grid_sample(
        shares, _grid(shares, view), mode="bilinear", padding_mode="reflection", align_corners=False
    )
    if cut.shape[1] == 3:
        cut = _coloured(cut, view)
    if view.blurred:
        cut = torch.where(_chance(cut, view.blurred), _blurred(cut), cut)
    if view.solarised:
        cut = torch.where(_chance(cut, view.solarised) & (cut >= 0.5), 1 - cut, cut)
    return cut


def _grid(images: Tensor, view: View) -> Tensor:
    """Return where each pixel of a random crop, perhaps flipped, is looked up."""
    count, device = len(images), images.device
    area = torch.empty(count, device=device).uniform_(*view.crop)
    sides = torch.exp(torch.empty(count, device=device).uniform_(-math.log(view.ratio), math.log(view.ratio)) / 2)
    width, height = (area.sqrt() * sides).clamp(max=1), (area.sqrt() / sides).clamp(max=1)
    theta = torch.zeros(count, 2, 3, device=device)
    sign = torch.where(torch.rand(count, device=device) < view.flip, -1.0, 1.0)
    theta[:, 0, 0] = width * sign
    theta[:, 1, 1] = height
    theta[:, 0, 2] = (1 - width) * (2 * torch.rand(count, device=device) - 1)
    theta[:, 1, 2] = (1 - height) * (2 * torch.rand(count, device=device) - 1)
    return functional.affine_grid(theta, list(images.shape), align_corners=False)


def _coloured(images: Tensor, view: View) -> Tensor:
    """Change brightness, contrast, saturation and hue by one matrix an image, and make some images grey."""
    count, device = len(images), images.device

    def factor(spread: float) -> Tensor:
        return 1 + spread * (2 * torch.rand(count, 1, 1, device=device) - 1)

    on = (torch.rand(count, 1, 1, device=device) < view.colour).float()
    unit = torch.eye(3, device=device)
    weights = torch.tensor(_GREY, device=device)
    grey = weights.expand(3, 3)
    saturation = 1 + on * (factor(view.saturation) - 1)
    saturation = saturation * (torch.rand(count, 1, 1, device=device) >= view.grey)
    matrix = _hue(on * view.hue * (factor(1.0) - 1)) @ (saturation * unit + (1 - saturation) * grey)
    brightness, contrast = (1 + on * (factor(spread) - 1) for spread in (view.brightness, view.contrast))
    middle = torch.einsum("c,nchw->n", weights, images).view(-1, 1, 1) / images[0, 0].numel()
    moved = torch.einsum("nij,njhw->nihw", matrix * (brightness * contrast), images)
    return (moved + ((1 - contrast) * brightness * middle).unsqueeze(-1)).clamp(0, 1)


def _hue(turn: Tensor) -> Tensor:
    """Return the matrix that turns the colour circle by a share of it, keeping brightness, N x 3 x 3."""
    to_chroma, back = (torch.tensor(rows, device=turn.device) for rows in (_TO_CHROMA, _FROM_CHROMA))
    cosine, sine = torch.cos(2 * math.pi * turn.view(-1)), torch.sin(2 * math.pi * turn.view(-1))
    turned = torch.zeros(len(turn), 3, 3, device=turn.device)
    turned[:, 0, 0] = 1
    turned[:, 1, 1] = turned[:, 2, 2] = cosine
    turned[:, 1, 2], turned[:, 2, 1] = -sine, sine
    return back @ turned @ to_chroma


def _blurred(images: Tensor) -> Tensor:
    kernel = torch.tensor([0.25, 0.5, 0.25], device=images.device)
    square = (kernel[:, None] * kernel).expand(images.shape[1], 1, 3, 3)
    return functional.conv2d(functional.pad(images, (1, 1, 1, 1), "reflect"), square, groups=images.shape[1])


def _chance(images: Tensor, share: float) -> Tensor:
    return torch.rand(len(images), 1, 1, 1, device=images.device) < share
