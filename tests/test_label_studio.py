"""Label Studio's JSON is read as it is written, refused with the task that is wrong, and leaves as it came."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook.collection import GIVEN, KEPT, NUMBER, Collection, Form
from relook.datasets.label_studio import collection
from relook.errors import BadInput
from relook.labelling import ADDRESS, Suggestions, annotated, page, tasks, write
from relook.sources import Columns
from tests.laws import catches

# What labelstud.io/guide/task_format and guide/predictions say of a task, and what the importer of Label Studio checks
# (label_studio/tasks/validation.py): no schema of it is published.
RESULT = {
    "type": "object",
    "required": ["from_name", "to_name", "type", "value"],
    "properties": {
        "from_name": {"type": "string", "minLength": 1},
        "to_name": {"type": "string", "minLength": 1},
        "type": {"const": "choices"},
        "value": {
            "type": "object",
            "required": ["choices"],
            "properties": {"choices": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}},
        },
    },
}
RESULTS = {"type": "array", "items": RESULT}
PERSON = {"type": "object", "required": ["email"], "properties": {"email": {"type": "string"}}}
ANNOTATION = {
    "type": "object",
    "required": ["result"],
    "properties": {
        "id": {"type": ["integer", "string"]},
        "result": RESULTS,
        "completed_by": {"anyOf": [{"type": "integer"}, PERSON]},
        "was_cancelled": {"type": "boolean"},
        "ground_truth": {"type": "boolean"},
        "created_at": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"},
        "lead_time": {"type": "number"},
    },
    "additionalProperties": False,
}
PREDICTION = {
    "type": "object",
    "required": ["result"],
    "properties": {
        "result": RESULTS,
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "model_version": {"type": "string"},
    },
    "additionalProperties": False,
}
TASKS = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["data"],
        "properties": {
            "id": {"type": ["integer", "string"]},
            "data": {"type": "object", "minProperties": 1},
            "annotations": {"type": "array", "items": ANNOTATION},
            "predictions": {"type": "array", "items": PREDICTION},
        },
        "additionalProperties": False,
    },
}


def chosen(*names: str, control: str = "sentiment") -> list[dict[str, Any]]:
    return [{"from_name": control, "to_name": "text", "type": "choices", "id": "x", "value": {"choices": list(names)}}]


def annotation(*names: str, who: object = 1, **more: object) -> dict[str, Any]:
    return {"id": 7, "result": chosen(*names) if names else [], "completed_by": who, "was_cancelled": False, **more}


def task(number: object, *annotations: dict[str, Any], **data: object) -> dict[str, Any]:
    return {"id": number, "data": data or {"text": f"t{number}"}, "annotations": list(annotations), "project": 3}


def saved(made: object, folder: Path, name: str = "export.json", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(json.dumps(made, ensure_ascii=False).encode(encoding))
    return path


def answers(found: Collection, *columns: str) -> list[tuple[Any, ...]]:
    wanted = columns or ("item", "annotator", "label")
    return found.answers.select(pl.col(name).cast(pl.String) if name == "label" else name for name in wanted).rows()


# Reading.


def test_an_export_is_read(tmp_path: Path) -> None:
    first = annotation("pos", who=10, created_at="2021-03-09T22:16:08.728353Z", lead_time=4.288)
    other = annotation("neg", who={"id": 4, "email": "ada@example.org", "first_name": "Ada"}, ground_truth=True)
    gone = annotation("neg", who=11) | {"was_cancelled": True}
    export = [task(5, first, other, gone), task(9, annotation(who=10)), task(12)]
    found = collection(saved(export, tmp_path))
    assert (found.ids.to_list(), found.classes, found.content) == (["5", "9", "12"], ("neg", "pos"), "text")
    assert answers(found) == [(0, "10", "pos"), (0, "ada@example.org", "neg")]
    assert answers(found, "at", "seconds")[0] == (1615328168.728353, 4.288)
    assert found.items.collect()["text"].to_list() == ["t5", "t9", "t12"]
    assert found.form.columns == {"label": "sentiment", "text": "text"}
    assert found.facts == (
        f"{tmp_path}/export.json: ids are the numbers of the tasks.",
        "Annotations that are marked as ground truth, read as any other: 1.",
        "Annotations that were skipped or cancelled: 1.",
        "Annotations in which nothing was chosen: 1.",
    )


def test_the_old_form_is_read(tmp_path: Path) -> None:
    old = {
        "id": 1,
        "data": {"text": "x"},
        "completions": [{"id": 1001, "created_at": 1600000000, "result": chosen("a")}],
    }
    skipped = {"id": 2, "data": {"text": "y"}, "completions": [{"skipped": True, "result": []}]}
    found = collection(saved([old, skipped], tmp_path))
    assert answers(found, "item", "annotator", "label", "at") == [(0, None, "a", 1600000000.0)]


def test_json_min_is_read(tmp_path: Path) -> None:
    row = {"text": "x", "item": "a-1", "id": 5, "sentiment": "pos", "annotator": 1, "annotation_id": 2}
    more = row | {"annotator": 2, "sentiment": "neg", "created_at": "2024-01-31T12:00:00Z", "lead_time": 1.5}
    nothing = {"text": "y", "item": "a-2", "id": 6, "annotator": 1}
    for columns in (Columns(), Columns(label="sentiment")):
        found = collection(saved([row, more, nothing], tmp_path), columns=columns)
        assert found.ids.to_list() == ["a-1", "a-2"]
        assert answers(found, "item", "annotator", "label", "at", "seconds") == [
            (0, "1", "pos", None, None),
            (0, "2", "neg", 1706702400.0, 1.5),
        ]


def test_one_of_several_choices_is_a_question(tmp_path: Path) -> None:
    export = [task(1, annotation("effusion", "nodule")), task(2, annotation("nodule")), task(3, annotation())]
    path = saved(export, tmp_path)
    with pytest.raises(
        BadInput, match=r"entry 0 \(task 1\): one choice an annotation was needed, but effusion, nodule"
    ):
        collection(path)
    with pytest.raises(BadInput, match=r"\(task 3\): a choice was needed for the question effusion, but nothing was"):
        collection(path, columns=Columns(question="effusion"))
    for blank, last in (("no", [(2, "1", "no")]), ("missing", []), ("yes", [(2, "1", "yes")])):
        found = collection(path, columns=Columns(question="effusion", blank=blank))  # type: ignore[arg-type]
        assert found.classes == ("no", "yes")
        assert answers(found) == [(0, "1", "yes"), (1, "1", "no"), *last]


def test_one_of_several_controls_is_named(tmp_path: Path) -> None:
    both = annotation() | {"result": chosen("pos") + chosen("loud", control="tone")}
    path = saved([task(1, both)], tmp_path)
    assert collection(path, columns=Columns(label="tone")).classes == ("loud",)
    with pytest.raises(BadInput, match="choices of one control were needed, but sentiment, tone came; name one with"):
        collection(path)


def test_people_without_a_name_are_counted_where_they_say_no_time(tmp_path: Path) -> None:
    nobody = [annotation("a", who=None), annotation("b", who={}), annotation("a", who=None), annotation("a", who=3)]
    found = collection(saved([task(1, *nobody)], tmp_path))
    assert sorted(answers(found, "annotator", "label", "count"), key=str) == [
        ("3", "a", 1),
        (None, "a", 2),
        (None, "b", 1),
    ]
    assert found.labels().given.tolist() == [[3, 1]]


def test_predictions_are_no_answers_and_are_counted(tmp_path: Path) -> None:
    predicted = task(1, annotation("a")) | {"predictions": [{"result": chosen("b"), "score": 0.4}]}
    found = collection(saved([predicted], tmp_path))
    assert len(found.answers) == 1
    assert found.facts[0] == "Predictions of models, which are no answers: 1."


def test_tasks_that_nobody_has_answered_need_classes(tmp_path: Path) -> None:
    path = saved([{"data": {"text": "x"}}, {"data": {"text": "y"}}], tmp_path)
    found = collection(path, columns=Columns(classes=("a", "b")))
    assert (found.ids.to_list(), len(found.answers)) == (["0", "1"], 0)
    with pytest.raises(BadInput, match="choices of one control were needed, but no annotation came"):
        collection(path)


@pytest.mark.parametrize(
    ("address", "name"),
    [("cat/1.png", "cat/1.png"), ("./cat/1.png", "cat/1.png"), (ADDRESS + "cat/a%20b.png", "cat/a b.png")],
)
def test_paths_of_images_are_files(address: str, name: str, tmp_path: Path) -> None:
    found = collection(saved([task(1, annotation("a"), image=address)], tmp_path))
    assert found.items.collect()["files"].to_list() == [[name]]
    assert found.items.collect()[KEPT + "image"].to_list() == [address]


@pytest.mark.parametrize("address", ["https://example.org/1.png", "/data/upload/1/ab.png", "s3://x/1.png", "data:x"])
def test_addresses_of_images_are_kept_and_told(address: str, tmp_path: Path) -> None:
    found = collection(saved([task(1, annotation("a"), image=address)], tmp_path))
    assert found.content == "names"
    assert found.items.collect()[KEPT + "image"].to_list() == [address]
    assert "Images are at addresses of Label Studio" in found.facts[-1]


def test_data_of_any_kind_are_kept(tmp_path: Path) -> None:
    data_of = {
        "text": "x",
        "n": 3,
        "deep": {"a": [1, None, "ü"]},
        "none": None,
        "flag": True,
        "group": "p1",
        "split": "s",
    }
    found = collection(saved([task(1, annotation("a"), **data_of)], tmp_path), columns=Columns(numbers=("n",)))
    row = found.items.collect().row(0, named=True)
    assert (row["group"], row["split"], row[NUMBER + "n"]) == ("p1", "s", 3.0)
    (again,) = annotated(found)
    assert again["data"] == {key: value for key, value in data_of.items() if value is not None}


ODD: dict[str, Callable[[str], bytes]] = {
    "a mark before": lambda text: text.encode("utf-8-sig"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "escapes": lambda text: json.dumps(json.loads(text)).encode(),
    "CRLF and blanks": lambda text: b"\r\n " + json.dumps(json.loads(text), indent=2).replace("\n", "\r\n").encode(),
}


@pytest.mark.parametrize("what", ODD)
def test_valid_odd_files_are_read(what: str, tmp_path: Path) -> None:
    export = [task(1, annotation("naïve 🐈", who="Ünal")), task("x-2", annotation("\u0001, \u2028 line\nbreak"))]
    (tmp_path / "odd.json").write_bytes(ODD[what](json.dumps(export, ensure_ascii=False)))
    found = collection(tmp_path / "odd.json")
    assert answers(found) == [(0, "Ünal", "naïve 🐈"), (1, "1", "\u0001, \u2028 line\nbreak")]
    assert found.ids.to_list() == ["1", "x-2"]


BAD: dict[str, tuple[object, str]] = {
    "no list": ({"id": 1}, r"export.json: a list of tasks in JSON was needed, but it is none \(Expected `array`"),
    "an empty list": ([], "at least one task was needed, but the list is empty; export all tasks"),
    "a number for a task": ([task(1, annotation("a")), 5], "entry 1: a task was needed, but it is none"),
    "annotations that are none": ([task(1) | {"annotations": 3}], r"entry 0: a task was needed.*\$\.annotations"),
    "two forms": (
        [task(1, annotation("a")), {"x": 1}],
        "entry 1: a task with data was needed, but it has none; export",
    ),
    "other tools": (
        [task(1, {"result": [{"type": "rectanglelabels", "from_name": "r", "value": {}}]})],
        "choices of one control were needed, but only rectanglelabels came",
    ),
    "choices that are none": (
        [task(1, {"result": [{"type": "choices", "from_name": "c", "value": {"choices": "a"}}]})],
        r"entry 0 \(task 1\): a list of choices was needed, but 'a' came; export it again",
    ),
    "somebody": (
        [task(1, annotation("a", who=[1]))],
        r"the number or the address of an annotator was needed, but \[1\]",
    ),
    "some time": ([task(1, annotation("a", created_at="noon"))], "a time was needed in created_at, but 'noon' came"),
    "a person twice": ([task(1, annotation("a"), annotation("b"))], "one answer a person was needed, but 1 gave 2"),
    "ids twice": ([task(1, annotation("a")), task(1)], "ids must differ, but '1' stood in item 0 already"),
    "a path that leads out": (
        [task(1, annotation("a"), image="../x.png")],
        "paths that stay in the folder were needed",
    ),
    "an image that is none": ([task(1, annotation("a"), image=[3])], "the path of an image was needed at image, but 3"),
    "many images": (
        [task(1, annotation("a"), images=[f"{number}.png" for number in range(9)])],
        r"\(task 1\): at most 8 images were needed, but 9 came; leave some out",
    ),
    "two keys in JSON-MIN": (
        [{"id": 1, "a": "x", "b": "y", "annotator": 1}],
        "one key of what was chosen was needed in each row, but a, b came; name it with --label",
    ),
    "a row of JSON-MIN that shows another thing": (
        [{"text": text, "id": 1, "c": "a", "annotator": who} for who, text in enumerate("xy")],
        "entry 1: what .*entry 0 shows was needed for task 1, but it differs; mend one",
    ),
    "a time of JSON-MIN": ([{"id": 1, "c": "a", "annotator": 1, "lead_time": "x"}], "an answer was needed, but it is"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_exports_are_refused(what: str, tmp_path: Path) -> None:
    made, message = BAD[what]
    with pytest.raises(BadInput, match=message):
        collection(saved(made, tmp_path))


def test_columns_that_are_not_there_are_refused(tmp_path: Path) -> None:
    path = saved([task(1, annotation("a"), text="x", n="no number")], tmp_path)
    with pytest.raises(BadInput, match="data with 'gone' were needed, but they have text, n; name another"):
        collection(path, columns=Columns(text="gone"))
    with pytest.raises(BadInput, match="an id was needed in its data, at gone, but there is none; name another"):
        collection(path, columns=Columns(id="gone"))
    with pytest.raises(BadInput, match="a number was needed at n, but there is none; leave it out of them"):
        collection(path, columns=Columns(numbers=("n",)))


def test_what_is_no_json_is_refused(tmp_path: Path) -> None:
    for content in (b"[", b"[" * 100_000, b"\xff\xfe[", b'[{"data": {"a": ' + b"[" * 5000 + b"]" * 5000 + b"}}]"):
        (tmp_path / "x.json").write_bytes(content)
        with pytest.raises(BadInput, match=r"x\.json"):
            collection(tmp_path / "x.json")


# Writing.


def pets(content: str = "text", **columns: object) -> Collection:
    shown: dict[str, dict[str, Any]] = {
        "text": {"text": ["woof", "meow", None]},
        "images": {"files": [["a b.png"], ["b.png"], []]},
        "views": {"files": [["a.png", "b.png"], ["c.png"], []]},
        "numbers": {NUMBER + "age": [1.0, 2.5, 3.0]},
        "names": {},
    }
    items = pl.DataFrame({"id": ["x", "y", "z"], **shown[content], KEPT + "label": ["dog"] * 3, **columns})
    said = {"item": [0, 0, 1], "annotator": [GIVEN, "Ada", GIVEN], "label": ["dog", "cat", "cat"]}
    return Collection(
        source="pets.csv",
        form=Form("csv"),
        classes=("cat", "dog"),
        ids=items["id"],
        items=items.lazy(),
        answers=pl.DataFrame(said),
    )


@pytest.mark.parametrize("content", ["text", "images", "views", "numbers", "names"])
def test_tasks_are_blind_and_what_label_studio_takes(content: str) -> None:
    made = list(tasks(pets(content)))
    jsonschema.validate(made, TASKS)
    assert all(set(one) == {"data"} for one in made)
    assert not any(name in json.dumps(made) for name in ("dog", "cat"))
    key = {"images": "image", "views": "images", "names": "item"}.get(content, content)
    assert key in made[0]["data"]
    assert f'"${key}"' in page(pets(content))


def test_the_given_label_and_a_suggestion_go_along_when_asked_for() -> None:
    probabilities = np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
    made = list(tasks(pets(), given="was", suggestions=Suggestions(probabilities, model="m-1")))
    jsonschema.validate(made, TASKS)
    assert [one["data"]["was"] for one in made] == ["dog", "cat", None]
    (prediction,) = made[0]["predictions"]
    assert (prediction["score"], prediction["model_version"]) == (0.75, "m-1")
    assert prediction["result"][0]["value"] == {"choices": ["dog"]}
    with pytest.raises(BadInput, match=r"suggestions: 3 x 2 probabilities were needed, but \(1, 2\) came; predict"):
        list(tasks(pets(), suggestions=Suggestions(np.ones((1, 2)))))


def test_addresses_of_files_are_of_the_users_choice() -> None:
    assert [one["data"].get("image") for one in tasks(pets("images"))] == [
        ADDRESS + "a%20b.png",
        ADDRESS + "b.png",
        None,
    ]
    assert next(tasks(pets("images"), address="https://x/"))["data"]["image"] == "https://x/a b.png"


def test_final_labels_stand_in_the_data_with_their_rule(tmp_path: Path) -> None:
    made = list(annotated(pets(), final=["dog", None, "cat"], rule="belief"))
    jsonschema.validate(made, TASKS)
    assert [(one["data"]["final"], one["data"]["final_rule"]) for one in made][::2] == [
        ("dog", "belief"),
        ("cat", "belief"),
    ]
    write(made, tmp_path / "out.json")
    assert answers(collection(tmp_path / "out.json")) == [(0, "given", "dog"), (0, "Ada", "cat"), (1, "given", "cat")]
    write([], tmp_path / "none.json")
    assert json.loads((tmp_path / "none.json").read_text()) == []


def test_names_of_classes_are_escaped_on_the_page() -> None:
    import xml.dom.minidom

    names = ('<b>"it\'s" & more</b>', "line\nbreak", *map(str, range(9)))
    found = msgspec.structs.replace(pets(), classes=("cat", "dog", *names))
    read = xml.dom.minidom.parseString(page(found))
    choices = read.getElementsByTagName("Choice")
    assert tuple(choice.getAttribute("value") for choice in choices) == ("cat", "dog", *names)
    assert [choice.getAttribute("hotkey") for choice in choices] == [*"123456789", *[""] * 4]
    with pytest.raises(BadInput, match=r"a name of signs that XML knows was needed, but '.x00' came; rename it"):
        page(msgspec.structs.replace(pets(), classes=("cat", "dog", "\0")))


# What is written is what is read.

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)
WORDS = NAMES.filter(lambda text: text.strip() == text)


@st.composite
def collections(draw: st.DrawFn) -> Collection:
    """Draw what Label Studio's JSON can carry: text or images, people with names, times, and people who are counted."""
    ids = draw(st.lists(WORDS, min_size=1, max_size=4, unique=True))
    classes = tuple(draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)))
    people = st.sampled_from([GIVEN, "Ada", "7", "007", "9" * 5000, "ü@example.org"])
    rows = [
        {"item": item, "annotator": who, "label": draw(st.sampled_from(classes)), "count": 1, **draw(moments())}
        for item in range(len(ids))
        for who in draw(st.lists(people, unique=True, max_size=3))
    ]
    nobody: dict[str, Any] = {"annotator": None, "at": None, "seconds": None}
    rows += [
        {"item": item, "label": label, "count": draw(st.integers(1, 3)), **nobody}
        for item in range(len(ids))
        for label in draw(st.lists(st.sampled_from(classes), unique=True, max_size=2))
    ]
    items: dict[str, Any] = {"id": ids}
    if draw(st.booleans()):
        items["text"] = [draw(NAMES) for _ in ids]
    else:
        items["files"] = [draw(st.lists(st.sampled_from(["a.png", "b/ü c.png", "%41.png"]), max_size=3)) for _ in ids]
    if draw(st.booleans()):
        items["split"] = [draw(st.none() | WORDS) for _ in ids]
    kinds = {"item": pl.UInt32, "annotator": pl.String, "label": pl.String, "count": pl.UInt32}
    table = pl.DataFrame(items, schema_overrides={"split": pl.String, "files": pl.List(pl.String)})
    return Collection(
        source="",
        form=Form("csv"),
        classes=classes,
        ids=table["id"],
        items=table.lazy(),
        answers=pl.DataFrame(rows, schema=kinds | {"at": pl.Float64, "seconds": pl.Float64}),
    )


