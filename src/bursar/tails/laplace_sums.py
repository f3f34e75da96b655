"""Very many sums of very many Laplace draws, all of one scale, inverted together.

Estimates of a column's ranks are as many sums as the column has values, each of as many terms. To invert the transform
of each takes seconds. Let S = sum_j w_j X_j be one of them, with discrete Laplace X_j of scale b, a = e^(-1/b).

From discrete to continuous. Let L_j be Laplace of scale b with a density, and d = -b log(2a/(1+a)), which is between 0
and 1. Then sgn(L_j) ceil(|L_j| - d), or 0 where |L_j| <= d, has the law of X_j: |L_j| exceeds d + k with probability
2a/(1+a) a^k, and |X_j| exceeds k with the same. The two differ by at most 1, so with T = sum_j w_j L_j and
W = sum_j |w_j|

    Pr[|S| > alpha] <= Pr[|T| > alpha - W].                                                                     (1)

Few different terms. Densities of Laplace draws are symmetric with one mode, and so are those of their sums (Wintner
1938). Of a Z like that Pr[|Z + c| > t] grows with |c|, hence Pr[|T| > t] with each |w_j|: weights may be raised. They
are, to the same few levels in all sums.

All sums together. T is bounded as in `Inversion`, off a lattice: by the majorant of Graham and Vaaler, and Poisson
summation, whose aliasing only adds. With the same tilt and the same frequencies for all sums, the logarithms of their
transforms are one product of matrices: how often each sum has each level, times the logarithm of one draw at each
level and frequency, -log(1 - (level z)^2). They are found once: what a threshold or a scale changes is a factor.

Guarantees: bounds are never below the truth, rounding included. For sums about as wide as the widest, and chances about
as large as those that it was made for, they are within 5 % of the truth at a threshold that is lower by less than 1 %;
by W too, which is no more of it than `close_at` allows. Elsewhere they are bounds.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from bursar.arrays import Reals
from bursar.core.accounting import NoiseKind
from bursar.lazy_dataclass import dataclass
from bursar.tails.inversion import majorant_transform, near_threshold
from bursar.tails.single_draw import check_beta, outward

LEVELS = 384
"""How many there are: squares of whole numbers, as parts of the largest weight."""

LARGEST_SHIFT = 0.003
"""The most that W may be of the widest sum's deviation."""

SHARE_OF_HAZARD = 0.7
"""The tilt, of how fast the logarithm of the widest sum's tail falls; and at most so much of where K is infinite."""

STEP = 0.05
"""Of the majorant, in units of 1/hazard: it adds about half of this to a tail."""

ALIASING_EXPONENT = 7.5
"""Aliasing adds about exp(-this) of the chance that it was made for."""

ROUNDING = 2.0**-32
"""Of the largest that a series can be: far more than its arithmetic can have lost."""

SCALE_WITHIN, WIDTH_WITHIN = 1e-4, 1e-3
"""Scales and half-widths are found to this part."""

ROUNDING_OF_LEVELS = 1e-11
"""A weight that is above a level by less than this part is raised to it; levels are higher by more than that."""

