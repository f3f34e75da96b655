"""A SQLite connection that speaks of sealed rows, a chained log and strategies; and the medium that writes through it.

Every row of a sealed table carries a seal, and its name stands a second time in the table `directory`: a changed
row does not fit its seal, and a row that damage has made unreachable is missing in one place only. So a lookup
finds what was stored, or raises; "nothing there" is an answer one can rely on.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from bursar.core.ledger import chain
from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.ledger import Charter, Record
from bursar.core.ledger.transaction import TABLES
from bursar.core.queries import LinearMap
from bursar.errors import LedgerError

MOST_DECODED = 2**15
"""How many decoded strategies are kept for the next record that refers to them."""

APPLICATION = 0x42555253  # "BURS", the application id in the header of the file
FORMAT = 3

# FULL syncs the write-ahead log at every commit, fullfsync also through a Mac's disk cache; temporary tables stay
# in memory because secrets may be in them, and what is deleted is overwritten, which not every SQLite does by itself.
_DURABLE = ("synchronous=FULL", "fullfsync=ON", "cell_size_check=ON", "trusted_schema=OFF", "temp_store=MEMORY")
SETTINGS = (*_DURABLE, "secure_delete=ON")

NAP = 0.005
"""Seconds between two attempts to write while another process does. SQLite itself would wait longer and longer, up to a
tenth of a second, and then hardly ever come when the ledger is free: whoever came last would be served first."""

_TABLE = "CREATE TABLE {} (name TEXT PRIMARY KEY, body BLOB NOT NULL, seal BLOB NOT NULL) WITHOUT ROWID"
SEALED = (*TABLES, "meta")
SCHEMA = (
    "CREATE TABLE log (position INTEGER PRIMARY KEY, body BLOB NOT NULL, chain BLOB NOT NULL)",
    "CREATE TABLE strategies (digest TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE directory (entry TEXT PRIMARY KEY) WITHOUT ROWID",
    *(_TABLE.format(table) for table in SEALED),
)

Row = tuple[Any, ...]
"""What SQLite returns: of any type, where the file was tampered with."""

# Also what Python makes of SQLite running out of memory, and of an error text that quotes damaged bytes.
FAULTS = (sqlite3.Error, MemoryError, UnicodeError)

_DAMAGED = "the ledger is damaged"
_MEANING = {
    "SQLITE_BUSY": "the ledger is locked by another process, and was for {:g} seconds; try again later",
    "SQLITE_FULL": "the disk of the ledger is full",
    "SQLITE_READONLY": "the ledger cannot be written to",
    "SQLITE_CANTOPEN": "the ledger cannot be opened",
    "SQLITE_CORRUPT": _DAMAGED,
    "SQLITE_NOTADB": "the file is not a Bursar ledger, or it is damaged",
}


@dataclass(frozen=True, kw_only=True)
class LedgerState:
    """Where a ledger stands; written with every commit."""

    commits: int  # how many commits have written something
    fence: int  # the last fence given out
    position: int
    chain: bytes  # of the record at `position`


def translate(fault: Exception, patience: float) -> LedgerError:
    """What an SQLite error means to a person, after so many seconds of waiting. It never carries stored text."""
    name = getattr(fault, "sqlite_errorname", "SQLITE_ERROR")
    known = next((text for prefix, text in _MEANING.items() if name.startswith(prefix)), "the ledger cannot be used")
    return LedgerError(f"{known.format(patience)} ({name}); nothing was released")


class Database:
    """A connection. `fault` is the first error of SQLite or of a check: SQLite may then have ended the transaction
    by itself, so nothing more may be written through this connection."""

    def __init__(
        self, path: Path, *, timeout: float, factory: type[sqlite3.Connection], decoded: dict[str, LinearMap]
    ) -> None:
        self.fault: LedgerError | None = None
        self._patience = timeout
        self._forgotten = False  # whether a secret or a text was erased that the write-ahead log may still have
        self._decoded = decoded  # strategies by digest, shared by the connections of a ledger
        self.charter_hash = b""  # set by `found` or `recognise`
        try:
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=timeout,
                isolation_level=None,
                check_same_thread=False,
                factory=factory,
            )
        except FAULTS as fault:
            raise translate(fault, timeout) from fault
        try:
            for setting in SETTINGS:
                self.run(f"PRAGMA {setting}")
        except LedgerError:
            self.close()
            raise

    def run(self, sql: str, parameters: tuple[object, ...] = ()) -> list[Row]:
        return list(self.stream(sql, parameters))

    def stream(self, sql: str, parameters: tuple[object, ...] = ()) -> Iterator[Row]:
        if self.fault is not None:
            raise self.fault
        try:
            # Not `yield from`: giving up the generator would then close the cursor, of a connection long closed.
            for row in self._connection.execute(sql, parameters):  # noqa: UP028
                yield row
        except FAULTS as fault:
            raise self._failed(translate(fault, self._patience)) from fault

    def begin(self) -> None:
        """Begin to write, as soon as no other process does; LedgerError where none of them lets go for too long.

        Who waits asks again and again, all of them at the same pace, so all are as likely to be next. SQLite's locks
        are the system's: a process that dies, at work or in wait, leaves none behind.
        """
        give_up = time.monotonic() + self._patience
        self.run("PRAGMA busy_timeout=0")  # from here on this connection waits here, and nowhere else
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                return
            except FAULTS as fault:
                if "BUSY" not in getattr(fault, "sqlite_errorname", "") or time.monotonic() >= give_up:
                    raise self._failed(translate(fault, self._patience)) from fault
            time.sleep(NAP)

    def forget(self) -> None:
        """Empty the write-ahead log if a secret or a text was erased: it holds pages as they were before.

        It never waits and never raises: what was committed is durable. Where others read or write just now, the next
        commit tries again.
        """
        if self._forgotten:
            with suppress(*FAULTS):
                ((busy, _, _),) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._forgotten = bool(busy)

    def close(self) -> None:
        """Never raises: what was committed is safe, the rest is not wanted."""
        with suppress(*FAULTS):
            self._connection.rollback()  # a cursor that somebody still holds would keep a mere close from doing it
        with suppress(*FAULTS):
            self._connection.close()

    def _failed(self, fault: LedgerError) -> LedgerError:
        self.fault = fault
        return fault

    def _damaged(self) -> LedgerError:
        return self._failed(LedgerError(_DAMAGED))

    @property
    def changes(self) -> int:
        """Grows with every row that is written."""
        return self._connection.total_changes

    # -- the ledger as a whole ------------------------------------------------------------------------------

    def found(self, charter: bytes) -> None:
        """Make a new file into a ledger with this charter."""
        self.run("PRAGMA auto_vacuum=NONE")
        self.run("PRAGMA journal_mode=WAL")
        self.run("BEGIN IMMEDIATE")
        self.run(f"PRAGMA application_id={APPLICATION}")
        self.run(f"PRAGMA user_version={FORMAT}")
        for statement in SCHEMA:
            self.run(statement)
        self.charter_hash = chain.genesis(charter)
        self.write("meta", "charter", charter)
        self.put_state(LedgerState(commits=0, fence=0, position=0, chain=self.charter_hash))
        self.run("COMMIT")

    def upgrade(self) -> None:
        """Bring a ledger of an earlier format to this one, whole or not at all: format 1 had no queue, and before
        format 3 the texts of questions were in the records alone. These stay as they are; the chain does not change."""
        earlier = self.run("PRAGMA user_version") in ([(1,)], [(2,)])
        if not earlier or self.run("PRAGMA application_id") != [(APPLICATION,)]:
            return
        self.run("BEGIN IMMEDIATE")
        for table in ("queue", "texts"):
            self.run(_TABLE.format(f"IF NOT EXISTS {table}"))  # another process may have been faster
        self.run(f"PRAGMA user_version={FORMAT}")
        self.recognise()
        for _, body in self.walk(0, self.charter_hash, self.state()):
            text = codec.from_json(body[: body.index(b"\n")]).get("purpose")
            if text is not None:
                self.write("texts", chain.question(text), codec.to_json(text))
        self.run("COMMIT")

    def recognise(self) -> Charter:
        """Check that this is a ledger of this release, and read its charter, on which all other checks rest."""
        if self.run("PRAGMA application_id") != [(APPLICATION,)]:
            raise self._failed(LedgerError("the file is not a Bursar ledger, or it is damaged"))
        if self.run("PRAGMA user_version") != [(FORMAT,)]:
            raise self._failed(LedgerError("the ledger was written by another release of Bursar, or it is damaged"))
        if self.run("PRAGMA journal_mode") != [("wal",)]:
            raise self._damaged()
        schema = {sql for (sql,) in self.run("SELECT sql FROM sqlite_schema")}
        if schema != set(SCHEMA):
            raise self._damaged()
        rows = self.run("SELECT body FROM meta WHERE name = 'charter'")
        if len(rows) != 1 or not isinstance(rows[0][0], bytes):
            raise self._damaged()
        self.charter_hash = chain.genesis(rows[0][0])
        charter: Charter = codec.from_json(self._must_read("charter"))
        return charter

    def state(self) -> LedgerState:
        fields = codec.from_json(self._must_read("state"))
        return LedgerState(**{**fields, "chain": bytes.fromhex(fields["chain"])})

    def put_state(self, state: LedgerState) -> None:
        self.write("meta", "state", codec.to_json({**vars(state), "chain": state.chain.hex()}))

    # -- sealed rows ----------------------------------------------------------------------------------------

    def read(self, table: str, name: str) -> bytes | None:
        rows = self.run(f"SELECT body, seal FROM {table} WHERE name = ?", (name,))
        listed = self.run("SELECT 1 FROM directory WHERE entry = ?", (f"{table} {name}",))
        if len(rows) != len(listed):
            raise self._damaged()
        return self._unseal(table, name, *rows[0]) if rows else None

    def write(self, table: str, name: str, body: bytes) -> None:
        seal = chain.seal(self.charter_hash, table, name, body)
        self.run(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", (name, body, seal))
        self.run("INSERT OR IGNORE INTO directory VALUES (?)", (f"{table} {name}",))

    def erase(self, table: str, name: str) -> None:
        self.run(f"DELETE FROM {table} WHERE name = ?", (name,))
        self.run("DELETE FROM directory WHERE entry = ?", (f"{table} {name}",))
        self._forgotten |= table in ("secrets", "texts")

    def scan(self, table: str) -> list[tuple[str, bytes]]:
        return list(self.scan_slowly(table))

    def scan_slowly(self, table: str) -> Iterator[tuple[str, bytes]]:
        """All rows of a table in the order of their names, none of them missing, one at a time."""
        rows = self.stream(f"SELECT name, body, seal FROM {table} ORDER BY name")
        # "!" follows the space in ASCII: this is exactly the range of entries that begin with the table's name.
        entries = self.stream(
            "SELECT entry FROM directory WHERE entry >= ? AND entry < ? ORDER BY entry", (f"{table} ", f"{table}!")
        )
        for row, entry in zip_longest(rows, entries):
            if row is None or entry is None or entry != (f"{table} {row[0]}",):
                raise self._damaged()
            yield row[0], self._unseal(table, *row)

    def _unseal(self, table: str, name: object, body: object, seal: object) -> bytes:
        if (
            not isinstance(name, str)
            or not isinstance(body, bytes)
            or chain.seal(self.charter_hash, table, name, body) != seal
        ):
            raise self._damaged()
        return body

    def _must_read(self, name: str) -> bytes:
        body = self.read("meta", name)
        if body is None:
            raise self._damaged()
        return body

    # -- log and strategies ---------------------------------------------------------------------------------

    def append(self, position: int, body: bytes, hash_: bytes) -> None:
        self.run("INSERT INTO log VALUES (?, ?, ?)", (position, body, hash_))

    def chain_at(self, position: int) -> bytes:
        """The hash stored with a record, not checked; the charter's at position 0."""
        if position == 0:
            return self.charter_hash
        rows = self.run("SELECT chain FROM log WHERE position = ?", (position,))
        if len(rows) != 1 or not isinstance(rows[0][0], bytes):
            raise self._damaged()
        return rows[0][0]

    def walk(self, start: int, hash_: bytes, end: LedgerState) -> Iterator[tuple[int, bytes]]:
        """Positions and bodies after `start`, whose hash is given, up to `end`, each checked against the chain.

        Guarantees: it ends normally only if the chain leads from the first hash to the last without a gap.
        """
        expected = start
        sql = "SELECT position, body, chain FROM log WHERE position > ? AND position <= ? ORDER BY position"
        for position, body, stored in self.stream(sql, (start, end.position)):
            expected += 1
            if position != expected or not isinstance(body, bytes):
                raise self._damaged()
            hash_ = chain.link(hash_, body)
            if hash_ != stored:
                raise self._failed(LedgerError(f"record {position} does not fit the hash chain: {_DAMAGED}"))
            yield position, body
        if (expected, hash_) != (end.position, end.chain):
            raise self._failed(LedgerError(f"the log does not end where it should: {_DAMAGED}"))

    def store(self, strategy: LinearMap) -> None:
        if not self.run("SELECT 1 FROM strategies WHERE digest = ?", (strategy.digest,)):
            self.run("INSERT INTO strategies VALUES (?, ?)", (strategy.digest, codec.encode_strategy(strategy)))

    def strategy(self, digest: str) -> LinearMap:
        """The strategy of a digest: one object for all records that refer to it, as long as it is remembered."""
        strategy = self._decoded.get(digest)
        if strategy is None:
            if len(self._decoded) >= MOST_DECODED:
                self._decoded.clear()
            strategy = self._decoded[digest] = self._read_strategy(digest)
        return strategy

    def _read_strategy(self, digest: str) -> LinearMap:
        rows = self.run("SELECT body FROM strategies WHERE digest = ?", (digest,))
        if len(rows) != 1 or not isinstance(rows[0][0], bytes):
            raise self._failed(LedgerError(f"a strategy is missing: {_DAMAGED}"))
        return codec.decode_strategy(digest, rows[0][0])


