"""Spark as a server of tables: its dialect, and the files of a table as one list that must stay what it is."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from bursar.core.source.raw import attempt
from bursar.core.source.servers.dialect import Dialect, Stored
from bursar.core.source.servers.file_list import AWAY, FileList, file_list
from bursar.core.source.servers.sql_source import BLOCK_LINES
from bursar.errors import SourceError

if TYPE_CHECKING:
    from bursar.core.source.servers.kept_cells import Lines

TYPES = {
    "string": Stored.TEXT,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Stored.INTEGER),
    "decimal": Stored.DECIMAL,
    **dict.fromkeys(("float", "double"), Stored.FLOAT),
    "boolean": Stored.BOOLEAN,
    "date": Stored.DATE,
    "timestamp_ntz": Stored.LOCAL_TIME,
    "timestamp": Stored.ZONED_TIME,
}
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",  # what does not fit is an error, never another number
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.legacy.charVarcharAsString": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
}
CONNECT_PORT, CONNECT_SECONDS = 15002, 10
TALKERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")
"""What of PySpark writes an error with the row's value to stderr, even where the error is caught."""


class SparkDialect(Dialect):
    def name(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def literal(self, text: str) -> str:
        """By its bytes: how a backslash is read depends on settings."""
        return f"decode(X'{text.encode().hex()}', 'UTF-8')"

    def text(self, value: str) -> str:
        return f"(CAST({value} AS STRING) COLLATE UTF8_BINARY)"

    def matches(self, value: str, pattern: str) -> str:
        return f"rlike({value}, r'^({pattern})\\z')"

    def days_since(self, day: str, first: date) -> str:
        return f"datediff({day}, {self.day(first)})"

    def quotient(self, number: str, by: int) -> str:
        return f"({number} DIV {by})"

    def sha256(self, value: str) -> str:
        return f"sha2({value}, 256)"

    def keys(self, keys: Sequence[str], name: str) -> str:
        return f"(SELECT posexplode(array({', '.join(keys)})) AS (cell, key_)) AS {name}"


class SparkFiles:
    """Parquet files, or one version of a Delta or Iceberg table, that a Spark session reads: one in this process, or
    one in a server that speaks Spark Connect.

    Guarantees: files that were added, removed or overwritten while the pass ran are found by a second look at the list
    of names, sizes and times, and fail it. (Spark reads a file that was overwritten in place without a word.) Of a
    Delta table only the files of its version count, and they have the sizes that its log tells.
    """

    dialect: Dialect = SparkDialect()
    secret = ":secret"
    relation = "bursar_rows"

    def __init__(self, url: str, files: str, token: str | None = None, beside: Mapping[str, str] = {}) -> None:
        """`beside` has the files of each table that is joined with that of `files`."""
        self.name = f"the files {files}"
        try:
            import pyspark.sql  # noqa: F401
        except ImportError:
            raise SourceError("Spark needs a driver: pip install 'pyspark[connect]'") from None
        away = AWAY.format(name=self.name)
        self.beside = {table: f"{self.relation}_{place}" for place, table in enumerate(beside)}
        patterns = {self.relation: files, **{self.beside[table]: theirs for table, theirs in beside.items()}}
        self._remote, self._files = url.startswith("sc:"), dict[str, FileList]()
        self._spark = attempt(lambda: _connected(url, token) if self._remote else _session(url), away)
        try:
            self._files |= {view: file_list(self._spark, pattern) for view, pattern in patterns.items()}
            self._before = attempt(self._listed, away)
            for view, listed in self._files.items():
                attempt(partial(_name_rows, view, listed), away)
        except BaseException:
            attempt(self.close, away)
            raise

    def columns(self, table: str | None = None) -> dict[str, Stored | None]:
        view = self.relation if table is None else self.beside[table]
        return {name: TYPES.get(kind.split("(")[0]) for name, kind in self._spark.table(view).dtypes}

    def lines(self, sql: str, secret: str | None) -> Iterator[Lines]:
        result = self._spark.sql(sql, args={} if secret is None else {"secret": secret}).toArrow()
        if self._listed() != self._before:
            raise SourceError("files changed meanwhile")
        for batch in result.to_batches(max_chunksize=BLOCK_LINES):
            yield np.column_stack([column.to_numpy() for column in batch.columns])

    def close(self) -> None:
        for view in self._files:
            self._spark.catalog.dropTempView(view)
        if self._remote:
            self._spark.stop()

    def _listed(self) -> list[list[tuple[Any, ...]]]:
        return [each.listed() for each in self._files.values()]


def _name_rows(view: str, files: FileList) -> None:
    files.rows().createOrReplaceTempView(view)


def _connected(url: str, token: str | None) -> Any:
    """A session of its own in a server that speaks Spark Connect; the driver alone would look for one for minutes."""
    from pyspark.sql.connect.session import SparkSession

    parts = urlsplit(url)
    socket.create_connection((parts.hostname or "localhost", parts.port or CONNECT_PORT), CONNECT_SECONDS).close()
    token_part = "" if token is None else f"{'' if '/;' in url else '/'};token={token}"
    return _silent(SparkSession.builder.remote(url + token_part).create())


def _session(url: str) -> Any:
    """The session that a url names; one that is running in this process is used again."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("bursar")
    master = url if url.startswith("spark://") else url.removeprefix("spark:") or "local[*]"
    running = builder.master(master).config("spark.ui.enabled", "false").getOrCreate()
    running.sparkContext.setLogLevel("OFF")
    return _silent(running.newSession())


def _silent(spark: Any) -> Any:
    """The session with our settings, and nothing that writes errors elsewhere."""
    from pyspark.logger import PySparkLogger

    for talker in TALKERS:
        PySparkLogger.getLogger(talker).disabled = True
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    return spark
