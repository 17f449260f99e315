"""The laws of a campaign, each with a planted fault that it catches."""

import copy
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Self

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from relook.agenda import Agenda
from relook.book import Book
from relook.campaign import Campaign
from relook.errors import BadLog, RelookError
from relook.events import (
    Answer,
    Checked,
    Event,
    Expired,
    Lease,
    Skipped,
    Undone,
    from_lines,
    to_lines,
)
from relook.judging import Judge
from relook.ledger import Item, Ledger
from relook.queue import Queue
from relook.rules import Policy, Terms
from relook.scores import margin, score_items
from relook.types import Labels, Posteriors
from tests.campaigns import (
    LEASE,
    PEOPLE,
    ROWWISE,
    WHOLE,
    Driver,
    Facts,
    World,
    counted,
    drained,
    facts,
    run,
    said,
    scripts,
    worlds,
)
from tests.laws import LAW, catches, never, nothing

Start = Callable[[World], Campaign]


class TestBudget:
    """Spent and reserved answers never exceed the budget, wherever the log is cut."""

    def law(self, how: settings, start: Start = World.start) -> None:
        @how
        @given(worlds(scores=ROWWISE + WHOLE), scripts(40))
        def check(world: World, script: list[int]) -> None:
            campaign = start(world)
            run(campaign, world, script)
            spent, held = 0, set[int]()
            for event in campaign.events:
                if isinstance(event, Lease):
                    held.add(event.number)
                elif isinstance(event, Expired | Skipped):
                    held.remove(event.lease)
                elif isinstance(event, Answer) and event.counted:
                    held.remove(event.lease)
                    spent += 1
                spent -= isinstance(event, Undone)
                assert 0 <= spent + len(held) <= world.budget
            assert (campaign.spent, campaign.reserved, campaign.budget) == (spent, len(held), world.budget)

        check()

    def test_holds(self) -> None:
        self.law(LAW)

    def test_a_campaign_that_forgets_what_it_reserved_is_caught(self) -> None:
        class Forgetful(Campaign):
            def ask(self, annotator: str | None = None, now: float = 0.0) -> Lease | None:
                lease = super().ask(annotator, now)
                self.ledger.reserved = 0
                return lease

        catches(partial(self.law, start=partial(World.start, kind=Forgetful)))

    def test_an_undone_answer_that_does_not_return_is_caught(self) -> None:
        class Grasping(Campaign):
            def undo(self, annotator: str | None, k: int = 1, now: float = 0.0) -> list[Undone]:
                undone = super().undo(annotator, k, now)
                self.ledger.spent += k
                return undone

        catches(partial(self.law, start=partial(World.start, kind=Grasping)))


class TestReplay:
    """A log, or any beginning of it, replays to where its writer stood: the same facts, and the same item next."""

    def law(self, how: settings, kind: type[Campaign] = Campaign) -> None:
        @how
        @given(worlds(scores=ROWWISE + WHOLE), scripts(20))
        def check(world: World, script: list[int]) -> None:
            campaign = world.start(kind)
            driver = Driver(campaign, world)
            for _ in driver.follow(script):
                replayed = world.replay(from_lines(to_lines(campaign.events)), kind)
                assert facts(replayed) == facts(campaign)
                assert drained(replayed, driver.now) == drained(copy.deepcopy(campaign), driver.now)
            for end in range(2, len(campaign.events) + 1):
                part = campaign.events[:end]
                assert facts(world.replay(part, kind)) == counted(part, world.given, world.policy.given_weight)

        check()

    def test_holds(self) -> None:
        self.law(LAW)

    def test_a_replay_that_does_not_offer_again_what_was_given_back_is_caught(self) -> None:
        follow = Agenda.follow

        class Losing(Campaign):
            @classmethod
            def replay(cls, *args: Any, **rest: Any) -> Self:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(Agenda, "follow", lambda agenda, e: type(e) is Skipped or follow(agenda, e))
                    return super().replay(*args, **rest)

        catches(partial(self.law, kind=Losing))

    def test_a_replay_that_scores_by_its_own_rhythm_is_caught(self) -> None:
        class Eager(Campaign):
            @classmethod
            def replay(cls, *args: Any, **rest: Any) -> Self:
                campaign = super().replay(*args, **rest)
                campaign._agenda.rescore_changed()
                return campaign

        catches(partial(self.law, kind=Eager))

    def test_leases_that_expire_without_an_event_are_caught(self) -> None:
        class Silent(Campaign):
            def expire(self, number: int, now: float) -> None:
                super().expire(number, now)
                self.events.pop()

        catches(partial(self.law, kind=Silent), BadLog)

    def test_votes_that_are_added_up_and_down_are_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        votes = Ledger.votes

        def drifting(self: Ledger, item: int, counts: list[int]) -> list[float]:
            return [vote + 0.7 - 0.7 for vote in votes(self, item, counts)]

        monkeypatch.setattr(Ledger, "votes", drifting)
        catches(self.law)


