"""`relook next` as a user types it: what goes out, what is said, and why nothing does."""

from pathlib import Path

import polars as pl
import pytest

from relook import campaigns
from tests import desks


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> desks.Run:
    """Run commands in a folder with a set."""
    return desks.at(tmp_path, monkeypatch, capsys)


def test_items_go_out_and_are_reserved(run: desks.Run) -> None:
    desks.made(run)
    said = run("next", "fix", "-n", "6", "--for", "Ada", "--to", "tasks.csv")
    assert said.out.splitlines() == [
        "6 items for Ada, for 7 days; blind: nothing tells a label.",
        "Answers are cat, dog, hen, or: cannot tell, none of these.",
        "84 answers of the budget are left.",
        "Wrote tasks.csv",
        "Next: relook answers fix tasks.csv, once the column answer is filled",
    ]
    ledger, _ = campaigns.looked(Path("fix"))
    sheet = pl.read_csv("tasks.csv")
    assert sheet["id"].to_list() == [desks.IDS[lease.item] for lease in ledger.leases.values()]
    assert {lease.annotator for lease in ledger.leases.values()} == {"Ada"}


def test_what_somebody_holds_is_written_once_more(run: desks.Run) -> None:
    desks.made(run)
    first = desks.handed(run, "Ada", "first.csv").read_text()
    said = run("next", "fix", "--for", "Ada", "--to", "again.csv", "--again")
    assert Path("again.csv").read_text() == first
    assert "84 answers of the budget are left." in said.out
    said = run("next", "fix", "-n", "2", "--for", "Ada", "--to", "more.csv")
    assert "Ada holds 6 items from before too; --again writes those once more." in said.out
    assert (
        "Nothing was handed out: Bo holds nothing." in run("next", "fix", "--for", "Bo", "--to", "b.csv", "--again").out
    )


def test_why_nothing_goes_out_is_said(run: desks.Run) -> None:
    desks.made(run, "--answers", "4", "--people", "2")
    desks.handed(run, "Ada", "a.csv")
    nothing = ("next", "fix", "--for", "Bo", "--to", "b.csv")
    assert "the budget is spent: 0 answers, and 4 handed out" in run(*nothing).out
    run("set", "fix", "--answers", "9", "--pause", "Bo")
    assert "Bo is paused or removed, see relook set" in run(*nothing).out
    run("set", "fix", "--pause", "all")
    assert "the campaign is paused or removed" in run(*nothing).out
    run("set", "fix", "--close")
    said = run(*nothing)
    assert "Nothing was handed out: the campaign is closed." in said.out
    assert said.status == 0
    assert not Path("b.csv").exists()


def test_nothing_is_leased_for_a_file_that_cannot_be(run: desks.Run) -> None:
    desks.made(run)
    said = run("next", "fix", "--for", "Ada", "--to", "tasks.docx")
    assert (said.status, "but .docx came; name one with --to" in said.err) == (2, True)
    assert campaigns.looked(Path("fix"))[0].reserved == 0


def test_time_that_is_over_frees_the_items(run: desks.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    desks.made(run, "--hold", "2", "--answers", "4")
    clock = [campaigns.looked(Path("fix"))[0].now]
    monkeypatch.setattr("relook.cli.next_.time", lambda: clock[0])
    desks.handed(run, "Ada", "a.csv", 4)
    clock[0] += 2 * 3600 - 1
    assert "and 4 handed out" in run("next", "fix", "--for", "Bo", "--to", "b.csv").out
    clock[0] += 2
    assert "4 items for Bo, for 2 h 00" in run("next", "fix", "--for", "Bo", "--to", "b.csv").out
    assert run("log", "verify", "fix").status == 0


def test_a_second_program_is_told_who_writes(run: desks.Run) -> None:
    desks.made(run)
    with campaigns.opened(Path("fix"), clock=lambda: 2e9):
        said = run("next", "fix", "--for", "Ada", "--to", "a.csv")
        assert (said.status, "one program may write at a time, but pid" in said.err) == (3, True)
        assert "Ranking 1," in run("status", "fix").out, "whoever only looks need not wait"
