"""Norms in one pass: they are what torch makes of the same layers, and leave a network as it was.

Triton comes with torch for graphics cards. Where it is there without one, its own interpreter runs the kernels.
"""

import importlib.util
import os
import subprocess
import sys

import pytest
import torch

from relook.train import norms
from relook.train.nets import ResNet, Shape

SHAPES = (Shape(blocks=(1, 1), channels=8), Shape(blocks=(2, 1), channels=8, kind="bottleneck"))

SAME = """
import copy
import torch
from relook.train import norms
from relook.train.nets import ResNet
from tests.test_train_norms import SHAPES
torch.manual_seed(0)
for shape in SHAPES:
    one = ResNet(shape).to(memory_format=torch.channels_last)
    for norm in one.modules():
        if isinstance(norm, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
            torch.nn.init.uniform_(norm.bias, -0.5, 0.5)
    other = copy.deepcopy(one)
    images = torch.randn(5, 3, 8, 8) * 2 + 3
    found = one(images)
    slope = torch.randn_like(found)
    found.backward(slope)
    with norms.fast(other):
        quick = other(images)
        quick.backward(slope)
    assert torch.allclose(found, quick, atol=1e-5)
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.allclose(a.grad, b.grad, rtol=1e-3, atol=1e-4 * float(a.grad.abs().max()))
    for a, b in zip(one.buffers(), other.buffers(), strict=True):
        assert torch.allclose(a.double(), b.double(), atol=1e-5)
print("the same")
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton, which torch for cards brings")
def test_they_are_what_torch_makes() -> None:
    env = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(["", *sys.path])}
    ran = subprocess.run([sys.executable, "-c", SAME], capture_output=True, text=True, check=False, env=env)
    assert ran.stdout == "the same\n", ran.stderr


@pytest.mark.parametrize("shape", SHAPES)
def test_a_network_that_does_not_learn_is_walked_through_as_it_is(
    shape: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", str)
    torch.manual_seed(0)
    network, images = ResNet(shape).eval(), torch.randn(3, 3, 8, 8)
    plain, names = network(images), list(network.state_dict())
    with norms.fast(network):
        assert "forward" in vars(network.layers)
        assert torch.allclose(network(images), plain, atol=1e-6)
        assert list(network.state_dict()) == names
    assert not any("forward" in vars(each) for each in network.modules())


def test_without_triton_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", {}.get)
    network = ResNet(SHAPES[0])
    with norms.fast(network):
        assert not any("forward" in vars(each) for each in network.modules())


@pytest.mark.parametrize("rows", [1, 2, 100, 4096, 16384, 262144])
@pytest.mark.parametrize("channels", [3, 64, 256, 2048])
def test_runs_cover_all_rows_once(rows: int, channels: int) -> None:
    found = norms._sizes(rows, channels)
    assert found["run"] % found["lines"] == 0
    assert (found["runs"] - 1) * found["run"] < rows <= found["runs"] * found["run"]
    assert found["runs"] <= found["power"] <= 512
    assert (found["blocks"] - 1) * found["columns"] < channels <= found["blocks"] * found["columns"]
