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
from bursar.errors import BudgetError, GoalError
from bursar.estimation.estimate import Estimate, meets
from bursar.goal import Goal, GoalKind
from bursar.planner.grant import Verbs
from bursar.planner.offer import ACCURACIES, Offer, Price, Proposer, Scope, Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.buying.partition_plan import (
    PartitionPiece,
    PartitionPlan,
    WeightedPiece,
    law_of,
    partition_plan,
    pieces_of,
    values_of,
)
from bursar.strategies.universal import Universal, universal
from bursar.tails import DrawTerm, GroupedRows
from bursar.views.partition_measurements import PartitionMeasurements

REMEMBERED_QUESTIONS = 4096
"""Of how many conditions the weights are remembered."""

MOST_COLUMN_SETS = 4
"""How many sets of columns are considered for one question: its own, and larger ones that were asked about."""

REFERENCE_SCALE = 2.0**20
"""The noise scale, large enough to be like continuous noise, at which a family's worst question is looked at once."""

SHARE_OF_REFERENCE = 0.995
"""Noise is set this much finer than the reference says, for what rounding to whole numbers does."""

RENT_WORTH_PLANNING = 0.25
"""From which part of what is due on a purchase is looked at: it can come free where other partitions have lost more."""

SEARCH_STEPS = 16

Columns = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowStrategy:
    """A question about a window by way of a strategy on some columns, its own and perhaps others."""

    columns: Columns
    plan: Universal
    measurements: PartitionMeasurements
    pieces: tuple[WeightedPiece, ...]
    window: Integers  # the partitions


