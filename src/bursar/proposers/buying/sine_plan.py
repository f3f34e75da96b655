"""Plans for many ranges of one long column: all ranges, or all prefix sums, are measured together by sines.

Whoever asks for another range of the same cells later has it for free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.core.accounting import Mode
from bursar.core.domain import Domain
from bursar.core.extensions.transform import LARGEST_ROWS
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE
from bursar.core.queries import LinearMap, Steps
from bursar.errors import QueryError
from bursar.estimation.estimate import NearlyNormal, meets
from bursar.estimation.sine_columns import SineColumn, law_of, rows_on, within
from bursar.goal import Goal

if TYPE_CHECKING:
    from bursar.strategies.plan import StrategyPlan
    from bursar.strategies.ranges import SineStrategy


MOST_WORK = 2**28
"""Most cells, times queries, for which the errors are worked out one by one."""

NEARLY_ALL = 15 / 16
"""Who looks at so much of a column gets the rest of it for about one per cent more."""


@dataclass(frozen=True, eq=False)
class SinePlan:
    """A sine strategy, and the queries over its cells that are to be answered now."""

    plan: StrategyPlan
    strategy: SineStrategy
    rows: Steps

    @property
    def bytes(self) -> int:
        """About how much memory it takes: a dozen numbers for each position."""
        return 100 * self.strategy.transform.period

    @property
    def largest_variance(self) -> float:
        """Of a query, at unit one."""
        return (float(self.lengths.max()) * self.plan.parts[0].scale) ** 2

    @cached_property
    def lengths(self) -> Reals:
        """The root of each query's variance at noise of variance one."""
        return np.sqrt(self.strategy.variances(self.rows))

    def law(self, unit: float) -> NearlyNormal:
        ((_, noise),) = self.plan.noises(unit)
        return law_of(self.strategy, self.lengths, noise)

    def estimate(self, values: Sequence[NDArray[np.int64]], unit: float) -> Reals:
        ((_, noise),) = self.plan.noises(unit)
        (measured,) = values
        return SineColumn(transform=self.strategy.transform, noise=noise, values=measured).estimates(self.rows)

    def unit_for_rmse(self, amount: float) -> float:
        """From mean |a_i|^2 (s^2 + off^2), as `NearlyNormal` has it."""
        noise = amount**2 / float(np.square(self.lengths).mean()) - self.strategy.off**2
        return math.sqrt(max(noise, 0.0)) / self.plan.parts[0].scale * (1 - 1e-9)

    def unit_for_error(self, goal: Goal) -> float | None:
        """The largest unit of noise that keeps the goal, to a millionth."""
        low, high = (scale / self.plan.parts[0].scale for scale in (1.001 * SMALLEST_SCALE, 0.999 * LARGEST_SCALE))
        if not meets(self.law(low), goal):
            return None
        while high > (1 + 1e-6) * low:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if meets(self.law(middle), goal) else (low, middle)
        return low


def sines(wanted: LinearMap, domain: Domain) -> SinePlan | None:
    """A plan where all queries are about one column and cut it into many pieces; None elsewhere.

    It is over the cells from the first to the last that a query looks at, or over all if these are nearly all; and made
    for the largest table that can be declared, whatever has been.
    """
    from bursar.strategies.best import LONG_COLUMN, best_strategy  # linear algebra takes a while to load
    from bursar.strategies.plan import LineWorkload as Asked
    from bursar.strategies.ranges import RangeFamily, SineStrategy

    if len(wanted.attrs) != 1:
        return None
    (column,) = wanted.attrs
    size = domain[column].size
    rows = rows_on(wanted, column, size)
    if rows is None or len(rows.breaks()) < LONG_COLUMN or rows.rows * size > MOST_WORK:
        return None
    first, end = _hull(rows)
    if end - first >= NEARLY_ALL * size:
        first, end = 0, size
    family = RangeFamily.PREFIXES if _prefixes(rows, first) else RangeFamily.RANGES
    asked = Asked(family=family, column=column, cells=end - first, max_rows=LARGEST_ROWS, first=first, size=size)
    try:
        plan = best_strategy(asked, Mode.CONCENTRATED)
    except QueryError:
        return None
    assert isinstance(plan.source, SineStrategy)
    own = within(rows, plan.source.transform)
    return None if own is None else SinePlan(plan, plan.source, own)


def _hull(rows: Steps) -> tuple[int, int]:
    """The first cell where a row is not zero, and the first after which all are."""
    stay = rows.levels[rows.starts[1:][np.diff(rows.starts) > 0] - 1]
    return int(rows.at.min()), rows.size if np.any(stay) else int(rows.at.max())


def _prefixes(rows: Steps, first: int) -> bool:
    """Whether every row is one range that begins at the first cell."""
    lengths = np.diff(rows.starts)
    opening = rows.at[rows.starts[:-1][lengths > 0]]
    return bool(np.all(opening == first) and lengths.max() <= 2)
