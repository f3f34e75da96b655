"""Columns of a million values, questions about nobody, goals of nothing: a plan or a clear error, never a hang."""

from __future__ import annotations

import numpy as np
import pytest

from bursar import presets
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange
from bursar.core.queries import Steps
from bursar.errors import GoalError
from bursar.planner.choose import Preset
from bursar.session import Bursar
from bursar.strategies import long_columns
from bursar.strategies.p_identity import block_sizes, long_block_width
from harness.small import config, engine

SIZE = 10**6
DOMAIN = Domain((IntegerRange(name="id", lower=0, upper=SIZE - 1, null=0),))
TABLE = np.zeros(SIZE, np.int64)
TABLE[::1000] = 7
BUDGETS = [Budget.of(epsilon=50.0), Budget.of(rho=5.0)]


def long_column(budget: Budget, preset: Preset = presets.default) -> Bursar:
    return engine(table=TABLE, settings=config(domain=DOMAIN, budget=budget), preset=preset)


@pytest.mark.heavy
@pytest.mark.parametrize("budget", BUDGETS, ids=["epsilon", "rho"])
def test_ranges_of_a_million_values_are_answered_and_reused(budget: Budget) -> None:
    db = long_column(budget)
    for low in (0, 123_456, 123_457, 700_000):
        answer = db.query(f"SELECT COUNT(*) FROM people WHERE id BETWEEN {low} AND {low + 250_000}", within=100)
        assert abs(answer.values[0][0] - TABLE[low : low + 250_001].sum()) < 1000  # ten times the goal
    again = db.query("SELECT COUNT(*) FROM people WHERE id BETWEEN 0 AND 250000", within=100)
    assert again.charge == 0
    assert sum(len(record.values) for record in db.ledger.records()) < 5000  # memory grows with rows, not cells


def test_the_published_cache_takes_a_million_values_too() -> None:
    db = long_column(BUDGETS[0], presets.cachedp)
    answer = db.query("SELECT COUNT(*) FROM people WHERE id BETWEEN 5 AND 250000", within=300)
    assert answer.charge > 0


@pytest.mark.parametrize("preset", [presets.default, presets.cachedp], ids=lambda preset: preset.name)
def test_a_question_about_nobody_is_free(preset: Preset) -> None:
    db = long_column(BUDGETS[0], Preset("and exact", (*presets.default.proposers[:1], *preset.proposers)))
    answer = db.query("SELECT COUNT(*) FROM people WHERE id < 3 AND id > 5", within=10)
    assert answer.charge == 0
    assert answer.values[0][0] == 0


def test_a_goal_of_nothing_is_an_error_and_costs_nothing() -> None:
    db = long_column(BUDGETS[0])
    with pytest.raises(GoalError):
        db.query("SELECT COUNT(*) FROM people WHERE id < 1000", within=0)
    assert db.budget().spent == 0


def test_few_queries_are_summed_over_blocks_as_many_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell by cell, or block by block: the same whole numbers."""
    steps = Steps.dense(np.random.default_rng(0).integers(-9, 9, (5, 3000)))
    starts = steps.breaks()
    used = np.flatnonzero(steps.norms(2)[starts])
    widths = block_sizes(len(used), long_block_width(len(used)))
    changes = long_columns._changes(steps, starts, steps.levels)
    by_cell = long_columns._block_sums(changes, used, widths)
    monkeypatch.setattr(long_columns, "FEW_QUERIES", 0)
    assert np.array_equal(by_cell, long_columns._block_sums(changes, used, widths))
