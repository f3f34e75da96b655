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
from dataclasses import dataclass

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Noise, NoiseKind
from bursar.estimation.derived import ROUNDING_OF_COUNTS, Quantile
from bursar.estimation.joint_ratios import JointRows
from bursar.tails import LaplaceSums, covering_half_widths, half_widths

MANY_WEIGHTS, MOST_TOGETHER = 2**18, 0.5
"""From so many on, errors of Laplace draws are bounded all at once; made for this chance of any at most."""

MOST_EXACT_STEPS = 8
"""Values at each end that are looked at again with an exact half-width. The less of it and Chernoff's is a half-width
as well, and what has the properties (2) with that one has them with either."""


def quantile_ends(quantile: Quantile, columns: Reals, rows: JointRows, beta: float) -> tuple[Reals, Reals]:
    """The ends of a quantile on every line, from estimates of the columns."""
    ranks = columns[:, list(quantile.columns)]
    share, each = float(quantile.share), beta / len(ranks)
    ends = np.empty((2, len(ranks)))
    errors: RankErrors | None = None
    for line, numbers in enumerate(ranks):
        weights, noises = rows.of_line(line, quantile.columns)
        weights -= share * weights[-1]
        if errors is None or not errors.same(weights, noises):  # groups often have the same law
            errors = RankErrors.of(weights, noises, each)
        places = _places(quantile, numbers - share * numbers[-1], errors)
        ends[:, line] = sorted(quantile.points[place] for place in places)
    return ends[0], ends[1]


@dataclass(frozen=True, eq=False)
class RankErrors:
    """How far f_i - p n can be off, for each i alone but for a chance of beta."""

    weights: Reals
    noises: Sequence[Noise]
    beta: float
    widths: Reals
    settled: bool  # whether the widths are close to the least, so that looking again would not help

    @staticmethod
    def of(weights: Reals, noises: Sequence[Noise], beta: float) -> RankErrors:
        kinds = set(noises)
        (noise, *more) = kinds
        if weights.size >= MANY_WEIGHTS and not more and noise.kind is NoiseKind.LAPLACE:
            sums = LaplaceSums.of(weights, min(beta * len(weights), MOST_TOGETHER))
            if sums.applies(noise.scale * float(np.sqrt(sums.variances.max()))):
                return RankErrors(weights, noises, beta, sums.half_widths(noise.scale, beta), settled=True)
        widths = covering_half_widths(weights, noises, beta * len(weights), exact=False)
        return RankErrors(weights, noises, beta, widths, settled=False)

    def same(self, weights: Reals, noises: Sequence[Noise]) -> bool:
        return set(noises) == set(self.noises) and np.array_equal(weights, self.weights)

    def exact(self, place: int) -> float:
        return float(half_widths(self.weights[place : place + 1], self.noises, self.beta)[0])


def _places(quantile: Quantile, numbers: Reals, errors: RankErrors) -> tuple[int, int]:
    """The first value with the first property of (2), and the last one with the second, for f - p n on one line."""
    share, widths = float(quantile.share), errors.widths
    below, above = (share, 1 - share) if quantile.between else (0.0, 0.0)
    low, high = numbers + below + ROUNDING_OF_COUNTS, numbers - above - ROUNDING_OF_COUNTS
    first = _settled(np.flatnonzero(low >= -widths), lambda place: errors.settled or low[place] >= -errors.exact(place))
    last = _settled(
        np.flatnonzero(high[:-1] <= widths[:-1])[::-1],
        lambda place: errors.settled or high[place] <= errors.exact(place),
    )
    return len(numbers) - 1 if first is None else first, 0 if last is None else last + 1


def _settled(places: Integers, holds: Callable[[int], bool]) -> int | None:
    """The first of the places at which the exact half-width says the same; after a few the next one, as it is."""
    for place in places[:MOST_EXACT_STEPS].tolist():
        if holds(place):
            return int(place)
    return int(places[MOST_EXACT_STEPS]) if len(places) > MOST_EXACT_STEPS else None
