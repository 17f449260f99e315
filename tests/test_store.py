"""Where logs are kept: one suite over memory and both databases, what a database refuses, and who may write."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from relook import locks, store
from relook.errors import BadInput, BadLog, Busy, MissingExtra, NotAllowed, NotStored
from relook.logbook import Head, Row, Store, Sums
from relook.store import migrations, sqlite, tables
from relook.store.database import Database
from relook.store.memory import Memory
from relook.testing import check_store
from relook.types import Labels
from relook.writer import Writer
from tests.conftest import ROOT
from tests.crashes import GIVEN, new_campaign, rebuilt
from tests.servers import Cluster

reopen = Memory.reopen

Made = Callable[[Labels], AbstractContextManager[Store]]


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    """How a store of each kind is made, with an empty log."""
    if request.param == "memory":
        return lambda given: closing(Memory(given))
    server = request.getfixturevalue("postgres") if request.param == "postgres" else None

    @contextmanager
    def kept(given: Labels) -> Iterator[Store]:
        place = server.new_database() if server else tmp_path
        store.fill(place, given, rows=[])
        with closing(store.opened(place)) as found:
            yield found

    return kept


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A campaign's folder, with the log of one that has just begun."""
    store.create(tmp_path, new_campaign(), written="2026-11-19T00:00:00Z")
    return tmp_path


