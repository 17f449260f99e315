"""A grid of simulations in a folder: prepared, played out, and gone on with after it was killed.

A folder belongs to one study. Its name, where the user gives none, comes from the hash of all that the results depend
on: configuration, content of the files, rules and versions; neither the time nor the place is among them.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from relook import __version__
from relook.config import Cell, Grid
from relook.engines import Engine
from relook.engines.serial import serial
from relook.errors import BadInput
from relook.experiment import (
    UPPER_BOUND,
    Job,
    Plan,
    World,
    budget_of,
    check_policy,
    missing,
    resumed,
    rule_hash,
    short_hash,
)
from relook.runs import RESOLVED, ROWS, Extra, Runs, Shelf, described, gathered, read_runs, replace_file, write_runs
from relook.worlds import FILES, Fit, training, world

PLACES = (*FILES, "data", "images", "folder")
"""Keys of a configuration that say where something lies: its content counts, not its place."""


class Case(msgspec.Struct, frozen=True, eq=False):
    """One combination of a grid, with its world and its runs; `fit` is the model still to be fitted, if any."""

    cell: Cell
    world: World
    plan: Plan
    fit: Fit | None = None

    def jobs(self) -> list[Job]:
        """Return the runs."""
        return self.plan.jobs(self.world)

    def inputs(self) -> dict[str, Any]:
        """Return the hashes of what the runs depend on; posteriors that are fitted go by what they are fitted to."""
        fitted = {} if self.fit is None else {"probabilities": f"fitted-{self.fit.key()}"}
        rules = {policy: rule_hash(policy) for policy in self.plan.policies if ":" in policy}
        return self.world.inputs() | fitted | {"rules": rules}


class Study(msgspec.Struct, frozen=True, eq=False):
    """A grid and its cases, ready to be played out in a folder."""

    grid: Grid
    cases: tuple[Case, ...]

    def resolved(self, case: Case) -> dict[str, Any]:
        """Return how the runs of a case came about: configuration, seeds, hashes of the inputs, versions."""
        return {
            "study": self.hash(),
            "configuration": msgspec.to_builtins(self.grid),
            "case": msgspec.to_builtins(case.cell) | {"answers": case.plan.budget},
            "seeds": list(case.plan.seeds),
            "inputs": case.inputs(),
            "versions": versions(),
        }

    def hash(self) -> str:
        """Return the hash of all that the results depend on."""
        configuration = {key: value for key, value in msgspec.to_builtins(self.grid).items() if key not in PLACES}
        content = [configuration, [case.inputs() for case in self.cases], versions()]
        return short_hash(msgspec.json.encode(content))

    def folder(self, case: Case, *, at: Path) -> Path:
        """Return the folder of a case: the study's own, or one in it where there are several cases."""
        return at if len(self.cases) == 1 else at / case.cell.name(self.grid.varying())


def versions() -> dict[str, str]:
    """Return the versions of what computes the results."""
    packages = {name: importlib.metadata.version(name) for name in ("numpy", "scikit-learn")}
    return {"relook": __version__, "python": platform.python_version()} | packages


def prepared(grid: Grid) -> Study:
    """Read and check everything that a grid names; nothing is written."""
    if grid.against is not None and grid.against not in grid.policy:
        grid = msgspec.structs.replace(grid, policy=(*grid.policy, grid.against))
    cells = grid.cells()
    worlds = {tau: world(grid, tau) for tau in {cell.tau: None for cell in cells}}
    cases = []
    for cell in cells:
        here, fit = worlds[cell.tau]
        plan = Plan(
            policies=grid.policy,
            seeds=grid.seeds,
            budget=budget_of(cell, here, seeds=grid.seeds),
            settle=cell.settle,
            batch=cell.batch,
            annotators=grid.annotators,
            protocol=grid.protocol,
            training=None if grid.update_every is None else training(grid),
            update_every=grid.update_every,
        )
        cases.append(Case(cell, here, plan, fit))
    return Study(grid, tuple(cases))


def fitted(study: Study, *, at: Path) -> Study:
    """Return the study with every model fitted, or read where the folder keeps its posteriors; nothing is written."""
    known: dict[str, World] = {}
    cases = []
    for case in study.cases:
        if case.fit is None:
            cases.append(case)
            continue
        key = case.fit.key()
        if key not in known:
            known[key] = msgspec.structs.replace(case.world, posteriors=case.fit.posteriors(at))
        cases.append(msgspec.structs.replace(case, world=known[key]))
    return msgspec.structs.replace(study, cases=tuple(cases))


