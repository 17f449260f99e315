"""The bounds of the paper's simulation on CIFAR-10H: oracle, random, minimal sampler, and the true posterior's rules.

The reference's numbers were computed from the rules of the paper's released code (its 5,000 images, its given labels,
its crowd) and agree with the one bound that the paper prints: oracle 99.38 (.19) / .887 in supplementary table 3. Each
is played by two protocols: `paper-code` finishes the item it is on, as the released code does, and draws all answers
from one stream; `exact` never overspends, and policies that share a seed hear the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import msgspec

from relook.config import Protocol
from relook.datasets import load
from relook.experiment import Job, Play, World
from relook.types import Posteriors

PAPER: tuple[dict[str, Any], ...] = (
    {"policy": "oracle", "tau": 10, "budget": 4455, "share_correct": 0.9944, "auc": 0.8870},
    {"policy": "oracle-once", "tau": 10, "budget": 4455, "share_correct": 0.9528, "auc": 0.8781},
    {"policy": "paper", "tau": 10, "budget": 4455, "share_correct": 0.9552, "auc": 0.8773},
    {"policy": "paper-code", "tau": 10, "budget": 4455, "share_correct": 0.9522, "auc": 0.8756},
    {"policy": "ce", "tau": 10, "budget": 4455, "share_correct": 0.9547, "auc": 0.8747},
    {"policy": "random", "tau": 10, "budget": 4455, "share_correct": 0.8691, "auc": 0.7852},
    {"policy": "minimal", "tau": 10, "budget": 4455, "share_correct": 1.0, "auc": 0.9010},
    {"policy": "oracle", "tau": 10, "budget": 3000, "share_correct": 0.9584, "auc": 0.8406},
    {"policy": "random", "tau": 10, "budget": 3000, "share_correct": 0.8140, "auc": 0.7579},
    {"policy": "oracle", "tau": 2, "budget": 2307, "share_correct": 0.9878, "auc": 0.9369},
    {"policy": "oracle-once", "tau": 2, "budget": 2307, "share_correct": 0.9646, "auc": 0.9318},
    {"policy": "random", "tau": 2, "budget": 2307, "share_correct": 0.8901, "auc": 0.8684},
)
"""Means of 5 seeds. The minimal sampler's is the paper's straight line: two answers for each wrong label, all right."""

COUNTS: dict[int, dict[str, int]] = {
    2: {"wrong": 769, "clear": 520, "difficult": 249, "budget": 2307},
    10: {"wrong": 1485, "clear": 1152, "difficult": 333, "budget": 4455},
}
"""Given labels that are wrong, and three times as many answers, by temperature: these hold exactly."""

ORDER = ("paper", "paper-code", "ce")
"""With the true posterior each has the higher AUC than the next, paired over seeds."""

SHARE_ALLOWED, AUC_ALLOWED = 0.004, 0.003
SEEDS: Mapping[str, int] = {"smoke": 2, "paper": 5}
PROTOCOLS: tuple[Protocol, ...] = ("paper-code", "exact")

COLUMNS = {
    "policy": "policy",
    "tau": "tau",
    "budget": "budget",
    "protocol": "protocol",
    "brief": "final %/AUC",
    "theirs": "reference",
    "difference": "difference",
    "passed": "ok",
}
"""What of a row is printed, and under which heading."""

PAGE = {("shown" if key == "brief" else key): heading for key, heading in COLUMNS.items()}
"""The same on the page, with deviations."""


class Piece(msgspec.Struct, frozen=True):
    """One run: a policy at a temperature, with a budget, a protocol and a seed."""

    policy: str
    tau: int
    budget: int
    protocol: Protocol
    seed: int


class Played(msgspec.Struct, frozen=True):
    """Plays pieces out on the data in a folder: the function that an engine runs."""

    folder: str | None

    def __call__(self, piece: Piece) -> dict[str, Any]:
        """Return the row of the run, and how many given labels were wrong before it."""
        job = Job(policy=piece.policy, name=piece.policy, seed=piece.seed, budget=piece.budget, protocol=piece.protocol)
        record = Play(_world(self.folder, piece.tau))(job)
        before = {"clear": int(record.curve.clear_left[0]), "difficult": int(record.curve.difficult_left[0])}
        return record.row | msgspec.to_builtins(piece) | {"before": before}


def jobs(scale: str, *, seed: int = 0) -> list[Piece]:
    """Return the runs of a scale: every row of the table by both protocols, with 5 seeds, or 2 for `smoke`."""
    return [
        Piece(row["policy"], row["tau"], row["budget"], protocol, number)
        for row in PAPER
        for protocol in PROTOCOLS
        for number in range(seed, seed + SEEDS[scale])
    ]


def player(data: Path | None) -> Played:
    """Return what plays a piece out on the data in a folder."""
    return Played(None if data is None else str(data))


def table(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each bound and protocol: ours, the reference's, and the difference."""
    return [_row(theirs, protocol, results) for theirs in PAPER for protocol in PROTOCOLS]


