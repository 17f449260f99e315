"""How long an answer takes: measured from the log, and what that makes of a budget.

People take breaks, and a table that went out on Monday comes back on Friday. An answer took the time that came with it;
else the time since its person got the item or gave the answer before, whichever was later. Answers that came at one
instant, as those of a table do, share the time since they were handed out. What took longer than `BREAK` an answer was
a break, what was faster than `FASTEST` was no person; of the rest the median is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec
import numpy as np

from relook.errors import BadInput
from relook.events import Answer, Event, Lease

USUAL = 4.0
"""Seconds that an answer is taken to need as long as nobody has given any."""

FASTEST, BREAK = 0.3, 300.0
"""Seconds an answer: nobody is faster, so that is a program's; what takes longer is a break."""

ENOUGH = 20
"""So many answers make a measurement."""


class Pace(msgspec.Struct, frozen=True):
    """Seconds an answer, and how many answers that was measured on; with 0 of them it is the usual.

    >>> Pace().hours(900), Pace(8.0, 50).answers(1.0)
    (1.0, 450)
    """

    seconds: float = USUAL
    measured: int = 0

    def hours(self, answers: int) -> float:
        """Return the hours that answers take."""
        return answers * self.seconds / 3600

    def answers(self, hours: float) -> int:
        """Return the answers that can be given in so many hours."""
        if not 0 < hours < 1e6:
            raise BadInput(f"budget: a number of hours above 0 was needed, but {hours} came; write --hours 8")
        return max(int(hours * 3600 / self.seconds), 1)

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s an answer" + (f" (measured on {self.measured:,})" if self.measured else "")


def pace(events: Sequence[Event]) -> Pace:
    """Return how long an answer took in a campaign.

    >>> leases = [Lease(n, n, "Ada", 0, 10.0 * n, 99.0) for n in range(1, 22)]
    >>> answers = [Answer(n, n, "Ada", 0, 1, True, 0, 10.0 * n + 6) for n in range(1, 22)]
    >>> pace([event for pair in zip(leases, answers) for event in pair])
    Pace(seconds=6.0, measured=21)
    """
    begun = {event.number: event.at for event in events if isinstance(event, Lease)}
    answers = sorted((event for event in events if isinstance(event, Answer)), key=_who)
    took = [pair for _, given in groupby(answers, _who) for pair in _took(list(given), begun)]
    kept = np.array([pair for pair in took if FASTEST <= pair[0] <= BREAK]).reshape(-1, 2)
    measured = int(kept[:, 1].sum())
    if measured < ENOUGH:
        return Pace()
    return Pace(round(float(np.median(np.repeat(kept[:, 0], kept[:, 1].astype(int)))), 2), measured)


def _who(answer: Answer) -> str:
    return answer.annotator or ""


def _took(answers: Sequence[Answer], begun: Mapping[int, float]) -> Iterator[tuple[float, int]]:
    """Yield seconds an answer of one person, and for how many answers."""
    before = -np.inf
    yield from ((answer.seconds, 1) for answer in answers if answer.seconds is not None)
    for at, group in groupby(answers, lambda answer: answer.at):
        together = [answer for answer in group if answer.seconds is None]
        if not together:
            before = at
            continue
        since = max(before, min(begun.get(answer.lease, at) for answer in together))
        before = at
        yield (at - since) / len(together), len(together)


def in_words(hours: float) -> str:
    """Return a time as people say it.

    >>> in_words(2.75), in_words(0.5), in_words(11.11), in_words(0.001), in_words(168), in_words(0)
    ('2 h 45', '30 min', '11 hours', '1 min', '7 days', '0 min')
    """
    if hours >= 72:
        return f"{hours / 24:,.0f} days"
    if hours >= 10:
        return f"{hours:,.0f} hours"
    minutes = max(round(hours * 60), int(hours > 0))
    return f"{minutes // 60} h {minutes % 60:02d}" if minutes >= 60 else f"{minutes} min"
