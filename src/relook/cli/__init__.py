"""The command line: a file a command, imported when it is run or its help is wanted."""

import sys

import typer

from relook.cli import (
    answers,
    cite,
    datasets,
    demo,
    doctor,
    embed,
    export,
    import_,
    log,
    new,
    next_,
    noise,
    rank,
    report,
    reproduce,
    retrain,
    set_,
    settle,
    simulate,
    status,
    tour,
    train,
)
from relook.errors import Busy, RelookError

PREPARE, RANK, PLAN, RUN, JUDGE = "Prepare", "Rank", "Plan", "Run", "Judge"

app = typer.Typer(
    name="relook",
    help="Spend a relabelling budget where it matters.",
    epilog="Start with: relook demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
app.command("import", rich_help_panel=PREPARE)(import_.import_)
app.command(rich_help_panel=PREPARE)(tour.tour)
app.command(rich_help_panel=PREPARE)(datasets.datasets)
app.command(rich_help_panel=PREPARE)(noise.noise)
app.command(rich_help_panel=PREPARE)(doctor.doctor)
app.command(rich_help_panel=PREPARE)(embed.embed)
app.command(rich_help_panel=RANK)(rank.rank)
app.command(rich_help_panel=RANK)(train.train)
app.command(rich_help_panel=PLAN)(simulate.simulate)
app.command(rich_help_panel=PLAN)(reproduce.reproduce)
app.command(rich_help_panel=PLAN)(demo.demo)
app.command(rich_help_panel=PLAN)(cite.cite)
app.command(rich_help_panel=RUN)(new.new)
app.command("next", rich_help_panel=RUN)(next_.next_)
app.command(rich_help_panel=RUN)(answers.answers)
app.command(rich_help_panel=RUN)(status.status)
app.command(rich_help_panel=RUN)(settle.settle)
app.command("set", rich_help_panel=RUN)(set_.set_)
app.command(rich_help_panel=RUN)(retrain.retrain)
app.add_typer(log.app, name="log", rich_help_panel=RUN)
app.command(rich_help_panel=JUDGE)(report.report)
app.command(rich_help_panel=JUDGE)(export.export)


def main() -> None:
    """Run the command line; what was wrong is said in one sentence, with exit code 2, or 3 where others are at it."""
    try:
        app()
    except Busy as error:
        sys.stderr.write(f"relook: {error}\n")
        sys.exit(3)
    except RelookError as error:
        sys.stderr.write(f"relook: {error}\n")
        sys.exit(2)
