"""How much a synthetic table may spend, and the noise that this buys."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from bursar.core.accounting import Noise, NoiseKind
from bursar.core.noise.law import SMALLEST_SCALE, UNIT_BITS
from bursar.errors import GoalError

OUTWARD = 1 + 2.0**-40
"""Scales are a little larger than they must be, thousands of times what floating point can lose in them."""

INWARD = 1 + 2.0**-45
"""What is kept aside is a little more than it must be, by less than scales are larger."""


@dataclass(frozen=True, kw_only=True)
class Spend:
    """An amount of rho (Gaussian noise) or of epsilon (Laplace noise).

    Every query of a workload changes by at most 1 when one row is added, removed or replaced, so amounts are the same
    for both kinds of neighbours. Where a privacy unit has up to k rows, this is the amount for one of them: epsilon
    over k, or rho over k^2.
    """

    kind: NoiseKind
    amount: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.amount) and self.amount > 0):
            raise GoalError("a release needs an amount above 0 to spend")

    @staticmethod
    def rho(amount: float) -> Spend:
        """An amount of zero-concentrated loss, spent on Gaussian noise."""
        return Spend(kind=NoiseKind.GAUSSIAN, amount=amount)

    @staticmethod
    def epsilon(amount: float) -> Spend:
        """An amount of pure loss, spent on Laplace noise."""
        return Spend(kind=NoiseKind.LAPLACE, amount=amount)

    def part(self, fraction: float) -> Spend:
        return replace(self, amount=self.amount * fraction)

    def noise(self, count: int) -> Noise:
        """The noise of `count` measured queries that cost all of this: count/(2 sigma^2) = rho, count/b = epsilon."""
        concentrated, amount = self.kind is NoiseKind.GAUSSIAN, self._exact(count)
        scale = math.sqrt(count / (2 * amount)) if concentrated else count / amount
        return Noise(kind=self.kind, scale=max(scale * OUTWARD, SMALLEST_SCALE))

    def selection_scale(self, count: int) -> float:
        """The Gumbel scale g of `count` picks that cost all of this: count/(2 g^2) = rho, 2 count/g = epsilon.

        Differs: RAP, Alg. 4 line 2, with sqrt(K/(2 rho |D|^2)) where only half of rho is for picking, spends 1.5 rho;
        half of it buys sqrt(K/(rho |D|^2)).
        """
        concentrated, amount = self.kind is NoiseKind.GAUSSIAN, self._exact(count)
        scale = math.sqrt(count / (2 * amount)) if concentrated else 2 * count / amount
        return max(scale * OUTWARD, SMALLEST_SCALE)

    def picks_as_dear(self, count: int) -> float:
        """The Gumbel scale at which `count` picks cost no less than measuring `count` queries with all of this.

        Budget for measuring what is picked is kept aside as a selection of this scale: a pick costs the same wherever
        it falls. Prices of rows are rounded up to 2^-50 each, which is added; `noise` leaves more than that unspent.
        """
        noise, rounding = self.noise(count), count * 2.0**-UNIT_BITS
        if self.kind is NoiseKind.GAUSSIAN:
            return max(math.sqrt(count / (2 * INWARD * (count / (2 * noise.scale**2) + rounding))), SMALLEST_SCALE)
        return max(2 * count / (INWARD * (count / noise.scale + rounding)), SMALLEST_SCALE)

    def _exact(self, count: int) -> float:
        """What is left of the amount when the price of every row has been rounded up, and the sum once more."""
        left = self.amount - (count + 1) * 2.0**-UNIT_BITS
        if left <= 0:
            raise GoalError(f"this is too little to spend on {count} queries")
        return left
