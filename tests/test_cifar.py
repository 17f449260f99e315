"""CIFAR-10 in each of its layouts: the same images and labels, in official order."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from relook import cifar, datasets
from relook.cifar import BINARY, PYTHON, Picked
from relook.datasets import cifar10
from relook.errors import BadInput

Rows = NDArray[np.uint8]


@pytest.fixture(scope="module", name="rows")
def random_rows_once() -> Rows:
    return random_rows()


def random_rows() -> Rows:
    """Return the rows of a split, a label and 3,072 random bytes each: 10,000, taken for every batch."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (10_000, 3_073), np.uint8)
    rows[:, 0] %= 10
    return rows


BATCHES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


def binary(folder: Path, rows: Rows) -> Path:
    return _written(folder, BINARY, content=rows.tobytes(), ending=".bin")


def python(folder: Path, rows: Rows) -> Path:
    batch = {"labels": rows[:, 0].tolist(), "data": rows[:, 1:], "filenames": ["a.png"]}
    return _written(folder, PYTHON, content=pickle.dumps(batch, protocol=2))


def _written(folder: Path, layout: str, *, content: bytes, ending: str = "") -> Path:
    there = folder / layout
    there.mkdir(parents=True)
    first = there / f"{BATCHES[0]}{ending}"
    first.write_bytes(content)
    for name in BATCHES[1:]:
        (there / f"{name}{ending}").hardlink_to(first)
    return folder


@pytest.mark.parametrize("write", [binary, python])
def test_layouts(tmp_path: Path, rows: Rows, write: object) -> None:
    assert callable(write)
    write(tmp_path / "cifar10", rows)
    train, test = cifar10.load(tmp_path), datasets.load("cifar10", tmp_path, settings={"split": "test"})
    assert (len(train), len(test), train.name, test.name) == (50_000, 10_000, "cifar10-train", "cifar10-test")
    assert np.array_equal(test.true_class, rows[:, 0])
    assert np.array_equal(train.given.given, np.tile(rows[:, 0], 5))
    assert train.images is not None
    for item in (0, 9_999, 10_000, 49_999, -1):
        image, row = train.images[item], rows[item % 10_000]
        assert (image.shape, image.dtype) == ((32, 32, 3), np.uint8)
        assert image[3, 5].tolist() == [row[1 + 1_024 * colour + 32 * 3 + 5] for colour in range(3)]
    with pytest.raises(IndexError):
        train.images[50_000]


def test_layouts_agree(tmp_path: Path, rows: Rows) -> None:
    one, other = (cifar.images(write(tmp_path / name, rows), "test") for name, write in (("b", binary), ("p", python)))
    assert np.array_equal(one.labels, other.labels)
    assert np.array_equal(one[77], other[77])
    picked = Picked(one, [5, 3])
    assert len(picked) == 2
    assert np.array_equal(picked[1], one[3])


@pytest.mark.slow
def test_real_images(data_dir: Path) -> None:
    """Packed as JPEG by class: 60,000 images, 5,000 of each class in the training set."""
    for split, number in cifar.SPLITS.items():
        found = cifar10.load(data_dir, split=split)
        assert np.bincount(found.true_class).tolist() == [number // 10] * 10
        assert found.images is not None
        for item in (0, 1, number - 1):
            assert found.images[item].shape == (32, 32, 3)


class TestBad:
    def test_split(self, tmp_path: Path) -> None:
        with pytest.raises(
            BadInput, match="cifar10: the split must be train or test, but 'val' came; name one of them"
        ):
            cifar10.load(tmp_path, split="val")

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match=r"but none is there; get CIFAR-10 with relook datasets get cifar10"):
            cifar10.load(tmp_path)

    def test_a_batch_is_missing(self, tmp_path: Path, rows: Rows) -> None:
        (python(tmp_path, rows) / PYTHON / "data_batch_3").unlink()
        with pytest.raises(BadInput, match="data_batch_3 was needed, but there is no such file; unpack the archive"):
            cifar10.load(tmp_path)
        (binary(tmp_path, rows) / BINARY / "data_batch_3.bin").unlink()
        with pytest.raises(BadInput, match=r"data_batch_3.bin must have 30,730,000 bytes, but it has 0; unpack"):
            cifar10.load(tmp_path)

    @pytest.mark.parametrize(
        "batch",
        [
            {"labels": [1]},
            {"data": [1], "labels": [1]},
            {"data": np.zeros((10_000, 3_072), np.int8), "labels": [0] * 10_000},
            {"data": np.zeros((10_000, 3_072), np.uint8), "labels": ["0"] * 10_000},
            {"data": np.zeros((10_000, 3_072), np.uint8), "labels": [0] * 9_999},
            {},
        ],
    )
    def test_another_batch(self, tmp_path: Path, rows: Rows, batch: dict[str, object]) -> None:
        path = python(tmp_path, rows) / PYTHON / "test_batch"
        path.unlink()
        path.write_bytes(pickle.dumps(batch, protocol=2))
        with pytest.raises(BadInput, match=r"must hold 10,000 rows of 3,072 bytes as data and 10,000 labels, but it"):
            cifar10.load(tmp_path, split="test")

    def test_a_label_that_is_none(self, tmp_path: Path, rows: Rows) -> None:
        wrong = rows.copy()
        wrong[17, 0] = 12
        with pytest.raises(BadInput, match=r"labels must be 0 to 9, but row 17 of .+ has 12; get it again"):
            cifar10.load(binary(tmp_path, wrong), split="test")

    @pytest.mark.parametrize(
        ("content", "message"),
        [(b"GIF89a", r"test/airplane/0000\.jpg must be a JPEG image, but it is none"), (None, "32 x 32 pixels, but")],
    )
    def test_an_image_that_is_none(self, tmp_path: Path, content: bytes | None, message: str) -> None:
        import io
        import tarfile

        from PIL import Image

        if content is None:
            stream = io.BytesIO()
            Image.new("RGB", (64, 64)).save(stream, "JPEG")
            content = stream.getvalue()
        np.save(tmp_path / "test_labels.npy", np.zeros(10_000, np.uint8))
        with tarfile.open(tmp_path / "images.tar.xz", "w:xz") as archive:
            member = tarfile.TarInfo("test/airplane/0000.jpg")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        images = cifar10.load(tmp_path, split="test").images
        assert images is not None
        with pytest.raises(BadInput, match=message):
            images[0]
