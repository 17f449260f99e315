"""Many simulations: a grid's combination and a world become jobs, and one job is one pure function of its arguments.

A job knows the hashes of all it depends on, so its own hash names the file that keeps its result: a run that was killed
goes on where it was, and the order in which jobs are run, or where, cannot change what comes of them.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

import msgspec
import numpy as np

from relook import __version__
from relook.annotators import Crowd, Panel, Perfect, SequentialCrowd
from relook.config import Cell, Protocol
from relook.engines import Engine
from relook.engines.serial import serial
from relook.errors import BadInput, RelookError
from relook.policies import BOUNDS, Setting, check_rule, named
from relook.retraining import Training, trainer
from relook.rules import Policy
from relook.runs import PARTS, Record, read_part, recorded, write_part
from relook.scores import is_rowwise, score_items
from relook.simulation import Annotator, Simulation, Update, simulate
from relook.stopping import named as settled_by
from relook.stopping import uses_belief
from relook.types import Dataset, FloatArray, Posteriors, fingerprint

UPPER_BOUND = "model upper bound"
"""The paper's name for a rule on the posteriors of a model that was trained on clean labels."""

BLIND = ("random", *BOUNDS)
"""Policies that use no class probabilities."""

LONGEST = 1_000
"""Answers about one item after which the oracle's need is no longer counted."""


class World(msgspec.Struct, frozen=True, eq=False):
    """What is simulated on: items with their truth, a model's posteriors, and those of one trained on clean labels."""

    dataset: Dataset
    posteriors: Posteriors | None = None
    clean: Posteriors | None = None

    @property
    def truth(self) -> FloatArray:
        """True label distributions, N x C."""
        check_truth(self)
        return cast("FloatArray", self.dataset.truth)

    @property
    def wrong(self) -> int:
        """Items whose given label is not the true class."""
        return int((self.dataset.given.label() != self.dataset.true_class).sum())

    def inputs(self) -> dict[str, str | None]:
        """Return the hashes of what the simulations depend on."""
        return {
            "given": self.dataset.given.fingerprint(),
            "truth": fingerprint(self.truth),
            "probabilities": None if self.posteriors is None else self.posteriors.fingerprint(),
            "bound": None if self.clean is None else self.clean.fingerprint(),
        }


def check_truth(world: World) -> None:
    """Refuse to simulate where nobody knows what is right."""
    if world.dataset.truth is None:
        raise BadInput(
            f"{world.dataset.name}: a simulation needs the truth, but this set has none; pass --truth, or simulate on "
            "a noisy copy that relook noise makes"
        )


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One run: a policy under a seed, with all it depends on told by its value or its hash."""

    policy: str
    name: str
    seed: int
    budget: int
    settle: str = "paper"
    batch: int = 1
    annotators: int | None = None
    protocol: Protocol = "exact"
    inputs: dict[str, str | None] = {}
    rule: str | None = None
    software: str = __version__
    training: Training | None = None
    update_every: int | None = None

    def key(self) -> str:
        """Return the hash of the job.

        >>> Job(policy="paper", name="paper", seed=0, budget=9).key() == Job(
        ...     policy="paper", name="paper", seed=1, budget=9).key()
        False
        """
        training = None if self.training is None else self.training.placeless()
        return short_hash(msgspec.json.encode(msgspec.structs.replace(self, training=training)))


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one simulation: policies by seeds, all with the same budget and the same rules."""

    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    budget: int
    settle: str = "paper"
    batch: int = 1
    annotators: int | None = None
    protocol: Protocol = "exact"
    training: Training | None = None
    update_every: int | None = None

    def jobs(self, world: World) -> list[Job]:
        """Return a job for each policy and seed, and those of the upper bound where there are clean posteriors."""
        alike = Job(
            policy="",
            name="",
            seed=0,
            budget=self.budget,
            settle=self.settle,
            batch=self.batch,
            annotators=self.annotators,
            protocol=self.protocol,
            inputs=world.inputs(),
            training=self.training,
            update_every=self.update_every,
        )
        bounds = [] if world.clean is None else [(self.bounding(), UPPER_BOUND)]
        return [
            msgspec.structs.replace(alike, policy=policy, name=name, rule=rule_hash(policy), seed=seed)
            for policy, name in [*zip(self.policies, self.policies, strict=True), *bounds]
            for seed in self.seeds
        ]

    def bounding(self) -> str:
        """Return the policy that the model upper bound is drawn for: the paper's, or the first that uses a model."""
        fitting = [policy for policy in self.policies if policy not in BLIND]
        return "paper" if "paper" in fitting or not fitting else fitting[0]


