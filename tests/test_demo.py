"""`relook demo`: the first thing anybody runs. It is quick, needs no network and no torch, and says the same twice."""

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from relook.runs import read_runs
from tests.commands import command
from tests.conftest import ROOT

ALONE = """
import socket, sys
def refuse(*_, **__):
    raise OSError("no network here")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
from relook.cli import main
try:
    main()
finally:
    assert not {"torch", "matplotlib", "polars"} & set(sys.modules), "the demo needs the core alone"
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, float]:
    """A demo in a process of its own without a network: its folder, what it said, and its CPU seconds."""
    folder = tmp_path_factory.mktemp("demo")
    there = os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "120"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", ALONE, "demo"], cwd=folder, env=there, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout + done.stderr
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return folder / "relook-demo", done.stdout, seconds


def test_it_takes_well_under_a_minute_of_one_core(demo: tuple[Path, str, float]) -> None:
    assert demo[2] < 15


def test_it_shows_a_table_a_sentence_and_the_next_command(demo: tuple[Path, str, float]) -> None:
    _, said, _ = demo
    lines = said.splitlines()
    for policy in ("default", "paper", "random", "oracle"):
        assert any(line.startswith(f"{policy} ") for line in lines)
    assert re.search(
        r"\d+ answers take the labels from 81\.\d\s% to 9\d\.\d\s% correct with the default policy; random", said
    )
    assert "Wrote relook-demo/report.html" in lines[-2]
    assert lines[-1].startswith("Next: relook ")


def test_the_numbers_are_sound(demo: tuple[Path, str, float]) -> None:
    runs = read_runs(demo[0])
    assert runs.policies == ("default", "paper", "random", "oracle")
    assert len(runs.rows) == 20
    share = {policy: min(row["share_correct"] for row in runs.rows_of(policy)) for policy in runs.policies}
    assert share["oracle"] > 0.98
    assert min(share["default"], share["paper"]) > max(row["share_correct"] for row in runs.rows_of("random")) + 0.05
    assert runs.extra.gallery


def test_the_report_is_one_page_with_pictures(demo: tuple[Path, str, float]) -> None:
    page = (demo[0] / "report.html").read_text("utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert "data:image/png;base64," in page
    assert "handwritten" in page.lower() or "digits" in page


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def test_it_says_the_same_twice(
    demo: tuple[Path, str, float], elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = command("demo", "--to", "again", capsys=capsys)
    assert said.status == 0
    assert said.out.replace("again/", "relook-demo/") == demo[1]
    for name in ("rows.json", "curves.npz", "resolved.json", "extra.json"):
        assert (demo[0] / name).read_bytes() == (elsewhere / "again" / name).read_bytes(), name
    again = command("demo", "--to", "again", capsys=capsys)
    assert again.out == said.out


def test_a_folder_of_something_else_is_left_alone(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (elsewhere / "mine").mkdir()
    (elsewhere / "mine" / "rows.json").write_text("[]", "utf-8")
    said = command("demo", "--to", "mine", capsys=capsys)
    assert (said.status, said.out) == (2, "")
    assert "--to mine: it holds rows.json of other runs; name another folder" in said.err
    assert json.loads((elsewhere / "mine" / "rows.json").read_text("utf-8")) == []
