"""A campaign's log in one SQLite file on a disk of this machine, written by one process at a time.

Beside the file lie a lock, and a note of where the log ended last: what is missing at the end of a log leaves no gap in
its chain, so the note tells. It is written after each commit; it may lag behind the log, and never runs ahead of it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from relook.errors import BadInput, BadLog, NotAllowed
from relook.locks import Lock, file_system, is_shared
from relook.logbook import Head

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

LOCK, NOTE = ".lock", ".head"
SETTINGS = {
    "synchronous": 2,
    "mmap_size": 0,
    "recursive_triggers": 1,
    "trusted_schema": 0,
    "cell_size_check": 1,
    "fullfsync": 1,
}
"""An answer is on the disk before anybody hears of it; pages are read, not mapped; triggers see every way out."""

_NOTE_SIZE = 96


class SQLiteFile:
    """Where a database is: a file, who may write it, and how it is opened."""

    def __init__(self, path: Path, shared_disk: Literal["refused", "allowed"] = "refused") -> None:
        self.path = path
        self.name = str(path)
        self.errors: tuple[type[Exception], ...] = (sqlite3.Error,)
        kind = file_system(path)
        if shared_disk == "refused" and is_shared(kind):
            raise NotAllowed(
                f"{path}: a disk of this machine was needed, but {kind} is one that others write to as well, where "
                "locks and syncs may not hold; move the campaign, use PostgreSQL, or force it"
            )
        self._lock = Lock(path.with_name(path.name + LOCK))
        self._note: int | None = None

    def take(self) -> None:
        """Be the one that writes."""
        self._lock.take()

    def leave(self) -> None:
        """Let another write."""
        if self._note is not None:
            os.close(self._note)
            self._note = None
        self._lock.leave()

    def engine(self, mode: Literal["rw", "rwc", "ro", "still"]) -> Engine:
        """Return how to connect to it."""
        from sqlalchemy import create_engine, event
        from sqlalchemy.pool import NullPool

        if mode != "rwc" and not self.path.is_file():
            raise BadInput(f"{self.path}: a campaign's log was needed, but there is no such file; make one: relook new")
        engine = create_engine("sqlite://", creator=lambda: self._connected(mode), poolclass=NullPool)
        begin = "BEGIN" if mode in ("ro", "still") else "BEGIN IMMEDIATE"

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            connection.connection.cursor().execute(begin)

        return engine

    def _connected(self, mode: str) -> sqlite3.Connection:
        # Python's own handling of transactions would commit before a table is made.
        still = mode == "still" or (mode == "ro" and self._is_at_rest())
        how = "ro&immutable=1" if still else mode
        place = f"file:{quote(str(self.path.absolute()))}?mode={how}"
        connection = sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False, timeout=5)
        try:
            for name, value in SETTINGS.items():
                connection.execute(f"PRAGMA {name} = {value}")
            if mode in ("rw", "rwc"):
                self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        (journal,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
        if journal != "wal" or synchronous != SETTINGS["synchronous"]:
            raise NotAllowed(
                f"{self.path}: a write-ahead log that is synced was needed, but {journal} and {synchronous} came; "
                "use a disk of this machine"
            )

    def _is_at_rest(self) -> bool:
        """Say whether nobody writes and nothing can be: then no file beside it need be made to read it."""
        return not os.access(self.path.parent, os.W_OK) and not self.path.with_name(self.path.name + "-wal").exists()

    def settle(self, connection: sqlite3.Connection) -> None:
        """Have all that was committed written into the file itself, and synced.

        After a sync has failed, what the system holds of a file may not be on the disk although the next sync succeeds;
        so it is not believed, but written again.
        """
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            # A reader is at it, so the file beside is shortened another time; what it holds is written all the same.
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def note(self, head: Head) -> None:
        """Write down where the log ends now; a note that cannot be written lags behind, no more."""
        with suppress(OSError):
            if self._note is None:
                self._note = os.open(self._note_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            os.pwrite(self._note, f"{head.seq} {head.hash}".ljust(_NOTE_SIZE - 1).encode() + b"\n", 0)

    def noted(self) -> Head | None:
        """Return where the log ended when it was noted last."""
        try:
            text = self._note_path.read_text("utf-8")
        except OSError:
            return None
        except UnicodeDecodeError:
            text = ""
        seq, _, digest = text.strip().partition(" ")
        if not text.strip():
            return None
        if not seq.isdecimal() or len(digest) != len(Head().hash):
            raise BadLog(f"{self._note_path}: a number and a hash were needed, but {text.strip()!r} stands there")
        return Head(int(seq), digest)

    def last_note(self) -> Head | None:
        """Return the note as far as it can be read."""
        with suppress(BadLog):
            return self.noted()
        return None

    @property
    def _note_path(self) -> Path:
        return self.path.with_name(self.path.name + NOTE)

    def problems(self, connection: Connection) -> Iterator[str]:
        """Yield what the database says is wrong with its file."""
        for (found,) in connection.exec_driver_sql("PRAGMA integrity_check").all():
            if found != "ok":
                yield f"file: {found}"

    def rules(self, connection: Connection) -> set[str]:
        """Return the tables, indexes and triggers as the database has them."""
        return {str(row[0]) for row in connection.exec_driver_sql(_RULES)}

    def rules_of_new(self) -> set[str]:
        """Return what a new database would have."""
        return set(_rules_of_new())

    def backup(self, to: Path) -> None:
        """Copy the database as it is now, while it is written, by the database's own means."""
        with closing(self._connected("ro")) as source, closing(sqlite3.connect(to)) as target:
            source.backup(target, pages=1_000)

    def failure(self, error: Any) -> str:
        """Return what went wrong, in the database's words."""
        return str(getattr(error, "sqlite_errorname", "") or type(error).__name__)


_RULES = "SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_master"


@cache
def _rules_of_new() -> frozenset[str]:
    from sqlalchemy import create_engine

    from relook.store import migrations

    with create_engine("sqlite://").begin() as connection:
        migrations.migrate(connection)
        return frozenset(str(row[0]) for row in connection.exec_driver_sql(_RULES))
