"""The one writer: a thread that owns a campaign and its store, and does what others ask, one thing after another.

It decides, commits, then tells: nobody hears of a lease or an answer that is not on the disk for good. What waits is
committed together. Where a commit fails, the campaign is made from the log again, and each of the group is tried alone,
so that what cannot be written harms nobody else.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Event as Flag
from threading import Thread
from typing import Any, Literal

import msgspec

from relook.campaign import Campaign
from relook.errors import BadInput, BadLog, Busy, NotStored, RelookError
from relook.events import Event
from relook.logbook import Entry, Head, Row, Store, chained, checked, entry

Action = Callable[[Campaign, float], Any]
"""What is asked of a writer: it is given the campaign and the campaign's time, and returns what is to be told.

It may be tried more than once, so all that it does it does to the campaign. Where it has a key, its result is an event,
a list of events, a text, a number or None.
"""

Rebuild = Callable[[list[Event]], Campaign]
"""How a campaign is made from its log."""

_results: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Event | list[Event] | str | int | float | bool | None)


Leases = Literal["renewed", "run on"]
"""What becomes of open leases at a start: a fresh term, or nothing, where the clock goes on while nobody is here."""


class Limits(msgspec.Struct, frozen=True):
    """How much waits, how much is committed together, and how many seconds somebody waits for an outcome.

    `leases` says what becomes of open leases at a start.
    """

    waiting: int = 2_000
    group: int = 256
    patience: float = 30.0
    leases: Leases = "renewed"


class Status(msgspec.Struct, frozen=True):
    """How a campaign stands after the last commit, and whether it can be written: `why` says what is wrong."""

    health: Literal["green", "red"]
    why: str | None
    head: Head
    spent: int
    reserved: int
    budget: int
    ranking: int
    closed: bool


_FAILURES = (NotStored, BadLog, Busy)


def check_key(key: str | None) -> str | None:
    """Return a key that every database can hold, or refuse it.

    >>> check_key("lease-7")
    'lease-7'
    """
    if key is not None and not (0 < len(key) <= 200 and key.isprintable()):
        raise BadInput(f"key: 1 to 200 marks that can be printed were needed, but {key!r} came; make another")
    return key


class _Asked:
    """One thing that was asked of the writer, what came of it, and who waits to hear."""

    __slots__ = ("action", "entry", "future", "key", "outcome")

    def __init__(self, action: Action, key: str | None) -> None:
        self.action, self.key = action, key
        self.future: Future[Any] = Future()
        self.entry = Entry()
        self.outcome: Any = None

    def tell(self) -> None:
        if isinstance(self.outcome, BaseException):
            self.refuse(self.outcome)
        elif not self.future.done():
            self.future.set_result(self.outcome)

    def refuse(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Writer:
    """Asks of many threads, done by one.

    `clock` never goes back, whatever happens to the time of day, and `stamp` is the time of day as rows note it.
    """

    def __init__(
        self,
        store: Store,
        rebuild: Rebuild,
        *,
        clock: Callable[[], float] = time.monotonic,
        stamp: Callable[[], str] = lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        limits: Limits = Limits(),
    ) -> None:
        self._store, self._rebuild, self._clock, self._stamp, self._limits = store, rebuild, clock, stamp, limits
        self._waiting: SimpleQueue[_Asked | None] = SimpleQueue()
        self._broken: RelookError | None = None
        self._dead: BaseException | None = None
        self._closing = self._last = False
        self._over = Flag()
        self._load()
        self._origin = 0.0 if limits.leases == "run on" else clock() - self._campaign.ledger.now
        self._renew()
        self._status = self._standing()
        self._thread = Thread(target=self._run, name="relook writer", daemon=True)
        self._thread.start()

    def submit(self, action: Action, key: str | None = None) -> "Future[Any]":
        """Ask for something; the future has its result once that is on the disk for good."""
        asked = _Asked(action, check_key(key))
        if self._closing or self._over.is_set():
            raise self._ended()
        if self._waiting.qsize() >= self._limits.waiting:
            raise Busy(f"writer: {self._limits.waiting} may wait to be written, and as many do; ask again in a second")
        self._waiting.put(asked)
        if self._over.is_set():
            self._refuse_waiting()
        return asked.future

    def do(self, action: Action, key: str | None = None) -> Any:
        """Do something, and return its result once that is on the disk for good; the same key has the same result."""
        future = self.submit(action, key)
        until = time.monotonic() + self._limits.patience
        while True:
            try:
                return future.result(timeout=0.25)
            except TimeoutError:
                if future.done():  # the action's own
                    return future.result()
            if not self._thread.is_alive():
                self._refuse_waiting()
                future.cancel()
                raise self._ended()
            if time.monotonic() > until:
                raise NotStored(
                    f"writer: an outcome was needed within {self._limits.patience} seconds, but none came; ask again "
                    "with the same key"
                )

    @property
    def status(self) -> Status:
        """How the campaign stands, without waiting for anybody."""
        if self._closing or self._over.is_set():
            return msgspec.structs.replace(self._status, health="red", why=str(self._ended()))
        return self._status

    def close(self) -> None:
        """Do what waits, and let go of the store."""
        if not self._closing:
            self._closing = True
            self._waiting.put(None)
            self._thread.join()
            self._store.close()

    def _run(self) -> None:
        group: list[_Asked] = []
        try:
            while not self._last:
                group = self._gathered()
                self._serve(group)
        except BaseException as error:  # noqa: BLE001  # whatever ends the thread, those who wait must hear of it
            self._dead = error
        finally:
            self._over.set()
            for asked in group:
                asked.refuse(self._ended())
            self._refuse_waiting()

    def _gathered(self) -> list[_Asked]:
        """Wait for something to do, and return it with all that waits besides."""
        group: list[_Asked] = []
        asked = self._waiting.get()
        while asked is not None:
            group.append(asked)
            if len(group) == self._limits.group:
                return group
            try:
                asked = self._waiting.get_nowait()
            except Empty:
                return group
        self._last = True
        return group

    def _serve(self, group: Sequence[_Asked]) -> None:
        try:
            first = self._first_of_each_key(group)
        except _FAILURES as error:
            self._break(error, group)
            return
        waiting = deque(first.values())
        while waiting:
            self._commit(self._decided(waiting))
        # Whoever asked again while the first was on its way hears what that one heard.
        for asked in group:
            if not asked.future.done():
                same = first[asked.key].future
                asked.outcome = same.exception() or same.result()
                asked.tell()

    def _first_of_each_key(self, group: Sequence[_Asked]) -> dict[Any, _Asked]:
        """Tell those whose key has its result already, and return the others, one a key."""
        known = self._known({asked.key: None for asked in group if asked.key is not None})
        first: dict[Any, _Asked] = {}
        for asked in group:
            if asked.key is not None and asked.key in known:
                asked.outcome = _results.decode(known[asked.key])
                asked.tell()
            else:
                first.setdefault(asked if asked.key is None else asked.key, asked)
        return first

    def _known(self, keys: Iterable[str]) -> dict[str, str]:
        wanted = list(keys)
        if self._broken is None:
            try:
                return self._store.results(wanted) if wanted else {}
            except NotStored as error:
                self._broken = error
        self._reload()
        return self._store.results(wanted)

    def _decided(self, waiting: deque[_Asked]) -> list[_Asked]:
        """Have the campaign decide what waits, up to the first that fails half-way: the campaign is of no use then."""
        decided: list[_Asked] = []
        self._spoiled = False
        while waiting and not self._spoiled:
            asked = waiting.popleft()
            decided.append(asked)
            self._decide(asked)
        return decided

    def _decide(self, asked: _Asked) -> None:
        campaign = self._campaign
        now = campaign.pass_time(self._now())
        # That time has passed is a fact, whatever becomes of the action; what that leaves half-done is none.
        passed = campaign.drain()
        try:
            result = asked.action(campaign, now)
            # What wrote nothing is simply done again.
            key = asked.key if campaign.events else None
            told = None if key is None else msgspec.json.encode(result).decode()
            asked.entry = entry([*passed, *campaign.events], key=key, result=told)
            asked.outcome = result
        except Exception as error:  # noqa: BLE001  # what an action raises is for whoever asked, whatever it is
            asked.outcome, asked.entry = error, entry(passed)
            self._spoiled = bool(campaign.events) or not isinstance(error, RelookError)
        campaign.drain()

    def _commit(self, decided: Sequence[_Asked]) -> None:
        rows = chained([asked.entry for asked in decided], self._store.head, written=self._stamp())
        try:
            if rows:
                self._store.append(rows)
            if self._spoiled:
                self._reload()
        except _FAILURES as error:
            self._mend(decided, rows, error=error)
        else:
            self._publish(decided)

    def _mend(self, decided: Sequence[_Asked], rows: Sequence[Row], *, error: RelookError) -> None:
        """After a failed commit: see what the log holds now, and try each of the group alone."""
        try:
            self._reload()
        except _FAILURES:
            self._break(error, decided)
            return
        if rows and self._store.head.hash == rows[-1].hash:
            self._publish(decided)
        elif len(decided) == 1:
            decided[0].outcome = error
            self._publish(decided)
        else:
            for place, asked in enumerate(decided):
                if self._broken is not None:
                    self._break(self._broken, decided[place:])
                    break
                self._commit(self._decided(deque([asked])))

    def _publish(self, decided: Sequence[_Asked]) -> None:
        self._status = self._standing()
        for asked in decided:
            asked.tell()

    def _load(self) -> None:
        events = [row.event for row in checked(self._store.rows())]
        self._campaign = self._rebuild(events)
        self._campaign.drain()
        self._spoiled = False

    def _reload(self) -> None:
        self._store.reopen()
        self._load()
        self._broken = None

    def _renew(self) -> None:
        """Give every open lease a fresh term: how long nobody was here is not known, and not theirs to lose."""
        if self._campaign.reserved and self._limits.leases == "renewed":
            self._campaign.renew(self._now())
            self._store.append(chained([entry(self._campaign.drain())], self._store.head, written=self._stamp()))

    def _break(self, error: RelookError, group: Sequence[_Asked]) -> None:
        """Say that nothing can be written now; the next that is asked finds out whether it can again."""
        self._broken = error
        self._status = msgspec.structs.replace(self._status, health="red", why=str(error))
        for asked in group:
            asked.refuse(NotStored(f"writer: it is not known whether this was written ({error}); ask again by its key"))

    def _now(self) -> float:
        return max(self._clock() - self._origin, self._campaign.ledger.now)

    def _standing(self) -> Status:
        ledger = self._campaign.ledger
        return Status(
            "green", None, self._store.head, ledger.spent, ledger.reserved, ledger.budget, ledger.ranking, ledger.closed
        )

    def _refuse_waiting(self) -> None:
        while True:
            try:
                asked = self._waiting.get_nowait()
            except Empty:
                return
            if asked is not None:
                asked.refuse(self._ended())

    def _ended(self) -> RelookError:
        why = "it was closed" if self._dead is None else repr(self._dead)
        return NotStored(f"writer: one that runs was needed, but it has ended ({why}); start the program again")
