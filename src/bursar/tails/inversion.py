"""Upper bounds on the tails of weighted sums: Chernoff's, and the numerical inversion of their transform.

`Inversion` is rigorous. The saddlepoint approximation, `near_tails` and `near_threshold`, is the initial guess for it.
Sums within a small remainder of a lattice are split by `NearLattice`, which makes their inversion cheap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.core.accounting import NoiseKind
from bursar.core.noise.law import Noise
from bursar.lazy_dataclass import dataclass
from bursar.tails.characteristic import Noises, Sums
from bursar.tails.single_draw import outward, steps

STEP = 0.0128
"""The step of the majorant where there is no lattice, in units of 1/hazard: it adds about half of this to a tail."""
TILTS = (1.0, 0.85, 0.7, 0.6, 0.5, 0.4)
"""Shares of the hazard that are tried as a tilt: the one with the shortest period is taken."""
HIGHER_PEAK = 3.0
"""But none at which the peak is higher by more than exp(this) than at the first of them."""
ALIASING_EXPONENT = math.log(20_000.0)
"""The first guess at a period lets aliasing add exp(-this) of Chernoff's bound, about a thousandth of the tail."""
DEEPEST_EXPONENT = 70.0
"""Periods are not made longer to resolve tails below exp(-DEEPEST_EXPONENT)."""
NEGLIGIBLE_LOG_MODULUS = -21.0
"""A product is multiplied out until its logarithm falls below this; the rest is counted as an error."""
STEEP_WITHIN_STEP = 1.02
"""The step is made shorter, while `MOST_NODES` allows it, if the tail falls by more than this within it."""
MOST_NODES = 1 << 18
"""For sums of a few terms; fewer for more."""
NUMBERS_AT_ONCE = 1 << 14
GATHERED_WITHIN = (2.0**-12, 2.0**-16, 2.0**-20)
"""Draws are taken for equally weighted that differ by such a part of the sum's spread, if that changes little."""
GATHERED_ERROR = 2.0**-17
"""That is: what it adds to a series, as a share of its peak."""
FEWEST_GATHERED = 24
"""With fewer different terms than this it would take longer to see which are alike than it saves."""
TILT_SHARE_OF_LIMIT = 1.0 - 1e-4
"""Tilts stay below this share of the limit where the transform ceases to be finite."""
EIGHT_ROUNDINGS = 2.0**-50
"""Eight rounding errors."""


def tilt(sums: Sums, threshold: Callable[[Reals], Reals], start: Reals) -> Reals:
    """For each row, the s > 0 that comes close to the best Chernoff bound for `threshold(s)`.

    That is where mean(s) = threshold. Each step fits mean(s) = V s / (1 - (s/limit)^2), exact for a Gaussian and nearly
    so for a Laplace draw, at the last s, and solves that; where the solution is not found soon, every second step
    halves the range of s that is left. Every s gives a valid bound, so it does not matter when the steps end.
    """
    limit, strength = sums.limit * TILT_SHARE_OF_LIMIT, sums.variance
    low, high, s, alpha = np.zeros_like(start), limit, np.zeros_like(start), start
    for step in range(48):
        last, s = s, _fitted(strength, alpha, limit)
        farthest = np.minimum(high, 100.0 * last) if step else high
        usable = (s > low) & (s <= farthest) & (step < 4 or step % 2 == 1)
        if not usable.all():
            halved = np.sqrt(np.where(low > 0.0, low, 0.01 * last) * np.where(np.isinf(high), 100.0 * last, high))
            s = np.where(usable, s, halved)
        if (np.abs(s - last) <= 1e-3 * s).all():
            break
        mean, alpha = sums.mean(s), threshold(s)
        below = mean < alpha
        low, high = np.where(below, s, low), np.where(below, high, s)
        strength = mean / s * (1.0 - (s / limit) ** 2)
    return s


def chernoff_exponent(sums: Sums, alpha: Reals) -> tuple[Reals, Reals]:
    """For each row, a tilt s and an x with Pr[S >= alpha] <= E exp(s (S - alpha)) <= exp(-x); alpha > 0."""
    target = np.maximum(alpha, 1e-3 * np.sqrt(sums.variance))
    s = tilt(sums, lambda _: target, target)
    return s, _exponent(sums, alpha, s)


