"""Data sets: CIFAR-10H as the released code uses it, to the item; digits with a crowd and noise of each image."""

import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from relook import cifar, datasets
from relook.curves import difficult
from relook.datasets import cifar10h, digits
from relook.errors import BadInput
from relook.noise import paper_code_labels
from relook.types import Dataset, IntArray


def wrong_labels(dataset: Dataset) -> tuple[int, int, int]:
    assert dataset.truth is not None
    wrong, hard = dataset.given.majority() != dataset.true_class, difficult(dataset.truth)
    return int(wrong.sum()), int((wrong & ~hard).sum()), int((wrong & hard).sum())


class TestCifar10h:
    """The numbers of the released code, exactly."""

    @pytest.mark.parametrize(("tau", "counts"), [(2.0, (769, 520, 249)), (10.0, (1485, 1152, 333))])
    def test_the_paper_s_noise(self, data_dir: Path, tau: float, counts: tuple[int, int, int]) -> None:
        paper = cifar10h.load(data_dir, subset="paper", tau=tau)
        assert len(paper) == 5_000
        assert wrong_labels(paper) == counts

    @pytest.mark.parametrize(
        ("tau", "counts"), [(1.0, (469, 303, 166)), (2.0, (1315, 1055, 260)), (10.0, (2826, 2488, 338))]
    )
    def test_the_full_set_s_noise(self, data_dir: Path, tau: float, counts: tuple[int, int, int]) -> None:
        assert wrong_labels(cifar10h.load(data_dir, tau=tau)) == counts

    def test_paper_keeps_every_difficult_item(self, data_dir: Path) -> None:
        full, paper = cifar10h.load(data_dir), cifar10h.load(data_dir, subset="paper")
        assert full.truth is not None
        hard = {full.ids[row] for row in np.flatnonzero(difficult(full.truth)).tolist()}
        assert len(hard) == 454
        assert hard <= set(paper.ids)
        assert len(set(paper.ids)) == 5_000
        assert list(paper.ids) != sorted(paper.ids, key=int), "the released code shuffles"

    def test_ids_are_rows_of_the_test_set(self, data_dir: Path) -> None:
        counts = np.load(data_dir / "cifar10h" / "cifar10h-counts.npy", allow_pickle=False)
        full, paper = cifar10h.load(data_dir), cifar10h.load(data_dir, subset="paper")
        assert list(full.ids) == [str(row) for row in range(10_000)]
        assert paper.truth is not None
        rows = [int(name) for name in paper.ids]
        assert np.array_equal(paper.truth, counts[rows] / counts[rows].sum(1, keepdims=True)), "to the bit"
        assert np.array_equal(paper.given.given, paper_code_labels(paper.truth, 10.0))

    def test_found_in_the_folder_itself(self, data_dir: Path, tmp_path: Path) -> None:
        (tmp_path / "cifar10h-counts.npy").symlink_to(data_dir / "cifar10h" / "cifar10h-counts.npy")
        assert len(cifar10h.load(tmp_path)) == 10_000
        assert cifar10h.load(tmp_path).images is None

    @pytest.mark.slow
    def test_real_images_are_of_their_class(self, data_dir: Path) -> None:
        """Planes and ships are bluer than the rest: so they are where the order of the images is right."""
        full = cifar10h.load(data_dir, images=data_dir / "cifar10")
        assert full.images is not None
        assert full.images[9_999].shape == (32, 32, 3)
        blue = np.array(
            [image[..., 2].mean() - image[..., 0].mean() for image in map(full.images.__getitem__, range(600))]
        )
        sky_or_sea = np.isin(full.true_class[:600], [0, 8])
        assert blue[sky_or_sea].mean() > blue[~sky_or_sea].mean() + 10
        paper = cifar10h.load(data_dir, subset="paper", images=data_dir / "cifar10")
        assert paper.images is not None
        assert np.array_equal(paper.images[0], full.images[int(paper.ids[0])])


@pytest.fixture(scope="module")
def counts() -> IntArray:
    """Made-up counts of the published shape, none difficult but 600."""
    rng = np.random.default_rng(0)
    counts = np.zeros((10_000, 10), np.int64)
    counts[np.arange(10_000), rng.integers(0, 10, 10_000)] = 50
    counts[:600] += rng.integers(3, 9, (600, 10))
    return counts


@pytest.fixture
def folder(tmp_path: Path, counts: IntArray) -> Path:
    """A folder in the publisher's layout."""
    (tmp_path / "cifar10h").mkdir()
    np.save(tmp_path / "cifar10h" / "cifar10h-counts.npy", counts)
    return tmp_path


