"""What leaves can come back: import(export(x)) == x for every pair that carries the content."""

import csv
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook import exports, imported
from relook.campaign import Campaign
from relook.cells import TRIGGERS, write_csv
from relook.cleaned import Cleaned, cleaned
from relook.collection import GIVEN, KEPT, Collection
from relook.datasets import arrays, huggingface, label_studio, table
from relook.errors import BadInput
from relook.events import CANNOT_TELL
from relook.evidence import evidence
from relook.imported import Origin
from relook.policies import named
from relook.sources import Columns
from relook.tables import sheet
from relook.types import Labels, Posteriors
from tests.cleanings import (
    NAMES,
    PEOPLE,
    campaign_on,
    content,
    in_memory,
    scripts,
    tables,
    with_answers,
    with_final,
)
from tests.laws import LAW, catches
from tests.test_label_studio import TASKS

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


class TestTables:
    """Rows an item and rows an answer, for people and for packages about crowds, come back with all they carry."""

    @settings(LAW, max_examples=100)
    @given(tables(), scripts, st.sampled_from(KINDS))
    def test_items_hold_given_and_final(self, frame: pl.DataFrame, answers: Answers, name: str) -> None:
        found = campaign_on(in_memory(frame), answers)
        for label, expected in (("given", found.found), ("final", with_final(found))):
            read = back(found, name, form="items", columns=Columns(label=label, classes=NAMES))
            assert content(read) == content(expected)

    @settings(LAW, max_examples=100)
    @given(tables(), scripts, st.sampled_from(KINDS))
    def test_changes_are_the_rows_that_differ(self, frame: pl.DataFrame, answers: Answers, name: str) -> None:
        found = campaign_on(in_memory(frame), answers)
        known = found.evidence
        with tempfile.TemporaryDirectory() as folder:
            to = Path(folder, name)
            exports.write(found, to, form="changes")
            read = table.collection(to, columns=Columns(label="final", classes=NAMES)) if len(known.changed) else None
        if read is not None:
            assert read.ids.to_list() == known.ids.gather(known.changed).to_list()
            assert read.labels().given.tolist() == known.final[known.changed].tolist()

    @settings(LAW, max_examples=100)
    @given(tables(), scripts, st.sampled_from(KINDS), st.sampled_from([("answers", "id"), ("crowd-kit", "task")]))
    def test_answers_hold_who_said_what(self, frame: pl.DataFrame, answers: Answers, name: str, form: Any) -> None:
        found = campaign_on(in_memory(frame.filter(pl.col("label").is_not_null())), answers)
        read, expected = back(found, name, form=form[0]), content(with_answers(found))
        said = content(read)
        assert sorted(said["ids"]) == sorted(expected["ids"])
        if form[0] == "crowd-kit":
            said, expected = untold(said), untold(expected)
        assert said["answers"] == expected["answers"]

    @settings(LAW, max_examples=100)
    @given(tables(), scripts, st.sampled_from(KINDS))
    def test_a_wide_frame_holds_a_column_an_annotator(self, frame: pl.DataFrame, answers: Answers, name: str) -> None:
        found = campaign_on(in_memory(frame), answers)
        if set(with_answers(found).answers["annotator"].to_list()) == {GIVEN}:
            return  # nobody but `given` is no column an annotator
        read = back(found, name, form="cleanlab", columns=Columns(annotator="*", classes=NAMES))
        assert untold(content(read)) == untold(content(with_answers(found)))

    @settings(LAW, max_examples=100)
    @given(tables(), scripts, st.sampled_from([".npy", ".npz"]))
    def test_arrays_hold_counts_or_labels(self, frame: pl.DataFrame, answers: Answers, suffix: str) -> None:
        found = campaign_on(in_memory(frame), answers)
        counts = back(found, f"counts{suffix}", form="counts", columns=Columns(label="*", classes=NAMES))
        assert counts.labels().given_counts.tolist() == found.evidence.counts().tolist()
        if (found.evidence.final >= 0).any():
            labels = back(found, f"labels{suffix}", form="labels", columns=Columns(classes=NAMES, uncertain="missing"))
            assert labels.labels().given.tolist() == found.evidence.final.tolist()
            assert suffix == ".npy" or labels.ids.to_list() == found.evidence.ids.to_list()

    @settings(LAW, max_examples=100)
    @given(tables(), scripts)
    def test_tasks_hold_all_answers(self, frame: pl.DataFrame, answers: Answers) -> None:
        found = campaign_on(in_memory(frame), answers)
        with tempfile.TemporaryDirectory() as folder:
            exports.write(found, Path(folder, "tasks.json"), form="label-studio")
            made = msgspec.json.decode(Path(folder, "tasks.json").read_bytes())
            read = label_studio.collection(Path(folder, "tasks.json"), columns=SAID)
        jsonschema.validate(made, TASKS)
        assert content(read, ["text"]) == content(with_answers(found), ["text"])
        final = found.labels(found.evidence.final).to_list()
        assert [(task["data"]["final"], task["data"]["final_rule"]) for task in made] == [
            (name, "vote") for name in final
        ]

    @settings(LAW, max_examples=100)
    @given(tables(), scripts)
    def test_a_data_set_of_hugging_face_comes_back(self, frame: pl.DataFrame, answers: Answers) -> None:
        found = campaign_on(in_memory(frame), answers)
        with tempfile.TemporaryDirectory() as folder:
            exports.write(found, Path(folder, "hub"), form="huggingface")
            read = huggingface.collection(Path(folder, "hub"), columns=Columns(label="label", classes=NAMES))
            read = msgspec.structs.replace(read, items=read.items.collect().lazy())
        own = ["text", KEPT + "=note"]
        assert content(read, own) == content(with_final(found), own)


