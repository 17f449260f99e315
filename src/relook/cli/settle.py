"""`relook settle`: items that people disagree about, out to a reviewer and back."""

from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated

import typer

from relook.cli import show

if TYPE_CHECKING:
    from relook.reviews import Ruled

_SHOWN = 20


def settle(
    campaign: Annotated[Path, typer.Argument(help="Folder of a campaign.", show_default=False)],
    file: Annotated[Path | None, typer.Argument(help="What the reviewer sent back.", show_default=False)] = None,
    *,
    to: Annotated[
        Path | None, typer.Option(help="Write the items that wait: a table, a folder of images, or .json.")
    ] = None,
    reviewer: Annotated[str | None, typer.Option("--for", help="Who has the last word.")] = None,
) -> None:
    """Have a reviewer decide the items that people disagree about, cannot tell, or see none of the classes in.

    With --to they go out, with what people said. With a file the reviewer's column `answer` is recorded: a class,
    `cannot tell`, `none of these`, or `disputed` where people do disagree. A reviewer's word costs nothing, and a later
    one replaces it.
    """
    from relook.errors import BadInput

    if (file is None) == (to is None):
        came = "neither" if file is None else "both"
        raise BadInput(f"settle: --to, for items to go out, or a file that came back was needed, but {came} came")
    if to is not None:
        _send(campaign, to)
    elif file is not None:
        if reviewer is None:
            raise BadInput(f"settle: the reviewer's name was needed for {file}, but it did not come; say --for NAME")
        _take(campaign, file, reviewer=reviewer)


def _send(folder: Path, to: Path) -> None:
    from relook import campaigns, charter, handouts, reviews
    from relook.sources import counted

    decided = charter.read(folder)
    source = campaigns.items(folder, decided)
    handouts.check(source, to)
    ledger, _ = campaigns.looked(folder)
    given = reviews.handout(source, decided.items.split, ledger=ledger, classes=decided.items.classes)
    if not given.items:
        show.say("No item waits for a reviewer.")
        show.wrote(following=f"relook status {folder}")
        return
    for fact in handouts.write(given, to):
        show.say(fact)
    show.say(f"{counted(len(given.items), 'item')} for a reviewer, with what people said of each.")
    back = to if to.suffix else to / handouts.TABLE
    show.wrote(to, following=f"relook settle {folder} {back} --for NAME, once the column answer is filled")


def _take(folder: Path, file: Path, *, reviewer: str) -> None:
    from relook import campaigns, returns, reviews

    with campaigns.opened(folder, clock=time) as found:
        by = returns.known(found.dataset.ids, found.dataset.classes)
        words = returns.read(file)
        ruled = found.do(lambda campaign, now: reviews.rule(campaign, words, by=by, reviewer=reviewer, now=now))
    _tell(ruled, reviewer)
    show.wrote(following=f"relook status {folder}")
    if ruled.refused:
        raise typer.Exit(1)


def _tell(ruled: "Ruled", reviewer: str) -> None:
    from relook.sources import counted

    parts = [f"{counted(ruled.recorded, 'word')} of {reviewer} recorded"]
    parts += [f"{ruled.before:,} were recorded before"] if ruled.before else []
    parts += [f"{ruled.empty:,} still to come"] if ruled.empty else []
    show.say("; ".join(parts) + ".")
    for reason in ruled.refused[:_SHOWN]:
        show.say(f"Refused: {reason}")
