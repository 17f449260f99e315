"""The live order of a campaign: who is shown which item next.

Untouched items stand in the sorted order of the last ranking, and `head` walks along it, for everybody alike. An item
that somebody was asked about and that is still wanted is announced; each annotator keeps a heap of announcements and
drops those that no longer hold. So the cost of the next item depends neither on the number of items nor on what a
person has done.
"""

from heapq import heappop, heappush

import numpy as np

from relook.ledger import Ledger
from relook.types import FloatArray, IntArray

FIRST = float("inf")
"""The priority of an item that is started and not settled: it is finished before another is begun."""

CHUNK = 1_024


class Queue:
    """The order of one ranking, kept up to date as items change hands."""

    def __init__(self, scores: FloatArray, ledger: Ledger) -> None:
        self._scores = scores
        self._order: IntArray = np.argsort(-scores, kind="stable").astype(np.int32)
        self._ledger = ledger
        self._keys: dict[int, float] = {}
        self._announced: list[tuple[float, int]] = []
        self._heaps: dict[str | None, tuple[list[tuple[float, int]], list[int]]] = {}
        self._chunk: list[int] = []
        self._place = 0
        self._loaded = 0

    def score(self, item: int) -> float:
        """Return the item's score at the ranking."""
        return float(self._scores[item])

    def announce(self, item: int, priority: float) -> None:
        """Want an item that somebody was asked about, at this priority; `FIRST` goes before everything."""
        self._keys[item] = -priority
        self._announced.append((-priority, item))

    def withdraw(self, item: int) -> None:
        """Want an item no longer."""
        self._keys.pop(item, None)

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
        self._keys.pop(item, None)
        return item

    def holds(self, item: int) -> bool:
        """Say whether an item that somebody was asked about is wanted."""
        return item in self._keys

    def _heap(self, annotator: str | None) -> list[tuple[float, int]]:
        known = self._heaps.get(annotator)
        if known is None:
            known = self._heaps[annotator] = ([], [0])
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
        if self._keys.get(item) != key:
            return False
        if annotator is None:
            return True
        ledger = self._ledger
        return not ledger.items[item].has_answer_of(annotator) and item not in ledger.skipped.get(annotator, ())

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
