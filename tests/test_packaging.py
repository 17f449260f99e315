"""What is installed: pinned, declared, pure Python, and started by one command."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.house import Module

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
IMPORTED_AS = {"pillow": "PIL", "scikit-learn": "sklearn"}


def _names(requirements: list[str]) -> list[str]:
    return [re.split(r"[<>=!~\[; ]", requirement, maxsplit=1)[0].lower() for requirement in requirements]


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    return dict(line.lower().split("==") for line in lines)


@pytest.mark.parametrize("part", ["core", "build", *PROJECT["project"]["optional-dependencies"]])
def test_everything_is_pinned(part: str) -> None:
    parts = {
        "core": PROJECT["project"]["dependencies"],
        "build": PROJECT["build-system"]["requires"],
        **PROJECT["project"]["optional-dependencies"],
    }
    assert [name for name in _names(parts[part]) if name not in pins()] == []


def test_what_is_installed_is_what_is_pinned() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "freeze", "--exclude-editable"], capture_output=True, text=True, check=True
    ).stdout
    installed = dict(
        # Behind a plus stands which build it is, such as torch's for the processor alone.
        line.lower().split("+")[0].split("==")
        for line in listed.splitlines()
        if "==" in line and not line.startswith("#")
    )
    wrong = {name: version for name, version in installed.items() if pins().get(name, version) != version}
    assert not wrong, f"these differ from constraints.txt: {wrong}"
    loose = set(installed) - set(pins()) - {"relook", "pip", "setuptools", "wheel"}
    assert not loose, f"constraints.txt does not pin {sorted(loose)}"


def test_torch_stays_pinned() -> None:
    assert pins()["torch"] == "2.13.0"


def test_every_install_is_constrained() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    installs = [line for line in makefile.splitlines() if re.search(r"\bpip\b.*\binstall\b", line)]
    assert installs
    assert [line for line in installs if "-c constraints.txt" not in line] == []


def test_every_import_is_declared() -> None:
    declared = {IMPORTED_AS.get(name, name).replace("-", "_") for name in _names(PROJECT["project"]["dependencies"])}
    # What extras bring; yaml comes with datasets, triton with a torch for graphics cards.
    optional = {"pandas", "pyarrow", "pydicom", "datasets", "yaml", "torch", "safetensors", "triton", "psycopg"}
    for file in (ROOT / "src").rglob("*.py"):
        module = Module(file.stem, file.read_text("utf-8"))
        tops = {name.split(".")[0] for name, node in module.imports() if not getattr(node, "level", 0)}
        foreign = tops - set(sys.stdlib_module_names) - {"relook"}
        assert foreign <= declared | optional, (
            f"{file.relative_to(ROOT)} imports {sorted(foreign - declared - optional)}"
        )


def test_version_is_written_once() -> None:
    tree = ast.parse((ROOT / "src" / "relook" / "__init__.py").read_text("utf-8"))
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__"
    ]
    assert len(found) == 1
    assert PROJECT["project"]["dynamic"] == ["version"]


@pytest.mark.slow
def test_wheel_is_pure_python_and_whole(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        entry = archive.read(next(name for name in held if name.endswith("entry_points.txt"))).decode()
    sources = {str(file.relative_to(ROOT / "src")) for file in (ROOT / "src" / "relook").rglob("*.py")}
    assert sources | {"relook/py.typed"} <= held
    assert any(name.endswith("licenses/LICENSE") for name in held)
    assert "relook = relook.cli:main" in entry
