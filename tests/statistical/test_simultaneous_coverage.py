"""The simultaneous contract holds for an analyst who looks first and asks then, at alpha 1e-6.

The wrong twins, which the same test must reject: the per-query contract, which does not promise this; bars that forget
how many questions there are; and purchases that each take the whole failure probability. They miss 84, 65 and 64 times
in a hundred (seen in 150, 150 and 60 runs), where 5 are allowed: each is rejected with probability above .9999.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from bursar.config import Config
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange
from bursar.estimation.simultaneous import Family
from harness.small import config, engine

pytestmark = pytest.mark.heavy
ALPHA, BETA, TRUTH = 1e-6, 0.05, 660
ADULT = Domain((IntegerRange(name="age", lower=17, upper=90, null=0),))
FAMILY = Family(domain=ADULT, sets=(("age",),))
BUDGET = Budget.of(epsilon=100.0)
RUNS, RUNS_OF_PURCHASES = 150, 40


def settings(family: Family | None) -> Config:
    return config(domain=ADULT, family=family, budget=BUDGET)


def accepted(missed: int, runs: int) -> bool:
    return missed <= binom.ppf(1 - ALPHA, runs, BETA)


def largest_missed(family: Family | None) -> bool:
    """Measure 74 equal leaves, ask for the largest once more, free: whether that answer misses its own error bar."""
    db = engine(table=np.full(74, TRUTH), settings=settings(family))
    first = db.query("SELECT age, COUNT(*) AS n FROM people GROUP BY age", within=300)
    largest = int(np.argmax([line[0] for line in first.values]))
    again = db.query(f"SELECT COUNT(*) AS n FROM people WHERE age = {17 + largest}", within=300)
    assert again.free
    assert again.contract == ("per-query" if family is None else "simultaneous")
    return abs(again.value - TRUTH) > again.error


def any_missed(purchases: int) -> bool:
    """Buy one leaf after the other: whether any of the answers misses its own error bar."""
    db = engine(table=np.full(74, TRUTH), settings=settings(FAMILY))
    answers = [db.query(f"SELECT COUNT(*) FROM people WHERE age = {17 + k}", within=40) for k in range(purchases)]
    assert all(answer.bought == 1 for answer in answers)
    return any(abs(answer.value - TRUTH) > answer.error for answer in answers)


def test_the_largest_of_74_equal_leaves() -> None:
    assert accepted(sum(largest_missed(FAMILY) for _ in range(RUNS)), RUNS)


def test_the_per_query_contract_is_rejected() -> None:
    missed = sum(largest_missed(None) for _ in range(RUNS))
    assert not accepted(missed, RUNS)
    assert missed > 0.6 * RUNS


def test_bars_for_one_question_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Family, "determined", lambda family, rows: 1)
    assert not accepted(sum(largest_missed(FAMILY) for _ in range(RUNS)), RUNS)


@pytest.mark.soak
def test_all_purchases_together() -> None:
    assert accepted(sum(any_missed(20) for _ in range(RUNS_OF_PURCHASES)), RUNS_OF_PURCHASES)


@pytest.mark.soak
def test_purchases_that_do_not_share_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bursar.proposers.simultaneous.share", lambda number: 1.0)
    assert not accepted(sum(any_missed(20) for _ in range(RUNS_OF_PURCHASES)), RUNS_OF_PURCHASES)
