"""Small simulated campaigns to report on: real runs of the simulator, in a second."""

from collections.abc import Sequence

import msgspec
import numpy as np

from relook import Crowd, Dataset, Labels, Posteriors, Setting, Simulation, named, simulate
from relook.report import gallery
from relook.runs import Record, Runs, described, gathered, recorded
from relook.types import FloatArray

CLASSES = ("cat", "dog", "hen")
POLICIES = ("default", "paper", "margin", "random", "oracle")
RESOLVED = {
    "configuration": {"dataset": "small", "answers": 60, "policy": list(POLICIES)},
    "versions": {"relook": "0.1.0"},
    "inputs": {"labels": "0f" * 16},
}


def dataset(*, items: int = 60, side: int = 8, classes: Sequence[str] = CLASSES) -> Dataset:
    """Return items of which two in five are wrong and one in five is difficult, with images."""
    rng, width = np.random.default_rng(7), len(classes)
    truth = np.full((items, width), 0.02)
    right = rng.integers(width, size=items)
    truth[np.arange(items), right] = 1
    hard = np.arange(items) % 5 == 0
    truth[hard, (right[hard] + 1) % width] = 0.7
    given = np.where(np.arange(items) % 5 < 2, (right + 1) % width, right)
    images = list(rng.integers(0, 256, (items, side, side), dtype=np.uint8))
    ids = tuple(f"item-{number:03d}" for number in range(items))
    return Dataset("small", tuple(classes), ids, Labels(given, width), truth=truth, images=images)


def truth_of(of: Dataset) -> FloatArray:
    """Return the truth of a set that has one."""
    assert of.truth is not None
    return of.truth


def posteriors(of: Dataset) -> Posteriors:
    """Return probabilities that know the truth vaguely."""
    truth = truth_of(of)
    values = np.exp(np.log(truth + 0.05) + np.random.default_rng(8).normal(0, 1.2, truth.shape))
    return Posteriors(values / values.sum(1, keepdims=True))


def records(of: Dataset, *, policies: Sequence[str] = POLICIES, seeds: int = 3, answers: int = 60) -> list[Record]:
    """Simulate every policy with every seed."""
    truth, model, made = truth_of(of), posteriors(of), []
    for name in policies:
        for seed in range(seeds):
            policy = named(name, Setting(truth=truth, seed=seed))
            plan = Simulation(policy, answers, [Crowd(truth, seed)], posteriors=model, seed=seed)
            made.append(recorded(simulate(of, plan), of))
    return made


def runs(
    *, seeds: int = 3, answers: int = 60, policies: Sequence[str] = POLICIES, against: str | None = "paper"
) -> Runs:
    """Return a simulation with all that a report can show."""
    small = dataset()
    shelves = gallery(small, posteriors(small), tiles=4)
    extra = msgspec.structs.replace(described(small), against=against, gallery=shelves, ranked_by="paper")
    made = records(small, policies=policies, seeds=seeds, answers=answers)
    return gathered(made, resolved=RESOLVED, extra=extra)
