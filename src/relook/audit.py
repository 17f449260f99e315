"""Whether a store holds what its log says: everything is computed from the log again, and compared."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import msgspec

from relook.errors import BadInput, BadLog
from relook.events import Event, from_lines
from relook.ledger import Ledger
from relook.logbook import GENESIS, Counted, Effect, Head, Row, Store, Sums, chained, checked, effect, entry, link
from relook.origins import start_of
from relook.whole import drafted, synced


class Audit(msgspec.Struct, frozen=True):
    """What a log says, computed anew, and what is wrong: nothing, where `problems` is empty."""

    head: Head
    sums: Sums
    counted: int
    problems: tuple[str, ...] = ()


class Fold:
    """The sums and the answers that count, computed event by event, as a plain model of what a store keeps."""

    def __init__(self) -> None:
        self.sums = Sums()
        self.counted: dict[int, Counted] = {}

    def add(self, event: Event) -> None:
        """Add what an event does."""
        change = effect(event)
        self.sums = self.sums.after(change)
        self._count(change)

    def _count(self, change: Effect) -> None:
        if change.freed is not None:
            self.counted.pop(change.freed, None)
        if change.gone is not None:
            self.counted = {key: one for key, one in self.counted.items() if one.annotator != change.gone}
        if change.counted is not None:
            self.counted[change.counted.lease] = change.counted

    def doubled(self) -> list[Counted]:
        """Return answers of people who answered an item before."""
        seen: set[tuple[int, str]] = set()
        double = []
        for answer in self.counted.values():
            if answer.annotator is not None and (answer.item, answer.annotator) in seen:
                double.append(answer)
            elif answer.annotator is not None:
                seen.add((answer.item, answer.annotator))
        return double


def audit(store: Store, *, head: str | None = None) -> Audit:
    """Compute everything from the log of a store, and say what differs from what it keeps.

    `head` is the hash of a row, kept elsewhere since: with it, nothing up to that row can have been changed.
    """
    walk, problems = _Walk(), list[str]()
    steps: list[Callable[[], Iterable[str]]] = [
        getattr(store, "problems", tuple),
        lambda: walk.over(store, wanted=head),
        lambda: _differences(store, walk),
    ]
    for step in steps:
        try:
            with getattr(store, "snapshot", nullcontext)():
                problems += step()
        except Exception as error:  # noqa: BLE001  # whatever damaged bytes make others raise is what is looked for
            problems.append(str(error) or type(error).__name__)
    return Audit(walk.head, walk.fold.sums, len(walk.fold.counted), tuple(problems))


class _Walk:
    """One pass over the rows, as long as their chain holds; what follows a break proves nothing."""

    def __init__(self) -> None:
        self.head, self.fold = Head(), Fold()
        self._keys: set[str] = set()

    def over(self, store: Store, *, wanted: str | None) -> Iterator[str]:
        """Yield what is wrong with the rows."""
        given, ledger, met = store.given(), None, wanted is None
        for seq, row in enumerate(store.rows(), 1):
            if row.seq != seq or row.hash != link(row, self.head.hash):
                raise BadLog(f"row {seq}: the hash of what it holds was needed, but another stands there")
            event = row.event
            if ledger is None:
                ledger = Ledger(given, start_of([event], given))
            else:
                ledger.apply(event)
            self.fold.add(event)
            self.head = Head(seq, row.hash)
            yield from self._wrong(row)
            met = met or row.hash == wanted
        if not met:
            yield f"head {wanted}: a row of this hash was needed, but none has it; this is another log, or a cut one"

    def _wrong(self, row: Row) -> Iterator[str]:
        if not self.fold.sums.sound:
            yield f"row {row.seq}: {self.fold.sums} is no budget that is kept"
        if row.key is not None:
            if row.key in self._keys:
                yield f"row {row.seq}: key {row.key} came before"
            self._keys.add(row.key)


def _differences(store: Store, walk: _Walk) -> Iterator[str]:
    fold, last = walk.fold, walk.head
    if store.sums() != fold.sums:
        yield f"sums: {fold.sums} follows from the log, but {store.sums()} is kept"
    kept, follows = store.counted(), sorted(fold.counted.values())
    if kept != follows:
        wrong = next(iter(sorted(set(kept) ^ set(follows), key=repr)), None)
        yield f"counted: {len(follows)} answers follow from the log, but {len(kept)} are kept; the first: {wrong}"
    for answer in fold.doubled():
        yield f"counted: {answer} is a second one"
    if store.head != last:
        yield f"log: it ends at row {last.seq}, but the store says {store.head.seq}"


class Left(msgspec.Struct, frozen=True):
    """A row that a repair did not keep, with what could be read of it."""

    seq: int
    why: str
    line: str | None = None
    key: str | None = None
    written: str | None = None


class Repair(msgspec.Struct, frozen=True):
    """What a repair kept, and what it did not."""

    kept: int
    left: tuple[Left, ...]
    listed: Path | None


def repaired(place: Path, to: Path) -> Repair:
    """Write a new log with every row whose chain holds from the first row on, and list the rest beside it.

    The damaged log is only read. What is listed holds the answers of people still, where it can be read.
    """
    from relook import store
    from relook.store import salvage
    from relook.store.sqlite import SQLiteFile

    path = place / store.LOG if place.is_dir() else place
    if store.is_server(str(place)) or not path.is_file():
        raise BadInput(f"{path}: a SQLite file to mend was needed; a server mends its own, from its backups")
    noted = SQLiteFile(path, "allowed").last_note()
    found = salvage.found(path, until=0 if noted is None else noted.seq)
    kept, left = _parted(found.rows)
    if not kept:
        raise BadLog(f"{path}: a first row was needed, but none can be read or trusted; restore a backup")
    listed = to.with_name(f"{to.name}.left.jsonl") if left else None
    if listed is not None:
        listed.write_bytes(msgspec.json.Encoder().encode_lines(left))
    store.fill(to, found.given, rows=kept)
    return Repair(len(kept), tuple(left), listed)


def _parted(rows: Sequence[tuple[int, Row | None]]) -> tuple[list[Row], list[Left]]:
    kept, left, before = list[Row](), list[Left](), GENESIS
    for seq, row in rows:
        if row is None:
            left.append(Left(seq, "it cannot be read"))
        elif row.seq == len(kept) + 1 and row.hash == link(row, before):
            kept.append(row)
            before = row.hash
        else:
            why = "it follows a row that is lost" if left else "its hash is that of another row"
            left.append(Left(seq, why, row.line, row.key, row.written))
    return kept, left


def backed_up(place: str, to: Path) -> Audit:
    """Copy a log while it is written, and verify the copy before it gets its name."""
    from relook import store

    if to.exists():
        raise BadInput(f"{to}: a backup is a file of its own, and one has this name; name another")
    source = store.reading(place)
    try:
        with drafted(to) as draft:
            if store.is_server(place):
                with source.snapshot():
                    store.fill(draft, source.given(), rows=source.rows())
            else:
                source.site.backup(draft)
            found = _sound(draft)
            synced(draft)
    finally:
        source.close()
    return found


def rebuilt(place: str, lines: Path, *, to: Path, written: str) -> Audit:
    """Make a log anew from events as JSON lines, on the labels of another log of the campaign."""
    from relook import store

    source = store.reading(place)
    try:
        given = source.given()
    finally:
        source.close()
    events = from_lines(lines.read_bytes())
    store.fill(to, given, rows=chained([entry([event]) for event in events], Head(), written=written))
    try:
        return _sound(to)
    except BadLog:
        to.unlink()
        raise


def lines_of(place: str) -> Iterator[str]:
    """Yield the events of a log as JSON lines, as long as its chain holds."""
    from relook import store

    source = store.reading(place)
    try:
        for row in checked(source.rows()):
            yield row.line
    finally:
        source.close()


def _sound(path: Path) -> Audit:
    from relook import store

    copy = store.resting(path)
    try:
        found = audit(copy)
    finally:
        copy.close()
    if found.problems:
        raise BadLog(f"{path}: a log that proves itself was needed, but {found.problems[0]}; see: relook log verify")
    return found
