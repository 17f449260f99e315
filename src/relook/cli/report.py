"""`relook report`: the page and the figures of a simulation, made again from its folder alone."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from relook.cli import show


def report(
    folder: Annotated[Path, typer.Argument(help="What `relook simulate` wrote.", show_default=False)],
    *,
    to: Annotated[Path | None, typer.Option(help="The page; report.html in the folder by default.")] = None,
    figures: Annotated[
        Literal["png", "svg", "both", "none"], typer.Option(help="Figures as files, beside the page.")
    ] = "both",
    day: Annotated[
        str | None, typer.Option("--date", help="The day that stands on the page; today by default.")
    ] = None,
) -> None:
    """Make the HTML page and the figures of a simulation, from its folder alone.

    The page is one file that loads nothing: mail it, print it, open it offline.
    """
    from relook.plots import write_figures
    from relook.report import Report, headline, write
    from relook.runs import read_runs

    page = to or folder / "report.html"
    check_page(page)
    runs = read_runs(folder)
    write(page, Report(runs, day or datetime.now(UTC).date().isoformat()))
    kinds = {"both": (".png", ".svg"), "none": ()}.get(figures, (f".{figures}",))
    place = page.parent / "figures"
    written = write_figures(place, runs, kinds=kinds)
    show.say(headline(runs))
    show.wrote(page, *([place] if written else []), following=f"relook cite {folder}")


def check_page(path: Path) -> None:
    """Refuse a page whose name says that it is something else, before anything is made."""
    from relook.errors import BadInput

    if path.suffix.lower() not in (".html", ".htm") or path.is_dir():
        raise BadInput(
            f"report: a page must name an HTML file, but {path} came; call it {path.with_suffix('.html').name}"
        )
