"""What people decide about a campaign: what it does, what it costs, and what is refused."""

from typing import Any

import numpy as np
import pytest

from relook.agenda import Agenda
from relook.campaign import Campaign
from relook.decided import hash_of
from relook.errors import BadInput, BadLog, NotAllowed
from relook.events import CANNOT_TELL, NONE_OF_THESE, Checked, Expired, Lease, from_lines, to_lines
from relook.rules import Policy, Terms
from relook.scores import margin
from relook.stopping import named
from relook.types import Labels, Posteriors, ids_fingerprint
from tests.campaigns import facts
from tests.history import check_history

CAT, DOG, FOX = range(3)
PETS = Posteriors(np.array([[0.1, 0.8, 0.1], [0.3, 0.6, 0.1], [0.9, 0.05, 0.05]]))


def pets(**parts: Any) -> Campaign:
    """Three items, all called cats, of which the first one is asked about first; two who agree settle one."""
    whole: dict[str, Any] = {"budget": 99, "terms": Terms(10.0), "settle": "people:2"} | parts
    stop, weight = named(whole["settle"])
    policy = Policy("pets", margin, stop, given_weight=weight)
    given = Labels(np.array([CAT, CAT, CAT]), 3)
    return Campaign(given, policy, budget=whole["budget"], posteriors=PETS, terms=whole["terms"])


def ask(campaign: Campaign, who: str | None, now: float = 0.0) -> Lease:
    lease = campaign.ask(who, now)
    assert lease is not None
    return lease


def say(campaign: Campaign, *answers: int, who: str = "Ada") -> list[int]:
    """Answer what is asked, and return the items."""
    items = []
    for answer in answers:
        lease = ask(campaign, who)
        campaign.tell(lease, answer)
        items.append(lease.item)
    return items


class TestWords:
    """A reviewer's last word on an item, a confirmed dispute, a known label."""

    def test_a_word_decides_costs_nothing_and_can_be_replaced_and_taken_back(self) -> None:
        campaign = pets()
        say(campaign, DOG)
        reviewer = campaign.by("Rae", "a wolf")
        assert reviewer.adjudicate(0, FOX).why == "a wolf"
        assert (campaign.final()[0], campaign.spent) == (FOX, 1)
        reviewer.adjudicate(0, CANNOT_TELL)
        assert campaign.status(0) == "unclear"
        reviewer.adjudicate(0, NONE_OF_THESE)
        assert campaign.status(0) == "outside"
        assert [ask(campaign, "Bo").item for _ in range(2)] == [1, 2]
        reviewer.retract(0)
        assert (campaign.status(0), campaign.final()[0]) == ("unsettled", CAT)
        assert ask(campaign, "Cy").item == 0

    def test_an_answer_under_way_counts_and_is_paid_but_the_word_holds(self) -> None:
        campaign = pets()
        lease = ask(campaign, "Ada")
        campaign.by("Rae").adjudicate(0, FOX)
        assert campaign.tell(lease, DOG).verdict == FOX
        assert (campaign.spent, campaign.final()[0]) == (1, FOX)

    def test_a_confirmed_dispute_stays_disputed(self) -> None:
        campaign = pets(terms=Terms(10.0, panel=2))
        say(campaign, DOG)
        say(campaign, FOX, who="Bo")
        campaign.by("Rae").confirm(0)
        campaign.undo("Ada")
        assert campaign.status(0) == "disputed"
        campaign.by("Rae").retract(0)
        assert campaign.status(0) == "unsettled"

    def test_only_a_dispute_is_confirmed(self) -> None:
        with pytest.raises(NotAllowed, match="confirm: a disputed item was needed, but item 1 is none; adjudicate it"):
            pets().by("Rae").confirm(1)

    def test_only_a_word_is_taken_back(self) -> None:
        with pytest.raises(NotAllowed, match="retract: a reviewer's word was needed, but nobody spoke of item 1"):
            pets().by("Rae").retract(1)

    def test_gold_is_final(self) -> None:
        campaign = pets()
        campaign.by("Max").know(0, DOG)
        assert (campaign.final()[0], ask(campaign, "Ada").item) == (DOG, 1)
        with pytest.raises(NotAllowed, match="adjudicate: the label of item 0 is known, but a word on it came"):
            campaign.by("Rae").adjudicate(0, CAT)
        campaign.by("Max").know(0, FOX)
        assert campaign.final()[0] == FOX
        with pytest.raises(BadInput, match="gold: a class was needed for item 1, but -1 came; adjudicate it instead"):
            campaign.by("Max").know(1, CANNOT_TELL)

    def test_items_are_numbers(self) -> None:
        with pytest.raises(BadInput, match="item: a number from 0 to 2 was needed, but 3 came; look at the ids"):
            pets().by("Rae").adjudicate(3, CAT)


