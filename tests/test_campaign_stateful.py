"""The campaign does what a plain model of it does, whatever people do, in any order: 100,000 steps."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from relook.campaign import Campaign
from relook.errors import BadInput, NotAllowed, RelookError
from relook.events import Answer, Lease, Undone, from_lines, to_lines
from relook.ledger import Item, Ledger
from relook.queue import Queue
from relook.rules import Policy, Terms
from relook.stopping import Agree, Confidence, Majority, Margin, Stop
from relook.types import FloatArray, Labels, Posteriors, Rows
from tests.campaigns import PEOPLE, facts
from tests.laws import FAULT, LAW, never, nothing
from tests.model import Model, Setting, some_chances, some_setting

number = st.integers(0, 2**16 - 1)


def chance(rows: Rows) -> FloatArray:
    """The chance of class 0, an eighth less for each answer."""
    return np.asarray(rows.mean[:, 0] - rows.answers.sum(1) / 8)


def rule_of(setting: Setting) -> Stop:
    name, value = setting.rule
    rules: dict[str, Stop] = {
        "majority": Majority(),
        "agree": Agree(int(value)),
        "margin": Margin(value),
        "confidence": Confidence(value),
    }
    return rules[name]


def given_of(setting: Setting) -> Labels:
    """One class an item where nobody said more, else counts."""
    counts = np.array(setting.given)
    if counts.sum(1).max() > 1:
        return Labels(counts, counts.shape[1])
    return Labels(np.where(counts.any(1), counts.argmax(1), -1), counts.shape[1])


def posteriors_of(chances: list[float], classes: int) -> Posteriors:
    values = np.zeros((len(chances), classes))
    values[:, 0] = chances
    values[:, 1] = 1 - values[:, 0]
    return Posteriors(values)


class Machine(RuleBasedStateMachine):
    """People ask, answer, give back, take back and come too late; the real campaign and the model are told alike."""

    steps = 0

    @initialize(seed=st.integers(0, 2**32 - 1))
    def start(self, seed: int) -> None:
        random = Random(seed)
        self.setting = setting = some_setting(random)
        self.classes = len(setting.given[0])
        chances = some_chances(random, len(setting.given))
        self.model = Model(setting, chances)
        self.given = given_of(setting)
        stop = rule_of(setting)
        self.policy = Policy("model", chance, stop, setting.returns, float(setting.weight), setting.batch)
        self.rankings = {1: posteriors_of(chances, self.classes)}
        self.campaign = Campaign(
            self.given,
            self.policy,
            budget=setting.budget,
            posteriors=self.rankings[1],
            terms=Terms(setting.lease_seconds, setting.panel),
        )
        self.leases: list[Lease] = []
        self.now = 0.0

    def alike(self) -> None:
        """Count a step, and compare what is known after it."""
        type(self).steps += 1
        campaign, model = self.campaign, self.model
        assert (campaign.spent, campaign.reserved) == (len(model.answers), len(model.leases))
        assert {item: campaign.verdict(item) for item in model.items} == model.verdicts

    @rule(n=number)
    def ask(self, n: int) -> None:
        who = PEOPLE[n % len(PEOPLE)]
        lease = self.campaign.ask(who, self.now)
        expected = self.model.ask(who, self.now)
        assert (None if lease is None else (lease.number, lease.item, lease.nth)) == expected
        self.leases += [] if lease is None else [lease]
        self.alike()

    @precondition(lambda self: self.model.leases)
    @rule(n=number)
    def tell(self, n: int) -> None:
        open_leases = sorted(self.model.leases)
        self.answer(self.leases[open_leases[n % len(open_leases)] - 1], n // 8)

    @precondition(lambda self: self.leases)
    @rule(n=number)
    def tell_again(self, n: int) -> None:
        self.answer(self.leases[n % len(self.leases)], n // 8)

    def answer(self, lease: Lease, n: int) -> None:
        told = n // 8 % self.classes if n % 8 else -1 - n // 8 % 2
        expected = self.model.tell((lease.number, lease.item, lease.annotator), told, self.now)
        if expected is None:
            with pytest.raises(NotAllowed, match=f"lease {lease.number} was answered with"):
                self.campaign.tell(lease, told, self.now)
        else:
            answer = self.campaign.tell(lease, told, self.now)
            assert answer.counted == expected[0]
            assert not answer.counted or self.campaign.verdict(lease.item) == expected[1]
        self.alike()

    @precondition(lambda self: self.leases)
    @rule(n=number)
    def skip(self, n: int) -> None:
        open_leases = sorted(self.model.leases)
        lease = self.leases[open_leases[-1] - 1 if open_leases and n % 4 else n % len(self.leases)]
        if self.model.skip(lease.number, self.now):
            self.campaign.skip(lease, self.now)
        else:
            with pytest.raises(NotAllowed, match="an open lease was needed, but it has ended"):
                self.campaign.skip(lease, self.now)
        self.alike()

    @precondition(lambda self: self.model.answers)
    @rule(n=number)
    def undo(self, n: int) -> None:
        who, k = self.model.answers[-1 - n % len(self.model.answers)].who, 1 + n // 64 % 3
        expected = self.model.undo(who, k, self.now)
        if expected is None:
            with pytest.raises(NotAllowed, match="were to be undone; undo fewer"):
                self.campaign.undo(who, k, self.now)
        else:
            undone = self.campaign.undo(who, k, self.now)
            assert [(event.lease, event.verdict) for event in undone] == expected
        self.alike()

    @rule(n=number)
    def wait(self, n: int) -> None:
        self.now += (0.25, 4.0, 9.75, 10.0)[n % 4]
        self.ask(n // 4)

    @rule(n=number)
    def seldom(self, n: int) -> None:
        """Things that happen less often: a new ranking, a restart, a mistake."""
        (self.ask, self.rank, self.restart, self.err)[n % 4](n // 4)

    def rank(self, n: int) -> None:
        chances = some_chances(Random(n), len(self.model.items))
        posteriors = posteriors_of(chances, self.classes)
        self.rankings[self.campaign.rank(posteriors, self.now).number] = posteriors
        self.model.rank(chances, self.now)
        self.alike()

    def restart(self, n: int) -> None:
        """The program ends and starts again: all that is left is the file of the log."""
        lines = to_lines(self.campaign.events)
        again = Campaign.replay(from_lines(lines), self.given, self.policy, rankings=self.rankings)
        assert facts(again) == facts(self.campaign)
        self.campaign = again
        self.alike()

    def err(self, n: int) -> None:
        """What cannot be is refused and leaves everything as it was."""
        lease = self.leases[n % len(self.leases)] if self.leases else Lease(1, 0, None, 0, 0.0, 10.0)
        stranger = Lease(lease.number, lease.item + 1, lease.annotator, 0, lease.at, lease.until)
        wrong: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
            (self.campaign.tell, (lease, self.classes, self.now), "answer: a class from 0"),
            (self.campaign.tell, (stranger, 0, self.now), "it never gave this one"),
            (self.campaign.skip, (stranger, self.now), "it never gave this one"),
            (self.campaign.ask, (None, -1.0), "time: it must not go back"),
            (self.campaign.ask, (7, self.now), "annotator: a name was needed"),
        ]
        call, arguments, message = wrong[n // 64 % len(wrong)]
        with pytest.raises(BadInput, match=message):
            call(*arguments)
        if arguments[-1] == self.now:
            self.model.pass_time(self.now)
        self.alike()

    def teardown(self) -> None:
        if not hasattr(self, "campaign"):
            return
        self.campaign.close(self.now)
        self.model.close(self.now)
        self.alike()
        for lease in self.leases:
            if lease.number not in self.model.told:
                assert self.campaign.tell(lease, 0, self.now).counted is False
        assert self.campaign.ask("Ada", self.now) is None
        assert self.campaign.final().tolist() == self.model.final()
        counts = [[self.model.said(item).count(label) for label in range(self.classes)] for item in self.model.items]
        assert (self.campaign.labels().counts - self.given.given_counts).tolist() == counts


def follow(how: settings) -> int:
    """Let the machine run, and return how many steps it made."""
    Machine.steps = 0
    run_state_machine_as_test(Machine, settings=how)
    return Machine.steps


def test_twenty_thousand_steps() -> None:
    assert follow(settings(LAW, max_examples=300, stateful_step_count=100)) >= 20_000


@pytest.mark.slow
def test_hundred_thousand_steps() -> None:
    assert follow(settings(LAW, max_examples=1_500, stateful_step_count=100)) >= 100_000


lease, answer = Ledger.lease, Ledger.answer


def reserve_twice(self: Ledger, event: Lease) -> None:
    lease(self, event)
    self.reserved += 1


def ask_beyond_the_panel(self: Ledger, state: Item) -> bool:
    return state.verdict == -1 or (self._returns and state.verdict >= 0)


def forget_to_reopen(self: Campaign, answer: Answer, now: float) -> Undone:
    state = self.ledger.items[answer.item]
    verdict = self._verdict(answer.item, state, answer=answer.answer, by=-1)
    event = Undone(answer.lease, answer.item, answer.answer, verdict, now)
    self._record(event)
    return event


def keep_the_verdict(self: Campaign, answer: Answer, now: float) -> Undone:
    event = Undone(answer.lease, answer.item, answer.answer, self.verdict(answer.item), now)
    self._record(event)
    self._requeue(answer.item, self.ledger.items[answer.item])
    return event


def never_drop_an_entry(self: Queue, entry: tuple[float, int], annotator: str | None) -> bool:
    state = self._ledger.items[entry[1]]
    return state.lease is None and not state.has_answer_of(annotator)


def count_late_answers(self: Ledger, event: Answer) -> None:
    answer(self, event)
    self.spent += not event.counted


def forget_what_is_waiting(self: Campaign, annotator: str | None) -> int | None:
    return next((item for item in self.ledger.skipped.get(annotator, {}) if self._queue.holds(item)), None)


@pytest.mark.parametrize(
    ("where", "name", "fault"),
    [
        pytest.param(Ledger, "lease", reserve_twice, id="a place is reserved twice"),
        pytest.param(Ledger, "is_askable", ask_beyond_the_panel, id="more are asked than there are"),
        pytest.param(Ledger, "skip", Ledger.release, id="an item given back comes at once"),
        pytest.param(Ledger, "answer", count_late_answers, id="a late answer costs one"),
        pytest.param(Campaign, "_undo", forget_to_reopen, id="an undone item is not asked again"),
        pytest.param(Campaign, "_undo", keep_the_verdict, id="an undone item is not judged again"),
        pytest.param(Campaign, "_offer", nothing, id="an expired item is not offered again"),
        pytest.param(Campaign, "_left_over", forget_what_is_waiting, id="an item that waits for its score is lost"),
        pytest.param(Queue, "_holds", never_drop_an_entry, id="a stale entry stays in the queue"),
        pytest.param(Queue, "withdraw", nothing, id="a settled item stays in the queue"),
        pytest.param(Item, "has_answer_of", never, id="somebody is asked twice"),
    ],
)
def test_a_planted_fault_is_caught(where: type, name: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(where, name, fault)
    with pytest.raises((AssertionError, RelookError)):
        follow(settings(FAULT, max_examples=1_000, stateful_step_count=100))
