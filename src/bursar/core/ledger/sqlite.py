"""The default ledger: one SQLite file, safe for threads, processes, forks, crashes and full disks."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Self

from bursar.core.extensions.carried import Carried
from bursar.core.ledger import chain
from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.database import Database, LedgerConnection
from bursar.core.ledger.database_ledger import BUSY_TIMEOUT, DatabaseLedger
from bursar.core.ledger.integrity import anchor_path
from bursar.core.ledger.ledger import Charter
from bursar.core.ledger.sqlite_connection import SqliteConnection
from bursar.errors import LedgerError


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
            _upgrade(connection)
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
        return [self._path.with_name(self._path.name + suffix) for suffix in ("", "-wal", "-shm", "-anchor", "-order")]


def _upgrade(connection: SqliteConnection) -> None:
    """Bring a ledger of an earlier format to this one, whole or not at all: format 1 had no queue, and before
    format 3 the texts of questions were in the records alone. These stay as they are; the chain does not change."""
    if not connection.begin_upgrade():
        return
    database = Database(connection, decoded={})
    database.recognise()
    for _, body in database.walk(0, database.charter_hash, database.state()):
        text = codec.from_json(body[: body.index(b"\n")]).get("purpose")
        if text is not None:
            database.write("texts", chain.question(text), codec.to_json(text))
    connection.commit()


def _sync(directory: Path) -> None:
    """Make the names of new files durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