class TestMixed:
    """Gold items and repeats among what people are asked: paid, never votes, never shown as such."""

    def test_gold_costs_one_and_is_no_vote(self) -> None:
        campaign = pets(budget=3)
        campaign.by("Max").know(2, CAT)
        campaign.by("Max").mix(gold=1.0)
        lease = ask(campaign, "Ada")
        assert (lease.item, lease.purpose) == (2, "gold")
        told = campaign.tell(lease, DOG)
        assert isinstance(told, Checked)
        assert (told.verdict, campaign.spent, campaign.labels().counts[2].tolist()) == (CAT, 1, [1, 0, 0])
        assert ask(campaign, "Ada").purpose == "label"
        assert ask(campaign, None).purpose == "label"

    def test_a_repeat_is_of_what_somebody_answered_before(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("relook.checking.APART", 1)
        campaign = pets()
        campaign.by("Max").mix(repeat=1.0)
        say(campaign, DOG)
        assert say(campaign, DOG) == [1]
        lease = ask(campaign, "Ada")
        assert (lease.item, lease.purpose) == (0, "repeat")
        campaign.tell(lease, CAT)
        assert (campaign.spent, campaign.labels().counts[0].tolist()) == (3, [1, 1, 0])
        [undone] = campaign.undo("Ada")
        assert (undone.lease, undone.verdict, campaign.spent) == (3, -1, 2)
        assert ask(campaign, "Ada").purpose == "repeat"

    def test_a_late_check_is_kept_and_costs_nothing(self) -> None:
        campaign = pets()
        campaign.by("Max").know(2, CAT)
        campaign.by("Max").mix(gold=1.0)
        lease = ask(campaign, "Ada")
        told = campaign.tell(lease, DOG, 10.0)
        assert isinstance(told, Checked)
        assert (told.counted, campaign.spent) == (False, 0)
        assert campaign.tell(lease, DOG, 11.0) == told

    def test_shares_are_kept_in_the_long_run(self) -> None:
        given = Labels(np.zeros(3_000, int), 2)
        campaign = Campaign(given, Policy("none", lambda rows: rows.items * -1.0), budget=9_999)
        manager = campaign.by("Max")
        for item in range(1_000):
            manager.know(item, 0)
        manager.mix(gold=0.2, repeat=0.1)
        purposes = []
        for _ in range(1_500):
            lease = ask(campaign, "Ada")
            purposes.append(lease.purpose)
            campaign.tell(lease, 0)
        assert abs(purposes.count("gold") / 1_500 - 0.2) < 0.04
        assert abs(purposes.count("repeat") / 1_500 - 0.1) < 0.04
        check_history(campaign.events)

    def test_shares_are_shares(self) -> None:
        with pytest.raises(BadInput, match=r"mix: shares of at most 1 together were needed, but 0\.7 and 0\.4 came"):
            pets().by("Max").mix(gold=0.7, repeat=0.4)


class TestDraws:
    """A random check goes before the queue, also of what is settled, and its answers are votes."""

    def test_drawn_items_come_first_once_each(self) -> None:
        campaign = pets(settle="one")
        say(campaign, DOG)
        campaign.by("Max").draw([2, 0], [0.5, 0.5])
        leases = [ask(campaign, "Bo"), ask(campaign, "Bo"), ask(campaign, "Bo")]
        assert [(lease.item, lease.purpose) for lease in leases] == [(2, "draw"), (0, "draw"), (1, "label")]
        assert campaign.tell(leases[1], DOG).verdict == DOG
        assert campaign.ledger.awaited.keys() == {2}
        campaign.undo("Bo")
        assert campaign.ledger.awaited.keys() == {0, 2}

    @pytest.mark.parametrize(
        ("items", "chances", "message"),
        [
            ([1, 1], [0.5, 0.5], "draw: items that differ and a chance each were needed, but 2 and 2 came"),
            ([1], [0.5, 0.5], "draw: items that differ and a chance each were needed, but 1 and 2 came"),
            ([], [], "draw: items that differ and a chance each were needed, but 0 and 0 came"),
            ([1], [0.0], r"draw: chances above 0 up to 1 were needed, but 0\.0 to 0\.0 came; say each"),
        ],
    )
    def test_what_is_no_draw(self, items: list[int], chances: list[float], message: str) -> None:
        with pytest.raises(BadInput, match=message):
            pets().by("Max").draw(items, chances)

    def test_gold_is_not_drawn(self) -> None:
        campaign = pets()
        campaign.by("Max").know(2, CAT)
        with pytest.raises(NotAllowed, match="draw: item 2 is gold or came after the ranking, but was drawn"):
            campaign.by("Max").draw([2], [0.5])


class TestAgreements:
    """Budget, rule, panel, guideline: what holds from here on."""

    def test_a_budget_below_what_is_spent_and_reserved_is_refused_with_both(self) -> None:
        campaign = pets(budget=5)
        say(campaign, DOG, DOG)
        ask(campaign, "Ada")
        with pytest.raises(
            NotAllowed, match="budget: 2 answers are spent and 1 are being given, but 2 came; set 3 or more"
        ):
            campaign.by("Max").budget(2)
        campaign.by("Max").budget(3, hours=1.5)
        assert (campaign.budget, campaign.ledger.hours, campaign.ask("Bo")) == (3, 1.5, None)
        campaign.by("Max").budget(4)
        assert campaign.ask("Bo") is not None

    def test_another_rule_settles_and_unsettles(self) -> None:
        campaign = pets()
        say(campaign, DOG, CAT)
        stop, weight = named("one")
        policy = Policy("one", margin, stop, given_weight=weight)
        assert campaign.by("Max").change(policy, panel=4).verdicts == [(0, DOG), (1, CAT)]
        assert (campaign.final().tolist(), campaign.ledger.panel) == ([DOG, CAT, CAT], 4)
        stop, weight = named("people:2")
        back = Policy("two", margin, stop, given_weight=weight)
        assert campaign.by("Max").change(back, panel=None).verdicts == [(0, -1), (1, -1)]
        again = Campaign.replay(campaign.events, campaign.ledger.given, back, rankings={3: PETS})
        assert facts(again) == facts(campaign)

    def test_a_panel_has_somebody(self) -> None:
        campaign = pets()
        with pytest.raises(BadInput, match="change: a panel of one person at least was needed, but 0 came"):
            campaign.by("Max").change(campaign.policy, panel=0)

    def test_a_guideline_has_a_version_and_a_hash(self) -> None:
        campaign = pets()
        campaign.by("Max").guide("Choose the animal.")
        told = campaign.by("Max").guide("Choose the largest animal.")
        assert (told.version, told.hash) == (2, hash_of("Choose the largest animal."))


class TestPeople:
    """Who takes part, rests, and takes part no longer."""

    def test_whoever_is_paused_is_not_asked_but_may_answer(self) -> None:
        campaign = pets()
        lease = ask(campaign, "Ada")
        campaign.by("Max").pause("Ada")
        assert campaign.ask("Ada") is None
        assert campaign.tell(lease, DOG).counted
        assert campaign.ask("Bo") is not None
        campaign.by("Max").pause()
        assert campaign.ask("Cy") is None
        with pytest.raises(NotAllowed, match="pause: the campaign was paused already, but again it came; resume first"):
            campaign.by("Max").pause()
        campaign.by("Max").resume()
        campaign.by("Max").resume("Ada")
        assert campaign.ask("Ada") is not None
        with pytest.raises(NotAllowed, match="resume: Ada is not paused, but was to be resumed"):
            campaign.by("Max").resume("Ada")

    def test_answers_of_whoever_is_removed_stand_or_are_void(self) -> None:
        campaign = pets()
        say(campaign, DOG, DOG)
        say(campaign, DOG, who="Bo")
        lease = ask(campaign, "Bo")
        removed = campaign.by("Max").remove("Bo", "void")
        assert (removed.verdicts, campaign.status(0), campaign.spent) == ([(0, -1)], "unsettled", 3)
        assert isinstance(campaign.events[-2], Expired)
        assert campaign.tell(lease, DOG).counted is False
        with pytest.raises(NotAllowed, match="ask: Bo was removed from this campaign, but asked for an item; let them"):
            campaign.ask("Bo")
        with pytest.raises(NotAllowed, match="remove: somebody who takes part was needed, but Bo does not; check"):
            campaign.by("Max").remove("Bo")
        campaign.by("Max").join("Bo", "annotator")
        assert ask(campaign, "Bo").item == 0
        campaign.by("Max").remove("Ada")
        assert campaign.labels().counts[0].tolist() == [1, 1, 0]

    def asked_after_a_removal(self) -> int:
        campaign = pets()
        say(campaign, DOG)
        say(campaign, DOG, who="Bo")
        campaign.by("Max").remove("Bo", "void")
        return ask(campaign, "Cy").item

    def test_what_only_the_removed_had_settled_is_asked_about_again(self) -> None:
        assert self.asked_after_a_removal() == 0

    def test_it_would_be_seen_if_it_were_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Agenda, "_left", lambda *_: None)
        assert self.asked_after_a_removal() != 0

    def test_what_becomes_of_answers_is_said(self) -> None:
        campaign = pets()
        say(campaign, DOG)
        with pytest.raises(BadInput, match="remove: stand or void was needed, but 'gone' came; say what becomes of"):
            campaign.by("Max").remove("Ada", "gone")  # type: ignore[arg-type]

    def test_roles_are_three(self) -> None:
        with pytest.raises(BadInput, match="join: annotator, reviewer or manager was needed, but 'king' came"):
            pets().by("Max").join("Bo", "king")  # type: ignore[arg-type]


