"""One rule for `final`: curve, report and evidence count the same labels, and what speaks for each is counted anew."""

from collections.abc import Callable
from functools import partial

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook.campaign import Campaign
from relook.collection import GIVEN, Collection, Form
from relook.curves import curve
from relook.errors import BadInput, BadLog
from relook.events import CANNOT_TELL, NONE_OF_THESE, Answer
from relook.evidence import STATUSES, Evidence, evidence
from relook.metrics import picks
from relook.policies import named
from relook.rules import Policy, Terms
from relook.runs import recorded
from relook.scores import margin
from relook.simulation import Run
from relook.stopping import Agree
from relook.types import Dataset, FloatArray, Labels, Posteriors
from tests.campaigns import World, counted, run, scripts, worlds
from tests.laws import LAW, catches

NAMES = ("cat", "dog", "hen", "pig")

Find = Callable[[Campaign], Evidence]


def given_as(labels: object, classes: int) -> Labels:
    return Labels(np.array(labels), classes)


def set_of(labels: Labels) -> Collection:
    """A set that comes with these labels: of `given`, or counts of what nobody in particular said."""
    names = NAMES[: labels.classes]
    counts = labels.given_counts
    rows, columns = np.nonzero(counts)
    told: dict[str, object] = {
        "item": rows,
        "annotator": [GIVEN if labels.given.ndim == 1 else None] * len(rows),
        "label": [names[column] for column in columns],
    }
    if labels.given.ndim == 2:
        told["count"] = counts[rows, columns]
    ids = pl.Series("id", [f"item {row}" for row in range(len(labels))], dtype=pl.String)
    return Collection(
        source="pets.csv",
        form=Form("csv"),
        classes=names,
        ids=ids,
        items=ids.to_frame().lazy(),
        answers=pl.DataFrame(told, schema_overrides={"annotator": pl.String, "label": pl.String}),
    )


def of_a_set(world: World) -> World:
    """The same world, begun with the labels that a set of its labels has: counts of one at most are a label each."""
    return world._replace(given=set_of(world.given).labels())


def played(campaign: Campaign, truth: FloatArray) -> Run:
    """A campaign as a simulation leaves it."""
    drawn = curve(campaign.events, campaign.ledger.given, truth=truth)
    labels, events = campaign.labels(), campaign.events
    return Run("drawn", 0, drawn, picks(events), campaign.spent, campaign.final(), labels, events)


def words(found: Evidence) -> list[str]:
    return [STATUSES[number] for number in found.status]


class TestFinal:
    """What a curve counts as right at its end, and what a report's tables hold, are the final labels, row by row."""

    def law(self, how: settings, find: Find) -> None:
        @how
        @given(worlds(), scripts(40), st.integers(0, 2**32 - 1))
        def check(world: World, script: list[int], seed: int) -> None:
            world = of_a_set(world)
            campaign = world.start()
            run(campaign, world, script)
            true = np.random.default_rng(seed).integers(0, world.given.classes, len(world.given))
            truth = np.eye(world.given.classes)[true]
            found = find(campaign)
            right = found.final == true
            last = curve(campaign.events, world.given, truth=truth, given_weight=world.policy.given_weight)
            assert last.share_correct[-1] * len(world.given) == pytest.approx(right.sum(), abs=1e-9)
            assert last.clear_left[-1] + last.difficult_left[-1] == (~right).sum()
            assert found.final.tolist() == campaign.final().tolist()
            dataset = Dataset("drawn", NAMES[: world.given.classes], found.ids.to_list(), world.given, truth=truth)
            outcome = recorded(played(campaign, truth), dataset).outcome
            assert outcome is not None
            table = np.zeros((world.given.classes, world.given.classes))
            for label, name in zip(found.final, true, strict=True):
                table[name, label] += label >= 0
            assert outcome.confusion["all"] == tuple(map(tuple, table.tolist()))

        check()

    def test_holds(self) -> None:
        self.law(LAW, evidence)

    def test_holds_for_what_a_simulation_leaves(self) -> None:
        self.law(
            LAW, lambda campaign: evidence(played(campaign, np.eye(campaign.ledger.given.classes)[campaign.final()]))
        )

    def test_holds_for_a_set_with_a_log(self) -> None:
        self.law(LAW, lambda campaign: evidence(set_of(campaign.ledger.given), events=campaign.events))

    def test_the_most_votes_are_caught(self) -> None:
        def most(campaign: Campaign) -> Evidence:
            return msgspec.structs.replace(evidence(campaign), final=campaign.labels().majority())

        catches(partial(self.law, find=most))

    def test_given_labels_are_caught(self) -> None:
        def untouched(campaign: Campaign) -> Evidence:
            return msgspec.structs.replace(evidence(campaign), final=campaign.ledger.given.label())

        catches(partial(self.law, find=untouched))


