"""What published systems know about their errors: a simulation, or variances."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bursar.arrays import Reals
from bursar.core.accounting import NoiseKind
from bursar.core.noise.exact_sampler import system_words
from bursar.estimation.estimate import each_of
from bursar.goal import Goal, GoalKind
from bursar.papers.cachedp.accuracy import DRAWS, draw, failure_chance
from bursar.tails import scale_for

Worst = Callable[[int], Reals]
"""Draws a number of times the largest error over the queries, in units of the noise scale."""

ROUNDED = 1 - 1e-12
GRAIN = 2.0**20
CLOSE = 1e-3
"""To which share the largest scale that passes is searched."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Believed:
    """An error law as the system believes in it: errors reach `alpha` with probability `beta` at most."""

    variances: Reals
    alpha: float = math.inf
    beta: float = 1.0

    def tail(self, alpha: float, enough: float) -> float:
        return self.beta if alpha >= self.alpha else 1.0

    def half_widths(self, beta: float) -> Reals:
        """Chebyshev's."""
        return np.sqrt(self.variances * len(self.variances) / beta)

    def mean_square(self) -> float:
        return float(self.variances.mean()) if len(self.variances) else 0.0


def believed(variances: Reals, goal: Goal) -> Believed:
    """The law of a plan that was made to keep the goal."""
    if goal.kind is GoalKind.ERROR:
        return Believed(variances=variances, alpha=goal.amount, beta=goal.beta)
    return Believed(variances=variances)


def passes(worst: Reals, alpha: float, beta: float) -> bool:
    """Whether errors, as often as they were simulated, stay below alpha but for beta, by CacheDP's own check."""
    return failure_chance(int((worst > alpha).sum()), len(worst), beta) < beta


def largest_scale(worst: Worst, alpha: float, beta: float, low: float) -> float:
    """The largest scale that passes, by bisection with fresh draws for every check; `low` is one that does."""
    high = 2 * low
    while passes(high * worst(DRAWS), alpha, beta):
        low, high = high, 2 * high
    while high > (1 + CLOSE) * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if passes(middle * worst(DRAWS), alpha, beta) else (low, middle)
    return low


def laplace_scale(rows: int, goal: Goal) -> float:
    """b = alpha / ln(1 / (1 - (1 - beta)^(1/L))) for L queries (Ge et al.), in the tail of the discrete law.

    A root mean square error e gives b = e / sqrt 2.
    """
    if goal.kind is GoalKind.RMSE:
        return goal.amount / math.sqrt(2)
    return scale_for(NoiseKind.LAPLACE, goal.amount, each_of(ROUNDED * goal.beta, rows))


def unit_laplace(rows: int, draws: int) -> Reals:
    """Simulated Laplace noise of scale 1, one row each: that of the whole numbers at a scale where it is continuous."""
    return draw(system_words, np.full(rows, GRAIN), draws) / GRAIN
