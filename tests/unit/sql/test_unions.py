"""UNION ALL: one purchase for all SELECTs, and what is refused of it."""

from __future__ import annotations

import pytest

from bursar.errors import QueryError
from bursar.sql import parse
from harness.small import engine

BY_BOTH = "SELECT age AS k, COUNT(*) AS n FROM people GROUP BY age UNION ALL SELECT NULL, COUNT(*) FROM people"


def test_it_costs_what_the_sets_of_groups_cost() -> None:
    sets = "SELECT age, COUNT(*) AS n FROM people GROUP BY GROUPING SETS ((age), ())"
    both, grouped = (engine().explain(text, within=40) for text in (BY_BOTH, sets))
    assert both.price == pytest.approx(grouped.price)


def test_lines_come_in_the_order_of_the_selects() -> None:
    answer = engine().query(BY_BOTH, within=40)
    assert answer.keys == ("k",)
    assert answer.labels[-1] == (None,)
    parts = engine().query("SELECT age, COUNT(*) AS n FROM people GROUP BY age", within=40)
    assert len(answer.labels) == len(parts.labels) + 1


def test_selects_with_other_conditions_are_bought_together() -> None:
    text = "SELECT 'a' AS k, COUNT(*) AS n FROM people WHERE age < 2 UNION ALL SELECT 'b', COUNT(*) FROM people"
    filters = "SELECT COUNT(*) FILTER (WHERE age < 2) AS a, COUNT(*) AS b FROM people"
    assert engine().explain(text, within=40).price == pytest.approx(engine().explain(filters, within=40).price)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM t", "UNION ALL is available"),
        ("SELECT COUNT(*) FROM t EXCEPT SELECT COUNT(*) FROM t", "UNION ALL is available"),
        ("SELECT a, COUNT(*) FROM t GROUP BY a UNION ALL SELECT COUNT(*) FROM t", "equally many columns"),
        ("SELECT COUNT(*) FROM t UNION ALL SELECT COUNT(*) FROM u", "about one table"),
        (
            "SELECT a, COUNT(*) AS n FROM t GROUP BY a UNION ALL SELECT b, COUNT(*) FROM t WHERE c = 1 GROUP BY b",
            "the same numbers under the same condition",
        ),
        (
            "WITH g AS (SELECT a, COUNT(*) AS n FROM t GROUP BY a) SELECT * FROM g UNION ALL SELECT 1, COUNT(*) FROM t",
            "all about the table, or all about the lines",
        ),
        ("SELECT COUNT(*) AS n FROM t UNION ALL SELECT COUNT(*) FROM t ORDER BY m", "a column of the first SELECT"),
        (" UNION ALL ".join(["SELECT COUNT(*) AS n FROM t"] * 17), "at most 16 SELECTs"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(QueryError, match=says):
        parse(text)


def test_a_column_has_one_type() -> None:
    text = "SELECT age AS k, COUNT(*) AS n FROM people GROUP BY age UNION ALL SELECT 'all', COUNT(*) FROM people"
    with pytest.raises(QueryError, match="values of one type"):
        engine().explain(text, within=40)
