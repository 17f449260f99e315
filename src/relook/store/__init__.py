"""Where the log of a campaign is kept for good: a SQLite file, a PostgreSQL database, or memory.

`create` makes a store from a campaign that has just begun, `opened` opens it to be written by a `relook.writer.Writer`,
and `reading` to be looked at, while another process may write.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from relook.errors import NotAllowed
from relook.logbook import Head, Row, chained, entry
from relook.types import Labels

if TYPE_CHECKING:
    from relook.campaign import Campaign
    from relook.store.database import Database
    from relook.store.postgres import PostgresServer
    from relook.store.sqlite import SQLiteFile

LOG = "log.db"
"""The name of the database in the folder of a campaign."""

Shared = Literal["refused", "allowed"]
"""Whether a log may lie on a disk that other machines write to as well."""


def create(place: Path | str, campaign: Campaign, *, written: str, shared_disk: Shared = "refused") -> None:
    """Make a store of a campaign that has just begun, with its events so far: whole, or not at all.

    `place` is a campaign's folder, a file in one, or the URL of a PostgreSQL database; `written` the time of day.
    """
    fill(place, campaign.ledger.given, rows=beginning(campaign, written=written), shared_disk=shared_disk)


def beginning(campaign: Campaign, *, written: str) -> list[Row]:
    """Return the first rows of a log: the events so far of a campaign that has just begun."""
    return chained([entry(campaign.events)], Head(), written=written)


def fill(place: Path | str, given: Labels, *, rows: Iterable[Row], shared_disk: Shared = "refused") -> None:
    """Make a store of rows that there are already."""
    from relook.store.database import Database

    site = _site(place, shared_disk)
    if not hasattr(site, "path"):
        server = Database(site, "rwc")
        try:
            server.fill(given, rows)
        finally:
            server.close()
        return
    with _draft(site.path, shared_disk) as draft:
        file = Database(draft, "rwc")
        try:
            file.fill(given, rows)
            head = file.head
        finally:
            file.close()
        draft.path.rename(site.path)
        _sync_folder(site.path.parent)
    site.note(head)
    site.leave()


def opened(place: Path | str, *, shared_disk: Shared = "refused") -> Database:
    """Open a store to write to it; a second process that tries is told who does."""
    from relook.store.database import Database

    return Database(_site(place, shared_disk), "rw")


def reading(place: Path | str) -> Database:
    """Open a store to look at it, whoever writes."""
    from relook.store.database import Database

    return Database(_site(place, "allowed"), "ro")


def resting(place: Path | str) -> Database:
    """Open a store that nobody writes, such as a backup, and leave nothing beside it."""
    from relook.store.database import Database

    return Database(_site(place, "allowed"), "still")


def is_server(place: Path | str) -> bool:
    """Say whether a place is the URL of a server.

    >>> is_server("postgresql://localhost/pets"), is_server("pets/log.db")
    (True, False)
    """
    return str(place).startswith(("postgresql:", "postgres:", "postgresql+psycopg:"))


def _site(place: Path | str, shared_disk: Shared) -> SQLiteFile | PostgresServer:
    from relook.store.postgres import PostgresServer
    from relook.store.sqlite import SQLiteFile

    if is_server(place):
        return PostgresServer(str(place))
    path = Path(place)
    return SQLiteFile(path / LOG if path.is_dir() else path, shared_disk)


@contextmanager
def _draft(path: Path, shared_disk: Shared) -> Iterator[SQLiteFile]:
    """Give a file of another name to write, while nobody else may write the one that it becomes."""
    from relook.store.sqlite import LOCK, NOTE, SQLiteFile

    target = SQLiteFile(path, shared_disk)
    target.take()
    draft = path.with_name(f".{path.name}.draft")
    try:
        if path.exists():
            raise NotAllowed(f"{path}: a new log was needed, but a campaign's is there already; name another folder")
        _remove(draft)
        yield SQLiteFile(draft, shared_disk)
    finally:
        _remove(draft)
        for ending in (LOCK, NOTE):
            draft.with_name(draft.name + ending).unlink(missing_ok=True)
        target.leave()


def _remove(path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Have the disk hold a file's name, as it holds the file."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
