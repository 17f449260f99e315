"""Every message of the package has a test that matches it, and one that none matches is found."""

from pathlib import Path

from tests.conftest import ROOT
from tests.house import Module
from tests.messages import Message, messages, said_by_tests, unmatched
from tests.test_house import modules

FAULTY = """
def checked(rows: int) -> None:
    if rows == 0:
        raise BadInput("labels: rows were needed, but the table is empty; export it again")
    raise errors.BadLog(f"log: line {rows} " + "is torn in the middle; restore a backup")
"""


def test_every_message_is_matched_by_a_test() -> None:
    files = sorted(file for file in (ROOT / "tests").rglob("test_*.py") if file.name != Path(__file__).name)
    said = said_by_tests(file.read_text("utf-8") for file in files)
    left = unmatched([message for module in modules() for message in messages(module)], said)
    assert not left, f"{len(left)} messages that no test matches:\n" + "\n".join(left)


def test_messages_are_found_with_their_places() -> None:
    assert sorted(messages(Module("relook.planted", FAULTY))) == [
        Message(
            "relook.planted:checked, line 4", ("labels: rows were needed, but the table is empty; export it again",)
        ),
        Message("relook.planted:checked, line 5", ("log: line ", " ", "is torn in the middle; restore a backup")),
    ]


def test_a_message_that_no_test_matches_is_reported() -> None:
    found = list(messages(Module("relook.planted", FAULTY)))
    tests = 'with pytest.raises(BadLog, match=r"line 3 is torn in the middle; restore"):\n    checked(3)'
    (left,) = unmatched(found, said_by_tests([tests]))
    assert "the table is empty" in left


def test_words_that_two_messages_share_match_neither() -> None:
    twins = [
        Message("a", ("a number was needed, but text came",)),
        Message("b", ("a number was needed, but nothing came",)),
    ]
    assert len(unmatched(twins, ["a number was needed, but"])) == 2
    assert unmatched(twins, ["needed, but text came", "needed, but nothing came"]) == []
