"""The data owner's budget, and the charter that binds a ledger to it for life."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bursar.domain import Domain, Unit
from bursar.errors import ConfigError
from bursar.kernel.accounting import Mode, rho_of, to_units
from bursar.kernel.ledger import Charter

LARGEST_BUDGET = 1000.0


@dataclass(frozen=True, kw_only=True)
class Budget:
    """epsilon alone (pure), epsilon with delta, or rho (concentrated). The amount is what the profile may reach."""

    mode: Mode
    amount: float
    epsilon: float | None = None  # as declared
    delta: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.amount) and 0 < self.amount <= LARGEST_BUDGET):
            raise ConfigError(f"a budget must lie above 0 and at most {LARGEST_BUDGET:g}")

    @staticmethod
    def of(*, epsilon: float | None = None, delta: float | None = None, rho: float | None = None) -> Budget:
        """The budget that a config declares."""
        if rho is not None and epsilon is None and delta is None:
            return Budget(mode=Mode.CONCENTRATED, amount=rho)
        if epsilon is None or rho is not None:
            raise ConfigError("declare epsilon, or epsilon and delta, or rho alone")
        if delta is None:
            return Budget(mode=Mode.PURE, amount=epsilon, epsilon=epsilon)
        return Budget(mode=Mode.CONCENTRATED, amount=rho_of(epsilon, delta), epsilon=epsilon, delta=delta)

    @property
    def units(self) -> int:
        """The cap in units of 2^-50."""
        return to_units(self.amount)

    def describe(self) -> str:
        if self.mode is Mode.PURE:
            return f"epsilon {self.amount:g}"
        if self.epsilon is None:
            return f"rho {self.amount:g}"
        return f"epsilon {self.epsilon:g} at delta {self.delta:g} (rho {self.amount:.6g})"


def charter_of(*, dataset: str, domain: Domain, unit: Unit, budget: Budget, max_rows: int) -> Charter:
    """Everything a privacy statement depends on. A ledger opened under one charter refuses every other."""
    return {
        "dataset": dataset,
        "columns": domain.to_json(),
        "privacy": {
            "unit": unit.column,
            "max_contributions": unit.max_contributions,
            "neighbours": unit.neighbours.value,
        },
        "budget": {"mode": budget.mode.value, "amount": budget.amount.hex(), "delta": budget.delta},
        "max_rows": max_rows,
    }
