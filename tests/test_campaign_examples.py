"""How a campaign behaves, told by small examples, and what it forbids."""

from typing import Any

import numpy as np
import pytest

from relook.campaign import Campaign
from relook.errors import BadInput, NotAllowed
from relook.events import (
    CANNOT_TELL,
    DISPUTED,
    NONE_OF_THESE,
    OUTSIDE,
    UNCLEAR,
    UNSETTLED,
    Answer,
    Closed,
    Expired,
    Lease,
    Ranking,
    Started,
    to_lines,
)
from relook.rules import Policy, Terms
from relook.scores import ValuePerAnswer, margin, phi
from relook.stopping import named
from relook.types import Labels, Posteriors, Rows

CAT, DOG, FOX = range(3)
PETS = Posteriors(np.array([[0.1, 0.8, 0.1], [0.3, 0.6, 0.1], [0.9, 0.05, 0.05]]))


def pets(rule: str = "paper", **parts: Any) -> Campaign:
    """Three items, all called cats; the model finds a dog likelier for the first two, and for the first one most."""
    stop, weight = named(rule)
    whole: dict[str, Any] = {
        "given": [CAT, CAT, CAT],
        "budget": 99,
        "returns": False,
        "weight": weight,
        "batch": 1,
    } | parts
    policy = Policy("pets", whole.get("score", margin), stop, whole["returns"], whole["weight"], whole["batch"])
    given_labels = Labels(np.array(whole["given"]), 3)
    return Campaign(given_labels, policy, budget=whole["budget"], posteriors=PETS, terms=whole.get("terms", Terms()))


def first_item(rows: Rows) -> Any:
    return -1.0 * rows.items


def ask(campaign: Campaign, who: str | None = None, now: float = 0.0) -> Lease:
    lease = campaign.ask(who, now)
    assert lease is not None
    return lease


def answer(campaign: Campaign, *answers: int) -> list[tuple[int, str]]:
    """Answer what is asked, each time as somebody new; return the items and how they stand then."""
    told = []
    for each in answers:
        lease = ask(campaign)
        campaign.tell(lease, each)
        told.append((lease.item, campaign.status(lease.item)))
    return told


class TestRules:
    """When an item is settled, by each rule."""

    def test_paper_somebody_who_agrees_settles_the_given_label(self) -> None:
        assert answer(pets(), CAT) == [(0, "settled")]

    def test_paper_a_tie_goes_on_until_one_class_is_ahead(self) -> None:
        campaign = pets()
        assert answer(campaign, DOG, FOX, FOX) == [(0, "unsettled"), (0, "unsettled"), (0, "settled")]
        assert campaign.final().tolist() == [FOX, CAT, CAT]

    def test_one_takes_the_first_answer_whatever_the_given_label_says(self) -> None:
        campaign = pets("one")
        assert answer(campaign, DOG, CAT) == [(0, "settled"), (1, "settled")]
        assert campaign.final().tolist() == [DOG, CAT, CAT]

    def test_people_two_need_two_people_who_agree_and_the_given_label_is_none(self) -> None:
        campaign = pets("people:2")
        assert answer(campaign, CAT, DOG, DOG) == [(0, "unsettled"), (0, "unsettled"), (0, "settled")]
        assert campaign.final()[0] == DOG

    def test_margin_two_needs_a_lead_of_two_over_the_given_label(self) -> None:
        assert answer(pets("margin:2"), DOG, DOG, DOG)[-1] == (0, "settled")
        assert answer(pets("margin:2"), CAT) == [(0, "settled")]

    def test_confidence_settles_as_soon_as_model_and_people_are_sure(self) -> None:
        """The model thought of a dog, so one answer is enough for a dog, and not for a cat."""
        assert answer(pets("confidence:.95"), DOG) == [(0, "settled")]
        assert answer(pets("confidence:.95"), CAT) == [(0, "unsettled")]
        assert pets("confidence:.95").final().tolist() == [CAT, CAT, CAT]

    def test_nothing_is_settled_before_somebody_is_asked(self) -> None:
        assert [pets("confidence:.5").verdict(item) for item in range(3)] == [UNSETTLED] * 3
        assert answer(pets(given=[[5, 0, 0]] * 3), DOG) == [(0, "settled")]


