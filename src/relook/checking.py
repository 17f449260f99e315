"""What people are asked beside the queue: items whose label is known, and the same once more.

They are mixed in at random, at the shares that the campaign set, and look like all other items.
"""

from relook.book import PURPOSES
from relook.errors import NotAllowed
from relook.events import Purpose
from relook.ledger import Ledger
from relook.rng import generator

APART = 20
"""So many of a person's answers lie between the first time they are asked about an item and the repeat."""


def may_be_asked(ledger: Ledger, annotator: str | None) -> bool:
    """Say whether this person is asked now, or refuse one who was removed."""
    if annotator in ledger.removed:
        raise NotAllowed(f"ask: {annotator} was removed from this campaign, but asked for an item; let them join again")
    return ledger.paused.isdisjoint((None, annotator))


def mixed_in(ledger: Ledger, annotator: str | None) -> tuple[int, Purpose] | None:
    """Return the gold item, or the one to ask about again, whose turn it is, and which of them; mostly None.

    Chance belongs to the number of the lease to come: asking twice for the same lease changes nothing.
    """
    mixed = ledger.mixed
    if mixed is None or annotator is None:
        return None
    drawn = generator(ledger.started.seed, "mixed in", ledger.last_lease + 1).random()
    if drawn < mixed.gold:
        item, purpose = _gold(ledger, annotator), "gold"
    elif drawn < mixed.gold + mixed.repeat:
        item, purpose = _repeat(ledger, annotator), "repeat"
    else:
        return None
    return None if item is None else (item, purpose)  # type: ignore[return-value]


def _gold(ledger: Ledger, annotator: str) -> int | None:
    asked = ledger.checked.get(annotator, ())
    for item in ledger.gold:
        state = ledger.items[item]
        if (
            item not in asked
            and item not in ledger.withdrawn
            and state.lease is None
            and not ledger.has_answer_of(state, annotator)
        ):
            return item
    return None


def _repeat(ledger: Ledger, annotator: str) -> int | None:
    asked, book = ledger.checked.get(annotator, ()), ledger.book
    for since, row in enumerate(book.of(annotator)):
        item = book.item[row]
        if since < APART or PURPOSES[book.purpose[row]] == "gold" or item in asked or item in ledger.awaited:
            continue
        if ledger.items[item].lease is None and item not in ledger.withdrawn and item not in ledger.words:
            return item
    return None
