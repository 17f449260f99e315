"""Labels and probabilities from npy and npz: what is read, and what is refused in one sentence."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from relook.datasets import arrays
from relook.errors import BadInput
from relook.sources import Columns

ROWS = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])


def saved(folder: Path, values: ArrayLike, name: str = "x.npy") -> Path:
    np.save(folder / name, values, allow_pickle=False)
    return folder / name


def packed(folder: Path, parts: Mapping[str, Any]) -> Path:
    np.savez(folder / "x.npz", allow_pickle=False, **parts)
    return folder / "x.npz"


@pytest.mark.parametrize(
    ("values", "given", "names"),
    [
        ([0, 2, -1], [0, 2, -1], None),
        (np.array([1, 0], np.uint8), [1, 0], None),
        ([1.0, np.nan, 0.0], [1, -1, 0], None),
        ([True, False], [1, 0], None),
        ([[1], [0]], [1, 0], None),
        (["dog", "cat", "", "nan", "dog"], [1, 0, -1, -1, 1], ("cat", "dog")),
        (np.array([b"b", b"a"]), [1, 0], ("a", "b")),
        ([[2, 0], [0, 3]], [[2, 0], [0, 3]], None),
        ([["b", ""], ["a", "b"]], [[1, -1], [0, 1]], ("a", "b")),
    ],
)
def test_labels_are_read(tmp_path: Path, values: ArrayLike, given: list[Any], names: tuple[str, ...] | None) -> None:
    read = arrays.labels(saved(tmp_path, values))
    assert read.given.tolist() == given
    assert read.names == names
    assert read.ids is None


def test_answers_of_several_people_are_told_from_counts(tmp_path: Path) -> None:
    assert arrays.labels(saved(tmp_path, [[2, 0], [0, 3]])).kind == "any"
    answers = arrays.labels(saved(tmp_path, [[1.0, np.nan], [0.0, 1.0]]))
    assert answers.kind == "answers"
    assert answers.given.tolist() == [[1, -1], [0, 1]]


def test_probabilities_of_npy_stay_on_the_disk(tmp_path: Path) -> None:
    values = arrays.probabilities(saved(tmp_path, ROWS)).values
    assert isinstance(values, np.memmap)
    assert values.tolist() == ROWS.tolist()


def test_columns_that_lie_apart_are_brought_together(tmp_path: Path) -> None:
    """What pandas and transposes save lies column by column; scores need rows in one piece."""
    values = arrays.probabilities(saved(tmp_path, np.asfortranarray(ROWS))).values
    assert values.flags.c_contiguous
    assert values.tolist() == ROWS.tolist()


def test_several_models_are_read(tmp_path: Path) -> None:
    read = arrays.probabilities(saved(tmp_path, np.stack([ROWS, ROWS])))
    assert (len(read), read.classes) == (3, 2)


def test_an_archive_may_hold_ids(tmp_path: Path) -> None:
    path = packed(tmp_path, {"labels": [0, 1], "ids": ["a", "b"], "extra": [1]})
    read = arrays.labels(path)
    assert (read.given.tolist(), read.ids) == ([0, 1], ["a", "b"])
    path = packed(tmp_path, {"probabilities": ROWS, "names": np.array([b"x", b"y", b"z"])})
    assert arrays.probabilities(path, columns=Columns(id="names")).ids == ["x", "y", "z"]
    path = packed(tmp_path, {"labels": [0, 1], "id": [7, 8]})
    assert arrays.labels(path).ids == ["7", "8"]


def test_an_array_of_an_archive_is_named_by_label(tmp_path: Path) -> None:
    path = packed(tmp_path, {"train_labels": [0, 1], "test_labels": [1, 1]})
    assert arrays.labels(path, columns=Columns(label="test_labels")).given.tolist() == [1, 1]
    with pytest.raises(
        BadInput, match=r"one array to read was needed, but it holds train_labels, test_labels; name that"
    ):
        arrays.labels(path)
    with pytest.raises(BadInput, match=r"an array 'y' was needed, but it holds train_labels, test_labels; leave out"):
        arrays.labels(path, columns=Columns(label="y"))
    with pytest.raises(BadInput, match=r"an array 'y' was needed, but it is a single array; leave out --label"):
        arrays.labels(saved(tmp_path, [0, 1]), columns=Columns(label="y"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.5, 0.25], "item 0: a class or a count was needed, but 0.5 came; are these probabilities"),
        ([0.0, np.inf], "item 1: a class or a count was needed, but inf came"),
        ([0.0, -1e30], "item 1: a class or a count was needed, but -1e\\+30 came"),
        ([[1.0, 0.0], [0.3, 0.7]], "item 1: a class or a count was needed, but 0.3 came"),
        ([1j, 2j], "whole numbers or text were needed, but complex128 came; save one class"),
        (np.array(["2020-01-01"], "M8[D]"), r"whole numbers or text were needed, but datetime64\[D\] came"),
        (np.zeros((2, 2, 2), int), r"N labels, or N x K of them, were needed, but shape \(2, 2, 2\) came; mend it"),
        (3, r"N labels, or N x K of them, were needed, but shape \(\) came"),
        (np.zeros(0, int), "at least one label was needed, but the file holds none; check the export"),
        ([-1, -1], "labels were needed, but every item is unlabelled; name the right column"),
        (["", ""], "labels were needed, but every item is unlabelled"),
        (np.array([b"\xff"]), "text in UTF-8 was needed, but b'.xff' came; save array.astype"),
    ],
)
def test_no_labels(tmp_path: Path, values: ArrayLike, said: str) -> None:
    with pytest.raises(BadInput, match=said) as raised:
        arrays.labels(saved(tmp_path, values))
    assert str(raised.value).startswith(str(tmp_path / "x.npy"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.1, 0.9], r"N x C or M x N x C probabilities were needed, but shape \(2,\) came; give each item a row"),
        (np.zeros((0, 3)), r"N x C or M x N x C probabilities were needed, but shape \(0, 3\) came"),
        ([[0.1], [0.9]], "at least two classes were needed, but one column came; add 1 - p as a column"),
    ],
)
def test_no_probabilities(tmp_path: Path, values: ArrayLike, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        arrays.probabilities(saved(tmp_path, values))


@pytest.mark.parametrize("read", [arrays.labels, arrays.probabilities])
class TestFiles:
    def test_objects_are_not_opened(self, tmp_path: Path, read: Any) -> None:
        mixed = np.array(["a", None], object)
        np.save(tmp_path / "x.npy", mixed, allow_pickle=True)
        np.savez(tmp_path / "x.npz", mixed)
        for name in ("x.npy", "x.npz"):
            with pytest.raises(BadInput, match="it holds Python objects, which are not opened"):
                read(tmp_path / name)

    def test_another_kind_of_file(self, tmp_path: Path, read: Any) -> None:
        (tmp_path / "x.npy").write_text("path,label\na,0\n")
        with pytest.raises(BadInput, match="an array was needed, but this is no npy file; save it with numpy"):
            read(tmp_path / "x.npy")
        (tmp_path / "x.npz").write_text("path,label\na,0\n")
        with pytest.raises(BadInput, match="this is no npz file"):
            read(tmp_path / "x.npz")

    @pytest.mark.parametrize("name", ["x.npy", "x.npz"])
    def test_a_broken_file(self, tmp_path: Path, read: Any, name: str) -> None:
        path = saved(tmp_path, ROWS) if name == "x.npy" else packed(tmp_path, {"p": ROWS})
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(BadInput, match="an array was needed, but the file is broken"):
            read(path)

    def test_no_file(self, tmp_path: Path, read: Any) -> None:
        with pytest.raises(BadInput, match="a file was needed, but there is none of this name; check the path"):
            read(tmp_path / "x.npy")
        with pytest.raises(BadInput, match="a file was needed, but this is a folder; name the file in it"):
            read(tmp_path)
        (tmp_path / "x.npy").touch()
        with pytest.raises(BadInput, match="a file with labels or probabilities was needed, but it is empty"):
            read(tmp_path / "x.npy")

    @pytest.mark.parametrize(
        ("ids", "said"),
        [
            (["a", "b"], "an id for each of 3 rows was needed, but 2 came; save both anew"),
            (["a", "b", "a"], "item 2 (id a): ids must differ, but 'a' was in item 0 already; remove one"),
            (["a", "", "c"], "item 1 (id ): an id was needed, but the cell is empty; fill it"),
            ([[1, 2], [3, 4]], "ids must be N texts or numbers, but ids is int64 of shape (2, 2)"),
            ([0.5, 1.5, 2.5], "ids must be N texts or numbers, but ids is float64"),
        ],
    )
    def test_bad_ids(self, tmp_path: Path, read: Any, ids: ArrayLike, said: str) -> None:
        path = packed(tmp_path, {"labels": [0, 1, 0], "p": ROWS, "ids": ids})
        with pytest.raises(BadInput, match=re.escape(said)):
            read(path)
