"""Every sum over declared ranges is answered, or refused for want of budget: no scale of noise stands in its way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bursar.answer import Answer
from bursar.compile.values import Represented
from bursar.core.accounting import Mode
from bursar.core.budget import Budget
from bursar.core.domain import Attribute, Bins, Categories, Domain, IntegerRange
from bursar.errors import BudgetError, GoalError
from harness.small import config, engine

RACES = ("a", "b", "c", "d", "e")


def world(values: Attribute, groups: int, mode: Mode) -> Any:
    """An engine over a column of groups and one of values, in both of which nobody may be missing."""
    named = Categories(name="race", values=RACES[:groups])
    domain = Domain((named, values))
    table = np.ones(domain.sizes(domain.names), np.int64)
    budget = Budget.of(epsilon=5.0) if mode is Mode.PURE else Budget.of(epsilon=5.0, delta=1e-9)
    return engine(table=table, settings=config(domain=domain, budget=budget, max_rows=10**6))


def asked(door: Any, sql: str, goal: dict[str, Any]) -> Answer | None:
    """The answer; None where no budget reaches, this one or any. Other refusals come through."""
    try:
        answer: Answer = door.query(sql, **goal)
    except BudgetError:
        return None
    except GoalError as refusal:
        if not str(refusal).startswith("no answer can be that "):  # what it would cost is beyond any budget
            raise
        return None
    return answer


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("goal", [{"within": 50_000}, {"within": 5}, {"rmse": 10_000}, {"spend": 0.1}])
def test_hours_by_group(mode: Mode, goal: dict[str, Any]) -> None:
    goal = {mode.unit: goal["spend"]} if "spend" in goal else goal
    door = world(IntegerRange(name="hours", lower=1, upper=99), 5, mode)
    answer = asked(door, "SELECT race, SUM(hours) FROM people GROUP BY race", goal)
    assert answer is not None or goal == {"within": 5}


def test_a_goal_that_next_to_nothing_meets() -> None:
    """Rows that would be too coarse to be drawn stand in nobody's way."""
    edges = (-152903.9, 0.0, 389.3, 62575.9)
    door = world(Bins(name="x", edges=edges), 1, Mode.PURE)
    sql, goal = "SELECT AVG(x) FROM people WHERE x IS NOT NULL", {"rmse": 2638906854.7227073}
    assert door.explain(sql, **goal).offers
    assert asked(door, sql, goal) is not None


def columns() -> st.SearchStrategy[Attribute]:
    small, large = st.integers(-200, 200), st.integers(-(2**30), 2**30)
    ranges = st.tuples(st.one_of(small, large), st.integers(1, 120)).map(
        lambda ends: IntegerRange(name="x", lower=ends[0], upper=ends[0] + ends[1])
    )
    listed = st.lists(st.one_of(small, large), min_size=2, max_size=8, unique=True).map(
        lambda values: Categories(name="x", values=tuple(values), outside=0)
    )
    tenths = st.lists(st.integers(-(10**7), 10**7), min_size=2, max_size=12, unique=True).map(
        lambda edges: Bins(name="x", edges=tuple(edge / 10 for edge in sorted(edges)))
    )
    middles = st.lists(st.integers(-1000, 1000), min_size=2, max_size=12, unique=True).map(
        lambda edges: Represented(
            name="x",
            edges=tuple(map(float, sorted(edges))),
            representatives=tuple(map(float, sorted(edges)[:-1])),
        )
    )
    return st.one_of(ranges, listed, tenths, middles)


def goals(mode: Mode) -> st.SearchStrategy[dict[str, Any]]:
    amount = st.floats(-4, 12).map(lambda power: 10.0**power)
    price = st.floats(-4, 0.5).map(lambda power: 10.0**power)
    return st.one_of(
        amount.map(lambda most: {"within": most}),
        amount.map(lambda most: {"rmse": most}),
        price.map(lambda most: {mode.unit: most}),
    )


@pytest.mark.heavy
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_sum_over_declared_ranges(data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from([Mode.PURE, Mode.CONCENTRATED]))
    column, groups = data.draw(columns()), data.draw(st.integers(1, 5))
    item = data.draw(st.sampled_from(["SUM(x)", "SUM(x), COUNT(*)", "AVG(x)", "SUM(x) FILTER (WHERE race = 'a')"]))
    sql = data.draw(
        st.sampled_from(
            [
                f"SELECT {item} FROM people WHERE x IS NOT NULL",
                f"SELECT race, {item} FROM people WHERE race IN ('a', 'b') GROUP BY race",
                f"SELECT race, {item} FROM people GROUP BY race",
                f"SELECT race, {item} FROM people GROUP BY ROLLUP (race)",
            ]
        )
    )
    door, goal = world(column, max(groups, 2), mode), data.draw(goals(mode))
    asked(door, sql, goal)
    door.explain(sql, **goal)