def checks(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what must hold exactly, and the signs of paired differences."""
    found = [_count(tau, name, results) for tau in COUNTS for name in ("wrong", "clear", "difficult", "budget")]
    return found + [_sign(high, low, results) for high, low in pairwise(ORDER)]


def _row(theirs: Mapping[str, Any], protocol: str, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    runs = _runs(
        results, {"policy": theirs["policy"], "tau": theirs["tau"], "budget": theirs["budget"]} | {"protocol": protocol}
    )
    share, auc = fmean(run["share_correct"] for run in runs), fmean(run["auc"] for run in runs)
    off = {"share_correct": share - theirs["share_correct"], "auc": auc - theirs["auc"]}
    spread = {name: stdev(run[name] for run in runs) if len(runs) > 1 else 0.0 for name in off}
    passed = abs(off["share_correct"]) <= SHARE_ALLOWED and abs(off["auc"]) <= AUC_ALLOWED
    return {
        "policy": theirs["policy"],
        "tau": theirs["tau"],
        "budget": theirs["budget"],
        "protocol": protocol,
        "seeds": len(runs),
        "share_correct": share,
        "share_correct_sd": spread["share_correct"],
        "auc": auc,
        "auc_sd": spread["auc"],
        "reference_share_correct": theirs["share_correct"],
        "reference_auc": theirs["auc"],
        "difference_share_correct": off["share_correct"],
        "difference_auc": off["auc"],
        "passed": passed,
        "brief": _brief(share, auc, sign=""),
        "shown": f"{100 * share:.2f} ({100 * spread['share_correct']:.2f}) / {auc:.4f} ({spread['auc']:.4f})",
        "theirs": _brief(theirs["share_correct"], theirs["auc"], sign=""),
        "difference": _brief(off["share_correct"], off["auc"], sign="+"),
    }


def _brief(share: float, auc: float, *, sign: str) -> str:
    """Return a share in per cent and an AUC in little room."""
    return f"{100 * share:{sign}.2f}/{f'{auc:{sign}.4f}'.replace('0.', '.', 1)}"


def _count(tau: int, name: str, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    before = next(run["before"] for run in results if run["tau"] == tau)
    wrong = before["clear"] + before["difficult"]
    found = {
        "wrong": wrong,
        "clear": before["clear"],
        "difficult": before["difficult"],
        "budget": min(3 * wrong, 5_000),
    }
    what = f"tau {tau}: {'3 x wrong' if name == 'budget' else name}"
    return {"what": what, "needed": COUNTS[tau][name], "found": found[name], "passed": found[name] == COUNTS[tau][name]}


def _sign(high: str, low: str, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Compare where both heard the same answers, seed by seed."""
    wanted = {"tau": 10, "budget": 4455, "protocol": "exact"}
    above = {run["seed"]: run["auc"] for run in _runs(results, wanted | {"policy": high})}
    below = {run["seed"]: run["auc"] for run in _runs(results, wanted | {"policy": low})}
    mean = fmean(above[seed] - below[seed] for seed in above)
    wins = sum(above[seed] > below[seed] for seed in above)
    return {
        "what": f"AUC, {high} minus {low}",
        "needed": "> 0",
        "found": f"{mean:+.4f} ({wins} of {len(above)} seeds)",
        "passed": mean > 0,
    }


def _runs(results: Sequence[Mapping[str, Any]], wanted: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [run for run in results if all(run[key] == value for key, value in wanted.items())]


@cache
def _world(folder: str | None, tau: int) -> World:
    dataset = load("cifar10h", folder, settings={"subset": "paper", "tau": float(tau)})
    world = World(dataset)
    return msgspec.structs.replace(world, posteriors=Posteriors(world.truth))
