"""The law of estimates of which only the variances are kept: sub-Gaussian, or with Laplace noise in them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bursar.tails.marginals import log_tail

Reals = NDArray[np.float64]

OUTWARD = 1 + 2.0**-30
"""Bounds are widened by this: far more than the arithmetic that made them can have lost."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ByVariance:
    """Row i errs by a weighted sum of independent draws of variance V_i in all, and by at most `slip` beside that.

    Pr[|error_i| >= t + slip] <= 2 exp(log_tail(t, V_i)), and the union bound over rows.
    """

    variances: Reals
    heavy: bool
    slip: float = 0.0

    def tail(self, alpha: float, enough: float) -> float:
        far = alpha / OUTWARD - self.slip
        values, counts = np.unique(self.variances, return_counts=True)
        each = (math.exp(log_tail(far, variance, heavy=self.heavy)) for variance in values.tolist())
        total = sum(2.0 * count * tail for count, tail in zip(counts.tolist(), each, strict=True))
        return min(1.0, float(total))

    def half_widths(self, beta: float) -> Reals:
        share = math.log(beta / (2 * max(len(self.variances), 1)))
        unit = math.sqrt(-2 * share) if not self.heavy else _inverse(share)
        widths: Reals = (np.sqrt(self.variances) * unit + self.slip) * OUTWARD
        return widths

    def mean_square(self) -> float:
        spread = float(self.variances.mean()) if len(self.variances) else 0.0
        return (math.sqrt(spread) + self.slip) ** 2


def _inverse(share: float) -> float:
    """The distance in standard deviations at which the heavy tail's logarithm is `share`, from above."""
    low, high = 0.0, 1.0
    while log_tail(high, 1.0, heavy=True) > share:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if log_tail(middle, 1.0, heavy=True) > share else (low, middle)
    return high
