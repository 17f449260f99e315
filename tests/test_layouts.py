"""A table in any layout becomes the collection that a plain reading of it gives, and what is unclear is refused."""

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook import layouts
from relook.cells import write_csv
from relook.collection import GIVEN, KEPT, NUMBER, Collection
from relook.datasets import table
from relook.errors import BadInput
from relook.sources import COLUMNS, Columns
from tests.laws import LAW, catches

KINDS = ("csv", "tsv", "parquet", "jsonl")


def saved(folder: Path, frame: pl.DataFrame, kind: str) -> Path:
    path = folder / f"x.{kind}"
    if kind == "parquet":
        frame.write_parquet(path)
    elif kind == "jsonl":
        frame.write_ndjson(path)
    else:
        write_csv(frame, path, separator="\t" if kind == "tsv" else ",")
    return path


def read(folder: Path, content: str, /, **said: Any) -> Collection:
    (folder / "x.csv").write_text(content, "utf-8")
    return table.collection(folder / "x.csv", columns=Columns(**said))


def answers(found: Collection) -> list[tuple[Any, ...]]:
    """Return who said what of which item, and the rest."""
    frame = found.answers.with_columns(pl.col("annotator", "label").cast(pl.String))
    return [(found.ids[row[0]], *row[1:]) for row in frame.iter_rows()]


# A row an item.


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_an_item(tmp_path: Path, kind: str) -> None:
    frame = pl.DataFrame(
        {
            "id": ["007", "7", "=1"],
            "label": ["dog", None, "cat"],
            "path": ["a/1.png", "b.png", None],
            "split": ["train", "test", "train"],
            "Patient": ["p1", "p1", "p2"],
            "note": ["x", None, "y"],
        }
    )
    found = table.collection(saved(tmp_path, frame, kind))
    assert (found.ids.to_list(), found.classes) == (["007", "7", "=1"], ("cat", "dog"))
    assert answers(found) == [("007", GIVEN, "dog"), ("=1", GIVEN, "cat")]
    items = found.items.collect()
    assert items["files"].to_list() == [["a/1.png"], ["b.png"], []]
    assert items.select("split", "group").rows() == [("train", "p1"), ("test", "p1"), ("train", "p2")]
    own = items.select(pl.col(f"^{KEPT}.*$").name.map(lambda name: name.removeprefix(KEPT)))
    assert own.equals(frame)
    assert (found.form.kind, found.form.layout) == (kind, "items")
    assert dict(found.form.columns) == {
        "id": "id",
        "label": "label",
        "files": "path",
        "split": "split",
        "group": "Patient",
    }
    assert found.facts[-2:] == (
        f"{tmp_path / 'x'}.{kind}: 1 row without a label.",
        f"{tmp_path / 'x'}.{kind}: 1 item without an image.",
    )


def test_ids_that_are_numbers_are_text(tmp_path: Path) -> None:
    pl.DataFrame({"id": [7, 8], "label": [1, 0]}).write_parquet(tmp_path / "x.parquet")
    found = table.collection(tmp_path / "x.parquet")
    assert (found.ids.to_list(), found.classes) == (["7", "8"], ("0", "1"))
    assert found.items.collect()[f"{KEPT}id"].to_list() == [7, 8]


def test_rows_without_ids_are_numbered(tmp_path: Path) -> None:
    found = read(tmp_path, "label,text\nx,a\ny,b\n")
    assert found.ids.to_list() == ["0", "1"]
    assert f"{tmp_path / 'x.csv'}: no column of ids, so rows are numbered from 0." in found.facts
    assert found.items.collect()["id"].to_list() == ["0", "1"]


def test_columns_are_what_a_user_says(tmp_path: Path) -> None:
    text = "id,label,text,name,breed,words,front,side,part,age,size_1,size_2\n"
    text += "1,x,no,a,pug,hello,f.png,s.png,one,3,0.5,1\n2,y,no,b,pom,bye,g.png,,two,4,1e3,2\n"
    found = read(
        tmp_path,
        text,
        id="name",
        label="breed",
        text="words",
        files=("front", "side"),
        split="part",
        numbers=("age", "size_*"),
    )
    items = found.items.collect()
    assert (found.ids.to_list(), found.classes) == (["a", "b"], ("pom", "pug"))
    assert items["text"].to_list() == ["hello", "bye"]
    assert items["files"].to_list() == [["f.png", "s.png"], ["g.png"]]
    numbers = items.select(pl.col(f"^{NUMBER}.*$"))
    assert numbers.columns == ["number:age", "number:size_1", "number:size_2"]
    assert numbers.rows() == [(3.0, 0.5, 1.0), (4.0, 1000.0, 2.0)]


