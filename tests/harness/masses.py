"""Mass functions of the two laws of noise, to fifty digits.

`Decimal.exp` is correctly rounded; everything else here is a handful of operations at 60 digits, so a mass errs by a
relative 1e-50 at most, and a log ratio by far less than the 1e-9 that tests allow.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache

from bursar.core.accounting import Noise, NoiseKind

DIGITS = 60
NEGLIGIBLE = Decimal("1e-70")

Mass = Callable[[int], Decimal]


def mass_of(noise: Noise) -> Mass:
    """P(X = x) of a noise, as a function of x."""
    return laplace(noise.scale) if noise.kind is NoiseKind.LAPLACE else gaussian(noise.scale)


@cache
def laplace(scale: float) -> Mass:
    """(1-a)/(1+a) a^|x| with a = exp(-1/scale)."""
    with localcontext(Context(prec=DIGITS)):
        rate = _decimal(1 / Fraction(scale))
        a = (-rate).exp()
        head = (1 - a) / (1 + a)

    @cache
    def mass(x: int) -> Decimal:
        with localcontext(Context(prec=DIGITS)):
            return head * (-rate * abs(x)).exp()

    return mass


@cache
def reaches(noise: Noise, least: int) -> Decimal:
    """P(X >= least) of discrete Laplace noise: a^x/(1+a) for x > 0, and 1 - P(X >= 1-x) else."""
    assert noise.kind is NoiseKind.LAPLACE
    with localcontext(Context(prec=DIGITS)):
        rate = _decimal(1 / Fraction(noise.scale))
        beyond = (-rate * (least if least > 0 else 1 - least)).exp() / (1 + (-rate).exp())
        return beyond if least > 0 else 1 - beyond


@cache
def gaussian(scale: float) -> Mass:
    """exp(-x^2/(2 scale^2)) over its sum; what the sum leaves out is below 1e-70."""
    with localcontext(Context(prec=DIGITS)):
        rate = _decimal(1 / (2 * Fraction(scale) ** 2))
        total, x = Decimal(1), 0
        term = Decimal(1)
        while term > NEGLIGIBLE:
            x += 1
            term = (-rate * x * x).exp()
            total += 2 * term

    @cache
    def mass(x: int) -> Decimal:
        with localcontext(Context(prec=DIGITS)):
            return (-rate * x * x).exp() / total

    return mass


@cache
def finer(before: Noise, after: Noise, current: int) -> Mass:
    """P(Y = y | X = current) where X has the law of `before`, Y of `after`, and X - Y is independent of Y.

    X - Y is 0 with probability p = ((1-a1)^2 a2)/((1-a2)^2 a1), else it has the law of X; the rest is Bayes' rule.
    """
    wide, narrow = mass_of(before), mass_of(after)
    with localcontext(Context(prec=DIGITS)):
        a1, a2 = ((-_decimal(1 / Fraction(noise.scale))).exp() for noise in (before, after))
        p = (1 - a1) ** 2 * a2 / ((1 - a2) ** 2 * a1)
    return given(wide, narrow, p, current)


def given(wide: Mass, narrow: Mass, p: Decimal, current: int) -> Mass:
    """Bayes' rule for a difference that is 0 with probability p, else of the wide law."""

    @cache
    def mass(y: int) -> Decimal:
        with localcontext(Context(prec=DIGITS)):
            apart = (1 - p) * wide(current - y) + (p if y == current else 0)
            return narrow(y) * apart / wide(current)

    return mass


@cache
def picked(scores: tuple[int, ...], scale: float) -> tuple[Decimal, ...]:
    """The probability of each place, proportional to exp(score / scale); 0 for negative scores."""
    with localcontext(Context(prec=DIGITS)):
        rate, best = _decimal(1 / Fraction(scale)), max(scores)
        weights = [Decimal(0) if score < 0 else (rate * (score - best)).exp() for score in scores]
        total = sum(weights, Decimal(0))
        return tuple(weight / total for weight in weights)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)
