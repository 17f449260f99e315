"""A campaign's log in a database: one class over every database, and the `site` that says where it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol

import sqlalchemy as sa

from relook.errors import BadLog, NotAllowed, NotStored
from relook.logbook import Counted, Head, Row, Sums
from relook.store import migrations, tables
from relook.types import Labels

Mode = Literal["rw", "rwc", "ro", "still"]
"""To write, to make, to read while another writes, to read where nobody does."""


def batched(rows: Iterable[Row], count: int) -> Iterator[list[Row]]:
    """Yield rows, so many at a time."""
    left = iter(rows)
    while some := list(islice(left, count)):
        yield some


class Site(Protocol):
    """Where a database is: a file or a server."""

    name: str
    errors: tuple[type[Exception], ...]

    def take(self) -> None:
        """Be the one that writes."""
        ...

    def leave(self) -> None:
        """Let another write."""
        ...

    def engine(self, mode: Mode) -> sa.Engine:
        """Return how to connect to it."""
        ...

    def settle(self, connection: Any) -> None:
        """Have all that was committed on the disk for good."""
        ...

    def note(self, head: Head) -> None:
        """Write down where the log ends now."""
        ...

    def noted(self) -> Head | None:
        """Return where the log ended when it was noted last."""
        ...

    def problems(self, connection: sa.Connection) -> Iterator[str]:
        """Yield what the database says is wrong with itself."""
        ...

    def rules(self, connection: sa.Connection) -> set[str]:
        """Return the tables, constraints and triggers as the database has them."""
        ...

    def rules_of_new(self) -> set[str]:
        """Return what `rules` returns for a new database."""
        ...

    def backup(self, to: Path) -> None:
        """Copy the database as it is now."""
        ...

    def failure(self, error: object) -> str:
        """Return what went wrong, in a word of the database's."""
        ...


class Database:
    """A log in a database, with the sums and the answers that count."""

    def __init__(self, site: Site, mode: Mode) -> None:
        self.site = site
        self._mode: Mode = mode
        self._connection: sa.Connection | None = None
        self._head = Head()
        if mode in ("rw", "rwc"):
            site.take()
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    @property
    def head(self) -> Head:
        """Where the log ends."""
        return self._head

    def append(self, rows: Sequence[Row]) -> None:
        """Keep these rows and what they do to the sums, all of them or none, for good before this returns."""
        with self.transaction() as connection:
            tables.write(connection, rows)
        self._head = Head(rows[-1].seq, rows[-1].hash)
        self.site.note(self._head)

    def rows(self, after: int = 0) -> Iterator[Row]:
        """Yield the rows after so many, in their order."""
        while True:
            with self.transaction() as connection:
                found = tables.rows_after(connection, after)
            yield from found
            if len(found) < tables.BLOCK:
                return
            after = found[-1].seq

    def results(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the results of those keys that have one."""
        if not keys:
            return {}
        with self.transaction() as connection:
            return tables.results(connection, keys)

    def sums(self) -> Sums:
        """Return the sums as they are kept beside the log."""
        with self.transaction() as connection:
            return tables.read_sums(connection)

    def counted(self) -> list[Counted]:
        """Return the answers that count, as they are kept beside the log, by lease."""
        with self.transaction() as connection:
            return tables.read_counted(connection)

    def given(self) -> Labels:
        """Return the labels that the campaign began with."""
        with self.transaction() as connection:
            return tables.read_labels(connection)

    def reopen(self) -> None:
        """Connect anew, have everything that was committed on the disk for good, and see where the log ends."""
        self._disconnect()
        self._connect()

    def close(self) -> None:
        """Let go of it, so that another may write."""
        self._disconnect()
        self.site.leave()

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the database, whatever its rows say."""
        with self.transaction() as connection:
            yield from self.site.problems(connection)
            there = self.site.rules(connection)
        for rule in sorted(self.site.rules_of_new() ^ there):
            yield f"guards: {'one too many' if rule in there else 'one is missing'}: {' '.join(rule.split())[:120]}"

    @contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """Give a connection for one transaction; what the database cannot do is raised as `NotStored`."""
        with self._spoken():
            if self._connection is None:
                raise NotStored(f"{self.site.name}: an open database was needed, but it was closed; open it again")
            if self._connection.in_transaction():
                yield self._connection
                return
            with self._connection.begin():
                yield self._connection

    def snapshot(self) -> AbstractContextManager[object]:
        """Have all that is read within belong to one moment, whoever writes meanwhile."""
        return self.transaction()

    def fill(self, given: Labels, rows: Iterable[Row]) -> None:
        """Make the tables, with the labels and the first rows of a campaign, in one transaction."""
        with self.transaction() as connection:
            if migrations.version(connection) is not None:
                raise NotAllowed(
                    f"{self.site.name}: an empty database was needed, but this one holds a campaign already"
                )
            migrations.migrate(connection)
            tables.write_labels(connection, given)
            for some in batched(rows, tables.BLOCK):
                tables.write(connection, some)
            self._head = Head(*(tables.last(connection) or ()))

    def _connect(self) -> None:
        with self._spoken():
            self._connection = self.site.engine(self._mode).connect()
        if self._mode == "rwc":
            return
        with self.transaction() as connection:
            old = migrations.is_old(connection, self.site.name)
        if old:
            self._update()
        self._find_head(self._connection)

    def _update(self) -> None:
        """Bring old tables up to date, after a backup; who only reads leaves them alone."""
        if self._mode != "rw":
            raise BadLog(f"{self.site.name}: tables of version {migrations.NEWEST} were needed; open it to write once")
        with self.transaction() as connection:
            found = migrations.version(connection)
        if found is None:
            raise BadLog(f"{self.site.name}: a campaign's log was needed, but this database holds none; relook new")
        if hasattr(self.site, "path"):
            self.site.backup(Path(f"{self.site.name}.before-{migrations.NEWEST}"))
        with self.transaction() as connection:
            migrations.migrate(connection)

    def _find_head(self, connection: sa.Connection) -> None:
        noted = self.site.noted()
        with self._spoken():
            if self._mode == "rw":
                self.site.settle(connection.connection.dbapi_connection)
        with self.transaction() as connection:
            self._head = Head(*(tables.last(connection) or ()))
            if noted is not None and noted.seq and tables.hash_at(connection, noted.seq) != noted.hash:
                raise BadLog(
                    f"{self.site.name}: row {noted.seq} was written once, but the log ends at {self._head.seq} now or "
                    "has another in its place; restore a backup, or see: relook log repair"
                )

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except sa.exc.SQLAlchemyError:
                connection.invalidate()

    @contextmanager
    def _spoken(self) -> Iterator[None]:
        """Turn what the database raises into one sentence."""
        failures: tuple[type[Exception], ...] = (
            sa.exc.SQLAlchemyError,
            *self.site.errors,
            UnicodeEncodeError,
            OverflowError,
        )
        try:
            yield
        except failures as error:
            cause = getattr(error, "orig", None) or error
            what = str(cause).strip().splitlines()[0] if str(cause).strip() else ""
            raise NotStored(f"{self.site.name}: the database refused ({self.site.failure(cause)}: {what})") from error
