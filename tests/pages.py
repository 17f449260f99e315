"""The pages people read, taken apart: code blocks with what stands above them, headings, links."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}) *(?P<language>[\w+-]*)(?P<rest>.*)$")
_MARK = re.compile(r"^\s*<!-- *(?P<mark>not run|needs data|output not compared)(?:: *(?P<reason>.*?))? *-->\s*$")


class Block(NamedTuple):
    """A code block: its language, its title (a file name), its text, and the marks above it with their reasons."""

    language: str
    title: str
    text: str
    line: int
    marks: dict[str, str]


class Command(NamedTuple):
    """A command of a console block, and the lines that are shown as its output."""

    line: str
    shown: tuple[str, ...]


def pages() -> list[Path]:
    """Return every page whose blocks run: the README, CONTRIBUTING and docs/."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str) -> Iterator[Block]:
    """Yield the code blocks of a page."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if not opening:
            number += 1
            continue
        start = number
        number += 1
        while number < len(lines) and lines[number].strip() != opening["ticks"]:
            number += 1
        body = [line.removeprefix(opening["indent"]) for line in lines[start + 1 : number]]
        title = re.search(r'title="([^"]+)"', opening["rest"])
        yield Block(
            opening["language"], title[1] if title else "", "\n".join(body) + "\n", start + 1, _marks(lines[:start])
        )
        number += 1


def _marks(above: list[str]) -> dict[str, str]:
    marks: dict[str, str] = {}
    for line in reversed(above):
        mark = _MARK.match(line)
        if mark:
            marks[mark["mark"]] = mark["reason"] or ""
        elif line.strip():
            break
    return marks


def commands(block: Block) -> list[Command]:
    """Return the commands of a console block (lines after `$ `) or of a sh block (every line)."""
    found: list[tuple[str, list[str]]] = []
    going_on = False
    for line in block.text.splitlines():
        starts = (
            line.startswith("$ ") if block.language == "console" else bool(line.strip()) and not line.startswith("#")
        )
        if going_on:
            found[-1] = (f"{found[-1][0][:-1].rstrip()} {line.strip()}", [])
        elif starts:
            found.append((line.removeprefix("$ ").strip(), []))
        elif found and line.strip() and block.language == "console":
            found[-1][1].append(line)
        going_on = bool(found) and found[-1][0].endswith("\\") and (starts or going_on)
    return [Command(line, tuple(shown)) for line, shown in found]


def missing_output(shown: tuple[str, ...], came: str) -> list[str]:
    """Return the shown lines that the output does not hold; `...` stands for anything, blanks are all alike."""
    lines = [" ".join(line.split()) for line in came.splitlines()]
    return [line for line in shown if line.strip() != "..." and not any(_matches(line, other) for other in lines)]


def _matches(shown: str, line: str) -> bool:
    parts = [re.escape(" ".join(part.split())) for part in shown.split("...")]
    return re.fullmatch(r"\s*" + r".*".join(parts) + r"\s*", line) is not None


def prose(text: str) -> str:
    """Return a page without its code blocks."""
    for block in reversed(list(blocks(text))):
        lines = text.splitlines()
        end = block.line + block.text.count("\n") + 1
        text = "\n".join(lines[: block.line - 1] + lines[end:])
    return text


def code(text: str) -> str:
    """Return what stands in a page as code: blocks and spans."""
    spans = re.findall(r"(`+)(.+?)\1", prose(text), flags=re.DOTALL)
    return "\n".join([*(block.text for block in blocks(text)), *(span for _, span in spans)])


def links(text: str) -> Iterator[str]:
    """Yield the targets of a page's links and images, those to other sites left out."""
    plain = re.sub(r"(`+)(.+?)\1", "", prose(text), flags=re.DOTALL)
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)", plain) + re.findall(
        r"^\[[^\]]+\]:\s*(\S+)", plain, flags=re.MULTILINE
    )
    targets += re.findall(r"(?:src|href)=\"([^\"]+)\"", plain)
    yield from (target for target in targets if not re.match(r"[a-z]+:", target))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as the site names them."""
    headings = re.findall(r"^#+ +(.+?) *$", prose(page.read_text("utf-8")), flags=re.MULTILINE)
    named = [re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings]
    return frozenset(named)


def broken_links(page: Path, text: str) -> list[str]:
    """Return the links of a page that lead to no file or no heading."""
    broken = []
    for target in links(text):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(target)
    return broken
