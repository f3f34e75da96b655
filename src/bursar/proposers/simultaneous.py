"""Proposers under the simultaneous contract: every answer comes from the rows of one purchase, free or bought now."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.queries import LinearMap, Product
from bursar.errors import BudgetError, GoalError, Stale
from bursar.estimation.estimate import Estimate, IndependentRows, WeightedRows, any_of, meets
from bursar.estimation.least_squares import Block, Reconstruction
from bursar.estimation.simultaneous import EveryQuestion, Family, cuts_of, share
from bursar.goal import Goal, GoalKind
from bursar.planner.grant import Verbs
from bursar.planner.offer import Offer, Price, Proposer, Views, from_log
from bursar.planner.request import PlanningRequest
from bursar.proposers.reuse import Exact
from bursar.views.measurements import Measurements, Reconstructions, products_of
from bursar.views.nodes import Nodes

ANY_NOISE = Noise(kind=NoiseKind.LAPLACE, scale=1.0)
"""Least squares over rows with one noise does not depend on which noise that is."""

MOST_RECONSTRUCTION_BYTES = 128 * 2**20
"""How much memory reconstructions may take; those not asked for longest go first."""

MOST_OFFERS = 3
"""How many earlier purchases are offered for one question, the most accurate first."""

SHARES_OF_SCALE = (1.0, 0.99, 0.97, 0.93, 0.87, 0.8, 0.7, 0.6, 0.5, 0.35, 0.25)
"""Shares of the scale that the wrapped proposer found: the first that keeps the goal is taken."""

SHARE_LESS_ROUNDING = 1 - 1e-6
"""A purchase is planned with this much of its share: asked for again with other rows, rounding must not tell."""

LEAST_BETA = 2.0**-53
"""The least failure probability that a goal can name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredPurchase:
    """One `Measured` record of this version: its rows, their values, and its number among the purchases."""

    products: tuple[Product, ...]
    values: Integers
    noise: Noise
    position: int
    number: int


def purchases(measurements: Measurements) -> list[MeasuredPurchase]:
    """The purchases of this version, first to last. Rows that were refined since count as they were measured."""
    blocks: dict[int, list[Block]] = {}
    for block in (block for of_columns in measurements.blocks.values() for block in of_columns):
        if isinstance(block, Block):
            blocks.setdefault(block.position, []).append(block)
    purchases_made: list[MeasuredPurchase] = []
    for number, position in enumerate(sorted(blocks), start=1):
        parts = sorted(blocks[position], key=lambda block: block.first)
        products, values = tuple(block.product for block in parts), np.concatenate([block.values for block in parts])
        facts = {"position": position, "number": number}
        purchases_made.append(MeasuredPurchase(products=products, values=values, noise=parts[0].noise, **facts))
    return purchases_made


@dataclass(frozen=True, kw_only=True, eq=False)
class RowEstimator:
    """How a question follows from the rows of one purchase: known before anything is drawn."""

    weights: Reals | None  # (queries, rows); None where the rows are the queries
    rows: int  # queries
    questions: int  # that the purchase has to share its failure probability out to

    def law(self, noise: Noise, number: int, part: float = 1.0) -> EveryQuestion:
        """The law with the share of the purchase of this number, or a part of the share."""
        law: IndependentRows | WeightedRows = IndependentRows(noise=noise, rows=self.rows)
        if self.weights is not None:
            used = np.abs(self.weights).max(axis=0, initial=0) > 0
            law = WeightedRows(weights=self.weights[:, used], noises=(noise,) * int(used.sum()))
        return EveryQuestion(law=law, rows=self.rows, times=self.questions / (part * share(number)))

    def estimate(self, values: Integers, law: EveryQuestion) -> Estimate:
        exact = values.astype(float)
        return Estimate(values=exact if self.weights is None else self.weights @ exact, law=law)

    @property
    def reuses(self) -> int:
        """How many rows take part."""
        return self.rows if self.weights is None else int((np.abs(self.weights).max(axis=0, initial=0) > 0).sum())


