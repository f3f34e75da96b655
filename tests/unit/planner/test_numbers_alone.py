"""Each number of a SELECT as a question of its own: as if it had been asked alone."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.compile.partwise import some_of
from bursar.core.budget import Budget
from bursar.core.queries import LinearMap, Product, Stack
from bursar.errors import BudgetError
from bursar.planner.batch import together
from bursar.planner.goals import Wanted
from bursar.planner.numbers_alone import numbers_alone
from bursar.planner.request import PlanningRequest
from harness.small import TableSource, config, counts, engine

NUMBERS = (
    *("COUNT(*)", "AVG(age)", "STDDEV(age)", "MEDIAN(age)", "MAX(age)", "SUM(age) / COUNT(*)"),
    *("AVG(CASE WHEN sex = 'F' THEN 1.0 ELSE 0.0 END)", "COUNT(*) FILTER (WHERE age > 3)", "REGR_SLOPE(age, age)"),
)
EACH = Budget.of(rho=1.0)


def prepared(sql: str, **goal: object) -> PlanningRequest:
    return engine(settings=config(budget=EACH)).engine.prepare(sql, Wanted(**{"within": 50, **goal}))  # type: ignore[arg-type]


def rows_of(queries: LinearMap) -> list[list[int]]:
    """The rows by what they come to on tables with somebody in one cell."""
    table = np.arange(counts().size).reshape(counts().shape) ** 2
    return sorted([int(value)] for value in queries.apply(TableSource(table).table))


@pytest.mark.parametrize("groups", ["", "region, sex"])
def test_each_is_what_it_would_be_alone(groups: str) -> None:
    head, tail = (f"{groups}, ", f" GROUP BY {groups}") if groups else ("", "")
    every = numbers_alone(prepared(f"SELECT {head}{', '.join(NUMBERS)} FROM people WHERE age > 1{tail}"))
    assert len(every) == len(NUMBERS)
    table = TableSource(counts()).table
    for number, sql in zip(every, NUMBERS, strict=True):
        alone = prepared(f"SELECT {head}{sql} FROM people WHERE age > 1{tail}")
        assert number.workload.map.rows == alone.workload.map.rows
        assert rows_of(number.workload.map) == rows_of(alone.workload.map)
        assert (number.goal.kind, number.goal.amount) == (alone.goal.kind, alone.goal.amount)
        exact, expected = (each.workload.map.apply(table).astype(float) for each in (number, alone))
        (ours,), (theirs,) = number.workload.derive(exact, exact, exact), alone.workload.derive(*[expected] * 3)
        assert ours.value.tolist() == pytest.approx(theirs.value.tolist(), nan_ok=True)


def test_errors_of_their_own_stay_with_their_numbers() -> None:
    request = prepared(
        "SELECT COUNT(*) FILTER (WHERE age > 3) AS a, COUNT(*) AS n FROM people WITH ERROR 20 ON a, 70 ON n",
        within=None,
    )
    assert [number.goal.amount for number in numbers_alone(request)] == [20, 70]


def test_one_number_and_other_goals_have_none() -> None:
    assert numbers_alone(prepared("SELECT AVG(age) FROM people")) == ()
    assert numbers_alone(prepared("SELECT COUNT(*), AVG(age) FROM people WITH RHO 0.1", within=None)) == ()
    many = ", ".join(f"COUNT(*) FILTER (WHERE age > {low % 9}) + {low}" for low in range(17))
    assert numbers_alone(prepared(f"SELECT {many} FROM people")) == ()


def test_some_rows_of_a_map_are_in_as_few_pieces_as_they_can_be() -> None:
    whole = prepared("SELECT region, sex, COUNT(*), SUM(age) FROM people GROUP BY region, sex").asked.workload.map
    assert isinstance(whole, Stack)
    table = TableSource(counts()).table
    size = whole.parts[0].rows
    for rows, pieces in ((range(size), 1), (range(0, size, 3), 1), ((0, 4), 2), ((1, size, size + 1), 2)):
        some = some_of(whole, np.array(rows))
        assert len(some.parts if isinstance(some, Stack) else [some]) == pieces
        assert some.apply(table).tolist() == whole.apply(table)[list(rows)].tolist()
    assert isinstance(some_of(whole, np.arange(size)), Product)


def test_a_refusal_knows_that_numbers_can_be_asked_one_by_one() -> None:
    """The goal that it names is the tightest that fits, also where that takes each number by itself."""
    sql, small = "SELECT AVG(age), STDDEV(age), MAX(age) FROM people", config(budget=Budget.of(rho=0.01))
    with pytest.raises(BudgetError) as refused:
        engine(settings=small).query(sql, within=2)
    within = float(refused.value.fits.split()[2])
    assert engine(settings=small).query(sql, within=within).charge <= 0.01
    with pytest.raises(BudgetError):
        engine(settings=small).query(sql, within=within / 1.03)


def test_questions_of_a_batch_may_be_of_several_numbers() -> None:
    requests = [prepared(f"SELECT AVG(age), MAX(age) FROM people WHERE sex = '{sex}'") for sex in "FM"]
    joint = together(requests, None)
    assert [len(numbers_alone(each)) for each in joint.alone] == [2, 2]
    assert numbers_alone(joint) == ()
