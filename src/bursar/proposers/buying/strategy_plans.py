"""Plans that measure a strategy: with a matrix of weights, one for every group, or sine transforms of long columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Mode, Noise, NoiseKind
from bursar.core.domain import Domain
from bursar.core.extensions.transform import LARGEST_ROWS
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE
from bursar.core.queries import LinearMap, Product, Steps
from bursar.errors import GoalError, QueryError
from bursar.estimation.estimate import Combined, NearlyNormal, RepeatedRows, WeightedRows, each_of, meets
from bursar.estimation.least_squares import EXACT_TOTAL, EXACT_TOTAL_FAILS, Block, Reconstruction
from bursar.estimation.sine_columns import SineColumn, law_of, lengths_less_last, rows_on, within
from bursar.goal import Goal
from bursar.tails import GaussianSums, LaplaceSums, near_threshold
from bursar.views.measurements import ALL_ROWS, products_of

if TYPE_CHECKING:
    from bursar.strategies.plan import StrategyPlan
    from bursar.strategies.ranges import SineStrategy

SHARES_OF_UNIT = (0.997, 0.985, 0.96, 0.92, 0.85, 0.7, 0.5, 0.25, 0.125)
"""Shares of the unit that would be right for continuous noise: the first that keeps the goal is taken."""

DISCRETE_BELOW_SCALE = 2.0
"""Below this scale noise is too discrete for that, and the right unit may also lie above."""

SHARES_ABOVE_UNIT = (1.06, 1.03, 1.01)

MOST_WEIGHTS = 2**24
"""Most queries, times measured rows, whose weights are written out."""

MOST_LISTED = 2048
"""Most queries whose errors are bounded one by one."""

MANY_WEIGHTS = 2**13
"""From this many on, errors are bounded together, if one group's weights are those of all."""

USUAL_BETA = 0.05
"""For which chance bounds are prepared where a goal names none."""

TRIAL_UNIT = 2.0**16
"""The unit at which weights are found, unless a part's noise would be beyond what can be drawn."""


@dataclass(frozen=True, eq=False)
class ExplicitPlan:
    """A plan whose queries are listed: every answer is a weighted sum of measured rows, with explicit weights.

    With `total` the last row is the exact number of all rows, which is public and no part of the plan.
    """

    plan: StrategyPlan
    weights: Reals  # (queries, measured rows)
    total: bool = False
    last_law: dict[float, WeightedRows] = field(default_factory=dict, repr=False)  # by unit: its tails are not cheap

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return 2 * self.weights.nbytes

    def law(self, unit: float) -> WeightedRows:
        law = self.last_law.get(unit)
        if law is None:
            law = self._law(unit)
            self.last_law.clear()
            self.last_law[unit] = law
        return law

    def _law(self, unit: float) -> WeightedRows:
        each = [noise for part, noise in self.plan.noises(unit) for _ in range(part.rows)]
        noises = tuple(noise for noise, keep in zip(each, self._used[: len(each)], strict=True) if keep)
        chance = EXACT_TOTAL_FAILS if self.total else 0.0
        return WeightedRows(weights=self.weights[:, self._used], noises=noises, chance=chance)

    def estimate(self, values: Sequence[NDArray[np.int64]], unit: float) -> Reals:
        result: Reals = self.weights @ np.concatenate(values).astype(np.float64)
        return result

    def unit_for_rmse(self, amount: float) -> float:
        if not self.total:
            return float(self.plan.unit_for(mean_variance=amount**2)) * (1 - 1e-9)
        return amount / math.sqrt(float(self._variances.mean())) * (1 - 1e-9)

    def unit_for_error(self, goal: Goal) -> float | None:
        """The largest unit of noise that keeps the goal, but for about one per cent.

        Every trial is an exact bound on the tails of all rows, which takes long; so the trials begin next to the unit
        that the saddlepoint approximation gives, and usually end there.
        """
        near = near_threshold(np.abs(self.weights * self._scales), self.plan.noise_kind, goal.beta)
        if near == 0:
            return None  # nothing is uncertain, so nothing is bought
        about = goal.amount / near
        coarse = about * self._scales[self._used].min() < DISCRETE_BELOW_SCALE
        tried = [about * share for share in ((*SHARES_ABOVE_UNIT, *SHARES_OF_UNIT) if coarse else SHARES_OF_UNIT)]
        more = self._about_derived(goal, about)
        larger = [unit for share in SHARES_OF_UNIT if (unit := more * share) > tried[0]]
        return next((unit for unit in (*larger, *tried) if self._keeps(unit, goal)), None)

    def _about_derived(self, goal: Goal, trial: float) -> float:
        """The unit that averages and quantiles would need of continuous noise; 0 where nothing is known of them."""
        if goal.derived is None:
            return 0.0
        try:
            reach = goal.derived.reach(self.law(trial), goal.beta)
        except GoalError:  # a scale that cannot be drawn
            return 0.0
        return trial * goal.amount / reach if reach else 0.0

    def _keeps(self, unit: float, goal: Goal) -> bool:
        try:
            return meets(self.law(unit), goal)
        except GoalError:  # a scale that cannot be drawn
            return False

    @cached_property
    def _used(self) -> NDArray[np.bool_]:
        return np.asarray(np.abs(self.weights * self._scales).max(axis=0, initial=0) > 0)

    @cached_property
    def _scales(self) -> Reals:
        """Of each row's noise at unit one; 0 for the total."""
        scales = [part.scale for part in self.plan.parts for _ in range(part.map.rows)]
        return np.array([*scales, 0.0] if self.total else scales)

    @cached_property
    def _variances(self) -> Reals:
        """Of each query, at unit one."""
        if not self.total:
            return np.asarray(self.plan.variances(1.0))
        each = 2.0 if self.plan.noise_kind is NoiseKind.LAPLACE else 1.0
        return np.asarray(each * np.square(self.weights * self._scales).sum(axis=1))

    def beside_total(self, workload: LinearMap, domain: Domain) -> ExplicitPlan | None:
        """The same rows where the number of all rows is public; None where that does not help."""
        return _beside_total(self.plan, workload, domain)


