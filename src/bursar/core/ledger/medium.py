"""The medium of the SQLite ledger: one writing connection, one transaction at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from bursar.core.ledger import chain
from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.database import Database, LedgerState
from bursar.core.ledger.ledger import Record
from bursar.errors import LedgerError


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
