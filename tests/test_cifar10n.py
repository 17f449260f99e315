"""CIFAR-10N: the published noise rates, three answers an image, and who gave them, in true image order."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relook import datasets
from relook.cifar import CLASSES
from relook.datasets import cifar10n
from relook.datasets.cifar10n import GIVEN, collection, load
from relook.errors import BadInput
from tests.test_cifar import Rows, binary, random_rows

Labels = dict[str, Any]


class TestReal:
    @pytest.mark.parametrize(
        ("label", "percent"),
        [("aggregate", 9.01), ("random1", 17.23), ("random2", 18.12), ("random3", 17.64), ("worst", 40.21)],
    )
    def test_noise(self, data_dir: Path, label: str, percent: float) -> None:
        found = load(data_dir, label=label)
        assert len(found) == 50_000
        assert round(100 * (found.given.given != found.true_class).mean(), 2) == percent

    def test_three_answers_of_747_people(self, data_dir: Path) -> None:
        found = collection(data_dir)
        assert found.answers["annotator"].n_unique() == 747
        assert found.answers["annotator"].null_count() == 0
        assert found.answers["item"].unique_counts().unique().to_list() == [3]
        assert 2 <= 10 * float(found.answers["seconds"].min()) <= 10 * float(found.answers["seconds"].max()) <= 118  # type: ignore[arg-type]
        assert np.array_equal(found.labels().given, load(data_dir, label="answers").given.given)

    def test_order_is_that_of_the_training_set(self, data_dir: Path) -> None:
        official = np.load(data_dir / "cifar10" / "train_labels.npy")
        assert np.array_equal(load(data_dir).true_class, official)

    def test_aggregate_is_the_majority_where_there_is_one(self, data_dir: Path) -> None:
        """So the three answers of an image do belong to it."""
        counts = load(data_dir, label="answers").given.given
        agreed = counts.max(1) >= 2
        assert agreed.mean() > 0.9
        assert np.array_equal(counts.argmax(1)[agreed], load(data_dir).given.given[agreed])

    def test_batches_are_shown_in_the_order_of_the_images(self, data_dir: Path) -> None:
        """The first row of the table belongs to the first ten images of `image_order_c10.npy`."""
        order = np.load(data_dir / "cifar10n" / "image_order_c10.npy")
        first = order[:10]
        answers = collection(data_dir).answers
        shown = answers.filter(answers["item"].is_in(first.tolist()))
        assert set(shown["annotator"].to_list()) == {"198", "385", "197"}
        assert sorted(set(shown["seconds"].to_list())) == [2.1, 2.5, 4.0]


@pytest.fixture(scope="module")
def labels() -> Labels:
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 10, 50_000)
    return {"clean_label": clean, **{name: (clean + (rng.random(50_000) < 0.2)) % 10 for name in GIVEN.values()}}


def save(folder: Path, labels: Labels) -> Path:
    there = folder / "cifar10n"
    there.mkdir(exist_ok=True)
    (there / "CIFAR-10_human.pt").write_bytes(pickle.dumps(labels, protocol=2))
    return there


def save_people(there: Path, change: Callable[[list[str]], object] = len) -> None:
    np.save(there / "image_order_c10.npy", np.arange(50_000)[::-1])
    heading = "Image-batch,Worker1-id,Work-time-in-seconds-1,Worker2-id,Work-time-in-seconds-2,Worker3-id,"
    lines = [f"{heading}Work-time-in-seconds-3"]
    lines += [f"{10 * batch}--{10 * batch + 9},{batch % 7},10,x{batch % 5},20,y,30" for batch in range(5_000)]
    change(lines)
    (there / "side_info_cifar10N.csv").write_text("\n".join(lines) + "\n")


class TestMade:
    def test_people_in_true_order(self, tmp_path: Path, labels: Labels) -> None:
        save_people(save(tmp_path, labels))
        found = datasets.collection("cifar10n", tmp_path)
        last = found.answers.filter(found.answers["item"] == 49_999)
        assert last["annotator"].to_list() == ["0", "x0", "y"], "the order is turned round"
        assert last["seconds"].to_list() == [1, 2, 3]
        assert last["label"].to_list() == [CLASSES[labels[f"random_label{n}"][49_999]] for n in (1, 2, 3)]
        assert found.items.collect()["column:worse_label"][7] == CLASSES[labels["worse_label"][7]]

    def test_without_people(self, tmp_path: Path, labels: Labels) -> None:
        save(tmp_path, labels)
        found = collection(tmp_path)
        assert found.answers["annotator"].null_count() == 150_000
        assert found.facts == (
            "There is no side_info_cifar10N.csv: who gave an answer, and how long it took, is not known.",
        )

    def test_images(self, tmp_path: Path, labels: Labels) -> None:
        rows: Rows = random_rows()
        save(tmp_path, labels)
        binary(tmp_path / "cifar10", rows)
        with pytest.raises(BadInput, match=r"labels must be the official ones of the answers, but row \d+ differs"):
            load(tmp_path, images=tmp_path)
        save(tmp_path, {**labels, "clean_label": np.tile(rows[:, 0], 5).astype(np.int64)})
        images = load(tmp_path, images=tmp_path).images
        assert images is not None
        assert images[49_999].shape == (32, 32, 3)

    def test_unknown_label(self, tmp_path: Path, labels: Labels) -> None:
        save(tmp_path, labels)
        with pytest.raises(BadInput, match=r"the given label must be one of aggregate, worst, .+ but 'best' came"):
            load(tmp_path, label="best")

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("worse_label", None, "must hold 50,000 numbers as worse_label, but none came"),
            ("clean_label", np.zeros(7, int), r"as clean_label, but int64 of shape \(7,\) came; get it again"),
            ("clean_label", np.zeros(50_000), r"as clean_label, but float64 of shape"),
            ("random_label2", np.full(50_000, 11), "classes 0 to 9 as random_label2, but row 0 has 11"),
        ],
    )
    def test_other_labels(self, tmp_path: Path, labels: Labels, name: str, value: Any, message: str) -> None:
        save(tmp_path, {**labels, name: value})
        with pytest.raises(BadInput, match=message):
            load(tmp_path)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda lines: lines.pop(3), r"line 4: batches of ten images in their order were needed, .+ '30--39' came"),
            (lambda lines: lines.pop(), r"line 5001: batches of ten images .+ but 4,999 rows came"),
            (
                lambda lines: lines.append("0--9,1,1,1,1,1,1"),
                r"line 5002: batches of ten images .+ but 5,001 rows came",
            ),
            (lambda lines: lines.__setitem__(9, "80--89,1,,1,1,1,1"), "line 10: a number was needed in column Work-ti"),
            (lambda lines: lines.__setitem__(9, "80--89,,1,1,1,1,1"), "line 10: text was needed in column Worker1-id"),
            (lambda lines: lines.__setitem__(9, "80--89,1,inf,1,1,1,1"), "line 10: a number was needed in column"),
        ],
    )
    def test_other_people(
        self, tmp_path: Path, labels: Labels, change: Callable[[list[str]], object], message: str
    ) -> None:
        save_people(save(tmp_path, labels), change)
        with pytest.raises(BadInput, match=message):
            collection(tmp_path)

    @pytest.mark.parametrize("order", [np.zeros(50_000, int), np.arange(7), np.arange(50_000.0)])
    def test_other_order(self, tmp_path: Path, labels: Labels, order: Any) -> None:
        there = save(tmp_path, labels)
        save_people(there)
        np.save(there / "image_order_c10.npy", order)
        with pytest.raises(BadInput, match=r"image_order_c10.npy must hold each of 50,000 rows once, but"):
            collection(tmp_path)


def test_names_of_the_files() -> None:
    assert (cifar10n.ITEMS, cifar10n.ANSWERS, cifar10n.BATCH) == (50_000, 3, 10)
