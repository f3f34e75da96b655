"""A ledger in PostgreSQL: servers on several machines share one budget."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from bursar.core.extensions.carried import Carried
from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.database import Database
from bursar.core.ledger.database_ledger import BUSY_TIMEOUT, DatabaseLedger
from bursar.core.ledger.ledger import Charter
from bursar.core.ledger.postgresql.cipher import AesGcm
from bursar.core.ledger.postgresql.postgres_connection import MAY_LOSE, DatabaseClock, PostgresConnection
from bursar.errors import LedgerError


@dataclass(frozen=True, kw_only=True)
class PostgresPlace:
    """Where a ledger is: a schema of a database, and on this machine its anchor and the key of its secrets."""

    url: str
    schema: str
    anchor: Path
    key: bytes = field(repr=False)
    lossy: bool = False  # whether a database is accepted whose fail-over may lose commits
    busy_timeout: float = BUSY_TIMEOUT

    def connect(self, clock: DatabaseClock) -> PostgresConnection:
        return PostgresConnection(self.url, self.schema, timeout=self.busy_timeout, clock=clock, lossy=self.lossy)


class PostgresLedger(DatabaseLedger):
    """`Ledger` in one schema of a database; secrets are encrypted there. The anchor is a file of this machine: the
    highest head that this server has seen, which a database must extend.

    Edge cases: a missing schema is never created by opening; `create` never replaces one. A server that comes to a
    ledger in use has no anchor yet, and must be told what to `expect`.
    """

    @classmethod
    def create(cls, place: PostgresPlace, charter: Charter, *, carried: Carried | None = None) -> Self:
        """A new ledger, and with it a new budget, of which what is carried over is spent. It appears whole or not at
        all."""
        text, cipher, anchor = codec.to_json(dict(charter)), AesGcm(place.key), place.anchor
        if os.path.lexists(anchor):
            raise LedgerError(f"{anchor} exists: a ledger was created here before, and its budget is not renewed")
        try:
            anchor.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as fault:
            raise LedgerError(f"the anchor {anchor} cannot be created: {fault.strerror}") from fault
        with closing(place.connect(DatabaseClock())) as connection:
            Database(connection, decoded={}, cipher=cipher).found(text, carried)
        return cls(place)

    def __init__(
        self, place: PostgresPlace, charter: Charter | None = None, *, expect: tuple[int, str] | None = None
    ) -> None:
        """An existing ledger, which must have this charter if one is given; `expect` is as for a file."""
        self.place = place
        self._clock = DatabaseClock()
        super().__init__(place.anchor, charter=charter, expect=expect, cipher=AesGcm(place.key))
        self.commit(lambda _: None)  # reads the clock

    def _connection(self) -> PostgresConnection:
        connection = self.place.connect(self._clock)
        self.warnings = (MAY_LOSE,) if connection.asynchronous else ()
        return connection

    def now(self) -> float:
        return self._clock.now()
