"""The facts of a campaign: counted from the log, and refused where a log contradicts itself."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from relook.campaign import Campaign
from relook.errors import BadInput, BadLog
from relook.events import Answer, Closed, Event, Expired, Lease, Ranking, Skipped, Started, Undone
from relook.origins import posteriors_of
from relook.rules import Policy, Terms
from relook.scores import margin
from relook.stopping import Agree
from relook.types import Labels, Posteriors

GIVEN = Labels(np.array([0, 1, 0]), 2)
POSTERIORS = Posteriors(np.array([[0.1, 0.9], [0.3, 0.7], [0.4, 0.6]]))
POLICY = Policy("margin", margin)


def replay(events: Sequence[Event], **parts: Any) -> Campaign:
    whole: dict[str, Any] = {"given": GIVEN, "policy": POLICY, "rankings": {1: POSTERIORS, 2: POSTERIORS}} | parts
    return Campaign.replay(events, whole["given"], whole["policy"], rankings=whole["rankings"])


def some_log() -> list[Event]:
    """Two people, a tie, an undone answer, an item given back, a lease that expires, a late answer, another ranking."""
    campaign = Campaign(GIVEN, POLICY, budget=4, posteriors=POSTERIORS, terms=Terms(10.0))
    first = campaign.ask("Ada", 1.0)
    second = campaign.ask("Bo", 1.0)
    assert first is not None
    assert second is not None
    campaign.tell(first, 1, 2.0)
    campaign.undo("Ada", now=2.5)
    campaign.skip(second, 3.0)
    third = campaign.ask("Ada", 4.0)
    assert third is not None
    campaign.tell(third, 1, 5.0)
    fourth = campaign.ask("Bo", 6.0)
    assert fourth is not None
    campaign.tell(fourth, 1, 16.0)
    campaign.rank(POSTERIORS, 17.0)
    fifth = campaign.ask("Bo", 18.0)
    assert fifth is not None
    campaign.tell(fifth, 1, 19.0)
    campaign.close(20.0)
    return campaign.events


LOG = some_log()
PLACES = [f"{place} {type(event).__name__}" for place, event in enumerate(LOG)]


def test_the_log_is_as_described() -> None:
    kinds = (Started, Ranking, Lease, Lease, Answer, Undone, Skipped, Lease, Answer, Lease, Expired, Answer, Ranking)
    assert [type(event) for event in LOG] == [*kinds, Lease, Answer, Closed]
    campaign = replay(LOG)
    assert (campaign.spent, campaign.reserved, campaign.verdict(0)) == (2, 0, 1)
    assert campaign.final().tolist() == [1, 1, 0]


ONE_LINE_GONE: dict[str, str | Callable[[Campaign], bool]] = {
    "0 Started": "a campaign's start was needed first, but Ranking came; was the log cut",
    "1 Ranking": "contradicts what came before it",
    "2 Lease": "contradicts what came before it",
    "3 Lease": "lease 2 must be open to end, but it is not; is a line missing",
    "4 Answer": "contradicts what came before it",
    "5 Undone": "contradicts what came before it",
    "6 Skipped": "leases must end when their time is over, but Answer came; is a line missing",
    "7 Lease": "contradicts what came before it",
    "8 Answer": "contradicts what came before it",
    "9 Lease": "must be open to end",
    "10 Expired": "leases must end when their time is over, but Answer came",
    # A late answer costs and counts nothing: without its line all else stands.
    "11 Answer": lambda campaign: campaign.spent == 2 and campaign.verdict(0) == 1,
    "12 Ranking": "contradicts what came before it",
    "13 Lease": "contradicts what came before it",
    "14 Answer": "leases must end before a campaign closes, but 1 are open",
    # Nobody closed the campaign: it goes on.
    "15 Closed": lambda campaign: campaign.ask("Cy", 21.0) is not None,
}


@pytest.mark.parametrize("place", range(len(LOG)), ids=PLACES)
def test_one_line_gone(place: int) -> None:
    """A log without a line is refused, but for the few lines without which a sound campaign is left."""
    outcome = ONE_LINE_GONE[PLACES[place]]
    rest = LOG[:place] + LOG[place + 1 :]
    if isinstance(outcome, str):
        with pytest.raises(BadLog, match=outcome):
            replay(rest)
    else:
        assert outcome(replay(rest))


@pytest.mark.parametrize("place", range(len(LOG) - 1), ids=PLACES[:-1])
def test_two_neighbours_exchanged(place: int) -> None:
    """Neighbours that come in the other order are refused: time, numbers or facts contradict it."""
    swapped = [*LOG[:place], LOG[place + 1], LOG[place], *LOG[place + 2 :]]
    with pytest.raises(BadLog, match="log: "):
        replay(swapped)


@pytest.mark.parametrize("end", range(2, len(LOG)))
def test_a_log_that_was_cut_goes_on(end: int) -> None:
    """A program that was killed leaves a beginning of its log: the campaign goes on from there."""
    campaign = replay(LOG[:end])
    assert campaign.events == LOG[:end]
    now = LOG[end - 1].at + 100
    for _ in range(10):
        lease = campaign.ask("Cy", now)
        if lease is not None:
            campaign.tell(lease, 0, now)
    assert campaign.reserved == 0
    assert campaign.spent <= campaign.budget


@pytest.mark.parametrize(
    ("place", "field", "value"),
    [
        (2, "number", 2),
        (2, "item", -1),
        (2, "item", 3),
        (2, "nth", 1),
        (2, "until", 12.0),
        (4, "lease", 3),
        (4, "item", 1),
        (4, "annotator", "Bo"),
        (4, "answer", 2),
        (4, "answer", -3),
        (4, "ranking", 2),
        (4, "verdict", 2),
        (4, "verdict", -5),
        (5, "lease", 2),
        (5, "item", 1),
        (5, "answer", 0),
        (5, "verdict", 7),
        (11, "item", 1),
        (11, "annotator", None),
        (11, "answer", 5),
        (11, "verdict", 0),
        (11, "counted", True),
    ],
)
def test_a_line_that_was_edited(place: int, field: str, value: Any) -> None:
    edited = [*LOG[:place], msgspec.structs.replace(LOG[place], **{field: value}), *LOG[place + 1 :]]
    with pytest.raises(BadLog, match="contradicts what came before it; was a line edited, moved or taken out"):
        replay(edited)


def test_more_leases_than_the_budget_holds_are_refused() -> None:
    small = msgspec.structs.replace(LOG[0], budget=1)
    with pytest.raises(BadLog, match="log: lease 2 cannot follow lease 1 with 0 answers left"):
        replay([small, *LOG[1:]])


def test_an_item_that_somebody_holds_or_answered_is_not_leased() -> None:
    again = Lease(2, 0, "Bo", 0, 1.0, 11.0)
    with pytest.raises(BadLog, match="log: lease 2 needs item 0 to be free for Bo, but it is not"):
        replay([*LOG[:3], again])
    told = [*LOG[:5], Lease(3, 0, "Ada", 1, 3.0, 13.0)]
    told[3] = Lease(2, 1, "Bo", 0, 1.0, 11.0)
    told[4] = msgspec.structs.replace(LOG[4], verdict=-1)
    with pytest.raises(BadLog, match="log: lease 3 needs item 0 to be free for Ada, but it is not"):
        replay(told)


def test_a_settled_item_is_leased_again_only_where_it_may_return() -> None:
    settled = msgspec.structs.replace(LOG[4], verdict=1)
    events = [*LOG[:3], Lease(2, 1, "Bo", 0, 1.0, 11.0), settled, Lease(3, 0, "Cy", 1, 3.0, 13.0)]
    with pytest.raises(BadLog, match="contradicts what came before it"):
        replay(events)
    policy = Policy("margin", margin, returns=True)
    started = msgspec.structs.replace(LOG[0], policy=policy.record())
    assert replay([started, *events[1:]], policy=policy).reserved == 2


def test_time_does_not_go_back_and_a_campaign_starts_once() -> None:
    early = msgspec.structs.replace(LOG[6], at=2.0)
    with pytest.raises(BadLog, match=r"log: events must follow in time on one start, but Skipped at 2\.0 follows 2\.5"):
        replay([*LOG[:6], early])
    with pytest.raises(BadLog, match="log: events must follow in time on one start, but Started"):
        replay([*LOG, LOG[0]])


@pytest.mark.parametrize(
    "event",
    [
        Ranking(3, {}, POSTERIORS.fingerprint(), in_sample=False, at=21.0),
        Closed(21.0),
        Lease(6, 1, None, 0, 21.0, 31.0),
    ],
)
def test_only_late_answers_follow_the_close(event: Event) -> None:
    with pytest.raises(BadLog, match=f"log: only late answers may follow the close, but {type(event).__name__} came"):
        replay([*LOG, event], rankings={2: POSTERIORS, 3: POSTERIORS})


def test_rankings_are_numbered() -> None:
    with pytest.raises(BadLog, match="log: ranking 3 was needed next, but 4 came; is a line missing"):
        replay(
            [*LOG[:-1], Ranking(4, {}, POSTERIORS.fingerprint(), in_sample=False, at=19.5)], rankings={4: POSTERIORS}
        )


class TestStart:
    """A log is replayed on what it began with."""

    @pytest.mark.parametrize("events", [[], LOG[1:]])
    def test_it_begins_with_the_start(self, events: list[Event]) -> None:
        with pytest.raises(BadLog, match=r"log: a campaign's start was needed first, but (NoneType|Ranking) came"):
            replay(events)

    def test_a_ranking_follows_it(self) -> None:
        with pytest.raises(BadLog, match="log: a ranking was needed after the start, but none came; was the log cut"):
            replay(LOG[:1])

    def test_it_is_of_this_version_or_older(self) -> None:
        newer = msgspec.structs.replace(LOG[0], schema=3, software="9.9")
        with pytest.raises(
            BadLog, match=r"schema 2 or older was needed, but relook 9\.9 wrote 3; install a newer relook"
        ):
            replay([newer, *LOG[1:]])

    @pytest.mark.parametrize("given", [Labels(np.array([0, 1, 1]), 2), Labels(np.array([0, 1, 0]), 3)])
    def test_it_has_these_labels(self, given: Labels) -> None:
        with pytest.raises(BadLog, match="log: the given labels it began with were needed, but others came"):
            replay(LOG, given=given)

    def test_labels_in_another_kind_of_number_are_the_same(self) -> None:
        assert replay(LOG, given=Labels(np.array([0, 1, 0], np.int8), 2)).spent == 2

    @pytest.mark.parametrize(
        "policy",
        [Policy("other", margin), Policy("margin", margin, Agree(2)), Policy("margin", margin, given_weight=0.5)],
    )
    def test_it_has_this_policy(self, policy: Policy) -> None:
        with pytest.raises(BadLog, match=r"log: policy .* was needed, but .* came; pass the one that holds at its end"):
            replay(LOG, policy=policy)

    @pytest.mark.parametrize("rankings", [{}, {2: None}, {2: Posteriors(np.full((3, 2), 0.5))}, {1: POSTERIORS}])
    def test_its_last_ranking_has_these_posteriors(self, rankings: dict[int, Posteriors | None]) -> None:
        with pytest.raises(BadLog, match=r"ranking 2: posteriors \w+ were needed, but \w+ came; pass its file"):
            replay(LOG, rankings=rankings)

    def test_posteriors_belong_to_a_ranking(self) -> None:
        with pytest.raises(BadLog, match="log: a ranking was needed, but Closed came"):
            posteriors_of(LOG[-1], {})


class TestLabels:
    """What a campaign hands back: counts for every answer, and a label for every item."""

    def campaign(self, given: Labels, **parts: Any) -> Campaign:
        whole: dict[str, Any] = {"budget": 9, "posteriors": None} | parts
        return Campaign(given, Policy("flat", lambda rows: rows.items * -1.0, Agree(1), given_weight=0.0), **whole)

    @pytest.mark.parametrize("kind", ["i1", "u1", "i2", "i8"])
    def test_any_kind_of_number_holds_any_class(self, kind: str) -> None:
        campaign = self.campaign(Labels(np.array([0, 5], kind), 400))
        for label in (399, 5):
            lease = campaign.ask()
            assert lease is not None
            campaign.tell(lease, label)
        assert campaign.final().tolist() == [399, 5]
        assert campaign.labels().counts.max(1).tolist() == [1, 2]

    def test_before_the_first_answer_they_are_the_given_ones(self) -> None:
        given_labels = Labels(np.array([0, -1]), 2)
        campaign = self.campaign(given_labels)
        assert campaign.labels() is given_labels
        lease = campaign.ask("Ada")
        assert lease is not None
        campaign.tell(lease, 1)
        assert campaign.labels().answers is not None
        campaign.undo("Ada")
        assert campaign.labels() is given_labels

    def test_counts_become_the_label_that_most_gave(self) -> None:
        assert self.campaign(Labels(np.array([[0, 3], [1, 1], [0, 0]]), 2)).final().tolist() == [1, -1, -1]

    def test_labels_with_answers_start_no_campaign(self) -> None:
        """Those answers have no events: they would be lost with the first new one."""
        with pytest.raises(BadInput, match="labels: a campaign starts from given labels alone, but answers came too"):
            self.campaign(Labels(np.array([0]), 2, np.array([[1, 0]])))


@pytest.mark.parametrize(("name", "value"), [("lease", Skipped(9, 21.0)), ("lease", Expired(1, 21.0))])
def test_a_lease_ends_once(name: str, value: Event) -> None:
    with pytest.raises(BadLog, match=r"log: lease \d must be open to end, but it is not; is a line missing"):
        replay([*LOG[:-1], value])


def test_an_answer_is_told_once() -> None:
    late = next(event for event in LOG if isinstance(event, Answer) and not event.counted)
    with pytest.raises(BadLog, match="contradicts what came before it"):
        replay([*LOG, msgspec.structs.replace(late, at=21.0)])