NUMBERS_AT_ONCE = 2**20
"""How many weights are raised together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """The transforms of all sums on one line of the complex plane, at scale one."""

    tilt: float
    frequency: Reals
    real: Reals  # (sums, frequencies), with what is the same for all of a sum in `log_peak`
    imaginary: Reals
    log_peak: Reals

    def tails(self, reach: Reals) -> Reals:
        """For each sum a bound on Pr[|T| > reach], each with its own reach."""
        angle = np.multiply.outer(reach, self.frequency)
        series = np.einsum("ij,ij->i", self.real, np.cos(angle)) + np.einsum("ij,ij->i", self.imaginary, np.sin(angle))
        return self._bounds(series, reach)

    def tails_at(self, reach: float) -> Reals:
        """The same with one reach for all."""
        series = self.real @ np.cos(reach * self.frequency) + self.imaginary @ np.sin(reach * self.frequency)
        return self._bounds(series, np.full(len(series), reach))

    def _bounds(self, series: Reals, reach: Reals) -> Reals:
        total = np.maximum(series, 0.0) + self._rounding
        return np.minimum(2.0 * total * np.exp(np.minimum(self.log_peak - self.tilt * reach, 700.0)), 1.0)

    @cached_property
    def _rounding(self) -> Reals:
        return np.asarray(ROUNDING * (np.abs(self.real).sum(axis=1) + np.abs(self.imaginary).sum(axis=1)))


@dataclass(frozen=True, kw_only=True, eq=False)
class LaplaceSums:
    """The sums of a matrix of weights, one for each of its rows; made for chances of about `beta` over all of them."""

    levels: Reals
    counts: Reals  # (sums, levels): how many weights were raised to it
    shift: Reals  # W of each sum
    variances: Reals  # of each sum of continuous draws of scale one, before its weights were raised
    beta: float

    @staticmethod
    def of(matrix: Reals, beta: float) -> LaplaceSums:
        """Edge cases: weights of zero are left out."""
        check_beta(beta)
        largest = float(max(matrix.max(initial=0.0), -matrix.min(initial=0.0))) or 1.0
        size = max(NUMBERS_AT_ONCE // max(matrix.shape[1], 1), 1)
        blocks = [_counted(matrix[start : start + size], largest) for start in range(0, len(matrix), size)]
        counts = np.concatenate([np.empty((0, LEVELS)), *blocks])
        used = counts.any(axis=0)
        levels = np.square(np.arange(1, LEVELS + 1) / LEVELS) * largest * (1 + 4 * ROUNDING_OF_LEVELS)
        return LaplaceSums(
            levels=levels[used],
            counts=counts[:, used],
            shift=(1 + ROUNDING) * np.abs(matrix).sum(axis=1),
            variances=2.0 * np.einsum("ij,ij->i", matrix, matrix),
            beta=beta,
        )

    def close_at(self, scale: float) -> bool:
        """Whether noise of this scale is as good as continuous, so that bounds are close: W is little beside S."""
        spread = scale * math.sqrt(float(self.variances.max(initial=0.0)))
        return bool(self.shift.max(initial=0.0) <= LARGEST_SHIFT * spread)

    def tail(self, scale: float, alpha: float) -> float:
        """At least Pr[max_i |S_i| > alpha], by the union bound."""
        if len(self.levels) == 0:
            return 0.0
        reach = (alpha - float(self.shift.max())) / scale
        return min(1.0, outward(float(self._series.tails_at(reach)[self._some].sum()))) if reach > 0 else 1.0

    def largest_tail(self, scale: float, alpha: float) -> float:
        """At least the largest of the Pr[|S_i| > alpha]."""
        reach = (alpha - float(self.shift.max(initial=0.0))) / scale
        if len(self.levels) == 0:
            return 0.0
        return float(self._series.tails_at(reach)[self._some].max()) if reach > 0 else 1.0

    def tails(self, scale: float, alphas: Reals) -> Reals:
        """For each sum at least Pr[|S| > alpha], each with its own alpha."""
        if len(self.levels) == 0:
            return np.zeros(len(alphas))
        reach = (alphas - self.shift) / scale
        return np.where(self._some, np.where(reach > 0, self._series.tails(np.maximum(reach, 0.0)), 1.0), 0.0)

    def scale_for(self, alpha: float, beta: float) -> float:
        """About the largest scale at which `tail` is at most beta; infinite where no sum has any weight.

        Edge cases: 0 where the threshold is no more than what the lattice of the draws may move a sum by.
        """
        if len(self.levels) == 0:
            return math.inf
        if alpha <= float(self.shift.max()):
            return 0.0
        low = high = alpha / self._reach
        while self.tail(low, alpha) > beta:
            low, high = low / 1.1, low
        while low == high or self.tail(high, alpha) <= beta:
            low, high = high, high * 1.1
        while high > (1 + SCALE_WITHIN) * low:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.tail(middle, alpha) <= beta else (low, middle)
        return low

    def half_widths(self, scale: float, beta: float) -> Reals:
        """For each sum an h with Pr[|S| > h] <= beta, which is for each of them alone."""
        low = np.zeros(len(self.variances))
        high = np.where(self._some, np.sqrt(self.variances) / math.sqrt(beta), 0.0)  # Chebyshev's
        reach = np.minimum(high, self._reach)
        while np.any(high > (1 + WIDTH_WITHIN) * low):
            holds = self._series.tails(reach) <= beta
            low, high = np.where(holds, low, reach), np.where(holds, reach, high)
            reach = np.where(low > 0, np.minimum(1.25 * low, 0.5 * (low + high)), 0.5 * high)
        return np.nextafter(high * scale * (1 + ROUNDING) + self.shift, np.inf)

    @cached_property
    def _some(self) -> Reals:
        return np.asarray(self.variances > 0)

    @cached_property
    def _widest(self) -> Reals:
        """The levels of the widest sum, one for each of its weights."""
        return np.repeat(self.levels, self.counts[int(np.argmax(self.variances))].astype(np.int64))

    @cached_property
    def _reach(self) -> float:
        """About how far the widest sum reaches, at scale one, where all together fail with `beta`."""
        return near_threshold(self._widest[None], NoiseKind.LAPLACE, self.beta / len(self.variances))

    @cached_property
    def _series(self) -> Series:
        """At scale one."""
        share, reach = self.beta / len(self.variances), self._reach
        further = near_threshold(self._widest[None], NoiseKind.LAPLACE, share / math.e)
        hazard = 1.0 / max(further - reach, 1e-9 * reach)
        tilt = min(SHARE_OF_HAZARD * hazard, SHARE_OF_HAZARD / float(self.levels.max()))
        depth = math.log(1 / share) + ALIASING_EXPONENT
        period = depth / tilt
        nodes = math.ceil(period * hazard / STEP)
        step = period / nodes
        frequency = np.arange(nodes, dtype=np.float64) * (2.0 * math.pi / period)
        kernel = majorant_transform(frequency * (step / (2.0 * math.pi)), tilt * step) * (2.0 / nodes)
        kernel[0] /= 2
        line = tilt + 1j * frequency
        one_draw = -np.log(1.0 - np.square(np.multiply.outer(self.levels, line)))
        size, phase = self.counts @ one_draw.real, self.counts @ one_draw.imag
        peak = size[:, :1].copy()
        size = np.exp(size - peak) * np.abs(kernel)
        phase = phase + np.angle(kernel)
        return Series(
            tilt=tilt,
            frequency=frequency,
            real=size * np.cos(phase),
            imaginary=size * np.sin(phase),
            log_peak=peak[:, 0],
        )


def _counted(matrix: Reals, largest: float) -> Reals:
    """How many weights of each row are raised to each level."""
    places = np.ceil(np.sqrt(np.abs(matrix) * (LEVELS**2 / largest)) * (1 - ROUNDING_OF_LEVELS)).astype(np.int64)
    places += (LEVELS + 1) * np.arange(len(places))[:, None]
    counts = np.bincount(places.ravel(), minlength=len(places) * (LEVELS + 1)).reshape(len(places), -1)
    return counts[:, 1:].astype(np.float64)
