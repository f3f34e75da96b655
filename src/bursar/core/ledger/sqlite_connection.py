"""A connection to a ledger in an SQLite file: write-ahead log, every commit synced, what is deleted overwritten."""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from bursar.core.ledger.database import DAMAGED, Row, schema
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

    def begin_upgrade(self) -> bool:
        """In a file of an earlier format: begin to write, and add what is new; the caller fills it and commits."""
        earlier = self.run("PRAGMA user_version") in ([(1,)], [(2,)])
        if not earlier or self.run("PRAGMA application_id") != [(APPLICATION,)]:
            return False
        self.run("BEGIN IMMEDIATE")
        for table in ("queue", "texts"):  # another process may have been faster
            self.run(SCHEMA[table].replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
        self.run(f"PRAGMA user_version={FORMAT}")
        return True

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
