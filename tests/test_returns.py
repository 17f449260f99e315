"""What comes back: each row by itself, the same file twice, and every row that cannot be recorded with its cure."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from relook import returns
from relook.campaign import Campaign
from relook.errors import BadInput
from relook.events import CANNOT_TELL, NONE_OF_THESE
from relook.policies import named
from relook.returns import Judged, Word
from relook.rules import Terms
from relook.types import Labels

BY = returns.known([f"p{item}" for item in range(6)], ["cat", "dog"])


def campaign() -> Campaign:
    """Six items of two classes; Ada holds 1 to 3, Bo 4 and 5."""
    made = Campaign(Labels(np.zeros(6, int), 2), named("random"), budget=9, terms=Terms(lease_seconds=100.0))
    for name in ("Ada", "Ada", "Ada", "Bo", "Bo"):
        assert made.ask(name, 1.0) is not None
    return made


def word(lease: int | None, said: str, *, id: str | None = None, who: str | None = None) -> Word:  # noqa: A002
    return Word(f"t.csv, line {lease}", id, lease, who, said)


def judged(made: Campaign, *words: Word, annotator: str | None = None) -> Judged:
    return returns.judged(words, made.ledger, by=BY, annotator=annotator)


def id_of(made: Campaign, lease: int) -> str:
    return f"p{made.ledger.leases[lease].item}"


def test_good_rows_are_recorded_once_however_often_they_come() -> None:
    made = campaign()
    words = [word(1, "cat"), word(2, "cannot tell"), word(3, "none of these"), word(4, "")]
    found = judged(made, *words, words[0])
    assert [told.answer for told in found.good] == [0, CANNOT_TELL, NONE_OF_THESE]
    assert (found.before, found.empty, found.refused) == (0, 1, [])
    assert returns.record(made, found.good, now=2.0) == returns.Recorded(3, 0)
    again = judged(made, *words)
    assert (len(again.good), again.before, again.empty) == (0, 3, 1)
    assert made.spent == 3


def test_a_row_without_its_lease_is_found_by_id_and_person() -> None:
    made = campaign()
    name = id_of(made, 1)
    assert [told.lease.number for told in judged(made, word(None, "dog", id=name), annotator="Ada").good] == [1]
    assert [told.lease.number for told in judged(made, word(None, "dog", id=name, who="Ada")).good] == [1]
    neutral = f"item-{made.ledger.leases[1].item:06d}"
    assert [told.lease.number for told in judged(made, word(None, "dog", id=neutral), annotator="Ada").good] == [1]


def test_one_that_comes_late_is_kept() -> None:
    made = campaign()
    assert returns.record(made, judged(made, word(1, "dog")).good, now=500.0) == returns.Recorded(0, 1)
    assert made.spent == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([word(1, "doge")], r"line 1: a class \(cat, dog\) was needed, but 'doge' came; is 'dog' meant\?"),
        ([word(1, "ξ")], "write one of them, or cannot tell or none of these"),
        ([word(9, "dog")], "an item that was handed out to somebody was needed, but this one was not"),
        ([word(None, "dog", id="p1")], "handed out to somebody was needed, but this one was not; name them with --for"),
        ([word(None, "dog", id="nobody")], "the id of an item of this campaign was needed, but it has none of this"),
        ([word(4, "dog", who="Ada")], "an item handed out to Ada was needed, but Bo holds lease 4; name them"),
        ([word(1, "cat"), word(1, "dog")], "one answer was needed, but t.csv, line 1 says 'cat' and this row 'dog'"),
    ],
)
def test_a_row_that_cannot_be_is_refused_alone(words: list[Word], says: str) -> None:
    made = campaign()
    found = judged(made, *words, word(2, "cat"))
    assert [told.lease.number for told in found.good] == [2]
    (reason,) = found.refused
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(reason)


def test_another_answer_than_the_recorded_one_is_refused() -> None:
    made = campaign()
    returns.record(made, judged(made, word(1, "cat")).good, now=2.0)
    (reason,) = judged(made, word(1, "dog")).refused
    assert "the answer that was recorded was needed, 'cat', but 'dog' came" in reason


def test_columns_that_moved_apart_are_refused() -> None:
    made = campaign()
    (reason,) = judged(made, word(1, "cat", id=id_of(made, 2))).refused
    assert "the item of lease 1 was needed, but the row is about another" in reason


def test_a_person_who_did_not_hold_it_is_refused() -> None:
    made = campaign()
    (reason,) = judged(made, word(None, "cat", id=id_of(made, 1)), annotator="Eva").refused
    assert "handed out to Eva was needed, but this one was not; check who answered" in reason


def test_a_class_goes_before_a_word_that_is_none() -> None:
    assert returns.known(["a"], ["cannot tell"]).answers == {"cannot tell": 0, "none of these": -2}


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_every_kind_of_table_is_read(tmp_path: Path, suffix: str) -> None:
    rows = pl.DataFrame(
        {
            "id": ["=1", "b"],
            "answer": [" cat ", None],
            "lease": [3, 4],
            "seconds": [2.5, None],
            "annotator": ["Ada", ""],
        }
    )
    path = tmp_path / f"t.{suffix}"
    if suffix == "csv":
        path.write_text("id,answer,lease,seconds,annotator\n'=1, cat ,3,2.5,Ada\nb,,4,,\n")
    elif suffix == "tsv":
        rows.write_csv(path, separator="\t")
    else:
        rows.write_parquet(path) if suffix == "parquet" else rows.write_ndjson(path)
    first, second = returns.read(path)
    assert (first.id, first.lease, first.annotator, first.said, first.seconds) == ("=1", 3, "Ada", "cat", 2.5)
    assert (second.lease, second.annotator, second.said, second.seconds) == (4, None, "", None)
    assert "t." in first.place


def test_label_studio_is_read(tmp_path: Path) -> None:
    def task(lease: int | None, *annotations: dict[str, object]) -> dict[str, object]:
        return {"data": {"item": "p1"} | ({} if lease is None else {"lease": lease}), "annotations": list(annotations)}

    choice = {"type": "choices", "from_name": "label", "to_name": "text", "value": {"choices": ["dog"]}}
    dog: dict[str, object] = {"result": [choice], "lead_time": 3.5, "completed_by": {"email": "ada@x"}}
    path = tmp_path / "t.json"
    path.write_text(json.dumps([task(1, dog), task(2, dog | {"was_cancelled": True}), task(None, dog)]))
    first, second, third = returns.read(path)
    assert (first.lease, first.said, first.seconds, first.annotator) == (1, "dog", 3.5, None)
    assert second.said == ""
    assert (third.lease, third.annotator, third.id) == (None, "ada@x", "p1")
    path.write_text(json.dumps([{"data": {"text": "x"}, "annotations": [dog]}]))
    with pytest.raises(BadInput, match="a task of relook next was needed, but it has neither item nor lease"):
        returns.read(path)


def test_a_table_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,label\na,cat\n")
    with pytest.raises(BadInput, match="columns answer and lease or id were needed, but id, label came"):
        returns.read(path)
    path.write_text("id,answer,lease\na,cat,1.5\n")
    with pytest.raises(BadInput, match=r"line 2: the whole number of a lease was needed, but 1.5 came"):
        returns.read(path)
