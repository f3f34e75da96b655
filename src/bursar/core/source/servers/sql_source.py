"""A source for tables in database servers: one pass over the table in one read-only snapshot, then nothing more.

The server codes, bounds and counts (`cell_rule.py`); counts of cells come back and are kept (`kept_cells.py`); the
connection is closed. What was counted is thereby fixed, however the table changes, and no question reaches the server.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from bursar.arrays import Integers
from bursar.core.domain import Domain, Unit
from bursar.core.extensions.distinct import Distinct
from bursar.core.extensions.per_person import PerPerson
from bursar.core.extensions.predicate import Predicate
from bursar.core.source.raw import attempt
from bursar.core.source.servers.cell_rule import counting, rows_of_first
from bursar.core.source.servers.dialect import Dialect, Stored
from bursar.core.source.servers.kept_cells import Capacity, KeptCells, Lines
from bursar.errors import QueryError, SourceError

UNREADABLE = "{name} could not be counted: the server went away, took too long, or refused; nothing was charged"
CLOSED = "the data could not be counted; ask the data owner to look at the source"
BLOCK_LINES = 50_000


class Server(Protocol):
    """A connection for one pass: one snapshot, in which nothing can be written.

    Guarantees: opening one refuses, with SourceError from public facts, whatever is not a plain table, and a role that
    could write. All statements see the same rows.
    """

    dialect: Dialect
    name: str  # what people call the table
    relation: str  # SQL for it
    secret: str  # SQL for the secret that `lines` is given

    def columns(self) -> dict[str, Stored | None]:
        """The table's columns; None for a type that there is no rule for."""

    def lines(self, sql: str, secret: str | None) -> Iterator[Lines]:
        """The result of a statement, whole numbers, some lines at a time."""

    def close(self) -> None: ...


class SqlSource:
    """Guarantees: as `DuckDBSource`; and every failure of the server has one text, without a trace of what it said.

    Edge cases: the table is read when something is asked for the first time, not before.
    """

    def __init__(self, connect: Callable[[], Server], domain: Domain, unit: Unit, key: bytes, max_rows: int) -> None:
        if not 16 <= len(key) <= 64:
            raise SourceError("a source needs a secret key of 16 to 64 bytes")
        self._key, self._asked = key, 0
        self._domain, self._unit, self._max_rows = domain, unit, max_rows
        self._capacity = Capacity.of(domain, unit, max_rows)
        self._connect: Callable[[], Server] | None = connect
        self._cells: KeptCells | None = None

    def fingerprint(self) -> str:
        """No two are equal: a table in a server may have changed at any moment."""
        self._asked += 1
        return hashlib.blake2b(str(self._asked).encode(), key=self._derived("fingerprint"), digest_size=32).hexdigest()

    def content(self, first: int | None = None) -> tuple[str, ...]:
        return self._kept(first).content(self._derived("content"))

    def table(self, attrs: tuple[str, ...]) -> Integers:
        return self._kept().table(attrs)

    def count(self, predicate: Predicate) -> int:
        return self._kept().count(predicate)

    def distinct(self, distinct: Distinct) -> Integers:
        return self._kept().distinct(distinct)

    def per_person(self, people: PerPerson) -> Integers:
        raise QueryError("one number of each person cannot be asked for in a table that stays in its database")

    def close(self) -> None:
        self._cells = self._connect = None

    def _kept(self, first: int | None = None) -> KeptCells:
        """What the one pass counted; the first who asks makes it."""
        if self._cells is None:
            if self._connect is None:
                raise SourceError(CLOSED)
            server = self._connect()
            try:
                self._cells = self._counted(server, first)
            finally:
                attempt(server.close, CLOSED)
        return self._cells

    def _counted(self, server: Server, first: int | None) -> KeptCells:
        domain, unit, failed = self._domain, self._unit, UNREADABLE.format(name=server.name)
        stored = attempt(server.columns, failed)
        columns: dict[str, tuple[str, Stored]] = {}
        for name in [*domain.names, *([] if unit.column is None else [unit.column])]:
            kind = stored.get(name)
            if kind is None:
                reason = "has a type that cannot be read" if name in stored else "is not there"
                raise SourceError(f"{server.name}: the column {name} {reason}")
            columns[name] = server.dialect.name(name), kind
        among = rows_of_first(server.dialect, columns, domain, first)
        statement = partial(counting, server.dialect, server.relation, columns, domain, unit, server.secret)
        sql = statement(people=self._capacity.people, among=among)
        size = f"SELECT count(*) FROM {server.relation} AS raw_ WHERE {among}"
        (((rows,),),) = attempt(lambda: tuple(server.lines(size, None)), failed)
        if rows > self._max_rows:
            raise SourceError(f"{server.name} has more rows than max_rows = {self._max_rows}")
        secret = None if unit.column is None else self._derived("choice").hex() + os.urandom(32).hex()
        return attempt(lambda: KeptCells(domain, self._capacity, server.lines(sql, secret)), failed)

    def _derived(self, purpose: str) -> bytes:
        return hashlib.blake2b(purpose.encode(), key=self._key, digest_size=32).digest()