class TestOnce:
    """Nobody answers an item twice; who has no name is somebody else each time."""

    def law(self, how: settings) -> None:
        @how
        @given(worlds(), scripts(40))
        def check(world: World, script: list[int]) -> None:
            campaign = world.start()
            for _ in Driver(campaign, world).follow(script):
                for item in campaign.ledger.items:
                    people = [person for person, _ in said(campaign, item)]
                    named = [person for person in people if person is not None]
                    assert len(named) == len(set(named))
                    assert world.terms.panel is None or len(people) <= world.terms.panel

        check()

    def test_holds(self) -> None:
        self.law(LAW)

    def test_a_campaign_that_forgets_who_answered_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Ledger, "has_answer_of", never)
        catches(self.law)

    def test_a_campaign_that_asks_beyond_its_panel_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def is_askable(self: Ledger, state: Item) -> bool:
            return state.verdict >= -1

        monkeypatch.setattr(Ledger, "is_askable", is_askable)
        catches(self.law)


def best(campaign: Campaign, world: World, who: str | None, now: float) -> int | None:
    """The item that this person should be asked about, from the log alone: the plain definition."""
    policy, labels = world.policy, world.given
    known = counted(campaign.events, labels, policy.given_weight)
    until = {event.number: event.until for event in campaign.events if isinstance(event, Lease)}
    held = {item for number, (item, _) in known["leases"].items() if until[number] > now}
    if known["spent"] + len(held) >= world.budget:
        return None
    counts = np.zeros((len(labels), labels.classes), int)
    for item, answers in known["answers"].items():
        for _, answer in answers:
            counts[item, answer] += answer >= 0
    scores = score_items(
        policy.score,
        Labels(labels.given, labels.classes, counts),
        world.rankings()[known["ranking"]],
        given_weight=policy.given_weight,
    )

    def is_askable(item: int) -> bool:
        people = [person for person, _ in known["answers"].get(item, [])]
        verdict = known["verdicts"].get(item, -1)
        returns = policy.returns and verdict >= 0 and (world.terms.panel is None or len(people) < world.terms.panel)
        return item not in held and (verdict == -1 or returns) and (who is None or who not in people)

    def priority(item: int) -> tuple[float, int]:
        is_begun = known["verdicts"].get(item, -1) == -1 and item in known["answers"]
        return np.inf if is_begun else float(scores[item]), -item

    askable = [item for item in range(len(labels)) if is_askable(item)]
    given_back = [item for item in known["skipped"].get(who, []) if item in askable]
    return max(set(askable) - set(given_back), key=priority, default=given_back[0] if given_back else None)


class TestNext:
    """Asked is the best item: one begun and not settled, else the highest score; what somebody gave back comes last."""

    def law(self, how: settings, batches: tuple[int, ...] = (1,)) -> None:
        @how
        @given(worlds(batches=batches), scripts(40))
        def check(world: World, script: list[int]) -> None:
            campaign = world.start()
            driver = Driver(campaign, world)
            for number in script:
                for _ in driver.follow([number]):
                    pass
                who = PEOPLE[number // 3 % len(PEOPLE)]
                expected = best(campaign, world, who, driver.now)
                lease = campaign.ask(who, driver.now)
                found = None if lease is None else lease.item
                assert found == expected if batches == (1,) else (found is None) == (expected is None)

        check()

    def test_holds(self) -> None:
        self.law(LAW)

    def test_nobody_is_sent_away_while_there_is_work_and_budget(self) -> None:
        self.law(LAW, batches=(2, 3, 5))

    def test_items_that_wait_for_a_new_score_and_are_forgotten_are_caught(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Agenda, "_left_over", nothing)
        catches(partial(self.law, batches=(2, 3, 5)))

    def test_entries_that_stay_in_the_queue_are_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Queue, "withdraw", nothing)
        catches(self.law, BadLog)

    def test_beginning_another_item_before_one_is_finished_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("relook.agenda.FIRST", 0.0)
        catches(self.law)

    def test_showing_again_at_once_what_was_given_back_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Ledger, "skip", Ledger.release)
        catches(self.law)

    def test_a_lease_that_expired_and_is_never_offered_again_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Agenda, "offer", nothing)
        catches(self.law)


