"""Nested regression of present error: does filtering large marginals matter? (RAP, Sec. 3.4.3 and Appendix A)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

TINY = 1e-300
"""Stands for a sum of squares of 0, which has no logarithm."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One evaluation of RAP, at its best (T, K)."""

    error: float
    epsilon: float
    size: float  # the workload size, or the number of queries: what the model takes the logarithm of
    filtered: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """Ordinary least squares, with what the paper reports of it."""

    coefficients: Reals
    errors: Reals  # standard errors
    p_values: Reals  # two-sided, of each coefficient being 0
    adjusted_r2: float
    f_p_value: float
    omnibus_p_value: float  # D'Agostino and Pearson's test of normal residuals; not a number below 8 observations
    log_likelihood: float
    parameters: int

    def predict(self, design: Reals) -> Reals:
        return design @ self.coefficients


def design(observations: Sequence[Observation], levels: Sequence[float], *, full: bool) -> Reals:
    """b0 + sum b_i x_i + (b + sum b_i x_i) x3, and in the full model all of it again times x4.

    x_i tells the i-th level of epsilon from the first one, x3 is the logarithm of the size, x4 whether it was filtered.
    """
    dummies = [[1.0, *(float(o.epsilon == level) for level in levels[1:])] for o in observations]
    x3 = np.array([[math.log(o.size)] for o in observations])
    x4 = np.array([[float(o.filtered)] for o in observations])
    ones = np.array(dummies)
    restricted = np.hstack([ones, ones * x3])
    return np.hstack([restricted, restricted * x4]) if full else restricted


def fit(matrix: Reals, errors: Reals) -> Fit:
    """Least squares by the pseudo-inverse, so that a level without observations does no harm."""
    from scipy import stats  # here and below, so that a run's memory is its own

    number, rank = len(errors), int(np.linalg.matrix_rank(matrix))
    inverse = np.linalg.pinv(matrix)
    found = inverse @ errors
    residuals = errors - matrix @ found
    left = number - rank
    rss, tss = float(residuals @ residuals), float(((errors - errors.mean()) ** 2).sum())
    variance = rss / left if left else math.nan
    spread = np.sqrt(variance * np.diag(inverse @ inverse.T))
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = 2 * stats.t.sf(np.abs(found / spread), left)
        f = (tss - rss) / (rank - 1) / variance
    return Fit(
        coefficients=found,
        errors=spread,
        p_values=p_values,
        adjusted_r2=1 - variance / (tss / (number - 1)),
        f_p_value=float(stats.f.sf(f, rank - 1, left)),
        omnibus_p_value=float(stats.normaltest(residuals).pvalue) if number >= 8 else math.nan,
        log_likelihood=-number / 2 * (math.log(2 * math.pi * max(rss, TINY) / number) + 1),
        parameters=rank,
    )


def likelihood_ratio(restricted: Fit, full: Fit) -> float:
    """p-value of the restricted model: 2 (l_full - l_restricted) against chi-squared, whose degrees of freedom are
    the parameters it lacks."""
    from scipy import stats

    statistic = 2 * (full.log_likelihood - restricted.log_likelihood)
    return float(stats.chi2.sf(statistic, full.parameters - restricted.parameters))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm and Bonferroni's adjusted p-values: the family-wise error is at most alpha where those below it count.

    The i-th smallest of m is multiplied by m - i + 1, is at least those before it, and at most 1.
    """
    order = np.argsort(p_values, kind="stable")
    scaled = [(len(p_values) - place) * p_values[i] for place, i in enumerate(order)]
    adjusted = np.minimum(np.maximum.accumulate(scaled), 1.0)
    found = np.empty(len(p_values))
    found[order] = adjusted
    return [float(p) for p in found]