@dataclass(frozen=True, eq=False)
class RepeatedPlan:
    """A plan that is the same in each of several groups, with so many rows that only one group's weights are kept.

    All rows have one noise.
    """

    plan: StrategyPlan
    weights: Reals  # of one group's measured rows, in one group's queries
    copies: int
    order: Integers  # as in `RepeatedRows`
    sums: dict[float, LaplaceSums | GaussianSums] = field(default_factory=dict, repr=False)  # by beta: made for it
    combined: Combined = field(default_factory=dict, repr=False)  # as in `RepeatedRows`, whatever the noise

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return 8 * self.weights.nbytes + self.order.nbytes

    def law(self, unit: float) -> RepeatedRows | WeightedRows:
        if not self._fine(unit) and self._written_out is not None:
            return self._written_out.law(unit)
        sums = next(iter(self.sums.values()), None) or self._sums(USUAL_BETA)
        noise = self.plan.noises(unit)[0][1]
        return RepeatedRows(
            weights=self.weights, sums=sums, noise=noise, copies=self.copies, order=self.order, combined=self.combined
        )

    def estimate(self, values: Sequence[NDArray[np.int64]], unit: float) -> Reals:
        assert self.plan.answers is not None
        return self.plan.answers.estimate(values)

    def unit_for_rmse(self, amount: float) -> float:
        return float(self.plan.unit_for(mean_variance=amount**2)) * (1 - 1e-9)

    def unit_for_error(self, goal: Goal) -> float | None:
        """The largest unit of noise that keeps the goal, but for about one per cent."""
        unit, enough = self._unit_for_rows(goal), self._unit_for_derived(goal)
        return enough if unit is None else max(unit, enough or 0.0)

    def _unit_for_rows(self, goal: Goal) -> float | None:
        """The same where all rows are to be exact enough together."""
        sums, part = self._sums(goal.beta), self.plan.parts[0]
        scale = sums.scale_for(goal.amount, each_of(goal.beta, self.copies) * (1 - 1e-9))
        if math.isinf(scale):
            return None  # nothing is uncertain, so nothing is bought
        unit = scale / part.scale * (1 - 1e-9)
        if not self._fine(unit) and self._written_out is not None:
            return self._written_out.unit_for_error(goal)
        return unit if unit > 0 else None

    def _unit_for_derived(self, goal: Goal) -> float | None:
        """The same where quantiles and the like are; None where nothing is known of them, or noise would be coarse."""
        if goal.derived is None:
            return None
        trial = _trial_unit(self.plan)
        reach = 0.0 if trial is None else goal.derived.reach(self.law(trial), goal.beta)
        if trial is None or not 0 < reach < math.inf or not self._fine(trial * goal.amount / reach):
            return None
        tried = (share * trial * goal.amount / reach for share in SHARES_OF_UNIT)
        return next((unit for unit in tried if goal.derived.kept_by(self.law(unit), goal.amount, goal.beta)), None)

    def _fine(self, unit: float) -> bool:
        """Whether noise is as good as continuous, so that errors are bounded closely together."""
        sums = next(iter(self.sums.values()), None) or self._sums(USUAL_BETA)
        return sums.close_at(unit * self.plan.parts[0].scale)

    @cached_property
    def _written_out(self) -> ExplicitPlan | None:
        """The plan with all weights, for noise that is coarse; None where there are too many."""
        answers, rows = self.plan.answers, sum(part.map.rows for part in self.plan.parts)
        few = len(self.order) <= MOST_LISTED and len(self.order) * rows <= MOST_WEIGHTS
        if not few or answers is None or answers.weights is None:
            return None
        return ExplicitPlan(self.plan, answers.weights())

    def beside_total(self, workload: LinearMap, domain: Domain) -> ExplicitPlan | None:
        """The same rows where the number of all rows is public, which ties groups to each other; None for too many."""
        numbers = workload.rows * sum(part.map.rows for part in self.plan.parts)
        listed = workload.rows <= MOST_LISTED and numbers <= MOST_WEIGHTS
        return _beside_total(self.plan, workload, domain) if listed else None

    def _sums(self, beta: float) -> LaplaceSums | GaussianSums:
        if beta not in self.sums:
            self.sums.clear()
            laplace = self.plan.noise_kind is NoiseKind.LAPLACE
            each = each_of(beta, self.copies)
            self.sums[beta] = LaplaceSums.of(self.weights, each) if laplace else GaussianSums.of(self.weights)
        return self.sums[beta]