class Play(msgspec.Struct, frozen=True, eq=False):
    """Plays jobs out in one world: the function that an engine runs."""

    world: World

    def __call__(self, job: Job) -> Record:
        """Return what is kept of the run."""
        world = self.world
        seen = world.clean if job.name == UPPER_BOUND else world.posteriors
        simulation = Simulation(
            policy_of(job, world.truth),
            job.budget,
            annotators_of(job, world),
            seen,
            protocol=job.protocol,
            seed=job.seed,
            update=update_of(job, world),
            update_every=job.update_every or 1,
        )
        return recorded(simulate(world.dataset, simulation), world.dataset)


def update_of(job: Job, world: World) -> Update | None:
    """Return what trains anew every so many answers, where that is asked for and the policy looks at a model."""
    if job.training is None or job.update_every is None or job.policy in BLIND or job.name == UPPER_BOUND:
        return None
    return trainer(job.training).on(world.dataset, seed=job.seed)


class Keep(msgspec.Struct, frozen=True, eq=False):
    """Plays jobs out and keeps each result in a file of the folder, named by the job's hash."""

    play: Play
    folder: Path

    def __call__(self, job: Job) -> Record:
        """Return what is kept of the run, after it has been written."""
        record = self.play(job)
        write_part(self.folder, record, key=job.key())
        return record


def played(world: World, jobs: Sequence[Job], *, engine: Engine = serial) -> Iterator[Record]:
    """Yield what came of each job, in their order."""
    yield from engine(Play(_needed(world, jobs)), jobs)