def quick_exponent(sums: Sums, alpha: Reals) -> Reals:
    """An x as in `chernoff_exponent` at the first tilt that is tried there: a fraction of the work, a looser bound."""
    return _exponent(sums, alpha, _fitted(sums.variance, alpha, sums.limit * TILT_SHARE_OF_LIMIT))


def _exponent(sums: Sums, alpha: Reals, s: Reals) -> Reals:
    rise, fall = sums.log_mgf(s), s * alpha
    return fall - rise - 2.0**-40 * (fall + rise) - EIGHT_ROUNDINGS * (64.0 + sums.terms())


def _fitted(strength: Reals, alpha: Reals, limit: Reals) -> Reals:
    """The s with V s / (1 - (s/limit)^2) = alpha, V the strength."""
    with np.errstate(divide="ignore", over="ignore"):
        return 2.0 * alpha / (strength + np.hypot(strength, 2.0 * alpha / limit))


def chernoff_width(sums: Sums, beta: float) -> Reals:
    """For each row, an h with Pr[|S| >= h] <= beta: the least of (log_mgf(s) + log(2/beta)) / s."""
    need = math.log(2.0 / beta) + EIGHT_ROUNDINGS * (64.0 + sums.terms())
    s = tilt(sums, lambda s: (sums.log_mgf(s) + need) / s, np.sqrt(2.0 * need * sums.variance))
    return (sums.log_mgf(s) + need) / s * (1.0 + 2.0**-39)


@dataclass(frozen=True, kw_only=True)
class Inversion:
    """The transform of one sum S on a line of the complex plane, ready to bound its tail at any threshold.

    Poisson summation of x -> e^(sx) Pr[S >= x], s > 0, on the line z_j = s + 2 pi i j / L, says
      sum_k e^(skL) Pr[S >= alpha + kL] = (1/L) sum_j M(z_j) exp(-z_j alpha) / z_j,        M(z) = E exp(zS).
    All that stands on the left is positive and its term k = 0 is the tail: aliasing only adds.
    Where S lives on a lattice of pitch g and L = N g, alpha is first raised to the next point of the lattice, 1/z
    becomes g / (1 - e^(-gz)), and j runs over N values. Elsewhere e^(-sx) for x >= 0, 0 below, whose transform 1/z is,
    makes way for a majorant of it whose transform ends at the frequencies +-2 pi / g (`majorant_transform`).

    Guarantees: `upper(alpha)` is at least Pr[|S| > alpha] for every alpha >= 0: what was cut off, what was not
    multiplied out and a bound on float rounding are added to it.
    Edge cases: it is tight only for thresholds near the one that it was made for.
    """

    tilt: float
    log_peak: float
    frequency: Reals
    size: Reals
    phase: Reals
    pitch: float | None
    error: float
    rounding: float  # error of the sum of the series, for each unit of (reach + threshold)
    reach: float

    @staticmethod
    def of(row: Sums, alpha: float, tilted: float | None = None) -> Inversion:
        """Prepare a sum of one term or more for thresholds near `alpha`; `tilted` is about the best tilt, if known."""
        if tilted is None:
            star, exponent = (float(x[0]) for x in chernoff_exponent(row, np.array([alpha])))
        else:
            star = min(tilted, TILT_SHARE_OF_LIMIT * float(row.limit[0]))
            exponent = float(_exponent(row, np.array([alpha]), np.array([star]))[0])
        hazard = min(max(star, 1.0 / math.sqrt(float(row.variance[0]))), float(row.limit[0]))
        depth, step = max(exponent, 0.0) + ALIASING_EXPONENT, STEP / hazard
        tilts = _tilts(row, alpha, hazard)
        most_nodes = MOST_NODES // (1 + row.distinct() // 16)
        while True:
            periods = _periods(row, tilts, alpha, depth)
            period = float(periods[0])
            pitch = row.pitch(max(step, period / MOST_NODES) / 8.0)
            if pitch is not None:
                inversion = _on_lattice(row, float(tilts[0]), period, pitch)
            else:
                period, s = min(zip(periods.tolist(), tilts.tolist(), strict=True))
                nodes = min(math.ceil(period / step), MOST_NODES)
                inversion = _majorised(row, s, period, nodes)
                rough = inversion.upper(alpha) > STEEP_WITHIN_STEP * inversion.upper(alpha + step)
            if depth < DEEPEST_EXPONENT and inversion.upper(alpha) < 1000.0 * math.exp(-depth):
                depth *= 2.0
            elif pitch is None and rough and 8 * nodes <= most_nodes:
                step /= 8.0
            else:
                return inversion

    def upper(self, alpha: float) -> float:
        """At least Pr[|S| > alpha], alpha >= 0; off a lattice, at least Pr[|S| >= alpha]."""
        growth = min(self.log_peak - self.tilt * self.place(alpha), 700.0)
        return outward(2.0 * self.relative(alpha) * math.exp(growth))

    def place(self, alpha: float) -> float:
        """Where the series is summed for this threshold."""
        return alpha if self.pitch is None else steps(alpha, self.pitch) * self.pitch

    def relative(self, alpha: float) -> float:
        """The series at `place(alpha)` relative to its peak, with its errors."""
        place = self.place(alpha)
        series = float(self.size @ np.cos(self.phase - self.frequency * place))
        return max(series, 0.0) + self.error + self.rounding * (self.reach + abs(place))


