"""Buy a strategy for every question about some columns, once enough rent has been paid on them.

The rule of ski rental: with R the rent paid since the last such purchase, p the price of answering this question in
the cheapest other way and P the price of the strategy, buy as soon as R + p > theta P. For one set of columns, one goal
and theta = 1 that costs at most twice the better of always renting and buying at the start. As a bid: theta P - R.

Nodes are an investment themselves where there is one column: few of them make up any range of it, so they are no rent.
Over several columns a box takes the product of as many, which hardly another box shares: there they are rent like
everything else. A strategy for some of the columns is rent on all of them, so R + p > theta P is asked with its price
as p: where that holds, it would not be the last purchase, and the larger strategy is bought at once.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bursar.core.accounting import Measured, Mode, Noise, NoiseKind, from_units
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap
from bursar.errors import BudgetError, GoalError
from bursar.estimation.estimate import Estimate, WeightedRows, meets
from bursar.goal import Goal, GoalKind
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.buying.investment import Investment, by_itself, on_top
from bursar.proposers.tree import all_nodes
from bursar.views.measurements import noise_of, products_of

if TYPE_CHECKING:
    from bursar.strategies.universal import Universal

MOST_ROWS = 2048
"""Most queries of a question that may call for an investment."""

TRIED_SETS = 3
"""How many sets of columns are considered for one question: its own, and larger ones that were asked about."""

REFERENCE = 2.0**20
"""The noise scale, large enough to be like continuous noise, at which a family's worst question is looked at once."""

MARGIN = 0.999
"""Noise is set this much finer than the reference says, for what rounding to whole numbers does."""

SEARCH_STEPS = 14

WORTH_A_LOOK = 4.0
"""What is missing of a strategy is looked at once the rent is this part of what would pay for the whole of it."""


class Invest(Proposer):
    """`theta` says from which share of the price on rent justifies buying: one per mode, fixed in the preset.

    Without `top_up` the strategy is bought as a whole with Gaussian noise too, and answers without other rows.
    """

    name = "invest"

    def __init__(self, *, theta: dict[Mode, float], top_up: bool = True) -> None:
        self._theta, self._top_up = theta, top_up
        self._plans: dict[tuple[str, tuple[str, ...], Mode], Universal | None] = {}
        self._reaches: dict[tuple[str, tuple[str, ...], Mode, float], float] = {}

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        wanted = request.workload.map
        if request.goal.kind is GoalKind.SPEND or not 1 <= wanted.rows <= MOST_ROWS:
            return []
        made = [self._offer(columns, request, views) for columns in _candidates(request, views)]
        found = sorted((offer for offer in made if offer is not None), key=lambda offer: offer.bid)
        larger = [one for one in found[1:] if one.buys > found[0].buys and one.bid < found[0].price.at_most]
        return (larger or found)[:1]

    def known(self, request: PlanningRequest, views: Views) -> Offer | None:
        """What a strategy that was bought says by itself, if that keeps the goal, as it does for all it was bought for.

        Least squares over everything that is known looks at few sets of columns, and has the least variance, not always
        the least tail.
        """
        wanted = request.workload.map
        if request.goal.kind is GoalKind.SPEND or wanted.rows > MOST_ROWS or not products_of(wanted):
            return None
        for columns in _candidates(request, views):
            plan = self._plan(views.domain, columns, views.mode) if columns in views.measurements.blocks else None
            record = None if plan is None else views.measurements.finest.get(plan.product.digest)
            if plan is None or record is None:
                continue
            law = by_itself(plan, noise_of(record), wanted).law
            if isinstance(law, WeightedRows) and meets(law, request.goal):
                return _free(record, law)
        return None

    def _offer(self, columns: tuple[str, ...], request: PlanningRequest, views: Views) -> Offer | None:
        plan = self._plan(views.domain, columns, views.mode)
        if plan is None:
            return None
        rent = views.rents.since(
            columns, self.name, partial(_is, plan.product.digest), all_nodes if len(columns) == 1 else None
        )
        if rent == 0:
            return None
        theta = self._theta[views.mode]
        try:
            made = self._investment(plan, columns, request, views, least=WORTH_A_LOOK * rent / theta)
            price = None if made is None else _price(plan, made.noise, views)
        except (BudgetError, GoalError):
            return None
        if made is None or price is None:
            return None
        return Offer(
            proposer=self.name,
            price=price,
            law=made.law,
            run=made.run,
            buys=plan.product.rows,
            note=_note(columns, rent, theta * from_units(price.at_most), views),
            credit=price.at_most - math.ceil(theta * price.at_most) + rent,
        )

    def _investment(
        self, plan: Universal, columns: tuple[str, ...], request: PlanningRequest, views: Views, *, least: float
    ) -> Investment | None:
        """With Laplace noise the strategy for the family's worst question; with Gaussian noise what is still missing.

        Laplace noise is dear to top up, so the whole is bought at once. None where the whole is far from being due.
        """
        scale = self._unit(plan, columns, request, views) * plan.sensitivity
        wanted = request.workload.map
        if views.mode is Mode.PURE or not self._top_up:
            kind = NoiseKind.LAPLACE if views.mode is Mode.PURE else NoiseKind.GAUSSIAN
            return by_itself(plan, Noise(kind=kind, scale=scale), wanted)
        whole = Noise(kind=NoiseKind.GAUSSIAN, scale=scale)
        if _price(plan, whole, views).at_most > least:
            return None
        return on_top(plan, views.reconstructions.on(columns), wanted, request.goal) or by_itself(plan, whole, wanted)

    def _plan(self, domain: Domain, columns: tuple[str, ...], mode: Mode) -> Universal | None:
        from bursar.strategies.universal import universal  # linear algebra takes a while to load

        key = (domain.digest, columns, mode)
        if key not in self._plans:
            self._plans[key] = universal(domain, columns, mode)
        return self._plans[key]

    def _unit(self, plan: Universal, columns: tuple[str, ...], request: PlanningRequest, views: Views) -> float:
        """The noise per sensitivity at which the worst question of the family keeps the request's goal."""
        goal = request.goal
        if goal.kind is GoalKind.RMSE:
            each = 2.0 if views.mode is Mode.PURE else 1.0
            return goal.amount / math.sqrt(each * float(np.square(plan.sensitivity * plan.worst).sum()))
        beta = goal.beta / request.workload.map.rows
        key = (views.domain.digest, columns, views.mode, beta)
        if key not in self._reaches:
            self._reaches[key] = _reach(plan, beta)
        amount = max(goal.amount - 0.5, goal.amount / 2)  # whole numbers reach an error half a step sooner
        return MARGIN * amount * REFERENCE / (self._reaches[key] * plan.sensitivity)