class TestGivenLabels:
    """What the given label counts for."""

    def test_without_weight_only_people_count(self) -> None:
        campaign = pets(weight=0.0)
        assert answer(campaign, DOG, DOG) == [(0, "unsettled"), (0, "settled")]
        assert campaign.final().tolist() == [DOG, CAT, CAT]

    def test_with_weight_two_it_takes_three_to_overrule(self) -> None:
        campaign = pets(weight=2.0)
        assert answer(campaign, DOG) == [(0, "settled")]
        assert campaign.final()[0] == CAT
        assert answer(pets("margin:1", weight=2.0), DOG, DOG, DOG) == [(0, "settled"), (1, "settled"), (2, "settled")]

    def test_half_a_vote_breaks_no_tie_and_makes_none(self) -> None:
        assert answer(pets(weight=0.5), DOG) == [(0, "settled")]

    def test_several_given_votes_count_as_many(self) -> None:
        campaign = pets(given=[[1, 1, 0], [3, 0, 0], [0, 0, 0]])
        told = answer(campaign, CAT, CAT, DOG)
        assert told == [(2, "unsettled"), (2, "settled"), (0, "settled")]
        assert campaign.final().tolist() == [DOG, CAT, CAT]

    def test_an_unlabelled_item_needs_two_who_agree(self) -> None:
        """Nobody said anything before: one answer is no majority by the paper's rule."""
        campaign = pets(given=[-1, CAT, CAT])
        assert answer(campaign, DOG, FOX, DOG) == [(0, "unsettled"), (0, "unsettled"), (0, "settled")]
        assert campaign.final().tolist() == [DOG, CAT, CAT]
        assert pets(given=[-1, CAT, CAT]).final().tolist() == [-1, CAT, CAT]


class TestBudget:
    """Answers are paid for when they come; a place is kept for each that somebody is about to give."""

    def test_a_budget_that_ends_inside_a_tie_leaves_the_given_label(self) -> None:
        campaign = pets(budget=1)
        assert answer(campaign, DOG) == [(0, "unsettled")]
        assert campaign.ask() is None
        assert (campaign.spent, campaign.verdict(0), campaign.status(0)) == (1, UNSETTLED, "unsettled")
        assert campaign.final().tolist() == [CAT, CAT, CAT]
        assert campaign.labels().counts.tolist()[0] == [1, 1, 0]

    def test_nothing_is_bought_with_nothing(self) -> None:
        campaign = pets(budget=0)
        assert campaign.ask() is None
        assert [type(event) for event in campaign.events] == [Started, Ranking]

    def test_more_answers_than_useful_are_left_over(self) -> None:
        campaign = pets(budget=99)
        answer(campaign, CAT, CAT, CAT)
        assert campaign.ask() is None
        assert (campaign.spent, campaign.budget) == (3, 99)

    def test_what_people_hold_is_reserved(self) -> None:
        campaign = pets(budget=2)
        one, two = ask(campaign, "Ada"), ask(campaign, "Bo")
        assert (campaign.reserved, campaign.ask("Cy")) == (2, None)
        campaign.tell(one, CAT)
        assert (campaign.spent, campaign.reserved, campaign.ask("Cy")) == (1, 1, None)
        campaign.skip(two)
        assert (campaign.spent, campaign.reserved, ask(campaign, "Cy").item) == (1, 0, two.item)

    def test_what_is_begun_is_finished_first(self) -> None:
        campaign = pets()
        one, two = ask(campaign, "Ada"), ask(campaign, "Bo")
        assert (one.item, two.item) == (0, 1)
        campaign.tell(two, DOG)
        assert ask(campaign, "Cy").item == 1


