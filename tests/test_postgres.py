"""A PostgreSQL server that goes down in the middle of a campaign: nobody is told what is lost, and work goes on."""

import threading
import time
from contextlib import closing
from typing import Any

import pytest

from relook import store
from relook.errors import Busy, NotStored
from relook.writer import Action, Writer
from tests.crashes import PEOPLE, asking, insist, new_campaign, rebuilt, tell_before_commit, telling
from tests.diaries import Told, check_log
from tests.servers import Cluster

pytestmark = pytest.mark.slow


def work(writer: Writer, who: str, *, told: list[Told], until: threading.Event) -> None:
    """Ask and answer until it is over; ask again by the same key where the server is away."""
    turn = 0
    while not until.is_set():
        turn += 1
        lease = asked(writer, asking(who), f"{who}-{turn}-ask")
        if lease is not None:
            answer = asked(writer, telling(lease), f"{who}-{turn}-tell")
            told.append(Told(f"{who}-{turn}-tell", {"lease": answer.lease}))


def asked(writer: Writer, action: Action, key: str | None = None) -> Any:
    return insist(lambda: writer.do(action, key=key), 20)


def restarted(postgres: Cluster, *, times: int) -> tuple[float, int]:
    """Restart a server so often under people who work; return the longest outage and how many answers were told."""
    place = postgres.new_database()
    store.create(place, new_campaign(), written="now")
    over, told = threading.Event(), list[Told]()
    with closing(Writer(store.opened(place), rebuilt)) as writer:
        people = [
            threading.Thread(target=work, args=(writer, f"{who}{n}"), kwargs={"told": told, "until": over})
            for n in range(3)
            for who in PEOPLE
        ]
        for person in people:
            person.start()
        outages = []
        for _ in range(times):
            time.sleep(0.7)
            postgres.restart()
            back = time.monotonic()
            asked(writer, asking(None))
            outages.append(time.monotonic() - back)
        over.set()
        for person in people:
            person.join()
        assert writer.status.health == "green"
    with closing(store.reading(place)) as kept:
        rows = {row.key: row for row in kept.rows() if row.key is not None}
        heard = [one for one in told if one.result is not None]
        assert [one.key for one in heard if one.key not in rows] == []
        assert all(f'"lease":{one.result["lease"]},' in rows[one.key].line for one in heard)
        check_log(kept)
    return max(outages), len(heard)


def test_three_restarts(postgres: Cluster) -> None:
    outage, told = restarted(postgres, times=3)
    assert outage < 5
    assert told > 20


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
def test_thirty_restarts(postgres: Cluster) -> None:
    outage, told = restarted(postgres, times=30)
    assert outage < 5
    assert told > 200


def test_is_seen_where_people_are_told_before_the_commit(postgres: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Writer, "_commit", tell_before_commit)
    place = postgres.new_database()
    store.create(place, new_campaign(), written="now")
    with closing(Writer(store.opened(place), rebuilt)) as writer:
        postgres.control("stop", "-m", "immediate")
        try:
            lease = writer.do(asking("Ada"))
            with pytest.raises(NotStored):
                writer.do(asking("Ada"), key="other")
        finally:
            postgres.start()
    with closing(store.reading(place)) as kept:
        assert lease.number == 1
        assert kept.sums().reserved == 0


def test_a_connection_that_was_ended_is_made_anew(postgres: Cluster) -> None:
    import psycopg

    place = postgres.new_database()
    store.create(place, new_campaign(), written="now")
    with closing(Writer(store.opened(place), rebuilt)) as writer:
        for number in range(3):
            with psycopg.connect(place, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid() "
                    "AND datname = current_database()"
                )
            assert asked(writer, asking("Ada"), f"ask-{number}").number == number + 1
    with closing(store.reading(place)) as kept:
        check_log(kept)


def test_a_writer_waits_for_the_server_to_end_the_connection_before(postgres: Cluster) -> None:
    import psycopg

    from relook.store.postgres import LOCK

    place = postgres.new_database()
    store.create(place, new_campaign(), written="now")
    for held, opens in ((0.2, True), (5.0, False)):
        with psycopg.connect(place, autocommit=True) as other:
            other.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
            release = threading.Timer(held, other.execute, ["SELECT pg_advisory_unlock(%s)", (LOCK,)])
            release.start()
            began = time.monotonic()
            if opens:
                store.opened(place).close()
            else:
                with pytest.raises(Busy):
                    store.opened(place)
            assert time.monotonic() - began < 1
            release.cancel()
            release.join()
