"""A table `people` of two thousand rows in each kind of database, and whoever may read it: what a source opens."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pytest

from bursar.core.domain import Categories, Domain, IntegerRange, Unit
from bursar.core.extensions.joins import Parent
from bursar.core.source.servers.mariadb import MariaDBServer
from bursar.core.source.servers.postgresql import PostgreSQLServer
from bursar.core.source.servers.spark import SparkFiles
from bursar.core.source.servers.sql_source import Server, SqlSource
from harness.servers import PASSWORD, MariaDB, PostgreSQL, administer

KEY = b"a key that nobody else has......"
TOWN = Domain((Categories(name="town", values=("x", "y")), IntegerRange(name="age", lower=0, upper=99)))
TRUE = (667, 1333)
"""People in x and in y."""
QUESTION = "SELECT town, COUNT(*) FROM people GROUP BY town"
CONFIG = """
dataset = "people"

[source]
url = "{url}"
table = "people"
max_rows = 10000
{more}
[privacy]
unit = {{ column = "id" }}
max_contributions = 2

[budget]
epsilon = 1.0

[columns.town]
values = ["x", "y"]

[columns.age]
lower = 0
upper = 99
"""

_numbers = count(1)


def read(source: SqlSource) -> SqlSource:
    """The source, after its one pass over all rows."""
    source.table(())
    return source


class Place(ABC):
    """Where the table is."""

    url: str
    more = ""
    """What else a config says of the source."""

    @abstractmethod
    def connect(self, table: str = "people", seconds: int = 60, beside: Sequence[str] = ()) -> Server: ...

    def open(
        self,
        domain: Domain = TOWN,
        table: str = "people",
        seconds: int = 60,
        unit: Unit | None = None,
        parents: Sequence[Parent] = (),
    ) -> SqlSource:
        beside = [parent.table for parent in parents]
        connect = partial(self.connect, table, seconds, beside)
        return read(SqlSource(connect, domain, unit or Unit(), KEY, 10_000, parents))

    def config(self, folder: Path, more: str = "") -> Path:
        path = folder / "people.toml"
        path.write_text(CONFIG.format(url=self.url, more=self.more + more))
        return path


class PostgreSQLPlace(Place):
    """A database of its own, and a role that may read the table."""

    def __init__(self, server: PostgreSQL) -> None:
        number = next(_numbers)
        self.server, self.database, self.role = server, f"clinic_{number}", f"role_{number}"
        self.url = server.url(self.database, self.role)
        administer(
            server.url(), f"CREATE DATABASE {self.database}", f"CREATE ROLE {self.role} LOGIN PASSWORD '{PASSWORD}'"
        )
        self.run(
            f"""CREATE TABLE people (id text, town text, age int, day date);
            INSERT INTO people SELECT i / 2, CASE i % 3 WHEN 0 THEN 'x' ELSE 'y' END, i % 120,
              date '2021-01-01' + i % 90 FROM generate_series(0, 1999) AS i;
            GRANT SELECT ON people TO {self.role}"""
        )

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        return administer(self.server.url(self.database), sql)

    def drop(self) -> None:
        administer(self.server.url(), f"DROP DATABASE {self.database} WITH (FORCE)")

    def connect(self, table: str = "people", seconds: int = 60, beside: Sequence[str] = ()) -> PostgreSQLServer:
        return PostgreSQLServer(self.url, "public", table, PASSWORD, seconds, beside)


class MariaDBPlace(Place):
    """A database of its own, and a user that may read the table."""

    def __init__(self, server: MariaDB) -> None:
        number = next(_numbers)
        self.server, self.database, self.user = server, f"clinic_{number}", f"user_{number}"
        self.url = server.url(self.database, self.user)
        server.administer(f"CREATE DATABASE {self.database}", f"CREATE USER {self.user} IDENTIFIED BY '{PASSWORD}'")
        self.run(
            "CREATE TABLE people (id VARCHAR(20), town VARCHAR(20), age INT) ENGINE = InnoDB",
            "INSERT INTO people SELECT seq DIV 2, IF(seq % 3 = 0, 'x', 'y'), seq % 120 FROM seq_0_to_1999",
            f"GRANT SELECT ON people TO {self.user}",
        )

    def run(self, *statements: str) -> list[Any]:
        return self.server.administer(f"USE {self.database}", *statements)

    def connect(self, table: str = "people", seconds: int = 60, beside: Sequence[str] = ()) -> MariaDBServer:
        return MariaDBServer(self.url, self.database, table, PASSWORD, seconds, beside)


class SparkPlace(Place):
    """Two Parquet files in a folder, for a Spark in this process."""

    url = "spark:local[2]"

    def __init__(self, folder: Path, url: str = url) -> None:
        self.url = url
        pytest.importorskip("pyspark")
        if shutil.which("java") is None:
            pytest.skip("Spark needs Java (Debian: default-jdk-headless)")
        self.files = f"{folder}/*.parquet"
        self.more = f'files = "{self.files}"\n'
        for number in (0, 1):
            self.write(folder / f"people.{number}.parquet", f"range({number * 1000}, {number * 1000 + 1000})")

    @staticmethod
    def write(path: Path, rows: str) -> None:
        town = "CASE i % 3 WHEN 0 THEN 'x' ELSE 'y' END AS town"
        made = f"CAST(i // 2 AS VARCHAR) AS id, {town}, CAST(i % 120 AS INTEGER) AS age"
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT {made} FROM {rows} AS r(i)) TO '{path}'")

    def connect(self, table: str = "people", seconds: int = 60, beside: Sequence[str] = ()) -> SparkFiles:
        return SparkFiles(self.url, self.files)
