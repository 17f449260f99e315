"""The checker of histories finds what it is there to find: each law is broken once."""

from typing import Any

import msgspec
import pytest

from relook.events import Answer, Budget, Checked, Event, Lease
from tests.history import Broken, check_history
from tests.test_decided import LOG

PLACE = {type(event).__struct_config__.tag: place for place, event in reversed(list(enumerate(LOG)))}
GOLD = next(n for n, event in enumerate(LOG) if isinstance(event, Lease) and event.purpose == "gold")
ANSWERS = [event for event in LOG if isinstance(event, Answer | Checked)]


def edited(place: int, **fields: Any) -> list[Event]:
    return [*LOG[:place], msgspec.structs.replace(LOG[place], **fields), *LOG[place + 1 :]]


def without(place: int) -> list[Event]:
    return LOG[:place] + LOG[place + 1 :]


def test_a_sound_history_is_what_it_is() -> None:
    history = check_history(LOG, acknowledged=ANSWERS, unknown=[], stored={"spent": 5, "reserved": 0, "closed": False})
    assert (history.spent, history.budget, history.items) == (5, 40, 9)


@pytest.mark.parametrize(
    ("events", "law"),
    [
        (LOG[1:], "a log begins with a start"),
        ([*LOG, LOG[0]], "a log has one start"),
        (edited(2, at=-1.0), "time does not go back"),
        (edited(0, budget=1), "spent and reserved are within the budget"),
        ([*LOG, Budget(4, "Max", 300.0)], "spent and reserved are within the budget"),
        ([*LOG[:-1], Lease(9, 1, "Cy", 0, 207.0, 307.0)], "a closed campaign takes late answers alone"),
        (edited(PLACE["ranking"], number=2), "rankings are numbered one after the other"),
        (edited(PLACE["lease"], number=2), "leases are numbered one after the other"),
        (edited(PLACE["lease"], item=9), "a lease is of an item of the campaign"),
        ([*LOG[:5], Lease(2, 7, "Bo", 0, 1.0, 101.0)], "one lease an item at a time"),
        ([*LOG[:5], Lease(2, 6, "Bo", 0, 101.0, 201.0)], "leases end when their time is over"),
        ([*LOG[:6], Lease(2, 7, "Ada", 1, 2.0, 102.0)], "nobody answers an item twice, but to repeat it"),
        (edited(GOLD, purpose="label"), "what is settled is not asked about again"),
        (without(4), "an answer belongs to a lease"),
        ([*LOG[:6], LOG[5]], "a lease is answered once"),
        (edited(5, item=6), "an answer is its lease's own"),
        (edited(GOLD, purpose="draw"), "repeats and gold items are never votes"),
        (edited(5, ranking=2), "rankings never go back"),
        (edited(5, counted=False), "an answer that does not count came too late"),
        (edited(4, until=1.0), "an answer that counts came in time"),
        (edited(PLACE["skipped"], lease=1), "a lease that ends was open"),
        (edited(PLACE["undone"], answer=1), "what is undone stood"),
        (edited(PLACE["changed"], verdicts=[(7, 2)]), "a last word holds"),
        (edited(PLACE["added"], first=7), "items are numbered on"),
        (without(PLACE["expired"]), "leases end when their time is over|nobody holds what is withdrawn"),
        (LOG[: PLACE["skipped"]] + LOG[-2:-1], "leases end before the close"),
    ],
)
def test_each_law_can_be_broken(events: list[Event], law: str) -> None:
    with pytest.raises(Broken, match=law):
        check_history(events)


def test_an_answer_that_was_acknowledged_and_lost_is_found() -> None:
    told = ANSWERS[0]
    with pytest.raises(Broken, match="what was acknowledged is in the log once, unchanged"):
        check_history(LOG, acknowledged=[msgspec.structs.replace(told, answer=2)])
    with pytest.raises(Broken, match="every answer in the log was sent by somebody"):
        check_history(LOG, acknowledged=ANSWERS[1:], unknown=[])
    assert check_history(LOG, acknowledged=ANSWERS[1:], unknown=[told.lease]).spent == 5


def test_what_is_stored_beside_the_log_is_compared() -> None:
    with pytest.raises(Broken, match="what is stored is what the log comes to"):
        check_history(LOG, stored={"spent": 4})


def test_a_removed_person_holds_nothing() -> None:
    place = PLACE["removed"]
    held = Lease(9, 8, "Ada", 0, 205.0, 305.0)
    with pytest.raises(Broken, match="who is removed holds nothing"):
        check_history([*LOG[:place], held, *LOG[place:]])
