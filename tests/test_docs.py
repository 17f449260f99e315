"""What people read is true: blocks run, links lead somewhere, names and commands are found, and versions agree."""

import inspect
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
import typer.main

import relook
from tests import reference
from tests.conftest import ROOT
from tests.pages import Block, Command, blocks, broken_links, code, commands, missing_output, pages

DOCS = ROOT / "docs"
KNOWN = {"", "python", "console", "sh", "text", "toml", "json", "csv", "bibtex", "html", "make"}
SET_UP = {"cd", "export", "git", "make", "pip", "sudo"}
"""What a console block may show that is not run: it sets up the machine that the test runs on."""

PROGRAMS = {"relook", "cat", "head", "ls", "mkdir", "wc"}


def _text(page: Path) -> str:
    return page.read_text("utf-8")


def _label(page: Path) -> str:
    return str(page.relative_to(ROOT))


# Running what the pages show.


def _run_block(block: Block, *, folder: Path, names: dict[str, Any], where: str) -> None:
    if block.language == "python":
        if block.title:
            (folder / block.title).write_text(block.text, "utf-8")
        exec(compile("\n" * block.line + block.text, where, "exec"), names)
    elif block.language in ("console", "sh"):
        for command in commands(block):
            _run_command(command, folder, compared="output not compared" not in block.marks)
    elif block.title:
        (folder / block.title).write_text(block.text, "utf-8")


