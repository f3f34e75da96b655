"""What sources refuse before anything is counted: joins that nobody owns, people who are not kept, drivers that are not
there, tables that are no tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from bursar.core.domain import Domain, IntegerRange, Unit
from bursar.core.extensions.joins import Parent
from bursar.core.extensions.open_keys import OpenText
from bursar.core.queries import Distinct, Mask, PerPerson, Product, Steps
from bursar.core.source.duckdb import DuckDBSource
from bursar.core.source.servers import mariadb
from bursar.core.source.servers.cell_rule import Keys, coded
from bursar.core.source.servers.duckdb_file import DuckDBFile
from bursar.core.source.servers.kept_cells import Capacity, KeptCells
from bursar.core.source.servers.mariadb import MariaDBServer
from bursar.core.source.servers.postgresql import PostgreSQLServer
from bursar.core.source.servers.sql_source import SqlSource
from bursar.errors import ConfigError, QueryError, SourceError

KEY = bytes(range(32))
DOMAIN = Domain((IntegerRange(name="age", lower=0, upper=3),))
PERSON = Unit(column="person", max_contributions=2)
VISITS = "CREATE TABLE visits AS FROM (VALUES (1, 'ann', 0), (2, 'bob', 1)) AS t(age, person, ward)"
WARDS = "CREATE TABLE wards AS FROM (VALUES (0, 'ann', 3), (1, 'bob', 4)) AS t(id, person, floor)"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(VISITS)
        connection.execute(WARDS)
    return path


def joined(file: Path, *parents: Parent, unit: Unit = PERSON) -> DuckDBSource:
    return DuckDBSource(file, DOMAIN, unit, KEY, 100, table="visits", parents=parents)


def wards(*, public: bool = False, owner: bool = False) -> Parent:
    return Parent(table="wards", keys=(("ward", "id"),), columns=("floor",), public=public, owner=owner)


def test_a_joined_table_says_whose_its_rows_are(file: Path) -> None:
    with pytest.raises(SourceError, match="needs a unit column"):
        joined(file, wards(), unit=Unit())
    with pytest.raises(SourceError, match="or from one owner table"):
        joined(file, wards(owner=True))  # the rows have a unit column of their own
    with pytest.raises(ConfigError, match="by a key that they have"):
        Parent(table="people", keys=(), columns=("sex",), owner=True)


def test_rows_belong_to_whom_an_owner_table_says(file: Path) -> None:
    with duckdb.connect(str(file)) as connection:
        connection.execute("ALTER TABLE visits DROP COLUMN person")
    source = joined(file, wards(owner=True))
    assert source.table(("age",)).tolist() == [0, 1, 1, 0, 0]
    source.close()


def test_a_public_table_has_one_row_for_a_key(file: Path) -> None:
    with duckdb.connect(str(file)) as connection:
        connection.execute("INSERT INTO wards VALUES (1, 'eve', 5)")
    with pytest.raises(SourceError, match="several rows for one key"):
        joined(file, wards(public=True))


def test_where_no_people_are_kept_none_are_counted(file: Path) -> None:
    source = DuckDBSource(file, DOMAIN, Unit(), KEY, 100, table="visits")
    everybody = Product(())
    age = Product((Mask(("age",), (5,), Steps.dense([[0, 1, 2, 3, 0]])),))
    with pytest.raises(QueryError):
        source.distinct(Distinct(everybody))
    with pytest.raises(QueryError):
        source.per_person(PerPerson(groups=everybody, value=age, lower=0, upper=9, bins=((0, 10),), centre=0))
    source.close()


# -- tables that stay in their database ---------------------------------------------------------------------


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no file"):
        DuckDBFile(tmp_path / "nowhere.duckdb", "main", "visits")


def test_a_table_in_a_database_has_no_numbers_of_people(file: Path) -> None:
    source = SqlSource(lambda: DuckDBFile(file, "main", "visits"), DOMAIN, PERSON, KEY, 100)
    age = Product((Mask(("age",), (5,), Steps.dense([[0, 1, 2, 3, 0]])),))
    with pytest.raises(QueryError, match="stays in its database"):
        source.per_person(PerPerson(groups=Product(()), value=age, lower=0, upper=9, bins=((0, 10),), centre=0))


def test_lines_that_come_out_of_order_are_not_taken() -> None:
    capacity = Capacity.of(DOMAIN, Unit(), 100)
    KeptCells(DOMAIN, capacity, [[(0, 2), (1, 5)], [(3, 1)]])
    for blocks in ([[(1, 2), (0, 5)]], [[(2, 2)], [(1, 5)]]):
        with pytest.raises(ValueError, match="not in their order"):
            KeptCells(DOMAIN, capacity, blocks)


def test_a_column_without_a_rule() -> None:
    with pytest.raises(SourceError, match="open columns are read from files and data frames, not here"):
        coded(DuckDBFile.dialect, OpenText(name="age", capacity=3), 0, "age", None)
    with pytest.raises(KeyError):
        Keys.of(DOMAIN).place("height")


@pytest.mark.parametrize(
    ("server", "driver", "needs"),
    [(MariaDBServer, "pymysql", "MariaDB needs a driver"), (PostgreSQLServer, "psycopg", "PostgreSQL needs a driver")],
)
def test_a_driver_that_is_not_installed(server: Any, driver: str, needs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, driver, None)
    with pytest.raises(SourceError, match=needs):
        server("mysql://ann@db/clinic", "clinic", "visits", None, 10)


def test_how_mariadb_is_reached() -> None:
    there = mariadb.parameters("mysql://ann%20b@db:3307/clinic?ssl_ca=ca.pem")
    assert (there["user"], there["host"], there["port"]) == ("ann b", "db", 3307)
    assert there["ssl_verify_cert"]
    assert there["ssl_verify_identity"]
    assert mariadb.parameters("mysql://ann@/clinic?unix_socket=/run/db")["unix_socket"] == "/run/db"


@dataclass
class Scripted:
    """A connection to MariaDB whose statements answer what a test says; `interrupted`: that somebody presses Ctrl-C."""

    answers: dict[str, Sequence[tuple[object, ...]]]
    interrupted: bool = False
    ended: bool = False

    def cursor(self) -> Any:
        said: list[str] = []

        def execute(sql: str, parameters: object = ()) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            said.append(sql)
            self.answers.setdefault(sql, ())

        def fetchall() -> Sequence[tuple[object, ...]]:
            return next((rows for word, rows in self.answers.items() if word in said[-1]), ())

        class Cursor(SimpleNamespace):
            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None: ...

        return Cursor(execute=execute, fetchall=fetchall)

    def thread_id(self) -> int:
        return 7

    def close(self) -> None:
        self.ended = True


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Scripted]]:
    """The connections that are opened next, the first one first."""
    connections: list[Scripted] = []
    monkeypatch.setattr("pymysql.connect", lambda **given: connections.pop(0))
    return connections


def test_a_user_with_roles_may_do_more_than_is_seen(scripted: list[Scripted]) -> None:
    connection = Scripted({"APPLICABLE_ROLES": [("writer",)]})
    scripted.append(connection)
    with pytest.raises(SourceError, match="has roles"):
        MariaDBServer("mysql://ann@db/clinic", "clinic", "visits", None, 10)
    assert connection.ended


def test_ctrl_c_ends_the_statement_in_the_server(scripted: list[Scripted]) -> None:
    first, other = Scripted({"information_schema.TABLES": [("BASE TABLE", "InnoDB")]}), Scripted({})
    scripted += [first, other]
    server = MariaDBServer("mysql://ann@db/clinic", "clinic", "visits", None, 10)
    first.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        list(server.lines("SELECT 1", None))
    assert "KILL QUERY 7" in other.answers
    assert other.ended


@pytest.mark.parametrize(
    ("row", "fault"), [(None, "is not there"), ((1, True, False, False, False, False), "encoding is not UTF-8")]
)
def test_tables_of_postgresql_that_cannot_be_read(row: object, fault: str) -> None:
    server = PostgreSQLServer.__new__(PostgreSQLServer)
    found = SimpleNamespace(fetchone=lambda: row)
    server._connection, server._oids = SimpleNamespace(execute=lambda sql, parameters: found), {}
    assert fault in (server._check("clinic", "visits") or "")
