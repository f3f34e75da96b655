"""A DuckDB file as a server of tables: counted in place, without being read into memory as `DuckDBSource` does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bursar.core.source.duckdb import started
from bursar.core.source.raw import Connection, attempt, literal, patiently
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


class DuckDBDialect(Dialect):
    def text(self, value: str) -> str:
        return f'(CAST({value} AS VARCHAR) COLLATE "binary")'

    def matches(self, value: str, pattern: str) -> str:
        return f"regexp_full_match({value}, '{pattern}')"

    def quotient(self, number: str, by: int) -> str:
        return f"({number} // {by})"

    def length(self, value: str) -> str:
        return f"length({value})"

    def sha256(self, value: str) -> str:
        return f"sha256({value})"

    def leading_number(self, hashed: str) -> str:
        return self.as_integer(f"'0x' || substr({hashed}, 1, 15)")


class DuckDBFile:
    """The file is opened for reading only; nothing else is in reach. Other processes may read it too, and not write."""

    dialect: Dialect = DuckDBDialect()
    secret = "$secret"

    def __init__(self, path: Path, schema: str, table: str, spill: Path | None = None) -> None:
        self.name = f"the table {schema}.{table} in {path}"
        self.relation = f"stored.{self.dialect.name(schema)}.{self.dialect.name(table)}"
        self._schema, self._table = schema, table
        if not attempt(path.is_file, f"{path} cannot be reached"):
            raise SourceError(f"there is no file {path}")
        text = f"{path} cannot be read as a DuckDB file, or another process is writing to it"
        self._connection = attempt(lambda: started(spill), "DuckDB cannot be started")
        attempt(lambda: self._attach(path), text)

    def _attach(self, path: Path) -> None:
        attach = f"ATTACH {literal(str(path.absolute()))} AS stored (READ_ONLY, TYPE duckdb)"
        patiently(lambda: self._connection.execute(attach))
        self._connection.execute("SET GLOBAL enable_external_access = false")
        self._connection.execute("SET GLOBAL lock_configuration = true")
        self._connection.execute("BEGIN")

    def columns(self) -> dict[str, Stored | None]:
        """Edge cases: a view has none."""
        listing = (
            "SELECT column_name, data_type FROM duckdb_columns() "
            "JOIN duckdb_tables() AS t USING (database_oid, table_oid) "
            "WHERE t.database_name = 'stored' AND t.schema_name = ? AND t.table_name = ?"
        )
        rows = self._connection.execute(listing, [self._schema, self._table]).fetchall()
        return {name: TYPES.get(kind.split("(")[0]) for name, kind in rows}

    def lines(self, sql: str, secret: str | None) -> Iterator[Lines]:
        cursor: Connection = self._connection.execute(sql, {} if "$secret" not in sql else {"secret": secret})
        while block := cursor.fetchmany(BLOCK_LINES):
            yield block

    def close(self) -> None:
        self._connection.close()
