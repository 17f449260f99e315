"""Networks of torchvision and timm: found where the user has them, with weights at hand, and never downloaded.

The packages here are small stand-ins with the functions that are called of them; each network is what torch can hold.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from relook.errors import BadInput, MissingExtra
from relook.train import foreign
from relook.train.foreign import network

NETWORK = """
from torch import nn

def small():
    return nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10))
"""

TORCHVISION = """
from types import SimpleNamespace
from small import small

def list_models(module):
    return ["small"]

def get_model_weights(name):
    preset = SimpleNamespace(crop_size=[24], mean=[0.5, 0.4, 0.3], std=[0.2, 0.2, 0.1])
    known = SimpleNamespace(url="https://nobody.invalid/small-1.pth", transforms=lambda: preset)
    return SimpleNamespace(DEFAULT=known)

def get_model(name, weights):
    assert weights is None, "it would be downloaded"
    return small()
"""

TIMM = """
from types import SimpleNamespace
from torch import nn
from small import small

def is_model(name):
    return name == "small"

def create_model(name, pretrained):
    assert not pretrained, "it would be downloaded"
    built = small()
    grey = {"mean": (0.5,) * 3, "std": (0.2,) * 3}
    built.pretrained_cfg = {"hf_hub_id": "nobody/small", "input_size": (3, 32, 32), **grey}
    built.reset_classifier = lambda classes: built.__setitem__(3, nn.Identity())
    return built
"""

HUB = """
from pathlib import Path

def try_to_load_from_cache(repo, name):
    file = Path(__file__).with_name("model.safetensors")
    return str(file) if file.exists() else None
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "torchvision").mkdir()
    files = {"small.py": NETWORK, "torchvision/__init__.py": "", "torchvision/models.py": TORCHVISION, "timm.py": TIMM}
    for name, text in {**files, "huggingface_hub.py": HUB}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    names = ("small", "torchvision", "torchvision.models", "timm", "huggingface_hub")
    kept = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    yield tmp_path
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(kept)


def state() -> dict[str, torch.Tensor]:
    torch.manual_seed(3)
    return {"0.weight": torch.randn(4, 3, 3, 3), "0.bias": torch.randn(4)} | {
        "3.weight": torch.randn(10, 4),
        "3.bias": torch.randn(10),
    }


def slowly(found: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.conv2d(x, found["0.weight"], found["0.bias"], stride=2).mean((2, 3))


def test_torchvision_from_its_own_folder(packages: Path) -> None:
    (packages / "hub" / "checkpoints").mkdir(parents=True)
    torch.save(state(), packages / "hub" / "checkpoints" / "small-1.pth")
    found = network("torchvision", "small")
    assert (found.name, found.side, found.mean, found.deviation) == (
        "torchvision:small",
        24,
        (0.5, 0.4, 0.3),
        (0.2, 0.2, 0.1),
    )
    x = torch.rand(2, 3, 24, 24)
    dtype = next(found.network.parameters()).dtype  # type: ignore[attr-defined]
    with torch.inference_mode():
        assert torch.allclose(found.network(x.to(dtype)).float(), slowly(state(), x), atol=0.05)


@pytest.mark.parametrize("kind", ["named", "got before"])
def test_timm(packages: Path, kind: str) -> None:
    file = packages / ("mine.safetensors" if kind == "named" else "model.safetensors")
    save_file(state(), file)
    found = network("timm", "small", weights=file if kind == "named" else None)
    assert (found.side, found.mean) == (32, (0.5, 0.5, 0.5))
    x = torch.rand(2, 3, 32, 32)
    dtype = next(found.network.parameters()).dtype  # type: ignore[attr-defined]
    with torch.inference_mode():
        assert torch.allclose(found.network(x.to(dtype)).float(), slowly(state(), x), atol=0.05)


@pytest.mark.parametrize("package", ["torchvision", "timm"])
def test_weights_that_are_not_at_hand(packages: Path, package: str) -> None:
    with pytest.raises(
        BadInput, match=r"weights of small were needed, but there is no .+; get them once, or name their"
    ):
        network(package, "small")


def test_weights_of_another_network(packages: Path) -> None:
    save_file({"0.weight": torch.zeros(1)}, packages / "mine.safetensors")
    with pytest.raises(BadInput, match=r"weights that fit small were needed, but these do not .+; name others"):
        network("timm", "small", weights=packages / "mine.safetensors")


def test_names_that_nobody_knows(packages: Path) -> None:
    with pytest.raises(BadInput, match=r"torchvision has no network 'large'; see torchvision\.models"):
        network("torchvision", "large")
    with pytest.raises(BadInput, match=r"timm has no network 'large'; see timm\.list_models"):
        network("timm", "large")


def test_packages_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "find_spec", {}.get)
    with pytest.raises(MissingExtra, match="timm was needed for small, but it is not installed; pip install timm"):
        network("timm", "small")
