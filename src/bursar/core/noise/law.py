"""Noise: the one object that both sets a draw and prices it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from bursar.core.extensions.renyi import laplace_divergence
from bursar.errors import BudgetError, GoalError

UNIT_BITS = 50
"""Losses are integers in units of 2^-50, always rounded up."""

DELTA_BITS = 100
"""Probabilities are integers in units of 2^-100, always rounded up."""

SMALLEST_SCALE = 2.0**-6
LARGEST_SCALE = 2.0**40


class NoiseKind(Enum):
    """The two laws the kernel can draw, both on the integers."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Discrete Laplace, mass proportional to exp(-|x|/scale), or discrete Gaussian, exp(-x^2/(2 scale^2)).

    Guarantees: `scale` is a binary fraction (a float), so the same number sets the draw and, as an exact
    fraction, the price; neither is rounded on the way.
    Edge cases: zero, negative, NaN, infinite scales, and those outside 2^-6 .. 2^40, are refused.
    """

    kind: NoiseKind
    scale: float

    def __post_init__(self) -> None:
        if not (
            isinstance(self.scale, float)
            and math.isfinite(self.scale)
            and SMALLEST_SCALE <= self.scale <= LARGEST_SCALE
        ):
            raise GoalError(f"a noise scale must lie between 2^-6 and 2^40, not {self.scale!r}")

    def pure_units(self, *, change: int = 1, finer: int = 0) -> int:
        """epsilon of one row for a unit that changes it by `change`, c/b, in units of 2^-(50 + finer), rounded up."""
        above, below = self.scale.as_integer_ratio()
        return -(-(change * below << (UNIT_BITS + finer)) // above)

    def concentrated_units(self, *, change: int = 1, finer: int = 0) -> int:
        """rho of one row for a unit that changes it by `change`, in units of 2^-(50 + finer), rounded up.

        Gaussian: c^2/(2 sigma^2). Laplace: (c/b)^2 / 2, since an epsilon-DP row is (epsilon^2/2)-zCDP. One formula.
        """
        above, below = self.scale.as_integer_ratio()
        return -(-((change * below) ** 2 << (UNIT_BITS + finer)) // (2 * above**2))

    def renyi_units(self, *, order: int, change: int = 1, finer: int = 0) -> int:
        """The divergence of one order a of one row, over a, for a unit that changes it by `change`; rounded up.

        In units of 2^-(50 + finer). Gaussian: c^2/(2 sigma^2), what it is in rho. Laplace: from its mass function.
        """
        if self.kind is NoiseKind.GAUSSIAN:
            return self.concentrated_units(change=change, finer=finer)
        divergence = laplace_divergence(scale=self.scale, change=change, order=order)
        return math.ceil(divergence / order * (1 << (UNIT_BITS + finer)))

    def variance(self) -> float:
        """Variance of one draw: exact for Laplace, 2a/(1-a)^2 with a = exp(-1/b); at most scale^2 for Gaussian."""
        if self.kind is NoiseKind.GAUSSIAN:
            return self.scale**2
        return 0.5 / math.sinh(0.5 / self.scale) ** 2  # the same number, without cancellation for large b


def to_units(budget: float) -> int:
    """A budget in units of 2^-50, rounded down."""
    if not (math.isfinite(budget) and 0 <= budget <= 1000):
        raise BudgetError(asked=budget, left=1000, unit="budget")
    return math.floor(math.ldexp(budget, UNIT_BITS))  # a float times a power of two is exact


def from_units(units: int) -> float:
    """A loss as an ordinary number, rounded up to a float."""
    nearest = units / 2**UNIT_BITS
    return nearest if Fraction(nearest) >= Fraction(units, 2**UNIT_BITS) else math.nextafter(nearest, math.inf)


def left_of(units: int) -> float:
    """What is left as an ordinary number, rounded down to a float."""
    return 0.0 - from_units(-units)  # 0 where nothing is left, and not -0
