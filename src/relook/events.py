"""What can happen in a campaign: a closed, versioned list of records, kept as JSON lines.

The log holds facts only. Every verdict is written beside the answer that led to it, so that a replay needs no clock, no
posteriors and no arithmetic that could come out otherwise on another machine.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from relook.errors import BadLog

SCHEMA = 1
"""The version of this list; a log of every earlier one stays readable."""

CANNOT_TELL, NONE_OF_THESE = -1, -2
"""Answers that are no class: they cost one and stay outside the counts."""

UNSETTLED, UNCLEAR, OUTSIDE, DISPUTED = -1, -2, -3, -4
"""Verdicts that are no class. UNCLEAR: two people cannot tell; OUTSIDE: two people say none of these; DISPUTED: all
have seen it."""

STATUS = {UNSETTLED: "unsettled", UNCLEAR: "unclear", OUTSIDE: "outside", DISPUTED: "disputed"}
"""How a verdict that is no class is called in tables; every other item is `settled`."""


class Started(msgspec.Struct, frozen=True, tag="started", gc=False):
    """The campaign began, on these items with these given labels, by these rules."""

    schema: int
    software: str
    given: str
    items: int
    classes: int
    budget: int
    policy: dict[str, Any]
    lease_seconds: float
    panel: int | None
    seed: int
    ids: str | None
    at: float


class Ranking(msgspec.Struct, frozen=True, tag="ranking"):
    """From here on the queue follows this score, with its fitted constants, on these posteriors."""

    number: int
    score: dict[str, Any]
    posteriors: str | None
    in_sample: bool
    at: float


class Lease(msgspec.Struct, frozen=True, tag="lease", gc=False):
    """This annotator holds this item until then; it is the item's nth answer (0 for the first)."""

    number: int
    item: int
    annotator: str | None
    nth: int
    at: float
    until: float


class Expired(msgspec.Struct, frozen=True, tag="expired", gc=False):
    """The annotator held the item no longer; the budget's place is free again."""

    lease: int
    at: float


class Skipped(msgspec.Struct, frozen=True, tag="skipped", gc=False):
    """The annotator gave the item back unanswered, free of charge."""

    lease: int
    at: float


class Answer(msgspec.Struct, frozen=True, tag="answer", gc=False):
    """This annotator gave this item this answer under this ranking; `verdict` is the item's state after it.

    An answer that came too late (`counted` is False) is kept, but neither costs nor counts.
    """

    lease: int
    item: int
    annotator: str | None
    answer: int
    ranking: int
    counted: bool
    verdict: int
    at: float


class Undone(msgspec.Struct, frozen=True, tag="undone", gc=False):
    """The annotator took the answer of this lease back; it returned to the budget and the item was judged again."""

    lease: int
    item: int
    answer: int
    verdict: int
    at: float


class Closed(msgspec.Struct, frozen=True, tag="closed", gc=False):
    """Nothing more is asked, answered in time, or undone."""

    at: float


Event = Started | Ranking | Lease | Expired | Skipped | Answer | Undone | Closed
"""Every kind of event there is."""

_decoder = msgspec.json.Decoder(Event)


def to_lines(events: Iterable[Event]) -> bytes:
    r"""Return the events as JSON lines.

    >>> to_lines([Closed(at=2.0)])
    b'{"type":"closed","at":2.0}\n'
    """
    return msgspec.json.Encoder().encode_lines(list(events))


def from_lines(lines: bytes) -> list[Event]:
    r"""Return the events that JSON lines hold; the first line that is none is named.

    >>> from_lines(b'{"type":"closed","at":2.0}\n')
    [Closed(at=2.0)]
    """
    events: list[Event] = []
    for number, line in enumerate(lines.splitlines(), start=1):
        try:
            events.append(_decoder.decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadLog(
                f"log: every line must be one event, but line {number} is not ({error}); restore a backup"
            ) from None
    return events
