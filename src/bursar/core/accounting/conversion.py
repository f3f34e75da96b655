"""From (epsilon, delta) to rho, or to a divergence of one order, by the tight formula; rounded to keep the promise."""

from __future__ import annotations

import math
from collections.abc import Callable

from bursar.core.extensions.renyi import LARGEST_ORDER, SMALLEST_ORDER
from bursar.errors import ConfigError

OUTWARD = 1e-12
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
        return _at(rho, delta, math.exp(log_excess))

    low, high = math.log(1e-6), math.log(1e12)
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(200):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if at(left) < at(right) else (left, high)
    return max(at((low + high) / 2), 0.0)


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho found for which rho-zCDP implies (epsilon, delta)-DP."""
    if not (0 < delta < 1 and epsilon > 0):
        raise ConfigError("a budget of epsilon and delta needs epsilon > 0 and 0 < delta < 1")
    return _largest(epsilon, lambda rho: epsilon_of(rho, delta))


def epsilon_at(rate: float, delta: float, order: int) -> float:
    """The least epsilon for which a divergence of order a of at most a times the rate implies (epsilon, delta)-DP.

    The tight formula at this one a, rounded up.
    """
    if not (0 < delta < 1 and rate >= 0 and order >= SMALLEST_ORDER):
        raise ConfigError("a loss in epsilon needs a divergence >= 0, 0 < delta < 1 and an order of at least 2")
    return max(_at(rate, delta, order - 1), 0.0)


def rate_of(epsilon: float, delta: float, order: int) -> float:
    """The largest rate found for which a divergence of order a of at most a times it implies (epsilon, delta)-DP.

    Edge cases: an order at which nothing could be spent is refused.
    """
    if epsilon_at(0.0, delta, order) >= epsilon:
        raise ConfigError(f"at order {order} this epsilon and delta leave nothing to spend; take larger ones")
    return _largest(epsilon, lambda rate: epsilon_at(rate, delta, order))


def best_order(epsilon: float, delta: float) -> int:
    """The order at which a budget buys the most Gaussian noise: the one with the largest `rate_of`."""
    if not (0 < delta < 1 and epsilon > 0):
        raise ConfigError("a budget of epsilon and delta needs epsilon > 0 and 0 < delta < 1")
    orders = range(SMALLEST_ORDER, LARGEST_ORDER + 1)
    return max(orders, key=lambda order: (epsilon - _at(0.0, delta, order - 1)) / order)


def _at(rho: float, delta: float, excess: float) -> float:
    """The tight formula at a = 1 + excess, rounded up."""
    order = 1 + excess
    divergence, log, shift = rho * order, math.log(order * delta), math.log1p(1 / excess)
    slack = divergence + (1 + abs(log)) / excess + shift
    return divergence - log / excess - shift + OUTWARD * slack


def _largest(epsilon: float, loss: Callable[[float], float]) -> float:
    """The largest number found whose loss is at most epsilon; the loss grows, and that of 0 is below epsilon."""
    low, high = 0.0, epsilon
    while loss(high) < epsilon:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if loss(middle) <= epsilon else (low, middle)
    return low
