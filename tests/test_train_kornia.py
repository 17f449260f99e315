"""Augmentations against kornia, numpy and pillow: the same numbers make the same images."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from kornia import color, enhance, filters
from kornia.geometry import transform
from PIL import Image, ImageOps
from scipy import ndimage

from relook.train import tones, warps
from relook.train.augment import PLAIN, Chosen, View, applied, chosen, drawn, taken
from relook.train.histograms import equalised, stretched

COUNT, HEIGHT, WIDTH = 7, 24, 30
WHOLE = warps.Crop(
    torch.ones(COUNT), torch.ones(COUNT), torch.zeros(COUNT), torch.zeros(COUNT), torch.zeros(COUNT, dtype=torch.bool)
)


@pytest.fixture
def images() -> torch.Tensor:
    rough = np.random.default_rng(0).random((COUNT, 3, HEIGHT, WIDTH))
    smooth = ndimage.gaussian_filter(rough, (0, 0, 2, 2))
    return torch.from_numpy((255 * (smooth - smooth.min()) / np.ptp(smooth)).astype(np.uint8))


def between(least: float, most: float, *shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(5)) * (most - least) + least


def centred(linear: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
    """A map of the image about its middle, as kornia takes it: pixel numbers to pixel numbers, N x 2 x 3."""
    middle = torch.tensor([(WIDTH - 1) / 2, (HEIGHT - 1) / 2])
    return torch.cat([linear, (middle + moved - linear @ middle).unsqueeze(2)], 2)


def warped(images: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    return transform.warp_affine(images / 255, matrix, (HEIGHT, WIDTH), padding_mode="zeros", align_corners=True)


class TestPlaces:
    def crop(self) -> tuple[warps.Crop, torch.Tensor]:
        """A crop, and the map of its pixels onto the view."""
        width, height, across = between(0.4, 0.9, COUNT), between(0.5, 0.8, COUNT), between(-1, 1, COUNT)
        mirrored = torch.arange(COUNT) % 2 == 1
        linear = torch.diag_embed(torch.stack([torch.where(mirrored, -1, 1) / width, 1 / height], 1))
        off = torch.stack([(1 - width) * across * WIDTH / 2, -(1 - height) * across * HEIGHT / 2], 1)
        return warps.Crop(width, height, across, -across, mirrored), centred(
            linear, -(linear @ off.unsqueeze(2)).squeeze(2)
        )

    def affine(self) -> tuple[warps.Affine, torch.Tensor]:
        angle, shift, lean = between(-0.5, 0.5, COUNT), between(-0.1, 0.1, COUNT), between(-0.2, 0.2, COUNT)
        matrix = transform.get_affine_matrix2d(
            torch.stack([shift * WIDTH, -shift * HEIGHT], 1),
            torch.tensor([[(WIDTH - 1) / 2, (HEIGHT - 1) / 2]]).expand(COUNT, 2),
            torch.ones(COUNT, 2),
            torch.rad2deg(angle),
            lean,
            torch.zeros(COUNT),
        )
        return warps.Affine(angle, shift, -shift, lean), matrix

    def test_crops_and_flips(self, images: torch.Tensor) -> None:
        crop, matrix = self.crop()
        found = applied(images, Chosen(crop), beyond="zeros")
        assert torch.allclose(found, warped(images, matrix), atol=2e-4)

    def test_turned_moved_and_leaning(self, images: torch.Tensor) -> None:
        affine, matrix = self.affine()
        found = applied(images, Chosen(WHOLE, affine=affine), beyond="zeros")
        assert torch.allclose(found, warped(images, matrix[:, :2]), atol=2e-4)
        assert (found - images / 255).abs().mean() > 0.05

    def test_both_are_one_resampling_of_their_product(self, images: torch.Tensor) -> None:
        (crop, cut), (affine, moved) = self.crop(), self.affine()
        last = torch.tensor([[[0.0, 0.0, 1.0]]]).expand(COUNT, 1, 3)
        product = torch.cat([cut, last], 1) @ torch.cat([moved[:, :2], last], 1)
        found = applied(images, Chosen(crop, affine=affine), beyond="zeros")
        assert torch.allclose(found, warped(images, product[:, :2]), atol=2e-4)

    def test_bent_as_scipy_bends(self, images: torch.Tensor) -> None:
        noise = between(-1, 1, COUNT, 2, HEIGHT, WIDTH)
        moves = 20 * np.stack(
            [[ndimage.gaussian_filter(plane.numpy(), 3.0, mode="constant") for plane in pair] for pair in noise]
        )
        bend = warps.smoothed(noise, 3.0) * 20
        assert np.allclose(bend, moves, atol=1e-5)
        found = applied(images, Chosen(WHOLE, bend=bend), beyond="border").numpy()
        assert np.abs(moves).max() > 1
        down, across = np.mgrid[:HEIGHT, :WIDTH]
        for item in range(COUNT):
            places = [down + moves[item, 1], across + moves[item, 0]]
            slow = ndimage.map_coordinates(images[item, 1].numpy() / 255, places, order=1, mode="nearest")
            assert np.allclose(found[item, 1], slow, atol=1e-4)


class TestColours:
    def colours(self, **factors: torch.Tensor) -> Chosen:
        one = torch.ones(COUNT, 1, 1)
        none = {"brightness": one, "contrast": one, "saturation": one, "turn": 0 * one}
        return Chosen(WHOLE, colours=tones.Colours(**(none | factors)))

    def test_brightness(self, images: torch.Tensor) -> None:
        factor = between(0.5, 1.5, COUNT)
        found = applied(images, self.colours(brightness=factor.view(-1, 1, 1)))
        slow = enhance.adjust_brightness_accumulative(images / 255, factor)
        assert torch.allclose(found, slow, atol=1e-5)

    def test_contrast(self, images: torch.Tensor) -> None:
        factor = between(0.5, 1.5, COUNT)
        found = applied(images, self.colours(contrast=factor.view(-1, 1, 1)))
        slow = enhance.adjust_contrast_with_mean_subtraction(images / 255, factor)
        assert torch.allclose(found, slow, atol=1e-3)

    def test_brightness_and_contrast_of_images_without_colour(self, images: torch.Tensor) -> None:
        bright, contrast = between(0.5, 1.5, COUNT), between(0.4, 1.4, COUNT)
        numbers = Chosen(WHOLE, colours=tones.Colours(bright.view(-1, 1, 1), contrast.view(-1, 1, 1)))
        grey = images[:, :1]
        darker = grey / 255 * bright.view(-1, 1, 1, 1)
        slow = enhance.adjust_contrast_with_mean_subtraction(darker, contrast)
        assert torch.allclose(applied(grey, numbers), slow, atol=1e-5)

    def test_saturation_and_grey(self, images: torch.Tensor) -> None:
        factor = between(0.0, 1.5, COUNT)
        factor[0] = 0
        found = applied(images, self.colours(saturation=factor.view(-1, 1, 1)))
        slow = enhance.adjust_saturation_with_gray_subtraction(images / 255, factor)
        assert torch.allclose(found, slow, atol=1e-3)
        assert torch.allclose(found[0], color.rgb_to_grayscale(images[:1] / 255).expand(1, 3, -1, -1)[0], atol=1e-3)

    def test_hue_turns_in_the_plane_of_colours(self, images: torch.Tensor) -> None:
        middle = (images // 3 + 85).to(torch.uint8)
        turn = between(-0.4, 0.4, COUNT)
        found = applied(middle, self.colours(turn=turn.view(-1, 1, 1)))
        light, blue, red = torch.split(color.rgb_to_yuv(middle / 255), 1, 1)
        cosine, sine = (part(2 * math.pi * turn).view(-1, 1, 1, 1) for part in (torch.cos, torch.sin))
        slow = color.yuv_to_rgb(torch.cat([light, cosine * blue + sine * red, cosine * red - sine * blue], 1))
        assert torch.allclose(found, slow.clamp(0, 1), atol=0.01)
        assert (found - middle / 255).abs().max() > 0.1

    def test_gamma(self, images: torch.Tensor) -> None:
        gamma = between(0.5, 1.5, COUNT)
        found = applied(images, Chosen(WHOLE, gamma=gamma.view(-1, 1, 1, 1)))
        assert torch.allclose(found, enhance.adjust_gamma(images / 255, gamma), atol=1e-4)

    def test_solarised(self, images: torch.Tensor) -> None:
        found = applied(images, Chosen(WHOLE, solarised=torch.ones(COUNT, 1, 1, 1) > 0))
        assert torch.allclose(found, enhance.solarize(images / 255, 0.5), atol=1e-5)

    @pytest.mark.parametrize("side", [24, 60])
    def test_blurred_by_each_image_s_own_deviation(self, images: torch.Tensor, side: int) -> None:
        large = functional_resized(images, side)
        sigma = between(0.3, 2.0, COUNT)
        found = tones.blurred(large, sigma.view(-1, 1, 1, 1))
        taps = 2 * max(1, side // 20) + 1
        slow = filters.gaussian_blur2d(large, (taps, taps), sigma.view(-1, 1).expand(-1, 2))
        assert torch.allclose(found, slow, atol=1e-5)

    def test_erased_are_the_pixels_of_the_hole(self, images: torch.Tensor) -> None:
        hole = torch.tensor([[0.2, 0.25, 0.6, 0.75]]).repeat(COUNT, 1)
        found = applied(images, Chosen(WHOLE, hole=hole))
        slow = images / 255
        slow[:, :, 6:18, 6:18] = 0
        assert torch.allclose(found, slow, atol=1e-6)


def functional_resized(images: torch.Tensor, side: int) -> torch.Tensor:
    return torch.nn.functional.interpolate(images / 255, (side, side), mode="bilinear")


RADIOGRAPH = View(
    crop=(0.8, 1.0), rotation=30, shear=15, elastic=0.5, brightness=0.2, contrast=0.2, colour=1.0, grey=0, noise=0.05,
    gamma=(0.5, 1.5), blurred=0.5, sigma=(0.1, 2.0), erased=0.5,
)  # fmt: skip


class TestDrawn:
    @pytest.mark.parametrize("channels", [1, 3])
    def test_every_part_at_once(self, images: torch.Tensor, channels: int) -> None:
        torch.manual_seed(0)
        found = drawn(images[:, :channels], RADIOGRAPH)
        assert found.shape == (COUNT, channels, HEIGHT, WIDTH)
        assert float(found.min()) >= 0
        assert float(found.max()) <= 1

    def test_numbers_keep_to_their_ranges(self) -> None:
        torch.manual_seed(0)
        many = torch.zeros(4000, 1, 10, 20, dtype=torch.uint8)
        view = View(rotation=30, shift=0.1, shear=15, gamma=(0.5, 1.5), noise=0.05, erased=0.5, hole=(0.1, 0.2))
        found = chosen(many.shape, view, device=many.device)
        assert found.affine is not None
        for values, most in zip(found.affine, (math.pi / 6, 0.1, 0.1, math.pi / 12), strict=True):
            assert 0.98 * most < float(values.abs().max()) <= most
            assert abs(float(values.mean())) < 0.05 * most
        assert found.gamma is not None
        assert found.noise is not None
        assert (float(found.gamma.min()), float(found.gamma.max())) == pytest.approx((0.5, 1.5), abs=0.01)
        assert float(found.noise.std()) == pytest.approx(0.05, rel=0.01)
        assert found.hole is not None
        left, top, right, bottom = found.hole.unbind(1)
        area = (right - left) * (bottom - top)
        assert float((area > 0).float().mean()) == pytest.approx(0.5, abs=0.03)
        assert float(area[area > 0].min()) >= 0.1
        assert float(area.max()) <= 0.2 + 1e-6
        assert float(torch.stack([left, top]).min()) >= 0
        assert float(torch.stack([right, bottom]).max()) <= 1 + 1e-6

    def test_a_share_is_bent(self) -> None:
        torch.manual_seed(0)
        found = chosen((400, 1, 8, 8), View(elastic=0.3), device=torch.device("cpu"))
        assert found.bend is not None
        assert float((found.bend.abs().amax((1, 2, 3)) > 0).float().mean()) == pytest.approx(0.3, abs=0.06)

    @pytest.mark.parametrize(
        "part", [{"rotation": 20.0}, {"shift": 0.2}, {"shear": 20.0}, {"elastic": 1.0}, {"gamma": (0.5, 0.6)},
                 {"noise": 0.1}, {"erased": 1.0}]
    )  # fmt: skip
    def test_each_part_does_something_and_nothing_without_it(
        self, images: torch.Tensor, part: dict[str, float]
    ) -> None:
        torch.manual_seed(0)
        assert torch.allclose(drawn(images, PLAIN), images / 255, atol=1e-6)
        assert (drawn(images, replace(PLAIN, **part)) - images / 255).abs().mean() > 0.005  # type: ignore[arg-type]

    def test_the_default_view_draws_what_it_always_drew(self) -> None:
        torch.manual_seed(3)
        images = torch.randint(0, 256, (40, 3, 32, 32), dtype=torch.uint8)
        torch.manual_seed(7)
        assert float(drawn(images, View(solarised=0.2)).double().sum()) == pytest.approx(60255.62676, abs=0.01)

    def test_some_of_the_images_have_the_same_views(self, images: torch.Tensor) -> None:
        torch.manual_seed(0)
        numbers = chosen(images.shape, RADIOGRAPH, device=images.device)
        some = applied(images[2:5], taken(numbers, slice(2, 5)))
        assert torch.allclose(some, applied(images, numbers)[2:5], atol=1e-6)

    def test_one_graph_holds_a_whole_view(self, images: torch.Tensor) -> None:
        whole = torch.compile(drawn, backend="eager", fullgraph=True)
        assert whole(images, RADIOGRAPH).shape == images.shape


class TestHistograms:
    def test_equalised_as_pillow_does(self, images: torch.Tensor) -> None:
        dull = (images // 3 + 40).to(torch.uint8)
        found = equalised(dull).numpy()
        for item in range(COUNT):
            for channel in range(3):
                slow = np.asarray(ImageOps.equalize(Image.fromarray(dull[item, channel].numpy())))
                assert np.array_equal(found[item, channel], slow)

    def test_one_level_stays(self) -> None:
        flat = torch.full((2, 1, 20, 20), 9, dtype=torch.uint8)
        assert torch.equal(equalised(flat), flat)
        assert int(stretched(flat).max()) == 0

    def test_stretched_between_two_shares(self, images: torch.Tensor) -> None:
        dull = (images // 4 + 30).to(torch.uint8)
        found = stretched(dull, low=0.05, high=0.9).numpy()
        for item in range(COUNT):
            pixels = dull[item, 0].numpy()
            low, high = np.quantile(pixels, [0.05, 0.9], method="inverted_cdf")
            slow = np.clip((pixels.astype(float) - low) * 255 / (high - low), 0, 255)
            assert np.abs(found[item, 0] - slow).max() < 6

    def test_blocks_change_nothing(self, images: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = equalised(images)
        monkeypatch.setattr("relook.train.histograms._BLOCK", 1000)
        assert torch.equal(equalised(images), whole)
