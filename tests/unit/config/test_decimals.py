"""Decimals: declared with a step, rounded to it, and then compared and computed with as DuckDB does."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

import bursar
from bursar.compile import compile as compile_query
from bursar.compile.values import Decimals
from bursar.config import load
from bursar.core.domain import Domain
from bursar.errors import ConfigError, QueryError
from bursar.sql import parse
from harness.configs import head

CONFIG = (
    head(1000.0).replace("max_rows = 1000", "max_rows = 20000")
    + """\
[columns.age]
lower = 6.5
upper = 9.0
step = 0.1
"""
)
ROWS = [6.5, 6.54, 6.56, 7.0, 7.3, 7.30001, 8.0, 8.2, 8.95, 9.0, 3.0, 40.0]
"""Also numbers between the steps, and beyond both ends."""

OFTEN = 1000
"""How many people have each of them: next to so many the noise is small."""


def write(folder: Path, text: str = CONFIG) -> Path:
    path = folder / "people.toml"
    path.write_text(text)
    (folder / "people.csv").write_text("age\n" + "".join(f"{row}\n" for row in ROWS * OFTEN))
    return path


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write(tmp_path_factory.mktemp("decimals"))
    bursar.create(path).close()
    return path


def test_a_step_makes_a_column_of_decimals(tmp_path: Path) -> None:
    column = load(write(tmp_path)).domain["age"]
    assert isinstance(column, Decimals)
    assert (column.lower, column.step, column.declared) == (Decimal("6.5"), Decimal("0.1"), 26)
    assert [column.label(cell) for cell in (0, 1, 25)] == [6.5, 6.6, 9.0]
    assert column.edges[:2] == (6.45, 6.55)


def test_steps_of_tens_are_whole_numbers(tmp_path: Path) -> None:
    text = CONFIG.replace("6.5", "0").replace("9.0", "400").replace("0.1", "10")
    column = load(write(tmp_path, text)).domain["age"]
    assert [column.label(cell) for cell in (0, 1, 40)] == [0, 10, 400]
    assert [type(column.label(cell)) for cell in (0, 1)] == [int, int]


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("step = 0.1", "step = 0", "step must lie above 0"),
        ("step = 0.1", "step = 0.4", "step does not divide"),
        ("upper = 9.0", "upper = 6.0", "upper must be at least lower, which is 6.5"),
        ("upper = 9.0\n", "", "upper"),
        ("step = 0.1", "step = 1e-18", "more than"),
        ("step = 0.1", "step = 0.1\nrepresentatives = [1]", "for numbers in bins"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_line(tmp_path: Path, was: str, now: str, said: str) -> None:
    assert was in CONFIG
    with pytest.raises(ConfigError, match=said):
        load(write(tmp_path, CONFIG.replace(was, now)))


def test_a_ledger_is_bound_to_what_its_numbers_mean(tmp_path: Path) -> None:
    """The same bins, once of decimals and once of anything between their edges: conditions mean something else."""
    bins = CONFIG.replace("lower = 6.5\nupper = 9.0\nstep = 0.1", "edges = { from = 6.45, to = 9.05, step = 0.1 }")
    domains: list[Domain] = [load(write(tmp_path, text)).domain for text in (CONFIG, bins)]
    assert domains[0].digest != domains[1].digest


QUESTIONS = (
    "SELECT COUNT(*) FROM people WHERE age > 7",
    "SELECT COUNT(*) FROM people WHERE age >= 7.3 AND age <= 8",
    "SELECT COUNT(*) FROM people WHERE age = 7.3",
    "SELECT COUNT(*) FROM people WHERE age IN (6.5, 8.2, 1)",
    "SELECT COUNT(*) FROM people WHERE age BETWEEN 6.55 AND 8.05",
    "SELECT COUNT(*) FROM people WHERE age * 10 > 82.5",
    "SELECT COUNT(*) FROM people WHERE ROUND(age) = 7",
    "SELECT SUM(age), AVG(age) FROM people",
    "SELECT MEDIAN(age) FROM people",
    "SELECT age, COUNT(*) FROM people GROUP BY age HAVING COUNT(*) > 500 ORDER BY age",
    "SELECT FLOOR(age) AS years, COUNT(*) FROM people WHERE age IS NOT NULL GROUP BY years ORDER BY years",
    "SELECT CASE WHEN age >= 8 THEN 'old' ELSE 'young' END AS who, COUNT(*) FROM people GROUP BY who ORDER BY who",
    "SELECT SUM(age * age) FROM people",
)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_those_of_the_rounded_column(database: Path, question: str) -> None:
    """But for the noise an answer is what DuckDB says about the rounded and clipped numbers."""
    connection = duckdb.connect()
    rows = ", ".join(f"({row})" for row in ROWS)
    rounded = "CAST(FLOOR(CAST(v AS DOUBLE) * 10 + 0.5) / 10 AS DECIMAL(9, 1))"
    connection.execute(
        f"CREATE TABLE people AS SELECT GREATEST(LEAST({rounded}, 9.0), 6.5) AS age "
        f"FROM (VALUES {rows}) AS raw (v), range({OFTEN})"
    )
    truth = connection.execute(question).fetchall()
    with bursar.open(database) as db:
        answer = db.query(question, within=20, confidence=0.99999)
    lines = [(*labels, *values) for labels, values in zip(answer.labels, answer.values, strict=True)]
    assert len(lines) == len(truth)
    for line, true in zip(lines, truth, strict=True):
        assert [each if isinstance(each, str) else pytest.approx(float(each), rel=0.03) for each in true] == list(line)


def test_what_was_done_to_numbers_is_said(database: Path) -> None:
    with bursar.open(database) as db:
        answer = db.query("SELECT SUM(age) FROM people", within=1)
    assert "age: values outside 6.5 to 9.0 count as 6.5 or 9.0; numbers are rounded to the nearest 0.1" in str(answer)


def test_texts_of_decimals_are_not_guessed(database: Path) -> None:
    """6 may be written 6, 6.0 or 6.00."""
    with bursar.open(database) as db, pytest.raises(QueryError, match="TEXT is not for such values"):
        db.query("SELECT COUNT(*) FROM people WHERE CAST(age AS VARCHAR) = '7.0'", within=1)


def test_a_question_of_one_column_compiles_to_whole_cells(tmp_path: Path) -> None:
    domain = load(write(tmp_path)).domain
    workload = compile_query(parse("SELECT COUNT(*) FROM people WHERE age < 7"), domain, "people")
    assert workload.map.rows == 1