def listed(
    workload: LinearMap, domain: Domain, mode: Mode, beta: float | None = None, *, most: float = math.inf
) -> ExplicitPlan | RepeatedPlan | None:
    """The best strategy for the queries, with `beta` for their largest error; None where none is known.

    Or none that is better than noise of variance `most` in every query, at unit one: by the largest error with `beta`,
    else by the largest variance. Then its weights are not worth working out.
    """
    # Linear algebra takes a while to load, and few questions need it.
    from bursar.strategies.best import best_strategy
    from bursar.strategies.largest_error import error_at

    try:
        plan = best_strategy(workload, mode, beta=beta)
    except QueryError:
        return None
    if plan.answers is None or not plan.parts:
        return None
    each = plan.variances(1.0)
    if beta is None or mode is Mode.PURE or not math.isfinite(most):
        worse = each.max(initial=0.0) > most
    else:  # a few queries may well have more variance, if the many have less
        worse = error_at(each, beta) > error_at(np.full(len(each), most), beta)
    if worse:
        return None
    numbers = workload.rows * sum(part.map.rows for part in plan.parts)
    if numbers >= MANY_WEIGHTS and (repeated := _repeated(plan, workload)) is not None:
        return repeated
    if workload.rows > MOST_LISTED or numbers > MOST_WEIGHTS:
        return None
    weights = _weights(plan, workload, domain)
    return ExplicitPlan(plan, _plan_weights(plan) if weights is None else weights)


def _repeated(plan: StrategyPlan, workload: LinearMap) -> RepeatedPlan | None:
    """The plan by one group's weights, where it is known to be the same in all groups, with one noise."""
    answers, scales = plan.answers, {part.scale for part in plan.parts}
    if answers is None or len(scales) != 1:
        return None
    groups = answers.groups
    copies = 1 if groups is None else groups.copies
    weights = answers.weights if groups is None else groups.weights
    if weights is None or workload.rows * sum(part.map.rows for part in plan.parts) > MOST_WEIGHTS * copies**2:
        return None
    order = np.arange(workload.rows) if groups is None else groups.order()
    return RepeatedPlan(plan, weights(), copies, order)


def _beside_total(plan: StrategyPlan, workload: LinearMap, domain: Domain) -> ExplicitPlan | None:
    weights = _weights(plan, workload, domain, total=True)
    helps = weights is not None and np.any(weights[:, -1])
    return ExplicitPlan(plan, weights, total=True) if weights is not None and helps else None


def _weights(plan: StrategyPlan, workload: LinearMap, domain: Domain, *, total: bool = False) -> Reals | None:
    """How least squares weighs the plan's rows, and with `total` the exact number of all rows, which comes last.

    Found by reconstructing from rows that all came out as zero, unless the plan has them. The total helps only where it
    is a combination of the plan's rows: otherwise it tells of cells that none of them looks at.
    """
    if not total and plan.answers is not None and plan.answers.weights is not None:
        return plan.answers.weights()
    if total and len(plan.parts) == 1 and not _adds_up(plan.parts[0].map):
        return None
    columns = domain.ordered([*workload.attrs, *(name for part in plan.parts for name in part.map.attrs)])
    rehearsal = Reconstruction(domain, columns)
    unit = _trial_unit(plan)
    if unit is None:
        return None
    for part, noise in plan.noises(unit):
        products = products_of(part)
        if sum(product.rows for product in products) != part.rows:
            return None  # a map that least squares does not know
        if not all(rehearsal.add(_zeros(product, noise)) for product in products):
            return None
    if total:
        rehearsal.add(_zeros(ALL_ROWS, EXACT_TOTAL))
    return rehearsal.weights_of(workload)


