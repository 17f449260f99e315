"""What leaves can come back: import(export(x)) == x for every pair that carries the content."""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook import exports
from relook.cleaned import Cleaned, cleaned
from relook.collection import GIVEN, KEPT, Collection
from relook.datasets import arrays, table
from relook.errors import BadInput
from relook.evidence import evidence
from relook.sources import Columns
from tests.cleanings import (
    NAMES,
    PEOPLE,
    campaign_on,
    content,
    scripts,
    tables,
    with_answers,
    with_final,
)
from tests.laws import LAW, catches

Answers = Sequence[tuple[int, int]]
Write = Callable[..., None]
SAID = Columns(classes=NAMES)
WIDE = Columns(label="label", annotator="rater_*", classes=NAMES)


def back(found: Cleaned, name: str, *, form: str, columns: Columns = SAID, write: Write = exports.write) -> Collection:
    """Write a set out and read what was written."""
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder, name)
        write(found, to, form=form)
        read = (arrays if to.suffix in (".npy", ".npz") else table).collection(to, columns=columns)
        return msgspec.structs.replace(read, items=read.items.collect().lazy())


def read_as(frame: pl.DataFrame, name: str, columns: Columns) -> Collection:
    """Read a table from a file of some kind, as a user's would be."""
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder, name)
        if to.suffix == ".parquet":
            frame.write_parquet(to)
        elif to.suffix == ".jsonl":
            frame.write_ndjson(to)
        else:
            from relook.cells import write_csv

            write_csv(frame, to, separator="\t" if to.suffix == ".tsv" else ",")
        read = table.collection(to, columns=columns)
        return msgspec.structs.replace(read, items=read.items.collect().lazy())


KINDS = ("pets.csv", "pets.tsv", "pets.jsonl", "pets.parquet")


class TestAsItCame:
    """A table comes back as it left: its own columns cell by cell, and the final labels."""

    def law(self, how: settings, write: Write) -> None:
        @how
        @given(tables(), scripts, st.sampled_from(KINDS), st.sampled_from(KINDS))
        def check(frame: pl.DataFrame, answers: Answers, name: str, to: str) -> None:
            found = campaign_on(read_as(frame, name, SAID), answers)
            own = [KEPT + column for column in frame.columns if column != "label"]
            expected, read = with_final(found), back(found, to, form="source", write=write)
            assert content(read, ["text", *own]) == content(expected, ["text", *own])
            same = found.evidence.final == found.evidence.given
            cells = read.items.select(KEPT + "label").collect()[KEPT + "label"].to_list()
            assert [cell for cell, kept in zip(cells, same, strict=True) if kept] == [
                cell for cell, kept in zip(frame["label"].to_list(), same, strict=True) if kept
            ]

        check()

    def test_holds(self) -> None:
        self.law(settings(LAW, max_examples=150), exports.write)

    def test_given_labels_are_caught(self) -> None:
        def unchanged(found: Cleaned, to: Path, *, form: str) -> None:
            known = msgspec.structs.replace(found.evidence, final=found.evidence.given)
            exports.write(msgspec.structs.replace(found, evidence=known), to, form=form)

        catches(partial(self.law, write=unchanged))


@pytest.mark.parametrize(
    ("label", "columns"),
    [
        (["1.0", "0.0", "", "-1.0"], Columns(question="label", blank="missing", uncertain="missing")),
        (["2", "1", "", "1"], Columns(classes=("ant", "bee", "cow"))),
        (["2.0", "1.0", "", "1.0"], Columns()),
        (["b", "a", "", "a"], Columns(classes=("a", "b", "c"))),
    ],
)
def test_a_label_is_written_as_its_source_writes_it(label: list[str], columns: Columns) -> None:
    frame = pl.DataFrame({"id": ["p", "q", "r", "s"], "label": label})
    found = read_as(frame, "pets.csv", columns)
    known = evidence(found)
    final = np.where(known.final < 0, 0, known.final)
    final[1] = known.final[0]
    made = Cleaned(found=found, evidence=msgspec.structs.replace(known, final=final))
    read = back(made, "pets.csv", form="source", columns=columns)
    assert read.classes == found.classes
    assert read.labels().given.tolist() == final.tolist()
    cells = read.items.select(KEPT + "label").collect()[KEPT + "label"].to_list()
    assert cells[:2] == [label[0], label[0]]


