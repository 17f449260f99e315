"""Data sets of Hugging Face come in as `datasets` saved them; nothing of theirs is run, cached or followed."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image as Pillow

from relook import arrowfiles
from relook.collection import KEPT, NUMBER, Collection
from relook.datasets import huggingface
from relook.datasets.huggingface import collection, from_hub
from relook.errors import BadInput, MissingExtra
from relook.imported import verify, write
from relook.sources import Columns

PETS = ("cat", "dog", "hen")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Keep `datasets` off the network, quiet, and its cache where it is looked for."""
    import datasets

    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    datasets.disable_progress_bars()
    yield
    assert not (tmp_path / "cache").exists()


def image(seed: int, kind: str = "PNG", side: int = 9) -> bytes:
    file = io.BytesIO()
    Pillow.fromarray(np.random.default_rng(seed).integers(0, 256, (side, side), dtype=np.uint8)).save(file, kind)
    return file.getvalue()


def pets(**columns: Any) -> Any:
    """Return a data set with images, classes and text."""
    from datasets import ClassLabel, Dataset, Features, Image, List, Value

    features = {
        "image": Image(),
        "label": ClassLabel(names=list(PETS)),
        "text": Value("string"),
        "seen": List(ClassLabel(names=["paw", "tail"])),
        "age": Value("float32"),
    }
    values = {
        "image": [{"bytes": image(0), "path": "x.png"}, {"bytes": image(1, "JPEG"), "path": None}, None],
        "label": [2, 0, -1],
        "text": ["cluck", None, "woof"],
        "seen": [[0], [1, 0], []],
        "age": [1.5, 2.0, 3.0],
    }
    kept = {name: values[name] for name in values if name not in columns} | {
        name: value for name, (_, value) in columns.items() if value is not None
    }
    features |= {name: feature for name, (feature, _) in columns.items()}
    return Dataset.from_dict(kept, features=Features({name: features[name] for name in kept}))


def labels(found: Collection) -> list[str | None]:
    given = dict(found.answers.select("item", pl.col("label").cast(pl.String)).iter_rows())
    return [given.get(item) for item in range(len(found))]


def folder_of(made: Any, folder: Path, form: str) -> Path:
    """Save a data set in one of the ways that there are."""
    if form == "saved":
        made.save_to_disk(folder / "set")
        return folder / "set"
    (folder / "set").mkdir()
    if form == "parquet":
        made.to_parquet(folder / "set" / "any.parquet")
    elif form == "shards":
        for number in range(len(made)):
            made.select([number]).to_parquet(folder / "set" / f"train-{number:05d}-of-{len(made):05d}.parquet")
    else:
        sink = pa.ipc.new_file if form == "arrow file" else pa.ipc.new_stream
        table = made.with_format("arrow")[:]
        with sink(str(folder / "set" / "any.arrow"), table.schema) as file:
            file.write_table(table)
    return folder / "set"


@pytest.mark.parametrize("form", ["saved", "parquet", "shards", "arrow stream", "arrow file", "memory"])
def test_every_form_holds_the_same(form: str, tmp_path: Path) -> None:
    made = pets()
    found = collection(made if form == "memory" else folder_of(made, tmp_path, form), columns=Columns(numbers=("age",)))
    assert (found.classes, labels(found), found.ids.to_list()) == (PETS, ["hen", "cat", None], ["0", "1", "2"])
    items = found.items.collect()
    assert items["text"].to_list() == ["cluck", None, "woof"]
    assert items[NUMBER + "age"].to_list() == [1.5, 2.0, 3.0]
    assert items[KEPT + "seen"].to_list() == [["paw"], ["tail", "paw"], []]
    assert json.loads(found.form.settings["features"])["label"]["names"] == list(PETS)
    (tmp_path / "out").mkdir()
    made_set, _ = write(found, tmp_path / "out" / "pets")
    verify(made_set)
    names = made_set.items().collect()["files"].to_list()
    assert names == [["00000000.png"], ["00000001.jpeg"], []]
    assert (made_set.root / "00000001.jpeg").read_bytes() == image(1, "JPEG")
    assert write(found, tmp_path / "out" / "pets") == (made_set, False)