class ByPartition(Proposer):
    """Ski rental partition by partition: a strategy for every question is bought where enough rent was paid.

    `theta` says from which share of the price on rent justifies buying: one per mode, fixed in the preset.
    """

    name = "partitions"
    scope = Scope(goals=ACCURACIES, partitions=True)

    def __init__(self, *, theta: dict[Mode, float]) -> None:
        self._theta = theta
        self._plans: dict[tuple[str, Columns, Mode], Universal | None] = {}
        self._asked: dict[tuple[str, str], tuple[Reals, tuple[tuple[tuple[float, int], ...], ...]]] = {}
        self._prices: dict[tuple[object, ...], int] = {}
        self._reaches: dict[tuple[str, Mode, int, float], float] = {}

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        """The first way that costs nothing, be it known already or a present; else the purchase with the least bid."""
        pieces = pieces_of(request.workload.map, views.domain.partition)
        if not pieces:
            return []
        free, missing = None, []
        for way in self._ways(pieces, views):
            free = self._known(way, request, views)
            if free is not None:
                break
            missing.append(way)
        purchases = []
        for way in missing:
            try:
                offer = self._purchase(way, request, views, only_free=free is not None)
            except (BudgetError, GoalError):
                continue
            if offer is not None and offer.free:
                return [offer]
            purchases += [] if offer is None else [offer]
        return sorted(purchases, key=lambda offer: offer.bid)[:1] if free is None else [free]

    def _ways(self, pieces: Sequence[PartitionPiece], views: Views) -> Iterator[WindowStrategy]:
        window = np.flatnonzero(np.any([np.any(piece.windows, axis=0) for piece in pieces], axis=0))
        for columns in _candidates(pieces, views):
            plan = self._plan(columns, views)
            if plan is not None:
                measurements = views.partition_measurements.of(plan.product)
                weighted = tuple(self._weighed(piece, plan) for piece in pieces)
                yield WindowStrategy(
                    columns=columns, plan=plan, measurements=measurements, pieces=weighted, window=window
                )

    def _known(self, way: WindowStrategy, request: PlanningRequest, views: Views) -> Offer | None:
        measurements, window = way.measurements, way.window
        if not np.all(np.isfinite(measurements.scales[window])):
            return None
        law = law_of(way.pieces, measurements, views.mode)
        if not meets(law, request.goal):
            return None
        estimate = Estimate(values=values_of(way.pieces, measurements), law=law)
        rows = len(window) * measurements.strategy.rows
        note = f"put together from {len(window)} partitions"
        return Offer(proposer=self.name, price=Price(), law=law, run=lambda verbs: estimate, reuses=rows, note=note)

    def _purchase(
        self, way: WindowStrategy, request: PlanningRequest, views: Views, *, only_free: bool
    ) -> Offer | None:
        """What would be bought, if enough rent was paid; `only_free` leaves out some of what costs something."""
        scale = self._scale(way.plan, len(way.window), request, views)
        if only_free and any(self._costs(way, partition, scale, views) for partition in way.window.tolist()):
            return None  # what costs something on one partition costs no less on several
        purchase = partition_plan(way.measurements, way.window, scale, views)
        law = law_of(way.pieces, purchase.planned(way.measurements), views.mode)
        if not purchase.events or not meets(law, request.goal):
            return None
        rent = int(views.partition_measurements.rent(way.columns, way.measurements.strategy)[way.window].mean())
        due = math.ceil(self._theta[views.mode] * self._alone(purchase, views))
        if rent < RENT_WORTH_PLANNING * due:
            return None
        price = views.price(purchase.events)
        return Offer(
            proposer=self.name,
            price=Price(events=purchase.events, at_most=price),
            law=law,
            run=partial(_run, purchase, way.measurements, way.pieces, law),
            reuses=purchase.reuses,
            buys=purchase.buys,
            note=_note(way.columns, way.window, rent, due, views),
            credit=price - due + rent,
        )

    def _costs(self, way: WindowStrategy, partition: int, scale: float, views: Views) -> bool:
        """Whether a purchase for one partition costs anything. Prices take long, so this is found once per log."""
        key = (self, views.analyst, way.columns, partition, scale)

        def costs() -> bool:
            events = partition_plan(way.measurements, np.array([partition]), scale, views).events
            return bool(events) and views.price(events) > 0

        return views.remember(key, costs)

    def _alone(self, purchase: PartitionPlan, views: Views) -> int:
        """What the purchase costs by itself: the same for any partitions, so it is worked out once per kind."""
        noises = {(event.before, event.after) for event in purchase.refined}
        fresh = None if purchase.fresh is None else purchase.fresh.noise
        key = (views.domain.digest, purchase.strategy.digest, views.mode, fresh, frozenset(noises))
        if key not in self._prices:
            self._prices[key] = views.partition_measurements.empty_book().price(purchase.events)
        return self._prices[key]

    def _plan(self, columns: Columns, views: Views) -> Universal | None:
        key = (views.domain.digest, columns, views.mode)
        if key not in self._plans:
            self._plans[key] = universal(views.domain, columns, views.mode)
        return self._plans[key]

    def _weighed(self, piece: PartitionPiece, plan: Universal) -> WeightedPiece:
        key = (piece.condition.digest, plan.product.digest)
        known = self._asked.get(key)
        if known is None:
            weights = plan.weights(piece.condition)
            distinct = [np.unique(row[row > 0], return_counts=True) for row in np.abs(weights)]
            sizes = tuple(tuple(zip(size.tolist(), count.tolist(), strict=True)) for size, count in distinct)
            if len(self._asked) >= REMEMBERED_QUESTIONS:
                self._asked.clear()
            known = self._asked[key] = weights, sizes
        return WeightedPiece(piece=piece, weights=known[0], sizes=known[1])

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
            return SHARE_OF_REFERENCE * amount / math.sqrt(each * span * float(np.square(plan.worst).sum()))
        key = (plan.product.digest, plan.mode, span, goal.beta / request.workload.map.rows)
        if key not in self._reaches:
            self._reaches[key] = _reach(plan, *key[2:])
        return SHARE_OF_REFERENCE * max(amount - 0.5, amount / 2) * REFERENCE_SCALE / self._reaches[key]


def _candidates(pieces: Sequence[PartitionPiece], views: Views) -> list[Columns]:
    """The question's own columns; then all that were asked about, and the sets in between."""
    asked_columns = frozenset(name for piece in pieces for name in piece.condition.attrs)
    asked_before = views.partition_measurements.column_sets
    between = sorted(
        (columns for columns in asked_before if asked_columns < columns),
        key=lambda columns: (len(columns), sorted(columns)),
    )
    sets = dict.fromkeys([asked_columns, asked_columns.union(*asked_before), *between])
    return [views.domain.ordered(columns) for columns in sets][:MOST_COLUMN_SETS]


def _run(
    purchase: PartitionPlan,
    measurements: PartitionMeasurements,
    pieces: Sequence[WeightedPiece],
    law: GroupedRows,
    verbs: Verbs,
) -> Estimate:
    return Estimate(values=values_of(pieces, purchase.bought(measurements, verbs)), law=law)


def _reach(plan: Universal, span: int, beta: float) -> float:
    """How far the worst question's error reaches, with probability beta, at noise of the reference scale."""
    kind = NoiseKind.LAPLACE if plan.mode is Mode.PURE else NoiseKind.GAUSSIAN
    noise = Noise(kind=kind, scale=REFERENCE_SCALE)
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
