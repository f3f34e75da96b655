"""The modules of CacheDP as proposers: MMM, SE and RP (Algorithms 2, 5, 7), with PQ (Algorithm 6) in the first two.

Each offers its price and the law of its errors; Algorithm 1's choice between them is the planner's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bursar.arrays import Reals
from bursar.core.accounting import Event, Measured, Noise, NoiseKind, Refined
from bursar.errors import BudgetError
from bursar.estimation.estimate import ErrorLaw, Estimate
from bursar.goal import GoalKind
from bursar.papers.cachedp.instant import Estimated, Instant, InstantEstimator, strategy_of
from bursar.papers.cachedp.range_tree import Marked, decompose
from bursar.planner.grant import Verbs
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.reuse import Exact
from bursar.views.nodes import Box, Node

MOST_EXTRA = 10
"""lambda of Algorithm 5, line 4; the paper does not say which."""

MOST_PROACTIVE = 4096
"""Most rows that are bought along with the paid ones."""

LEAST_STEP = 2.0**-49
"""Noise that would get finer by less than this in 1/scale cannot be refined."""


class Mmm(Proposer):
    """The modified matrix mechanism: free rows F from the log, paid rows P at b_P, and rows that come along."""

    name = "mmm"

    def __init__(self, estimator: InstantEstimator, *, proactive: bool) -> None:
        self._estimator, self._proactive = estimator, proactive

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        if request.workload.map.rows == 0:
            return Exact().offers(request, views)
        if request.goal.kind is GoalKind.SPEND:
            return []  # the paper knows no such goal
        estimated = self._estimator.basic(request, views)
        return [] if estimated is None else _bought(self.name, estimated, views, proactive=self._proactive)


class Expander(Proposer):
    """The strategy expander: MMM with cached rows beside the strategy, up to lambda of them, no coarser than b_P."""

    name = "se"

    def __init__(self, estimator: InstantEstimator, *, proactive: bool, most: int = MOST_EXTRA) -> None:
        self._estimator, self._proactive, self._most = estimator, proactive, most

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        if request.goal.kind is GoalKind.SPEND:
            return []
        basic = self._estimator.basic(request, views)
        if basic is None or not basic.paid:
            return []
        expanded = self._estimator.expanded(basic, request.goal, self._most)
        return [] if expanded is None else _bought(self.name, expanded, views, proactive=self._proactive)


class Relax(Proposer):
    """Relax privacy: the noise of a past strategy that contains this one is made finer, for the difference in price.

    Guarantees: after it, each row of the past strategy has Laplace noise of the new scale, whatever it had before.
    `rowwise` refines the rows of this question alone, wherever they were bought, and buys those that never were.
    """

    name = "rp"

    def __init__(self, estimator: InstantEstimator, *, rowwise: bool) -> None:
        self._estimator, self._rowwise = estimator, rowwise

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        if request.goal.kind is GoalKind.SPEND:
            return []
        basic = self._estimator.basic(request, views)
        if basic is None or not basic.paid:
            return []
        relaxed = self._one_by_one(basic, views) if self._rowwise else self._whole(basic.instant, request, views)
        return [] if relaxed is None else [relaxed]

    def _whole(self, instant: Instant, request: PlanningRequest, views: Views) -> Offer | None:
        """Only one past strategy can contain A: the one whose rows are the finest for all of its boxes."""
        blocks = {node.block if node is not None else -1 for node in instant.nodes}
        if -1 in blocks or len(blocks) > 1:
            return None
        bound = self._estimator.fresh(instant, request.goal)
        if bound is None:
            return None
        (block,) = blocks
        past = [node for node in instant.cache.values() if node.block == block]
        return _refined(self.name, Estimated(instant=instant, bound=bound), past, (), views)

    def _one_by_one(self, basic: Estimated, views: Views) -> Offer | None:
        nodes = [basic.instant.nodes[row] for row in basic.paid]
        past = [node for node in nodes if node is not None]
        new = [basic.instant.boxes[row] for row in basic.paid if basic.instant.nodes[row] is None]
        return _refined(self.name, basic, past, new, views) if past else None


@dataclass(frozen=True, kw_only=True, eq=False)
class _Plan:
    """Verbs to call, and how their values answer: row by row, the value in the log unless a verb gives a new one."""

    instant: Instant
    weights: Reals
    law: ErrorLaw
    events: tuple[Event, ...]
    bought: Sequence[Box] = ()  # the rows of what is measured

    def run(self, verbs: Verbs) -> Estimate:
        boxes, nodes = self.instant.boxes, self.instant.nodes
        values = {box: node.value for box, node in zip(boxes, nodes, strict=True) if node is not None}
        places = {(node.block, node.row): box for box, node in zip(boxes, nodes, strict=True) if node is not None}
        for event in self.events:
            match event:
                case Measured(strategy=strategy, noise=noise):
                    record = verbs.measure(strategy, noise)
                    values |= dict(zip(self.bought, record.values.tolist(), strict=True))
                case Refined(block=block, rows=rows, after=noise):
                    record = verbs.refine(block, rows.tolist(), noise)
                    for row, value in zip(rows.tolist(), record.values.tolist(), strict=True):
                        if (block, row) in places:
                            values[places[block, row]] = value
        # A row without a value has no weight.
        measured = np.array([values.get(box, 0) for box in boxes], np.float64)
        return Estimate(values=self.weights @ measured, law=self.law)


def _bought(name: str, estimated: Estimated, views: Views, *, proactive: bool) -> list[Offer]:
    """AnswerWorkload (Algorithm 2, lines 1 to 8), as an offer: buy P, and dP where that costs nothing more."""
    instant, bound, paid = estimated.instant, estimated.bound, estimated.paid
    boxes = [instant.boxes[row] for row in paid]
    choices: list[list[Box]] = [boxes]
    if proactive and boxes:
        more = _proactive(instant, boxes)
        choices = [[*boxes, *more], boxes] if more else choices
    best: tuple[Price, list[Box]] | None = None
    for choice in choices:
        events: tuple[Event, ...] = ()
        rows: list[Box] = []
        if choice:
            strategy, rows = strategy_of(choice, instant.columns, views.domain)
            events = (Measured(strategy=strategy, noise=_laplace(bound.paid), version=views.version),)
        price = _price(events, views)
        if price is not None and (best is None or price.at_most < best[0].at_most):
            best = price, rows
    if best is None:
        return []
    price, rows = best
    plan = _Plan(instant=instant, weights=bound.weights, law=bound.law, events=price.events, bought=rows)
    free = len(instant.boxes) - len(paid)
    note = f"{free} of {len(instant.boxes)} rows cached"
    if paid:
        note += f", scale {bound.paid:.4g}, {len(rows) - len(paid)} rows along"
    return [Offer(proposer=name, price=price, law=bound.law, run=plan.run, reuses=free, buys=len(rows), note=note)]


def _proactive(instant: Instant, boxes: Sequence[Box]) -> list[Box]:
    """dP for the paid boxes; none where the expander pays for a box of another tree."""
    extra = set(instant.boxes[len(instant.boxes) - instant.extra :])
    if any(box in extra and decompose(instant.tree, box) != [box] for box in boxes):
        return []
    return Marked(instant.tree, frozenset(boxes)).proactive(instant.cache, MOST_PROACTIVE)


def _refined(name: str, estimated: Estimated, past: Sequence[Node], new: Sequence[Box], views: Views) -> Offer | None:
    """Refine rows of the log to b_P, those of one block and one noise together, and buy new rows with the same."""
    instant, bound = estimated.instant, estimated.bound
    coarse: dict[tuple[int, Noise], list[int]] = {}
    for node in past:
        if bound.paid < node.noise.scale:
            coarse.setdefault((node.block, node.noise), []).append(node.row)
    if any(1 / bound.paid - 1 / noise.scale < LEAST_STEP for _, noise in coarse):
        return None
    events: list[Event] = [
        Refined(
            block=block,
            measured=views.nodes.strategies[block],
            rows=np.array(sorted(rows), np.int64),
            before=before,
            after=_laplace(bound.paid),
            version=views.version,
        )
        for (block, before), rows in coarse.items()
    ]
    bought: list[Box] = []
    if new:
        strategy, bought = strategy_of(new, instant.columns, views.domain)
        events.append(Measured(strategy=strategy, noise=_laplace(bound.paid), version=views.version))
    price = _price(tuple(events), views)
    if price is None:
        return None
    plan = _Plan(instant=instant, weights=bound.weights, law=bound.law, events=price.events, bought=bought)
    rows = sum(map(len, coarse.values()))
    return Offer(
        proposer=name,
        price=price,
        law=bound.law,
        run=plan.run,
        reuses=len(instant.boxes) - len(bought),
        buys=len(bought),
        note=f"{rows} rows made finer, to scale {bound.paid:.4g}",
    )


def _price(events: tuple[Event, ...], views: Views) -> Price | None:
    """What the events would add; None where that is beyond any budget."""
    try:
        return Price(events=events, at_most=views.price(events) if events else 0)
    except BudgetError:
        return None


def _laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)
