"""Intervals of ratios from the joint law of numerator and denominator.

Let r = A/B be the true ratio, a and b the estimates of A and B. A - r B is 0, so a - r b is the error of one
combination of rows, with the weights w(r) = u - r v where u and v are the weights of A and B. Let h(w) be the least
number that the error with weights w exceeds with probability at most beta. As r is a fixed number, whatever the noise,

    Pr[|a - r b| <= h(w(r))] >= 1 - beta,                                                                        (1)

which is Fieller's test (1940), with the exact law in place of the normal one. The interval is a set that holds every t
with |a - t b| <= h(w(t)). Suppose that all such t lie in R = [p, q]. A weight u_j - t v_j is linear in t, so within R
it is no larger than m_j, the larger of its sizes at p and at q, and h(w(t)) <= H(R), the half-width that covers all
weights up to m (`covering_half_widths`). So all such t also satisfy |a - t b| <= H(R), and lie between (a - H(R))/b and
(a + H(R))/b: a smaller R. This begins with what the ratio can be by what is public, and is repeated; every step follows
from the same event (1), so no failure probability is spent on any.

Where nothing public bounds the ratio: for |t| >= c > 0 the weights w(t)/|t| are no larger than |u_j|/c + |v_j|, so
|a - t b| <= |t| H for the H that covers those. If |b| > H, then |t| is at most c or |a|/(|b| - H), whichever is larger;
the least of this over a few c is taken. If no c will do, R has no ends: the denominator may be 0.

Guarantees: with probability at least 1 - beta the true ratios of all lines lie within their ends together; beta is
shared out evenly among the lines. A line whose true denominator is 0 has no ratio, and nothing is claimed of it.
Edge cases: an R that would become empty, which (1) excludes, stays as it was.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Noise
from bursar.estimation.derived import ROUNDING_OF_ENDS, Combination, Ratio
from bursar.estimation.estimate import ErrorLaw, IndependentRows, JointLaw, RepeatedRows, any_of, each_of
from bursar.lazy_dataclass import dataclass
from bursar.tails import Noises, covering_half_widths, single_tail, tail

CHERNOFF_ROUNDS = 6
"""Steps with half-widths that are soon found; the last one is exact."""

TIMES_THE_RATIO = (4.0, 64.0)
"""Where a ratio that nothing public bounds is first looked for, in multiples of what it may be; and its least size."""
LEAST_RATIO = 2.0**-100

MOST_JOINT_NUMBERS, MOST_REPEATED_NUMBERS = 1024, 2**16
"""Lines times columns of an answer for which joint laws are looked at; and where all groups have the same law."""

LEAST_SHARE = 0.5
"""Joint laws are looked at where they leave each number this share of the chance that a row's bar may fail with."""


