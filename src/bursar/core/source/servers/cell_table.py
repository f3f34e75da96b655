"""Kept cells in the database itself: the data owner's role fills a table of them, and ours reads that table alone.

Its lines are those of `counting`: coded, bounded and counted once, however many processes open the data afterwards.
Where they fit, they are read into memory; where they do not, each question adds up those of its own columns there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from bursar.arrays import Integers
from bursar.core.domain import Domain, Unit
from bursar.core.extensions.distinct import Distinct, check_counted
from bursar.core.extensions.joins import Parent
from bursar.core.extensions.predicate import Predicate, check_columns
from bursar.core.source.raw import attempt
from bursar.core.source.servers.cell_rule import CODING, HOW_MANY, PERSON, Keys
from bursar.core.source.servers.kept_cells import MOST_BYTES, Capacity, KeptCells
from bursar.core.source.servers.sql_source import (
    CLOSED,
    UNREADABLE,
    CellSource,
    CountedCells,
    Server,
    connected,
    counting_of,
    derived,
    secret_of,
)
from bursar.core.source.source import table_shape
from bursar.errors import QueryError, SourceError

REFILL = "\ntry: the data owner fills it: bursar fill, or bursar seal, with BURSAR_OWNER_URL"
UNFILLED = "the cells of {name} could not be kept: the server went away, took too long, or did not let this role"
MARK = "bursar cells"
"""How the note begins that stands beside a table which was filled here."""
Taken = TypeVar("Taken")


class FillingServer(Server, Protocol):
    """A connection of the data owner's role, which reads the raw table and may create tables in another schema."""

    def keep(self, lines: str, secret: str | None, columns: Mapping[str, str], note: str) -> None:
        """Put the lines into the table of cells, in place of what it had, with the note; columns have their types."""


class CellServer(Server, Protocol):
    """A connection to a table of cells."""

    def note(self) -> str | None:
        """What `keep` wrote beside the table."""

    def generation(self) -> tuple[str, int]:
        """A condition that holds for the lines that are there now and for none that comes later; and their number."""


@dataclass(frozen=True)
class CellTable:
    """What a table of cells is of; `most_bytes` of it may be kept in memory."""

    domain: Domain
    unit: Unit
    key: bytes
    max_rows: int
    most_bytes: int = MOST_BYTES
    parents: tuple[Parent, ...] = ()

    @property
    def capacity(self) -> Capacity | None:
        """How the lines are kept in memory; None where they do not fit. People are told apart only where they do."""
        try:
            return Capacity.of(self.domain, self.unit, self.max_rows, self.most_bytes)
        except SourceError:
            return None

    @property
    def columns(self) -> dict[str, str]:
        """Columns and their types. Sums of 32 bits are twice as fast as sums of 64."""
        numbers = dict.fromkeys((f"k{place}" for place in range(len(Keys.of(self.domain).groups))), "BIGINT")
        if self.capacity is not None and self.capacity.people:
            return {**numbers, PERSON: "BIGINT"}
        return {**numbers, HOW_MANY: "INTEGER" if self.max_rows < 2**31 else "BIGINT"}

    def note(self, first: int | None) -> str:
        """What stands beside a table that has the rows of so many partitions, from the first one on; None: of all."""
        bounds = (self.unit.column, self.unit.max_contributions, self.max_rows)
        facts = (CODING, self.domain.digest, *bounds, self.columns, first, *map(Parent.to_json, self.parents))
        tag = hashlib.blake2b(repr(facts).encode(), key=derived(self.key, "cells"), digest_size=16)
        return f"{MARK}; partitions: {'all' if first is None else first}; {tag.hexdigest()}"

    def fill(self, connect: Callable[[], FillingServer], first: int | None) -> None:
        """For the data owner: code, bound and count the rows inside the database, those of so many partitions."""
        with connected(connect) as server:
            people = PERSON in self.columns
            lines = counting_of(server, self.domain, self.unit, self.max_rows, first, self.parents, people=people)
            secret, failed = secret_of(self.unit, self.key), UNFILLED.format(name=server.name)
            attempt(lambda: server.keep(lines, secret, self.columns, self.note(first)), failed)

    def check(self, name: str, note: str | None, first: int | None) -> None:
        """SourceError unless the note is that of this table, filled as far as so many partitions."""
        told = (note or "").split("; partitions: ")[-1].split("; ")[0]
        through = int(told) if told.isdecimal() and len(told) < 10 else None
        if note != self.note(through):
            raise SourceError(f"{name} has no cells of these columns and people that were kept for this ledger{REFILL}")
        if first is not None and through is not None and through < first:
            raise SourceError(f"{name} has the cells of {through} partitions, and {first} are asked for{REFILL}")