class TestLateAnswers:
    """An answer that comes at or after the end of its lease is kept, costs nothing and counts nowhere."""

    def law(self, how: settings, start: Start = World.start) -> None:
        @how
        @given(worlds(), scripts(40), st.integers(0, 2**10), st.floats(0, 100))
        def check(world: World, script: list[int], pick: int, delay: float) -> None:
            campaign = start(world)
            driver = run(campaign, world, script)
            lease = campaign.ask("Dee", driver.now)
            assume(lease is not None)
            assert lease is not None
            twin, now = copy.deepcopy(campaign), lease.until + delay
            twin.ask("Ed", now)
            answer = campaign.tell(lease, driver.answer(pick), now)
            assert (answer.counted, answer.verdict) == (False, campaign.verdict(lease.item))
            campaign.ask("Ed", now)
            assert without_told(facts(campaign)) == without_told(facts(twin))
            assert campaign.tell(lease, driver.answer(pick), now) == answer

        check()

    def test_holds(self) -> None:
        self.law(LAW)

    def test_a_campaign_that_waits_for_late_answers_is_caught(self) -> None:
        class Patient(Campaign):
            def tell(
                self, lease: Lease, answer: int, now: float = 0.0, *, seconds: float | None = None
            ) -> Answer | Checked:
                return super().tell(lease, answer, min(now, self.ledger.now))

        catches(partial(self.law, start=partial(World.start, kind=Patient)))


def without_told(known: Facts) -> Facts:
    return {name: value for name, value in known.items() if name not in ("told", "now")}


class TestUndo:
    """Who takes an answer back stands where they stood before it: the facts, the item next, and the verdict on it."""

    def law(self, how: settings, start: Start = World.start) -> None:
        @how
        @given(worlds(batches=(1,), rankings=1), scripts(40), st.integers(0, 2**10), st.sampled_from(PEOPLE))
        def check(world: World, script: list[int], pick: int, who: str | None) -> None:
            campaign = start(world)
            driver = run(campaign, world, script)
            campaign.pass_time(driver.now)
            before = facts(campaign)
            lease = campaign.ask(who, driver.now)
            assume(lease is not None and lease.item not in before["skipped"].get(who, []))
            assert lease is not None
            told = campaign.tell(lease, driver.answer(pick), driver.now)
            [undone] = campaign.undo(who, now=driver.now)
            assert (undone.lease, undone.answer) == (lease.number, told.answer)
            after = facts(campaign)
            for known in (before, after):
                known["verdicts"].setdefault(lease.item, -1)
                known["votes"].pop(lease.item, None)
            assert without_told(after) == without_told(before)
            again = campaign.ask(who, driver.now)
            assert again is not None
            assert again.item == lease.item
            assert again.nth == lease.nth
            assert campaign.tell(again, told.answer, driver.now).verdict == told.verdict

        check()

    def test_holds(self) -> None:
        self.law(LAW)

    def test_votes_that_stay_are_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        unlink = Book.unlink

        def keeping(self: Book, last: int, row: int) -> int:
            return last if last == row else unlink(self, last, row)

        monkeypatch.setattr(Book, "unlink", keeping)
        catches(self.law, (AssertionError, RelookError))

    def test_an_item_that_does_not_reopen_is_caught(self) -> None:
        class Closing(Campaign):
            def _undo(self, row: int, now: float) -> Undone:
                undone = super()._undo(row, now)
                self._agenda.queue.withdraw(undone.item)
                return undone

        catches(partial(self.law, start=partial(World.start, kind=Closing)))


class TestLease:
    """A lease holds its item until, and not at, the time it says."""

    def law(self, how: settings, kind: type[Campaign] = Campaign) -> None:
        @how
        @given(st.floats(0, 1e6), st.floats(1e-3, 1e6))
        def check(start: float, seconds: float) -> None:
            given_labels = Labels(np.array([0]), 2)
            policy = Policy("margin", margin)
            terms = Terms(seconds, at=start)
            posteriors = Posteriors(np.array([[0.1, 0.9]]))
            campaign = kind(given_labels, policy, budget=1, posteriors=posteriors, terms=terms)
            lease = campaign.ask("Ada", start)
            assert lease is not None
            assert lease.until == start + seconds
            just_before = float(np.nextafter(lease.until, -np.inf))
            assert campaign.ask("Bo", just_before) is None
            assert campaign.reserved == 1
            freed = campaign.ask("Bo", lease.until)
            assert freed is not None
            assert (freed.item, campaign.reserved, type(campaign.events[-2])) == (0, 1, Expired)

        check()

    def test_holds(self) -> None:
        self.law(LAW)

    def test_a_lease_that_ends_a_moment_late_is_caught(self) -> None:
        class Late(Campaign):
            def pass_time(self, now: float) -> float:
                return super().pass_time(float(np.nextafter(now, self.ledger.now)))

        catches(partial(self.law, kind=Late))

    def test_a_lease_that_ends_a_moment_early_is_caught(self) -> None:
        class Early(Campaign):
            def pass_time(self, now: float) -> float:
                return super().pass_time(float(np.nextafter(now, np.inf)))

        catches(partial(self.law, kind=Early))


