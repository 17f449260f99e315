"""`relook log`: prove what a campaign's log holds, mend a damaged one, copy it, and write its events out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relook.cli import show

if TYPE_CHECKING:
    from relook.audit import Audit

app = typer.Typer(
    help="Prove, mend, copy and write out the log of a campaign.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)

Campaign = Annotated[
    str, typer.Argument(help="A campaign's folder, its log.db, or the URL of its PostgreSQL database.")
]


@app.command()
def verify(
    campaign: Campaign,
    *,
    head: Annotated[str | None, typer.Option(help="The hash of a row, as it was printed and kept elsewhere.")] = None,
) -> None:
    """Compute everything from the log again (chain, answers, budget), compare it with what is kept, print the head.

    The exit status is 1 where anything is wrong. It can be run while the campaign is open.
    """
    from relook.audit import audit
    from relook.store import reading

    store = reading(campaign)
    try:
        found = audit(store, head=head)
    finally:
        store.close()
    _say(found)
    if found.problems:
        show.say(f"Next: relook log repair {campaign} --to NEW")
        raise typer.Exit(1)
    show.say("Keep the head elsewhere: relook log verify --head proves later that nothing before it was changed.")


@app.command()
def repair(
    campaign: Campaign,
    *,
    to: Annotated[Path, typer.Option(help="The new log to write: a file that is not there yet.")],
) -> None:
    """Write a new log with every row whose chain holds, and list the rest; the damaged one stays as it is."""
    from relook.audit import repaired

    mended = repaired(Path(campaign), to)
    show.say(f"{mended.kept:,} rows were kept: their chain holds from the first to the last.")
    if mended.left:
        show.say(f"{len(mended.left):,} rows were not; they are listed in {mended.listed}:")
        for line in mended.left[:10]:
            show.say(f"  row {line.seq}: {line.why}")
    show.wrote(*[path for path in (to, mended.listed) if path is not None], following=f"relook log verify {to}")


@app.command()
def backup(
    campaign: Campaign,
    *,
    to: Annotated[Path, typer.Option(help="The file to write: one that is not there yet.")],
) -> None:
    """Copy the log while the campaign goes on, then open the copy and verify all of it."""
    from relook.audit import backed_up

    found = backed_up(campaign, to)
    _say(found)
    show.wrote(to, following=f"relook log verify {to}")


@app.command()
def replay(
    campaign: Campaign,
    *,
    to: Annotated[Path | None, typer.Option(help="Where to write: JSON lines, or a new log with --events.")] = None,
    events: Annotated[Path | None, typer.Option(help="JSON lines to make a new log of, on this one's labels.")] = None,
) -> None:
    """Write the events of a log as JSON lines, or make a log anew from such lines."""
    from relook.audit import lines_of, rebuilt
    from relook.errors import BadInput
    from relook.whole import drafted

    if events is not None:
        if to is None:
            raise BadInput("replay: --events makes a new log, but no --to says where; name a file")
        _say(rebuilt(campaign, events, to=to, written=now()))
        show.wrote(to, following=f"relook log verify {to}")
        return
    if to is None:
        for line in lines_of(campaign):
            typer.echo(line)
        return
    with drafted(to) as draft, draft.open("w", encoding="utf-8") as file:
        count = sum(bool(file.write(line + "\n")) for line in lines_of(campaign))
    show.say(f"{count:,} events.")
    show.wrote(to, following=f"relook log replay {campaign} --events {to} --to NEW")


def now() -> str:
    """Return the time of day, as rows note it."""
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _say(found: "Audit") -> None:
    sums = found.sums
    for problem in found.problems:
        show.say(f"WRONG: {problem}")
    wrong = (
        "so far as it can be followed" if found.problems else "its chain holds, and all that is kept follows from it"
    )
    show.say(f"{found.head.seq:,} rows: {wrong}.")
    show.say(
        f"Budget {sums.budget:,}: {sums.spent:,} spent, {sums.reserved:,} reserved; "
        f"answers that count: {found.counted:,}."
    )
    show.say(f"Head: {found.head.hash}")