def _plan_weights(plan: StrategyPlan) -> Reals:
    """How the plan itself weighs its rows, where there are more cells than least squares over all of them can hold.

    Answers are linear, so each row's weights are the answers if it alone came out as one: where it does not know them.
    """
    assert plan.answers is not None
    if plan.answers.own is not None:
        return plan.answers.own()
    zeros = [np.zeros(part.map.rows, np.int64) for part in plan.parts]
    weights = []
    for values in zeros:
        for row in range(len(values)):
            values[row] = 1
            weights.append(plan.answers.estimate(zeros))
            values[row] = 0
    return np.stack(weights, axis=1)


def _adds_up(map: LinearMap) -> bool:
    """Whether the number of all rows may be a combination of a map's rows: no cell is outside of all of them."""
    return all(bool(np.all(mask.steps.norms(1))) for product in products_of(map) for mask in product.masks)


def _trial_unit(plan: StrategyPlan) -> float | None:
    """A unit at which every part's noise can be drawn, large where possible: there noise is as good as continuous.

    Edge cases: None where the scales of the parts lie too far apart for any unit.
    """
    scales = [part.scale for part in plan.parts]
    unit = min(TRIAL_UNIT, LARGEST_SCALE / 2 / max(scales))
    return unit if unit * min(scales) >= SMALLEST_SCALE else None


def _zeros(product: Product, noise: Noise) -> Block:
    return Block(product, np.zeros(product.rows, np.int64), noise)


MOST_WORK = 2**28
"""Most cells, times queries, for which the errors are worked out one by one."""

SHARE_THAT_TAKES_ALL = 15 / 16
"""Queries over this share of a column are planned over all of it, for about one per cent more."""


@dataclass(frozen=True, eq=False)
class SinePlan:
    """All ranges, or all prefix sums, of one long column by a sine transform, and the queries to be answered now.

    Another range of the same cells is free later.
    """

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
        return law_of(self.strategy, self.lengths, noise, lambda: self._less_last)

    @cached_property
    def _less_last(self) -> Reals:
        return lengths_less_last(self.strategy, self.rows)

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


def sines(workload: LinearMap, domain: Domain) -> SinePlan | None:
    """A plan where all queries are about one column and cut it into many pieces; None elsewhere.

    It is over the cells from the first to the last that a query looks at, or over all if these are nearly all; and made
    for the largest table that can be declared, whatever has been.
    """
    from bursar.strategies.best import LineWorkload, best_strategy  # linear algebra takes a while to load
    from bursar.strategies.ranges import LONG_COLUMN, RangeFamily, SineStrategy

    if len(workload.attrs) != 1:
        return None
    (column,) = workload.attrs
    size = domain[column].size
    rows = rows_on(workload, column, size)
    if rows is None or len(rows.breaks()) < LONG_COLUMN or rows.rows * size > MOST_WORK:
        return None
    first, end = _hull(rows)
    if end - first >= SHARE_THAT_TAKES_ALL * size:
        first, end = 0, size
    family = RangeFamily.PREFIXES if _prefixes(rows, first) else RangeFamily.RANGES
    line = LineWorkload(family=family, column=column, cells=end - first, max_rows=LARGEST_ROWS, first=first, size=size)
    try:
        plan = best_strategy(line, Mode.CONCENTRATED)
    except QueryError:
        return None
    assert isinstance(plan.source, SineStrategy)
    inside = within(rows, plan.source.transform)
    return None if inside is None else SinePlan(plan, plan.source, inside)


def _hull(rows: Steps) -> tuple[int, int]:
    """The first cell where a row is not zero, and the first after which all are."""
    stay = rows.levels[rows.starts[1:][np.diff(rows.starts) > 0] - 1]
    return int(rows.at.min()), rows.size if np.any(stay) else int(rows.at.max())


def _prefixes(rows: Steps, first: int) -> bool:
    """Whether every row is one range that begins at the first cell."""
    lengths = np.diff(rows.starts)
    opening = rows.at[rows.starts[:-1][lengths > 0]]
    return bool(np.all(opening == first) and lengths.max() <= 2)
