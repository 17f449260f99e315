"""Posteriors of real networks on the paper's real task: how often they are right, and what a campaign makes of them.

The 5,000 images of CIFAR-10H that the released code takes, given labels at tau 10 from `RandomState(1234)` (1,485
wrong), 4,455 answers. Every file of `benchmarks/posteriors/INDEX.json` for this task was trained without any other
CIFAR-10 label and without weights trained on such labels; recipes were chosen on the 5,000 other test images with a
draw of labels of their own, and then run once. A seed of answers gives every policy and every file the same people.
`alone` is the share of items whose most probable class is the true one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import msgspec
import numpy as np

from benchmarks.better import BUDGET, paper_dataset
from relook.annotators import Crowd
from relook.errors import BadInput
from relook.policies import Setting, named
from relook.published import data_folder
from relook.simulation import Simulation, simulate
from relook.types import Posteriors

FOLDER = Path(__file__).parent / "posteriors"
TASK = {"data_set": "cifar10h-paper", "noise": "tau 10"}
SEEDS: Mapping[str, int] = {"smoke": 1, "paper": 5}
POLICIES = ("default", "paper", "margin")

PAPER: Mapping[str, tuple[str, float, float, float | None]] = {
    "ssl10k": ("a: self-supervised on the 10,000 images alone", 0.71, 0.952, 0.852),
    "ssl60k": ("b: self-supervised on all 60,000 images", 0.80, 0.960, 0.860),
    "efficientnet": ("c: frozen EfficientNet-Lite, on two processor cores", 0.72, 0.950, None),
    "all": ("d: all means together", 0.85, 0.968, 0.866),
}
"""Recipe: what it is, and what was asked for: right alone, right at the end of the default campaign, and its AUC."""

COLUMNS = {
    "recipe": "recipe",
    "policy": "policy",
    "alone": "alone % (sd)",
    "shown": "final % (sd) / AUC",
    "asked": "asked: alone, final / AUC",
    "hardware": "trained on",
    "passed": "reached",
}
"""What of a row is printed, and under which heading."""


class Piece(msgspec.Struct, frozen=True):
    """One campaign: a file of posteriors, a policy, and a seed of answers."""

    file: str
    recipe: str
    trained: int
    policy: str
    seed: int


def jobs(scale: str, *, seed: int = 0) -> list[Piece]:
    """Return the campaigns of a scale: every file and policy with 5 seeds of answers, or 1 for `smoke`."""
    return [
        Piece(entry["file"], entry["recipe"], entry["seed"], policy, number)
        for entry in entries()
        for policy in POLICIES
        for number in range(seed, seed + SEEDS[scale])
    ]


def entries() -> list[dict[str, Any]]:
    """Return what the index says of the files for this task."""
    index: list[dict[str, Any]] = json.loads((FOLDER / "INDEX.json").read_text("utf-8"))
    return [entry for entry in index if all(entry[key] == value for key, value in TASK.items())]


class Played(msgspec.Struct, frozen=True):
    """Plays a campaign out on the data in a folder: the function that an engine runs."""

    folder: str

    def __call__(self, piece: Piece) -> dict[str, Any]:
        """Return what came of a campaign."""
        dataset, posteriors = paper_dataset(self.folder), stored(self.folder, piece.file)
        truth = np.asarray(dataset.truth)
        policy = named(piece.policy, Setting(truth=truth, seed=piece.seed))
        plan = Simulation(policy, BUDGET, [Crowd(truth, piece.seed)], posteriors, seed=piece.seed)
        row = simulate(dataset, plan).row()
        alone = float((posteriors.mean().argmax(1) == dataset.true_class).mean())
        found: dict[str, Any] = msgspec.to_builtins(piece)
        return found | {"alone": alone, "share_correct": row["share_correct"], "auc": row["auc"]}


def player(data: Path | None) -> Played:
    """Return what plays a campaign out on the data in a folder."""
    return Played(str(data_folder(data, what="the real task")))


def table(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each recipe and policy: the mean over trainings and answers."""
    recipes = dict.fromkeys(run["recipe"] for run in results)
    return [_row(results, recipe, policy) for recipe in recipes for policy in POLICIES]


def checks(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what must hold: on every recipe the default ends better than the paper's rule."""
    return [_gain(results, recipe) for recipe in dict.fromkeys(run["recipe"] for run in results)]


def _gain(results: Sequence[Mapping[str, Any]], recipe: str) -> dict[str, Any]:
    ends = {(r["policy"], r["trained"], r["seed"]): r["share_correct"] for r in results if r["recipe"] == recipe}
    gains = [end - ends["paper", *which] for (policy, *which), end in ends.items() if policy == "default"]
    return {
        "what": f"{recipe}: default minus the paper's rule, points at the end",
        "needed": "more than 0",
        "found": f"{100 * fmean(gains):+.2f} ({sum(gain > 0 for gain in gains)} of {len(gains)} campaigns)",
        "passed": fmean(gains) > 0,
    }


def _row(results: Sequence[Mapping[str, Any]], recipe: str, policy: str) -> dict[str, Any]:
    runs = [run for run in results if (run["recipe"], run["policy"]) == (recipe, policy)]
    trained = {run["trained"]: run["alone"] for run in runs}
    alone, share, auc = fmean(trained.values()), fmean(r["share_correct"] for r in runs), fmean(r["auc"] for r in runs)
    seconds = [f"{entry['seconds']:.0f} s" for entry in entries() if entry["recipe"] == recipe]
    hardware = next(entry["hardware"] for entry in entries() if entry["recipe"] == recipe)
    what, *asked = PAPER.get(recipe, (recipe, None, None, None)) if policy == "default" else (recipe, None, None, None)
    reached = all(wish is None or got >= wish for wish, got in zip(asked, (alone, share, auc), strict=True))
    return {
        "recipe": what,
        "policy": policy,
        "trainings": len(trained),
        "campaigns": len(runs),
        "alone_share": alone,
        "share_correct": share,
        "auc": auc,
        "alone": f"{100 * alone:.1f} ({100 * _spread(list(trained.values())):.1f})",
        "shown": f"{100 * share:.2f} ({100 * _spread([r['share_correct'] for r in runs]):.2f}) / {auc:.4f}",
        "asked": "" if asked[0] is None else _wishes(asked),
        "hardware": f"{hardware}, {', '.join(dict.fromkeys(seconds))}",
        "passed": reached,
    }


def _wishes(asked: Sequence[float | None]) -> str:
    alone, share, auc = asked
    told = f"{100 * (alone or 0):.0f}, {100 * (share or 0):.1f}"
    return told if auc is None else f"{told} / {auc:.3f}"


def _spread(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


@cache
def stored(folder: str, name: str) -> Posteriors:
    """Return the posteriors of a file in the order of the task's items; a file of other labels is refused."""
    dataset = paper_dataset(folder)
    with np.load(FOLDER / name, allow_pickle=False) as found:
        values, labels, ids = (found[key] for key in ("posteriors", "labels", "ids"))
    place = {str(row): number for number, row in enumerate(ids.tolist())}
    order = [place[name] for name in dataset.ids]
    if not np.array_equal(labels[order], dataset.given.given):
        raise BadInput(f"{name}: posteriors trained on the task's given labels were needed, but on others they were")
    values = (values if values.ndim == 3 else values[np.newaxis]).astype(np.float64)
    shares = values[:, order] / values[:, order].sum(-1, keepdims=True)
    entry = next(entry for entry in entries() if entry["file"] == name)
    return Posteriors(shares, in_sample=entry["in_sample"])
