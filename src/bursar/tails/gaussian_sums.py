"""Very many sums of very many draws of one discrete Gaussian, of which only their lengths are needed.

Let S = a . (X + r): independent discrete Gaussian X_k of one scale s, and a fixed r with |r| at most `off`, so that
|a . r| <= |a| off. For z = t/(s |a|), n draws, Q the normal tail:

    Pr[|a . X| >= t] <= 2 exp(-z^2/2)                                                                      (1)
    Pr[|a . X| >= t, G] <= e^(.75 n/s) 2 Q(z - sqrt(n)/(2s)),  Pr[not G] <= e^(-.15 n),  for s >= 3          (2)

with one event G for all sums: X . X <= 2 n s^2. Many sums are bounded by the union over them, by (1) or by (2),
whichever is less; for large s (2) is the normal law but for a fraction of a per cent.

(1): E exp(uX) = exp(u^2 s^2/2) sum_x exp(-(x - u s^2)^2/(2 s^2)) / sum_x exp(-x^2/(2 s^2)), and a shift only
lowers the sum, whose Fourier coefficients are positive (Poisson): X is sub-Gaussian with parameter s^2.
(2): let U be uniform on the cube of side 1, so |a . U| <= |a| sqrt(n)/2. X + U has the density prod_k
exp(-x_k^2/(2 s^2))/Z at a point y, x the whole numbers nearest to y, and Z >= sqrt(2 pi) s (Poisson). Over the
density of n normal draws that is at most exp(sum_k (|x_k| + 1/4)/(2 s^2)), as y_k^2 - x_k^2 <= |x_k| + 1/4, and
sum_k |x_k| <= sqrt(2) n s in G. Lastly E exp(X_k^2/(4 s^2)) <= sqrt(2), from Z at s and at sqrt(2) s; so not G has
a probability of at most (sqrt(2) e^(-1/2))^n.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from bursar.arrays import Reals
from bursar.lazy_dataclass import dataclass

OUTWARD = 1 + 2.0**-30
"""Bounds in closed form are widened by this: far more than the arithmetic that made them can have lost."""

FEWEST_DRAWS, CLOSE_FACTOR = 128, 1.01
"""Bounds are close from so many draws on, which make G all but certain, if the factor of (2) is no more than this."""

SCALE_WITHIN = 1e-6
"""Scales are found to this part."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianSums:
    """Sums of the same draws, each with the length of its weights."""

    lengths: Reals
    draws: int
    off: float = 0.0

    @staticmethod
    def of(matrix: Reals) -> GaussianSums:
        """The sums of a matrix of weights, one for each of its rows."""
        return GaussianSums(lengths=np.sqrt(np.einsum("ij,ij->i", matrix, matrix)), draws=matrix.shape[1])

    def close_at(self, scale: float) -> bool:
        """Whether noise of this scale is as good as continuous, so that bounds are close."""
        return self.draws >= FEWEST_DRAWS and self._factor(scale) <= CLOSE_FACTOR

    def tail(self, scale: float, alpha: float) -> float:
        """At least Pr[max_i |S_i| > alpha], by the union bound."""
        return self._tail(self.lengths[self.lengths > 0], scale, alpha)

    def largest_tail(self, scale: float, alpha: float) -> float:
        """At least the largest of the Pr[|S_i| > alpha]."""
        longest = self.lengths.max(initial=0.0)
        return self._tail(np.array([longest]), scale, alpha) if longest > 0 else 0.0

    def tails(self, scale: float, alphas: Reals) -> Reals:
        """For each sum at least Pr[|S| > alpha], each with its own alpha."""
        some = self.lengths > 0
        z = (alphas / (OUTWARD * np.where(some, self.lengths, 1.0)) - self.off) / scale
        by_moments = 2 * np.exp(-np.square(z) / 2)
        normal = np.array([math.erfc(each) for each in (z - self._shift(scale)) / math.sqrt(2)])
        bounds = OUTWARD * np.minimum(by_moments, self._factor(scale) * normal + self._rare)
        return np.where(some, np.where(z > 0, np.minimum(bounds, 1.0), 1.0), 0.0)

    def _tail(self, lengths: Reals, scale: float, alpha: float) -> float:
        z = (alpha / (OUTWARD * lengths) - self.off) / scale
        if np.any(z <= 0):
            return 1.0
        by_moments = 2 * float(np.exp(-np.square(z) / 2).sum())
        normal = sum(map(math.erfc, (z - self._shift(scale)) / math.sqrt(2)))
        return min(1.0, OUTWARD * min(by_moments, self._factor(scale) * normal + (self._rare if len(z) else 0.0)))

    def scale_for(self, alpha: float, beta: float) -> float:
        """About the largest scale at which `tail` is at most beta; infinite where no sum has any weight.

        Edge cases: 0 where the threshold is no more than what is off already.
        """
        longest = float(self.lengths.max(initial=0.0))
        if longest == 0:
            return math.inf
        reach = alpha / (OUTWARD * longest) - self.off
        if reach <= 0:
            return 0.0
        low = reach / math.sqrt(2 * math.log(2 * len(self.lengths) / beta)) / OUTWARD  # (1) alone allows it
        high = 1.05 * low
        while self.tail(high, alpha) <= beta:
            low, high = high, 1.05 * high
        while high > (1 + SCALE_WITHIN) * low:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.tail(middle, alpha) <= beta else (low, middle)
        return low

    def half_widths(self, scale: float, beta: float) -> Reals:
        """For each sum an h with Pr[|S| > h] <= beta; the chance of not G is taken from each share."""
        z = math.sqrt(2 * math.log(2 / beta))
        share = (beta - self._rare) / (2 * self._factor(scale))
        if share > 0:
            z = min(z, self._shift(scale) - NormalDist().inv_cdf(min(share, 0.5)))
        return np.asarray(OUTWARD * self.lengths * (self.off + scale * z))

    def _factor(self, scale: float) -> float:
        exponent = 0.75 * self.draws / scale
        return math.exp(exponent) if scale >= 3 and exponent < 700 else math.inf

    def _shift(self, scale: float) -> float:
        return math.sqrt(self.draws) / (2 * scale)

    @property
    def _rare(self) -> float:
        return math.exp(-0.15 * self.draws)
