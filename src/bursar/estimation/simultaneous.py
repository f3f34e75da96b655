"""The simultaneous contract: error bars that hold for all answers at once, whatever was seen before a question was put.

The promise. Fix the data, one version of them, and any beta. With probability at least 1 - beta, every answer that is
ever given to a question of the declared family with confidence 1 - beta or more lies within its own error bars. The
analyst may choose each question, goal and confidence after seeing everything that was answered before.

The scheme. Purchases of a version are numbered 1, 2, ... as they stand in the log. An answer is computed from the rows
of one purchase, by plain least squares; purchase i gives each of the N_i questions of the family that its rows can
determine the same failure probability beta_i / N_i, with beta_i = beta 6/(pi^2 i^2).

The argument. Look at the moment before the noise of purchase i is drawn. Its rows and its scale are fixed, and with
them, for each question q that they can determine, the estimator and the least h_q with Pr[|error of q| > h_q] <=
beta_i / N_i; neither depends on anything that is seen later. The noise is independent of all that was seen so far. So,
whatever that was, the event G_i that no such q errs by more than its h_q has a probability of at least 1 - beta_i, and
by sum_i 6/(pi^2 i^2) = 1 all G_i hold together with probability at least 1 - beta, however many purchases there are and
however they were chosen. In that event each answer from purchase i at confidence 1 - beta has bars of at least h_q, and
one at a higher confidence has wider ones. What the analyst saw decides only which of these true statements is read out.

Why one purchase at a time: weights across purchases, and refined rows, depend on scales that are chosen after the first
noise was seen, and then no h_q is fixed before the draw. A question that rows determine has the same value on cells
that no row tells apart; this bounds N_i (`Family.determined`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.core.domain import Domain
from bursar.core.queries import Product
from bursar.estimation.estimate import IndependentRows, WeightedRows
from bursar.lazy_dataclass import dataclass
from bursar.views.nodes import ranges_of

Cuts = Mapping[str, NDArray[np.int64]]
"""Per column: cell 0, and each cell in front of which some row changes."""

LARGEST_FAMILY = 2**200
"""Most questions about one set of columns: failure probabilities must stay numbers that can be computed with."""

BETA_LESS_ROUNDING = 1 - 1e-12
"""A hair below each question's failure probability, so that rounding cannot lift all of them together above theirs."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """All boxes over the declared sets of columns: for each column of a set, a range of cells that are neighbours.

    Cells stand in declared order, the ones for other values and for NULL behind them. The whole column is a range, so
    questions about fewer columns are in the family as well.
    """

    domain: Domain
    sets: tuple[tuple[str, ...], ...]

    def determined(self, rows: Sequence[Product]) -> int:
        """At least the number of questions of the family that follow from these rows, all of them measured at once.

        The ends of a range can only be where some row changes, so a column with s stretches between such cells has
        s(s + 1)/2 ranges; over a set of columns these multiply. A single row determines multiples of itself, of which
        at most one is a box.
        """
        if sum(product.rows for product in rows) <= 1:
            return 1
        cuts = cuts_of(rows)
        parts = {frozenset(columns).intersection(cuts) for columns in self.sets}
        largest = [part for part in parts if not any(part < other for other in parts)]
        return sum(math.prod(_ranges(len(cuts[name])) for name in part) for part in largest)

    def questions(self, columns: Sequence[str]) -> int:
        """The number of boxes over some columns."""
        return math.prod(_ranges(self.domain[name].size) for name in columns)

    def uneven(self, product: Product) -> tuple[str, ...]:
        """Columns of which some row does not take a range each; none where all rows are boxes."""
        for mask in product.masks:
            if len(mask.attrs) > 1 or ranges_of(mask.steps) is None:
                return mask.attrs
        return ()

    def beyond(self, product: Product) -> tuple[str, ...]:
        """The columns that keep the boxes of a product out of the set that has most of their columns; often none."""
        sizes = {name: self.domain[name].size for name in product.attrs}
        whole = {mask.attrs[0]: set(ranges_of(mask.steps) or ()) for mask in product.masks}
        cut = [name for name, size in sizes.items() if whole[name] != {(0, size)}]
        outside = [tuple(name for name in cut if name not in columns) for columns in self.sets]
        return min(outside, key=len)

    def describe(self) -> str:
        return "; ".join(" and ".join(columns) for columns in self.sets)


def cuts_of(rows: Sequence[Product]) -> dict[str, NDArray[np.int64]]:
    """Where rows change along each of their columns; everywhere, where a mask is about several columns at once."""
    changes: dict[str, list[NDArray[np.int64]]] = {}
    for mask in (mask for product in rows for mask in product.masks):
        for name, size in zip(mask.attrs, mask.sizes, strict=True):
            changes.setdefault(name, []).append(mask.steps.breaks() if len(mask.attrs) == 1 else np.arange(size))
    return {name: np.unique(np.concatenate(cuts)) for name, cuts in changes.items()}


def share(number: int) -> float:
    """The share of beta that the purchase of this number gets, 6/(pi^2 i^2); over i = 1, 2, ... they add up to 1."""
    return 6 / (math.pi * number) ** 2


@dataclass(frozen=True, kw_only=True, eq=False)
class EveryQuestion:
    """The law of rows estimated from one purchase, with bars as all answers together need them.

    Each row fails with a probability of at most beta/times, whichever rows it is asked with.
    """

    law: IndependentRows | WeightedRows
    rows: int
    times: float  # questions that the purchase can determine, over its share

    def tail(self, alpha: float, enough: float) -> float:
        """`enough` where no bar at beta = enough exceeds alpha, else 1: more is not asked of a tail."""
        if self.law.mean_square() > alpha**2:
            return 1.0  # as in WeightedRows: hopeless
        return enough if self.half_widths(enough).max(initial=0.0) <= alpha else 1.0

    def half_widths(self, beta: float) -> Reals:
        each = BETA_LESS_ROUNDING * beta / self.times
        if isinstance(self.law, IndependentRows):
            return np.repeat(replace(self.law, rows=1).half_widths(each), self.rows)
        return self.law.half_widths(min(self.rows * each, 0.5))

    def mean_square(self) -> float:
        """For a question that does not depend on the noise; of one that does, only the bars are promised."""
        return self.law.mean_square()


def _ranges(stretches: int) -> int:
    return stretches * (stretches + 1) // 2
