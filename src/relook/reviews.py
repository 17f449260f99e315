"""Items that people disagree about, on their way to a reviewer and back; a reviewer's word is the last one.

A reviewer sees what people said, and says a class, that nobody can tell, that none of the classes fits, or that people
do disagree. The same word said twice changes nothing; another one replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from relook.campaign import Campaign
from relook.errors import BadInput, NotAllowed
from relook.events import DISPUTED, OUTSIDE, STATUS, UNCLEAR, Adjudicated, Confirmed
from relook.handouts import ANSWER, WHY, WORDS, Handout
from relook.imported import Imported
from relook.ledger import Ledger
from relook.returns import Known, Word, about, item_in, number_of
from relook.sources import Names

CONFIRM = "disputed"
"""What a reviewer says where people do disagree."""

SAID, VERDICT = "said", "verdict"
"""Columns that a reviewer sees beside the item: what people said, and what that made of it."""

_OPEN = (DISPUTED, UNCLEAR, OUTSIDE)


class Ruled(msgspec.Struct, frozen=True):
    """What became of a reviewer's rows: words that were recorded, those known before, empty ones, and refused ones."""

    recorded: int
    before: int
    empty: int
    refused: Sequence[str]


def waiting(ledger: Ledger) -> list[int]:
    """Return the items that wait for a reviewer: people disagree, cannot tell, or see none of the classes."""
    return [
        number
        for number, state in ledger.items.items()
        if state.verdict in _OPEN and number not in ledger.words and number not in ledger.withdrawn
    ]


def handout(source: Imported, split: str | None, *, ledger: Ledger, classes: Names) -> Handout:
    """Return what goes out to a reviewer."""
    items = waiting(ledger)
    empty: list[str | int | None] = [None] * len(items)
    said = [_said(ledger, number, classes=classes) for number in items]
    verdicts = [STATUS[ledger.items[number].verdict] for number in items]
    return Handout(source, split, items, {VERDICT: verdicts, SAID: said, ANSWER: empty, WHY: empty})


def rule(campaign: Campaign, words: Sequence[Word], *, by: Known, reviewer: str, now: float) -> Ruled:
    """Record a reviewer's rows, those that can be; others are refused by their place."""
    recorded = before = empty = 0
    refused = []
    for word in words:
        if not word.said:
            empty += 1
            continue
        try:
            if _ruled(campaign, word, by=by, reviewer=reviewer, now=now):
                recorded += 1
            else:
                before += 1
        except BadInput as error:
            refused.append(str(error))
        except NotAllowed as error:
            refused.append(f"{about(word)}: {error}")
    return Ruled(recorded, before, empty, refused)


def _ruled(campaign: Campaign, word: Word, *, by: Known, reviewer: str, now: float) -> bool:
    """Record one word, and say whether it was new."""
    if word.id is None:
        raise BadInput(f"{about(word)}: the id of an item was needed, but it has none; send the table back as it is")
    number, known = item_in(word, by), campaign.ledger.words
    manager, earlier = campaign.by(reviewer, word.why), known.get(number)
    if word.said == CONFIRM and word.said not in by.answers:
        if isinstance(earlier, Confirmed):
            return False
        manager.confirm(number, now=now)
        return True
    answer = number_of(word, by)
    if isinstance(earlier, Adjudicated) and earlier.answer == answer:
        return False
    manager.adjudicate(number, answer, now=now)
    return True


def _said(ledger: Ledger, number: int, *, classes: Names) -> str:
    """Return who said what of an item."""
    book = ledger.book
    rows = sorted(book.chain(ledger.items[number].last))
    names = {row: WORDS.get(book.answer[row]) or classes[book.answer[row]] for row in rows}
    return "; ".join(f"{book.people[book.who[row]] or 'somebody'}: {names[row]}" for row in rows)