def check(study: Study) -> dict[str, str]:
    """Check that every policy can be played in every case; say of the user's own if they look at one row at a time."""
    looks = {}
    for case in study.cases:
        for job in {job.name: job for job in case.jobs()}.values():
            looks[job.policy] = check_policy(job, case.world)
    return {policy: word for policy, word in looks.items() if ":" in policy}


def check_folder(study: Study, *, at: Path) -> None:
    """Refuse a folder that holds something else than this study."""
    if at.is_file():
        raise BadInput(f"--to {at}: a folder was needed, but a file is there; name another place")
    for case in study.cases:
        folder = study.folder(case, at=at)
        if (folder / RESOLVED).is_file():
            _check_same(study.resolved(case), folder / RESOLVED)
        elif (folder / ROWS).exists():
            raise BadInput(f"--to {folder}: it holds {ROWS} of other runs; name another folder")


def left(study: Study, *, at: Path) -> int:
    """Return how many runs a folder does not hold yet."""
    ahead = 0
    for case in study.cases:
        folder = study.folder(case, at=at)
        ahead += 0 if (folder / ROWS).is_file() else len(missing(folder, case.jobs()))
    return ahead


Shelves = Callable[[Case], tuple[Shelf, ...]]
"""Makes the gallery of a case; without pictures it has no shelves."""


def no_shelves(_case: Case) -> tuple[Shelf, ...]:
    """Return no gallery."""
    return ()


def play(
    study: Study,
    *,
    at: Path,
    engine: Engine = serial,
    step: Callable[[], None] | None = None,
    shelves: Shelves = no_shelves,
) -> list[Runs]:
    """Play every case out in its folder, where it was left, and return the runs of each.

    `step` is called after each run.
    """
    found = []
    for case in study.cases:
        folder, resolved = study.folder(case, at=at), study.resolved(case)
        if (folder / ROWS).is_file():
            found.append(read_runs(folder))
            continue
        replace_file(folder / RESOLVED, msgspec.json.format(msgspec.json.encode(resolved), indent=1) + b"\n")
        if case.fit is not None and case.world.posteriors is not None:
            case.fit.keep(case.world.posteriors, folder=at)
        records = resumed(case.world, case.jobs(), folder=folder, engine=engine, step=step)
        runs = gathered(records, resolved=resolved, extra=_extra(case, shelves(case), against=study.grid.against))
        write_runs(folder, runs)
        found.append(runs)
    return found


def _extra(case: Case, shelves: tuple[Shelf, ...], *, against: str | None) -> Extra:
    return msgspec.structs.replace(
        described(case.world.dataset),
        against=against,
        bounds=() if case.world.clean is None else (UPPER_BOUND,),
        ranked_by="paper" if shelves else "",
        gallery=shelves,
    )


def rows(study: Study, runs: Sequence[Runs]) -> list[dict[str, Any]]:
    """Return the rows of all cases; where a grid varies, each row says its place on the axes as well.

    A varying number of answers is said as `budget`, for `answers` are those that were spent.
    """
    axes = study.grid.varying()
    found = []
    for case, each in zip(study.cases, runs, strict=True):
        cell = {axis: getattr(case.cell, axis) for axis in axes if axis != "answers"}
        budget = {"budget": case.plan.budget} if "answers" in axes else {}
        found += [row | cell | budget for row in each.rows]
    return found


def _check_same(resolved: dict[str, Any], path: Path) -> None:
    try:
        there = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise BadInput(f"--to {path.parent}: {path.name} cannot be read ({error}); name another folder") from None
    if there.get("study") == resolved["study"]:
        return
    here = msgspec.json.decode(msgspec.json.encode(resolved))
    for part in ("configuration", "case", "inputs", "versions"):
        mine, other = here[part], there.get(part, {})
        for key in mine:
            if mine[key] != other.get(key) and not (part == "configuration" and key in PLACES):
                raise BadInput(
                    f"--to {path.parent}: it holds runs with {key} {_told(other.get(key))}, but {key} "
                    f"{_told(mine[key])} came; name another folder"
                )
    raise BadInput(f"--to {path.parent}: it holds runs of another study; name another folder")


def _told(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
