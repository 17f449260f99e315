"""The queue: untouched items in the order of the ranking, for everybody, and touched ones where they belong."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook.campaign import Campaign
from relook.ledger import Ledger
from relook.queue import Queue
from relook.rules import Policy, Terms
from relook.scores import RandomOrder
from relook.types import Labels, Posteriors, Rows
from tests.laws import LAW, catches


def table(rows: Rows) -> Any:
    return rows.mean[:, 0]


def campaign_of(scores: list[int], kind: str = "f8", budget: int = 10_000) -> Campaign:
    chances = np.array(scores) / 16
    posteriors = Posteriors(np.stack([chances, 1 - chances], axis=1).astype(kind))
    return Campaign(
        Labels(np.zeros(len(scores), int), 2),
        Policy("table", table),
        budget=budget,
        posteriors=posteriors,
        terms=Terms(10.0),
    )


class TestOrder:
    """Untouched items come by score, then by number, in however many chunks they are read and whoever asks."""

    def law(self, how: settings, order: Callable[[list[int]], list[int]]) -> None:
        @how
        @given(st.lists(st.integers(0, 16), min_size=1, max_size=25), st.sampled_from(["f4", "f8"]), st.randoms())
        def check(scores: list[int], kind: str, random: Any) -> None:
            campaign = campaign_of(scores, kind)
            asked = []
            for _ in scores:
                lease = campaign.ask(random.choice([None, "Ada", "Bo"]))
                assert lease is not None
                asked.append(lease.item)
            assert asked == order(scores)
            assert campaign.ask() is None

        check()

    @staticmethod
    def by_score(scores: list[int]) -> list[int]:
        return sorted(range(len(scores)), key=lambda item: -scores[item])

    @pytest.mark.parametrize("chunk", [1, 3, 1_024])
    def test_holds(self, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("relook.queue.CHUNK", chunk)
        self.law(LAW, self.by_score)

    def test_ties_from_the_end_are_caught(self) -> None:
        catches(partial(self.law, order=lambda scores: sorted(range(len(scores)), key=lambda n: (-scores[n], -n))))

    def test_a_chunk_that_is_passed_over_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fresh = Queue._fresh

        def hasty(self: Queue) -> int | None:
            self._loaded += self._loaded == 3
            return fresh(self)

        monkeypatch.setattr("relook.queue.CHUNK", 3)
        monkeypatch.setattr(Queue, "_fresh", hasty)
        catches(partial(self.law, order=self.by_score))


def test_thousands_of_items_by_one_pass() -> None:
    """More items than a chunk holds, each answered once: the picks are the sorted scores."""
    labels = Labels(np.zeros(5_000, int), 2)
    campaign = Campaign(labels, Policy("random", RandomOrder(1)), budget=5_000)
    items = []
    for _ in range(5_000):
        lease = campaign.ask()
        assert lease is not None
        items.append(lease.item)
        campaign.tell(lease, 0)
    scores = RandomOrder(1)(Rows(np.arange(5_000), None, labels.given))
    assert items == np.argsort(-scores, kind="stable").tolist()


def test_an_item_that_comes_back_takes_its_place_among_the_untouched() -> None:
    campaign = campaign_of([9, 8, 7, 6])
    leases = [campaign.ask("Ada", 0.0) for _ in range(2)]
    assert [lease.item for lease in leases if lease is not None] == [0, 1]
    again = [campaign.ask("Bo", 10.0) for _ in range(4)]
    assert [lease.item for lease in again if lease is not None] == [0, 1, 2, 3]


def test_somebody_who_comes_late_finds_what_the_others_left() -> None:
    """An item that is begun is finished first, but not by who answered it; what Ada gave back is new to Bo."""
    campaign = campaign_of([9, 8, 7])
    first = campaign.ask("Ada")
    assert first is not None
    campaign.tell(first, 1)
    second = campaign.ask("Ada")
    assert second is not None
    campaign.skip(second)
    seen = [campaign.ask(name) for name in ("Ada", "Bo", "Bo", "Ada")]
    assert [None if lease is None else lease.item for lease in seen] == [2, 0, 1, None]


def test_what_is_withdrawn_is_not_held() -> None:
    campaign = campaign_of([9, 8])
    queue, ledger = Queue(np.array([1.0, 2.0]), campaign.ledger), campaign.ledger
    assert isinstance(ledger, Ledger)
    ledger.item(0)
    queue.announce(0, 5.0)
    assert (queue.holds(0), queue.holds(1), queue.score(1)) == (True, False, 2.0)
    queue.withdraw(0)
    queue.withdraw(0)
    assert (queue.holds(0), queue.take(None), queue.take(None)) == (False, 1, None)
