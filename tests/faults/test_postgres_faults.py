"""A ledger in PostgreSQL when things go wrong: standbys, fail-over, servers that race, clocks that jump."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bursar.core.accounting import Measured
from bursar.core.budget import Budget
from bursar.core.ledger import Hold, PostgresLedger, PostgresPlace
from bursar.core.ledger.postgresql.postgres_connection import PostgresConnection
from bursar.errors import BudgetError, LedgerError
from bursar.session import Bursar
from harness.faults import PRESETS, declare, exit_code, loss, start
from harness.ledgers import note
from harness.patience import PATIENCE, until
from harness.postgres_ledgers import new_ledger, reopened
from harness.racing import CLIENTS, EPSILON, GRANTS, TEXT, clients
from harness.servers import PostgreSQL, administer, postgresql, standby
from harness.small import charter, config, engine

CHARTER = {"id": "people"}
FAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))


@pytest.fixture(scope="module")
def primary() -> Iterator[PostgreSQL]:
    with postgresql() as made:
        yield made


def set_to(server: PostgreSQL, name: str, value: str) -> None:
    administer(server.url(), f"ALTER SYSTEM SET {name} = '{value}'", "SELECT pg_reload_conf()")
    until(lambda: administer(server.url(), f"SHOW {name}") == [(value,)])


# -- standbys -----------------------------------------------------------------------------------------------


def cancel_the_wait(server: PostgreSQL) -> None:
    """As an administrator does when commits hang because the standby is away."""
    waiting = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    until(lambda: administer(server.url(), waiting))


@pytest.fixture
def lonely(primary: PostgreSQL, tmp_path: Path) -> Iterator[PostgresLedger]:
    """A ledger whose database waits for a standby that is not there."""
    ledger = new_ledger(tmp_path, CHARTER, url=primary.url())
    ledger.commit(note)
    set_to(primary, "synchronous_standby_names", "missing")
    yield ledger
    set_to(primary, "synchronous_standby_names", "")
    ledger.close()


def test_a_wait_for_the_standby_that_is_cancelled_releases_nothing(lonely: PostgresLedger, primary: PostgreSQL) -> None:
    helper = threading.Thread(target=cancel_the_wait, args=(primary,))
    helper.start()
    with pytest.raises(LedgerError, match="not certain that it has kept the commit; nothing was released"):
        lonely.commit(note)
    helper.join()
    assert len(lonely.records()) == 2  # it is there on this machine, and charged


def test_a_commit_that_ignores_notices_would_release(
    lonely: PostgresLedger, primary: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wrong twin: the database raised no error."""
    monkeypatch.setattr(PostgresConnection, "commit", lambda self: self._several("COMMIT"))
    helper = threading.Thread(target=cancel_the_wait, args=(primary,))
    helper.start()
    assert lonely.commit(note) == 2
    helper.join()


def test_standbys_that_may_lag_behind_are_refused_unless_accepted(primary: PostgreSQL, tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, CHARTER, url=primary.url())
    ledger.commit(note)
    ledger.close()
    with standby(primary) as replica:
        until(lambda: administer(primary.url(), "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"))
        with pytest.raises(LedgerError, match=r"a fail-over may lose charges(.|\n)*asynchronous = true"):
            reopened(ledger, tmp_path)
        with closing(reopened(ledger, tmp_path, lossy=True)) as accepted:
            assert accepted.commit(note) == 2
            assert accepted.warnings == accepted.verify().notes != ()
        with pytest.raises(LedgerError, match="is a standby"):
            reopened(ledger, tmp_path, url=replica.url(), lossy=True)
        set_to(primary, "synchronous_standby_names", "standby")
        try:
            with closing(reopened(ledger, tmp_path)) as waits:
                assert waits.warnings == ()
                assert waits.commit(note) == 3
        finally:
            set_to(primary, "synchronous_standby_names", "")


