"""`relook noise` as a user gives it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from relook import imported
from tests.commands import Said, command

Run = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RELOOK_DATA", raising=False)
    return lambda *words: command("noise", *words, capsys=capsys)


def test_a_copy_of_a_data_set_and_of_an_imported_one(run: Run) -> None:
    said = run("digits", "--to", "noisy", "--model", "symmetric", "--rate", ".2", "--seed", "3")
    assert (said.status, said.err) == (0, "")
    assert said.out.splitlines()[0].startswith("Given labels drawn by symmetric, seed 3: ")
    assert said.out.splitlines()[1:] == ["Wrote noisy", "Next: relook simulate --dataset noisy"]
    again = run("noisy", "--to", "noisier", "--model", "instance-dependent", "--rate", ".4", "--std", "0.01")
    assert again.status == 0
    found = imported.read(Path("noisier"))
    assert found.manifest.noise["std"] == 0.01
    assert abs((found.dataset().given.given != found.dataset().true_class).mean() - 0.4) < 0.06
    same = run("digits", "--to", "noisy", "--model", "symmetric", "--rate", ".2", "--seed", "3")
    assert "noisy is that copy already." in same.out
    assert "Wrote" not in same.out


def test_files_of_one_s_own(run: Run) -> None:
    np.save("matrix.npy", np.roll(np.eye(10), 1, axis=1))
    np.save("embeddings.npy", np.random.default_rng(0).standard_normal((1_797, 4)))
    assert (
        run("digits", "--to", "a", "--model", "class-dependent", "--matrix", "matrix.npy", "--rate", ".1").status == 0
    )
    assert run("digits", "--to", "b", "--model", "class-dependent", "--matrix", "cifar10-asymmetric").status == 0
    words = ["--model", "instance-dependent", "--rate", ".1", "--embeddings", "embeddings.npy"]
    assert run("digits", "--to", "c", *words).status == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["mnist", "--model", "symmetric"],
            "mnist: an imported set, or one of digits, .+ was needed, but it is neither",
        ),
        (["cifar10h", "--model", "symmetric"], "dataset cifar10h: a folder was needed, but none was given"),
        (["digits", "--model", "symmetric", "--split", "train"], "its settings are seed, rate, but 'split' came"),
        (
            [".", "--model", "symmetric", "--question", "flu"],
            "--question belongs to a data set of a name, but a folder",
        ),
        (
            ["digits", "--model", "class-dependent", "--matrix", "no.npy"],
            "no.npy: a file was needed, but there is none of this name",
        ),
        (
            ["digits", "--model", "temperature", "--rate", ".95"],
            "a rate of 0.950 was asked for, but Temperature reaches",
        ),
    ],
)
def test_bad(run: Run, words: list[str], message: str) -> None:
    import re

    said = run(*words, "--to", "noisy")
    assert said.status == 2
    assert re.search(message, said.err), said.err
    assert not Path("noisy").exists()
