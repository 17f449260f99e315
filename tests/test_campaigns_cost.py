"""What a long campaign costs, at a twentieth of the size: ratios and bytes, which no other machine changes much."""

import pytest

from benchmarks import campaigns


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [
        lambda: campaigns.ask_by_items((10_000, 200_000)),
        lambda: campaigns.ask_by_answers(10_000, 2_000),
        lambda: campaigns.room_of_items(50_000),
        lambda: campaigns.room_of_answers(10_000, 10_000),
        lambda: campaigns.room_of_answers(10_000, 10_000, "people:2"),
        lambda: campaigns.replay(20_000),
    ],
    ids=["ask by items", "ask by answers", "bytes an item", "bytes an answer", "bytes, people:2", "replay"],
)
def test_a_figure_holds(row: object) -> None:
    found = min((row() for _ in range(2)), key=lambda each: each.found)  # type: ignore[operator]
    assert found.found <= found.most, found
