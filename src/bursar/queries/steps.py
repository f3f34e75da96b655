"""Integer rows over n numbered cells, each stored by the cells where its value changes.

A range over a million cells is two numbers here, and so are a single cell and the total; a row that changes
everywhere costs no more than it would as a plain list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bursar.errors import QueryError

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Steps:
    """Rows q_0, q_1, ... with q_j(v) = the sum of the jumps of row j at cells up to and including v.

    Guarantees: `at` increases strictly within a row and no jump is zero, so equal rows have equal arrays.
    """

    size: int
    starts: Integers  # row j owns the jumps starts[j]:starts[j + 1]
    at: Integers
    jump: Integers

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    @staticmethod
    def ranges(lows: ArrayLike, highs: ArrayLike, size: int) -> Steps:
        """One row per half-open range [low, high) of cells; an empty range gives a row of zeros."""
        low, high = np.asarray(lows, np.int64), np.asarray(highs, np.int64)
        if np.any(low < 0) or np.any(high > size):
            raise QueryError("a range reaches outside its column")
        at = np.stack([low, high], axis=1)
        jump = np.tile(np.array([1, -1], np.int64), (len(low), 1))
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
        if not np.issubdtype(values.dtype, np.integer) and values.dtype != np.bool_:
            raise QueryError("a query has whole-number coefficients")
        whole = values.astype(np.int64)
        jumps = whole.copy()
        jumps[:, 1:] -= whole[:, :-1]
        row, at = np.nonzero(jumps)
        pointers = _pointers(np.bincount(row, minlength=len(whole)))
        return Steps(whole.shape[1], pointers, at.astype(np.int64), jumps[row, at])

    @cached_property
    def owner(self) -> Integers:
        """The row that each jump belongs to."""
        return np.repeat(np.arange(self.rows), np.diff(self.starts))

    @cached_property
    def levels(self) -> Integers:
        """The value of the row from each jump on, until its next one."""
        running: Integers = np.cumsum(self.jump)
        before = np.concatenate([[0], running])[self.starts[:-1]]
        levels: Integers = running - before[self.owner]
        return levels

    def largest(self) -> int:
        """The largest |q_j(v)|."""
        return int(np.abs(self.levels).max(initial=0))

    def apply(self, table: Integers) -> Integers:
        """q_j . x along the first axis of the table; exact as long as every result fits in 64 bits."""
        from_here_on = np.flip(np.cumsum(np.flip(table, 0), axis=0), 0)
        result = np.zeros((self.rows, *table.shape[1:]), np.int64)
        used = np.flatnonzero(np.diff(self.starts))
        if len(used):
            weighted = from_here_on[self.at] * self.jump.reshape(-1, *[1] * (table.ndim - 1))
            result[used] = np.add.reduceat(weighted, self.starts[used], axis=0)
        return result

    def norms(self, power: int) -> Integers:
        """Column sums: the sum over rows of |q_j(v)|^power, for every cell v; exact."""
        powers = np.abs(self.levels) ** power
        first = np.zeros(len(powers), bool)
        first[self.starts[:-1][np.diff(self.starts) > 0]] = True
        before = np.where(first, 0, np.concatenate([[0], powers[:-1]]))
        changes = np.zeros(self.size, np.int64)
        np.add.at(changes, self.at, powers - before)
        return np.cumsum(changes)

    def take(self, rows: Sequence[int] | Integers) -> Steps:
        """The given rows, in the given order."""
        chosen = np.asarray(rows, np.int64)
        lengths = np.diff(self.starts)[chosen]
        pointers = _pointers(lengths)
        picks = np.repeat(self.starts[chosen] - pointers[:-1], lengths) + np.arange(pointers[-1])
        return Steps(self.size, pointers, self.at[picks], self.jump[picks])

    def at_cells(self, cells: ArrayLike) -> Integers:
        """The values of all rows at the given cells: a dense (rows, cells) array."""
        wanted = np.asarray(cells, np.int64)
        positions, place = np.unique(wanted, return_inverse=True)
        jumps = np.zeros((self.rows, len(positions) + 1), np.int64)
        np.add.at(jumps, (self.owner, np.searchsorted(positions, self.at)), self.jump)
        return np.cumsum(jumps, axis=1)[:, :-1][:, place]

    def breaks(self) -> Integers:
        """The cells where some row changes, with cell 0: between two of them all rows are constant."""
        return np.unique(np.concatenate([[0], self.at]))


def _pointers(lengths: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
