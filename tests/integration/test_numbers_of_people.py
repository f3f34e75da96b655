"""Per-person aggregation in front of a whole session: DuckDB's numbers, clamps, prices, histograms and refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from bursar.answer import Answer
from bursar.core.budget import Budget
from bursar.core.domain import Bins, Categories, Domain, IntegerRange, Neighbours, Unit
from bursar.core.source.duckdb import DuckDBSource
from bursar.errors import QueryError, Unsupported
from bursar.session import Bursar
from bursar.testing import stage
from harness.small import Silence, config

DOMAIN = Domain(
    (
        Categories(name="ward", values=("A", "B", "C")),
        IntegerRange(name="cost", lower=-5, upper=99),
        Bins(name="hours", edges=(0.0, 2.0, 4.0, 8.0)),
    )
)


def visits(rows: int = 500, people: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    cost = rng.integers(-5, 100, rows).astype(object)
    cost[rng.random(rows) < 0.1] = None
    return pd.DataFrame(
        {
            "person": [f"p{who}" for who in rng.integers(0, people, rows)],
            "ward": rng.choice(["A", "B"], rows, p=[0.7, 0.3]),
            "cost": pd.array(cost, dtype="Int64"),
            "hours": rng.choice([1.0, 3.0, 6.0], rows),
        }
    )


FRAME = pd.concat([visits(), pd.DataFrame({"person": ["q1", "q1", "q2"], "ward": "A", "cost": None, "hours": 1.0})])


@pytest.fixture
def asked() -> Callable[..., Bursar]:
    def session(most: int = 50, **changes: Any) -> Bursar:
        unit = Unit(column="person", max_contributions=most)
        facts = {"domain": DOMAIN, "unit": unit, "budget": Budget.of(epsilon=900.0), "table": "visits", **changes}
        settings = config(**facts)

        def open_source(key: bytes) -> DuckDBSource:
            return DuckDBSource(FRAME, settings.domain, settings.unit, key=key, max_rows=10_000)

        return stage(settings, open_source, randomness=Silence())

    return session


def answered(session: Bursar, sql: str, error: int = 30) -> Answer:
    found = session.query(f"{sql} WITH ERROR {error}")
    assert isinstance(found, Answer)
    return found


def known(session: Bursar, sql: str) -> Answer:
    """An answer that is exact enough for something to be known of every line that has somebody."""
    found = answered(session, sql)
    return found if all(None not in line for line in found.values) else answered(session, sql, error=8)


def true_lines(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("visits", FRAME)
        return connection.execute(sql).fetchall()


PER = "(SELECT person, {} FROM visits GROUP BY person)"
TOTAL, ROWS = PER.format("SUM(cost) AS total"), PER.format("COUNT(*) AS n")
UP_TO_20 = PER.format("LEAST(COUNT(*), 20) AS n")
KNOWN = "FROM visits WHERE cost IS NOT NULL"
SAME_AS_DUCKDB = (
    f"SELECT AVG(total) FROM {TOTAL}",
    f"SELECT AVG(total) AS a, SUM(total) AS s, COUNT(*) AS n, COUNT(total) AS m FROM {TOTAL} AS t",
    f"SELECT COUNT(*) FROM {TOTAL} WHERE total > 100",
    f"SELECT COUNT(*) AS n, AVG(total) FROM {TOTAL} WHERE total BETWEEN 10 AND 300",
    f"SELECT SUM(total) FROM {TOTAL} WHERE total <= 20.5 AND total > -3",
    f"SELECT COUNT(*) FILTER (WHERE total >= 200) / COUNT(*) AS share FROM {TOTAL}",
    f"SELECT COUNT(*) FROM {TOTAL} WHERE total IS NOT NULL AND (total > 50) IS NOT TRUE",
    f"SELECT COUNT(*) FROM {ROWS} WHERE (n > 5) IS NOT TRUE",
    f"SELECT COUNT(*) FROM {ROWS} WHERE n > 5",
    f"SELECT COUNT(*) FROM {ROWS} WHERE n = 5",
    f"SELECT AVG(n), SUM(n) FROM {ROWS}",
    f"SELECT SUM(n) / COUNT(*) AS each FROM {ROWS}",
    f"SELECT AVG(total) FROM (SELECT person, LEAST(SUM(cost), 150) AS total {KNOWN} GROUP BY person)",
    f"SELECT SUM(total) FROM (SELECT person, GREATEST(LEAST(SUM(cost), 150), 50) AS total {KNOWN} GROUP BY person)",
    "SELECT AVG(total) FROM (SELECT SUM(cost) AS total, person FROM visits WHERE ward = 'A' GROUP BY person)",
    "SELECT AVG(n) FROM (SELECT person, COUNT(cost) AS n FROM visits WHERE hours < 4 GROUP BY person)",
    "SELECT AVG(n) FROM (SELECT person, COUNT(*) FILTER (WHERE ward = 'B') AS n FROM visits GROUP BY person)",
    "SELECT AVG(n) FROM (SELECT person, COUNT(*) AS n FROM visits WHERE ward = 'B' GROUP BY person)",
    "WITH per AS (SELECT person, SUM(cost) AS total FROM visits GROUP BY person) SELECT AVG(total) FROM per",
    "SELECT SUM(s) FROM (SELECT person, SUM(CASE WHEN ward = 'A' THEN 2 ELSE 1 END) AS s FROM visits GROUP BY person)",
    "SELECT COUNT(*) FROM (SELECT person FROM visits GROUP BY person HAVING COUNT(*) >= 3) AS loyal",
    "SELECT COUNT(*) FROM (SELECT person FROM visits GROUP BY person HAVING COUNT(*) FILTER (WHERE ward = 'B') = 0)",
    f"WITH t AS (SELECT person, SUM(cost) AS a, COUNT(*) AS b {KNOWN} GROUP BY person) SELECT AVG(t.a) FROM t",
    f"SELECT COUNT(*) FROM (SELECT person, SUM(cost) AS a, COUNT(*) AS b {KNOWN} GROUP BY person)",
    "SELECT AVG(n) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY 1 HAVING COUNT(*) > 2) WHERE n < 6",
    f"SELECT MEDIAN(n) FROM {ROWS}",
    f"SELECT AVG(n), QUANTILE_CONT(n, 0.25) AS q1, QUANTILE_DISC(n, 0.9) AS p90 FROM {ROWS}",
    f"SELECT COUNT(*) AS people, MEDIAN(n), 2 * AVG(n) AS twice, SUM(n) FROM {ROWS}",
    f"SELECT MEDIAN(n) FILTER (WHERE n > 5) FROM {ROWS} WHERE n < 12",
    f"SELECT MEDIAN(t) FROM (SELECT person, LEAST(GREATEST(SUM(cost), 0), 200) AS t {KNOWN} GROUP BY person)",
    f"SELECT STDDEV(n) AS s, VAR_POP(n) AS v, COUNT(*) AS people FROM {UP_TO_20}",
    f"SELECT VARIANCE(n) FILTER (WHERE n > 2) AS v FROM {UP_TO_20} WHERE n < 9",
)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("sql", SAME_AS_DUCKDB)
def test_without_noise_it_is_what_duckdb_says(sql: str, asked: Callable[..., Bursar]) -> None:
    (line,) = known(asked(), sql).values
    (expected,) = true_lines(sql)
    assert list(line) == pytest.approx([float(value) for value in expected])


@pytest.mark.parametrize("function", ["MIN", "MAX"])
def test_few_people_lie_beyond_the_least_and_the_greatest_number(function: str, asked: Callable[..., Bursar]) -> None:
    (((value,),), found) = (
        (answer := answered(asked(), f"SELECT {function}(n) FROM {UP_TO_20}", error=20)).values,
        answer,
    )
    ((low,),), ((high,),) = found.low, found.high
    ((truth,),) = true_lines(f"SELECT {function}(n) FROM {UP_TO_20}")
    beyond = f"n {'<' if function == 'MIN' else '>'} {value}"
    assert low <= truth <= high
    assert true_lines(f"SELECT COUNT(*) FROM {UP_TO_20} WHERE {beyond}")[0][0] <= 20
    assert any("20 people lie" in remark for remark in found.remarks)


BY_GROUP = (
    "SELECT ward, AVG(t) FROM (SELECT person, ward, SUM(cost) AS t FROM visits GROUP BY person, ward) GROUP BY ward",
    "SELECT ward, COUNT(*) AS n FROM (SELECT person, ward, COUNT(*) AS n FROM visits GROUP BY ward, person) "
    "WHERE n > 2 GROUP BY ward",
    "SELECT n, COUNT(*) AS k FROM (SELECT person, LEAST(COUNT(*), 20) AS n FROM visits GROUP BY person) GROUP BY n",
    "SELECT n, COUNT(*) AS people FROM (SELECT person, LEAST(COUNT(*), 4) AS n FROM visits WHERE ward = 'A' "
    "GROUP BY person) GROUP BY n",
    f"SELECT CASE WHEN n > 6 THEN 'many' WHEN n > 3 THEN 'some' ELSE 'few' END AS k, COUNT(*) AS c, AVG(n) FROM {ROWS} "
    "GROUP BY k",
    f"SELECT IF(n NOT BETWEEN 1 AND 6, 'many', 'few') AS k, COUNT(*) AS c FROM {ROWS} GROUP BY 1",
    f"SELECT n IN (3, 4, 5) AND NOT n = 4 OR n = 4 AS k, COUNT(*) AS c FROM {ROWS} WHERE n >= 3 GROUP BY k",
    f"SELECT FLOOR(n / 3) * 3 AS k, COUNT(*) AS c, SUM(n) FROM {ROWS} GROUP BY k",
    f"SELECT CASE WHEN total > 200.5 THEN 1 WHEN total <= 200.5 THEN 0.5 END AS k, COUNT(*), SUM(total) FROM {TOTAL} "
    "WHERE total IS NOT NULL GROUP BY k",
    "SELECT CASE WHEN total > 200 THEN 'big' ELSE 'small' END AS k, COUNT(*) FROM (SELECT person, SUM(cost) AS total "
    "FROM visits WHERE cost IS NOT NULL GROUP BY person) GROUP BY k",
    f"SELECT CASE WHEN total > 200 THEN 'big' ELSE 'small' END AS k, COUNT(*), COUNT(total), AVG(total), SUM(total) "
    f"FROM {TOTAL} GROUP BY k",
    "SELECT kind, COUNT(*) AS people FROM (SELECT person, CASE WHEN COUNT(*) > 5 THEN 'often' ELSE 'rarely' END AS kind"
    " FROM visits GROUP BY person) AS t GROUP BY kind",
)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("sql", BY_GROUP)
def test_groups_without_noise_are_what_duckdb_says(sql: str, asked: Callable[..., Bursar]) -> None:
    found = known(asked(), sql)
    shown = {label: list(line) for label, line in zip(found.labels, found.values, strict=True)}
    expected = {line[:1]: [float(value) for value in line[1:]] for line in true_lines(sql)}
    assert sorted(key for key in expected) == sorted(key for key in expected if key in shown)
    for key, numbers in expected.items():
        assert shown[key] == pytest.approx(numbers)
    assert not any(value for key, values in shown.items() if key not in expected for value in values if "COUNT" in sql)


def test_both_keys_of_a_histogram_by_group(asked: Callable[..., Bursar]) -> None:
    sql = (
        "SELECT ward, n, COUNT(*) AS people FROM (SELECT person, ward, LEAST(COUNT(*), 9) AS n FROM visits "
        "GROUP BY person, ward) GROUP BY ward, n ORDER BY people DESC LIMIT 5"
    )
    found = answered(asked(), sql)
    lines = [(*label, *line) for label, line in zip(found.labels, found.values, strict=True)]
    assert sorted(lines) == sorted((*line[:2], float(line[2])) for line in true_lines(sql))  # equal ones in any order
    assert [line[2] for line in lines] == sorted((line[2] for line in lines), reverse=True)


def test_lines_follow_the_keys_as_they_are_written(asked: Callable[..., Bursar]) -> None:
    inner = "SELECT person, ward, LEAST(COUNT(*), 3) AS n FROM visits GROUP BY person, ward"
    found = answered(asked(), f"SELECT n, ward, COUNT(*) AS people FROM ({inner}) GROUP BY n, ward")
    numbers = [label[0] for label in found.labels]
    assert numbers == sorted(numbers)
    by_ward = answered(asked(), f"SELECT ward, n, COUNT(*) AS people FROM ({inner}) GROUP BY ward, n")
    assert dict(zip(found.labels, found.values, strict=True)) == {
        (n, ward): line for (ward, n), line in zip(by_ward.labels, by_ward.values, strict=True)
    }


@pytest.mark.thinned(3)
@pytest.mark.parametrize("by", ["n", "FLOOR(n / 2) * 2", "CASE WHEN n > 2 THEN 'more' ELSE 'one or two' END"])
def test_everybody_is_in_a_line_whatever_rows_they_have(by: str, asked: Callable[..., Bursar]) -> None:
    found = answered(asked(most=4), f"SELECT {by} AS k, COUNT(*) FROM {ROWS} GROUP BY k")
    assert sum(line[0] or 0 for line in found.values) == true_lines("SELECT COUNT(DISTINCT person) FROM visits")[0][0]


def test_a_bound_makes_no_number_of_none(asked: Callable[..., Bursar]) -> None:
    """LEAST(NULL, 150) is 150 in DuckDB; here it is a bound, and the answer says that people without one have none."""
    bounded = "SELECT COUNT(total) FROM (SELECT person, LEAST(SUM(cost), 150) AS total {} GROUP BY person)"
    found = answered(asked(), bounded.format("FROM visits"))
    assert found.value == true_lines(bounded.format(KNOWN))[0][0]
    assert "whatever LEAST and GREATEST say" in str(found)


@pytest.mark.heavy
def test_what_is_added_up_is_not_told_apart_beyond_its_bound(asked: Callable[..., Bursar]) -> None:
    """A person with 8 rows counts as 4 in the sum: the sum over people with more than 6 would be of nobody."""
    by = "SELECT CASE WHEN n > 6 THEN 'many' ELSE 'few' END AS k, AVG(n) FROM"
    with pytest.raises(QueryError, match=r"LEAST\(COUNT\(\*\), 7\) AS n"):
        answered(asked(most=4), f"{by} {ROWS} GROUP BY k")
    with pytest.raises(QueryError, match="counts as 4 at most"):
        answered(asked(most=4), f"SELECT SUM(n) FROM {ROWS} WHERE n > 6")
    sql = f"{by} {PER.format('LEAST(COUNT(*), 7) AS n')} GROUP BY k"
    found = answered(asked(most=4), sql)
    assert {label[0]: line[0] for label, line in zip(found.labels, found.values, strict=True)} == pytest.approx(
        dict(true_lines(sql))
    )


def test_people_with_more_rows_than_are_counted_can_be_asked_for(asked: Callable[..., Bursar]) -> None:
    sql = f"SELECT COUNT(*) FROM {ROWS} WHERE n > 3"
    assert answered(asked(most=3), sql).value == true_lines(sql)[0][0] > 0


def test_only_the_bounded_rows_of_a_person_are_added_up(asked: Callable[..., Bursar]) -> None:
    found = answered(asked(most=1), f"SELECT AVG(total), SUM(total) FROM {TOTAL}")
    assert found.values[0][1] < true_lines(f"SELECT SUM(total) FROM {TOTAL}")[0][0]
    assert "total of a person counts as -5 to 99" in str(found)


@pytest.mark.heavy
def test_the_price_follows_from_the_bound_and_not_from_the_rows(asked: Callable[..., Bursar]) -> None:
    def charge(most: int, bound: int) -> float:
        sql = f"SELECT SUM(total) FROM (SELECT person, GREATEST(LEAST(SUM(cost), {bound}), 0) AS total FROM visits "
        return answered(asked(most=most), f"{sql}GROUP BY person)").charge

    assert charge(5, 100) == pytest.approx(charge(40, 100))
    assert charge(40, 200) == pytest.approx(2 * charge(40, 100), rel=1e-3)
    one = answered(asked(most=9), f"SELECT COUNT(*) FROM {ROWS} WHERE n > 2").charge
    several = "(SELECT person, ward, COUNT(*) AS n FROM visits GROUP BY person, ward)"
    by_ward = answered(asked(most=2), f"SELECT ward, COUNT(*) FROM {several} WHERE n > 1 GROUP BY ward")
    assert by_ward.charge > 2 * one  # two groups of each person, and several numbers at once


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (f"SELECT n, MEDIAN(n) FROM {ROWS} GROUP BY n", "is one of all people"),
        (f"SELECT n, STDDEV(n) FROM {ROWS} GROUP BY n", "is one of all people"),
        (f"SELECT SUM(n - 4) FROM {ROWS} WHERE n > 4", "how many people have more can be asked"),
        (f"SELECT COUNT(*) FROM {TOTAL} WHERE ward = 'A'", "inner WHERE"),
        (f"SELECT COUNT(*) FROM {TOTAL} WHERE total > 3 OR total < 2", "2 ranges of total"),
        (f"SELECT COUNT(*) FROM {TOTAL} WHERE total <> 3", "2 ranges of total"),
        (f"SELECT CASE WHEN total < 9 THEN 1 ELSE 0 END, COUNT(*) FROM {TOTAL} GROUP BY 1", "would be under ELSE"),
        (f"SELECT COUNT(*) FROM {TOTAL} WHERE (total > 50) IS NOT TRUE", "would be among these"),
        (f"SELECT COUNT(*) FILTER (WHERE (total > 50) IS NOT TRUE) FROM {TOTAL}", "would be among these"),
        (f"SELECT CASE WHEN NOT (total > 5 IS TRUE) THEN 1 END, COUNT(*) FROM {TOTAL} GROUP BY 1", "be among these"),
        (f"SELECT CASE WHEN n = 3 THEN 1 ELSE 0 END, COUNT(*) FROM {ROWS} GROUP BY 1", "one range of n"),
        (f"SELECT CASE WHEN n > 1 AND ward = 'A' THEN 1 END, COUNT(*) FROM {ROWS} GROUP BY 1", "inner WHERE"),
        (f"SELECT COUNT(*) FROM {TOTAL} WHERE total IS NULL", "is compared with numbers"),
        (f"SELECT SQRT(n), COUNT(*) FROM {ROWS} GROUP BY 1", "FLOOR(n / 10)"),
        (f"SELECT COUNT(*) FROM {TOTAL} WHERE total > 'x'", "without quotes"),
        (f"SELECT ward, COUNT(*) FROM {TOTAL} GROUP BY ward", "not grouped by in the inner"),
        (f"SELECT total, COUNT(*) FROM {TOTAL} GROUP BY total", "LEAST and GREATEST"),
        (f"SELECT SUM(cost) FROM {TOTAL}", "COUNT(*), and SUM, AVG, STDDEV, MEDIAN, MIN and MAX of total"),
        (f"SELECT COUNT(DISTINCT total) FROM {TOTAL}", "COUNT(*), and SUM, AVG, STDDEV, MEDIAN, MIN and MAX of total"),
        (f"SELECT AVG(a) FROM {PER.format('AVG(cost) AS a')}", "a COUNT or a SUM"),
        (f"SELECT AVG(a) FROM {PER.format('SUM(cost)')}", "a name"),
        (f"SELECT AVG(a), AVG(b) FROM {PER.format('SUM(cost) AS a, COUNT(*) AS b')}", "one number per person"),
        (f"SELECT AVG(a) FROM {PER.format('ward')}", "people are asked about like this"),
        (f"SELECT AVG(a) FROM {PER.format('LEAST(SUM(cost), ward) AS a')}", "compare|bound is one number|constant"),
        (f"SELECT AVG(a) FROM {PER.format('GREATEST(LEAST(SUM(cost), 3), 5) AS a')}", "nothing between them"),
        (f"SELECT AVG(a) FROM {PER.format('LEAST(SUM(cost), -9999) AS a')}", "nothing between them"),
        (f"SELECT AVG(a) FROM {PER.format('SUM(CASE WHEN cost > 3 THEN 0 END) AS a')}", "nothing is added up"),
        (f"SELECT AVG(a) FROM {PER.format('SUM(cost) / COUNT(*) AS a')}", "people are asked about like this"),
        (
            "SELECT AVG(n) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person HAVING SUM(cost) > 2)",
            "FROM, WHERE and GROUP BY",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT person, ward, COUNT(*) AS n FROM visits GROUP BY person, ward)",
            "groups by all that the inner one",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_and_free(sql: str, words: str, asked: Callable[..., Bursar]) -> None:
    session = asked()
    with pytest.raises(QueryError, match=re.escape(words) if "|" not in words else words):
        session.query(f"{sql} WITH ERROR 200")
    assert session.kernel.spent() == 0


def test_rows_that_are_left_out_are_refused_with_what_can_be_asked(asked: Callable[..., Bursar]) -> None:
    session = asked(most=4)
    with pytest.raises(QueryError) as refused:
        session.query(f"SELECT SUM(n - 4) FROM {ROWS} WHERE n > 4 WITH ERROR 20")
    assert (
        answered(session, refused.value.rewrite).value == true_lines(f"SELECT COUNT(*) FROM {ROWS} WHERE n > 4")[0][0]
    )


def test_a_sum_of_nobody_is_nothing_to_add_up(asked: Callable[..., Bursar]) -> None:
    session = asked()
    found = answered(session, f"SELECT COUNT(*) AS n, SUM(total) AS s FROM {TOTAL} WHERE total > 100000")
    assert (found.values[0], found.charge) == ((0.0, 0.0), 0)


def test_people_are_asked_about_under_add_remove_only(asked: Callable[..., Bursar]) -> None:
    unit = Unit(column="person", max_contributions=2, neighbours=Neighbours.REPLACE_ONE)
    with pytest.raises(Unsupported, match="add-remove"):
        asked(unit=unit, public_size=500).query(f"SELECT AVG(total) FROM {TOTAL} WITH ERROR 20")


def test_the_same_question_again_is_free(asked: Callable[..., Bursar]) -> None:
    session = asked()
    assert answered(session, f"SELECT AVG(total) FROM {TOTAL}").charge > 0
    assert answered(session, f"SELECT AVG(t.total) AS mean FROM {TOTAL} AS t").charge == 0
