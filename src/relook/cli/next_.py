"""`relook next`: items for somebody to answer, as a table, a folder of images, or tasks of Label Studio."""

from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated

import typer

from relook.cli import show

if TYPE_CHECKING:
    from relook.campaigns import Opened
    from relook.events import Lease


def next_(
    campaign: Annotated[Path, typer.Argument(help="Folder of a campaign.", show_default=False)],
    *,
    annotator: Annotated[str, typer.Option("--for", help="Who will answer.", show_default=False)],
    to: Annotated[
        Path,
        typer.Option(
            help="A table (csv, tsv, jsonl, parquet), a folder of images, or .json for Label Studio.",
            show_default=False,
        ),
    ],
    most: Annotated[int, typer.Option("-n", "--items", help="So many items at most.", min=1)] = 50,
    again: Annotated[bool, typer.Option("--again", help="What they hold already, once more.")] = False,
) -> None:
    """Hand items out: those that are worth most, to somebody who answers them in a file.

    What goes out is an id, what to look at, an empty column `answer`, and the number by which an answer finds back; no
    given label, no prediction, no rank. Each item is one answer of the budget until it comes back or its time is over.
    """
    from relook import campaigns, handouts

    with campaigns.opened(campaign, clock=time) as found:
        handouts.check(found.source, to)
        before = handouts.held(found.campaign, annotator)
        leases = before if again else found.do(lambda state, now: handouts.lease(state, annotator, most=most, now=now))
        if not leases:
            _tell_none(found, annotator, again=again)
            return
        facts = handouts.write(handouts.of_leases(found.source, found.decided.items.split, leases=leases), to)
        left = found.campaign.ledger.left
    for fact in facts:
        show.say(fact)
    _tell(found, annotator, leases=leases, before=0 if again else len(before))
    show.say(f"{left:,} answers of the budget are left.")
    show.wrote(to, following=f"relook answers {campaign} {_sent_back(to)}, once the column answer is filled")


def _tell(found: "Opened", annotator: str, *, leases: "list[Lease]", before: int) -> None:
    from relook.handouts import WORDS
    from relook.pace import in_words
    from relook.sources import counted, listed

    hours = (leases[-1].until - leases[-1].at) / 3600
    show.say(f"{counted(len(leases), 'item')} for {annotator}, for {in_words(hours)}; blind: nothing tells a label.")
    show.say(f"Answers are {listed(found.decided.items.classes, 20)}, or: {', '.join(WORDS.values())}.")
    if before:
        show.say(f"{annotator} holds {counted(before, 'item')} from before too; --again writes those once more.")


def _tell_none(found: "Opened", annotator: str, *, again: bool) -> None:
    """Say why there is nothing to hand out."""
    ledger = found.campaign.ledger
    if again:
        why = f"{annotator} holds nothing"
    elif ledger.closed:
        why = "the campaign is closed"
    elif {None, annotator} & ledger.paused or annotator in ledger.removed:
        why = f"{'the campaign' if None in ledger.paused else annotator} is paused or removed, see relook set"
    elif not ledger.left:
        why = f"the budget is spent: {ledger.spent:,} answers, and {ledger.reserved:,} handed out"
    else:
        why = f"no item is left that {annotator} has not answered and that is not settled"
    show.say(f"Nothing was handed out: {why}.")
    show.wrote(following=f"relook status {found.folder}")


def _sent_back(to: Path) -> Path:
    from relook.handouts import TABLE

    return to if to.suffix else to / TABLE
