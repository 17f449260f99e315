"""The conformance suites pass what is sound and catch what is not: each check with a fault planted for it."""

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

from relook import testing
from relook.activelab import ActiveLab
from relook.annotators import Crowd, Panel, Perfect, SequentialCrowd
from relook.belief import AnswerModel
from relook.campaign import Campaign
from relook.errors import BadInput
from relook.policies import BOUNDS, ENSEMBLES, POLICIES, Setting, named
from relook.rng import uniform
from relook.rules import Policy
from relook.scores import (
    RandomOrder,
    Score,
    TrueValue,
    ValuePerAnswer,
    ambiguity,
    bald,
    margin,
    noisiness,
    phi,
    phi_clipped,
    phi_ensemble,
    self_confidence,
)
from relook.stopping import Agree, Confidence, Majority, Margin, Stop
from relook.testing import check_annotator, check_policy, check_score, check_stop, tiny_worlds
from relook.types import FloatArray, Rows
from tests.conftest import spelled


def test_tiny_worlds_differ_in_what_rules_trip_over() -> None:
    worlds = tiny_worlds()
    assert len({world.name for world in worlds}) == len(worlds)
    assert {world.labels.classes for world in worlds} == {2, 3, 5}
    assert {world.posteriors.models for world in worlds} == {1, 2, 9}
    assert {world.posteriors.values.dtype for world in worlds} == {np.dtype(np.float32), np.dtype(np.float64)}
    assert {world.labels.given.ndim for world in worlds} == {1, 2}
    assert any((world.labels.majority() < 0).any() for world in worlds)
    assert any(world.labels.answers is not None and world.labels.answers.any() for world in worlds)
    assert any((world.posteriors.values == 0).any() for world in worlds)
    assert any(len(world.labels) == 1 for world in worlds)


def test_tiny_worlds_follow_their_seed() -> None:
    first, again, other = tiny_worlds(0), tiny_worlds(0), tiny_worlds(1)
    for one, same, another in zip(first, again, other, strict=True):
        assert one.posteriors.fingerprint() == same.posteriors.fingerprint()
        assert one.labels.fingerprint() == same.labels.fingerprint()
        assert np.array_equal(one.truth, same.truth)
        assert not np.array_equal(one.truth, another.truth)


class TestScores:
    @pytest.mark.parametrize(
        "score",
        [noisiness, ambiguity, phi, phi_clipped, phi_ensemble, bald, margin, self_confidence, ValuePerAnswer(),
         ValuePerAnswer(agree=3, lead=2), RandomOrder(3), ActiveLab(), ActiveLab(temperature=2.0)],
        ids=spelled,
    )  # fmt: skip
    def test_own_scores_are_sound(self, score: Score) -> None:
        check_score(score)

    def test_oracle_is_sound_in_its_own_world(self) -> None:
        for world in tiny_worlds():
            check_score(TrueValue(world.truth), worlds=[world])

    def test_score_that_looks_around_is_sound_if_it_says_so(self) -> None:
        check_score(_Relative())
        with pytest.raises(BadInput, match=r"alone but .* among others; set `rowwise = False` on the rule"):
            check_score(_relative)

    @pytest.mark.parametrize(
        ("score", "message"),
        [
            (lambda rows: rows.mean, r"30 rows need as many numbers, but shape \(30, 2\) came"),
            (lambda rows: np.log(rows.mean.min(1) == rows.mean.min()), "finite numbers were needed, but item"),
            (lambda rows: np.full(len(rows), np.nan), "finite numbers were needed, but item 0 got nan"),
            (
                lambda rows: _write(rows.probabilities, margin(rows)),
                "a score must not write into what it sees, but it did into posteriors",
            ),
            (
                lambda rows: _write(rows.given_labels, margin(rows)),
                "a score must not write into what it sees, but it did into given_labels",
            ),
            (lambda rows: np.random.default_rng().random(len(rows)), "must score alike twice, but they did not"),
            (lambda rows: np.arange(len(rows)) / 2, r"alone but .* among others"),
        ],
        ids=["shape", "infinite", "nan", "writes posteriors", "writes labels", "chance", "place"],
    )
    def test_planted_fault_is_caught(self, score: Score, message: str) -> None:
        with np.errstate(divide="ignore"), pytest.raises(BadInput, match=message):
            check_score(score)

    def test_error_says_in_which_world(self) -> None:
        def fails(rows: Rows) -> FloatArray:
            if len(rows.probabilities) > 1:
                raise KeyError("one model, please")
            return margin(rows)

        with pytest.raises(KeyError) as caught:
            check_score(fails)
        assert "in the tiny world '5 classes, 9 models' of relook.testing" in caught.value.__notes__


