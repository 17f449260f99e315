"""`relook reproduce` as a user types it, from a checkout and away from one."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from benchmarks import bounds
from tests.commands import Said, command
from tests.conftest import ROOT

Run = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return lambda *words: command("reproduce", *words, capsys=capsys)


def test_without_a_name_the_tables_are_listed(run: Run) -> None:
    said = run()
    assert said.status == 0
    assert "bounds" in said.out
    assert "The bounds of the paper's simulation on CIFAR-10H" in said.out
    assert "record" not in said.out, "what measures no table of the paper is not listed"
    assert "Next: relook reproduce" in said.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("bond",), "reproduce: .*bounds.* was needed, but 'bond' came; check the spelling"),
        (("bounds", "--scale", "tiny"), "--scale: smoke or paper was needed, but 'tiny' came"),
        (("bounds", "--jobs", "0"), "jobs: at least 1 at a time was needed, but 0 came"),
        (("bounds", "--json", "no/b.json"), "--json no/b.json: a file in a folder that exists was needed"),
        (("bounds", "--to", "a-file"), "--to a-file: a folder was needed, but a file is there"),
        (("bounds", "--data", "nowhere"), "cifar10h: .* was needed, but there is no such file"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_bad_input_is_one_sentence_and_nothing_is_written(run: Run, words: tuple[str, ...], sentence: str) -> None:
    Path("a-file").touch()
    said = run(*words)
    assert said.status == 2
    assert re.fullmatch(f"relook: {sentence}.*\n", said.err), said.err
    assert [path.name for path in Path.cwd().iterdir()] == ["a-file"]


def test_away_from_a_checkout_it_says_so(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src" / "relook", tmp_path / "site" / "relook", ignore=shutil.ignore_patterns("__pycache__"))
    words = [sys.executable, "-c", "from relook.cli import main; main()", "reproduce", "bounds"]
    there = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    # Imports look into PYTHONPATH before they look where an editable install points to.
    away = subprocess.run(words, cwd=tmp_path, env=there, capture_output=True, text=True, check=False)
    assert away.returncode == 2
    assert away.stderr == (
        "relook: reproduce: a checkout with its folder benchmarks was needed, but this relook was installed without "
        "it; clone the repository and run the command in it\n"
    )
    listed = subprocess.run(words[:-1], cwd=ROOT / "docs", env=there, capture_output=True, text=True, check=False)
    assert "bounds" in listed.stdout, "within a checkout its tables are found"


@pytest.mark.slow
def test_the_bounds_are_reached(run: Run, data_dir: Path) -> None:
    said = run("bounds", "--scale", "smoke", "--data", str(data_dir), "--json", "b.json", "--to", "results")
    assert said.status == 0, said.out + said.err
    assert "All rows are within what is allowed, and all checks hold." in said.out
    rows = json.loads(Path("b.json").read_text("utf-8"))
    assert len(rows) == 2 * len(bounds.PAPER)
    assert {"policy", "tau", "budget", "share_correct", "auc"} <= set(rows[0])
    found = json.loads(Path("results/bounds.json").read_text("utf-8"))
    assert found["rows"] == rows
    assert found["scale"] == "smoke"
    assert found["command"] == "relook reproduce bounds --scale smoke --seed 0"
    assert Path("results/bounds.md").read_text("utf-8").startswith("# bounds\n")


def test_what_does_not_agree_is_said_and_ends_with_status_1(
    run: Run, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"policy": "random", "tau": 2, "budget": 200, "share_correct": 0.99, "auc": 0.9}
    monkeypatch.setattr(bounds, "PAPER", (wrong,))
    monkeypatch.setattr(bounds, "COUNTS", {2: bounds.COUNTS[2]})
    monkeypatch.setattr(bounds, "ORDER", ("random",))
    said = run("bounds", "--scale", "smoke", "--data", str(data_dir))
    assert said.status == 1
    assert "2 do not agree." in said.out
    assert " NO" in said.out


def test_pieces_are_records(data_dir: Path) -> None:
    piece = bounds.jobs("smoke")[0]
    assert msgspec.convert(msgspec.to_builtins(piece), bounds.Piece) == piece
