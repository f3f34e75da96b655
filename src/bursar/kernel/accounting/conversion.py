"""From (epsilon, delta) to rho, by the tight formula, rounded so that the promise is kept."""

from __future__ import annotations

import math

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
        excess = math.exp(log_excess)  # a - 1
        order = 1 + excess
        divergence, log, shift = rho * order, math.log(order * delta), math.log1p(1 / excess)
        slack = divergence + (1 + abs(log)) / excess + shift
        return divergence - log / excess - shift + OUTWARD * slack

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
    low, high = 0.0, epsilon
    while epsilon_of(high, delta) < epsilon:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_of(middle, delta) <= epsilon else (low, middle)
    return low