class TestEvidence:
    """Votes, answers and status are what a recount of the log, with lists alone, comes to."""

    def law(self, how: settings, find: Find) -> None:
        @how
        @given(worlds(), scripts(40))
        def check(world: World, script: list[int]) -> None:
            several = world.given.given.ndim == 2
            campaign = world.start()
            run(campaign, world, script)
            known, found = counted(campaign.events, world.given, 1.0), find(campaign)
            for item, before in enumerate(world.given.given_counts.tolist()):
                said = known["answers"].get(item, [])
                votes = [before[label] + [a for _, a in said].count(label) for label in range(world.given.classes)]
                assert found.counts()[item].tolist() == votes
                assert found.heard[item] == len(said) + (sum(before) if several else 0)
                assert words(found)[item] == expected_status(
                    known["verdicts"].get(item, -1), said, before, several=several
                )
            log = [e for e in campaign.events if isinstance(e, Answer) and e.counted]
            since = found.answers.filter(pl.col("ranking").is_not_null())
            stand = [lease for leases in known["standing"].values() for lease in leases]
            assert sorted(since["at"].to_list()) == sorted(e.at for e in log if e.lease in stand)
            assert found.votes["count"].sum() == found.counts().sum()

        check()

    def test_holds(self) -> None:
        self.law(LAW, evidence)

    def test_holds_for_what_a_simulation_leaves(self) -> None:
        self.law(
            LAW, lambda campaign: evidence(played(campaign, np.eye(campaign.ledger.given.classes)[campaign.final()]))
        )

    def test_answers_that_were_taken_back_are_caught(self) -> None:
        def all_told(campaign: Campaign) -> Evidence:
            found = evidence(campaign)
            return msgspec.structs.replace(found, heard=found.heard + 1)

        catches(partial(self.law, find=all_told))


def expected_status(verdict: int, said: list[object], before: list[int], *, several: bool) -> str:
    if said:
        return {-1: "unsettled", -2: "unclear", -3: "outside", -4: "disputed"}.get(verdict, "settled")
    if not several or not sum(before):
        return "unseen"
    return "settled" if sum(before) > 1 and before.count(max(before)) == 1 else "unsettled"


def test_a_set_alone_has_the_votes_that_it_came_with() -> None:
    names = ["cat", "dog", "dog", "dog", "cat", "cat", "hen"]
    who = [GIVEN, "Ada", "Bo", GIVEN, "Ada", GIVEN, "Ada"]
    found = set_of(given_as([0] * 5, 3))
    answers = pl.DataFrame({"item": [0, 0, 0, 1, 1, 2, 3], "annotator": who, "label": names})
    known = evidence(msgspec.structs.replace(found, answers=answers))
    assert known.labelled
    assert known.given.tolist() == [0, 1, 0, -1, -1]
    assert known.final.tolist() == [1, 1, 0, 2, -1]
    assert words(known) == ["settled", "unsettled", "unseen", "unsettled", "unseen"]
    assert known.heard.tolist() == [2, 1, 0, 1, 0]
    assert known.changed.tolist() == [0, 3]


