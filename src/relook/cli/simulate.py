"""`relook simulate`: what a number of answers would buy, before any is paid for."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relook.cli import show

if TYPE_CHECKING:
    from relook.config import Grid
    from relook.engines import Engine
    from relook.runs import Runs
    from relook.studies import Study

SET, MODEL, PLAY, OUT = "Data set", "Class probabilities", "Simulation", "Running and writing"

RUNNING = ("config", "jobs", "to", "json")
"""Options that say how to run and where to write: the results do not depend on them."""


def _option(help_text: str, *names: str, panel: str) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=panel)


def simulate(
    *,
    dataset: Annotated[str | None, _option("digits, cifar10h, or the folder of an imported set.", panel=SET)] = None,
    split: Annotated[str | None, _option("Of an imported set: simulate on this split alone.", panel=SET)] = None,
    data_folder: Annotated[str | None, _option("Folder of data sets; or set RELOOK_DATA.", "--data", panel=SET)] = None,
    subset: Annotated[str | None, _option("Of cifar10h: paper (default; its 5,000 images) or all.", panel=SET)] = None,
    tau: Annotated[
        str | None, _option("Of cifar10h: noise temperature; 10 (default) is the paper's 30 %.", panel=SET)
    ] = None,
    truth: Annotated[
        str | None, _option("Your own set: N x C counts of answers or shares, or N classes.", panel=SET)
    ] = None,
    labels: Annotated[
        str | None, _option("Your own set: N given labels (-1: none) or N x C counts.", panel=SET)
    ] = None,
    probabilities: Annotated[
        str | None,
        _option("N x C, or M x N x C of several models; npy or npz.", "--probabilities", "--pred-probs", panel=MODEL),
    ] = None,
    embeddings: Annotated[str | None, _option("N x D, to fit a model to, out of sample.", panel=MODEL)] = None,
    bound: Annotated[
        str | None, _option("Those of a model trained on clean labels: draws the model upper bound.", panel=MODEL)
    ] = None,
    images: Annotated[str | None, _option("Of cifar10h: folder with its images, for the gallery.", panel=SET)] = None,
    policy: Annotated[str | None, _option("Names with commas, or your own: mine.py:function.", panel=PLAY)] = None,
    against: Annotated[str | None, _option("A policy to compare the others with, seed by seed.", panel=PLAY)] = None,
    answers: Annotated[str | None, _option("A number, paper-code (default) or oracle.", panel=PLAY)] = None,
    seeds: Annotated[int | None, _option("Runs of each policy; 5 by default.", panel=PLAY)] = None,
    seed: Annotated[int | None, _option("The first seed; 0 by default.", panel=PLAY)] = None,
    settle: Annotated[
        str | None, _option("paper (default), people:2, one, margin:2 or confidence:.95.", panel=PLAY)
    ] = None,
    batch: Annotated[str | None, _option("Answers between two rankings; 1 by default.", panel=PLAY)] = None,
    annotators: Annotated[
        int | None, _option("A panel of so many people; else a crowd without end.", panel=PLAY)
    ] = None,
    protocol: Annotated[
        str | None, _option("exact (default), or paper-code: as the paper's released code.", panel=PLAY)
    ] = None,
    method: Annotated[
        str | None, _option("What makes class probabilities: average (default), lda, logistic, knn ...", panel=MODEL)
    ] = None,
    recipe: Annotated[str | None, _option("Of networks: such as ssl10k; needs --images.", panel=MODEL)] = None,
    device: Annotated[str | None, _option("Of networks: cpu (default) or cuda.", panel=MODEL)] = None,
    folder: Annotated[str | None, _option("Of networks: keeps encoders, which updates share.", panel=MODEL)] = None,
    update_every: Annotated[
        int | None, _option("Train anew on the labels as they stand, every so many answers.", panel=MODEL)
    ] = None,
    answered_weight: Annotated[
        float | None, _option("An answered item counts so often in training; 1 by default.", panel=MODEL)
    ] = None,
    config: Annotated[Path | None, _option("TOML with these options; lists make a grid.", panel=PLAY)] = None,
    jobs: Annotated[int, _option("Runs at a time, each in a process of its own.", panel=OUT)] = 1,
    to: Annotated[Path | None, _option("Folder; runs/ and a hash by default.", panel=OUT)] = None,
    json: Annotated[Path | None, _option("Write the rows, one a run, as JSON.", panel=OUT)] = None,
) -> None:
    """Play a campaign out on labels whose truth is known: what would a number of answers buy, under which rule?

    A run that was stopped goes on where it was when the same command is given again.
    """
    options = dict(locals())
    from relook.cli.simulated import check_output
    from relook.engines import side_by_side
    from relook.studies import check, check_folder, fitted, prepared

    check_output(json)
    engine = side_by_side(jobs)
    study = prepared(_grid(options, config))
    at = to or Path("runs") / study.hash()[:8]
    check_folder(study, at=at)
    if any(case.fit is not None for case in study.cases):
        show.say("Class probabilities: fitted as by relook rank to the features and given labels, out of sample.")
    study = fitted(study, at=at)
    for rule, word in check(study).items():
        show.say(f"{rule} looks at one row at a time: {word}.")
    runs = _played(study, at=at, engine=engine)
    _tell(study, runs)
    _write(study, runs, at=at, json=json)


def _grid(options: dict[str, Any], config: Path | None) -> "Grid":
    from relook.config import grid

    named = {"data" if key == "data_folder" else key: value for key, value in options.items()}
    given = {key: value for key, value in named.items() if value is not None and key not in RUNNING}
    return grid((_read(config) if config is not None else {}) | given, where=str(config or "simulate"))


def _read(path: Path) -> dict[str, Any]:
    """Return a configuration's table: of a TOML file, or of the resolved.json of an earlier run."""
    import tomllib

    import msgspec

    from relook.errors import BadInput

    try:
        if path.suffix == ".json":
            return dict(msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, Any] | Any])["configuration"])
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise BadInput(f"--config {path}: a TOML file was needed, but there is no such file; check the path") from None
    except (OSError, KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise BadInput(f"--config {path}: a table of options was needed, but it is none ({error}); mend it") from None


def _played(study: "Study", *, at: Path, engine: "Engine") -> list["Runs"]:
    from time import monotonic

    from relook.cli.simulated import shelves_of, tell_world
    from relook.studies import left, play

    worlds = {id(case.world): case.world for case in study.cases}
    for world in worlds.values():
        tell_world(world)
    missing, total = left(study, at=at), sum(len(case.jobs()) for case in study.cases)
    began = monotonic()
    try:
        with show.progress("Simulating", missing) as step:
            runs = play(study, at=at, engine=engine, step=step, shelves=shelves_of)
    except KeyboardInterrupt:
        done = total - left(study, at=at)
        show.say(f"Stopped: {done:,} of {total:,} runs are kept in {at}; the same command goes on from there.")
        raise typer.Exit(130) from None
    there = f"; {total - missing:,} were there already" if missing < total else ""
    show.say(f"{missing:,} runs in {monotonic() - began:.1f} s{there}.")
    return runs


def _tell(study: "Study", runs: list["Runs"]) -> None:
    from relook.cli.simulated import tell_case

    axes = study.grid.varying()
    for case, each in zip(study.cases, runs, strict=True):
        budget = f"{case.plan.budget:,} answers, {len(case.plan.seeds)} seeds"
        tell_case(case, each, title=f"{case.cell.name(axes)}: {budget}" if axes else budget)


def _write(study: "Study", runs: list["Runs"], *, at: Path, json: Path | None) -> None:
    from relook.cli.simulated import write_curves, write_report
    from relook.runs import ROWS, replace_file
    from relook.studies import rows

    found, several = rows(study, runs), len(study.cases) > 1
    if several:
        import msgspec

        replace_file(at / ROWS, msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    for case, each in zip(study.cases, runs, strict=True):
        folder = study.folder(case, at=at)
        files = [*write_curves(folder, each), write_report(folder, each)]
    written = [at / ROWS, *(at / "*" / file.name if several else file for file in files)]
    if json is not None:
        show.write_json(json, found)
        written.append(json)
    show.wrote(*written, following=f"relook cite {folder}")
