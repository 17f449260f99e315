"""When an item is settled: each rule is what its name says."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook.belief import AnswerModel
from relook.errors import BadInput
from relook.stopping import Agree, Confidence, Majority, Margin, Stop, named, uses_belief
from relook.types import FloatArray
from tests.laws import LAW, catches

votes = st.lists(st.sampled_from([0, 0, 0.5, 1, 1, 1.5, 2, 3, 4, 2.5]), min_size=2, max_size=5)


def is_settled(rule: Stop, row: list[float]) -> bool:
    """The rules in words: how many votes the first class has, by how many it leads, how many there are."""
    *_, second, first = sorted(row)
    if isinstance(rule, Majority):
        return first > second and sum(row) > 1
    if isinstance(rule, Agree):
        return first > second and first >= rule.k
    assert isinstance(rule, Margin)
    return first - second >= rule.k


RULES: tuple[Stop, ...] = (Majority(), Agree(1), Agree(2), Agree(3), Margin(1), Margin(2))


class TestRules:
    """A rule settles what its words say, whatever the order of the classes, and never a tie."""

    def law(self, how: settings, rules: Sequence[Stop] = RULES, words: Sequence[Stop] = RULES) -> None:
        @how
        @given(votes, st.randoms())
        def check(row: list[float], random: object) -> None:
            for rule, meant in zip(rules, words, strict=True):
                assert rule(row, None) == is_settled(meant, row)
                assert rule(row[::-1], None) == rule(row, None)
                assert not (rule(row, None) and row.count(max(row)) > 1)

        check()

    def test_holds(self) -> None:
        self.law(LAW)

    @pytest.mark.parametrize(
        ("faulty", "meant"),
        [(Agree(1), Majority()), (Agree(2), Agree(3)), (Margin(1), Margin(2)), (Majority(), Margin(1))],
    )
    def test_another_rule_is_caught(self, faulty: Stop, meant: Stop) -> None:
        catches(partial(self.law, rules=[faulty], words=[meant]))

    def test_they_look_at_votes_alone(self) -> None:
        assert not any(uses_belief(rule) for rule in RULES)
        assert uses_belief(Confidence())

    def test_with_one_class_a_vote_is_a_lead(self) -> None:
        assert Margin(2)([2.0], None)
        assert not Margin(2)([1.0], None)


class TestConfidence:
    """An item is settled when one class is believed in enough."""

    @pytest.mark.parametrize(("belief", "settled"), [([0.95, 0.05], True), ([0.05, 0.95], True), ([0.94, 0.06], False)])
    def test_a_belief_of_ninety_five_per_cent(self, belief: list[float], *, settled: bool) -> None:
        assert Confidence(0.05)([1, 0], np.array(belief)) is settled

    def test_it_needs_probabilities(self) -> None:
        with pytest.raises(BadInput, match="confidence: this rule needs class probabilities, but none came"):
            Confidence()([1, 0], None)


class TestNamed:
    """A user's words mean a rule, and a weight of the given label: people alone, or the given label too."""

    @pytest.mark.parametrize(
        ("text", "rule", "weight"),
        [
            ("paper", Majority(), 1.0),
            ("one", Agree(1), 0.0),
            ("people", Agree(2), 0.0),
            ("people:1", Agree(1), 0.0),
            ("people:3", Agree(3), 0.0),
            ("margin", Margin(2), 1.0),
            ("margin:3", Margin(3), 1.0),
            ("confidence", Confidence(0.05), 1.0),
            ("confidence:.9", Confidence(0.1), 1.0),
            ("confidence:0.5", Confidence(0.5), 1.0),
        ],
    )
    def test_words(self, text: str, rule: Stop, weight: float) -> None:
        assert named(text) == (rule, weight)

    @pytest.mark.parametrize("text", ["", "papers", "paper:2", "one:2", "Paper", "people-2", ":2"])
    def test_other_words_are_refused(self, text: str) -> None:
        with pytest.raises(BadInput, match=r"settle: paper, one, people:2, margin:2 or confidence:\.95 were needed"):
            named(text)

    @pytest.mark.parametrize("text", ["people:0", "people:-1", "margin:1.5", "people:two", "margin:nan", "people:inf"])
    def test_other_numbers_of_people_are_refused(self, text: str) -> None:
        with pytest.raises(BadInput, match=f"settle: a whole number of people was needed, but '{text}' came; write"):
            named(text)

    @pytest.mark.parametrize(
        "text", ["confidence:1", "confidence:95", "confidence:.4", "confidence:nan", "confidence:high"]
    )
    def test_other_confidences_are_refused(self, text: str) -> None:
        with pytest.raises(BadInput, match=r"settle: a confidence from \.5 up to 1 was needed, but"):
            named(text)


def test_a_rule_prints_and_compares_as_it_is_made() -> None:
    assert repr(Agree(3)) == "Agree(k=3)"
    assert Confidence(0.1) == Confidence(0.1, AnswerModel())
    belief: FloatArray = np.array([0.9, 0.1])
    assert Confidence(0.1)([0, 0], belief)
