"""Residual networks: for small images (a 3 x 3 stem) and for those of 224 pixels (7 x 7 and pooling).

The paper's self-supervised network stands between the two: a 3 x 3 stem with pooling, called pooled here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from relook.errors import BadInput


@dataclass(frozen=True)
class Shape:
    """How a residual network is built: blocks a stage, their kind, the first stage's channels, and the stem."""

    blocks: tuple[int, ...] = (2, 2, 2, 2)
    kind: Literal["basic", "bottleneck"] = "basic"
    channels: int = 64
    stem: Literal["small", "pooled", "large"] = "small"
    inputs: int = 3

    @property
    def features(self) -> int:
        """Numbers that the network describes an image by."""
        return self.channels * 2 ** (len(self.blocks) - 1) * (4 if self.kind == "bottleneck" else 1)


RESNET18 = Shape()
RESNET50 = Shape(blocks=(3, 4, 6, 3), kind="bottleneck")


def released(depth: int = 110) -> Shape:
    """Return the family of the paper's released code: three stages of basic blocks from 16 channels.

    >>> released(110).blocks, released(110).features
    ((18, 18, 18), 64)
    """
    if depth < 8 or (depth - 2) % 6:
        raise BadInput(f"network: a depth of 6 n + 2 was needed, but {depth} came; the paper's code takes 110 and 50")
    return Shape(blocks=((depth - 2) // 6,) * 3, channels=16)


class Basic(nn.Module):
    """Two 3 x 3 convolutions beside the identity."""

    def __init__(self, inputs: int, channels: int, *, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            *_unit(inputs, channels, stride=stride), nn.ReLU(inplace=True), *_unit(channels, channels)
        )
        self.shortcut = _shortcut(inputs, channels, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        return torch.relu(self.path(x) + self.shortcut(x))


class Bottleneck(nn.Module):
    """A 3 x 3 convolution between two of 1 x 1, beside the identity; four times as many channels come out."""

    def __init__(self, inputs: int, channels: int, *, stride: int) -> None:
        super().__init__()
        out = 4 * channels
        self.path = nn.Sequential(
            *_unit(inputs, channels, size=1),
            nn.ReLU(inplace=True),
            *_unit(channels, channels, stride=stride),
            nn.ReLU(inplace=True),
            *_unit(channels, out, size=1),
        )
        self.shortcut = _shortcut(inputs, out, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        return torch.relu(self.path(x) + self.shortcut(x))


class ResNet(nn.Module):
    """A residual network up to its pooled features, N x D."""

    def __init__(self, shape: Shape = RESNET18) -> None:
        super().__init__()
        self.shape, self.features = shape, shape.features
        layers: list[nn.Module] = [*_stem(shape)]
        inputs = shape.channels
        for stage, count in enumerate(shape.blocks):
            channels = shape.channels * 2**stage
            for block in range(count):
                stride = 2 if stage and not block else 1
                layers.append((Basic if shape.kind == "basic" else Bottleneck)(inputs, channels, stride=stride))
                inputs = channels * (4 if shape.kind == "bottleneck" else 1)
        self.layers = nn.Sequential(*layers)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of a batch of images."""
        return self.layers(x).mean((2, 3))


def _stem(shape: Shape) -> list[nn.Module]:
    size, stride = (7, 2) if shape.stem == "large" else (3, 1)
    unit = [*_unit(shape.inputs, shape.channels, size=size, stride=stride), nn.ReLU(inplace=True)]
    return unit if shape.stem == "small" else [*unit, nn.MaxPool2d(3, 2, 1)]


def _unit(inputs: int, channels: int, *, size: int = 3, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(inputs, channels, size, stride, size // 2, bias=False), nn.BatchNorm2d(channels)]


def _shortcut(inputs: int, channels: int, *, stride: int) -> nn.Module:
    same = inputs == channels and stride == 1
    return nn.Identity() if same else nn.Sequential(*_unit(inputs, channels, size=1, stride=stride))


def head(inputs: int, hidden: int, *, out: int) -> nn.Sequential:
    """Return the two layers that self-supervised methods put on top of an encoder, and take away afterwards."""
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden), nn.ReLU(inplace=True), nn.Linear(hidden, out)
    )
