"""What is particular about a ledger in PostgreSQL: several machines, a key outside of it, a database that goes away."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bursar.core.ledger import Hold, PostgresLedger, Transaction, chain
from bursar.core.ledger.postgresql import postgres_connection
from bursar.core.ledger.postgresql.cipher import AesGcm
from bursar.core.ledger.postgresql.postgres_connection import PostgresConnection
from bursar.errors import LedgerError, Unsupported
from harness.ledgers import (
    answer,
    everything,
    from_two_processes,
    in_child,
    measure,
    note,
    race,
    released_until_killed,
)
from harness.patience import PATIENCE, until
from harness.postgres_ledgers import new_ledger, reopened
from harness.servers import PASSWORD, PostgreSQL, administer, postgresql, shared_postgresql

CHARTER = {"id": "people", "budget": {"epsilon": 1.0}, "unit": "row"}
SECRET = b"the threshold of nobody else"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[PostgresLedger]:
    made = new_ledger(tmp_path, CHARTER)
    yield made
    made.close()


@pytest.fixture(scope="module")
def mine() -> Iterator[PostgreSQL]:
    """A server that may be stopped and set otherwise."""
    with postgresql() as made:
        yield made


def harm(ledger: PostgresLedger, *statements: str) -> list[tuple[Any, ...]]:
    return administer(ledger.place.url, f'SET search_path = "{ledger.place.schema}"', *statements)


# -- creating and opening -----------------------------------------------------------------------------------


def test_everything_survives_reopening(ledger: PostgresLedger, tmp_path: Path) -> None:
    ledger.commit(measure)
    body = ledger.commit(lambda t: answer(t, "k", b"x"))
    ledger.commit(lambda t: t.put_secret("s", SECRET))
    ledger.commit(lambda t: t.put_hold(Hold(fence=9, analyst="ann", expires=1e12, events=()), replace=False))
    fence = ledger.commit(lambda t: t.next_fence())
    head = ledger.verify().head
    ledger.close()
    with closing(reopened(ledger, tmp_path, charter=CHARTER)) as again:
        assert again.verify().head == head
        assert again.answered(analyst="ann", key="k", question="q") == body == b"x"
        assert again.commit(lambda t: (t.secret("s"), len(t.holds(0.0)), t.next_fence())) == (SECRET, 1, fence + 1)


def test_create_never_replaces(ledger: PostgresLedger, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"the schema .* exists: a ledger was created here before"):
        PostgresLedger.create(replace(ledger.place, anchor=tmp_path / "other" / "ledger-anchor"), CHARTER)
    with pytest.raises(LedgerError, match="anchor exists: a ledger was created here before"):
        PostgresLedger.create(replace(ledger.place, schema="new"), CHARTER)
    assert harm(ledger, "SELECT 1 FROM pg_namespace WHERE nspname = 'new'") == []
    (tmp_path / "file").touch()
    with pytest.raises(LedgerError, match="cannot be created"):
        PostgresLedger.create(replace(ledger.place, anchor=tmp_path / "file" / "ledger-anchor", schema="new"), CHARTER)


def test_a_missing_or_foreign_schema_is_refused(ledger: PostgresLedger, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="there is no ledger in the schema nowhere"):
        reopened(ledger, tmp_path, schema="nowhere")
    with pytest.raises(LedgerError, match="is no Bursar ledger"):
        reopened(ledger, tmp_path, schema="public")


def test_another_charter_is_refused_by_name(ledger: PostgresLedger, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="what differs: id, more"):
        reopened(ledger, tmp_path, charter={**CHARTER, "id": "others", "more": 1})


def test_a_role_that_may_not_create(ledger: PostgresLedger, tmp_path: Path) -> None:
    with suppress(psycopg.errors.DuplicateObject):
        administer(ledger.place.url, f"CREATE ROLE stranger LOGIN PASSWORD '{PASSWORD}'")
    url = shared_postgresql().url(user="stranger", password=PASSWORD)
    theirs = replace(ledger.place, url=url, schema="theirs", anchor=tmp_path / "other" / "ledger-anchor")
    with pytest.raises(LedgerError, match=r"the role may not use the ledger.*42501"):
        PostgresLedger.create(theirs, CHARTER)
    with pytest.raises(LedgerError, match=r"the role may not use the ledger.*nothing was released"):
        reopened(ledger, tmp_path, url=url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql:///x?host=/nowhere", "cannot be reached"),
        ("postgresql://[", "cannot be reached"),
        ("postgresql:///nowhere?host={host}&user=postgres", r"cannot be (reached|used)"),
    ],
)
def test_a_database_that_cannot_be_reached(ledger: PostgresLedger, tmp_path: Path, url: str, said: str) -> None:
    with pytest.raises(LedgerError, match=said):
        reopened(ledger, tmp_path, url=url.format(host=shared_postgresql().folder))


@pytest.mark.parametrize("missing", ["psycopg", "cryptography.exceptions"])
def test_what_is_not_installed_is_named(
    ledger: PostgresLedger, tmp_path: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(Unsupported, match="needs psycopg and cryptography"):
        reopened(ledger, tmp_path)


# -- tables as they were made -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE log DROP CONSTRAINT log_pkey",
        "ALTER TABLE log SET UNLOGGED",
        "ALTER TABLE secrets ENABLE ROW LEVEL SECURITY",
        "CREATE RULE nothing AS ON DELETE TO secrets DO INSTEAD NOTHING",
        "ALTER TABLE meta ADD COLUMN more text",
        "ALTER TABLE log ALTER COLUMN position TYPE numeric",
        "ALTER TABLE holds DROP CONSTRAINT holds_pkey; ALTER TABLE holds ADD PRIMARY KEY (seal)",
        "CREATE TABLE more (x int)",
        "DROP TABLE queue",
        "COMMENT ON SCHEMA {schema} IS 'bursar ledger 99'",
    ],
)
def test_changed_tables_are_refused(ledger: PostgresLedger, tmp_path: Path, change: str) -> None:
    ledger.commit(note)
    harm(ledger, change.format(schema=f'"{ledger.place.schema}"'))
    with pytest.raises(LedgerError, match=r"not as they were made|of another release"):
        reopened(ledger, tmp_path)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE log SET body = 'x' WHERE position = 2",
        "UPDATE log SET chain = 'x' WHERE position = 2",
        "UPDATE log SET position = 9 WHERE position = 3",
        "DELETE FROM log WHERE position = 2",
        "DELETE FROM log WHERE position = 3",
        "DELETE FROM strategies",
        "UPDATE strategies SET body = 'x'",
        "DELETE FROM meta WHERE name = 'state'",
        "DELETE FROM meta",
        "UPDATE answers SET body = 'y'",
        "DELETE FROM answers",
        "DELETE FROM secrets",
        "UPDATE secrets SET body = 'x'",
        "DELETE FROM directory WHERE entry LIKE 'secrets%'",
        "INSERT INTO directory VALUES ('elsewhere x')",
        "DELETE FROM holds",
    ],
)
def test_changed_rows_are_refused(ledger: PostgresLedger, tmp_path: Path, change: str) -> None:
    for _ in range(3):
        ledger.commit(measure)
    ledger.commit(lambda t: answer(t, "k", b"x"))
    ledger.commit(lambda t: (t.put_secret("a", SECRET), t.put_secret("b", b"2")))
    ledger.commit(lambda t: t.put_hold(Hold(fence=9, analyst="ann", expires=1e12, events=()), replace=False))
    ledger.verify()
    harm(ledger, change)
    with pytest.raises(LedgerError), closing(reopened(ledger, tmp_path)) as again:
        again.verify()


# -- secrets ------------------------------------------------------------------------------------------------


def stored(ledger: PostgresLedger, words: bytes) -> bool:
    """Whether the words stand in a table of the ledger, or anywhere in the server's folder and its write-ahead log."""
    administer(ledger.place.url, "CHECKPOINT")
    rows = harm(ledger, "SELECT body FROM secrets UNION ALL SELECT body FROM texts")
    files = [path for path in shared_postgresql().data.rglob("*") if path.is_file()]
    return any(words in body for (body,) in rows) or any(words in path.read_bytes() for path in files)


