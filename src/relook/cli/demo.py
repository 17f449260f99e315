"""`relook demo`: a campaign on handwritten digits, from labels that are partly wrong to a report."""

from pathlib import Path
from typing import Annotated

import typer

from relook.cli import show

FOLDER = Path("relook-demo")


def demo(*, to: Annotated[Path, typer.Option(help="Folder for the rows, the curves and the report.")] = FOLDER) -> None:
    """Clean handwritten digits, one label in five of them made wrong, by a simulated crowd under four rules."""
    from relook.cli.simulated import shelves_of, tell_case, tell_world, write_report
    from relook.config import Grid
    from relook.runs import ROWS
    from relook.studies import check_folder, fitted, left, play, prepared

    study = prepared(Grid(dataset="digits", answers=("oracle",), against="paper"))
    check_folder(study, at=to)
    show.say("Handwritten digits, some of whose labels were made wrong, more often on images that look alike.")
    study = fitted(study, at=to)
    case = study.cases[0]
    tell_world(case.world)
    show.say(
        f"A simulated crowd gives {case.plan.budget:,} answers: as many as an oracle needs that asks once about each "
        "wrong label. The policies differ in which image they ask about next."
    )
    with show.progress("Simulating", left(study, at=to)) as step:
        runs = play(study, at=to, step=step, shelves=shelves_of)[0]
    tell_case(case, runs, title=f"{case.plan.budget:,} answers, {len(case.plan.seeds)} seeds")
    page = write_report(to, runs)
    show.wrote(page, to / ROWS, following="relook simulate --dataset digits --policy default,margin,ce --against paper")