class TestItems:
    """Items that come later, and items that go."""

    def test_added_items_are_asked_about_from_the_next_ranking_on(self) -> None:
        campaign = pets(terms=Terms(10.0, ids=ids_fingerprint(["a", "b", "c"])))
        campaign.by("Max").add(Labels(np.array([FOX]), 3), ["d"])
        assert [ask(campaign, "Ada").item for _ in range(3)] == [0, 1, 2]
        assert campaign.ask("Ada") is None
        with pytest.raises(
            NotAllowed, match="change: a ranking of all 4 items was needed first, but the last one knows 3"
        ):
            campaign.by("Max").change(campaign.policy, panel=None)
        more = Posteriors(np.concatenate([PETS.values[0], [[0.2, 0.2, 0.6]]]))
        campaign.rank(more)
        assert ask(campaign, "Ada").item == 3
        events = from_lines(to_lines(campaign.events))
        for given in (Labels(np.array([CAT] * 3), 3), campaign.ledger.given):
            again = Campaign.replay(events, given, campaign.policy, rankings={2: more}, ids=["a", "b", "c", "d"])
            assert facts(again) == facts(campaign)
        for ids, low, high in ((["a", "b", "d", "d"], 0, 2), (["a", "b", "c", "e"], 3, 3)):
            with pytest.raises(BadLog, match=f"log: the ids of items {low} to {high} were needed as it knows them"):
                Campaign.replay(events, campaign.ledger.given, campaign.policy, rankings={2: more}, ids=ids)

    def test_other_classes_need_another_campaign(self) -> None:
        with pytest.raises(BadInput, match="add: given labels of 3 classes in the form of the first ones were needed"):
            pets().by("Max").add(Labels(np.array([0]), 2))

    def test_withdrawn_items_are_asked_about_no_more(self) -> None:
        campaign = pets()
        lease = ask(campaign, "Ada")
        campaign.by("Max").withdraw([0])
        assert campaign.reserved == 0
        assert campaign.tell(lease, DOG).counted is False
        assert [ask(campaign, "Ada").item for _ in range(2)] == [1, 2]
        assert campaign.ask("Bo") is None
        with pytest.raises(
            NotAllowed, match="item 0: one of the campaign was needed, but it was withdrawn; add it anew"
        ):
            campaign.by("Max").adjudicate(0, CAT)
        with pytest.raises(BadInput, match="withdraw: items that differ were needed, but 2 came, some twice"):
            campaign.by("Max").withdraw([1, 1])


