"""`relook set` as a user types it: each change is an event that says by whom, and what it means is said."""

from pathlib import Path

import pytest

from relook import campaigns, changes, charter
from relook.errors import NotAllowed
from relook.events import Event
from relook.pace import Pace
from tests import desks


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> desks.Run:
    """Run commands in a folder with a campaign that Ada has begun."""
    said = desks.at(tmp_path, monkeypatch, capsys)
    desks.made(said, "--settle", "people:2", "--people", "3")
    desks.fill(desks.handed(said, "Ada", "a.csv", 8), most=6)
    assert said("answers", "fix", "a.csv").status == 0
    return said


def last() -> Event:
    return campaigns.looked(Path("fix"))[1][-1]


def test_a_budget_below_what_is_spent_and_handed_out_is_refused(run: desks.Run) -> None:
    said = run("set", "fix", "--answers", "7")
    assert (said.status, "6 answers are spent and 2 are being given, but 7 came; set 8 or more" in said.err) == (
        2,
        True,
    )
    said = run("set", "fix", "--answers", "8", "--by", "Eva", "--why", "no money")
    assert "The budget is 8 answers now: 1 min at 4.0 s an answer." in said.out
    event = last()
    assert (event.total, event.by, event.why) == (8, "Eva", "no money")  # type: ignore[union-attr]
    assert charter.read(Path("fix")).budget.answers == 8
    said = run("set", "fix", "--answers", "9", "--hours", "2")
    assert "the new budget was needed in answers or in hours, but both of them" in said.err


def test_hours_that_are_spent_already_are_refused() -> None:
    assert changes.answers_in(1.0, Pace(), least=900) == 900
    with pytest.raises(NotAllowed, match="901 answers are spent or handed out, but 1 hours are 900 at"):
        changes.answers_in(1.0, Pace(), least=901)


def test_other_rules_judge_anew_what_people_said(run: desks.Run) -> None:
    said = run("set", "fix", "--settle", "one", "--why", "cheaper")
    assert "By the new rules 6 more items are settled and 0 are open again." in said.out
    decided = charter.read(Path("fix"))
    assert (decided.rules.settle, decided.before and decided.before.settle) == ("one", "people:2")
    assert "6 settled" in run("status", "fix").out
    said = run("set", "fix", "--settle", "people:2", "--people", "2")
    assert "By the new rules 0 more items are settled and 6 are open again." in said.out
    assert "3 items for Bo" in run("next", "fix", "-n", "3", "--for", "Bo", "--to", "b.csv").out
    assert run("log", "verify", "fix").status == 0


def test_rules_that_did_not_reach_the_log_do_no_harm(run: desks.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash between the folder and the log leaves the rules of the log in force."""
    write = charter.write

    def first_alone(decided: charter.Charter, folder: Path) -> None:
        if decided.before is not None:
            write(decided, folder)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with campaigns.opened(Path("fix"), clock=lambda: 2e9) as found, monkeypatch.context() as crash:
        crash.setattr(campaigns.Opened, "do", killed)
        crash.setattr(charter, "write", first_alone)
        with pytest.raises(KeyboardInterrupt):
            changes.rules(found, charter.Rules(settle="one"), people=3, by="Eva", why=None)
    assert charter.read(Path("fix")).rules.settle == "one"
    with campaigns.opened(Path("fix"), clock=lambda: 2e9) as found:
        assert found.campaign.policy.record()["stop"] == {"name": "Agree", "k": 2}


def test_a_rule_that_is_none_changes_nothing(run: desks.Run) -> None:
    before = Path("fix/campaign.toml").read_text()
    assert run("set", "fix", "--settle", "two").status == 2
    assert run("set", "fix", "--people", "0").status == 2
    assert Path("fix/campaign.toml").read_text() == before


def test_people_are_paused_freed_and_taken_out(run: desks.Run) -> None:
    assert "Nothing is asked of Ada for now." in run("set", "fix", "--pause", "Ada").out
    assert "Nothing was handed out: Ada is paused" in run("next", "fix", "--for", "Ada", "--to", "x.csv").out
    assert "Items are handed out to Ada again." in run("set", "fix", "--resume", "Ada").out
    assert "Nothing is asked of everybody for now." in run("set", "fix", "--pause", "all").out
    assert "Items are handed out to everybody again." in run("set", "fix", "--resume", "all").out
    assert "2 items that Ada held are free again." in run("set", "fix", "--free", "Ada").out
    assert campaigns.looked(Path("fix"))[0].reserved == 0
    assert (
        "Ada takes part no longer; the answers count no more, and stay paid." in run("set", "fix", "--void", "Ada").out
    )
    ledger, _ = campaigns.looked(Path("fix"))
    assert (ledger.spent, sum(state.heard for state in ledger.items.values())) == (6, 0)
    said = run("set", "fix", "--remove", "Nobody")
    assert (said.status, "somebody who takes part was needed, but Nobody does not" in said.err) == (2, True)


def test_a_campaign_is_closed_and_goes_on(run: desks.Run) -> None:
    assert "The campaign is closed." in run("set", "fix", "--close").out
    assert "an open campaign was needed, but this one is closed" in run("set", "fix", "--close").err
    said = run("set", "fix", "--reopen", "--answers", "50")
    assert "The campaign is open again." in said.out
    assert "The budget is 50 answers now" in said.out


def test_a_set_that_moved_is_found_again(run: desks.Run) -> None:
    Path("pets").rename("elsewhere")
    said = run("next", "fix", "--for", "Bo", "--to", "b.csv")
    assert "its items were needed in pets, but no set is there; move it back, or say where it is now" in said.err
    assert run("status", "fix").status == 0, "the log is enough to look at"
    desks.pets(Path("pets"), classes=("cat", "dog", "owl"))
    said = run("next", "fix", "--for", "Bo", "--to", "b.csv")
    assert "the set that the campaign began with was needed in pets, but another is there now" in said.err
    said = run("set", "fix", "--data", "pets")
    assert "the set that the campaign began with was needed, but this is another" in said.err
    assert "The items are in elsewhere now." in run("set", "fix", "--data", "elsewhere").out
    assert run("next", "fix", "--for", "Bo", "--to", "b.csv").status == 0
    Path("elsewhere/answers.parquet").write_bytes(b"other")
    said = run("next", "fix", "--for", "Bo", "--to", "c.csv")
    assert "the bytes that were imported were needed, but others came" in said.err


def test_something_must_be_said(run: desks.Run) -> None:
    assert "something to change was needed, but nothing came" in run("set", "fix").err
