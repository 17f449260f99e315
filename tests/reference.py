"""The page docs/cli.md, written from the program itself: `python -m tests.reference` writes it."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "cli.md"

_HEAD = """# Commands

<!-- Written by `make docs` from the program's own help: change it there. -->

Every command says what it decided, what it wrote, and one sensible next command. Bad input ends it with status 2 and
one sentence that names the place, the value and the cure; nothing is written then.
"""


def program() -> Any:
    """Return relook's command line as typer runs it."""
    return typer.main.get_command(importlib.import_module("relook.cli").app)


def commands(group: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield every command that is not hidden, with its full name and its context; groups are walked through."""
    yield from _below(group, group.context_class(group, info_name="relook"))


def _below(group: Any, context: Any) -> Iterator[tuple[str, Any, Any]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = command.context_class(command, info_name=name, parent=context)
        if command.hidden:
            continue
        if hasattr(command, "list_commands"):
            yield from _below(command, inner)
        else:
            yield inner.command_path, command, inner


def page(group: Any) -> str:
    """Return the page: the commands under the headings of their panels, in the order of the help."""
    panels: dict[str, list[str]] = {}
    for name, command, context in commands(group):
        panel = _text(getattr(command, "rich_help_panel", None)) or "Commands"
        panels.setdefault(panel, []).append(_section(name, command, context))
    parts = [_HEAD]
    for panel, sections in panels.items():
        parts += [f"## {panel}\n", *sections]
    return "\n".join(parts)


def _section(name: str, command: Any, context: Any) -> str:
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    lines = [f"### {name}\n", f"{_prose(command.help)}\n", f"```text\n{usage}\n```\n"]
    lines += _tables(command, context)
    if command.epilog:
        lines.append(f"{_prose(command.epilog)}\n")
    return "\n".join(lines)


def _tables(command: Any, context: Any) -> Iterator[str]:
    """Yield a table for each panel of the command's help."""
    panels: dict[str, list[str]] = {}
    for param in command.get_params(context):
        if not _is_hidden(param):
            panels.setdefault(_text(param.rich_help_panel) or "Options", []).append(_row(param, context))
    for panel, rows in panels.items():
        yield "\n".join([f"| {panel} | takes | |", "|---|---|---|", *rows, ""])


def _is_hidden(param: Any) -> bool:
    return bool(getattr(param, "hidden", False)) or "--help" in param.opts


def _row(param: Any, context: Any) -> str:
    left, right = param.get_help_record(context)
    names = re.split(r" (?=<)", left, maxsplit=1)
    takes = f"`{_cell(names[1])}`" if len(names) > 1 else ""
    return f"| `{_cell(names[0])}` | {takes} | {_cell(_prose(right))} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _prose(text: str | None) -> str:
    """Take out what only a terminal understands: rich's tags and typer's marks of unwrapped paragraphs."""
    plain = inspect.cleandoc(text or "").replace("\b\n", "").replace("\f", "")
    return re.sub(r"\[/?(?:bold|dim|italic|cyan|green|red|yellow|magenta|blue)[^\]]*\]", "", plain)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def write(target: Path = PAGE) -> None:
    """Write the page."""
    target.write_text(page(program()), "utf-8")


if __name__ == "__main__":
    write()
