"""`relook status`: money, time, items, people and the ranking of a campaign, and what to do next."""

from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from relook.cli import show

if TYPE_CHECKING:
    from relook.charter import Charter
    from relook.progress import Progress

_OFF = 0.1
"""A forecast that is off by this share is worth a sentence."""


def status(
    campaign: Annotated[Path, typer.Argument(help="Folder of a campaign.", show_default=False)],
    *,
    json: Annotated[Path | None, typer.Option(help="Write it all as JSON.")] = None,
) -> None:
    """Say where a campaign stands. It only looks: nobody who works on it has to wait."""
    from relook import campaigns, charter
    from relook.progress import progress
    from relook.retrain import state

    decided = charter.read(campaign)
    stands = progress(*campaigns.looked(campaign), now=campaigns.time_of(campaign, time()))
    _tell_money(stands)
    _tell_items(stands)
    _tell_people(stands)
    _tell_ranking(campaign, decided, stands=stands)
    if json is not None:
        told = msgspec.to_builtins(stands) | {"trainer": msgspec.to_builtins(state(campaign))}
        json.write_bytes(msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n")
    show.wrote(*([json] if json else []), following=_next(campaign, stands))


def _tell_money(stands: "Progress") -> None:
    from relook.pace import in_words

    pace = stands.pace
    hours = {name: in_words(pace.hours(getattr(stands, name))) for name in ("budget", "spent", "left")}
    show.say(
        f"Budget {stands.budget:,} answers ({hours['budget']} at {pace}): {stands.spent:,} spent ({hours['spent']}), "
        f"{stands.reserved:,} handed out, {stands.left:,} left ({hours['left']})."
    )
    if stands.hours and pace.measured and abs(pace.hours(stands.budget) / stands.hours - 1) > _OFF:
        show.say(
            f"{stands.hours:g} hours were agreed, which are {pace.answers(stands.hours):,} answers at this pace; "
            f"relook set --hours {stands.hours:g} makes them so."
        )


def _tell_items(stands: "Progress") -> None:
    told = f"{stands.items:,} items, {stands.seen:,} of them answered: {stands.settled:,} settled"
    told += "".join(
        f", {count:,} {name}"
        for name, count in (
            ("open", stands.waiting),
            ("disputed", stands.disputed),
            ("that people cannot tell", stands.unclear),
            ("of none of the classes", stands.outside),
        )
        if count
    )
    show.say(f"{told}.")
    if stands.settled:
        share = stands.changed / stands.settled
        show.say(f"Of the settled, {stands.changed:,} had a wrong label ({share:.1%}).")


def _tell_people(stands: "Progress") -> None:
    rows = [msgspec.to_builtins(person) for person in stands.people]
    if rows:
        shown = [row | {"agrees": None if row["agrees"] is None else f"{row['agrees']:.0%}"} for row in rows]
        columns = {"name": "who", "answers": "answers", "late": "late", "holds": "holds", "agrees": "as settled"}
        show.table(shown, columns)


def _tell_ranking(folder: Path, decided: "Charter", *, stands: "Progress") -> None:
    from relook.pace import in_words
    from relook.retrain import state

    since = f"{stands.since:,} answers came since" if stands.since else "no answer came since"
    told = f"Ranking {stands.ranking}, {in_words(stands.age / 3600)} old; {since}"
    often = decided.retraining
    show.say(f"{told}." if often.trainer is None else f"{told}; the next one is due after {often.answers:,}.")
    trainer = state(folder)
    if trainer is not None and trainer.why is not None:
        times = "once" if trainer.failures == 1 else f"{trainer.failures} times"
        show.say(f"Careful: training failed {times}, so this ranking stays: {trainer.why}.")
    if stands.closed:
        show.say("The campaign is closed.")


def _next(folder: Path, stands: "Progress") -> str:
    """Return one sensible next command."""
    if stands.disputed:
        return f"relook settle {folder} --to disputed.csv, for a reviewer"
    if stands.left and not stands.closed:
        return f"relook next {folder} -n 50 --for NAME --to tasks.csv"
    if stands.reserved:
        return f"relook answers {folder} FILE, for what is handed out"
    return f"relook export {folder} --to clean.csv"
