"""`relook embed` as a user gives it: the set is described, and `relook rank` learns from that."""

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from relook.cli.embed import embed
from relook.embedding import MODEL
from tests.commands import Said, command
from tests.networks import installed
from tests.test_embedding import shelf

Run = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    installed(tmp_path / "packages", monkeypatch)
    shelf(tmp_path, items=14)
    return lambda *words: command(*words, capsys=capsys)


def test_describes_a_set_once_and_rank_learns_from_it(run: Run) -> None:
    said = run("embed", "shelf")
    assert said.status == 0, said.err
    assert said.out.startswith("14 new images in ")
    assert " a second; 704 numbers each.\n" in said.out
    assert said.out.endswith("Wrote shelf/embeddings.npy\nNext: relook rank shelf\n")
    assert run("embed", "shelf").out.startswith("0 new images in ")
    assert "on the embeddings that came along" in run("rank", "shelf").out


def test_the_default_is_the_librarys() -> None:
    assert inspect.signature(embed).parameters["model"].default == MODEL


def test_writes_elsewhere_and_keeps_elsewhere(run: Run) -> None:
    said = run("embed", "shelf", "--to", "e.npy", "--cache", "kept")
    assert said.out.endswith("Wrote e.npy\nNext: relook import ... --embeddings e.npy\n")
    assert Path("kept").is_dir()
    assert not Path("shelf", "embeddings.npy").exists()


def test_refuses_in_a_sentence(run: Run) -> None:
    assert run("embed", "pets").err.startswith("relook: pets: an imported set was needed")
    said = run("embed", "shelf", "--model", "resnet")
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert "embed: a network was needed" in said.err
