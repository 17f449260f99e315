"""What can happen in a campaign: a closed, versioned list of records, kept as JSON lines.

The log holds facts only. Every verdict is written beside what led to it, so that a replay needs no clock, no posteriors
and no arithmetic that could come out otherwise on another machine. What a person decides says by whom, and may say why.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from relook.errors import BadLog

SCHEMA = 2
"""The version of this list; a log of every earlier one stays readable."""

CANNOT_TELL, NONE_OF_THESE = -1, -2
"""Answers that are no class: they cost one and stay outside the counts."""

UNSETTLED, UNCLEAR, OUTSIDE, DISPUTED = -1, -2, -3, -4
"""Verdicts that are no class. UNCLEAR: two people cannot tell; OUTSIDE: two people say none of these; DISPUTED: all
have seen it."""

STATUS = {UNSETTLED: "unsettled", UNCLEAR: "unclear", OUTSIDE: "outside", DISPUTED: "disputed"}
"""How a verdict that is no class is called in tables; every other item is `settled`."""

Purpose = Literal["label", "repeat", "gold", "draw"]
"""What somebody is asked for: a label; the same again, for self-agreement; an item whose label is known; a random
check."""

Role = Literal["annotator", "reviewer", "manager"]
"""What somebody is in a campaign: who answers, who has the last word on an item, who decides about the campaign."""

Verdicts = list[tuple[int, int]]
"""Items whose verdict changed, each with the new one."""


class Started(msgspec.Struct, frozen=True, tag="started", gc=False, omit_defaults=True):
    """The campaign began, on these items with these given labels, by these rules.

    `ids` is the hash of the items' ids, `names` are those of the classes. An `evaluation` set is one that models will
    be judged on. `continues` is the head of the log of an earlier campaign whose answers it builds on. A budget that
    was agreed in hours says how many.
    """

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
    names: tuple[str, ...] = ()
    purpose: Literal["train", "evaluation"] = "train"
    continues: str | None = None
    hours: float | None = None
    by: str | None = None


class Ranking(msgspec.Struct, frozen=True, tag="ranking", omit_defaults=True):
    """From here on the queue follows this score, with its fitted constants, on these posteriors.

    `about` says what made the posteriors: the selector, a hash of the labels it learnt from, how well it is calibrated.
    """

    number: int
    score: dict[str, Any]
    posteriors: str | None
    in_sample: bool
    at: float
    about: dict[str, Any] = {}


class Lease(msgspec.Struct, frozen=True, tag="lease", gc=False, omit_defaults=True):
    """This annotator holds this item until then; it is the item's nth answer (0 for the first)."""

    number: int
    item: int
    annotator: str | None
    nth: int
    at: float
    until: float
    purpose: Purpose = "label"


class Renewed(msgspec.Struct, frozen=True, tag="renewed", gc=False):
    """The program started again: every open lease has a fresh full term, until then."""

    until: float
    at: float


class Expired(msgspec.Struct, frozen=True, tag="expired", gc=False):
    """The annotator held the item no longer; the budget's place is free again."""

    lease: int
    at: float


class Skipped(msgspec.Struct, frozen=True, tag="skipped", gc=False):
    """The annotator gave the item back unanswered, free of charge."""

    lease: int
    at: float


class Answer(msgspec.Struct, frozen=True, tag="answer", gc=False, omit_defaults=True):
    """This annotator gave this item this answer under this ranking; `verdict` is the item's state after it.

    An answer that came too late (`counted` is False) is kept, but neither costs nor counts. `seconds` is how long it
    took, where that was measured; else it is the time since the lease.
    """

    lease: int
    item: int
    annotator: str | None
    answer: int
    ranking: int
    counted: bool
    verdict: int
    at: float
    seconds: float | None = None


class Checked(msgspec.Struct, frozen=True, tag="checked", gc=False, omit_defaults=True):
    """This annotator answered a repeat or a gold item: it costs one like any answer, and is never a vote.

    The item's verdict stays as it was. One that came too late (`counted` is False) is kept and costs nothing.
    """

    lease: int
    item: int
    annotator: str | None
    answer: int
    counted: bool
    verdict: int
    at: float
    seconds: float | None = None


class Undone(msgspec.Struct, frozen=True, tag="undone", gc=False):
    """The annotator took the answer of this lease back; it returned to the budget and the item was judged again."""

    lease: int
    item: int
    answer: int
    verdict: int
    at: float


class Adjudicated(msgspec.Struct, frozen=True, tag="adjudicated", gc=False, omit_defaults=True):
    """A reviewer's word on an item: a class, or one of the answers that are none. It decides the verdict and is free.

    A later one replaces it; `Retracted` takes it back.
    """

    item: int
    answer: int
    verdict: int
    by: str
    at: float
    why: str | None = None


