"""relook's simulator agrees with one that was written apart from it."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from relook.annotators import Crowd
from relook.datasets import cifar10h
from relook.policies import Setting, named
from relook.rules import Policy
from relook.scores import phi
from relook.simulation import Simulation, simulate
from relook.types import Dataset, FloatArray, Labels, Posteriors
from tests import independent

NAIVE = "phi, naive returns"

TWINS: Mapping[str, Callable[..., independent.Outcome]] = {
    "random": independent.random,
    "oracle": independent.oracle,
    "oracle-once": independent.oracle_once,
    "paper": independent.phi,
    "paper-code": independent.phi_of_the_code,
    "ce": independent.noisiness,
    "margin": independent.margin,
    "default": independent.value_per_answer,
    NAIVE: independent.phi_with_returns,
}
"""Policies, and the same ones written apart."""

BESIDE = "margin"
"""The policy that the others are compared with, seed by seed."""

ERRORS = 4
"""Standard errors of a difference of means that count as noise."""

SLACK = np.array([0.001, 0.001])
"""What is allowed besides, for the final share and for the mean over the answers: a tenth of a point."""

Results = dict[str, FloatArray]
"""Of each policy, a row a seed: the final share of right labels, and its mean over the answers."""


def of_relook(dataset: Dataset, posteriors: Posteriors, *, budget: int, seeds: range) -> Results:
    assert dataset.truth is not None
    results: Results = {}
    for name in TWINS:
        rows = []
        for seed in seeds:
            policy = Policy(NAIVE, phi, returns=True) if name == NAIVE else named(name, Setting(dataset.truth, seed))
            simulation = Simulation(policy, budget, [Crowd(dataset.truth, seed)], posteriors)
            curve = simulate(dataset, simulation).curve
            assert curve.answers == budget
            rows.append((float(curve.share_correct[-1]), curve.auc()))
        results[name] = np.array(rows)
    return results


def of_twins(dataset: Dataset, posteriors: Posteriors, *, budget: int, seeds: range) -> Results:
    assert dataset.truth is not None
    world = independent.World(np.array(dataset.truth), np.array(dataset.given.given), np.array(posteriors.mean()))
    return {
        name: np.array([twin(world, budget=budget, seed=seed)[:2] for seed in seeds]) for name, twin in TWINS.items()
    }


def apart(ours: Results, theirs: Results) -> list[str]:
    """Return where means, or mean differences from `BESIDE`, are further apart than noise explains."""
    found = []
    for name in ours:
        for what, one, other in (
            (name, ours[name], theirs[name]),
            (f"{name} - {BESIDE}", ours[name] - ours[BESIDE], theirs[name] - theirs[BESIDE]),
        ):
            allowed = ERRORS * np.hypot(_standard_error(one), _standard_error(other)) + SLACK
            if (np.abs(one.mean(0) - other.mean(0)) > allowed).any():
                found.append(f"{what}: {one.mean(0).round(4)}, independently {other.mean(0).round(4)}")
    return found


def _standard_error(rows: FloatArray) -> NDArray[np.float64]:
    return np.asarray(rows.std(0, ddof=1) / np.sqrt(len(rows)))


def softmax(logits: FloatArray) -> FloatArray:
    shares: FloatArray = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(shares / shares.sum(1, keepdims=True))


@pytest.fixture(scope="module")
def synthetic() -> tuple[Results, Results]:
    """600 items of 4 classes, some of them difficult, a quarter of the labels wrong, and a middling model."""
    rng = np.random.default_rng(5)
    truth = rng.dirichlet(np.full(4, 0.15), 600)
    flat = truth**0.2
    given = (np.cumsum(flat / flat.sum(1, keepdims=True), axis=1) < rng.random((600, 1))).sum(1)
    posteriors = Posteriors(softmax(np.log(truth + 0.03) + rng.normal(0, 1, truth.shape)))
    ids = tuple(str(item) for item in range(600))
    dataset = Dataset("synthetic", tuple("abcd"), ids, Labels(given, 4), truth=truth)
    return (
        of_relook(dataset, posteriors, budget=500, seeds=range(24)),
        of_twins(dataset, posteriors, budget=500, seeds=range(24)),
    )


@pytest.mark.slow
def test_agree_on_a_synthetic_world(synthetic: tuple[Results, Results]) -> None:
    assert not apart(*synthetic)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "other"), [("random", "ce"), ("margin", "paper-code"), ("oracle", "oracle-once"), ("default", "margin")]
)
def test_another_rule_is_told_apart(synthetic: tuple[Results, Results], name: str, other: str) -> None:
    ours, theirs = synthetic
    assert apart(ours, theirs | {name: theirs[other]})


@pytest.mark.slow
def test_agree_on_cifar10h_and_naive_returns_collapse(data_dir: Path) -> None:
    dataset = cifar10h.load(data_dir, subset="paper", tau=10.0)
    assert dataset.truth is not None
    noise = np.random.default_rng(0).normal(0, 1.4, dataset.truth.shape)
    posteriors = Posteriors(softmax(np.log(dataset.truth + 0.02) + noise))
    ours = of_relook(dataset, posteriors, budget=4_455, seeds=range(8))
    theirs = of_twins(dataset, posteriors, budget=4_455, seeds=range(8))
    assert not apart(ours, theirs)
    assert apart(ours, theirs | {"paper": theirs["ce"]})
    for results in (ours, theirs):
        # One pass by the same score ends at 94 %: coming back without a belief asks about the same items for ever.
        assert results[NAIVE][:, 0].mean() == pytest.approx(0.74, abs=0.015)
        assert results["paper"][:, 0].mean() > 0.93
