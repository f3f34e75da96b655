"""Integer rows over numbered cells (Steps), and over the joint grid of one or a few columns (Mask).

A row is stored by the cells where its value changes: a range over a million cells is two numbers here, and so are a
single cell and the total; a row that changes everywhere costs no more than it would as a plain list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from bursar.arrays import Integers
from bursar.errors import QueryError

LARGEST_COEFFICIENT = 2**60
MOST_ROWS = 2**31
HALF_BITS = 31  # bits: column sums are added up in two halves, which cannot overflow

AT_ONCE = 2**24
"""Most numbers that `apply` multiplies at once, unless a single row needs more."""


@dataclass(frozen=True, eq=False)
class Steps:
    """Rows q_0, q_1, ... with q_j(v) = the sum of the jumps of row j at cells up to and including v.

    Guarantees: `at` increases strictly within a row and no jump is zero, so equal rows have equal arrays. The arrays
    are copies that cannot be written to: what is priced is what is applied, whatever becomes of the ones given.
    Edge cases: arrays of another shape or type, cells outside the column and values beyond 2^60 are refused.
    """

    size: int
    starts: Integers  # row j owns the jumps starts[j]:starts[j + 1]
    at: Integers
    jump: Integers

    def __post_init__(self) -> None:
        for name in ("starts", "at", "jump"):
            array = np.array(getattr(self, name))
            if array.dtype != np.int64 or array.ndim != 1:
                raise QueryError("the rows of a query are lists of whole numbers")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not (self._well_formed() and self._bounded()):
            raise QueryError("the rows of a query are malformed, or their coefficients too large")

    def _well_formed(self) -> bool:
        starts, at = self.starts, self.at
        if not (0 < len(starts) <= MOST_ROWS and starts[0] == 0 and starts[-1] == len(at) == len(self.jump)):
            return False
        if (starts[1:] < starts[:-1]).any() or (at < 0).any() or (at >= self.size).any():
            return False
        return bool(((at[1:] > at[:-1]) | (self.owner[1:] > self.owner[:-1])).all() and self.jump.all())

    def _bounded(self) -> bool:
        """Whether all values stay within 2^60. From one to the next a jump of at most 2^61 cannot wrap unseen."""
        most, jump = LARGEST_COEFFICIENT, self.jump
        small_jumps = ((-2 * most <= jump) & (jump <= 2 * most)).all()
        return bool(small_jumps and ((-most <= self.levels) & (self.levels <= most)).all())

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    @staticmethod
    def ranges(lows: ArrayLike, highs: ArrayLike, size: int) -> Steps:
        """One row per half-open range [low, high) of cells; an empty range gives a row of zeros."""
        low, high = np.asarray(lows, np.int64), np.asarray(highs, np.int64)
        if (low < 0).any() or (high > size).any():
            raise QueryError("a range reaches outside its column")
        at = np.array([low, high]).T
        jump = np.broadcast_to(np.array([1, -1], np.int64), at.shape)
        keep = (at < size) & (low < high)[:, None]
        return Steps(size, _pointers(keep.sum(axis=1)), at[keep], jump[keep])

    @staticmethod
    def identity(size: int) -> Steps:
        cells = np.arange(size)
        return Steps.ranges(cells, cells + 1, size)

    @staticmethod
    def total(size: int) -> Steps:
        return Steps.ranges([0], [size], size)

    @staticmethod
    def dense(matrix: ArrayLike) -> Steps:
        """Any integer matrix, one row per query."""
        values = np.atleast_2d(np.asarray(matrix))
        if values.ndim != 2 or not np.can_cast(values.dtype, np.int64):
            raise QueryError("a query has whole-number coefficients of at most 63 bits")
        whole = values.astype(np.int64)
        jumps = whole.copy()
        jumps[:, 1:] -= whole[:, :-1]
        row, at = np.nonzero(jumps)
        pointers = _pointers(np.bincount(row, minlength=len(whole)))
        return Steps(whole.shape[1], pointers, at.astype(np.int64), jumps[row, at])

    @cached_property
    def owner(self) -> Integers:
        """The row that each jump belongs to."""
        return np.arange(self.rows).repeat(self.starts[1:] - self.starts[:-1])

    @cached_property
    def levels(self) -> Integers:
        """The value of the row from each jump on, until its next one."""
        running: Integers = self.jump.cumsum()
        before = np.concatenate([[0], running])[self.starts[:-1]]
        levels: Integers = running - before[self.owner]
        levels.setflags(write=False)
        return levels

    def largest(self) -> int:
        """The largest |q_j(v)|."""
        return int(np.abs(self.levels).max(initial=0))

    def apply(self, table: Integers) -> Integers:
        """q_j . x along the first axis of the table; exact as long as every result fits in 64 bits."""
        from_here_on = np.flip(np.cumsum(np.flip(table, 0), axis=0), 0)
        result = np.zeros((self.rows, *table.shape[1:]), np.int64)
        lengths = np.diff(self.starts)
        used = np.flatnonzero(lengths)
        numbers = int(lengths.max(initial=0)) * math.prod(table.shape[1:])  # of the longest row
        step = max(1, AT_ONCE // max(1, numbers))
        for rows in (used[start : start + step] for start in range(0, len(used), step)):
            jumps = slice(self.starts[rows[0]], self.starts[rows[-1] + 1])
            weighted = from_here_on[self.at[jumps]] * self.jump[jumps].reshape(-1, *[1] * (table.ndim - 1))
            result[rows] = np.add.reduceat(weighted, self.starts[rows] - jumps.start, axis=0)
        return result

    def norms(self, power: int) -> Integers:
        """Column sums: the sum over rows of |q_j(v)|^power, for every cell v; exact, or refused beyond 2^62."""
        if self.largest() ** power >= 2 ** (2 * HALF_BITS):
            raise QueryError("the coefficients of this workload are too large")
        powers = np.abs(self.levels) ** power
        high, low = self._column_sums(powers >> HALF_BITS), self._column_sums(powers & (2**HALF_BITS - 1))
        if int(high.max(initial=0)) >= 2**HALF_BITS:
            raise QueryError("the coefficients of this workload are too large")
        total: Integers = (high << HALF_BITS) + low
        return total

    def _column_sums(self, amounts: Integers) -> Integers:
        """The sum over rows at every cell, where `amounts` holds from each jump on until the row's next one."""
        first = np.zeros(len(amounts), bool)
        first[self.starts[:-1][np.diff(self.starts) > 0]] = True
        before = np.where(first, 0, np.concatenate([amounts[-1:], amounts[:-1]]))
        changes = np.zeros(self.size, np.int64)
        np.add.at(changes, self.at, amounts - before)
        return np.cumsum(changes)

    def take(self, rows: Sequence[int] | Integers) -> Steps:
        """The given rows, in the given order."""
        chosen = np.asarray(rows, np.int64)
        if np.any(chosen < 0) or np.any(chosen >= self.rows):
            raise QueryError("a row is taken that is not there")
        lengths = np.diff(self.starts)[chosen]
        pointers = _pointers(lengths)
        picks = np.repeat(self.starts[chosen] - pointers[:-1], lengths) + np.arange(pointers[-1])
        return Steps(self.size, pointers, self.at[picks], self.jump[picks])

    def at_cells(self, cells: ArrayLike) -> Integers:
        """The values of all rows at the given cells: a dense (rows, cells) array."""
        given = np.asarray(cells, np.int64)
        positions, place = np.unique(given, return_inverse=True)
        jumps = np.zeros((self.rows, len(positions) + 1), np.int64)
        np.add.at(jumps, (self.owner, np.searchsorted(positions, self.at)), self.jump)
        return np.cumsum(jumps, axis=1)[:, :-1][:, place]

    def breaks(self) -> Integers:
        """The cells where some row changes, with cell 0: between two of them all rows are constant."""
        return np.unique(np.concatenate([[0], self.at]))


