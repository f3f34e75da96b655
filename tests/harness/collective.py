"""Several analysts in front of one small data set in memory, each with an engine of their own."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from bursar import presets
from bursar.analysts.shares import AnalystSettings, Seed, Shares
from bursar.compile.workload import Workload
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import BudgetError
from bursar.goal import Goal, GoalKind
from bursar.planner.choose import Preset
from bursar.planner.offer import Offer
from bursar.planner.request import PlanningRequest, Request, planning_request
from bursar.session import Bursar
from harness.small import Silence, config, engine

CELLS = 8
LINE = Domain((IntegerRange(name="age", lower=0, upper=CELLS - 1, null=0),))


def settings_of(
    shares: Mapping[str, float], *, policy: str = "seeded-cache", fraction: float = 0.25, basis: str = "histogram"
) -> AnalystSettings:
    seed = Seed(fraction=Fraction(str(fraction)), basis=basis, columns=("age",)) if policy == "seeded-cache" else None
    return AnalystSettings(policy=policy, shares=Shares.of(shares), seed=seed)


class Collective:
    """Engines of all analysts over one ledger. Shares are in force from the start."""

    def __init__(self, settings: AnalystSettings, *, epsilon: float = 1.0, preset: Preset = presets.default) -> None:
        facts = config(domain=LINE, budget=Budget.of(epsilon=epsilon), analysts=settings)
        table = np.full(CELLS, 1000)
        self.owner = engine(table=table, settings=facts, randomness=Silence(), analyst="owner", preset=preset)
        self.owner.owner.declare_shares()
        common: dict[str, Any] = {"table": table, "settings": facts, "ledger": self.owner.ledger, "preset": preset}
        self.engines: dict[str, Bursar] = {
            name: engine(**common, randomness=Silence(), analyst=name) for name in settings.shares
        }

    def plan(self, analyst: str, mask: int, goal: Goal) -> tuple[PlanningRequest, Offer]:
        """The offer that would be taken, as `ask` takes it."""
        bursar = self.engines[analyst]
        bursar.engine.plant_seed()
        request = request_of(mask, goal, analyst)
        return request, bursar.engine.planner.choose(request)

    def ask(self, analyst: str, mask: int, error: float) -> str | None:
        """Which proposer answers the count over a set of cells, given in binary; None where it is refused."""
        request = request_of(mask, rmse(error), analyst)
        try:
            return self.engines[analyst].engine.ask(request).source
        except BudgetError:
            return None

    def spent(self, analyst: str) -> float:
        return self.engines[analyst].kernel.account(analyst).spent / 2**50


def rmse(error: float) -> Goal:
    return Goal(kind=GoalKind.RMSE, amount=error)


def request_of(mask: int, goal: Goal, analyst: str) -> PlanningRequest:
    row = np.array([[mask >> cell & 1 for cell in range(CELLS)]], np.int64)
    queries = Product((Mask(("age",), (CELLS,), Steps.dense(row)),))
    workload = Workload(map=queries, keys=(), labels=((),), outputs=("count",), index=np.zeros((1, 1), np.int64))
    return planning_request(Request(text=f"cells {mask:b}", workload=workload, goal=goal, analyst=analyst))
