"""What a long campaign costs: the next question, the room for items and answers, and taking it up from its log.

    python -m benchmarks.campaigns [--to FOLDER] [--quick]

Each row of the table is a function of its own; CPU seconds, and ratios wherever one machine must not matter.
"""

import argparse
import gc
import json
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks import record
from relook.campaign import Campaign
from relook.events import Event, Lease, from_lines, to_lines
from relook.policies import Setting, named
from relook.rules import Terms
from relook.stopping import named as rule
from relook.types import Labels, Posteriors

CLASSES = 10
PANEL = ("Ada", "Bo", "Cy", "Dee")
BATCH = 100


class Row(NamedTuple):
    """A figure, and what it may be at most."""

    what: str
    found: float
    most: float


def world(items: int, seed: int = 0) -> tuple[Labels, Posteriors]:
    """Return given labels and posteriors of single precision, as files hold them."""
    rng = np.random.default_rng(seed)
    values = rng.random((items, CLASSES), np.float32) ** 4 + np.float32(0.01)
    values /= values.sum(1, keepdims=True)
    return Labels(rng.integers(0, CLASSES, items).astype(np.int8), CLASSES), Posteriors(values)


def campaign_of(items: int, settle: str = "paper", policy: str = "default") -> Campaign:
    """Return a campaign of so many items, with room for as many answers as anybody likes."""
    given, posteriors = world(items)
    stop, weight = rule(settle)
    how = named(policy, Setting(stop=stop, given_weight=weight))
    return Campaign(given, how, budget=10**9, posteriors=posteriors, terms=Terms(1e9, len(PANEL)))


def answered(campaign: Campaign, answers: int, *, people: tuple[str, ...] = PANEL, keep: int = 0) -> list[Event]:
    """Let people ask and answer in turns; the log goes where it would go, to a store."""
    rng = np.random.default_rng(1)
    said = rng.integers(0, CLASSES, answers).tolist()
    kept: list[Event] = []
    for number in range(answers):
        lease = campaign.ask(people[number % len(people)])
        if lease is None:
            break
        campaign.tell(lease, said[number])
        if number % 1_000 == 0 or keep:
            events = campaign.drain()
            kept += events if keep else []
    kept += campaign.drain() if keep else []
    return kept


def cost_of_ask(campaign: Campaign, annotator: str, *, times: int = 20) -> float:
    """Return the least CPU seconds of an ask over some rounds; what was asked is given back each time."""
    least = np.inf
    for _ in range(times):
        leases: list[Lease] = []
        began = process_time()
        for _ in range(BATCH):
            lease = campaign.ask(annotator)
            assert lease is not None
            leases.append(lease)
        least = min(least, (process_time() - began) / BATCH)
        for number in [lease.number for lease in leases]:
            campaign.expire(number, campaign.ledger.now)
        campaign.drain()
    return float(least)


def ask_by_items(sizes: tuple[int, int] = (10_000, 1_000_000)) -> Row:
    """The cost of the next question does not depend on how many items there are."""
    small, large = (cost_of_ask(campaign_of(size), "Ada") for size in sizes)
    return Row(f"ask: {sizes[1]:,} items / {sizes[0]:,} items", large / small, 1.5)


def ask_by_answers(items: int = 50_000, answers: int = 5_000) -> Row:
    """It does not depend on how many of the open items somebody has answered."""
    fresh, busy = campaign_of(items, "people:2"), campaign_of(items, "people:2")
    answered(busy, answers, people=("Ada",))
    # What nobody else has answered stays open: all of it stands before Ada's next item.
    return Row(
        f"ask: {answers:,} open items answered / none", cost_of_ask(busy, "Ada") / cost_of_ask(fresh, "Ada"), 1.5
    )


def traced(make: Callable[[], Any]) -> tuple[int, Any]:
    """Return how many bytes what is made holds."""
    gc.collect()
    tracemalloc.start()
    made = make()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held, made


def room_of_items(items: int = 1_000_000) -> Row:
    """What an item takes that nobody was asked about; given labels and posteriors are the caller's."""
    given, posteriors = world(items)
    policy = named("default")
    held, _ = traced(lambda: Campaign(given, policy, budget=10**9, posteriors=posteriors))
    return Row(f"bytes an item, of {items:,}", held / items, 100)


def room_of_answers(items: int = 200_000, answers: int = 200_000, settle: str = "paper") -> Row:
    """What an answer takes, its item's own state, queues of four people and all; the log is in the store."""
    campaign = campaign_of(items, settle)
    campaign.drain()
    held, _ = traced(lambda: answered(campaign, answers))
    return Row(f"bytes an answer, of {answers:,}, settled by {settle}", held / answers, 300)


def replay(events: int = 1_000_000) -> Row:
    """Take a campaign up from its log: read the lines, fold them, rebuild the queue."""
    items = max(10, events // 4)
    campaign = campaign_of(items, "people:2", "paper")
    log = answered(campaign, events // 2, keep=1)
    lines = to_lines(log)
    given, posteriors = world(items)
    began = process_time()
    Campaign.replay(from_lines(lines), given, campaign.policy, rankings={1: posteriors})
    seconds = process_time() - began
    return Row(f"replay of {len(log):,} events, CPU s", seconds, 20 * len(log) / 1_000_000)


def rows(*, quick: bool = False) -> list[Row]:
    """Return every figure."""
    few = 20 if quick else 1
    return [
        ask_by_items((10_000, 1_000_000 // few)),
        ask_by_answers(50_000 // few, 5_000 // few),
        room_of_items(1_000_000 // few),
        room_of_answers(200_000 // few, 200_000 // few),
        room_of_answers(200_000 // few, 200_000 // few, "people:2"),
        replay(1_000_000 // few),
    ]


def main() -> None:
    """Measure, print, and keep the figures with the machine and the commit beside them."""
    parser = argparse.ArgumentParser(description="Measure what a long campaign costs.")
    parser.add_argument("--to", type=Path, help="folder for campaigns.json and campaigns.md")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the size")
    options = parser.parse_args()
    began = process_time()
    checks = [
        {
            "what": row.what,
            "needed": f"at most {row.most:g}",
            "found": round(row.found, 3),
            "holds": row.found <= row.most,
        }
        for row in rows(quick=options.quick)
    ]
    sys.stdout.write(json.dumps(checks, indent=1) + "\n")
    if options.to is not None:
        found = {
            "title": "The next question, the room for items and answers, and taking a campaign up from its log.",
            "command": "python -m benchmarks.campaigns", "machine": record.machine(), "commit": record.commit(),
            "seconds": round(process_time() - began, 1), "seed": 0, "rows": [], "checks": checks,
        }  # fmt: skip
        record.write(options.to, "campaigns", found=found, columns={})


if __name__ == "__main__":
    main()
