"""Divergences of noise and of moved noise, added up over the mass functions, term by term, to sixty digits."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from functools import cache

from bursar.core.accounting import Noise, NoiseKind
from harness.masses import DIGITS, mass_of

FAR_OUT = 150
"""Terms beyond so many scales of Laplace noise, or 30 of Gaussian noise, are below 1e-60 of the sum."""


@cache
def divergence(noise: Noise, change: int, order: int) -> Decimal:
    """log(sum_x P(x)^a P(x - s)^(1-a)) / (a - 1)."""
    mass, laplace = mass_of(noise), noise.kind is NoiseKind.LAPLACE
    reach = int(noise.scale * (FAR_OUT if laplace else 30)) + 2
    first, last = (min(0, change), max(0, change)) if laplace else ((1 - order) * change,) * 2
    with localcontext(Context(prec=DIGITS)):
        terms = (mass(x) ** order * mass(x - change) ** (1 - order) for x in range(first - reach, last + reach + 1))
        return sum(terms, Decimal(0)).ln() / (order - 1)
