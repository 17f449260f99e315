"""An imported set is written whole or not at all, twice is once, and what comes out of it is what went in."""

from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

from relook import imported
from relook.collection import GIVEN, NUMBER, Collection, Form
from relook.errors import BadInput
from relook.imported import Imported, Origin, verify, write


def pets(labels: tuple[str, ...] = ("dog", "cat", "cat"), **columns: list[object]) -> Collection:
    items = pl.DataFrame({"id": ["a", "b", "c"][: len(labels)], **columns})
    answers = pl.DataFrame({"item": range(len(labels)), "annotator": [GIVEN] * len(labels), "label": list(labels)})
    return Collection(
        source="pets.csv",
        form=Form("csv"),
        classes=("cat", "dog"),
        ids=items["id"],
        items=items.lazy(),
        answers=answers,
    )


def written(found: Collection, folder: Path, *, origin: Origin = imported.UNKNOWN) -> Imported:
    return write(found, folder, origin=origin)[0]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    made = written(pets(text=["x", "y", "z"], split=["train", "test", "train"]), tmp_path / "pets")
    found = imported.read(tmp_path / "pets")
    assert found == made
    assert (len(found), found.manifest.content, found.manifest.classes) == (3, "text", ("cat", "dog"))
    assert found.dataset().given.given.tolist() == [1, 0, 0]
    assert found.dataset().texts == ["x", "y", "z"]
    verify(found)


def test_a_split_is_a_part_of_it(tmp_path: Path) -> None:
    vectors = {"embeddings": np.arange(6.0).reshape(3, 2)}
    made = written(pets(split=["train", "test", "train"]), tmp_path / "pets", origin=Origin(vectors=vectors))
    part = made.dataset("train")
    assert (list(part.ids), part.given.given.tolist()) == (["a", "c"], [1, 0])
    embeddings = made.vectors("embeddings", "train")
    assert embeddings is not None
    assert embeddings.tolist() == [[0.0, 1.0], [4.0, 5.0]]
    with pytest.raises(BadInput, match=r"the name of a split was needed \(test, train\), but"):
        made.dataset("val")
    whole = written(pets(), tmp_path / "whole")
    assert whole.vectors("probabilities") is None
    with pytest.raises(BadInput, match="a column of splits was needed for --split, but it has none"):
        whole.dataset("train")


def test_numbers_and_groups_come_along(tmp_path: Path) -> None:
    numbers: dict[str, list[object]] = {NUMBER + "age": [3, 4, 5], NUMBER + "size": [0.5, 1.5, 2.5]}
    found = pets(group=["p1", "p1", "p2"])
    found = msgspec.structs.replace(
        found, items=found.items.with_columns(**{k: pl.Series(v) for k, v in numbers.items()})
    )
    dataset = written(found, tmp_path / "pets").dataset()
    assert dataset.features is not None
    assert dataset.features.tolist() == [[3, 0.5], [4, 1.5], [5, 2.5]]
    assert dataset.groups == ["p1", "p1", "p2"]


def test_twice_is_once(tmp_path: Path) -> None:
    first = written(pets(), tmp_path / "pets")
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in first.folder.iterdir()}
    again, changed = write(pets(), tmp_path / "pets")
    assert (again, changed) == (first, False)
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in first.folder.iterdir()} == before
    assert list(tmp_path.iterdir()) == [first.folder]


def test_another_set_is_not_written_over(tmp_path: Path) -> None:
    first = written(pets(), tmp_path / "pets")
    with pytest.raises(BadInput, match="a new folder was needed, but another set is there already; remove it"):
        write(pets(("cat", "cat", "cat")), tmp_path / "pets")
    assert imported.read(tmp_path / "pets") == first
    assert list(tmp_path.iterdir()) == [first.folder]


def test_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no image, but bytes")
    found = pets(files=[["a.png"], ["a.png"], ["gone.png"]])
    with pytest.raises((BadInput, OSError)):
        write(found, tmp_path / "pets", origin=Origin(root=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_targets_that_are_no_folder_for_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    with pytest.raises(BadInput, match="a folder to write to was needed, but a file is there"):
        write(pets(), tmp_path / "file")
    with pytest.raises(BadInput, match="a new or empty folder was needed, but it holds other files"):
        write(pets(), tmp_path / "full")
    with pytest.raises(BadInput, match="a folder that is there was needed for pets; make"):
        write(pets(), tmp_path / "none" / "pets")


def test_identical_items_with_different_labels_are_listed(tmp_path: Path) -> None:
    made = written(pets(text=["same", "same", "other"]), tmp_path / "pets")
    assert made.manifest.facts == ("Identical items with different labels: 1 text, listed in conflicts.csv.",)
    assert pl.read_csv(made.folder / "conflicts.csv")["id"].to_list() == ["a", "b"]
    honest = written(pets(("dog", "dog", "cat"), text=["same", "same", "other"]), tmp_path / "honest")
    assert honest.manifest.facts == ()


def test_a_listing_runs_in_no_spreadsheet(tmp_path: Path) -> None:
    made = written(pets(text=["=1+1", "=1+1", "other"]), tmp_path / "pets")
    assert pl.read_csv(made.folder / "conflicts.csv")["text"].to_list() == ["'=1+1"] * 2


def test_a_folder_that_is_no_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"but it has no manifest\.json; make one with relook import"):
        imported.read(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(BadInput, match="a manifest was needed, but it is none"):
        imported.read(tmp_path)


def test_a_newer_set_is_refused(tmp_path: Path) -> None:
    made = written(pets(), tmp_path / "pets")
    newer = msgspec.structs.replace(made.manifest, schema=2, software="9.0")
    (made.folder / "manifest.json").write_bytes(msgspec.json.encode(newer))
    with pytest.raises(BadInput, match=r"a set of schema 1 at most was needed, but relook 9\.0 made one of 2"):
        imported.read(made.folder)


def test_changed_bytes_are_noticed(tmp_path: Path) -> None:
    made = written(pets(), tmp_path / "pets")
    table = made.folder / "items.parquet"
    table.write_bytes(table.read_bytes()[:-1] + b"?")
    with pytest.raises(BadInput, match="the bytes that were imported were needed, but others came"):
        verify(made)
    table.unlink()
    with pytest.raises(BadInput, match="were needed, but it is gone"):
        verify(made)


def test_an_item_without_an_image_shows_none(tmp_path: Path) -> None:
    made = written(pets(files=[[], [], []]), tmp_path / "pets", origin=Origin(root=tmp_path))
    assert made.manifest.facts == ()
    images = made.dataset().images
    assert images is not None
    assert len(images) == 3
    with pytest.raises(BadInput, match="item 1 was to be shown, but it has no image; leave it out"):
        images[1]
