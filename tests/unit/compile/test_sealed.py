"""Questions about data of which only some partitions are sealed."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.compile import Workload, compile
from bursar.core.domain import Bins, Categories, Dates, Domain, IntegerRange, Period, Stray
from bursar.core.extensions.partitions import looked_at
from bursar.errors import QueryError
from bursar.sql import parse
from harness.asking import compiled
from harness.maps import Table

AGE = IntegerRange(name="age", lower=0, upper=4)
COLUMNS = {
    "week": IntegerRange(name="week", lower=10, upper=15, null=0),
    "day": Dates(name="day", first=date(2024, 1, 1), last=date(2024, 2, 11), by=Period.WEEK, outside=Stray.OTHER),
    "lot": Categories(name="lot", values=("f", "e", "d", "c", "b", "a")),
    "size": Bins(name="size", edges=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)),
    "Odd name": IntegerRange(name="Odd name", lower=10, upper=15),
}


def domain(name: str) -> Domain:
    return Domain((AGE, COLUMNS[name]), partition=name)


def ask(text: str, name: str = "week", sealed: int | None = 3) -> Workload:
    return compiled(f"SELECT {text}", domain(name), sealed=sealed)


def cells(workload: Workload, name: str = "week") -> list[int]:
    """The partitions that some answer counts, by really putting rows there."""
    found = domain(name)
    counted = []
    for place in range(found[name].size):
        table = np.zeros(found.sizes(found.names), np.int64)
        table[:, place] = 1
        if workload.map.apply(Table(found, table)).any():
            counted.append(place)
    return counted


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("sealed", [1, 3, 6])
def test_a_question_is_about_the_sealed_partitions(name: str, sealed: int) -> None:
    for text in (
        "COUNT(*) FROM people",
        "age, COUNT(*) FROM people GROUP BY age",
        "COUNT(*) FROM people WHERE age > 2",
    ):
        workload = ask(text, name, sealed)
        assert cells(workload, name) == list(range(sealed))
        assert looked_at(workload.map, domain(name)) == sealed


@pytest.mark.parametrize("name", COLUMNS)
def test_groups_are_the_sealed_partitions(name: str) -> None:
    workload = ask(f'"{name}", COUNT(*) FROM people GROUP BY "{name}"', name)
    assert workload.labels == tuple((COLUMNS[name].label(place),) for place in range(3))


@pytest.mark.parametrize("sealed", [None, 6])
def test_where_all_is_sealed_nothing_is_narrowed(sealed: int | None) -> None:
    assert ask("COUNT(*) FROM people", sealed=sealed).map.attrs == ()
    assert cells(ask("COUNT(*) FROM people WHERE week = 15", sealed=sealed)) == [5]


def test_strays_are_never_sealed_with_the_declared_ones() -> None:
    assert domain("day")["day"].size == 8  # six weeks, other and NULL
    assert cells(ask("COUNT(*) FROM people", "day", 6), "day") == list(range(6))
    assert cells(ask("COUNT(*) FROM people", "day", 7), "day") == list(range(6))
    assert cells(ask("COUNT(*) FROM people", "day", 8), "day") == list(range(8))


def test_before_anything_is_sealed_there_is_nothing_to_ask() -> None:
    with pytest.raises(QueryError, match="no partition of week is sealed yet") as refusal:
        ask("COUNT(*) FROM people", sealed=0)
    assert refusal.value.rewrite == ""


OPEN = [
    ("week >= 11", [1, 2]),
    ("week > 11", [2]),
    ("week <> 14", [0, 1, 2]),
    ("week <> 11", [0, 2]),
    ("NOT week < 12", [2]),
    ("NOT week = 14", [0, 1, 2]),
    ("week NOT IN (11, 14)", [0, 2]),
    ("week NOT BETWEEN 11 AND 13", [0]),
    ("week IS NOT NULL", [0, 1, 2]),
    ("week <= 12", [0, 1, 2]),
    ("week < 13", [0, 1, 2]),
    ("week BETWEEN 11 AND 12", [1, 2]),
    ("week IN (10, 12)", [0, 2]),
    ("week = 12", [2]),
    ("week >= 99", []),
    ("week = 99", []),
    ("week = 11 OR age > 3", [0, 1, 2]),
    ("NOT (week = 14 OR week = 11)", [0, 2]),
]


@pytest.mark.parametrize(("where", "counted"), OPEN)
def test_open_ends_end_with_the_last_sealed_one(where: str, counted: list[int]) -> None:
    if "NULL" in where:
        column = IntegerRange(name="week", lower=10, upper=15)
        found = Domain((AGE, column), partition="week")
        workload = compile(parse(f"SELECT COUNT(*) FROM people WHERE {where}"), found, "people", 3)
        assert looked_at(workload.map, found) == 3
        return
    assert cells(ask(f"COUNT(*) FROM people WHERE {where}")) == counted
    assert cells(ask(f"COUNT(*) FILTER (WHERE {where}) AS n FROM people")) == counted


NAMED = [
    ("week", "week = 13", "week >= 12 AND week < 13"),
    ("week", "week IN (11, 13, 15)", "week IN (11)"),
    ("week", "week IN (13, 14)", "week >= 12 AND week < 13"),
    ("week", "week BETWEEN 11 AND 14", "week >= 11 AND week < 13"),
    ("week", "week BETWEEN 13 AND 14", "week >= 12 AND week < 13"),
    ("week", "week <= 13", "week < 13"),
    ("week", "week < 14", "week < 13"),
    ("week", "week >= 13", "week >= 12 AND week < 13"),
    ("week", "week > 12", "week >= 12 AND week < 13"),
    ("week", "NOT week >= 14", ""),
    (
        "day",
        "day = DATE '2024-01-31'",
        "day >= DATE '2024-01-15' AND day < DATE '2024-01-22' AND day < DATE '2024-01-22'",
    ),
    (
        "day",
        "day >= DATE '2024-01-08' AND day < DATE '2024-02-05'",
        "day >= DATE '2024-01-08' AND day < DATE '2024-01-22'",
    ),
    (
        "day",
        "day BETWEEN DATE '2024-01-08' AND DATE '2024-02-04'",
        "day >= DATE '2024-01-08' AND day < DATE '2024-01-22'",
    ),
    ("day", "day IS NULL", ""),
    ("lot", "lot = 'c'", "lot IN ('d')"),
    ("lot", "lot IN ('a', 'f')", "lot IN ('f')"),
    ("lot", "lot = 'other'", "lot IN ('d')"),
    ("size", "size < 4", "size < 3"),
    ("size", "size BETWEEN 1 AND 6", "size >= 1 AND size < 3"),
    ("size", "size < 3.9", "size < 3"),
]


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("name", "where", "rewrite"), NAMED)
def test_a_partition_that_is_named_must_be_sealed(name: str, where: str, rewrite: str) -> None:
    with pytest.raises(QueryError) as refusal:
        ask(f"COUNT(*) FROM people WHERE {where}", name)
    if "cuts" not in refusal.value.reason:
        assert refusal.value.reason.endswith(f"the last sealed one is {COLUMNS[name].label(2)}")
        assert refusal.value.position >= len("SELECT COUNT(*) FROM people WHERE ")
    assert refusal.value.rewrite == (f"SELECT COUNT(*) FROM people WHERE {rewrite}" if rewrite else "")
    with pytest.raises(QueryError):
        ask(f"COUNT(*) FILTER (WHERE {where}) AS n FROM people", name)


leaves = st.one_of(
    st.tuples(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), st.integers(9, 16)).map(
        lambda p: f"week {p[0]} {p[1]}"
    ),
    st.tuples(st.integers(9, 16), st.integers(9, 16)).map(lambda p: f"week BETWEEN {p[0]} AND {p[1]}"),
    st.lists(st.integers(9, 16), min_size=1, max_size=3).map(lambda p: f"week IN ({', '.join(map(str, p))})"),
    st.integers(0, 4).map(lambda n: f"age > {n}"),
)
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(lambda one: f"NOT ({one})"),
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
    ),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None)
@given(where=conditions, sealed=st.integers(1, 6))
def test_the_answer_is_that_over_the_sealed_rows(where: str, sealed: int) -> None:
    """Whatever is asked: what is answered is what the same question says of all data without the unsealed rows, and no
    other partition is looked at. A rewrite is accepted."""
    found = domain("week")
    text = f"COUNT(*) FROM people WHERE {where}"

    def answer(workload: Workload, table: np.ndarray) -> list[Any]:
        values = workload.map.apply(Table(found, table))
        return [[0 if row < 0 else int(values[row]) for row in line] for line in workload.index]

    try:
        narrowed = ask(text, sealed=sealed)
    except QueryError as refusal:
        if refusal.rewrite:
            compile(parse(refusal.rewrite), found, "people", sealed)
        return
    assert looked_at(narrowed.map, found) <= sealed
    table = np.arange(found.cells(found.names)).reshape(found.sizes(found.names)) + 1
    table[:, sealed:] = 0
    assert answer(narrowed, table) == answer(ask(text, sealed=None), table)