def test_a_campaign_starts_where_its_set_stands() -> None:
    """No answer more, no label else: also where a tie was decided by the given label."""
    found = set_of(given_as([0, 0], 2))
    answers = pl.DataFrame(
        {"item": [0, 0, 1, 1], "annotator": [GIVEN, "Ada", "Ada", "Bo"], "label": ["dog", "cat"] * 2}
    )
    found = msgspec.structs.replace(found, answers=answers)
    campaign = Campaign(found.labels(), named("random"), budget=3)
    before, after = evidence(found), evidence(found, events=campaign.events)
    assert before.final.tolist() == after.final.tolist() == campaign.final().tolist() == [1, -1]
    assert words(before) == words(after) == ["unsettled", "unsettled"]
    truth = np.array([[0.0, 1.0], [0.0, 1.0]])
    assert curve(campaign.events, found.labels(), truth=truth).share_correct.tolist() == [0.5]
    assert evidence(campaign).given.tolist() == before.given.tolist() == [1, -1]
    assert evidence(campaign).labelled
    assert evidence(campaign).heard.tolist() == before.heard.tolist() == [1, 2]


def test_answers_say_who_when_how_long_and_under_which_ranking() -> None:
    campaign = Campaign(given_as([0, 1], 2), Policy("two", margin, Agree(2)), budget=9, posteriors=POSTERIORS)
    for who, answer, at in (("Ada", 1, 3.0), ("Bo", CANNOT_TELL, 9.0), ("Cy", NONE_OF_THESE, 20.0)):
        lease = campaign.ask(who, at)
        assert lease is not None
        campaign.tell(lease, answer, at + 1.5)
    campaign.rank(POSTERIORS, 30.0)
    lease = campaign.ask("Di", 40.0)
    assert lease is not None
    campaign.tell(lease, 1, 42.0)
    found = evidence(set_of(campaign.ledger.given), events=campaign.events)
    told = found.answers.filter(pl.col("ranking").is_not_null()).drop("count").rows()
    assert told == [
        (0, "Ada", "dog", None, 4.5, 1.5, 1),
        (0, "Bo", None, "cannot tell", 10.5, 1.5, 1),
        (0, "Cy", None, "none of these", 21.5, 1.5, 1),
        (0, "Di", "dog", None, 42.0, 2.0, 2),
    ]
    assert (found.heard.tolist(), found.final.tolist(), words(found)) == ([4, 0], [1, 1], ["settled", "unseen"])


POSTERIORS = Posteriors(np.array([[0.55, 0.45], [0.1, 0.9]]))


def test_belief_is_that_of_the_campaign() -> None:
    campaign = Campaign(given_as([0, 1], 2), named("margin"), budget=9, posteriors=POSTERIORS)
    lease = campaign.ask("Ada")
    assert lease is not None
    campaign.tell(lease, 1)
    found = evidence(campaign, rule="belief")
    believed = found.belief()
    assert believed is not None
    assert believed[lease.item].tolist() == campaign._agenda.judge.belief(lease.item, [0, 1]).tolist()
    assert (found.rule, found.final.tolist(), words(found)) == ("belief", [1, 1], ["unsettled", "unseen"])
    assert evidence(campaign).final.tolist() == [0, 1]


def test_belief_counts_people_and_not_the_given_label() -> None:
    found = evidence(set_of(given_as([[3, 0], [0, 0]], 2)), posteriors=POSTERIORS)
    alone = evidence(set_of(given_as([0, 0], 2)), posteriors=POSTERIORS)
    several, single = found.belief(), alone.belief()
    assert several is not None
    assert single is not None
    assert several[0, 0] > 0.99
    assert single[0, 0] == pytest.approx(0.598, abs=0.01)
    assert several[1].tolist() == single[1].tolist()
    assert found.belief(slice(1, 2)) == pytest.approx(several[1:])


