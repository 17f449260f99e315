"""`relook doctor` tells what a machine has and lacks, with a cure for each lack."""

import builtins
import json
import os
import sqlite3
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import relook
import relook.cli
from relook.cli import doctor
from tests.commands import Said, command

Run = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RELOOK_DATA", raising=False)
    return lambda *words: command("doctor", *words, capsys=capsys)


def found() -> dict[str, doctor.Finding]:
    return {finding.part: finding for finding in doctor.examined()}


class TestSound:
    def test_machine_ends_well(self, run: Run) -> None:
        said = run()
        assert (said.status, said.err) == (0, "")
        assert said.out.splitlines()[-2:] == ["Nothing is broken.", "Next: relook demo"]
        assert "data folder: set RELOOK_DATA to the folder of your data sets" in said.out

    def test_findings_are_those_of_the_machine(self, run: Run) -> None:
        here = found()
        assert here["relook"].found == relook.__version__
        assert here["python"].found.startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
        assert here["sqlite"].found == sqlite3.sqlite_version
        assert here["cores"].found.endswith(f"of {os.cpu_count()}")
        for name in doctor.requirements()[""]:
            assert here[name] == doctor.Finding(name, metadata.version(name))

    def test_packages_are_those_that_relook_declares(self) -> None:
        needed = doctor.requirements()
        assert {"numpy", "msgspec", "polars", "typer"} <= set(needed[""])
        assert "ruff" in needed["dev"]
        assert "mkdocs-material" in needed["docs"]

    def test_json_holds_every_finding(self, run: Run) -> None:
        assert "Wrote found.json" in run("--json", "found.json").out
        rows = json.loads(Path("found.json").read_text())
        assert [row["part"] for row in rows] == list(found())
        assert {row["state"] for row in rows} <= {"ok", "missing"}
        assert set(rows[0]) == {"part", "found", "state", "cure"}


class TestData:
    def test_what_lies_in_the_folder_is_found(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RELOOK_DATA", str(tmp_path))
        assert found()["data sets"].state == "missing"
        assert "relook datasets lists those that can be there" in str(found()["data sets"].cure)
        (tmp_path / "cifar10h").mkdir()
        (tmp_path / "cifar10h" / "cifar10h-counts.npy").touch()
        assert found()["data sets"] == doctor.Finding("data sets", "cifar10h")
        assert found()["data folder"] == doctor.Finding("data folder", str(tmp_path))

    def test_real_folder_holds_the_real_sets(self, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RELOOK_DATA", str(data_dir))
        assert "cifar10h" in found()["data sets"].found

    def test_folder_that_is_not_there_is_broken(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RELOOK_DATA", "gone")
        said = run("--json", "found.json")
        assert said.status == 1
        assert "data folder: set RELOOK_DATA to a folder that is there" in said.out
        assert said.out.splitlines()[-3] == "Broken: data folder."
        assert {"part": "data folder", "found": "gone is no folder", "state": "problem"}.items() <= json.loads(
            Path("found.json").read_text()
        )[-2].items()
        assert CliRunner().invoke(relook.cli.app, ["doctor"]).exit_code == 1


class TestBroken:
    def test_package_that_is_not_there(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        there = doctor.installed
        monkeypatch.setattr(doctor, "installed", lambda name: None if name == "polars" else there(name))
        said = run()
        assert said.status == 1
        assert "polars: pip install polars" in said.out
        assert "Broken: polars." in said.out

    def test_package_that_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(name: str) -> None:
            raise OSError("libgomp.so.1: cannot open")

        monkeypatch.setattr(doctor, "_imported", fails)
        here = found()["scikit-learn"]
        assert here.found.endswith("but it fails: libgomp.so.1: cannot open")
        assert (here.state, here.cure) == ("problem", "pip install --force-reinstall scikit-learn")

    def test_extra_that_is_not_there_is_no_fault(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(doctor, "requirements", lambda: {"": ["numpy"], "deep": ["torch-of-tomorrow"]})
        said = run()
        assert said.status == 0
        assert 'extra deep: pip install "relook[deep]"' in said.out
        assert found()["extra deep"].found == "without torch-of-tomorrow"

    def test_relook_that_is_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(name: str) -> Any:
            raise metadata.PackageNotFoundError(name)

        monkeypatch.setattr(metadata, "requires", fails)
        monkeypatch.setattr(metadata, "version", fails)
        assert doctor.requirements() == {"": []}
        assert found()["relook"].state == "missing"

    def test_old_python(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(doctor, "OLDEST_PYTHON", (99, 0))
        assert found()["python"].state == "problem"

    @pytest.mark.parametrize(
        ("version", "state"),
        [
            ((3, 40, 1), "missing"),
            ((3, 51, 2), "missing"),
            ((3, 51, 3), "ok"),
            ((3, 52, 1), "missing"),
            ((3, 53, 0), "ok"),
        ],
    )
    def test_sqlite_that_two_writers_may_damage(
        self, version: tuple[int, ...], state: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
        assert found()["sqlite"].state == state
        assert ("let no other program do" in str(found()["sqlite"].cure)) == (state == "missing")

    def test_old_or_absent_sqlite(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(doctor, "RESETTING_SQLITE", ())
        monkeypatch.setattr(doctor, "OLDEST_SQLITE", (99, 0, 0))
        assert found()["sqlite"].cure == "99.0.0 or later is needed; install a newer Python"
        real = builtins.__import__

        def without(name: str, *rest: Any, **more: Any) -> Any:
            if name == "sqlite3":
                raise ImportError(name)
            return real(name, *rest, **more)

        monkeypatch.setattr(builtins, "__import__", without)
        assert doctor._sqlite().found == "not there"

    def test_little_or_unknown_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(doctor, "memory", lambda: 1.5)
        assert (found()["memory"].found, found()["memory"].state) == ("1.5 GiB", "missing")
        monkeypatch.setattr(doctor, "memory", lambda: None)
        assert found()["memory"].found == "unknown"

    def test_memory_is_what_the_system_says(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 2**20, "SC_PAGE_SIZE": 4096}.__getitem__)
        assert doctor.memory() == 4.0

        def fails(name: str) -> int:
            raise ValueError(name)

        monkeypatch.setattr(os, "sysconf", fails)
        assert doctor.memory() is None
