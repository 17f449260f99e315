"""How commands speak: tables, progress over anything that takes a second, what was written, and what to do next."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec

PLAIN_WIDTH = 160
"""Columns of output that goes to a file or a pipe."""

Row = Mapping[str, Any]


class Step(Protocol):
    """Called whenever a piece of work is done."""

    def __call__(self, count: int = 1) -> None:
        """Move the bar on."""
        ...


def say(text: str) -> None:
    """Print a sentence."""
    _console().print(text, highlight=False, markup=False, soft_wrap=True)


def table(rows: Sequence[Row], columns: Mapping[str, str], *, title: str | None = None) -> None:
    """Print rows as a table: `columns` gives each key's heading; numbers are right-aligned and shortened."""
    from rich.table import Table

    drawn = Table(title=title, box=None, pad_edge=False, title_justify="left", header_style="bold")
    for key, heading in columns.items():
        numeric = any(isinstance(row.get(key), int | float) for row in rows)
        drawn.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(_cell(row.get(key)) for key in columns))
    _console().print(drawn)


def wrote(*paths: Path, following: str) -> None:
    """Say what was written and one sensible next command."""
    if paths:
        say("Wrote " + ", ".join(str(path) for path in paths))
    say(f"Next: {following}")


def write_json(path: Path | None, rows: Sequence[Row]) -> None:
    """Write the rows of a table as a JSON list, where a file was asked for."""
    if path is not None:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(list(rows)), indent=2) + b"\n")


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Step]:
    """Show a bar with speed and time left, on a terminal, once the work has taken a second; None: no end is known."""
    from time import monotonic

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    rate = TextColumn("{task.fields[rate]}")
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn()
    console = Console(stderr=True)
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(what, total=total, rate="")
    began, done, shown = monotonic(), 0, False

    def step(count: int = 1) -> None:
        nonlocal done, shown
        done, seconds = done + count, monotonic() - began
        bar.update(task, advance=count, rate=f"{done / max(seconds, 1e-3):,.0f} a second")
        if not shown and seconds > 1:
            bar.start()
            shown = True

    try:
        yield step
    finally:
        if shown:
            bar.stop()


def _console() -> Any:
    from rich.console import Console

    console = Console()
    # Where nobody's screen sets a width, a table is written out rather than folded into 80 columns.
    return console if console.is_terminal else Console(width=PLAIN_WIDTH)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
