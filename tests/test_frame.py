"""Frames in memory become the collections that the same tables in files do."""

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from relook.collection import GIVEN, KEPT, Collection
from relook.datasets import frame, table
from relook.errors import BadInput
from relook.imported import write
from relook.sources import Columns

TABLE = pl.DataFrame(
    {
        "id": ["007", "7", "=1"],
        "label": ["dog", None, "cat"],
        "text": ["x", "y", None],
        "age": [3.0, None, 1.5],
        "seen": [True, False, None],
    }
)


def answers(found: Collection) -> list[tuple[Any, ...]]:
    rows = found.answers.with_columns(pl.col("annotator", "label").cast(pl.String))
    return [(found.ids[row[0]], *row[1:]) for row in rows.iter_rows()]


FRAMES: dict[str, Any] = {
    "polars": TABLE,
    "polars, lazy": TABLE.lazy(),
    "arrow": TABLE.to_arrow(),
    "pandas": TABLE.to_pandas(),
    "pandas of arrow": TABLE.to_pandas(use_pyarrow_extension_array=True),
    "pandas of objects": TABLE.to_pandas().astype(object),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_of_any_kind(tmp_path: Path, kind: str) -> None:
    TABLE.write_parquet(tmp_path / "x.parquet")
    expected = table.collection(tmp_path / "x.parquet")
    found = frame.collection(FRAMES[kind], source="pets")
    assert (found.ids.to_list(), found.classes, answers(found)) == (
        expected.ids.to_list(),
        expected.classes,
        answers(expected),
    )
    assert found.items.collect().equals(expected.items.collect())
    assert (found.form.kind, found.source) == ("frame", "pets")


def test_an_index_of_pandas_is_a_column_where_it_is_more_than_numbers() -> None:
    labels = pd.DataFrame({"label": ["x", "y"]}, index=["a", "b"])
    assert frame.collection(labels).ids.to_list() == ["a", "b"]
    assert frame.collection(labels.rename_axis("id")).ids.to_list() == ["a", "b"]
    counted = pd.DataFrame({"label": ["x", "y"]})
    assert frame.collection(counted).items.collect().columns == ["id", f"{KEPT}label"]
    part = pd.DataFrame({"label": ["x", "y", "z"]})[1:]
    assert frame.collection(part).ids.to_list() == ["1", "2"]


def test_cleanlabs_wide_frame() -> None:
    wide = pd.DataFrame({0: [1, 0], 1: [None, 1]}, index=["a", "b"])
    found = frame.collection(wide, columns=Columns(annotator="*"))
    assert sorted(answers(found)) == [("a", "0", "1"), ("b", "0", "0"), ("b", "1", "1")]


def test_crowd_kits_long_frame() -> None:
    long = pd.DataFrame({"task": ["a", "a"], "worker": ["w1", "w2"], "label": ["x", "y"]})
    assert answers(frame.collection(long)) == [("a", "w1", "x"), ("a", "w2", "y")]


def test_categories_and_dates_of_pandas() -> None:
    pets = pd.DataFrame(
        {
            "label": pd.Categorical(["b", None]),
            "on": pd.to_datetime(["2024-01-01", None]),
            "n": pd.array([1, None], "Int64"),
        }
    )
    found = frame.collection(pets, columns=Columns())
    assert answers(found) == [("0", GIVEN, "b")]
    assert found.items.collect()[f"{KEPT}n"].to_list() == [1, None]


def test_frames_are_imported(tmp_path: Path) -> None:
    made, changed = write(frame.collection(TABLE.to_pandas()), tmp_path / "set")
    assert changed
    assert made.dataset().texts == ["x", "y", ""]


class Remark(pa.ExtensionType):  # type: ignore[misc]
    """A type that a program of its own registers."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "somebody.note")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


REFUSED: dict[str, tuple[Any, str]] = {
    "a list": ([1, 2], "a frame of pandas or polars, or an arrow table, was needed, but list came; make one of plain"),
    "a series": (pd.Series([1]), "a frame of pandas or polars, or an arrow table, was needed, but Series came"),
    "two levels": (
        pd.DataFrame({"label": [1]}, index=pd.MultiIndex.from_tuples([(1, 2)])),
        "an index of one level was needed, but 2 came; call reset_index",
    ),
    "two columns of one name": (
        pd.DataFrame([[1, 2]], columns=["label", "label"]),
        "columns must differ in name, but 'label' comes twice",
    ),
    "two kinds in a column": (
        pd.DataFrame({"label": ["x", 1]}, dtype=object),
        "values of one kind were needed in column label, but others came",
    ),
    "objects": (
        pd.DataFrame({"label": [object()]}),
        "in column label, but",
    ),
    "records": (
        pl.DataFrame({"label": [{"a": 1}]}),
        r"text, numbers or lists of them were needed in column label, but it is Struct\(.*\); make a column of each",
    ),
    "lists of lists": (pl.DataFrame({"label": [[[1]]]}), "text, numbers or lists of them were needed in column label"),
    "a type of its own": (
        pa.table({"label": pa.ExtensionArray.from_storage(Remark(), pa.array(["x"]))}),
        "or an arrow table, was needed, but Table came, which polars does not take",
    ),
    "no row": (TABLE.clear(), "at least one row was needed"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_table(what: str) -> None:
    made, sentence = REFUSED[what]
    with pytest.raises(BadInput, match=sentence):
        frame.collection(made)
