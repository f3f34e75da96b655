"""PostgreSQL as a server of tables: its dialect, who may read, and one repeatable-read transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from bursar.core.source.raw import attempt
from bursar.core.source.servers.dialect import Dialect, Stored
from bursar.core.source.servers.sql_source import BLOCK_LINES
from bursar.errors import SourceError

if TYPE_CHECKING:
    from bursar.core.source.servers.kept_cells import Lines

TYPES = {
    **dict.fromkeys(("text", "varchar", "name", "uuid", "enum"), Stored.TEXT),
    "bpchar": Stored.PADDED,
    **dict.fromkeys(("int2", "int4", "int8"), Stored.INTEGER),
    "numeric": Stored.DECIMAL,
    **dict.fromkeys(("float4", "float8"), Stored.FLOAT),
    "bool": Stored.BOOLEAN,
    "date": Stored.DATE,
    "timestamp": Stored.LOCAL_TIME,
    "timestamptz": Stored.ZONED_TIME,
}

ALIVE = {"connect_timeout": "10", "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3"}
"""Unless the url says otherwise: a network that was cut is noticed within half a minute."""

READABLE = """
SELECT c.relkind IN ('r', 'p') AND has_table_privilege(c.oid, 'SELECT'), has_any_column_privilege(c.oid, 'SELECT')
FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = relnamespace WHERE nspname = %s AND relname = %s
"""

FOUND = """
SELECT c.oid, c.relkind IN ('r', 'p'),
  EXISTS (SELECT FROM pg_inherits JOIN pg_class AS below ON below.oid = inhrelid
    WHERE inhparent = c.oid AND NOT below.relispartition),
  EXISTS (SELECT FROM pg_class AS leaf WHERE (leaf.oid = c.oid
      OR leaf.oid IN (SELECT relid FROM pg_partition_tree(c.oid)))
    AND (leaf.relrowsecurity OR leaf.relkind NOT IN ('r', 'p'))),
  current_setting('server_encoding') = 'UTF8',
  EXISTS (SELECT FROM pg_roles WHERE pg_has_role(oid, 'MEMBER') AND (rolsuper OR rolcreaterole OR rolcreatedb
    OR rolreplication OR rolbypassrls OR rolname IN
      ('pg_write_all_data', 'pg_write_server_files', 'pg_read_server_files', 'pg_execute_server_program')))
  OR has_database_privilege(current_database(), 'CREATE')
  OR EXISTS (SELECT FROM pg_namespace WHERE nspname !~ '^pg_' AND has_schema_privilege(oid, 'CREATE'))
  OR EXISTS (SELECT FROM pg_class AS t JOIN pg_namespace AS n ON n.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND nspname !~ '^pg_' AND nspname <> 'information_schema'
    AND (pg_has_role(relowner, 'MEMBER')
      OR has_table_privilege(t.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
      OR has_any_column_privilege(t.oid, 'INSERT, UPDATE, REFERENCES')))
FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = relnamespace WHERE nspname = %s AND relname = %s
"""
"""The table; whether it is one, has heirs, hides rows; the encoding; and whether the role can do more than read."""

COLUMNS = """
WITH RECURSIVE base AS (
  SELECT attname, atttypid AS type FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
  UNION ALL SELECT attname, typbasetype FROM base JOIN pg_type ON oid = type WHERE typtype = 'd'
)
SELECT attname, CASE typtype WHEN 'e' THEN 'enum' ELSE typname END FROM base JOIN pg_type ON oid = type
WHERE typtype = 'e' OR typtype = 'b' AND typnamespace = 'pg_catalog'::regnamespace
"""

GRANTS = """
try: CREATE ROLE reader LOGIN PASSWORD '...'
     GRANT USAGE ON SCHEMA {schema} TO reader
     GRANT SELECT ON {schema}.{table} TO reader
and that role in the url, with nothing else granted to it, or to PUBLIC"""


class PostgreSQLDialect(Dialect):
    real_type = "DOUBLE PRECISION"
    fence = " OFFSET 0"  # what is below is computed once

    def text(self, value: str) -> str:
        return f'(CAST({value} AS text) COLLATE "C")'

    def matches(self, value: str, pattern: str) -> str:
        return f"{value} ~ '^({pattern})\\Z'"

    def decimal_as_real(self, value: str) -> str:
        """A numeric can be larger, and nearer to 0, than any float, and the cast would fail."""
        return (
            f"CASE WHEN {value} = 'NaN' THEN NULL WHEN {value} >= 1e300 THEN {self.real(1e300)} "
            f"WHEN {value} <= -1e300 THEN {self.real(-1e300)} WHEN {value} = 0 THEN {self.real(0)} "
            f"WHEN abs({value}) < 1e-300 THEN sign({value}) * {self.real(1e-300)} ELSE {self.as_real(value)} END"
        )

    def whole_of_decimal(self, value: str) -> str:
        inside = f"{value} > -1e37 AND {value} < 1e37"
        return f"CASE WHEN {inside} THEN {super().whole_of_decimal(value)} END"

    def day_of(self, value: str, stored: Stored) -> str:
        local = f"{value} AT TIME ZONE 'UTC'" if stored is Stored.ZONED_TIME else value
        return f"CAST({local} AS DATE)"

    def sha256(self, value: str) -> str:
        return f"sha256(convert_to({value}, 'UTF8'))"

    def leading_number(self, hashed: str) -> str:
        return f"CAST(CAST('x' || substr(encode({hashed}, 'hex'), 1, 15) AS bit(60)) AS BIGINT)"


def with_secret(sql: str, secret: str | None) -> tuple[bytes, dict[str, str | None]]:
    """A statement and its one parameter, as the driver takes them."""
    return sql.replace("%", "%%").replace("%%(secret)s", "%(secret)s").encode(), {"secret": secret}


class PostgreSQLServer:
    """One connection with one repeatable-read, read-only transaction, in which the tables cannot be truncated.

    `url` is as libpq takes it, without a password; `seconds` is how long a statement may take; `beside` are tables of
    the same schema that are joined with the one that is counted.
    """

    dialect: Dialect = PostgreSQLDialect()
    secret = "CAST(%(secret)s AS text)"
    only_reads = True

    def __init__(
        self, url: str, schema: str, table: str, password: str | None, seconds: int, beside: Sequence[str] = ()
    ) -> None:
        try:
            import psycopg
        except ImportError:
            raise SourceError("PostgreSQL needs a driver: pip install 'psycopg[binary]'") from None
        self.name = f"the table {schema}.{table}"
        tables = {name: f"{self.dialect.name(schema)}.{self.dialect.name(name)}" for name in (table, *beside)}
        self._table, self._oids, self.relation = table, dict[str, int](), tables[table]
        self.beside = {name: tables[name] for name in beside}
        away = f"{self.name} cannot be reached: the server is away, or does not let this role in"
        given = attempt(lambda: psycopg.conninfo.conninfo_to_dict(url), away)
        watched = psycopg.conninfo.make_conninfo(url, **{name: ALIVE[name] for name in ALIVE.keys() - given.keys()})
        self._connection = attempt(lambda: psycopg.connect(watched, autocommit=True, password=password), away)
        self._chunk = 1000 if psycopg.capabilities.has_stream_chunked() else 1
        try:
            readable = attempt(lambda: self._begin(seconds, schema, tables), away)
            for each in tables:
                fault: str | None = "is not there, or not for this role"
                if each in readable:
                    fault = attempt(partial(self._check, schema, each), away)
                if fault is not None:
                    grants = GRANTS.format(schema=schema, table=each) if "this role" in fault else ""
                    raise SourceError(f"the table {schema}.{each} {fault}{grants}")
        except BaseException:
            self._connection.close()
            raise

    def columns(self, table: str | None = None) -> dict[str, Stored | None]:
        all_of = "SELECT attname FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped"
        oid = self._oids[table or self._table]
        stored: dict[str, Stored | None] = dict.fromkeys(name for (name,) in self._connection.execute(all_of, [oid]))
        for name, kind in self._connection.execute(COLUMNS, [oid]):
            stored[name] = TYPES.get(kind)
        return stored

    def lines(self, sql: str, secret: str | None) -> Iterator[Lines]:
        """Edge cases: Ctrl-C cancels the statement in the server; the driver sees to that."""
        with self._connection.cursor() as cursor:
            lines = cursor.stream(*with_secret(sql, secret), binary=True, size=self._chunk)
            while block := list(islice(lines, BLOCK_LINES)):
                yield block

    def close(self) -> None:
        self._connection.close()

    def _begin(self, seconds: int, schema: str, tables: Mapping[str, str]) -> list[str]:
        """Begin the transaction; the tables that are there and may be read."""
        for setting in (
            "search_path = pg_catalog",
            "TimeZone = 'UTC'",
            "standard_conforming_strings = on",
            "row_security = off",  # where rows would be hidden, fail
            f"statement_timeout = '{seconds}s'",
        ):
            self._connection.execute(f"SET {setting}".encode())
        rights = {name: self._connection.execute(READABLE, [schema, name]).fetchone() for name in tables}
        writing = "READ ONLY" if self.only_reads else "READ WRITE"
        self._connection.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ, {writing}".encode())
        for name, right in rights.items():
            if right is not None and right[0]:  # before the snapshot: a TRUNCATE in between would empty it inside it
                self._connection.execute(f"LOCK TABLE {tables[name]} IN ACCESS SHARE MODE".encode())
        return [name for name, right in rights.items() if right is not None and any(right)]

    def _check(self, schema: str, table: str) -> str | None:
        """Why this is not a table that can be read by this role; None where it is."""
        row = self._connection.execute(FOUND, [schema, table]).fetchone()
        if row is None:
            return "is not there"
        self._oids[table], plain, heirs, guarded, utf8, writes = row
        if not plain:
            return "is no table: a view may compute one row from another\ntry: what it reads, or a copy: docs/deploy.md"
        if heirs:
            return "has tables that inherit from it; use partitions, or one table"
        if guarded:
            return "has row-level security, or a foreign table among its partitions: rows would be hidden or come later"
        if not utf8:
            return "is in a database whose encoding is not UTF-8"
        too_much = writes and self.only_reads
        return "can be changed by this role, which must do no more than read" if too_much else None
