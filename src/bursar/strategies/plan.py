"""What `best_strategy` is asked and what it answers: implicit workloads, and plans that say what to measure.

A plan in use, with a budget of rho and a kernel:

    plan = best_strategy(workload, Mode.CONCENTRATED)
    unit = plan.unit(rho)
    values = [measure(map, noise) for map, noise in plan.noises(unit)]
    estimates = plan.answers.estimate(values)  # with variances plan.variances(unit)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Mode, Noise, NoiseKind
from bursar.core.queries import LinearMap
from bursar.errors import QueryError
from bursar.strategies.kronecker import KroneckerStrategy
from bursar.strategies.laplace_marginals import MeasuredTables
from bursar.strategies.ranges import RangeFamily, SineStrategy
from bursar.strategies.residual import ResidualPlan

ROUNDING = 1 + 2.0**-18
"""Prices are rounded up by less than this, relatively."""


@dataclass(frozen=True, kw_only=True)
class LineWorkload:
    """All ranges, or all prefix sums, of the cells [first, first + cells) of a column of `size` cells."""

    family: RangeFamily
    column: str
    cells: int
    max_rows: int  # the data set's public bound; what rounding can lose depends on it
    first: int = 0
    size: int | None = None  # first + cells, unless the column goes on


@dataclass(frozen=True, kw_only=True)
class Marginals:
    """Tables over sets of columns, given by their numbers in `names`, in increasing order."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]
    largest: bool = False  # keep the largest variance of a count small, rather than the sum over all counts


@dataclass(frozen=True, kw_only=True, eq=False)
class StrategyPart:
    """A map to measure, and the scale of its noise when all parts together have sensitivity one."""

    map: LinearMap
    scale: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """How the workload's queries, in their order, follow from the values of the parts.

    `variances` are per variance of noise: at unit u the error of query i has variance `variances[i]` times the variance
    of a draw of scale u (u^2 for Gaussian noise, 2 u^2 for Laplace; discrete noise has a little less).
    """

    variances: Callable[[], Reals]
    estimate: Callable[[Sequence[Integers]], Reals]


@dataclass(frozen=True, kw_only=True, eq=False)
class StrategyPlan:
    """What to measure, with how much noise, and what comes of it.

    One number sets all noise: the *unit* u. Part p gets noise of scale `p.scale * u`, all parts together then cost
    1/(2 u^2) rho (concentrated) or 1/u epsilon (pure) at most, in exact integer norms, and every query's error has
    standard deviation proportional to u.

    `ratio` certifies the choice: the root mean square error over the workload is at most so many times that of the best
    strategy there is for Gaussian noise at the same L2 sensitivity. None means unknown. (For the largest variance of
    marginals: the root of the largest variance over its least.)
    `answers` is None for a `LineWorkload` or `Marginals`, which have more queries than can be listed: ask `source`.
    """

    kind: str
    mode: Mode
    parts: tuple[StrategyPart, ...]
    ratio: float | None
    source: KroneckerStrategy | SineStrategy | ResidualPlan | MeasuredTables | None
    answers: Answers | None

    @property
    def noise_kind(self) -> NoiseKind:
        return NoiseKind.LAPLACE if self.mode is Mode.PURE else NoiseKind.GAUSSIAN

    def unit(self, budget: float) -> float:
        """The unit at which all parts cost at most `budget` (rho or epsilon) together, rounding counted."""
        if not (math.isfinite(budget) and budget > 0):
            raise QueryError("a budget is above zero")
        return ROUNDING * (1 / budget if self.mode is Mode.PURE else 1 / math.sqrt(2 * budget))

    def noises(self, unit: float) -> list[tuple[LinearMap, Noise]]:
        """What to measure at a unit; scales that the kernel does not draw are refused by `Noise`."""
        return [(part.map, Noise(kind=self.noise_kind, scale=float(part.scale * unit))) for part in self.parts]

    def variances(self, unit: float) -> Reals:
        """The variance of every query of the workload at a unit."""
        if self.answers is None:
            raise QueryError("this workload's queries are not listed")
        return self._each * unit**2 * (2.0 if self.mode is Mode.PURE else 1.0)

    def unit_for(self, *, mean_variance: float | None = None, largest_variance: float | None = None) -> float:
        """The largest unit at which the variances keep the given bound on their mean or maximum."""
        at_one = self.variances(1.0)
        bounds = [(mean_variance, at_one.mean()), (largest_variance, at_one.max(initial=0.0))]
        units = [math.sqrt(wanted / have) for wanted, have in bounds if wanted is not None and have > 0]
        return min(units, default=math.inf)

    @cached_property
    def _each(self) -> Reals:
        assert self.answers is not None
        return self.answers.variances()
