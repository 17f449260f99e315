"""The file of a campaign's decisions: it reads back as it was, people can read it, and what is wrong in it is named."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook import charter
from relook.charter import Budget, Charter, Items, Retraining, Rules
from relook.errors import BadInput

ITEMS = Items("pets", "../pets", "0" * 64, 80_000, ("cat", "dog"))
DECIDED = Charter(
    software="0.1", name="fix", items=ITEMS, budget=Budget(10_000), retraining=Retraining({"method": "lda"})
)


def with_rules(settle: str, **changed: object) -> Charter:
    return msgspec.structs.replace(DECIDED, rules=Rules(settle=settle), **changed)


@settings(max_examples=50)
@given(
    name=st.text(),
    classes=st.lists(st.text(min_size=1), min_size=1).map(tuple),
    hours=st.none() | st.floats(0.1, 1e4),
    options=st.dictionaries(st.text(), st.integers() | st.booleans() | st.text() | st.lists(st.text())),
)
def test_it_reads_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    classes: tuple[str, ...],
    hours: float | None,
    options: dict[str, object],
) -> None:
    folder = tmp_path_factory.mktemp("campaign")
    told = msgspec.structs.replace(
        DECIDED,
        name=name,
        items=msgspec.structs.replace(ITEMS, classes=classes, split=name),
        budget=Budget(3, hours, 4),
        before=Rules(policy=name),
        retraining=Retraining({"method": "logistic", "settings": options}, minutes=1e-9),
    )
    charter.write(told, folder)
    assert charter.read(folder) == told


def test_people_read_what_was_decided(tmp_path: Path) -> None:
    charter.write(with_rules("people:2", budget=Budget(10_000, people=4)), tmp_path)
    assert (tmp_path / "campaign.toml").read_text("utf-8").splitlines()[:7] == [
        "# 80,000 items of pets; 2 classes.",
        "# This set is to train on.",
        "# Settles when 2 people agree; the given label does not vote.",
        "# Ranks by what one more answer is worth; refits its model every 500 answers.",
        "# 4 people answer, nobody twice about an item.",
        "",
        "schema = 1",
    ]


@pytest.mark.parametrize(
    ("settle", "says"),
    [
        ("paper", "Settles on a majority of several votes, the given label's among them: the paper's rule."),
        ("one", "Settles on one person's word; the given label does not vote."),
        ("people", "Settles when 2 people agree; the given label does not vote."),
        ("margin:3", "Settles when a class leads by 3 votes; the given label is one of them."),
        ("confidence:.9", "Settles when answers and the model's probabilities together are sure by .9."),
    ],
)
def test_each_rule_has_its_sentence(settle: str, says: str) -> None:
    assert says in list(charter.sentences(with_rules(settle)))


def test_what_ranks_and_what_the_set_is_for_is_said() -> None:
    along = with_rules("paper", retraining=Retraining(), purpose="evaluation", override="another model's")
    said = list(charter.sentences(along))
    assert "This set is to judge models on, and probabilities from elsewhere rank it: another model's." in said
    assert any("class probabilities that came along; they stay as they are" in each for each in said)
    assert "Anybody may answer, and nobody twice about an item." in said
    own = with_rules("paper", purpose="evaluation", retraining=Retraining({"method": "lda"}, minutes=30.0))
    said = list(charter.sentences(own))
    assert "This set is to judge models on: what ranks it is fitted on this set alone." in said
    assert any("every 500 answers or 30 minutes" in each for each in said)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "the folder of a campaign was needed, but it has no campaign.toml"),
        (b"\xff\xfe", "the folder of a campaign was needed"),
        (b"schema = ", "decisions were needed, but Invalid value"),
        (b"schema = 1\n", "decisions were needed, but Object missing required field"),
        (b"schema = 9\nsoftware = '3'\n", "decisions of no later schema than 1 were needed, but relook 3 wrote 9"),
    ],
)
def test_what_is_no_file_of_decisions_is_refused(tmp_path: Path, content: bytes | None, says: str) -> None:
    if content is not None:
        (tmp_path / charter.FILE).write_bytes(content)
    with pytest.raises(BadInput, match=says):
        charter.read(tmp_path)
    assert charter.is_campaign(tmp_path) is (content is not None)


def test_retraining_that_cannot_be_is_refused() -> None:
    with pytest.raises(BadInput, match="every answer at most was needed, but 0 answers"):
        Retraining(answers=0)
    with pytest.raises(BadInput, match="time, memory and at least one file to keep were needed"):
        Retraining(keep=0)
