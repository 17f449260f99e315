"""Others open what leaves: pandas, polars, Hugging Face, cleanlab and crowd-kit; and folders hold the images."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest
from PIL import Image

from relook import exports, imported
from relook.campaign import Campaign
from relook.cleaned import Cleaned, cleaned
from relook.collection import GIVEN
from relook.datasets import folder, table
from relook.errors import BadInput
from relook.events import Event
from relook.exports.folders import safe
from relook.imported import Imported, Origin
from relook.policies import named
from relook.sources import Columns
from relook.streams import SUFFIXES
from relook.types import Posteriors
from tests.cleanings import NAMES, campaign_on, in_memory

PLACES = ("cat/1.png", "dog/1.png", "dog/2.png", "dog/sub/3.png")


@pytest.fixture
def texts() -> Cleaned:
    """Three texts, of which one was relabelled."""
    frame = pl.DataFrame(
        {"id": ["a", "=b", "c"], "label": ["cat", "dog", None], "text": ["x", "-1+2", "z\n"], "=note": ["1", "2", "3"]}
    )
    found = in_memory(frame)
    answers = [(who, 0) for who in range(4)] * 2
    posteriors = Posteriors(np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]))
    return campaign_on(found, answers, posteriors=posteriors)


@pytest.fixture
def pets(tmp_path: Path) -> Imported:
    return pictured(tmp_path, PLACES)


def pictured(where: Path, places: Sequence[str], **settings: Any) -> Imported:
    """Import a folder of small images, each of a grey of its own."""
    for number, place in enumerate(places):
        (where / "source" / place).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 5), 40 * number, np.uint8)).save(where / "source" / place)
    found = folder.collection(where / "source", **settings)
    return imported.write(found, where / "set", origin=Origin(root=where / "source"))[0]


def relabelled(made: Imported, final: Sequence[int]) -> list[Event]:
    """The events of a campaign after which the items have these labels."""
    campaign = Campaign(made.dataset().given, named("random"), budget=3 * len(final))
    for who in ("Ada", "Bo", "Cy"):
        while (lease := campaign.ask(who, campaign.ledger.now)) is not None:
            campaign.tell(lease, final[lease.item], campaign.ledger.now)
    assert campaign.final().tolist() == list(final)
    return campaign.events


def test_pandas_opens_tables(texts: Cleaned, tmp_path: Path) -> None:
    exports.write(texts, tmp_path / "items.parquet", form="items")
    read = pd.read_parquet(tmp_path / "items.parquet")
    assert read["id"].tolist() == ["a", "=b", "c"]
    assert [str(name) for name in read["final"]] == [str(name) for name in texts.labels(texts.evidence.final)]
    assert read["count:cat"].sum() == texts.evidence.counts()[:, 0].sum()
    exports.write(texts, tmp_path / "items.csv", form="items")
    plain = pd.read_csv(tmp_path / "items.csv")
    assert plain["belief:cat"].to_numpy() == pytest.approx(read["belief:cat"].to_numpy(), abs=1e-6)
    exports.write(texts, tmp_path / "answers.jsonl", form="answers")
    assert len(pd.read_json(tmp_path / "answers.jsonl", lines=True)) == len(texts.evidence.answers)


def test_polars_opens_tables(texts: Cleaned, tmp_path: Path) -> None:
    for form in ("items", "answers", "changes", "cleanlab", "crowd-kit", "source"):
        for suffix in SUFFIXES:
            exports.write(texts, tmp_path / f"{form}{suffix}", form=form)
        lazy = pl.scan_parquet(tmp_path / f"{form}.parquet").collect()
        assert pl.read_ndjson(tmp_path / f"{form}.jsonl").height == lazy.height
        assert pl.read_csv(tmp_path / f"{form}.csv").columns[1:2] == lazy.columns[1:2]
        assert pl.read_csv(tmp_path / f"{form}.tsv", separator="\t").height == lazy.height


def test_cleanlab_takes_the_wide_frame(texts: Cleaned, tmp_path: Path) -> None:
    from cleanlab.multiannotator import get_majority_vote_label

    for suffix in (".csv", ".parquet"):
        exports.write(texts, tmp_path / f"wide{suffix}", form="cleanlab")
        read = pd.read_csv if suffix == ".csv" else pd.read_parquet
        wide = read(tmp_path / f"wide{suffix}").set_index("id").astype("float64")
        assert wide.notna().to_numpy().sum() == texts.evidence.counts().sum()
        votes = get_majority_vote_label(wide.to_numpy(), verbose=False)
        assert votes.tolist() == texts.evidence.counts().argmax(1).tolist()


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.eval")
def test_crowd_kit_takes_the_long_frame(texts: Cleaned, tmp_path: Path) -> None:
    from crowdkit.aggregation import MajorityVote

    exports.write(texts, tmp_path / "long.csv", form="crowd-kit")
    long = pd.read_csv(tmp_path / "long.csv")
    assert list(long.columns) == ["task", "worker", "label"]
    found = MajorityVote().fit_predict(long)
    assert found["a"] == "cat"
    assert set(found.index) == set(long["task"])


def opened(path: Path, tmp_path: Path) -> Any:
    import datasets

    datasets.disable_progress_bars()
    return datasets.load_dataset(str(path), cache_dir=str(tmp_path / "cache"))


def test_hugging_face_opens_tables(texts: Cleaned, tmp_path: Path) -> None:
    split = texts.found.items.with_columns(split=pl.Series(["train", "test", "train"]))
    parted = msgspec.structs.replace(texts, found=msgspec.structs.replace(texts.found, items=split))
    exports.write(parted, tmp_path / "hub", form="huggingface")
    read = opened(tmp_path / "hub", tmp_path)
    assert set(read) == {"train", "test"}
    assert read["train"].features["label"].names == list(NAMES)
    assert read["train"]["id"][:] == ["a", "c"]
    assert read["test"]["text"][:] == ["-1+2"]
    assert read["train"]["label"][:] == [int(number) for number in parted.evidence.final[[0, 2]]]


def test_hugging_face_opens_images(pets: Imported, tmp_path: Path) -> None:
    found = cleaned(pets, events=relabelled(pets, [0, 0, 1, 1]))
    exports.write(found, tmp_path / "hub", form="huggingface")
    read = opened(tmp_path / "hub", tmp_path)["train"]
    assert read["id"][:] == list(PLACES)
    assert read["label"][:] == ["cat", "cat", "dog", "dog"]
    assert read["given"][:] == ["cat", "dog", "dog", "dog"]
    assert [np.asarray(row["image"])[0, 0] for row in read] == [0, 40, 80, 120]
    assert (tmp_path / "hub" / "train" / "dog" / "1.png").samefile(tmp_path / "source" / "dog" / "1.png")


def test_hugging_face_opens_several_images_an_item(pets: Imported, tmp_path: Path) -> None:
    rows = {"id": ["a", "b"], "label": ["cat", "dog"], "front": ["cat/1.png", "dog/1.png"], "side": ["dog/2.png", ""]}
    pl.DataFrame(rows).write_csv(tmp_path / "pairs.csv")
    found = table.collection(tmp_path / "pairs.csv", columns=Columns(files=("front", "side")))
    made, _ = imported.write(found, tmp_path / "pairs", origin=Origin(root=pets.root))
    exports.write(cleaned(made), tmp_path / "hub", form="huggingface")
    read = opened(tmp_path / "hub", tmp_path)["train"]
    assert [len(images) for images in read["images"][:]] == [2, 1]


def test_a_split_that_hugging_face_cannot_name_is_refused(texts: Cleaned, tmp_path: Path) -> None:
    split = texts.found.items.with_columns(split=pl.Series(["a b", "test", "train"]))
    parted = msgspec.structs.replace(texts, found=msgspec.structs.replace(texts.found, items=split))
    with pytest.raises(BadInput, match="names of splits from letters, digits and _ were needed, but 'a b' came"):
        exports.write(parted, tmp_path / "hub", form="huggingface")
    assert not list(tmp_path.iterdir())


class TestFolders:
    """Images lie in the folder of their final class, as links or copies, and come back as the set they were."""

    def test_a_folder_comes_back(self, pets: Imported, tmp_path: Path) -> None:
        exports.write(cleaned(pets), tmp_path / "out", form="source")
        read = folder.collection(tmp_path / "out")
        assert read.ids.to_list() == list(PLACES)
        assert read.classes == ("cat", "dog")
        assert read.labels().given.tolist() == pets.dataset().given.given.tolist()

    def test_splits_come_back(self, tmp_path: Path) -> None:
        places = ("test/cat/1.png", "train/cat/1.png", "train/dog/1.png")
        made = pictured(tmp_path, places)
        exports.write(cleaned(made, events=relabelled(made, [1, 0, 1])), tmp_path / "out", form="source")
        read = folder.collection(tmp_path / "out")
        assert read.ids.to_list() == ["test/dog/1.png", "train/cat/1.png", "train/dog/1.png"]
        assert read.items.collect()["split"].to_list() == ["test", "train", "train"]

    def test_a_relabelled_image_moves_beside_its_namesake(self, pets: Imported, tmp_path: Path) -> None:
        exports.write(cleaned(pets, events=relabelled(pets, [0, 0, 0, 1])), tmp_path / "out", form="folder")
        files = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.png"))
        assert files == ["cat/1.png", "cat/2.png", "cat/dog_1.png", "dog/sub/3.png"]
        assert (tmp_path / "out" / "cat" / "dog_1.png").read_bytes() == (tmp_path / "source/dog/1.png").read_bytes()

    def test_names_that_cannot_be_told_apart_are_refused(self, tmp_path: Path) -> None:
        made = pictured(tmp_path, ("cat/1.png", "cat/dog_1.png", "dog/1.png"))
        with pytest.raises(BadInput, match="a name of its own was needed for each image, but"):
            exports.write(cleaned(made, events=relabelled(made, [0, 0, 0])), tmp_path / "out", form="folder")
        assert not (tmp_path / "out").exists()

    def test_images_without_a_label_lie_beside_the_folders(self, tmp_path: Path) -> None:
        made = pictured(tmp_path, ("cat/1.png", "2.png"), missing="allowed")
        exports.write(cleaned(made), tmp_path / "out", form="folder")
        assert (tmp_path / "out" / "2.png").is_file()
        assert folder.collection(tmp_path / "out", missing="allowed").ids.to_list() == ["2.png", "cat/1.png"]

    def test_links_take_no_room_and_copies_are_apart(self, pets: Imported, tmp_path: Path) -> None:
        first = cleaned(pets)
        exports.write(first, tmp_path / "links", form="folder")
        exports.write(msgspec.structs.replace(first, files="copy"), tmp_path / "copies", form="folder")
        source = tmp_path / "source" / "cat" / "1.png"
        assert (tmp_path / "links" / "cat" / "1.png").samefile(source)
        assert not (tmp_path / "copies" / "cat" / "1.png").samefile(source)
        assert (tmp_path / "copies" / "cat" / "1.png").read_bytes() == source.read_bytes()

    def test_another_file_system_gets_copies(self, pets: Imported, tmp_path: Path) -> None:
        memory = Path("/dev/shm")
        if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("file systems: a second one was needed")
        import tempfile

        with tempfile.TemporaryDirectory(dir=memory) as other:
            exports.write(cleaned(pets), Path(other, "out"), form="folder")
            assert Path(other, "out", "cat", "1.png").read_bytes() == (tmp_path / "source/cat/1.png").read_bytes()

    def test_a_link_within_the_folder_is_followed(self, pets: Imported, tmp_path: Path) -> None:
        link = tmp_path / "source" / "dog" / "2.png"
        link.unlink()
        link.symlink_to(tmp_path / "source" / "dog" / "1.png")
        exports.write(cleaned(pets), tmp_path / "out", form="folder")
        assert not (tmp_path / "out" / "dog" / "2.png").is_symlink()
        assert (tmp_path / "out" / "dog" / "2.png").read_bytes() == (tmp_path / "source/dog/1.png").read_bytes()

    def test_an_image_that_is_gone_or_a_link_leaves_nothing_behind(self, pets: Imported, tmp_path: Path) -> None:
        lost = tmp_path / "source" / "dog" / "2.png"
        lost.unlink()
        for _ in range(2):
            with pytest.raises(BadInput, match="the image of an item was needed, but it cannot be taken along"):
                exports.write(cleaned(pets), tmp_path / "out", form="folder")
            assert sorted(path.name for path in tmp_path.iterdir()) == ["set", "source"]
            if not lost.is_symlink():
                lost.symlink_to(tmp_path / "set" / "items.parquet")

    def test_classes_that_would_be_one_folder_are_refused(self, pets: Imported, tmp_path: Path) -> None:
        rows = {"id": ["a", "b"], "label": ["a/b", "a:b"], "path": ["cat/1.png", "dog/1.png"]}
        pl.DataFrame(rows).write_csv(tmp_path / "p.csv")
        made, _ = imported.write(table.collection(tmp_path / "p.csv"), tmp_path / "p", origin=Origin(root=pets.root))
        with pytest.raises(
            BadInput, match="a folder for each class was needed, but a/b, a:b would be one on some systems"
        ):
            exports.write(cleaned(made), tmp_path / "out", form="folder")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("..", "__"),
        (".", "_"),
        ("a/../b", "a_.._b"),
        ("CON.txt", "_CON.txt"),
        ("a. ", "a__"),
        ("\x01", "_"),
        ("é漢", "é漢"),
    ],
)
def test_names_of_folders_are_safe(name: str, expected: str) -> None:
    assert safe(name) == expected


def test_given_is_an_annotator_among_others(texts: Cleaned, tmp_path: Path) -> None:
    exports.write(texts, tmp_path / "wide.csv", form="cleanlab")
    assert GIVEN in pd.read_csv(tmp_path / "wide.csv").columns


def test_tables_of_images_name_their_paths(pets: Imported, tmp_path: Path) -> None:
    found = cleaned(pets, events=relabelled(pets, [0, 0, 1, 1]))
    for form, rows in (("items", PLACES), ("changes", PLACES[1:2])):
        exports.write(found, tmp_path / "table.csv", form=form)
        assert pl.read_csv(tmp_path / "table.csv")["path"].to_list() == list(rows)
