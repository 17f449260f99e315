"""What stands beside measured figures: the machine in words, the commit, and the files they are kept in."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def machine() -> str:
    """Return the machine in words: how many cores of what kind, and under what."""
    model = platform.processor() or platform.machine()
    described = Path("/proc/cpuinfo")
    if described.is_file():
        names = [line.partition(":")[2].strip() for line in described.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return f"{os.cpu_count()} cores, {model}, {platform.system()}, Python {platform.python_version()}"


def commit() -> str:
    """Return the commit of the checkout, with a word where files differ from it."""
    told = [_git("rev-parse", "--short", "HEAD"), "with changes" if _git("status", "--porcelain", "-uno") else ""]
    return " ".join(part for part in told if part) or "unknown"


def write(folder: Path, name: str, *, found: Mapping[str, Any], columns: Mapping[str, str]) -> list[Path]:
    """Write a result as NAME.json and NAME.md and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.json", folder / f"{name}.md"]
    paths[0].write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    paths[1].write_text(page(name, found, columns=columns), "utf-8")
    return paths


def page(name: str, found: Mapping[str, Any], *, columns: Mapping[str, str]) -> str:
    """Return a result as a page: what was run where, the table, and what was checked."""
    about = [f"- {key}: {found[key]}" for key in ("command", "machine", "commit", "seconds", "seed")]
    rows = _table([{key: row[key] for key in columns} for row in found["rows"]], list(columns.values()))
    checked = _table(found["checks"], ["what", "needed", "found", "holds"]) if found["checks"] else []
    return "\n".join([f"# {name}", "", found["title"], "", *about, "", *rows, "", *checked]).rstrip() + "\n"


def _table(rows: Sequence[Mapping[str, Any]], headings: Sequence[str]) -> list[str]:
    lines = [list(headings), ["---"] * len(headings), *([_cell(value) for value in row.values()] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _cell(value: Any) -> str:
    return {True: "yes", False: "**no**"}[value] if isinstance(value, bool) else str(value)


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