class TestRestart:
    """A restart, a close, and another beginning."""

    def test_a_restart_gives_every_open_lease_a_fresh_term(self) -> None:
        campaign = pets()
        lease = ask(campaign, "Ada", 1.0)
        campaign.renew(500.0)
        assert campaign.tell(lease, DOG, 509.0).counted
        assert campaign.events[-2].until == 510.0  # type: ignore[union-attr]
        with pytest.raises(BadInput, match=r"time: it must not go back, but 3\.0 came after 509\.0"):
            campaign.renew(3.0)

    def test_a_closed_campaign_can_be_reopened(self) -> None:
        campaign = pets()
        campaign.by("Max", "enough").close()
        assert campaign.ask("Ada") is None
        with pytest.raises(NotAllowed, match="adjudicate: an open campaign was needed, but this one is closed"):
            campaign.by("Rae").adjudicate(0, CAT)
        campaign.by("Max").reopen()
        assert ask(campaign, "Ada").item == 0
        with pytest.raises(NotAllowed, match="reopen: a closed campaign was needed, but this one runs"):
            campaign.by("Max").reopen()

    def test_a_set_is_for_training_or_for_evaluation(self) -> None:
        with pytest.raises(BadInput, match="purpose: train or evaluation was needed, but 'fun' came; say what the set"):
            Terms(purpose="fun")  # type: ignore[arg-type]

    def test_a_store_takes_the_events_and_the_campaign_goes_on(self) -> None:
        campaign = pets()
        say(campaign, DOG)
        assert len(campaign.drain()) == 4
        assert campaign.drain() == []
        assert say(campaign, DOG) == [1]


def test_a_ranking_keeps_what_made_its_posteriors() -> None:
    campaign = pets()
    told = campaign.rank(Posteriors(PETS.values, about={"selector": "knn", "answers": 12}))
    assert told.about == {"selector": "knn", "answers": 12}
    assert from_lines(to_lines([told])) == [told]


def test_a_start_keeps_what_was_agreed() -> None:
    terms = Terms(names=("cat", "dog", "fox"), purpose="evaluation", continues="ab12", hours=2.5, by="Max")
    started = pets(terms=terms).ledger.started
    assert (started.names, started.purpose, started.continues) == (("cat", "dog", "fox"), "evaluation", "ab12")
    assert (started.hours, started.by) == (2.5, "Max")
