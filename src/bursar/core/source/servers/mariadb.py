"""MariaDB as a server of tables: its dialect, who may read, and one consistent snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from bursar.core.source.raw import attempt
from bursar.core.source.servers.dialect import Dialect, Stored
from bursar.core.source.servers.sql_source import BLOCK_LINES
from bursar.errors import SourceError

if TYPE_CHECKING:
    from bursar.core.source.servers.kept_cells import Lines

TYPES = {
    **dict.fromkeys(("varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "uuid"), Stored.TEXT),
    "char": Stored.PADDED,
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), Stored.INTEGER),
    "decimal": Stored.DECIMAL,
    **dict.fromkeys(("float", "double"), Stored.FLOAT),
    "date": Stored.DATE,
    "datetime": Stored.LOCAL_TIME,
    "timestamp": Stored.ZONED_TIME,
}
GRACE = 30
"""Seconds that a server may be silent after its own limit of a statement; then the network counts as cut."""

READING = ("USAGE", "SELECT", "SHOW VIEW", "SHOW DATABASES")

SETTINGS = (
    "SET NAMES utf8mb4",
    "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES,ONLY_FULL_GROUP_BY'",
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION default_regex_flags = ''",
    "SET SESSION optimizer_switch = 'derived_merge=off'",  # what is below is computed once
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
)

NO_TABLE = "is no plain table of InnoDB: a view may compute one row from another, and others keep no snapshot"

GRANTS = """
try: CREATE USER reader IDENTIFIED BY '...'
     GRANT SELECT ON {schema}.{table} TO reader
and that user in the url, with nothing else granted to it"""


class MariaDBDialect(Dialect):
    integer_type = "SIGNED"

    def name(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def text(self, value: str) -> str:
        """Of the collations, utf8mb4_bin pads: 'a' would be 'a '."""
        return f"(CONVERT({value} USING utf8mb4) COLLATE utf8mb4_nopad_bin)"

    def matches(self, value: str, pattern: str) -> str:
        return f"{value} REGEXP '^({pattern})\\z'"

    def finite_order(self, value: str) -> str:
        return value  # neither NaN nor an infinity can be stored

    def day_of(self, value: str, stored: Stored) -> str:
        """Days such as 2024-00-00, which an old sql_mode lets in, are none."""
        none = f"MONTH({value}) = 0 OR DAYOFMONTH({value}) = 0"
        return f"CASE WHEN {none} THEN NULL ELSE CAST({value} AS DATE) END"

    def days_since(self, day: str, first: date) -> str:
        return f"DATEDIFF({day}, {self.day(first)})"

    def quotient(self, number: str, by: int) -> str:
        return f"({number} DIV {by})"

    def sha256(self, value: str) -> str:
        return f"SHA2({value}, 256)"

    def group_key(self, value: str) -> str:
        """Sorting, and with it the borders of groups and windows, looks at the first max_sort_length bytes alone."""
        return self.sha256(value)

    def of_group(self, value: str) -> str:
        return f"min({value})"

    def keys(self, keys: Sequence[str], name: str) -> str:
        lines = ", ".join(f"({key}, {place})" for place, key in enumerate(keys))
        return f"(WITH listed(key_, cell) AS (VALUES {lines}) SELECT * FROM listed) AS {name}"


class MariaDBServer:
    """One connection with one consistent snapshot. Only InnoDB keeps one; other engines are refused.

    `url` is mysql://user@host:port/database, with ?unix_socket= or ?ssl_ca= where these are needed.

    Edge cases: a table that is emptied or altered meanwhile is an error of the server, not fewer rows.
    """

    dialect: Dialect = MariaDBDialect()
    secret = "@bursar_secret"

    def __init__(
        self, url: str, schema: str, table: str, password: str | None, seconds: int, beside: Sequence[str] = ()
    ) -> None:
        try:
            import pymysql
            from pymysql.cursors import SSCursor
        except ImportError:
            raise SourceError("MariaDB needs a driver: pip install pymysql") from None
        self.name = f"the table {schema}.{table}"
        tables = {name: f"{self.dialect.name(schema)}.{self.dialect.name(name)}" for name in (table, *beside)}
        self._schema, self._table, self.relation = schema, table, tables[table]
        self.beside = {name: tables[name] for name in beside}
        given = {**parameters(url), "password": password or "", "cursorclass": SSCursor}
        given["read_timeout"] = seconds + GRACE
        self._connect: Callable[[], Any] = lambda: pymysql.connect(**given)
        away = f"{self.name} cannot be reached: the server is away, or does not let this user in"
        self._connection = attempt(self._connect, away)
        try:
            name, fault = attempt(lambda: self._begin(seconds), away)
            if fault is not None:
                grants = GRANTS.format(schema=schema, table=name) if "user" in fault else ""
                raise SourceError(f"the table {schema}.{name} {fault}{grants}")
        except BaseException:
            self._connection.close()
            raise

    def columns(self, table: str | None = None) -> dict[str, Stored | None]:
        listing = (
            "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        )
        return {name: TYPES.get(kind) for name, kind in self._rows(listing, self._schema, table or self._table)}

    def lines(self, sql: str, secret: str | None) -> Iterator[Lines]:
        """Edge cases: Ctrl-C cancels the statement in the server, over a second connection."""
        if secret is not None:
            self._rows("SET @bursar_secret = %s", secret)
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql)
                while block := cursor.fetchmany(BLOCK_LINES):
                    yield block
        except KeyboardInterrupt:
            self._cancel()
            raise

    def close(self) -> None:
        self._connection.close()

    def _cancel(self) -> None:
        with suppress(Exception):
            other = self._connect()
            other.cursor().execute(f"KILL QUERY {self._connection.thread_id()}")
            other.close()

    def _rows(self, sql: str, *parameters: str) -> Sequence[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            rows: Sequence[Any] = cursor.fetchall()
            return rows

    def _begin(self, seconds: int) -> tuple[str, str | None]:
        """Begin the snapshot; a table, and why it is not one that can be read by this user, or None where all are."""
        for setting in (*SETTINGS, f"SET SESSION max_statement_time = {seconds}"):
            self._rows(setting)
        granted = [
            self._rows(f"SELECT PRIVILEGE_TYPE FROM information_schema.{kind}_PRIVILEGES")
            for kind in ("USER", "SCHEMA", "TABLE", "COLUMN")
        ]
        if any(right not in READING for rights in granted for (right,) in rights):
            return self._table, "can be changed by this user, who must do no more than read"
        if self._rows("SELECT ROLE_NAME FROM information_schema.APPLICABLE_ROLES"):
            return self._table, "is read by a user who has roles, and must do no more than read: grant SELECT to it"
        listing = "SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        for name in (self._table, *self.beside):
            tables = self._rows(listing, self._schema, name)
            if not tables:
                return name, "is not there, or not for this user"
            if tables[0] != ("BASE TABLE", "InnoDB"):
                return name, NO_TABLE
        self._rows("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        return self._table, None


def parameters(url: str) -> dict[str, Any]:
    """What the driver is given, but for the password."""
    parts = urlsplit(url)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    given: dict[str, Any] = {"user": unquote(parts.username or ""), "charset": "utf8mb4", "autocommit": True}
    if "unix_socket" in options:
        given["unix_socket"] = options["unix_socket"]
    else:
        given |= {"host": parts.hostname or "localhost", "port": parts.port or 3306}
    if "ssl_ca" in options:
        given |= {"ssl_ca": options["ssl_ca"], "ssl_verify_cert": True, "ssl_verify_identity": True}
    return given
