"""UNION ALL: one purchase for all SELECTs, and what is refused of it."""

from __future__ import annotations

import pytest

from bursar.compile import compile
from bursar.errors import QueryError
from bursar.sql import parse
from harness.exactly import PEOPLE
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


def test_lines_of_each_select_follow_its_keys_as_they_are_written() -> None:
    grouped = "SELECT sex, age, COUNT(*) AS n FROM people WHERE age < 23 GROUP BY sex, age"
    workload = compile(parse(f"{grouped} UNION ALL SELECT 'all', 0, COUNT(*) FROM people"), PEOPLE, "people")
    alone = compile(parse(grouped), PEOPLE, "people")
    assert [label[1:] for label in workload.labels[:-1]] == list(alone.labels)
    assert [sex for sex, _ in alone.labels[:3]] == ["F", "F", "F"]
    rows = [workload.map.take(workload.index[line]).digest for line in range(len(alone.labels))]
    assert rows == [alone.map.take(alone.index[line]).digest for line in range(len(alone.labels))]


def test_selects_with_other_conditions_are_bought_together() -> None:
    text = "SELECT 'a' AS k, COUNT(*) AS n FROM people WHERE age < 2 UNION ALL SELECT 'b', COUNT(*) FROM people"
    filters = "SELECT COUNT(*) FILTER (WHERE age < 2) AS a, COUNT(*) AS b FROM people"
    assert engine().explain(text, within=40).price == pytest.approx(engine().explain(filters, within=40).price)


def test_no_number_is_bought_for_groups_that_nobody_asked_it_for() -> None:
    text = (
        "SELECT region AS k, COUNT(*) AS n FROM people WHERE age < 30 GROUP BY region "
        "UNION ALL SELECT sex, SUM(hours) FROM people GROUP BY sex"
    )
    lines = PEOPLE["region"].size + PEOPLE["sex"].size
    assert compile(parse(text), PEOPLE, "people").map.rows == lines
    sets = "SELECT region, sex, COUNT(*) AS n, SUM(hours) AS h FROM people GROUP BY GROUPING SETS ((region), (sex))"
    assert compile(parse(sets), PEOPLE, "people").map.rows == 2 * lines


def test_groups_that_a_condition_rules_out_are_no_lines() -> None:
    women = "SELECT sex, COUNT(*) AS n FROM people WHERE sex = 'F' GROUP BY sex"
    workload = compile(parse(f"{women} UNION ALL SELECT 'all', COUNT(*) FROM people"), PEOPLE, "people")
    assert workload.labels == ((0, "F"), (1, None))


def test_an_error_for_an_output_is_for_all_selects_that_share_it() -> None:
    text = f"{BY_BOTH} WITH ERROR 40 ON n"
    assert engine().explain(text).price == pytest.approx(engine().explain(BY_BOTH, within=40).price)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM t", "UNION ALL is available"),
        ("SELECT COUNT(*) FROM t EXCEPT SELECT COUNT(*) FROM t", "UNION ALL is available"),
        ("SELECT a, COUNT(*) FROM t GROUP BY a UNION ALL SELECT COUNT(*) FROM t", "equally many columns"),
        ("SELECT COUNT(*) FROM t UNION ALL SELECT COUNT(*) FROM u", "about one table"),
        (
            "WITH g AS (SELECT a, COUNT(*) AS n FROM t GROUP BY a) SELECT a, 2 * n FROM g UNION ALL SELECT n, a FROM t",
            "all about the table, or all about the lines",
        ),
        ("SELECT COUNT(*) AS n FROM t UNION ALL SELECT COUNT(*) FROM t ORDER BY m", "a column of the first SELECT"),
        (" UNION ALL ".join(["SELECT COUNT(*) AS n FROM t"] * 17), "at most 16 SELECTs"),
        (
            "WITH u0 AS (SELECT a, COUNT(*) AS n FROM t GROUP BY a), "
            + ", ".join(f"u{n} AS (SELECT * FROM u{n - 1} UNION ALL SELECT * FROM u{n - 1})" for n in range(1, 41))
            + " SELECT * FROM u40",
            "counted as often as another UNION ALL reads it",
        ),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(QueryError, match=says):
        parse(text)


def test_lines_may_be_put_below_each_other_again() -> None:
    twice = "WITH g AS (SELECT a, COUNT(*) AS n FROM t GROUP BY a), u AS (SELECT * FROM g UNION ALL SELECT * FROM g)"
    first, second = parse(f"{twice} SELECT * FROM u UNION ALL SELECT a, 2 * n FROM u").stages
    assert len(first.beside) == len(second.beside) == 1


def test_a_column_has_one_type() -> None:
    text = "SELECT age AS k, COUNT(*) AS n FROM people GROUP BY age UNION ALL SELECT 'all', COUNT(*) FROM people"
    with pytest.raises(QueryError, match="values of one type"):
        engine().explain(text, within=40)
