"""What ledgers in databases share: connections of each process, reading beside writing, and the anchor."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from bursar.core.extensions.checkpoint import Checkpointed, resume_at
from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.database import Cipher, Database, DatabaseMedium, LedgerConnection, Log
from bursar.core.ledger.integrity import (
    check_history,
    erase_texts,
    recover,
    save,
    save_at,
    saved,
    texts,
    verify,
    write_anchor,
)
from bursar.core.ledger.keyed_answers import stored_answer
from bursar.core.ledger.ledger import Charter, Record, Transaction
from bursar.core.ledger.transaction import GroupCommit
from bursar.core.queries import LinearMap
from bursar.errors import LedgerError

T = TypeVar("T")

BUSY_TIMEOUT = 60.0
"""Seconds to wait for other processes' writes before giving up."""

MOST_READERS = 8
"""Connections of one process that read at the same time: a server of a database has few to give away."""


@dataclass(frozen=True, kw_only=True)
class _Process:
    """What belongs to one process alone: a fork must neither use nor close its parent's connections."""

    pid: int
    medium: DatabaseMedium
    group: GroupCommit
    readers: list[Database] = field(default_factory=list)
    seats: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MOST_READERS))


_left_behind: list[_Process] = []
"""Connections inherited through a fork, kept from the garbage collector, which would close them."""


class DatabaseLedger(ABC):
    """`Ledger` in a database, with its anchor in a file of this machine. Its kinds say how to connect (`_connection`)
    and whose clock counts (`now`).

    Guarantees: a commit is durable before its result is released. Any fault of database, disk or lock raises
    LedgerError and releases nothing; the database then holds all of the commit or none. What is read was verified.
    """

    def __init__(
        self, anchor: Path, *, charter: Charter | None, expect: tuple[int, str] | None, cipher: Cipher | None = None
    ) -> None:
        self._anchor, self._cipher, self._closed = anchor, cipher, False
        self._decoded: dict[str, LinearMap] = {}
        self._notes: tuple[str, ...] = ()
        self._landmark = 0  # the earliest position whose hash somebody vouches for
        with closing(self._connection()) as connection:
            database = self._database(connection)
            self._charter: Charter = MappingProxyType(dict(database.recognise()))
        self._charter_hash = database.charter_hash
        if charter is not None:
            _compare(self._charter, charter)
        self._log = Log(self._charter_hash)
        self._process = self._new_process()
        try:
            self._check_history(expect)
        except LedgerError:
            self._disconnect()
            raise

    warnings: tuple[str, ...] = ()
    _meanwhile: tuple[Callable[[], object], ...] = ()
    """Never called where the database has a line of its own, in which nobody is told how near their turn is."""

    save, save_at, saved, texts = save, save_at, saved, texts
    erase_texts, verify, recover = erase_texts, verify, recover
    _check_history, _write_anchor = check_history, write_anchor
    """Checks and upkeep: a closed list."""

    @abstractmethod
    def _connection(self) -> LedgerConnection: ...

    @abstractmethod
    def now(self) -> float: ...

    def _tidy(self) -> tuple[str, ...]:
        """Part of `recover`: put right what the database itself could not, and say what is left."""
        return ()

    @property
    def charter(self) -> Charter:
        return self._charter

    def records(self, after: int = 0) -> Sequence[Record]:
        verified = self._log.verified
        with self._reading() as database:
            return self._log.records(database, after=max(after, 0), end=database.state(), verified=verified)

    def record(self, position: int) -> Record:
        with self._reading() as database:
            return self._log.record(database, position)

    def resume(self, event: Checkpointed) -> bool:
        verified = self._log.verified
        with self._reading() as database:
            end, landmark = database.state(), self._landmark
            return resume_at(self._log, database, event, landmark=landmark, end=end, verified=verified)

    def commit(self, work: Callable[[Transaction], T]) -> T:
        return self._here().group.commit(work)

    def while_waiting(self, work: Callable[[], object]) -> None:
        self._meanwhile = (*self._meanwhile, work)

    def answered(self, *, analyst: str, key: str, question: str) -> bytes | None:
        with self._reading() as database:
            return stored_answer(database.read, analyst=analyst, key=key, question=question)

    def queue(self) -> Mapping[str, bytes]:
        with self._reading() as database:
            return dict(database.scan("queue"))

    def close(self) -> None:
        if self._closed:
            return
        with self._here().group.running:
            with suppress(LedgerError), self._reading() as database:
                self._write_anchor(database.state(), durable=True)
            self._disconnect()

    # -- connections ----------------------------------------------------------------------------------------

    def _here(self) -> _Process:
        self._check_open()
        if self._process.pid != os.getpid():
            _left_behind.append(self._process)
            self._process = self._new_process()
        return self._process

    def _check_open(self) -> None:
        if self._closed:
            raise LedgerError("the ledger is closed")

    def _new_process(self) -> _Process:
        medium = DatabaseMedium(self._connect, self._log, self._write_anchor)
        return _Process(pid=os.getpid(), medium=medium, group=GroupCommit(medium))

    def _database(self, connection: LedgerConnection) -> Database:
        return Database(connection, decoded=self._decoded, cipher=self._cipher)

    def _connect(self) -> Database:
        self._check_open()
        database = self._database(self._connection())
        try:
            database.recognise()
            if database.charter_hash != self._charter_hash:
                raise LedgerError("the ledger was replaced by another one while it was open")
        except LedgerError:
            database.connection.close()
            raise
        return database

    def _disconnect(self) -> None:
        self._closed = True
        self._process.medium.abort()
        while self._process.readers:
            self._process.readers.pop().connection.close()

    @contextmanager
    def _reading(self) -> Iterator[Database]:
        """A connection with a snapshot of its own: it never waits for writers, and they never wait for it."""
        process = self._here()
        with process.seats:
            database = self._reader(process.readers)
            try:
                yield database
            finally:
                if database.connection.fault is None and not self._closed:
                    database.run("ROLLBACK")
                    process.readers.append(database)
                else:
                    database.connection.close()

    def _reader(self, idle: list[Database]) -> Database:
        """A connection that is reading; idle ones may have lost their database since."""
        while True:
            try:
                database, reused = idle.pop(), True
            except IndexError:
                database, reused = self._connect(), False
            try:
                database.connection.snapshot()
                return database
            except LedgerError:
                database.connection.close()
                if not (reused and database.connection.lost):
                    raise

    def _files(self) -> Sequence[Path]:
        """What nobody else on this machine may read."""
        return (self._anchor,)


def _compare(stored: Charter, given: Charter) -> None:
    expected: Charter = codec.from_json(codec.to_json(dict(given)))
    either = sorted(stored.keys() | expected.keys())
    differ = [key for key in either if codec.to_json([stored.get(key)]) != codec.to_json([expected.get(key)])]
    if differ:
        raise LedgerError(f"the ledger was created for another config; what differs: {', '.join(differ)}")
