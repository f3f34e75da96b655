"""The data owner's door for new rows: a file is added to the table of a data set as a whole, or not at all.

Rows of partitions that are sealed already, and rows that belong to no declared partition, never reach the table: they
are set aside, for the data owner only.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import duckdb

from bursar.core.domain import Attribute, Bins, Categories, Dates, Domain, Unit
from bursar.core.extensions.open_keys import OpenText
from bursar.core.source.coding import coding
from bursar.core.source.raw import Connection, Raw, attempt, open_raw, patiently, quoted
from bursar.errors import SourceError

SETTINGS = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
    "asof_loop_join_threshold": 0,  # bins are found by sorting, however few rows DuckDB expects
}
SUFFIXES = (".csv", ".csv.gz", ".parquet")
PLACE, CELL = 999, "bursar_cell"  # names that no column of a table will have
FILES, ASIDE = "bursar.ingested_files", "bursar.rows_set_aside"


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What became of the rows of a file. These are exact numbers: for the data owner only."""

    file: str
    added: int
    late: int  # of partitions that are sealed
    outside: int  # of no declared partition


@dataclass(frozen=True, kw_only=True)
class Store:
    """The DuckDB file of a data set that grows, and its table."""

    path: Path
    table: str
    domain: Domain
    unit: Unit
    max_rows: int

    def create(self) -> None:
        """Make the file with an empty table, where there is no file yet; its columns have the types of the domain."""
        if self.path.exists():
            return
        stored = {attribute.name: _storage(attribute) for attribute in self.domain.attributes}
        stored |= {} if self.unit.column is None else {self.unit.column: "VARCHAR"}
        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in stored.items())
        text = f"{self.path} cannot be made"
        with attempt(lambda: duckdb.connect(str(self.path), config=SETTINGS), text) as connection:
            attempt(lambda: connection.execute(f"CREATE TABLE {quoted(self.table)} ({columns})"), text)

    def take_in(self, file: Path, sealed: int) -> Taken:
        """Add the rows of a CSV or Parquet file, in one transaction; the first `sealed` partitions take no more rows.

        Guarantees: what is in the table, what is set aside and what is remembered of the file belong together, also
        after a crash.
        Edge cases: SourceError, and nothing is changed, where a file of the same content was taken in before, a
        declared column is missing, a value does not fit the type that the table stores, or there would be more rows
        than max_rows.
        """
        if not file.name.lower().endswith(SUFFIXES):
            raise SourceError(f"{file} cannot be taken in; its name must end in {', '.join(SUFFIXES)}")
        digest = attempt(lambda: digest_of(file), f"{file} cannot be read")
        connection = attempt(lambda: patiently(lambda: duckdb.connect(str(self.path), config=SETTINGS)), self._unusable)
        try:
            self._run(connection, "SET TimeZone = 'UTC'")
            self._run(connection, "BEGIN")
            taken = self._take_in(connection, file, digest, sealed)
            if attempt(lambda: digest_of(file), f"{file} cannot be read") != digest:
                raise SourceError(f"{file} was changed while it was read; nothing was added")
            self._run(connection, "COMMIT")
            return taken
        finally:
            connection.close()

    def knows(self, digest: str) -> bool:
        """Whether a file of this content was taken in before."""
        settings = {**SETTINGS, "access_mode": "READ_ONLY"}
        connection = attempt(lambda: patiently(lambda: duckdb.connect(str(self.path), config=settings)), self._unusable)
        try:
            relation = "duckdb_tables() WHERE schema_name || '.' || table_name = ?"
            return self._count(connection, relation, FILES) > 0 and self._knows(connection, digest)
        finally:
            connection.close()

    def _take_in(self, connection: Connection, file: Path, digest: str, sealed: int) -> Taken:
        assert self.domain.partition is not None
        stored = self._prepared(connection)
        if self._knows(connection, digest):
            raise SourceError(f"{file} was taken in before, under this or another name; nothing was added")
        raw = open_raw(connection, file, None)
        self._read(connection, raw, stored)
        column = self.domain[self.domain.partition]
        self._code(connection, column, stored[column.name])
        rules = {"late": f"{CELL} < {sealed}", "outside": f"{CELL} >= {column.declared}"}
        added = f"coded WHERE {CELL} >= {sealed} AND {CELL} < {column.declared}"
        numbers = [
            self._count(connection, rows) for rows in (added, *(f"coded WHERE {rule}" for rule in rules.values()))
        ]
        if self._count(connection, quoted(self.table)) + numbers[0] > self.max_rows:
            raise SourceError(f"with {file} there are more rows than max_rows = {self.max_rows}; nothing was added")
        self._run(connection, f"INSERT INTO {quoted(self.table)} SELECT * EXCLUDE ({CELL}) FROM {added}")
        for why, rule in rules.items():
            aside = f"INSERT INTO {ASIDE} SELECT ?, ?, * EXCLUDE ({CELL}) FROM coded WHERE {rule}"
            self._run(connection, aside, why, file.name)
        self._run(connection, f"INSERT INTO {FILES} VALUES (?, ?, now(), ?, ?, ?)", digest, file.name, *numbers)
        return Taken(file=file.name, added=numbers[0], late=numbers[1], outside=numbers[2])

    def _prepared(self, connection: Connection) -> dict[str, str]:
        """Where the data owner's own records are missing, make them; the columns of the table, with their types."""
        listing = "SELECT column_name, data_type FROM duckdb_columns() WHERE schema_name = 'main' AND table_name = ?"
        stored: dict[str, str] = dict(self._run(connection, listing, self.table).fetchall())
        if missing := [name for name in self._needed if name not in stored]:
            raise SourceError(f"{self.path} has no table {self.table} with a column {missing[0]}")
        self._run(connection, "CREATE SCHEMA IF NOT EXISTS bursar")
        columns = "digest VARCHAR, name VARCHAR, taken TIMESTAMP, added BIGINT, late BIGINT, outside BIGINT"
        self._run(connection, f"CREATE TABLE IF NOT EXISTS {FILES} ({columns})")
        empty = f"SELECT '' AS why, '' AS file, * FROM {quoted(self.table)} LIMIT 0"
        self._run(connection, f"CREATE TABLE IF NOT EXISTS {ASIDE} AS {empty}")
        return stored

    def _read(self, connection: Connection, raw: Raw, stored: dict[str, str]) -> None:
        """The rows of the file as the table would store them; columns that the table does not have are left out."""
        given = {name for name, _ in raw.columns}
        columns = {name: raw.column(name).sql for name in stored if name in given or name in self._needed}
        names, values = ", ".join(map(quoted, columns)), ", ".join(columns.values())
        text = f"{raw.name} cannot be read, or has values that do not fit the table {self.table}; nothing was added"
        self._run(connection, f"CREATE TEMP TABLE incoming AS SELECT * FROM {quoted(self.table)} LIMIT 0")
        attempt(lambda: connection.execute(f"INSERT INTO incoming ({names}) SELECT {values} FROM {raw.relation}"), text)

    def _code(self, connection: Connection, column: Attribute, storage: str) -> None:
        """Give every row the cell of its partition, by the rule by which it will be counted."""
        value = f"incoming.{quoted(column.name)}"
        code = coding(column, place=PLACE, raw=value, storage=storage)
        if code.keys:
            keys = f"SELECT unnest(CAST(? AS {code.key_type}[])) AS key, unnest(range({len(code.keys)})) AS cell"
            self._run(connection, f"CREATE TEMP TABLE keys{PLACE} AS {keys}", list(code.keys))
        rows = f"(SELECT *, {code.reading} AS r{PLACE}, {value} IS NULL AS n{PLACE} FROM incoming) AS rows {code.join}"
        cells = f"rows.* EXCLUDE (r{PLACE}, n{PLACE}), CAST({code.cell} AS BIGINT) AS {CELL}"
        self._run(connection, f"CREATE TEMP TABLE coded AS SELECT {cells} FROM {rows}")

    def _knows(self, connection: Connection, digest: str) -> bool:
        return self._count(connection, f"{FILES} WHERE digest = ?", digest) > 0

    def _count(self, connection: Connection, rows: str, *given: object) -> int:
        return int(self._run(connection, f"SELECT count(*) FROM {rows}", *given).fetchone()[0])

    def _run(self, connection: Connection, sql: str, *given: object) -> Connection:
        return attempt(lambda: connection.execute(sql, list(given)), self._unusable)

    @property
    def _needed(self) -> tuple[str, ...]:
        return self.domain.names if self.unit.column is None else (*self.domain.names, self.unit.column)

    @property
    def _unusable(self) -> str:
        return f"{self.path} cannot be used: it is no DuckDB file, or another process is using it"


def digest_of(file: Path) -> str:
    """What a file is known by: its bytes, whatever it is called."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _storage(attribute: Attribute) -> str:
    match attribute:
        case Categories():
            return {str: "VARCHAR", int: "HUGEINT", bool: "BOOLEAN"}[type(attribute.values[0])]
        case OpenText():
            return "VARCHAR"
        case Dates():
            return "TIMESTAMP"
        case Bins():
            return "DOUBLE"
    return "BIGINT"
