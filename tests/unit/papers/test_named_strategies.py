"""Eigen-Design as the strategy of a batch: it is measured, answers are right, and none is better than the optimum."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.core.accounting import Measured
from bursar.core.budget import Budget
from bursar.errors import QueryError
from bursar.papers.eigen_design.eigen_design import eigen_design
from bursar.papers.eigen_design.named_strategies import DESIGNS
from bursar.papers.eigen_design.workloads import all_ranges
from bursar.strategies.measure import rms_error, svd_bound
from harness.small import Silence, config, counts, engine

RANGES = [f"SELECT COUNT(*) AS n FROM people WHERE age BETWEEN {a} AND {b}" for a in range(10) for b in range(a, 10)]
SETTINGS = config(budget=Budget.of(rho=10.0))


def price(strategy: str | None) -> float:
    db = engine(settings=SETTINGS)
    with db.batch(rmse=10.0, strategy=strategy) as batch:
        for sql in RANGES:
            batch.query(sql)
        cost = batch.price
        batch.cancel()
    return cost


@pytest.mark.heavy
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", DESIGNS)
def test_answers_follow_from_the_strategy_that_was_named(name: str) -> None:
    db = engine(settings=SETTINGS, randomness=Silence())
    answers = db.batch(RANGES, rmse=10.0, strategy=name).answers
    ages = counts().sum(axis=(1, 2))
    truth = [ages[a : b + 1].sum() for a in range(10) for b in range(a, 10)]
    np.testing.assert_allclose([answer.value for answer in answers], truth, atol=1e-4)
    assert {answer.source for answer in answers} == {name}
    (event,) = [record.event for record in db.ledger.records() if isinstance(record.event, Measured)]
    assert event.strategy.rows >= 10


@pytest.mark.heavy
def test_prices_stand_as_the_errors_of_the_strategies_do() -> None:
    """At one root mean square error, rho goes with the square of the error over the bound."""
    gram = all_ranges(10)
    eigen = price("eigen")
    best = price(None)
    assert eigen / best == pytest.approx(1, abs=0.2)
    assert best <= eigen * 1.0001
    assert eigen <= price("wavelet") * 1.0001
    squares = (rms_error(gram, eigen_design(gram)) ** 2) / (2 * 10.0**2 * len(RANGES))
    assert eigen == pytest.approx(squares, rel=2e-3)
    assert math.sqrt(squares) > svd_bound(gram) / math.sqrt(2 * 100 * len(RANGES))


def test_a_name_that_is_not_there_is_refused() -> None:
    with pytest.raises(QueryError, match="there is no strategy 'best' here; there is eigen"):
        engine(settings=SETTINGS).batch(RANGES[:2], rmse=10.0, strategy="best")
    with pytest.raises(QueryError, match="Gaussian noise"):
        engine().batch(RANGES[:2], rmse=10.0, strategy="eigen")


def test_nobody_gets_one_who_does_not_name_it() -> None:
    offers = engine(settings=SETTINGS).explain("SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)", rmse=10.0)
    assert not {line.proposer for line in offers.offers} & set(DESIGNS)
