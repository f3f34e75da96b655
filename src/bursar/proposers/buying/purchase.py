"""From rows worth having to an offer: how exact they must be, which of them are refined and which are bought."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import NormalDist

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Measured, Mode, Noise, NoiseKind, Refined, rows_of
from bursar.core.grant import Verbs
from bursar.core.queries import LinearMap
from bursar.errors import BudgetError, GoalError
from bursar.estimation.estimate import Estimate, WeightedRows, meets
from bursar.estimation.least_squares import Block, Finer, Reconstruction
from bursar.goal import GoalKind
from bursar.planner.offer import Offer, Price, Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.buying.precision_search import Posterior, PrecisionSearch
from bursar.strategies.tree import Box
from bursar.tails.near_lattice import pitches
from bursar.tails.saddlepoint import near_tails
from bursar.views.measurements import products_of
from bursar.views.nodes import Node

Bought = Measured | Refined

MOST_CELLS = 1024
"""Most merged cells that are planned over: the plan inverts a matrix of that size."""

TRIES = 16
"""Most purchases whose exact tails are looked at. The first one is right nearly always."""

ABOVE = 1e-3
"""How far above the approximate level the first one that is tried lies: as high as it would come to lie on average."""

STEP = 2e-3
"""By how much the second level that is tried differs from the first; twice as much from each to the next one."""

SLACK_NOT_WORTH_A_TRY = 0.01
"""Room that is not worth another try, as a share of the level."""

COARSE = 1.5
"""Below this scale whole numbers count, and the first level that keeps the goal may leave much room."""

FINE = 2e-3
"""Lattices are taken into account where a whole step is more than this share of the error."""

NEARLY = 0.1
"""And where other draws take a sum off its lattice by less than this share of a step."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CandidateRows:
    """Rows that would answer a question, and where each stands in the log, if it does."""

    rows: LinearMap
    nodes: Sequence[Node | None]
    boxes: Sequence[Box] = ()  # of the rows, where they are boxes

    def losses(self, mode: Mode) -> Reals:
        """The present loss of each row per unit; zero for Gaussian rows, where what is bought adds to what is known."""
        if mode is not Mode.PURE:
            return np.zeros(len(self.nodes))
        return np.array([0.0 if node is None else 1 / node.noise.scale for node in self.nodes])


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelledPurchase:
    """Events that bring the rows of a wish to one level, and what will be known after them."""

    wish: CandidateRows
    level: float  # the loss per unit that no row of the wish is below
    events: tuple[Bought, ...]
    places: tuple[Integers, ...]  # for each event, where its values go
    after: Reconstruction  # values of events are missing
    weights: Reals
    law: WeightedRows

    def offer(self, proposer: str, price: int, *, note: str, more: Sequence[Bought] = (), credit: int = 0) -> Offer:
        """The offer to carry out the events, and after them `more` that nobody asked for."""
        bought = sum(event.strategy.rows for event in self.events if isinstance(event, Measured))
        return Offer(
            proposer=proposer,
            price=Price(events=(*self.events, *more), at_most=price),
            law=self.law,
            run=partial(self._run, more),
            reuses=sum(node is not None for node in self.wish.nodes),
            buys=bought,
            note=note,
            credit=credit,
        )

    def _run(self, more: Sequence[Bought], verbs: Verbs) -> Estimate:
        values = self.after.values.copy()
        for event, places in zip(self.events, self.places, strict=True):
            values[places[places >= 0]] = _carried_out(event, verbs)[places >= 0]
        for event in more:
            _carried_out(event, verbs)
        return Estimate(values=self.weights @ values, law=self.law)


def _carried_out(event: Bought, verbs: Verbs) -> Integers:
    if isinstance(event, Measured):
        return verbs.measure(event.strategy, event.noise).values
    return verbs.refine(event.block, event.rows.tolist(), event.after).values