class TestAnswersThatAreNoClass:
    """Two who cannot tell make an item unclear, two who say none of these put it outside; each answer costs one."""

    def test_unclear(self) -> None:
        campaign = pets()
        assert answer(campaign, CANNOT_TELL, CANNOT_TELL) == [(0, "unsettled"), (0, "unclear")]
        assert (campaign.spent, campaign.verdict(0), campaign.final()[0]) == (2, UNCLEAR, CAT)
        assert campaign.labels().counts[0].tolist() == [1, 0, 0]
        assert ask(campaign).item == 1

    def test_outside(self) -> None:
        campaign = pets("people:2")
        told = answer(campaign, NONE_OF_THESE, CANNOT_TELL, DOG, NONE_OF_THESE)
        assert told[-1] == (0, "outside")
        assert campaign.verdict(0) == OUTSIDE

    def test_a_class_that_people_agree_on_goes_before(self) -> None:
        assert answer(pets("people:2"), CANNOT_TELL, DOG, DOG)[-1] == (0, "settled")

    def test_one_who_cannot_tell_settles_nothing_and_unsettles_nothing(self) -> None:
        """Three given votes agree already, but nobody who was asked has named a class."""
        campaign = pets(given=[[3, 0, 0]] * 3)
        assert answer(campaign, CANNOT_TELL, CAT) == [(0, "unsettled"), (0, "settled")]


class TestPanel:
    """There may be only so many people, and nobody answers an item twice."""

    def test_when_all_have_seen_it_and_it_is_tied_it_is_disputed(self) -> None:
        campaign = pets(terms=Terms(panel=2))
        for name, label in (("Ada", DOG), ("Bo", FOX)):
            lease = ask(campaign, name)
            assert lease.item == 0
            campaign.tell(lease, label)
        assert (campaign.verdict(0), campaign.status(0), campaign.final()[0]) == (DISPUTED, "disputed", CAT)
        assert [ask(campaign, name).item for name in ("Ada", "Bo")] == [1, 2]

    def test_who_answered_is_not_asked_again_but_the_others_are(self) -> None:
        campaign = pets(terms=Terms(panel=3))
        campaign.tell(ask(campaign, "Ada"), DOG)
        assert [ask(campaign, name).item for name in ("Ada", "Bo", "Ada")] == [1, 0, 2]
        assert campaign.ask("Ada") is None

    def test_an_item_that_all_have_seen_does_not_return(self) -> None:
        campaign = pets(terms=Terms(panel=1), returns=True)
        told = answer(campaign, CAT, CAT, CAT)
        assert sorted(item for item, _ in told) == [0, 1, 2]
        assert campaign.ask() is None

    def test_an_undone_answer_makes_room_again(self) -> None:
        campaign = pets(terms=Terms(panel=1))
        campaign.tell(ask(campaign, "Ada"), DOG)
        assert campaign.status(0) == "disputed"
        campaign.undo("Ada")
        assert (campaign.status(0), ask(campaign, "Ada").item) == ("unsettled", 0)


class TestReturns:
    """A settled item may come back where doubt remains, and is judged anew."""

    def test_an_item_settled_against_the_model_returns_before_a_sound_one(self) -> None:
        """Somebody agrees with the given label, and the model still sees a dog: that is worth another answer."""
        campaign = pets(returns=True, score=ValuePerAnswer())
        assert answer(campaign, CAT) == [(0, "settled")]
        items = [item for item, _ in answer(campaign, CAT, CAT)]
        assert items == [1, 0]

    def test_a_settled_item_that_ends_in_a_tie_keeps_the_given_label(self) -> None:
        campaign = pets("one", returns=True, budget=2, score=first_item, given=[DOG, DOG, DOG])
        assert answer(campaign, FOX) == [(0, "settled")]
        assert campaign.final().tolist() == [FOX, DOG, DOG]
        assert answer(campaign, CAT) == [(0, "unsettled")]
        assert campaign.final().tolist() == [DOG, DOG, DOG]

    def test_in_one_pass_it_does_not(self) -> None:
        campaign = pets(returns=False)
        assert sorted(item for item, _ in answer(campaign, CAT, CAT, CAT)) == [0, 1, 2]
        assert campaign.ask() is None

    def test_with_a_batch_an_item_waits_for_its_new_score_but_nobody_is_sent_away(self) -> None:
        campaign = pets(returns=True, batch=50)
        assert [item for item, _ in answer(campaign, CAT, CAT, CAT, CAT)] == [0, 1, 2, 0]
        assert campaign.reserved == 0


