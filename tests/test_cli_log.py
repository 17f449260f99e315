"""`relook log` proves, mends, copies and writes out a log, and says what it found."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from relook import store
from relook.events import from_lines
from relook.writer import Writer
from tests.commands import Said, command
from tests.crashes import new_campaign, rebuilt

Run = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """In a folder with a campaign `pets`, of which one answer is told and one lease is open."""
    monkeypatch.chdir(tmp_path)
    Path("pets").mkdir()
    store.create(Path("pets"), new_campaign(budget=1_000), written="2026-11-19T00:00:00Z")
    with closing(Writer(store.opened(Path("pets")), rebuilt)) as writer:
        lease = writer.do(lambda campaign, now: campaign.ask("Ada", now))
        writer.do(lambda campaign, now: campaign.tell(lease, 1, now))
        writer.do(lambda campaign, now: campaign.ask("Grace", now))
    return lambda *words: command("log", *words, capsys=capsys)


def damage(statement: str) -> None:
    with closing(sqlite3.connect("pets/log.db")) as connection:
        connection.execute("DROP TRIGGER log_no_update")
        connection.execute(statement)
        connection.commit()


class TestVerify:
    def test_a_sound_log_ends_well(self, run: Run) -> None:
        said = run("verify", "pets")
        assert said.status == 0
        assert "5 rows: its chain holds, and all that is kept follows from it." in said.out
        assert "Budget 1,000: 1 spent, 1 reserved; answers that count: 1." in said.out
        head = next(line for line in said.out.splitlines() if line.startswith("Head: ")).removeprefix("Head: ")
        assert len(head) == 64
        assert run("verify", "pets/log.db", "--head", head).status == 0

    def test_what_is_wrong_is_said(self, run: Run) -> None:
        damage("UPDATE log SET line = replace(line, 'Ada', 'Eve') WHERE seq = 3")
        said = run("verify", "pets")
        assert said.status == 1
        assert "WRONG: row 3: the hash of what it holds was needed" in said.out
        assert "WRONG: guards: one is missing: trigger log_no_update" in said.out
        assert "Next: relook log repair pets --to NEW" in said.out

    def test_another_head_is_said(self, run: Run) -> None:
        assert run("verify", "pets", "--head", "0" * 64).status == 1

    def test_no_campaign_is_said(self, run: Run) -> None:
        said = run("verify", "cats")
        assert said.status == 2
        assert "a campaign's log was needed, but there is no such file" in said.err

    def test_it_can_be_run_while_the_campaign_is_open(self, run: Run) -> None:
        with closing(Writer(store.opened(Path("pets")), rebuilt)):
            assert run("verify", "pets").status == 0


class TestRepair:
    def test_rows_whose_chain_holds_are_kept_and_the_rest_is_listed(self, run: Run) -> None:
        damage("UPDATE log SET line = replace(line, 'Ada', 'Eve') WHERE seq = 3")
        before = Path("pets/log.db").read_bytes()
        said = run("repair", "pets", "--to", "mended.db")
        assert said.status == 0
        assert "2 rows were kept: their chain holds" in said.out
        assert "3 rows were not; they are listed in mended.db.left.jsonl" in said.out
        assert "row 3: its hash is that of another row" in said.out
        assert Path("pets/log.db").read_bytes() == before
        assert run("verify", "mended.db").status == 0

    def test_a_sound_log_is_kept_whole(self, run: Run) -> None:
        assert "5 rows were kept" in run("repair", "pets", "--to", "mended.db").out
        assert not Path("mended.db.left.jsonl").exists()

    def test_no_file_is_replaced(self, run: Run) -> None:
        said = run("repair", "pets", "--to", "pets/log.db")
        assert said.status == 2
        assert "a new log was needed, but a campaign's is there already" in said.err


class TestCopies:
    def test_a_backup_is_verified(self, run: Run) -> None:
        said = run("backup", "pets", "--to", "copy.db")
        assert said.status == 0
        assert "5 rows: its chain holds" in said.out
        assert run("backup", "pets", "--to", "copy.db").status == 2

    def test_lines_are_printed_or_written(self, run: Run) -> None:
        printed = run("replay", "pets").out
        assert len(from_lines(printed.encode())) == 5
        assert "5 events." in run("replay", "pets", "--to", "events.jsonl").out
        assert Path("events.jsonl").read_text() == printed

    def test_a_log_is_made_of_lines(self, run: Run) -> None:
        run("replay", "pets", "--to", "events.jsonl")
        assert "5 rows" in run("replay", "pets", "--events", "events.jsonl", "--to", "new.db").out
        assert run("replay", "new.db").out == run("replay", "pets").out
        said = run("replay", "pets", "--events", "events.jsonl")
        assert said.status == 2
        assert "makes a new log, but no --to says where" in said.err


def test_a_second_writer_ends_with_a_status_of_its_own(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr(store, "reading", store.opened)
    with closing(store.opened("pets")):
        said = run("verify", "pets")
    assert said.status == 3
    assert "one program may write at a time, but pid" in said.err
