"""The SQLite ledger and its file: modes, charters, damage, locks, full disks, forks, kills, older copies."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import signal
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from bursar.core.ledger import Health, Hold, SqliteLedger, Transaction, sqlite
from bursar.core.ledger.sqlite import NAP_SECONDS, SqliteConnection
from bursar.errors import LedgerError, Stale
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
from harness.patience import PATIENCE

CHARTER = {"id": "people", "budget": {"epsilon": 1.0}, "unit": "row"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "people.bursar" / "ledger.sqlite"


@pytest.fixture
def ledger(place: Path) -> Iterator[SqliteLedger]:
    made = SqliteLedger.create(place, CHARTER)
    yield made
    made.close()


def verified(place: Path) -> Health:
    with closing(SqliteLedger.open(place)) as ledger:
        return ledger.verify()


# -- creating and opening -----------------------------------------------------------------------------------


def test_only_the_owner_can_read_any_of_its_files(place: Path) -> None:
    before = os.umask(0)
    try:
        ledger = SqliteLedger.create(place, CHARTER)
        ledger.commit(note)
    finally:
        os.umask(before)
    names = {f"ledger.sqlite{suffix}" for suffix in ("", "-wal", "-shm", "-anchor", "-order")}
    assert {file.name for file in place.parent.iterdir()} == names
    assert {stat.S_IMODE(file.stat().st_mode) for file in place.parent.iterdir()} == {0o600}
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert ledger.verify().notes == ()
    place.chmod(0o640)
    assert ledger.verify().notes == ("ledger.sqlite can be used by others (mode 640)",)
    place.chmod(0o600)
    ledger.save_at("charges", 0, b"rows")
    rows = place.with_name("ledger.sqlite-charges")
    rows.chmod(0o644)  # as a copy that was put back may be
    assert ledger.verify().notes == ("ledger.sqlite-charges can be used by others (mode 644)",)
    ledger.save_at("charges", 4, b"more")
    assert ledger.verify().notes == ()
    ledger.close()


def test_everything_survives_reopening(place: Path) -> None:
    ledger = SqliteLedger.create(place, CHARTER)
    ledger.commit(measure)
    body = ledger.commit(lambda t: answer(t, "k", b"x"))
    ledger.commit(lambda t: t.put_secret("s", b"secret"))
    ledger.commit(lambda t: t.put_hold(Hold(fence=9, analyst="ann", expires=1e12, events=()), replace=False))
    fence = ledger.commit(lambda t: t.next_fence())
    head = ledger.verify().head
    ledger.close()
    again = SqliteLedger.open(str(place), CHARTER)
    assert dict(again.charter) == CHARTER
    assert [r.values.tolist() for r in again.records()] == [[0, 1, 2, 3]]
    assert again.answered(analyst="ann", key="k", question="q") == body
    assert again.commit(lambda t: t.secret("s")) == b"secret"
    assert [h.fence for h in again.commit(lambda t: t.holds(time.time()))] == [9]
    assert again.commit(lambda t: t.next_fence()) == fence + 1
    assert again.verify().head == head
    again.close()


def test_create_never_replaces(place: Path, ledger: SqliteLedger) -> None:
    with pytest.raises(LedgerError, match="exists"):
        SqliteLedger.create(place, CHARTER)
    ledger.close()
    place.unlink()  # deleting the file alone does not give a new budget: the anchor is still there
    with pytest.raises(LedgerError, match="its budget is not renewed"):
        SqliteLedger.create(place, CHARTER)
    assert {f.name for f in place.parent.iterdir()} == {"ledger.sqlite-anchor"}


def test_a_missing_ledger_is_never_made_by_opening(place: Path) -> None:
    with pytest.raises(LedgerError, match="a new ledger means a new budget and must be created explicitly"):
        SqliteLedger.open(place)
    assert not place.parent.exists()


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be created"):
        SqliteLedger.create(tmp_path / "file" / "ledger.sqlite", CHARTER)


def test_a_charter_must_be_plain(place: Path) -> None:
    for charter in ({"x": object()}, {"x": float("nan")}, {1: 2, "a": 3}):
        with pytest.raises(LedgerError, match="plain JSON"):
            SqliteLedger.create(place, charter)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "names"),
    [({"id": "others"}, "id"), ({"budget": {"epsilon": 1}, "unit": "person"}, "budget, unit"), ({"new": 0}, "new")],
)
def test_another_charter_is_refused_by_name(place: Path, ledger: SqliteLedger, changes: Any, names: str) -> None:
    ledger.close()
    with pytest.raises(LedgerError, match=f"created for another config; what differs: {names}$"):
        SqliteLedger.open(place, {**CHARTER, **changes})
    with pytest.raises(LedgerError, match=r"what differs: unit$"):
        SqliteLedger.open(place, {k: v for k, v in CHARTER.items() if k != "unit"})
    SqliteLedger.open(place, dict(reversed(CHARTER.items()))).close()


def test_a_link_leads_to_the_same_ledger(place: Path, ledger: SqliteLedger, tmp_path: Path) -> None:
    ledger.commit(note)
    (tmp_path / "link").symlink_to(place)
    linked = SqliteLedger.open(tmp_path / "link")
    linked.commit(note)
    linked.close()
    assert len(ledger.records()) == 2


# -- foreign and damaged files ------------------------------------------------------------------------------


def foreign_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE log (position INTEGER PRIMARY KEY)")
    connection.close()


@pytest.mark.parametrize(
    "fill",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"not a ledger\n" * 1000),
        lambda path: path.write_bytes(b"SQLite format 3\x00" + bytes(5000)),
        lambda path: path.mkdir(),
        foreign_database,
    ],
)
def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path, fill: Callable[[Path], Any]) -> None:
    path = tmp_path / "file"
    fill(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(LedgerError):
        SqliteLedger.open(path)
    assert not path.is_file() or path.read_bytes() == before


def test_a_truncated_file_is_found_out(place: Path, ledger: SqliteLedger) -> None:
    for _ in range(50):
        ledger.commit(lambda t: measure(t, rows=100))
    ledger.close()
    whole = place.read_bytes()
    for pages in range(1, len(whole) // 4096):
        place.write_bytes(whole[: pages * 4096])
        with pytest.raises(LedgerError):
            verified(place)
    place.write_bytes(whole)
    verified(place)


def test_a_ledger_of_the_first_format_gets_its_queue_when_it_is_opened(place: Path, ledger: SqliteLedger) -> None:
    ledger.commit(measure)
    head = ledger.verify().head
    ledger.close()
    connection = sqlite3.connect(place)
    connection.executescript(
        "DROP TABLE queue; DROP TABLE texts; DELETE FROM directory WHERE entry LIKE 'texts %'; PRAGMA user_version = 1"
    )
    connection.close()
    with closing(SqliteLedger.open(place, CHARTER)) as opened:
        assert opened.verify().head == head
        opened.commit(lambda t: t.put_in_queue("ticket 1", b"ann"))
        assert opened.queue() == {"ticket 1": b"ann"}
    assert verified(place).head == head


@pytest.fixture(scope="module")
def with_everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The closed file of a ledger that has something of every sort, to be copied."""
    place = tmp_path_factory.mktemp("everything") / "people.bursar" / "ledger.sqlite"
    with closing(SqliteLedger.create(place, CHARTER)) as ledger:
        for _ in range(5):
            ledger.commit(measure)
        for key, name in (("k1", "a"), ("k2", "b")):
            ledger.commit(lambda t, k=key: answer(t, k, b"body"))
            ledger.commit(lambda t, k=key, n=name: t.put_secret(n, k.encode()))
        ledger.commit(lambda t: t.put_hold(Hold(fence=9, analyst="ann", expires=1e12, events=()), replace=False))
        ledger.commit(lambda t: t.put_in_queue("ticket 1", b"ann"))
    return place


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE log SET body = replace(body, 'ann', 'bob') WHERE position = 2",
        "UPDATE log SET body = CAST(body AS TEXT) WHERE position = 2",
        "UPDATE log SET chain = zeroblob(32) WHERE position = 2",
        "UPDATE log SET chain = 7 WHERE position = 5",
        "UPDATE log SET position = 9 WHERE position = 5",
        "DELETE FROM log WHERE position = 2",
        "DELETE FROM log WHERE position = 5",
        "DELETE FROM log",
        "UPDATE strategies SET body = zeroblob(100)",
        "UPDATE strategies SET digest = 'x'",
        "DELETE FROM strategies",
        "UPDATE meta SET body = replace(body, '\"position\":5', '\"position\":4')",
        "DELETE FROM meta WHERE name = 'state'",
        "DELETE FROM meta",
        "DELETE FROM meta WHERE name = 'state'; DELETE FROM directory WHERE entry = 'meta state'",
        "UPDATE answers SET body = zeroblob(4)",
        "UPDATE answers SET name = replace(name, 'k1', 'k3')",
        "UPDATE answers SET name = CAST(name AS BLOB)",
        "DELETE FROM answers WHERE name LIKE '%k1%'",
        "DELETE FROM answers; DELETE FROM directory WHERE entry LIKE 'answers %k1%'",
        "DELETE FROM claims; DELETE FROM directory WHERE entry LIKE 'claims %'",
        "UPDATE claims SET body = replace(body, '\"q\"', '\"r\"')",
        "UPDATE secrets SET body = (SELECT body FROM secrets WHERE name LIKE '%b%') WHERE name LIKE '%a%'",
        "DELETE FROM secrets WHERE name LIKE '%a%'",
        "DELETE FROM holds",
        "DELETE FROM directory WHERE entry LIKE 'secrets%'",
        "INSERT INTO directory VALUES ('elsewhere x')",
        "INSERT INTO directory VALUES ('secrets x')",
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON log (chain)",
        "PRAGMA application_id = 0",
        "PRAGMA user_version = 4",
        "UPDATE texts SET body = replace(body, 'p', 'q')",
        "DELETE FROM texts",
        "UPDATE queue SET body = zeroblob(4)",
        "DELETE FROM queue",
        "PRAGMA journal_mode = DELETE",
    ],
)
def test_whatever_is_changed_is_found_out(place: Path, with_everything: Path, harm: str) -> None:
    shutil.copytree(with_everything.parent, place.parent)
    verified(place)
    connection = sqlite3.connect(place)
    connection.executescript(harm)
    connection.close()
    with pytest.raises(LedgerError):
        verified(place)