def test_no_column_of_files_where_a_user_says_none(tmp_path: Path) -> None:
    assert read(tmp_path, "id,label,path\n1,x,../../a\n", files=()).content == "names"


def test_lists_of_files(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["a", "b", "c"], "label": ["x", "y", "x"], "files": [["1.png", "2.png"], [], None]})
    for kind in ("parquet", "jsonl"):
        found = table.collection(saved(tmp_path, frame, kind))
        assert found.items.collect()["files"].to_list() == [["1.png", "2.png"], [], []]


@pytest.mark.parametrize(
    ("cells", "said", "classes", "given"),
    [
        (["1.0", "", "0.0", "10"], {}, ("0", "1", "10"), ["1", None, "0", "10"]),
        (["01", "1", "x", ""], {}, ("01", "1", "x"), ["01", "1", "x", None]),
        (["1", "0", "", "nan"], {"classes": ("cat", "dog")}, ("cat", "dog"), ["dog", "cat", None, None]),
        (["1", "0", "2", ""], {"classes": ("2", "1", "0")}, ("2", "1", "0"), ["1", "0", "2", None]),
        (["-1", "0", "2", ""], {"uncertain": "missing"}, ("0", "2"), [None, "0", "2", None]),
        (["-1", "0", "1", ""], {"classes": ("-1", "0", "1")}, ("-1", "0", "1"), ["-1", "0", "1", None]),
        (["", "", "", ""], {"classes": ("a", "b")}, ("a", "b"), [None] * 4),
        (["ж", "B", "a", ""], {}, ("B", "a", "ж"), ["ж", "B", "a", None]),
    ],
)
def test_labels_mean(tmp_path: Path, cells: Any, said: Any, classes: Any, given: Any) -> None:
    text = "id,label\n" + "".join(f"{row},{cell}\n" for row, cell in enumerate(cells))
    found = read(tmp_path, text, **said)
    told = {item: label for item, _, label in answers(found)}
    assert (found.classes, [told.get(str(row)) for row in range(4)]) == (classes, given)


def test_classes_that_look_alike_are_told(tmp_path: Path) -> None:
    found = read(tmp_path, "id,label\n1,Cat\n2,cat\n3,caf\u00e9\n4,cafe\u0301\n")
    assert len(found.classes) == 4
    assert found.facts[-1].startswith("Careful: ")
    assert found.facts[-1].endswith("are two classes that look like one.")


# A question.


def test_one_column_of_many_is_asked_as_a_question(tmp_path: Path) -> None:
    text = "id,view,effusion\n1,front,1.0\n2,side,\n3,front,-1.0\n4,side,0.0\n5,side,Yes\n"
    found = read(tmp_path, text, question="effusion", blank="no", uncertain="missing")
    assert found.classes == ("no", "yes")
    assert answers(found) == [
        ("1", GIVEN, "yes"),
        ("2", GIVEN, "no"),
        ("4", GIVEN, "no"),
        ("5", GIVEN, "yes"),
    ]
    assert found.facts[-1] == (
        "Question effusion: 2 yes, 2 no, 1 missing; 1 of blank taken as no; 1 of -1 taken as missing."
    )
    assert found.form.settings["question"] == "effusion"
    assert (found.form.settings["yes"], found.form.settings["no"]) == ("1.0", "0.0")


@pytest.mark.parametrize(
    ("values", "said", "given"),
    [
        ([True, False, None], {"blank": "missing"}, ["yes", "no"]),
        ([1.0, 0.0, float("nan")], {"blank": "yes"}, ["yes", "no", "yes"]),
        ([1, -1, 0], {"uncertain": "yes"}, ["yes", "yes", "no"]),
        (["TRUE", "no", "No"], {}, ["yes", "no", "no"]),
    ],
)
def test_yes_and_no_are_written_in_many_ways(tmp_path: Path, values: Any, said: Any, given: Any) -> None:
    pl.DataFrame({"id": ["a", "b", "c"], "q": values}, strict=False).write_parquet(tmp_path / "x.parquet")
    found = table.collection(tmp_path / "x.parquet", columns=Columns(question="q", **said))
    assert [label for _, _, label in answers(found)] == given


# A row an answer, a column an annotator, a column a class.


