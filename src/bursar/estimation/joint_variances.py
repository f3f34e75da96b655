"""Intervals of variances from the joint law of the count N, the sum S and the sum of squares Q of values.

Let m = S/N be the true mean and v the true variance. Then Q - 2 m S + (m^2 - v) N is 0, or -v for the sample's own
variance; and with the estimates q, s and n it is the error of one combination of rows, with the weights
w(m, v) = Q's - 2 m S's + (m^2 - v) N's. As m and v are fixed numbers, whatever the noise,

    Pr[|q - 2 m s + m^2 n - v d| <= h(w(m, v))] >= 1 - beta,    d = n, or n - 1 for the sample's                 (1)

as in Fieller's test (`joint_ratios`, where h is). Suppose that m lies in [a, b], which it does but for a small share of
beta, and v in R. A weight is linear in m and in k = m^2 - v, so within a box of these it is largest at a corner, and
h(w) <= H, the half-width that covers all corners. q - 2 m s + m^2 n is convex in m: with its least and greatest value
in [a, b], and H beside them, v d lies within known ends: a smaller R. It is repeated, and every step follows from the
same two events. A wrong m changes v by (m - s/n)^2 only: so little of beta is needed for it.

Guarantees: with probability at least 1 - beta the true variances of all lines lie within their ends together. A line
with too few rows to have one has no variance, and nothing is claimed of it.
Edge cases: where d may not be above 0, the ends are those of all that is possible.
"""

from __future__ import annotations

import numpy as np

from bursar.arrays import Reals
from bursar.estimation.derived import ROUNDING_OF_ENDS, Combination, Ratio, Variance
from bursar.estimation.joint_ratios import CHERNOFF_ROUNDS, JointRows, ratio_ends
from bursar.tails import covering_half_widths

SHARE_OF_MEANS = 0.05
"""Of the failure probability, for not knowing the means."""


def variance_ends(variance: Variance, columns: Reals, rows: JointRows, beta: float) -> tuple[Reals, Reals]:
    """The ends of a variance on every line, or of its root where that is asked for, from estimates of the columns."""
    sides = [
        Combination(columns=variance.columns, weights=tuple(units), steps=variance.steps)
        for units in np.diag(variance.units).tolist()
    ]
    n, s, q = (side.at(columns[:, list(variance.columns)]) for side in sides)
    counted, total, squares = (rows.law.as_draws(rows.combinations(side))[0] for side in sides)
    noises = rows.law.as_draws(rows.combinations(sides[0]))[1]
    # Values are less a constant in their range, so none is further from 0 than the range is wide.
    mean = Ratio(above=sides[1], below=sides[0], least=(0.0,) * 3, lowest=-variance.width, highest=variance.width)
    first, last = ratio_ends(mean, columns, rows, SHARE_OF_MEANS * beta)
    least = np.where((first <= 0) & (last >= 0), 0.0, np.minimum(first**2, last**2))  # of m^2
    most = np.maximum(first**2, last**2)
    means = np.clip(s / np.where(n > 0, n, 1.0), first, last)
    lowest = q - 2 * means * s + means**2 * n
    highest = np.maximum(q - 2 * first * s + first**2 * n, q - 2 * last * s + last**2 * n)
    rounding = ROUNDING_OF_ENDS * (np.abs(q) + 2 * np.sqrt(most) * np.abs(s) + most * np.abs(n))
    divisor = n - (1.0 if variance.sample else 0.0)
    positive = divisor > 0
    low, high = np.zeros(len(n)), np.full(len(n), variance.largest)
    for step in range(CHERNOFF_ROUNDS + 1):
        weights = np.zeros_like(counted)
        for m in (first, last):
            for k in (least - high, most - low):
                weights = np.maximum(weights, np.abs(squares - 2 * m[:, None] * total + k[:, None] * counted))
        exact = step == CHERNOFF_ROUNDS
        reach = rounding + covering_half_widths(weights, noises, (1 - SHARE_OF_MEANS) * beta, exact=exact)
        narrower_low = np.maximum(low, (lowest - reach) / np.where(positive, divisor, 1.0))
        narrower_high = np.minimum(high, (highest + reach) / np.where(positive, divisor, 1.0))
        consistent = positive & (narrower_low <= narrower_high)
        low, high = np.where(consistent, narrower_low, low), np.where(consistent, narrower_high, high)
    return (np.sqrt(low), np.sqrt(high)) if variance.root else (low, high)