def test_damage_meets_the_reader_before_anything_is_verified(place: Path, ledger: SqliteLedger) -> None:
    ledger.commit(lambda t: answer(t, "k1", b"body"))
    ledger.commit(lambda t: t.put_secret("a", b"1"))
    ledger.commit(note)
    ledger.commit(note)
    ledger.close()
    connection = sqlite3.connect(place)
    connection.executescript("DELETE FROM answers; DELETE FROM secrets; DELETE FROM log WHERE position = 1")
    connection.close()
    harmed = SqliteLedger.open(place)
    reads: list[Callable[[], Any]] = [
        harmed.records,
        lambda: harmed.answered(analyst="ann", key="k1", question="q"),
        lambda: harmed.commit(lambda t: t.secret("a")),
        lambda: harmed.commit(lambda t: t.committed(0)),
        lambda: harmed.commit(lambda t: answer(t, "k1", b"another body")),
    ]
    for read in reads:
        with pytest.raises(LedgerError, match="damaged"):
            read()
    assert harmed.commit(note) == 3  # a fault of one commit is not a fault of the next
    harmed.close()


def test_an_answer_without_its_claim_is_not_given(place: Path, ledger: SqliteLedger) -> None:
    ledger.commit(lambda t: answer(t, "k", b"body"))
    ledger.close()
    connection = sqlite3.connect(place)
    connection.executescript("DELETE FROM claims; DELETE FROM directory WHERE entry LIKE 'claims %'")
    connection.close()
    with closing(SqliteLedger.open(place)) as harmed, pytest.raises(LedgerError, match="lost its claim"):
        harmed.answered(analyst="ann", key="k", question="q")


