"""The one writer: what it tells is on the disk, what cannot be written harms nobody else, and its end is heard of."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relook import store
from relook.campaign import Campaign
from relook.errors import BadInput, BadLog, Busy, NotAllowed, NotStored
from relook.events import Answer, Expired, Lease, Renewed
from relook.logbook import Row, Store
from relook.store.memory import Memory
from relook.writer import Limits, Writer
from tests.crashes import GIVEN, new_campaign, rebuilt
from tests.crashes import asking as ask
from tests.diaries import Told, check_log


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def in_memory(budget: int = 1_000) -> Memory:
    made = Memory(GIVEN)
    made.append(store.beginning(new_campaign(budget), written="2026-11-19T00:00:00Z"))
    return made


@contextmanager
def writing(kept: Store, **settings: Any) -> Iterator[Writer]:
    with closing(Writer(kept, rebuilt, **settings)) as writer:
        yield writer


def tell(lease: Lease, answer: int = 0) -> Callable[[Campaign, float], Any]:
    return lambda campaign, now: campaign.tell(lease, answer, now)


@contextmanager
def held(writer: Writer) -> Iterator[None]:
    """Keep a writer busy, so that what is asked meanwhile waits and is committed together."""
    began, go = threading.Event(), threading.Event()

    def stand(campaign: Campaign, now: float) -> None:
        began.set()
        go.wait(10)

    waiting = writer.submit(stand)
    assert began.wait(10)
    yield
    go.set()
    waiting.result(10)


class Watched:
    """A store that counts commits, and fails or stops where it is told to."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.groups: list[int] = []
        self.fails: Callable[[Sequence[Row]], object] = lambda _: None
        self.reopens: Callable[[], None] = lambda: None

    def append(self, rows: Sequence[Row]) -> None:
        self.fails(rows)
        self._inner.append(rows)
        self.groups.append(len(rows))

    def reopen(self) -> None:
        self.reopens()
        self._inner.reopen()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def check(kept: Store, told: Sequence[Told] = ()) -> None:
    check_log(kept, told)


class TestTelling:
    def test_an_answer_is_in_the_log_once_it_is_told(self) -> None:
        with writing(in_memory()) as writer:
            lease = writer.do(ask("Ada"))
            answer = writer.do(tell(lease, 2))
            assert isinstance(answer, Answer)
            assert [type(row.event) for row in writer._store.rows(after=2)] == [Lease, Answer]
            assert (writer.status.spent, writer.status.reserved, writer.status.head.seq) == (1, 0, 4)

    def test_nobody_hears_of_what_is_not_committed(self) -> None:
        kept = Watched(in_memory())
        with writing(kept) as writer:
            may = threading.Event()
            kept.fails = lambda _: may.wait(10)
            future = writer.submit(ask("Ada"))
            time.sleep(0.05)
            assert not future.done()
            assert (writer.status.reserved, writer.status.head.seq) == (0, 2)
            may.set()
            assert future.result(10).number == 1
            assert writer.status.reserved == 1

    def test_what_waits_is_committed_together(self) -> None:
        kept = Watched(in_memory())
        with writing(kept) as writer:
            with held(writer):
                futures = [writer.submit(ask(f"p{number}")) for number in range(40)]
            assert [future.result(10).number for future in futures] == list(range(1, 41))
        assert max(kept.groups) == 40

    def test_a_refusal_is_for_who_asked_and_writes_nothing(self) -> None:
        with writing(in_memory()) as writer:
            lease = writer.do(ask("Ada"))
            writer.do(tell(lease, 1))
            with pytest.raises(NotAllowed, match="was answered with 1"):
                writer.do(tell(lease, 2))
            assert writer.status.head.seq == 4

    def test_an_action_is_done_whole_or_not_at_all(self) -> None:
        def two_and_a_half(campaign: Campaign, now: float) -> None:
            campaign.ask("Ada", now)
            campaign.ask("Ada", now)
            raise NotAllowed("test: half-way")

        with writing(in_memory()) as writer:
            first = writer.submit(ask("Grace"))
            with pytest.raises(NotAllowed, match="half-way"):
                writer.do(two_and_a_half)
            later = writer.do(ask("Ada"))
            assert (first.result().number, later.number, writer.status.reserved) == (1, 2, 2)
            check(writer._store)

    def test_time_that_passed_is_kept_whatever_becomes_of_an_action(self) -> None:
        clock = Clock()
        with writing(in_memory(), clock=clock) as writer:
            lease = writer.do(ask("Ada"))
            clock.now += 700
            with pytest.raises(NotAllowed, match="an open lease was needed"):
                writer.do(lambda campaign, now: campaign.skip(lease, now))
            assert type(list(writer._store.rows())[-1].event) is Expired
            assert writer.status.reserved == 0

    def test_the_clock_of_the_day_changes_nothing(self) -> None:
        """T12: leases follow a clock that never goes back; the time of day is noted, and may be anything."""
        clock, days = Clock(), iter(["2026-11-19T00:00:00Z", "1970-01-01T00:00:00Z", "2036-11-19T00:00:00Z"] * 9)
        kept = in_memory()
        with writing(kept, clock=clock, stamp=lambda: next(days)) as writer:
            lease = writer.do(ask("Ada"))
            clock.now -= 500
            assert writer.do(tell(lease)).counted
            clock.now += 599
            assert writer.do(ask("Grace")).at >= 0
        times = [row.event.at for row in kept.rows()]
        assert times == sorted(times)
        check(kept)


