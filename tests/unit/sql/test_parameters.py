"""Values from outside of a question: parameters, and the day. What DuckDB makes of them is what we make of them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import bursar
from bursar import Bursar
from bursar.compile import compile
from bursar.core.domain import Dates, Domain, Period
from bursar.curate.demo import generate
from bursar.errors import KeyConflict, QueryError
from bursar.sql import Query, parse
from bursar.sql.parameters import bind, resolve_day
from bursar.sql.tokens import questions_of
from harness.cases import every

CORPUS = Path(__file__).parents[3] / "benchmarks" / "sql_corpus"

ROWS = """CREATE TABLE t AS SELECT * FROM (VALUES
    (1, 0.5::DOUBLE, 1.50::DECIMAL(9, 2), 'O''Hara; DROP TABLE t --', true, DATE '2024-02-29'),
    (-2, 1e-7, -0.25, 'é?$1:name', false, DATE '2024-03-01'),
    (3, -4.0, 1000000.00, '', NULL, DATE '2023-12-31'),
    (NULL, NULL, NULL, NULL, true, NULL)) AS v(i, f, d, s, b, day)"""

VALUES: list[tuple[str, Any]] = [
    ("i = ?", -2),
    ("i <> ?", 1),
    ("f <= ?", 1e-7),
    ("f >= ?", -4.0),
    ("d = ?", Decimal("1.50")),
    ("d < ?", Decimal("-0.1")),
    ("s = ?", "O'Hara; DROP TABLE t --"),
    ("s = ?", "é?$1:name"),
    ("s <> ?", ""),
    ("b = ?", True),
    ("b = ?", False),
    ("day >= ?", date(2024, 2, 29)),
    ("day < ?", datetime(2024, 3, 1)),
    ("i = ?", None),
    ("i IN (?)", [1, 3]),
    ("s IN ?", ["", "x'y"]),
    ("i = ANY(?)", (1, -2)),
    ("NOT i IN (?)", [1]),
]


@every("case", lambda: VALUES)
def test_a_value_is_what_it_is_as_a_bound_value_of_duckdb(case: tuple[str, Any]) -> None:
    condition, value = case
    db = duckdb.connect()
    db.execute(ROWS)
    text = f"SELECT COUNT(*) FROM t WHERE {condition}"
    if isinstance(value, list | tuple):
        listed = condition.replace("(?)", "?").replace("ANY?", "ANY(?)")
        spread = re.sub(r"IN \?", "= ANY(?)", listed)
        expected = db.execute(f"SELECT COUNT(*) FROM t WHERE {spread}", [list(value)]).fetchone()
    else:
        expected = db.execute(text, [value]).fetchone()
    assert db.execute(bind(text, [value])).fetchone() == expected


def test_values_go_by_place_of_the_text_by_number_or_by_name() -> None:
    every = "SELECT COUNT(*) FILTER (WHERE a = {0}) FROM t WHERE b BETWEEN {1} AND {2} LIMIT {3} WITH ERROR 50"
    expected = parse(every.format(1, 2, 3, 4))
    assert parse(bind(every.format("?", "?", "?", "?"), [1, 2, 3, 4])).where.low == expected.where.low == 2
    by_place = bind(every.format("?", "?", "?", "?"), (1, 2, 3, 4))
    by_number = bind(every.format("$4", "$3", "$2", "$1"), [4, 3, 2, 1])
    by_name = bind(every.format(":a", "$b", ":c", ":d"), {"a": 1, "b": 2, "c": 3, "d": 4})
    assert by_place == by_number == by_name
    assert parse(by_place).goal == expected.goal
    assert bind("SELECT COUNT(*) FROM t WHERE a = $1 OR b = $1", ["x"]).count("'x'") == 2
    assert bind("SELECT COUNT(*) FROM t", None) == "SELECT COUNT(*) FROM t"
    hinted = bind("EXPLAIN SELECT /*+ error(50) */ COUNT(*) FROM t WHERE a = ?", [1])
    assert parse(hinted).explain
    assert parse(hinted).goal is not None


WRONG: list[tuple[str, Any, str]] = [
    ("a = ?", [], "parameters in the question: 1; values for them: 0"),
    ("a = ?", [1, 2], "parameters in the question: 1; values for them: 2"),
    ("a = $2", [1, 2], "parameters in the question: 1; values for them: 2"),
    ("a = 1", [1], "parameters in the question: 0; values for them: 1"),
    ("a = :x", {"y": 1}, "the question has the parameters :x; there are values for :y"),
    ("a = :x", [1], "come as a dict, by name"),
    ("a = ?", {"x": 1}, "come as a list, in their order"),
    ("a = ? AND b = $1", [1], "all written ?, or all $1"),
    ("a = ?", "x", "params is a list of values"),
    ("a = ?", [b"x"], "and this one is a bytes"),
    ("a = ?", [object()], "and this one is a object"),
    ("a = ?", [float("nan")], "is finite"),
    ("a = ?", [Decimal("Infinity")], "is finite"),
    ("a > ?", [[1, 2]], "stands behind IN, alone"),
    ("a IN (1, ?)", [[1, 2]], "stands behind IN, alone"),
    ("a IN (?)", [[]], "is not empty"),
    ("a IN (?)", [[[1]]], "and this one is a list"),
    ("a = 1 ORDER BY ?", [1], "what to group or order by is written out"),
    ("a = 1 GROUP BY ?", [1], "what to group or order by is written out"),
]


@every("case", lambda: WRONG)
def test_what_is_no_value_is_refused_by_name(case: tuple[str, Any, str]) -> None:
    text, params, words = case
    with pytest.raises(QueryError, match=re.escape(words)):
        bind(f"SELECT COUNT(*) FROM t WHERE {text}", params)


@pytest.mark.heavy
def test_a_question_that_was_written_out_again_means_the_same() -> None:
    compared = 0
    for file in sorted(CORPUS.glob("*.sql")):
        for text in questions_of(file.read_text(encoding="utf-8")):
            try:
                query = parse(text)
            except QueryError:
                continue
            if "SAFE_DIVIDE" in text or "FLOOR(age, -1)" in text:
                continue  # written out by what they are defined as
            assert without_places(parse(bind(text, []))) == without_places(query), text
            compared += 1
    assert compared > 300


def without_places(query: Query) -> str:
    return re.sub(r"position=-?\d+", "", repr(replace(query, text="")))


# -- the day ---------------------------------------------------------------------------------------------------------

DAY = datetime(2024, 3, 31, 11, 20, tzinfo=UTC)

MOVED = [
    "day >= {} - INTERVAL 30 DAY",
    "day > {} - INTERVAL '1 month'",
    "day < {}",
    "day <= {} - INTERVAL '24 hours'",
    "day = {} - 31",
    "day >= date_trunc('month', {})",
    "day >= date_trunc('year', {}) - INTERVAL 1 YEAR",
    "day >= date_trunc('quarter', {})",
    "day >= date_trunc('week', {} - 14)",
    "year(day) = year({})",
    "extract(month FROM day) = extract(month FROM {}) - 1",
    "date_trunc('month', day) = date_trunc('month', {} - INTERVAL 1 MONTH)",
    "day BETWEEN {} - INTERVAL '32' DAY AND {}",
]


@pytest.mark.heavy
@every("condition", lambda: MOVED)
def test_conditions_on_the_day_hold_where_they_hold_in_duckdb(condition: str) -> None:
    """DuckDB is told the day as a constant; what it makes of the day is its own."""
    domain = Domain([Dates(name="day", first=date(2022, 12, 1), last=date(2024, 6, 30), by=Period.DAY)])
    text = f"SELECT COUNT(*) FROM t WHERE {condition}"
    resolved = resolve_day(text.replace("{}", "CURRENT_DATE"), lambda: DAY)
    workload = compile(parse(resolved.text), domain, "t")
    days = duckdb.sql(
        "SELECT day::DATE FROM generate_series(DATE '2022-12-01', DATE '2024-06-30', INTERVAL 1 DAY) AS s(day) "
        + "WHERE "
        + condition.replace("{}", "DATE '2024-03-31'")
    ).fetchall()
    cells = np.arange(1, domain["day"].size + 1)  # the sum over days tells which of them are counted
    counted = [workload.map.apply(lambda attrs, d=day: (cells == d).astype(np.int64))[0] for day in cells]
    first = date(2022, 12, 1)
    assert [first + timedelta(days=place) for place, hit in enumerate(counted) if hit] == [day for (day,) in days]
    assert 0 < len(days) < 578


@every(
    "word",
    lambda: [
        "NOW()",
        "now()",
        "CURRENT_TIMESTAMP",
        "TODAY()",
        "GETDATE()",
        "CURRENT_DATE()",
        "LOCALTIMESTAMP",
        "NOW()::DATE",
    ],
)
def test_every_way_to_write_the_day_is_resolved_and_told(word: str) -> None:
    resolved = resolve_day(f"SELECT COUNT(*) FROM t WHERE day < {word} WITH ERROR 50", lambda: DAY)
    assert parse(resolved.text).where.literal == date(2024, 3, 31)
    assert parse(resolved.text).goal is not None
    (remark,) = resolved.remarks
    assert remark.endswith("2024-03-31 (UTC)")


def test_a_question_without_the_day_does_not_look_at_the_clock() -> None:
    def never() -> datetime:
        raise AssertionError("looked at")

    for text in ("SELECT COUNT(*) FROM t WHERE now = 'today()'", "SELECT COUNT(*) FROM nowhere", "junk ( now("):
        assert resolve_day(text, never).text == text
    ticks = iter([DAY])
    resolve_day("SELECT COUNT(*) FROM t WHERE a < NOW() AND b < NOW() AND c = CURRENT_DATE", lambda: next(ticks))


# -- in a session ----------------------------------------------------------------------------------------------------


@pytest.fixture
def db(tmp_path: Path) -> Bursar:
    return bursar.create(generate(tmp_path / "people.csv", rows=2_000))


def test_a_session_asks_with_values_and_pays_once_for_the_same(db: Bursar) -> None:
    with db:
        paid = db.query("SELECT COUNT(*) AS n FROM people WHERE sex = ? AND age >= ?", ["F", 40], within=50)
        same = db.query("SELECT COUNT(*) AS n FROM people WHERE sex = 'F' AND age >= 40", within=50)
        named = "SELECT COUNT(*) AS n FROM people WHERE sex = :sex AND age >= :age"
        again = db.query(named, params={"sex": "F", "age": 40}, within=50)
        assert not paid.free
        assert same.free
        assert again.free
        assert paid.value == same.value == again.value
        assert "sex = 'F'" in paid.question
        assert "sex = 'M'" in db.query(named, {"sex": "M", "age": 40}, within=50).question
        assert db.explain(named, {"sex": "F", "age": 41}, within=50).price > 0
        with db.batch(within=60) as batch:
            one, other = (batch.query(named, {"sex": sex, "age": 30}) for sex in "FM")
        assert "sex = 'F'" in one.answer.question
        assert "sex = 'M'" in other.answer.question
        with pytest.raises(QueryError, match="there are no values for them"):
            db.query(named, within=50)
        with pytest.raises(QueryError, match="parameters in the question"):
            db.explain("SELECT COUNT(*) FROM people WHERE sex = ?", [], within=50)


@pytest.mark.heavy
def test_a_key_belongs_to_the_values_too(db: Bursar) -> None:
    text = "SELECT COUNT(*) AS n FROM people WHERE age >= ?"
    with db:
        first = db.query(text, [40], within=50, key="k")
        assert db.query(text, [40], within=50, key="k") == first
        with pytest.raises(KeyConflict):
            db.query(text, [41], within=50, key="k")


@pytest.mark.heavy
def test_an_answer_says_what_day_it_took_and_is_not_given_on_another(db: Bursar) -> None:
    now = [datetime(2022, 6, 15, 9, tzinfo=UTC)]
    db.engine.clock = lambda: now[0]
    text = "SELECT COUNT(*) AS n FROM people WHERE joined >= DATE_TRUNC('month', NOW())"
    with db:
        paid = db.query(text, within=50)
        assert "NOW() was taken as the beginning of 2022-06-15 (UTC)" in paid.remarks
        assert "2022-06-15" in paid.question
        literal = db.query("SELECT COUNT(*) AS n FROM people WHERE joined >= DATE '2022-06-01'", within=50)
        assert literal.free
        assert literal.value == paid.value
        assert not any("NOW" in remark for remark in literal.remarks)
        for _ in range(2):  # the second time from memory
            assert any("NOW" in remark for remark in db.query(text, within=50).remarks)
        now[0] = datetime(2022, 7, 1, 0, tzinfo=UTC)
        later = db.query(text, within=50)
        assert not later.free
        assert "2022-07-01" in later.question
        now[0] = datetime(2022, 7, 2, 0, tzinfo=UTC)
        assert db.query(text, within=50).value == later.value  # the same month
        with db.batch(within=60) as batch:
            asked = batch.query(text)
        assert any("2022-07-02" in remark for remark in asked.remarks)


def test_a_key_belongs_to_a_day(db: Bursar) -> None:
    now = [datetime(2022, 6, 15, 9, tzinfo=UTC)]
    db.engine.clock = lambda: now[0]
    text = "SELECT COUNT(*) AS n FROM people WHERE joined < DATE_TRUNC('month', CURRENT_DATE)"
    with db:
        first = db.query(text, within=50, key="k")
        assert db.query(text, within=50, key="k") == first
        now[0] = datetime(2022, 7, 1, 9, tzinfo=UTC)
        with pytest.raises(KeyConflict):
            db.query(text, within=50, key="k")
