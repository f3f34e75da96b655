"""Counts that tie many columns together, and what is asked beside them: what was measured before answers again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bursar.goal import Goal, GoalKind
from bursar.inference.estimate import Estimate, each_of
from bursar.inference.tails import half_width, single_tail
from bursar.inference.views import noise_of
from bursar.kernel.accounting import Mode, Noise, NoiseKind
from bursar.kernel.ledger import Record
from bursar.kernel.verbs import Verbs
from bursar.planner.offer import Offer, Price, Views
from bursar.planner.request import Request
from bursar.proposers.direct import ROUNDED, price_of, scale_of
from bursar.queries import LinearMap
from bursar.workload.apart import Apart


@dataclass(frozen=True, kw_only=True)
class SeveralNoises:
    """Every row has its own draw of a noise of its own: Pr[some |error_i| >= alpha] = 1 - prod_i (1 - p_i)."""

    noises: tuple[Noise, ...]  # one per row

    def tail(self, alpha: float, enough: float) -> float:
        each = {noise: single_tail(noise, alpha) for noise in set(self.noises)}
        if max(each.values(), default=0.0) >= 1:
            return 1.0
        return -math.expm1(sum(math.log1p(-each[noise]) for noise in self.noises))

    def half_widths(self, beta: float) -> NDArray[np.float64]:
        share = each_of(beta, len(self.noises))
        each = {noise: half_width(noise, share) for noise in set(self.noises)}
        return np.array([each[noise] for noise in self.noises])

    def mean_square(self) -> float:
        return float(np.mean([noise.variance() for noise in self.noises]))


@dataclass(frozen=True, eq=False)
class Plan:
    """For each part of the question the record that answers it, or None where it is measured, with this noise."""

    parts: tuple[LinearMap, ...]
    known: tuple[Record | None, ...]
    noise: Noise | None  # of what is measured

    @property
    def bought(self) -> tuple[LinearMap, ...]:
        return tuple(part for part, record in zip(self.parts, self.known, strict=True) if record is None)

    def law(self) -> SeveralNoises:
        noises: list[Noise] = []
        for part, record in zip(self.parts, self.known, strict=True):
            noise = self.noise if record is None else noise_of(record)
            assert noise is not None
            noises += [noise] * part.rows
        return SeveralNoises(noises=tuple(noises))

    def run(self, law: SeveralNoises, verbs: Verbs) -> Estimate:
        values: list[NDArray[np.int64]] = []
        for part, record in zip(self.parts, self.known, strict=True):
            if record is None:
                assert self.noise is not None
                record = verbs.measure(part, self.noise)
            values.append(record.values)
        return Estimate(values=np.concatenate(values).astype(float), law=law)


class OneByOne:
    """Parts that were measured before, well enough for their even share of the goal, answer again; others are bought.

    Where no part was, that is asking directly.
    """

    name = "one-by-one"

    def offers(self, request: Request, views: Views) -> list[Offer]:
        wanted, goal = request.workload.map, request.goal
        if not isinstance(wanted, Apart):
            return []
        finest = [views.measurements.finest.get(part.digest) for part in wanted.parts]
        plans = [] if None in finest else [Plan(wanted.parts, tuple(finest), None)]
        known = tuple(record if record is not None and _good(record, goal, wanted.rows) else None for record in finest)
        kinds = [NoiseKind.LAPLACE] if views.mode is Mode.PURE else [NoiseKind.LAPLACE, NoiseKind.GAUSSIAN]
        for kind in kinds if None in known and any(record is not None for record in known) else ():
            scale = scale_of(kind, wanted, goal, views)
            if scale is not None:
                plans.append(Plan(wanted.parts, known, Noise(kind=kind, scale=scale)))
        offers = [_offer(plan, views) for plan in plans]
        return [offer for offer in offers if offer is not None]


def _good(record: Record, goal: Goal, rows: int) -> bool:
    """Whether a record keeps the share of the goal that each of so many rows has."""
    if goal.kind is GoalKind.ERROR:
        return single_tail(noise_of(record), goal.amount) <= each_of(ROUNDED * goal.beta, rows)
    return goal.kind is GoalKind.RMSE and noise_of(record).variance() <= goal.amount**2


def _offer(plan: Plan, views: Views) -> Offer | None:
    price = Price() if plan.noise is None else price_of(plan.bought, plan.noise, views)
    if price is None:
        return None
    law = plan.law()
    rows, bought = sum(part.rows for part in plan.parts), sum(part.rows for part in plan.bought)
    noise = "" if plan.noise is None else f", {plan.noise.kind.value} noise of scale {plan.noise.scale:.4g}"
    return Offer(
        proposer=OneByOne.name,
        price=price,
        law=law,
        run=partial(plan.run, law),
        reuses=rows - bought,
        buys=bought,
        note=f"{len(plan.bought)} of {len(plan.parts)} parts measured, each by itself{noise}",
    )
