"""Intervals of quantiles from the law of single ranks, instead of bars that hold for all ranks together.

Let F_i be the true number of rows up to value i, N that of all rows, and p the share of the ranks. The quantile is at
the first i with F_i >= p N (for DISC), so for this very i

    F_i - p N >= 0    and    F_(i-1) - p N < 0.                                                                  (1)

i is a fixed number, whatever the noise. So the estimates f and n of F and N have

    f_i - p n >= -h_i    and    f_(i-1) - p n <= h_(i-1),                                                        (2)

but for a chance of beta/2 each, where the error of f_i - p n is beyond h_i, on either side, with probability at most
beta: its law is symmetric. The quantile lies between the first value with the first property and the last value with
the second. For CONT, between two ranks, (1) and (2) hold with -p instead of 0 for the value at the lower rank, and with
1 - p for that at the upper one.

Guarantees: with probability at least 1 - beta the true quantiles of all lines lie within their ends together. A line
without rows has no quantile, and nothing is claimed of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Noise
from bursar.estimation.derived import ROUNDING_OF_COUNTS, Quantile
from bursar.estimation.joint_ratios import JointRows
from bursar.tails import covering_half_widths, half_widths

MOST_EXACT_STEPS = 8
"""Values at each end that are looked at again with an exact half-width. The less of it and Chernoff's is a half-width
as well, and what has the properties (2) with that one has them with either."""


def quantile_ends(quantile: Quantile, columns: Reals, rows: JointRows, beta: float) -> tuple[Reals, Reals]:
    """The ends of a quantile on every line, from estimates of the columns."""
    ranks = columns[:, list(quantile.columns)]
    differences = np.eye(ranks.shape[1])
    differences[:, -1] -= float(quantile.share)
    ends = np.empty((2, len(ranks)))
    for line, numbers in enumerate(ranks):
        weights, noises = rows.law.as_draws(rows.of_line(line, quantile.columns, differences))
        places = _places(quantile, differences @ numbers, weights, noises, beta / len(ranks))
        ends[:, line] = sorted(quantile.points[place] for place in places)
    return ends[0], ends[1]


def _places(
    quantile: Quantile, numbers: Reals, weights: Reals, noises: Sequence[Noise], beta: float
) -> tuple[int, int]:
    """The first value with the first property of (2), and the last one with the second, for f - p n on one line."""
    share = float(quantile.share)
    below, above = (share, 1 - share) if quantile.between else (0.0, 0.0)
    widths = covering_half_widths(weights, noises, beta * len(weights), exact=False)
    low, high = numbers + below + ROUNDING_OF_COUNTS, numbers - above - ROUNDING_OF_COUNTS

    def exact(place: int) -> float:
        return float(half_widths(weights[place : place + 1], noises, beta)[0])

    first = _settled(np.flatnonzero(low >= -widths), lambda place: low[place] >= -exact(place))
    last = _settled(np.flatnonzero(high[:-1] <= widths[:-1])[::-1], lambda place: high[place] <= exact(place))
    return len(numbers) - 1 if first is None else first, 0 if last is None else last + 1


def _settled(places: Integers, holds: Callable[[int], bool]) -> int | None:
    """The first of the places at which the exact half-width says the same; after a few the next one, as it is."""
    for place in places[:MOST_EXACT_STEPS].tolist():
        if holds(place):
            return int(place)
    return int(places[MOST_EXACT_STEPS]) if len(places) > MOST_EXACT_STEPS else None