@pytest.mark.parametrize(
    "heading", ["task,worker,label", "task,annotator,label", "item,annotator,label", "id,worker_id,class"]
)
def test_a_row_an_answer(tmp_path: Path, heading: str) -> None:
    found = read(tmp_path, f"{heading},at,seconds\n2,Ada,x,10,1.5\n1,Ada,y,20,\n2,Bo,,30,2\n2,given,y,,\n")
    assert (found.ids.to_list(), found.form.layout) == (["2", "1"], "answers")
    assert answers(found) == [
        ("2", "Ada", "x", 10.0, 1.5),
        ("1", "Ada", "y", 20.0, None),
        ("2", "given", "y", None, None),
    ]
    assert found.facts[-1] == f"{tmp_path / 'x.csv'}: 3 answers of 2 annotators on 2 items."


def test_moments_are_numbers_or_dates(tmp_path: Path) -> None:
    found = read(tmp_path, "id,worker,label,timestamp\n1,a,x,1970-01-02 00:00:00\n2,a,x,1970-01-01T00:00:01Z\n")
    assert found.answers["at"].to_list() == [86_400.0, 1.0]
    frame = pl.DataFrame({"id": [1], "worker": ["a"], "label": ["x"], "at": ["1970-01-01 00:01"]})
    dated = frame.with_columns(pl.col("at").str.to_datetime())
    assert table.collection(saved(tmp_path, dated, "parquet")).answers["at"].to_list() == [60.0]


def test_answers_tell_of_their_items(tmp_path: Path) -> None:
    text = "id,worker,label,text,split,age\n1,a,x,hello,train,3\n1,b,y,hello,train,3\n2,a,x,bye,test,4\n"
    found = read(tmp_path, text, numbers=("age",))
    assert found.items.collect().rows(named=True) == [
        {"id": "1", "text": "hello", "split": "train", "number:age": 3.0},
        {"id": "2", "text": "bye", "split": "test", "number:age": 4.0},
    ]


def test_a_column_an_annotator(tmp_path: Path) -> None:
    text = "id,label,by_Ada,by_Bo,text\na,x,x,,one\nb,,y,x,two\n"
    found = read(tmp_path, text, annotator="by_*")
    assert sorted(answers(found)) == [("a", "Ada", "x"), ("a", GIVEN, "x"), ("b", "Ada", "y"), ("b", "Bo", "x")]
    assert (found.form.layout, found.content) == ("wide", "text")
    every = read(tmp_path, "item,Ada,Bo\na,0,\nb,1,0\n", annotator="*")
    assert sorted(answers(every)) == [("a", "Ada", "0"), ("b", "Ada", "1"), ("b", "Bo", "0")]


def test_many_annotators_are_read_in_parts(tmp_path: Path) -> None:
    people = [f"p{number}" for number in range(layouts._TOGETHER * 2 + 1)]
    frame = pl.DataFrame({"id": ["a", "b"], **{name: ["x", None] for name in people}})
    found = table.collection(saved(tmp_path, frame, "parquet"), columns=Columns(annotator="p*"))
    assert [row[1] for row in answers(found)] == [name[1:] for name in people]


def test_a_column_a_class(tmp_path: Path) -> None:
    found = read(tmp_path, "id,n_dog,n_cat,text\na,3,0,x\nb,1,48.0,y\n", label="n_*")
    assert (found.classes, found.form.layout) == (("dog", "cat"), "counts")
    assert answers(found) == [("a", None, "dog", 3), ("b", None, "dog", 1), ("b", None, "cat", 48)]
    assert found.labels().given.tolist() == [[3, 0], [1, 48]]
    ordered = read(tmp_path, "id,dog,cat\na,3,0\n", label="*", classes=("cat", "dog"))
    assert ordered.labels().given.tolist() == [[0, 3]]


NAMES = st.text(st.sampled_from("abcé=+' 17"), min_size=1, max_size=4)
CLASSES = st.sampled_from(["x", "y", "a b", "=z", "É"])
SAID = st.dictionaries(st.tuples(NAMES, NAMES), CLASSES, min_size=1, max_size=12)


