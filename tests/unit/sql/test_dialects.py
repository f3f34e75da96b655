"""What other databases write differently means the same question here; and joins of groups, which are one question."""

from __future__ import annotations

import pytest

from bursar.errors import QueryError
from bursar.sql import parse
from bursar.sql.render import render

SAME = [
    ("DATE_TRUNC(joined, MONTH)", "DATE_TRUNC('month', joined)"),  # BigQuery
    ("FORMAT_DATE('%Y-%m', joined)", "STRFTIME(joined, '%Y-%m')"),
    ("DATE_FORMAT(joined, '%Y-%m')", "STRFTIME(joined, '%Y-%m')"),  # MySQL
    ("TO_CHAR(joined, 'YYYY-MM')", "STRFTIME(joined, '%Y-%m')"),  # PostgreSQL, Oracle, Snowflake
    ("TO_CHAR(joined, 'FMMonth YYYY')", "STRFTIME(joined, '%B %Y')"),
    ("TO_CHAR(joined, 'Dy')", "STRFTIME(joined, '%a')"),
    ("TO_CHAR(joined, 'ID')", "CAST(EXTRACT(ISODOW FROM joined) AS VARCHAR)"),
    ("DATE_PART('year', joined)", "EXTRACT(YEAR FROM joined)"),
    ("IFF(age < 30, 'young', 'old')", "CASE WHEN age < 30 THEN 'young' ELSE 'old' END"),  # Snowflake
]


@pytest.mark.parametrize(("theirs", "ours"), SAME)
def test_another_spelling_is_the_same_group(theirs: str, ours: str) -> None:
    one, other = (_plainly(f"SELECT {term} AS g, COUNT(*) AS n FROM people GROUP BY g") for term in (theirs, ours))
    assert one == other
    assert one != _plainly("SELECT age AS g, COUNT(*) AS n FROM people GROUP BY g")


MOMENT = "TO_TIMESTAMP('2021-02-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (f"COUNT(*) FROM people WHERE joined >= {MOMENT}", "COUNT(*) FROM people WHERE joined >= DATE '2021-02-01'"),
        (
            "COUNT(*) FROM people WHERE joined >= TO_DATE('2021-02-01', 'YYYY-MM-DD')",
            "COUNT(*) FROM people WHERE joined >= DATE '2021-02-01'",
        ),
        ("MEAN(ZEROIFNULL(age)) FROM people", "AVG(COALESCE(age, 0)) FROM people"),
        ("QUANTILE_CONT(age, CAST(0.5 AS DOUBLE)) FROM people", "QUANTILE_CONT(age, 0.5) FROM people"),
    ],
)
def test_another_spelling_is_the_same_question(theirs: str, ours: str) -> None:
    assert _plainly(f"SELECT {theirs}") == _plainly(f"SELECT {ours}")


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("joined >= TO_DATE('2021-02-01', 'YYYY-DD-MM')", "TO_DATE"),
        ("AGE(joined) > INTERVAL 1 YEAR", "whole years and months"),
        ("EXTRACT(DAY FROM AGE(DATE '2023-01-01', joined)) > 3", "whole years and months"),
        ("TO_CHAR(joined, 'Day') = 'Monday   '", "TO_CHAR"),
    ],
)
def test_what_would_mean_something_else_is_refused(condition: str, says: str) -> None:
    with pytest.raises(QueryError, match=says):
        parse(f"SELECT COUNT(*) FROM people WHERE {condition}")


def _plainly(text: str) -> str:
    return render(parse(text)).casefold()


GROUPS = "(SELECT region, COUNT(*) AS n FROM people WHERE {} GROUP BY region)"


def test_a_join_of_groups_is_one_question_with_a_filter_for_each_side() -> None:
    sides = GROUPS.format("sex = 'F' AND age < 30"), GROUPS.format("age >= 30 AND sex = 'F'")
    query = parse(f"SELECT a.region, a.n, b.n AS m FROM {sides[0]} AS a JOIN {sides[1]} AS b ON a.region = b.region")
    assert [key.name for key in query.keys] == ["region"]
    assert len(query.aggregates) == 2
    assert "sex" in str(query.where)
    assert "age" not in str(query.where)


REFUSED = {
    "one side has fewer groups": (GROUPS.format("region = 'x'"), "ON a.region = b.region"),
    "joined by numbers": (GROUPS.format("age < 30"), "ON a.n = b.n"),
    "joined by a condition, too": (GROUPS.format("age < 30"), "ON a.region = b.region AND b.n > 5"),
    "other groups": ("(SELECT sex AS region, COUNT(*) AS n FROM people GROUP BY sex)", "ON a.region = b.region"),
    "another table": ("(SELECT region, COUNT(*) AS n FROM places GROUP BY region)", "ON a.region = b.region"),
    "every pair of groups": (GROUPS.format("age < 30"), "ON TRUE"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_any_other_join_of_groups_is_refused(case: str) -> None:
    side, on = REFUSED[case]
    with pytest.raises(QueryError):
        parse(f"SELECT a.region, a.n, b.n AS m FROM {GROUPS.format('TRUE')} AS a JOIN {side} AS b {on}")


@pytest.mark.parametrize("join", ["ASOF JOIN", "SEMI JOIN", "NATURAL JOIN"])
def test_a_join_of_another_kind_is_refused(join: str) -> None:
    side = GROUPS.format("TRUE")
    with pytest.raises(QueryError):
        parse(f"SELECT a.region, a.n, b.n AS m FROM {side} AS a {join} {side} AS b ON a.region = b.region")
