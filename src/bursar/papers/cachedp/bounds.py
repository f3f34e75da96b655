"""EstimatePrivacyBudget (CacheDP, Algorithm 2, lines 9 to 16): the most noise for the rows that are paid.

Rows whose cached noise is at most b_P are free, the others are paid with b_P, so every row has noise min(b_cache, b_P).
The error rises with b_P, and the price |P|_1 / b_P falls: the largest b_P that keeps the goal is the cheapest. The
paper's search through the cached scales and then between two of them finds the same number as one bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bursar.goal import Goal, GoalKind
from bursar.estimation.estimate import ErrorLaw, Reals
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE
from bursar.papers.cachedp.accuracy import Accuracy

CLOSE = {GoalKind.ERROR: 1e-3, GoalKind.RMSE: 1e-9}
"""To which share b_P is searched."""

Weights = Callable[[Reals], Reals | None]
"""How rows with noise of the given scales are weighted; None where they do not answer the workload."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Bound:
    """Noise that keeps a goal: b_P, the scale of each row, and the answers as sums of the rows."""

    paid: float
    scales: Reals
    weights: Reals
    law: ErrorLaw


def loose(weights: Reals, goal: Goal) -> float:
    """b_L, which keeps the goal by Chebyshev whatever is cached.

    alpha sqrt(beta/2) / |W A^+|_F (Theorem 2.2); for an expected squared error alpha / (sqrt(2) |W A^+|_F).

    Differs: the variance of a row is 2 b^2; Proposition 4.2 has b^2.
    """
    size = math.sqrt(float(np.square(weights).sum()))
    if goal.kind is GoalKind.ERROR:
        return goal.amount * math.sqrt(goal.beta / 2) / size
    return goal.amount * math.sqrt(len(weights) / 2) / size


def search(
    weights: Weights, cached: Reals, payable: NDArray[np.bool_], start: float, goal: Goal, accuracy: Accuracy
) -> Bound | None:
    """The largest b_P that keeps the goal, from b_L on; infinite where the cached rows do by themselves.

    `cached` has the scale of each row in the cache, infinite for those that are not there; rows that are not `payable`
    keep it.

    Edge cases: None where not even the least noise that can be drawn keeps the goal.
    Differs: F has c.b <= b_P, as Equation (8) says; lines 14 and 18 have c.b < b_P.
    """

    def at(paid: float) -> Bound | None:
        scales = np.where(payable, np.minimum(cached, paid), cached)
        found = weights(scales)
        law = None if found is None else accuracy.check(found, scales, goal)
        return None if found is None or law is None else Bound(paid=paid, scales=scales, weights=found, law=law)

    everything = bool(np.isfinite(cached).all())
    free = at(math.inf)
    if free is not None:
        return free
    low = min(max(start, SMALLEST_SCALE), LARGEST_SCALE)
    while (best := at(low)) is None:
        if low == SMALLEST_SCALE:
            return None
        low = max(low / 2, SMALLEST_SCALE)
    high = float(cached.max()) if everything else min(2 * low, LARGEST_SCALE)
    while not everything and low < high and (better := at(high)) is not None:
        best, low, high = better, high, min(2 * high, LARGEST_SCALE)
    while high > (1 + CLOSE[goal.kind]) * low:
        middle = math.sqrt(low * high)
        better = at(middle)
        best, low, high = (best, low, middle) if better is None else (better, middle, high)
    return best
