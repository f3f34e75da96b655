"""Tails of one draw of discrete noise in closed form, and their inverses: half-widths and scales."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import lru_cache

import numpy as np

from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE, Noise, NoiseKind
from bursar.errors import GoalError

REMEMBERED_WIDTHS = 4096
"""Pairs of a law and a chance: whoever looks at every row of a log asks for few of them, and each often."""

FARTHEST = 2.0**400
"""A threshold beyond this one is lowered to it."""
EXACT_BITS = 32
"""Weights of this many binary digits or fewer are taken as meant: whole numbers, and short binary fractions."""
ROUNDING_OF_WEIGHTS = 2.0**-40
"""Other weights stand for numbers that differ from them by less than this part."""
SUMMED_BELOW_SCALE = 256.0
"""Gaussian tails are summed mass by mass below this scale, and integrated with a bound on the error above."""


def single_tail(noise: Noise, alpha: float) -> float:
    """Pr[|X| > alpha] for one draw X.

    Laplace: 2 a^k / (1 + a) with a = exp(-1/scale), k = floor(alpha) + 1; Gaussian: the sum of the masses from k on.

    Guarantees: at least the truth; above it by less than one part in a million.
    Edge cases: 1 for alpha < 0; never 0, as no threshold is out of reach.
    """
    return beyond(noise, steps(alpha))


def scale_for(kind: NoiseKind, alpha: float, beta: float) -> float:
    """The largest scale at which one draw has Pr[|X| > alpha] <= beta.

    Edge cases: the largest scale there is, 2^40, if even that will do; `GoalError` if not even the smallest does.
    """
    check_beta(beta)
    k, low, high = steps(alpha), SMALLEST_SCALE, LARGEST_SCALE
    if beyond(Noise(kind=kind, scale=high), k) <= beta:
        return high
    if beyond(Noise(kind=kind, scale=low), k) > beta:
        raise GoalError(f"not even the least noise stays within an error of {alpha:g} all but {beta:g} of the time")
    while math.nextafter(low, high) < high:
        middle = math.sqrt(low * high) if high > 2.0 * low else 0.5 * (low + high)
        if beyond(Noise(kind=kind, scale=middle), k) <= beta:
            low = middle
        else:
            high = middle
    return low


@lru_cache(maxsize=REMEMBERED_WIDTHS)
def half_width(noise: Noise, beta: float) -> float:
    """The least h, an integer, with Pr[|X| > h] <= beta: value +- h, ends included, covers with chance 1 - beta."""
    check_beta(beta)
    fails, covers = -1, 1
    while beyond(noise, covers + 1) > beta:
        fails, covers = covers, 2 * covers
    while covers - fails > 1:
        middle = (fails + covers) // 2
        if beyond(noise, middle + 1) <= beta:
            covers = middle
        else:
            fails = middle
    return float(covers)


def beyond(noise: Noise, k: int) -> float:
    """Pr[|X| >= k], rounded outward."""
    if k <= 0:
        return 1.0
    far = float(min(k, 1 << 200))
    if noise.kind is NoiseKind.LAPLACE:
        return outward(2.0 * math.exp(-far / noise.scale) / (1.0 + math.exp(-1.0 / noise.scale)))
    if noise.scale < SUMMED_BELOW_SCALE:
        return outward(_gaussian_sum(noise.scale, far))
    return outward(_gaussian_integral(noise.scale, far))


def steps(alpha: float, weight: float = 1.0) -> int:
    """The least integer k >= 0 with k |weight| > alpha: |weight X| > alpha is |X| >= k.

    Guarantees: never too large. Where a multiple of the weight is alpha but for the rounding of the weight, which may
    be on either side of it, that multiple counts as larger.
    """
    if math.isnan(alpha):
        raise GoalError("an error threshold must be a number")
    if alpha < 0.0:
        return 0
    threshold, unit = Fraction(min(alpha, FARTHEST)), Fraction(abs(weight))
    if math.ldexp(math.frexp(weight)[0], EXACT_BITS).is_integer():
        return math.floor(threshold / unit) + 1
    return max(math.ceil(threshold * (1 - Fraction(ROUNDING_OF_WEIGHTS)) / unit), 1)


def check_beta(beta: float) -> None:
    """Refuse a failure probability that tails cannot be computed for."""
    if not 1e-300 <= beta < 1.0:
        raise GoalError(f"a chance of failure must lie between 1e-300 and 1, not {beta!r}")


def outward(probability: float) -> float:
    """A computed bound on a probability, made larger than its rounding: at most 1, never 0, and 1 for a NaN."""
    return min(1.0, max(sys.float_info.min, probability * (1.0 + 2.0**-40))) if probability < 1.0 else 1.0


def _gaussian_sum(scale: float, k: float) -> float:
    """Two sums of masses, each relative to its largest; what lies 9.5 scales on is below their rounding."""
    d = np.arange(math.ceil(9.5 * scale) + 2.0)
    ahead = float(np.exp(-d * (d + 2.0 * k) / (2.0 * scale**2)).sum())
    whole = 2.0 * float(np.exp(-(d**2) / (2.0 * scale**2)).sum()) - 1.0
    return 2.0 * math.exp(-((k / scale) ** 2) / 2.0) * ahead / whole


def _gaussian_integral(scale: float, k: float) -> float:
    """The tail sum of f(x) = exp(-x^2 / (2 scale^2)) by the corrected midpoint rule, divided by less than its total.

    With a = k - 1/2 and y = a/scale, Taylor's theorem on each cell [x - 1/2, x + 1/2] gives
      sum_{x>=k} f(x) = int_a^inf f + f'(a)/24 + e,  |e| <= (1/576 + 1/1920) sum_{x>=k} max over the cell of |f''''|,
    and |f''''| <= (y^4 + 6 y^2 + 3) exp(-y^2/2) / scale^4, whose maximum on a cell is at most 1.2 times its mean
    there (scale >= 256, y <= 40; beyond, all is below the least float). The total is scale sqrt(2 pi) or more.
    """
    y = (k - 0.5) / scale
    bell, area = math.exp(-y * y / 2.0), math.sqrt(math.pi / 2.0) * math.erfc(y / math.sqrt(2.0))
    error = 0.003 * ((y**3 + 9.0 * y) * bell + 12.0 * area) / scale**3
    return 2.0 * (scale * area - y * bell / (24.0 * scale) + error) / (scale * math.sqrt(2.0 * math.pi))


LEAST_RATIO_OF_SCALES = 1.01
"""Scales that differ by less than this factor cancel too many digits."""


def pair_tail(first: Noise, second: Noise, k: int) -> float | None:
    """Pr[X + Y >= k] for two independent draws and k >= 1; None where there is no closed form of enough digits.

    Guarantees: at least the truth, and above it by less than one part in a million.
    Edge cases: never 0; None for Gaussian noise, and for scales that are nearly the same.
    """
    small, large = sorted((first.scale, second.scale))
    if NoiseKind.GAUSSIAN in (first.kind, second.kind) or large < LEAST_RATIO_OF_SCALES * small:
        return None
    x, y = 1 / small, 1 / large
    apart = 4 * math.sinh((x + y) / 2) * math.sinh((x - y) / 2)
    both = (4 * math.sinh(x / 2) * math.sinh(y / 2)) ** 2 / apart
    return outward(both * (_from_on(y, k) - _from_on(x, k)))


def _from_on(x: float, k: int) -> float:
    """The sum of e^(-x n) / (2 sinh x) over n >= k."""
    return math.exp(-x * k) / (-math.expm1(-x) * 2 * math.sinh(x))