def missing(folder: Path, jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs whose results a folder does not keep yet."""
    return [job for job in jobs if not (folder / PARTS / f"{job.key()}.npz").is_file()]


def resumed(
    world: World, jobs: Sequence[Job], *, folder: Path, engine: Engine = serial, step: Callable[[], None] | None = None
) -> list[Record]:
    """Play out the jobs that the folder does not keep yet and return the results of all, in their order."""
    parts = ((job.key(), read_part(folder, key=job.key())) for job in jobs)
    records = {key: record for key, record in parts if record is not None}
    ahead = [job for job in jobs if job.key() not in records]
    function = Keep(Play(_needed(world, ahead)), folder)
    for job, record in zip(ahead, engine(function, ahead), strict=True):
        records[job.key()] = record
        if step is not None:
            step()
    return [records[job.key()] for job in jobs]


def policy_of(job: Job, truth: FloatArray) -> Policy:
    """Return the policy that a job names, for its seed and by its rule of settling."""
    stop, given_weight = settled_by(job.settle)
    setting = Setting(truth=truth, seed=job.seed, stop=stop, given_weight=given_weight, batch=job.batch)
    return msgspec.structs.replace(named(job.policy, setting), name=job.name)


def annotators_of(job: Job, world: World) -> list[Annotator]:
    """Return who answers: policies that share a seed hear the same answers."""
    people = job.annotators or 1
    if job.policy == "minimal":
        return [Perfect(world.dataset.true_class)] * people
    if job.protocol == "paper-code":
        return [SequentialCrowd(world.truth, job.seed)]
    if job.annotators is None:
        return [Crowd(world.truth, job.seed)]
    panel = Panel(world.truth, (1.0,) * people, seed=job.seed)
    return [panel.person(number) for number in range(people)]


def budget_of(cell: Cell, world: World, *, seeds: Sequence[int]) -> int:
    """Return the number of answers that a cell's budget means in a world."""
    if cell.answers == "paper-code":
        return min(3 * world.wrong, len(world.dataset))
    return oracle_need(world, seeds, settle=cell.settle) if cell.answers == "oracle" else cell.answers


def oracle_need(world: World, seeds: Sequence[int], *, settle: str = "paper") -> int:
    """Return how many answers an oracle needs that asks about every wrong label once, until it is settled.

    It is the mean over the seeds, rounded up. Not all of these labels come out right: the crowd errs, and an oracle
    that asked until all are right would never end on items whose crowd is evenly split.
    """
    wrong = np.flatnonzero(world.dataset.given.label() != world.dataset.true_class)
    if not len(wrong):
        return 0
    given = world.dataset.given.given[wrong]
    labels = msgspec.structs.replace(world.dataset.given, given=given)
    ids = tuple(str(item) for item in wrong)
    part = Dataset("wrong", world.dataset.classes, ids, labels, world.truth[wrong])
    stop, weight = settled_by(settle)
    policy = named("random", Setting(stop=stop, given_weight=weight))
    if uses_belief(stop):
        raise BadInput(f"answers: oracle counts votes, but {settle} settles by belief; give a number of answers")
    spent = 0
    for seed in seeds:
        crowd = Crowd(world.truth, seed)
        spent += simulate(part, Simulation(policy, LONGEST * len(wrong), [_Some(crowd, wrong)])).answers
    return -(-spent // len(seeds))


def check_policy(job: Job, world: World) -> str:
    """Check that a job can be played, and say in a word whether its rule looks at one row at a time.

    >>> from relook.datasets import load
    >>> check_policy(Job(policy="random", name="random", seed=0, budget=9), World(load("digits")))
    'yes'
    """
    policy = policy_of(job, world.truth)
    seen = world.clean if job.name == UPPER_BOUND else world.posteriors
    if seen is None and job.policy not in BLIND and ":" not in job.policy:
        raise BadInput(f"policy {job.policy}: it needs class probabilities, but none came; pass --probabilities")
    if seen is None and uses_belief(policy.stop):
        raise BadInput(f"settle: {job.settle} needs class probabilities, but none came; pass --probabilities")
    given = world.dataset.given
    try:
        check_rule(policy, given, posteriors=seen)
        if not is_rowwise(policy.score):
            score_items(policy.score, given, posteriors=seen, given_weight=policy.given_weight)
    except RelookError:
        raise
    except Exception as error:
        raise BadInput(
            f"policy {job.policy}: a score for each row was needed, but the rule failed ({_where(error)}); mend it"
        ) from error
    return "yes" if is_rowwise(policy.score) else "no"


def _where(error: Exception) -> str:
    """Return what went wrong in somebody's rule, and in which line."""
    frames = traceback.extract_tb(error.__traceback__)
    line = f", {Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{line}"


def rule_hash(policy: str) -> str | None:
    """Return the hash of the file that holds a rule of one's own; what it imports is not looked at."""
    place, _, _ = policy.rpartition(":")
    path = Path(place)
    return short_hash(path.read_bytes()) if place.endswith(".py") and path.is_file() else None


def short_hash(content: bytes) -> str:
    """Return 16 hexadecimal digits that name the content.

    >>> short_hash(b"") == short_hash(b" ")
    False
    """
    return hashlib.blake2b(content, digest_size=8).hexdigest()


class _Some:
    """A crowd that is asked about some of its items, by their place among these."""

    def __init__(self, crowd: Crowd, items: np.ndarray) -> None:
        self._crowd, self._items = crowd, items.tolist()

    def __call__(self, item: int, nth: int) -> int:
        return self._crowd(self._items[item], nth)


def _needed(world: World, jobs: Sequence[Job]) -> World:
    """Leave out what no run looks at, so that it is not sent to other processes."""
    if any(job.update_every is not None for job in jobs):
        return world
    dataset = msgspec.structs.replace(world.dataset, images=None, features=None)
    return msgspec.structs.replace(world, dataset=dataset)
