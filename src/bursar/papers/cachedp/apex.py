"""APEx (Ge et al., SIGMOD 2019): the cheaper of two mechanisms, each with just as much noise as the goal allows."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from bursar.arrays import Reals
from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.ledger import Record, chain
from bursar.core.queries import LinearMap, Product, Stack
from bursar.estimation.estimate import ErrorLaw, Estimate, IndependentRows
from bursar.goal import Goal, GoalKind
from bursar.papers.cachedp.accuracy import DRAWS
from bursar.papers.cachedp.believed_errors import believed, laplace_scale, largest_scale, passes, unit_laplace
from bursar.papers.cachedp.full_tree import FullTree, full_tree, hopeless
from bursar.planner.grant import Verbs
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.views.measurements import noise_of

CHUNK = 500
"""Simulated errors drawn at once."""


class Apex(Proposer):
    """The Laplace mechanism on the workload, or the matrix mechanism on the full tree where that is cheaper.

    With a cache, the identical workload again, at the same or a lower accuracy, gets the same answer, free.

    Differs: the tree is simulated at the scale where both would cost the same; only if it passes there is its largest
    scale searched, with fresh draws for every check. Nothing is simulated where one query alone misses the goal for
    sure. A squared error goes to (alpha, beta) and back by the Laplace tail (App. C), which for a single range is the
    identity, so it is used as it stands. The cache of the paper is simulated: a repeated workload gets fresh noise that
    is not paid for; here it gets what was paid for.
    """

    name = "apex"

    def __init__(self, *, cached: bool = False) -> None:
        self._cached = cached
        self._spreads: dict[tuple[str, str], float] = {}

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        """One offer: APEx compares prices by itself, epsilon = |A|_1 / b."""
        workload, goal = request.workload.map, request.goal
        if workload.rows == 0 or goal.kind is GoalKind.SPEND:
            return []
        noise = Noise(kind=NoiseKind.LAPLACE, scale=laplace_scale(workload.rows, goal))
        record = self._known(workload, noise, views)
        price = sum(norm.largest() for norm in workload.norms(1)) / noise.scale
        by_tree = self._by_tree(workload, goal, views, price) if record is None else None
        if by_tree is None:
            direct = IndependentRows(noise=noise if record is None else noise_of(record), rows=workload.rows)
            return [_offer("apex-laplace", workload, noise, direct, None, record, views)]
        tree, weights, scale = by_tree
        noise = Noise(kind=NoiseKind.LAPLACE, scale=scale)
        record = self._known(tree.map, noise, views, request.text)
        law = believed((weights**2).sum(axis=1) * noise.variance(), goal)
        return [_offer("apex-tree", tree.map, noise, law, weights, record, views)]

    def _known(self, strategy: LinearMap, noise: Noise, views: Views, text: str | None = None) -> Record | None:
        """The measurement of the same strategy, if there is one with at most this noise.

        A tree is the strategy of many workloads, so there the question has to be the same, word for word.
        """
        record = views.measurements.finest.get(strategy.digest) if self._cached else None
        fits = (
            record is not None
            and (text is None or record.question == chain.question(text))
            and noise_of(record).scale <= noise.scale
        )
        return record if fits else None

    def _by_tree(
        self, workload: LinearMap, goal: Goal, views: Views, price: float
    ) -> tuple[FullTree, Reals, float] | None:
        """The tree, W A+ and the scale, where that costs less than `price`."""
        if not all(
            isinstance(part, Product) for part in (workload.parts if isinstance(workload, Stack) else (workload,))
        ):
            return None
        columns = views.domain.ordered(workload.attrs)
        tree = full_tree(views.domain, columns)
        if tree is None or not columns:
            return None
        even = tree.norm / price  # the scale at which both cost the same
        if goal.kind is GoalKind.RMSE:
            scale = goal.amount / math.sqrt(2 * self._spread(tree, workload))
            return (tree, tree.weights(tree.dense(workload)), scale) if scale > even else None
        queries = tree.dense(workload)
        if hopeless(tree.weights(queries[:1])[0], even, goal.amount, goal.beta):
            return None
        weights = tree.weights(queries)
        worst = partial(self._worst, weights)
        if not passes(even * worst(DRAWS), goal.amount, goal.beta):
            return None
        return tree, weights, largest_scale(worst, goal.amount, goal.beta, even)

    def _spread(self, tree: FullTree, workload: LinearMap) -> float:
        """The mean over the queries of the sum of squares of their row of W A+."""
        key = tree.map.digest, workload.digest
        if key not in self._spreads:
            self._spreads[key] = float((tree.weights(tree.dense(workload)) ** 2).sum(axis=1).mean())
        return self._spreads[key]

    def _worst(self, weights: Reals, draws: int) -> Reals:
        """The largest |W A+ Lap(1)|, so many times."""
        chunks = [min(CHUNK, draws - start) for start in range(0, draws, CHUNK)]
        each = (np.abs(weights @ unit_laplace(weights.shape[1], n)).max(axis=0) for n in chunks)
        return np.concatenate(list(each))


def _offer(
    name: str,
    strategy: LinearMap,
    noise: Noise,
    law: ErrorLaw,
    weights: Reals | None,
    measured: Record | None,
    views: Views,
) -> Offer:
    def answered(record: Record) -> Estimate:
        values = record.values.astype(float)
        return Estimate(values=values if weights is None else weights @ values, law=law)

    if measured is not None:
        given, note = answered(measured), f"measured before, record {measured.position}"
        return Offer(proposer=name, price=Price(), law=law, run=lambda verbs: given, reuses=strategy.rows, note=note)
    event = Measured(strategy=strategy, noise=noise, version=views.version)

    def run(verbs: Verbs) -> Estimate:
        return answered(verbs.measure(strategy, noise))

    price = Price(events=(event,), at_most=views.price((event,)))
    note = f"{noise.kind.value} noise of scale {noise.scale:.4g}"
    return Offer(proposer=name, price=price, law=law, run=run, buys=strategy.rows, note=note)
