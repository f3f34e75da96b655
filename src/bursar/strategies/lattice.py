"""Whole-number rows that stay in the span of others.

A row that was found as real numbers is rounded before it is measured. Where the measured rows do not determine every
cell, rounding cell by cell would leave their span, and the query could not be answered at all. So the coordinates of
the row in a whole-number basis of the span are rounded instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bursar.arrays import Integers, Reals

IN_SPAN = 1e-9
"""Rows are dependent if less than this share of the largest value is left in every cell."""

LARGEST_DENOMINATOR = 60
"""A basis of the span is made of whole numbers by multiplying each row with at most this."""

STRONG = 0.1
"""A cell may become a pivot if its value is at least this share of the largest one."""

SNAP = 1e-6
"""Numbers this close to a whole one are meant to be it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Span:
    """A basis of a span of rows in reduced echelon form: row i is 1 at pivot i and 0 at all others."""

    basis: Reals
    pivots: Integers

    def whole(self, blend: Reals, query: Reals, grid: int) -> Integers | None:
        """A whole-number row near grid * blend, where blend - query lies in the span: so does row - grid * query.

        At pivots the row is never larger than grid * blend. None where the basis is not rational.
        """
        multiples = self._multiples()
        if multiples is None:
            return None
        moved = towards_zero(grid * blend[self.pivots]) - grid * query[self.pivots]
        steps = np.rint(moved / multiples)
        row = grid * query + (steps * multiples) @ self.basis
        whole = np.rint(row)
        return whole.astype(np.int64) if np.abs(row - whole).max(initial=0) < SNAP else None

    def _multiples(self) -> Reals | None:
        """For each basis row the least factor that makes it whole."""
        found = np.zeros(len(self.basis))
        for factor in range(1, LARGEST_DENOMINATOR + 1):
            left = found == 0
            if not left.any():
                break
            scaled = factor * self.basis[left]
            found[left] = np.where(np.abs(scaled - np.rint(scaled)).max(axis=1, initial=0) < SNAP, factor, 0)
        return found if np.all(found > 0) else None


def span_of(rows: Reals, rank: int, first: Integers) -> Span:
    """The span of rows of the given rank; cells that come first in `first` become pivots where they can."""
    place = np.empty(len(first), np.int64)
    place[first] = np.arange(len(first))
    basis, pivots = np.zeros((rank, rows.shape[1])), np.zeros(rank, np.int64)
    size = 0
    for row in rows:
        if size == rank:
            break
        left = row - row[pivots[:size]] @ basis[:size]
        largest = np.abs(left).max(initial=0)
        if largest <= IN_SPAN * np.abs(row).max(initial=0):
            continue
        strong = np.flatnonzero(np.abs(left) >= STRONG * largest)
        pivot = strong[np.argmin(place[strong])]
        left /= left[pivot]
        basis[:size] -= np.outer(basis[:size, pivot], left)
        basis[size], pivots[size] = left, pivot
        size += 1
    return Span(basis=basis[:size], pivots=pivots[:size])


def towards_zero(numbers: Reals) -> Reals:
    """Rounded so that no number grows, but for those that are whole already up to rounding."""
    return np.trunc(numbers + np.sign(numbers) * SNAP)
