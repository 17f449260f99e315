"""`relook doctor`: what this machine has, what is missing, and how to mend it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

from relook.cli import show
from relook.published import PUBLISHED

OLDEST_PYTHON, OLDEST_SQLITE = (3, 11), (3, 24, 0)
RESETTING_SQLITE = (((3, 7, 0), (3, 51, 2)), ((3, 52, 0), (3, 52, 99)))
"""Versions that may damage a file when two connections write to it, or tidy it, at once; relook has one that does."""

RESETS = (
    "versions 3.7.0 to 3.51.2 may damage a file that two programs write at once; relook writes alone, so let no other "
    "program do; 3.51.3 has it mended"
)
SMALL_MEMORY = 2.0
"""GiB below which a million items are a tight fit."""

SIGNS: Mapping[str, str] = {"ok": "ok", "missing": "missing", "problem": "PROBLEM"}


class Finding(NamedTuple):
    """One thing that was looked at: what was found, whether that is a problem, and its cure."""

    part: str
    found: str
    state: Literal["ok", "missing", "problem"] = "ok"
    cure: str | None = None


def doctor(
    *, json: Annotated[Path | None, typer.Option(help="Write what was found as a JSON list of rows.")] = None
) -> None:
    """Look at Python, packages, cores, memory, data sets and the terminal, and say how to mend what is wrong.

    The exit status is 1 where something is broken; what is merely absent is no fault.
    """
    findings = list(examined())
    rows = [{**finding._asdict(), "state": SIGNS[finding.state]} for finding in findings]
    show.table(rows, {"part": "part", "found": "found", "state": "state"})
    for finding in findings:
        if finding.cure is not None:
            show.say(f"{finding.part}: {finding.cure}")
    broken = [finding.part for finding in findings if finding.state == "problem"]
    show.write_json(json, [finding._asdict() for finding in findings])
    show.say(f"Broken: {', '.join(broken)}." if broken else "Nothing is broken.")
    show.wrote(*([json] if json is not None else []), following="relook doctor, again" if broken else "relook demo")
    if broken:
        raise typer.Exit(1)


def examined() -> Iterator[Finding]:
    """Yield everything that is looked at."""
    yield _python()
    yield _relook()
    for extra, names in requirements().items():
        yield from [_extra(extra, names)] if extra else [_package(name) for name in names]
    yield _sqlite()
    yield _cores()
    yield _memory()
    yield from _data_sets(os.environ.get("RELOOK_DATA"))
    yield _terminal()


def _python() -> Finding:
    import platform
    import sys

    found = f"{platform.python_version()} ({platform.system()}, {platform.machine()})"
    if sys.version_info >= OLDEST_PYTHON:
        return Finding("python", found)
    return Finding("python", found, "problem", "Python 3.11 or later is needed; install one and make a new environment")


def _relook() -> Finding:
    from relook import __version__

    if installed("relook") is None:
        return Finding(
            "relook", f"{__version__}, not installed", "missing", "pip install it, so that its parts are known"
        )
    return Finding("relook", __version__)


def _package(name: str) -> Finding:
    version = installed(name)
    if version is None:
        return Finding(name, "not there", "problem", f"pip install {name}")
    try:
        _imported(name)
    except Exception as error:  # noqa: BLE001  # whatever a broken install raises is what a user must see
        return Finding(name, f"{version}, but it fails: {error}", "problem", f"pip install --force-reinstall {name}")
    return Finding(name, version)


def _imported(name: str) -> None:
    from importlib import import_module

    import_module({"pillow": "PIL", "scikit-learn": "sklearn"}.get(name, name))


def installed(name: str) -> str | None:
    """Return the version of an installed package, or None."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _extra(extra: str, names: list[str]) -> Finding:
    absent = [name for name in names if installed(name) is None]
    if absent:
        return Finding(f"extra {extra}", f"without {', '.join(absent)}", "missing", f'pip install "relook[{extra}]"')
    return Finding(f"extra {extra}", f"all of {len(names)} packages")


def requirements() -> dict[str, list[str]]:
    """Return the packages that relook declares: under "" what it does not run without, else by extra."""
    import re
    from importlib import metadata

    found: dict[str, list[str]] = {"": []}
    try:
        lines = metadata.requires("relook") or []
    except metadata.PackageNotFoundError:
        lines = []
    for line in lines:
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        name = re.match(r"[\w.-]+", line)
        if name:
            found.setdefault(extra[1] if extra else "", []).append(name[0])
    return found


def _sqlite() -> Finding:
    try:
        import sqlite3
    except ImportError:
        return Finding("sqlite", "not there", "problem", "this Python was built without sqlite3; install another one")
    found = sqlite3.sqlite_version_info
    if any(low <= found <= high for low, high in RESETTING_SQLITE):
        return Finding("sqlite", sqlite3.sqlite_version, "missing", RESETS)
    if found >= OLDEST_SQLITE:
        return Finding("sqlite", sqlite3.sqlite_version)
    oldest = ".".join(map(str, OLDEST_SQLITE))
    return Finding("sqlite", sqlite3.sqlite_version, "problem", f"{oldest} or later is needed; install a newer Python")


def _cores() -> Finding:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Finding("cores", f"{usable} of {os.cpu_count()}")


def _memory() -> Finding:
    total = memory()
    if total is None:
        return Finding("memory", "unknown")
    found = f"{total:.1f} GiB"
    if total < SMALL_MEMORY:
        return Finding("memory", found, "missing", "a million items want 2 GiB; rank fewer at a time")
    return Finding("memory", found)


def memory() -> float | None:
    """Return the machine's memory in GiB, or None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (AttributeError, ValueError, OSError):
        return None


def _data_sets(folder: str | None) -> Iterator[Finding]:
    """Yield the folder of data sets and what lies in it; a folder that is named but not there is a problem."""
    if not folder:
        cure = "set RELOOK_DATA to the folder of your data sets; digits needs none"
        yield Finding("data folder", "RELOOK_DATA is not set", "missing", cure)
        return
    if not Path(folder).is_dir():
        yield Finding("data folder", f"{folder} is no folder", "problem", "set RELOOK_DATA to a folder that is there")
        return
    there = [name for name, found in PUBLISHED.items() if found.state(Path(folder)) == "there"]
    yield Finding("data folder", folder)
    if there:
        yield Finding("data sets", ", ".join(there))
    else:
        yield Finding("data sets", "none", "missing", "relook datasets lists those that can be there, and gets them")


def _terminal() -> Finding:
    from rich.console import Console

    console = Console()
    kind = "terminal" if console.is_terminal else "no terminal"
    return Finding(
        "output", f"{kind}, {console.width} columns, {console.color_system or 'no'} colours, {console.encoding}"
    )
