"""How simulations are told: what they run on, a table of the policies, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from relook.cli import show
from relook.errors import BadInput

if TYPE_CHECKING:
    from relook.experiment import World
    from relook.runs import Paired, Runs, Shelf
    from relook.studies import Case


def tell_world(world: World) -> None:
    """Say how many items there are, how many given labels are wrong, and how good the posteriors are."""
    from relook.curves import difficult

    dataset, wrong = world.dataset, world.dataset.given.label() != world.dataset.true_class
    hard = int((wrong & difficult(world.truth)).sum())
    show.say(
        f"{dataset.name}: {len(dataset):,} items, {len(dataset.classes)} classes; {world.wrong:,} given labels "
        f"({_percent(wrong.mean())}) are wrong, {world.wrong - hard:,} clear and {hard:,} difficult ones."
    )
    if world.posteriors is not None:
        likeliest = world.posteriors.mean().argmax(1)
        given, true = (likeliest == dataset.given.label()).mean(), (likeliest == dataset.true_class).mean()
        show.say(
            f"The class that is likeliest by the model is the given one on {_percent(given)}, the true one on "
            f"{_percent(true)} of the items."
        )


def tell_case(case: Case, runs: Runs, *, title: str | None = None) -> None:
    """Print the table of a case, the differences where a comparison was asked for, and what they say."""
    show.table(means(runs), MEANS, title=title)
    if runs.extra.against is not None:
        found = differences(runs)
        if found:
            show.table(found, {"policy": f"minus {runs.extra.against}"} | DIFFERENCES)
    for line in sentences(case, runs):
        show.say(line)


MEANS = {"policy": "policy", "share_correct": "final % (sd)", "auc": "AUC (sd)", "answers": "answers", "items": "items"}
DIFFERENCES = {"share_correct": "final, points (95 %)", "auc": "AUC (95 %)", "wins": "wins"}


def means(runs: Runs) -> list[dict[str, Any]]:
    """Return a row a policy, the cleanest labels first: means over its seeds, with deviations."""
    from relook.figures import bounds, mean_of, rules

    found = []
    for policy in sorted((*rules(runs), *bounds(runs)), key=lambda each: -mean_of(runs.rows_of(each), "share_correct")):
        rows = runs.rows_of(policy)
        whole = {name: round(mean_of(rows, name)) for name in ("answers", "items")}
        share, auc = _spread(rows, "share_correct"), _spread(rows, "auc")
        shown = {"share_correct": f"{100 * share[0]:.2f} ({100 * share[1]:.2f})", "auc": f"{auc[0]:.4f} ({auc[1]:.4f})"}
        found.append({"policy": policy} | shown | whole)
    return found


def differences(runs: Runs) -> list[dict[str, Any]]:
    """Return a row for each policy that is compared: paired differences with 95 % intervals, and the seeds it wins."""
    from relook.runs import paired

    against = runs.extra.against or ""
    auc = {each.policy: each for each in paired(runs, against, quantity="auc")}
    found = []
    for each in paired(runs, against):
        shown = {"share_correct": _interval(each, _points), "auc": _interval(auc[each.policy], _plain)}
        found.append({"policy": each.policy} | shown | {"wins": f"{each.wins}/{each.seeds}"})
    return found


def sentences(case: Case, runs: Runs) -> list[str]:
    """Return what the table says in words: who is ahead, and who ran out of items to ask about."""
    from relook.report import headline

    return [headline(runs), *_compared(runs), *_ran_out(runs, case.plan.budget)]


def shelves_of(case: Case) -> tuple[Shelf, ...]:
    """Return the gallery of a case, where there are pictures and probabilities to rank them by."""
    from relook.report import gallery

    dataset, posteriors = case.world.dataset, case.world.posteriors
    return () if dataset.images is None or posteriors is None else gallery(dataset, posteriors)


def write_report(folder: Path, runs: Runs) -> Path:
    """Write the page about a case into its folder and return it."""
    from datetime import datetime

    from relook.report import Report, write

    path = folder / "report.html"
    write(path, Report(runs, datetime.now().astimezone().strftime("%Y-%m-%d")))
    return path


def write_curves(folder: Path, runs: Runs) -> list[Path]:
    """Write the cleaning curves of a case into its folder, as SVG and as PNG, and return the files."""
    from relook.plots import cleaning_curves

    paths = [folder / "curves.svg", folder / "curves.png"]
    for path in paths:
        cleaning_curves(path, runs)
    return paths


def check_output(path: Path | None) -> None:
    """Refuse a file that cannot be written, before work is spent on what should stand in it."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise BadInput(f"--json {path}: a file in a folder that exists was needed; make {path.parent} first")


def _spread(rows: Sequence[dict[str, Any]], quantity: str) -> tuple[float, float]:
    values = [row[quantity] for row in rows]
    return fmean(values), stdev(values) if len(values) > 1 else 0.0


def _interval(each: Paired, written: Callable[[float], str]) -> str:
    if each.low is None or each.high is None:
        return written(each.mean)
    return f"{written(each.mean)} ({written(each.low)}, {written(each.high)})"


def _compared(runs: Runs) -> list[str]:
    from relook.figures import leading
    from relook.runs import paired

    against, first = runs.extra.against, leading(runs)
    if against is None:
        return []
    for each in paired(runs, against):
        if each.policy == first:
            if each.low is None or each.high is None:
                return [f"One seed shows no interval; --seeds 5 gives one to {first} minus {against}."]
            clear = "more than chance" if each.low > 0 or each.high < 0 else "no more than chance may do"
            interval = f"{_points(each.mean)} points ({_points(each.low)} to {_points(each.high)})"
            return [f"{first} minus {against}, paired over {each.seeds} seeds: {interval}, {clear}."]
    return []


def _ran_out(runs: Runs, budget: int) -> list[str]:
    told = []
    for policy in runs.policies:
        most = max(row["answers"] for row in runs.rows_of(policy))
        if most < budget:
            told.append(f"{policy} stopped after {most:,} answers of {budget:,}: nothing was left to ask.")
    return told


def _points(value: float) -> str:
    return f"{100 * value:+.2f}"


def _plain(value: float) -> str:
    return f"{value:+.4f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
