"""A strategy as it is measured: maps with their noise, set by one number, and how queries follow from the values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Mode, Noise, NoiseKind
from bursar.core.queries import LinearMap
from bursar.errors import QueryError
from bursar.strategies.kronecker import KroneckerStrategy
from bursar.strategies.largest_error import error_at
from bursar.strategies.long_columns import LongColumnStrategy
from bursar.strategies.marginals import MeasuredTables, ResidualPlan
from bursar.strategies.ranges import SineStrategy

ROUNDING_OF_PRICES = 1 + 2.0**-18
"""Prices are rounded up by less than this, relatively."""

TINY = 1e-300
"""In place of a variance of zero, where precisions are divided by."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StrategyPart:
    """A map to measure, and the scale of its noise when all parts together have sensitivity one."""

    map: LinearMap
    scale: float


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupAnswers:
    """A plan that is the same in each of several groups of people, nobody in two of them."""

    copies: int
    weights: Callable[[], Reals]  # of one group's measured rows in one group's queries
    order: Callable[[], Integers]  # of each query of the workload: its group, times the queries of a group, and which


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """How the workload's queries, in their order, follow from the values of the parts.

    `variances` are per variance of noise: at unit u the error of query i has variance `variances[i]` times the variance
    of a draw of scale u (u^2 for Gaussian noise, 2 u^2 for Laplace; discrete noise has a little less).
    """

    variances: Callable[[], Reals]
    estimate: Callable[[Sequence[Integers]], Reals]
    weights: Callable[[], Reals] | None = None  # of the values of all parts in each query, where they are at hand
    own: Callable[[], Reals] | None = None  # the same, where least squares over the rows weighs them better
    groups: GroupAnswers | None = None  # where the plan is made of one for a group whose weights are at hand


@dataclass(frozen=True, kw_only=True, eq=False)
class StrategyPlan:
    """What to measure, with how much noise, and what comes of it.

    One number sets all noise: the *unit* u. Part p gets noise of scale `p.scale * u`, all parts together then cost
    1/(2 u^2) rho (concentrated) or 1/u epsilon (pure) at most, in exact integer norms, and every query's error has
    standard deviation proportional to u.

    `ratio` certifies the choice: the root mean square error over the workload is at most that multiple of the best
    strategy there is for Gaussian noise at the same L2 sensitivity. None means unknown. (Where the plan was made with
    `beta`: the largest error but for that chance. For the largest variance of marginals: its root.)
    `answers` is None for a `LineWorkload` or `Marginals`, which have more queries than can be listed: ask `source`.
    """

    kind: str
    mode: Mode
    parts: tuple[StrategyPart, ...]
    ratio: float | None
    source: KroneckerStrategy | LongColumnStrategy | SineStrategy | ResidualPlan | MeasuredTables | None
    answers: Answers | None

    @property
    def noise_kind(self) -> NoiseKind:
        """The noise that its mode of accounting pays for."""
        return NoiseKind.LAPLACE if self.mode is Mode.PURE else NoiseKind.GAUSSIAN

    def unit(self, budget: float) -> float:
        """The unit at which all parts cost at most `budget` (rho or epsilon) together, rounding counted."""
        if not (math.isfinite(budget) and budget > 0):
            raise QueryError("a budget is above zero")
        return ROUNDING_OF_PRICES * (1 / budget if self.mode is Mode.PURE else 1 / math.sqrt(2 * budget))

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
        units = [math.sqrt(bound / have) for bound, have in bounds if bound is not None and have > 0]
        return min(units, default=math.inf)

    @cached_property
    def _each(self) -> Reals:
        assert self.answers is not None
        return self.answers.variances()


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnPart:
    """A plan for the products of one column or set of columns, and where their queries are among all."""

    plan: StrategyPlan
    answers: Answers
    queries: Integers  # of all products, in the order of the plan
    exclusive: Integers  # places among these that no other part answers
    each: Reals  # the variance of each


def pooled(parts: Sequence[ColumnPart], queries: int, beta: float | None) -> StrategyPlan:
    """One plan of all parts, with shares of the budget that make the sum of variances least, or with beta the largest
    error.

    With t the sums of variances at a unit of one, that is a share in proportion to t^(1/3) (pure), or to t^(1/2)
    (concentrated, where shares of the squared sensitivity add up). With e the largest error of each, it is e or e^2.
    """
    mode = parts[0].plan.mode
    needs = np.array([error_of(part.each[part.exclusive], beta) for part in parts])
    if beta is None:
        shares = np.cbrt(needs) if mode is Mode.PURE else np.sqrt(needs)
    else:
        shares = needs if mode is Mode.PURE else np.square(needs)
    shares = shares / shares.sum()
    widened = 1 / np.where(shares > 0, shares if mode is Mode.PURE else np.sqrt(shares), 1.0)
    part_precisions = [
        1 / (np.maximum(part.each, TINY) * factor**2) for part, factor in zip(parts, widened, strict=True)
    ]
    precisions = np.zeros(queries)
    for part, each in zip(parts, part_precisions, strict=True):
        precisions[part.queries] += each
    by_precision = [each / precisions[part.queries] for part, each in zip(parts, part_precisions, strict=True)]

    def estimate(values: Sequence[Integers]) -> Reals:
        left, total = iter(values), np.zeros(queries)
        for part, share in zip(parts, by_precision, strict=True):
            total[part.queries] += share * part.answers.estimate([next(left) for _ in part.plan.parts])
        return total

    known = [part.answers.weights or part.answers.own for part in parts]

    def weights() -> Reals:
        """Of all measured values: those of a part in its queries, next to each other."""
        rows = [np.zeros((queries, sum(part.map.rows for part in whole.plan.parts))) for whole in parts]
        for part, part_rows, share, weights_of in zip(parts, rows, by_precision, known, strict=True):
            assert weights_of is not None
            part_rows[part.queries] = weights_of() * share[:, None]
        return np.concatenate(rows, axis=1)

    variances = np.where(precisions > 1 / (2 * TINY), 0.0, 1 / precisions)
    measured = tuple(
        StrategyPart(map=part.map, scale=part.scale * factor)
        for whole, factor in zip(parts, widened.tolist(), strict=True)
        for part in whole.plan.parts
    )
    kind = "apart" if all(len(part.exclusive) == len(part.queries) for part in parts) else "columns"
    # Without shared queries, least squares over the rows of all parts is better: they say how many rows there are, too.
    at_hand = kind == "columns" and all(part.answers.weights is not None for part in parts)
    own = None if at_hand or None in known else weights
    answers = Answers(variances=lambda: variances, estimate=estimate, weights=weights if at_hand else None, own=own)
    return StrategyPlan(kind=kind, mode=mode, parts=measured, ratio=None, source=None, answers=answers)


def error_of(variances: Reals, beta: float | None) -> float:
    """What a plan is judged by: the sum of variances, or with beta the largest error but for that chance."""
    return float(variances.sum()) if beta is None else error_at(variances, beta)
