"""`relook status` as a user types it: money, items, people, the ranking, and one next command."""

import json
from functools import partial
from pathlib import Path

import pytest

from relook import campaigns, retrain
from relook.campaign import Campaign
from relook.events import Lease
from relook.retrain import State
from tests import desks


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> desks.Run:
    """Run commands in a folder with a set."""
    return desks.at(tmp_path, monkeypatch, capsys)


def test_a_new_campaign_has_all_before_it(run: desks.Run) -> None:
    desks.made(run)
    assert run("status", "fix").out.splitlines() == [
        "Budget 90 answers (6 min at 4.0 s an answer): 0 spent (0 min), 0 handed out, 90 left (6 min).",
        "100 items, 0 of them answered: 0 settled.",
        "Ranking 1, 1 min old; no answer came since; the next one is due after 500.",
        "Next: relook next fix -n 50 --for NAME --to tasks.csv",
    ]


def test_what_people_did_is_told(run: desks.Run) -> None:
    desks.made(run, "--settle", "people:2", "--people", "2")
    for name, answers in (("Ada", lambda item: desks.CLASSES[desks.TRUE[item]]), ("Bo", lambda _: "cat")):
        desks.fill(desks.handed(run, name, f"{name}.csv", 9), answers=answers)
        run("answers", "fix", f"{name}.csv")
    said = run("status", "fix", "--json", "status.json")
    told = json.loads(Path("status.json").read_text())
    assert (told["spent"], told["reserved"], told["trainer"]) == (18, 0, None)
    assert f"{told['settled']} settled" in said.out
    seen = told["settled"] + told["disputed"] + told["waiting"]
    assert f"100 items, {seen} of them answered" in said.out
    assert [person["name"] for person in told["people"]] == ["Ada", "Bo"]
    assert said.out.splitlines()[-2:] == ["Wrote status.json", f"Next: {_next(told)}"]


def _next(told: dict[str, int]) -> str:
    if told["disputed"]:
        return "relook settle fix --to disputed.csv, for a reviewer"
    return "relook next fix -n 50 --for NAME --to tasks.csv"


def test_a_trainer_that_failed_is_told(run: desks.Run) -> None:
    desks.made(run)
    (Path("fix") / "trainer").mkdir()
    retrain._write_state(State(1.0, 2.0, 3, 2, "trainer: it sleeps"), Path("fix"))
    assert "Careful: training failed 2 times, so this ranking stays: trainer: it sleeps." in run("status", "fix").out


def tell(lease: Lease, campaign: Campaign, now: float) -> None:
    campaign.tell(lease, 0, now, seconds=9.0)


def test_hours_that_turn_out_otherwise_are_told(run: desks.Run) -> None:
    assert run("new", "fix", "--data", "pets", "--hours", "1", "--selector", "lda").status == 0
    assert "hours were agreed" not in run("status", "fix").out
    with campaigns.opened(Path("fix"), clock=lambda: 2e9) as found:
        for _ in range(20):
            lease = found.do(lambda campaign, now: campaign.ask("Ada", now))
            found.do(partial(tell, lease))
    said = run("status", "fix")
    assert "Budget 900 answers (2 h 15 at 9.0 s an answer (measured on 20))" in said.out
    assert "1 hours were agreed, which are 400 answers at this pace; relook set --hours 1 makes them so." in said.out
    assert "The budget is 400 answers now: 1 h 00 at 9.0 s an answer" in run("set", "fix", "--hours", "1").out


def test_the_end_is_told(run: desks.Run) -> None:
    desks.made(run, "--answers", "5")
    desks.fill(desks.handed(run, "Ada", "a.csv", 5), most=4)
    run("answers", "fix", "a.csv")
    assert "Next: relook answers fix FILE, for what is handed out" in run("status", "fix").out
    run("set", "fix", "--free", "Ada", "--answers", "4")
    run("set", "fix", "--answers", "4")
    run("set", "fix", "--close")
    said = run("status", "fix")
    assert "The campaign is closed." in said.out
    assert "Next: relook export fix --to clean.csv" in said.out
