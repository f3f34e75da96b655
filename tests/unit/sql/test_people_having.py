"""HAVING of a SELECT by person: people are chosen by their number, as WHERE around it does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bursar.errors import QueryError
from bursar.sql.per_person import PeopleQuery, parse_people

BY_PERSON = "SELECT who, COUNT(*) AS n FROM visits GROUP BY who"


def read(text: str) -> PeopleQuery:
    found = parse_people(text, "who")
    assert found is not None
    return replace(found, text="")


@pytest.mark.parametrize(
    ("text", "plainly"),
    [
        (f"SELECT COUNT(*) FROM ({BY_PERSON} HAVING COUNT(*) >= 3) t", f'({BY_PERSON}) t WHERE ("n" >= 3)'),
        (
            f"SELECT COUNT(*) FROM ({BY_PERSON} HAVING n < 3) t WHERE n > 1",
            f"({BY_PERSON}) t WHERE (n > 1) AND (n < 3)",
        ),
        (
            "WITH t AS (SELECT who, COUNT(*) AS n FROM visits GROUP BY 1 HAVING COUNT(*) > 2) SELECT COUNT(*) FROM t",
            f'({BY_PERSON}) t WHERE ("n" > 2)',
        ),
    ],
)
def test_it_is_where_around_it(text: str, plainly: str) -> None:
    assert read(text) == read(f"SELECT COUNT(*) FROM {plainly}")


def test_a_number_that_is_not_selected_gets_a_name() -> None:
    found = read("SELECT COUNT(*) FROM (SELECT who FROM visits GROUP BY who HAVING SUM(cost) > 100) t")
    inner = "SELECT who, SUM(cost) AS number FROM visits GROUP BY who"
    assert found == read(f'SELECT COUNT(*) FROM ({inner}) t WHERE "number" > 100')


def test_two_numbers_of_each_person_are_refused() -> None:
    with pytest.raises(QueryError, match="the inner SELECT has FROM, WHERE and GROUP BY"):
        read(f"SELECT AVG(n) FROM ({BY_PERSON} HAVING SUM(cost) > 100) t")


def test_an_aggregate_keeps_its_filter() -> None:
    inner = "SELECT who, COUNT(*) FILTER (WHERE kind = 'a') AS number FROM visits GROUP BY who"
    having = "SELECT who FROM visits GROUP BY who HAVING COUNT(*) FILTER (WHERE kind = 'a') = 0"
    assert read(f"SELECT COUNT(*) FROM ({having}) t") == read(f'SELECT COUNT(*) FROM ({inner}) t WHERE "number" = 0')
    case = "CASE WHEN {} > 0 THEN 'some' ELSE 'none' END"
    inside = inner.replace("COUNT(*) FILTER (WHERE kind = 'a') AS number", "{}")
    filtered = "COUNT(*) FILTER (WHERE kind = 'a')"
    found = read(f"SELECT c, COUNT(*) FROM ({inside.format(case.format(filtered) + ' AS c')}) t GROUP BY c")
    named = inside.format(f'{filtered} AS "number of c"')
    plain = case.format('"number of c"')
    assert found == read(f"SELECT {plain} AS c, COUNT(*) FROM ({named}) t GROUP BY {plain}")


BOTH = "SELECT who, SUM(cost) AS total, COUNT(*) AS n FROM visits GROUP BY who"


@pytest.mark.parametrize(
    ("outer", "kept"),
    [
        ("SELECT AVG(total) FROM ({}) t WHERE total > 3", "SUM(cost) AS total"),
        ("SELECT N, COUNT(*) FROM ({}) t GROUP BY N", "COUNT(*) AS n"),
        ("SELECT COUNT(*) FROM ({}) t", "COUNT(*) AS n"),
        ("WITH t AS ({}) SELECT MEDIAN(t.total) FROM t", "SUM(cost) AS total"),
    ],
)
def test_numbers_that_nothing_asks_for_are_left_out(outer: str, kept: str) -> None:
    assert read(outer.format(BOTH)) == read(outer.format(f"SELECT who, {kept} FROM visits GROUP BY who"))


@pytest.mark.parametrize("outer", ["SELECT AVG(total / n) FROM ({}) t", "SELECT * FROM ({}) t"])
def test_several_numbers_that_are_asked_for_are_refused(outer: str) -> None:
    with pytest.raises(QueryError, match="one number per person"):
        read(outer.format(BOTH))