@dataclass(frozen=True, kw_only=True, eq=False)
class PurchaseProblem:
    """One wish for one question: to which level its rows must be brought, and what that does to the question."""

    wish: CandidateRows
    request: PlanningRequest
    views: Views
    known: Reconstruction
    market: PrecisionSearch

    @staticmethod
    def of(wish: CandidateRows, request: PlanningRequest, views: Views) -> PurchaseProblem | None:
        """None where question and rows tell too many cells apart."""
        wanted = request.workload.map
        known = views.reconstructions.on(views.domain.ordered([*wanted.attrs, *wish.rows.attrs])).copy()
        parts = [*products_of(wanted), *products_of(wish.rows)]
        if not all(known.split_by(part) for part in parts) or len(known.state.cells) > MOST_CELLS:
            return None
        root = np.sqrt(known.state.cells)
        market = PrecisionSearch(
            mode=views.mode,
            information=known.state.information / np.outer(root, root),
            asked=np.concatenate([known.coordinates(part) for part in products_of(wanted)]) / root,
            candidates=np.concatenate([known.coordinates(part) for part in products_of(wish.rows)]) / root,
            present=wish.losses(views.mode),
        )
        return PurchaseProblem(wish=wish, request=request, views=views, known=known, market=market)

    @cached_property
    def level(self) -> float | None:
        """About the least level that keeps the goal; for a goal on tails by the saddlepoint approximation."""
        goal = self.request.goal
        if goal.kind is GoalKind.RMSE:
            return self.market.level(goal.amount**2 * (1 - 1e-9), mean=True)
        z = -NormalDist().inv_cdf(goal.beta / (2 * self.request.workload.map.rows))
        found = self.market.level_by(self._excess, (goal.amount / z) ** 2)
        return None if found is None else (1 + ABOVE) * found

    def cheapest(self) -> LevelledPurchase | None:
        """The purchase at the coarsest level that is found to keep the goal, which the exact tails decide."""
        level, step, fails = self.level, STEP, 0.0
        best: LevelledPurchase | None = None
        for _ in range(TRIES):
            made = None if level is None else self._purchase(level)
            if level is None or made is None:
                break
            if meets(made.law, self.request.goal):
                best = made
                if fails == 0 and _noise_at(level, self.views.mode).scale > COARSE:
                    break
            else:
                fails = level
            if best is None:
                level, step = level * (1 + step), 2 * step
            elif fails == 0:
                level, step = level / (1 + step), 2 * step
            elif best.level > (1 + SLACK_NOT_WORTH_A_TRY) * fails:
                level = math.sqrt(fails * best.level)
            else:
                break
        return best

    def events(self, level: float) -> tuple[Bought, ...] | None:
        """What brings the rows to a level; None where that takes a noise that cannot be drawn."""
        try:
            return finer(self.wish, level, self.views)
        except GoalError:
            return None

    @cached_property
    def least(self) -> int | None:
        """About the least price of what keeps the goal; None where there is nothing to buy, or too much."""
        events = None if self.level is None else self.events(self.level)
        try:
            return None if events is None else self.views.price(events)
        except BudgetError:
            return None

    def price(self, made: LevelledPurchase) -> int | None:
        """What a purchase costs; None where that is beyond any budget."""
        try:
            return self.least if made.level == self.level else self.views.price(made.events)
        except BudgetError:
            return None

    def _excess(self, after: Posterior) -> float:
        """How far about the failure probability p is from the goal's, in log(-log p): that is linear in the log loss.

        What is not bought counts as one more draw.
        """
        laplace, amount = self.views.mode is Mode.PURE, self.request.goal.amount
        weights, spreads = np.abs(after.weights()), 1 / np.sqrt(after.own)
        rest = np.sqrt(np.maximum(after.variances() - np.square(weights) @ np.square(spreads), 0.0))
        scales = np.column_stack([weights * spreads, rest]) / (math.sqrt(2) if laplace else 1.0)
        reached = np.full(len(weights), amount)
        if (
            weights.max(initial=0.0) > FINE * amount
        ):  # on a lattice a tail falls in steps: about its value half a step on
            pitch = pitches(weights, spreads)
            on = (pitch > 0) & (rest <= NEARLY * pitch)
            reached[on] = pitch[on] * (np.maximum(np.ceil(amount / pitch[on] - NEARLY), 1.0) - 0.5)
        kind = NoiseKind.LAPLACE if laplace else NoiseKind.GAUSSIAN
        each = float(near_tails(scales, kind, reached).mean())
        aim = self.request.goal.beta / len(weights)
        return math.log(math.log(aim) / math.log(min(max(each, 1e-300), 1 - 1e-6)))

    def _purchase(self, level: float) -> LevelledPurchase | None:
        events = self.events(level)
        if events is None:
            return None
        after = self.known.copy()
        places = after.refine(
            Finer(event.block, event.rows, np.zeros(len(event.rows), np.int64), event.after)
            for event in events
            if isinstance(event, Refined)
        )
        for event in events:  # what is bought comes last
            if isinstance(event, Refined):
                continue
            start = len(after.values)
            for part in products_of(event.strategy):
                if not after.add(Block(part, np.zeros(part.rows, np.int64), event.noise)):
                    return None
            places.append(np.arange(start, len(after.values)))
        weights = after.weights_of(self.request.workload.map)
        if weights is None:
            return None
        return LevelledPurchase(
            wish=self.wish,
            level=level,
            events=events,
            places=tuple(places),
            after=after,
            weights=weights,
            law=after.law_of(weights),
        )


def finer(wish: CandidateRows, level: float | Reals, views: Views) -> tuple[Bought, ...]:
    """What brings every row of the wish that is coarser to a level, or each to its own: refinements, then purchases."""
    present = wish.losses(views.mode)
    wanted = np.broadcast_to(level, present.shape)
    refined: dict[tuple[int, Noise, Noise], list[int]] = defaultdict(list)
    bought: dict[Noise, list[int]] = defaultdict(list)
    for row in np.flatnonzero(wanted > present * (1 + 1e-6)).tolist():
        node, noise = wish.nodes[row], _noise_at(float(wanted[row]), views.mode)
        if node is None or views.mode is not Mode.PURE:
            bought[noise].append(row)
        else:
            refined[node.block, node.noise, noise].append(node.row)
    made: list[Bought] = [
        Refined(
            block=block,
            measured=views.nodes.strategies[block],
            rows=np.array(sorted(rows)),
            before=before,
            after=after,
            version=views.version,
        )
        for (block, before, after), rows in refined.items()
    ]
    made += [
        Measured(strategy=rows_of(wish.rows, np.array(rows)), noise=noise, version=views.version)
        for noise, rows in bought.items()
    ]
    return tuple(made)


def _noise_at(loss: float, mode: Mode) -> Noise:
    """The noise whose loss per unit is this, to rounding."""
    if mode is Mode.PURE:
        return Noise(kind=NoiseKind.LAPLACE, scale=1 / loss)
    return Noise(kind=NoiseKind.GAUSSIAN, scale=1 / math.sqrt(2 * loss))
