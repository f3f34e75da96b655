"""Sums that live on a lattice but for a trifle: counts that least squares weighs with .9999999, rows it barely uses.

Such a law is a comb of narrow spikes. To resolve it takes a hundred thousand frequencies where a lattice takes a few
hundred. So the sum is split, S = L + D: the weights of L are those of S rounded to multiples of a pitch; D has what is
left over, and is tiny. Whatever L and D have to do with each other, for every d > 0

    Pr[|S| >= alpha] <= Pr[|L| > alpha - d] + Pr[|D| >= d].                                                         (1)

For the largest d that leaves no point of the lattice between alpha - d and alpha, the first term counts no point of it
that lies below alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bursar.arrays import Reals
from bursar.core.noise.law import Noise
from bursar.tails.characteristic import Sums
from bursar.tails.inversion import chernoff_exponent, chernoff_width
from bursar.tails.noises import Noises
from bursar.tails.single_draw import steps

FINEST = 12
"""The strongest weight is taken for so many pitches at most."""

CLOSE = 0.003
"""What is left over may have a standard deviation of this share of the pitch."""

BESIDE = 0.005
"""And no weight may be farther from a multiple of the pitch than this share of it: a draw that is hardly ever anything
but zero adds next to nothing to the deviation, and may yet be most of a tail."""

ROUND = 1e-5
"""Pitches this close to one of ten binary digits are that one: a whole number more often than not."""

SHORT, LONG = 10, 30
"""Binary digits of a pitch. The multiples that occur are then exact, and so is what they leave over."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NearLattice:
    """One sum as L + D."""

    pitch: float
    whole: Reals  # weights of L, multiples of the pitch
    rest: Sums  # D

    @staticmethod
    def of(weights: Reals, noises: Sequence[Noise], spreads: Reals) -> NearLattice | None:
        """None where no lattice is near, and where the sum is on one already; weights are not negative."""
        pitch = float(pitches(weights[None], spreads)[0])
        if pitch == 0.0 or weights.max() >= 2.0**20 * pitch:
            return None
        whole = pitch * np.rint(weights / pitch)
        rest = weights - whole  # exact: the two are equal within a factor of two, or one of them is zero
        left = np.flatnonzero(rest)
        if left.size == 0:
            return None
        return NearLattice(pitch=pitch, whole=whole, rest=Sums.of(rest[None, left], Noises.of(noises).take(left)))

    def split(self, alpha: float) -> tuple[float, float]:
        """For (1): the threshold at which L counts, and a bound on Pr[|D| >= d] for the largest d that goes with it."""
        k = steps(alpha, self.pitch)
        point = Fraction(self.pitch) * k
        room = math.nextafter(float(Fraction(alpha) - point + Fraction(self.pitch)), 0.0)
        threshold = float(point) if Fraction(float(point)) <= point else math.nextafter(float(point), 0.0)
        if room <= 0.0:
            return threshold, 1.0
        _, exponent = chernoff_exponent(self.rest, np.array([room]))
        return threshold, 2.0 * math.exp(-min(max(float(exponent[0]), 0.0), 700.0))

    def reach(self, beta: float) -> float:
        """A d with Pr[|D| >= d] <= beta."""
        return float(chernoff_width(self.rest, beta)[0])


def pitches(weights: Reals, spreads: Reals) -> Reals:
    """For each row of weights, all of them >= 0, the pitch of a lattice that its sum hardly ever leaves; 0 for none.

    `spreads` has the standard deviation of each draw. The coarsest of a few pitches is taken: parts of the weight that
    moves the sum most.
    """
    strongest = np.argmax(weights * spreads, axis=1)
    lead = np.take_along_axis(weights, strongest[:, None], axis=1)[:, 0]
    found, open_ = np.zeros(len(weights)), np.flatnonzero(lead > 0)
    tried = _rounded(lead / np.arange(1.0, FINEST + 1)[:, None])
    for each in tried:
        if open_.size == 0:
            break
        pitch = each[open_]
        rest = weights[open_] - pitch[:, None] * np.rint(weights[open_] / pitch[:, None])
        near = np.square(rest) @ np.square(spreads) <= np.square(CLOSE * pitch)
        near &= np.abs(rest).max(axis=1) <= BESIDE * pitch
        found[open_[near]] = pitch[near]
        open_ = open_[~near]
    return found


def _rounded(pitch: Reals) -> Reals:
    short = _to_bits(pitch, SHORT)
    return np.asarray(np.where(np.abs(pitch - short) <= ROUND * pitch, short, _to_bits(pitch, LONG)))


def _to_bits(numbers: Reals, bits: int) -> Reals:
    mantissa, exponent = np.frexp(numbers)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits), np.float64)
