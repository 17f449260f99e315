"""What people decide about a campaign, folded into its facts: a check and a writing for each kind of decision.

The ledger asks `CHECK` whether a decision can have followed what came before it, and lets `APPLY` write it down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from relook.book import VOID
from relook.errors import BadInput, BadLog
from relook.events import (
    CANNOT_TELL,
    DISPUTED,
    NONE_OF_THESE,
    OUTSIDE,
    UNCLEAR,
    Added,
    Adjudicated,
    Budget,
    Changed,
    Closed,
    Confirmed,
    Drawn,
    Gold,
    Guideline,
    Joined,
    Mixed,
    Paused,
    Removed,
    Reopened,
    Resumed,
    Retracted,
    Verdicts,
    Withdrawn,
)
from relook.types import Labels

if TYPE_CHECKING:
    from relook.ledger import Ledger


def verdict_of(answer: int) -> int:
    """Return the verdict that a reviewer's word makes.

    >>> verdict_of(3), verdict_of(CANNOT_TELL), verdict_of(NONE_OF_THESE)
    (3, -2, -3)
    """
    return {CANNOT_TELL: UNCLEAR, NONE_OF_THESE: OUTSIDE}.get(answer, answer)


def hash_of(text: str) -> str:
    """Return the hash of a guideline.

    >>> hash_of("Choose the animal.") == hash_of("Choose the animal!")
    False
    """
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def labels_of(event: Added, classes: int) -> Labels:
    """Return the given labels of items that came later."""
    return Labels(np.array(event.given), classes, came_with=None if event.came_with is None else event.came_with)  # type: ignore[arg-type]


# What can have followed.


def _may_adjudicate(ledger: Ledger, event: Adjudicated) -> bool:
    known = _is_item(ledger, event.item) and not isinstance(ledger.words.get(event.item), Gold)
    fits = NONE_OF_THESE <= event.answer < ledger.given.classes and event.verdict == verdict_of(event.answer)
    return known and fits and event.item not in ledger.withdrawn


def _may_confirm(ledger: Ledger, event: Confirmed) -> bool:
    state = ledger.items.get(event.item)
    free = event.item not in ledger.words and event.item not in ledger.withdrawn
    return state is not None and state.verdict == DISPUTED and free


def _may_retract(ledger: Ledger, event: Retracted) -> bool:
    return isinstance(ledger.words.get(event.item), Adjudicated | Confirmed) and _is_verdict(ledger, event.verdict)


def _may_be_gold(ledger: Ledger, event: Gold) -> bool:
    fits = _is_item(ledger, event.item) and 0 <= event.label < ledger.given.classes
    return fits and event.item not in ledger.withdrawn


def _may_mix(_: Ledger, event: Mixed) -> bool:
    return min(event.gold, event.repeat) >= 0 and event.gold + event.repeat <= 1


def _may_draw(ledger: Ledger, event: Drawn) -> bool:
    fits = len(set(event.items)) == len(event.items) == len(event.chances) > 0
    return (
        fits
        and all(0 < chance <= 1 for chance in event.chances)
        and all(_is_item(ledger, item) and is_drawable(ledger, item) for item in event.items)
    )


def is_drawable(ledger: Ledger, item: int) -> bool:
    """Say whether a random check may ask about an item: its label is not known, and it was not withdrawn."""
    return item not in ledger.withdrawn and not isinstance(ledger.words.get(item), Gold)


def _may_budget(ledger: Ledger, event: Budget) -> bool:
    return event.total >= ledger.spent + ledger.reserved


def _may_change(ledger: Ledger, event: Changed) -> bool:
    return (event.panel is None or event.panel >= 1) and _are_verdicts(ledger, event.verdicts)


def _may_guide(ledger: Ledger, event: Guideline) -> bool:
    version = 0 if ledger.guideline is None else ledger.guideline.version
    return event.version == version + 1 and event.hash == hash_of(event.text)


def _may_pause(ledger: Ledger, event: Paused) -> bool:
    return event.name not in ledger.paused


def _may_resume(ledger: Ledger, event: Resumed) -> bool:
    return event.name in ledger.paused


def _may_remove(ledger: Ledger, event: Removed) -> bool:
    holds = any(lease.annotator == event.name for lease in ledger.leases.values())
    known = event.name in ledger.people or event.name in ledger.book.numbers
    fits = _are_verdicts(ledger, event.verdicts) and not (event.stand and event.verdicts)
    return known and event.name not in ledger.removed and not holds and fits


def _may_add(ledger: Ledger, event: Added) -> bool:
    if event.first != len(ledger.given) or not event.given:
        return False
    try:
        more = labels_of(event, ledger.given.classes)
    except (BadInput, ValueError):
        return False
    return more.given.ndim == ledger.given.given.ndim


def _may_withdraw(ledger: Ledger, event: Withdrawn) -> bool:
    fits = len(set(event.items)) == len(event.items) > 0 and ledger.withdrawn.isdisjoint(event.items)
    held = {lease.item for lease in ledger.leases.values()}
    return fits and held.isdisjoint(event.items) and all(_is_item(ledger, item) for item in event.items)


def _may_reopen(ledger: Ledger, _: Reopened) -> bool:
    return ledger.closed


def _is_item(ledger: Ledger, item: int) -> bool:
    return 0 <= item < len(ledger.given)


def _is_verdict(ledger: Ledger, verdict: int) -> bool:
    return DISPUTED <= verdict < ledger.given.classes


def _are_verdicts(ledger: Ledger, verdicts: Verdicts) -> bool:
    """Say whether each is another verdict, for an item that people spoke of and nobody had the last word on."""
    items, words = ledger.items, ledger.words
    return len({item for item, _ in verdicts}) == len(verdicts) and all(
        item in items
        and items[item].heard
        and item not in words
        and _is_verdict(ledger, verdict)
        and items[item].verdict != verdict
        for item, verdict in verdicts
    )


# What is written down.


def _speak(ledger: Ledger, event: Adjudicated | Confirmed) -> None:
    state = ledger.item(event.item)
    state.out = True
    state.verdict = event.verdict if isinstance(event, Adjudicated) else DISPUTED
    ledger.words[event.item] = event


def _retract(ledger: Ledger, event: Retracted) -> None:
    del ledger.words[event.item]
    state = ledger.items[event.item]
    state.out = event.item in ledger.withdrawn
    state.verdict = event.verdict


def _know(ledger: Ledger, event: Gold) -> None:
    state = ledger.item(event.item)
    state.out, state.verdict = True, event.label
    if not isinstance(ledger.words.get(event.item), Gold):
        ledger.gold.append(event.item)
    ledger.words[event.item] = event
    ledger.awaited.pop(event.item, None)


def _mix(ledger: Ledger, event: Mixed) -> None:
    ledger.mixed = event if event.gold + event.repeat > 0 else None


def _draw(ledger: Ledger, event: Drawn) -> None:
    for item in event.items:
        ledger.item(item)
        ledger.draws += 1
        ledger.drawn[item] = ledger.awaited[item] = ledger.draws


def _budget(ledger: Ledger, event: Budget) -> None:
    ledger.budget, ledger.hours = event.total, event.hours


def _change(ledger: Ledger, event: Changed) -> None:
    ledger.hold(event.policy)
    ledger.panel = event.panel
    _judge(ledger, event.verdicts)


def _guide(ledger: Ledger, event: Guideline) -> None:
    ledger.guideline = event


def _join(ledger: Ledger, event: Joined) -> None:
    ledger.people[event.name] = event.role
    ledger.removed.discard(event.name)


def _pause(ledger: Ledger, event: Paused) -> None:
    ledger.paused.add(event.name)


def _resume(ledger: Ledger, event: Resumed) -> None:
    ledger.paused.discard(event.name)


def _remove(ledger: Ledger, event: Removed) -> None:
    ledger.people.pop(event.name, None)
    ledger.removed.add(event.name)
    ledger.paused.discard(event.name)
    ledger.freed = [] if event.stand else _void(ledger, event.name)
    _judge(ledger, event.verdicts)


def _void(ledger: Ledger, name: str) -> list[int]:
    """Let a person's answers count no more, and return the items they were about."""
    book, freed = ledger.book, []
    for row in list(book.of(name)):
        book.take_back(row)
        book.state[row] = VOID
        if not book.is_check(row):
            ledger.uncount(row)
            freed.append(book.item[row])
    ledger.checked.pop(name, None)
    return freed