class PurchaseTurns:
    """The purchases of one process, one at a time: none may take the share that another one was planned with."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def buy(self, event: Measured, estimator: RowEstimator, number: int, position: int, verbs: Verbs) -> Estimate:
        """Measure what was planned when the log ended at `position`, and answer with the share that it has in the log.

        Raises Stale, before anything is drawn, where another purchase of this process came first.
        Edge cases: a purchase that another process overtook has a later share, and so wider bars than were planned; the
        answer shows them. Each record in between counts as a purchase, which can only make the share smaller.
        """
        with self._lock:
            if self._last > position:
                raise Stale("another purchase came first, and the share that this one was planned with is taken")
            record = verbs.measure(event.strategy, event.noise)
            self._last = record.position
        overtaken_by = record.position - 1 - position
        return estimator.estimate(record.values, estimator.law(event.noise, number + overtaken_by))


class Estimators:
    """One estimator for each pair of a purchase and a question: least squares over the purchase's rows alone.

    Where these are too many for that, only the question that consists of exactly them is answered, by the rows
    themselves; then each row is one question.
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        self.turns = PurchaseTurns()
        self._kept: OrderedDict[tuple[str, ...], Reconstruction | None] = OrderedDict()

    def of(self, products: Sequence[Product], workload: LinearMap) -> RowEstimator | None:
        """None where the rows do not determine the question."""
        queries, rows = products_of(workload), sum(product.rows for product in products)
        cuts, needed = cuts_of(products), cuts_of(queries)
        if any(name not in cuts or not np.isin(needed[name], cuts[name]).all() for name in needed):
            return None
        same = [part.digest for part in queries] == [part.digest for part in products]
        reconstruction = self._reconstruction(products)
        if reconstruction is None:
            return RowEstimator(weights=None, rows=rows, questions=rows) if same else None
        weights = reconstruction.weights_of(workload)
        if weights is None:
            return None
        plain = same and np.array_equal(weights, np.eye(rows))
        questions = self.family.determined(products)
        return RowEstimator(weights=None if plain else weights, rows=workload.rows, questions=questions)

    def _reconstruction(self, products: Sequence[Product]) -> Reconstruction | None:
        """The rows of a purchase with values of zero; always over all columns of the purchase. None where too many."""
        key = tuple(product.digest for product in products)
        if key not in self._kept:
            domain = self.family.domain
            reconstruction = Reconstruction(
                domain, domain.ordered(name for product in products for name in product.attrs)
            )
            fits = all(
                reconstruction.add(Block(product, np.zeros(product.rows, np.int64), ANY_NOISE)) for product in products
            )
            self._kept[key] = reconstruction if fits else None
            while (
                len(self._kept) > 1
                and sum(0 if each is None else each.bytes for each in self._kept.values()) > MOST_RECONSTRUCTION_BYTES
            ):
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


class Reuse(Proposer):
    """Rows of one earlier purchase determine the answer, free."""

    name = "reuse"

    def __init__(self, estimators: Estimators) -> None:
        self._estimators = estimators

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        workload = request.workload.map
        if workload.rows == 0:
            return Exact().offers(request, views)
        usable: list[tuple[MeasuredPurchase, RowEstimator, EveryQuestion]] = []
        for purchase in purchases(views.measurements):
            estimator = self._estimators.of(purchase.products, workload)
            if estimator is not None:
                usable.append((purchase, estimator, estimator.law(purchase.noise, purchase.number)))
        usable.sort(key=lambda candidate: candidate[2].mean_square())
        return [self._offer(*candidate) for candidate in usable[:MOST_OFFERS]]

    def _offer(self, purchase: MeasuredPurchase, estimator: RowEstimator, law: EveryQuestion) -> Offer:
        how = "measured before" if estimator.weights is None else "least squares over one purchase"
        return Offer(
            proposer=self.name,
            price=Price(),
            law=law,
            run=partial(from_log, estimator.estimate(purchase.values, law)),
            reuses=estimator.reuses,
            note=f"{how}, record {purchase.position}",
        )


