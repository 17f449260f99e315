"""`relook settle` as a user types it: out to a reviewer, back, and on into what leaves."""

from pathlib import Path

import polars as pl
import pytest

from relook import campaigns
from tests import desks


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> desks.Run:
    """Run commands in a folder with a campaign in which two people disagree about everything."""
    said = desks.at(tmp_path, monkeypatch, capsys)
    desks.made(said, "--settle", "people:2", "--people", "2")
    for name, shift in (("Ada", 1), ("Bo", 2)):
        answers = [desks.CLASSES[(label + shift) % 3] for label in desks.TRUE]
        desks.fill(desks.handed(said, name, f"{name}.csv"), answers=answers.__getitem__)
        assert said("answers", "fix", f"{name}.csv").status == 0
    return said


def test_a_reviewer_decides_what_people_disagree_about(run: desks.Run) -> None:
    assert "0 settled, 6 disputed" in run("status", "fix").out
    said = run("settle", "fix", "--to", "disputed.csv")
    assert said.out.splitlines() == [
        "6 items for a reviewer, with what people said of each.",
        "Wrote disputed.csv",
        "Next: relook settle fix disputed.csv --for NAME, once the column answer is filled",
    ]
    sheet = pl.read_csv("disputed.csv")
    assert sheet.columns == ["id", "x", "y", "z", "verdict", "said", "answer", "why"]
    assert sheet["said"][0].startswith("Ada: ")
    desks.fill(Path("disputed.csv"), most=5)
    said = run("settle", "fix", "disputed.csv", "--for", "Eva")
    assert said.out.splitlines()[0] == "5 words of Eva recorded; 1 still to come."
    assert "0 words of Eva recorded; 5 were recorded before" in run("settle", "fix", "disputed.csv", "--for", "Eva").out
    assert "5 settled, 1 disputed" in run("status", "fix").out
    ledger, _ = campaigns.looked(Path("fix"))
    final = ledger.final()
    assert sum(final[item] == desks.TRUE[item] for item in ledger.words) == 5
    assert ledger.spent == 12
    assert run("export", "fix", "--to", "clean.csv").status == 0
    assert Path("clean.csv.log.jsonl").read_text().count('"type":"adjudicated"') == 5


def test_a_row_that_cannot_be_is_refused(run: desks.Run) -> None:
    run("settle", "fix", "--to", "disputed.csv")
    desks.fill(Path("disputed.csv"), answers=lambda _: "donkey", most=1)
    said = run("settle", "fix", "disputed.csv", "--for", "Eva")
    assert said.status == 1
    assert "Refused: disputed.csv, line 2 (id" in said.out


def test_nothing_waits_in_a_campaign_that_agrees(run: desks.Run) -> None:
    run("settle", "fix", "--to", "disputed.csv")
    desks.fill(Path("disputed.csv"))
    run("settle", "fix", "disputed.csv", "--for", "Eva")
    assert "No item waits for a reviewer." in run("settle", "fix", "--to", "more.csv").out
    assert not Path("more.csv").exists()


def test_what_is_wanted_must_be_said(run: desks.Run) -> None:
    assert "--to, for items to go out, or a file that came back was needed, but neither" in run("settle", "fix").err
    assert "was needed, but both came" in run("settle", "fix", "a.csv", "--to", "b.csv").err
    assert "the reviewer's name was needed for a.csv, but it did not come" in run("settle", "fix", "a.csv").err
