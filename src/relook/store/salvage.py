"""What can be read of a damaged SQLite file, row by row, from a copy: the file itself stays as it is."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from relook.logbook import Row
from relook.types import Labels

_FIELDS = ", ".join(Row.__struct_fields__)
_LOST = 10_000
"""So many rows in a row that cannot be read are taken for the end."""


class Found(msgspec.Struct, frozen=True, eq=False):
    """What a damaged file still holds: labels, and rows in their order (None: one that cannot be read)."""

    given: Labels
    rows: list[tuple[int, Row | None]]


def found(path: Path, *, until: int) -> Found:
    """Read what can be read of a file; the log had so many rows at least."""
    with _copied(path) as copy, closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        return Found(_labels(connection), list(_rows(connection, until)))


def _labels(connection: sqlite3.Connection) -> Labels:
    from relook.store.tables import unpacked

    try:
        return unpacked(dict(connection.execute("SELECT name, content FROM labels").fetchall()))
    except sqlite3.Error:
        return unpacked({})


def _rows(connection: sqlite3.Connection, until: int) -> Iterator[tuple[int, Row | None]]:
    seq, lost = 1, 0
    while seq <= until or lost < _LOST:
        row = _row(connection, seq)
        if row is None and seq > until and not _more(connection, seq):
            return
        lost = 0 if row is not None else lost + 1
        yield seq, row
        seq += 1


def _more(connection: sqlite3.Connection, after: int) -> bool:
    try:
        return connection.execute("SELECT 1 FROM log WHERE seq > ? LIMIT 1", (after,)).fetchone() is not None
    except sqlite3.Error:
        return True


def _row(connection: sqlite3.Connection, seq: int) -> Row | None:
    try:
        values = connection.execute(f"SELECT {_FIELDS} FROM log WHERE seq = ?", (seq,)).fetchone()  # noqa: S608
        return None if values is None else msgspec.convert(dict(zip(Row.__struct_fields__, values, strict=True)), Row)
    except (sqlite3.Error, msgspec.ValidationError):
        return None


@contextmanager
def _copied(path: Path) -> Iterator[Path]:
    """Give a copy of a file, and of what was written beside it last, to read from."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, path.name)
        for ending in ("", "-wal"):
            source = path.with_name(path.name + ending)
            if source.exists():
                shutil.copyfile(source, copy.with_name(copy.name + ending))
        yield copy
