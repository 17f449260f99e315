"""`relook retrain`: the model that ranks a campaign's items, fitted anew by hand; and what other commands say of it."""

from pathlib import Path
from time import time
from typing import Annotated

import typer

from relook.cli import show
from relook.errors import BadTraining


def retrain(campaign: Annotated[Path, typer.Argument(help="Folder of a campaign.", show_default=False)]) -> None:
    """Fit the model anew on the answers so far, in a process of its own, and rank by it.

    Commands that record answers do this by themselves once enough have come. If it fails, the last good ranking stays.
    """
    if not refit(campaign):
        raise typer.Exit(1)
    show.wrote(following=f"relook next {campaign} -n 50 --for NAME --to tasks.csv")


def refit(folder: Path) -> bool:
    """Train on the labels as they stand, rank by what comes of it, and say how it went; nobody waits for the log."""
    from relook import campaigns
    from relook import retrain as training

    with campaigns.opened(folder, clock=time) as found:
        running = training.begin(found, now=found.now)
    if running is None:
        show.say("Another process is training already: its ranking will be taken by whoever started it.")
        return False
    try:
        with show.progress("Training", None):
            running.wait()
    except KeyboardInterrupt:
        running.stop()
    try:
        posteriors = training.outcome(running)
    except BadTraining as error:
        show.say(f"Careful: {error}. The last good ranking stays.")
        return False
    with campaigns.opened(folder, clock=time) as found:
        ranking = training.install(found, running, posteriors=posteriors)
    show.say(f"Ranking {ranking.number} is in force, learnt from {running.snapshot.answers:,} answers.")
    return True
