"""`relook new`: a campaign on disk, with every decision in a sentence."""

import os
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from relook.cli import show

if TYPE_CHECKING:
    from relook.charter import Budget
    from relook.founding import Ranker
    from relook.imported import Imported
    from relook.types import Dataset, Posteriors

WHAT, MONEY, RULES, MODEL = "Items", "Budget", "Rules", "Model"


def _option(help_text: str, *names: str, panel: str) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=panel)


def new(
    campaign: Annotated[Path, typer.Argument(help="Folder to make.", show_default=False)],
    *,
    source: Annotated[str, _option("Folder of an imported set, or digits.", "--data", panel=WHAT)],
    split: Annotated[str | None, _option("Only the items of this split.", panel=WHAT)] = None,
    purpose: Annotated[
        Literal["train", "evaluation"] | None,
        _option("What the set is for; evaluation where the split's name says so, else train.", panel=WHAT),
    ] = None,
    answers: Annotated[int | None, _option("Answers to pay for.", "--answers", panel=MONEY)] = None,
    hours: Annotated[float | None, _option("Hours to pay for instead.", panel=MONEY)] = None,
    people: Annotated[int | None, _option("How many people answer; else no end of them.", panel=MONEY)] = None,
    settle: Annotated[str, _option("paper, people:2, one, margin:2 or confidence:.95.", panel=RULES)] = "paper",
    policy: Annotated[str, _option("What is asked next: a name, or mine.py:function.", panel=RULES)] = "default",
    hold: Annotated[float, _option("Hours for which somebody holds an item.", panel=RULES)] = 168.0,
    seed: Annotated[int, _option("Chance.", panel=RULES)] = 0,
    embeddings: Annotated[Path | None, _option("N x D: npy, npz, parquet or csv.", panel=MODEL)] = None,
    probabilities: Annotated[
        Path | None, _option("N x C of a model; they stay.", "--probabilities", "-p", panel=MODEL)
    ] = None,
    answers_from: Annotated[
        Path | None, _option("An earlier campaign, of other classes: its answers are taken over.", panel=WHAT)
    ] = None,
    override: Annotated[
        str | None, _option("Why probabilities may rank an evaluation set.", "--override", panel=MODEL)
    ] = None,
    selector: Annotated[
        str, _option("The model that learns from the labels: a name, or mine.py:function.", panel=MODEL)
    ] = "average",
    refit: Annotated[int, _option("Answers after which it is fitted anew.", panel=MODEL)] = 500,
) -> None:
    """Make a campaign: what its items are, what may be spent, when an item is settled, and what ranks the items.

    With embeddings, or with nothing, a model that never saw an item's label ranks it, and is fitted anew as answers
    come. Probabilities stay as they are.
    """
    from relook import campaigns, founding
    from relook.charter import Charter, Retraining, Rules, sentences

    budget, rules = _budget(answers, hours, people=people), Rules(policy, settle, hold, seed)
    campaigns.policy(rules)
    with founding.founding(campaign) as made:
        found = founding.source(source, made=made)
        founding.check_classes(found)
        by = founding.ranker(found, split=split, embeddings=embeddings, probabilities=probabilities)
        chosen = purpose or ("evaluation" if (split or "").casefold() in founding.TESTS else "train")
        founding.check_purpose(chosen, by, override=override)
        decided = Charter(
            software=_software(),
            name=campaign.name,
            purpose=chosen,
            override=override,
            answers_from=None if answers_from is None else os.path.relpath(answers_from.resolve(), made.resolve()),
            items=founding.items_of(found, made, name=source, split=split),
            budget=budget,
            rules=rules,
            retraining=Retraining(
                None if by.probabilities is not None else {"method": founding.own_path(selector)},
                None if by.probabilities is not None else by.called,
                refit,
                memory_gib=_memory(),
            ),
        )
        for sentence in sentences(decided):
            show.say(sentence)
        begun = founding.begin(made, decided, by=by, now=time())
        _tell_ranker(by, found, data_set=begun.dataset, posteriors=begun.posteriors)
        if begun.carried is not None:
            show.say(str(begun.carried))
    _tell_budget(decided.budget)
    show.wrote(campaign, following=f"relook next {campaign} -n 50 --for NAME --to tasks.csv")


def _budget(answers: int | None, hours: float | None, *, people: int | None) -> "Budget":
    from relook.charter import Budget
    from relook.errors import BadInput
    from relook.pace import Pace

    if (answers is None) == (hours is None):
        came = "neither" if answers is None else "both"
        raise BadInput(f"new: a budget in --answers or in --hours was needed, but {came} came; say one")
    if people is not None and people < 1:
        raise BadInput(f"new: at least one person was needed, but --people {people} came; leave it out for no limit")
    return Budget(Pace().answers(hours) if answers is None else answers, hours, people)  # type: ignore[arg-type]


def _software() -> str:
    from relook import __version__

    return __version__


def _memory() -> float:
    """Return three quarters of this machine's memory in GiB: what a model that is trained beside people may take."""
    return round(0.75 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def _tell_ranker(by: "Ranker", found: "Imported", *, data_set: "Dataset", posteriors: "Posteriors | None") -> None:
    """Say what ranks the items and how well it agrees with the labels; probabilities out of order are refused."""
    from relook.cli.rank import guard
    from relook.founding import matched
    from relook.methods import sentence
    from relook.predictions import predictions

    for fact in by.facts:
        show.say(fact)
    if posteriors is not None and "selector" in posteriors.about:
        show.say(sentence(posteriors))
    if posteriors is None or (data_set.given.label() < 0).all():
        return
    seen = predictions(data_set.given, posteriors)
    guard(matched(found, data_set, posteriors=posteriors), seen)
    if not posteriors.about.get("calibration"):
        show.say(f"It agrees with the given label on {seen.agreement():.1%} (chance: {seen.chance():.1%}).")


def _tell_budget(budget: "Budget") -> None:
    from relook.pace import Pace, in_words

    pace = Pace()
    needed = pace.hours(budget.answers)
    each = f", {in_words(needed / budget.people)} a person" if budget.people else ""
    told = f"about {in_words(needed)} at {pace.seconds:g} s each until it is measured{each}"
    show.say(f"{budget.answers:,} answers are {told}.")
