"""A job is a pure function of its arguments, everybody with one seed faces one crowd, and no job is played twice."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from relook.annotators import Crowd, SequentialCrowd
from relook.config import Cell
from relook.engines.processes import Processes
from relook.errors import BadInput
from relook.experiment import (
    UPPER_BOUND,
    Job,
    Plan,
    Play,
    World,
    annotators_of,
    budget_of,
    check_policy,
    missing,
    oracle_need,
    played,
    policy_of,
    resumed,
    rule_hash,
)
from relook.retraining import Training
from relook.runs import Record
from relook.stopping import Agree
from relook.types import Dataset, Labels, Posteriors


def small_world(items: int = 60, classes: int = 4, seed: int = 0) -> World:
    """Items of which a quarter is labelled wrongly, a crowd that errs, and a model that is better than chance."""
    rng = np.random.default_rng(seed)
    true = rng.integers(classes, size=items)
    truth = rng.dirichlet(np.ones(classes), items) * 0.4 + 0.6 * np.eye(classes)[true]
    given = np.where(rng.random(items) < 0.25, (true + 1) % classes, true)
    likely = rng.dirichlet(np.ones(classes), items) * 0.6 + 0.4 * truth
    names = tuple("abcdefgh"[:classes])
    ids = tuple(map(str, range(items)))
    return World(Dataset("small", names, ids, Labels(given, classes), truth), Posteriors(likely), Posteriors(truth))


WORLD = small_world()


def job(policy: str = "default", **changes: Any) -> Job:
    return msgspec.structs.replace(Job(policy=policy, name=policy, seed=3, budget=50), **changes)


def same(one: Record, other: Record) -> bool:
    curves = (
        np.array_equal(getattr(one.curve, part), getattr(other.curve, part)) for part in one.curve.__struct_fields__
    )
    return one.row == other.row and one.outcome == other.outcome and all(curves)


@pytest.mark.parametrize("policy", ["default", "paper", "random", "oracle", "minimal", "activelab"])
def test_a_job_is_a_pure_function_of_its_arguments(policy: str) -> None:
    first, again = (Play(small_world())(job(policy)) for _ in range(2))
    assert same(first, again)
    assert not same(first, Play(WORLD)(job(policy, seed=4))) or policy == "minimal"


def test_a_world_that_is_copied_or_sent_stays_the_same_to_the_bit() -> None:
    thirds = msgspec.structs.replace(WORLD.dataset, truth=np.random.default_rng(0).dirichlet(np.ones(4), 60))
    again = thirds
    for _ in range(5):
        again = msgspec.structs.replace(again, images=None)
    assert World(again).inputs() == World(thirds).inputs()


def test_a_key_tells_every_argument_of_a_job_apart() -> None:
    changes: list[dict[str, Any]] = [
        {"policy": "paper"},
        {"name": UPPER_BOUND},
        {"seed": 4},
        {"budget": 51},
        {"settle": "one"},
        {"batch": 2},
        {"annotators": 3},
        {"protocol": "paper-code"},
        {"inputs": {"given": "other"}},
        {"rule": "other"},
        {"software": "other"},
        {"training": Training()},
        {"update_every": 5},
    ]
    assert {next(iter(change)) for change in changes} == set(Job.__struct_fields__)
    keys = {job(**change).key() for change in changes} | {job().key()}
    assert len(keys) == len(changes) + 1
    assert job().key() == job().key()
    here, there = (Training(method="vanilla", settings={"folder": place}) for place in ("a", "b"))
    assert job(training=here).key() == job(training=there).key(), "where networks are kept changes nothing"


def test_policies_with_one_seed_hear_the_same_answers() -> None:
    crowds = [annotators_of(job(policy), WORLD)[0] for policy in ("paper", "random", "oracle")]
    questions = [(item, nth) for item in range(60) for nth in range(3)]
    heard = {
        tuple(crowd(item, nth) for item, nth in order) for crowd, order in zip(crowds, [questions] * 3, strict=True)
    }
    assert len(heard) == 1
    assert tuple(Crowd(WORLD.truth, 4)(item, nth) for item, nth in questions) not in heard


def test_the_minimal_sampler_asks_somebody_who_never_errs() -> None:
    (annotator,) = annotators_of(job("minimal"), WORLD)
    assert [annotator(item, 0) for item in range(60)] == WORLD.dataset.true_class.tolist()
    record = Play(WORLD)(job("minimal", budget=2 * WORLD.wrong))
    assert record.row["share_correct"] == 1.0
    assert record.row["answers"] == 2 * WORLD.wrong


def test_the_released_codes_protocol_draws_one_stream() -> None:
    (annotator,) = annotators_of(job(protocol="paper-code"), WORLD)
    reference = SequentialCrowd(WORLD.truth, 3)
    assert isinstance(annotator, SequentialCrowd)
    assert [annotator(item, 0) for item in range(60)] == [reference(item, 0) for item in range(60)]
    assert Play(WORLD)(job("paper", protocol="paper-code", budget=10)).row["answers"] > 10


def test_a_panel_answers_each_item_at_most_once_a_person() -> None:
    people = annotators_of(job(annotators=3), WORLD)
    assert len(people) == 3
    assert {person(5, 0) == person(5, 2) for person in people} == {True}
    record = Play(WORLD)(job("oracle", annotators=2, budget=10_000))
    assert record.row["answers"] <= 2 * 60


def test_settings_reach_the_policy() -> None:
    policy = policy_of(job("paper", settle="people:2", batch=7), WORLD.truth)
    assert (policy.stop, policy.given_weight, policy.batch) == (Agree(2), 0.0, 7)


def test_the_upper_bound_plays_the_papers_rule_on_clean_posteriors() -> None:
    plan = Plan(policies=("random", "margin", "paper"), seeds=(0, 1), budget=20)
    jobs = plan.jobs(WORLD)
    assert [each.name for each in jobs[-2:]] == [UPPER_BOUND] * 2
    assert {each.policy for each in jobs[-2:]} == {"paper"}
    assert msgspec.structs.replace(plan, policies=("random", "margin")).bounding() == "margin"
    assert msgspec.structs.replace(plan, policies=("random",)).bounding() == "paper"
    clean = msgspec.structs.replace(WORLD, posteriors=WORLD.clean)
    bound, other = Play(WORLD)(jobs[-1]), Play(clean)(msgspec.structs.replace(jobs[-1], name="paper"))
    assert bound.row | {"policy": "paper"} == other.row
    without = msgspec.structs.replace(WORLD, clean=None)
    assert len(plan.jobs(without)) == 6


# Budgets.


def slow_need(world: World, seed: int) -> int:
    """The oracle's need as its words say it, one answer after another."""
    crowd, spent = Crowd(world.truth, seed), 0
    for item in np.flatnonzero(world.dataset.given.majority() != world.dataset.true_class).tolist():
        votes = world.dataset.given.given_counts[item].copy()
        for nth in range(1_000):
            votes[crowd(item, nth)] += 1
            spent += 1
            if (votes == votes.max()).sum() == 1:
                break
    return spent