class SqliteMedium:
    """Implements `Medium`. After any fault the connection is thrown away: what it still held is not durable.

    A fault inside a work fails the whole commit, even if the work swallows it: every later statement raises it again.
    """

    def __init__(self, connect: Callable[[], Database], log: Log, committed: Callable[[LedgerState], None]) -> None:
        self._connect = connect
        self._log = log
        self._tell = committed  # hears of every commit that wrote something, before anybody's result is released
        self._connection: Database | None = None

    @property
    def rows(self) -> Database:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def begin(self) -> None:
        self.rows.begin()
        self._durable = self._state = self.rows.state()
        self._changes = self.rows.changes
        self._pending: list[Record] = []

    def mark(self) -> None:
        self.rows.run("SAVEPOINT work")
        self._marked = (self._state, len(self._pending))

    def restore(self) -> None:
        self.rows.run("ROLLBACK TO work")
        self.keep()
        state, length = self._marked
        self._state = replace(state, fence=self._state.fence)  # a number once given out stays given out
        del self._pending[length:]

    def keep(self) -> None:
        self.rows.run("RELEASE work")

    def commit(self) -> None:
        wrote = self.rows.changes != self._changes or self._state != self._durable
        if wrote:
            self._state = replace(self._state, commits=self._state.commits + 1)
            self.rows.put_state(self._state)
        self.rows.run("COMMIT")
        if wrote:
            self._tell(self._state)
        self.rows.forget()

    def abort(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def last(self) -> int:
        return self._state.position

    def append(self, record: Record, body: bytes) -> None:
        hash_ = chain.link(self._state.chain, body)
        self.rows.append(record.position, body, hash_)
        self._state = replace(self._state, position=record.position, chain=hash_)
        self._pending.append(record)

    def committed(self, after: int) -> Sequence[Record]:
        return self._log.records(self.rows, after=max(after, 0), end=self._durable, known=self._log.verified)

    def pending(self) -> Sequence[Record]:
        return tuple(self._pending)

    def next_fence(self) -> int:
        self._state = replace(self._state, fence=self._state.fence + 1)
        return self._state.fence


class Log:
    """How far this process has verified the log of one ledger; threads share it.

    Guarantees: every record it returns lies on an unbroken chain from the charter to the end that was given, and the
    chain runs through the last record that was verified before: a history that was exchanged is noticed.
    """

    def __init__(self, charter_hash: bytes) -> None:
        self.verified = (0, charter_hash)

    def records(self, database: Database, *, after: int, end: LedgerState, known: tuple[int, bytes]) -> list[Record]:
        """Records after a position up to `end`; `known` is `verified` from before the database's snapshot."""
        if end.position < known[0] or database.chain_at(known[0]) != known[1]:
            raise LedgerError("the ledger was replaced by an older or another one while it was open")
        start, hash_ = known if after >= known[0] else (after, database.chain_at(after))
        checked = [row for row in database.walk(start, hash_, end) if row[0] > after]
        self.verified = (end.position, end.chain)
        return [codec.decode_record(position, body, database.strategy) for position, body in checked]
