"""A second simulator, written from the formulas without a line of relook: plain Python, one answer at a time.

It has its own streams of chance, so that means over seeds agree with relook's within noise if both are right; one seed
gives every policy the same answers, so that their differences agree more closely.
Labels are settled by the paper's majority; the budget is exact, and an item in a tie has its given label meanwhile.
"""

import heapq
from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Rescore = Callable[[int, list[int]], float]
"""What an item is worth now, from its number and the counts of its new answers."""


class World(NamedTuple):
    """True label distributions, given labels, and a model's probabilities."""

    truth: Array
    given: Array
    posterior: Array


class Outcome(NamedTuple):
    """The share of right labels at the end, its mean over the answers, and how many items were asked about."""

    share: float
    auc: float
    items: int


def campaign(world: World, scores: Array, *, budget: int, seed: int, rescore: Rescore | None = None) -> Outcome:
    """Visit items by their scores, highest first, and ask until a majority forms.

    With `rescore` a settled item may come back, at the score it has then; without it each item is visited once.
    """
    ask = crowd(world.truth, seed)
    right = world.truth.argmax(1).tolist()
    label, given = world.given.tolist(), world.given.tolist()
    classes = world.truth.shape[1]
    answers: dict[int, list[int]] = {}
    correct = sum(a == b for a, b in zip(label, right, strict=True))
    curve = [correct]
    heap = [(-score, item) for item, score in enumerate(scores.tolist())]
    heapq.heapify(heap)
    while heap and len(curve) <= budget:
        _, item = heapq.heappop(heap)
        said = answers.setdefault(item, [0] * classes)
        settled = False
        while not settled and len(curve) <= budget:
            said[ask(item, sum(said))] += 1
            votes = list(said)
            votes[given[item]] += 1
            settled = votes.count(max(votes)) == 1
            correct -= label[item] == right[item]
            label[item] = votes.index(max(votes)) if settled else given[item]
            correct += label[item] == right[item]
            curve.append(correct)
        if rescore is not None:
            heapq.heappush(heap, (-rescore(item, said), item))
    curve += [correct] * (budget + 1 - len(curve))
    area = sum((a + b) / 2 for a, b in pairwise(curve))
    return Outcome(correct / len(right), area / budget / len(right), len(answers))


def crowd(truth: Array, seed: int) -> Callable[[int, int], int]:
    """People who answer from the true distributions: all first answers are drawn at once, then all second ones."""
    steps = [np.cumsum(row / row.sum()).tolist() for row in truth]
    rng = np.random.default_rng([77, seed])
    draws: list[list[float]] = []

    def ask(item: int, nth: int) -> int:
        while nth >= len(draws):
            draws.append(rng.random(len(truth)).tolist())
        return min(bisect_right(steps[item], draws[nth][item]), len(steps[item]) - 1)

    return ask


def random(world: World, *, budget: int, seed: int) -> Outcome:
    """A random order, once."""
    return campaign(world, np.random.default_rng([78, seed]).random(len(world.given)), budget=budget, seed=seed)


def noisiness(world: World, *, budget: int, seed: int) -> Outcome:
    """Cross-entropy of the given label, once."""
    return campaign(world, _cross_entropies(world), budget=budget, seed=seed)


def phi(world: World, *, budget: int, seed: int) -> Outcome:
    """The paper's equation, once."""
    return campaign(world, _cross_entropies(world) - _entropies(world), budget=budget, seed=seed)


def phi_of_the_code(world: World, *, budget: int, seed: int) -> Outcome:
    """The released code's rule, once: both terms over log C, and entropy counts above 0.3 only."""
    scale = log(world.truth.shape[1])
    scores = _cross_entropies(world) / scale - np.maximum(_entropies(world) / scale - 0.3, 0)
    return campaign(world, scores, budget=budget, seed=seed)


def margin(world: World, *, budget: int, seed: int) -> Outcome:
    """The likeliest other class against the given one, once."""
    scores = []
    for row, label in zip(world.posterior.tolist(), world.given.tolist(), strict=True):
        scores.append(max(p for c, p in enumerate(row) if c != label) - row[label])
    return campaign(world, np.array(scores), budget=budget, seed=seed)


