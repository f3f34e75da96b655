"""Rows of the log determine the answer together, free: by weighted least squares, or as the inverse of a transform."""

from __future__ import annotations

from functools import partial

from bursar.core.grant import Verbs
from bursar.core.queries import Predicate
from bursar.estimation.estimate import Estimate, NearlyNormal, WeightedRows
from bursar.estimation.least_squares import LaterRows
from bursar.estimation.sine_columns import answers
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest


class Reconstruct(Proposer):
    name = "reconstruct"

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
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
