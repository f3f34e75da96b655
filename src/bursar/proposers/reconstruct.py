"""Rows of the log determine the answer together: weighted least squares over all of them, free."""

from __future__ import annotations

from functools import partial

from bursar.inference.estimate import Estimate, WeightedRows
from bursar.kernel.verbs import Verbs
from bursar.planner.offer import Offer, Price, Views
from bursar.planner.request import Request


class Reconstruct:
    name = "reconstruct"

    def offers(self, request: Request, views: Views) -> list[Offer]:
        """The reconstruction with the least mean squared error, if any determines the question."""
        if request.workload.map.rows == 0:
            return []
        answers = [found.answer(request.workload.map) for found in views.reconstructions.over(request.workload.map)]
        known = [answer for answer in answers if answer is not None]
        if not known:
            return []
        estimate = min(known, key=lambda answer: answer.law.mean_square())
        assert isinstance(estimate.law, WeightedRows)
        reuses = len(estimate.law.noises)
        return [
            Offer(
                proposer=self.name,
                price=Price(),
                law=estimate.law,
                run=partial(_given, estimate),
                reuses=reuses,
                note=f"least squares over {reuses} measured rows",
            )
        ]


def _given(estimate: Estimate, verbs: Verbs) -> Estimate:
    return estimate
