"""How well a ranking finds what is wrong, against slow definitions, and what became of the visits."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook.errors import BadInput
from relook.events import Answer, Event, Undone
from relook.metrics import KINDS, answers_per_item, average_precision, kinds, picks, precision_at, roc_auc
from relook.types import FloatArray, Labels
from tests.campaigns import Driver, World, run, scripts, worlds
from tests.laws import LAW, catches

ranked = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=25)


def arrays(pairs: list[tuple[int, bool]]) -> tuple[FloatArray, Any]:
    return np.array([score / 2 for score, _ in pairs]), np.array([wrong for _, wrong in pairs])


class TestRanking:
    """Precision at k, average precision and ROC-AUC are what they are said to be, ties included."""

    def law(
        self,
        how: settings,
        *,
        precision: Callable[..., float] = precision_at,
        average: Callable[..., float] = average_precision,
        area: Callable[..., float] = roc_auc,
    ) -> None:
        @how
        @given(ranked.filter(lambda pairs: 0 < sum(wrong for _, wrong in pairs) < len(pairs)))
        def check(pairs: list[tuple[int, bool]]) -> None:
            scores, wrong = arrays(pairs)
            order = [is_wrong for _, is_wrong in sorted(pairs, key=lambda pair: -pair[0])]
            at = [sum(order[:k]) / k for k in range(1, len(order) + 1)]
            assert [precision(scores, wrong, k=k) for k in range(1, len(order) + 1)] == pytest.approx(at)
            found = [precision_here for precision_here, is_wrong in zip(at, order, strict=True) if is_wrong]
            assert average(scores, wrong) == pytest.approx(sum(found) / len(found))
            good = [score for score, is_wrong in pairs if is_wrong]
            bad = [score for score, is_wrong in pairs if not is_wrong]
            wins = sum((a > b) + (a == b) / 2 for a in good for b in bad)
            assert area(scores, wrong) == pytest.approx(wins / (len(good) * len(bad)))

        check()

    def test_holds(self) -> None:
        self.law(LAW)

    def test_ties_in_the_other_order_are_caught(self) -> None:
        def backwards(scores: FloatArray, wrong: Any, k: int) -> float:
            return precision_at(scores[::-1], wrong[::-1], k=k)

        catches(partial(self.law, precision=backwards))
        catches(partial(self.law, average=lambda scores, wrong: average_precision(scores[::-1], wrong[::-1])))

    def test_an_area_in_which_ties_count_nothing_is_caught(self) -> None:
        def strict(scores: FloatArray, wrong: Any) -> float:
            return float((scores[wrong][:, np.newaxis] > scores[~wrong]).mean())

        catches(partial(self.law, area=strict))

    @pytest.mark.parametrize("k", [0, -1, 3])
    def test_precision_at_no_place_is_refused(self, k: int) -> None:
        with pytest.raises(BadInput, match=f"precision: k from 1 to 2 was needed, but {k} came; there are 2 items"):
            precision_at(np.zeros(2), np.array([True, False]), k=k)

    @pytest.mark.parametrize(("rule", "name"), [(average_precision, "average precision"), (roc_auc, "ROC-AUC")])
    def test_nothing_to_find_is_refused(self, rule: Callable[..., float], name: str) -> None:
        with pytest.raises(BadInput, match=f"{name}: at least one item to find was needed, but there is none"):
            rule(np.zeros(2), np.array([False, False]))

    def test_nothing_to_tell_apart_is_refused(self) -> None:
        with pytest.raises(BadInput, match="ROC-AUC: items of both kinds were needed, but all are positive"):
            roc_auc(np.zeros(2), np.array([True, True]))


def answer(item: int, verdict: int, *, lease: int = 1, label: int = 0) -> Answer:
    return Answer(lease, item, None, label, ranking=1, counted=True, verdict=verdict, at=0.0)


TRUTH = np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5], [0.55, 0.45]])


class TestKinds:
    """Each visit comes to one of five things: corrected or not, clear or difficult, or right before."""

    def kinds(self, *events: Event, given_labels: Sequence[int] = (1, 0, 1, 1)) -> dict[str, int]:
        counts = kinds(events, Labels(np.array(given_labels), 2), truth=TRUTH)
        assert tuple(counts) == KINDS
        return {name: count for name, count in counts.items() if count}

    def test_the_five(self) -> None:
        assert self.kinds(answer(0, -1), answer(0, 0)) == {"clear_corrected": 1}
        assert self.kinds(answer(0, 1)) == {"clear_not_corrected": 1}
        assert self.kinds(answer(2, 0)) == {"difficult_corrected": 1}
        assert self.kinds(answer(3, 1)) == {"difficult_not_corrected": 1}
        assert self.kinds(answer(1, 0)) == {"was_right": 1}

    def test_a_right_label_with_a_dissenting_vote_was_right(self) -> None:
        """The released code calls it mislabelled and not corrected."""
        assert self.kinds(answer(3, 0), given_labels=(1, 0, 1, 0)) == {"was_right": 1}

    def test_a_visit_that_the_budget_cut_short_corrects_nothing(self) -> None:
        assert self.kinds(answer(0, -1)) == {"clear_not_corrected": 1}

    def test_unclear_keeps_the_given_label(self) -> None:
        assert self.kinds(answer(0, -1, label=-1), answer(0, -2, label=-1)) == {"clear_not_corrected": 1}

    def test_a_second_visit_begins_where_the_first_ended(self) -> None:
        assert self.kinds(answer(0, 1), answer(0, 0)) == {"clear_not_corrected": 1, "clear_corrected": 1}
        assert self.kinds(answer(0, 0), answer(0, 1)) == {"clear_corrected": 1, "was_right": 1}

    def test_a_visit_that_returns_and_ends_in_a_tie_leaves_the_given_label(self) -> None:
        assert self.kinds(answer(0, 0), answer(0, -1), answer(0, 1)) == {"clear_corrected": 1, "was_right": 1}
        assert self.kinds(answer(1, 1), answer(1, -1)) == {"was_right": 1, "clear_corrected": 1}


class TestVisits:
    """A visit is what is asked about an item until it is settled; an answer that was undone was never given."""

    def law(self, how: settings, visits: Callable[[Sequence[Event]], Any] = picks) -> None:
        @how
        @given(worlds(batches=(1,), rankings=1), scripts(40), st.integers(0, 2**10), st.sampled_from([None, "Ada"]))
        def check(world: World, script: list[int], pick: int, who: str | None) -> None:
            campaign = world.start()
            driver = run(campaign, world, script)
            truth = np.full((len(world.given), world.given.classes), 1 / world.given.classes)

            def told() -> list[Any]:
                events = campaign.events
                return [
                    visits(events).tolist(),
                    kinds(events, world.given, truth=truth),
                    answers_per_item(events, truth),
                ]

            before = told()
            assert len(before[0]) == sum(before[1].values()) or visits is not picks
            lease = campaign.ask(who, driver.now)
            if lease is not None:
                campaign.tell(lease, driver.answer(pick), driver.now)
                campaign.undo(who, 1, driver.now)
                assert told() == before

        check()

    def law_of_few(self, how: settings, visits: Callable[[Sequence[Event]], Any] = picks) -> None:
        """Without undo: one entry for the first answer and for each after the item was left."""

        @how
        @given(worlds(), scripts(40))
        def check(world: World, script: list[int]) -> None:
            campaign = world.start()
            driver = Driver(campaign, world)
            for number in script:
                if number % 14 not in (9, 10):
                    for _ in driver.follow([number]):
                        pass
            answers = [e for e in campaign.events if isinstance(e, Answer) and e.counted]
            last: dict[int, int] = {}
            expected = []
            for each in answers:
                if last.get(each.item) != -1:
                    expected.append(each.item)
                last[each.item] = each.verdict
            assert visits(campaign.events).tolist() == expected

        check()

    def test_holds(self) -> None:
        self.law(LAW)
        self.law_of_few(LAW)

    def test_visits_that_count_what_was_undone_are_caught(self) -> None:
        def deaf(events: Sequence[Event]) -> Any:
            return picks([event for event in events if not isinstance(event, Undone)])

        catches(partial(self.law, visits=deaf))

    def test_one_entry_an_answer_is_caught(self) -> None:
        def every(events: Sequence[Event]) -> Any:
            return np.array([event.item for event in events if isinstance(event, Answer) and event.counted])

        catches(partial(self.law_of_few, visits=every))


def test_answers_per_item_of_clear_and_difficult_ones() -> None:
    events = [answer(0, -1, lease=1), answer(0, 0, lease=2), answer(1, 0, lease=3), answer(2, -1, lease=4)]
    assert answers_per_item(events, TRUTH) == {"clear": 1.5, "difficult": 1.0}
    gone = Undone(1, 0, 0, -1, 1.0)
    assert answers_per_item([*events, gone], TRUTH) == {"clear": 1.0, "difficult": 1.0}
