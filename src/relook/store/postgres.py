"""A campaign's log in a PostgreSQL database of its own, written by one process at a time, wherever that runs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relook.errors import Busy, MissingExtra, NotAllowed
from relook.locks import host
from relook.logbook import Head

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

LOCK = 5_271_009
"""The number of the advisory lock that the writer of a database holds; it ends with its connection."""

PATIENCE = 0.6
"""Seconds that a writer waits for the lock."""

_HOLDER = """
SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) JOIN pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.objid = %s AND d.datname = current_database() AND l.granted
"""


_RULES = """
SELECT c.relname::text, tgname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE NOT tgisinternal AND tgenabled = 'O' AND c.relnamespace = current_schema()::regnamespace
UNION ALL
SELECT c.relname::text, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
WHERE c.relnamespace = current_schema()::regnamespace AND contype IN ('c', 'u', 'p')
"""

_NEW = (
    "alembic_version PRIMARY KEY (version_num)",
    "counted PRIMARY KEY (lease)",
    "counted UNIQUE (item, annotator)",
    "labels PRIMARY KEY (name)",
    "labels labels_never",
    "log PRIMARY KEY (seq)",
    "log UNIQUE (key)",
    "log log_never",
    "log log_next",
    "sums CHECK ((one = 1))",
    "sums CHECK (((spent >= 0) AND (reserved >= 0) AND ((spent + reserved) <= budget)))",
    "sums PRIMARY KEY (one)",
)


class PostgresServer:
    """Where a database is: a server, and how it is reached."""

    def __init__(self, url: str) -> None:
        from sqlalchemy import make_url

        try:
            import psycopg
        except ImportError:
            raise MissingExtra(
                'store: psycopg was needed for PostgreSQL, but it is not installed; pip install "relook[postgres]"'
            ) from None
        self.errors: tuple[type[Exception], ...] = (psycopg.Error,)
        self._url = make_url(url).set(drivername="postgresql+psycopg")
        self.name = self._url.render_as_string(hide_password=True)

    def take(self) -> None:
        """Do nothing yet: a connection is what holds the lock."""

    def leave(self) -> None:
        """Do nothing: the lock ended with its connection."""

    def engine(self, mode: str) -> Engine:
        """Return how to connect to it; who writes holds the lock while connected."""
        from sqlalchemy import create_engine, event
        from sqlalchemy.pool import NullPool

        who = f"pid {os.getpid()} on {host()}"[:60]
        engine = create_engine(
            self._url,
            poolclass=NullPool,
            isolation_level="REPEATABLE READ" if mode in ("ro", "still") else "READ COMMITTED",
            connect_args={"connect_timeout": 3, "application_name": who},
        )

        @event.listens_for(engine, "connect")
        def _connected(connection: Any, _: Any) -> None:
            if mode in ("rw", "rwc"):
                self._hold(connection)

        return engine

    def _hold(self, connection: Any) -> None:
        with connection.cursor() as cursor:
            settings = "SELECT set_config('synchronous_commit', 'on', false), current_setting('fsync')"
            synchronous, synced = cursor.execute(settings).fetchone()
            taken = self._locked(cursor)
            holder = None if taken else cursor.execute(_HOLDER, (LOCK,)).fetchone()
        connection.commit()
        if not taken:
            name = holder[0] if holder else "another process"
            raise Busy(f"{self.name}: one program may write to it at a time, but {name} does; end that one first")
        if (synchronous, synced) != ("on", "on"):
            raise NotAllowed(f"{self.name}: a server that syncs what is committed was needed, but fsync is {synced}")

    def _locked(self, cursor: Any) -> bool:
        """Take the lock, if it comes free soon: the server may still be at ending the connection that held it."""
        until = time.monotonic() + PATIENCE
        while not (taken := cursor.execute("SELECT pg_try_advisory_lock(%s)", (LOCK,)).fetchone()[0]):
            if time.monotonic() > until:
                break
            time.sleep(PATIENCE / 50)
        return bool(taken)

    def settle(self, connection: Any) -> None:
        """Do nothing: a server that failed to sync has ended itself, and what it shows now is on its disk."""

    def note(self, head: Head) -> None:
        """Do nothing: what is in the server cannot lose its end as a file can."""

    def noted(self) -> Head | None:
        """Return None: nothing is noted."""
        return None

    def problems(self, connection: Connection) -> Iterator[str]:
        """Yield nothing: the server looks after its files."""
        yield from ()

    def rules(self, connection: Connection) -> set[str]:
        """Return the triggers that are in force, and the constraints."""
        return {" ".join(row) for row in connection.exec_driver_sql(_RULES)}

    def rules_of_new(self) -> set[str]:
        """Return what a new database would have."""
        return set(_NEW)

    def backup(self, to: Path) -> None:
        """Refuse: a server is backed up by its own tools, and its log is copied row by row."""
        raise NotAllowed(f"{self.name}: a server is backed up by pg_dump, not into {to}; see docs/store.md")

    def failure(self, error: Any) -> str:
        """Return what went wrong, in the server's words."""
        return str(getattr(error, "sqlstate", "") or type(error).__name__)
