"""The default source: a file or a data frame, read once by DuckDB and kept in memory as counts of cells.

Opening reads the declared columns, turns each value into its cell number (`coding.py`), keeps at most
`max_contributions` rows of each unit, counts equal rows, forgets everything else, and locks the database. Where people
are units, what is kept of who they are is a number that is random and other at every opening: never an id.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import duckdb
import numpy as np
from numpy.typing import NDArray

from bursar.core.domain import Domain, Unit
from bursar.core.extensions.declared_view import open_view
from bursar.core.extensions.distinct import count_distinct
from bursar.core.extensions.joins import Parent, open_joined
from bursar.core.extensions.open_keys import OpenText
from bursar.core.extensions.open_texts import assign, unlisted, views
from bursar.core.extensions.per_person import count_people
from bursar.core.extensions.predicate import count_where
from bursar.core.source.coding import Coding, as_text, coding
from bursar.core.source.raw import FAILED, Connection, Raw, attempt, open_raw
from bursar.core.source.source import table_shape
from bursar.errors import SourceError

GROUP_ROWS = 300_000
"""Rows of units that are bounded at once, about: what is sorted for that stays small."""

BLOCK_LINES = 2**20
"""Lines that are hashed at once."""

SETTINGS = {
    "temp_directory": "",  # what does not fit in memory fails, unless the data owner names a folder
    "max_temp_directory_size": "0KiB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "enable_external_file_cache": False,  # it would keep the raw file in memory
    "python_enable_replacements": False,
    "pandas_analyze_sample": 0,  # no guessing of a column's type from its rows
    "preserve_insertion_order": True,  # lines are hashed in the order in which they were stored
    "asof_loop_join_threshold": 0,  # bins are found by sorting, however few rows DuckDB expects
}
LIMITS = {"memory_limit": "240MB", "threads": min(os.cpu_count() or 1, 4)}
"""Where there is a folder for the rest. Each thread needs some of the memory."""


class DuckDBSource:
    """Counts of bounded, coded rows, in memory.

    `location` is the path of a .csv, .csv.gz, .parquet, .duckdb or .db file (of the last two, `table` names the
    table, or `view` is a SELECT over tables that gives the rows in its place; `parents` are further tables that add
    columns to its rows), or a data frame of pandas, polars or Arrow. `key` is secret: it decides which rows of a unit
    with too many are kept, and hides what the hashes are hashes of. `spill` is a folder for what does not fit
    into memory.

    Guarantees: after the opening no raw value is left in the database, nothing can be read from or written to any
    file through it, and every failure has one and the same text. At opening, texts name files, columns and
    `max_rows`, never anything that depends on rows, except that opening fails if the file is damaged or longer
    than max_rows. Safe to use from several threads.
    Edge cases: rows whose unit is NULL belong to nobody whose contribution could be bounded, and are left out.
    """

    def __init__(
        self,
        location: object,
        domain: Domain,
        unit: Unit,
        key: bytes,
        max_rows: int,
        table: str | None = None,
        view: str | None = None,
        parents: Sequence[Parent] = (),
        spill: Path | None = None,
    ) -> None:
        if not 16 <= len(key) <= 64:
            raise SourceError("a source needs a secret key of 16 to 64 bytes")
        if view is not None and unit.column is None:
            raise SourceError("a view can give one person several rows, so it needs a unit column")
        self._domain = domain
        self._people = unit.column is not None
        self._open = [place for place, each in enumerate(domain.attributes) if isinstance(each, OpenText)]
        self._assigned = dict.fromkeys(self._open, 0)
        self._cells, self._kept = ("keyed_cells", "keyed_people") if self._open else ("cells", "people")
        self._key = key
        self._path = Path(location).absolute() if isinstance(location, str | os.PathLike) else None
        self._content: tuple[str, ...] | None = None
        self._connection = attempt(lambda: started(spill, LIMITS), "DuckDB cannot be started")
        try:
            before = self._stamp()
            if parents:
                raw = open_joined(self._connection, location, table, parents, unit, self._derived("parents").hex())
            elif view is not None:
                raw = open_view(self._connection, location, view)
            else:
                raw = open_raw(self._connection, location, table)
            _load(self._connection, raw, domain, unit, self._derived("choice").hex(), max_rows)
            stored = {"cells": ["rows"], **({"people": ["unit", "rows"]} if self._people else {})}
            for view in views(domain, stored if self._open else {}):
                attempt(partial(self._connection.execute, view), raw.unreadable)
            attempt(lambda: _lock(self._connection), "DuckDB cannot be locked")
            if self._stamp() != before:
                raise SourceError(f"{raw.name} was changed while it was read; open it again")
        except BaseException:
            self._connection.close()
            raise

    def content(self, first: int | None = None) -> tuple[str, ...]:
        """A keyed BLAKE2b of the coded rows of each partition in sorted order, each with how often it occurs."""
        if self._content is None:
            self._content = attempt(self._hashed_cells, FAILED)
        return self._content

    def table(self, attrs: tuple[str, ...]) -> NDArray[np.int64]:
        shape = table_shape(self._domain, attrs)
        columns = [f"c{self._domain.place(name)}" for name in attrs]
        return attempt(lambda: self._counted(columns, shape), FAILED)

    count, distinct, per_person = count_where, count_distinct, count_people
    assign, unlisted = assign, unlisted
    """What extensions count: a closed list."""

    def close(self) -> None:
        self._connection.close()

    def _counted(self, columns: Sequence[str], shape: tuple[int, ...]) -> NDArray[np.int64]:
        selected = ", ".join([*columns, "CAST(coalesce(sum(rows), 0) AS BIGINT) AS rows"])
        fetched = self._fetch(f"SELECT {selected} FROM {self._cells} GROUP BY ALL")
        cells = np.zeros(len(fetched["rows"]), dtype=np.int64)
        for column, size in zip(columns, shape, strict=True):
            cells = cells * size + fetched[column]
        counts = np.zeros(math.prod(shape), dtype=np.int64)
        counts[cells] = fetched["rows"]
        return counts.reshape(shape)

    def _hashed_cells(self) -> tuple[str, ...]:
        """Column by column, some lines at a time: all of them may be too many to be fetched at once."""
        names = [f"c{place}" for place in range(len(self._domain.attributes))]
        parts: list[tuple[bytes, ...]] = [()]
        of_part = "SELECT 0 AS part, count(*) AS lines FROM cells"
        if self._domain.partition is not None:
            parts = [(str(place).encode(),) for place in range(self._domain.partitions)]
            cell = names[self._domain.place(self._domain.partition)]
            of_part = f"SELECT {cell} AS part, count(*) AS lines FROM cells GROUP BY part"
        counted, lines = self._fetch(of_part), np.zeros(len(parts), dtype=np.int64)
        lines[counted["part"]] = counted["lines"]
        spans = list(pairwise([0, *np.cumsum(lines).tolist()]))
        hashes = [self._keyed("content", [self._domain.digest.encode(), *part]) for part in parts]
        for place, name in enumerate([*names, "rows"]):
            text, start, block = place in self._open, 0, np.empty(0, dtype=np.int64)
            for digest, (low, high) in zip(hashes, spans, strict=True):
                if text:  # how long its texts are is known when all of them are there
                    _update(digest, json.dumps(self._lines(name, low, high).tolist()).encode())
                    continue
                digest.update((8 * (high - low)).to_bytes(8, "little"))
                while low < high:
                    if low == start + len(block):
                        start, block = low, self._lines(name, low, low + BLOCK_LINES)
                    piece = block[low - start : high - start]
                    digest.update(np.ascontiguousarray(piece, dtype="<i8").tobytes())
                    low += len(piece)
        return tuple(digest.hexdigest() for digest in hashes)

    def _lines(self, column: str, low: int, high: int) -> NDArray[np.int64]:
        """Some lines of one column of `cells`, in their order: nothing was ever removed from it."""
        return self._fetch(f"SELECT {column} FROM cells WHERE rowid >= {low} AND rowid < {high}")[column]

    def _fetch(self, sql: str, parameters: Sequence[object] = ()) -> dict[str, NDArray[np.int64]]:
        """The columns of a query's result. Every query has a cursor of its own, as threads must."""
        with self._connection.cursor() as cursor:
            columns: dict[str, NDArray[np.int64]] = cursor.execute(sql, parameters).fetchnumpy()
        return columns

    def _stamp(self) -> list[tuple[int, int, int] | None]:
        """Size, time and inode of the file and of DuckDB's write-ahead log beside it; None where there is none."""
        if self._path is None:
            return []
        return [_stat(self._path), _stat(self._path.with_name(self._path.name + ".wal"))]

    def _derived(self, purpose: str) -> bytes:
        return hashlib.blake2b(purpose.encode(), key=self._key, digest_size=32).digest()

    def _keyed(self, purpose: str, parts: Sequence[bytes]) -> hashlib.blake2b:
        keyed = hashlib.blake2b(key=self._derived(purpose), digest_size=32)
        for part in parts:
            _update(keyed, part)
        return keyed


