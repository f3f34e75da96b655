"""The data owner's budget, and the charter that binds a ledger to it for life."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bursar.core.accounting import Mode, best_order, rate_of, rho_of, to_units
from bursar.core.domain import Domain, Unit
from bursar.core.ledger import Charter
from bursar.errors import ConfigError

LARGEST_BUDGET = 1000.0


@dataclass(frozen=True, kw_only=True)
class Budget:
    """epsilon alone (pure), epsilon with delta (concentrated, or Renyi at one order), or rho (concentrated).

    The amount is what the profile may reach: epsilon, rho, or the divergence over its order.
    """

    mode: Mode
    amount: float
    epsilon: float | None = None  # as declared
    delta: float | None = None
    order: int | None = None  # in RENYI mode

    def __post_init__(self) -> None:
        if not (math.isfinite(self.amount) and 0 < self.amount <= LARGEST_BUDGET):
            raise ConfigError(f"a budget must lie above 0 and at most {LARGEST_BUDGET:g}")

    @staticmethod
    def of(
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        accountant: str = "zcdp",
        order: int | None = None,
    ) -> Budget:
        """The budget that a config declares; `accountant` says how epsilon with delta is enforced, "zcdp" or "rdp".

        Edge cases: without an order, "rdp" takes the one at which the budget buys the most Gaussian noise.
        """
        if accountant == "rdp" and epsilon is not None and delta is not None and rho is None:
            order = best_order(epsilon, delta) if order is None else order
            amount = rate_of(epsilon, delta, order)
            return Budget(mode=Mode.RENYI, amount=amount, epsilon=epsilon, delta=delta, order=order)
        if accountant != "zcdp" or order is not None:
            raise ConfigError('accountant = "rdp", with or without an order, needs epsilon and delta')
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
        at_order = "" if self.order is None else f" at order {self.order}"
        return f"epsilon {self.epsilon:g} at delta {self.delta:g} (rho {self.amount:.6g}{at_order})"


def charter_of(*, dataset: str, domain: Domain, unit: Unit, budget: Budget, max_rows: int) -> Charter:
    """Everything a privacy statement depends on. A ledger opened under one charter refuses every other."""
    order = {} if budget.order is None else {"order": budget.order}
    return {
        "dataset": dataset,
        "columns": domain.to_json(),
        "privacy": {
            "unit": unit.column,
            "max_contributions": unit.max_contributions,
            "neighbours": unit.neighbours.value,
        },
        "budget": {"mode": budget.mode.value, "amount": budget.amount.hex(), "delta": budget.delta, **order},
        "max_rows": max_rows,
    }
