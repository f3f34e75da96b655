"""Programs that are no Python: psql, PostgreSQL's JDBC driver, psqlODBC."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.patience import PATIENCE
from harness.wire import DATABASE, Served, served

JDBC = Path("/usr/share/java/postgresql.jar")
ODBC_DRIVERS = Path("/etc/odbcinst.ini")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("wire")) as running:
        yield running


def psql(server: Served, *commands: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    if shutil.which("psql") is None:
        pytest.skip("psql is not installed")
    words = ["psql", "--no-psqlrc", *(word for command in commands for word in ("-c", command))]
    environment = {**os.environ, **server.environment()}
    return subprocess.run(
        words, env=environment, input=stdin, capture_output=True, text=True, check=False, timeout=PATIENCE
    )


def test_psql_asks_and_browses(server: Served) -> None:
    before = server.records()
    done = psql(
        server, r"\d", r"\dt", r"\d people", r"\d+ people", r"\l", r"\du", r"\dn", r"\df", r"\dp", r"\dx", r"\dT"
    )
    assert (done.returncode, done.stderr.replace("Did not find any relations.", "").strip()) == (0, "")
    for word in (
        "age        | integer",
        "income",
        "numeric",
        "known by month",
        "public | people | table",
        DATABASE,
        "ana",
    ):
        assert word.replace("age        |", "age") in done.stdout.replace("age    |", "age"), word
    assert server.records() == before
    done = psql(server, "SELECT region, COUNT(*) AS n FROM people GROUP BY region ORDER BY region")
    assert "East" in done.stdout
    assert "(4 rows)" in done.stdout
    assert done.stderr.startswith("NOTICE:  error ±60 or less")
    assert server.records() > before


def test_psql_shows_where_a_question_is_wrong(server: Served) -> None:
    done = psql(server, "SELECT COUNT(*)\nFROM people WHERE salary > 1")
    assert 'ERROR:  column "salary" does not exist\nLINE 2: FROM people WHERE salary > 1\n' in done.stderr
    done = psql(server, "EXPLAIN SELECT COUNT(*) FROM people WHERE income > 12500")
    assert "HINT:  " in done.stderr
    assert "income >= 10000" in done.stderr


def test_psql_reads_in_pieces_and_describes(server: Served) -> None:
    script = r"""
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex \gdesc
SELECT region, sex, COUNT(*) AS n FROM people GROUP BY 1, 2 \crosstabview
\copy (SELECT sex, COUNT(*) FROM people GROUP BY sex) TO STDOUT CSV HEADER
\set FETCH_COUNT 2
SELECT joined, COUNT(*) FROM people GROUP BY joined;
"""
    done = psql(server, stdin=script)
    assert "ERROR" not in done.stderr
    assert " n      | bigint" in done.stdout
    assert "sex,count" in done.stdout
    assert "(13 rows)" in done.stdout
    assert done.stdout.count("2020-") == 12


@pytest.mark.heavy
def test_jdbc(server: Served) -> None:
    if shutil.which("java") is None or not JDBC.exists():
        pytest.skip("Java or PostgreSQL's JDBC driver is not installed")
    before = server.records()
    url = f"jdbc:postgresql://{server.host}:{server.port}/{DATABASE}?options=-c%20bursar.error=70"
    program = Path(__file__).with_name("Session.java")
    environment = {**os.environ, "PGPASSWORD": server.token}
    words = ["java", "-Xshare:auto", "-cp", str(JDBC), str(program), url]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    told = [line.partition(" ") for line in done.stdout.splitlines()]
    said = {word: rest for word, _, rest in told}
    assert said["schemas"] == "information_schema pg_catalog public"
    assert said["tables"] == "people"
    assert said["columns"] == "age sex region income member joined"
    assert said["types"] == "int4 text text numeric bool date"
    assert (said["keys"], said["foreign"], said["indexes"]) == ("", "", "")
    assert said["described"] == "int8 int4"
    asked = [rest for word, _, rest in told if word == "asked"]
    assert len(asked) == 7
    assert len(set(asked)) == 1, "the same question is the same answer, by text and in binary"
    assert asked[0].endswith(" true"), "the small print comes as a warning"
    assert said["pieces"] == "North East Old South other"
    assert (said["refused"], said["first"], said["valid"]) == ("42703", "North", "true")
    assert server.records() > before


@pytest.mark.heavy
def test_odbc(server: Served) -> None:
    pyodbc = pytest.importorskip("pyodbc")
    if not ODBC_DRIVERS.exists() or "PostgreSQL Unicode" not in ODBC_DRIVERS.read_text():
        pytest.skip("psqlODBC is not installed")
    words = f"Server={server.host};Port={server.port};Database={DATABASE};Uid=ana;Pwd={server.token}"
    for options in ("", ";UseDeclareFetch=1;Fetch=2"):
        link = pyodbc.connect(f"Driver=PostgreSQL Unicode;{words}{options}")
        cursor = link.cursor()
        cursor.execute("SELECT sex, COUNT(*) FROM people WHERE age > ? AND member = ? GROUP BY sex", 23, True)
        assert [label for label, _ in cursor.fetchall()] == ["F", "M", "other", None]
        assert [row.table_name for row in cursor.tables(schema="public")] == ["people"]
        assert [row.column_name for row in cursor.columns("people")][:2] == ["age", "sex"]
        assert cursor.primaryKeys("people").fetchall() == cursor.foreignKeys("people").fetchall() == []
        link.commit()
        link.close()