def test_a_selection_in_memory_is_that_selection(tmp_path: Path) -> None:
    found = collection(pets().select([2, 0]))
    assert labels(found) == [None, "hen"]
    (tmp_path / "out").mkdir()
    made, _ = write(found, tmp_path / "out" / "pets")
    assert made.items().collect()["files"].to_list() == [[], ["00000001.png"]]


@pytest.mark.parametrize("form", ["saved", "memory", "files", "folders"])
def test_splits_are_kept(form: str, tmp_path: Path) -> None:
    from datasets import DatasetDict

    both = DatasetDict({"train": pets(), "test": pets().select([0])})
    source: Any = both
    if form == "saved":
        both.save_to_disk(tmp_path / "set")
        source = tmp_path / "set"
    elif form != "memory":
        source = tmp_path / "set"
        for name, part in both.items():
            place = source / f"{name}-00000-of-00001.parquet" if form == "files" else source / name / "rows.parquet"
            place.parent.mkdir(parents=True, exist_ok=True)
            part.to_parquet(place)
    found = collection(source)
    assert found.items.collect()["split"].to_list() == ["train"] * 3 + ["test"]
    (tmp_path / "out").mkdir()
    made, _ = write(found, tmp_path / "out" / "pets")
    assert made.items("test").collect()["files"].to_list() == [["00000003.png"]]


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train.parquet", "train"),
        ("data/my-dev-set.parquet", "validation"),
        ("valid/x.parquet", "validation"),
        ("extra-00000-of-00002.parquet", "extra"),
        ("contest.parquet", None),
    ],
)
def test_names_of_files_tell_splits(name: str, split: str | None) -> None:
    assert huggingface._split_of(Path(name)) == split


def test_a_list_of_classes_is_a_question_or_answers_of_a_list_of_people(tmp_path: Path) -> None:
    from datasets import List, Value

    made = pets(
        who=(List(Value("string")), [["Ada"], ["Ada", "Bo"], ["Bo"]]),
        id=(Value("string"), ["a", "b", "c"]),
        seen=(pets().features["seen"], [[0], [1, 0], [1]]),
    ).remove_columns("label")
    with pytest.raises(
        BadInput, match="one class an item was needed, but column seen holds lists of them; ask for one"
    ):
        collection(made)
    asked = collection(made, columns=Columns(question="tail"))
    assert (asked.classes, labels(asked)) == (("no", "yes"), ["no", "yes", "yes"])
    people = collection(made, columns=Columns(label="seen", annotator="who"))
    assert people.answers.select("item", "annotator", pl.col("label").cast(pl.String)).rows() == [
        (0, "Ada", "paw"),
        (1, "Ada", "tail"),
        (1, "Bo", "paw"),
        (2, "Bo", "tail"),
    ]
    (tmp_path / "out").mkdir()
    assert len(write(people, tmp_path / "out" / "pets")[0]) == 3
    with pytest.raises(BadInput, match="one column whose classes include 'ear' was needed for the question, but none"):
        collection(made, columns=Columns(question="ear"))
    short = made.remove_columns("who").add_column("who", [["Ada"], ["Bo"], ["Bo"]])
    with pytest.raises(BadInput, match="item 1: an annotator for each class was needed, but who has another number"):
        collection(short, columns=Columns(label="seen", annotator="who"))


def test_rows_that_are_answers_have_no_images_of_their_own() -> None:
    from datasets import Value

    made = pets(worker=(Value("string"), ["Ada", "Bo", "Bo"]), id=(Value("string"), ["a", "a", "b"]))
    with pytest.raises(BadInput, match="images of an item a row were needed, but 3 rows tell of 2 items; save each"):
        collection(made.remove_columns("text"))


def test_several_image_columns_are_views(tmp_path: Path) -> None:
    from datasets import Image, List

    made = pets(
        side=(Image(), [{"bytes": image(5), "path": None}] * 3),
        more=(List(Image()), [[{"bytes": image(number), "path": None} for number in range(6)]] * 3),
    )
    (tmp_path / "out").mkdir()
    chosen = collection(made, columns=Columns(files=("side", "image")))
    names = write(chosen, tmp_path / "out" / "two")[0].items().collect()["files"].to_list()
    assert names[0] == ["00000000-1.png", "00000000-2.png"]
    assert names[2] == ["00000002.png"]
    every = write(collection(made), tmp_path / "out" / "all")[0].items().collect()["files"].to_list()
    assert [len(views) for views in every] == [8, 8, 7]
    made = made.add_column("again", made.with_format("arrow")[:]["side"].to_pylist(), feature=Image())
    with pytest.raises(BadInput, match="dataset, item 0: at most 8 images were needed, but 9 came; leave some of them"):
        write(collection(made), tmp_path / "out" / "many")


