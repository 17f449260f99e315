"""What a campaign is run by: refused where it makes no sense, and written into the log as it is."""

from typing import Any

import msgspec
import numpy as np
import pytest

from relook.belief import AnswerModel
from relook.campaign import Campaign
from relook.errors import BadInput
from relook.rules import Policy, Terms, as_record, check_answer, check_beliefs, check_budget, check_name
from relook.scores import TrueValue, ValuePerAnswer, margin
from relook.stopping import Agree, Confidence
from relook.types import FloatArray, Labels, Posteriors, Rows, fingerprint


class Nearest(msgspec.Struct, frozen=True, eq=False):
    """A rule of one's own that holds embeddings."""

    embeddings: FloatArray
    neighbours: int = 5

    def __call__(self, rows: Rows) -> FloatArray:
        return np.asarray(self.embeddings[rows.items].sum(1))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"batch": 0}, "policy p: a batch of at least 1 answer was needed, but 0 came"),
        ({"given_weight": -1.0}, r"policy p: the given label needs a weight of 0 or more, but -1\.0 came; 0 lets only"),
        ({"given_weight": np.nan}, "weight of 0 or more, but nan came"),
        ({"given_weight": np.inf}, "weight of 0 or more, but inf came"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Policy("p", margin, **parts)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"lease_seconds": 0}, "lease: a number of seconds above 0 was needed, but 0 came"),
        ({"lease_seconds": np.inf}, "lease: a number of seconds above 0 was needed, but inf came"),
        ({"lease_seconds": np.nan}, "lease: a number of seconds above 0 was needed, but nan came"),
        ({"panel": 0}, "panel: at least one person was needed, but 0 came; leave it out for no limit"),
        ({"at": np.nan}, "time: a campaign needs a time to start at, but nan came; use a clock"),
        ({"at": np.inf}, "time: a campaign needs a time to start at, but inf came"),
    ],
)
def test_terms_that_make_no_sense_are_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Terms(**parts)


@pytest.mark.parametrize("budget", [-1, 2.5, "3", None, np.float64(3)])
def test_a_budget_is_a_number_of_answers(budget: Any) -> None:
    with pytest.raises(BadInput, match=f"budget: a number of answers was needed, but {budget} came; pass 0 or more"):
        check_budget(budget)
    assert check_budget(0) == 0


@pytest.mark.parametrize("answer", [2, -3, 1.0, "cat", None, np.int64(2)])
def test_an_answer_is_a_class_or_says_that_there_is_none(answer: Any) -> None:
    with pytest.raises(
        BadInput, match=f"answer: a class from 0 to 1, -1 or -2 was needed, but {answer} came; ask again"
    ):
        check_answer(answer, 2)
    assert [check_answer(each, 2) for each in (np.uint8(1), True, -2)] == [1, 1, -2]


@pytest.mark.parametrize("annotator", [7, b"Ada", ("Ada",)])
def test_a_name_is_text(annotator: Any) -> None:
    with pytest.raises(BadInput, match=r"annotator: a name was needed, but .* came; write it as text, or leave it out"):
        check_name(annotator)


def test_a_rule_about_beliefs_needs_probabilities() -> None:
    policy = Policy("sure", lambda rows: rows.items * 1.0, Confidence())
    with pytest.raises(BadInput, match="policy sure: its stopping rule needs class probabilities, but none came"):
        check_beliefs(policy, None)
    given_labels, posteriors = Labels(np.array([0]), 2), Posteriors(np.array([[0.5, 0.5]]))
    with pytest.raises(BadInput, match="policy sure: its stopping rule needs class probabilities"):
        Campaign(given_labels, policy, budget=1)
    campaign = Campaign(given_labels, policy, budget=1, posteriors=posteriors)
    with pytest.raises(BadInput, match="policy sure: its stopping rule needs class probabilities"):
        campaign.rank(None)


def test_a_record_says_what_a_rule_is() -> None:
    embeddings = np.eye(3)
    policy = Policy("mine", Nearest(embeddings), Agree(2), returns=True)
    assert policy.record() == {
        "name": "mine",
        "score": {"name": "Nearest", "embeddings": {"fingerprint": fingerprint(embeddings)}, "neighbours": 5},
        "stop": {"name": "Agree", "k": 2},
        "returns": True,
        "given_weight": 1.0,
        "batch": 1,
    }
    assert as_record(margin) == {"name": "margin"}
    assert as_record(as_record) == {"name": "as_record"}
    assert as_record(fingerprint)["name"] == "fingerprint"
    assert as_record(test_a_budget_is_a_number_of_answers)["name"].startswith("tests.test_rules:test_a_budget")
    assert as_record(ValuePerAnswer(AnswerModel(eps=0.1)))["model"]["eps"] == 0.1
    assert (
        as_record(TrueValue(embeddings))
        == as_record(TrueValue(embeddings.copy()))
        != as_record(TrueValue(embeddings * 2))
    )
    assert as_record(Agree(np.int64(2))) == {"name": "Agree", "k": 2}  # type: ignore[arg-type]
