"""Simulated campaigns: the same campaign that people use, played out to the last answer that its budget buys."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook import simulation
from relook.annotators import Annotator, Crowd, Panel, Perfect, Recorded
from relook.campaign import Campaign
from relook.curves import curve
from relook.errors import BadInput
from relook.events import CANNOT_TELL, Answer, Lease, Ranking
from relook.policies import Setting, named
from relook.rules import Policy
from relook.simulation import Run, Simulation, play, simulate
from relook.stopping import Agree, Majority, Margin
from relook.types import Dataset, FloatArray, Labels, Posteriors, true_distribution
from tests.campaigns import ROWWISE, Relative, some_given, some_posteriors
from tests.laws import LAW, catches, nothing


def world(seed: int, items: int = 30, classes: int = 4) -> tuple[Dataset, Posteriors]:
    random = np.random.default_rng(seed)
    truth = random.dirichlet(np.full(classes, 0.3), items)
    names = tuple("abcdefgh"[:classes])
    given_labels = some_given(random, items, classes, kind="classes")
    dataset = Dataset("drawn", names, [str(n) for n in range(items)], given_labels, truth)
    return dataset, some_posteriors(random, items, classes)


def truth_of(dataset: Dataset) -> FloatArray:
    assert dataset.truth is not None
    return dataset.truth


def answers_of(run: Run | Campaign) -> list[Answer]:
    return [event for event in run.events if isinstance(event, Answer)]


class TestPlay:
    """A budget is used up while anything is left to ask, and never exceeded; the nth answer on an item is the nth."""

    def law(self, how: settings) -> None:
        scores = st.sampled_from((*ROWWISE, Relative()))

        @how
        @given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.integers(1, 4), scores, st.integers(0, 23))
        def check(seed: int, budget: int, people: int, score: Any, kind: int) -> None:
            dataset, posteriors = world(seed, items=1 + kind // 4, classes=2 + kind % 2)
            rule = (Majority(), Agree(2), Margin(2))[kind % 3]
            policy = Policy("drawn", score, rule, returns=kind % 4 < 2, batch=1 + kind % 5)
            crowd = [Crowd(truth_of(dataset), seed + person) for person in range(people)]
            campaign = play(dataset.given, Simulation(policy, budget, crowd, posteriors, seed=seed))
            assert campaign.spent <= campaign.budget == budget
            assert campaign.reserved == 0
            if campaign.spent < budget:
                names = [f"person {n}" for n in range(1, people + 1)] if people > 1 else [None]
                campaign.rank(posteriors)
                assert [campaign.ask(name) for name in names] == [None] * len(names)
            nth: dict[int, int] = {}
            leases = {event.number: event for event in campaign.events if isinstance(event, Lease)}
            for answer in answers_of(campaign):
                assert leases[answer.lease].nth == nth.get(answer.item, 0)
                person = int(answer.annotator.split()[1]) - 1 if answer.annotator else 0
                assert answer.answer == crowd[person](answer.item, nth.get(answer.item, 0))
                nth[answer.item] = nth.get(answer.item, 0) + 1

        check()

    def test_holds(self) -> None:
        self.law(LAW)

    def test_a_player_who_stops_too_early_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answer = simulation._answer

        def lazy(campaign: Campaign, plan: Simulation, *, until: int) -> bool:
            return answer(campaign, plan, until=until - 1)

        monkeypatch.setattr(simulation, "_answer", lazy)
        catches(self.law)

    def test_a_round_that_ends_with_settled_items_and_is_the_last_is_caught(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def rounds(campaign: Campaign, plan: Simulation) -> None:
            every = plan.policy.batch
            while simulation._answer(campaign, plan, until=min(campaign.spent + every, campaign.budget)):
                if campaign.spent >= campaign.budget:
                    return
                campaign.rank(plan.posteriors)

        monkeypatch.setattr(simulation, "_in_rounds", rounds)
        catches(self.law)


class TestTables:
    """People who answer in tables take several items at a time, and the budget holds all the same."""

    def test_each_takes_so_many_and_then_answers_them(self) -> None:
        dataset, posteriors = world(3, items=12)
        assert dataset.truth is not None
        people = [Crowd(dataset.truth, seed) for seed in (1, 2)]
        campaign = play(dataset.given, Simulation(named("random"), 9, people, posteriors=posteriors, hold=4))
        kinds = "".join(type(event).__name__[0] for event in campaign.events[2:])
        assert kinds.startswith("LLLLAAAALLLLAAAA")
        assert campaign.spent == 9
        assert {event.annotator for event in campaign.events[2:6] if isinstance(event, Lease)} == {"person 1"}

    @pytest.mark.parametrize(("people", "hold"), [(2, 0), (1, 3)])
    def test_a_crowd_answers_one_at_a_time(self, people: int, hold: int) -> None:
        with pytest.raises(BadInput, match="a panel whose people hold an item or more was needed"):
            Simulation(named("random"), 9, [lambda *_: 0] * people, hold=hold)


class TestPairs:
    """Two policies face the same crowd: whenever both hear the nth answer about an item, they hear the same."""

    def law(self, how: settings, make: Callable[[FloatArray, int], Annotator]) -> None:
        @how
        @given(st.integers(0, 2**32 - 1), st.sampled_from(["margin", "default", "entropy"]))
        def check(seed: int, other: str) -> None:
            dataset, posteriors = world(seed, items=12)
            heard = []
            for policy in ("random", other):
                plan = Simulation(named(policy), 25, [make(truth_of(dataset), seed)], posteriors)
                run = simulate(dataset, plan)
                nth = {event.number: event.nth for event in run.events if isinstance(event, Lease)}
                heard.append({(answer.item, nth[answer.lease]): answer.answer for answer in answers_of(run)})
            both = heard[0].keys() & heard[1].keys()
            assert {each: heard[0][each] for each in both} == {each: heard[1][each] for each in both}

        check()

    def test_holds(self) -> None:
        self.law(LAW, Crowd)

    def test_a_crowd_that_answers_one_after_the_other_is_caught(self) -> None:
        def sequential(truth: FloatArray, seed: int) -> Annotator:
            random = np.random.default_rng(seed)
            return lambda item, _: int(random.choice(truth.shape[1], p=truth[item]))

        catches(partial(self.law, make=sequential))


class TestSimulate:
    """A run says what came of a campaign, and says the same every time."""

    def test_it_is_its_log_counted(self) -> None:
        dataset, posteriors = world(1)
        run = simulate(dataset, Simulation(named("default"), 40, [Crowd(truth_of(dataset), 0)], posteriors, seed=3))
        expected = curve(run.events, dataset.given, truth=truth_of(dataset))
        assert run.curve.share_correct.tolist() == expected.share_correct.tolist()
        assert (run.answers, run.curve.answers) == (40, 40)
        assert run.curve.share_correct[-1] == pytest.approx((run.final == dataset.true_class).mean())
        assert run.labels.counts.sum() == 40 + (dataset.given.given >= 0).sum()
        assert set(run.picks.tolist()) == {answer.item for answer in answers_of(run)}
        row = run.row()
        assert row == {
            "policy": "default",
            "seed": 3,
            "answers": 40,
            "items": len(set(run.picks.tolist())),
            "share_correct": expected.share_correct[-1],
            "auc": expected.auc(),
            "total_variation": expected.total_variation[-1],
            "clear_left": expected.clear_left[-1],
            "difficult_left": expected.difficult_left[-1],
        }
        assert {type(value) for value in row.values()} == {str, int, float}

    def test_the_same_plan_gives_the_same_run(self) -> None:
        dataset, posteriors = world(2)
        runs = [
            simulate(dataset, Simulation(named("default"), 30, [Crowd(truth_of(dataset), 5)], posteriors)) for _ in "ab"
        ]
        assert runs[0].events == runs[1].events

    def test_nothing_is_bought_with_nothing(self) -> None:
        dataset, _ = world(3)
        run = simulate(dataset, Simulation(named("random"), 0, [Crowd(truth_of(dataset), 0)]))
        assert (run.answers, run.items, run.picks.tolist()) == (0, 0, [])
        assert run.final.tolist() == dataset.given.given.tolist()

    def test_more_answers_than_useful_are_left_over(self) -> None:
        """In one pass, two who agree with the truth end every item."""
        dataset, _ = world(4)
        run = simulate(dataset, Simulation(named("random"), 10_000, [Perfect(dataset.true_class)]))
        assert run.answers <= 2 * len(dataset)
        assert run.curve.share_correct[-1] == 1.0
        assert run.items == len(dataset)

    def test_the_minimal_sampler_is_a_straight_line(self) -> None:
        """Two answers for each wrong label, and the curve rises by one item with every second."""
        truth = true_distribution([0, 1, 1, 0], 2)
        dataset = Dataset("four", ("cat", "dog"), list("abcd"), Labels(np.array([1, 1, 0, 0]), 2), truth)
        policy = named("minimal", Setting(truth=truth))
        run = simulate(dataset, Simulation(policy, 4, [Perfect(dataset.true_class)]))
        assert run.curve.share_correct.tolist() == [0.5, 0.5, 0.75, 0.75, 1.0]
        assert run.picks.tolist() == [0, 2]

    def test_the_votes_of_the_curve_have_the_weight_of_the_policy(self) -> None:
        dataset, _ = world(5)
        policy = named("random", Setting(stop=Agree(2), given_weight=0.0))
        run = simulate(dataset, Simulation(policy, 20, [Crowd(truth_of(dataset), 0)]))
        expected = curve(run.events, dataset.given, truth=truth_of(dataset), given_weight=0.0)
        assert run.curve.total_variation.tolist() == expected.total_variation.tolist()


class TestReleasedCode:
    """By the released code's protocol the last item is finished, and the curve goes straight from visit to visit."""

    def run(self, budget: int, answers: list[list[int]], **parts: Any) -> Run:
        truth = true_distribution([0] * len(answers), 2)
        given_labels = Labels(np.ones(len(answers), int), 2)
        dataset = Dataset("ones", ("cat", "dog"), [str(n) for n in range(len(answers))], given_labels, truth)
        policy = Policy("in order", lambda rows: rows.items * -1.0, Majority())
        return simulate(dataset, Simulation(policy, budget, [Recorded(answers)], protocol="paper-code", **parts))

    def test_it_spends_one_more_than_the_budget_at_least(self) -> None:
        assert self.run(2, [[0, 0], [0, 0], [0, 0]]).answers == 4
        assert self.run(0, [[0, 0], [0, 0]]).answers == 2
        assert self.run(9, [[0, 0], [0, 0]]).answers == 4

    def test_the_curve_knows_the_ends_of_visits_alone(self) -> None:
        run = self.run(3, [[0, 0], [1], [0, 0]])
        assert run.curve.share_correct == pytest.approx([0, 1 / 6, 1 / 3, 1 / 3, 1 / 2, 2 / 3])

    def test_an_item_that_nobody_can_tell_is_left(self) -> None:
        assert self.run(1, [[CANNOT_TELL, CANNOT_TELL], [0, 0]]).answers == 2

    @pytest.mark.parametrize(
        "parts",
        [
            {"annotators": [Perfect(np.array([0]))] * 2},
            {"update": nothing},
            {"policy": Policy("relative", Relative())},
        ],
    )
    def test_what_it_knows_nothing_of_is_refused(self, parts: dict[str, Any]) -> None:
        whole: dict[str, Any] = {"policy": named("random"), "budget": 1, "annotators": [Perfect(np.array([0]))]} | parts
        with pytest.raises(
            BadInput, match="simulation: the released code's protocol needs one crowd and a ranking that stays"
        ):
            Simulation(**whole, protocol="paper-code")