def _update(keyed: hashlib.blake2b, part: bytes) -> None:
    keyed.update(len(part).to_bytes(8, "little") + part)


def started(spill: Path | None, limits: Mapping[str, object] = MappingProxyType({})) -> Connection:
    """A database in memory, which fails where the machine's ends; with a folder, one in a file there that has no name
    any more and is gone with the process, however that ends. (Tables in memory keep a byte and more of each row there.)
    """
    if spill is None:
        connection = duckdb.connect(":memory:", config=SETTINGS)
    else:
        file = spill / f"{os.urandom(8).hex()}.duckdb"
        folder = {"temp_directory": str(spill), "max_temp_directory_size": "1000TB"}
        connection = duckdb.connect(str(file), config={**SETTINGS, **folder, **limits})
        file.unlink()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def _load(connection: Connection, raw: Raw, domain: Domain, unit: Unit, secret: str, max_rows: int) -> None:
    """Fill the table cells(c0, c1, ..., rows): one line per coded row that occurs, with how often it does."""
    stored = [(attribute, raw.column(attribute.name)) for attribute in domain.attributes]
    codings = [
        coding(attribute, place=place, raw=column.sql, storage=column.storage)
        for place, (attribute, column) in enumerate(stored)
    ]
    unit_sql = "TRUE" if unit.column is None else as_text(raw.column(unit.column).sql)
    nulls = [f"{column.sql} IS NULL" for _, column in stored]
    attempt(lambda: _code(connection, raw.relation, codings, nulls, unit_sql, max_rows), raw.unreadable)
    rows = attempt(lambda: connection.execute("SELECT count(*) FROM coded").fetchone()[0], raw.unreadable)
    if rows > max_rows:
        raise SourceError(f"{raw.name} has more rows than max_rows = {max_rows}")
    attempt(lambda: _count(connection, domain, unit, secret), raw.unreadable)


