"""Discrete Laplace and discrete Gaussian noise in bulk, exact. The argument is in `exact_sampler.proof.md`.

A uniform U is revealed 64 bits at a time. Its first word and floor(2^64 F) decide whether U < F for a cut F of the unit
interval, unless they are equal; then more bits of both are compared. No rounding error is left anywhere.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

Words = Callable[[int], NDArray[np.uint64]]
"""`words(n)`: n fresh, independent, uniform 64-bit words."""

Floors = Callable[[int], list[int]]
"""`floors(bits)`: floor(2^bits F_i), exactly, for cuts 0 < F_1 < F_2 < ... < 1 that are all irrational."""

GUIDE_BITS = 14
"""14 bits of a word settle all but one draw in 60 among 255 cuts, and such a guide fits the fastest cache."""

_UNSETTLED = -1


def system_words(count: int) -> NDArray[np.uint64]:
    """Words of the operating system's randomness; nothing is kept between calls, so forks share nothing."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cuts:
    """Cuts with their first 64 bits at hand; immutable, so one table may serve every thread and fork.

    Guarantees: `draw` returns independent cells with P(cell = i) = F_(i+1) - F_i exactly, where F_0 = 0 and
    the cut after the last is 1.
    """

    floors: Floors
    heads: NDArray[np.uint64]  # floor(2^64 F_i)
    guide: NDArray[np.int16]  # by a word's first bits: its cell, or _UNSETTLED where a cut shares those bits

    @classmethod
    def of(cls, floors: Floors) -> Cuts:
        """The table of some cuts."""
        heads = np.array(floors(64), dtype=np.uint64)
        buckets = np.arange(1 << GUIDE_BITS)
        first_bits = _first_bits(heads)
        guide = np.searchsorted(first_bits, buckets).astype(np.int16)
        guide[first_bits] = _UNSETTLED
        heads.flags.writeable = False
        guide.flags.writeable = False
        return cls(floors=floors, heads=heads, guide=guide)

    def draw(self, size: int, words: Words) -> NDArray[np.int16]:
        """For each of `size` uniforms, how many cuts lie below it."""
        first = words(size)
        cells = self.guide.take(_first_bits(first))
        unsettled = np.flatnonzero(cells == _UNSETTLED)
        if unsettled.size:
            cells[unsettled] = self._settle(first[unsettled], words)
        return cells

    def _settle(self, first: NDArray[np.uint64], words: Words) -> NDArray[np.intp]:
        """The same by all 64 bits, and by more of them for a word that equals the head of a cut."""
        cells = np.searchsorted(self.heads, first, side="left")
        tied = np.flatnonzero(cells != np.searchsorted(self.heads, first, side="right"))
        for i in tied:
            cells[i] = place(int(first[i]), self.floors, words)
        return cells


def place(word: int, floors: Floors, words: Words) -> int:
    """How many cuts lie below the uniform number whose first 64 bits are `word`."""
    bits, value = 64, word
    while value in (cuts := floors(bits)):
        bits, value = bits + 64, value << 64 | int(words(1)[0])
    return bisect_left(cuts, value)


