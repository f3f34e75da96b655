"""A source for tables in database servers: one pass over the table in one read-only snapshot, then nothing more.

The server codes, bounds and counts (`cell_rule.py`); counts of cells come back and are kept (`kept_cells.py`); the
connection is closed. What was counted is thereby fixed, however the table changes, and no question reaches the server.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from bursar.arrays import Integers
from bursar.core.domain import Domain, Unit
from bursar.core.extensions.distinct import Distinct
from bursar.core.extensions.joins import Parent
from bursar.core.extensions.per_person import PerPerson
from bursar.core.extensions.predicate import Predicate
from bursar.core.source.raw import attempt
from bursar.core.source.servers.cell_rule import EVERY_ROW, counting, rows_of_first
from bursar.core.source.servers.dialect import Dialect, Stored
from bursar.core.source.servers.joined_rows import join_parents, server_table
from bursar.core.source.servers.kept_cells import Capacity, KeptCells, Lines
from bursar.errors import QueryError, SourceError

UNREADABLE = "{name} could not be counted: the server went away, took too long, or refused; nothing was charged"
CLOSED = "the data could not be counted; ask the data owner to look at the source"
BLOCK_LINES = 50_000

AnyServer = TypeVar("AnyServer", bound="Server")


class Server(Protocol):
    """A connection for one pass: one snapshot, in which nothing can be written.

    Guarantees: opening one refuses, with SourceError from public facts, whatever is not a plain table, and a role that
    could write. All statements see the same rows, of all tables.
    """

    dialect: Dialect
    name: str  # what people call the table
    relation: str  # SQL for it
    beside: dict[str, str]  # SQL for each table that is joined with it
    secret: str  # SQL for the secret that `lines` is given

    def columns(self, table: str | None = None) -> dict[str, Stored | None]:
        """The columns of the table, or of one beside it; None for a type that there is no rule for."""

    def lines(self, sql: str, secret: str | None) -> Iterator[Lines]:
        """The result of a statement, whole numbers, some lines at a time."""

    def close(self) -> None: ...


class CountedCells(Protocol):
    """What was counted; the methods are those of `Source`, and `key` is that of the content hashes."""

    def table(self, attrs: tuple[str, ...]) -> Integers: ...

    def count(self, predicate: Predicate) -> int: ...

    def distinct(self, distinct: Distinct) -> Integers: ...

    def content(self, key: bytes) -> tuple[str, ...]: ...


class CellSource(ABC):
    """Guarantees: as `DuckDBSource`; and every failure of the server has one text, without a trace of what it said.

    Edge cases: the table is read when something is asked for the first time, not before.
    """

    def __init__(self, key: bytes) -> None:
        if not 16 <= len(key) <= 64:
            raise SourceError("a source needs a secret key of 16 to 64 bytes")
        self._key, self._closed = key, False
        self._cells: CountedCells | None = None

    @abstractmethod
    def _read(self, first: int | None) -> CountedCells:
        """The one pass over the table."""

    def content(self, first: int | None = None) -> tuple[str, ...]:
        return self._kept(first).content(derived(self._key, "content"))

    def table(self, attrs: tuple[str, ...]) -> Integers:
        return self._kept().table(attrs)

    def count(self, predicate: Predicate) -> int:
        return self._kept().count(predicate)

    def distinct(self, distinct: Distinct) -> Integers:
        return self._kept().distinct(distinct)

    def per_person(self, people: PerPerson) -> Integers:
        raise QueryError("one number of each person cannot be asked for in a table that stays in its database")

    def close(self) -> None:
        self._cells, self._closed = None, True

    def _kept(self, first: int | None = None) -> CountedCells:
        """What the one pass counted; the first who asks makes it."""
        if self._cells is None:
            if self._closed:
                raise SourceError(CLOSED)
            self._cells = self._read(first)
        return self._cells


class SqlSource(CellSource):
    """A table of raw rows, which its server codes, bounds and counts for every process anew."""

    def __init__(
        self,
        connect: Callable[[], Server],
        domain: Domain,
        unit: Unit,
        key: bytes,
        max_rows: int,
        parents: Sequence[Parent] = (),
    ) -> None:
        super().__init__(key)
        self._connect, self._domain, self._unit, self._max_rows = connect, domain, unit, max_rows
        self._parents = parents
        self._capacity = Capacity.of(domain, unit, max_rows)

    def _read(self, first: int | None) -> CountedCells:
        with connected(self._connect) as server:
            people, failed = self._capacity.people, UNREADABLE.format(name=server.name)
            given = (server, self._domain, self._unit, self._max_rows, first, self._parents)
            sql = counting_of(*given, people=people)
            secret = secret_of(self._unit, self._key)
            return attempt(lambda: KeptCells(self._domain, self._capacity, server.lines(sql, secret)), failed)


@contextmanager
def connected(connect: Callable[[], AnyServer]) -> Iterator[AnyServer]:
    """A connection for one pass, closed afterwards."""
    server = connect()
    try:
        yield server
    finally:
        attempt(server.close, CLOSED)


def derived(key: bytes, purpose: str) -> bytes:
    """A key of its own for each purpose."""
    return hashlib.blake2b(purpose.encode(), key=key, digest_size=32).digest()


def secret_of(unit: Unit, key: bytes) -> str | None:
    """What `counting` is told: the key of the choice, and one of this pass, by which people are numbered."""
    return None if unit.column is None else derived(key, "choice").hex() + os.urandom(32).hex()


def counting_of(
    server: Server,
    domain: Domain,
    unit: Unit,
    max_rows: int,
    first: int | None,
    parents: Sequence[Parent] = (),
    *,
    people: bool,
) -> str:
    """`counting` for the table of a server, with the columns of its parents; SourceError where one lacks a column, or
    there are more rows than max_rows."""
    failed = UNREADABLE.format(name=server.name)
    dialect, root, table, joined = server.dialect, server_table(server), server.relation, None
    if parents:
        if unit.column is None:
            raise SourceError("a joined table needs a unit column that says whose rows are")
        rows = join_parents(server, root, parents, domain, unit.column)
        columns, among, size, table, joined = rows.columns, EVERY_ROW, rows.number, "joined_", rows.rows
    else:
        names = [*domain.names, *([] if unit.column is None else [unit.column])]
        columns = {name: (dialect.name(name), root.kind(name)) for name in names}
        among = rows_of_first(dialect, columns, domain, first)
        size = f"SELECT count(*) FROM {table} AS raw_ WHERE {among}"
    sql = counting(dialect, table, columns, domain, unit, server.secret, people=people, among=among, joined=joined)
    (((number,),),) = attempt(lambda: tuple(server.lines(size, None)), failed)
    if number > max_rows:
        raise SourceError(f"{server.name} has more rows than max_rows = {max_rows}")
    return sql