def test_the_oracles_need_is_what_one_pass_over_the_wrong_labels_takes() -> None:
    assert [oracle_need(WORLD, [seed]) for seed in range(5)] == [slow_need(WORLD, seed) for seed in range(5)]
    total = sum(slow_need(WORLD, seed) for seed in range(3))
    assert oracle_need(WORLD, range(3)) == -(-total // 3)
    assert oracle_need(WORLD, [0], settle="people:2") >= 2 * WORLD.wrong


def test_a_budget_is_a_number_or_a_rule() -> None:
    def budget(answers: Any, world: World = WORLD) -> int:
        return budget_of(Cell(None, answers, "paper", 1), world, seeds=[0])

    assert budget(17) == 17
    assert budget("paper-code") == 3 * WORLD.wrong
    worse = msgspec.structs.replace(WORLD.dataset, given=Labels((WORLD.dataset.true_class + 1) % 4, 4))
    assert budget("paper-code", World(worse)) == 60
    right = msgspec.structs.replace(WORLD.dataset, given=Labels(WORLD.dataset.true_class, 4))
    assert budget("oracle", World(right)) == 0
    with pytest.raises(BadInput, match=r"answers: oracle counts votes, but confidence:.9 settles by belief"):
        oracle_need(WORLD, [0], settle="confidence:.9")


# Going on where it was.


class Counting:
    """An engine that notes which jobs it was given and may stop before the last of them."""

    def __init__(self, most: int | None = None) -> None:
        self.given: list[str] = []
        self.most = most

    def __call__(self, function: Callable[[Any], Any], jobs: Sequence[Any]) -> Iterator[Any]:
        for number, each in enumerate(jobs):
            if number == self.most:
                raise KeyboardInterrupt
            self.given.append(each.key())
            yield function(each)


def test_no_job_is_played_twice(tmp_path: Path) -> None:
    jobs = Plan(policies=("paper", "random"), seeds=(0, 1, 2), budget=20).jobs(WORLD)
    whole = list(played(WORLD, jobs))
    first, second, third = Counting(most=4), Counting(), Counting()
    with pytest.raises(KeyboardInterrupt):
        resumed(WORLD, jobs, folder=tmp_path, engine=first)
    assert [each.key() for each in missing(tmp_path, jobs)] == [each.key() for each in jobs[4:]]
    steps: list[int] = []
    found = resumed(WORLD, jobs, folder=tmp_path, engine=second, step=lambda: steps.append(1))
    assert len(steps) == len(jobs) - 4
    assert all(same(one, other) for one, other in zip(found, whole, strict=True))
    assert sorted(first.given + second.given) == sorted(each.key() for each in jobs)
    again = resumed(WORLD, jobs, folder=tmp_path, engine=third)
    assert third.given == []
    assert all(same(one, other) for one, other in zip(again, whole, strict=True))
    assert missing(tmp_path, jobs) == []


def test_a_job_of_other_inputs_is_not_taken_for_one_that_is_there(tmp_path: Path) -> None:
    plan, other = Plan(policies=("random",), seeds=(0,), budget=20), World(small_world(seed=1).dataset)
    resumed(WORLD, plan.jobs(World(WORLD.dataset)), folder=tmp_path)
    counting = Counting()
    (found,) = resumed(other, plan.jobs(other), folder=tmp_path, engine=counting)
    assert len(counting.given) == 1
    assert same(found, Play(other)(plan.jobs(other)[0]))


def test_processes_find_the_same(tmp_path: Path) -> None:
    jobs = Plan(policies=("default", "oracle"), seeds=(0, 1), budget=60).jobs(WORLD)
    side_by_side = resumed(WORLD, jobs, folder=tmp_path, engine=Processes(2))
    assert all(same(one, other) for one, other in zip(side_by_side, played(WORLD, jobs), strict=True))


# Rules.

RULES = """
from relook import Policy, Rows

def sound(rows: Rows):
    return rows.mean.max(1)

def whole(rows):
    return rows.mean.max(1) - rows.mean.max(1).mean()

def declared(rows):
    return rows.mean.max(1) - rows.mean.max(1).mean()

declared.rowwise = False

def failing(rows):
    return rows.nothing
"""


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "my_rules.py"
    path.write_text(RULES, "utf-8")
    return str(path)


def test_a_rule_of_ones_own_is_checked_and_told_of(rules: str) -> None:
    assert check_policy(job(f"{rules}:sound"), WORLD) == "yes"
    assert check_policy(job(f"{rules}:declared"), WORLD) == "no"
    with pytest.raises(BadInput, match=r"among others; set `rowwise = False`"):
        check_policy(job(f"{rules}:whole"), WORLD)
    with pytest.raises(BadInput, match=r"but the rule failed \(.*Error: .*, my_rules.py line 16\); mend it"):
        check_policy(job(f"{rules}:failing"), WORLD)


def test_a_rule_is_known_by_the_content_of_its_file(rules: str) -> None:
    before = rule_hash(f"{rules}:sound")
    assert before is not None
    Path(rules).write_text(RULES.replace("max(1)", "min(1)"), "utf-8")
    assert rule_hash(f"{rules}:sound") != before
    assert rule_hash("paper") is None
    assert rule_hash("relook.scores:phi") is None


@pytest.mark.parametrize("policy", ["paper", "default", "bald", "activelab"])
def test_policies_that_use_a_model_say_so_where_there_is_none(policy: str) -> None:
    blind = World(WORLD.dataset)
    with pytest.raises(BadInput, match=f"policy {policy}: it needs class probabilities, but none came"):
        check_policy(job(policy), blind)
    with pytest.raises(BadInput, match=r"settle: confidence:.9 needs class probabilities"):
        check_policy(job("random", settle="confidence:.9"), blind)
    for name in ("random", "oracle", "oracle-once", "minimal"):
        assert check_policy(job(name), blind) == "yes"


def test_an_ensembles_rule_is_refused_before_anything_is_played() -> None:
    with pytest.raises(BadInput, match="policy bald: probabilities of several models"):
        check_policy(job("bald"), WORLD)


def test_a_world_without_truth_is_refused() -> None:
    unknown = msgspec.structs.replace(WORLD.dataset, truth=None)
    with pytest.raises(BadInput, match="small: a simulation needs the truth, but this set has none; pass --truth"):
        Play(World(unknown))(job())
