"""Errors of very many ranks are bounded at once, and as closely as one by one."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from bursar.arrays import Reals
from bursar.core.accounting import Noise, NoiseKind
from bursar.estimation import joint_quantiles
from bursar.estimation.derived import Quantile
from bursar.estimation.derived_goals import DerivedGoal
from bursar.estimation.estimate import IndependentRows, RepeatedRows, meets
from bursar.estimation.joint_quantiles import RankErrors, ends_of, quantile_ends
from bursar.estimation.joint_ratios import JointRows
from bursar.goal import Goal, GoalKind
from bursar.tails import LaplaceSums, half_widths

NOISE = Noise(kind=NoiseKind.LAPLACE, scale=50_000.0)
VALUES, COPIES = 24, 3
WEIGHTS = np.tril(np.ones((VALUES, VALUES))) / 1024  # every value is measured, with noise of about 50 people
LAW = RepeatedRows(
    weights=WEIGHTS,
    sums=LaplaceSums.of(WEIGHTS, 0.05),
    noise=NOISE,
    copies=COPIES,
    order=np.arange(COPIES * VALUES),
)
INDEX = np.arange(COPIES * VALUES).reshape(COPIES, VALUES)
ROWS = JointRows(LAW, INDEX, np.ones(COPIES * VALUES + 1))
MEDIAN = Quantile(
    columns=tuple(range(VALUES)), points=tuple(map(float, range(VALUES))), share=Decimal("0.5"), between=False
)
RANKS = 100.0 * np.cumsum(np.ones((COPIES, VALUES)), axis=1)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_quantiles, "MANY_WEIGHTS", 1)


def test_widths_are_those_of_single_ranks(at_once: None) -> None:
    weights, noises = ROWS.of_line(1, MEDIAN.columns)
    assert np.array_equal(weights, WEIGHTS)
    errors = RankErrors.of(weights, noises, 0.05)
    assert errors.settled
    exact = np.array([half_widths(weights[i : i + 1], noises, 0.05)[0] for i in range(VALUES)])
    assert not errors.within(exact / 1.01).any()
    assert errors.within(1.03 * exact).all()


def test_ends_are_those_that_are_found_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    apart = quantile_ends(MEDIAN, RANKS, ROWS, 0.05)
    monkeypatch.setattr(joint_quantiles, "MANY_WEIGHTS", 1)
    together = quantile_ends(MEDIAN, RANKS, ROWS, 0.05)
    for one, other in zip(apart, together, strict=True):
        assert np.all(np.abs(one - other) <= 1)
    assert np.all(together[0] < 11)
    assert np.all(together[1] > 11)


def test_the_median_is_covered_but_not_by_bars_of_a_tenth(at_once: None) -> None:
    """1,000 draws at a failure of 20 %; the twin's noise is ten times what its bars are for."""
    rng = np.random.default_rng(4)
    a = np.exp(-1 / NOISE.scale)

    def missed(times: float, draws: int = 1000) -> float:
        noise = times * (rng.geometric(1 - a, (draws, VALUES)) - rng.geometric(1 - a, (draws, VALUES))) @ WEIGHTS.T
        rows = JointRows(LAW, np.tile(INDEX[:1], (draws, 1)), ROWS.scale)
        low, high = quantile_ends(MEDIAN, RANKS[:1] + noise, rows, 0.2 * draws)  # each line by itself
        return float(np.mean((low > 11) | (high < 11)))

    assert missed(1.0) < 0.25
    assert missed(10.0) > 0.4


@pytest.mark.heavy
@pytest.mark.parametrize("kind", [NoiseKind.LAPLACE, NoiseKind.GAUSSIAN])
def test_ranks_that_are_added_up_err_by_all_their_noise(kind: NoiseKind) -> None:
    """200 draws at a failure of 20 %. The twin takes what each number errs by for what their sums do."""
    noise, draws, beta, values = Noise(kind=kind, scale=30.0), 200, 0.2, 96
    rows = JointRows(
        IndependentRows(noise=noise, rows=values), np.tile(np.arange(values), (draws, 1)), np.ones(values + 1)
    )
    rng = np.random.default_rng(5)
    spread = {NoiseKind.LAPLACE: rng.laplace, NoiseKind.GAUSSIAN: rng.normal}[kind]
    noisy = np.rint(20 + spread(0, noise.scale, (draws, values)))
    points = tuple(map(float, range(values)))
    added = Quantile(columns=tuple(range(values)), points=points, share=Decimal("0.5"), between=False, apart=True)

    def missed(ends: tuple[Reals, Reals]) -> float:
        return float(np.mean((ends[0] > 47) | (ends[1] < 47)))

    assert missed(quantile_ends(added, noisy, rows, beta * draws)) < 0.34  # 10^-6 of 20 %
    single = [RankErrors.of(np.eye(values), [noise] * values, beta)] * draws
    assert missed(ends_of(added, noisy, single)) > 0.5
    assert np.array_equal(added.up_to(noisy), np.cumsum(noisy, axis=1))
    assert added.facts() != replace(added, apart=False).facts()


def test_a_goal_is_for_ranks_and_not_for_the_rows_they_are_added_up_from() -> None:
    added = replace(MEDIAN, apart=True)
    goal = DerivedGoal((added,), (1.0,), np.full(VALUES, np.inf), INDEX[:1], np.ones(VALUES + 1))
    assert goal.apart
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=30.0)
    law = IndependentRows(noise=noise, rows=VALUES)
    rows = half_widths(np.eye(VALUES), [noise] * VALUES, 0.05).max()
    asked = Goal(kind=GoalKind.ERROR, amount=float(rows), derived=goal)
    assert not meets(law, asked)  # each is exact enough, their sums are not
    assert meets(law, replace(asked, derived=None))
    assert meets(law, replace(asked, amount=30 * 1.97 * (VALUES / 4) ** 0.5))
