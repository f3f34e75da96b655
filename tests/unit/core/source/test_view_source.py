"""Rows of a view: computed once from the tables of a DuckDB file, bounded per person after the join, then gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow
import pytest

from bursar.core.domain import Categories, Domain, IntegerRange, Unit
from bursar.core.extensions.declared_view import one_select
from bursar.core.source.duckdb import DuckDBSource
from bursar.errors import SourceError

KEY = bytes(range(32))
DOMAIN = Domain(
    (Categories(name="sex", values=("F", "M"), outside=0, null=0), IntegerRange(name="cost", lower=0, upper=9))
)
UNIT = Unit(column="person", max_contributions=2)
JOINED = "SELECT person, sex, cost FROM visits JOIN people USING (person)"
PEOPLE = [(1, "F"), (2, "M"), (3, "F"), (4, "M")]
VISITS = [(1, 3), (1, 4), (1, 5), (1, 6), (2, 3), (3, 9), (3, 9), (3, 9)]
SECRET_VALUE = "a value that nobody may see"


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    return stored(tmp_path / "clinic.duckdb", PEOPLE, VISITS)


def stored(path: Path, people: list[tuple[int, str]], visits: list[tuple[int, int]]) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people (person INTEGER, sex VARCHAR)")
        connection.execute("CREATE TABLE visits (person INTEGER, cost INTEGER)")
        connection.execute("CREATE TABLE notes (person INTEGER, note VARCHAR)")
        connection.execute("INSERT INTO notes VALUES (1, ?)", [SECRET_VALUE])
        for table, rows in (("people", people), ("visits", visits)):
            if rows:
                connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
    return path


def opened(path: object, view: str | None = JOINED, unit: Unit = UNIT, **options: Any) -> DuckDBSource:
    facts: dict[str, Any] = {"key": KEY, "max_rows": 1000, "table": "visits", "view": view} | options
    return DuckDBSource(path, DOMAIN, unit, **facts)


def refusal(path: object, view: str, **options: Any) -> str:
    with pytest.raises(SourceError) as caught:
        opened(path, view, **options)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert SECRET_VALUE not in str(caught.value)
    return str(caught.value)


def test_a_person_counts_at_most_so_often_after_the_join(clinic: Path) -> None:
    assert opened(clinic).table(("sex",)).tolist() == [4, 1]  # two of four, two of three equal ones, one
    free = Unit(column="person", max_contributions=100)
    assert opened(clinic, unit=free).table(("sex",)).tolist() == [7, 1]
    assert opened(clinic, unit=free).table(("cost",)).tolist()[3:7] == [2, 1, 1, 1]


def test_a_data_frame_has_its_rows_already() -> None:
    frame = pyarrow.table({"person": [1, 1, 1, 2], "sex": ["F", "F", "F", "M"], "cost": [3, 4, 5, 6]})
    assert opened(frame).table(("sex",)).tolist() == [2, 1]


def test_a_join_that_multiplies_rows_stays_within_the_bound(clinic: Path) -> None:
    pairs = "SELECT a.person, sex, a.cost FROM visits a JOIN visits b USING (person) JOIN people USING (person)"
    assert opened(clinic, pairs).table(()).item() == 5


@pytest.mark.thinned(2)
@pytest.mark.parametrize("person", [1, 2, 3, 4])
def test_without_a_person_only_their_rows_are_gone(tmp_path: Path, person: int) -> None:
    full = opened(stored(tmp_path / "full.duckdb", PEOPLE, VISITS)).table(("sex", "cost"))
    people, visits = [row for row in PEOPLE if row[0] != person], [row for row in VISITS if row[0] != person]
    less = opened(stored(tmp_path / "less.duckdb", people, visits)).table(("sex", "cost"))
    assert np.all(full >= less)
    assert int((full - less).sum()) <= UNIT.max_contributions


def test_a_view_that_breaks_the_promise_would_be_noticed_here(tmp_path: Path) -> None:
    """The twin of the test above: a join through a key that people share moves rows of others."""
    shared = "SELECT a.person, sex, b.cost FROM visits a JOIN visits b ON a.cost = b.cost JOIN people ON TRUE"
    free = Unit(column="person", max_contributions=1000)
    full = opened(stored(tmp_path / "full.duckdb", PEOPLE, VISITS), shared, unit=free).table(("sex", "cost"))
    visits = [row for row in VISITS if row[0] != 2]
    less = opened(stored(tmp_path / "less.duckdb", PEOPLE, visits), shared, unit=free).table(("sex", "cost"))
    own = 1 * len(PEOPLE) * 2  # the visit of person 2 meets itself and that of person 1
    assert int((full - less).sum()) > own


def test_content_is_that_of_the_rows_whatever_the_view_says(clinic: Path) -> None:
    same = f"WITH joined AS ({JOINED}) SELECT cost, sex, person FROM joined ORDER BY cost -- other words"
    assert opened(clinic).content() == opened(clinic, same).content()
    assert opened(clinic).content() != opened(clinic, JOINED + " WHERE cost > 3").content()


def test_views_and_schemas_of_the_file_can_be_named(clinic: Path) -> None:
    with duckdb.connect(str(clinic)) as connection:
        connection.execute(f"CREATE VIEW both_tables AS {JOINED}")
        connection.execute("CREATE SCHEMA more")
        connection.execute("CREATE TABLE more.coded AS FROM both_tables")
    assert opened(clinic, "FROM both_tables;").content() == opened(clinic).content()
    assert opened(clinic, "SELECT * FROM more.coded").content() == opened(clinic).content()


@pytest.mark.heavy
def test_names_that_are_used_inside_are_free_for_the_view(clinic: Path) -> None:
    with duckdb.connect(str(clinic)) as connection:
        for name in ("coded", "cells", "keys0", "keys1", "viewed", "frame"):
            connection.execute(f"CREATE TABLE {name} AS {JOINED}")
    expected = opened(clinic).content()
    for name in ("coded", "cells", "keys0", "keys1", "viewed", "frame"):
        assert opened(clinic, f"SELECT * FROM {name}").content() == expected


def test_nothing_raw_is_left(clinic: Path) -> None:
    source = opened(clinic)
    tables = source._connection.execute("SELECT database_name, table_name FROM duckdb_tables()").fetchall()
    assert sorted(tables) == [("memory", name) for name in ("cells", "people", "totals")]
    with pytest.raises(duckdb.Error):
        source._connection.execute("SET enable_external_access = true")
    with pytest.raises(duckdb.Error):
        source._connection.execute("FROM stored.people")


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "view",
    [
        "SELECT 1 AS person, 'F' AS sex, 1 AS cost FROM read_csv('{folder}/other.csv')",
        "SELECT 1 AS person, 'F' AS sex, 1 AS cost FROM '{folder}/other.csv'",
        "SELECT 1 AS person, 'F' AS sex, 1 AS cost FROM read_text('{folder}/other.csv')",
        "SELECT person, sex, cost FROM nobody",
        "SELECT person, sex, CAST(note AS INTEGER) AS cost FROM notes JOIN people USING (person)",
        "SELECT person, sex, error(note) AS cost FROM notes JOIN people USING (person)",
        "SELECT person, sex, $1 AS cost FROM people",
        "SELECT person, sex, 1 AS cost FROM people; -- a word behind",
    ],
)
def test_what_cannot_be_run_has_one_text(clinic: Path, view: str) -> None:
    (clinic.parent / "other.csv").write_text("a\n1\n")
    said = refusal(clinic, view.format(folder=clinic.parent))
    assert said == (
        f"the view over {clinic} cannot be run: it is one SELECT over tables of that file, and reaches nothing else"
    )


@pytest.mark.parametrize(
    "view", ["DELETE FROM people", "SELECT 1; SELECT 2", "", "COPY people TO 'x.csv'", "ATTACH 'x'"]
)
def test_only_one_select_is_a_view(clinic: Path, view: str) -> None:
    assert refusal(clinic, view) == "the view cannot be read: it must be one SELECT"


def test_the_parser_says_where_a_view_is_no_sql(clinic: Path) -> None:
    assert 'syntax error at or near ")"' in refusal(clinic, "SELECT 1) AS x, (SELECT 2")
    assert one_select(" SELECT 1 ; ") == "SELECT 1 "


def test_the_unit_is_a_column_of_the_view(clinic: Path) -> None:
    said = refusal(clinic, "SELECT sex, cost FROM visits JOIN people USING (person)")
    assert said == f"the view over {clinic} has no column person"
    assert "needs a unit column" in refusal(clinic, JOINED, unit=Unit())


def test_a_view_is_about_a_duckdb_file(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("person,sex,cost\n1,F,3\n")
    assert refusal(path, JOINED) == f"{path} has no tables that a view could be about; a DuckDB file has"
    assert "cannot be read as a DuckDB file" in refusal(_garbage(tmp_path / "a.duckdb"), JOINED)


def _garbage(path: Path) -> Path:
    path.write_bytes(b"no database" * 1000)
    return path


def test_too_many_rows_of_a_view(clinic: Path) -> None:
    assert refusal(clinic, JOINED, max_rows=5) == f"the view over {clinic} has more rows than max_rows = 5"