class TestStarts:
    def test_every_open_lease_gets_one_fresh_term(self) -> None:
        """However long nobody was here, and whatever the time of day says."""
        kept, clock = in_memory(), Clock()
        with writing(kept, clock=clock) as writer:
            lease = writer.do(ask("Ada"))
            clock.now += 599
        clock.now = 5.0
        with writing(kept, clock=clock) as writer:
            assert type(list(kept.rows())[-1].event) is Renewed
            clock.now += 599
            assert writer.do(tell(lease)).counted
        with writing(kept, clock=clock):
            assert type(list(kept.rows())[-1].event) is Answer

    def test_and_loses_it_at_its_end(self) -> None:
        kept, clock = in_memory(), Clock()
        with writing(kept, clock=clock) as writer:
            lease = writer.do(ask("Ada"))
        with writing(kept, clock=clock) as writer:
            clock.now += 601
            assert not writer.do(tell(lease)).counted

    def test_a_broken_log_is_no_start(self) -> None:
        kept = in_memory()
        kept._rows[0] = msgspec.structs.replace(kept._rows[0], written="then")
        with pytest.raises(BadLog, match="row 1 does not follow"):
            Writer(kept, rebuilt)


class TestKeys:
    def test_the_same_key_has_the_same_result_and_is_done_once(self) -> None:
        with writing(in_memory()) as writer:
            first = writer.do(ask("Ada"), key="shown-1")
            assert writer.do(ask("Grace"), key="shown-1") == first
            assert writer.status.reserved == 1
            assert writer.do(lambda campaign, now: [campaign.ask("Rosa", now)], key="many")[0].number == 2

    def test_together_too(self) -> None:
        with writing(in_memory()) as writer:
            with held(writer):
                futures = [writer.submit(ask("Ada"), key="shown-1") for _ in range(50)]
            assert {future.result(10).number for future in futures} == {1}
            assert writer.status.reserved == 1

    def test_and_after_a_restart(self) -> None:
        kept = in_memory()
        with writing(kept) as writer:
            lease = writer.do(ask("Ada"), key="shown-1")
            answer = writer.do(tell(lease, 1), key="told-1")
        with writing(kept) as writer:
            assert writer.do(tell(lease, 2), key="told-1") == answer
            assert writer.status.spent == 1

    def test_without_one_a_repetition_is_another(self) -> None:
        """The control: it is the key that makes a repetition harmless."""
        with writing(in_memory()) as writer:
            assert writer.do(ask("Ada")).number != writer.do(ask("Ada")).number

    def test_who_repeats_what_was_refused_is_refused(self) -> None:
        with writing(in_memory()) as writer:
            with held(writer):
                futures = [
                    writer.submit(lambda campaign, now: campaign.undo("Ada", 1, now), key="undo") for _ in range(2)
                ]
            for future in futures:
                with pytest.raises(NotAllowed, match="were to be undone"):
                    future.result(10)

    @pytest.mark.parametrize("key", ["", "a\0b", "\ud800", "x" * 201])
    def test_that_no_database_could_hold_is_refused(self, key: str) -> None:
        with writing(in_memory()) as writer, pytest.raises(BadInput, match="marks that can be printed were needed"):
            writer.do(ask("Ada"), key=key)