def test_a_log_that_lost_its_end_is_found_out_without_the_anchor(place: Path, ledger: SqliteLedger) -> None:
    anchor = place.with_name(place.name + "-anchor")
    ledger.commit(note)
    ledger.close()
    early = anchor.read_bytes()
    with closing(SqliteLedger.open(place)) as again:
        again.commit(note)
    connection = sqlite3.connect(place)
    connection.executescript("DELETE FROM log WHERE position = 2")
    connection.close()
    anchor.write_bytes(early)
    with closing(SqliteLedger.open(place)) as harmed, pytest.raises(LedgerError, match="does not end where it should"):
        harmed.records()


def test_strategies_are_decoded_once_while_they_are_remembered(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rows in (1, 2, 3, 1, 2, 3):
        ledger.commit(lambda t, r=rows: measure(t, rows=r))
    monkeypatch.setattr("bursar.core.ledger.database.MOST_DECODED", 1)
    forgetful = [record.event.strategy for record in ledger.records()]  # type: ignore[union-attr]
    monkeypatch.undo()
    mindful = [record.event.strategy for record in ledger.records()]  # type: ignore[union-attr]
    for first, second in ((0, 3), (1, 4), (2, 5)):
        assert forgetful[first] is not forgetful[second]
        assert forgetful[first].digest == forgetful[second].digest
        assert mindful[first] is mindful[second]


# -- locks, full disks, faults ------------------------------------------------------------------------------


def test_a_lock_held_elsewhere_is_a_clear_error(place: Path, ledger: SqliteLedger) -> None:
    ledger.commit(note)
    hasty = SqliteLedger.open(place, busy_timeout=0.05)
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="locked by another process"):
        hasty.commit(note)
    assert len(hasty.records()) == 1  # readers do not wait
    assert hasty.answered(analyst="ann", key="k", question="q") is None
    other.execute("ROLLBACK")
    other.close()
    assert hasty.commit(note) == 2
    hasty.close()


