"""What goes out to people: what they need, nothing that tells a label, and nothing of theirs written over."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from relook import handouts, imported
from relook.campaign import Campaign
from relook.datasets import folder as folders
from relook.datasets import table
from relook.errors import BadInput
from relook.imported import Imported, Origin
from relook.policies import named
from relook.rng import generator
from tests import desks


def leased(source: Imported, most: int = 5, *, split: str | None = None) -> handouts.Handout:
    campaign = Campaign(source.dataset(split).given, named("random"), budget=50)
    return handouts.of_leases(source, split, leases=handouts.lease(campaign, "Ada", most=most, now=0.0))


def photos(root: Path, *, by_class: bool) -> Imported:
    """Import small pictures, in folders a class or in one folder with a table."""
    from PIL import Image

    root.mkdir()
    for item in range(12):
        place = root / ("cat" if item % 2 else "dog") / f"{item:02d}.png" if by_class else root / f"{item:02d}.png"
        place.parent.mkdir(exist_ok=True)
        pixels = generator(item, "photo").integers(0, 255, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(place)
    if by_class:
        found = folders.collection(root)
    else:
        rows = pl.DataFrame({"path": [f"{item:02d}.png" for item in range(12)], "label": ["dog", "cat"] * 6})
        rows.write_csv(root / "labels.csv")
        found = table.collection(root / "labels.csv")
    made, _ = imported.write(found, root.with_name(f"{root.name}-set"), origin=Origin(root=root))
    return made


def test_a_table_holds_an_id_what_to_look_at_and_an_empty_answer(tmp_path: Path) -> None:
    source, to = desks.pets(tmp_path / "pets"), tmp_path / "tasks.csv"
    given = leased(source)
    assert handouts.write(given, to) == ()
    sheet = pl.read_csv(to)
    assert sheet.columns == ["id", "x", "y", "z", "answer", "lease"]
    assert sheet["id"].to_list() == [desks.IDS[item] for item in given.items]
    assert sheet["answer"].null_count() == 5
    assert sheet["lease"].to_list() == [1, 2, 3, 4, 5]
    np.testing.assert_allclose(sheet["x"], desks.NUMBERS[given.items, 0])


@pytest.mark.parametrize("suffix", ["tsv", "jsonl", "parquet"])
def test_other_tables_hold_the_same(tmp_path: Path, suffix: str) -> None:
    source = desks.pets(tmp_path / "pets")
    given = leased(source, split="train")
    handouts.write(given, tmp_path / f"tasks.{suffix}")
    read = {"tsv": lambda path: pl.read_csv(path, separator="\t"), "jsonl": pl.read_ndjson, "parquet": pl.read_parquet}
    sheet = read[suffix](tmp_path / f"tasks.{suffix}")
    train = source.items("train").select("id").collect()["id"].to_list()
    assert sheet["id"].to_list() == [train[item] for item in given.items]


def test_images_go_out_by_their_paths_or_in_a_folder_of_links(tmp_path: Path) -> None:
    source = photos(tmp_path / "photos", by_class=False)
    given = leased(source)
    handouts.write(given, tmp_path / "tasks.csv")
    paths = pl.read_csv(tmp_path / "tasks.csv")["path"].to_list()
    assert all(Path(path).is_file() for path in paths)
    handouts.write(given, tmp_path / "tasks")
    sheet = pl.read_csv(tmp_path / "tasks" / "tasks.csv")
    assert sheet["id"].to_list() == [f"{item:02d}.png" for item in given.items]
    assert sheet["path"].to_list() == [f"item-{item:06d}.png" for item in given.items]
    first = tmp_path / "tasks" / sheet["path"][0]
    assert first.samefile(tmp_path / "photos" / sheet["id"][0]), "it is a link"
    words = (tmp_path / "tasks" / "answers.txt").read_text().split("\n")
    assert words == ["cat", "dog", "cannot tell", "none of these", ""]


def test_names_that_tell_the_given_label_go_out_as_neutral_ones(tmp_path: Path) -> None:
    source = photos(tmp_path / "photos", by_class=True)
    given = leased(source)
    with pytest.raises(BadInput, match="names that do not tell the given label were needed, but the paths of these"):
        handouts.check(source, tmp_path / "tasks.csv")
    handouts.check(source, tmp_path / "tasks")
    (fact,) = handouts.write(given, tmp_path / "tasks")
    assert fact == "Ids tell the given labels, so items go out under neutral names."
    told = "".join(str(path) for path in (tmp_path / "tasks").iterdir()) + (tmp_path / "tasks/tasks.csv").read_text()
    assert "cat" not in told
    assert "dog" not in told
    assert pl.read_csv(tmp_path / "tasks/tasks.csv")["id"].to_list() == [f"item-{item:06d}" for item in given.items]


def test_label_studio_gets_tasks_and_a_page(tmp_path: Path) -> None:
    source = desks.pets(tmp_path / "pets")
    given = leased(source, 2)
    handouts.write(given, tmp_path / "tasks.json")
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert [task["data"]["lease"] for task in tasks] == [1, 2]
    assert [task["data"]["item"] for task in tasks] == [desks.IDS[item] for item in given.items]
    assert all(set(task["data"]) == {"item", "numbers", "lease"} for task in tasks)
    assert "cannot tell" in (tmp_path / "tasks.xml").read_text()


def test_two_campaigns_that_differ_in_what_is_hidden_hand_out_the_same_bytes(tmp_path: Path) -> None:
    files = []
    for name, shift in (("one", 0), ("other", 1)):
        place = tmp_path / name
        place.mkdir()
        rows = {"id": desks.IDS, "label": [desks.CLASSES[(label + shift) % 3] for label in desks.GIVEN]}
        frame = pl.DataFrame(rows | {"text": [f"text {name}" for name in desks.IDS]})
        frame.write_csv(place / "pets.csv")
        source, _ = imported.write(table.collection(place / "pets.csv"), place / "pets")
        handouts.write(leased(source), place / "tasks.csv")
        files.append((place / "tasks.csv").read_bytes())
    assert files[0] == files[1]


def test_what_somebody_filled_in_is_not_written_over(tmp_path: Path) -> None:
    source, to = desks.pets(tmp_path / "pets"), tmp_path / "tasks.csv"
    handouts.write(leased(source), to)
    handouts.check(source, to)
    desks.fill(to)
    with pytest.raises(BadInput, match="relook did not write this one"):
        handouts.check(source, to)


def test_what_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    source = desks.pets(tmp_path / "pets")
    with pytest.raises(BadInput, match=r"tasks of Label Studio \(.json\) or a folder was needed, but .xlsx came"):
        handouts.check(source, tmp_path / "tasks.xlsx")
    with pytest.raises(BadInput, match="a place outside of"):
        handouts.check(source, tmp_path / "pets" / "tasks.csv")
    with pytest.raises(BadInput, match="items with images were needed for a folder of them, but these are numbers"):
        handouts.write(leased(source), tmp_path / "tasks")


def test_people_hold_what_they_were_handed() -> None:
    from relook.types import Labels

    campaign = Campaign(Labels(np.zeros(4, int), 2), named("random"), budget=5)
    mine = handouts.lease(campaign, "Ada", most=3, now=0.0)
    assert handouts.held(campaign, "Ada") == mine
    assert handouts.held(campaign, "Bo") == []
    assert len(handouts.lease(campaign, "Bo", most=9, now=0.0)) == 1, "one item an annotator at a time"