def tell(ledger: PostgresLedger, secret: bytes) -> None:
    ledger.commit(lambda t: t.put_secret("s", secret))
    ledger.commit(lambda t: measure(t))
    ledger.commit(lambda t: t.drop_secret("s"))


def test_secrets_and_texts_are_nowhere_in_the_clear(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, CHARTER)
    tell(ledger, b"a secret that is encrypted")
    ledger.commit(lambda t: note(t, "SELECT a question that names somebody"))
    assert not stored(ledger, b"a secret that is encrypted")
    assert not stored(ledger, b"that names somebody")
    assert stored(ledger, b'"analyst":"ann"')  # what is no secret can be found, so the search finds what there is
    ledger.close()


def test_without_the_cipher_a_secret_stays_in_the_log_of_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wrong twin."""
    monkeypatch.setattr(AesGcm, "encrypt", lambda self, body, label: body)
    monkeypatch.setattr(AesGcm, "decrypt", lambda self, body, label: body)
    ledger = new_ledger(tmp_path, CHARTER)
    tell(ledger, b"a secret that is not encrypted")
    assert stored(ledger, b"a secret that is not encrypted")
    ledger.close()


def test_another_key_is_refused_at_once(ledger: PostgresLedger, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="the key is not the one"):
        reopened(ledger, tmp_path, key=bytes(32))
    with pytest.raises(LedgerError, match="has 32 bytes, not 5"):
        reopened(ledger, tmp_path, key=b"short")


def test_a_secret_cannot_be_put_in_the_place_of_another(ledger: PostgresLedger, tmp_path: Path) -> None:
    """Whoever may write the tables can compute seals, and still not exchange two secrets."""
    ledger.commit(lambda t: (t.put_secret("a", b"1"), t.put_secret("b", b"2")))
    with ledger._reading() as database:
        ((body,),) = database.run("SELECT body FROM secrets WHERE name = ?", ('["b"]',))
        seal = chain.seal(database.charter_hash, "secrets", '["a"]', body)
    harm_with(ledger, "UPDATE secrets SET body = %s, seal = %s WHERE name = %s", (body, seal, '["a"]'))
    with pytest.raises(LedgerError, match="the key is not the one"):
        ledger.commit(lambda t: t.secret("a"))
    assert ledger.commit(lambda t: t.secret("b")) == b"2"


def harm_with(ledger: PostgresLedger, statement: str, parameters: tuple[Any, ...]) -> None:
    with psycopg.connect(ledger.place.url, autocommit=True) as connection:
        connection.execute(f'SET search_path = "{ledger.place.schema}"'.encode())
        connection.execute(statement.encode(), parameters)


# -- older databases ----------------------------------------------------------------------------------------


def rewound(ledger: PostgresLedger, advance: Callable[[], object]) -> None:
    """Put all tables back to what they were before `advance`, as a restored backup would."""
    tables = list(postgres_connection.SCHEMA)
    with psycopg.connect(ledger.place.url, autocommit=True) as connection:
        connection.execute(f'SET search_path = "{ledger.place.schema}"'.encode())
        for table in tables:
            connection.execute(f'CREATE TEMP TABLE "old {table}" AS SELECT * FROM {table}'.encode())
        advance()
        for table in tables:
            connection.execute(f"DELETE FROM {table}".encode())
            connection.execute(f'INSERT INTO {table} SELECT * FROM "old {table}"'.encode())


def test_a_restored_backup_is_refused(ledger: PostgresLedger, tmp_path: Path) -> None:
    ledger.commit(note)
    rewound(ledger, lambda: ledger.commit(note))
    for _ in range(2):  # the refusal itself must not move the anchor
        with pytest.raises(LedgerError, match="an older copy was put back"):
            reopened(ledger, tmp_path)


def test_a_backup_that_lacks_an_answer_only_is_refused(ledger: PostgresLedger, tmp_path: Path) -> None:
    rewound(ledger, lambda: ledger.commit(lambda t: answer(t, "k", b"body")))
    with pytest.raises(LedgerError, match="an older copy was put back"):
        reopened(ledger, tmp_path)


@pytest.mark.parametrize("advance", [note, lambda t: t.put_secret("s", b"1"), lambda t: t.next_fence()])
def test_a_database_that_goes_back_under_an_open_ledger_is_noticed(
    ledger: PostgresLedger, advance: Callable[[Transaction], object]
) -> None:
    ledger.commit(note)
    rewound(ledger, lambda: ledger.commit(advance))
    with pytest.raises(LedgerError, match="replaced by an older"):
        ledger.commit(note)


def test_a_machine_that_never_saw_the_ledger_is_told_what_to_expect(ledger: PostgresLedger, tmp_path: Path) -> None:
    ledger.commit(note)
    health = ledger.verify()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.raises(LedgerError, match=r"anchor .* is missing(.|\n)*bursar verify --expect"):
        reopened(ledger, elsewhere)
    with pytest.raises(LedgerError, match="not the ledger that was here before"):
        reopened(ledger, elsewhere, expect=(health.records, "0" * 64))
    reopened(ledger, elsewhere, expect=(health.records, health.head)).close()
    with closing(reopened(ledger, elsewhere)) as other:
        assert other.commit(note) == 2
        assert [record.position for record in ledger.records()] == [1, 2]  # each follows what the other writes
        assert ledger.commit(note) == 3
        assert len(other.records(2)) == 1


# -- locks and clocks ---------------------------------------------------------------------------------------


def test_a_lock_held_elsewhere_is_a_clear_error(ledger: PostgresLedger, tmp_path: Path) -> None:
    with closing(reopened(ledger, tmp_path, busy_timeout=0.2)) as hasty:

        def work(transaction: Transaction) -> int:
            with pytest.raises(LedgerError, match=r"locked by another server, and was for 0.2 seconds.*55P03"):
                hasty.commit(note)
            assert hasty.records() == []  # who only reads does not wait
            return note(transaction)

        assert ledger.commit(work) == 1
        assert hasty.commit(note) == 2


def test_whoever_waited_reads_the_clock_after_the_wait(ledger: PostgresLedger, tmp_path: Path) -> None:
    with closing(reopened(ledger, tmp_path)) as other:
        begun: list[float] = []
        held = threading.Event()

        def wait() -> None:
            held.wait()
            begun.append(other.commit(lambda _: other.now()))

        waiting = threading.Thread(target=wait)
        waiting.start()

        def work(_: Transaction) -> float:
            held.set()
            until(lambda: harm(ledger, "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))
            time.sleep(0.05)
            ((stamp,),) = harm(ledger, "SELECT extract(epoch FROM clock_timestamp())::float8")
            return float(stamp)

        stamp = ledger.commit(work)
        waiting.join()
        assert begun[0] > stamp


def test_leases_do_not_go_by_the_clock_of_this_machine(ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = Hold(fence=9, analyst="ann", expires=ledger.now() + 600, events=())
    ledger.commit(lambda t: t.put_hold(hold, replace=False))
    true = time.time
    for jump in (-86400.0, 86400.0):
        monkeypatch.setattr(time, "time", lambda jump=jump: true() + jump)
        assert ledger.recover().holds == 1
    assert ledger.recover(now=hold.expires).holds == 0


# -- faults -------------------------------------------------------------------------------------------------


class Faulty(PostgresConnection):
    """Loses its database at the first statement that begins with `at`."""

    at: str | None = None

    def run(self, sql: str, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        self._cut(sql)
        return super().run(sql, parameters)

    def _several(self, statements: str) -> Any:
        self._cut(statements)
        return super()._several(statements)

    def _cut(self, sql: str) -> None:
        if Faulty.at is not None and Faulty.at in sql:
            Faulty.at = None
            ((pid,),) = self._connection.execute("SELECT pg_backend_pid()").fetchall()
            administer(shared_postgresql().url(), f"SELECT pg_terminate_backend({pid}, 10000)")


@pytest.mark.thinned(3)
@pytest.mark.parametrize("swallow", [False, True])
@pytest.mark.parametrize(
    "at", ["SAVEPOINT", "INSERT INTO claims", "INSERT INTO log", "SELECT name", "RELEASE", "SET LOCAL"]
)
def test_a_fault_at_any_step_releases_nothing(
    ledger: PostgresLedger, tmp_path: Path, at: str, swallow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(transaction: Transaction) -> int:
        try:
            return everything(transaction)
        except LedgerError:
            if not swallow:
                raise
            return 0

    monkeypatch.setattr("bursar.core.ledger.postgresql.postgres.PostgresConnection", Faulty)
    with closing(reopened(ledger, tmp_path)) as broken:
        broken.commit(note)
        Faulty.at = at
        with pytest.raises(LedgerError, match="nothing was released"):
            broken.commit(work)
        assert Faulty.at is None
        assert [r.position for r in broken.records()] == [1]
        assert broken.answered(analyst="ann", key="k", question="q") is None
        assert broken.commit(lambda t: (t.secret("s"), len(t.holds(0.0)))) == (None, 0)
        assert broken.commit(everything) == 2
        assert broken.verify().records == 2


def test_a_server_that_was_restarted_is_found_again(mine: PostgreSQL, tmp_path: Path) -> None:
    with closing(new_ledger(tmp_path, CHARTER, url=mine.url())) as ledger:
        assert ledger.commit(note) == 1
        ledger.records()
        mine.stop()
        with pytest.raises(LedgerError, match="nothing was released"):
            ledger.commit(note)
        with pytest.raises(LedgerError, match="cannot be reached"):
            ledger.records()
        mine.start()
        assert ledger.commit(note) == 2
        mine.stop()
        mine.start()
        assert len(ledger.records()) == 2  # although the idle connections are dead
        assert ledger.commit(note) == 3


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_server_that_restarts_within_a_commit(mine: PostgreSQL, tmp_path: Path, how: str) -> None:
    with closing(new_ledger(tmp_path, CHARTER, url=mine.url())) as ledger:

        def work(transaction: Transaction) -> int:
            note(transaction)
            mine.stop(how)
            mine.start()
            return note(transaction)

        with pytest.raises(LedgerError, match="nothing was released"):
            ledger.commit(work)
        assert ledger.records() == []
        assert ledger.commit(note) == 1


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_may_lose_commits_in_a_crash_is_refused(mine: PostgreSQL, tmp_path: Path, setting: str) -> None:
    ledger = new_ledger(tmp_path, CHARTER, url=mine.url())
    ledger.close()
    mine.configure({setting: "off"})
    mine.reload()
    try:
        until(lambda: administer(mine.url(), f"SHOW {setting}") == [("off",)])
        with pytest.raises(LedgerError, match="may lose commits in a crash"):
            reopened(ledger, tmp_path)
    finally:
        mine.configure({setting: "on"})
        mine.reload()
        until(lambda: administer(mine.url(), f"SHOW {setting}") == [("on",)])
    reopened(ledger, tmp_path).close()


def test_commits_wait_for_the_disk_whatever_the_role_prefers(mine: PostgreSQL, tmp_path: Path) -> None:
    administer(mine.url(), "ALTER ROLE postgres SET synchronous_commit = off")
    administer(mine.url(), "ALTER ROLE postgres SET client_min_messages = error")
    shown = "SELECT current_setting('synchronous_commit'), current_setting('client_min_messages')"
    try:
        with closing(new_ledger(tmp_path, CHARTER, url=mine.url())) as ledger:
            connection = ledger._connection()
            assert connection.run(shown) == [("off", "error")]
            connection.run("BEGIN")
            *settings, last = postgres_connection.COMMIT.split("; ")
            for setting in settings:
                connection.run(setting)
            assert (connection.run(shown), last) == ([("on", "notice")], "COMMIT")
            connection.close()
    finally:
        administer(mine.url(), "ALTER ROLE postgres RESET synchronous_commit")
        administer(mine.url(), "ALTER ROLE postgres RESET client_min_messages")


def test_an_old_server_is_refused(ledger: PostgresLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_connection, "OLDEST", 10**6)
    with pytest.raises(LedgerError, match="PostgreSQL 13 or later, and this is"):
        reopened(ledger, tmp_path)


# -- processes ----------------------------------------------------------------------------------------------


def test_a_fork_has_connections_of_its_own(ledger: PostgresLedger) -> None:
    ledger.commit(note)
    in_child(lambda: ledger.commit(note))
    in_child(lambda: [ledger.records(), ledger.verify()])
    assert ledger.commit(note) == 3
    assert ledger.verify().records == 3


def test_nothing_released_is_lost_when_a_process_is_killed(ledger: PostgresLedger, tmp_path: Path) -> None:
    released = 0
    for attempt in range(8):
        positions = released_until_killed(lambda: reopened(ledger, tmp_path), 0.003 * attempt)
        assert positions == list(range(positions[0], positions[0] + len(positions)))
        records = ledger.recover().records
        assert positions[0] > released
        assert positions[-1] <= records <= positions[-1] + 1  # at most the one that was being committed
        released = records


def test_two_processes_for_one_key(ledger: PostgresLedger, tmp_path: Path) -> None:
    """Exactly one of them pays for each key, and both get the same bytes."""
    keys = [f"key {number}" for number in range(15)]

    def answered(name: str) -> bytes:
        own = reopened(ledger, tmp_path, busy_timeout=PATIENCE)
        return b"".join(race(own, key, name.encode()) for key in keys)

    outcomes = from_two_processes(answered)
    assert len(outcomes[0]) == 3 * len(keys)
    assert outcomes[0] == outcomes[1]
    assert ledger.verify().records == len(keys)


def test_a_new_connection_that_cannot_read_is_an_error_and_is_closed(
    ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections: list[PostgresConnection] = []

    def failing(self: PostgresConnection) -> None:
        connections.append(self)
        self.failed(LedgerError("the disk is full"))
        self._several("SELECT 1")

    monkeypatch.setattr(PostgresConnection, "snapshot", failing)
    with pytest.raises(LedgerError, match="the disk is full"):
        ledger.records()
    assert connections
    assert all(connection._connection.closed for connection in connections)
