"""The tables of a campaign's database, and the statements on them: one text for every database."""

import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any

import msgspec
import numpy as np
import sqlalchemy as sa

from relook.errors import BadLog
from relook.logbook import Counted, Effect, Row, Sums, effect
from relook.types import Labels

metadata = sa.MetaData()
log = sa.Table("log", metadata, *(sa.Column(name) for name in Row.__struct_fields__))
sums = sa.Table("sums", metadata, *(sa.Column(name, sa.Integer) for name in ("one", *Sums.__struct_fields__)))
counted = sa.Table("counted", metadata, *(sa.Column(name) for name in Counted.__struct_fields__))
labels = sa.Table("labels", metadata, sa.Column("name", sa.Text), sa.Column("content", sa.LargeBinary))

BLOCK = 5_000
"""Rows that are read at a time, so that no reader holds anything for long."""

_ADD = sa.update(sums).values(
    spent=sums.c.spent + sa.bindparam("by_spent"),
    reserved=sums.c.reserved + sa.bindparam("by_reserved"),
    budget=sa.func.coalesce(sa.bindparam("new_budget", type_=sa.Integer), sums.c.budget),
)
_LOG, _COUNT = (
    sa.insert(table).values({one.name: sa.bindparam(one.name) for one in table.c}) for table in (log, counted)
)
_FREE = sa.delete(counted).where(counted.c.lease == sa.bindparam("freed"))
_DROP = sa.delete(counted).where(counted.c.annotator == sa.bindparam("gone"))
_AFTER = sa.select(log).where(log.c.seq > sa.bindparam("after")).order_by(log.c.seq).limit(BLOCK)
_LAST = sa.select(log.c.seq, log.c.hash).order_by(log.c.seq.desc()).limit(1)
_HASH = sa.select(log.c.hash).where(log.c.seq == sa.bindparam("at"))
_RESULT = sa.select(log.c.result).where(log.c.key == sa.bindparam("key"))
_RESULTS = sa.select(log.c.key, log.c.result).where(log.c.key.in_(sa.bindparam("keys", expanding=True)))


def write(connection: sa.Connection, rows: Sequence[Row]) -> None:
    """Write rows, and what they do, within the transaction of this connection.

    Sums are changed event by event, so that the database sees the budget kept after each of them.
    """
    _run(connection, _LOG, values=[msgspec.structs.asdict(row) for row in rows])
    changes = [effect(row.event) for row in rows]
    added = [
        {"by_spent": change.spent, "by_reserved": change.reserved, "new_budget": change.budget}
        for change in changes
        if change.spent or change.reserved or change.budget is not None
    ]
    if added:
        _run(connection, _ADD, values=added)
    for _, steps in groupby(_counting(changes), key=lambda step: id(step[0])):
        some = list(steps)
        _run(connection, some[0][0], values=[values for _, values in some])


def _counting(changes: Sequence[Effect]) -> Iterator[tuple[Any, dict[str, Any]]]:
    for change in changes:
        if change.freed is not None:
            yield _FREE, {"freed": change.freed}
        if change.gone is not None:
            yield _DROP, {"gone": change.gone}
        if change.counted is not None:
            yield _COUNT, msgspec.structs.asdict(change.counted)


def _run(connection: sa.Connection, statement: Any, *, values: list[dict[str, Any]]) -> None:
    """Run a statement with each of these values by the driver itself: an answer is worth few microseconds."""
    text, order = _compiled(statement, connection.dialect)
    cursor = connection.connection.cursor()
    cursor.executemany(text, values if order is None else [tuple(map(each.__getitem__, order)) for each in values])


@cache
def _compiled(statement: Any, dialect: sa.Dialect) -> tuple[str, list[str] | None]:
    """Return a statement in a database's words, and the order of its values where they have no names."""
    found = statement.compile(dialect=dialect)
    return str(found), found.positiontup


def rows_after(connection: sa.Connection, after: int) -> list[Row]:
    """Return the next rows after so many."""
    return [_row(*row) for row in connection.execute(_AFTER, {"after": after})]


def _row(*values: Any) -> Row:
    row = Row(*values)
    kinds = tuple(map(type, values))
    if kinds not in _KINDS:
        raise BadLog(f"row {row.seq}: a number and texts were needed, but {[kind.__name__ for kind in kinds]} came")
    return row


_KINDS = frozenset((int, str, key, result, str, str) for key in (str, type(None)) for result in (str, type(None)))


def last(connection: sa.Connection) -> tuple[int, str] | None:
    """Return the number and the hash of the last row."""
    found = connection.execute(_LAST).first()
    return None if found is None else (found[0], found[1])


def hash_at(connection: sa.Connection, seq: int) -> str | None:
    """Return the hash of a row."""
    return connection.execute(_HASH, {"at": seq}).scalar()


def results(connection: sa.Connection, keys: Sequence[str]) -> dict[str, str]:
    """Return the results of those keys that have one."""
    if len(keys) > 1:
        return {key: result or "" for key, result in connection.execute(_RESULTS, {"keys": list(keys)})}
    text, order = _compiled(_RESULT, connection.dialect)
    cursor = connection.connection.cursor()
    cursor.execute(text, {"key": keys[0]} if order is None else (keys[0],))
    found = cursor.fetchone()
    return {} if found is None else {keys[0]: found[0] or ""}


def read_sums(connection: sa.Connection) -> Sums:
    """Return the sums."""
    return Sums(*connection.execute(sa.select(sums.c.spent, sums.c.reserved, sums.c.budget)).one())


def read_counted(connection: sa.Connection) -> list[Counted]:
    """Return the answers that count, by lease."""
    return [Counted(*row) for row in connection.execute(sa.select(counted).order_by(counted.c.lease))]


def write_labels(connection: sa.Connection, given: Labels) -> None:
    """Keep the labels that a campaign began with, as arrays without objects."""
    held = {"given": given.given, "came_with": given.came_with, "classes": np.array(given.classes)}
    for name, values in held.items():
        if values is not None:
            packed = io.BytesIO()
            np.save(packed, values, allow_pickle=False)
            connection.execute(sa.insert(labels), {"name": name, "content": packed.getvalue()})


def read_labels(connection: sa.Connection) -> Labels:
    """Return the labels that a campaign began with."""
    return unpacked(dict(connection.execute(sa.select(labels.c.name, labels.c.content)).all()))


def unpacked(kept: Mapping[str, bytes]) -> Labels:
    """Return the labels that arrays hold."""
    try:
        arrays = {name: np.load(io.BytesIO(content), allow_pickle=False) for name, content in kept.items()}
        return Labels(arrays["given"], int(arrays["classes"]), None, arrays.get("came_with"))
    except Exception as error:  # noqa: BLE001  # numpy raises all kinds of things at bytes that are no array
        raise BadLog(
            f"labels: those that the campaign began with were needed, but no array holds them now ({error}); "
            "restore a backup"
        ) from None
