"""Measure a strategy that the questions follow from, where that is cheaper than measuring the questions themselves.

Worth it where questions overlap: running totals, ranges, a total beside its parts. One strategy then answers all of
them together, and the answers are consistent with each other.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bursar.domain import Domain
from bursar.errors import BudgetError, GoalError, QueryError
from bursar.goal import Goal, GoalKind
from bursar.inference.estimate import Estimate, WeightedRows, meets
from bursar.inference.least_squares import Block, Reconstruction
from bursar.inference.views import products_of
from bursar.kernel.accounting import Measured, Mode, Noise
from bursar.kernel.verbs import Verbs
from bursar.planner.choose import spending_cap
from bursar.planner.offer import Offer, Price, Views
from bursar.planner.request import Request
from bursar.queries import LinearMap, Product

if TYPE_CHECKING:
    from bursar.strategy.plan import Plan

MOST_ROWS = 2048
"""Most queries that are planned together."""

REMEMBERED = 256
GAIN = 0.95
"""A strategy is offered only if its largest variance is below this share of measuring the questions directly."""

SEARCH_STEPS = 12


@dataclass(frozen=True, eq=False)
class Planned:
    """A plan for one workload, and how its answers are weighted from what it measures."""

    plan: Plan
    weights: NDArray[np.float64]  # (queries, measured rows)
    units: dict[Goal, float | None] = field(default_factory=dict)  # found before: the search takes the longest

    def noises(self, unit: float) -> list[tuple[LinearMap, Noise]]:
        return self.plan.noises(unit)

    def law(self, unit: float) -> WeightedRows:
        each = [noise for part, noise in self.noises(unit) for _ in range(part.rows)]
        used = np.abs(self.weights).max(axis=0, initial=0) > 0
        return WeightedRows(
            weights=self.weights[:, used], noises=tuple(n for n, keep in zip(each, used, strict=True) if keep)
        )


class Strategy:
    name = "strategy"

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, Mode], Planned | None] = OrderedDict()

    def offers(self, request: Request, views: Views) -> list[Offer]:
        wanted = request.workload.map
        if not request.joint or not 2 <= wanted.rows <= MOST_ROWS or _overlap(wanted, views.mode) <= 1:
            return []  # single questions are planned quickly; questions about different people are their own strategy
        planned = self._planned(wanted, views.domain, views.mode)
        if planned is None:
            return []
        if request.goal not in planned.units:
            planned.units[request.goal] = _unit(planned, request.goal, wanted.rows)
        unit = planned.units[request.goal]
        if unit is None:
            return []
        measured = planned.noises(unit)
        events = tuple(Measured(strategy=part, noise=noise, version=views.version) for part, noise in measured)
        try:
            price = Price(events=events, at_most=views.price(events))
        except BudgetError:
            return []
        ratio = planned.plan.ratio
        best = "" if ratio is None else f", error within {ratio:.3g} of the least possible"
        return [
            Offer(
                proposer=self.name,
                price=price,
                law=planned.law(unit),
                run=partial(_measure, planned, measured, unit),
                buys=sum(part.rows for part, _ in measured),
                note=f"{planned.plan.kind} strategy, {measured[0][1].kind.value} noise{best}",
            )
        ]

    def _planned(self, wanted: LinearMap, domain: Domain, mode: Mode) -> Planned | None:
        """The plan of a workload, remembered; None where no plan is known, or none that gains anything."""
        key = (wanted.digest, domain.digest, mode)
        if key not in self._known:
            self._known[key] = _plan(wanted, domain, mode)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return self._known[key]


def _measure(planned: Planned, measured: list[tuple[LinearMap, Noise]], unit: float, verbs: Verbs) -> Estimate:
    values = np.concatenate([verbs.measure(part, noise).values for part, noise in measured])
    return Estimate(values=planned.weights @ values.astype(float), law=planned.law(unit))


def _overlap(wanted: LinearMap, mode: Mode) -> int:
    """How much one person can move all queries together: the sensitivity of measuring them directly, or its square."""
    return sum(norm.largest() for norm in wanted.norms(1 if mode is Mode.PURE else 2))


def _plan(wanted: LinearMap, domain: Domain, mode: Mode) -> Planned | None:
    from bursar.strategy.best import best_strategy  # linear algebra takes a while to load, and few questions need it

    try:
        plan = best_strategy(wanted, mode)
    except QueryError:
        return None
    if plan.answers is None or not plan.parts:
        return None
    overlap = _overlap(wanted, mode)
    directly = 2.0 * overlap**2 if mode is Mode.PURE else float(overlap)  # variance at unit 1
    if plan.variances(1.0).max() > GAIN * directly:
        return None
    weights = _weights(plan, wanted, domain)
    return None if weights is None else Planned(plan, weights)


def _weights(plan: Plan, wanted: LinearMap, domain: Domain) -> NDArray[np.float64] | None:
    """How least squares weighs the plan's rows; found by reconstructing from rows that all came out as zero."""
    columns = domain.ordered([*wanted.attrs, *(name for part in plan.parts for name in part.map.attrs)])
    rehearsal = Reconstruction(domain, columns)
    for part, noise in plan.noises(2.0**16):
        products = products_of(part)
        if sum(product.rows for product in products) != part.rows:
            return None  # a map that least squares does not know
        if not all(rehearsal.add(_zeros(product, noise)) for product in products):
            return None
    return rehearsal.weights_of(wanted)


def _zeros(product: Product, noise: Noise) -> Block:
    return Block(product, np.zeros(product.rows, np.int64), noise)


def _unit(planned: Planned, goal: Goal, rows: int) -> float | None:
    """The largest unit of noise that keeps the goal, to 1 %, or the least that the price allows."""
    cap = spending_cap(goal)
    variance = float(planned.plan.variances(1.0).max())
    if goal.kind is GoalKind.RMSE:
        return float(planned.plan.unit_for(mean_variance=goal.amount**2)) * (1 - 1e-9)
    if goal.kind is GoalKind.SPEND:
        assert cap is not None
        return planned.plan.unit(cap / 2**50)
    normal = goal.amount / (-NormalDist().inv_cdf(goal.beta / (2 * rows)) * math.sqrt(variance))

    def keeps(unit: float) -> bool:
        try:
            return meets(planned.law(unit), goal)
        except GoalError:
            return False

    low, high = normal / 8, 2 * normal
    if not keeps(low):
        return None
    for _ in range(SEARCH_STEPS):
        if high <= 1.01 * low:
            break
        middle = math.sqrt(low * high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low
