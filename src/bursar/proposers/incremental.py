"""Buy just what the log lacks to answer this question: one row, chosen for the least rise of what is spent.

The row is rarely the question itself. It leaves out what is known, and it leans on people about whom less has been told
than about others: their loss may rise for free, since what is spent is the largest loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

import numpy as np

from bursar.arrays import Reals
from bursar.core.accounting import Measured, Mode, Noise, NoiseKind
from bursar.core.grant import Verbs
from bursar.core.queries import LARGEST_JOINT, LinearMap, Product
from bursar.errors import BudgetError, GoalError, QueryError
from bursar.estimation.estimate import Estimate, WeightedRows, meets
from bursar.estimation.least_squares import FEW_ROWS, Reconstruction
from bursar.estimation.rehearsal import MergedGroups, Rehearsal
from bursar.goal import Goal, GoalKind
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.views.measurements import products_of

MOST_ROWS = FEW_ROWS
"""Most queries of a question: each may need a search of milliseconds, and many are better measured by a strategy."""

MOST_GROUPS = 384
"""Most groups of cells that a row is chosen over: a step of the search grows with the cube."""

MOST_OPEN = 512
"""Most merged cells where some are unknown: a row then has to be rounded within the span of the others."""

GRID = 2**12
"""The largest coefficient of a row in whole numbers, about."""

NORMAL = 0.99
"""Errors are nearly normal; a goal on their tail is aimed at with this share of the variance that normal ones need."""

SHRINK = (1.0, 0.97, 0.9, 0.75)
"""What is tried where the tail of the discrete error turns out heavier."""

ALONE = 1e-9
"""A row this close to a multiple of the question, as a share of its largest coefficient, is the question."""

INWARD = 1 - 1e-9
"""Noise is set by a hair finer than the target needs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowPlan:
    """Rows to measure, each with its noise, and the weights of the log's rows and theirs in each answer."""

    rows: tuple[tuple[Product, Noise], ...]
    known: Reals  # values of the log's rows
    weights: Reals
    law: WeightedRows
    rounding: float  # the largest error of a coefficient, as a share of the largest coefficient

    def events(self, version: int) -> tuple[Measured, ...]:
        return tuple(Measured(strategy=product, noise=noise, version=version) for product, noise in self.rows)


class Incremental(Proposer):
    name = "incremental"

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        wanted = request.workload.map
        if views.mode is Mode.PURE or request.goal.kind is GoalKind.SPEND:
            return []
        if not 1 <= wanted.rows <= MOST_ROWS or sum(part.rows for part in products_of(wanted)) != wanted.rows:
            return []
        made = [self._offer(known, request, views) for known in views.reconstructions.over(wanted)]
        return [offer for offer in made if offer is not None]

    def _offer(self, known: Reconstruction, request: PlanningRequest, views: Views) -> Offer | None:
        if views.domain.cells(known.columns) > LARGEST_JOINT:
            return None
        plan = _plan(known, request)
        if plan is None:
            return None
        events = plan.events(views.version)
        try:
            price = Price(events=events, at_most=views.price(events))
        except BudgetError:
            return None
        used = int(np.count_nonzero(np.abs(plan.weights[:, : len(plan.known)]).max(axis=0, initial=0)))
        slack = ", within the slack of what was bought" if price.at_most == 0 else ""
        return Offer(
            proposer=self.name,
            price=price,
            law=plan.law,
            run=partial(_measure, plan),
            reuses=used,
            buys=len(plan.rows),
            note=f"what {used} measured rows lack{slack}; coefficients rounded by {plan.rounding:.1g} of the largest",
        )


def _measure(plan: RowPlan, verbs: Verbs) -> Estimate:
    bought = [verbs.measure(product, noise).values for product, noise in plan.rows]
    return Estimate(values=plan.weights @ np.concatenate([plan.known, *bought]), law=plan.law)


def _plan(known: Reconstruction, request: PlanningRequest) -> RowPlan | None:
    """The first of a few targets whose plan keeps the goal."""
    goal, wanted = request.goal, request.workload.map
    for share in SHRINK:
        plan = _plan_for(known, wanted, share * _variance(goal, wanted.rows))
        if plan is None or _kept(plan.law, goal):
            return plan
    return None


