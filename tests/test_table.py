"""Labels and probabilities from csv, tsv, parquet and JSON lines: what is read, and what is refused in one sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from relook.datasets import table
from relook.errors import BadInput
from relook.sources import Columns, LabelTable, ProbabilityTable


def csv(folder: Path, text: str, name: str = "x.csv") -> Path:
    (folder / name).write_text(text, "utf-8")
    return folder / name


def labels(folder: Path, text: str, **said: Any) -> LabelTable:
    return table.labels(csv(folder, text), columns=Columns(**said))


def probabilities(folder: Path, text: str, **said: Any) -> ProbabilityTable:
    return table.probabilities(csv(folder, text), columns=Columns(**said))


class TestLabels:
    @pytest.mark.parametrize(
        ("text", "said", "given", "names", "ids"),
        [
            ("label\n1\n0\n", {}, [1, 0], None, None),
            ("id,label\na,1\nb,\n", {}, [1, -1], None, ["a", "b"]),
            ("Path,Given_Label\nx/1.png,dog\nx/2.png,cat\n", {}, [1, 0], ("cat", "dog"), ["x/1.png", "x/2.png"]),
            ("file,breed\na,pug\nb,\nc,nan\n", {"id": "file", "label": "breed"}, [0, -1, -1], ("pug",), list("abc")),
            ("label\n1.0\n\n".replace("\n\n", "\nnan\n"), {}, [1, -1], None, None),
            ("label\n-1\n3\n", {}, [-1, 3], None, None),
            ("id,label\n007,08\n7,1\n", {}, [0, 1], ("08", "1"), ["007", "7"]),
            ('id,label\n"a,b",x\n"c\nd",y\n', {}, [0, 1], ("x", "y"), ["a,b", "c\nd"]),
            ("image,class,score\na,x,1\n", {}, [0], ("x",), ["a"]),
            ("\ufeffid,label\na,x\n", {}, [0], ("x",), ["a"]),
            ("id,label\na,x\nb,y\n\n\n", {}, [0, 1], ("x", "y"), ["a", "b"]),
        ],
    )
    def test_are_read(self, tmp_path: Path, text: str, said: Any, given: Any, names: Any, ids: Any) -> None:
        read = labels(tmp_path, text, **said)
        assert (read.given.tolist(), read.names, read.ids) == (given, names, ids)

    def test_are_read_from_every_kind_of_file(self, tmp_path: Path) -> None:
        frame = pl.DataFrame({"id": ["a", "b", "c"], "label": ["x", None, "y"]})
        frame.write_csv(tmp_path / "x.tsv", separator="\t")
        frame.write_parquet(tmp_path / "x.parquet")
        frame.write_ndjson(tmp_path / "x.jsonl")
        for name in ("x.tsv", "x.parquet", "x.jsonl"):
            read = table.labels(tmp_path / name)
            assert (read.given.tolist(), read.names, read.ids) == ([0, -1, 1], ("x", "y"), ["a", "b", "c"]), name

    @pytest.mark.parametrize(
        ("column", "given", "names"),
        [
            ([2, None, 0], [2, -1, 0], None),
            ([1.0, float("nan"), 0.0], [1, -1, 0], None),
            (pl.Series(["b", "a", None], dtype=pl.Categorical), [1, 0, -1], ("a", "b")),
            ([True, False, None], [1, 0, -1], ("false", "true")),
        ],
    )
    def test_of_parquet_keep_their_types(self, tmp_path: Path, column: Any, given: Any, names: Any) -> None:
        pl.DataFrame({"id": [7, 8, 9], "label": column}).write_parquet(tmp_path / "x.parquet")
        read = table.labels(tmp_path / "x.parquet")
        assert (read.given.tolist(), read.names, read.ids) == (given, names, ["7", "8", "9"])

    def test_say_which_columns_they_are(self, tmp_path: Path) -> None:
        read = labels(tmp_path, "id,label\na,x\n")
        assert read.facts == (f"{tmp_path / 'x.csv'}: labels in column label, ids in column id.",)
        assert read.place(0) == f"{tmp_path / 'x.csv'}, line 2 (id a)"
        assert labels(tmp_path, "label\nx\n").facts == (f"{tmp_path / 'x.csv'}: labels in column label.",)

    @pytest.mark.parametrize(
        ("text", "said", "sentence"),
        [
            (
                "id,breed\na,x\n",
                {},
                r"a column of labels \(label, given, given_label, class\) was needed, but it has id, breed",
            ),
            (
                "id,label,class\na,x,y\n",
                {},
                "one column of labels was needed, but both label and class came; name it with",
            ),
            ("id,label\na,x\n", {"label": "breed"}, "a column 'breed' of labels was needed, but it has id, label"),
            (
                "id,label\na,x\n",
                {"id": "file"},
                "a column 'file' was needed for ids, but it has id, label; name another",
            ),
            ("id,label\na,x\na,y\n", {}, r"line 3 \(id a\): ids must differ, but 'a' was in line 2 already"),
            ("id,label\n,x\nb,y\n", {}, r"line 2 \(id \): an id was needed, but the cell is empty"),
            ("id,label\na,\nb,nan\n", {}, "labels were needed, but every item is unlabelled"),
            ("id,label\n", {}, "at least one label was needed, but the file holds none"),
            (
                "id,label\na,x\nb\nc,y\n",
                {},
                "line 3: 2 cells were needed, as many as the heading has, but 1 came; mend",
            ),
            ("id,label\na,x\nb,y,z\n", {}, "line 3: 2 cells were needed, as many as the heading has, but 3 came"),
            ("id,label\na,x\n\nc,y\n", {}, "line 3: 2 cells were needed, as many as the heading has, but none came"),
            (
                "id,label,label\na,x,y\n",
                {},
                "columns must differ in name, but 'label' comes twice in line 1; rename one",
            ),
            ("id;label\na;x\n", {}, "one column was found, but line 1 has semicolons; export it with commas"),
            ("id\tlabel\na\tx\n", {}, "one column was found, but line 1 has tabs; name it .tsv"),
            ("1\n0\n1\n", {}, "the names of columns were needed in line 1, but 1 came; add a heading"),
            ("0.5,0.5\n", {}, "the names of columns were needed in line 1, but 0.5, 0.5 came"),
        ],
    )
    def test_are_refused(self, tmp_path: Path, text: str, said: Any, sentence: str) -> None:
        with pytest.raises(BadInput, match=sentence) as raised:
            labels(tmp_path, text, **said)
        assert str(raised.value).startswith(str(tmp_path / "x.csv"))
        assert "\n" not in str(raised.value)

    def test_must_be_one_class_an_item(self, tmp_path: Path) -> None:
        pl.DataFrame({"label": [["a", "b"], ["a"]]}).write_parquet(tmp_path / "x.parquet")
        with pytest.raises(BadInput, match=r"column label must hold a class an item, but it is List\(String\)"):
            table.labels(tmp_path / "x.parquet")


class TestAnswers:
    TEXT = "id,annotator,label\na,Ada,cat\nb,Ada,dog\na,Bob,dog\nb,Bob,dog\na,Eve,cat\nc,Eve,\n"

    def test_of_a_long_table_are_gathered_by_item(self, tmp_path: Path) -> None:
        read = labels(tmp_path, self.TEXT)
        assert (read.kind, read.names, read.ids) == ("answers", ("cat", "dog"), ["a", "b", "c"])
        assert read.given.tolist() == [[0, 1, 0], [1, 1, -1], [-1, -1, -1]]
        assert read.facts == (f"{tmp_path / 'x.csv'}: 6 answers of 3 annotators on 3 items.",)

    def test_of_one_person_about_one_item_come_once(self, tmp_path: Path) -> None:
        with pytest.raises(
            BadInput, match="answer 2: one answer a person was needed, but 'Ada' answered 'a' before; keep"
        ):
            labels(tmp_path, "id,worker,label\na,Ada,x\nb,Ada,x\na,Ada,y\n")


class TestProbabilities:
    @pytest.mark.parametrize(
        ("text", "said", "names", "ids"),
        [
            ("cat,dog\n.9,.1\n.2,.8\n", {}, ("cat", "dog"), None),
            ("id,cat,dog\n01,.9,.1\n1,.2,.8\n", {}, ("cat", "dog"), ["01", "1"]),
            ("id,p_0,p_1\na,.9,.1\nb,.2,.8\n", {}, ("0", "1"), ["a", "b"]),
            ("prob_cat,prob_dog,split\n.9,.1,test\n.2,.8,test\n", {}, ("cat", "dog"), None),
            ("0,1\n.9,.1\n.2,.8\n", {}, ("0", "1"), None),
            (",label,cat,dog\n0,cat,.9,.1\n1,cat,.2,.8\n", {}, ("cat", "dog"), None),
            ("cat,note,dog\n.9,x,.1\n.2,y,.8\n", {"classes": ("dog", "cat")}, ("cat", "dog"), None),
            ("cat,dog\n1,0\n0,1\n", {}, ("cat", "dog"), None),
        ],
    )
    def test_are_read(self, tmp_path: Path, text: str, said: Any, names: Any, ids: Any) -> None:
        read = probabilities(tmp_path, text, **said)
        assert (read.names, read.ids) == (names, ids)
        assert read.values.dtype == np.float64
        assert read.values.round().tolist() == [[1.0, 0.0], [0.0, 1.0]]

    def test_say_what_they_leave_out(self, tmp_path: Path) -> None:
        read = probabilities(tmp_path, "id,label,split,cat,dog\na,cat,x,.9,.1\n")
        assert read.facts == (f"{tmp_path / 'x.csv'}: columns that are no class are left out (label, split).",)
        assert read.place(0) == f"{tmp_path / 'x.csv'}, line 2 (id a)"

    def test_of_pandas_are_joined_by_their_index(self, tmp_path: Path) -> None:
        import pandas as pd

        frame = pd.DataFrame({"cat": [0.9, 0.2], "dog": [0.1, 0.8]}, index=["a", "b"])
        frame.to_parquet(tmp_path / "x.parquet")
        frame.to_csv(tmp_path / "x.csv")
        assert table.probabilities(tmp_path / "x.parquet").ids == ["a", "b"]
        assert table.probabilities(tmp_path / "x.csv").facts[0].endswith("are left out (one without a name).")

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            (
                "id,cat,dog,note\na,.9,.1,good\n",
                "probabilities were needed in column note, but it holds 'good'; take it out",
            ),
            (
                "cat,dog\n.9,.1\n.2,\n",
                "line 3: a probability was needed in column dog, but none came; predict it again",
            ),
            ("id\na\n", "a column a class was needed, but it has none; write one for each class"),
            ("split,label\na,b\n", "a column a class was needed, but it has split, label"),
            ("cat,dog\n", "at least one row of probabilities was needed, but none came; check the export"),
            ("cat\n.9\n", "at least two classes were needed, but one column came"),
        ],
    )
    def test_are_refused(self, tmp_path: Path, text: str, sentence: str) -> None:
        with pytest.raises(BadInput, match=sentence):
            probabilities(tmp_path, text)


@pytest.mark.parametrize("read", [table.labels, table.probabilities, table.collection])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("x.csv", "line 2: text in UTF-8 was needed, but the bytes ff fe 0a came, so it cannot be read; export it"),
        ("x.jsonl", "line 2: text in UTF-8 was needed, but the bytes ff fe 0a came"),
        ("x.parquet", "a parquet file was needed, but it does not start and end as one; write it again"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path, read: Any, name: str, said: str) -> None:
    (tmp_path / name).write_bytes(b"id,label\na,\xff\xfe\n")
    with pytest.raises(BadInput, match=said) as raised:
        read(tmp_path / name)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("read", [table.labels, table.probabilities])
def test_no_file(tmp_path: Path, read: Any) -> None:
    with pytest.raises(BadInput, match="there is none of this name"):
        read(tmp_path / "x.csv")