def _write(array: Any, scores: FloatArray) -> FloatArray:
    array[...] = array[..., ::-1].copy()
    return scores


def _relative(rows: Rows) -> FloatArray:
    return np.asarray(margin(rows) - margin(rows).mean())


class _Relative(msgspec.Struct, frozen=True):
    rowwise: ClassVar[bool] = False

    def __call__(self, rows: Rows) -> FloatArray:
        return _relative(rows)


class _Rule:
    """A stopping rule made of a function."""

    uses_belief: ClassVar[bool] = False

    def __init__(self, judge: Callable[..., Any]) -> None:
        self._judge = judge

    def __call__(self, votes: Sequence[float], belief: FloatArray | None) -> Any:
        return self._judge(votes, belief)


class _RuleOnBelief:
    """The same, of a function that looks at beliefs."""

    uses_belief: ClassVar[bool] = True

    def __init__(self, judge: Callable[..., Any]) -> None:
        self._judge = judge

    def __call__(self, votes: Sequence[float], belief: FloatArray | None) -> Any:
        return self._judge(votes, belief)


def _changes_its_mind() -> Callable[..., bool]:
    minds = cycle([True, False])
    return lambda _votes, _belief: next(minds)


class TestStops:
    @pytest.mark.parametrize(
        "rule", [Majority(), Agree(1), Agree(3), Margin(2), Confidence(0.05), Confidence(0.2, AnswerModel(eps=0.1))]
    )
    def test_own_rules_are_sound(self, rule: Stop) -> None:
        check_stop(rule)

    def test_plain_function_will_do(self) -> None:
        def ten_votes(votes: Sequence[float], belief: FloatArray | None) -> bool:
            return max(votes) >= 10 and list(votes).count(max(votes)) == 1

        check_stop(ten_votes)
        check_policy(Policy("ten", margin, ten_votes))

    @pytest.mark.parametrize(
        ("rule", "message"),
        [
            (_Rule(lambda votes, _belief: max(votes)), r"yes or no was needed, but .* came for \[0.0, 0.0, 0.0\]"),
            (
                _Rule(lambda votes, _belief: votes.append(1) or False),
                "a rule must not write into what it sees, but it did into",
            ),
            (
                _RuleOnBelief(lambda _votes, belief: belief.fill(1) or True),
                "a rule must not write into what it sees, but it did into",
            ),
            (_Rule(_changes_its_mind()), "must be judged alike twice"),
            (_Rule(lambda votes, _belief: max(votes) >= 2), r"a tie settles nothing, but \[0.0, 2.0, 2.0\] was"),
            (_RuleOnBelief(lambda _votes, belief: belief.max() >= 0.4), "a tie settles nothing, but"),
            (_Rule(lambda _votes, _belief: False), "1,000 votes for one class were not"),
        ],
        ids=["number", "appends", "writes belief", "state", "ties", "ties of belief", "never"],
    )
    def test_planted_fault_is_caught(self, rule: Stop, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            check_stop(rule)


class TestAnnotators:
    truth = np.random.default_rng(0).dirichlet(np.ones(4), 60)

    def test_own_annotators_are_sound(self) -> None:
        check_annotator(Crowd(self.truth, seed=1), items=60, classes=4)
        check_annotator(Perfect(self.truth.argmax(1)), items=60, classes=4)
        check_annotator(Panel(self.truth, (0.9, 0.5), seed=1), items=60, classes=4, answers=2)
        check_annotator(lambda item, _nth: -1 - item % 2, items=5, classes=2)

    @pytest.mark.parametrize(
        ("annotator", "message"),
        [
            (SequentialCrowd(truth, seed=1), "when asked for in another order; let it depend on"),
            (lambda _item, _nth: np.int64(1), "item 0, answer 0: a Python int was needed, but int64 came"),
            (lambda item, _nth: item, "item 4, answer 0: a class from 0 to 3, -1 or -2 was needed, but 4 came"),
            (lambda _item, _nth: -3, "a class from 0 to 3, -1 or -2 was needed, but -3 came"),
        ],
        ids=["order", "numpy", "class", "code"],
    )
    def test_planted_fault_is_caught(self, annotator: Any, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            check_annotator(annotator, items=60, classes=4)


class TestPolicies:
    @pytest.mark.parametrize("batch", [1, 4])
    @pytest.mark.parametrize("name", [name for name in POLICIES if name not in (*BOUNDS, *ENSEMBLES)])
    def test_named_policies_are_sound(self, name: str, batch: int) -> None:
        check_policy(named(name, Setting(batch=batch)))

    @pytest.mark.parametrize("name", ENSEMBLES)
    def test_ensembles_are_sound_with_several_models(self, name: str) -> None:
        check_policy(named(name), worlds=[world for world in tiny_worlds() if world.posteriors.models > 1])

    @pytest.mark.parametrize("name", BOUNDS)
    def test_bounds_are_sound_in_their_own_world(self, name: str) -> None:
        for world in tiny_worlds():
            check_policy(named(name, Setting(truth=world.truth)), worlds=[world])

    @pytest.mark.parametrize("stop", [Agree(2), Margin(2), Confidence(0.1)], ids=str)
    @pytest.mark.parametrize("weight", [0.0, 0.5])
    def test_other_ways_to_settle_are_sound(self, stop: Stop, weight: float) -> None:
        check_policy(named("default", Setting(stop=stop, given_weight=weight)))

    def test_score_that_looks_around_is_sound(self) -> None:
        check_policy(Policy("relative", _Relative(), returns=True, batch=7))

    def test_faulty_score_is_caught(self) -> None:
        with pytest.raises(BadInput, match="among others"):
            check_policy(Policy("relative", _relative))

    def test_faulty_stop_is_caught(self) -> None:
        with pytest.raises(BadInput, match="a tie settles nothing"):
            check_policy(Policy("ties", margin, _Rule(lambda votes, _belief: max(votes) >= 2)))

    def test_score_that_remembers_is_caught(self) -> None:
        with pytest.raises(BadInput, match="taken up from its log, a campaign must go on alike"):
            check_policy(Policy("forgetful", _Remembers(), returns=True))

    def test_campaign_that_overspends_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Campaign, "reserved", property(lambda _campaign: 100))
        with pytest.raises(BadInput, match="answers were the budget, but one more was asked for"):
            check_policy(named("margin"))

    def test_campaign_that_comes_back_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(testing, "picks", lambda _events: np.array([3, 4, 3]))
        with pytest.raises(BadInput, match="asks about an item once, but it came back"):
            check_policy(named("margin"))


class _Remembers:
    """Scores by how often the campaign has rescored an item: a fault that shows only in a campaign."""

    def __init__(self) -> None:
        self._calls = 0

    def __call__(self, rows: Rows) -> FloatArray:
        if rows.vote_counts is None:
            return uniform(0, rows.items, 0)
        self._calls += 1
        return np.full(len(rows), self._calls * 0.01)
