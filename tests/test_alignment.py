"""Rows are joined by id or by order, classes by name or by place, and everything that was decided is said."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook.alignment import Matching, matched
from relook.errors import BadInput
from relook.sources import LabelTable, ProbabilityTable, listed, whole

P = np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])


def labels(values: Any, **said: Any) -> LabelTable:
    return LabelTable("labels.npy", np.asarray(values), **said)


def probabilities(values: Any = P, **said: Any) -> ProbabilityTable:
    return ProbabilityTable("p.npy", np.asarray(values, float), **said)


class TestClasses:
    @pytest.mark.parametrize(
        ("own", "columns", "told", "classes", "given_labels"),
        [
            (None, None, None, ("0", "1", "2"), [0, 2, 1]),
            (None, None, ("a", "b", "c"), ("a", "b", "c"), [0, 2, 1]),
            (None, ("a", "b", "c"), None, ("a", "b", "c"), [0, 2, 1]),
            (None, ("2", "0", "1"), None, ("2", "0", "1"), [1, 0, 2]),
            (None, None, ("2", "0", "1"), ("2", "0", "1"), [1, 0, 2]),
            (("a", "b", "c"), None, None, ("a", "b", "c"), [0, 2, 1]),
            (("a", "b", "c"), ("c", "a", "b"), None, ("c", "a", "b"), [1, 0, 2]),
            (("a", "b", "c"), ("0", "1", "2"), None, ("a", "b", "c"), [0, 2, 1]),
            (("a", "b", "c"), ("0", "1", "2"), ("b", "a", "c"), ("b", "a", "c"), [1, 2, 0]),
            (("a", "b", "c"), ("c", "a", "b"), ("a", "b", "c"), ("c", "a", "b"), [1, 0, 2]),
            (("0", "1", "2"), None, None, ("0", "1", "2"), [0, 2, 1]),
            (("0", "1", "2"), ("x", "y", "z"), None, ("x", "y", "z"), [0, 2, 1]),
            (("0", "1", "10"), ("0", "1", "10"), None, ("0", "1", "10"), [0, 2, 1]),
        ],
    )
    def test_are_found_in_column_order(
        self, own: Any, columns: Any, told: Any, classes: Any, given_labels: list[int]
    ) -> None:
        both = matched(labels([0, 2, 1], names=own), probabilities(names=columns), matching=Matching(told))
        assert both.classes == classes
        assert both.labels.given.tolist() == given_labels

    @pytest.mark.parametrize(
        ("own", "values", "columns", "told", "sentence"),
        [
            (
                None,
                [0, 3, 1],
                None,
                None,
                "labels.npy, item 1: a class was needed, 0 to 2 (-1: unlabelled), but 3 came; are these",
            ),
            (None, [0, -5, 1], None, None, "item 1: a class was needed, 0 to 2 (-1: unlabelled), but -5 came"),
            (None, [1, 2, 3], None, None, "but 3 came; if they count from 1, pass --classes 1,2,3"),
            (
                None,
                [0, 1, 2],
                ("1", "2", "3"),
                None,
                "item 0: a class was needed, 1, 2, 3, but 0 came; are these the labels",
            ),
            (
                ("1", "2", "3"),
                [0, 1, 2],
                None,
                None,
                "item 2: a class was needed, 0 to 2 (-1: unlabelled), but '3' came; if they",
            ),
            (
                ("a", "b"),
                [0, 1, 0],
                None,
                None,
                "3 classes were needed, as many as p.npy has columns, but it names 2 (a, b)",
            ),
            (
                ("a", "b", "e"),
                [0, 1, 2],
                ("a", "b", "c"),
                None,
                "item 2: a class was needed, a, b, c, but 'e' came; mend it",
            ),
            (None, [0, 1, 2], None, ("a", "b"), "--classes: 3 names were needed, one a column of p.npy, but 2 came"),
            (None, [0, 1, 2], None, ("a", "b", "a"), "--classes: names must differ, but 'a' comes twice; name each"),
            (
                None,
                [0, 1, 2],
                ("a", "b", "c"),
                ("a", "b", "x"),
                "--classes: columns of p.npy were needed, but 'x' is none; it has a",
            ),
        ],
    )
    def test_are_refused(self, own: Any, values: Any, columns: Any, told: Any, sentence: str) -> None:
        with pytest.raises(BadInput, match=re.escape(sentence)):
            matched(labels(values, names=own), probabilities(names=columns), matching=Matching(told))

    def test_counting_from_one_is_mended_as_told(self) -> None:
        both = matched(labels([1, 2, 3]), probabilities(), matching=Matching(("1", "2", "3")))
        assert both.labels.given.tolist() == [0, 1, 2]

    def test_places_and_sorted_names_are_said(self) -> None:
        facts = matched(labels([0, 1, 2]), probabilities(names=("x", "y", "z"))).facts
        assert "Labels are numbers: each is the place of a column of p.npy, 0 is x." in facts
        facts = matched(labels([0, 1, 2], names=("a", "b", "c")), probabilities()).facts
        assert "p.npy does not name its columns: they are taken as the classes in sorted order." in facts
        assert len(matched(labels([0, 1, 2], names=("a", "b", "c")), probabilities(names=("a", "b", "c"))).facts) == 1

    def test_whole_numbers_are_written_as_numbers(self) -> None:
        assert whole(("0", "12"))
        assert not any(whole((name,)) for name in ("", "-1", "01", "1.0", "²", "x"))
        assert listed(["a", "b", "c"], 2) == "a, b, ..."


class TestCounts:
    def test_are_told_from_answers_by_their_width(self) -> None:
        both = matched(labels([[3, 0, 0], [1, 2, 0], [0, 0, 0]]), probabilities())
        assert both.labels.given.tolist() == [[3, 0, 0], [1, 2, 0], [0, 0, 0]]
        assert both.facts[0] == "labels.npy holds counts of answers, a column a class; the majority is the given label."

    @pytest.mark.parametrize("kind", ["any", "answers"])
    def test_of_answers_are_made(self, kind: Any) -> None:
        wide = [[0, 0], [1, 2], [2, -1]] if kind == "any" else [[0, 0, -1], [1, 2, -1], [2, -1, -1]]
        both = matched(labels(wide, kind=kind), probabilities())
        assert both.labels.given.tolist() == [[2, 0, 0], [0, 1, 1], [0, 0, 1]]
        assert (
            f"labels.npy holds up to {len(wide[0])} answers an item; their majority is the given label." in both.facts
        )

    @pytest.mark.parametrize(
        ("values", "sentence"),
        [
            (
                [[1, 0, 0], [0, -2, 1], [0, 1, 1]],
                "item 1: counts cannot be negative, but -2 came; if these are answers of 3",
            ),
            (
                [[5, 0], [0, 4], [1, 1]],
                "item 0: counts in 3 columns (as p.npy has classes), or answers from 0 to 2, were needed",
            ),
        ],
    )
    def test_are_refused(self, values: Any, sentence: str) -> None:
        with pytest.raises(BadInput, match=re.escape(sentence)):
            matched(labels(values), probabilities())


class TestRows:
    def test_are_joined_by_id(self) -> None:
        both = matched(labels([0, 1, 2], ids=["a", "b", "c"]), probabilities(ids=["c", "a", "b"]))
        assert both.posteriors.mean().tolist() == P[[1, 2, 0]].tolist()
        assert (both.joined, both.ids, both.name(1)) == ("id", ["a", "b", "c"], "b")
        assert both.facts == ("Joined by id: 3 items in both files.",)

    @given(st.data())
    @settings(max_examples=50)
    def test_joined_by_id_are_those_of_the_id(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(1, 30))
        there = data.draw(st.permutations(range(count)))
        here = data.draw(st.lists(st.sampled_from(there), min_size=1, unique=True))
        values = np.linspace(0, 1, count)
        p = ProbabilityTable("p", np.stack([values[there], 1 - values[there]], 1), ids=[str(n) for n in there])
        both = matched(LabelTable("l", np.zeros(len(here), int), ids=[str(n) for n in here]), p)
        assert both.posteriors.mean()[:, 0].tolist() == values[here].tolist()

    def test_in_the_same_order_are_not_copied(self) -> None:
        both = matched(labels([0, 1, 2], ids=["a", "b", "c"]), probabilities(P, ids=["a", "b", "c"]))
        assert np.shares_memory(both.posteriors.values, P)

    @pytest.mark.parametrize(
        ("one", "other", "who"),
        [
            (None, None, "labels.npy and p.npy have"),
            (None, list("abc"), "labels.npy has"),
            (list("abc"), None, "p.npy has"),
        ],
    )
    def test_without_ids_are_joined_by_order_and_that_is_said(self, one: Any, other: Any, who: str) -> None:
        both = matched(labels([0, 1, 2], ids=one), probabilities(ids=other))
        assert both.facts == (f"Joined by order, row by row: {who} no ids.",)
        assert both.ids == (one or other)
        assert both.name(2) == ("2" if one is None and other is None else "c")

    def test_that_are_missing_are_counted_and_named(self) -> None:
        four = labels([0, 1, 2, 0, 1, 2], ids=list("abcdef"))
        with pytest.raises(
            BadInput,
            match=re.escape(
                "of labels.npy was needed, but 4 are missing (a, d, e, ...); predict them, or leave them out"
            ),
        ):
            matched(four, probabilities(ids=["b", "x", "c"]))
        both = matched(four, probabilities(ids=["b", "x", "c"]), matching=Matching(missing="leave out"))
        assert (both.ids, both.labels.given.tolist()) == (["b", "c"], [1, 2])
        assert both.posteriors.mean().tolist() == P[[0, 2]].tolist()
        assert both.facts[1:] == (
            "Left out: 4 items of labels.npy that p.npy lacks (a, d, e, ...).",
            "Left out: 1 item of p.npy that labels.npy lacks (x).",
        )

    @pytest.mark.parametrize(
        ("one", "other", "sentence"),
        [
            (
                labels([0, 1]),
                probabilities(),
                "the 2 items of labels.npy was needed, but 3 rows came; are the probabilities",
            ),
            (
                labels([0, 1]),
                probabilities(np.full((3, 2), 0.5)),
                "was needed, but 3 rows came; is it transposed? save p.T",
            ),
            (
                labels([0, 1, 2], ids=list("abc")),
                probabilities(ids=list("xyz")),
                "the ids of labels.npy were needed, but none is there ('a' in one, 'x'",
            ),
            (
                labels([0, 1, 2]),
                probabilities(P * 2),
                "p.npy: posteriors: rows must be probabilities, but model 0, item 0 sums",
            ),
            (
                labels([0, 1, 2]),
                probabilities(np.log(P + 1e-3)),
                "p.npy: posteriors: probabilities cannot be negative, but model 0",
            ),
            (
                labels([0, 1, 2]),
                probabilities(np.where(P == 0, np.nan, P)),
                "p.npy: posteriors: probabilities were needed, but model 0, item 0",
            ),
        ],
    )
    def test_are_refused(self, one: LabelTable, other: ProbabilityTable, sentence: str) -> None:
        with pytest.raises(BadInput, match=re.escape(sentence)):
            matched(one, other)

    def test_that_are_rounded_are_told_from_logits(self) -> None:
        p = ProbabilityTable("p.csv", np.array([[0.5, 0.5], [0.33, 0.66]]), first_line=2)
        with pytest.raises(
            BadInput, match=r"p.csv, line 3: probabilities must sum to one within 0.001, but they are 0.010 aw"
        ):
            matched(LabelTable("labels", np.array([0, 1])), p)

    def test_that_are_left_must_have_a_label(self) -> None:
        with pytest.raises(BadInput, match=r"labels were needed, but no item of p\.npy has one; check both"):
            matched(
                labels([-1, 1], ids=["a", "b"]), probabilities(P[:1], ids=["a"]), matching=Matching(missing="leave out")
            )