def _code(
    connection: Connection, relation: str, codings: list[Coding], nulls: list[str], unit: str, max_rows: int
) -> None:
    """Read the file once, into the table coded(unit, c0, c1, ...), and let go of it.

    One row more than max_rows is enough to know that there are too many.
    """
    readings, cells, joins = [f"{unit} AS unit"], ["rows.unit"], []
    for place, (code, null) in enumerate(zip(codings, nulls, strict=True)):
        readings += [f"{code.reading} AS r{place}", f"{null} AS n{place}"]
        cells.append(f"CAST({code.cell} AS {code.type}) AS c{place}")
        joins.append(code.join)
        if code.keys:
            keys = f"SELECT unnest(CAST(? AS {code.key_type}[])) AS key, unnest(range({len(code.keys)})) AS cell"
            connection.execute(f"CREATE TEMP TABLE keys{place} AS {keys}", [list(code.keys)])
    rows = f"(SELECT {', '.join(readings)} FROM {relation} LIMIT {max_rows + 1}) AS rows"
    connection.execute(f"CREATE TABLE coded AS SELECT {', '.join(cells)} FROM {rows} {' '.join(joins)}")
    connection.unregister("frame")
    connection.execute("DETACH DATABASE IF EXISTS stored")


def _count(connection: Connection, domain: Domain, unit: Unit, secret: str) -> None:
    """Bound each unit's contribution, number the units, count equal rows, and drop everything else.

    A unit keeps its first max_contributions rows in the order of the partition, and inside one partition in the
    order of a keyed hash of unit, coded row, and the running number of the row among the unit's equal ones: a
    uniform choice that anyone without the key cannot foresee, and that no other unit's rows enter into. Only rows of
    units that have more are hashed, some units at a time, so that what is sorted stays small. In `people` a unit is its
    place in the order of a hash under a secret of this opening, which is kept nowhere.
    """
    columns = [f"c{place}" for place in range(len(domain.attributes))]
    partition = [] if domain.partition is None else [f"c{domain.place(domain.partition)}"]
    if unit.column is not None:
        texts = [isinstance(attribute, OpenText) for attribute in domain.attributes]
        told = [f"coalesce(sha256({c}), 'NULL')" if text else c for c, text in zip(columns, texts, strict=True)]
        message = ", ".join(["$secret", "length(unit)", "unit", *told, "copy"])
        order = ", ".join([*partition, f"sha256(concat_ws('/', {message}))"])
        number = "CAST(row_number() OVER (ORDER BY sha256(concat_ws('/', $opening, unit))) AS UINTEGER) AS number"
        holdings = "SELECT unit, count(*) AS held FROM coded WHERE unit IS NOT NULL GROUP BY unit"
        opening = {"opening": os.urandom(16).hex()}  # with most ids, SHA-256 then takes one block instead of two
        connection.execute(f"CREATE TABLE units AS SELECT unit, held, {number} FROM ({holdings})", opening)
        rows, fields, most = "coded JOIN units USING (unit)", ", ".join(["number", *columns]), unit.max_contributions
        named = ", ".join(["number AS unit", *columns, "CAST(1 AS BIGINT) AS rows"])
        connection.execute(f"CREATE TABLE people AS SELECT {named} FROM {rows} WHERE held <= {most}")
        connection.execute(f"CREATE TABLE many AS SELECT {fields} FROM {rows} WHERE held > {most}")
        connection.execute("DROP TABLE coded")
        equal = f"SELECT {fields}, count(*) AS equal FROM many WHERE number BETWEEN $low AND $high GROUP BY ALL"
        copies = f"SELECT *, unnest(range(1, equal + 1)) AS copy FROM ({equal}) JOIN units USING (number)"
        rank = f"row_number() OVER (PARTITION BY number ORDER BY {order})"
        bounded = f"SELECT {named} FROM (FROM ({copies}) QUALIFY {rank} <= {most})"
        over, people = connection.execute("SELECT (SELECT count(*) FROM many), (SELECT count(*) FROM units)").fetchone()
        step = people * GROUP_ROWS // (over + 1) + 1
        for low in range(1, people + 1, step) if over else ():
            units = {"low": low, "high": low + step - 1}
            connection.execute(f"INSERT INTO people {bounded}", {"secret": secret, **units})
        connection.execute("CREATE TABLE totals AS SELECT number AS unit, held AS rows FROM units")
    counted = "count(*)" if unit.column is None else "CAST(sum(rows) AS BIGINT)"
    selected, table = ", ".join([*columns, f"{counted} AS rows"]), "coded" if unit.column is None else "people"
    ordered = ", ".join([*partition, *columns, "rows"])
    connection.execute(f"CREATE TABLE cells AS SELECT {selected} FROM {table} GROUP BY ALL ORDER BY {ordered}")
    for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        if name not in ("cells", "people", "totals"):
            connection.execute(f"DROP TABLE {name}")


def _lock(connection: Connection) -> None:
    """From here on the database reaches no file and no network, and stays so."""
    connection.execute("CHECKPOINT")  # of a database in a file, its log of writes stands beside it until then
    connection.execute("SET GLOBAL enable_external_access = false")
    connection.execute("SET GLOBAL lock_configuration = true")