def law(tried: settings, folder: Path) -> None:
    """Long, wide and counts tell the same of the same answers, in every kind of file."""

    @tried
    @given(SAID, st.sampled_from(KINDS))
    def holds(said: dict[tuple[str, str], str], kind: str) -> None:
        rows = [(item, who, label) for (item, who), label in said.items()]
        long = pl.DataFrame(rows, ["item", "annotator", "label"], orient="row")
        wide = long.with_columns(pl.format("by {}", "annotator").alias("annotator")).pivot(
            "annotator", index="item", values="label"
        )
        counts = long.group_by("item", "label", maintain_order=True).len().pivot("label", index="item", values="len")
        counts = counts.fill_null(0).rename({name: f"n {name}" for name in counts.columns[1:]})
        tables = ((long, COLUMNS), (wide, Columns(annotator="by *")), (counts, Columns(label="n *")))
        found = [table.collection(saved(folder, frame, kind), columns=columns) for frame, columns in tables]
        assert sorted(answers(found[0])) == sorted(rows)
        assert sorted(answers(found[1])) == sorted(rows)
        assert [one.ids.to_list() for one in found] == [list(dict.fromkeys(item for item, _, _ in rows))] * 3
        totals = Counter((item, label) for item, _, label in rows)
        assert {(item, label): count for item, _, label, count in answers(found[2])} == totals

    holds()


def test_every_layout_tells_the_same(tmp_path: Path) -> None:
    law(LAW, tmp_path)


def test_a_planted_layout_that_loses_an_answer_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = layouts._wide
    monkeypatch.setattr(layouts, "_wide", lambda *told: whole(*told)[1:])
    catches(lambda tried: law(tried, tmp_path), error=Exception)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("id,label\n", {}, "at least one row was needed, but there is none below the heading; export again"),
    ("id,breed\na,x\n", {}, "a column of labels .* was needed, but it has id, breed; name it with --label"),
    ("id,label\na,x\n", {"text": "words"}, "a column 'words' was needed for text, but it has id, label; name another"),
    ("id,label\na,x\n", {"files": ("f",)}, "a column 'f' was needed for images, but it has id, label"),
    (
        "id,label\na,x\n",
        {"files": tuple("abcdefghi")},
        "8 columns of images at most were needed, but 9 came; name fewer",
    ),
    ("id,label\na,x\n", {"numbers": ("n*",)}, r"columns like n\* were needed, but it has id, label; mend the pattern"),
    ("id,label\na,x\n", {"annotator": "by *"}, r"columns like by \* were needed, but it has"),
    ("id,label\na,x\na,y\n", {}, r"line 3: ids must differ, but 'a' stood in line 2 already"),
    ("id,label\n,x\n", {}, "line 2: an id was needed, but there is none; fill it, or name another with --id"),
    (
        "id,label\na,\n",
        {},
        "labels were needed, but no row has one; name their column with --label, or the classes that",
    ),
    ("id,label\na,x\n", {"classes": ("y",)}, r"line 2 \(id a\): a class was needed, y, but 'x' came; mend it"),
    (
        "id,label\na,2\n",
        {"classes": ("x", "y")},
        "a class was needed, 0 to 1 as --classes names 2, but 2 came; name all",
    ),
    (
        "id,label\na,-1\nb,1\n",
        {},
        "classes were needed, but 1 of -1 came, which is no label to some and a class to oth",
    ),
    ("id,label\na," + "x" * 1001 + "\n", {}, "labels of 1,000 characters at most were needed, but one of 1,001 came"),
    (
        "id,label\n" + "".join(f"{row},{row}\n" for row in range(50_001)),
        {},
        "50,000 classes at most were needed, but 50,001 different labels came; is it the column of labels",
    ),
    (
        "id,label,path\na,x,../b.png\n",
        {},
        "line 2: a path below the folder of the images was needed in column path, but",
    ),
    ("id,label,path\na,x,/etc/passwd\n", {}, "a path below the folder of the images was needed in column path"),
    ("id,label,path\na,x,C:\\b.png\n", {}, "a path below the folder of the images was needed"),
    ("id,label,path\na,x,http://x/b.png\n", {}, "a path below the folder of the images was needed"),
    (
        "id,label,age\na,x,3\nb,y,\n",
        {"numbers": ("age",)},
        "line 3: a number was needed for each item in column age, but",
    ),
    (
        "id,label,age\na,x,old\n",
        {"numbers": ("age",)},
        "line 2: a number was needed for each item in column age, but 'old' came; mend it, or leave the column out",
    ),
    (
        "id,q\na,1\nb,\n",
        {"question": "q"},
        "column q must hold yes and no, but 1 cell of blank came; say what they are",
    ),
    (
        "id,q\na,1\nb,-1\n",
        {"question": "q"},
        "but 1 cell of -1 came; say what they are taken for: --uncertain yes, no or",
    ),
    (
        "id,q\na,1\nb,maybe\n",
        {"question": "q"},
        r"column q must hold yes and no, 1 and 0, or true and false, but 'maybe' came 1 time; name another",
    ),
    ("id,q\na,1\n", {"question": "r"}, "a column 'r' was needed for the question, but it has id, q"),
    (
        "id,q\na,1\n",
        {"question": "q", "label": "q"},
        "one column of yes and no was needed for --question q, but labels",
    ),
    ("worker,label\nAda,x\n", {}, "a column of items was needed, for each row is an answer of worker, but it has none"),
    (
        "id,worker,label\na,,x\n",
        {},
        "line 2: an item and an annotator were needed for each answer, but column worker is",
    ),
    ("id,worker,label\na,b,x\na,b,y\n", {}, "one answer a person was needed, but b gave 2; keep one of them"),
    (
        "id,worker,label,at\na,b,x,soon\n",
        {},
        "line 2: the time of an answer was needed, but 'soon' came; write seconds",
    ),
    (
        "id,worker,label,seconds\na,b,x,fast\n",
        {},
        "line 2: a number was needed in column seconds, but 'fast' came; mend",
    ),
    (
        "id,worker,label,text\na,b,x,1\na,c,y,2\n",
        {},
        "line 2: one text an item was needed, but the answers about this one",
    ),
    ("id,cat,dog\na,1,\n", {"label": "*"}, "line 2: how many people said dog was needed, but None came; write a whole"),
    ("id,cat,dog\na,1,0.5\n", {"label": "*"}, "line 2: how many people said dog was needed, but '0.5' came"),
    ("id,cat,dog\na,1,-1\n", {"label": "*"}, "line 2: how many people said dog was needed, but '-1' came"),
    (
        "id,cat,dog\na,1,2\n",
        {"label": "*", "classes": ("cat",)},
        "--classes with a name for each of 2 columns of counts",
    ),
]