@pytest.mark.heavy
def test_fail_over_to_a_synchronous_standby_loses_no_charge(tmp_path: Path) -> None:
    """The primary dies while clients commit; all that was released is in the ledger of the promoted standby."""
    with postgresql() as old, standby(old) as new:
        set_to(old, "synchronous_standby_names", "standby")
        until(lambda: administer(old.url(), "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))
        hosts = f"postgresql:///postgres?host={old.folder},{new.folder}&port={old.port},{new.port}&user=postgres"
        ledger = new_ledger(tmp_path, CHARTER, url=f"{hosts}&target_session_attrs=read-write")
        released: list[int] = []
        failed = threading.Event()

        def client() -> None:
            while not failed.is_set():
                try:
                    released.append(ledger.commit(note))
                except LedgerError:
                    failed.set()

        threads = [threading.Thread(target=client) for _ in range(8)]
        for thread in threads:
            thread.start()
        until(lambda: len(released) > 100)
        old.stop("immediate")
        for thread in threads:
            thread.join()
        new.promote()
        assert ledger.commit(note) > max(released)
        positions = {record.position for record in ledger.records()}
        assert set(released) <= positions
        assert ledger.verify().records == len(positions)
        ledger.close()


@pytest.mark.heavy
def test_a_synchronous_standby_that_is_killed_holds_a_release_up_until_it_is_back(tmp_path: Path) -> None:
    with postgresql() as primary, standby(primary) as replica, ThreadPoolExecutor(1) as pool:
        set_to(primary, "synchronous_standby_names", "standby")
        in_step = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
        until(lambda: administer(primary.url(), in_step))
        with closing(new_ledger(tmp_path, CHARTER, url=primary.url())) as ledger:
            assert ledger.commit(note) == 1
            replica.stop("immediate")
            done = pool.submit(ledger.commit, note)
            until(lambda: administer(primary.url(), "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
            assert not done.done()
            assert [record.position for record in ledger.records()] == [1]  # nobody can answer from it either
            replica.start()
            assert done.result(PATIENCE) == 2
            assert administer(primary.url(), in_step)
            assert ledger.verify().records == 2


@pytest.mark.heavy
def test_fail_over_to_a_standby_that_lagged_behind_is_refused(tmp_path: Path) -> None:
    """With asynchronous replication a charge is lost, and the machine that saw it stops rather than spend it again."""
    with postgresql() as old, standby(old) as new:
        url = f"postgresql:///postgres?host={old.folder},{new.folder}&port={old.port},{new.port}&user=postgres"
        ledger = new_ledger(tmp_path, CHARTER, url=f"{url}&target_session_attrs=read-write", lossy=True)
        ledger.commit(note)
        sent = "SELECT 1 FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()"
        until(lambda: administer(old.url(), sent))
        receivers = new.run("pg_ctl", "-D", str(new.data), "stop", "-m", "fast")
        assert receivers.returncode == 0
        assert ledger.commit(note) == 2  # the standby has never heard of it
        old.stop("immediate")
        new.start()
        new.promote()
        with pytest.raises(LedgerError, match="replaced by an older"):
            ledger.commit(note)
        ledger.close()
        with pytest.raises(LedgerError, match="an older copy was put back"):
            reopened(ledger, tmp_path, lossy=True)


def test_a_database_that_was_killed_recovers_what_was_released(tmp_path: Path) -> None:
    with postgresql() as mine, closing(new_ledger(tmp_path, CHARTER, url=mine.url())) as ledger:
        released = [ledger.commit(note) for _ in range(5)]
        with psycopg.connect(mine.url(), autocommit=True) as witness:
            others = (
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            # One backend that is killed makes all others end at once, and PostgreSQL recovers from its own log.
            os.kill(witness.execute(others).fetchall()[0][0], signal.SIGKILL)
            until(lambda: lost(witness))  # before, a new connection may still be let in that ends with all others
        until(lambda: running(mine))
        assert [record.position for record in ledger.records()] == released
        assert ledger.commit(note) == 6


def lost(connection: psycopg.Connection[Any]) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return True
    return False


def running(server: PostgreSQL) -> bool:
    try:
        administer(server.url(), "SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


# -- two servers, one budget --------------------------------------------------------------------------------


def settings() -> Any:
    return config(budget=Budget.of(epsilon=EPSILON))


def opened(place: PostgresPlace) -> Bursar:
    ledger = PostgresLedger(replace(place, busy_timeout=PATIENCE), charter(settings()))
    return engine(settings=settings(), ledger=ledger, preset=PRESETS["fixed"])


def serve_clients(place: PostgresPlace, threads: int, requests: int) -> None:
    folder = place.anchor.parent
    with opened(place) as bursar:
        tally = clients(bursar, folder.name, threads, requests)
    (folder / "tally").write_text(f"{tally['granted']} {tally['refused']}")


@pytest.mark.parametrize(
    ("machines", "threads", "requests"),
    [(2, 2, 3), pytest.param(2, CLIENTS // 2, 5, marks=pytest.mark.heavy)],
)
def test_servers_on_several_machines_spend_exactly_the_budget(
    primary: PostgreSQL, tmp_path: Path, machines: int, threads: int, requests: int
) -> None:
    """Each machine has an anchor of its own; nothing is lost, nothing is spent twice, nobody fails."""
    ledger = new_ledger(tmp_path, charter(settings()), url=primary.url())
    declare(ledger)  # type: ignore[arg-type]
    head = ledger.verify()
    folders = [tmp_path / f"machine {number}" for number in range(machines)]
    for folder in folders:
        folder.mkdir()
        reopened(ledger, folder, expect=(head.records, head.head)).close()
    places = [replace(ledger.place, anchor=folder / "ledger-anchor") for folder in folders]
    children = [start(serve_clients, place, threads, requests) for place in places]
    assert [exit_code(child) for child in children] == [0] * machines
    tallies = [(folder / "tally").read_text().split() for folder in folders]
    tally = Counter(granted=sum(int(t[0]) for t in tallies), refused=sum(int(t[1]) for t in tallies))
    asked = machines * threads * requests
    granted = min(asked, GRANTS)
    assert tally == Counter(granted=granted, refused=asked - granted)
    with opened(places[0]) as bursar:
        events = [record.event for record in bursar.ledger.records()]
        assert sum(isinstance(event, Measured) for event in events) == granted
        assert bursar.kernel.spent() == loss(events) <= bursar.config.budget.units
        assert bursar.owner.verify().answers == granted
        if asked > GRANTS:
            assert bursar.kernel.spent() == bursar.config.budget.units
            with pytest.raises(BudgetError):
                bursar.query(TEXT, epsilon=1)
    ledger.close()


# -- clocks -------------------------------------------------------------------------------------------------


@pytest.fixture
def timely() -> Iterator[PostgreSQL]:
    """A server whose clock the test sets."""
    if not FAKETIME:
        pytest.skip("there is no libfaketime here: apt-get install faketime")
    rate = {"FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "LD_PRELOAD": str(FAKETIME[0])}
    with postgresql(start=False) as made:
        set_clock(made, 0)
        made.start({**rate, "FAKETIME_TIMESTAMP_FILE": str(made.folder / "clock")})
        yield made


def set_clock(server: PostgreSQL, seconds: int) -> None:
    (server.folder / "clock").write_text(f"{seconds:+d}")
    (server.folder / "clock").chmod(0o644)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("jump", [3 * 86400, -3 * 86400])
def test_a_database_whose_clock_jumps(timely: PostgreSQL, tmp_path: Path, jump: int) -> None:
    """Leases end early or late, by the clock that all servers share; nothing is spent twice."""
    ledger = new_ledger(tmp_path, charter(settings()), url=timely.url())
    declare(ledger)  # type: ignore[arg-type]
    health = ledger.verify()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = reopened(ledger, elsewhere, expect=(health.records, health.head))
    hold = Hold(fence=10**6, analyst="ann", expires=ledger.now() + 600, events=())
    ledger.commit(lambda t: t.put_hold(hold, replace=False))
    before = ledger.now()
    set_clock(timely, jump)
    for each in (ledger, other):
        each.commit(lambda _: None)
        assert (each.now() > before + 86400) == (jump > 0)
        assert len(each.commit(lambda t, each=each: t.holds(each.now()))) == (jump < 0)
    assert abs(ledger.now() - other.now()) < 86400
    other.close()
    with opened(replace(ledger.place, anchor=elsewhere / "ledger-anchor")) as bursar:
        for number in range(3):
            set_clock(timely, -jump * number)
            answers = {bursar.query(TEXT, key=f"key {number}", epsilon=1).to_bytes() for _ in range(2)}
            assert len(answers) == 1
        events = [record.event for record in bursar.ledger.records()]
        assert bursar.kernel.spent() == loss(events)
        assert sum(isinstance(event, Measured) for event in events) == 3
    ledger.close()
