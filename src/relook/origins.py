"""What a log is replayed on: labels, ids, a policy and the posteriors of a ranking, each checked against the log."""

from collections.abc import Mapping, Sequence
from typing import Any

from relook.errors import BadLog
from relook.events import SCHEMA, Added, Changed, Event, Ranking, Started
from relook.rules import Policy
from relook.types import Labels, Posteriors, ids_fingerprint


def start_of(events: Sequence[Event], given: Labels, *, policy: Policy | None = None) -> Started:
    """Return the start of a log, or say why these labels, or this policy where one came, are not its own.

    The labels may be those that it began with, or of all items that it has by its end.
    """
    started = events[0] if events else None
    if not isinstance(started, Started):
        raise BadLog(f"log: a campaign's start was needed first, but {type(started).__name__} came; was the log cut?")
    if started.schema > SCHEMA:
        raise BadLog(
            f"log: schema {SCHEMA} or older was needed, but relook {started.software} wrote {started.schema}; "
            "install a newer relook"
        )
    own = len(given) == started.items or any(type(event) is Added for event in events)
    first = given.first(started.items)
    if not own or (started.given, started.items, started.classes) != (first.fingerprint(), len(first), first.classes):
        raise BadLog("log: the given labels it began with were needed, but others came; pass those labels")
    agreed = _agreed(events, started)
    if policy is not None and agreed != policy.record():
        raise BadLog(f"log: policy {agreed} was needed, but {policy.record()} came; pass the one that holds at its end")
    return started


def _agreed(events: Sequence[Event], started: Started) -> dict[str, Any]:
    """Return the policy that holds at the end of a log."""
    return next((event.policy for event in reversed(events) if type(event) is Changed), started.policy)


def check_ids(events: Sequence[Event], ids: Sequence[str]) -> None:
    """Refuse ids that are not those of the items of a log, where the log knows their hash.

    >>> from relook.events import Started
    >>> start = Started(2, "0", "", 2, 2, 0, {}, 1.0, None, 0, ids_fingerprint(["a", "b"]), 0.0)
    >>> check_ids([start], ["a", "b"])
    """
    for event in events:
        if isinstance(event, Started):
            low, count = 0, event.items
        elif isinstance(event, Added):
            low, count = event.first, len(event.given)
        else:
            continue
        found = ids_fingerprint(ids[low : low + count])
        if event.ids is not None and found != event.ids:
            raise BadLog(
                f"log: the ids of items {low} to {low + count - 1} were needed as it knows them, but others came; "
                "pass the set it is about, in its order"
            )


def posteriors_of(event: Event, rankings: Mapping[int, Posteriors | None]) -> Posteriors | None:
    """Return the posteriors that a ranking used, or say that they are missing or others."""
    if not isinstance(event, Ranking):
        raise BadLog(f"log: a ranking was needed, but {type(event).__name__} came")
    posteriors = rankings.get(event.number)
    found = None if posteriors is None else posteriors.fingerprint()
    if found != event.posteriors:
        raise BadLog(
            f"ranking {event.number}: posteriors {event.posteriors} were needed, but {found} came; pass its file"
        )
    return posteriors
