"""`relook answers`: what people answered in a file, recorded row by row."""

from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated

import typer

from relook.cli import show

if TYPE_CHECKING:
    from relook.returns import Judged, Recorded

_SHOWN = 20


def answers(
    campaign: Annotated[Path, typer.Argument(help="Folder of a campaign.", show_default=False)],
    file: Annotated[
        Path,
        typer.Argument(help="What came back: csv, tsv, jsonl, parquet, or Label Studio's JSON.", show_default=False),
    ],
    *,
    annotator: Annotated[str | None, typer.Option("--for", help="Who answered, where the file does not say.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Record nothing if any row is refused.")] = False,
    train: Annotated[bool, typer.Option("--train/--no-train", help="Fit the model anew when it is time.")] = True,
) -> None:
    """Record what came back: the same file sent twice changes nothing, and an empty answer is still to come.

    Rows that cannot be recorded are told by their number, with the cure, while the others are recorded; the command
    then ends with status 1. `cannot tell` and `none of these` are answers. One that comes too late is kept, but costs
    and counts nothing.
    """
    from relook import campaigns, returns
    from relook import retrain as training

    with campaigns.opened(campaign, clock=time) as found:
        words = returns.read(file)
        by = returns.known(found.dataset.ids, found.dataset.classes)
        judged = returns.judged(words, found.campaign.ledger, by=by, annotator=annotator)
        if strict and judged.refused:
            _refuse(judged, file)
        recorded: Recorded = found.do(lambda state, now: returns.record(state, judged.good, now=now))
        why = training.due(found, now=found.now) if train else None
    _tell(judged, recorded)
    if why is not None:
        from relook.cli.retrain import refit

        show.say(f"It is time to fit the model anew: {why}. The answers are safe already; Ctrl-C stops the fit alone.")
        refit(campaign)
    show.wrote(following=f"relook status {campaign}")
    if judged.refused:
        raise typer.Exit(1)


def _tell(judged: "Judged", recorded: "Recorded") -> None:
    from relook.sources import counted

    parts = [f"{counted(recorded.counted, 'answer')} recorded"]
    parts += [f"{recorded.late:,} came too late: kept, but they neither count nor cost"] if recorded.late else []
    parts += [f"{judged.before:,} were recorded before"] if judged.before else []
    parts += [f"{judged.empty:,} still to come"] if judged.empty else []
    show.say("; ".join(parts) + ".")
    for reason in judged.refused[:_SHOWN]:
        show.say(f"Refused: {reason}")
    if len(judged.refused) > _SHOWN:
        show.say(f"Refused: {len(judged.refused) - _SHOWN:,} more rows.")


def _refuse(judged: "Judged", file: Path) -> None:
    from relook.errors import BadInput

    for reason in judged.refused[1:_SHOWN]:
        show.say(f"Refused: {reason}")
    raise BadInput(
        f"{judged.refused[0]} ({file}: {len(judged.refused):,} rows are refused, so by --strict nothing was recorded)"
    )
