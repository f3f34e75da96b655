"""The default ledger: one SQLite file, safe for threads, processes, forks, crashes and full disks.

Write-ahead log, every commit synced, what is deleted overwritten.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Self

from bursar.core.extensions.carried import Carried
from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.database import DAMAGED, Database, LedgerConnection, Row, schema
from bursar.core.ledger.database_ledger import BUSY_TIMEOUT, DatabaseLedger
from bursar.core.ledger.integrity import anchor_path, upgrade
from bursar.core.ledger.ledger import Charter
from bursar.core.ledger.write_order import WriteOrder
from bursar.errors import LedgerError

APPLICATION = 0x42555253  # "BURS", the application id in the header of the file
FORMAT = 3

# FULL syncs the write-ahead log at every commit, fullfsync also through a Mac's disk cache; temporary tables stay
# in memory because secrets may be in them, and what is deleted is overwritten, which not every SQLite does by itself.
_DURABLE = ("synchronous=FULL", "fullfsync=ON", "cell_size_check=ON", "trusted_schema=OFF", "temp_store=MEMORY")
SETTINGS = (*_DURABLE, "secure_delete=ON")

NAP_SECONDS = 0.005
"""Seconds between two attempts to write while another process does that did not come in line. SQLite itself would wait
longer and longer, up to a tenth of a second: whoever came last would be served first."""

SCHEMA = schema(text="TEXT", integer="INTEGER", blob="BLOB", clustered=" WITHOUT ROWID")

# Also what Python makes of SQLite running out of memory, and of an error text that quotes damaged bytes.
FAULTS = (sqlite3.Error, MemoryError, UnicodeError)

_MEANING = {
    "SQLITE_BUSY": "the ledger is locked by another process, and was for {:g} seconds; try again later",
    "SQLITE_FULL": "the disk of the ledger is full",
    "SQLITE_READONLY": "the ledger cannot be written to",
    "SQLITE_CANTOPEN": "the ledger cannot be opened",
    "SQLITE_CORRUPT": DAMAGED,
    "SQLITE_NOTADB": "the file is not a Bursar ledger, or it is damaged",
}


def translate(fault: Exception, patience: float) -> LedgerError:
    """What an SQLite error means to a person, after so many seconds of waiting. It never carries stored text."""
    name = getattr(fault, "sqlite_errorname", "SQLITE_ERROR")
    meaning = next((text for prefix, text in _MEANING.items() if name.startswith(prefix)), "the ledger cannot be used")
    return LedgerError(f"{meaning.format(patience)} ({name}); nothing was released")


class SqliteConnection:
    """Implements `LedgerConnection`: SQLite may have ended the transaction by itself after a fault."""

    lost = False  # a file does not go away by itself

    def __init__(self, path: Path, *, timeout: float, factory: type[sqlite3.Connection]) -> None:
        self.fault: LedgerError | None = None
        self._patience = timeout
        self.order = WriteOrder(path)
        self._erased = False  # whether something was erased that the write-ahead log may still have
        try:
            where = f"{path.absolute().as_uri()}?mode=rw"
            self._connection = sqlite3.connect(
                where, timeout, uri=True, isolation_level=None, check_same_thread=False, factory=factory
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
        if self.fault is not None:
            raise self.fault
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except FAULTS as fault:
            raise self.failed(translate(fault, self._patience)) from fault

    def failed(self, fault: LedgerError) -> LedgerError:
        self.fault = fault
        return fault

    @property
    def changes(self) -> int:
        return self._connection.total_changes

    def begin(self) -> None:
        """Whoever is next in line asks SQLite, again and again if need be. SQLite's locks are the system's, as those of
        the line are: a process that dies, at work or in wait, leaves none behind."""
        give_up = time.monotonic() + self._patience
        self.run("PRAGMA busy_timeout=0")  # from here on this connection waits here, and nowhere else
        self.order.wait(give_up)
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                return
            except FAULTS as fault:
                if "BUSY" not in getattr(fault, "sqlite_errorname", "") or time.monotonic() >= give_up:
                    raise self.failed(translate(fault, self._patience)) from fault
            time.sleep(NAP_SECONDS)

    def snapshot(self) -> None:
        self.run("BEGIN")

    def commit(self) -> None:
        self.run("COMMIT")
        self.order.leave()

    def erased(self) -> None:
        self._erased = True

    def forget(self) -> None:
        """Empties the write-ahead log, which holds pages as they were before."""
        if self._erased:
            with suppress(*FAULTS):
                ((busy, _, _),) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._erased = bool(busy)

    def close(self) -> None:
        with suppress(*FAULTS):
            self._connection.rollback()  # a cursor that somebody still holds would keep a mere close from doing it
        with suppress(*FAULTS):
            self._connection.close()
        self.order.close()

    # -- the ledger as a whole ------------------------------------------------------------------------------

    def found(self) -> None:
        self.run("PRAGMA auto_vacuum=NONE")
        self.run("PRAGMA journal_mode=WAL")
        self.run("BEGIN IMMEDIATE")
        self.run(f"PRAGMA application_id={APPLICATION}")
        self.run(f"PRAGMA user_version={FORMAT}")
        for statement in SCHEMA.values():
            self.run(statement)

    def recognise(self) -> None:
        if self.run("PRAGMA application_id") != [(APPLICATION,)]:
            raise self.failed(LedgerError("the file is not a Bursar ledger, or it is damaged"))
        if self.run("PRAGMA user_version") != [(FORMAT,)]:
            raise self.failed(LedgerError("the ledger was written by another release of Bursar, or it is damaged"))
        stored = {sql for (sql,) in self.run("SELECT sql FROM sqlite_schema")}
        if self.run("PRAGMA journal_mode") != [("wal",)] or stored != set(SCHEMA.values()):
            raise self.failed(LedgerError(DAMAGED))

    def check_pages(self) -> None:
        if self.run("PRAGMA integrity_check") != [("ok",)]:
            raise LedgerError("the pages of the ledger do not fit together: the ledger is damaged")


class SqliteLedger(DatabaseLedger):
    """`Ledger` in one file (write-ahead log, synchronous=FULL), with its anchor beside it; all of mode 0600.

    Edge cases: a missing file is never created by `open`; `create` never replaces one.
    """

    factory: type[sqlite3.Connection] = sqlite3.Connection
    """The class of the connections; a fault injector takes its place in tests."""

    @classmethod
    def create(
        cls,
        path: str | Path,
        charter: Charter,
        *,
        carried: Carried | None = None,
        busy_timeout: float = BUSY_TIMEOUT,
    ) -> Self:
        """A new ledger, and with it a new budget, of which what is carried over is spent. It appears whole or not at
        all."""
        place = Path(path).resolve()
        text = codec.to_json(dict(charter))
        for trace in (place, anchor_path(place)):
            if os.path.lexists(trace):
                raise LedgerError(f"{trace} exists: a ledger was created here before, and its budget is not renewed")
        cls.make(place, lambda connection: Database(connection, decoded={}).found(text, carried))
        return cls(place, busy_timeout=busy_timeout)

    @classmethod
    def make(cls, place: Path, fill: Callable[[LedgerConnection], None]) -> None:
        """A new file that is filled before anybody sees it."""
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as drafts:
                draft = Path(drafts) / place.name
                draft.touch(mode=0o600)
                with closing(SqliteConnection(draft, timeout=BUSY_TIMEOUT, factory=cls.factory)) as connection:
                    fill(connection)
                os.link(draft, place)
            _sync(place.parent)
        except OSError as fault:
            raise LedgerError(f"the ledger {place} cannot be created: {fault.strerror}") from fault

    @classmethod
    def open(
        cls,
        path: str | Path,
        charter: Charter | None = None,
        *,
        expect: tuple[int, str] | None = None,
        busy_timeout: float = BUSY_TIMEOUT,
    ) -> Self:
        """An existing ledger, which must have this charter if one is given.

        `expect` is a position and the hash of its record (`Health.records`, `Health.head`) that the owner wrote down
        elsewhere. It also vouches for a ledger whose anchor is lost or damaged, which is then written anew: after a
        backup had to be put back, delete the anchor and say what the backup's head is.
        """
        return cls(Path(path).resolve(), charter=charter, expect=expect, busy_timeout=busy_timeout)

    def __init__(
        self,
        path: Path,
        *,
        charter: Charter | None = None,
        expect: tuple[int, str] | None = None,
        busy_timeout: float = BUSY_TIMEOUT,
    ) -> None:
        if not path.is_file():
            raise LedgerError(
                f"there is no ledger at {path}; a new ledger means a new budget and must be created explicitly"
            )
        self._path = path
        self._timeout = busy_timeout
        with closing(self._connection()) as connection:
            upgrade(connection)
        super().__init__(anchor_path(path), charter=charter, expect=expect)

    def _connection(self) -> SqliteConnection:
        connection = SqliteConnection(self._path, timeout=self._timeout, factory=self.factory)
        connection.order.meanwhile = lambda: [work() for work in self._meanwhile]
        return connection

    def now(self) -> float:
        return time.time()

    def _tidy(self) -> tuple[str, ...]:
        with closing(self._connection()) as connection:
            ((busy, _, _),) = connection.run("PRAGMA wal_checkpoint(TRUNCATE)")
        return ("other processes were at work, so the write-ahead log was kept",) if busy else ()

    def _files(self) -> Sequence[Path]:
        return sorted(file for file in self._path.parent.iterdir() if file.name.startswith(self._path.name))


def _sync(directory: Path) -> None:
    """Make the names of new files durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
