"""Networks and views: shapes, and augmentations that do what they say and nothing else."""

import numpy as np
import pytest
import torch

from relook.errors import BadInput
from relook.train.augment import View, drawn, normalised, statistics
from relook.train.nets import RESNET18, RESNET50, ResNet, Shape, released

PLAIN = View(crop=(1, 1), ratio=1, flip=0, colour=0, grey=0)
"""A view that changes nothing."""


@pytest.fixture
def images() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (6, 3, 8, 8), dtype=np.uint8))


def view(images: torch.Tensor, **settings: object) -> torch.Tensor:
    torch.manual_seed(0)
    plain = {name: getattr(PLAIN, name) for name in PLAIN.__dataclass_fields__}
    return drawn(images, View(**(plain | settings)))


class TestNetworks:
    @pytest.mark.parametrize(
        ("shape", "features"),
        [(RESNET18, 512), (RESNET50, 2048), (released(20), 64), (Shape(blocks=(1, 1), channels=8, stem="large"), 16)],
    )
    def test_features_are_as_many_as_the_shape_says(self, shape: Shape, features: int) -> None:
        found = ResNet(shape)(torch.zeros(2, 3, 32, 32))
        assert (tuple(found.shape), shape.features) == ((2, features), features)

    def test_sizes_are_the_known_ones(self) -> None:
        def millions(shape: Shape) -> float:
            return round(sum(each.numel() for each in ResNet(shape).parameters()) / 1e6, 1)

        assert (millions(RESNET18), millions(RESNET50), millions(released(110))) == (11.2, 23.5, 1.7)

    def test_depths_that_the_family_lacks_are_refused(self) -> None:
        with pytest.raises(BadInput, match="a depth of 6 n \\+ 2 was needed, but 18 came; the paper's code takes"):
            released(18)


class TestViews:
    def test_a_plain_view_changes_nothing(self, images: torch.Tensor) -> None:
        assert torch.allclose(view(images), images / 255, atol=1e-6)

    def test_a_smaller_view_is_the_same_picture_with_fewer_pixels(self, images: torch.Tensor) -> None:
        small = torch.nn.functional.interpolate(images / 255, size=6, mode="bilinear", align_corners=False)
        assert torch.allclose(view(images, side=6), small, atol=1e-5)

    def test_noise_is_drawn_for_the_pixels_of_the_view(self, images: torch.Tensor) -> None:
        found = view(images, side=6, noise=0.1, rotation=10.0, elastic=1.0, erased=1.0)
        assert (found.shape, float(found.min()) >= 0) == ((6, 3, 6, 6), True)

    def test_a_flip_is_a_mirror_image(self, images: torch.Tensor) -> None:
        assert torch.allclose(view(images, flip=1), images.flip(3) / 255, atol=1e-6)

    def test_grey_has_no_colour_and_keeps_brightness(self, images: torch.Tensor) -> None:
        found = view(images, grey=1)
        assert torch.allclose(found[:, 0], found[:, 1], atol=1e-5)
        weights = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
        assert torch.allclose(found[:, 0], (images / 255 * weights).sum(1), atol=1e-5)

    def test_solarised_turns_the_bright_round(self, images: torch.Tensor) -> None:
        shares = images / 255
        assert torch.allclose(view(images, solarised=1), torch.where(shares >= 0.5, 1 - shares, shares), atol=1e-6)

    def test_blurred_is_the_mean_of_neighbours(self, images: torch.Tensor) -> None:
        shares = (images / 255).numpy()
        kernel = np.outer([0.25, 0.5, 0.25], [0.25, 0.5, 0.25])
        slow = sum(kernel[a, b] * shares[2, 1, 2 + a : 3 + a, 3 + b : 4 + b] for a in range(3) for b in range(3))
        assert np.allclose(view(images, blurred=1)[2, 1, 3, 4], slow, atol=1e-6)

    def test_hue_turns_colours_and_keeps_brightness(self, images: torch.Tensor) -> None:
        middle = (images // 4 + 96).to(torch.uint8)
        found = view(middle, colour=1, hue=0.5, brightness=0, contrast=0, saturation=0)
        weights = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
        assert torch.allclose((found * weights).sum(1), (middle / 255 * weights).sum(1), atol=0.01)
        assert (found - middle / 255).abs().max() > 0.05

    @pytest.mark.parametrize("part", ["brightness", "contrast", "saturation"])
    def test_each_part_of_the_colours_moves_them(self, images: torch.Tensor, part: str) -> None:
        none = {"brightness": 0.0, "contrast": 0.0, "saturation": 0.0, "hue": 0.0}
        assert torch.allclose(view(images, colour=1, **none), images / 255, atol=1e-5)
        assert (view(images, colour=1, **(none | {part: 0.4})) - images / 255).abs().max() > 0.02

    def test_contrast_keeps_the_mean_grey(self, images: torch.Tensor) -> None:
        middle = (images // 4 + 96).to(torch.uint8)
        found = view(middle, colour=1, brightness=0, contrast=0.4, saturation=0, hue=0)
        weights = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
        assert torch.allclose(
            (found * weights).sum(1).mean((1, 2)), (middle / 255 * weights).sum(1).mean((1, 2)), atol=1e-4
        )

    def test_crops_have_the_area_that_was_asked_for(self) -> None:
        ramp = torch.arange(64, dtype=torch.uint8).repeat(64, 1).expand(500, 3, 64, 64)
        found = view(ramp, crop=(0.25, 0.25))
        seen = (found[:, 0].amax((1, 2)) - found[:, 0].amin((1, 2))) * 255
        assert 30 < float(seen.mean()) < 33
        assert float(found[:, 0].amin((1, 2)).std()) * 255 > 5

    def test_images_of_one_channel_keep_it(self, images: torch.Tensor) -> None:
        assert drawn(images[:, :1], View()).shape == (6, 1, 8, 8)

    def test_statistics_are_those_of_the_set(self, images: torch.Tensor) -> None:
        seen = statistics(images)
        found = normalised(images / 255, seen)
        assert torch.allclose(found.mean((0, 2, 3)), torch.zeros(3), atol=1e-5)
        assert torch.allclose(found.transpose(0, 1).flatten(1).std(1), torch.ones(3), atol=1e-5)
