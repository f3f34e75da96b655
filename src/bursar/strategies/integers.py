"""Strategies as the kernel measures them: whole numbers on a grid, with norms and losses of what is really measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bursar.arrays import Integers, Reals
from bursar.core.queries import Mask, Steps
from bursar.errors import QueryError
from bursar.strategies.measure import (
    IN_SPAN,
    FewRows,
    checked_gram,
    error_of,
    full_rank_root,
    sensitivity,
    spectrum,
)

FEWEST_BITS, MOST_BITS = 8, 24
"""Coarsest and finest grid, in shares of the sensitivity."""

MANY_CELLS, FEWEST_BITS_OF_MANY = 1024, 16
"""From this number of cells on, where a trial takes a second, the first grid tried is one usually fine enough."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerStrategy:
    """Whole-number rows, and what rounding has cost."""

    rows: NDArray[np.int64]
    bits: int  # sensitivity one of the real strategy is about 2^bits here; 0 where it was of whole numbers already
    loss: float  # relative growth of the error by rounding; may be a little below zero

    def norm(self, power: int) -> int:
        """The largest sum over rows of |a_ij|^power, in exact integers: the sensitivity, to that power."""
        return int(Steps.dense(self.rows).norms(power).max(initial=0))

    def mask(self, attrs: Sequence[str], sizes: Sequence[int]) -> Mask:
        """The rows as queries over the joint cells of the named columns."""
        return Mask(tuple(attrs), tuple(sizes), Steps.dense(self.rows))


def to_integers(
    strategy: ArrayLike, gram: ArrayLike, *, power: int = 2, loss: float = 1e-4, before: float | None = None
) -> IntegerStrategy:
    """A_int = round(2^k A / ||A||) on the coarsest grid, k = 8, 10, ..., 24, that loses no more than `loss` in error.

    For many cells k begins at 16. Rounding moves the row space. Where that leaves a query of the workload unanswered,
    as it does for a strategy of less than full rank, half of the allowed loss is spent on asking for single cells.
    `before` is the error of the strategy, where it is known.
    Guarantees: every query of the workload lies in the row space of the rounded rows; `norm` is that of the rounded
    rows. A strategy of whole numbers stays as it is, at no loss.
    Edge cases: a strategy that does not answer the workload, or needs a finer grid, is refused.
    """
    A, V = np.asarray(strategy, np.float64), checked_gram(gram)
    if A.ndim != 2 or A.shape[1] != len(V):
        raise QueryError("the strategy and the workload are over different cells")
    before = error_of(V, A, power) if before is None else before
    if math.isinf(before):
        raise QueryError("the strategy does not answer the workload")
    if np.array_equal(A, np.round(A)) and np.abs(A).max(initial=0.0) < 2**MOST_BITS:
        return IntegerStrategy(rows=A.astype(np.int64), bits=0, loss=0.0)
    unit = A / sensitivity(A, power)
    fewest = FEWEST_BITS if len(V) <= MANY_CELLS else FEWEST_BITS_OF_MANY
    for safe in (False, True):
        candidate = _with_single_cells(unit, V, power, loss / 2) if safe else unit
        for bits in range(fewest, MOST_BITS + 1, 2):
            rows = np.round(candidate * 2.0**bits).astype(np.int64)
            rows = rows[rows.any(axis=1)]
            lost = error_of(V, rows.astype(np.float64), power) / before - 1
            if math.isinf(lost) and not safe:
                break
            if lost <= loss and spans(rows, V):
                return IntegerStrategy(rows=rows, bits=bits, loss=lost)
    raise QueryError("no grid is fine enough for this strategy")


def _with_single_cells(unit: Reals, V: Reals, power: int, share: float) -> Reals:
    """A strategy that spends a share of what it may on single cells."""
    cells = np.eye(len(V))[V.diagonal() > 0]
    return np.concatenate([(1 - share) ** (1 / power) * unit, share ** (1 / power) * cells])


def spans(rows: ArrayLike, gram: ArrayLike) -> bool:
    """Whether every query of the workload lies in the row space of the rows, cell by cell.

    With P the projection onto the row space, what is left of the column norms, sqrt diag((1-P) V (1-P)), must vanish.
    """
    A, V = np.asarray(rows, np.float64), checked_gram(gram)
    if (few := FewRows.of(A)) is not None:
        return few.spans(V)
    X = checked_gram(A.T @ A)
    if full_rank_root(X) is not None:
        return True
    _, vectors = spectrum(X)
    left = np.eye(len(V)) - vectors @ vectors.T
    still_open = np.einsum("ij,ij->i", left @ V, left)
    return bool(still_open.max() <= IN_SPAN**2 * V.diagonal().max())


DEPENDENT_BELOW = 1e-9
"""Rows are dependent if less than this share of the largest value is left in every cell."""

LARGEST_DENOMINATOR = 60
"""A basis of the span is made of whole numbers by multiplying each row with at most this."""

LEAST_PIVOT_SHARE = 0.1
"""A cell may become a pivot if its value is at least this share of the largest one."""

WHOLE_WITHIN = 1e-6
"""Numbers this close to a whole one are meant to be it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Span:
    """A basis of a span of rows in reduced echelon form: row i is 1 at pivot i and 0 at all others.

    A row that was found as real numbers is rounded before it is measured. Where the measured rows do not determine
    every cell, rounding cell by cell would leave their span, and the query could not be answered at all. So the
    coordinates of the row in a whole-number basis of the span are rounded instead.
    """

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
        return whole.astype(np.int64) if np.abs(row - whole).max(initial=0) < WHOLE_WITHIN else None

    def _multiples(self) -> Reals | None:
        """For each basis row the least factor that makes it whole."""
        factors = np.zeros(len(self.basis))
        for factor in range(1, LARGEST_DENOMINATOR + 1):
            left = factors == 0
            if not left.any():
                break
            scaled = factor * self.basis[left]
            factors[left] = np.where(np.abs(scaled - np.rint(scaled)).max(axis=1, initial=0) < WHOLE_WITHIN, factor, 0)
        return factors if np.all(factors > 0) else None


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
        if largest <= DEPENDENT_BELOW * np.abs(row).max(initial=0):
            continue
        strong = np.flatnonzero(np.abs(left) >= LEAST_PIVOT_SHARE * largest)
        pivot = strong[np.argmin(place[strong])]
        left /= left[pivot]
        basis[:size] -= np.outer(basis[:size, pivot], left)
        basis[size], pivots[size] = left, pivot
        size += 1
    return Span(basis=basis[:size], pivots=pivots[:size])


def towards_zero(numbers: Reals) -> Reals:
    """Rounded so that no number grows, but for those that are whole already up to rounding."""
    return np.trunc(numbers + np.sign(numbers) * WHOLE_WITHIN)
