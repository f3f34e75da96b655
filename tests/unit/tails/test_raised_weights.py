"""Sums of very many kinds of terms: bounds by larger weights, of which few are different."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.noise.law import Noise, NoiseKind
from bursar.estimation.estimate import WeightedRows, error_bars
from bursar.goal import Goal, GoalKind
from bursar.tails import sums
from bursar.tails.characteristic import Noises

TERMS = 400


def many_terms(kind: NoiseKind, scale: float, steep: float) -> tuple[np.ndarray, Noises]:
    """Weights that fall from 1 as those of an estimate do: a few large ones, and very many small ones."""
    weights = np.sort(1.0 / (1.0 + np.sqrt(2.0) * np.arange(TERMS)) ** steep)
    return weights, Noises.of([Noise(kind=kind, scale=scale)] * TERMS)


@pytest.mark.parametrize("kind", [NoiseKind.LAPLACE, NoiseKind.GAUSSIAN])
@pytest.mark.parametrize("scale", [20_000.0, 1e6])
@pytest.mark.parametrize("steep", [0.3, 0.8, 1.5])
def test_few_are_different_and_all_as_large(kind: NoiseKind, scale: float, steep: float) -> None:
    weights, noises = many_terms(kind, scale, steep)
    spread = float(np.sqrt(np.square(weights) @ noises.variances))
    raised, shift = sums._raised(weights, noises, 4.5 * spread)
    assert np.all(raised >= weights)
    assert len(np.unique(raised)) < TERMS
    assert np.sqrt(np.square(raised) @ noises.variances) <= sums.RAISED_SPREAD * spread
    assert raised.sum() <= shift <= sums.RAISED_SHIFT * 4.5 * spread


@pytest.mark.parametrize("kind", [NoiseKind.LAPLACE, NoiseKind.GAUSSIAN])
@pytest.mark.parametrize("steep", [0.3, 1.5])
@pytest.mark.parametrize("far", [2.0, 4.5])
def test_the_tail_is_that_of_a_threshold_hardly_lower(kind: NoiseKind, steep: float, far: float) -> None:
    """Never below the truth, and no more than the truth at a threshold that is lower by one per cent."""
    weights, noises = many_terms(kind, 20_000.0, steep)
    alpha = far * float(np.sqrt(np.square(weights) @ noises.variances))
    row = sums._alone(weights, noises)
    bound, truth = sums._sum_tail(weights, noises, alpha), sums._inverted(row, alpha)
    assert 0.98 * truth <= bound <= 1.02 * sums._inverted(row, 0.99 * alpha)
    half_as_wide = sums._inverted(sums._alone(0.9 * weights, noises), alpha)
    assert half_as_wide < 0.98 * truth  # weights that were lowered would be found out


def test_small_noise_keeps_its_own_weights() -> None:
    """Where the numbers themselves are as coarse as the shift, nothing is gained by raising."""
    weights, noises = many_terms(NoiseKind.LAPLACE, 0.4, 0.3)
    kept, shift = sums._raised(weights, noises, 1.0)
    assert shift == 0.0
    assert kept is weights


def test_the_goal_stands_in_where_one_bar_exceeds_it() -> None:
    """Rows of unequal width: the widest alone decides, and what is shown is what all bars together would say."""
    weights = np.diag([1.0, 1.0, 1.0, 4.0])
    law = WeightedRows(weights=weights, noises=[Noise(kind=NoiseKind.LAPLACE, scale=50.0)] * 4)
    beta = 0.05
    widths = law.half_widths(beta)
    amount = next(a for a in np.linspace(widths.max(), widths.min(), 400) if law.tail(a, beta) > 0.97 * beta)
    goal = Goal(kind=GoalKind.ERROR, amount=float(amount), confidence=1 - beta)
    assert goal.amount < widths.max()
    assert law.exceeds(goal.amount, beta)
    assert error_bars(law, goal).tolist() == [goal.amount] * 4
    wide = Goal(kind=GoalKind.ERROR, amount=float(2 * widths.max()), confidence=1 - beta)
    assert not law.exceeds(wide.amount, beta)
    assert error_bars(law, wide).tolist() == widths.tolist()
