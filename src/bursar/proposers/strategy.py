"""Measure a strategy that the questions follow from, where that is cheaper than measuring the questions themselves.

Worth it where questions overlap: running totals, ranges, a total beside its parts. One strategy then answers all of
them together, and the answers are consistent with each other.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from bursar.compile.partwise import PartwiseMap
from bursar.core.accounting import Measured, Mode, Noise
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap
from bursar.errors import BudgetError, GoalError
from bursar.estimation.estimate import ErrorLaw, Estimate
from bursar.goal import Goal, GoalKind
from bursar.planner.choose import spending_cap
from bursar.planner.grant import Verbs
from bursar.planner.offer import Offer, Price, Proposer, PublicTotal, Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.buying.strategy_plans import ExplicitPlan, RepeatedPlan, listed, sines
from bursar.views.measurements import noise_of, products_of

if TYPE_CHECKING:
    from bursar.strategies.plan import StrategyPlan

MOST_ROWS = 2048
"""Most queries that are planned together,"""

MOST_ROWS_OF_COLUMN, MOST_ROWS_IN_GROUPS = 4096, 2**16
"""unless they are about one long column (in groups: with Laplace noise); and in groups that all have the same plan."""

REMEMBERED_PLANS, REMEMBERED_BYTES = 256, 256 * 2**20
"""How many plans are remembered, and how much memory they may take."""

MOST_VALUES_PER_ROW = 32
"""Sums of very many different values for few rows, such as an average, tell almost every cell apart from the others: a
strategy for them takes long to find and gains nothing."""

FEW_SUMS = 16
"""But with Laplace noise (`strategies.low_rank`), or of one column, this many are mixed in no time, and gain much."""

SHARING_KINDS = ("apart", "columns")
"""Plans of several parts, whose shares of the budget make the largest error of rows small, or the sum of variances.
Which is better for averages and the like, rows alone do not tell: both are offered."""

LARGEST_VARIANCE_SHARE = 0.95
"""A strategy is offered only if it is better than measuring the questions directly with this share of the variance."""


class Planned(Protocol):
    """A plan for one workload. One number, the unit, sets all of its noise."""

    @property
    def plan(self) -> StrategyPlan: ...

    @property
    def bytes(self) -> int: ...

    def law(self, unit: float) -> ErrorLaw: ...

    def estimate(self, values: Sequence[NDArray[np.int64]], unit: float) -> NDArray[np.float64]: ...

    def unit_for_error(self, goal: Goal) -> float | None: ...

    def unit_for_rmse(self, amount: float) -> float: ...


@dataclass(frozen=True, eq=False)
class Bid:
    """What a plan comes to for one goal."""

    unit: float
    measured: list[tuple[LinearMap, Noise]]
    law: ErrorLaw


Bids = dict[Goal, Bid | None]


@dataclass(frozen=True, eq=False)
class RememberedPlan:
    """A plan that was made before, and what it came to for goals that were asked before: a function of these alone."""

    planned: Planned | None
    beside: Callable[[], Planned | None]  # makes the plan for where the number of all rows is public
    bids: Bids = field(default_factory=dict)
    bids_beside: Bids = field(default_factory=dict)

    @cached_property
    def beside_total(self) -> Planned | None:
        return self.beside()


class Strategy(Proposer):
    """The best strategy for the question as a whole, where it beats measuring the queries themselves."""

    name = "strategy"

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, Mode, float | None], RememberedPlan] = OrderedDict()

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        workload = request.workload.map
        if (
            isinstance(workload, PartwiseMap)
            or workload.rows < 2
            or _too_many(workload, views.mode)
            or _overlap(workload, views.mode) <= 1
        ):
            return []  # questions about different people are their own strategy
        one_column = views.mode is Mode.PURE or len(workload.attrs) == 1
        few_sums = one_column and len(products_of(workload)) <= FEW_SUMS
        if not few_sums and _different_values(workload) > MOST_VALUES_PER_ROW * workload.rows:
            return []
        return self.offered(request, views, _beta(request.goal))

    def _offer(
        self, planned: Planned | None, bids: Bids, total: PublicTotal | None, goal: Goal, views: Views
    ) -> Offer | None:
        if planned is None:
            return None
        if goal not in bids:
            bids[goal] = _bid(planned, goal)
        bid = bids[goal]
        if bid is None:
            return None
        if total is None and (records := _kept(bid, views)) is not None:
            return Offer(
                proposer=self.name,
                price=Price(),
                law=bid.law,
                run=partial(_from_log, planned, bid, [record.values for record in records]),
                reuses=sum(len(record.values) for record in records),
                note=f"{planned.plan.kind} strategy, measured before, record {records[-1].position}",
            )
        events = tuple(Measured(strategy=part, noise=noise, version=views.version) for part, noise in bid.measured)
        events += () if total is None else total.events
        try:
            price = Price(events=events, at_most=views.price(events))
        except BudgetError:
            return None
        plan = planned.plan
        best = "" if plan.ratio is None else f", error within {_digits(plan.ratio)} of the least possible"
        beside = "" if total is None else ", beside the number of all rows, which is public"
        return Offer(
            proposer=self.name,
            price=price,
            law=bid.law,
            run=partial(_measure, planned, bid, total),
            buys=sum(part.rows for part, _ in bid.measured),
            note=f"{plan.kind} strategy, {plan.noise_kind.value} noise{best}{beside}",
        )

    def plan(self, workload: LinearMap, domain: Domain, mode: Mode, beta: float | None) -> Planned | None:
        """The best strategy known; None where it gains nothing over measuring the queries themselves."""
        return _plan(workload, domain, mode, beta)

    def offered(self, request: PlanningRequest, views: Views, beta: float | None) -> list[Offer]:
        """The plan for a question, by itself and beside the public number of rows."""
        workload, total = request.workload.map, views.public_total()
        plans = [self._recall(workload, views.domain, views.mode, beta)]
        if beta is not None and (first := plans[0].planned) is not None and first.plan.kind in SHARING_KINDS:
            plans.append(self._recall(workload, views.domain, views.mode, None))
        offers: list[Offer | None] = []
        for remembered in plans:
            offers.append(self._offer(remembered.planned, remembered.bids, None, request.goal, views))
            if total is not None:
                offers.append(self._offer(remembered.beside_total, remembered.bids_beside, total, request.goal, views))
        return [offer for offer in offers if offer is not None]

    def _recall(self, workload: LinearMap, domain: Domain, mode: Mode, beta: float | None) -> RememberedPlan:
        """The plan of a workload; None in it where no plan is known, or none that gains anything."""
        key = (workload.digest, domain.digest, mode, beta)
        if key not in self._known:
            planned = self.plan(workload, domain, mode, beta)
            self._known[key] = RememberedPlan(planned, partial(_beside_total, planned, workload, domain))
            while len(self._known) > 1 and (len(self._known) > REMEMBERED_PLANS or self._bytes() > REMEMBERED_BYTES):
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key]

    def _bytes(self) -> int:
        return sum(remembered.planned.bytes for remembered in self._known.values() if remembered.planned is not None)


def _digits(ratio: float) -> str:
    """A ratio as people read it: 1.66, but 1.002."""
    return f"{ratio:.3g}" if ratio >= 1.01 else f"{ratio:.4g}"


def _beside_total(planned: Planned | None, workload: LinearMap, domain: Domain) -> Planned | None:
    return planned.beside_total(workload, domain) if isinstance(planned, ExplicitPlan | RepeatedPlan) else None


def _measure(planned: Planned, bid: Bid, total: PublicTotal | None, verbs: Verbs) -> Estimate:
    values = [verbs.measure(part, noise).values for part, noise in bid.measured]
    values += [] if total is None else [total.values(verbs)]
    return Estimate(values=planned.estimate(values, bid.unit), law=bid.law)


def _kept(bid: Bid, views: Views) -> list[Record] | None:
    """The parts of a bid where all of them are in the log already, with no more noise.

    Reconstructions find them too, and more, unless the joint cells are too many for them.
    """
    finest = [views.measurements.finest.get(part.digest) for part, _ in bid.measured]
    records = [record for record in finest if record is not None]
    noises = [noise for _, noise in bid.measured]
    if not records or len(records) < len(finest):
        return None
    fine = (noise_of(record).scale <= noise.scale * (1 + 1e-9) for record, noise in zip(records, noises, strict=True))
    return records if all(fine) else None


def _from_log(planned: Planned, bid: Bid, values: list[NDArray[np.int64]], _: Verbs) -> Estimate:
    return Estimate(values=planned.estimate(values, bid.unit), law=bid.law)


def _too_many(workload: LinearMap, mode: Mode) -> bool:
    """Whether queries are more than are planned together."""
    if workload.rows <= MOST_ROWS:
        return False
    if mode is not Mode.PURE and len(workload.attrs) == 1:
        return workload.rows > MOST_ROWS_OF_COLUMN
    from bursar.strategies.cells import factors_on_overlaps, is_disjoint  # linear algebra takes a while to load

    products = [factors_on_overlaps(product) for product in products_of(workload)]
    groups = [[mask for mask in product.masks if is_disjoint(mask)] for product in products]
    copies = min(math.prod(mask.rows for mask in masks) for masks in groups)
    others = {name for product in products for mask in product.masks for name in mask.attrs}
    others -= {name for masks in groups for mask in masks for name in mask.attrs}
    in_one = MOST_ROWS_OF_COLUMN if mode is Mode.PURE else MOST_ROWS
    return len(others) != 1 or workload.rows > min(MOST_ROWS_IN_GROUPS, in_one * copies)


def _overlap(workload: LinearMap, mode: Mode) -> int:
    """How much one person can move all queries together: the sensitivity of measuring them directly, or its square."""
    return sum(norm.largest() for norm in workload.norms(1 if mode is Mode.PURE else 2))


def _different_values(workload: LinearMap) -> int:
    """How many different coefficients the rows have on some columns."""
    masks = (mask for product in products_of(workload) for mask in product.masks)
    return max((len(np.unique(mask.steps.levels)) for mask in masks), default=0)


def _beta(goal: Goal) -> float | None:
    """The chance but for which the largest error counts; None where all squared errors together do."""
    return goal.beta if goal.kind is GoalKind.ERROR else None


def _plan(workload: LinearMap, domain: Domain, mode: Mode, beta: float | None) -> Planned | None:
    by_sines = sines(workload, domain) if mode is not Mode.PURE else None
    overlap = _overlap(workload, mode)
    directly = 2.0 * overlap**2 if mode is Mode.PURE else float(overlap)  # variance at unit one
    most = LARGEST_VARIANCE_SHARE * directly
    if by_sines is None:
        return listed(workload, domain, mode, beta, most=most)
    return by_sines if by_sines.largest_variance <= most else None


def _bid(planned: Planned, goal: Goal) -> Bid | None:
    """The least noise that the price allows, or else the most that the goal allows; None where there is none."""
    try:
        unit = _unit(planned, goal)
        return None if unit is None else Bid(unit, planned.plan.noises(unit), planned.law(unit))
    except GoalError:  # a scale that cannot be drawn
        return None


def _unit(planned: Planned, goal: Goal) -> float | None:
    if goal.kind is GoalKind.ERROR:
        return planned.unit_for_error(goal)
    if goal.kind is GoalKind.RMSE:
        return planned.unit_for_rmse(goal.amount)
    cap = spending_cap(goal)
    assert cap is not None
    return planned.plan.unit(cap / 2**50)
