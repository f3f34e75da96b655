"""The law of answers that add up very many draws of a few laws: equal terms are counted, not listed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from bursar.arrays import Reals
from bursar.core.accounting import Noise
from bursar.tails.characteristic import Sums
from bursar.tails.inversion import Inversion, chernoff_exponent, chernoff_width
from bursar.tails.single_draw import outward
from bursar.tails.tails import half_widths

REMEMBERED = 1 << 16

MOST_DRAWS = 4096
"""Up to so many draws in a row its width is the exact one; beyond, Chernoff's."""


class DrawTerm(NamedTuple):
    """`draws` independent draws of a noise, each times the weight."""

    weight: float
    noise: Noise
    draws: int
    bounded: bool = False  # the noise is a stand-in, no lighter in its moments than what was drawn


Terms = tuple[DrawTerm, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedRows:
    """Row i errs by the sum of its terms; errors of different rows may depend on each other.

    Guarantees: as `tails`: bounds are never below the truth, rounding included. A term that is only bounded has its
    moments bounded, so a row with such a term has Chernoff's bound and no tighter one.
    """

    rows: tuple[Terms, ...]

    @cached_property
    def _distinct(self) -> Counter[Terms]:
        return Counter(row for row in self.rows if row)

    def tail(self, alpha: float, enough: float) -> float:
        if alpha <= 0:
            return 1.0 if self.rows else 0.0
        if not self._distinct:
            return 0.0
        quick = sum(count * _chernoff(row, alpha) for row, count in self._distinct.items())
        if quick <= enough:
            return outward(quick)
        return min(1.0, outward(sum(count * _tail(row, alpha) for row, count in self._distinct.items())))

    def half_widths(self, beta: float) -> Reals:
        each = beta / max(len(self.rows), 1)
        widths = {row: _width(row, each) for row in self._distinct}
        return np.array([widths[row] if row else 0.0 for row in self.rows])

    def mean_square(self) -> float:
        return float(np.mean([_variance(row) for row in self.rows])) if self.rows else 0.0


@lru_cache(REMEMBERED)
def _sums(row: Terms) -> Sums:
    weights, counts = np.array([[term.weight for term in row]]), np.array([term.draws for term in row], np.float64)
    return Sums.of(weights, [term.noise for term in row], counts)


@lru_cache(REMEMBERED)
def _chernoff(row: Terms, alpha: float) -> float:
    _, exponent = chernoff_exponent(_sums(row), np.array([alpha]))
    return min(1.0, 2.0 * float(np.exp(-max(exponent[0], 0.0))))


@lru_cache(REMEMBERED)
def _tail(row: Terms, alpha: float) -> float:
    chernoff = _chernoff(row, alpha)
    if _variance(row) > alpha**2 or any(term.bounded for term in row):
        return chernoff
    return min(chernoff, Inversion.of(_sums(row), alpha).upper(alpha))


@lru_cache(REMEMBERED)
def _width(row: Terms, beta: float) -> float:
    if any(term.bounded for term in row) or sum(term.draws for term in row) > MOST_DRAWS:
        return float(chernoff_width(_sums(row), beta)[0])
    drawn = [term for term in row for _ in range(term.draws)]
    return float(half_widths([[term.weight for term in drawn]], [term.noise for term in drawn], beta)[0])


def _variance(row: Terms) -> float:
    return sum(term.draws * term.weight**2 * term.noise.variance() for term in row)