@dataclass(frozen=True, eq=False)
class JointRows:
    """The rows that columns are made of, and the joint law of their errors."""

    law: JointLaw
    index: Integers  # (lines, columns) -> row, -1 where the number is 0 by definition
    scale: Reals  # what each row is a multiple of, and 1 for the number that is 0

    @staticmethod
    def of(law: ErrorLaw | None, index: Integers, scale: Reals) -> JointRows | None:
        """None where the law is none of rows together, or rows are too many for it."""
        most = MOST_REPEATED_NUMBERS if isinstance(law, RepeatedRows) else MOST_JOINT_NUMBERS
        return JointRows(law, index, scale) if isinstance(law, JointLaw) and index.size <= most else None

    def worth_it(self, share: float) -> bool:
        """Whether numbers have enough of the failure probability where each output has this share of it."""
        return share * (len(self.scale) - 1) >= LEAST_SHARE * len(self.index)

    def combinations(self, side: Combination) -> Reals:
        """The weights of the rows in a combination of columns, one line for each line of the answer."""
        rows = self.index[:, list(side.columns)]
        weights = np.zeros((len(rows), len(self.scale)))
        lines = np.arange(len(rows))[:, None]
        np.add.at(weights, (lines, rows), np.array(side.weights) / self.scale[rows])
        return weights[:, :-1]

    def chance_beyond(self, widths: Reals, which: Integers, enough: float) -> float:
        """At least the chance that some of the rows errs by more than its width; above `enough`, only that it is.

        Widths are taken to eleven digits: they may come from ends of bars, which were rounded.
        """
        if len(which) == 0:
            return 0.0
        rounded = np.array([float(f"{width:.11g}") for width in widths[which]])
        distinct = np.unique(rounded).tolist()
        if isinstance(self.law, RepeatedRows) and len(distinct) == 1:  # in one group, and so in each of them
            copies, queries = self.law.copies, np.unique(self.law.order[which] % len(self.law.weights))
            noises: Sequence[Noise] = Noises.alike(self.law.noise, self.law.weights.shape[1])
            together = self.law if len(queries) == len(self.law.weights) else self.law.of_rows(which)
            if together.sums.close_at(self.law.noise.scale):
                return together.tail(distinct[0], enough)
            return any_of(tail(self.law.weights[queries], noises, distinct[0], each_of(enough, copies)), copies)
        if isinstance(self.law, IndependentRows) and len(distinct) == 1:
            return any_of(single_tail(self.law.noise, distinct[0]), len(np.unique(which)))
        draws, noises = self.of_rows(which)
        return sum(tail(draws[rounded == width], noises, width, enough) for width in distinct)

    def of_rows(self, rows: Integers) -> tuple[Reals, Sequence[Noise]]:
        """Some of the rows as weights of draws."""
        if isinstance(self.law, RepeatedRows | IndependentRows):
            return self.law.rows_as_draws(rows)
        return self.law.as_draws(np.eye(len(self.scale) - 1)[rows])

    def of_line(self, line: int, columns: tuple[int, ...]) -> tuple[Reals, Sequence[Noise]]:
        """Columns on one line of the answer as weights of draws, a row for each."""
        rows = self.index[line, list(columns)]
        some = rows >= 0
        drawn, noises = self.of_rows(rows[some])
        weights = np.zeros((len(rows), drawn.shape[1]))
        weights[some] = drawn / self.scale[rows[some]][:, None]
        return weights, noises

    def law_key(self, line: int, columns: tuple[int, ...]) -> Hashable:
        """The same for lines on which columns have the same law, where that is soon told."""
        rows = self.index[line, list(columns)]
        scales, some = self.scale[rows].tobytes(), rows >= 0
        if isinstance(self.law, RepeatedRows) and some.all():
            groups, queries = np.divmod(self.law.order[rows], len(self.law.weights))
            return (queries.tobytes(), scales) if np.all(groups == groups[0]) else line
        if isinstance(self.law, IndependentRows) and len(np.unique(rows[some])) == some.sum():
            return some.tobytes(), scales
        return line


def ratio_ends(ratio: Ratio, columns: Reals, rows: JointRows, beta: float) -> tuple[Reals, Reals]:
    """The ends of a ratio on every line, from estimates of the columns."""
    inputs = columns[:, list(ratio.columns)]
    above, below = ratio.above.at(inputs), ratio.below.at(inputs)
    above_weights, noises = rows.law.as_draws(rows.combinations(ratio.above))
    below_weights, _ = rows.law.as_draws(rows.combinations(ratio.below))
    low, high = np.full(len(inputs), ratio.lowest), np.full(len(inputs), ratio.highest)
    if not (math.isfinite(ratio.lowest) and math.isfinite(ratio.highest)):
        most = np.full(len(inputs), np.inf)
        largest = np.abs(above) + covering_half_widths(above_weights, noises, beta, exact=False)
        about = np.maximum(largest / np.where(below == 0, 1.0, np.abs(below)), LEAST_RATIO)
        for c in (about * times for times in TIMES_THE_RATIO):
            weights = np.abs(above_weights) / c[:, None] + np.abs(below_weights)
            left = np.abs(below) - covering_half_widths(weights, noises, beta, exact=True)
            bound = np.maximum(np.abs(above) / np.where(left > 0, left, 1.0), c) * (1 + ROUNDING_OF_ENDS)
            most = np.minimum(most, np.where(left > 0, bound, np.inf))
        low, high = -most, most
    bounded = np.isfinite(low) & np.isfinite(high) & (below != 0)
    divisor = np.where(bounded, below, 1.0)
    for step in range(CHERNOFF_ROUNDS + 1):
        first, last = (np.where(bounded, end, 0.0)[:, None] for end in (low, high))
        weights = np.maximum(
            np.abs(above_weights - first * below_weights), np.abs(above_weights - last * below_weights)
        )
        width = covering_half_widths(weights, noises, beta, exact=step == CHERNOFF_ROUNDS)
        middle, reach = above / divisor, width / np.abs(divisor)
        reach += ROUNDING_OF_ENDS * (np.abs(middle) + reach)
        narrower = np.maximum(low, middle - reach), np.minimum(high, middle + reach)
        consistent = bounded & (narrower[0] <= narrower[1])
        low, high = np.where(consistent, narrower[0], low), np.where(consistent, narrower[1], high)
    return low, high
