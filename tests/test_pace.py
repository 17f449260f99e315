"""How long an answer takes: by a log of whatever people do, and what that makes of a budget."""

import pytest

from relook.errors import BadInput
from relook.events import Answer, Event, Lease
from relook.pace import BREAK, Pace, pace


def told(lease: int, at: float, *, who: str = "Ada", since: float = 0.0, seconds: float | None = None) -> list[Event]:
    """A lease and its answer."""
    return [
        Lease(lease, lease, who, 0, since, 1e9),
        Answer(lease, lease, who, 0, 1, counted=True, verdict=0, at=at, seconds=seconds),
    ]


def test_before_anybody_answered_it_is_the_usual() -> None:
    assert pace([]) == Pace(4.0, 0)
    assert pace([event for number in range(1, 20) for event in told(number, 9.0 * number)]) == Pace(4.0, 0)


def test_an_answer_took_the_time_since_the_one_before() -> None:
    events = [event for number in range(1, 41) for event in told(number, 6.0 * number)]
    assert pace(events) == Pace(6.0, 40)


def test_breaks_are_left_out() -> None:
    times = [6.0 * number + (3 * BREAK if number > 20 else 0) for number in range(1, 42)]
    events = [event for number, at in enumerate(times, 1) for event in told(number, at)]
    assert pace(events) == Pace(6.0, 40)


def test_nobody_is_as_fast_as_a_program() -> None:
    assert pace([event for number in range(1, 51) for event in told(number, 5.0)]) == Pace(4.0, 0)


def test_answers_of_a_table_share_the_time_since_it_went_out() -> None:
    assert pace([event for number in range(1, 51) for event in told(number, 400.0)]) == Pace(8.0, 50)
    weekend = [event for number in range(1, 51) for event in told(number, 3 * 86_400.0)]
    assert pace(weekend) == Pace(4.0, 0)


def test_seconds_that_came_with_an_answer_go_before_all() -> None:
    events = [event for number in range(1, 31) for event in told(number, 9e5, seconds=11.0)]
    assert pace(events) == Pace(11.0, 30)


def test_people_are_measured_apart() -> None:
    fast = [event for number in range(1, 31) for event in told(number, 2.0 * number, who="Ada")]
    slow = [event for number in range(31, 91) for event in told(number, 9.0 * (number - 30), who="Bo")]
    assert pace(fast + slow) == Pace(9.0, 90)


def test_a_budget_in_hours_is_a_number_of_answers() -> None:
    assert Pace(6.0, 100).answers(10.0) == 6_000
    assert Pace(6.0, 100).hours(6_000) == 10.0
    assert str(Pace(6.0, 100)) == "6.0 s an answer (measured on 100)"
    for hours in (0.0, -1.0, float("nan"), 1e9):
        with pytest.raises(BadInput, match="a number of hours above 0 was needed"):
            Pace().answers(hours)
