"""The same rows in several groups have the law of all of them written out."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.estimation.estimate import RepeatedRows, WeightedRows, error_bars
from bursar.goal import Goal, GoalKind
from bursar.tails import LaplaceSums, Noises, tail

NOISE = Noise(kind=NoiseKind.LAPLACE, scale=4000.0)
RNG = np.random.default_rng(2)
WEIGHTS = RNG.random((5, 7)) ** 2
COPIES = 3
ORDER = RNG.permutation(COPIES * 5)
WRITTEN_OUT = WeightedRows(weights=np.kron(np.eye(COPIES), WEIGHTS)[ORDER], noises=Noises.alike(NOISE, COPIES * 7))
REPEATED = RepeatedRows(
    weights=WEIGHTS, sums=LaplaceSums.of(WEIGHTS, 0.05 / COPIES), noise=NOISE, copies=COPIES, order=ORDER
)


def test_tails_and_bars_agree_with_all_weights_written_out() -> None:
    alpha = float(WRITTEN_OUT.half_widths(0.05).max())
    each = sum(tail(row, WRITTEN_OUT.noises, alpha) for row in WRITTEN_OUT.weights)
    assert REPEATED.tail(alpha, 0.0) == pytest.approx(each, rel=0.08)
    assert REPEATED.half_widths(0.05) == pytest.approx(WRITTEN_OUT.half_widths(0.05), rel=0.02)
    assert REPEATED.mean_square() == pytest.approx(WRITTEN_OUT.mean_square())


def test_combinations_are_of_the_draws_of_their_groups() -> None:
    """A twin that mixes up the groups has other weights."""
    combinations = RNG.random((4, COPIES * 5))
    weights, noises = REPEATED.as_draws(combinations)
    whole, _ = WRITTEN_OUT.as_draws(combinations)
    assert weights == pytest.approx(whole)
    assert list(noises) == [NOISE] * (COPIES * 7)
    rows = np.array([4, 0, 9, 2, 2])
    some, _ = REPEATED.rows_as_draws(rows)
    groups = np.unique(ORDER[rows] // 5)
    columns = np.concatenate([np.arange(7 * group, 7 * group + 7) for group in groups])
    assert some == pytest.approx(WRITTEN_OUT.weights[np.ix_(rows, columns)])
    mixed = RepeatedRows(weights=WEIGHTS, sums=REPEATED.sums, noise=NOISE, copies=COPIES, order=np.arange(COPIES * 5))
    assert mixed.as_draws(combinations)[0] != pytest.approx(whole)


def test_bars_are_the_goal_where_one_of_them_would_exceed_it() -> None:
    widest = float(REPEATED.half_widths(0.05).max())
    goal = Goal(kind=GoalKind.ERROR, amount=0.99 * widest)
    assert REPEATED.exceeds(goal.amount, goal.beta)
    assert np.all(error_bars(REPEATED, goal) == goal.amount)
    assert not REPEATED.exceeds(1.01 * widest, goal.beta)
