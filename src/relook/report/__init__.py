"""One HTML page about a simulation or a ranking: a single file that loads nothing and works offline."""

from pathlib import Path

import msgspec

from relook.report.page import headline, simulation_page
from relook.report.pictures import gallery, pictured
from relook.report.ranking import RankingReport, ranking_page
from relook.runs import Runs, replace_file

__all__ = ["RankingReport", "Report", "gallery", "headline", "html", "pictured", "write"]


class Report(msgspec.Struct, frozen=True, eq=False):
    """What a page about a simulation shows, and the day it is made, as it shall stand there."""

    runs: Runs
    made: str


def html(report: Report | RankingReport) -> str:
    """Return a report as one HTML page: equal reports make equal pages, to the byte."""
    if isinstance(report, Report):
        return simulation_page(report.runs, made=report.made)
    return ranking_page(report)


def write(path: Path, report: Report | RankingReport) -> None:
    """Write a report as one HTML file."""
    replace_file(path, html(report).encode())
