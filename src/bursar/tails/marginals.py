"""How large the largest error over all cells of several marginals can be, and estimates that make it smaller.

A cell's error is a weighted sum of independent draws with total variance at most V. Gaussian draws:
P(error >= t) <= exp(-t^2 / (2V)). With Laplace draws among them, E exp(l error) <= 1 / (1 - l^2 V / 2), since each
Laplace draw of scale b has at most 1 / (1 - l^2 b^2), a Gaussian one at most exp(l^2 v / 2) <= 1 / (1 - l^2 v / 2), and
1 / ((1 - x)(1 - y)) <= 1 / (1 - x - y); discrete draws have less. Hence P(error >= t) <= exp(-l t) / (1 - l^2 V / 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bursar.arrays import Reals

HALF = 0.5
"""Plans are judged by the error that is exceeded every other time."""


def log_tail(distance: float, variance: float, *, heavy: bool) -> float:
    """The logarithm of the bound on P(error >= distance), at most 0."""
    if distance <= 0:
        return 0.0
    if variance <= 0:
        return -math.inf
    if not heavy:
        return -(distance**2) / (2 * variance)
    t = distance / math.sqrt(variance / 2)
    x = 0.0 if t <= 0 else (math.sqrt(1 + t * t) - 1) / t  # where -x t - log(1 - x^2) is least
    return min(-x * t - math.log1p(-x * x), 0.0)


@dataclass(frozen=True, kw_only=True)
class Cells:
    """The cells of one marginal: how many, the variance of each, and by how much they are lowered."""

    count: int
    variance: float
    lowered: float = 0.0


def exceeded(distance: float, marginals: Sequence[Cells], *, heavy: bool, size: int | None) -> float:
    """A bound on the chance that some cell of some marginal is wrong by `distance` or more.

    A cell with true count c >= 0 and noise z is released as max(c + z - t, 0) where it is lowered by t > 0, as c + z
    where t = 0. It is too high by u only if z >= u + t. It is too low by u only if -z >= u - t and, when lowered,
    c >= u: of such cells a marginal has at most size / u.
    """
    total = 0.0
    for cells in marginals:
        full = cells.count if cells.lowered == 0 or size is None else min(cells.count, size / distance)
        total += cells.count * math.exp(log_tail(distance + cells.lowered, cells.variance, heavy=heavy))
        total += full * math.exp(log_tail(distance - cells.lowered, cells.variance, heavy=heavy))
    return total


def largest_error(marginals: Sequence[Cells], *, heavy: bool, size: int | None = None, beta: float = HALF) -> float:
    """The error over all cells that is exceeded with a chance of at most beta."""
    return _least(lambda u: exceeded(u, marginals, heavy=heavy, size=size) <= beta, marginals)


def lowering(marginals: Sequence[Cells], *, heavy: bool, size: int) -> list[Cells]:
    """The marginals lowered so that the bound on their largest error is least: both ways to err are equally likely.

    Most cells of a large marginal are empty, and only size / u of its N cells hold u rows or more. Lowering all of them
    by t makes the many errors upwards rarer and the few downwards more likely; they balance at
    t = V log(N u / size) / (2u), for Laplace noise at sqrt(V / 2) log(N u / size) / 2.
    """

    def at(u: float) -> list[Cells]:
        lowered = []
        for cells in marginals:
            ratio = max(math.log(cells.count * u / size), 0.0)
            by = math.sqrt(cells.variance / 2) * ratio / 2 if heavy else cells.variance * ratio / (2 * u)
            lowered.append(Cells(count=cells.count, variance=cells.variance, lowered=min(by, u / 2)))
        return lowered

    best = _least(lambda u: exceeded(u, at(u), heavy=heavy, size=size) <= HALF, marginals)
    return at(best)


def on_simplex(table: Reals, total: float) -> Reals:
    """The nearest table of non-negative numbers with this sum."""
    ordered = np.sort(table, axis=None)[::-1]
    above = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    last = int(np.flatnonzero(ordered > above)[-1])
    nearest: Reals = np.maximum(table - above[last], 0.0)
    return nearest


def _least(enough: Callable[[float], bool], marginals: Sequence[Cells]) -> float:
    """The least distance that is enough, which every larger one is; to one part in a million."""
    unit = math.sqrt(max((cells.variance for cells in marginals), default=0.0))
    if unit == 0:
        return 0.0
    low, high = 0.0, unit
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


OUTWARD = 1 + 2.0**-30
"""Bounds are widened by this: far more than the arithmetic that made them can have lost."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ByVariance:
    """Row i errs by a weighted sum of independent draws of variance V_i in all, and by at most `rounding` beside that.

    Pr[|error_i| >= t + rounding] <= 2 exp(log_tail(t, V_i)), and the union bound over rows.
    """

    variances: Reals
    heavy: bool
    rounding: float = 0.0

    def tail(self, alpha: float, enough: float) -> float:
        far = alpha / OUTWARD - self.rounding
        values, counts = np.unique(self.variances, return_counts=True)
        each = (math.exp(log_tail(far, variance, heavy=self.heavy)) for variance in values.tolist())
        total = sum(2.0 * count * tail for count, tail in zip(counts.tolist(), each, strict=True))
        return min(1.0, float(total))

    def half_widths(self, beta: float) -> Reals:
        share = math.log(beta / (2 * max(len(self.variances), 1)))
        unit = math.sqrt(-2 * share) if not self.heavy else _inverse(share)
        widths: Reals = (np.sqrt(self.variances) * unit + self.rounding) * OUTWARD
        return widths

    def mean_square(self) -> float:
        spread = float(self.variances.mean()) if len(self.variances) else 0.0
        return (math.sqrt(spread) + self.rounding) ** 2


def _inverse(share: float) -> float:
    """The distance in standard deviations at which the heavy tail's logarithm is `share`, from above."""
    low, high = 0.0, 1.0
    while log_tail(high, 1.0, heavy=True) > share:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if log_tail(middle, 1.0, heavy=True) > share else (low, middle)
    return high
