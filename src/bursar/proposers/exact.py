"""The same strategy was measured before: its rows answer again, free, with the same numbers."""

from __future__ import annotations

import numpy as np

from bursar.estimation.estimate import Certain, Estimate, IndependentRows
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.views.measurements import noise_of


class Exact(Proposer):
    name = "exact"
    any_map = True

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
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
