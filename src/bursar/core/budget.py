"""The data owner's budget, from (epsilon, delta) to what a profile may reach; the charter that binds a ledger to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bursar.core.accounting import Mode, to_units
from bursar.core.domain import Domain, Unit
from bursar.core.extensions.renyi import best_order, rate_of
from bursar.core.ledger import Charter
from bursar.core.noise.law import DELTA_BITS
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
    delta_keys: float = 0.0  # the part of delta that looking for texts may use up

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
        delta_keys: float = 0.0,
    ) -> Budget:
        """The budget that a config declares; `accountant` says how epsilon with delta is enforced, "zcdp" or "rdp".

        `delta_keys` is kept aside of delta for texts that are looked for; beside rho it stands by itself.

        Edge cases: without an order, "rdp" takes the one at which the budget buys the most Gaussian noise.
        """
        if not 0 <= delta_keys < (1 if rho is not None else delta or math.ulp(0)):
            raise ConfigError("delta_keys is a part of delta, or stands beside rho; a budget of epsilon alone has none")
        noise_delta = None if delta is None else delta - delta_keys
        if accountant == "rdp" and epsilon is not None and delta is not None and rho is None:
            assert noise_delta is not None
            order = best_order(epsilon, noise_delta) if order is None else order
            amount, facts = rate_of(epsilon, noise_delta, order), {"epsilon": epsilon, "delta": delta}
            return Budget(mode=Mode.RENYI, amount=amount, order=order, delta_keys=delta_keys, **facts)
        if accountant != "zcdp" or order is not None:
            raise ConfigError('accountant = "rdp", with or without an order, needs epsilon and delta')
        if rho is not None and epsilon is None and delta is None:
            return Budget(mode=Mode.CONCENTRATED, amount=rho, delta_keys=delta_keys)
        if epsilon is None or rho is not None:
            raise ConfigError("declare epsilon, or epsilon and delta, or rho alone")
        if noise_delta is None:
            return Budget(mode=Mode.PURE, amount=epsilon, epsilon=epsilon)
        amount = rho_of(epsilon, noise_delta)
        return Budget(mode=Mode.CONCENTRATED, amount=amount, epsilon=epsilon, delta=delta, delta_keys=delta_keys)

    @property
    def units(self) -> int:
        """The cap in units of 2^-50."""
        return to_units(self.amount)

    @property
    def key_units(self) -> int:
        """What texts that are looked for may use up of delta, in units of 2^-100, rounded down."""
        return math.floor(math.ldexp(self.delta_keys, DELTA_BITS))  # a float times a power of two is exact


def charter_of(
    *, dataset: str, domain: Domain, unit: Unit, budget: Budget, max_rows: int, tables: Sequence[dict[str, object]] = ()
) -> Charter:
    """Everything a privacy statement depends on. A ledger opened under one charter refuses every other.

    `tables` says which others add columns to the rows, and by which keys; a charter without any says nothing about it.
    """
    joined = {"tables": list(tables)} if tables else {}
    order = {} if budget.order is None else {"order": budget.order}
    keys = {"delta_keys": budget.delta_keys.hex()} if budget.delta_keys else {}
    return {
        "dataset": dataset,
        "columns": domain.to_json(),
        "privacy": {
            "unit": unit.column,
            "max_contributions": unit.max_contributions,
            "neighbours": unit.neighbours.value,
        },
        "budget": {"mode": budget.mode.value, "amount": budget.amount.hex(), "delta": budget.delta, **order, **keys},
        "max_rows": max_rows,
        **joined,
    }


ROUNDING_MARGIN = 1e-12
"""Slack relative to each term of the formula, thousands of times what floating point can lose in it."""


def epsilon_of(rho: float, delta: float) -> float:
    """The least epsilon for which rho-zCDP implies (epsilon, delta)-DP by the tight formula, rounded up.

    epsilon = min over a > 1 of rho a + log(1/(a delta))/(a - 1) + log(1 - 1/a). Every a gives a valid epsilon, so the
    search need not be exact to be safe.
    """
    if not (0 < delta < 1 and rho >= 0):
        raise ConfigError("a loss in epsilon needs rho >= 0 and 0 < delta < 1")
    if rho == 0:
        return 0.0

    def at(log_excess: float) -> float:
        return at_order(rho, delta, math.exp(log_excess))

    width, low, high = math.inf, math.log(1e-6), math.log(1e12)
    golden = (math.sqrt(5) - 1) / 2
    while high - low < width:  # until floating point divides it no further
        width = high - low
        left, right = high - golden * width, low + golden * width
        low, high = (low, right) if at(left) < at(right) else (left, high)
    return max(at((low + high) / 2), 0.0)


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho found for which rho-zCDP implies (epsilon, delta)-DP."""
    if not (0 < delta < 1 and epsilon > 0):
        raise ConfigError("a budget of epsilon and delta needs epsilon > 0 and 0 < delta < 1")
    return largest_within(epsilon, lambda rho: epsilon_of(rho, delta))


def at_order(rho: float, delta: float, excess: float) -> float:
    """The tight formula at a = 1 + excess, rounded up."""
    order = 1 + excess
    divergence, log, shift = rho * order, math.log(order * delta), math.log1p(1 / excess)
    slack = divergence + (1 + abs(log)) / excess + shift
    return divergence - log / excess - shift + ROUNDING_MARGIN * slack


def largest_within(epsilon: float, loss: Callable[[float], float]) -> float:
    """The largest number found whose loss is at most epsilon; the loss grows, and that of 0 is below epsilon."""
    low, high = 0.0, epsilon
    while loss(high) < epsilon:
        high *= 2
    while low < (middle := (low + high) / 2) < high:  # until floating point divides it no further
        low, high = (middle, high) if loss(middle) <= epsilon else (low, middle)
    return low