def test_paths_are_followed_in_memory_only(tmp_path: Path) -> None:
    from datasets import Image

    (tmp_path / "a.png").write_bytes(image(3))
    made = pets(image=(Image(), [{"bytes": None, "path": str(tmp_path / "a.png")}, None, None]))
    (tmp_path / "out").mkdir()
    found, _ = write(collection(made), tmp_path / "out" / "pets")
    assert (found.root / "00000000.png").read_bytes() == image(3)
    table = made.with_format("arrow")[:]
    pq.write_table(table, tmp_path / "sly.parquet")
    with pytest.raises(BadInput, match="the bytes of an image were needed in column image, but only its path came"):
        write(collection(tmp_path / "sly.parquet"), tmp_path / "out" / "sly")


def test_images_that_are_none_are_refused(tmp_path: Path) -> None:
    from datasets import Image

    made = pets(image=(Image(), [{"bytes": b"GIF89a no", "path": None}, None, None]))
    (tmp_path / "out").mkdir()
    with pytest.raises(BadInput, match="dataset, item 0"):
        write(collection(made), tmp_path / "out" / "pets")


def test_features_of_a_page_are_read(tmp_path: Path) -> None:
    pl.DataFrame({"id": ["a", "b"], "label": [1, 0], "given": [0, None]}).write_parquet(tmp_path / "train.parquet")
    features = [{"name": "id", "dtype": "string"}] + [
        {"name": name, "dtype": {"class_label": {"names": {"0": "cat", "1": "dog"}}}} for name in ("label", "given")
    ]
    (tmp_path / "README.md").write_text(f"---\ndataset_info: {json.dumps({'features': features})}\n---\n\nPets.\n")
    found = collection(tmp_path, columns=Columns(label="label"))
    assert (found.classes, labels(found)) == (("cat", "dog"), ["dog", "cat"])
    (tmp_path / "README.md").write_text("---\na: [\n---\n")
    with pytest.raises(BadInput, match="a head in YAML was needed between its lines of ---, but it is none; mend it"):
        collection(tmp_path)


def test_a_page_in_the_hubs_words(tmp_path: Path) -> None:
    page = """---
license: mit
dataset_info:
  features:
  - name: image
    dtype: image
  - name: seen
    sequence:
      class_label:
        names:
          '0': paw
          '1': tail
---
"""
    (tmp_path / "README.md").write_text(page)
    from relook.features import of_page

    assert of_page(tmp_path / "README.md") == {
        "image": {"_type": "Image"},
        "seen": {"_type": "List", "feature": {"_type": "ClassLabel", "names": ["paw", "tail"]}},
    }


def test_columns_that_are_of_no_use_are_told(tmp_path: Path) -> None:
    table = pa.table({"label": ["a", "b"], "box": pa.array([{"x": 1}, {"x": 2}]), "raw": pa.array([b"x", b"y"])})
    pq.write_table(table, tmp_path / "x.parquet")
    found = collection(tmp_path / "x.parquet")
    assert found.facts[-1] == "Columns that are no text, numbers or images are left out: box, raw."
    assert found.content == "names"


# What is refused.


