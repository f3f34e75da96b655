"""Discrete Laplace and discrete Gaussian noise in bulk, exact. The argument is in `bulk.proof.md`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from bursar.core.noise.exact_sampler import Cuts, Words, digit_floors, exp_floors, place, system_words, tail_floors

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
    kept = np.empty(0, dtype=np.int64)
    while kept.size < size:
        missing = size - kept.size
        proposed = laplace(_proposal_scale(scale), missing + missing // 2 + 16, words)
        kept = np.concatenate([kept, proposed[_accepted(proposed, scale, words)][:missing]])
    return kept


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
    """Unbounded geometric draws: the last cell means "so much or more", and the rest has the same law."""
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
