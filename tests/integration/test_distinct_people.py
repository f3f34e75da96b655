"""COUNT(DISTINCT ...) in front of a whole session: DuckDB's numbers, error bars, prices, refusals and free repeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from bursar.answer import Answer
from bursar.core.budget import Budget
from bursar.core.domain import Bins, Categories, Dates, Domain, IntegerRange, Neighbours, Period, Unit
from bursar.core.noise.system import Randomness
from bursar.core.queries import Distinct
from bursar.core.source.duckdb import DuckDBSource
from bursar.errors import BursarError, QueryError, Unsupported
from bursar.session import Bursar
from bursar.testing import stage
from harness.small import Silence, config

DOMAIN = Domain(
    (
        Categories(name="ward", values=("A", "B", "C")),
        IntegerRange(name="age", lower=0, upper=99),
        Bins(name="cost", edges=(0.0, 10.0, 20.0, 50.0)),
        Dates(
            name="day", first=pd.Timestamp("2024-01-01").date(), last=pd.Timestamp("2024-03-31").date(), by=Period.MONTH
        ),
    )
)


def visits(rows: int = 400, people: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, rows), unit="D")
    return pd.DataFrame(
        {
            "person": [f"p{who}" for who in rng.integers(0, people, rows)],
            "ward": rng.choice(["A", "B"], rows),
            "age": rng.integers(0, 100, rows),
            "cost": rng.uniform(0, 50, rows),
            "day": days.date,
        }
    )


FRAME = visits()


@pytest.fixture
def asked() -> Callable[..., Bursar]:
    def session(randomness: Randomness | None = None, most: int = 50, **changes: Any) -> Bursar:
        unit = Unit(column="person", max_contributions=most)
        facts = {"domain": DOMAIN, "unit": unit, "budget": Budget.of(epsilon=100.0), "table": "visits", **changes}
        settings = config(**facts)

        def open_source(key: bytes) -> DuckDBSource:
            return DuckDBSource(FRAME, settings.domain, settings.unit, key=key, max_rows=10_000)

        return stage(settings, open_source, randomness=randomness or Silence())

    return session


def answered(session: Bursar, sql: str) -> Answer:
    found = session.query(f"{sql} WITH ERROR 20")
    assert isinstance(found, Answer)
    return found


SAME_AS_DUCKDB = (
    "SELECT COUNT(DISTINCT person) FROM visits",
    "SELECT COUNT(DISTINCT person) AS people FROM visits WHERE age < 30 AND ward = 'A'",
    "SELECT COUNT(DISTINCT person) FROM visits WHERE age < 5 OR ward = 'B'",
    "SELECT COUNT(DISTINCT person) FILTER (WHERE age >= 50), COUNT(DISTINCT person) FROM visits",
    "SELECT COUNT(DISTINCT CASE WHEN ward = 'A' THEN person END) FROM visits",
    "SELECT COUNT(DISTINCT IF(ward = 'A', person, NULL)) FROM visits",
    "SELECT COUNT(DISTINCT PERSON) FROM visits WHERE ward IN ('A', 'B')",
    "SELECT COUNT(DISTINCT ward) FROM visits",
    "SELECT COUNT(DISTINCT age) FROM visits WHERE ward = 'A'",
    "SELECT COUNT(person) FROM visits WHERE ward = 'B'",
    "SELECT COUNT(*) / COUNT(DISTINCT person) AS each FROM visits",
    "SELECT COUNT(DISTINCT person) - COUNT(DISTINCT age) AS more FROM visits",
    "SELECT COUNT(DISTINCT person) FROM visits WHERE 1 = 0",
)
BY_GROUP = (
    "SELECT ward, COUNT(DISTINCT person) AS n FROM visits GROUP BY ward",
    "SELECT ward, COUNT(DISTINCT person) AS n, COUNT(*) AS rows, COUNT(DISTINCT age) FROM visits GROUP BY ward",
    "SELECT ward, COUNT(DISTINCT person) AS n FROM visits WHERE age BETWEEN 20 AND 60 GROUP BY ward",
    "SELECT CASE WHEN age < 50 THEN 'young' ELSE 'old' END AS band, COUNT(DISTINCT person) AS n FROM visits "
    "GROUP BY CASE WHEN age < 50 THEN 'young' ELSE 'old' END",
    "SELECT ward, COUNT(DISTINCT age) AS n FROM visits GROUP BY ward",
    "SELECT ward, COUNT(DISTINCT person) AS n FROM visits GROUP BY ward HAVING COUNT(DISTINCT person) > 70",
)


def true_lines(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("visits", FRAME)
        return connection.execute(sql).fetchall()


@pytest.mark.sampled(12)
@pytest.mark.parametrize("sql", SAME_AS_DUCKDB)
def test_without_noise_it_is_what_duckdb_says(sql: str, asked: Callable[..., Bursar]) -> None:
    (line,) = answered(asked(), sql).values
    (expected,) = true_lines(sql)
    assert list(line) == pytest.approx(list(expected))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sql", BY_GROUP)
def test_groups_without_noise_are_what_duckdb_says(sql: str, asked: Callable[..., Bursar]) -> None:
    found = answered(asked(), sql)
    shown = {label: list(line) for label, line in zip(found.labels, found.values, strict=True)}
    expected = {line[:1]: list(line[1:]) for line in true_lines(sql)}
    assert {key: shown[key] for key in expected} == expected
    assert not any(any(values) for key, values in shown.items() if key not in expected)


def test_rollup_has_a_total_of_people_that_is_no_sum(asked: Callable[..., Bursar]) -> None:
    found = answered(asked(), "SELECT ward, COUNT(DISTINCT person) AS n FROM visits GROUP BY ROLLUP (ward)")
    numbers = {label[0]: line[0] for label, line in zip(found.labels, found.values, strict=True)}
    assert numbers["(all)"] == FRAME["person"].nunique() < numbers["A"] + numbers["B"]


def test_the_price_is_that_of_one_person_in_few_groups(asked: Callable[..., Bursar]) -> None:
    session = asked(most=8)
    one = answered(session, "SELECT COUNT(DISTINCT person) FROM visits").charge
    filtered = answered(session, "SELECT COUNT(DISTINCT person) FROM visits WHERE ward = 'A'").charge
    rows = answered(session, "SELECT COUNT(*) FROM visits").charge
    assert rows == pytest.approx(8 * one)
    assert filtered == pytest.approx(one)


def test_asking_again_is_free_and_nothing_else_is_told_by_it(asked: Callable[..., Bursar]) -> None:
    session = asked()
    by_ward = answered(session, "SELECT ward, COUNT(DISTINCT person) AS n FROM visits GROUP BY ward")
    again = answered(session, "SELECT ward, COUNT(DISTINCT person) AS people FROM visits GROUP BY ward")
    assert again.charge == 0 < by_ward.charge
    for sql in (
        "SELECT COUNT(DISTINCT person) FROM visits",
        "SELECT COUNT(DISTINCT person) FROM visits WHERE ward = 'A'",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    ):
        assert answered(session, sql).charge > 0
    strategies = [record.event.strategy for record in session.ledger.records()[1:]]
    assert [isinstance(strategy, Distinct) for strategy in strategies] == [True, True, True, False]


def test_counts_of_rows_answer_no_count_of_people(asked: Callable[..., Bursar]) -> None:
    session = asked()
    session.query("SELECT ward, COUNT(*) FROM visits GROUP BY ward WITH ERROR 5")
    people = answered(session, "SELECT ward, COUNT(DISTINCT person), COUNT(DISTINCT age) FROM visits GROUP BY ward")
    assert people.charge > 0
    assert people.values[0][0] == FRAME[FRAME["ward"] == "A"]["person"].nunique()


def test_what_counts_as_one_value_is_said(asked: Callable[..., Bursar]) -> None:
    session = asked()
    for column, words in {
        "cost": "bins are counted, not numbers",
        "day": "each month is counted once",
        "ward": "all values that are not declared count as one",
        "age": "values outside 0 to 99 count as 0 or 99",
    }.items():
        assert words in str(answered(session, f"SELECT COUNT(DISTINCT {column}) FROM visits"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT person, COUNT(*) FROM visits GROUP BY person", "tells people apart"),
        ("SELECT COUNT(*) FROM visits WHERE person = 'p1'", "tells people apart"),
        ("SELECT MAX(person) FROM visits", "tells people apart"),
        ("SELECT COUNT(DISTINCT ward, age) FROM visits", "takes one column"),
        ("SELECT SUM(DISTINCT age) FROM visits", "COUNT(DISTINCT column) is available"),
        ("SELECT COUNT(DISTINCT age + 1) FROM visits", "takes one column"),
        ("SELECT COUNT(DISTINCT CASE WHEN age < 3 THEN person ELSE ward END) FROM visits", "takes one column"),
        ("SELECT COUNT(DISTINCT height) FROM visits", "there is no column height"),
    ],
)
def test_what_cannot_be_counted_is_refused_and_free(sql: str, words: str, asked: Callable[..., Bursar]) -> None:
    session = asked()
    with pytest.raises(QueryError, match=words.replace("(", r"\(").replace(")", r"\)")):
        session.query(f"{sql} WITH ERROR 20")
    assert session.kernel.spent() == 0


def test_people_are_counted_under_add_remove_only(asked: Callable[..., Bursar]) -> None:
    unit = Unit(column="person", max_contributions=2, neighbours=Neighbours.REPLACE_ONE)
    session = asked(unit=unit, public_size=400)
    with pytest.raises(Unsupported, match="add-remove"):
        session.query("SELECT COUNT(DISTINCT person) FROM visits WITH ERROR 20")
    assert answered(session, "SELECT COUNT(DISTINCT ward) FROM visits").charge > 0


def test_rows_that_are_units_have_no_people(asked: Callable[..., Bursar]) -> None:
    with pytest.raises(BursarError, match="there is no column person"):
        asked(unit=Unit()).query("SELECT COUNT(DISTINCT person) FROM visits WITH ERROR 20")
