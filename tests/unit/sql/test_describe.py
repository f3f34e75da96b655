"""DESCRIBE and SHOW: what is declared, for nothing, in the words of several databases."""

from __future__ import annotations

import pytest

from bursar.compile import compile
from bursar.compile.describe import describe
from bursar.core.domain import Bins
from bursar.errors import GoalError, QueryError
from bursar.sql import parse
from harness.exactly import PEOPLE
from harness.small import engine


@pytest.mark.parametrize(
    "text",
    [
        "DESCRIBE people",
        "desc  TABLE main.people ;",
        "SHOW COLUMNS FROM people",
        "show fields in 'people'",
        "PRAGMA table_info('people')",
        'DESCRIBE "people"',
    ],
)
def test_columns_are_described(text: str) -> None:
    workload = compile(parse(text), PEOPLE, "people")
    assert workload.keys == ("column_name", "column_type", "null", "declared")
    lines = {str(name): (kind, null, words) for name, kind, null, words in workload.labels}
    assert list(lines) == list(PEOPLE.names)
    assert lines["age"][0] == "BIGINT"
    assert lines["income"][0] == "DOUBLE"
    assert lines["born"] == ("DATE", True, "days from 1990-01-01 to 1991-12-31, known by month")
    assert lines["sex"] == ("VARCHAR", True, "one of F, M; anything else is called other")
    assert lines["member"] == ("BOOLEAN", False, "one of True, False")


@pytest.mark.parametrize("text", ["SHOW TABLES", "show all tables;", "DESCRIBE"])
def test_tables_are_listed(text: str) -> None:
    answer = engine().query(text)
    assert (answer.keys, answer.labels, answer.free) == (("name",), (("people",),), True)


def test_no_accuracy_is_needed_where_nothing_is_measured() -> None:
    db = engine()
    assert db.query("SELECT DISTINCT sex FROM people").labels == (("F",), ("M",))
    assert db.query("SELECT MAX(age) AS most FROM people").labels == ((9,),)
    with pytest.raises(GoalError, match="say how exact"):
        db.query("SELECT COUNT(*) FROM people")


def test_nothing_is_written_to_the_log() -> None:
    db = engine()
    db.query("DESCRIBE people")
    assert db.log() == []


def test_a_table_that_is_not_there_is_refused_with_the_one_that_is() -> None:
    with pytest.raises(QueryError, match="there is no table t") as refusal:
        engine().query("DESCRIBE t")
    assert refusal.value.rewrite == "DESCRIBE people"


@pytest.mark.parametrize(
    "text", ["DESCRIBE SELECT 1", "SHOW", "SUMMARIZE SELECT 1", "PRAGMA database_list", "DESCRIBE a b"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="begins with SELECT"):
        parse(text)


def test_a_summary_is_refused_with_what_is_declared() -> None:
    with pytest.raises(QueryError, match="what single people have") as refusal:
        engine().query("SUMMARIZE people")
    assert refusal.value.rewrite == "DESCRIBE people"
    assert "nothing is measured" in str(refusal.value)


@pytest.mark.parametrize(
    ("edges", "told"),
    [
        (tuple(2.5 * place for place in range(201)), "known by bins of width 2.5 from 0 to 500"),
        (tuple(0.1 * place for place in range(11)), "known by bins of width 0.1 from 0 to 1"),
        ((0.0, 10.0, 20.0, 31.0), "known by bins with the edges 0, 10, 20, 31"),
        ((0.0, 100.0), "known by bins with the edges 0, 100"),
    ],
)
def test_bins_of_equal_width_are_not_listed_one_by_one(edges: tuple[float, ...], told: str) -> None:
    assert told in describe(Bins(name="value", edges=edges))