def packed(folder: Path, labels: IntArray, *, classes: tuple[str, ...] = cifar.CLASSES, items: int = 40) -> Path:
    """Write an archive of images by class, as 1 x 1 pixels that tell their row, and the labels beside it."""
    folder.mkdir(exist_ok=True)
    np.save(folder / "test_labels.npy", labels)
    with tarfile.open(folder / "images.tar.xz", "w:xz") as archive:
        archive.addfile(tarfile.TarInfo("train/bird/0000.jpg"), io.BytesIO())
        for row in range(items):
            stream = io.BytesIO()
            Image.new("RGB", (1, 1), (row * 6, 0, 255 - row * 6)).save(stream, "JPEG", quality=100, subsampling=0)
            before = int((labels[:row] == labels[row]).sum())
            member = tarfile.TarInfo(f"test/{classes[labels[row]]}/{before:04d}.jpg")
            member.size = len(stream.getvalue())
            archive.addfile(member, io.BytesIO(stream.getvalue()))
    return folder


def binary(folder: Path, labels: IntArray) -> Path:
    """Write the official binary layout with random pixels."""
    rows = np.random.default_rng(1).integers(0, 256, (len(labels), 3_073)).astype(np.uint8)
    rows[:, 0] = labels
    (folder / "cifar-10-batches-bin").mkdir(parents=True)
    rows.tofile(folder / "cifar-10-batches-bin" / "test_batch.bin")
    return folder


class TestImages:
    def test_binary_layout(self, folder: Path, counts: IntArray) -> None:
        paper = cifar10h.load(folder, subset="paper", images=binary(folder / "images", counts.argmax(1)))
        assert paper.images is not None
        assert len(paper.images) == 5_000
        table = np.fromfile(folder / "images" / "cifar-10-batches-bin" / "test_batch.bin", np.uint8).reshape(-1, 3_073)
        for item in (0, 7, 4_999):
            row = int(paper.ids[item])
            image = paper.images[item]
            assert image.shape == (32, 32, 3)
            assert image.dtype == np.uint8
            for y, x, colour in ((0, 0, 0), (0, 31, 1), (31, 0, 2), (5, 9, 1)):
                assert image[y, x, colour] == table[row, 1 + 1_024 * colour + 32 * y + x]

    def test_packed_by_class(self, folder: Path, counts: IntArray) -> None:
        full = cifar10h.load(folder, images=packed(folder / "images", counts.argmax(1)))
        assert full.images is not None
        assert len(full.images) == 10_000
        for row in (0, 17, 39):
            assert full.images[row].shape == (1, 1, 3)
            assert abs(int(full.images[row][0, 0, 0]) - row * 6) <= 3

    def test_a_missing_image_is_named(self, folder: Path, counts: IntArray) -> None:
        full = cifar10h.load(folder, images=packed(folder / "images", counts.argmax(1), items=3))
        assert full.images is not None
        with pytest.raises(BadInput, match=r"test/\w+/\d{4}\.jpg was needed in .*images\.tar\.xz, but it is not there"):
            full.images[9_000]

    def test_a_broken_archive_is_named(self, folder: Path, counts: IntArray) -> None:
        archive = packed(folder / "images", counts.argmax(1)) / "images.tar.xz"
        archive.write_bytes(archive.read_bytes()[:700])
        full = cifar10h.load(folder, images=folder / "images")
        assert full.images is not None
        with pytest.raises(BadInput, match=r"images.tar.xz must be an archive, but it is broken \(.+\); get it again"):
            full.images[0]

    @pytest.mark.parametrize("write", [packed, binary])
    def test_another_order_is_refused(self, folder: Path, counts: IntArray, write: Callable[..., Path]) -> None:
        with pytest.raises(
            BadInput, match=r"labels should agree with the answers, but only \d+% do; are they the test"
        ):
            cifar10h.load(folder, images=write(folder / "images", np.roll(counts.argmax(1), 1)))

    def test_a_cut_file_is_refused(self, folder: Path, counts: IntArray) -> None:
        images = binary(folder / "images", counts.argmax(1)[:100])
        with pytest.raises(BadInput, match=r"must have 30,730,000 bytes, but it has 307,300; unpack it again"):
            cifar10h.load(folder, images=images)

    def test_nothing_there(self, folder: Path) -> None:
        with pytest.raises(
            BadInput, match=r"one of cifar-10-batches-bin, cifar-10-batches-py, images.tar.xz was needed in"
        ):
            cifar10h.load(folder, images=folder / "nowhere")

    def test_an_archive_without_labels(self, folder: Path, counts: IntArray) -> None:
        images = packed(folder / "images", counts.argmax(1))
        (images / "test_labels.npy").unlink()
        with pytest.raises(
            BadInput, match=r"test_labels.npy was needed beside images.tar.xz, but there is no such file; add it"
        ):
            cifar10h.load(folder, images=images)

    def test_labels_of_another_number(self, folder: Path, counts: IntArray) -> None:
        images = packed(folder / "images", counts.argmax(1))
        np.save(images / "test_labels.npy", counts.argmax(1)[:50])
        with pytest.raises(BadInput, match=r"must hold 10000 labels, but int64 of shape \(50,\) came"):
            cifar10h.load(folder, images=images)


