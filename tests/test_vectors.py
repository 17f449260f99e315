"""Vectors find their items by what both name, and whatever is missing or too much is told."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook import vectors
from relook.collection import Collection
from relook.datasets import frame
from relook.errors import BadInput
from relook.imported import Origin, write
from relook.sources import Columns
from tests.laws import LAW, catches

E = np.arange(6, dtype=np.float32).reshape(3, 2)
P = np.array([[0.25, 0.75], [0.5, 0.5], [1, 0]])


def pets(**columns: Any) -> Collection:
    told = {"id": ["a", "b", "c"], "label": ["dog", "cat", "cat"]} | columns
    return frame.collection(pl.DataFrame(told), source="pets")


def packed(folder: Path, **parts: Any) -> Path:
    np.savez(folder / "x.npz", allow_pickle=False, **parts)
    return folder / "x.npz"


def test_an_npy_file_is_in_the_order_of_the_items(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", E)
    found = vectors.embeddings(pets(), tmp_path / "x.npy")
    assert (found.values.tolist(), found.missing, found.extra) == (E.tolist(), (), ())
    assert found.values.dtype == np.float32
    assert found.facts == (f"{tmp_path / 'x.npy'}: joined by order, row by row: it has no ids.",)


def test_rows_are_joined_by_id(tmp_path: Path) -> None:
    found = vectors.embeddings(pets(), packed(tmp_path, embeddings=E, ids=["c", "x", "a"]))
    assert np.array_equal(found.values, np.array([[4, 5], [np.nan, np.nan], [0, 1]]), equal_nan=True)
    assert (found.missing, found.extra) == (["b"], ["x"])
    assert found.facts == (
        f"{tmp_path / 'x.npz'}: joined by id: 2 items of 3.",
        f"{tmp_path / 'x.npz'}: no row for 1 item (b).",
        f"{tmp_path / 'x.npz'}: 1 row of no item (x).",
    )


@pytest.mark.parametrize(
    ("columns", "by", "names"),
    [
        ({"path": ["x/1.png", "y/2.png", "3.png"]}, "path", ["y/2.png", "3.png", "x/1.png"]),
        ({"path": ["x/1.png", "y/2.png", "3.png"]}, "stem", ["2", "z/3.npy", "1.npy"]),
        ({"name": ["one", "two", "three"]}, "column:name", ["two", "three", "one"]),
        ({"key": [1, 2, 3]}, "column:key", ["2", "3", "1"]),
    ],
)
def test_rows_are_joined_by_what_a_user_says(tmp_path: Path, columns: Any, by: str, names: Any) -> None:
    found = vectors.embeddings(pets(**columns), packed(tmp_path, embeddings=E, ids=names), by=by)
    assert found.values.tolist() == E[[2, 0, 1]].tolist()


def test_ids_that_are_paths_are_stems_too(tmp_path: Path) -> None:
    found = vectors.embeddings(
        pets(id=["x/1.png", "x/2.png", "x/3.png"]), packed(tmp_path, x=E, ids=list("123")), by="stem"
    )
    assert found.values.tolist() == E.tolist()


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("lists", [True, False])
def test_tables_hold_a_list_or_a_column_a_number(tmp_path: Path, kind: str, *, lists: bool) -> None:
    if lists and kind == "csv":
        return
    numbers: dict[str, Any] = {"vector": E.tolist()} if lists else {"e0": E[:, 0], "e1": E[:, 1]}
    table = pl.DataFrame({"id": ["a", "b", "c"], "label": ["x", "y", "z"], **numbers})
    path = tmp_path / f"x.{kind}"
    getattr(table, {"jsonl": "write_ndjson"}.get(kind, f"write_{kind}"))(path)
    found = vectors.embeddings(pets(), path)
    assert found.values.tolist() == E.tolist()
    assert found.facts[0] == f"{path}: columns that are left aside: label."


def test_probabilities_are_in_the_order_of_the_classes(tmp_path: Path) -> None:
    pl.DataFrame({"id": ["b", "a", "c"], "p_dog": P[:, 0], "p_cat": P[:, 1]}).write_csv(tmp_path / "x.csv")
    found = vectors.probabilities(pets(), tmp_path / "x.csv")
    assert found.values.tolist() == [[0.5, 0.5], [0.75, 0.25], [0.0, 1.0]]
    np.save(tmp_path / "x.npy", P)
    assert vectors.probabilities(pets(), tmp_path / "x.npy").values.tolist() == P.tolist()
    told = vectors.probabilities(pets(), tmp_path / "x.npy", columns=Columns(classes=("dog", "cat")))
    assert told.values.tolist() == P[:, ::-1].tolist()


def test_vectors_are_imported_with_their_items(tmp_path: Path) -> None:
    found = vectors.embeddings(pets(), packed(tmp_path, embeddings=E, ids=["a", "b", "x"]))
    made, _ = write(pets(), tmp_path / "set", origin=Origin(vectors={"embeddings": found.values}))
    kept = made.vectors("embeddings")
    assert kept is not None
    assert np.isnan(kept).any(1).tolist() == [False, False, True]


NAMES = st.lists(st.text("abc/.", min_size=1, max_size=4), min_size=1, max_size=8, unique=True)


def law(tried: settings, folder: Path) -> None:
    """Each item has the row of its name, whatever the order, and what is missing or too much is listed."""

    @tried
    @given(NAMES, NAMES)
    def holds(items: list[str], names: list[str]) -> None:
        path = packed(folder, embeddings=np.arange(len(names), dtype=float)[:, None], ids=names)
        found = frame.collection(pl.DataFrame({"id": items, "label": ["x"] * len(items)}))
        if not set(items) & set(names):
            with pytest.raises(BadInput, match="rows that name items by id were needed, but none of"):
                vectors.embeddings(found, path)
            return
        joined = vectors.embeddings(found, path)
        row = [names.index(item) if item in names else np.nan for item in items]
        assert np.array_equal(joined.values[:, 0], row, equal_nan=True)
        assert list(joined.missing) == [item for item in items if item not in names]
        assert list(joined.extra) == [name for name in names if name not in items]

    holds()


def test_each_item_has_the_row_of_its_name(tmp_path: Path) -> None:
    law(LAW, tmp_path)


def test_a_planted_join_by_order_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_in_order", lambda *_: True)
    catches(lambda tried: law(tried, tmp_path), error=Exception)


def refused(folder: Path, sentence: str, *, by: str = "id", of: Collection | None = None, **parts: Any) -> None:
    with pytest.raises(BadInput, match=sentence):
        vectors.embeddings(pets() if of is None else of, packed(folder, **parts), by=by)


def test_rows_that_cannot_be_joined(tmp_path: Path) -> None:
    files = pets(path=["x/1.png", "y/1.png", "3.png"])
    refused(tmp_path, "names that differ were needed to join by stem, but 'x/1.png' and 'y/1.png' are alike; join by",
            by="stem", of=files, embeddings=E, ids=["1", "2", "3"])  # fmt: skip
    refused(tmp_path, "to join by stem, but '1.png' and 'a/1.npy' are alike", by="stem", embeddings=E,
            ids=["1.png", "a/1.npy", "3"])  # fmt: skip
    refused(tmp_path, "one of id, path, stem or column:NAME was needed to join by, but 'name' came; it has column:id",
            by="name", embeddings=E, ids=["1", "2", "3"])  # fmt: skip
    refused(tmp_path, "a row for each of 3 items was needed, for it has no ids, but 2 came; save ids with them",
            embeddings=E[:2])  # fmt: skip
    refused(tmp_path, "ids must differ, but 'a' was in item 0 already", embeddings=E, ids=["a", "a", "b"])


def test_what_is_no_embedding(tmp_path: Path) -> None:
    refused(
        tmp_path,
        "embeddings of N x D numbers with a point were needed, but embeddings .int64, 3.",
        embeddings=[1, 2, 3],
    )
    refused(tmp_path, "item 1: numbers were needed in each place of an embedding, but NaN or infinity came",
            embeddings=np.where(E == 2, np.nan, E))  # fmt: skip
    refused(tmp_path, "embeddings were needed, but there are none", embeddings=E[:, :0])


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"id": ["a"]}, "one column of lists, or columns of numbers, were needed, but none came; leave one"),
        (
            {"id": ["a"], "v": [[1.0]], "w": [[1.0]]},
            "one column of lists, or columns of numbers, were needed, but v, w",
        ),
        (
            {"id": ["a", "b"], "v": [[1.0, 2], [1.0]]},
            "item 1: a list of 2 numbers was needed in column v, as in the first",
        ),
        (
            {"id": ["a", "b"], "v": [[1.0, 2], [1.0, None]]},
            "a number was needed in column v, but none came; compute it",
        ),
        ({"id": ["a"], "v": ["x"]}, "item 0: a number was needed in column v, but 'x' came"),
    ],
)
def test_what_is_no_table_of_embeddings(tmp_path: Path, table: Any, sentence: str) -> None:
    pl.DataFrame(table, strict=False).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(BadInput, match=sentence):
        vectors.embeddings(pets(), tmp_path / "x.parquet")


def test_what_are_no_probabilities(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.stack([P, P]))
    with pytest.raises(
        BadInput, match=r"N x C probabilities of one model were needed, but shape .* came; save their mean"
    ):
        vectors.probabilities(pets(), tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", P * 2)
    with pytest.raises(BadInput):
        vectors.probabilities(pets(), tmp_path / "x.npy")
    pl.DataFrame({"id": ["a"], "cat": [0.5], "bird": [0.5]}).write_csv(tmp_path / "x.csv")
    with pytest.raises(
        BadInput, match="a column for each of the classes cat, dog was needed, but cat, bird came, and 'b"
    ):
        vectors.probabilities(pets(), tmp_path / "x.csv")
