"""Tables of cells in PostgreSQL: how the data owner's role fills one, and how ours tells that it has not changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bursar.core.source.raw import attempt
from bursar.core.source.servers.cell_table import MARK
from bursar.core.source.servers.postgresql import PostgreSQLServer, with_secret
from bursar.core.source.servers.sql_source import UNREADABLE
from bursar.errors import SourceError

NOTE = """
SELECT obj_description(c.oid, 'pg_class') FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = relnamespace
WHERE nspname = %s AND relname = %s
"""


class PostgreSQLCells(PostgreSQLServer):
    """A connection to a table of cells, for a role that can do no more than read it."""

    def note(self) -> str | None:
        row = self._connection.execute("SELECT obj_description(%s, 'pg_class')", [self._oids[self._table]]).fetchone()
        return None if row is None else row[0]

    def generation(self) -> tuple[str, int]:
        """Every line tells which transaction wrote it, and no later one can have the same number: no line is changed in
        place. More than one transaction means that somebody else has written to the table."""
        counted = f"SELECT CAST(CAST(xmin AS text) AS BIGINT), count(*) FROM {self.relation} GROUP BY 1"
        written = [line for block in self.lines(counted, None) for line in block]
        if len(written) > 1:
            raise ValueError("written to since it was filled")
        return (f"xmin = '{written[0][0]}'", written[0][1]) if written else ("false", 0)


class PostgreSQLFiller(PostgreSQLServer):
    """A connection of a role that reads the raw table and creates tables in the schema `kept`, for `reader` to read.

    Guarantees: readers find the table as it was or as it is filled; nothing that was not made here is dropped.
    """

    only_reads = False

    def __init__(
        self, url: str, schema: str, table: str, seconds: int, beside: Sequence[str] = (), *, cells: str, reader: str
    ) -> None:
        super().__init__(url, schema, table, None, seconds, beside)
        self._kept, self._reader = cells, reader
        unreadable = UNREADABLE.format(name=self.name)
        self._before = attempt(lambda: self._connection.execute(NOTE, [cells, table]).fetchone(), unreadable)
        if self._before is not None and not (self._before[0] or "").startswith(MARK):
            self.close()
            raise SourceError(f"{cells}.{table} is a table of somebody else's: name another schema in source.cells")

    def keep(self, lines: str, secret: str | None, columns: Mapping[str, str], note: str) -> None:
        quoted = self.dialect.name
        old, new = (f"{quoted(self._kept)}.{quoted(name)}" for name in (self._table, f"{self._table}.new"))
        typed = ", ".join(f"{name} {kind} NOT NULL" for name, kind in columns.items())
        self._run(f"CREATE TABLE {new} ({typed})")
        self._connection.execute(*with_secret(f"INSERT INTO {new} {lines}", secret))
        self._run(f"COMMENT ON TABLE {new} IS {self.dialect.literal(note)}")
        self._run(f"GRANT SELECT ON {new} TO {quoted(self._reader)}")
        if self._before is not None:
            self._run(f"DROP TABLE {old}")
        self._run(f"ALTER TABLE {new} RENAME TO {quoted(self._table)}")
        self._run("COMMIT")

    def _run(self, sql: str) -> None:
        self._connection.execute(sql.encode())
