"""Embeddings kept by content: what was described once is never described again, whatever happened in between."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from PIL import Image

from relook import embedding, imported
from relook.cifar import images as cifar
from relook.embedding import EMBEDDED, embed, embedded, model
from relook.errors import BadInput, MissingExtra
from relook.imported import Imported
from relook.intake import WANTED, gathered
from relook.selectors.logistic import cross_fitted
from relook.train import frozen
from relook.train.frozen import Frozen, frozen_of
from relook.types import Labels
from tests.networks import Tiny, installed
from tests.test_train_efficientnet import REAL


def tiny(**changed: Any) -> Frozen:
    settings = {"side": 8, "mean": (0.0, 0.0, 0.0), "deviation": (1.0, 1.0, 1.0)}
    return frozen_of("tiny", Tiny(), **{**settings, **changed})


def pictures(count: int, *, side: int = 8) -> list[np.ndarray]:
    rng = np.random.default_rng(count)
    return [rng.integers(0, 256, (side + item % 3, side, 3), dtype=np.uint8) for item in range(count)]


def shelf(folder: Path, *, items: int = 5) -> Imported:
    """Import images in folders of two classes; two of them are alike."""
    for item, pixels in enumerate(pictures(items)):
        place = folder / "pets" / ("cat", "dog")[item % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place / f"{item}.png")
    Image.fromarray(pictures(items)[0]).save(folder / "pets" / "cat" / "again.png")
    with gathered(folder / "pets", beside=folder / "shelf", wanted=WANTED) as (found, origin):
        return imported.write(found, folder / "shelf", origin=origin)[0]


class TestKept:
    def test_new_images_only_cost_themselves(self, tmp_path: Path) -> None:
        found = pictures(9)
        first, second, third = (embedded(found[:count], tiny(), kept=tmp_path) for count in (5, 9, 9))
        assert (first.new, second.new, third.new) == (5, 4, 0)
        assert np.array_equal(first.values, second.values[:5])
        assert np.array_equal(second.values, third.values)
        assert np.allclose(second.values, embedded(found, tiny()).values, atol=1e-2)

    def test_alike_images_are_described_once(self, tmp_path: Path) -> None:
        found = pictures(2)
        made = embedded([found[0], found[1], found[0].copy()], tiny(), kept=tmp_path)
        assert made.new == 2
        assert np.array_equal(made.values[0], made.values[2])

    def test_another_network_or_setting_has_rows_of_its_own(self, tmp_path: Path) -> None:
        found = pictures(3)
        for network in (tiny(), tiny(side=9)):
            assert embedded(found, network, kept=tmp_path).new == 3
        assert len(list(tmp_path.iterdir())) == 2

    def test_the_same_pixels_in_another_shape_are_another_image(self) -> None:
        flat = np.arange(48, dtype=np.uint8)
        assert embedded([flat.reshape(4, 4, 3), flat.reshape(2, 8, 3)], tiny()).new == 2

    def test_a_broken_file_is_described_again(self, tmp_path: Path) -> None:
        found = pictures(4)
        whole = embedded(found, tiny(), kept=tmp_path)
        (file,) = tmp_path.glob("*/*.npz")
        for broken in (file.read_bytes()[:-40], b"", file.read_bytes().replace(b"rows", b"cows")):
            file.write_bytes(broken)
            again = embedded(found, tiny(), kept=tmp_path)
            assert again.new == 4
            assert np.array_equal(again.values, whole.values)

    def test_what_was_done_before_an_error_is_kept(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(frozen, "BATCH", 2)
        found: list[Any] = [*pictures(4), np.zeros((3, 3))]
        with pytest.raises(BadInput, match="item 4 is float64"):
            embedded(found, tiny(), kept=tmp_path)
        assert embedded(found[:4], tiny(), kept=tmp_path).new == 0

    def test_files_of_few_rows(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(embedding, "ROWS", 4)
        embedded(pictures(10), tiny(), kept=tmp_path)
        assert len(list(tmp_path.glob("*/*.npz"))) == 3
        assert embedded(pictures(10), tiny(), kept=tmp_path).new == 0
        assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]

    def test_steps_add_up(self, tmp_path: Path) -> None:
        embedded(pictures(4)[:3], tiny(), kept=tmp_path)
        steps: list[int] = []
        embedded(pictures(4), tiny(), kept=tmp_path, step=steps.append)
        assert sum(steps) == 4


class TestInput:
    def test_grey_deep_and_single_images(self) -> None:
        grey = np.arange(64, dtype=np.uint8).reshape(8, 8)
        deep = grey.astype(np.uint16) * 16
        made = embedded([grey, np.repeat(grey[..., np.newaxis], 3, 2), deep], tiny())
        assert np.allclose(made.values[0], made.values[1])
        assert np.allclose(made.values[2], made.values[0] * 255 * 16 / 1023, atol=1e-2)
        assert embedded([grey], tiny()).values.shape == (1, 12)

    def test_images_of_any_size(self) -> None:
        plain = [np.full((side, 2 * side, 3), 51, np.uint8) for side in (1, 5, 300)]
        assert np.allclose(embedded(plain, tiny()).values, 0.2, atol=2e-3)

    def test_no_images(self) -> None:
        assert embedded([], tiny()).values.shape == (0, 0)

    @pytest.mark.parametrize(
        ("image", "message"),
        [
            (np.full((4, 4), np.nan), "item 0 has NaN among them; read it again"),
            (np.zeros((4, 4)), "item 0 is float64 of shape"),
            (np.zeros((4, 4, 4), np.uint8), r"item 0 is uint8 of shape \(4, 4, 4\); convert it"),
            (np.zeros((0, 4), np.uint8), r"item 0 is uint8 of shape \(0, 4\)"),
            (np.zeros(4, np.uint8), r"uint8 of H x W or H x W x 3 was needed, but item 0 is uint8 of shape \(4,\)"),
        ],
        ids=["nan", "fractions", "four", "empty", "flat"],
    )
    def test_what_is_no_image(self, image: np.ndarray, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            embedded([image], tiny())


class TestModel:
    def test_a_name_that_nobody_knows(self) -> None:
        for name in ("resnet", "timm:", "hub:resnet"):
            with pytest.raises(BadInput, match=r"embed: a network was needed \(efficientnet-lite0"):
                model(name)

    def test_weights_for_a_network_that_has_its_own(self) -> None:
        with pytest.raises(BadInput, match=r"has weights of its own, but .+ came; leave them out"):
            model(weights=Path("w.pth"))

    def test_without_torch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("importlib.util.find_spec", {}.get)
        with pytest.raises(MissingExtra, match="embed: torch was needed, but it is not installed"):
            model()

    def test_a_network_with_weights_of_a_package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        installed(tmp_path, monkeypatch)
        made = embedded(pictures(2, side=40), model())
        assert made.values.shape == (2, 80 + 112 + 192 + 320)
        assert np.abs(made.values[0] - made.values[1]).max() > 1e-3


class TestSets:
    def test_a_set_is_described_where_rank_looks(self, tmp_path: Path) -> None:
        found = shelf(tmp_path)
        target, made = embed(found, tiny())
        assert target == found.folder / "embeddings.npy"
        assert (len(made.values), made.new) == (6, 5)
        assert np.array_equal(np.asarray(found.vectors("embeddings")), made.values)
        imported.verify(found)
        assert embed(found, tiny())[1].new == 0
        assert embed(found, tiny(side=9))[1].new == 5, "another network's take the place of ours"
        assert (found.folder / EMBEDDED).is_dir()

    def test_two_sets_may_share_what_is_kept(self, tmp_path: Path) -> None:
        (tmp_path / "one").mkdir()
        (tmp_path / "two").mkdir()
        embed(shelf(tmp_path / "one"), tiny(), cache=tmp_path / "kept", to=tmp_path / "one.npy")
        found = shelf(tmp_path / "two")
        assert embed(found, tiny(), cache=tmp_path / "kept", to=tmp_path / "two.npy")[1].new == 0
        assert not (found.folder / EMBEDDED).exists()
        assert np.load(tmp_path / "two.npy").shape == (6, 12)

    def test_an_item_without_an_image_has_no_row(self, tmp_path: Path) -> None:
        class Lacking(type(shelf(tmp_path).images())):  # type: ignore[misc]
            def known_by(self, item: int) -> str | None:
                return None if item == 1 else super().known_by(item)

        images = imported.read(tmp_path / "shelf").images()
        lacking = Lacking(images._root, images._files, hashes=images._hashes)
        made = embedded(lacking, tiny())
        assert np.isnan(made.values).all(1).tolist() == [False, True, False, False, False, False]

    def test_an_image_that_has_changed_is_noticed(self, tmp_path: Path) -> None:
        found = shelf(tmp_path)
        Image.fromarray(pictures(9)[8]).save(tmp_path / "pets" / "dog" / "1.png")
        with pytest.raises(BadInput, match="the file has changed; import it again"):
            embed(found, tiny())
        assert not (found.folder / "embeddings.npy").exists()

    def test_sets_that_cannot_be_described(self, tmp_path: Path) -> None:
        found = shelf(tmp_path)
        (tmp_path / "mine.npy").write_bytes(b"mine")
        with pytest.raises(BadInput, match="relook did not write this one"):
            embed(found, tiny(), to=tmp_path / "mine.npy")
        texts = Imported(found.folder, msgspec.structs.replace(found.manifest, content="text"))
        with pytest.raises(BadInput, match="images were needed, but it holds text; import it with images"):
            embed(texts, tiny())
        hashes = {**found.manifest.hashes, "embeddings.npy": "0"}
        given = Imported(found.folder, msgspec.structs.replace(found.manifest, hashes=hashes))
        with pytest.raises(BadInput, match="a set without embeddings was needed, but it was imported with some"):
            embed(given, tiny())


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="the extra embed is not installed")
def test_it_knows_more_than_pixels(data_dir: Path) -> None:
    """On 500 images of CIFAR-10, a quarter of the labels wrong: 20 points above pixels, far beyond two deviations."""
    found = cifar(data_dir / "cifar10", "test")
    images = [found[item] for item in range(500)]
    rng = np.random.default_rng(0)
    given = np.where(rng.random(500) < 0.25, rng.integers(0, 10, 500), found.labels[:500])
    tables = (embedded(images, model()).values, np.stack(images).reshape(500, -1) / 255.0)
    right = [(cross_fitted(table, Labels(given, 10)).mean().argmax(1) == found.labels[:500]).mean() for table in tables]
    assert right[0] > right[1] + 0.2
