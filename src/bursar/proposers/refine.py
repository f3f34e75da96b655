"""Make rows that were measured before as exact as the goal needs: what they have cost counts towards what they will."""

from __future__ import annotations

from bursar.core.accounting import Mode
from bursar.core.queries import LinearMap
from bursar.goal import GoalKind
from bursar.planner.offer import Offer, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.buying.purchase import CandidateRows, PurchaseProblem
from bursar.views.measurements import products_of
from bursar.views.nodes import Node, boxes_of

MOST_ROWS = 512
"""Most rows of a question that are looked up one by one."""


class Refine(Proposer):
    """Laplace noise only: a fresh Gaussian row adds its precision to the old one, and `direct` or `tree` buys it."""

    name = "refine"

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
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