def _add(ledger: Ledger, event: Added) -> None:
    ledger.extend(ledger.given.and_then(labels_of(event, ledger.given.classes)))


def _withdraw(ledger: Ledger, event: Withdrawn) -> None:
    for item in event.items:
        ledger.item(item).out = True
        ledger.withdrawn.add(item)
        ledger.awaited.pop(item, None)


def _close(ledger: Ledger, _: Closed) -> None:
    if ledger.leases:
        raise BadLog(f"log: leases must end before a campaign closes, but {len(ledger.leases)} are open")
    ledger.closed = True


def _reopen(ledger: Ledger, _: Reopened) -> None:
    ledger.closed = False


def _judge(ledger: Ledger, verdicts: Iterable[tuple[int, int]]) -> None:
    for item, verdict in verdicts:
        ledger.items[item].verdict = verdict


CHECK: dict[type, Callable[[Ledger, Any], bool]] = {
    Adjudicated: _may_adjudicate,
    Confirmed: _may_confirm,
    Retracted: _may_retract,
    Gold: _may_be_gold,
    Mixed: _may_mix,
    Drawn: _may_draw,
    Budget: _may_budget,
    Changed: _may_change,
    Guideline: _may_guide,
    Paused: _may_pause,
    Resumed: _may_resume,
    Removed: _may_remove,
    Added: _may_add,
    Withdrawn: _may_withdraw,
    Reopened: _may_reopen,
}
"""Whether a decision can have followed what came before it."""

APPLY: dict[type, Callable[[Ledger, Any], None]] = {
    Adjudicated: _speak,
    Confirmed: _speak,
    Retracted: _retract,
    Gold: _know,
    Mixed: _mix,
    Drawn: _draw,
    Budget: _budget,
    Changed: _change,
    Guideline: _guide,
    Joined: _join,
    Paused: _pause,
    Resumed: _resume,
    Removed: _remove,
    Added: _add,
    Withdrawn: _withdraw,
    Closed: _close,
    Reopened: _reopen,
}
"""How a decision is written into the facts."""