class TestPanel:
    """Several people take turns; nobody answers an item twice, and what all have seen and leave tied is disputed."""

    def test_they_take_turns(self) -> None:
        dataset, _ = world(6, items=40)
        panel = Panel(truth_of(dataset), [1.0, 0.5, 0.0], seed=0)
        campaign = play(dataset.given, Simulation(named("random"), 60, [panel.person(n) for n in range(3)]))
        people = [answer.annotator for answer in answers_of(campaign)]
        assert people[:6] == [f"person {n}" for n in (1, 2, 3, 1, 2, 3)]
        assert campaign.ledger.started.panel == 3
        assert campaign.spent == 60

    def test_a_person_without_work_is_passed_over(self) -> None:
        """One item, three people who all say something else: each is asked once, and it is disputed."""
        people: list[Annotator] = [partial(said, label) for label in (1, 2, 3)]
        given_labels = Labels(np.array([0]), 4)
        campaign = play(given_labels, Simulation(named("random"), 99, people))
        assert [answer.answer for answer in answers_of(campaign)] == [1, 2, 3]
        assert (campaign.spent, campaign.status(0)) == (3, "disputed")


def said(label: int, _item: int, _nth: int) -> int:
    return label


class TestRounds:
    """A model is trained anew on the labels as they stand, every so many answers; a rule that looks around is too."""

    def test_a_model_is_trained_every_so_many_answers(self) -> None:
        dataset, posteriors = world(7)
        seen: list[int] = []

        def update(labels: Labels) -> Posteriors:
            seen.append(0 if labels.answers is None else int(labels.answers.sum()))
            return posteriors

        plan = Simulation(
            named("margin"), 25, [Crowd(truth_of(dataset), 0)], posteriors, update=update, update_every=10
        )
        run = simulate(dataset, plan)
        assert (seen, run.answers) == ([10, 20], 25)
        assert sum(isinstance(event, Ranking) for event in run.events) == 3

    def test_new_posteriors_are_used(self) -> None:
        """The first model doubts items from the front, the second one from the back."""
        chances = np.linspace(0.9, 0.1, 10)
        models = [Posteriors(np.stack([1 - p, p], axis=1)) for p in (chances, chances[::-1])]
        dataset = Dataset(
            "ten", ("a", "b"), list("abcdefghij"), Labels(np.zeros(10, int), 2), np.tile([1.0, 0.0], (10, 1))
        )
        plan = Simulation(
            named("margin"),
            4,
            [Perfect(dataset.true_class)],
            models[0],
            update=lambda _: models[1],
            update_every=2,
        )
        assert simulate(dataset, plan).picks.tolist() == [0, 1, 9, 8]

    def test_one_pass_trains_no_more_when_all_is_settled(self) -> None:
        dataset, posteriors = world(8, items=5)
        trained: list[Labels] = []

        def update(labels: Labels) -> Posteriors:
            trained.append(labels)
            return posteriors

        crowd = [Perfect(dataset.true_class)]
        run = simulate(dataset, Simulation(named("margin"), 500, crowd, posteriors, update=update, update_every=100))
        assert (len(trained), run.items) == (0, 5)

    def test_a_rule_that_looks_around_returns_to_settled_items_after_its_batch(self) -> None:
        dataset, posteriors = world(9, items=3)
        policy = Policy("relative", Relative(), returns=True, batch=50)
        run = simulate(dataset, Simulation(policy, 30, [Crowd(truth_of(dataset), 0)], posteriors))
        assert run.answers == 30


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"annotators": []}, "simulation: at least one annotator was needed, but none came; pass a crowd or a panel"),
        ({"budget": -1}, "budget: a number of answers was needed, but -1 came"),
        ({"update_every": 0}, "simulation: an update every answer at most was needed, but 0 came"),
        ({"protocol": "paper"}, "simulation: protocol exact or paper-code was needed, but 'paper' came"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(parts: dict[str, Any], message: str) -> None:
    whole: dict[str, Any] = {"policy": named("random"), "budget": 1, "annotators": [Perfect(np.array([0]))]} | parts
    with pytest.raises(BadInput, match=message):
        Simulation(**whole)


def test_a_set_without_truth_is_refused() -> None:
    dataset = Dataset("pets", ("cat", "dog"), ["a"], Labels(np.array([0]), 2))
    with pytest.raises(BadInput, match="pets: a simulation needs the truth, but this set has none; pass --truth"):
        simulate(dataset, Simulation(named("random"), 1, [Perfect(np.array([0]))]))


def test_naive_returns_collapse_and_value_per_answer_does_not() -> None:
    """A model that is surely wrong about some items: the paper's rule, allowed to return, asks for them for ever."""
    random = np.random.default_rng(0)
    true_class = random.integers(0, 4, 300)
    truth = 0.03 + 0.88 * np.eye(4)[true_class]
    given_labels = np.where(random.random(300) < 0.4, random.integers(0, 4, 300), true_class)
    believed = np.where(random.random(300) < 0.15, (true_class + 1) % 4, true_class)
    posteriors = Posteriors(0.01 + 0.96 * np.eye(4)[believed])
    dataset = Dataset("300", tuple("abcd"), [str(n) for n in range(300)], Labels(given_labels, 4), truth)
    naive = Policy("naive", named("paper").score, returns=True)
    ends = [
        float(simulate(dataset, Simulation(policy, 350, [Crowd(truth, 1)], posteriors)).curve.share_correct[-1])
        for policy in (naive, named("paper"), named("default"))
    ]
    assert ends[0] < ends[1] - 0.1
    assert ends[1] < ends[2]