@pytest.mark.parametrize(("text", "said", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_unclear_is_refused(tmp_path: Path, text: str, said: Any, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as raised:
        read(tmp_path, text, **said)
    assert str(raised.value).startswith(str(tmp_path / "x.csv"))


@pytest.mark.parametrize(
    ("frame", "said", "sentence"),
    [
        (
            {"id": [0.5], "label": ["x"]},
            {},
            "text or whole numbers were needed for ids, but column id is Float64; write",
        ),
        (
            {"id": ["a"], "label": [["x"]]},
            {},
            r"text or whole numbers were needed for labels, but column label is List",
        ),
        (
            {"id": ["a"], "label": ["x"], "image": [b"x"]},
            {},
            "paths of images as text, or one column of lists of them, w",
        ),
        (
            {"id": ["a"], "label": ["x"], "n": [True]},
            {"numbers": ("n",)},
            "numbers were needed in column n, but it is Boolean; leave it out of them",
        ),
        (
            {"id": ["a"], "cat": [[1]]},
            {"label": "*"},
            r"numbers were needed in column cat, but it is List\(Int64\); leave",
        ),
        (
            {"id": ["a"], "label": ["x"], "text": [["a"]]},
            {},
            "text was needed in column text, but it is List",
        ),
        (
            {"id": ["a"], "worker": ["w"], "label": ["x"], "split": [b"a"]},
            {},
            "text was needed in column split",
        ),
        (
            {"id": ["a", "b"], "label": ["x", "y"], "files": [["a.png"], ["b.png", "../c.png"]]},
            {},
            "item 1: a path below the folder of the images was needed in column files",
        ),
        (
            {"id": ["a"], "label": ["x"], "files": [[f"{view}.png" for view in range(9)]]},
            {},
            "item 0: 8 images an item were needed in column files, but",
        ),
    ],
)
def test_kinds_that_do_not_fit_are_refused(tmp_path: Path, frame: Any, said: Any, sentence: str) -> None:
    pl.DataFrame(frame).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(BadInput, match=sentence):
        table.collection(tmp_path / "x.parquet", columns=Columns(**said))


def test_parquet_stays_where_it_is(tmp_path: Path) -> None:
    pl.DataFrame({"id": ["a", "b"], "label": ["x", "y"], "text": ["1", "2"]}).write_parquet(tmp_path / "x.parquet")
    found = table.collection(tmp_path / "x.parquet")
    assert "Parquet SCAN" in found.items.explain()
