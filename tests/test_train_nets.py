"""Residual networks: sizes, strides and beginnings as the papers have them."""

import pytest
import torch
from torch import nn

from relook.train.classifier import Classifier
from relook.train.learners import Facts
from relook.train.nets import RESNET18, RESNET50, ResNet, Shape, released


def sides(shape: Shape, side: int) -> list[int]:
    """The side of what comes out of each block, without those that repeat."""
    network, found = ResNet(shape).eval(), []
    shown = torch.zeros(1, 3, side, side)
    with torch.no_grad():
        for layer in network.layers:
            shown = layer(shown)
            found.append(shown.shape[-1])
    return sorted(set(found), reverse=True)


def test_small_images_keep_their_side_in_the_first_stage() -> None:
    assert sides(RESNET18, 32) == [32, 16, 8, 4]
    assert sides(released(20), 32) == [32, 16, 8]


def test_images_of_224_pixels_are_brought_to_7() -> None:
    assert sides(Shape(blocks=(1, 1, 1, 1), channels=4, kind="bottleneck", stem="large"), 224) == [112, 56, 28, 14, 7]


def test_the_papers_self_supervised_stem_pools_small_images() -> None:
    assert sides(Shape(blocks=(1, 1, 1, 1), channels=4, stem="pooled"), 32) == [32, 16, 8, 4, 2]


def test_parameters_are_as_many_as_in_the_published_networks() -> None:
    def count(shape: Shape) -> int:
        return sum(each.numel() for each in ResNet(shape).parameters())

    # Those of torchvision without the last layer, 1,000 x features + 1,000.
    assert count(Shape(stem="large")) == 11_689_512 - 513_000
    assert count(Shape(RESNET50.blocks, RESNET50.kind, stem="large")) == 25_557_032 - 2_049_000


@pytest.mark.parametrize("shape", [RESNET18, Shape(RESNET50.blocks, RESNET50.kind)])
def test_convolutions_begin_by_what_goes_out(shape: Shape) -> None:
    torch.manual_seed(0)
    for module in ResNet(shape).modules():
        if isinstance(module, nn.Conv2d) and module.weight.numel() > 10_000:
            out = module.out_channels * module.kernel_size[0] * module.kernel_size[1]
            assert float(module.weight.detach().std()) == pytest.approx((2 / out) ** 0.5, rel=0.05)


def test_images_of_one_channel_have_a_network() -> None:
    encoder = Facts(items=4, classes=2, channels=1).begun(Shape(blocks=(1,), channels=4))
    assert encoder(torch.zeros(4, 1, 8, 8)).shape == (4, 4)
    assert encoder.features == 4


def test_features_of_unit_length_bound_the_logits() -> None:
    torch.manual_seed(0)
    network = Classifier(Facts(4, 2), Shape(blocks=(1,), channels=4), features="unit").eval()
    described = network.described(torch.rand(4, 3, 8, 8) * 100)
    assert torch.allclose(described.norm(dim=1), torch.ones(4), atol=1e-5)
