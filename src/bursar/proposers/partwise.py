"""Counts that tie many columns together, and what is asked beside them: what was measured before answers again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bursar.compile.partwise import PartwiseMap
from bursar.core.accounting import Mode, Noise, NoiseKind
from bursar.core.grant import Verbs
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap
from bursar.estimation.estimate import ErrorLaw, Estimate, each_of
from bursar.goal import Goal, GoalKind
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.direct import ROUNDED, Part, law_of, noises_of, note_of, price_of
from bursar.tails.tails import single_tail
from bursar.views.measurements import noise_of


@dataclass(frozen=True, eq=False)
class PartwisePlan:
    """For each part of the question the record that answers it, or None where it is measured, and its noise."""

    parts: tuple[Part, ...]
    known: tuple[Record | None, ...]
    noises: tuple[Noise, ...]

    @property
    def bought(self) -> tuple[tuple[LinearMap, Noise], ...]:
        every = zip(self.parts, self.known, self.noises, strict=True)
        return tuple((part, noise) for (part, _), record, noise in every if record is None)

    def run(self, law: ErrorLaw, verbs: Verbs) -> Estimate:
        values: list[NDArray[np.int64]] = []
        for (part, times), record, noise in zip(self.parts, self.known, self.noises, strict=True):
            found = verbs.measure(part, noise) if record is None else record
            values.append(times * found.values)
        return Estimate(values=np.concatenate(values).astype(float), law=law)


class Partwise(Proposer):
    """Parts that were measured before, well enough for their even share of the goal, answer again; others are bought.

    Where no part was, that is asking directly.
    """

    name = "one-by-one"

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        wanted, goal = request.workload.map, request.goal
        if not isinstance(wanted, PartwiseMap):
            return []
        parts = tuple(wanted.measured)
        finest = tuple(views.measurements.finest.get(part.digest) for part, _ in parts)
        known = tuple(
            record if record is not None and _good(record, goal, wanted.rows, times) else None
            for record, (_, times) in zip(finest, parts, strict=True)
        )
        plans = [] if None in finest else [PartwisePlan(parts, finest, _noises(finest))]
        kinds = [NoiseKind.LAPLACE] if views.mode is Mode.PURE else [NoiseKind.LAPLACE, NoiseKind.GAUSSIAN]
        for kind in kinds if None in known and any(record is not None for record in known) else ():
            fresh = noises_of(kind, wanted, goal, views)
            if fresh is not None:
                plans.append(PartwisePlan(parts, known, _noises(known, fresh)))
        offers = [_offer(plan, views) for plan in plans]
        return [offer for offer in offers if offer is not None]


def _noises(known: Sequence[Record | None], fresh: Sequence[Noise] = ()) -> tuple[Noise, ...]:
    """The noise of each part: that of its record, or a fresh one."""
    return tuple(fresh[place] if record is None else noise_of(record) for place, record in enumerate(known))


def _good(record: Record, goal: Goal, rows: int, times: int) -> bool:
    """Whether a record, taken so many times, keeps the share of the goal that each of so many rows has."""
    if goal.kind is GoalKind.ERROR:
        return single_tail(noise_of(record), goal.amount / times) <= each_of(ROUNDED * goal.beta, rows)
    return goal.kind is GoalKind.RMSE and times**2 * noise_of(record).variance() <= goal.amount**2


def _offer(plan: PartwisePlan, views: Views) -> Offer | None:
    bought, noises = [part for part, _ in plan.bought], [noise for _, noise in plan.bought]
    price = price_of(bought, noises, views) if bought else Price()
    if price is None:
        return None
    law = law_of(plan.parts, plan.noises)
    rows, new = sum(part.rows for part, _ in plan.parts), sum(part.rows for part in bought)
    noise = f", {note_of(noises)}" if noises else ""
    return Offer(
        proposer=Partwise.name,
        price=price,
        law=law,
        run=partial(plan.run, law),
        reuses=rows - new,
        buys=new,
        note=f"{len(bought)} of {len(plan.parts)} parts measured, each by itself{noise}",
    )