class TestSkipping:
    """Giving an item back is free; who did sees it again after everything else, the others as if nothing had been."""

    def test_last_for_one_first_for_the_others(self) -> None:
        campaign = pets()
        campaign.skip(ask(campaign, "Ada"))
        assert (campaign.spent, campaign.reserved) == (0, 0)
        assert [ask(campaign, "Ada").item for _ in range(2)] == [1, 2]
        assert ask(campaign, "Bo").item == 0

    def test_several_come_back_in_the_order_they_were_given_back(self) -> None:
        campaign = pets()
        for _ in range(3):
            campaign.skip(ask(campaign, "Ada"))
        assert [ask(campaign, "Ada").item for _ in range(3)] == [0, 1, 2]

    def test_a_new_ranking_does_not_forget_it(self) -> None:
        campaign = pets()
        campaign.skip(ask(campaign, "Ada"))
        campaign.rank(PETS)
        assert ask(campaign, "Ada").item == 1


class TestUndo:
    """Who erred takes their own last answers back: they return to the budget, and the items are judged again."""

    def test_a_settled_item_reopens(self) -> None:
        campaign = pets(budget=2)
        campaign.tell(ask(campaign, "Ada"), DOG)
        campaign.tell(ask(campaign, "Bo"), DOG)
        assert (campaign.status(0), campaign.spent, campaign.ask("Cy")) == ("settled", 2, None)
        [undone] = campaign.undo("Ada")
        assert (undone.item, undone.answer, undone.verdict) == (0, DOG, UNSETTLED)
        assert (campaign.status(0), campaign.spent, ask(campaign, "Ada").item) == ("unsettled", 1, 0)

    def test_several_the_newest_first(self) -> None:
        campaign = pets()
        for _ in range(3):
            campaign.tell(ask(campaign, "Ada"), CAT)
        assert [undone.item for undone in campaign.undo("Ada", 2)] == [2, 1]
        assert campaign.spent == 1

    def test_one_s_own_alone(self) -> None:
        campaign = pets()
        campaign.tell(ask(campaign, "Ada"), CAT)
        for who, k in (("Bo", 1), ("Ada", 2), ("Ada", 0), ("Ada", -1)):
            stand = 1 if who == "Ada" else 0
            message = f"undo: {who} has {stand} answers that stand, but {k} were to be undone; undo fewer"
            with pytest.raises(NotAllowed, match=message):
                campaign.undo(who, k)
        assert campaign.spent == 1

    def test_a_late_answer_has_nothing_to_undo(self) -> None:
        campaign = pets(terms=Terms(10.0))
        campaign.tell(ask(campaign, "Ada"), CAT, 10.0)
        with pytest.raises(NotAllowed, match="Ada has 0 answers that stand"):
            campaign.undo("Ada", now=10.0)


