"""A store that ends with its process: for simulations, and as the plain model of what a store does."""

from collections.abc import Iterator, Sequence

from relook.errors import NotStored
from relook.logbook import Counted, Effect, Head, Row, Sums, effect
from relook.types import Labels


class Memory:
    """A log in memory, with the sums and the answers that count."""

    def __init__(self, given: Labels) -> None:
        self._given = given
        self._rows: list[Row] = []
        self.reopen()

    @property
    def head(self) -> Head:
        """Where the log ends."""
        return Head(self._rows[-1].seq, self._rows[-1].hash) if self._rows else Head()

    def append(self, rows: Sequence[Row]) -> None:
        """Keep these rows, all of them or none."""
        before = len(self._rows)
        try:
            for row in rows:
                self._take(row)
                self._rows.append(row)
        except NotStored:
            del self._rows[before:]
            self.reopen()
            raise

    def rows(self, after: int = 0) -> Iterator[Row]:
        """Yield the rows after so many."""
        yield from self._rows[after:]

    def results(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the results of those keys that have one."""
        return {key: self._results[key] for key in keys if key in self._results}

    def sums(self) -> Sums:
        """Return the sums."""
        return self._sums

    def counted(self) -> list[Counted]:
        """Return the answers that count, by lease."""
        return sorted(self._counted.values())

    def given(self) -> Labels:
        """Return the labels that the campaign began with."""
        return self._given

    def reopen(self) -> None:
        """Compute everything from the rows again."""
        self._results: dict[str, str] = {}
        self._sums = Sums()
        self._counted: dict[int, Counted] = {}
        self._lease_of: dict[tuple[int, str], int] = {}
        for row in self._rows:
            self._take(row, follows=row.seq - 1)

    def close(self) -> None:
        """Do nothing: nobody else has it."""

    def _take(self, row: Row, *, follows: int | None = None) -> None:
        last = self.head.seq if follows is None else follows
        if row.seq != last + 1:
            raise NotStored(f"store: row {last + 1} was needed next, but row {row.seq} came; read the log again")
        change = effect(row.event)
        sums = self._sums.after(change)
        if not sums.sound:
            raise NotStored(f"store: spent and reserved must stay within the budget, but row {row.seq} makes {sums}")
        if row.key is not None:
            if row.key in self._results:
                raise NotStored(f"store: a key of its own was needed, but {row.key} came twice; ask for its result")
            self._results[row.key] = row.result or ""
        self._sums = sums
        self._count(change)

    def _count(self, change: Effect) -> None:
        if change.freed is not None:
            self._free(change.freed)
        if change.gone is not None:
            for lease in [lease for lease, answer in self._counted.items() if answer.annotator == change.gone]:
                self._free(lease)
        new = change.counted
        if new is None:
            return
        if new.lease in self._counted or (new.item, new.annotator) in self._lease_of:
            raise NotStored(f"store: one answer an item and person counts, but {new} is a second one")
        self._counted[new.lease] = new
        if new.annotator is not None:
            self._lease_of[new.item, new.annotator] = new.lease

    def _free(self, lease: int) -> None:
        answer = self._counted.pop(lease, None)
        if answer is not None and answer.annotator is not None:
            del self._lease_of[answer.item, answer.annotator]