class TestVerdict:
    """What an item is settled as depends on which answers stand, never on their order or on what was undone."""

    def law(self, how: settings, start: Start = World.start) -> None:
        @how
        @given(worlds(batches=(1,)), st.lists(st.integers(-2, 3), min_size=2, max_size=7), st.randoms())
        def check(world: World, answers: list[int], random: Random) -> None:
            classes = world.given.classes
            named = [(f"person {n}", min(answer, classes - 1)) for n, answer in enumerate(answers)]
            given_labels = Labels(world.given.given[:1], classes)
            policy = msgspec.structs.replace(world.policy, returns=True)
            single = tuple(Posteriors(each.values[:, :1]) for each in world.posteriors)
            world = World(given_labels, policy, single, 99, Terms(LEASE, len(named)))
            seen: dict[tuple[int, ...], int] = {}
            for order in (named, random.sample(named, len(named))):
                campaign = start(world)
                for who, answer in order:
                    lease = campaign.ask(who)
                    if lease is not None:
                        campaign.tell(lease, answer)
                        judged(campaign, seen)
                for who, _ in random.sample(order, len(order)):
                    if any(campaign.ledger.book.of(who)):
                        campaign.undo(who)
                        judged(campaign, seen)

        check()

    def test_holds(self) -> None:
        self.law(LAW)

    def test_a_rule_that_follows_the_last_answer_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        verdict_with = Judge.verdict_with

        def swayed(self: Judge, item: int, state: Item, *, answer: int, by: int = 1) -> int:
            verdict = verdict_with(self, item, state, answer=answer, by=by)
            return answer if by == 1 and verdict >= 0 and answer >= 0 else verdict

        monkeypatch.setattr(Judge, "verdict_with", swayed)
        catches(self.law)


def judged(campaign: Campaign, seen: dict[tuple[int, ...], int]) -> None:
    """Check that the one item is judged as ever when the same answers stood."""
    standing = tuple(sorted(answer for _, answer in said(campaign, 0)))
    assert seen.setdefault(standing, campaign.verdict(0)) == campaign.verdict(0)


class TestDamagedLogs:
    """A log with a line taken out or two lines exchanged is refused, or gives a campaign that is sound and goes on."""

    def law(self, how: settings, kind: type[Campaign] = Campaign) -> None:
        @how
        @given(
            worlds(),
            scripts(40),
            st.integers(0, 10**6),
            st.integers(0, 10**6),
            st.sampled_from(["gone", "moved", "edited"]),
        )
        def check(world: World, script: list[int], one: int, other: int, damage: str) -> None:
            campaign = world.start()
            driver = run(campaign, world, script)
            events = damaged(campaign.events, one, other, damage=damage)
            try:
                replayed = world.replay(events, kind)
            except BadLog:
                return
            check_sound(replayed, world)
            drained(replayed, driver.now + 1000)
            check_sound(replayed, world)

        check()

    def test_holds(self) -> None:
        self.law(LAW)

    def test_believing_almost_every_line_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def believing(self: Ledger, event: Event) -> None:
            # An answer that was told twice would be its own forerunner, and be counted for ever.
            if isinstance(event, Answer | Undone) and not self._check[type(event)](event):
                raise BadLog("log: told twice")
            self._apply[type(event)](event)

        monkeypatch.setattr(Ledger, "apply", believing)
        catches(self.law, Exception)


def damaged(events: list[Event], one: int, other: int, *, damage: str) -> list[Event]:
    """Return the log without a line, with two lines exchanged, or with a number in a line one higher or lower."""
    events, one, other = list(events), one % len(events), other % len(events)
    if damage == "gone":
        del events[one]
    elif damage == "moved":
        events[one], events[other] = events[other], events[one]
    else:
        names = [name for name in events[one].__struct_fields__ if type(getattr(events[one], name)) in (int, float)]
        name = names[other % len(names)]
        fields = {each: getattr(events[one], each) for each in events[one].__struct_fields__}
        events[one] = type(events[one])(**fields | {name: fields[name] + (1 if other % 2 else -1)})
    return events


def check_sound(campaign: Campaign, world: World) -> None:
    assert 0 <= campaign.spent + campaign.reserved <= campaign.budget
    told = {item: said(campaign, item) for item in campaign.ledger.items}
    for item, state in campaign.ledger.items.items():
        assert 0 <= item < len(world.given)
        named = [person for person, _ in told[item] if person is not None]
        assert len(named) == len(set(named))
        assert all(-2 <= answer < world.given.classes for _, answer in told[item])
        assert -4 <= state.verdict < world.given.classes
    assert campaign.spent == sum(map(len, told.values()))
    assert campaign.reserved == sum(state.lease is not None for state in campaign.ledger.items.values())
    assert len(campaign.final()) == len(world.given)