class Invested(Proposer):
    """Answers, free, from the strategies that were bought: asked before those who would buy something else."""

    name = Invest.name

    def __init__(self, invest: Invest) -> None:
        self._invest = invest

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        key = (self, request.workload.map.digest, request.goal)
        known = views.remember(key, lambda: self._invest.known(request, views))
        return [] if known is None else [known]


def _free(record: Record, law: WeightedRows) -> Offer:
    known = Estimate(values=law.weights @ record.values.astype(float), law=law)
    note = f"the strategy that was measured before, record {record.position}"
    reuses = len(record.values)
    return Offer(proposer=Invest.name, price=Price(), law=law, run=lambda verbs: known, reuses=reuses, note=note)


def _note(columns: tuple[str, ...], rent: int, due: float, views: Views) -> str:
    """Under shares it says nothing of the columns and the rent: both would tell what other analysts have asked."""
    if views.analyst is not None:
        return "answers many questions at once, where enough has been spent on them one by one"
    return f"answers all about {', '.join(columns)}; rent so far {from_units(rent):.3g}, bought at {due:.3g}"


def _candidates(request: PlanningRequest, views: Views) -> list[tuple[str, ...]]:
    """The question's own columns; then all that were asked about together with them, and the sets in between."""
    own = frozenset(request.workload.map.attrs)
    measured = views.rents.sets()
    if not any((columns and columns <= own) or own <= columns for columns in measured):
        return []  # no rent was paid on anything that would answer this
    everything = own.union(*measured)
    between = sorted((columns for columns in measured if own < columns), key=lambda c: (len(c), sorted(c)))
    sets = dict.fromkeys([own, everything, *between])
    return [views.domain.ordered(columns) for columns in sets][:TRIED_SETS]


def _reach(plan: Universal, beta: float) -> float:
    """How far the worst question's error reaches, with probability beta, at noise of the reference scale."""
    kind = NoiseKind.LAPLACE if plan.mode is Mode.PURE else NoiseKind.GAUSSIAN
    weights = plan.worst[np.abs(plan.worst) > 0][None]
    law = WeightedRows(weights=weights, noises=(Noise(kind=kind, scale=REFERENCE),) * weights.shape[1])
    spread = math.sqrt(law.mean_square())
    low, high = spread, 64 * spread
    for _ in range(SEARCH_STEPS):
        middle = math.sqrt(low * high)
        goal = Goal(kind=GoalKind.ERROR, amount=middle, confidence=1 - beta)
        low, high = (low, middle) if meets(law, goal) else (middle, high)
    return high


def _is(digest: str, strategy: LinearMap) -> bool:
    return strategy.digest == digest


def _price(plan: Universal, noise: Noise, views: Views) -> Price:
    event = Measured(strategy=plan.product, noise=noise, version=views.version)
    return Price(events=(event,), at_most=views.price((event,)))