def overspend(campaign: Campaign, now: float) -> Any:
    """Decide wrongly: lease an item that the budget has no place for."""
    campaign.ledger.budget += 1_000
    try:
        return [campaign.ask(f"nobody {number}", now) for number in range(900)]
    finally:
        campaign.ledger.budget -= 1_000


def break_down(campaign: Campaign, now: float) -> Any:
    campaign.ask("Eve", now)
    raise ZeroDivisionError("test: a bug")


def unwritable(campaign: Campaign, now: float) -> Any:
    return campaign.ask("\ud800", now)


POISONS = {"what overspends": overspend, "what breaks down": break_down, "what no line can hold": unwritable}


def poisoned_group(writer: Writer, poison: Callable[[Campaign, float], Any], *, size: int) -> list[Any]:
    """Put a row that cannot be written in the middle of a full group, and return what came of each."""
    with held(writer):
        futures = [
            writer.submit(poison if number == size // 2 else ask(f"p{number}"), key=f"k{number}")
            for number in range(size)
        ]
    return [future.exception(10) or future.result() for future in futures]


class TestPoison:
    @pytest.mark.parametrize("poison", POISONS)
    def test_harms_its_own_row_alone(self, poison: str, tmp_path: Path) -> None:
        store.create(tmp_path, new_campaign(budget=30), written="now")
        with writing(store.opened(tmp_path), limits=Limits(group=51)) as writer:
            came = poisoned_group(writer, POISONS[poison], size=50)
            wrong = [place for place, result in enumerate(came) if isinstance(result, BaseException)]
            assert wrong == [25]
            # People may differ in nothing but their number, for each was shown the best item that was free.
            assert [type(result) for place, result in enumerate(came) if place != 25 and result is not None] == (
                [Lease] * writer.status.reserved
            )
            assert writer.status.health == "green"
            with closing(store.reading(tmp_path)) as kept:
                check(kept)

    def test_would_harm_the_group_without_the_second_try(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def give_up(self: Writer, decided: Any, rows: Any, *, error: Exception) -> None:
            self._reload()
            for asked in decided:
                asked.refuse(error)

        monkeypatch.setattr(Writer, "_mend", give_up)
        with writing(in_memory(30), limits=Limits(group=51)) as writer:
            came = poisoned_group(writer, overspend, size=50)
            assert sum(isinstance(result, NotStored) for result in came) > 1


class TestFailures:
    def test_a_commit_that_fails_is_tried_again_from_the_log(self) -> None:
        kept = Watched(in_memory())
        with writing(kept) as writer:
            kept.fails = once(NotStored("test: full"))
            with pytest.raises(NotStored, match="test: full"):
                writer.do(ask("Ada"))
            assert (writer.status.health, writer.status.reserved) == ("green", 0)
            assert writer.do(ask("Ada")).number == 1
            check(kept)

    def test_a_commit_that_was_made_and_not_confirmed_is_told(self) -> None:
        """The server went down after it wrote and before it said so."""
        kept = Watched(in_memory())
        with writing(kept) as writer:

            def write_and_fail(rows: Sequence[Row]) -> None:
                kept.fails = lambda _: None
                kept._inner.append(rows)
                raise NotStored("test: no word came back")

            kept.fails = write_and_fail
            assert writer.do(ask("Ada")).number == 1
            assert writer.status.reserved == 1
            check(kept)

    def test_a_store_that_is_gone_turns_health_red_until_it_is_back(self) -> None:
        kept = Watched(in_memory())
        with writing(kept) as writer:

            def fail(*_: Any) -> None:
                raise NotStored("test: gone")

            kept.fails = kept.reopens = fail
            began = time.monotonic()
            with pytest.raises(NotStored, match="it is not known whether this was written"):
                writer.do(ask("Ada"), key="k")
            assert time.monotonic() - began < 1
            assert (writer.status.health, writer.status.why) == ("red", "test: gone")
            kept.fails, kept.reopens = (lambda _: None), (lambda: None)
            assert writer.do(ask("Ada"), key="k").number == 1
            assert writer.status.health == "green"

    def test_a_store_that_stays_gone_refuses_the_whole_group_at_once(self) -> None:
        kept = Watched(in_memory())
        with writing(kept) as writer:
            tries: list[int] = []

            def fail_later(*_: Any) -> None:
                tries.append(1)
                if len(tries) != 2:
                    raise NotStored("test: gone")

            with held(writer):
                futures = [writer.submit(ask(f"p{number}")) for number in range(20)]
                kept.fails = kept.reopens = fail_later
            assert all(isinstance(future.exception(10), NotStored) for future in futures)
            assert len(tries) < 6

    def test_a_dead_writer_is_heard_of_within_a_second(self) -> None:
        def end(campaign: Campaign, now: float) -> None:
            raise SystemExit("test: the end")

        with writing(in_memory()) as writer:
            with held(writer):
                futures = [writer.submit(ask("Ada")), writer.submit(end), writer.submit(ask("Grace"))]
            for future in futures:
                assert isinstance(future.exception(1), NotStored)
            began = time.monotonic()
            with pytest.raises(NotStored, match="one that runs was needed, but it has ended"):
                writer.do(ask("Ada"))
            assert time.monotonic() - began < 1
            assert writer.status.health == "red"
            assert "the end" in str(writer.status.why)

    def test_a_writer_that_was_killed_without_a_word_is_heard_of_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Writer, "_run", lambda _: None)
        with writing(in_memory()) as writer:
            writer._thread.join()
            began = time.monotonic()
            with pytest.raises(NotStored, match="it has ended"):
                writer.do(ask("Ada"))
            assert time.monotonic() - began < 1

    def test_a_closed_writer_says_so(self) -> None:
        with writing(in_memory()) as writer:
            pass
        with pytest.raises(NotStored, match="it was closed"):
            writer.do(ask("Ada"))
        assert writer.status.health == "red"
        writer.close()

    def test_too_much_is_refused_and_what_waits_is_done(self) -> None:
        with writing(in_memory(), limits=Limits(waiting=10)) as writer:
            with held(writer):
                futures = [writer.submit(ask("Ada")) for _ in range(10)]
                with pytest.raises(Busy, match="may wait to be written, and as many do"):
                    writer.submit(ask("Ada"))
            assert [future.result(10).number for future in futures] == list(range(1, 11))
            assert writer.do(ask("Ada")).number == 11

    def test_nobody_waits_for_ever(self) -> None:
        wanted, stack = "an outcome was needed within", ExitStack()
        with writing(in_memory(), limits=Limits(patience=0.3)) as writer:
            stack.enter_context(held(writer))
            with pytest.raises(NotStored, match=wanted):
                writer.do(ask("Ada"))
            stack.close()


def once(error: Exception) -> Callable[[Any], None]:
    left = [error]

    def fail(_: Any) -> None:
        if left:
            raise left.pop()

    return fail
