"""Every logical change of a log is found, and a repair keeps every row whose chain holds."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from relook import audit, store
from relook.audit import backed_up, lines_of, rebuilt, repaired
from relook.errors import BadInput, BadLog, NotAllowed, RelookError
from relook.events import Answer, from_lines
from relook.logbook import Head, chained, entry
from relook.store import sqlite
from relook.store.memory import Memory
from relook.writer import Writer
from tests.crashes import GIVEN, PEOPLE, asking, new_campaign, play, telling
from tests.crashes import rebuilt as campaign_of
from tests.servers import Cluster

PAGE = 4096
TABLES = ("log", "sums", "counted", "labels", "alembic_version")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of one campaign: `early` and `late` as they were while it was open, and `shut` after it."""
    folder = tmp_path_factory.mktemp("played")
    shut = folder / "shut"
    shut.mkdir()
    play(shut, 3, steps=25)
    with closing(Writer(store.opened(shut), campaign_of)) as writer:
        for name in ("early", "late"):
            for person in PEOPLE:
                lease = writer.do(asking(person))
                if lease is not None:
                    writer.do(telling(lease), key=f"{name}-{person}")
            copied(shut, folder / name)
    return folder


def copied(folder: Path, to: Path) -> Path:
    """Copy what lies on a disk when a program is killed."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("*-shm", "*.lock", "diary"))
    return to


def content(folder: Path) -> Any:
    """Return everything a database says, read by the plainest means from a copy, or that it cannot be read."""
    copy = copied(folder, folder.with_name(folder.name + "-read"))
    try:
        with closing(sqlite3.connect(copy / store.LOG)) as connection:
            tables = [connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in TABLES]
            return tables, connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2").fetchall()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return f"unreadable: {error}"
    finally:
        shutil.rmtree(copy)


def problems(folder: Path) -> tuple[str, ...]:
    """Return what `relook log verify` finds."""
    try:
        with closing(store.reading(folder)) as kept:
            return audit.audit(kept).problems
    except RelookError as error:
        return (str(error),)


# Mutations: each changes the files in a folder.


def flip_bit(folder: Path, chance: Random) -> None:
    path = some_file(folder, chance)
    held = bytearray(path.read_bytes())
    held[chance.randrange(len(held))] ^= 1 << chance.randrange(8)
    path.write_bytes(held)


def zero_page(folder: Path, chance: Random) -> None:
    path = folder / store.LOG
    held = bytearray(path.read_bytes())
    at = chance.randrange(len(held) // PAGE) * PAGE
    held[at : at + PAGE] = bytes(PAGE)
    path.write_bytes(held)


def swap_pages(folder: Path, chance: Random) -> None:
    path = folder / store.LOG
    held = path.read_bytes()
    pages = [held[at : at + PAGE] for at in range(0, len(held), PAGE)]
    one, other = chance.sample(range(len(pages)), 2)
    pages[one], pages[other] = pages[other], pages[one]
    path.write_bytes(b"".join(pages))


def cut_tail(folder: Path, chance: Random) -> None:
    path = some_file(folder, chance)
    held = path.read_bytes()
    path.write_bytes(held[: -chance.randrange(1, min(len(held), 3 * PAGE))])


def lose_wal(folder: Path, chance: Random) -> None:
    (folder / "log.db-wal").unlink(missing_ok=True)


def take_old_wal(folder: Path, chance: Random) -> None:
    shutil.copyfile(folder.parent / "played" / "early" / "log.db-wal", folder / "log.db-wal")


def some_file(folder: Path, chance: Random) -> Path:
    wal = folder / "log.db-wal"
    return wal if wal.exists() and wal.stat().st_size and chance.random() < 0.5 else folder / store.LOG


def by_hand(*statements: str) -> Callable[[Path, Random], None]:
    """Return a mutation by somebody who knows the tables, and puts the triggers back when he is done."""

    def change(folder: Path, chance: Random) -> None:
        with closing(sqlite3.connect(folder / store.LOG)) as connection:
            triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            rows = connection.execute("SELECT max(seq) FROM log").fetchone()[0]
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            some = chance.randint(2, rows)
            for statement in statements:
                connection.execute(statement.format(n=some, last=rows))
            for _, text in triggers:
                connection.execute(text)
            connection.commit()

    return change


KNOWING = {
    "an edited answer": by_hand("UPDATE log SET line = replace(line, 'answer\":1', 'answer\":2') WHERE seq >= {n}"),
    "an edited time": by_hand("UPDATE log SET written = '1970-01-01T00:00:00Z' WHERE seq = {n}"),
    "an edited result": by_hand("UPDATE log SET result = 'null' WHERE seq >= {n} AND key IS NOT NULL"),
    "an edited key": by_hand("UPDATE log SET key = 'k' || key WHERE seq >= {n}"),
    "a line that is no text": by_hand("UPDATE log SET line = CAST(x'22ff22' AS TEXT) WHERE seq = {n}"),
    "a result that is no text": by_hand("UPDATE log SET result = CAST(x'22ff22' AS TEXT) WHERE seq = {n}"),
    "a time that is a number": by_hand("UPDATE log SET written = x'07' WHERE seq = {n}"),
    "an edited hash": by_hand("UPDATE log SET hash = hash || '0' WHERE seq = {n}"),
    "a row taken out": by_hand("DELETE FROM log WHERE seq = {n}"),
    "the end taken out": by_hand("DELETE FROM log WHERE seq = {last}"),
    "two rows that changed places": by_hand(
        "UPDATE log SET seq = CASE seq WHEN 1 THEN -{n} ELSE -1 END WHERE seq IN ({n}, 1)",
        "UPDATE log SET seq = -seq WHERE seq < 0",
    ),
    "a row put in": by_hand(
        "INSERT INTO log SELECT {last} + 1, line, NULL, NULL, written, hash FROM log WHERE seq = {n}"
    ),
    "an answer that counts no longer": by_hand("DELETE FROM counted WHERE lease = (SELECT min(lease) FROM counted)"),
    "another answer that counts": by_hand("UPDATE counted SET answer = 2 - answer WHERE answer != 1"),
    "answers that are given back": by_hand("UPDATE sums SET spent = spent - 1"),
    "a larger budget": by_hand("UPDATE sums SET budget = budget + 1"),
    "other labels": by_hand("UPDATE labels SET content = substr(content, 1, length(content) - 1) || x'01'"),
    "a trigger that is gone": by_hand("CREATE TABLE x (y)", "DROP TABLE x", "DELETE FROM alembic_version"),
}
BLIND = (flip_bit, zero_page, swap_pages, cut_tail, lose_wal, take_old_wal)


def mutated(played: Path, to: Path, number: int) -> str:
    """Make a folder with the mutation of that number in it, and return its name."""
    chance = Random(number)
    copied(played / source_of(number), to)
    if number % 4 == 0:
        name = list(KNOWING)[number // 4 % len(KNOWING)]
        KNOWING[name](to, chance)
        return name
    change = BLIND[number % len(BLIND)]
    shutil.copytree(played, to.parent / "played", dirs_exist_ok=True)
    change(to, chance)
    return change.__name__


def source_of(number: int) -> str:
    return ("shut", "late")[number // 8 % 2]


def tried(played: Path, folder: Path, numbers: range, *, mended: int) -> Iterator[str]:
    """Yield the mutations that nobody found; every so-many-th log is mended too."""
    whole = {name: content(played / name) for name in ("shut", "late")}
    for number in numbers:
        to = folder / "mutated"
        name = mutated(played, to, number)
        found = content(to)
        if found != whole[source_of(number)] and not problems(to):
            yield f"{number}: {name}"
        if number % mended == 0:
            check_repair(to, whole[source_of(number)], folder / "mended.db")
        shutil.rmtree(to)


def check_repair(folder: Path, whole: Any, to: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir() if "lock" not in path.name}
    rows = readable(folder)
    try:
        kept = repaired(folder, to)
    except BadLog as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert "those that the campaign began with were needed" in refused or not rows or rows[0] != whole[0][0][0]
        return
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.name in before}
    assert after == before
    held = 0
    for row, right in zip(rows, whole[0][0], strict=False):
        if row != right:
            break
        held += 1
    assert kept.kept == held
    with closing(store.resting(to)) as mended:
        assert audit.audit(mended).problems == ()
    for path in to.parent.glob("mended.db*"):
        path.unlink()


def readable(folder: Path) -> list[Any]:
    """Return the rows that can be read, up to the first that cannot."""
    copy = copied(folder, folder.with_name("to-read"))
    rows: list[Any] = []
    try:
        with closing(sqlite3.connect(copy / store.LOG)) as connection:
            while row := connection.execute("SELECT * FROM log WHERE seq = ?", (len(rows) + 1,)).fetchone():
                rows.append(row)
    except (sqlite3.Error, UnicodeDecodeError):
        pass
    finally:
        shutil.rmtree(copy)
    return rows


class TestMutations:
    @pytest.mark.slow
    def test_two_hundred_are_found(self, played: Path, tmp_path: Path) -> None:
        assert list(tried(played, tmp_path, range(200), mended=9)) == []

    @pytest.mark.nightly
    @pytest.mark.timeout(3_600)
    def test_two_thousand_are_found(self, played: Path, tmp_path: Path) -> None:
        assert list(tried(played, tmp_path, range(2_000), mended=2)) == []

    def test_nothing_is_found_where_nothing_is_wrong(self, played: Path, tmp_path: Path) -> None:
        for name in ("shut", "early", "late"):
            assert problems(copied(played / name, tmp_path / name)) == ()

    @pytest.mark.parametrize("name", KNOWING)
    def test_each_change_by_hand_is_found(self, name: str, played: Path, tmp_path: Path) -> None:
        KNOWING[name](copied(played / "shut", tmp_path / "x"), Random(1))
        assert content(tmp_path / "x") != content(played / "shut")
        assert problems(tmp_path / "x")
        check_repair(tmp_path / "x", content(played / "shut"), tmp_path / "mended.db")

    @pytest.mark.parametrize("name", ["an edited time", "an edited result"])
    def test_without_the_chain_some_are_not(
        self, name: str, played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit, "link", lambda row, _: row.hash)
        KNOWING[name](copied(played / "shut", tmp_path / "x"), Random(1))
        assert problems(tmp_path / "x") == ()

    def test_without_the_note_a_lost_end_is_not(
        self, played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = copied(played / "late", tmp_path / "x")
        assert (folder / "log.db-wal").stat().st_size
        lose_wal(folder, Random(0))
        assert problems(folder)
        monkeypatch.setattr(sqlite.SQLiteFile, "noted", lambda _: None)
        assert problems(folder) == ()

    def test_nor_with_a_head_that_was_kept_elsewhere(self, played: Path, tmp_path: Path) -> None:
        folder = copied(played / "late", tmp_path / "x")
        with closing(store.reading(folder)) as kept:
            head = kept.head.hash
            assert audit.audit(kept, head=head).problems == ()
        lose_wal(folder, Random(0))
        (folder / "log.db.head").unlink()
        with closing(store.reading(folder)) as kept:
            assert audit.audit(kept).problems == ()
            (found,) = audit.audit(kept, head=head).problems
        assert "a row of this hash was needed, but none has it" in found


class TestAudit:
    def test_an_overspent_log_is_found_though_its_chain_holds(self) -> None:
        """Somebody may write a whole chain anew; what no campaign can do is found all the same."""
        kept = Memory(GIVEN)
        campaign = new_campaign(budget=1)
        rows = chained([entry(campaign.events), entry([campaign.ask("Ada")])], Head(), written="now")  # type: ignore[list-item]
        lease = rows[-1].line.replace('"number":1', '"number":2').replace('"item":', '"item":1')
        kept._rows = [*rows, *chained([entry(from_lines(lease.encode()))], Head(3, rows[-1].hash), written="now")]
        found = audit.audit(kept).problems
        assert found
        assert "cannot follow lease" in found[0] or "contradicts what came before" in found[0]

    def test_a_broken_chain_is_named(self, played: Path, tmp_path: Path) -> None:
        folder = copied(played / "shut", tmp_path / "x")
        by_hand("UPDATE log SET written = 'x' WHERE seq = 7")(folder, Random(0))
        assert "row 7: the hash of what it holds was needed, but another stands there" in problems(folder)
        with pytest.raises(BadLog, match="row 7 does not follow from the rows before it"):
            list(lines_of(str(folder)))

    @pytest.mark.slow
    def test_postgresql_is_verified_and_backed_up_too(self, postgres: Cluster, tmp_path: Path) -> None:
        import sqlalchemy as sa

        place = postgres.new_database()
        store.create(place, new_campaign(), written="now")
        with closing(Writer(store.opened(place), campaign_of)) as writer:
            lease = writer.do(lambda campaign, now: campaign.ask("Ada", now))
            writer.do(lambda campaign, now: campaign.tell(lease, 1, now))
            assert backed_up(place, tmp_path / "copy.db").head == writer.status.head
        with pytest.raises(NotAllowed, match="a server is backed up by pg_dump"):
            store._site(place, "refused").backup(tmp_path / "x")
        with pytest.raises(BadInput, match="a server mends its own"):
            repaired(Path(place), tmp_path / "y")
        with closing(store.reading(place)) as kept:
            assert audit.audit(kept).problems == ()
        engine = sa.create_engine(place.replace("postgresql:", "postgresql+psycopg:"))
        with engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE log DISABLE TRIGGER log_never")
        with closing(store.reading(place)) as kept:
            assert audit.audit(kept).problems == ("guards: one is missing: log log_never",)
        engine.dispose()


class TestCopies:
    def test_a_backup_is_made_while_the_campaign_goes_on(self, tmp_path: Path) -> None:
        store.create(tmp_path, new_campaign(), written="now")
        with closing(Writer(store.opened(tmp_path), campaign_of)) as writer:
            writer.do(lambda campaign, now: campaign.ask("Ada", now))
            found = backed_up(str(tmp_path), tmp_path / "copy.db")
            writer.do(lambda campaign, now: campaign.ask("Ada", now))
        assert (found.head.seq, found.sums.reserved) == (3, 1)
        with pytest.raises(BadInput, match="a backup is a file of its own"):
            backed_up(str(tmp_path), tmp_path / "copy.db")
        assert not list(tmp_path.glob(".*"))

    def test_a_backup_that_does_not_prove_itself_is_none(self, played: Path, tmp_path: Path) -> None:
        folder = copied(played / "shut", tmp_path / "x")
        by_hand("UPDATE sums SET spent = spent + 1")(folder, Random(0))
        with pytest.raises(BadLog, match="a log that proves itself was needed"):
            backed_up(str(folder), tmp_path / "copy.db")
        assert not (tmp_path / "copy.db").exists()

    def test_a_log_is_made_anew_from_its_lines(self, played: Path, tmp_path: Path) -> None:
        source = str(played / "shut")
        lines = tmp_path / "events.jsonl"
        lines.write_text("\n".join(lines_of(source)) + "\n")
        found = rebuilt(source, lines, to=tmp_path / "new.db", written="now")
        assert list(lines_of(str(tmp_path / "new.db"))) == list(lines_of(source))
        assert found.problems == ()
        told = [event for event in from_lines(lines.read_bytes()) if isinstance(event, Answer)]
        lines.write_bytes(lines.read_bytes().replace(b'"type":"lease"', b'"type":"closed"', 1))
        with pytest.raises(RelookError):
            rebuilt(source, lines, to=tmp_path / "other.db", written="now")
        assert not (tmp_path / "other.db").exists()
        assert told

    def test_what_a_repair_leaves_is_listed(self, played: Path, tmp_path: Path) -> None:
        folder = copied(played / "shut", tmp_path / "x")
        by_hand("UPDATE log SET written = 'x' WHERE seq = 9")(folder, Random(0))
        mended = repaired(folder, tmp_path / "new.db")
        assert (mended.kept, mended.left[0].seq) == (8, 9)
        assert mended.left[0].why == "its hash is that of another row"
        assert {left.why for left in mended.left[1:]} == {"it follows a row that is lost"}
        assert mended.listed is not None
        assert len(mended.listed.read_bytes().splitlines()) == len(mended.left)
        with closing(Writer(store.opened(tmp_path / "new.db"), campaign_of)) as writer:
            assert writer.status.health == "green"

    def test_a_log_without_its_first_row_cannot_be_mended(self, played: Path, tmp_path: Path) -> None:
        folder = copied(played / "shut", tmp_path / "x")
        by_hand("DELETE FROM log WHERE seq = 1")(folder, Random(0))
        with pytest.raises(BadLog, match="a first row was needed, but none can be read or trusted"):
            repaired(folder, tmp_path / "new.db")
