"""The goal that a refusal names: payable, hardly any tighter one is, and few plans are made to find it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bursar.core.budget import Budget
from bursar.errors import BudgetError
from bursar.planner import choose as choosing
from bursar.session import Bursar
from bursar.testing import stage
from harness.small import DOMAIN, Silence, TableSource, config

SMOOTH = ["AVG(age) AS x", "STDDEV(age) AS x", "COUNT(*) FILTER (WHERE age > 3) AS x, COUNT(*) AS n"]
BUDGETS = [Budget.of(epsilon=0.01), Budget.of(rho=0.0001)]


def small(budget: Budget) -> Bursar:
    settings = config(budget=budget)
    return stage(settings, lambda key: TableSource(np.full(DOMAIN.sizes(DOMAIN.names), 50)), randomness=Silence())


def tightest(budget: Budget, outputs: str, within: float) -> float:
    with pytest.raises(BudgetError) as refused:
        small(budget).query(f"SELECT {outputs} FROM people", within=within)
    found = re.search(r"WITH ERROR ([0-9.]+)", refused.value.fits)
    assert found is not None
    return float(found[1])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("budget", BUDGETS, ids=["epsilon", "rho"])
@pytest.mark.parametrize("outputs", SMOOTH)
def test_it_fits_and_little_less_does_not(budget: Budget, outputs: str) -> None:
    goal = tightest(budget, outputs, within=2)
    sql = f"SELECT {outputs} FROM people"
    assert small(budget).query(sql, within=goal).charge <= budget.amount
    with pytest.raises(BudgetError):
        small(budget).query(sql, within=goal / 1.02)


@pytest.mark.parametrize("budget", BUDGETS, ids=["epsilon", "rho"])
@pytest.mark.parametrize(("within", "most"), [(2, 6), (50, 6)])
def test_few_plans_are_made(budget: Budget, within: float, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = []
    plan = choosing.choose
    monkeypatch.setattr(choosing, "choose", lambda *given: planned.append(given) or plan(*given))
    tightest(budget, "AVG(age) AS x", within)
    assert 1 <= len(planned) <= most  # bisection needs 12 and 15


def test_prices_in_steps_take_no_more_plans_than_bisection(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = []
    plan = choosing.choose
    monkeypatch.setattr(choosing, "choose", lambda *given: planned.append(given) or plan(*given))
    assert tightest(Budget.of(epsilon=1.0), "COUNT(*) FILTER (WHERE age = 1) AS x", within=0.5) < 3.1
    assert len(planned) <= 14
