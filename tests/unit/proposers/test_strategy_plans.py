"""Plans that are larger than least squares over all of their cells: the plan's own weights answer the questions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar.core.accounting import Mode
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.estimation import least_squares
from bursar.estimation.batch_goals import BatchGoal
from bursar.estimation.estimate import RepeatedRows, WeightedRows, meets
from bursar.goal import Goal, GoalKind
from bursar.proposers.buying.strategy_plans import RepeatedPlan, listed
from bursar.strategies import best
from harness.maps import domain_of
from harness.plans import all_ranges, least_squares_variances, matrix, stacked

DOMAIN = domain_of(a=6, b=5, c=4)
A, B, C = all_ranges("a", 6), all_ranges("b", 5), all_ranges("c", 4)
LARGE: dict[str, tuple[str, LinearMap]] = {
    "boxes": ("product", Product((A, B))),
    "range tables": ("range-marginals", Stack((Product((A, B)), Product((C, B)), Product((A,))))),
    "joint": ("joint", Stack((Product((A, B)), Product((A.take([3, 8]), B.take([1, 6])))))),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("name", LARGE)
def test_a_plan_over_many_cells_has_weights(name: str, mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, workload = LARGE[name]
    monkeypatch.setattr(least_squares, "MOST_MERGED_CELLS", 8)
    monkeypatch.setattr(best, "SMALL_JOINT", 8)
    planned = listed(workload, DOMAIN, mode)
    assert planned is not None
    assert planned.plan.kind == ("joint" if mode is Mode.PURE and kind == "range-marginals" else kind)
    scales = np.concatenate([np.full(part.map.rows, part.scale) for part in planned.plan.parts])
    rows = stacked(planned.plan.parts, DOMAIN) * scales[:, None]
    assert np.allclose(planned.weights @ rows, matrix(workload, DOMAIN), atol=1e-8)
    variances = np.square(planned.weights * scales).sum(axis=1) * (2 if mode is Mode.PURE else 1)
    assert np.allclose(variances, planned.plan.variances(1.0))
    least = least_squares_variances(workload, planned.plan.parts, DOMAIN) * (2 if mode is Mode.PURE else 1)
    assert np.all(variances >= least * (1 - 1e-9))
    assert variances.sum() <= 1.05 * least.sum()


def test_a_plan_in_groups_knows_its_own_weights() -> None:
    """Columns apart in each group: least squares weighs the rows better, where it can hold all cells."""
    groups = Mask(("c",), (4,), Steps.identity(4))
    plan = best.best_strategy(Stack((Product((groups, A)), Product((groups, B)))), Mode.PURE)
    answers = plan.answers
    assert answers is not None
    assert answers.own is not None
    assert answers.weights is None
    values = [np.random.default_rng(n).integers(-9, 9, part.map.rows) for n, part in enumerate(plan.parts)]
    assert np.allclose(answers.own() @ np.concatenate(values), answers.estimate(values))


PREFIXES = Mask(("x",), (120,), Steps.ranges(np.zeros(120, np.int64), 1 + np.arange(120), 120))


@pytest.mark.heavy
def test_coarse_noise_has_bounds_row_by_row() -> None:
    """Errors of a few people: noise on a lattice that is felt, where bounds on all sums together would be loose."""
    planned = listed(Product((PREFIXES,)), domain_of(x=120), Mode.PURE)
    assert isinstance(planned, RepeatedPlan)
    for amount, law in ((1000.0, RepeatedRows), (0.03, WeightedRows)):
        goal = Goal(kind=GoalKind.ERROR, amount=amount)
        unit = planned.unit_for_error(goal)
        assert unit is not None
        assert isinstance(planned.law(unit), law)
        assert meets(planned.law(unit), goal)
        assert not meets(planned.law(1.1 * unit), goal)


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
def test_a_batch_of_counts_asks_no_more_of_a_strategy_than_its_rows(mode: Mode) -> None:
    """Nothing is known of its questions by themselves then: they share rows."""
    planned = listed(Product((PREFIXES,)), domain_of(x=120), mode)
    assert isinstance(planned, RepeatedPlan)
    goal = Goal(kind=GoalKind.ERROR, amount=1000.0)
    places = (np.arange(60), np.arange(60, 120))
    assert planned.unit_for_error(replace(goal, derived=BatchGoal(120, places, (None, None)))) == (
        planned.unit_for_error(goal)
    )
