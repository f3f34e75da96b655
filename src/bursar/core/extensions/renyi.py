"""Divergences of one order: D_a(P, Q) = log(sum_x P(x)^a Q(x)^(1-a)) / (a - 1), from mass functions, rounded up.

Everything is computed to 120 digits and errs by less than 1e-100 (accounting.proof.md, 1a); 1e-60 is added.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from bursar.errors import ConfigError

DIGITS = 120
SLACK = Decimal("1e-60")

SMALLEST_ORDER = 2
LARGEST_ORDER = 2**14


@lru_cache(maxsize=4096)
def laplace_divergence(*, scale: float, change: int, order: int) -> Fraction:
    """The divergence of order a between discrete Laplace noise and the same noise moved by s steps, rounded up.

    s u + log(1 - B (1 - r^s)) / (a - 1)  with  u = 1/b,  r = exp(-(2a - 1) u),
    B = (exp(-u) - r) / ((1 + exp(-u)) (1 - r)): the sum over all whole numbers, which is geometric in three pieces.
    """
    rate, steep = 1 / Fraction(scale), 2 * order - 1

    def value() -> Decimal:
        once, far = _decayed(rate), _decayed(steep * rate)
        between = (once - far) / ((1 + once) * (1 - far))
        return _decimal(change * rate) + (1 - between * (1 - _decayed(steep * change * rate))).ln() / (order - 1)

    return _upper(value)


@lru_cache(maxsize=4096)
def bit_divergence(*, loss: Fraction, order: int) -> Fraction:
    """The divergence of order a between a bit with odds exp(e) and one with odds exp(-e), rounded up.

    No mechanism of pure loss e has more: e + (log(1 + exp(-(2a - 1) e)) - log(1 + exp(-e))) / (a - 1).
    """

    def value() -> Decimal:
        terms = (1 + _decayed((2 * order - 1) * loss)).ln() - (1 + _decayed(loss)).ln()
        return _decimal(loss) + terms / (order - 1)

    return _upper(value)


def _upper(value: Callable[[], Decimal]) -> Fraction:
    with localcontext(Context(prec=DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX)):
        return Fraction(value() + SLACK)


def _decayed(exponent: Fraction) -> Decimal:
    return (-_decimal(exponent)).exp()


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def epsilon_at(rate: float, delta: float, order: int) -> float:
    """The least epsilon for which a divergence of order a of at most a times the rate implies (epsilon, delta)-DP.

    The tight formula at this one a, rounded up.
    """
    from bursar.core.budget import at_order  # which is made of this

    if not (0 < delta < 1 and rate >= 0 and order >= SMALLEST_ORDER):
        raise ConfigError("a loss in epsilon needs a divergence >= 0, 0 < delta < 1 and an order of at least 2")
    return max(at_order(rate, delta, order - 1), 0.0)


def rate_of(epsilon: float, delta: float, order: int) -> float:
    """The largest rate found for which a divergence of order a of at most a times it implies (epsilon, delta)-DP.

    Edge cases: an order at which nothing could be spent is refused.
    """
    from bursar.core.budget import largest_within  # which is made of this

    if epsilon_at(0.0, delta, order) >= epsilon:
        raise ConfigError(f"at order {order} this epsilon and delta leave nothing to spend; take larger ones")
    return largest_within(epsilon, lambda rate: epsilon_at(rate, delta, order))


def best_order(epsilon: float, delta: float) -> int:
    """The order at which a budget buys the most Gaussian noise: the one with the largest `rate_of`."""
    from bursar.core.budget import at_order  # which is made of this

    if not (0 < delta < 1 and epsilon > 0):
        raise ConfigError("a budget of epsilon and delta needs epsilon > 0 and 0 < delta < 1")
    orders = range(SMALLEST_ORDER, LARGEST_ORDER + 1)
    return max(orders, key=lambda order: (epsilon - at_order(0.0, delta, order - 1)) / order)
