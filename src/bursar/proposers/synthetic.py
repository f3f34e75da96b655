"""The synthetic table that is kept answers, free; with an error bound where measured marginals give one, else without.

    |table - truth| <= |table - estimate| + |estimate - truth|

The first term is known, the law of the second too, wherever all columns of a question were measured together. But the
first depends on the noise, and a way to answer that is taken because it turned out well breaks the promise of a goal.
So there are two offers. One can be chosen: its answer is the table's, moved to no more than a fixed distance from the
estimate, a distance that follows from the goal alone. The other is the table's answer as it is, with whatever bound
there is or none; it is taken only where the asker names it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bursar.arrays import Reals
from bursar.core.queries import LinearMap
from bursar.estimation.estimate import ErrorLaw, Estimate, meets
from bursar.goal import Goal, GoalKind
from bursar.planner.grant import Verbs
from bursar.planner.offer import Offer, Price, Proposer, Scope, SyntheticRows, Views
from bursar.planner.request import PlanningRequest

INWARD = 1 - 1e-9
"""Answers are kept this much nearer than they must be, for the sake of rounding."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Beside:
    """Answers at known distances from estimates: |error_i| <= moved_i + |error of the estimate_i|.

    `reach` bounds all distances. Where it is fixed before the noise is looked at, so is whether a goal is met.
    """

    law: ErrorLaw
    moved: Reals
    reach: float

    def tail(self, alpha: float, enough: float) -> float:
        return self.law.tail(alpha - self.reach, enough) if alpha > self.reach else 1.0

    def half_widths(self, beta: float) -> Reals:
        return self.law.half_widths(beta) + self.moved

    def mean_square(self) -> float:
        moved = math.sqrt(float(np.square(self.moved).mean())) if len(self.moved) else 0.0
        return (moved + math.sqrt(self.law.mean_square())) ** 2


@dataclass(frozen=True, kw_only=True)
class Unbounded:
    """Nothing is known about the errors."""

    rows: int

    def tail(self, alpha: float, enough: float) -> float:
        return 1.0

    def half_widths(self, beta: float) -> Reals:
        return np.full(self.rows, np.inf)

    def mean_square(self) -> float:
        return math.inf


class Synthetic(Proposer):
    """Free answers of the synthetic table that is kept: where its error is known and meets the goal, or by its name."""

    name = "synthetic"
    scope = Scope(kept_table=True)
    any_map = True  # a table can be asked anything
    by_name = True  # and is asked alone where the asker names it

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        """Edge cases: a goal that is a price is no reason to take the table, so only the second kind is offered."""
        table, queries = views.synthetic(), request.workload.map
        if table is None or queries.rows == 0:
            return []
        estimate = table.estimate(queries)
        if not request.synthetic:
            fitting = None if estimate is None else _fitting(table, queries, estimate, request.goal)
            if fitting is not None:
                return [fitting]
            if not request.explain:
                return []
        values = table.answers(queries)
        return [] if values is None else [_as_it_is(table, queries, values, estimate)]


def _fitting(table: SyntheticRows, queries: LinearMap, estimate: Estimate, goal: Goal) -> Offer | None:
    """The table's answer, as near to the estimate as the goal needs; None where the estimate itself misses the goal."""
    if goal.kind is GoalKind.SPEND or not meets(estimate.law, goal):
        return None
    estimate_error = float(estimate.law.half_widths(goal.beta).max(initial=0.0))
    if goal.kind is GoalKind.RMSE:
        estimate_error = math.sqrt(estimate.law.mean_square())
    reach = max(goal.amount - estimate_error, 0.0) * INWARD
    values = table.answers(queries)
    if values is None:
        return None
    near = np.clip(values, estimate.values - reach, estimate.values + reach)
    law = Beside(law=estimate.law, moved=np.abs(near - estimate.values), reach=reach)
    moved = int(np.count_nonzero(near != values))
    note = f"{table.note}; {moved} of {queries.rows} numbers moved towards what was measured"
    return _offer(near, law, note if moved else table.note)


def _as_it_is(table: SyntheticRows, queries: LinearMap, values: Reals, estimate: Estimate | None) -> Offer:
    if estimate is None:
        apart = table.unmeasured(queries)
        why = f": {', '.join(apart)} were never measured together" if apart else ""
        return _offer(values, Unbounded(rows=queries.rows), f"{table.note}; no error bound{why}", by_name=True)
    moved = np.abs(values - estimate.values)
    law = Beside(law=estimate.law, moved=moved, reach=float(moved.max(initial=0.0)))
    return _offer(values, law, f"{table.note}, as it is", by_name=True)


def _offer(values: Reals, law: ErrorLaw, note: str, *, by_name: bool = False) -> Offer:
    estimate = Estimate(values=values, law=law)

    def run(verbs: Verbs) -> Estimate:
        return estimate

    return Offer(proposer=Synthetic.name, price=Price(), law=law, run=run, note=note, by_name=by_name)