def _tilts(row: Sums, alpha: float, hazard: float) -> Reals:
    """Tilts to choose from: rounding errors, which are shares of the peak, must not outgrow the tail."""
    tilts = np.minimum(hazard * np.array(TILTS), 0.8 * float(row.limit[0]))
    peaks = row.log_mgf(tilts) - tilts * alpha
    return np.asarray(tilts[peaks <= peaks[0] + HIGHER_PEAK])


def _periods(row: Sums, tilts: Reals, alpha: float, depth: float) -> Reals:
    """For each tilt s, a period for which aliasing adds at most about 2 e^-depth: e^(-sL) on the left, Chernoff on the
    right."""
    s = tilts[:, None]
    others = s + (np.minimum(float(row.limit[0]), 6.0 * s) - s) * (1.0 - 0.5 ** np.linspace(0.25, 6.0, 16))
    rises = row.log_mgf(others.ravel()).reshape(others.shape)
    right = np.nanmin((rises - others * alpha + depth) / (others - s), axis=1)
    return np.asarray(np.maximum(depth / tilts, right))


def _on_lattice(row: Sums, s: float, period: float, pitch: float) -> Inversion:
    half = math.ceil(0.5 * period / pitch)
    period = (2 * half + 1) * pitch
    frequency = np.arange(half + 1, dtype=np.float64) * (2.0 * math.pi / period)

    kernel = np.asarray(-pitch / np.expm1(-pitch * (s + 1j * frequency)))
    return _multiplied(row, s, period, frequency, kernel, pitch=pitch)


def majorant_transform(t: Reals, a: float) -> NDArray[np.complex128]:
    """The Fourier transform at 0 <= t <= 1, beyond which it is 0, of a majorant of e^(-ax) for x >= 0 and 0 for x < 0.

    The majorant is that of Graham and Vaaler (1981): with h(v) = 1/(1 - e^-v),

        G(x) = (sin(pi x)/pi)^2 (sum_(n >= 0) e^(-a n) (1/(x-n)^2 - a/(x-n)) + a h(a)/x).

    Let k(v) = v h(v), which grows with v. Since 1/y^2 and 1/y are the integrals of w e^(-wy) and of e^(-wy) over
    w > 0, and (pi / sin(pi x))^2 that of k(v) e^(vx) over all v for -1 < x < 0, the sum in brackets is

        for x < 0  the integral of (k(a+w) - k(a)) e^(wx) over w > 0,
        for x > 0  e^(-ax) (pi / sin(pi x))^2 and the integral of (k(a) - k(a-w)) e^(-wx) over w > 0,

    the second by continuation of the first. So G(x) >= 0 for x < 0 and G(x) >= e^(-ax) for x >= 0, with equality at
    whole x. As a function with its values and slopes at whole numbers, G has the transform
    (1-|t|) h(z) + sgn(t) a (h(a) - h(z)) / (2 pi i) with z = a + 2 pi i t. Its integral is k(a), about 1 + a/2, times
    that of e^(-ax).
    """
    h = -1.0 / np.expm1(-a - 2j * math.pi * t)
    return np.asarray((1.0 - t) * h + a * (-1.0 / math.expm1(-a) - h) / (2j * math.pi))


