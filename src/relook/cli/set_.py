"""`relook set`: what a manager changes while a campaign runs; each change is an event that says by whom, and why."""

from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relook.cli import show

if TYPE_CHECKING:
    from collections.abc import Callable

    from relook.campaigns import Opened

Who = tuple[str, str | None]
"""Who decides, and why."""

MONEY, RULES, PEOPLE, RUN, WHO = "Budget", "Rules", "People", "The campaign", "On record"
_EVERYBODY = "all"


def _option(help_text: str, *names: str, panel: str) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=panel)


def set_(
    campaign: Annotated[Path, typer.Argument(help="Folder of a campaign.", show_default=False)],
    *,
    answers: Annotated[int | None, _option("The budget, all answers told.", "--answers", panel=MONEY)] = None,
    hours: Annotated[float | None, _option("The budget in hours, at the measured pace.", panel=MONEY)] = None,
    settle: Annotated[str | None, _option("paper, people:2, one, margin:2 or confidence:.95.", panel=RULES)] = None,
    policy: Annotated[str | None, _option("What is asked next.", panel=RULES)] = None,
    people: Annotated[int | None, _option("How many people answer.", panel=RULES)] = None,
    pause: Annotated[str | None, _option("Ask NAME nothing more for now, or all.", panel=PEOPLE)] = None,
    resume: Annotated[str | None, _option("Ask NAME again, or all.", panel=PEOPLE)] = None,
    free: Annotated[str | None, _option("Take back what NAME holds; it costs nothing.", panel=PEOPLE)] = None,
    remove: Annotated[str | None, _option("NAME takes part no longer; answers stand.", panel=PEOPLE)] = None,
    void: Annotated[str | None, _option("NAME takes part no longer; answers count no more.", panel=PEOPLE)] = None,
    close: Annotated[bool, _option("Ask nothing more.", "--close", panel=RUN)] = False,
    reopen: Annotated[bool, _option("Go on after a close.", "--reopen", panel=RUN)] = False,
    source: Annotated[Path | None, _option("Where the set lies now.", "--data", panel=RUN)] = None,
    by: Annotated[str, _option("Who decides this.", panel=WHO)] = "manager",
    why: Annotated[str | None, _option("The reason.", panel=WHO)] = None,
) -> None:
    """Change the budget or the rules, pause, close, or take somebody out; the log keeps who did it and why.

    A budget below what is spent and handed out is refused. Other rules judge what people said anew.
    """
    from relook import campaigns, changes
    from relook.errors import BadInput

    if source is not None:
        changes.moved(campaign, source)
        show.say(f"The items are in {source} now.")
    money = {"answers": answers, "hours": hours}
    rules = {"settle": settle, "policy": policy, "people": people}
    names = {"pause": pause, "resume": resume, "free": free, "remove": remove, "void": void}
    asked = [{name: value for name, value in part.items() if value is not None} for part in (money, rules, names)]
    if not (any(asked) or close or reopen or source):
        raise BadInput("set: something to change was needed, but nothing came; see relook set --help")
    if any(asked) or close or reopen:
        with campaigns.opened(campaign, clock=time) as found:
            if reopen:
                changes.decide(found, lambda manager, now: manager.reopen(now=now), by=by, why=why)
                show.say("The campaign is open again.")
            for words, change in zip(asked, (_pay, _rule, _act), strict=True):
                if words:
                    show.say(change(found, words, who=(by, why)))
            if close:
                changes.decide(found, lambda manager, now: manager.close(now=now), by=by, why=why)
                show.say("The campaign is closed.")
    show.wrote(following=f"relook status {campaign}")


def _pay(found: "Opened", words: dict[str, Any], *, who: Who) -> str:
    """Set the budget and say what it is now."""
    from relook import campaigns, changes
    from relook.errors import BadInput
    from relook.pace import in_words, pace

    if len(words) > 1:
        raise BadInput("set: the new budget was needed in answers or in hours, but both of them came; say one")
    ledger, events = campaigns.looked(found.folder)
    measured, hours = pace(events), words.get("hours")
    least = ledger.spent + ledger.reserved
    answers = words["answers"] if hours is None else changes.answers_in(hours, measured, least=least)
    changes.budget(found, answers, hours=hours, by=who[0], why=who[1])
    return f"The budget is {answers:,} answers now: {in_words(measured.hours(answers))} at {measured}."


def _rule(found: "Opened", words: dict[str, Any], *, who: Who) -> str:
    """Change the rules and say what that means for what people said."""
    from msgspec.structs import replace

    from relook import changes

    rules = replace(found.decided.rules, **{name: value for name, value in words.items() if name != "people"})
    people = words.get("people", found.decided.budget.people)
    meant = changes.rules(found, rules, people=people, by=who[0], why=who[1])
    return f"By the new rules {meant.settled:,} more items are settled and {meant.opened:,} are open again."


def _act(found: "Opened", words: dict[str, str], *, who: Who) -> str:
    """Do what was asked about people and say what came of it."""
    from relook import changes

    told = []
    for action, name in words.items():
        whom = None if name == _EVERYBODY and action in ("pause", "resume") else name
        if action == "free":
            told.append(f"{changes.free(found, name):,} items that {name} held are free again.")
            continue
        changes.decide(found, _ACTIONS[action](whom), by=who[0], why=who[1])
        told.append(_TOLD[action].format("everybody" if whom is None else name))
    return " ".join(told)


_ACTIONS: "dict[str, Callable[[Any], Callable[[Any, float], Any]]]" = {
    "pause": lambda name: lambda manager, now: manager.pause(name, now=now),
    "resume": lambda name: lambda manager, now: manager.resume(name, now=now),
    "remove": lambda name: lambda manager, now: manager.remove(name, "stand", now=now),
    "void": lambda name: lambda manager, now: manager.remove(name, "void", now=now),
}

_TOLD = {
    "pause": "Nothing is asked of {} for now.",
    "resume": "Items are handed out to {} again.",
    "remove": "{} takes part no longer; the answers stand.",
    "void": "{} takes part no longer; the answers count no more, and stay paid.",
}
