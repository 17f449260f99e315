"""A folder of images and a table: rows find their files however these are named, and what finds nothing is told."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relook import imported
from relook.collection import Collection, Form
from relook.datasets.folder_table import collection, illustrated, table_in
from relook.errors import BadInput
from relook.sources import Columns
from tests.odd import noise, png

NAMES = ("a/1.png", "a/2.png", "b/3.jpg")


def planted(root: Path, table: str | None = None, *, at: str = "labels.csv", names: Sequence[str] = NAMES) -> Path:
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(png(noise(4, 5, seed=number), 8, 0))
    if table is not None:
        (root / at).parent.mkdir(parents=True, exist_ok=True)
        (root / at).write_text(table, "utf-8")
    return root


def files(found: Collection) -> list[list[str]]:
    named: list[list[str]] = found.items.collect()["files"].to_list()
    return named


@pytest.mark.parametrize(
    ("at", "named", "way"),
    [
        ("labels.csv", ("a/1.png", "./a/2.png", "b/3.jpg"), "their paths from the folder on"),
        ("a/labels.csv", ("1.png", "2.png"), "their paths from the table on"),
        ("labels.csv", ("1.png", "2.png", "3.jpg"), "the names of the files"),
        ("labels.csv", ("a/1", "a/2", "b/3"), "their paths without the ending"),
        ("labels.csv", ("1", "2", "3"), "the names of the files without the ending"),
    ],
)
def test_files_are_found_in_the_way_that_finds_the_most(
    at: str, named: tuple[str, ...], way: str, tmp_path: Path
) -> None:
    rows = "".join(f"{name},{'cat' if place else 'dog'}\n" for place, name in enumerate(named))
    planted(tmp_path, "path,label\n" + rows, at=at, names=NAMES[: len(named)])
    found = collection(tmp_path, table=tmp_path / at)
    assert files(found) == [[name] for name in NAMES[: len(named)]]
    assert found.ids.to_list() == list(named)
    assert found.labels().given.tolist() == [1, *[0] * (len(named) - 1)]
    assert any(fact.endswith(f"{len(named)} images found by {way}.") for fact in found.facts)


def test_ids_find_their_files_where_no_column_names_them(tmp_path: Path) -> None:
    planted(tmp_path, "id,label\n3,dog\n1,cat\n2,cat\n")
    found = collection(tmp_path, table=tmp_path / "labels.csv")
    assert files(found) == [["b/3.jpg"], ["a/1.png"], ["a/2.png"]]


def test_an_item_may_have_several_images(tmp_path: Path) -> None:
    planted(tmp_path, "id,frontal,lateral,label\np1,a/1.png,a/2.png,sick\np2,b/3.jpg,,well\n")
    found = collection(tmp_path, table=tmp_path / "labels.csv", columns=Columns(files=("frontal", "lateral")))
    assert files(found) == [["a/1.png", "a/2.png"], ["b/3.jpg"]]
    made, _ = imported.write(found, tmp_path / "set", origin=imported.Origin(root=tmp_path))
    assert [len(sizes) for sizes in pl.read_parquet(made.folder / "items.parquet")["bytes"]] == [2, 1]


def test_nine_images_an_item_are_too_many(tmp_path: Path) -> None:
    planted(tmp_path)
    table = pl.DataFrame({"id": ["p"], "label": ["x"], "files": [["a/1.png"] * 9]})
    said = Collection(
        source="pets",
        form=Form("parquet"),
        classes=("x",),
        ids=table["id"],
        items=table.select("id", "files").lazy(),
        answers=pl.DataFrame({"item": [0], "annotator": ["given"], "label": ["x"]}),
    )
    with pytest.raises(BadInput, match="at most 8 images an item were needed, but 9 came; name fewer columns"):
        illustrated(tmp_path, said)


def test_rows_without_a_file_are_refused_or_left_out(tmp_path: Path) -> None:
    rows = ["r0,a/9.png,cat,x", "r1,a/1.png,dog,y", "r2,a/2.png,cat,z", "r3,b/3.jpg,cat,x", "r4,,cat,x"]
    planted(tmp_path, "\n".join(["id,path,label,hospital", *rows]))
    with pytest.raises(
        BadInput, match=r"line 2 .id r0.: files that lie in .* were needed, but 2 rows of 5 came without"
    ):
        collection(tmp_path, table=tmp_path / "labels.csv")
    found = collection(tmp_path, table=tmp_path / "labels.csv", missing="allowed")
    assert found.ids.to_list() == ["r1", "r2", "r3"]
    assert files(found) == [["a/1.png"], ["a/2.png"], ["b/3.jpg"]]
    assert [found.classes[label] for label in found.labels().given] == ["dog", "cat", "cat"]
    assert found.items.collect()["column:hospital"].to_list() == ["y", "z", "x"]
    assert any(fact.endswith("2 rows left out whose file is missing: r0, r4.") for fact in found.facts)


def test_images_without_a_row_are_refused_or_left_out(tmp_path: Path) -> None:
    planted(tmp_path, "path,label\na/1.png,dog\na/2.png,cat\n")
    with pytest.raises(BadInput, match=r"a row for each image was needed, but 1 image of 3 have none .b/3\.jpg."):
        collection(tmp_path, table=tmp_path / "labels.csv")
    found = collection(tmp_path, table=tmp_path / "labels.csv", missing="allowed")
    assert any(fact.endswith("1 image left out that no row names: b/3.jpg.") for fact in found.facts)


def test_a_table_of_other_files_is_refused_even_where_missing_ones_are_allowed(tmp_path: Path) -> None:
    planted(tmp_path, "path,label\nx.png,dog\n")
    with pytest.raises(BadInput, match="but 1 row of 1 came without one"):
        collection(tmp_path, table=tmp_path / "labels.csv", missing="allowed")


@pytest.mark.parametrize("name", ["../1.png", "/a/1.png", "C:/1.png", "a/../../1.png"])
def test_paths_that_lead_out_are_refused(name: str, tmp_path: Path) -> None:
    planted(tmp_path, f"path,label\n{name},dog\n")
    with pytest.raises(BadInput, match=r"a path below the folder of the images was needed|starts elsewhere"):
        collection(tmp_path, table=tmp_path / "labels.csv")


def test_a_name_that_two_files_have_finds_neither(tmp_path: Path) -> None:
    planted(tmp_path, "path,label\n1.png,dog\n", names=("a/1.png", "b/1.png"))
    with pytest.raises(BadInput, match="but 1 row of 1 came without one"):
        collection(tmp_path, table=tmp_path / "labels.csv")


def test_answers_of_people_find_their_images(tmp_path: Path) -> None:
    planted(tmp_path, "path,annotator,label\na/1.png,Ada,dog\na/1.png,Bo,cat\na/2.png,Ada,cat\nb/3.jpg,Bo,dog\n")
    found = collection(tmp_path, table=tmp_path / "labels.csv")
    assert found.labels().given.tolist() == [[1, 1], [1, 0], [0, 1]]
    assert files(found) == [["a/1.png"], ["a/2.png"], ["b/3.jpg"]]


@pytest.mark.parametrize(
    ("name", "content", "tells"),
    [
        ("labels.csv", "path,label\na,b\n", True),
        ("labels.csv", "\ufefffile_name,label\na,b\n", True),
        ("metadata.tsv", "image\tclass\na\tb\n", True),
        ("metadata.jsonl", '{"file_name": "a", "label": "b"}\n', True),
        ("notes.csv", "day,weather\nmonday,rain\n", False),
        ("broken.jsonl", "{", False),
        ("broken.parquet", "PAR1", False),
        ("labels.csv", "path,finding\na,b\n", False),
        ("labels.txt", "path,label\na,b\n", False),
    ],
)
def test_a_table_is_one_that_names_files_and_labels(name: str, content: str, *, tells: bool, tmp_path: Path) -> None:
    planted(tmp_path, content, at=name)
    assert table_in(tmp_path) == (tmp_path / name if tells else None)


def test_the_user_names_the_columns_of_a_table(tmp_path: Path) -> None:
    planted(tmp_path, "scan,finding\na,b\n")
    assert table_in(tmp_path) is None
    assert table_in(tmp_path, columns=Columns(files=("scan",), label="finding")) == tmp_path / "labels.csv"
    pl.DataFrame({"path": ["a"], "label": ["b"]}).write_parquet(tmp_path / "more.parquet")
    assert table_in(tmp_path) == tmp_path / "more.parquet"
    (tmp_path / "most.csv").write_text("path,label\n")
    with pytest.raises(BadInput, match=r"one table of labels was needed, but it holds more\.parquet, most\.csv; take"):
        table_in(tmp_path)


cells = st.sampled_from(
    [*NAMES, "1", "a/1", "", "../1.png", "/a", "a//1.png", "a\\1.png", "nowhere.png", " ", "\u00e9"]
)


@pytest.mark.slow
def test_cells_of_anything_are_refused_or_find_their_files(tmp_path: Path) -> None:
    planted(tmp_path)
    ends: list[str] = []

    @given(
        rows=st.lists(st.tuples(cells, cells), min_size=1, max_size=5), missing=st.sampled_from(["refused", "allowed"])
    )
    def law(rows: list[tuple[str, str]], missing: Literal["refused", "allowed"]) -> None:
        table = pl.DataFrame({"front": [a for a, _ in rows], "side": [b for _, b in rows], "label": "cat"})
        table.write_csv(tmp_path / "labels.csv")
        try:
            found = collection(
                tmp_path, table=tmp_path / "labels.csv", columns=Columns(files=("front", "side")), missing=missing
            )
        except BadInput as error:
            ends.append(str(error))
            return
        ends.append("")
        assert {name for names in files(found) for name in names} <= set(NAMES)
        assert all(files(found))

    law()
    assert "" in ends
    assert all(";" in end for end in ends if end)


def test_ids_that_lead_out_are_refused(tmp_path: Path) -> None:
    planted(tmp_path, "id,label\n../1.png,dog\n")
    with pytest.raises(BadInput, match="paths that stay in the folder were needed"):
        collection(tmp_path, table=tmp_path / "labels.csv")