def stream(table: pa.Table, path: Path, **options: Any) -> Path:
    with pa.ipc.new_stream(str(path), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as file:
        file.write_table(table)
    return path


class Sly(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """A type whose making, when a file is read, is code."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "sly")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, serialized: Any) -> "Sly":
        raise AssertionError


@pytest.mark.parametrize("kind", ["arrow", "parquet", "memory"])
def test_extension_types_are_refused_before_they_are_made(kind: str, tmp_path: Path) -> None:
    table = pa.table({"label": ["a"], "sly": pa.ExtensionArray.from_storage(Sly(), pa.array([1]))})
    path = tmp_path / f"x.{kind}"
    if kind == "memory":
        from datasets import Array2D, Dataset, Features, Value

        features = Features({"label": Value("string"), "square": Array2D((1, 1), "int64")})
        source: Any = Dataset.from_dict({"label": ["a"], "square": [[[1]]]}, features=features)
        message = "text, numbers and images were needed, but column square is of an extension type; remove the column"
    else:
        stream(table, path) if kind == "arrow" else pq.write_table(table, path)
        source = path
        message = {
            "arrow": "but it has one of an extension type, which is not opened; save it without that column",
            "parquet": "but it holds an extension type of arrow, which is not opened; write text",
        }[kind]
    pa.register_extension_type(Sly())
    try:
        with pytest.raises(BadInput, match=message):
            collection(source)
    finally:
        pa.unregister_extension_type("sly")


def test_arrow_files_that_are_packed_or_not_plain(tmp_path: Path) -> None:
    table = pa.table({"label": ["a"] * 1000})
    with pytest.raises(BadInput, match="rows as datasets saves them were needed, not packed and without dictionaries"):
        collection(stream(table, tmp_path / "a.arrow", compression="zstd"))
    coded = pa.table({"label": pa.array(["a"]).dictionary_encode()})
    with pytest.raises(BadInput, match="not packed and without dictionaries, but others came"):
        collection(stream(coded, tmp_path / "b.arrow"))
    with pytest.raises(
        BadInput, match="as many rows as it has room for were needed, but it claims more; save it again"
    ):
        collection(stream(pa.table({"label": pa.nulls(10**8)}), tmp_path / "c.arrow"))
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])
    with pytest.raises(BadInput, match="at most 10,000 columns of different names were needed, but 2 came; save fewer"):
        collection(stream(twice, tmp_path / "d.arrow"))
    with pa.OSFile(str(tmp_path / "e.arrow"), "wb") as sink:
        sink.write(table.to_batches()[0].serialize())
    with pytest.raises(BadInput, match="an arrow file was needed, but its first part is no schema; save the set again"):
        collection(tmp_path / "e.arrow")
    (tmp_path / "f.arrow").write_bytes(b"no arrow at all")
    with pytest.raises(BadInput, match=r"f\.arrow: a file of datasets was needed, but it cannot be read"):
        collection(tmp_path / "f.arrow")


def test_images_in_parquet_have_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrowfiles, "IMAGE_MOST", 100)
    pets().to_parquet(tmp_path / "x.parquet")
    (tmp_path / "out").mkdir()
    with pytest.raises(BadInput, match="images of at most 0 MB were needed in column image, but one of 0 MB came"):
        write(collection(tmp_path / "x.parquet"), tmp_path / "out" / "pets")


def test_features_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    def with_features(features: Any, **columns: Any) -> Path:
        told = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
        return stream(pa.table(columns).replace_schema_metadata(told), tmp_path / "x.arrow")

    classes = {"_type": "ClassLabel", "names": ["a", "b"]}
    with pytest.raises(BadInput, match="a class was needed in column label, 0 to 1, but 2 came; save the set with all"):
        collection(with_features({"label": classes}, label=[0, 2]))
    with pytest.raises(BadInput, match="item 0: a class was needed in column seen, 0 to 1, but -2 came"):
        collection(with_features({"seen": [classes]}, seen=[[0, -2]]), columns=Columns(question="a"))
    with pytest.raises(
        BadInput, match="numbers of classes were needed in column label, as its features say, but it is"
    ):
        collection(with_features({"label": classes}, label=["a"]))
    for names in (None, [], [1], "ab"):
        with pytest.raises(BadInput, match="names of classes were needed in the features of column label, but"):
            collection(with_features({"label": classes | {"names": names}}, label=[0]))
    with pytest.raises(BadInput, match="features by the names of columns were needed, but 7 came; save it again"):
        collection(with_features(7, label=[0]))
    path = stream(pa.table({"label": [0]}).replace_schema_metadata({b"huggingface": b"{"}), tmp_path / "x.arrow")
    with pytest.raises(BadInput, match=r"its schema: a record in JSON was needed, but it is none"):
        collection(path)


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a folder of a data set was needed, but there is none of this name; check the"):
        collection(tmp_path / "gone")
    with pytest.raises(BadInput, match="files of parquet or arrow, were needed, but it holds none; save it with"):
        collection(tmp_path)
    pets().save_to_disk(tmp_path / "set")
    (tmp_path / "set" / "state.json").write_text("{}")
    with pytest.raises(BadInput, match=r"state\.json: names of files were needed, but None came; save it again"):
        collection(tmp_path / "set")
    (tmp_path / "set" / "state.json").write_text('{"_data_files": [{"filename": "../../x.arrow"}]}')
    with pytest.raises(BadInput, match=r"paths that stay in the folder were needed, but '../../x\.arrow' leads"):
        collection(tmp_path / "set")
    (tmp_path / "set" / "dataset_dict.json").write_text('{"splits": []}')
    with pytest.raises(
        BadInput, match=r"dataset_dict\.json: names of splits were needed, but \[\] came; save it again"
    ):
        collection(tmp_path / "set")
    (tmp_path / "set" / "dataset_dict.json").write_text('{"splits": ["train"]}')
    with pytest.raises(BadInput, match="the record that datasets saves beside its files was needed, but it is gone"):
        collection(tmp_path / "set")


def test_splits_with_other_columns_are_refused(tmp_path: Path) -> None:
    from datasets import DatasetDict

    made = DatasetDict({"train": pets(), "test": pets().remove_columns("text")})
    with pytest.raises(BadInput, match="dataset, split test: the columns of dataset, split train were needed in every"):
        collection(made)


def test_what_is_no_data_set_is_refused() -> None:
    with pytest.raises(BadInput, match=r"a path, a datasets.Dataset or a DatasetDict was needed, but list came; load"):
        collection([1])
    with pytest.raises(BadInput, match="but IterableDataset came"):
        collection(pets().to_iterable_dataset())


# Code, the Hub, and what is not installed.


def test_nothing_is_unpickled_or_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder_of(pets(), tmp_path, "saved")
    (path / "set.py").write_text("raise SystemExit")
    collection(path)
    events: list[str] = []
    watched = ("pickle.find_class", "exec", "os.system", "subprocess.Popen", "socket.connect")
    heard = [True]
    sys.addaudithook(lambda event, _: events.append(event) if heard and event in watched else None)
    collection(path)
    collection(path / "data-00000-of-00001.arrow")
    collection(pets().select([0, 1]))
    heard.clear()
    assert events == []


def test_the_hub_is_asked_only_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def load(*names: Any, **more: Any) -> Any:
        asked.append((names, more))
        return pets()

    monkeypatch.setattr("datasets.load_dataset", load)
    assert labels(from_hub("owner/pets")) == ["hen", "cat", None]
    assert asked == [(("owner/pets",), {})]


def test_a_hub_that_is_not_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Any:
        raise ConnectionError("no route")

    monkeypatch.setattr("datasets.load_dataset", load)
    with pytest.raises(BadInput, match=r"owner/pets: a data set of the Hub was needed, but it cannot be loaded \(no"):
        from_hub("owner/pets")


def test_without_the_extra_a_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.__version__", "3.6.0")
    with pytest.raises(
        MissingExtra, match=r"datasets 4 or later was needed, which runs no code of data sets, but 3\.6"
    ):
        from_hub("owner/pets")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match="datasets was needed for the Hub, but it is not installed"):
        from_hub("owner/pets")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"pyarrow was needed to read their files, .* pip install 'relook\[hf\]'"):
        collection(tmp_path)


def test_text_that_is_none_and_answers_with_nothing_beside_them(tmp_path: Path) -> None:
    pq.write_table(pa.table({"label": ["a"], "text": [["x"]]}), tmp_path / "x.parquet")
    with pytest.raises(
        BadInput, match=r"text was needed in column text, but it is List.String.; name another with --text"
    ):
        collection(tmp_path / "x.parquet")
    pq.write_table(pa.table({"id": ["a", "a"], "worker": ["Ada", "Bo"], "label": ["x", "y"]}), tmp_path / "x.parquet")
    assert collection(tmp_path / "x.parquet").labels().given.tolist() == [[1, 1]]