@pytest.mark.parametrize("labels", [["3", "7", "3"], ["dog", "", "cat"]])
def test_an_array_of_labels_leaves_as_it_came(labels: list[str], tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.array(labels if "" in labels else list(map(int, labels))))
    found = arrays.collection(tmp_path / "labels.npy")
    exports.write(cleaned(found), tmp_path / "out.npy", form="source")
    assert np.load(tmp_path / "out.npy").tolist() == np.load(tmp_path / "labels.npy").tolist()
    assert exports.usual(cleaned(found), tmp_path / "out.npy") == "source"


class TestFormulas:
    """No cell of text in a table for people starts as a formula does; numbers stay numbers, and all come back."""

    def law(self, how: settings, write: Write) -> None:
        @how
        @given(tables(), scripts, st.sampled_from(["items", "answers", "changes", "crowd-kit", "cleanlab", "source"]))
        def check(frame: pl.DataFrame, answers: Answers, form: str) -> None:
            found = campaign_on(in_memory(frame), answers)
            with tempfile.TemporaryDirectory() as folder:
                to = Path(folder, "pets.csv")
                write(found, to, form=form)
                with to.open(newline="", encoding="utf-8") as file:
                    cells = [cell for row in csv.reader(file) for cell in row]
            for cell in cells:
                assert not cell.startswith(tuple(TRIGGERS)) or is_number(cell), cell

        check()

    def test_holds(self) -> None:
        self.law(settings(LAW, max_examples=200), exports.write)

    def test_cells_that_are_not_marked_are_caught(self) -> None:
        def bare(found: Cleaned, to: Path, *, form: str) -> None:
            exports.write(found, to, form=form)
            sheet(to).frame.collect().write_csv(to)

        catches(partial(self.law, write=bare))

    @pytest.mark.slow
    def test_ten_thousand_strings(self) -> None:
        texts = np.random.default_rng(14)
        letters = np.array([*"=+-@'\"\t,; \n\uff1d\uff0b\uff0d\uff20abc019.\r"])
        strings = {"".join(letters[texts.integers(0, len(letters), texts.integers(1, 9))]) for _ in range(14_000)}
        some = sorted(strings)[:10_000]
        assert len(some) == 10_000
        frame = pl.DataFrame({"id": some, "label": [NAMES[n % 3] for n in range(10_000)], "text": some[::-1]})
        found = cleaned(in_memory(frame.with_columns(pl.col("id").alias("=note"))))
        for form in ("items", "source"):
            read = back(
                found, "pets.csv", form=form, columns=Columns(label={"items": "given"}.get(form), classes=NAMES)
            )
            assert read.ids.to_list() == some
        assert read.items.select("text").collect()["text"].to_list() == some[::-1]


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    found = in_memory(
        pl.DataFrame({"id": ["a", "b"], "label": ["cat", "dog"], "text": ["x", "y"], "=note": ["-1", "-2"]})
    )
    posteriors = Posteriors(np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1]]))
    known = cleaned(found, posteriors=posteriors)
    ranked = msgspec.structs.replace(known, priority=np.array([-0.5, 0.25]))
    exports.write(ranked, tmp_path / "items.csv", form="items")
    read = pl.read_csv(tmp_path / "items.csv")
    assert read["score"].to_list() == [-0.5, 0.25]
    assert read["rank"].to_list() == [2, 1]
    assert read["belief:cat"].dtype == pl.Float64
    exports.write(known, tmp_path / "pets.csv", form="source")
    assert pl.read_csv(tmp_path / "pets.csv")["'=note"].to_list() == [-1, -2]