class Confirmed(msgspec.Struct, frozen=True, tag="confirmed", gc=False, omit_defaults=True):
    """A reviewer confirmed that people disagree about this item: it stays disputed until the word is taken back."""

    item: int
    by: str
    at: float
    why: str | None = None


class Retracted(msgspec.Struct, frozen=True, tag="retracted", gc=False, omit_defaults=True):
    """A reviewer's word on an item was taken back; `verdict` is what people's answers make of it."""

    item: int
    verdict: int
    by: str
    at: float
    why: str | None = None


class Gold(msgspec.Struct, frozen=True, tag="gold", gc=False, omit_defaults=True):
    """This item's label is known, and final; people may be asked about it to see how well they answer."""

    item: int
    label: int
    by: str
    at: float
    why: str | None = None


class Mixed(msgspec.Struct, frozen=True, tag="mixed", gc=False, omit_defaults=True):
    """From here on such shares of what people are asked are gold items and repeats, at random."""

    gold: float
    repeat: float
    by: str
    at: float
    why: str | None = None


class Drawn(msgspec.Struct, frozen=True, tag="drawn", omit_defaults=True):
    """These items were drawn for a random check, each with its chance of being drawn; they go before the queue."""

    items: list[int]
    chances: list[float]
    by: str
    at: float
    why: str | None = None


class Budget(msgspec.Struct, frozen=True, tag="budget", gc=False, omit_defaults=True):
    """From here on the budget is this many answers in all; one agreed in hours says how many."""

    total: int
    by: str
    at: float
    hours: float | None = None
    why: str | None = None


class Changed(msgspec.Struct, frozen=True, tag="changed", omit_defaults=True):
    """From here on this policy, with its stopping rule, and this panel hold; `verdicts` are those that this changed."""

    policy: dict[str, Any]
    panel: int | None
    verdicts: Verdicts
    by: str
    at: float
    why: str | None = None


class Guideline(msgspec.Struct, frozen=True, tag="guideline", gc=False, omit_defaults=True):
    """From here on people answer by this text; `hash` is its fingerprint."""

    version: int
    hash: str
    text: str
    by: str
    at: float
    why: str | None = None


class Joined(msgspec.Struct, frozen=True, tag="joined", gc=False, omit_defaults=True):
    """Somebody takes part in this role, or in another one from here on."""

    name: str
    role: Role
    by: str
    at: float
    why: str | None = None


class Paused(msgspec.Struct, frozen=True, tag="paused", gc=False, omit_defaults=True):
    """Nothing more is asked of this person, or of anybody (None); what they hold they may still answer."""

    name: str | None
    by: str
    at: float
    why: str | None = None


class Resumed(msgspec.Struct, frozen=True, tag="resumed", gc=False, omit_defaults=True):
    """This person is asked again, or everybody (None) who is not paused alone."""

    name: str | None
    by: str
    at: float
    why: str | None = None


class Removed(msgspec.Struct, frozen=True, tag="removed", omit_defaults=True):
    """This person takes part no longer.

    Where their answers do not stand, they count no more, stay paid, and `verdicts` are those that this changed.
    """

    name: str
    stand: bool
    verdicts: Verdicts
    by: str
    at: float
    why: str | None = None


class Added(msgspec.Struct, frozen=True, tag="added", omit_defaults=True):
    """More items, numbered from `first` on, with their given labels: a class each (-1: none), or counts.

    `came_with` is the label each came with, where the given ones are counts; `ids` the hash of their ids. They are
    asked about from the next ranking on.
    """

    first: int
    given: list[int | list[int]]
    ids: str | None
    by: str
    at: float
    came_with: list[int] | None = None
    why: str | None = None


class Withdrawn(msgspec.Struct, frozen=True, tag="withdrawn", omit_defaults=True):
    """These items are asked about no more; what was said of them stays."""

    items: list[int]
    by: str
    at: float
    why: str | None = None


class Closed(msgspec.Struct, frozen=True, tag="closed", gc=False, omit_defaults=True):
    """Nothing more is asked, answered in time, undone or decided."""

    at: float
    by: str | None = None
    why: str | None = None


class Reopened(msgspec.Struct, frozen=True, tag="reopened", gc=False, omit_defaults=True):
    """A closed campaign goes on."""

    by: str
    at: float
    why: str | None = None


Event = (
    Started
    | Ranking
    | Lease
    | Renewed
    | Expired
    | Skipped
    | Answer
    | Checked
    | Undone
    | Adjudicated
    | Confirmed
    | Retracted
    | Gold
    | Mixed
    | Drawn
    | Budget
    | Changed
    | Guideline
    | Joined
    | Paused
    | Resumed
    | Removed
    | Added
    | Withdrawn
    | Closed
    | Reopened
)
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
    [Closed(at=2.0, by=None, why=None)]
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
