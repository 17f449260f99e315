"""`relook answers` as a user types it: what is recorded, what is refused by its number, and when a model is fitted."""

from pathlib import Path

import msgspec
import polars as pl
import pytest

from relook import campaigns, charter
from tests import desks


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> desks.Run:
    """Run commands in a folder with a campaign."""
    said = desks.at(tmp_path, monkeypatch, capsys)
    desks.made(said, "--settle", "people:2", "--people", "3")
    return said


def spent() -> int:
    return campaigns.looked(Path("fix"))[0].spent


def test_a_file_sent_twice_changes_nothing(run: desks.Run) -> None:
    desks.fill(desks.handed(run, "Ada", "a.csv"), most=4)
    said = run("answers", "fix", "a.csv")
    assert said.out.splitlines() == ["4 answers recorded; 2 still to come.", "Next: relook status fix"]
    log = campaigns.head(Path("fix"))
    assert "0 answers recorded; 4 were recorded before; 2 still to come." in run("answers", "fix", "a.csv").out
    assert campaigns.head(Path("fix")) == log
    desks.fill(Path("a.csv"))
    assert "2 answers recorded; 4 were recorded before." in run("answers", "fix", "a.csv").out
    assert spent() == 6


def spoil(file: Path) -> None:
    """Spoil three rows of six."""
    sheet = pl.read_csv(file)
    answers = ["cat", "doge", "dog", "none of these", "cannot tell", "hen"]
    leases = [1, 2, 77, 4, 5, 6]
    ids = [*sheet["id"][:5], "nobody"]
    sheet.with_columns(id=pl.Series(ids), answer=pl.Series(answers), lease=pl.Series(leases)).write_csv(file)


def test_bad_rows_are_refused_by_number_and_the_others_recorded(run: desks.Run) -> None:
    spoil(desks.handed(run, "Ada", "a.csv"))
    said = run("answers", "fix", "a.csv")
    assert said.status == 1
    assert "3 answers recorded." in said.out
    refused = [line for line in said.out.splitlines() if line.startswith("Refused: ")]
    assert [line.split("(id")[0] for line in refused] == [f"Refused: a.csv, line {line} " for line in (3, 4, 7)]
    assert "is 'dog' meant?" in refused[0]
    assert spent() == 3


def test_strict_records_all_or_nothing(run: desks.Run) -> None:
    spoil(desks.handed(run, "Ada", "a.csv"))
    said = run("answers", "fix", "a.csv", "--strict")
    assert said.status == 2
    assert "3 rows are refused, so by --strict nothing was recorded" in said.err
    assert said.out.count("Refused: ") == 2
    assert spent() == 0


def test_who_answered_may_be_said(run: desks.Run) -> None:
    desks.fill(desks.handed(run, "Ada", "a.csv"))
    pl.read_csv("a.csv").drop("lease").write_csv("bare.csv")
    said = run("answers", "fix", "bare.csv")
    assert (said.status, "name them with --for" in said.out) == (1, True)
    assert "6 answers recorded." in run("answers", "fix", "bare.csv", "--for", "Ada").out
    assert (
        "an item handed out to Bo was needed, but Ada holds lease 1"
        in run("answers", "fix", "a.csv", "--for", "Bo").out
    )


def test_late_answers_are_kept(run: desks.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    desks.fill(desks.handed(run, "Ada", "a.csv"))
    monkeypatch.setattr("relook.cli.answers.time", lambda: 4e9)
    said = run("answers", "fix", "a.csv")
    assert "0 answers recorded; 6 came too late: kept, but they neither count nor cost." in said.out
    assert spent() == 0


def test_what_is_no_file_is_refused(run: desks.Run) -> None:
    assert run("answers", "fix", "gone.csv").status == 2
    assert run("answers", "fix", "pets.csv").status == 2
    assert "the folder of a campaign was needed" in run("answers", "pets", "pets.csv").err


@pytest.mark.slow
def test_the_model_is_fitted_when_it_is_time(run: desks.Run) -> None:
    decided = charter.read(Path("fix"))
    often = msgspec.structs.replace(decided.retraining, answers=6)
    charter.write(msgspec.structs.replace(decided, retraining=often), Path("fix"))
    desks.fill(desks.handed(run, "Ada", "a.csv"), most=5)
    assert "time to fit" not in run("answers", "fix", "a.csv").out
    desks.fill(Path("a.csv"))
    assert "time to fit" not in run("answers", "fix", "a.csv", "--no-train").out
    desks.fill(desks.handed(run, "Bo", "b.csv", 1))
    said = run("answers", "fix", "b.csv")
    assert (
        "It is time to fit the model anew: 7 answers since the last ranking. The answers are safe already" in said.out
    )
    assert "Ranking 2 is in force, learnt from 7 answers." in said.out
    said = run("retrain", "fix")
    assert "Ranking 3 is in force, learnt from 7 answers." in said.out
    assert "Ranking 3, " in run("status", "fix").out
    assert run("log", "verify", "fix").status == 0