class TestAnswersOfPeople:
    def test_counts(self, data_dir: Path) -> None:
        found = cifar10h.collection(data_dir)
        counts = found.labels().given
        assert round(counts.sum(1).mean(), 1) == 51.1
        assert int((counts.max(1) == counts.sum(1)).sum()) == 4_393, "unanimous"
        assert int(difficult(counts / counts.sum(1, keepdims=True)).sum()) == 454
        assert found.answers["annotator"].null_count() == len(found.answers)
        assert datasets.collection("cifar10h", data_dir).facts == found.facts

    def raw(self, folder: Path, *rows: str) -> Path:
        heading = "annotator_id,trial_index,is_attn_check,chosen_category,cifar10_test_test_idx,reaction_time"
        (folder / "cifar10h").mkdir()
        (folder / "cifar10h" / "cifar10h-raw.csv").write_text("\n".join([heading, *rows]))
        return folder

    def test_single_answers(self, tmp_path: Path) -> None:
        rows = "0,1,0,cat,9999,1500", "7,2,0,dog,9999,-3", "7,3,1,truck,-99999,900"
        found = cifar10h.collection(self.raw(tmp_path, *rows))
        columns = found.answers.select("item", "annotator", "label", "seconds")
        assert columns.rows() == [(9_999, "0", "cat", 1.5), (9_999, "7", "dog", None)]
        assert found.facts == ("1 attention check left out.", "1 time below 0: taken as unknown.")
        assert len(found) == 10_000

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ("0,1,0,cat,10000,1500", "rows of the test set, 0 to 9,999, were needed in column cifar10_test_test_idx"),
            ("0,1,0,lynx,3,1500", r"cifar10h-raw\.csv, item 3 \(id 3\): a class was needed, .+ but 'lynx' came"),
        ],
    )
    def test_other_answers(self, tmp_path: Path, row: str, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            cifar10h.collection(self.raw(tmp_path, row))

    def test_a_set_with_a_label_an_item(self) -> None:
        found = datasets.collection("digits", settings={"rate": 0.0})
        assert found.content == "images"
        assert np.array_equal(found.labels().given, datasets.load("digits", settings={"rate": 0.0}).given.given)
        assert sum(name.startswith("number:") for name in found.columns) == 64


class TestBadCounts:
    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(
            BadInput, match=r"cifar10h-counts\.npy was needed, but there is no such file; get cifar10h-counts\.npy from"
        ):
            cifar10h.load(tmp_path)

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (np.ones((10, 10), int), r"must hold 10000 x 10 counts, but int64 of shape \(10, 10\) came; get it"),
            (np.ones((10_000, 10)), "must hold 10000 x 10 counts, but float64 of shape"),
            (np.zeros((10_000, 10), int), "truth: rows must hold shares or counts of answers, but item 0"),
            (np.full((10_000, 10), None), "numbers or text were needed, but it holds Python objects"),
        ],
    )
    def test_another_array(self, tmp_path: Path, array: Any, message: str) -> None:
        np.save(tmp_path / "cifar10h-counts.npy", array, allow_pickle=True)
        with pytest.raises(BadInput, match=message):
            cifar10h.load(tmp_path)

    def test_no_array_at_all(self, tmp_path: Path) -> None:
        (tmp_path / "cifar10h-counts.npy").write_text("counts", "utf-8")
        with pytest.raises(BadInput, match="an array was needed, but this is no npy file; save it with numpy"):
            cifar10h.load(tmp_path)

    def test_unknown_subset(self, folder: Path) -> None:
        with pytest.raises(
            BadInput, match="the subset must be all or paper, but 'half' came; paper is the paper's 5,000"
        ):
            cifar10h.load(folder, subset="half")

    def test_temperature(self, folder: Path) -> None:
        with pytest.raises(BadInput, match=r"tau must be above 0, but -1\.0 came"):
            cifar10h.load(folder, tau=-1.0)