class CellTableSource(CellSource):
    """A table of cells that the data owner's role has filled."""

    def __init__(self, connect: Callable[[], CellServer], table: CellTable) -> None:
        super().__init__(table.key)
        self._connect, self._table = connect, table

    def _read(self, first: int | None) -> CountedCells:
        with connected(self._connect) as server:
            failed, table, capacity = UNREADABLE.format(name=server.name), self._table, self._table.capacity
            table.check(server.name, attempt(server.note, failed), first)
            if capacity is None:
                lived, lines = attempt(server.generation, failed)
                return StoredCells(self._connect, table.domain, table.max_rows, lived, lines)
            listed = ", ".join(table.columns)
            sql = f"SELECT {listed} FROM {server.relation} ORDER BY {listed}"
            return attempt(lambda: KeptCells(table.domain, capacity, server.lines(sql, None)), failed)


class StoredCells:
    """Lines (k0, k1, ..., n), one for each cell that occurs, which stay in their table.

    `lived` is the condition that holds for the lines that were there at the opening, and `lines` is their number.

    Guarantees: only those are counted, and all of them, or the question fails; so what is counted does not change.
    Edge cases: every failure has one text.
    """

    def __init__(self, connect: Callable[[], CellServer], domain: Domain, max_rows: int, lived: str, lines: int):
        self._connect, self._domain, self._keys, self._max_rows = connect, domain, Keys.of(domain), max_rows
        self._lived, self._lines = lived, lines

    def table(self, attrs: tuple[str, ...]) -> Integers:
        """`Source.table`."""
        table_shape(self._domain, attrs)
        return self._of(attrs or self._domain.names[:1]).table(attrs)

    def count(self, predicate: Predicate) -> int:
        """`Source.count`."""
        check_columns(self._domain, predicate)
        return self._of(predicate.attrs).count(predicate)

    def distinct(self, distinct: Distinct) -> Integers:
        """`Source.distinct`."""
        check_counted(self._domain, distinct)
        if distinct.of is None:
            raise QueryError("people cannot be counted: max_rows is too large to keep them")
        return self._of(distinct.attrs).distinct(distinct)

    def content(self, key: bytes) -> tuple[str, ...]:
        """`Source.content`: a keyed BLAKE2b of each partition's lines, which pass by in their order."""
        domain, hashes = self._domain, []
        for place in range(domain.partitions):
            hashes.append(hashlib.blake2b(repr((CODING, domain.digest, place)).encode(), key=key, digest_size=32))
        behind = 2**63 - 1 if domain.partition is None else self._keys.place(domain.partition)[1]
        listed = ", ".join(f"k{place}" for place in range(len(self._keys.groups)))
        sql = f"SELECT {listed}, {HOW_MANY}, 1 FROM {{relation}} WHERE {self._lived} ORDER BY {listed}"

        def hash_lines(blocks: Iterator[Integers]) -> None:
            for lines in blocks:
                parts = lines[:, 0] // behind
                starts = np.flatnonzero(np.diff(parts, prepend=-1))
                for start, block in zip(starts, np.split(lines, starts[1:]), strict=True):
                    hashes[parts[start]].update(np.ascontiguousarray(block, "<i8").tobytes())

        self._passed(sql, hash_lines)
        return tuple(digest.hexdigest() for digest in hashes)

    def _of(self, attrs: tuple[str, ...]) -> KeptCells:
        """The counts of some columns, added up in the table; QueryError, from public sizes, where they are too many."""
        domain = Domain(tuple(self._domain[name] for name in attrs))
        try:
            capacity = Capacity.of(domain, Unit(), self._max_rows)
        except SourceError:
            raise QueryError(f"{', '.join(attrs)} have too many cells together to be counted at once") from None
        keys = Keys.of(domain)
        numbers = [" + ".join(f"{self._cell(name)} * {keys.place(name)[1]}" for name in part) for part in keys.groups]
        named = ", ".join(f"{number} AS g{place}" for place, number in enumerate(numbers))
        by = ", ".join(f"g{place}" for place in range(len(numbers)))
        sums = f"CAST(sum({HOW_MANY}) AS BIGINT), count(*)"
        groups = f"SELECT {named}, {sums} FROM {{relation}} WHERE {self._lived} GROUP BY {by}"
        # g0 + 0: PostgreSQL would sort the lines of the table rather than the sums, if both were in the same order
        sql = f"SELECT * FROM ({groups}) AS sums ORDER BY g0 + 0"
        return self._passed(sql, lambda blocks: KeptCells(domain, capacity, blocks))

    def _cell(self, name: str) -> str:
        place, behind = self._keys.place(name)
        return f"(k{place} / {behind} % {self._keys.sizes[name]})"

    def _passed(self, sql: str, take: Callable[[Iterator[Integers]], Taken]) -> Taken:
        """Take the lines of a statement, without their last number: how many lines of the table each stands for."""
        seen = 0

        def blocks(server: CellServer) -> Iterator[Integers]:
            nonlocal seen
            for block in server.lines(sql.format(relation=server.relation), None):
                lines = np.asarray(block, np.int64)
                seen += int(lines[:, -1].sum())
                yield lines[:, :-1]

        def work() -> Taken:
            with connected(self._connect) as server:
                return take(blocks(server))

        taken = attempt(work, CLOSED)
        if seen != self._lines:
            raise SourceError(CLOSED)
        return taken