def _pointers(lengths: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


LARGEST_JOINT = 2**20
"""Most joint cells of a mask over several columns."""


@dataclass(frozen=True, eq=False)
class Mask:
    """Rows over the joint cells of `attrs`, numbered with the last column running fastest."""

    attrs: tuple[str, ...]
    sizes: tuple[int, ...]
    steps: Steps

    def __post_init__(self) -> None:
        cells = math.prod(self.sizes)
        named = all(isinstance(name, str) for name in self.attrs)
        whole = all(type(size) is int and size > 0 for size in self.sizes)
        if not (named and whole) or cells != self.steps.size or len(self.attrs) != len(self.sizes):
            raise QueryError("a mask does not fit the columns it is for")
        if len(self.attrs) > 1 and cells > LARGEST_JOINT:
            raise QueryError(
                f"a condition over {' and '.join(self.attrs)} spans {cells} cells; {LARGEST_JOINT} are possible"
            )

    @property
    def rows(self) -> int:
        return self.steps.rows

    def take(self, rows: Sequence[int] | Integers) -> Mask:
        return Mask(self.attrs, self.sizes, self.steps.take(rows))

    def at(self, cells: Mapping[str, Integers]) -> Integers:
        """The values of the rows on the grid spanned by the given cells of each column: (rows, grid cells)."""
        grid = np.ravel_multi_index(np.ix_(*(cells[name] for name in self.attrs)), self.sizes)
        return self.steps.at_cells(grid.ravel())
