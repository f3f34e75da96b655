"""A DuckDB file as a server of tables: counted in place, without being read into memory as `DuckDBSource` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bursar.arrays import Integers
from bursar.core.source.duckdb import LIMITS, started
from bursar.core.source.raw import attempt, literal, patiently
from bursar.core.source.servers.cell_rule import PERSON
from bursar.core.source.servers.dialect import Dialect, Stored
from bursar.core.source.servers.sql_source import BLOCK_LINES
from bursar.errors import SourceError

if TYPE_CHECKING:
    from bursar.core.source.servers.kept_cells import Lines

TYPES = {
    **dict.fromkeys(("VARCHAR", "UUID", "ENUM"), Stored.TEXT),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), Stored.INTEGER),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), Stored.INTEGER),
    "DECIMAL": Stored.DECIMAL,
    **dict.fromkeys(("FLOAT", "DOUBLE"), Stored.FLOAT),
    "BOOLEAN": Stored.BOOLEAN,
    "DATE": Stored.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Stored.LOCAL_TIME),
    "TIMESTAMP WITH TIME ZONE": Stored.ZONED_TIME,
}
GROUP_ROWS = 200_000
"""Rows whose units are bounded at once, about: each group is another look at the whole table."""


class DuckDBDialect(Dialect):
    each_time = "AS NOT MATERIALIZED"  # the rows of one group of units

    def text(self, value: str) -> str:
        return f'(CAST({value} AS VARCHAR) COLLATE "binary")'

    def matches(self, value: str, pattern: str) -> str:
        return f"regexp_full_match({value}, '{pattern}')"

    def quotient(self, number: str, by: int) -> str:
        return f"({number} // {by})"

    def length(self, value: str) -> str:
        return f"length({value})"

    def one_group(self, unit: str) -> str:
        return f" AND hash({unit}) % getvariable('groups') = getvariable('one_group')"  # parameters would be slow

    def sha256(self, value: str) -> str:
        return f"sha256({value})"

    def leading_number(self, hashed: str) -> str:
        return self.as_integer(f"'0x' || substr({hashed}, 1, 15)")


class DuckDBFile:
    """The file is opened for reading only; nothing else is in reach. Other processes may read it too, and not write."""

    dialect: Dialect = DuckDBDialect()
    secret = "$secret"

    def __init__(
        self, path: Path, schema: str, table: str, spill: Path | None = None, beside: Sequence[str] = ()
    ) -> None:
        self.name = f"the table {schema}.{table} in {path}"
        tables = {name: f"stored.{self.dialect.name(schema)}.{self.dialect.name(name)}" for name in (table, *beside)}
        self._schema, self._table, self.relation = schema, table, tables[table]
        self.beside = {name: tables[name] for name in beside}
        if not attempt(path.is_file, f"{path} cannot be reached"):
            raise SourceError(f"there is no file {path}")
        text = f"{path} cannot be read as a DuckDB file, or another process is writing to it"
        self._connection = attempt(lambda: started(spill, LIMITS), "DuckDB cannot be started")
        attempt(lambda: self._attach(path), text)

    def _attach(self, path: Path) -> None:
        attach = f"ATTACH {literal(str(path.absolute()))} AS stored (READ_ONLY, TYPE duckdb)"
        patiently(lambda: self._connection.execute(attach))
        self._connection.execute("SET GLOBAL enable_external_access = false")
        self._connection.execute("SET GLOBAL lock_configuration = true")

    def columns(self, table: str | None = None) -> dict[str, Stored | None]:
        """Edge cases: a view has none."""
        listing = (
            "SELECT column_name, data_type FROM duckdb_columns() "
            "JOIN duckdb_tables() AS t USING (database_oid, table_oid) "
            "WHERE t.database_name = 'stored' AND t.schema_name = ? AND t.table_name = ?"
        )
        rows = self._connection.execute(listing, [self._schema, table or self._table]).fetchall()
        return {name: TYPES.get(kind.split("(")[0]) for name, kind in rows}

    def lines(self, sql: str, secret: str | None) -> Iterator[Lines]:
        """From a table of their own, which may be in the folder: a result would be in memory as a whole."""
        lines = sql if secret is None else self._in_groups(sql, secret)
        self._connection.execute(f"CREATE OR REPLACE TABLE lines AS {lines}")
        low = 0
        while len(block := self._block(low)):
            yield block
            low += BLOCK_LINES

    def _block(self, low: int) -> Integers:
        some = f"SELECT * FROM lines WHERE rowid >= {low} AND rowid < {low + BLOCK_LINES}"
        return np.column_stack(list(self._connection.execute(some).fetchnumpy().values()))

    def _in_groups(self, sql: str, secret: str) -> str:
        """One group of units after the other, so that what is sorted stays small; what selects the lines of all."""
        rows = self._connection.execute(f"SELECT count(*) FROM {self.relation}").fetchone()[0]
        groups = rows // GROUP_ROWS + 1
        self._connection.execute(f"SET VARIABLE groups = {groups}")
        for group in range(groups):
            self._connection.execute(f"SET VARIABLE one_group = {group}")
            into = "INSERT INTO counted" if group else "CREATE TABLE counted AS"
            self._connection.execute(f"{into} {sql}", {"secret": secret})
        *keys, last = (field[0] for field in self._connection.execute("FROM counted LIMIT 0").description)
        added_up = f"SELECT {', '.join(keys)}, CAST(sum({last}) AS BIGINT) FROM counted GROUP BY ALL"
        return f"{'FROM counted' if last == PERSON else added_up} ORDER BY ALL"

    def close(self) -> None:
        self._connection.close()