def _majorised(row: Sums, s: float, period: float, nodes: int) -> Inversion:
    """In steps g = period/nodes: Pr[S >= alpha] <= E e^(s (S-alpha)) G((S-alpha)/g), and the series of that is finite.

    It adds about s g / 2 to a tail that falls as e^(-sx).
    """
    step = period / nodes
    frequency = np.arange(nodes, dtype=np.float64) * (2.0 * math.pi / period)

    kernel = step * majorant_transform(frequency * (step / (2.0 * math.pi)), s * step)
    return _multiplied(row, s, period, frequency, kernel)


def _multiplied(
    row: Sums,
    s: float,
    period: float,
    frequency: Reals,
    kernel: NDArray[np.complex128],
    *,
    pitch: float | None = None,
) -> Inversion:
    """The kernel times the tilted transform of every term, for the frequencies where that is not negligible.

    Few frequencies are left after a few terms, so moduli come first, and phases for what is left.
    """
    weight = np.abs(kernel)
    weight[1:] *= 2.0  # each node stands for its mirror image too
    weight /= period
    whole, top = float(weight.sum()), float(frequency[-1])
    terms, large, size, error = _moduli(row, s, frequency, weight, gather=pitch is None)
    frequency, weight, kernel = frequency[large], weight[large], kernel[large]
    flat = 64.0 + 16.0 * row.terms()
    s_row = np.array([s])
    return Inversion(
        tilt=s,
        log_peak=float(row.log_mgf(s_row)[0]) + EIGHT_ROUNDINGS * flat,
        frequency=frequency,
        size=weight * np.exp(size),
        phase=_turned(terms, s, frequency, np.angle(kernel)),
        pitch=pitch,
        error=error,
        rounding=EIGHT_ROUNDINGS * whole * top,
        reach=flat / top + float(row.mean(s_row)[0] + row.spread()[0]),
    )


def _moduli(
    row: Sums, s: float, frequency: Reals, weight: Reals, *, gather: bool
) -> tuple[Sums, NDArray[np.int64], Reals, float]:
    """The terms that stand for a sum's; where the product of their moduli is not negligible, and its logarithm there;
    and the errors of what was left out, and of terms that were taken for equal (`Sums.gathered`)."""
    tried, large, left_out = 0, np.arange(len(frequency)), 0.0
    for width in GATHERED_WITHIN if gather and row.distinct() >= FEWEST_GATHERED else ():
        terms, moved = row.gathered(width * math.sqrt(float(row.variance[0])), s)
        if 2 * terms.distinct() > row.distinct():
            break
        if terms.distinct() == tried:
            continue
        tried = terms.distinct()
        off = 0.5 * moved * (np.square(frequency) + 2.0 * s**2)  # of the transform, and of its value at s
        places, size, error = _product(terms, s, frequency, weight, large, off)
        # No modulus is above 1: where `size` is not negligible, an `off` of 30 says as much as a larger one.
        changed = float((weight[places] * np.exp(size)) @ np.expm1(np.minimum(off[places], 30.0)))
        if left_out + error + changed <= GATHERED_ERROR:
            return terms, places, size, left_out + error + changed
        if left_out + error <= GATHERED_ERROR / 8:  # what is negligible now need not be looked at again
            large, left_out = places, left_out + error
    places, size, error = _product(row, s, frequency, weight, large, np.zeros_like(frequency))
    return row, places, size, left_out + error