def test_the_rule_is_named_in_every_form(tmp_path: Path) -> None:
    found = in_memory(pl.DataFrame({"id": ["a"], "label": ["cat"], "text": ["x"], "=note": ["-1"]}))
    posteriors = Posteriors(np.array([[0.1, 0.8, 0.1]]))
    for rule, final in (("vote", "cat"), ("belief", "dog")):
        known = cleaned(found, posteriors=posteriors, rule=rule)
        for form, chosen in exports.FORMS.items():
            if form not in ("folder", "label-studio"):
                exports.write(known, tmp_path / f"{rule}-{form}{chosen.suffixes[0]}", form=form)
                note = msgspec.json.decode((tmp_path / f"{rule}-{form}{chosen.suffixes[0]}.about.json").read_bytes())
                assert (note["rule"], note["form"], note["items"]) == (rule, form, 1)
        row = pl.read_csv(tmp_path / f"{rule}-items.csv")
        assert (row["rule"].item(), row["final"].item()) == (rule, final)


def test_forms_and_names_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    found = cleaned(in_memory(pl.DataFrame({"id": ["a"], "label": ["cat"], "text": ["x"], "=note": ["y"]})))
    with pytest.raises(BadInput, match=r"export: one of the forms .* was needed, but 'xml' came; name one with --as"):
        exports.write(found, tmp_path / "x.xml", form="xml")
    with pytest.raises(
        BadInput, match=r"a file that ends in \.csv, .* was needed for --as items, but it ends in nothing"
    ):
        exports.write(found, tmp_path / "items", form="items")
    with pytest.raises(BadInput, match="items with images were needed for folders of them, but these have none"):
        exports.write(found, tmp_path / "folder", form="folder")
    with pytest.raises(BadInput, match="an imported set was needed for --split, but none came; import the source"):
        cleaned(found.found, split="train")
    assert not list(tmp_path.iterdir())


def test_an_annotator_who_is_called_as_the_column_of_ids(tmp_path: Path) -> None:
    found = in_memory(pl.DataFrame({"id": ["a"], "label": ["cat"], "text": ["x"], "=note": ["y"]}))
    said = pl.DataFrame({"item": [0], "annotator": ["id"], "label": ["cat"]})
    with pytest.raises(BadInput, match="a column of ids was needed beside one for each annotator, but one of them is"):
        exports.write(cleaned(msgspec.structs.replace(found, answers=said)), tmp_path / "w.csv", form="cleanlab")


def test_a_part_leaves_alone(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["a", "b", "c"], "label": ["cat", "dog", "cat"], "split": ["train", "test", "train"]})
    frame.write_csv(tmp_path / "pets.csv")
    made, _ = imported.write(table.collection(tmp_path / "pets.csv"), tmp_path / "pets", origin=Origin())
    exports.write(cleaned(made, split="train"), tmp_path / "train.csv", form="source")
    assert pl.read_csv(tmp_path / "train.csv").rows() == [("a", "cat", "train"), ("c", "cat", "train")]


def test_a_campaign_without_a_set_leaves_by_numbers(tmp_path: Path) -> None:
    campaign = Campaign(Labels(np.array([1, 0]), 2), named("random"), budget=4)
    for answer in (0, CANNOT_TELL):
        lease = campaign.ask(None)
        assert lease is not None
        campaign.tell(lease, answer)
    exports.write(cleaned(campaign), tmp_path / "answers.csv", form="answers")
    read = pl.read_csv(tmp_path / "answers.csv")
    assert read.columns == ["id", "annotator", "label", "instead", "at", "seconds", "ranking"]
    assert read.filter(pl.col("instead") == "cannot tell").height == 1