@st.composite
def moments(draw: st.DrawFn) -> dict[str, float | None]:
    at = draw(st.none() | st.integers(0, 4 * 10**15).map(lambda micro: round(micro / 1e6, 6)))
    return {"at": at, "seconds": draw(st.none() | st.floats(0, 1e6))}


def said(found: Collection) -> list[tuple[Any, ...]]:
    """Return who said what, in one order, whatever columns there are."""
    table = found.answers.with_columns(pl.col("annotator", "label").cast(pl.String))
    for name, default in (("count", 1), ("at", None), ("seconds", None)):
        if name not in table.columns:
            table = table.with_columns(pl.lit(default).alias(name))
    return sorted(table.select("item", "annotator", "label", "count", "at", "seconds").rows(), key=repr)


def same(one: Collection, other: Collection) -> bool:
    left, right = one.items.collect(), other.items.collect()
    wanted = [name for name in left.columns if not name.startswith(KEPT)]
    for name in wanted:
        there = right[name].to_list() if name in right.columns else [None] * len(right)
        if name == "files":
            there = [names or [] for names in there]
        if left[name].to_list() != there:
            return False
    return said(one) == said(other) and one.classes == other.classes


def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("law")

    @given(collections())
    def law(found: Collection) -> None:
        made = list(annotated(found))
        jsonschema.validate(made, TASKS)
        write(made, folder / "a.json")
        read = collection(folder / "a.json", columns=Columns(classes=found.classes))
        assert same(found, read)
        write(annotated(read), folder / "b.json")
        again = collection(folder / "b.json", columns=Columns(classes=found.classes))
        assert same(read, again)
        assert again.items.collect().equals(read.items.collect())

    law()


def test_the_law_can_fail(tmp_path: Path) -> None:
    """A writer that forgets who answered is caught."""

    def law(setting: settings) -> None:
        @setting
        @given(collections())
        def forgetful(found: Collection) -> None:
            made = [one | {"annotations": one["annotations"][1:]} for one in annotated(found)]
            write(made, tmp_path / "a.json")
            assert same(found, collection(tmp_path / "a.json", columns=Columns(classes=found.classes)))

        forgetful()

    catches(law)
