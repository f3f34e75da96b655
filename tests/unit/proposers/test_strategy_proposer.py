"""A strategy is offered where it is cheaper, and its error law is the law of what it delivers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from bursar.inference.estimate import WeightedRows, meets
from bursar.kernel.budget import Budget
from bursar.kernel.grant import Grant
from bursar.planner.goals import Wanted
from bursar.proposers.direct import Direct
from bursar.proposers.strategy import Strategy
from harness.small import config, counts, engine

RUNNING = "SELECT " + ", ".join(f"COUNT(*) FILTER (WHERE age <= {i}) AS a{i}" for i in range(10)) + " FROM people"
BUDGETS = [Budget.of(epsilon=900.0), Budget.of(rho=900.0)]


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "concentrated"])
@pytest.mark.parametrize("goal", [{"within": 50}, {"rmse": 20}])
def test_it_beats_measuring_overlapping_questions_directly(budget: Budget, goal: dict[str, float]) -> None:
    db = engine(settings=config(budget=budget))
    request = replace(db.prepare(RUNNING, Wanted(**goal), None), joint=True)
    (offer,) = Strategy().offers(request, db.planner.views())
    direct = min(o.bid for o in Direct().offers(request, db.planner.views()))
    assert offer.bid < 0.5 * direct
    assert meets(offer.law, request.goal)


def test_a_price_as_goal_is_kept() -> None:
    db = engine()
    request = replace(db.prepare(RUNNING, Wanted(epsilon=0.25), None), joint=True)
    (offer,) = Strategy().offers(request, db.planner.views())
    assert 0.24 < offer.price.at_most / 2**50 <= 0.25


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM people",
        "SELECT age, COUNT(*) FROM people GROUP BY age",
        "SELECT COUNT(*) FROM people WHERE age < 3 AND age > 5",
    ],
)
def test_nothing_is_offered_where_nothing_is_gained(sql: str) -> None:
    db = engine()
    request = replace(db.prepare(sql, Wanted(within=50), None), joint=True)
    assert Strategy().offers(request, db.planner.views()) == []


@pytest.mark.parametrize("stated", [1.0, 1.6], ids=["as stated", "60 % more variance than stated"])
@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "concentrated"])
def test_errors_have_the_stated_variance(budget: Budget, stated: float) -> None:
    """2,000 answers, at alpha 1e-6; the wrong twin states 1/1.6 of the true variance."""
    db = engine(settings=config(budget=budget))
    request = replace(db.prepare(RUNNING, Wanted(within=60), None), joint=True)
    truth = np.cumsum(counts().sum(axis=(1, 2)))
    (offer,) = Strategy().offers(request, db.planner.views())
    assert isinstance(offer.law, WeightedRows)
    last = offer.law.variances[-1] / stated

    def answer() -> float:
        with Grant(db.kernel, "ana", "why", offer.price.events, offer.price.at_most) as grant:
            return float(offer.run(grant).values[-1])

    squares = [(answer() - truth[-1]) ** 2 / last for _ in range(2000)]
    # Laplace noise has fourth moment 6 times the squared variance: the sum of squares spreads sqrt(2.5) times as much.
    spread = np.sqrt(2.5 if budget.mode.value == "epsilon" else 1.0)
    z = (np.sum(squares) - 2000) / (np.sqrt(2 * 2000) * spread)
    limit = (chi2.ppf(1 - 5e-7, 10**6) - 10**6) / np.sqrt(2 * 10**6)
    assert (abs(z) < limit) == (stated == 1.0)
