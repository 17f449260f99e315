"""The live order of a campaign: who is shown which item next.

Untouched items stand in the sorted order of the last ranking, and `head` walks along it, for everybody alike. An item
that somebody was asked about and that is still wanted is announced; each annotator keeps a heap of announcements and
drops those that no longer hold. So the cost of the next item depends neither on the number of items nor on what a
person has done.
"""

from array import array
from heapq import heapify, heappop, heappush
from math import nan

import numpy as np

from relook.ledger import Ledger
from relook.types import FloatArray, IntArray

FIRST = float("inf")
"""The priority of an item that is started and not settled: it is finished before another is begun."""

CHUNK = 1_024

_SPARE = 4_096
"""So many announcements that no longer hold may stay, besides as many as hold, before they are cleared away."""


class Queue:
    """The order of one ranking, kept up to date as items change hands."""

    def __init__(self, scores: FloatArray, ledger: Ledger) -> None:
        self._scores = np.array(scores, np.float64)
        self._order: IntArray = np.argsort(-scores, kind="stable").astype(np.int32)
        self._ledger = ledger
        # NaN, which equals nothing: not wanted.
        self._keys = array("d", [nan]) * len(ledger.given)
        self._announced: list[tuple[float, int]] = []
        self._most = _SPARE
        self._heaps: dict[str | None, tuple[list[tuple[float, int]], list[int]]] = {}
        self._chunk: list[int] = []
        self._place = 0
        self._loaded = 0

    def is_ranked(self, item: int) -> bool:
        """Say whether an item was there at the ranking."""
        return item < len(self._scores)

    def grow(self) -> None:
        """Have room for items that came after the ranking."""
        self._keys.extend([nan] * (len(self._ledger.given) - len(self._keys)))

    def score(self, item: int) -> float:
        """Return the item's score: that at the ranking, or its last one since."""
        return self._scores.item(item)

    def rescore(self, item: int, score: float) -> None:
        """Give an item another score."""
        self._scores[item] = score

    def announce(self, item: int, priority: float) -> None:
        """Want an item that somebody was asked about, at this priority; `FIRST` goes before everything."""
        key = -priority
        self._keys[item] = key
        self._announced.append((key, item))
        if len(self._announced) > self._most:
            self._clear_away()

    def withdraw(self, item: int) -> None:
        """Want an item no longer."""
        self._keys[item] = nan

    def take(self, annotator: str | None) -> int | None:
        """Return the item this person should see next, and take it out; None when only what they gave back is left."""
        heap = self._heap(annotator)
        fresh = self._fresh()
        if heap and (fresh is None or heap[0] < (-self._scores.item(fresh), fresh)):
            item = heappop(heap)[1]
        elif fresh is not None:
            item = fresh
            self._place += 1
        else:
            return None
        self._keys[item] = nan
        return item

    def holds(self, item: int) -> bool:
        """Say whether an item that somebody was asked about is wanted."""
        return self._keys[item] == self._keys[item]

    def _heap(self, annotator: str | None) -> list[tuple[float, int]]:
        known = self._heaps.get(annotator)
        if known is None:
            known = self._heaps[annotator] = (self._announced.copy(), [len(self._announced)])
            heapify(known[0])
        heap, seen = known
        announced = self._announced
        for place in range(seen[0], len(announced)):
            heappush(heap, announced[place])
        seen[0] = len(announced)
        while heap and not self._holds(heap[0], annotator):
            heappop(heap)
        return heap

    def _holds(self, entry: tuple[float, int], annotator: str | None) -> bool:
        key, item = entry
        if self._keys[item] != key:
            return False
        if annotator is None:
            return True
        ledger = self._ledger
        heard = ledger.has_answer_of(ledger.items[item], annotator)
        return not heard and item not in ledger.skipped.get(annotator, ())

    def _clear_away(self) -> None:
        """Forget announcements that no longer hold; the heaps are made anew from the rest."""
        keys = self._keys
        self._announced = list(dict.fromkeys(entry for entry in self._announced if keys[entry[1]] == entry[0]))
        self._most = 2 * len(self._announced) + _SPARE
        self._heaps.clear()

    def _fresh(self) -> int | None:
        touched = self._ledger.items
        while True:
            chunk = self._chunk
            for place in range(self._place, len(chunk)):
                if chunk[place] not in touched:
                    self._place = place
                    return chunk[place]
            if self._loaded == len(self._order):
                self._place = len(chunk)
                return None
            self._chunk = self._order[self._loaded : self._loaded + CHUNK].tolist()
            self._loaded += len(self._chunk)
            self._place = 0