class OnePurchase(Proposer):
    """Another proposer's plans, as far as they buy rows in one purchase that answers the question by itself.

    The plan says what to measure. How much noise the goal allows is looked for again, at the failure probability that
    this contract leaves each question, and the estimator is that of `Estimators`.
    """

    def __init__(self, inner: Proposer, estimators: Estimators) -> None:
        self.name = inner.name
        self._inner, self._estimators = inner, estimators

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        workload = request.workload.map
        if workload.rows == 0:
            return []
        number = 1 + len(purchases(views.measurements))
        offers = [
            self._promised(event, request, views, number, plan) for event, plan in self._plans(request, views, number)
        ]
        return [offer for offer in offers if offer is not None]

    def _plans(self, request: PlanningRequest, views: Views, number: int) -> list[tuple[Measured, Offer]]:
        """Plans at about the right failure probability: what is bought decides how many questions share it."""
        determined = self._estimators.family.determined
        least_questions = determined(products_of(request.workload.map))
        alone = _unmeasured(views)
        plans = _bought(self._inner.offers(_stricter(request, share(number) / least_questions), alone))
        purchases: list[tuple[Measured, Offer]] = []
        for event, plan in plans:
            questions = determined(products_of(event.strategy))
            if questions == least_questions or request.goal.kind is not GoalKind.ERROR:
                purchases.append((event, plan))
                continue
            key = (event.strategy.digest, event.noise.kind)
            again = _bought(self._inner.offers(_stricter(request, share(number) / questions), alone))
            purchases += [(more, better) for more, better in again if (more.strategy.digest, more.noise.kind) == key][
                :1
            ]
        return purchases

    def _promised(
        self, event: Measured, request: PlanningRequest, views: Views, number: int, plan: Offer
    ) -> Offer | None:
        products = products_of(event.strategy)
        if sum(product.rows for product in products) != event.strategy.rows:
            return None  # a transform, whose rows are not counts of cells
        estimator = self._estimators.of(products, request.workload.map)
        noise = None if estimator is None else _noise(estimator, event.noise, number, request.goal)
        if estimator is None or noise is None:
            return None
        price, note = plan.price, plan.note
        if noise != event.noise:
            event = replace(event, noise=noise)
            note = f"{noise.kind.value} noise of scale {noise.scale:.4g}"
            try:
                price = Price(events=(event,), at_most=views.price((event,)))
            except BudgetError:
                return None
        run = partial(self._estimators.turns.buy, event, estimator, number, views.position)
        return replace(plan, price=price, law=estimator.law(noise, number), run=run, note=f"{note}; purchase {number}")


def _unmeasured(views: Views) -> Views:
    """The views of a log without any rows: what is planned must answer by itself. What was paid stays known."""
    nothing = Measurements(views.domain, version=views.version)
    unknown = Reconstructions(views.domain, nothing)
    return replace(views, measurements=nothing, reconstructions=unknown, nodes=Nodes(views.domain))


def _bought(plans: Sequence[Offer]) -> list[tuple[Measured, Offer]]:
    """The plans that are one purchase."""
    single = [(plan.price.events[0], plan) for plan in plans if len(plan.price.events) == 1]
    return [(event, plan) for event, plan in single if isinstance(event, Measured)]


def _noise(estimator: RowEstimator, noise: Noise, number: int, goal: Goal) -> Noise | None:
    """The noise, or somewhat less, at which the question keeps its goal under this contract."""
    try:
        tried = (replace(noise, scale=finer * noise.scale) for finer in SHARES_OF_SCALE)
        return next((each for each in tried if meets(estimator.law(each, number, SHARE_LESS_ROUNDING), goal)), None)
    except GoalError:  # a scale that cannot be drawn
        return None


def _stricter(request: PlanningRequest, share_of_one: float) -> PlanningRequest:
    """The request with the confidence at which each of its rows fails with no more than this share of beta."""
    rows, goal = request.workload.map.rows, request.goal
    beta = max(any_of(SHARE_LESS_ROUNDING * goal.beta * share_of_one, rows), LEAST_BETA)
    confidence = 1 - beta
    if 1 - confidence > beta:
        confidence = math.nextafter(confidence, 1.0)
    return replace(request, goal=replace(goal, confidence=min(confidence, 1 - LEAST_BETA)))