def _run_command(command: Command, folder: Path, *, compared: bool) -> None:
    first = command.line.split()[0]
    if first in SET_UP:
        return
    assert first in PROGRAMS, f"{command.line}: a page may run {sorted(PROGRAMS)} and show {sorted(SET_UP)}"
    here = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "TERM": "dumb",
    }
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command.line],
        cwd=folder,
        env=here,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{command.line}: status {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    absent = missing_output(command.shown, ran.stdout + ran.stderr) if compared else []
    assert not absent, f"{command.line}: these lines are shown, but did not come:\n{absent}\n{ran.stdout}\n{ran.stderr}"


def _run_page(text: str, *, folder: Path, where: str, with_data: bool) -> int:
    """Run a page's blocks in order, in one folder and one namespace; return how many ran."""
    names: dict[str, Any] = {"__name__": f"page_{re.sub(r'[^a-z]', '_', where.lower())}"}
    ran = 0
    for block in blocks(text):
        if "not run" in block.marks or ("needs data" in block.marks and not with_data):
            continue
        _run_block(block, folder=folder, names=names, where=where)
        ran += 1
    return ran


def _on_real_data() -> list[Path]:
    """Return the pages with blocks that need the real data."""
    return [page for page in pages() if any("needs data" in block.marks for block in blocks(_text(page)))]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to run in, in which pictures are drawn without a screen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", pages(), ids=_label)
def test_blocks_run(page: Path, folder: Path) -> None:
    _run_page(_text(page), folder=folder, where=_label(page), with_data=False)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", _on_real_data(), ids=_label)
def test_blocks_run_on_real_data(page: Path, folder: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELOOK_DATA", str(data_dir))
    _run_page(_text(page), folder=folder, where=_label(page), with_data=True)


@pytest.mark.parametrize("page", pages(), ids=_label)
def test_blocks_are_of_a_kind_that_runs_or_say_why_not(page: Path) -> None:
    for block in blocks(_text(page)):
        where = f"{_label(page)}, line {block.line}"
        assert block.language in KNOWN, f"{where}: {block.language} blocks do not run; use python, console or sh"
        for mark in ("not run", "output not compared"):
            assert len(block.marks.get(mark, "a good reason").split()) >= 2, f"{where}: `{mark}` without a reason"


class TestRunner:
    """The runner itself catches what it is there for."""

    @pytest.mark.parametrize(
        "text",
        [
            "```python\nassert 1 == 2\n```\n",
            "```console\n$ ls nothing-here\n```\n",
            "```sh\nls nothing-here\n```\n",
            "```console\n$ ls | head -1 | cat nothing-here\n```\n",
            "```console\n$ curl example.org\n```\n",
            "```console\n$ ls\nnot what ls says\n```\n",
        ],
    )
    def test_planted_fault_fails(self, text: str, folder: Path) -> None:
        with pytest.raises(AssertionError):
            _run_page(text, folder=folder, where="planted.md", with_data=False)

    def test_page_is_one_story(self, folder: Path) -> None:
        text = (
            '```python title="mine.py"\nx = 2\n```\n\n```python\nassert x == 2\n```\n'
            "```console\n$ cat \\\n    mine.py\nx = ...\n\n$ make demo\n```\n"
            "<!-- not run: it would fail -->\n```python\n1 / 0\n```\n"
            "<!-- needs data -->\n\n```python\n1 / 0\n```\n"
        )
        assert _run_page(text, folder=folder, where="story.md", with_data=False) == 3
        with pytest.raises(ZeroDivisionError):
            _run_page(text, folder=folder, where="story.md", with_data=True)

    def test_a_command_and_its_output_are_told_apart(self) -> None:
        block = next(blocks("```console\n$ relook rank \\\n    --labels l.npy\n  wrote 3\n\n$ ls\n```"))
        assert commands(block) == [Command("relook rank --labels l.npy", ("  wrote 3",)), Command("ls", ())]


# What the pages must hold.


def public_names() -> Iterator[str]:
    """Yield the public functions and classes: those that relook exports, and those of the modules that it exports."""
    for name in relook.__all__:
        member = getattr(relook, name)
        if isinstance(member, types.ModuleType):
            yield from (f"{name}.{part}" for part in _own_names(member))
        else:
            yield name


def _own_names(module: types.ModuleType) -> Iterator[str]:
    for name, member in vars(module).items():
        is_code = inspect.isfunction(member) or inspect.isclass(member)
        if is_code and not name.startswith("_") and member.__module__ == module.__name__:
            yield name


def _unmentioned(names: Iterator[str], text: str) -> list[str]:
    return [name for name in names if not re.search(rf"\b{re.escape(name.split('.')[-1])}\b", text)]


def test_every_public_name_is_in_the_docs() -> None:
    text = "\n".join(code(_text(page)) for page in DOCS.rglob("*.md") if page != reference.PAGE)
    assert not _unmentioned(public_names(), text)


def test_a_name_that_no_page_mentions_is_reported() -> None:
    assert _unmentioned(iter(["scores.phi", "scores.margin"]), code("Use `phi`, by no means margin.")) == [
        "scores.margin"
    ]


def test_functions_a_user_calls_have_an_example() -> None:
    called = [name for name in relook.__all__ if inspect.isfunction(getattr(relook, name))]
    assert [name for name in called if ">>>" not in (inspect.getdoc(getattr(relook, name)) or "")] == []


def test_every_command_has_help_and_is_in_the_docs() -> None:
    text = "\n".join(code(_text(page)) for page in [ROOT / "README.md", *DOCS.rglob("*.md")])
    for name, command, context in reference.commands(reference.program()):
        assert command.help, f"{name} says nothing about itself"
        assert name in text, f"no page shows {name}"
        for param in command.get_params(context):
            assert param.help, f"{name} {param.opts[0]} says nothing about itself"


def test_command_reference_is_current() -> None:
    assert _text(reference.PAGE) == reference.page(reference.program()), "docs/cli.md is stale: run `make docs`"


def test_command_reference_of_a_small_program() -> None:
    app = typer.Typer()

    @app.command(rich_help_panel="Rank")
    def rank(labels: str, *, seed: Annotated[int, typer.Option(help="Chance.")] = 3) -> None:
        """Rank [bold]labels[/bold]."""

    @app.command(hidden=True)
    def secret() -> None:
        """Hide."""

    text = reference.page(typer.main.get_command(app))
    for part in ("## Rank", "### relook rank", "Rank labels.", "| `--seed` | `<int>` | Chance. [default: 3] |"):
        assert part in text
    assert "secret" not in text


def paper_symbols() -> dict[str, str]:
    """Return the symbols of the paper and the names that docs/symbols.md says they have in relook."""
    rows = re.findall(
        r"^\| *([^|]+?) *\|[^|]*\| *`(relook[\w.]*)`[^|]*\|$", _text(DOCS / "symbols.md"), flags=re.MULTILINE
    )
    return dict(rows)


SYMBOLS = ("D", "l̂ᵢ", "ŷᵢ", "yᵢ", "lᵢ", "B", "b", "θ", "p_θ", "Φ", "CE", "H", "Sample", "Update", "η", "τ")


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_symbol_of_the_paper_has_its_name(symbol: str) -> None:
    found = paper_symbols()
    assert symbol in found, f"docs/symbols.md does not say what {symbol} is in relook"
    assert _resolved(found[symbol]) is not None


def _resolved(name: str) -> object:
    import importlib

    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            member: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            member = getattr(member, part)
        return member
    return None


# Links, versions, the site.


@pytest.mark.parametrize("page", [*pages(), ROOT / "CHANGELOG.md"], ids=_label)
def test_links_lead_somewhere(page: Path) -> None:
    assert not broken_links(page, _text(page))


@pytest.mark.parametrize(
    "link", ["[a](nowhere.md)", "![a](no.png)", "[a](README.md#no-such-heading)", '<img src="no.svg">']
)
def test_planted_dead_link_is_reported(link: str) -> None:
    assert broken_links(ROOT / "README.md", f"See {link}.")


def test_changelog_knows_this_version() -> None:
    first = re.search(r"^## \[([^\]]+)\]", _text(ROOT / "CHANGELOG.md"), flags=re.MULTILINE)
    assert first is not None
    assert first[1] in ("Unreleased", relook.__version__)


def test_citation_names_this_version() -> None:
    assert f"version: {relook.__version__}\n" in _text(ROOT / "CITATION.cff")


def test_site_shows_every_page_once() -> None:
    nav = _text(ROOT / "mkdocs.yml").split("\nnav:\n", 1)[1].split("\n\n", 1)[0]
    shown = re.findall(r"^\s+- (?:[^:]+: )?([\w/-]+\.md)$", nav, flags=re.MULTILINE)
    assert sorted(shown) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_make_commands_in_the_docs_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", _text(ROOT / "Makefile"), flags=re.MULTILINE))
    named = {word for page in pages() for word in re.findall(r"\bmake ([a-z]+)\b", code(_text(page)))}
    assert named <= targets