def _product(
    row: Sums, s: float, frequency: Reals, weight: Reals, large: NDArray[np.int64], off: Reals
) -> tuple[NDArray[np.int64], Reals, float]:
    """Which of the `large` frequencies have a product of moduli that is not negligible, its logarithm there, which is
    wrong by `off` at most, and the weight of the others."""
    size, error = np.zeros(len(large)), 0.0
    for part in row.parts:
        start = 0
        while start < part.count.size and large.size:
            block = slice(start, start + max(1, NUMBERS_AT_ONCE // large.size))
            u, scale, angle = (
                s * part.weight[0, block],
                part.scale[block],
                frequency[large, None] * part.weight[0, block],
            )
            with np.errstate(divide="ignore"):
                size = size + part.law.log_modulus(u, scale, angle) @ part.count[block]
            stays = size > NEGLIGIBLE_LOG_MODULUS
            if not stays.all():
                gone = large[~stays]
                error += float(weight[gone] @ np.exp(np.minimum(size[~stays] + off[gone], 0.0)))
                large, size = large[stays], size[stays]
            start = block.stop
    return large, size, error


def _turned(row: Sums, s: float, frequency: Reals, phase: Reals) -> Reals:
    """A phase with those of all terms added."""
    size = max(1, NUMBERS_AT_ONCE // max(frequency.size, 1))
    for part in row.parts:
        for block in (slice(start, start + size) for start in range(0, part.count.size, size)):
            weight, scale, count = part.weight[0, block], part.scale[block], part.count[block]
            phase = phase + part.law.phase(s * weight, scale, frequency[:, None] * weight) @ count
    return phase


# -- the saddlepoint approximation -----------------------------------------------------------------------------------

NEWTON_STEPS = 30
THRESHOLD_ROUNDS = 15

NORMAL_BELOW = 1e-3
"""Below this many standard deviations the normal tail does, and the correction to it would be lost in rounding."""

FARTHEST_SCALES = 1e12
"""So many scales out, a Laplace draw's tail is nothing, and a tilt would be rounded to where K ceases to be finite."""


def near_threshold(scales: Reals, kind: NoiseKind, beta: float) -> float:
    """Saddlepoint approximation; initial guess for the rigorous inversion: the t with sum_i Pr[|S_i| >= t] = beta.

    S_i is the sum of draws of the given scales, one row for each sum. For a sum S of independent draws with cumulant
    function K, Pr[S >= t] is about Q(w) + phi(w)(1/v - 1/w), where K'(s) = t, w^2 = 2(st - K(s)) and v^2 = s^2 K''(s)
    (Lugannani and Rice, 1980). It is exact for normal draws, and off by a few per cent of the probability for Laplace
    draws. Discrete noise is taken for continuous.

    Edge cases: a row without a positive scale is left out; 0 where none is left.
    """
    rows = scales[scales.max(axis=1, initial=0.0) > 0]
    if not len(rows):
        return 0.0
    rows = -np.sort(-rows, axis=1)
    rows = rows[:, rows.any(axis=0)]  # each row may add up few of very many draws
    spread = math.sqrt(float(np.square(rows).sum(axis=1).max()) * (1 if kind is NoiseKind.GAUSSIAN else 2))
    t = -NormalDist().inv_cdf(min(beta, 1.0) / 2) * spread  # as if the widest row were alone, and normal
    t = max(t, NORMAL_BELOW * spread)
    low, high = 0.0, math.inf
    for _ in range(THRESHOLD_ROUNDS):
        s, tails = _tails(rows, kind, np.full(len(rows), t))
        total = float(tails.sum())
        low, high = (t, high) if 2 * total > beta else (low, t)
        # Newton's step, as the logarithm of a tail falls by about s for each unit of t; within what is known. Near the
        # centre, where s is close to zero, it would go much too far.
        t += min(math.log(2 * total / beta) / float(s @ tails / total), 2 * spread)
        if not low < t < high:
            t = 2 * low if high == math.inf else math.sqrt(low * high) if low > 0 else high / 2
        if high < (1 + 1e-4) * low:
            break
    return t


def near_tails(scales: Reals, kind: NoiseKind, thresholds: Reals) -> Reals:
    """Saddlepoint approximation of Pr[|S_i| >= t_i], each t_i > 0, for sums of draws of the given scales.

    Edge cases: 0 for a row without a positive scale.
    """
    some = scales.max(axis=1, initial=0.0) > 0
    bounds = np.zeros(len(scales))
    if some.any():
        _, tails = _tails(scales[some], kind, thresholds[some])
        bounds[some] = np.minimum(2 * tails, 1.0)
    return bounds


def _tails(rows: Reals, kind: NoiseKind, t: Reals) -> tuple[Reals, Reals]:
    """The tilt s and Pr[S >= t], for each row."""
    if kind is NoiseKind.LAPLACE:
        t = np.minimum(t, FARTHEST_SCALES * rows.max(axis=1))
    s = _first(rows, kind, t)
    for _ in range(NEWTON_STEPS):
        _, slope, bend = _cumulants(rows, kind, s)
        s, before = s - (slope - t) / bend, s
        if np.all(np.abs(s - before) <= 1e-8 * s):
            break
    value, _, bend = _cumulants(rows, kind, s)
    w, v = np.sqrt(2 * np.maximum(s * t - value, 0.0)), s * np.sqrt(bend)
    normal = np.array([math.erfc(each) for each in w / math.sqrt(2)]) / 2
    off = np.minimum(w, v) > NORMAL_BELOW
    more = np.divide(w - v, w * v, out=np.zeros_like(w), where=off)
    return s, np.maximum(normal + np.exp(-np.square(w) / 2) / math.sqrt(2 * math.pi) * more, 1e-300)


def _first(rows: Reals, kind: NoiseKind, t: Reals) -> Reals:
    """A tilt not below the right one: K' is convex, and from there Newton's steps do not turn back."""
    if kind is NoiseKind.GAUSSIAN:
        return np.asarray(t / np.square(rows).sum(axis=1))
    widest = rows.max(axis=1)  # alone it has K' = 2s/(widest^-2 - s^2), and the others add to that
    return np.asarray(t / np.square(widest) / (1 + np.hypot(1, t / widest)))


def _cumulants(rows: Reals, kind: NoiseKind, s: Reals) -> tuple[Reals, Reals, Reals]:
    """K(s), K'(s) and K''(s) for each row; a draw of Laplace noise of scale x has K = -log(1 - x^2 s^2)."""
    squares = np.square(rows)
    if kind is NoiseKind.GAUSSIAN:
        spread = squares.sum(axis=1)
        return spread * np.square(s) / 2, spread * s, spread
    tilted = squares * np.square(s)[:, None]
    remaining = 1 - tilted
    slope = (2 * squares / remaining).sum(axis=1) * s
    return -np.log(remaining).sum(axis=1), slope, (2 * squares * (1 + tilted) / np.square(remaining)).sum(axis=1)


# -- sums within a small remainder of a lattice ------------------------------------------------------------------------

MOST_PITCHES = 12
"""Most pitches that the strongest weight is taken for."""

REMAINDER_DEVIATION = 0.003
"""What is left over may have a standard deviation of this share of the pitch."""

REMAINDER_WEIGHT = 0.005
"""And no weight may be farther from a multiple of the pitch than this share of it: a draw that is hardly ever anything
but zero adds next to nothing to the deviation, and may yet be most of a tail."""

LOOKED_AT_FIRST = 8
"""So many of the largest weights show at once that most pitches are none."""

SNAPPED_TO_SHORT = 1e-5
"""Pitches this close to one of ten binary digits are that one: a whole number more often than not."""

SHORT_BITS, LONG_BITS = 10, 30
"""Binary digits of a pitch. The multiples that occur are then exact, and so is what they leave over."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NearLattice:
    """Sums within a small remainder of a lattice, as of counts that least squares weighs with .9999999.

    Such a law is a comb of narrow spikes. To resolve it takes a hundred thousand frequencies where a lattice takes some
    hundred. So the sum is split, S = L + D: the weights of L are those of S rounded to multiples of a pitch; D is the
    remainder. Whatever L and D have to do with each other, for every d > 0

        Pr[|S| >= alpha] <= Pr[|L| > alpha - d] + Pr[|D| >= d].                                                     (1)

    For the largest d that leaves no point of the lattice between alpha - d and alpha, the first term counts no point of
    it that lies below alpha. A point at alpha itself counts: D carries S to either side of it.
    """

    pitch: float
    whole: Reals  # weights of L, multiples of the pitch
    remainder: Sums  # D

    @staticmethod
    def of(weights: Reals, noises: Sequence[Noise], spreads: Reals) -> NearLattice | None:
        """None where no lattice is near, and where the sum is on one already; weights are not negative."""
        pitch = float(pitches(weights[None], spreads)[0])
        if pitch == 0.0 or weights.max() >= 2.0**20 * pitch:
            return None
        whole = pitch * np.rint(weights / pitch)
        remainder = weights - whole  # exact: the two are equal within a factor of two, or one of them is zero
        left = np.flatnonzero(remainder)
        if left.size == 0:
            return None
        return NearLattice(
            pitch=pitch, whole=whole, remainder=Sums.of(remainder[None, left], Noises.of(noises).take(left))
        )

    def split(self, alpha: float) -> tuple[float, float]:
        """For (1): what L must exceed, and a bound on Pr[|D| >= d] for the largest d that goes with it.

        L exceeds the point below alpha where it exceeds the middle between that and the next, whatever is rounded.
        """
        k = math.ceil(Fraction(alpha) / Fraction(self.pitch))
        room = math.nextafter(float(Fraction(alpha) - (k - 1) * Fraction(self.pitch)), 0.0)
        threshold = (k - 0.5) * self.pitch
        if room <= 0.0:
            return threshold, 1.0
        _, exponent = chernoff_exponent(self.remainder, np.array([room]))
        return threshold, 2.0 * math.exp(-min(max(float(exponent[0]), 0.0), 700.0))

    def reach(self, beta: float) -> float:
        """A d with Pr[|D| >= d] <= beta."""
        return float(chernoff_width(self.remainder, beta)[0])


def pitches(weights: Reals, spreads: Reals) -> Reals:
    """For each row of weights, all of them >= 0, the pitch of a lattice that its sum hardly ever leaves; 0 for none.

    `spreads` has the standard deviation of each draw. The coarsest of a few pitches is taken: parts of the weight that
    moves the sum most.
    """
    strongest = np.argmax(weights * spreads, axis=1)
    lead = weights[np.arange(len(weights)), strongest]
    pitch_of_row = np.zeros(len(weights))
    tried = _rounded(lead / np.arange(1.0, MOST_PITCHES + 1)[:, None])
    large = np.sort(weights, axis=1)[:, -LOOKED_AT_FIRST:]
    with np.errstate(divide="ignore", invalid="ignore"):
        possible = np.abs(_beside(large, tried[:, :, None])).max(axis=2) <= REMAINDER_WEIGHT * tried
    unsettled = (lead > 0) & possible.any(axis=0)
    for each, some in zip(tried, possible, strict=True):
        if not unsettled.any():  # pitches get finer, and the coarsest is taken
            break
        rows = np.flatnonzero(some & unsettled)
        if rows.size:
            pitch, remainder = each[rows], _beside(weights[rows], each[rows, None])
            near = np.square(remainder) @ np.square(spreads) <= np.square(REMAINDER_DEVIATION * pitch)
            near &= np.abs(remainder).max(axis=1) <= REMAINDER_WEIGHT * pitch
            pitch_of_row[rows[near]], unsettled[rows[near]] = pitch[near], False
    return pitch_of_row


def _beside(weights: Reals, pitch: Reals) -> Reals:
    """How far weights are from multiples of a pitch."""
    return np.asarray(weights - pitch * np.rint(weights / pitch))


def _rounded(pitch: Reals) -> Reals:
    short = _to_bits(pitch, SHORT_BITS)
    return np.asarray(np.where(np.abs(pitch - short) <= SNAPPED_TO_SHORT * pitch, short, _to_bits(pitch, LONG_BITS)))


def _to_bits(numbers: Reals, bits: int) -> Reals:
    mantissa, exponent = np.frexp(numbers)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits), np.float64)
