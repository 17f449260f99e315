"""Packages of weights as users have them, with numbers of chance: a published network without its download."""

import hashlib
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from relook.embedding import MODEL
from relook.train import efficientnet
from relook.train.efficientnet import STAGES, VARIANTS, Variant, rounded


def shaped(variant: Variant) -> dict[str, Tensor]:
    """Return the tensors of a published network by the publisher's names, with numbers of chance."""
    generator, found = torch.Generator().manual_seed(0), {}

    def layer(conv: str, norm: str, *, shape: tuple[int, int, int]) -> None:
        out, inputs, kernel = shape
        scale = (2 / (inputs * kernel * kernel)) ** 0.5
        found[f"{conv}.weight"] = torch.randn(out, inputs, kernel, kernel, generator=generator) * scale
        known = {"weight": (0.5, 1.5), "bias": (-0.5, 0.5), "running_mean": (-0.5, 0.5), "running_var": (0.5, 2.0)}
        for name, (low, high) in known.items():
            found[f"{norm}.{name}"] = torch.rand(out, generator=generator) * (high - low) + low
        found[f"{norm}.num_batches_tracked"] = torch.tensor(0)

    layer("_conv_stem", "_bn0", shape=(32, 3, 3))
    inputs, number = 32, 0
    for place, stage in enumerate(STAGES):
        channels = rounded(stage.channels * variant.width)
        deep = stage.blocks if place in (0, 6) else -int(-stage.blocks * variant.depth // 1)
        for _ in range(deep):
            inner, at = inputs * stage.widening, f"_blocks.{number}."
            if stage.widening > 1:
                layer(f"{at}_expand_conv", f"{at}_bn0", shape=(inner, inputs, 1))
            layer(f"{at}_depthwise_conv", f"{at}_bn1", shape=(inner, 1, stage.kernel))
            layer(f"{at}_project_conv", f"{at}_bn2", shape=(channels, inner, 1))
            inputs, number = channels, number + 1
    return found


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, *, name: str = MODEL) -> Path:
    """Put a package of weights of chance where Python finds it, and return its file; importing it fails."""
    variant = VARIANTS[name]
    package = folder / variant.package
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('nothing of it is to be run')\n")
    file = package / "models" / "weights.pth"
    torch.save(shaped(variant), file, _use_new_zipfile_serialization=False)
    known = hashlib.sha256(file.read_bytes()).hexdigest()
    changed = Variant(variant.width, variant.depth, variant.package, known)
    monkeypatch.setattr(efficientnet, "VARIANTS", {**VARIANTS, name: changed})
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, variant.package, raising=False)
    return file


class Tiny(nn.Module):
    """A network of one filter: the brightness of each quarter of an image, by colour."""

    def forward(self, x: Tensor) -> Tensor:
        """Return twelve numbers an image."""
        return nn.functional.adaptive_avg_pool2d(x.float(), 2).flatten(1)