def test_typed_columns_keep_their_types(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [3, 4], "label": [1, 0], "age": [0.5, None], "old": [True, False]})
    frame.write_parquet(tmp_path / "pets.parquet")
    found = table.collection(tmp_path / "pets.parquet")
    exports.write(campaign_on(found, [(0, 0), (1, 0), (2, 0), (3, 0)]), tmp_path / "out.parquet", form="source")
    read = pl.read_parquet(tmp_path / "out.parquet")
    assert read.schema == frame.schema
    assert read["label"].to_list() == [0, 0]
    truth = pl.DataFrame({"id": ["a", "b"], "label": [True, False]})
    truth.write_parquet(tmp_path / "truth.parquet")
    found = table.collection(tmp_path / "truth.parquet", columns=Columns(question="label"))
    exports.write(campaign_on(found, [(0, 0), (1, 0), (2, 0), (3, 0)]), tmp_path / "no.parquet", form="source")
    assert pl.read_parquet(tmp_path / "no.parquet")["label"].to_list() == [False, False]


def test_a_column_that_cannot_hold_a_class_is_refused(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["a"], "label": ["cat"]}, schema_overrides={"label": pl.Enum(["cat"])})
    frame.write_parquet(tmp_path / "p.parquet")
    found = table.collection(tmp_path / "p.parquet", columns=Columns(classes=("cat", "dog")))
    with pytest.raises(BadInput, match="classes that column label can hold were needed, for it is Enum"):
        exports.write(campaign_on(found, []), tmp_path / "out.parquet", form="source")


class TestInTheSameLayout:
    """New answers are added as the old ones are laid out, and come back with them."""

    def law_wide(self, how: settings, write: Write) -> None:
        @how
        @given(tables(people=2), scripts, st.sampled_from(KINDS))
        def check(frame: pl.DataFrame, answers: Answers, name: str) -> None:
            found = campaign_on(read_as(frame, name, WIDE), answers)
            read = back(found, name, form="source", columns=WIDE, write=write)
            expected = content(with_answers(found), [KEPT + "=note"])
            assert untold(content(read, [KEPT + "=note"])) == untold(expected)

        check()

    def test_a_column_an_annotator(self) -> None:
        self.law_wide(settings(LAW, max_examples=100), exports.write)

    def test_answers_that_are_left_out_are_caught(self) -> None:
        def without(found: Cleaned, to: Path, *, form: str) -> None:
            exports.write(cleaned(found.found), to, form=form)

        catches(partial(self.law_wide, write=without))

    @settings(LAW, max_examples=100)
    @given(tables(), st.data(), scripts, st.sampled_from(KINDS))
    def test_a_column_a_class(self, frame: pl.DataFrame, data: st.DataObject, answers: Answers, name: str) -> None:
        numbers = st.lists(st.integers(0, 3), min_size=len(frame), max_size=len(frame))
        counts = {f"n_{label}": data.draw(numbers) for label in NAMES}
        columns = Columns(label="n_*", classes=NAMES)
        found = campaign_on(
            read_as(frame.drop("label").with_columns(**{k: pl.Series(v) for k, v in counts.items()}), name, columns),
            answers,
        )
        read = back(found, name, form="source", columns=columns)
        assert read.labels().given_counts.tolist() == found.evidence.counts().tolist()
        assert content(read, [KEPT + "=note"])["items"] == content(found.found, [KEPT + "=note"])["items"]

    @settings(LAW, max_examples=100)
    @given(tables(), st.data(), scripts, st.sampled_from(KINDS))
    def test_a_row_an_answer(self, frame: pl.DataFrame, data: st.DataObject, answers: Answers, name: str) -> None:
        rows = []
        for number, (who, text) in enumerate(frame.select("id", "text").rows()):
            for person in data.draw(st.lists(st.sampled_from([GIVEN, *PEOPLE]), min_size=1, unique=True)):
                label = data.draw(st.sampled_from([*NAMES, None]))
                rows.append((who, text, person, label, 1e9 + number / 7, 0.1 * number))
        long = pl.DataFrame(rows, schema=["id", "text", "annotator", "label", "at", "seconds"], orient="row")
        if long["label"].null_count() == len(long):
            return
        found = campaign_on(read_as(long, name, SAID), answers)
        read = back(found, name, form="source")
        assert content(read, ["text"]) == content(with_answers(found), ["text"])


def untold(told: Any) -> Any:
    """Without when and how long, which a column an annotator cannot hold."""
    return {**told, "answers": sorted(row[:4] for row in told["answers"])}
