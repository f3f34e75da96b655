"""Where data come in partitions: a strategy for all questions about some columns is bought partition by partition.

An answer about a window of partitions adds up what is known of each. What is missing is bought by the rule of ski
rental, as for `invest`, with the rent that each partition has paid. With Laplace noise a coarser measurement is
refined, so that a partition is charged for its finest noise only; with Gaussian noise a fresh one adds to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Mode, Noise, NoiseKind, from_units
from bursar.core.grant import Verbs
from bursar.errors import BudgetError, GoalError
from bursar.estimation.estimate import Estimate, meets
from bursar.goal import Goal, GoalKind
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.buying.partition_plan import (
    PartitionPiece,
    PartitionPlan,
    WeightedPiece,
    basket_of,
    law_of,
    pieces_of,
    values_of,
)
from bursar.strategies.universal import Universal, universal
from bursar.tails.grouped_rows import DrawTerm, GroupedRows
from bursar.views.partition_measurements import PartitionMeasurements

TRIED_SETS = 4
"""How many sets of columns are considered for one question: its own, and larger ones that were asked about."""

REFERENCE = 2.0**20
"""The noise scale, large enough to be like continuous noise, at which a family's worst question is looked at once."""

MARGIN = 0.995
"""Noise is set this much finer than the reference says, for what rounding to whole numbers does."""

WORTH_A_LOOK = 0.25
"""From which part of what is due on a purchase is looked at: it can come free where other partitions have lost more."""

SEARCH_STEPS = 16

Columns = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Way:
    """A question about a window by way of a strategy on some columns, its own and perhaps others."""

    columns: Columns
    plan: Universal
    shelf: PartitionMeasurements
    asked: tuple[WeightedPiece, ...]
    window: Integers  # the partitions


class ByPartition(Proposer):
    """`theta` says from which share of the price on rent justifies buying: one per mode, fixed in the preset."""

    name = "partitions"

    def __init__(self, *, theta: dict[Mode, float]) -> None:
        self._theta = theta
        self._plans: dict[tuple[str, Columns, Mode], Universal | None] = {}
        self._asked: dict[tuple[str, str], tuple[Reals, tuple[tuple[tuple[float, int], ...], ...]]] = {}
        self._prices: dict[tuple[object, ...], int] = {}
        self._reaches: dict[tuple[str, Mode, int, float], float] = {}

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        """The first way that costs nothing, be it known already or a present; else the purchase with the least bid."""
        pieces = pieces_of(request.workload.map, views.domain.partition)
        if not pieces or request.goal.kind is GoalKind.SPEND:
            return []
        known, missing = None, []
        for way in self._ways(pieces, views):
            known = self._known(way, request, views)
            if known is not None:
                break
            missing.append(way)
        made = []
        for way in missing:
            try:
                offer = self._purchase(way, request, views, only_free=known is not None)
            except (BudgetError, GoalError):
                continue
            if offer is not None and offer.free:
                return [offer]
            made += [] if offer is None else [offer]
        return sorted(made, key=lambda offer: offer.bid)[:1] if known is None else [known]

    def _ways(self, pieces: Sequence[PartitionPiece], views: Views) -> Iterator[Way]:
        window = np.flatnonzero(np.any([np.any(piece.windows, axis=0) for piece in pieces], axis=0))
        for columns in _candidates(pieces, views):
            plan = self._plan(columns, views)
            if plan is not None:
                shelf = views.shelves.shelf(plan.product)
                asked = tuple(self._weighed(piece, plan) for piece in pieces)
                yield Way(columns=columns, plan=plan, shelf=shelf, asked=asked, window=window)

    def _known(self, way: Way, request: PlanningRequest, views: Views) -> Offer | None:
        shelf, window = way.shelf, way.window
        if not np.all(np.isfinite(shelf.scales[window])):
            return None
        law = law_of(way.asked, shelf, views.mode)
        if not meets(law, request.goal):
            return None
        known = Estimate(values=values_of(way.asked, shelf), law=law)
        rows = len(window) * shelf.strategy.rows
        note = f"put together from {len(window)} partitions"
        return Offer(proposer=self.name, price=Price(), law=law, run=lambda verbs: known, reuses=rows, note=note)

    def _purchase(self, way: Way, request: PlanningRequest, views: Views, *, only_free: bool) -> Offer | None:
        """What would be bought, if enough rent was paid; `only_free` leaves out some of what costs something."""
        scale = self._scale(way.plan, len(way.window), request, views)
        if only_free and any(self._costs(way, partition, scale, views) for partition in way.window.tolist()):
            return None  # what costs something on one partition costs no less on several
        basket = basket_of(way.shelf, way.window, scale, views)
        law = law_of(way.asked, basket.planned(way.shelf), views.mode)
        if not basket.events or not meets(law, request.goal):
            return None
        rent = int(views.shelves.rent(way.columns, way.shelf.strategy)[way.window].mean())
        due = math.ceil(self._theta[views.mode] * self._alone(basket, views))
        if rent < WORTH_A_LOOK * due:
            return None
        price = views.price(basket.events)
        return Offer(
            proposer=self.name,
            price=Price(events=basket.events, at_most=price),
            law=law,
            run=partial(_run, basket, way.shelf, way.asked, law),
            reuses=basket.reuses,
            buys=basket.buys,
            note=_note(way.columns, way.window, rent, due, views),
            credit=price - due + rent,
        )

    def _costs(self, way: Way, partition: int, scale: float, views: Views) -> bool:
        """Whether a purchase for one partition costs anything. Prices take long, so this is found once per log."""
        key = (self, views.analyst, way.columns, partition, scale)

        def costs() -> bool:
            events = basket_of(way.shelf, np.array([partition]), scale, views).events
            return bool(events) and views.price(events) > 0

        return views.remember(key, costs)

    def _alone(self, basket: PartitionPlan, views: Views) -> int:
        """What the basket costs by itself: the same for any partitions, so it is worked out once per kind."""
        noises = {(event.before, event.after) for event in basket.refined}
        fresh = None if basket.fresh is None else basket.fresh.noise
        key = (views.domain.digest, basket.strategy.digest, views.mode, fresh, frozenset(noises))
        if key not in self._prices:
            self._prices[key] = views.shelves.empty_book().price(basket.events)
        return self._prices[key]

    def _plan(self, columns: Columns, views: Views) -> Universal | None:
        key = (views.domain.digest, columns, views.mode)
        if key not in self._plans:
            self._plans[key] = universal(views.domain, columns, views.mode)
        return self._plans[key]

    def _weighed(self, piece: PartitionPiece, plan: Universal) -> WeightedPiece:
        key = (piece.rest.digest, plan.product.digest)
        if key not in self._asked:
            weights = plan.weights(piece.rest)
            found = [np.unique(row[row > 0], return_counts=True) for row in np.abs(weights)]
            sizes = tuple(tuple(zip(size.tolist(), count.tolist(), strict=True)) for size, count in found)
            self._asked[key] = weights, sizes
        weights, sizes = self._asked[key]
        return WeightedPiece(piece=piece, weights=weights, sizes=sizes)

    def _scale(self, plan: Universal, window: int, request: PlanningRequest, views: Views) -> float:
        """The noise at which the family's worst question keeps the goal.

        The family are the questions about this window; where the goal is a percentage, those about one partition, which
        has its share of the error.
        """
        goal, amount, span = request.goal, request.goal.amount, window
        if request.asked.goal.percent:
            amount, span = amount / window, 1
        if goal.kind is GoalKind.RMSE:
            each = 2.0 if views.mode is Mode.PURE else 1.0
            return MARGIN * amount / math.sqrt(each * span * float(np.square(plan.worst).sum()))
        key = (plan.product.digest, plan.mode, span, goal.beta / request.workload.map.rows)
        if key not in self._reaches:
            self._reaches[key] = _reach(plan, *key[2:])
        return MARGIN * max(amount - 0.5, amount / 2) * REFERENCE / self._reaches[key]