def test_an_error_says_how_long_was_waited(place: Path, ledger: SqliteLedger) -> None:
    hasty = SqliteLedger.open(place, busy_timeout=0.05)
    with closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            LedgerError, match=r"for 0\.05 seconds; try again later \(SQLITE_BUSY\); nothing was released"
        ):
            hasty.commit(note)
    hasty.close()


def test_who_waits_comes_in_when_the_other_has_done(
    place: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        naps: list[float] = []

        def nap(seconds: float) -> None:
            naps.append(seconds)
            if len(naps) == 20:
                other.execute("ROLLBACK")

        monkeypatch.setattr("bursar.core.ledger.sqlite.time.sleep", nap)
        assert ledger.commit(note) == 1
    assert naps == [NAP_SECONDS] * 20  # no longer and longer ones: those who wait longest would be the last


def test_a_process_that_is_killed_while_it_waits_leaves_no_lock(
    place: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.close()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with closing(sqlite3.connect(place, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                monkeypatch.setattr("bursar.core.ledger.sqlite.time.sleep", lambda _: os.write(writer, b"w"))
                SqliteLedger.open(place, busy_timeout=PATIENCE).commit(note)
        finally:
            os._exit(1)
    assert os.read(reader, 1) == b"w"  # it has asked and was told to wait
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    with closing(SqliteLedger.open(place, busy_timeout=0.05)) as hasty:
        assert hasty.commit(note) == 1


def test_a_process_that_is_killed_at_work_lets_those_in_who_wait(place: Path, ledger: SqliteLedger) -> None:
    ledger.close()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            mine = SqliteLedger.open(place, busy_timeout=PATIENCE)

            def stay(transaction: Transaction) -> None:
                note(transaction)
                os.write(writer, b"w")
                time.sleep(PATIENCE)

            mine.commit(stay)
        finally:
            os._exit(1)
    os.read(reader, 1)
    with closing(SqliteLedger.open(place, busy_timeout=PATIENCE)) as waiting, ThreadPoolExecutor(1) as pool:
        position = pool.submit(waiting.commit, note)
        assert not position.done()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert position.result(PATIENCE) == 1
    os.close(reader)
    os.close(writer)


def write_often(place: Path, threads: int, commits: int) -> None:
    """Threads that write all the time, with the patience that users have."""
    with closing(SqliteLedger.open(place)) as mine, ThreadPoolExecutor(threads) as pool:
        tasks = [pool.submit(lambda: [mine.commit(note) for _ in range(commits)]) for _ in range(threads)]
        for task in tasks:
            task.result()


@pytest.mark.parametrize(
    ("processes", "threads", "commits"), [(4, 2, 12), pytest.param(16, 4, 60, marks=pytest.mark.heavy)]
)
def test_everybody_who_writes_is_served(
    place: Path, ledger: SqliteLedger, processes: int, threads: int, commits: int
) -> None:
    ledger.close()
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                write_often(place, threads, commits)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * processes
    assert verified(place).records == processes * threads * commits


# -- what is erased -----------------------------------------------------------------------------------------


class Careless(sqlite3.Connection):
    """As in a build of SQLite that leaves what was deleted where it was."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.execute("PRAGMA secure_delete = OFF")


class CarelessLedger(SqliteLedger):
    factory = Careless


def word(number: int) -> bytes:
    """Bytes that stand nowhere else."""
    return hashlib.blake2b(str(number).encode()).hexdigest().encode()


def left_behind(place: Path, words: Iterable[bytes]) -> set[str]:
    """The files in which one of the words can be read."""
    texts = {file.name: file.read_bytes() for file in place.parent.iterdir()}
    return {name for name, text in texts.items() if any(each in text for each in words)}


def put_and_drop(ledger: SqliteLedger, place: Path, numbers: Sequence[int]) -> Iterator[set[str]]:
    """Secrets that come among other rows, and go in another order; after each that goes, where any of the gone is."""
    for number in numbers:
        ledger.commit(lambda t, n=number: t.put_secret(f"sparse vector {n}", word(n) * (1 + n % 7)))
        ledger.commit(lambda t, n=number: t.put_secret(f"sparse vector {n}", word(n) * (1 + n % 5)))
        ledger.commit(measure)
    gone: list[bytes] = []
    for number in sorted(numbers, key=word):
        ledger.commit(lambda t, n=number: t.drop_secret(f"sparse vector {n}"))
        gone.append(word(number))
        yield left_behind(place, gone)


@pytest.mark.parametrize("many", [1, 80])
def test_an_erased_secret_is_in_no_file(place: Path, many: int) -> None:
    ledger = CarelessLedger.create(place, CHARTER)
    for found in put_and_drop(ledger, place, range(many)):
        assert found == set()
    ledger.close()
    assert left_behind(place, map(word, range(many))) == set()


def test_every_connection_overwrites_what_it_deletes(place: Path) -> None:
    ledger = CarelessLedger.create(place, CHARTER)
    with ledger._reading() as reader:
        assert reader.run("PRAGMA secure_delete") == [(1,)]
    with closing(ledger._connection()) as writer:
        assert writer.run("PRAGMA secure_delete") == [(1,)]
    ledger.close()


def test_without_secure_deletion_a_secret_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong twin: the bytes are still there, also when everything is closed."""
    monkeypatch.setattr(sqlite, "SETTINGS", tuple(s for s in sqlite.SETTINGS if "secure_delete" not in s))
    ledger = CarelessLedger.create(place, CHARTER)
    assert list(put_and_drop(ledger, place, range(5)))[-1] == {place.name}
    ledger.close()
    assert left_behind(place, map(word, range(5))) == {place.name}


def test_a_log_that_is_not_emptied_keeps_a_secret(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong twin: pages as they were are in the write-ahead log."""
    monkeypatch.setattr(SqliteConnection, "forget", lambda _: None)
    ledger = SqliteLedger.create(place, CHARTER)
    assert list(put_and_drop(ledger, place, range(5)))[-1] == {place.name + "-wal"}
    ledger.close()


def test_a_secret_that_others_may_still_read_goes_with_a_later_commit(place: Path, ledger: SqliteLedger) -> None:
    ledger.commit(lambda t: t.put_secret("s", word(1)))
    with closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM log").fetchall()
        ledger.commit(lambda t: t.drop_secret("s"))
        assert left_behind(place, [word(1)])
    ledger.commit(note)
    assert left_behind(place, [word(1)]) == set()


class Reluctant(sqlite3.Connection):
    """The write-ahead log cannot be emptied."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if "wal_checkpoint" in sql:
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(sql, *parameters)


class ReluctantLedger(SqliteLedger):
    factory = Reluctant


def test_a_commit_counts_although_the_log_could_not_be_emptied(place: Path) -> None:
    with closing(ReluctantLedger.create(place, CHARTER)) as ledger:
        ledger.commit(lambda t: t.put_secret("s", b"1"))
        ledger.commit(lambda t: t.drop_secret("s"))
        assert ledger.commit(note) == 1


def test_recover_says_when_it_could_not_shorten_the_log(place: Path, ledger: SqliteLedger) -> None:
    hasty = SqliteLedger.open(place, busy_timeout=0.05)
    hasty.commit(note)
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT * FROM log").fetchall()
    hasty.commit(note)
    assert hasty.recover().notes == ("other processes were at work, so the write-ahead log was kept",)
    other.close()
    assert hasty.recover().notes == ()
    assert place.with_name(place.name + "-wal").stat().st_size == 0
    hasty.close()


def test_a_file_that_goes_away_is_a_ledger_error(place: Path, ledger: SqliteLedger) -> None:
    ledger._process.readers.clear()
    place.rename(place.with_name("elsewhere"))
    with pytest.raises(LedgerError, match="cannot be opened"):
        ledger.records()
    place.with_name("elsewhere").rename(place)
    assert list(ledger.records()) == []


class Faulty(sqlite3.Connection):
    """Fails, as a broken disk would, at the first statement that begins with `at`."""

    at: str | None = None

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if Faulty.at is not None and sql.startswith(Faulty.at):
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(sql, *parameters)


class FaultyLedger(SqliteLedger):
    factory = Faulty


@pytest.mark.parametrize("swallow", [False, True])
@pytest.mark.parametrize("at", ["BEGIN", "SAVEPOINT", "INSERT", "INSERT INTO log", "SELECT", "RELEASE", "COMMIT"])
def test_a_fault_at_any_step_releases_nothing(place: Path, at: str, swallow: bool) -> None:
    def work(transaction: Transaction) -> int:
        try:
            return everything(transaction)
        except LedgerError:
            if not swallow:
                raise
            return 0

    ledger = FaultyLedger.create(place, CHARTER)
    ledger.commit(note)
    Faulty.at = at
    try:
        with pytest.raises(LedgerError, match="nothing was released"):
            ledger.commit(work)
    finally:
        Faulty.at = None
    assert [r.position for r in ledger.records()] == [1]
    assert ledger.answered(analyst="ann", key="k", question="q") is None
    assert ledger.commit(lambda t: (t.secret("s"), len(t.holds(0.0)))) == (None, 0)
    assert ledger.commit(everything) == 2
    ledger.close()
    assert verified(place).records == 2


@pytest.mark.parametrize("at", ["PRAGMA journal_mode", "CREATE", "INSERT", "COMMIT"])
def test_a_fault_while_creating_leaves_nothing_behind(place: Path, at: str) -> None:
    Faulty.at = at
    try:
        with pytest.raises(LedgerError):
            FaultyLedger.create(place, CHARTER)
    finally:
        Faulty.at = None
    assert list(place.parent.iterdir()) == []


class Cramped(sqlite3.Connection):
    """A disk with room for few pages: SQLite itself reports that it is full."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.execute("PRAGMA max_page_count = 40")


class CrampedLedger(SqliteLedger):
    factory = Cramped


def test_a_full_disk_refuses_and_keeps_what_was_there(place: Path) -> None:
    ledger = CrampedLedger.create(place, CHARTER)
    released = 0
    with suppress(LedgerError):
        while released < 1000:
            released = ledger.commit(lambda t: measure(t, rows=500))
    assert 0 < released < 1000
    with pytest.raises(LedgerError, match="disk of the ledger is full"):
        ledger.commit(lambda t: measure(t, rows=500))
    assert len(ledger.records()) == released == ledger.verify().records
    ledger.close()
    roomy = SqliteLedger.open(place)
    assert roomy.commit(lambda t: measure(t, rows=500)) == released + 1
    roomy.close()


class ReadOnly(sqlite3.Connection):
    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.execute("PRAGMA query_only = ON")


class ReadOnlyLedger(SqliteLedger):
    factory = ReadOnly


def test_a_ledger_that_cannot_be_written_can_be_read(place: Path, ledger: SqliteLedger) -> None:
    ledger.commit(note)
    barred = ReadOnlyLedger.open(place)
    with pytest.raises(LedgerError, match="cannot be written to"):
        barred.commit(note)
    assert len(barred.records()) == 1
    assert barred.verify().records == 1
    barred.close()


def test_a_write_that_the_system_refuses(place: Path, ledger: SqliteLedger) -> None:
    ledger.commit(note)
    ledger.close()

    def write_too_much() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        cramped = SqliteLedger.open(place)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        with pytest.raises(LedgerError, match="nothing was released"):
            cramped.commit(lambda t: measure(t, rows=20_000))
        assert len(cramped.records()) == 1

    in_child(write_too_much)
    assert verified(place).records == 1


def test_files_that_belong_to_somebody_else(place: Path) -> None:
    """A real read-only directory, for a user who is not root."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        path = directory / "ledger.sqlite"
        ledger = SqliteLedger.create(path, CHARTER)
        ledger.commit(note)
        ledger.close()
        for file in directory.iterdir():
            file.chmod(0o444)
        directory.chmod(0o555)

        def use() -> None:
            if os.getuid() == 0:
                os.setuid(65534)
            with pytest.raises(LedgerError):
                SqliteLedger.open(path).commit(note)

        in_child(use)
        directory.chmod(0o700)
        assert verified(path).records == 1


# -- older copies -------------------------------------------------------------------------------------------


def copies(place: Path, ledger: SqliteLedger) -> tuple[dict[str, bytes], tuple[int, str]]:
    """The closed files of a ledger with two records, an answer and a hold, and its head then; three more commits
    follow, the last of which changes no record."""
    ledger.commit(note)
    ledger.commit(note)
    health = ledger.verify()
    ledger.close()
    old = {file.name: file.read_bytes() for file in place.parent.iterdir()}
    again = SqliteLedger.open(place)
    again.commit(note)
    again.commit(lambda t: answer(t, "k", b"body"))
    again.close()
    return old, (health.records, health.head)


def test_an_older_file_put_back_is_refused(place: Path, ledger: SqliteLedger) -> None:
    old, _ = copies(place, ledger)
    new = place.read_bytes()
    place.write_bytes(old[place.name])
    with pytest.raises(LedgerError, match="an older copy was put back"):
        SqliteLedger.open(place)
    with pytest.raises(LedgerError, match="an older copy was put back"):
        SqliteLedger.open(place)  # the refusal itself must not move the anchor
    place.write_bytes(new)
    SqliteLedger.open(place).close()


def test_an_older_file_that_lacks_an_answer_only_is_refused(place: Path, ledger: SqliteLedger) -> None:
    ledger.commit(note)
    ledger.close()
    old = place.read_bytes()
    again = SqliteLedger.open(place)
    again.commit(lambda t: answer(t, "k", b"body"))
    again.close()
    place.write_bytes(old)
    with pytest.raises(LedgerError, match="an older copy was put back"):
        SqliteLedger.open(place)


def test_another_history_is_refused(place: Path, ledger: SqliteLedger, tmp_path: Path) -> None:
    old, _ = copies(place, ledger)
    other = tmp_path / "other" / place.name
    other.parent.mkdir()
    for name, body in old.items():
        (other.parent / name).write_bytes(body)
    forked = SqliteLedger.open(other)
    for _ in range(9):
        forked.commit(note)
    forked.close()
    shutil.copy(other, place)
    with pytest.raises(LedgerError, match="or another one"):
        SqliteLedger.open(place)


def test_an_older_anchor_does_not_matter(place: Path, ledger: SqliteLedger) -> None:
    """So it is after a crash between a commit and the anchor; the next opening brings the anchor up to date."""
    old, _ = copies(place, ledger)
    anchor = place.with_name(place.name + "-anchor")
    new = anchor.read_bytes()
    anchor.write_bytes(old[anchor.name])
    SqliteLedger.open(place).close()
    assert anchor.read_bytes() == new


def test_older_file_with_its_older_anchor_needs_the_owners_note(place: Path, ledger: SqliteLedger) -> None:
    old, then = copies(place, ledger)
    now = verified(place)
    for name, body in old.items():
        (place.parent / name).write_bytes(body)
    SqliteLedger.open(place).close()  # not detected, as the anchor's docstring says
    SqliteLedger.open(place, expect=then).close()
    with pytest.raises(LedgerError, match="an older copy"):
        SqliteLedger.open(place, expect=(now.records, now.head))
    with pytest.raises(LedgerError, match="an older copy"):
        SqliteLedger.open(place, expect=(then[0], now.head))


@pytest.mark.parametrize("harm", [None, b"", b"x", b"0 0 00 00\n", b"\xff" * 300])
def test_a_lost_or_damaged_anchor_needs_somebody_to_vouch(
    place: Path, ledger: SqliteLedger, harm: bytes | None
) -> None:
    _, then = copies(place, ledger)
    anchor = place.with_name(place.name + "-anchor")
    if harm is None:
        anchor.unlink()
    else:
        anchor.write_bytes(harm)
    for _ in range(2):
        with pytest.raises(LedgerError, match="anchor"):
            SqliteLedger.open(place)
    with pytest.raises(LedgerError, match="older copy"):
        SqliteLedger.open(place, expect=(2, "00" * 32))
    SqliteLedger.open(place, expect=then).close()
    SqliteLedger.open(place).close()


def test_a_ledger_that_was_never_used_needs_no_anchor(place: Path, ledger: SqliteLedger) -> None:
    ledger.close()
    place.with_name(place.name + "-anchor").unlink()  # a crash right after creation
    SqliteLedger.open(place).close()
    assert place.with_name(place.name + "-anchor").exists()


def test_a_file_exchanged_while_open_is_noticed(place: Path, ledger: SqliteLedger) -> None:
    old, _ = copies(place, ledger)
    running = SqliteLedger.open(place)
    running.records()
    running._process.readers.clear()
    place.unlink()
    place.write_bytes(old[place.name])
    with pytest.raises(LedgerError, match="replaced by an older"):
        running.records()
    with pytest.raises(LedgerError, match="older copy"):
        running.verify()
    place.unlink()
    SqliteLedger.create(place.with_name("other"), {"id": "other"}).close()
    place.with_name("other").rename(place)
    running._process.readers.clear()
    with pytest.raises(LedgerError, match="replaced by another"):
        running.records()
    running.close()


def test_an_anchor_that_cannot_be_written_is_noted(place: Path, ledger: SqliteLedger) -> None:
    anchor = place.with_name(place.name + "-anchor")
    line = anchor.read_bytes()
    anchor.unlink()
    anchor.mkdir()
    assert ledger.commit(note) == 1  # durable, so it is released
    anchor.rmdir()
    anchor.write_bytes(line)
    anchor.chmod(0o600)
    assert ledger._notes == ("the anchor could not be written",)
    assert ledger.verify().notes == ()  # brought up to date meanwhile
    assert anchor.read_bytes() != line


def test_a_fault_in_upkeep_keeps_results_back_and_forgets_no_record(ledger: SqliteLedger) -> None:
    def broken(_: object) -> None:
        raise ValueError("nobody foresaw this")

    medium = ledger._process.medium
    tell, medium._tell = medium._tell, broken
    with pytest.raises(LedgerError):
        ledger.commit(note)
    assert [record.position for record in ledger.records()] == [1]
    medium._tell = tell
    assert ledger.commit(note) == 2
    ledger.verify()


# -- processes ----------------------------------------------------------------------------------------------


def test_a_fork_has_connections_of_its_own(place: Path, ledger: SqliteLedger) -> None:
    ledger.commit(note)
    ledger.records()
    inherited = ledger._process

    def use() -> None:
        assert ledger.commit(note) == 2
        assert len(ledger.records()) == 2
        assert ledger._process is not inherited
        ledger.close()

    in_child(use)
    assert ledger._process is inherited
    assert ledger.commit(note) == 3
    assert ledger.verify().records == 3


def test_connections_are_never_taken_to_another_process(ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.commit(note)
    before = ledger._process
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert ledger.commit(note) == 2
    assert ledger._process is not before
    assert before.medium._database is not None  # left alone, not closed
    ledger._disconnect()
    before.medium.abort()


def test_a_fork_inside_a_work(place: Path, ledger: SqliteLedger) -> None:
    """The child of a leader can neither finish nor spoil its parent's commit."""
    hasty = SqliteLedger.open(place, busy_timeout=0.05)

    def use() -> None:
        with pytest.raises(LedgerError, match="locked"):
            hasty.commit(note)
        assert len(hasty.records()) == 0

    def work(transaction: Transaction) -> int:
        position = note(transaction)
        in_child(use)
        return position

    assert hasty.commit(work) == 1
    assert hasty.verify().records == 1
    hasty.close()


def test_nothing_released_is_lost_when_a_process_is_killed(place: Path, ledger: SqliteLedger) -> None:
    ledger.close()
    released = 0
    for attempt in range(6):
        positions = released_until_killed(lambda: SqliteLedger.open(place, busy_timeout=PATIENCE), 0.006 * attempt)
        assert positions == list(range(positions[0], positions[0] + len(positions)))
        survivor = SqliteLedger.open(place)
        records = survivor.recover().records
        assert positions[0] > released
        assert records >= positions[-1]
        assert records <= positions[-1] + 1  # at most the one that was being committed
        released = records
        survivor.close()


def test_two_processes_for_one_key(place: Path, ledger: SqliteLedger) -> None:
    """Exactly one of them pays for each key, and both get the same bytes."""
    ledger.close()
    keys = [f"key {number}" for number in range(25)]

    def answered(name: str) -> bytes:
        mine = SqliteLedger.open(place, busy_timeout=PATIENCE)
        return b"".join(race(mine, key, name.encode()) for key in keys)

    outcomes = from_two_processes(answered)
    assert len(outcomes[0]) == 3 * len(keys)
    assert outcomes[0] == outcomes[1]
    assert verified(place).records == len(keys)


def test_two_processes_for_one_fence(place: Path, ledger: SqliteLedger) -> None:
    """A hold can be used up once: the loser is told that its plan is stale, and nothing of its commit is kept."""
    rounds = range(1, 26)
    ledger.commit(lambda t: [t.put_hold(hold(fence), replace=False) for fence in rounds])
    ledger.close()

    def used_up(_: str) -> bytes:
        mine = SqliteLedger.open(place, busy_timeout=PATIENCE)
        return bytes(use_up(mine, fence) for fence in rounds)

    wins = from_two_processes(used_up)
    assert [one + two for one, two in zip(*wins, strict=True)] == [1] * len(rounds)
    health = verified(place)
    assert (health.records, health.holds) == (len(rounds), 0)


def hold(fence: int) -> Hold:
    return Hold(fence=fence, analyst="ann", expires=1e12, events=())


def use_up(ledger: SqliteLedger, fence: int) -> bool:
    def work(transaction: Transaction) -> None:
        note(transaction)
        transaction.put_hold(hold(fence), replace=True)
        transaction.drop_hold(fence)

    try:
        ledger.commit(work)
    except Stale:
        return False
    return True
