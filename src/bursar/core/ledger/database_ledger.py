"""What ledgers in databases share: connections of each process, reading beside writing, and the anchor."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from bursar.core.extensions.checkpoint import Checkpointed, resume_at
from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.database import Cipher, Database, DatabaseMedium, LedgerConnection, LedgerState, Log
from bursar.core.ledger.integrity import (
    Anchor,
    advance_anchor,
    check_everything,
    drop_expired,
    erase_texts,
    read_anchor,
    require_history,
    save_beside,
    save_beside_at,
    saved_beside,
    too_open,
)
from bursar.core.ledger.keyed_answers import stored_answer
from bursar.core.ledger.ledger import Charter, Health, Record, Transaction
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

    def save(self, name: str, body: bytes) -> None:
        save_beside(self._anchor, name, body)

    def save_at(self, name: str, place: int, body: bytes) -> None:
        save_beside_at(self._anchor, name, place, body)

    def saved(self, name: str) -> bytes | None:
        return saved_beside(self._anchor, name)

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

    def texts(self, questions: Collection[str] | None = None) -> Mapping[str, str]:
        with self._reading() as database:
            some = ((each, database.read("texts", each)) for each in questions or ())
            found = database.scan("texts") if questions is None else some
            return {question: codec.from_json(body) for question, body in found if body is not None}

    def erase_texts(self) -> int:
        medium = self._here().medium
        return self.commit(lambda _: erase_texts(medium))

    def verify(self) -> Health:
        self._check_history(None)
        with self._reading() as database:
            health = check_everything(database, database.state())
        return replace(health, notes=(*self.warnings, *self._notes, *too_open(self._files())))

    def recover(self, now: float | None = None) -> Health:
        moment = self.now() if now is None else now
        medium = self._here().medium
        notes = self.commit(lambda _: drop_expired(medium, moment)) + self._tidy()
        health = self.verify()
        return replace(health, notes=(*notes, *health.notes))

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

    # -- the anchor -----------------------------------------------------------------------------------------

    def _check_history(self, expect: tuple[int, str] | None) -> None:
        """Compare with the anchor and with what the owner expects, then bring the anchor up to date."""
        # Before the snapshot: what the anchor saw was durable by then, so the snapshot has it too.
        anchor = read_anchor(self._anchor, self._charter_hash, expect)
        with self._reading() as database:
            state = database.state()
            self._landmark = require_history(database, state, self._anchor, anchor, expect)
        if anchor is None or anchor.commits < state.commits:
            self._write_anchor(state, durable=anchor is None)

    def _write_anchor(self, state: LedgerState, durable: bool = False) -> None:
        anchor = Anchor(commits=state.commits, position=state.position, chain=state.chain)
        try:
            advance_anchor(self._anchor, anchor, self._charter_hash, durable=durable)
            self._notes = ()
        except OSError:
            # The commit is durable and must be released; the next opening merely finds an anchor that lags.
            self._notes = ("the anchor could not be written",)

    def _files(self) -> Sequence[Path]:
        """What nobody else on this machine may read."""
        return (self._anchor,)


def _compare(stored: Charter, given: Charter) -> None:
    expected: Charter = codec.from_json(codec.to_json(dict(given)))
    either = sorted(stored.keys() | expected.keys())
    differ = [key for key in either if codec.to_json([stored.get(key)]) != codec.to_json([expected.get(key)])]
    if differ:
        raise LedgerError(f"the ledger belongs to another charter; what differs: {', '.join(differ)}")
