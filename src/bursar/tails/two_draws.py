"""The tail of the sum of two Laplace draws of different scales, in closed form: what a test of Boost is calibrated by.

With a = e^-x and b = e^-y the transform of a draw is (2 sinh x/2)^2 / (2 cosh x - u), u = 2 cos t, and that of the sum,
in partial fractions,

    (2 sinh x/2)^2 (2 sinh y/2)^2 / (2 cosh x - 2 cosh y) * (1 / (2 cosh y - u) - 1 / (2 cosh x - u)),

where 1 / (2 cosh x - u) is the transform of a^|n| / (2 sinh x).
"""

from __future__ import annotations

import math

from bursar.tails.single_draw import outward
from bursar.core.noise.law import Noise, NoiseKind

APART = 1.01
"""Scales that differ by less than this factor cancel too many digits."""


def pair_tail(first: Noise, second: Noise, k: int) -> float | None:
    """Pr[X + Y >= k] for two independent draws and k >= 1; None where there is no closed form of enough digits.

    Guarantees: at least the truth, and above it by less than one part in a million.
    Edge cases: never 0; None for Gaussian noise, and for scales that are nearly the same.
    """
    small, large = sorted((first.scale, second.scale))
    if NoiseKind.GAUSSIAN in (first.kind, second.kind) or large < APART * small:
        return None
    x, y = 1 / small, 1 / large
    apart = 4 * math.sinh((x + y) / 2) * math.sinh((x - y) / 2)
    both = (4 * math.sinh(x / 2) * math.sinh(y / 2)) ** 2 / apart
    return outward(both * (_from_on(y, k) - _from_on(x, k)))


def _from_on(x: float, k: int) -> float:
    """The sum of e^(-x n) / (2 sinh x) over n >= k."""
    return math.exp(-x * k) / (-math.expm1(-x) * 2 * math.sinh(x))
