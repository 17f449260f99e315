"""`relook datasets` as a user gives it; what it downloads comes from a server on this machine."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relook import published
from relook.cli import datasets as cli
from relook.published import PUBLISHED
from tests.commands import Said, command
from tests.test_download import Publisher
from tests.test_download import publisher as serving

Run = Callable[..., Said]
publisher = serving


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RELOOK_DATA", raising=False)
    return lambda *words: command("datasets", *words, capsys=capsys)


def test_list(run: Run, tmp_path: Path) -> None:
    said = run("--json", "sets.json")
    assert (said.status, said.err) == (0, "")
    for name, found in PUBLISHED.items():
        assert name in said.out
        assert found.licence in said.out
    assert "No folder: name it with --data, or set RELOOK_DATA." in said.out
    rows = json.loads(Path("sets.json").read_text())
    assert [row["name"] for row in rows] == list(PUBLISHED)
    assert {row["there"] for row in rows} == {None}
    (tmp_path / "cifar10h").mkdir()
    (tmp_path / "cifar10h" / "cifar10h-counts.npy").touch()
    there = run("--data", ".", "--json", "sets.json").out
    assert "digits comes with relook's own packages." in there
    assert {row["name"]: row["there"] for row in json.loads(Path("sets.json").read_text())}["cifar10h"] == "there"
    assert "Next: relook datasets get cifar10" in there


def test_real_folder(run: Run, data_dir: Path) -> None:
    run("--data", str(data_dir), "--json", "sets.json")
    states = {row["name"]: row["there"] for row in json.loads(Path("sets.json").read_text())}
    assert states["cifar10"] == states["cifar10n"] == states["pneumoniamnist"] == "there"
    assert (states["noisy_cxr"], states["chestmnist"]) == ("in part", "no")


class TestGet:
    @pytest.fixture(autouse=True)
    def on_this_machine(self, monkeypatch: pytest.MonkeyPatch, publisher: Publisher) -> None:
        """Offer CIFAR-10H's counts and the RSNA's mapping, made up, where the real ones are."""
        made: dict[str, Any] = dict(PUBLISHED)
        for name, place in (("cifar10h", 0), ("noisy_cxr", 2)):
            files = list(made[name].files)
            digest = f"sha256:{hashlib.sha256(name.encode()).hexdigest()}"
            files[place] = msgspec.structs.replace(files[place], digest=digest)
            made[name] = msgspec.structs.replace(made[name], files=tuple(files))
            path = "/" + files[place].url.split("/", 3)[3]
            publisher.answers[path] = (200, name.encode(), {})
        monkeypatch.setattr(published, "PUBLISHED", made)
        monkeypatch.setattr("relook.download.secure", publisher.opener)
        monkeypatch.setattr("relook.download.obtain.__kwdefaults__", {"opener": publisher.opener, "step": None})

    def test_once(self, run: Run) -> None:
        said = run("get", "cifar10h", "--data", ".")
        assert (said.status, said.err) == (0, "")
        assert Path("cifar10h/cifar10h-counts.npy").read_text() == "cifar10h"
        assert said.out.count("Licence of cifar10h: CC BY-NC-SA 4.0. Cite:") == 1
        assert "peterson2019human" in said.out
        assert "By hand (optional): put cifar10h-raw.csv into cifar10h" in said.out
        again = run("get", "cifar10h", "--data", ".")
        assert "cifar10h is there already." in again.out
        assert "Licence" not in again.out

    def test_in_part(self, run: Run) -> None:
        said = run("get", "noisy_cxr", "--data", ".")
        assert "By hand: put stage_2_train_labels.csv into rsna; it is at kaggle.com" in said.out
        assert said.out.splitlines()[-1] == "Next: relook datasets"
        assert Path("rsna/pneumonia-challenge-dataset-mappings_2018.json").is_file()

    def test_refused(self, run: Run, publisher: Publisher) -> None:
        publisher.answers.clear()
        said = run("get", "cifar10h", "--data", ".")
        assert said.status == 2
        assert "the server said 404" in said.err
        assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["get"], "get and the name of a set were needed, but 'get' came; say get cifar10n"),
        (["fetch", "cifar10h"], "get and the name of a set were needed, but 'fetch' came"),
        (["get", "mnist"], "the name of a published set was needed"),
        (["get", "cifar10h"], "dataset cifar10h: a folder was needed, but none was given"),
    ],
)
def test_bad(run: Run, words: list[str], message: str) -> None:
    said = run(*words)
    assert said.status == 2
    assert message in said.err


def test_what_to_do_with_a_set() -> None:
    assert cli._use("cifar10h") == "relook simulate --dataset cifar10h"
    assert cli._use("cifar10n") == "relook noise cifar10n --help"