def phi_with_returns(world: World, *, budget: int, seed: int) -> Outcome:
    """The paper's equation on the votes as they stand, an item coming back as often as its score says."""
    logs = np.log(world.posterior + 1e-12)
    entropies = _entropies(world)
    given = world.given.tolist()

    def rescore(item: int, said: list[int]) -> float:
        votes = list(said)
        votes[given[item]] += 1
        crossed = -sum(n * float(logs[item, c]) for c, n in enumerate(votes)) / sum(votes)
        return crossed - float(entropies[item])

    return campaign(world, _cross_entropies(world) - entropies, budget=budget, seed=seed, rescore=rescore)


def oracle_once(world: World, *, budget: int, seed: int) -> Outcome:
    """The released code's oracle, each item once."""
    scores = np.array(
        [_true_value(row, label) for row, label in zip(_shares(world), world.given.tolist(), strict=True)]
    )
    return campaign(world, scores, budget=budget, seed=seed)


def oracle(world: World, *, budget: int, seed: int) -> Outcome:
    """The released code's oracle, which comes back."""
    truth, given = _shares(world), world.given.tolist()

    def rescore(item: int, said: list[int]) -> float:
        votes = list(said)
        votes[given[item]] += 1
        return _true_value(truth[item], votes.index(max(votes)))

    scores = np.array([_true_value(row, label) for row, label in zip(truth, given, strict=True)])
    return campaign(world, scores, budget=budget, seed=seed, rescore=rescore)


def value_per_answer(world: World, *, budget: int, seed: int) -> Outcome:
    """The value of an answer by a belief that the answers update; items come back."""
    given, posterior = world.given.tolist(), world.posterior.tolist()

    def rescore(item: int, said: list[int]) -> float:
        return _value(posterior[item], given[item], said)

    nothing = [0] * world.truth.shape[1]
    scores = np.array([rescore(item, nothing) for item in range(len(given))])
    return campaign(world, scores, budget=budget, seed=seed, rescore=rescore)


def _value(posterior: list[float], given: int, said: list[int]) -> float:
    sharpness, kappa, eps, classes = 2, 0.02, 0.05, len(posterior)
    total = sum(p**sharpness for p in posterior)
    sharp = [0.99 * p**sharpness / total + 0.001 for p in posterior]

    def answered(c: int, y: int) -> float:
        """The chance of the answer c where y is true."""
        return (1 - eps) * ((1 - kappa) * (c == y) + kappa * sharp[c]) + eps / classes

    belief = []
    for y in range(classes):
        likelihood = sharp[y]
        for c, times in enumerate(said):
            likelihood *= answered(c, y) ** times if times else 1
        belief.append(likelihood)
    belief = [part / sum(belief) for part in belief]
    votes = list(said)
    votes[given] += 1
    j = votes.index(max(votes))
    value, cost = 0.0, 1.0
    for y in range(classes):
        if y == j:
            continue
        needed = max(votes[j] - votes[y], 0)
        value += belief[y] * answered(y, y) ** (needed + 1) - belief[j] * answered(y, j) ** (needed + 1)
        cost += needed * sum(belief[z] * answered(y, z) for z in range(classes))
    return value / cost


def _true_value(truth: list[float], label: int) -> float:
    return (1 - truth[label]) / _expected_answers(truth, label)


def _expected_answers(truth: list[float], label: int) -> float:
    """Answers until a majority forms: each that names a class not named yet ties, up to three times."""
    if max(truth) == 1:
        return 1.0 if truth[label] == 1 else 2.0

    def ties(named: set[int], depth: int) -> float:
        if depth == 0:
            return 0.0
        others = [c for c, share in enumerate(truth) if share and c not in named]
        return sum(truth[c] * (1 + ties(named | {c}, depth - 1)) for c in others)

    return 1 + ties({label}, 3)


def _shares(world: World) -> list[list[float]]:
    shares: list[list[float]] = (world.truth / world.truth.sum(1, keepdims=True)).tolist()
    return shares


def _cross_entropies(world: World) -> Array:
    return np.asarray(-np.log(world.posterior[np.arange(len(world.given)), world.given] + 1e-12))


def _entropies(world: World) -> Array:
    return np.asarray(-(world.posterior * np.log(world.posterior + 1e-12)).sum(1))