class TestDigits:
    @pytest.fixture(scope="class")
    @classmethod
    def ten(cls) -> Dataset:
        return digits.load()

    def test_is_the_set_that_scikit_learn_ships(self, ten: Dataset) -> None:
        from sklearn.datasets import load_digits

        assert len(ten) == 1_797
        assert np.array_equal(ten.true_class, load_digits().target)
        assert ten.features is not None
        assert ten.images is not None
        assert np.array_equal(ten.features, load_digits().data / 16)
        assert ten.images[3].dtype == np.uint8
        assert ten.images[3].tolist() == np.rint(ten.features[3] * 255).reshape(8, 8).tolist()
        assert ten.ids[:2] == ("0", "1")

    def test_a_single_answer_is_mostly_right(self, ten: Dataset) -> None:
        assert ten.truth is not None
        assert 0.93 < ten.truth.max(1).mean() < 0.96
        assert (np.sort(ten.truth, 1)[:, -1] > np.sort(ten.truth, 1)[:, -2]).all(), "no tie hides the true digit"

    def test_hard_images_are_clearly_harder(self, ten: Dataset) -> None:
        assert ten.truth is not None
        right = np.sort(ten.truth.max(1))
        assert right[:90].mean() < 0.65
        assert right[900:].mean() > 0.99
        assert 0.03 < difficult(ten.truth).mean() < 0.12

    def test_confusions_depend_on_the_image(self, ten: Dataset) -> None:
        assert ten.truth is not None
        for digit in range(10):
            others = np.argsort(ten.truth[ten.true_class == digit], 1)[:, -2]
            assert len(np.unique(others)) >= 3

    @pytest.mark.parametrize("rate", [0.05, 0.2, 0.6])
    def test_noise_is_at_the_rate(self, rate: float) -> None:
        sets = [digits.load(seed=seed, rate=rate) for seed in range(3)]
        wrong = np.mean([(ten.given.given != ten.true_class).mean() for ten in sets])
        assert abs(wrong - rate) < 5 * np.sqrt(rate * (1 - rate) / (3 * 1_797))

    def test_no_noise_and_nothing_but_noise(self) -> None:
        for rate in (0.0, 1.0):
            ten = digits.load(rate=rate)
            assert (ten.given.given != ten.true_class).mean() == rate

    def test_noise_depends_on_the_image(self, ten: Dataset) -> None:
        """Wrong labels can be told from the pixels: they are no uniform draw, which puts .11 on each wrong digit."""
        others = [digits.load(seed=0, rate=1.0), digits.load(seed=0, rate=0.999)]
        agree = (others[0].given.given == others[1].given.given).mean()
        assert agree > 0.3

    def test_is_the_same_for_a_seed(self, ten: Dataset) -> None:
        again, other = digits.load(seed=0), digits.load(seed=1)
        assert np.array_equal(ten.given.given, again.given.given)
        assert not np.array_equal(ten.given.given, other.given.given)
        assert ten.truth is not None
        assert again.truth is not None
        assert other.truth is not None
        assert np.array_equal(ten.truth, again.truth)
        assert np.array_equal(ten.truth, other.truth)

    def test_rate_out_of_range(self) -> None:
        with pytest.raises(BadInput, match=r"digits: a noise rate from 0 to 1 was needed, but 20 came; 20 % is 0\.2"):
            digits.load(rate=20)


class TestByName:
    def test_names(self, folder: Path) -> None:
        assert datasets.load("digits", settings={"seed": 3, "rate": 0.1}).name == "digits"
        assert datasets.load("cifar10h", folder).name == "cifar10h"
        assert datasets.load("cifar10h", str(folder), settings={"subset": "paper", "tau": 2.0}).name == "cifar10h-paper"

    def test_folder_from_the_environment(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RELOOK_DATA", str(folder))
        assert len(datasets.load("cifar10h")) == 10_000
        with pytest.raises(BadInput, match="nowhere"):
            datasets.load("cifar10h", folder / "nowhere")

    @pytest.mark.parametrize(
        ("name", "settings", "message"),
        [
            (
                "mnist",
                {},
                "noisy_cxr, pneumoniamnist was needed, but 'mnist' came; pass arrays for a set of your own",
            ),
            ("cifar10h", {}, "dataset cifar10h: a folder was needed, but none was given; name it, or set RELOOK_DATA"),
            (
                "cifar10h",
                {"rate": 0.2},
                "cifar10h: its settings are subset, tau, images, but 'rate' came; leave it out",
            ),
            ("digits", {"tau": 2.0}, "digits: its settings are seed, rate, but 'tau' came; leave it out"),
        ],
    )
    def test_bad_input(
        self, name: str, settings: Mapping[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("RELOOK_DATA", raising=False)
        with pytest.raises(BadInput, match=message):
            datasets.load(name, settings=settings)
