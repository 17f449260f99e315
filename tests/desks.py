"""A small campaign to work on: a hundred items of three classes, known by three numbers each, some mislabelled."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from relook import imported
from relook.datasets import table
from relook.imported import Imported, Origin, source_file
from relook.sources import Columns
from tests.commands import Said, command

ITEMS, CLASSES = 100, ("cat", "dog", "hen")

_RNG = np.random.default_rng(3)
TRUE = np.arange(ITEMS) % 3
GIVEN = np.where(_RNG.random(ITEMS) < 0.2, (TRUE + 1) % 3, TRUE)
NUMBERS = np.eye(3)[TRUE] + 0.3 * _RNG.standard_normal((ITEMS, 3))
IDS = [f"p{number:03d}" for number in range(ITEMS)]

Run = Callable[..., Said]


def pets(folder: Path, *, classes: tuple[str, ...] = CLASSES, ids: list[str] | None = None) -> Imported:
    """Import the set, with a split of two thirds to train on."""
    named = np.array([classes[label % len(classes)] for label in GIVEN])
    splits = ["test" if number % 3 == 0 else "train" for number in range(ITEMS)]
    columns = {"id": ids or IDS, "label": named, "split": splits}
    frame = pl.DataFrame(columns | {name: NUMBERS[:, at] for at, name in enumerate("xyz")})
    source = folder.with_suffix(".csv")
    frame.write_csv(source)
    found = table.collection(source, columns=Columns(numbers=("x", "y", "z")))
    made, _ = imported.write(found, folder, origin=Origin(sources=(source_file(source),)))
    return made


def at(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Go to a folder, import the set `pets` there, and return what runs commands."""
    monkeypatch.chdir(folder)
    pets(Path("pets"))
    return lambda *words: command(*words, capsys=capsys)


def fill(
    file: Path, *, answers: Callable[[int], str] = lambda item: CLASSES[TRUE[item]], most: int | None = None
) -> int:
    """Answer the items of a table, or the first of them, and return how many."""
    sheet = pl.read_csv(file, infer_schema=False)
    said = [answers(IDS.index(name)) for name in sheet["id"]][: most if most is not None else len(sheet)]
    sheet.with_columns(answer=pl.Series(said + [None] * (len(sheet) - len(said)), dtype=pl.String)).write_csv(file)
    return len(said)


def trainer(folder: Path, body: str) -> str:
    """Write a trainer of a user's own, and return how it is named."""
    head = "import os, signal, sys, time\nimport numpy as np\nfrom relook.types import Posteriors\n\n"
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    path = folder / "own.py"
    path.write_text(f"{head}\ndef train(dataset, labels, seed):\n{lines}\n", "utf-8")
    return f"{path}:train"


def made(run: Run, *words: str) -> Said:
    """Make a campaign `fix` on the set `pets` that is ranked by fast means, and return what was said."""
    usual = {"--data": "pets", "--answers": "90", "--selector": "lda"}
    missing = [word for option, value in usual.items() if option not in words for word in (option, value)]
    said = run("new", "fix", *missing, *words)
    assert said.status == 0, said.err
    return said


def handed(run: Run, name: str, to: str, count: int = 6) -> Path:
    """Hand items out to somebody, and return the table."""
    said = run("next", "fix", "-n", str(count), "--for", name, "--to", to)
    assert said.status == 0, said.err
    return Path(to)


PROGRAM = [sys.executable, "-c", "from relook.cli import main; main()"]
"""The real program, for what must be another process."""
