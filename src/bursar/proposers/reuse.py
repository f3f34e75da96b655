"""Rows of the log determine the answer together, free: by weighted least squares, or as the inverse of a transform.

The same strategy was measured before: its rows answer again, free, with the same numbers.

Make rows that were measured before as exact as the goal needs: what they have cost counts towards what they will.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from bursar.core.accounting import Mode
from bursar.core.queries import LinearMap, Predicate
from bursar.core.verbs import Verbs
from bursar.estimation.estimate import Certain, Estimate, IndependentRows, NearlyNormal, WeightedRows
from bursar.estimation.least_squares import LaterRows
from bursar.estimation.sine_columns import answers
from bursar.goal import GoalKind
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import Request
from bursar.proposers.buying.purchase import CandidateRows, PurchaseProblem
from bursar.views.measurements import noise_of, products_of
from bursar.views.nodes import Node, boxes_of


class Exact(Proposer):
    name = "exact"
    any_map = True

    def offers(self, request: Request, views: Views) -> list[Offer]:
        wanted = request.workload.map
        if wanted.rows == 0:
            nothing = Estimate(values=np.zeros(0), law=Certain())
            note = "0 by definition: no row can match"
            return [Offer(proposer=self.name, price=Price(), law=Certain(), run=lambda verbs: nothing, note=note)]
        record = views.measurements.finest.get(wanted.digest)
        if record is None:
            return []
        law = IndependentRows(noise=noise_of(record), rows=wanted.rows)
        estimate = Estimate(values=record.values.astype(float), law=law)
        return [
            Offer(
                proposer=self.name,
                price=Price(),
                law=law,
                run=lambda verbs: estimate,
                reuses=wanted.rows,
                note=f"measured before, record {record.position}",
            )
        ]


class Reconstruct(Proposer):
    name = "reconstruct"

    def offers(self, request: Request, views: Views) -> list[Offer]:
        """The reconstruction with the least mean squared error, if any determines the question."""
        wanted = request.workload.map
        if wanted.rows == 0 or isinstance(wanted, Predicate):
            return []
        answered = [found.answered(wanted) for found in views.reconstructions.over(wanted)]
        known = [*answered, *answers(views.measurements.lines, wanted)]
        estimate = min((each for each in known if each is not None), key=_mean_square, default=None)
        if estimate is None:
            return []
        reuses, how = _origin(estimate)
        return [
            Offer(
                proposer=self.name,
                price=Price(),
                law=estimate.law,
                run=partial(_given, estimate),
                reuses=reuses,
                note=f"{how} over {reuses} measured rows",
            )
        ]


def _mean_square(estimate: Estimate) -> float:
    return estimate.law.mean_square()


def _origin(estimate: Estimate) -> tuple[int, str]:
    """How many rows of the log an estimate is made of, and how."""
    if isinstance(estimate.law, NearlyNormal):
        return estimate.law.draws, "inverse sine transform"
    assert isinstance(estimate.law, WeightedRows | LaterRows)
    return len(estimate.law.noises), "least squares"


def _given(estimate: Estimate, verbs: Verbs) -> Estimate:
    return estimate


MOST_ROWS = 512
"""Most rows of a question that are looked up one by one."""


class Refine(Proposer):
    """Laplace noise only: a fresh Gaussian row adds its precision to the old one, and `direct` or `tree` buys it."""

    name = "refine"

    def offers(self, request: Request, views: Views) -> list[Offer]:
        wanted = request.workload.map
        if views.mode is not Mode.PURE or request.goal.kind is GoalKind.SPEND or not 1 <= wanted.rows <= MOST_ROWS:
            return []
        nodes = _own(wanted, views)
        known = sum(node is not None for node in nodes)
        shop = PurchaseProblem.of(CandidateRows(rows=wanted, nodes=nodes), request, views) if known else None
        purchase = None if shop is None else shop.cheapest()
        price = None if shop is None or purchase is None else shop.price(purchase)
        if purchase is None or price is None:
            return []
        note = f"{known} of {wanted.rows} rows were measured before"
        return [purchase.offer(self.name, price, note=note)]


def _own(wanted: LinearMap, views: Views) -> list[Node | None]:
    """Where the question's own rows stand in the log."""
    found: list[Node | None] = []
    for part in products_of(wanted):
        columns = views.domain.ordered(part.attrs)
        boxes = boxes_of(part, columns, views.domain)
        known = views.nodes.over(columns)
        found += [None] * part.rows if boxes is None else [known.get(box) for box in boxes]
    return found