def digit_floors(q: Fraction, cells: int, bits: int) -> list[int]:
    """floor(2^bits F_i) for 0 < i < cells, F_i = (1 - r^i)/(1 - r^cells), r = exp(-q).

    These are the cuts of a digit: P(cell = i) is proportional to r^i for 0 <= i < cells.
    """

    def bounds(guard: int) -> tuple[list[int], list[int]]:
        unit, low, high = powers(q, cells, bits + guard)
        least, most = unit - high[-1], unit - low[-1]  # of 1 - r^cells
        return (
            [((unit - x) << bits) // most for x in high[1:-1]],
            [((unit - x) << bits) // least for x in low[1:-1]],
        )

    return agreed(bounds, bits)


def tail_floors(q: Fraction, cells: int, bits: int) -> list[int]:
    """floor(2^bits F_i) for 0 < i < cells, F_i = 1 - r^i, r = exp(-q).

    These are the cuts of a geometric variable: P(cell = i) = (1-r) r^i, and the last cell is all the rest.
    """

    def bounds(guard: int) -> tuple[list[int], list[int]]:
        unit, low, high = powers(q, cells - 1, bits + guard)
        return [(unit - x) >> guard for x in high[1:]], [(unit - x) >> guard for x in low[1:]]

    return agreed(bounds, bits)


def exp_floors(q: Fraction, bits: int) -> list[int]:
    """floor(2^bits exp(-q)), one cut: a uniform lies below it with probability exp(-q). Needs q > 0."""

    def bounds(guard: int) -> tuple[list[int], list[int]]:
        low, high = exp_between(q, bits + guard)
        return [low >> guard], [high >> guard]

    return agreed(bounds, bits)


def exp_between(q: Fraction, bits: int) -> tuple[int, int]:
    """Integers low <= 2^bits exp(-q) <= high, not far apart.

    Guarantees: the argument is rounded outwards, `decimal`'s exp is taken one unit in the last place further
    outwards than its documented correct rounding needs, and the products are rounded outwards again.
    """
    digits = bits // 3 + 10  # log10(2) < 1/3
    down = Context(prec=digits, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX)
    up = Context(prec=digits, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX)
    numerator, denominator, unit = Decimal(-q.numerator), Decimal(q.denominator), Decimal(1 << bits)
    least = down.next_minus(down.exp(down.divide(numerator, denominator)))
    most = up.next_plus(up.exp(up.divide(numerator, denominator)))
    return int(down.multiply(least, unit)), int(up.multiply(most, unit)) + 1


def _first_bits(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (words >> np.uint64(64 - GUIDE_BITS)).view(np.int64)


def powers(q: Fraction, count: int, bits: int) -> tuple[int, list[int], list[int]]:
    """2^bits, and lower and upper bounds of 2^bits r^i for 0 <= i <= count, r = exp(-q)."""
    unit = 1 << bits
    r_low, r_high = exp_between(q, bits)
    low, high = [unit], [unit]
    for _ in range(count):
        low.append(low[-1] * r_low >> bits)
        high.append(-(-high[-1] * r_high >> bits))
    return unit, low, high


def agreed(bounds: Callable[[int], tuple[list[int], list[int]]], bits: int) -> list[int]:
    """The floors of numbers below 1, from bounds with ever more guard bits until both sides agree."""
    guard, largest = 64, (1 << bits) - 1
    while True:
        low, high = bounds(guard)
        # Every cut is below 1; without this a cut next to 1 would need as many bits as r^i has leading zeros.
        high = [min(x, largest) for x in high]
        if low == high:
            return low
        guard *= 2


RADIX = 256
"""The base in which a geometric variable is drawn, digit by digit."""

MARGIN = 2.0**-40
"""An acceptance test closer than this is decided in integers; floats err by less than 2^-49, exp apart."""

TABLES_KEPT = 128
"""Scales whose tables are kept, at most .25 MB each; those of a new scale take some milliseconds."""


def laplace(scale: float, size: int, words: Words = system_words) -> NDArray[np.int64]:
    """`size` independent draws of the discrete Laplace law, P(x) = (1-a)/(1+a) a^|x| with a = exp(-1/scale).

    X = G on the side of the non-negative numbers, probability 1/(1+a), and X = -1-G on the other, with G
    geometric, P(g) = (1-a) a^g. The digits of G in base 256 are independent, and so is the side.

    Guarantees: exact for every float `scale` from 2^-6 to 2^40; nothing is rejected, so the work done hardly
    depends on the values.
    Edge cases: size 0 gives an empty array.
    Differs: Canonne, Kamath, Steinke, Alg. 2, draw a sign and reject minus zero; the law is the same.
    """
    tables = _tables(scale)
    magnitude = tables.magnitude.draw(size, words)
    side = tables.side.draw(size, words)
    return magnitude ^ -side.astype(np.int64)  # x ^ 0 = x and x ^ -1 = -1-x


def gaussian(scale: float, size: int, words: Words = system_words) -> NDArray[np.int64]:
    """`size` independent draws of the discrete Gaussian law, P(x) proportional to exp(-x^2/(2 scale^2)).

    Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", Alg. 3: t = floor(sigma) + 1,
    Y discrete Laplace of scale t, accepted with probability exp(-(|Y| - sigma^2/t)^2 / (2 sigma^2)).

    Guarantees: exact for every float `scale` from 2^-6 to 2^40; how much is rejected is independent of what
    is kept.
    Edge cases: size 0 gives an empty array.
    """
    draws = np.empty(0, dtype=np.int64)
    while draws.size < size:
        missing = size - draws.size
        proposed = laplace(_proposal_scale(scale), missing + missing // 2 + 16, words)
        draws = np.concatenate([draws, proposed[_accepted(proposed, scale, words)][:missing]])
    return draws


@dataclass(frozen=True, kw_only=True, eq=False)
class Geometric:
    """The law P(g) = (1-r) r^g, r = exp(-rate), by its independent digits in base 256, the highest first.

    Guarantees: exact for every rational rate from 2^-50 to 2^7, as long as a draw stays below 2^62.
    """

    top: Cuts
    digits: tuple[Cuts, ...]

    @classmethod
    def of(cls, rate: Fraction) -> Geometric:
        """The tables of a rate."""
        places = 0
        # The top digit then runs beyond its table less than once in 10^6 draws, exp(-255/16).
        while 16 * RADIX**places * rate < 1:
            places += 1
        return cls(
            top=Cuts.of(partial(tail_floors, rate * RADIX**places, RADIX)),
            digits=tuple(Cuts.of(partial(digit_floors, rate * RADIX**k, RADIX)) for k in reversed(range(places))),
        )

    def draw(self, size: int, words: Words) -> NDArray[np.int64]:
        """`size` independent draws."""
        values = _geometric(self.top, size, words)
        for digit in self.digits:
            values *= RADIX
            values += digit.draw(size, words)
        return values


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tables:
    """What one discrete Laplace scale needs."""

    side: Cuts  # 0: the non-negative numbers, 1: the negative ones
    magnitude: Geometric


@lru_cache(maxsize=TABLES_KEPT)
def _tables(scale: float) -> _Tables:
    rate = 1 / Fraction(scale)
    return _Tables(side=Cuts.of(partial(digit_floors, rate, 2)), magnitude=Geometric.of(rate))


def _geometric(cuts: Cuts, size: int, words: Words) -> NDArray[np.int64]:
    """Unbounded geometric draws: the last cell stands for the whole tail, which has the same law from there on."""
    last = cuts.heads.size
    values = cuts.draw(size, words).astype(np.int64)
    beyond = np.flatnonzero(values == last)
    while beyond.size:
        more = cuts.draw(beyond.size, words)
        values[beyond] += more
        beyond = beyond[more == last]
    return values


def _proposal_scale(scale: float) -> float:
    return float(math.floor(scale) + 1)


def _accepted(proposed: NDArray[np.int64], scale: float, words: Words) -> NDArray[np.bool_]:
    """Which proposals to keep, each by its own uniform: in floats where the margin allows, else exactly."""
    sigma = Fraction(scale)
    centre = sigma**2 / Fraction(_proposal_scale(scale))
    z = (np.abs(proposed) - float(centre)) / scale
    first = words(proposed.size)
    gap = np.exp(-0.5 * z * z) - (first >> np.uint64(11)) * 2.0**-53
    accepted: NDArray[np.bool_] = gap > 0
    for i in np.flatnonzero(np.abs(gap) <= MARGIN):
        q = (abs(int(proposed[i])) - centre) ** 2 / (2 * sigma**2)
        accepted[i] = place(int(first[i]), partial(exp_floors, q), words) == 0
    return accepted