def by_hand(folder: Path, *statements: str) -> None:
    """Change a database with nobody's help, as somebody with its password would."""
    with closing(sqlite3.connect(folder / store.LOG)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


class TestConformance:
    def test_every_store_keeps_to_the_suite(self, made: Made) -> None:
        check_store(made)

    @pytest.mark.parametrize(
        ("name", "fault", "message"),
        [
            ("sums", lambda *_: Sums(9, 9, 9), "two of three answers spent was needed"),
            ("counted", lambda *_: [], "two answers that count was needed.*; see relook.logbook.Store"),
            ("results", lambda *_: {}, "the results of keys was needed"),
            ("reopen", lambda self: (reopen(self), self._rows.clear()), "nothing kept of rows with"),
            ("_count", lambda *_: None, "two answers that count was needed"),
            ("given", lambda *_: GIVEN, "the labels it was made with was needed"),
        ],
    )
    def test_a_faulty_store_is_found_out(
        self, name: str, fault: Any, message: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Memory, name, fault)
        with pytest.raises(BadInput, match=message):
            check_store(lambda given: closing(Memory(given)))

    @pytest.mark.parametrize(
        ("guard", "kept"),
        [
            ("DROP TRIGGER log_next; DROP INDEX sqlite_autoindex_log_1", None),
            ("ALTER TABLE sums RENAME TO old; CREATE TABLE sums AS SELECT * FROM old", "more than the budget must be"),
            (
                "ALTER TABLE counted RENAME TO o; CREATE TABLE counted AS SELECT * FROM o",
                "a second answer of one person",
            ),
        ],
    )
    def test_a_database_without_its_guard_is_found_out(self, guard: str, kept: str | None, tmp_path: Path) -> None:
        """The control: each refusal is the database's own."""

        @contextmanager
        def bare(given: Labels) -> Iterator[Store]:
            store.fill(tmp_path, given, rows=[])
            statements = guard.split(";")
            by_hand(tmp_path, *(statements[:1] if kept is None else statements))
            with closing(store.opened(tmp_path)) as found:
                yield found

        if kept is None:
            # The number of a row and its key are each guarded twice: the tables' own indexes see to it alone.
            check_store(bare)
        else:
            with pytest.raises(BadInput, match=kept):
                check_store(bare)


class TestAppendOnly:
    CHANGES = (
        "UPDATE log SET line = '{}' WHERE seq = 1",
        "DELETE FROM log WHERE seq = 2",
        "INSERT OR REPLACE INTO log SELECT seq, '{}', key, result, written, hash FROM log WHERE seq = 1",
        "INSERT OR REPLACE INTO log SELECT 3, line, 'k', result, written, hash FROM log WHERE seq = 2",
        "REPLACE INTO labels SELECT name, x'00' FROM labels",
        "UPDATE labels SET content = x'00'",
        "DELETE FROM labels",
        "INSERT INTO log SELECT 9, line, key, result, written, hash FROM log WHERE seq = 1",
        "UPDATE sums SET spent = budget + 1",
        "UPDATE sums SET reserved = -1",
        "INSERT INTO sums VALUES (2, 0, 0, 0)",
    )
    GUARDS = ("log_no_update", "log_no_delete", "log_next", "labels_no_update", "labels_no_delete", "labels_once")

    @pytest.mark.parametrize("change", CHANGES)
    def test_the_database_refuses(self, change: str, folder: Path) -> None:
        if "'k'" in change:
            by_hand(folder, "INSERT INTO log SELECT 3, line, 'k', result, written, hash FROM log WHERE seq = 2")
            change = change.replace("SELECT 3,", "SELECT 4,")
        with pytest.raises(sqlite3.IntegrityError):
            by_hand(folder, change)

    @pytest.mark.parametrize("change", CHANGES[:7])
    def test_without_its_triggers_it_does_not(self, change: str, folder: Path) -> None:
        by_hand(folder, *(f"DROP TRIGGER {name}" for name in self.GUARDS), change)

    @pytest.mark.slow
    def test_postgresql_refuses_too(self, postgres: Cluster) -> None:
        place = postgres.new_database()
        store.create(place, new_campaign(), written="now")
        engine = sa.create_engine(place.replace("postgresql:", "postgresql+psycopg:"))
        changes = [*self.CHANGES[:2], *self.CHANGES[5:10], "TRUNCATE log", "TRUNCATE labels"]
        for change in changes:
            with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
                connection.execute(sa.text(change.replace("x'00'", "'\\x00'")))
        with engine.begin() as connection:
            connection.execute(sa.text("ALTER TABLE log DISABLE TRIGGER ALL; UPDATE log SET line = '{}'"))
        engine.dispose()


class TestOneWriter:
    def test_a_second_one_is_refused_with_who_and_where(self, folder: Path) -> None:
        with closing(store.opened(folder)):
            began = time.monotonic()
            with pytest.raises(Busy, match=f"one program may write at a time, but pid {os.getpid()} on"):
                store.opened(folder)
            assert time.monotonic() - began < 1
            assert locks.host() in (folder / "log.db.lock").read_text()
        store.opened(folder).close()

    def test_without_the_lock_there_would_be_two(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(locks, "_hold", lambda _: None)
        with closing(store.opened(folder)), closing(store.opened(folder)):
            pass

    def test_after_a_kill_the_next_starts_at_once(self, folder: Path) -> None:
        program = (
            "import sys, time; from relook import store; kept = store.opened(sys.argv[1]); print('open', flush=True); "
            "time.sleep(60)"
        )
        here = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        with subprocess.Popen(
            [sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True, env=here
        ) as other:
            assert other.stdout
            assert other.stdout.readline() == "open\n"
            with pytest.raises(Busy, match=f"pid {other.pid} on"):
                store.opened(folder)
            other.send_signal(signal.SIGKILL)
            other.wait()
            began = time.monotonic()
            store.opened(folder).close()
            assert time.monotonic() - began < 1

    def test_a_child_that_was_forked_does_not_keep_the_lock(self, tmp_path: Path) -> None:
        program = (
            "import os, sys, time; from pathlib import Path; from relook.locks import Lock\n"
            "lock = Lock(Path(sys.argv[1])); lock.take()\n"
            "if os.fork(): time.sleep(0.2); os._exit(0)\n"
            "time.sleep(1)"
        )
        here = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        path = tmp_path / "x.lock"
        subprocess.run([sys.executable, "-c", program, str(path)], check=True, env=here)
        again = locks.Lock(path)
        again.take()
        again.leave()

    @pytest.mark.slow
    def test_nor_on_postgresql(self, postgres: Cluster) -> None:
        place = postgres.new_database()
        store.create(place, new_campaign(), written="now")
        with closing(store.opened(place)):
            began = time.monotonic()
            with pytest.raises(Busy, match=f"one program may write to it at a time, but pid {os.getpid()} on"):
                store.opened(place)
            assert time.monotonic() - began < 1
        store.opened(place).close()

    def test_readers_wait_for_nobody(self, folder: Path) -> None:
        with closing(Writer(store.opened(folder), rebuilt)) as writer, closing(store.reading(folder)) as reader:
            with reader.snapshot():
                assert reader.sums().reserved == 0
                lease = writer.do(lambda campaign, now: campaign.ask("Ada", now))
                assert (lease.number, reader.sums().reserved) == (1, 0)
            assert reader.sums().reserved == 1


class TestPlaces:
    @pytest.mark.parametrize(
        ("kind", "found"),
        [
            *((kind, "refused") for kind in ("nfs4", "cifs", "fuse.sshfs")),
            *((kind, "taken") for kind in ("ext4", "fuse.portal", None)),
        ],
    )
    def test_a_disk_that_others_write_to_is_refused(
        self, kind: str | None, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite, "file_system", lambda _: kind)
        if found == "refused":
            with pytest.raises(NotAllowed, match="is one that others write to as well"):
                store.create(tmp_path, new_campaign(), written="now")
        store.create(tmp_path, new_campaign(), written="now", shared_disk="allowed")
        store.opened(tmp_path, shared_disk="allowed").close()

    def test_the_nearest_mount_says_what_a_disk_is(self, tmp_path: Path) -> None:
        table = (
            "1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /data rw shared:1 - xfs b rw\n3 2 0:9 / /data/my\\040sets rw - nfs c"
        )
        assert locks.file_system(Path("/data/pets"), table) == "xfs"
        assert locks.file_system(Path("/data/my sets/pets"), table) == "nfs"
        assert locks.file_system(Path("/database"), table) == "ext4"
        assert locks.file_system(tmp_path)

    def test_where_nothing_is_nothing_is_made(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="there is no such file; make one: relook new"):
            store.opened(tmp_path)
        with pytest.raises(BadInput, match="there is no such file"):
            store.reading(tmp_path)
        assert not (tmp_path / store.LOG).exists()

    def test_a_database_of_another_kind_is_refused(self, tmp_path: Path) -> None:
        by_hand(tmp_path, "CREATE TABLE pets (name TEXT)")
        with pytest.raises(BadLog, match="this database holds none"):
            store.opened(tmp_path)
        (tmp_path / store.LOG).write_bytes(b"no database at all, but text" * 99)
        with pytest.raises(NotStored, match="the database refused"):
            store.opened(tmp_path)

    def test_a_second_campaign_does_not_replace_the_first(self, folder: Path) -> None:
        before = (folder / store.LOG).read_bytes()
        with pytest.raises(NotAllowed, match="a new log was needed, but a campaign's is there already"):
            store.create(folder, new_campaign(), written="now")
        assert (folder / store.LOG).read_bytes() == before
        assert sorted(path.name for path in folder.iterdir()) == ["log.db", "log.db.head", "log.db.lock"]

    @pytest.mark.slow
    def test_nor_on_postgresql(self, postgres: Cluster) -> None:
        place = postgres.new_database()
        store.create(place, new_campaign(), written="now")
        with pytest.raises(NotAllowed, match="an empty database was needed, but this one holds a campaign"):
            store.create(place, new_campaign(), written="now")

    def test_postgresql_without_its_driver_says_how_to_get_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(MissingExtra, match="psycopg was needed for PostgreSQL"):
            store.opened("postgresql:///nowhere")

    @pytest.mark.slow
    def test_a_server_that_does_not_sync_is_refused(self, postgres: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        place = postgres.new_database()
        store.create(place, new_campaign(), written="now")
        engine = sa.create_engine(place.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql("ALTER SYSTEM SET fsync = off")
            connection.exec_driver_sql("SELECT pg_reload_conf()")
            try:
                time.sleep(0.5)
                with pytest.raises(NotAllowed, match="a server that syncs what is committed was needed"):
                    store.opened(place)
            finally:
                connection.exec_driver_sql("ALTER SYSTEM RESET fsync")
                connection.exec_driver_sql("SELECT pg_reload_conf()")
                time.sleep(0.5)
        engine.dispose()

    def test_a_file_is_written_ahead_and_synced(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with closing(store.opened(folder)) as kept, kept.transaction() as connection:
            found = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in sqlite.SETTINGS}
        assert found == sqlite.SETTINGS
        monkeypatch.setitem(sqlite.SETTINGS, "synchronous", 7)
        with pytest.raises(NotAllowed, match="a write-ahead log that is synced was needed"):
            store.opened(folder)

    def test_a_closed_store_says_so(self, folder: Path) -> None:
        kept = store.opened(folder)
        kept.close()
        with pytest.raises(NotStored, match="an open database was needed, but it was closed"):
            kept.sums()


class TestVersions:
    def test_tables_of_a_newer_program_are_refused_and_left_alone(self, folder: Path) -> None:
        by_hand(folder, "UPDATE alembic_version SET version_num = '99'")
        before = (folder / store.LOG).read_bytes()
        for way in (store.opened, store.reading):
            with pytest.raises(BadLog, match="tables of version 1 or older were needed, but 99 came"):
                way(folder)
        assert (folder / store.LOG).read_bytes() == before

    def test_older_tables_are_brought_up_to_date_after_a_backup(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """There is one version yet, so the step that follows it is played."""
        monkeypatch.setattr(migrations, "NEWEST", "2")
        monkeypatch.setattr(migrations, "migrate", step)
        with pytest.raises(BadLog, match="open it to write once"):
            store.reading(folder)
        with closing(store.opened(folder)) as kept:
            assert kept.head.seq == 2
        assert (folder / "log.db.before-2").is_file()
        monkeypatch.undo()
        with closing(store.resting(folder / "log.db.before-2")) as kept:
            assert kept.head.seq == 2

    def test_a_step_that_fails_leaves_everything_as_it_was(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(connection: sa.Connection) -> None:
            step(connection)
            connection.exec_driver_sql("SELECT no_such_function()")

        with monkeypatch.context() as newer:
            newer.setattr(migrations, "NEWEST", "2")
            newer.setattr(migrations, "migrate", fail)
            with pytest.raises(NotStored, match="no_such_function"):
                store.opened(folder)
        with closing(store.opened(folder)) as kept, kept.transaction() as connection:
            assert "added" not in sa.inspect(connection).get_table_names()

    def test_the_newest_version_is_the_last_of_the_scripts(self) -> None:
        assert migrations._scripts().get_heads() == [migrations.NEWEST]


def step(connection: sa.Connection) -> None:
    connection.exec_driver_sql("CREATE TABLE added (x)")
    connection.exec_driver_sql("UPDATE alembic_version SET version_num = '2'")


class TestTheEnd:
    """What is missing at the end of a log leaves no gap, so a note beside it says where it ended."""

    def test_a_log_that_lost_its_end_is_refused(self, folder: Path) -> None:
        by_hand(folder, "DROP TRIGGER log_no_delete", "DELETE FROM log WHERE seq = 2")
        with pytest.raises(BadLog, match="row 2 was written once, but the log ends at 1 now"):
            store.opened(folder)

    def test_a_note_that_lags_behind_is_none_the_worse(self, folder: Path) -> None:
        kept = store.opened(folder)
        assert isinstance(kept.site, sqlite.SQLiteFile)
        first = next(kept.rows())
        kept.site.note(Head(1, first.hash))
        kept.close()
        store.opened(folder).close()
        (folder / "log.db.head").unlink()
        store.opened(folder).close()

    def test_a_note_that_is_none_is_refused(self, folder: Path) -> None:
        (folder / "log.db.head").write_bytes(b"\xff\xfe nothing")
        store.opened(folder).close()
        (folder / "log.db.head").write_text("two rows\n")
        with pytest.raises(BadLog, match="a number and a hash were needed"):
            store.opened(folder)


def test_rows_are_read_in_blocks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BLOCK", 3)
    monkeypatch.setattr(tables, "_AFTER", tables._AFTER.limit(3))
    with closing(Writer(store.opened(folder), rebuilt)) as writer:
        writer.do(lambda campaign, now: [campaign.ask(f"p{number}", now) for number in range(10)])
    with closing(store.reading(folder)) as kept:
        rows = list(kept.rows())
        assert [row.seq for row in rows] == list(range(1, 13))
        assert all(isinstance(row, Row) for row in rows)
        assert isinstance(kept, Database)
