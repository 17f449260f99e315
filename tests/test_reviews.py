"""A reviewer's word: out with what people said, back once however often it is sent, and the last one stays."""

from pathlib import Path

import numpy as np
import pytest

from relook import returns, reviews
from relook.campaign import Campaign
from relook.events import CANNOT_TELL, DISPUTED, OUTSIDE, UNCLEAR
from relook.policies import Setting, named
from relook.returns import Word
from relook.reviews import Ruled
from relook.rules import Terms
from relook.stopping import Agree
from relook.types import Labels
from tests import desks

BY = returns.known([f"p{item}" for item in range(4)], ["cat", "dog"])
SAYS = {"Ada": [0, 0, CANNOT_TELL, 0], "Bo": [1, 0, CANNOT_TELL, 1]}


def campaign() -> Campaign:
    """Two people; they disagree about items 0 and 3, agree about 1, and cannot tell 2."""
    policy = named("random", Setting(stop=Agree(2), given_weight=0.0))
    made = Campaign(Labels(np.zeros(4, int), 2), policy, budget=9, terms=Terms(panel=2))
    for name, answers in SAYS.items():
        for _ in range(4):
            lease = made.ask(name)
            assert lease is not None
            made.tell(lease, answers[lease.item])
    assert [made.verdict(item) for item in range(4)] == [DISPUTED, 0, UNCLEAR, DISPUTED]
    return made


def word(item: int, said: str, why: str | None = None) -> Word:
    return Word(f"t.csv, line {item + 2}", f"p{item}", None, None, said, None, why)


def rule(made: Campaign, *words: Word) -> Ruled:
    return reviews.rule(made, words, by=BY, reviewer="Eva", now=1.0)


def test_what_waits_goes_out_with_what_people_said(tmp_path: Path) -> None:
    made, source = campaign(), desks.pets(tmp_path / "pets")
    given = reviews.handout(source, None, ledger=made.ledger, classes=("cat", "dog"))
    told = dict(zip(given.items, zip(given.columns["verdict"], given.columns["said"], strict=True), strict=True))
    assert told == {
        0: ("disputed", "Ada: cat; Bo: dog"),
        2: ("unclear", "Ada: cannot tell; Bo: cannot tell"),
        3: ("disputed", "Ada: cat; Bo: dog"),
    }
    assert set(given.columns["answer"]) == set(given.columns["why"]) == {None}


def test_a_word_is_the_last_one_and_free() -> None:
    made = campaign()
    spent = made.spent
    words = [word(0, "dog", "blurred"), word(2, "none of these"), word(3, "disputed"), word(1, "")]
    assert rule(made, *words) == Ruled(3, 0, 1, [])
    assert [made.verdict(item) for item in range(4)] == [1, 0, OUTSIDE, DISPUTED]
    assert (made.spent, reviews.waiting(made.ledger)) == (spent, [])
    assert "blurred" in str(made.events)
    assert rule(made, *words) == Ruled(0, 3, 1, [])
    assert rule(made, word(0, "cat")) == Ruled(1, 0, 0, [])
    assert made.verdict(0) == 0


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (word(0, "hen"), "t.csv, line 2 (id p0): a class (cat, dog) was needed, but 'hen' came"),
        (word(9, "cat"), "t.csv, line 11 (id p9): the id of an item of this campaign was needed"),
        (word(1, "disputed"), "t.csv, line 3 (id p1): confirm: a disputed item was needed, but item 1 is none"),
        (Word("line 2", None, None, None, "cat"), "line 2: the id of an item was needed, but it has none; send"),
    ],
)
def test_a_word_that_cannot_be_is_refused_alone(wrong: Word, says: str) -> None:
    made = campaign()
    found = rule(made, wrong, word(3, "cat"))
    assert found.recorded == 1
    assert found.refused[0].startswith(says)
    assert made.verdict(3) == 0