def _variance(goal: Goal, rows: int) -> float:
    """The variance of each query that keeps the goal, if errors are normal."""
    if goal.kind is GoalKind.RMSE:
        return goal.amount**2
    return NORMAL * (goal.amount / NormalDist().inv_cdf(goal.beta / (2 * rows))) ** 2


def _kept(law: WeightedRows, goal: Goal) -> bool:
    try:
        return meets(law, goal)
    except GoalError:
        return False


def _plan_for(known: Reconstruction, wanted: LinearMap, variance: float) -> RowPlan | None:
    """One query after the other, each with what is known and planned so far; None where one cannot be bought."""
    rehearsal = Rehearsal(known)
    bought: list[tuple[Product, Noise]] = []
    rounding = 0.0
    for query in (part.row(row) for part in products_of(wanted) for row in range(part.rows)):
        if not rehearsal.known.split_by(query, rows=len(bought) + 1):
            return None
        if query.largest() == 0 or rehearsal.variance(query) <= variance:
            continue
        found = _row(rehearsal, query, variance)
        if found is None or not rehearsal.take(found.product, found.noise):
            return None
        bought.append((found.product, found.noise))
        rounding = max(rounding, found.rounding)
    weights = rehearsal.known.weights_of(wanted)
    if not bought or weights is None:
        return None
    law = rehearsal.known.law_of(weights)
    return RowPlan(rows=tuple(bought), known=known.values, weights=weights, law=law, rounding=rounding)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Row:
    product: Product
    noise: Noise
    rounding: float


def _row(rehearsal: Rehearsal, query: Product, variance: float) -> _Row | None:
    """The best row for one query, in whole numbers, with the noise that just keeps the variance."""
    from bursar.proposers.buying.online import (
        best_row,  # linear algebra takes a while to load, and few questions need it
    )

    groups = rehearsal.groups(query, MOST_GROUPS)
    if groups is None:
        return None
    before = rehearsal.variance(query)
    blend = best_row(groups.information, groups.query, variance, before=before, losses=groups.losses).blend
    alone = _multiple(blend, groups.query)
    whole, rounding = (groups.query, 0.0) if alone else _whole(rehearsal, groups, blend)
    if whole is None:
        return None
    scale = rehearsal.scale(query, whole[groups.member], variance)
    if scale is None:
        return None
    try:
        product = query if alone else groups.product(whole.astype(np.int64))
        return _Row(product=product, noise=Noise(kind=NoiseKind.GAUSSIAN, scale=INWARD * scale), rounding=rounding)
    except (GoalError, QueryError):
        return None


def _multiple(blend: Reals, query: Reals) -> bool:
    """Whether the best row is the query itself, as it is where nothing is known about its people."""
    factor = float(blend @ query) / float(query @ query)
    return bool(np.abs(blend - factor * query).max() <= ALONE * np.abs(blend).max())


def _whole(rehearsal: Rehearsal, groups: MergedGroups, blend: Reals) -> tuple[Reals | None, float]:
    """The row on a grid, towards zero, so that no cell's loss grows by rounding; and how much that moved it."""
    from bursar.strategies.lattice import span_of, towards_zero

    state = rehearsal.known.state
    grid = math.ceil(GRID / np.abs(blend).max())
    rank, touched = round(float(np.trace(state.span))), state.information.diagonal() > 0
    if rank == np.count_nonzero(touched):
        whole = towards_zero(grid * blend)
    elif len(touched) > MOST_OPEN:
        return None, 0.0
    else:
        rows = np.rint(rehearsal.known.rows / np.sqrt(state.cells))
        tightest_first = np.argsort(-groups.losses[groups.member], kind="stable")
        span = span_of(rows, rank, tightest_first)
        found = span.whole(blend[groups.member], groups.query[groups.member], grid)
        if found is None:
            return None, 0.0
        whole = np.zeros(len(blend))
        whole[groups.member] = found
        if not np.array_equal(whole[groups.member], found):
            return None, 0.0  # what is known cuts through a group
    moved = float(np.abs(whole - grid * blend).max() / GRID)
    return whole if whole.any() else None, moved