def test_a_part_is_the_rows_of_the_whole() -> None:
    campaign = Campaign(given_as([0, 1, -1], 2), named("random"), budget=9, terms=Terms(panel=3))
    for who in ("Ada", "Bo", "Ada", "Bo"):
        lease = campaign.ask(who)
        assert lease is not None
        campaign.tell(lease, 1)
    posteriors = Posteriors(np.full((3, 2), 0.5))
    whole = evidence(set_of(campaign.ledger.given), events=campaign.events, posteriors=posteriors)
    part = whole.part(np.array([0, 2]))
    assert part.ids.to_list() == ["item 0", "item 2"]
    assert part.counts().tolist() == whole.counts()[[0, 2]].tolist()
    assert part.heard.tolist() == whole.heard[[0, 2]].tolist()
    assert part.belief() == pytest.approx(np.asarray(whole.belief())[[0, 2]])
    assert part.answers.height == whole.answers.filter(pl.col("item") != 1).height


def test_what_does_not_fit_is_refused() -> None:
    found, campaign = set_of(given_as([0, 1], 2)), Campaign(given_as([0, 1], 2), named("random"), budget=2)
    with pytest.raises(BadInput, match="final: one of vote, belief was needed as its rule, but 'best' came; take vote"):
        evidence(found, rule="best")
    with pytest.raises(BadInput, match="final by belief: class probabilities were needed, but none came; pass them"):
        evidence(found, rule="belief")
    with pytest.raises(BadInput, match="those of 2 items and 2 classes were needed, but they are of 1 and 2; predict"):
        evidence(found, posteriors=Posteriors(np.array([[0.5, 0.5]])))
    with pytest.raises(BadLog, match="the given labels it began with were needed, but others came"):
        evidence(set_of(given_as([1, 1], 2)), events=campaign.events)
    with pytest.raises(BadLog, match="contradicts what came before it"):
        evidence(found, events=[*campaign.events, Answer(1, 0, None, 0, 1, counted=True, verdict=0, at=0.0)])


class TestDecided:
    """What people decided on items shows in the one rule for final labels, whoever asks it."""

    def campaign(self) -> Campaign:
        policy = Policy("in order", lambda rows: rows.items * -1.0, Agree(1), given_weight=0.0)
        campaign = Campaign(given_as([0, 0, 0, 0, 0, 0], 2), policy, budget=9, terms=Terms(panel=2))
        for who in ("Ada", "Bo"):
            for answer in (1, -1):
                lease = campaign.ask(who)
                assert lease is not None
                campaign.tell(lease, answer)
        rae = campaign.by("Rae")
        rae.adjudicate(2, 1)
        rae.know(3, 1)
        rae.withdraw([4])
        rae.remove("Bo", "void")
        return campaign

    def test_status_and_label_of_every_item(self) -> None:
        campaign = self.campaign()
        for found in (evidence(campaign), evidence(set_of(campaign.ledger.given), events=campaign.events)):
            assert words(found)[2:5] == ["adjudicated", "gold", "withdrawn"]
            assert found.final.tolist() == campaign.final().tolist() == [1, 0, 1, 1, 0, 0]
            assert "Bo" not in found.answers["annotator"].cast(pl.String).to_list()

    def test_a_confirmed_dispute(self) -> None:
        policy = Policy("in order", lambda rows: rows.items * -1.0, Agree(2), given_weight=0.0)
        campaign = Campaign(given_as([0], 2), policy, budget=9, terms=Terms(panel=2))
        for who, answer in (("Ada", 0), ("Bo", 1)):
            lease = campaign.ask(who)
            assert lease is not None
            campaign.tell(lease, answer)
        assert words(evidence(campaign)) == ["disputed"]
        campaign.by("Rae").confirm(0)
        assert words(evidence(campaign)) == ["confirmed"]

    def test_items_that_were_added_later_belong_to_the_set(self) -> None:
        campaign = self.campaign()
        campaign.by("Max").add(given_as([1], 2))
        whole = campaign.ledger.given
        assert evidence(set_of(whole), events=campaign.events).final.tolist() == [1, 0, 1, 1, 0, 0, 1]
        with pytest.raises(BadLog, match="log: the labels of items that were added later were needed too, but others"):
            evidence(set_of(given_as([0, 0, 0, 0, 0, 0, 0], 2)), events=campaign.events)
