"""The medium of the SQLite ledger: one writing connection, one transaction at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from bursar.kernel.ledger import chain
from bursar.kernel.ledger.database import Database, State
from bursar.kernel.ledger.ledger import Record
from bursar.kernel.ledger.log import Log
from bursar.queries import LinearMap


class SqliteMedium:
    """Implements `Medium`. After any fault the connection is thrown away: what it still held is not durable."""

    def __init__(self, connect: Callable[[], Database], log: Log, committed: Callable[[State], None]) -> None:
        self._connect = connect
        self._log = log
        self._tell = committed  # hears of every commit that wrote something, before anybody's result is released
        self._connection: Database | None = None

    @property
    def _database(self) -> Database:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def begin(self) -> None:
        self._database.run("BEGIN IMMEDIATE")
        self._durable = self._state = self._database.state()
        self._changes = self._database.changes
        self._pending: list[Record] = []

    def mark(self) -> None:
        self._check()
        self._database.run("SAVEPOINT work")
        self._marked = (self._state, len(self._pending))

    def restore(self) -> None:
        self._check()
        self._database.run("ROLLBACK TO work")
        self.keep()
        state, length = self._marked
        self._state = replace(state, fence=self._state.fence)
        del self._pending[length:]

    def keep(self) -> None:
        self._check()
        self._database.run("RELEASE work")

    def commit(self) -> None:
        self._check()
        wrote = self._database.changes != self._changes or self._state != self._durable
        if wrote:
            self._state = replace(self._state, commits=self._state.commits + 1)
            self._database.put_state(self._state)
        self._database.run("COMMIT")
        if wrote:
            self._tell(self._state)

    def abort(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _check(self) -> None:
        # A work may have swallowed the error; SQLite may have ended the transaction with it.
        if self._database.fault is not None:
            raise self._database.fault

    def read(self, table: str, name: str) -> bytes | None:
        return self._database.read(table, name)

    def write(self, table: str, name: str, body: bytes) -> None:
        self._check()
        self._database.write(table, name, body)

    def erase(self, table: str, name: str) -> None:
        self._check()
        self._database.erase(table, name)

    def scan(self, table: str) -> Iterable[tuple[str, bytes]]:
        return self._database.scan(table)

    def store(self, strategy: LinearMap) -> None:
        self._check()
        self._database.store(strategy)

    def strategy(self, digest: str) -> LinearMap:
        return self._log.strategies(self._database)(digest)

    def last(self) -> int:
        return self._state.position

    def append(self, record: Record, body: bytes) -> None:
        self._check()
        hash_ = chain.link(self._state.chain, body)
        self._database.append(record.position, body, hash_)
        self._state = replace(self._state, position=record.position, chain=hash_)
        self._pending.append(record)

    def committed(self, after: int) -> Sequence[Record]:
        return self._log.records(self._database, after=after, end=self._durable, known=self._log.verified)

    def pending(self) -> Sequence[Record]:
        return tuple(self._pending)

    def next_fence(self) -> int:
        self._state = replace(self._state, fence=self._state.fence + 1)
        return self._state.fence
