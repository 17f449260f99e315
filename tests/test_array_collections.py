"""Arrays become collections: labels, answers, counts and images, and what is in doubt is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from relook.collection import GIVEN, Collection
from relook.datasets import arrays
from relook.errors import BadInput
from relook.imported import write
from relook.sources import Columns


def read(folder: Path, what: Any, **said: Any) -> Collection:
    if isinstance(what, dict):
        np.savez_compressed(folder / "x.npz", **what)
        return arrays.collection(folder / "x.npz", columns=Columns(**said))
    np.save(folder / "x.npy", what, allow_pickle=False)
    return arrays.collection(folder / "x.npy", columns=Columns(**said))


def answers(found: Collection) -> list[tuple[Any, ...]]:
    frame = found.answers.with_columns(pl.col("annotator", "label").cast(pl.String))
    return [(found.ids[row[0]], *row[1:]) for row in frame.iter_rows()]


@pytest.mark.parametrize(
    ("what", "classes", "given"),
    [
        ([2, 0, -1], ("0", "2"), ["2", "0", None]),
        ([1.0, np.nan, 0.0], ("0", "1"), ["1", None, "0"]),
        (["dog", "cat", ""], ("cat", "dog"), ["dog", "cat", None]),
        (np.array([b"b", b"a", b""]), ("a", "b"), ["b", "a", None]),
        ([[1], [0], [1]], ("0", "1"), ["1", "0", "1"]),
        (np.array([2, 10, 9], ">u2"), ("2", "9", "10"), ["2", "10", "9"]),
        ([True, False, True], ("0", "1"), ["1", "0", "1"]),
    ],
)
def test_labels(tmp_path: Path, what: Any, classes: Any, given: Any) -> None:
    found = read(tmp_path, what)
    told = {item: label for item, _, label in answers(found)}
    assert (found.classes, [told.get(str(row)) for row in range(3)]) == (classes, given)
    assert found.items.collect().columns == ["id"]
    assert (found.form.kind, found.form.layout) == ("npy", "items")


def test_labels_below_zero_are_a_class_where_it_is_named(tmp_path: Path) -> None:
    found = read(tmp_path, [-1, 0, 1], classes=("-1", "0", "1"))
    assert [label for _, _, label in answers(found)] == ["-1", "0", "1"]


def test_counts_and_answers_are_told_apart_by_what_is_said(tmp_path: Path) -> None:
    counts = read(tmp_path, [[3, 0], [1, 48]], label="*", classes=("cat", "dog"))
    assert answers(counts) == [("0", None, "cat", 3), ("1", None, "cat", 1), ("1", None, "dog", 48)]
    people = read(tmp_path, [[3.0, np.nan], [1, -1]], annotator="*")
    assert answers(people) == [("0", "0", "3"), ("1", "0", "1")]
    texts = read(tmp_path, [["x", ""], ["y", "x"]])
    assert answers(texts) == [("0", "0", "x"), ("1", "0", "y"), ("1", "1", "x")]
    with pytest.raises(
        BadInput, match=r"arr_0 has 2 columns, and it was needed to know what they are, but neither came"
    ):
        read(tmp_path, [[3, 0], [1, 48]])
    with pytest.raises(BadInput, match=r"but both came; pass --label '\*' if each is a class with counts"):
        read(tmp_path, [[3, 0], [1, 48]], label="*", annotator="*")


def test_an_archive_names_its_arrays(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {
            "counts": [[3, 0], [1, 4]],
            "class_names": ["dog", "cat"],
            "ids": ["007", "7"],
            "split": ["train", "test"],
            "text": ["x", "y"],
            "features": [[0.5, 1], [2, 3]],
            "embeddings": np.zeros((2, 9), np.float32),
        },
        numbers=("features",),
    )
    assert (found.ids.to_list(), found.classes, found.form.layout) == (["007", "7"], ("dog", "cat"), "counts")
    assert found.items.collect().rows(named=True) == [
        {"id": "007", "text": "x", "split": "train", "number:features 0": 0.5, "number:features 1": 1.0},
        {"id": "7", "text": "y", "split": "test", "number:features 0": 2.0, "number:features 1": 3.0},
    ]
    assert found.facts[1] == f"{tmp_path / 'x.npz'}: left aside: embeddings (float32, 2 x 9)."
    assert found.labels().given.tolist() == [[3, 0], [1, 4]]


def test_annotators_of_an_archive_have_names(tmp_path: Path) -> None:
    found = read(tmp_path, {"answers": [[1, 0], [-1, 1]], "annotators": ["Ada", "Bo"], "classes": ["cat", "dog"]})
    assert answers(found) == [("0", "Ada", "dog"), ("0", "Bo", "cat"), ("1", "Bo", "dog")]


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("shape", [(3, 4, 5), (3, 4, 5, 1), (3, 4, 5, 3)])
def test_images_keep_every_bit(tmp_path: Path, kind: Any, shape: Any) -> None:
    pixels = np.random.default_rng(0).integers(0, np.iinfo(kind).max, shape, endpoint=True).astype(kind)
    found = read(tmp_path, {"labels": ["a", "b", "a"], "images": pixels})
    assert (found.content, len(found)) == ("images", 3)
    assert found.pictures is not None
    for item in (0, 1, 2, 1):
        (name,) = found.pictures.write(item, tmp_path)
        assert name == f"{item}.png"
        expected = pixels[item].squeeze()
        # Pillow keeps eight bits of deep colours; what is written has all of them.
        assert np.array_equal(
            np.asarray(Image.open(tmp_path / name)), expected if shape[-1] != 3 else expected8(expected)
        )


def expected8(pixels: Any) -> Any:
    return pixels if pixels.dtype == np.uint8 else (pixels >> 8).astype(np.uint8)


def test_images_are_imported_with_their_bits(tmp_path: Path) -> None:
    pixels = np.arange(2 * 3 * 4, dtype=np.uint16).reshape(2, 3, 4) * 999
    made, _ = write(read(tmp_path, {"labels": [0, 1], "images": pixels}), tmp_path / "set")
    assert np.array_equal(np.asarray(Image.open(made.folder / "images" / "1.png")), pixels[1])


def test_several_images_an_item_and_none_with_labels(tmp_path: Path) -> None:
    front, side = np.zeros((2, 3, 3), np.uint8), np.full((2, 3, 3), 9, np.uint8)
    found = read(tmp_path, {"front": front, "side": side}, files=("front", "side"), classes=("a", "b"))
    assert found.pictures is not None
    assert found.pictures.write(1, tmp_path) == ["1-1.png", "1-2.png"]
    assert answers(found) == []
    alone = read(tmp_path, front, classes=("a", "b"))
    assert alone.content == "images"


def test_a_given_label_belongs_to_given(tmp_path: Path) -> None:
    assert answers(read(tmp_path, ["x"])) == [("0", GIVEN, "x")]


@pytest.mark.parametrize(
    ("what", "said", "sentence"),
    [
        ([-1, -1], {}, "labels were needed, but no row has one"),
        (np.zeros(0, int), {}, "at least one item was needed, but its arrays have no row; save it again"),
        (
            3,
            {},
            "labels as N, or N x K of them with K up to 10,000, were needed, but arr_0 .int64, one value. came; name",
        ),
        (np.zeros((2, 10_001), int), {"label": "*"}, "labels as N, or N x K of them with K up to 10,000, were needed"),
        (np.zeros((2, 2, 2)), {}, "labels as N, or N x K of them with K up to 10,000, were needed, but arr_0 .float64"),
        ([0.5, 1], {}, "a class or a count was needed, but 0.5 came"),
        (np.array([b"\xff"]), {}, "text in UTF-8 was needed, but"),
        (np.array([0xD800, 0x110000], "<u4").view("<U1"), {}, "text in Unicode was needed, but other bytes came; save"),
        (
            [0, 1],
            {"question": "q"},
            "a table with named columns was needed for --question q, but these are arrays; save",
        ),
        ([0, 1], {"label": "y"}, "an array 'y' was needed, but it is a single array"),
        (
            {"labels": [0, 1], "ids": ["a"]},
            {},
            "arrays of one length were needed, a row an item, but 1 of ids, 2 of labels",
        ),
        ({"labels": [0, 1], "ids": [0.5, 1]}, {}, r"N texts or whole numbers were needed, but ids \(float64, 2\) came"),
        (
            {"labels": [0, 1], "x": [0]},
            {"id": "names"},
            "an array 'names' was to be taken, but it holds labels, x; name",
        ),
        (
            {"labels": [0], "n": ["a"]},
            {"numbers": ("n",)},
            r"N numbers, or N x D of them, were needed, but n \(<U1, 1\)",
        ),
        (
            {"labels": [0], "n": [1]},
            {"files": tuple("nnnnnnnnn")},
            "8 arrays of images at most were needed, but more came",
        ),
        ({"labels": [0], "n": [1]}, {"files": ("n",)}, "images of uint8 or uint16, N x H x W or N x H x W x 3, of"),
        (
            {"counts": [[1, 2]], "classes": ["a"]},
            {},
            "a name of its own for each of the 2 columns of counts was needed, o",
        ),
        ({"counts": [[1, -2]]}, {}, "item 0: how many people said label 1 was needed, but -2 came"),
    ],
)
def test_what_is_in_doubt_is_refused(tmp_path: Path, what: Any, said: Any, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        read(tmp_path, what, **said)
