"""The campaign does what a plain model of it does, whatever people do, in any order: 100,000 steps."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from relook.agenda import Agenda
from relook.book import Book
from relook.campaign import Campaign
from relook.deciding import Decisions
from relook.errors import BadInput, NotAllowed, RelookError
from relook.events import Answer, Changed, Checked, Lease, Renewed, Undone, from_lines, to_lines
from relook.judging import Judge
from relook.ledger import Item, Ledger
from relook.queue import Queue
from relook.rules import Policy, Terms
from relook.stopping import Agree, Confidence, Majority, Margin, Stop
from relook.types import FloatArray, Labels, Posteriors, Rows
from tests.campaigns import PEOPLE, counted, facts
from tests.history import check_history
from tests.laws import FAULT, LAW, never, nothing
from tests.model import DISPUTED, OUTSIDE, REFUSED, UNCLEAR, Model, Setting, some_chances, some_setting

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
        self.policies = {"model": self.policy}
        self.weight = setting.weight
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
        if seed % 3:
            self.mix(seed)
            self.know(random.randrange(2**16))

    def alike(self) -> None:
        """Count a step, and compare what is known after it."""
        type(self).steps += 1
        campaign, model = self.campaign, self.model
        assert (campaign.spent, campaign.reserved, campaign.budget) == (model.paid, len(model.leases), model.budget)
        assert campaign.ledger.awaited == model.awaited
        assert {item: campaign.verdict(item) for item in model.items} == model.verdicts

    @rule(n=number)
    def ask(self, n: int) -> None:
        who = PEOPLE[n % len(PEOPLE)]
        expected = self.model.ask(who, self.now)
        if expected == REFUSED:
            with pytest.raises(NotAllowed, match=f"ask: {who} was removed from this campaign"):
                self.campaign.ask(who, self.now)
            self.alike()
            return
        lease = self.campaign.ask(who, self.now)
        assert (None if lease is None else (lease.number, lease.item, lease.nth, lease.purpose)) == expected
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

    @rule(n=number)
    def decide(self, n: int) -> None:
        """Somebody decides something about the campaign, or about an item or a person."""
        kinds = (
            *(self.speak, self.retract, self.know, self.mix, self.draw, self.set_budget, self.alter, self.pause),
            *(self.remove, self.join, self.add, self.withdraw, self.renew, self.reopen, self.guide, self.speak),
        )
        kinds[n % len(kinds)](n // len(kinds))

    @property
    def max(self) -> Decisions:
        return self.campaign.by("Max", "so it is")

    def pick(self, n: int) -> int:
        return self.model.items[n % len(self.model.items)]

    def speak(self, n: int) -> None:
        item, answer = self.pick(n), n // 8 % (self.classes + 2) - 2
        self.model.pass_time(self.now)
        if self.model.verdicts[item] == DISPUTED and item not in self.model.words and item not in self.model.withdrawn:
            self.max.confirm(item, now=self.now)
            self.model.speak(item, "confirmed", DISPUTED)
        elif item in self.model.withdrawn or item in self.model.gold:
            with pytest.raises(NotAllowed, match=r"the label of item \d+ is known|it was withdrawn"):
                self.max.adjudicate(item, answer, now=self.now)
        else:
            verdict = {-1: UNCLEAR, -2: OUTSIDE}.get(answer, answer)
            assert self.max.adjudicate(item, answer, now=self.now).verdict == verdict
            self.model.speak(item, "adjudicated", verdict)
        self.alike()

    def retract(self, n: int) -> None:
        spoken = [item for item, (kind, _) in self.model.words.items() if kind != "gold"]
        self.model.pass_time(self.now)
        if spoken:
            item = spoken[n % len(spoken)]
            self.max.retract(item, now=self.now)
            self.model.retract(item)
        self.alike()

    def know(self, n: int) -> None:
        item, label = self.pick(n), n // 8 % self.classes
        self.model.pass_time(self.now)
        if item not in self.model.withdrawn and n % 3:
            self.max.know(item, label, now=self.now)
            self.model.speak(item, "gold", label)
        self.alike()

    def mix(self, n: int) -> None:
        kind = (None, "gold", "repeat")[n % 3]
        self.max.mix(gold=float(kind == "gold"), repeat=float(kind == "repeat"), now=self.now)
        self.model.pass_time(self.now)
        self.model.mixed = kind
        self.alike()

    def draw(self, n: int) -> None:
        self.model.pass_time(self.now)
        out = self.model.withdrawn | set(self.model.gold) | self.model.unranked
        left = [item for item in self.model.items if item not in out]
        drawn = Random(n).sample(left, min(len(left), 1 + n % 3))
        if drawn:
            self.max.draw(drawn, [0.5] * len(drawn), now=self.now)
            self.model.draw(drawn)
        self.alike()

    def set_budget(self, n: int) -> None:
        self.model.pass_time(self.now)
        taken = self.model.paid + len(self.model.leases)
        if n % 4 == 0 and taken:
            with pytest.raises(NotAllowed, match=f"budget: {self.model.paid} answers are spent and "):
                self.max.budget(taken - 1, now=self.now)
        else:
            self.model.budget = taken + n // 4 % 20
            self.max.budget(self.model.budget, now=self.now)
        self.alike()

    def alter(self, n: int) -> None:
        self.model.pass_time(self.now)
        if self.model.unranked:
            with pytest.raises(NotAllowed, match="change: a ranking of all"):
                self.max.change(self.policy, panel=None, now=self.now)
            self.alike()
            return
        other = some_setting(Random(n))
        self.setting = self.model.setting._replace(
            rule=other.rule, weight=other.weight, returns=other.returns, batch=other.batch, panel=other.panel
        )
        stop = rule_of(self.setting)
        self.policy = Policy(
            f"model {n}", chance, stop, self.setting.returns, float(self.setting.weight), self.setting.batch
        )
        self.policies[self.policy.name] = self.policy
        self.max.change(self.policy, panel=self.setting.panel, now=self.now)
        self.rankings[self.campaign.ledger.ranking] = self.rankings[self.campaign.ledger.ranking - 1]
        self.model.alter(self.setting)
        self.alike()

    def pause(self, n: int) -> None:
        who = PEOPLE[n % len(PEOPLE)] if n % 3 else "Ada"
        self.model.pass_time(self.now)
        if who in self.model.paused:
            self.max.resume(who, now=self.now)
            self.model.paused.discard(who)
        else:
            self.max.pause(who, now=self.now)
            self.model.paused.add(who)
        self.alike()

    def remove(self, n: int) -> None:
        known = [who for who in self.campaign.ledger.book.people if who is not None and who not in self.model.removed]
        self.model.pass_time(self.now)
        if known and n % 2:
            who = known[n // 2 % len(known)]
            void = n // 8 % 2 == 0
            self.max.remove(who, "void" if void else "stand", now=self.now)
            self.model.remove(who, void=void)
        self.alike()

    def join(self, n: int) -> None:
        who = PEOPLE[1 + n % (len(PEOPLE) - 1)]
        assert who is not None
        self.max.join(who, now=self.now)
        self.model.pass_time(self.now)
        self.model.removed.discard(who)
        self.alike()

    def add(self, n: int) -> None:
        self.model.pass_time(self.now)
        if len(self.model.items) < 8 and n % 2:
            random, count = Random(n), self.given.given.ndim
            rows = [[random.randint(0, 2) for _ in range(self.classes)] for _ in range(1 + n // 2 % 2)]
            if count == 1:
                rows = [[int(label == max(row)) for label in range(self.classes)] for row in rows]
            more = Labels(np.array(rows), self.classes)
            if count == 1:
                more = Labels(np.where(np.any(rows, 1), np.argmax(rows, 1), -1), self.classes)
            self.max.add(more, now=self.now)
            self.model.add(rows)
        self.alike()

    def withdraw(self, n: int) -> None:
        self.model.pass_time(self.now)
        item = self.pick(n)
        if item not in self.model.withdrawn and n % 3 == 0:
            self.max.withdraw([item], now=self.now)
            self.model.withdraw([item])
        self.alike()

    def renew(self, n: int) -> None:
        """The program was down for a while: nobody loses a lease by it."""
        self.now += n % 4 * 5.0
        self.campaign.renew(self.now)
        self.model.renew(self.now)
        self.alike()

    def reopen(self, n: int) -> None:
        self.max.close(now=self.now)
        self.model.close(self.now)
        self.alike()
        assert self.campaign.ask("Ada", self.now) is None
        self.max.reopen(now=self.now)
        self.model.closed = False
        self.alike()

    def guide(self, n: int) -> None:
        self.max.guide(f"Guideline {n}", now=self.now)
        self.model.pass_time(self.now)
        assert self.campaign.ledger.guideline is not None
        self.alike()

    def rank(self, n: int) -> None:
        chances = some_chances(Random(n), len(self.model.items))
        posteriors = posteriors_of(chances, self.classes)
        self.rankings[self.campaign.rank(posteriors, self.now).number] = posteriors
        self.model.rank(chances, self.now)
        self.alike()

    def restart(self, n: int) -> None:
        """The program ends and starts again: all that is left is the file of the log."""
        lines = to_lines(self.campaign.events)
        check_history(self.campaign.events)
        again = Campaign.replay(from_lines(lines), self.given, self.policy, rankings=self.rankings)
        assert facts(again) == facts(self.campaign)
        self.campaign = again
        self.stand_alike(Random(n).randint(2, len(again.events)))
        self.alike()

    def stand_alike(self, end: int) -> None:
        """Any beginning of the log replays to the facts that it says, counted once more."""
        part = self.campaign.events[:end]
        name = next((event.policy["name"] for event in reversed(part) if isinstance(event, Changed)), "model")
        again = Campaign.replay(part, self.given, self.policies[name], rankings=self.rankings)
        assert facts(again) == counted(part, self.given, float(self.weight))

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
        assert (self.campaign.labels().counts - self.campaign.ledger.given.given_counts).tolist() == counts
        history = check_history(self.campaign.events, stored={"spent": self.campaign.spent, "reserved": 0})
        assert history.verdicts == {item: self.model.verdicts[item] for item in history.verdicts}


def follow(how: settings) -> int:
    """Let the machine run, and return how many steps it made."""
    Machine.steps = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("relook.checking.APART", Model.apart)
        run_state_machine_as_test(Machine, settings=how)
    return Machine.steps


def test_ten_thousand_steps() -> None:
    assert follow(settings(LAW, max_examples=150, stateful_step_count=100)) >= 10_000


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
def test_hundred_thousand_steps() -> None:
    assert follow(settings(LAW, max_examples=1_500, stateful_step_count=100)) >= 100_000


lease, answer = Ledger.lease, Ledger.answer


def reserve_twice(self: Ledger, event: Lease) -> None:
    lease(self, event)
    self.reserved += 1


def ask_beyond_the_panel(self: Ledger, state: Item) -> bool:
    return not state.out and (state.verdict == -1 or (self._returns and state.verdict >= 0))


def forget_to_reopen(self: Agenda, event: Undone) -> None:
    pass


def keep_the_verdict(self: Judge, item: int, state: Item, *, answer: int, by: int = 1) -> int:
    return state.verdict if by == -1 else verdict_with(self, item, state, answer=answer, by=by)


def never_drop_an_entry(self: Queue, entry: tuple[float, int], annotator: str | None) -> bool:
    state = self._ledger.items[entry[1]]
    return state.lease is None and not self._ledger.has_answer_of(state, annotator)


def count_late_answers(self: Ledger, event: Answer) -> None:
    answer(self, event)
    self.spent += not event.counted


def forget_what_is_waiting(self: Agenda, annotator: str | None) -> int | None:
    return next((item for item in self.ledger.skipped.get(annotator, {}) if self.queue.holds(item)), None)


def pay_nothing_for_a_check(self: Ledger, event: Checked) -> None:
    check(self, event)
    self.spent -= event.counted


def count_a_check_as_a_vote(self: Ledger, event: Checked) -> None:
    check(self, event)
    if event.counted:
        state = self.items[event.item]
        self.book.on_item[event.lease], state.last = state.last, event.lease
        state.heard += 1


def forget_the_word(self: Judge, item: int, state: Item, *, answer: int, by: int = 1) -> int:
    tally = self.ledger.tally(state)
    tally[answer] += by
    return self.of_people(item, tally, heard=state.heard + by)


def end_what_was_held(self: Ledger, event: Renewed) -> None:
    self.now = event.at


def no_verdicts(*_: object) -> list[tuple[int, int]]:
    return []


def keep_the_draw(self: Book, row: int) -> bool:
    return False


def welcome_the_removed(ledger: Ledger, annotator: str | None) -> bool:
    return ledger.paused.isdisjoint((None, annotator))


def ask_the_paused(ledger: Ledger, annotator: str | None) -> bool:
    if annotator in ledger.removed:
        raise NotAllowed(f"ask: {annotator} was removed from this campaign")
    return True


verdict_with, check = Judge.verdict_with, Ledger.check


@pytest.mark.parametrize(
    ("where", "name", "fault"),
    [
        pytest.param(Ledger, "lease", reserve_twice, id="a place is reserved twice"),
        pytest.param(Ledger, "is_askable", ask_beyond_the_panel, id="more are asked than there are"),
        pytest.param(Ledger, "skip", Ledger.release, id="an item given back comes at once"),
        pytest.param(Ledger, "answer", count_late_answers, id="a late answer costs one"),
        pytest.param(Agenda, "_undone", forget_to_reopen, id="an undone item is not asked again"),
        pytest.param(Judge, "verdict_with", keep_the_verdict, id="an undone item is not judged again"),
        pytest.param(Agenda, "offer", nothing, id="an expired item is not offered again"),
        pytest.param(Agenda, "_left_over", forget_what_is_waiting, id="an item that waits for its score is lost"),
        pytest.param(Queue, "_holds", never_drop_an_entry, id="a stale entry stays in the queue"),
        pytest.param(Queue, "withdraw", nothing, id="a settled item stays in the queue"),
        pytest.param(Ledger, "has_answer_of", never, id="somebody is asked twice"),
        pytest.param(Ledger, "check", pay_nothing_for_a_check, id="a check costs nothing"),
        pytest.param(Ledger, "check", count_a_check_as_a_vote, id="a check is a vote"),
        pytest.param(Ledger, "renew", end_what_was_held, marks=pytest.mark.nightly, id="a restart renews no lease"),
        pytest.param(Judge, "verdict_with", forget_the_word, id="an answer overrules a reviewer"),
        pytest.param(Book, "is_draw", keep_the_draw, id="a random check is asked for ever"),
        pytest.param(Agenda, "_spoken", nothing, id="an adjudicated item is asked about"),
        pytest.param(Agenda, "_drawn", nothing, id="random checks do not come first"),
        pytest.param(Agenda, "_withdrawn", nothing, id="what was withdrawn is asked about"),
        pytest.param("relook.campaign", "may_be_asked", welcome_the_removed, id="somebody removed is asked"),
        pytest.param("relook.campaign", "may_be_asked", ask_the_paused, id="somebody paused is asked"),
        pytest.param("relook.deciding", "_other", no_verdicts, id="another rule settles nothing"),
        pytest.param(
            Decisions,
            "_without",
            no_verdicts,
            marks=pytest.mark.nightly,
            id="who is removed keeps the verdicts",
        ),
    ],
)
def test_a_planted_fault_is_caught(where: type | str, name: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(where, str):
        monkeypatch.setattr(f"{where}.{name}", fault)
    else:
        monkeypatch.setattr(where, name, fault)
    with pytest.raises((AssertionError, RelookError, pytest.fail.Exception, BaseExceptionGroup)):
        follow(settings(FAULT, max_examples=1_000, stateful_step_count=100))