def _candidates(pieces: Sequence[PartitionPiece], views: Views) -> list[Columns]:
    """The question's own columns; then all that were asked about, and the sets in between."""
    own = frozenset(name for piece in pieces for name in piece.rest.attrs)
    asked = views.shelves.asked
    between = sorted(
        (columns for columns in asked if own < columns), key=lambda columns: (len(columns), sorted(columns))
    )
    sets = dict.fromkeys([own, own.union(*asked), *between])
    return [views.domain.ordered(columns) for columns in sets][:TRIED_SETS]


def _run(
    basket: PartitionPlan, shelf: PartitionMeasurements, asked: Sequence[WeightedPiece], law: GroupedRows, verbs: Verbs
) -> Estimate:
    return Estimate(values=values_of(asked, basket.bought(shelf, verbs)), law=law)


def _reach(plan: Universal, span: int, beta: float) -> float:
    """How far the worst question's error reaches, with probability beta, at noise of the reference scale."""
    kind = NoiseKind.LAPLACE if plan.mode is Mode.PURE else NoiseKind.GAUSSIAN
    noise = Noise(kind=kind, scale=REFERENCE)
    size, count = np.unique(np.abs(plan.worst)[plan.worst != 0], return_counts=True)
    terms = (DrawTerm(each, noise, span * number) for each, number in zip(size.tolist(), count.tolist(), strict=True))
    law = GroupedRows(rows=(tuple(terms),))
    low = math.sqrt(law.mean_square())
    high = 64 * low
    for _ in range(SEARCH_STEPS):
        middle = math.sqrt(low * high)
        goal = Goal(kind=GoalKind.ERROR, amount=middle, confidence=1 - beta)
        low, high = (low, middle) if meets(law, goal) else (middle, high)
    return high


def _note(columns: Columns, window: Integers, rent: int, due: int, views: Views) -> str:
    """Under shares it says nothing of the columns and the rent: both would tell what other analysts have asked."""
    about = f"of {len(window)} partitions" if len(window) > 1 else "of one partition"
    if views.analyst is not None:
        return f"answers many questions {about} at once, where enough has been spent on them one by one"
    names = ", ".join(columns)
    return f"answers all about {names} {about}; rent so far {from_units(rent):.3g}, bought at {from_units(due):.3g}"