class TestTime:
    """Time is told, never looked up; a lease ends by itself."""

    def test_a_lease_that_ends_frees_its_item_and_its_place(self) -> None:
        campaign = pets(budget=1, terms=Terms(60.0))
        lease = ask(campaign, "Ada", 100.0)
        assert (lease.until, campaign.ask("Bo", 159.9)) == (160.0, None)
        again = ask(campaign, "Bo", 160.0)
        assert (again.item, again.nth) == (lease.item, 0)
        assert campaign.events[-2] == Expired(lease.number, 160.0)

    def test_a_late_answer_is_kept_and_counts_nothing(self) -> None:
        campaign = pets("one", terms=Terms(60.0))
        lease = ask(campaign, "Ada")
        late = campaign.tell(lease, DOG, 60.0)
        assert (late.counted, campaign.spent, campaign.status(0)) == (False, 0, "unsettled")
        assert campaign.events[-1] is late
        assert ask(campaign, "Ada", 60.0).item == 0

    @pytest.mark.parametrize("now", [4.9, float("nan"), float("inf"), -1.0])
    def test_time_that_goes_back_is_refused(self, now: float) -> None:
        campaign = pets()
        lease = ask(campaign, "Ada", 5.0)
        message = f"time: it must not go back, but {now} came after 5.0; use a clock that never does"
        for call in (
            lambda: campaign.ask("Bo", now),
            lambda: campaign.tell(lease, CAT, now),
            lambda: campaign.skip(lease, now),
            lambda: campaign.undo("Ada", 1, now),
            lambda: campaign.rank(PETS, now),
            lambda: campaign.close(now),
        ):
            with pytest.raises(BadInput, match=message):
                call()
        assert len(campaign.events) == 3

    def test_a_campaign_may_start_at_any_time(self) -> None:
        campaign = pets(terms=Terms(at=1e9))
        with pytest.raises(BadInput, match="time: it must not go back"):
            campaign.ask("Ada", 0.0)
        assert ask(campaign, "Ada", 1e9).until == 1e9 + 3600


class TestTelling:
    """An answer belongs to a lease of this campaign, and is told once."""

    def test_told_twice_is_one_answer(self) -> None:
        campaign = pets()
        lease = ask(campaign, "Ada")
        assert campaign.tell(lease, DOG) == campaign.tell(lease, DOG)
        assert campaign.spent == 1

    def test_another_answer_is_refused(self) -> None:
        campaign = pets()
        lease = ask(campaign, "Ada")
        campaign.tell(lease, DOG)
        with pytest.raises(NotAllowed, match="answer: lease 1 was answered with 1, but 0 came; undo that first"):
            campaign.tell(lease, CAT)

    @pytest.mark.parametrize("label", [3, -3, 1.0, None])
    def test_an_answer_that_is_none_is_refused(self, label: Any) -> None:
        campaign = pets()
        lease = ask(campaign, "Ada")
        with pytest.raises(BadInput, match=f"answer: a class from 0 to 2, -1 or -2 was needed, but {label} came"):
            campaign.tell(lease, label)
        assert (campaign.reserved, campaign.spent) == (1, 0)

    @pytest.mark.parametrize(
        "stranger",
        [Lease(7, 0, "Ada", 0, 0.0, 3600.0), Lease(1, 1, "Ada", 0, 0.0, 3600.0), Lease(1, 0, "Bo", 0, 0.0, 3600.0)],
        ids=["number", "item", "annotator"],
    )
    @pytest.mark.parametrize("when", ["open", "answered", "ended"])
    def test_a_lease_of_another_campaign_is_refused(self, stranger: Lease, when: str) -> None:
        campaign = pets()
        lease = ask(campaign, "Ada")
        if when == "answered":
            campaign.tell(lease, CAT)
        elif when == "ended":
            campaign.skip(lease)
        before = to_lines(campaign.events)
        message = f"lease {stranger.number}: a lease of this campaign was needed, but it never gave this one; ask again"
        with pytest.raises(BadInput, match=message):
            campaign.tell(stranger, CAT)
        with pytest.raises(BadInput, match=message):
            campaign.skip(stranger)
        assert to_lines(campaign.events) == before

    def test_a_lease_that_came_over_the_network_is_as_good(self) -> None:
        campaign = pets()
        lease = ask(campaign, "Ada")
        copy = Lease(*(getattr(lease, name) for name in lease.__struct_fields__))
        assert campaign.tell(copy, CAT).counted

    def test_an_item_is_given_back_once(self) -> None:
        campaign = pets()
        lease = ask(campaign, "Ada")
        campaign.skip(lease)
        with pytest.raises(
            NotAllowed, match="lease 1: an open lease was needed, but it has ended; ask for another item"
        ):
            campaign.skip(lease)

    def test_somebody_without_a_name_is_somebody_new_each_time(self) -> None:
        campaign = pets("people:2")
        assert [item for item, _ in answer(campaign, DOG, DOG)] == [0, 0]

    def test_a_name_is_text(self) -> None:
        with pytest.raises(BadInput, match="annotator: a name was needed, but 7 came"):
            pets().ask(7)  # type: ignore[arg-type]


