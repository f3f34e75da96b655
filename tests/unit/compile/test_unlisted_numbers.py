"""Numbers that are not declared: they are counted, and left out wherever it matters which number they are."""

from __future__ import annotations

from datetime import date

import duckdb
import numpy as np
import pytest

from bursar.answer import lines_of
from bursar.compile import Workload, compile
from bursar.core.domain import Categories, Dates, Domain, IntegerRange, Period, Stray
from bursar.errors import QueryError
from bursar.sql import parse
from harness.exactly import plain

RATED = Domain(
    (
        Categories(name="rating", values=(1, 2, 3, 4, 5)),
        IntegerRange(name="age", lower=0, upper=9, outside=Stray.OTHER),
        Categories(name="plan", values=("free", "paid")),
        Dates(name="day", first=date(2024, 1, 1), last=date(2024, 1, 9), by=Period.DAY, outside=Stray.OTHER),
    )
)
ROWS = [
    (rating, age, plan, f"2024-01-0{1 + (rating or 0) % 9}")
    for rating in (1, 2, 4, 5, 5, 11, None)
    for age in (0, 3, 9, 40, None)
    for plan in ("free", "paid")
]


def _cell(name: str, value: object) -> int:
    attribute = RATED[name]
    if value is None:
        return attribute.null_cell
    labels = [str(attribute.label(cell)) for cell in range(attribute.declared)]
    other = attribute.other
    assert other is not None
    return labels.index(str(value)) if str(value) in labels else other


def _counts(names: tuple[str, ...]) -> np.ndarray:
    counted = np.zeros(RATED.sizes(names), np.int64)
    places = [RATED.place(name) for name in names]
    for row in ROWS:
        counted[tuple(_cell(name, row[place]) for name, place in zip(names, places, strict=True))] += 1
    return counted


def _compiled(text: str) -> Workload:
    return compile(parse(text), RATED, "t")


def _ours(text: str) -> list[tuple[object, ...]]:
    workload = _compiled(text)
    values = np.asarray(workload.map.apply(_counts), np.float64)
    lines = lines_of(workload, workload.derive(values, values, values), 0.95)
    return [tuple(map(plain, (*label, *line))) for label, line in zip(lines["labels"], lines["values"], strict=True)]


def _theirs(text: str) -> list[tuple[object, ...]]:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (rating INT, age INT, plan VARCHAR, day DATE)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
    return [tuple(map(plain, row)) for row in connection.execute(text).fetchall()]


LISTED = "rating IN (1, 2, 3, 4, 5)"
LEFT_OUT = "rating: values that are not listed are left out"
CASES = [
    ("SELECT COUNT(*) FROM t WHERE rating >= 4", f"SELECT COUNT(*) FROM t WHERE rating >= 4 AND {LISTED}"),
    ("SELECT COUNT(*) FROM t WHERE NOT rating < 4", f"SELECT COUNT(*) FROM t WHERE rating >= 4 AND {LISTED}"),
    ("SELECT COUNT(*) FROM t WHERE rating BETWEEN 1.5 AND 4", "SELECT COUNT(*) FROM t WHERE rating IN (2, 4)"),
    ("SELECT COUNT(*) FROM t WHERE COALESCE(rating, 0) < 3", "SELECT COUNT(*) FROM t WHERE COALESCE(rating, 0) < 3"),
    ("SELECT SUM(rating), AVG(rating) FROM t", f"SELECT SUM(rating), AVG(rating) FROM t WHERE {LISTED}"),
    ("SELECT SUM(2 * rating + 1) FROM t", f"SELECT SUM(2 * rating + 1) FROM t WHERE {LISTED}"),
    (
        "SELECT AVG(COALESCE(rating, 3)) FROM t",
        f"SELECT AVG(COALESCE(rating, 3)) FROM t WHERE {LISTED} OR rating IS NULL",
    ),
    ("SELECT STDDEV_SAMP(rating) FROM t", f"SELECT STDDEV_SAMP(rating) FROM t WHERE {LISTED}"),
    ("SELECT MEDIAN(rating) FROM t", f"SELECT MEDIAN(rating) FROM t WHERE {LISTED}"),
    (
        "SELECT plan, AVG(rating) FILTER (WHERE age = 3) FROM t WHERE plan IN ('free', 'paid') GROUP BY plan",
        f"SELECT plan, AVG(rating) FILTER (WHERE age = 3 AND {LISTED}) FROM t GROUP BY plan ORDER BY plan",
    ),
    (
        "SELECT AVG(CASE WHEN rating >= 4 THEN 1 ELSE 0 END) FROM t WHERE rating IS NOT NULL",
        "SELECT AVG(CASE WHEN rating IN (4, 5) THEN 1 ELSE 0 END) FROM t WHERE rating IS NOT NULL",
    ),
]


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("text", "reference"), CASES)
def test_what_is_not_listed_is_left_out_and_said(text: str, reference: str) -> None:
    assert _ours(text) == _theirs(reference)
    assert LEFT_OUT in _compiled(text).remarks


def test_the_reference_would_see_that_they_are_not_left_out() -> None:
    """The twin: over all rows DuckDB gives something else."""
    assert _ours(CASES[0][0]) != _theirs(CASES[0][0])
    assert _ours(CASES[4][0]) != _theirs(CASES[4][0])


def test_values_outside_a_range_that_are_kept_apart_are_left_out_of_sums() -> None:
    assert _ours("SELECT SUM(age), AVG(age) FROM t") == _theirs("SELECT SUM(age), AVG(age) FROM t WHERE age <= 9")
    said = "age: values outside 0 to 9 are left out; decimals are rounded down"
    assert said in _compiled("SELECT SUM(age) FROM t").remarks


def test_they_are_counted_where_it_does_not_matter_which_number_they_are() -> None:
    for text in ("SELECT COUNT(rating), COUNT(*) FROM t", "SELECT COUNT(*) FROM t WHERE rating <> 4"):
        assert _ours(text) == _theirs(text)
        assert LEFT_OUT not in _compiled(text).remarks


def test_a_group_of_them_has_no_name_and_is_refused() -> None:
    with pytest.raises(QueryError, match="kept together as other"):
        _compiled("SELECT COALESCE(rating, 0), COUNT(*) FROM t GROUP BY 1")


def test_an_order_of_the_word_other_is_refused() -> None:
    with pytest.raises(QueryError, match="without an order"):
        _compiled("SELECT COUNT(*) FROM t WHERE rating < 'other'")