class TestClosing:
    """At the end open leases expire; afterwards answers are kept and change nothing."""

    def test_open_leases_expire(self) -> None:
        campaign = pets()
        lease = ask(campaign, "Ada", 1.0)
        campaign.close(2.0)
        assert campaign.events[-2:] == [Expired(lease.number, 2.0), Closed(2.0)]
        assert (campaign.reserved, campaign.ask("Ada", 3.0)) == (0, None)
        late = campaign.tell(lease, DOG, 4.0)
        assert isinstance(late, Answer)
        assert (late.counted, campaign.spent) == (False, 0)

    def test_nothing_else_is_done(self) -> None:
        campaign = pets()
        campaign.tell(ask(campaign, "Ada"), CAT)
        campaign.close()
        before = list(campaign.events)
        for name, call in (
            ("undo", lambda: campaign.undo("Ada")),
            ("rank", lambda: campaign.rank(PETS)),
            ("close", lambda: campaign.close()),
        ):
            message = f"{name}: an open campaign was needed, but this one is closed; start another"
            with pytest.raises(NotAllowed, match=message):
                call()
        assert campaign.events == before


class TestRanking:
    """New posteriors order all items anew; those that do not fit change nothing."""

    def test_another_model_another_order(self) -> None:
        campaign = pets()
        assert ask(campaign).item == 0
        ranking = campaign.rank(Posteriors(PETS.values[0][::-1], in_sample=True))
        assert (ranking.number, ranking.in_sample) == (2, True)
        assert ask(campaign).item == 2

    @pytest.mark.parametrize("shape", [(2, 3), (3, 2)])
    def test_posteriors_of_another_data_set_change_nothing(self, shape: tuple[int, int]) -> None:
        campaign = pets()
        other = Posteriors(np.full(shape, 1 / shape[1]))
        with pytest.raises(BadInput, match="are the probabilities those of another data set"):
            campaign.rank(other)
        with pytest.raises(BadInput, match="are the probabilities those of another data set"):
            Campaign(campaign.ledger.given, campaign.policy, budget=1, posteriors=other)
        assert len(campaign.events) == 2
        assert ask(campaign).item == 0

    def test_a_rule_that_fails_on_a_changed_item_names_it(self) -> None:
        """It is fine before the first answer, and divides by zero after it; the answer is kept."""

        def fragile(rows: Any) -> Any:
            return np.where(rows.answers.sum(1) > 0, np.nan, rows.items)

        campaign = pets(score=fragile, returns=True)
        lease = ask(campaign, "Ada")
        assert lease.item == 2
        with pytest.raises(BadInput, match="score: numbers were needed, but item 2 got NaN"):
            campaign.tell(lease, CAT)
        assert campaign.spent == 1

    def test_a_class_that_nobody_has(self) -> None:
        campaign = pets(score=phi)
        assert answer(campaign, FOX, FOX)[-1] == (0, "settled")
        assert campaign.final().tolist() == [FOX, CAT, CAT]
