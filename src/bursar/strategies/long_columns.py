"""Queries about one column that tell very many cells apart, for Laplace noise.

The strategy is that of `p_identity`, with extra queries over blocks of cells, in whole numbers. Neither it nor the
workload is written out: queries are kept by their changes from cell to cell, and least squares needs only a matrix as
large as the number of extra queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.sparse

from bursar.arrays import Integers, Reals
from bursar.core.queries import Mask, Steps
from bursar.errors import QueryError
from bursar.strategies.cells import MOST_NUMBERS, MergedCells
from bursar.strategies.p_identity import BlockGram, block_sizes, long_block_width, overlapping_nodes

BITS = 16
"""Weights are rounded to shares of 2^-16 of the sensitivity."""

FEW_QUERIES = 16
"""Up to so many queries are looked at cell by cell where they are summed over blocks, of which there are hundreds."""

BLOCKS_AT_ONCE = 128


@dataclass(frozen=True, kw_only=True, eq=False)
class LongColumnStrategy:
    """Every run of cells that the queries do not tell apart, and extra queries over blocks of runs.

    With D the weights of runs, equal within a block, and B the extra queries, least squares goes by Woodbury's formula:
    X^-1 = D^-2 - D^-2 B^T K^-1 B D^-2, K = I + B D^-2 B^T.
    """

    single: Mask
    extra: Mask | None  # None where single runs are best
    changes: scipy.sparse.csr_array  # of the queries, from each run to the next
    widths: Integers  # how many runs a block has; runs that no query looks at are in none
    used: Integers  # the runs of the blocks, among all
    scales: Reals  # of the runs of each block
    rows: Reals  # B over blocks
    variances: Reals  # of each query, at noise of variance one

    @property
    def sensitivity(self) -> float:
        """How far one person can move all answers together (L1), in exact integer norms."""
        norms = self.single.steps.norms(1)
        return float((norms if self.extra is None else norms + self.extra.steps.norms(1)).max())

    def estimate(self, single: Integers, extra: Integers) -> Reals:
        """The queries' answers from those of the runs and of the extra queries, by least squares."""
        moved = np.repeat(self.scales, self.widths) * single + np.repeat(extra @ self.rows, self.widths)
        starts = np.cumsum(self.widths) - self.widths
        summed = np.add.reduceat(moved, starts) / np.square(self.scales)
        shared = self.rows.T @ scipy.linalg.cho_solve((self._root, True), self.rows @ summed)
        counts = np.zeros(self.changes.shape[1])
        counts[self.used] = (moved - np.repeat(shared, self.widths)) / np.repeat(np.square(self.scales), self.widths)
        return np.asarray(self.changes @ np.cumsum(counts[::-1])[::-1])

    def weights(self) -> Reals:
        """How least squares weighs the answers of the runs, and then of the extra queries, in each query: Q X^-1 A^T.

        With E = Q D^-2 B^T K^-1 these are (Q - E B) D^-1 and E, Q being the queries over runs.
        """
        queries = np.cumsum(self.changes.toarray(), axis=1)[:, self.used]
        starts = np.cumsum(self.widths) - self.widths
        sums = np.add.reduceat(queries, starts, axis=1)
        if not len(self.rows):
            return np.asarray(queries / np.repeat(self.scales, self.widths))
        E = scipy.linalg.cho_solve((self._root, True), self.rows @ (sums / np.square(self.scales)).T).T
        queries -= np.repeat(E @ self.rows, self.widths, axis=1)
        queries /= np.repeat(self.scales, self.widths)
        return np.concatenate([queries, E], axis=1)

    @cached_property
    def _root(self) -> Reals:
        return _root(self.rows, self.widths, self.scales)


def long_column(mask: Mask) -> LongColumnStrategy:
    """The strategy for the rows of a mask over one column.

    Edge cases: refused where there are more than 2^26 queries times blocks.
    """
    steps = mask.steps
    starts = steps.breaks()
    squares = steps.norms(2)[starts].astype(np.float64)
    used = np.flatnonzero(squares > 0)
    width = long_block_width(len(used))
    widths = block_sizes(len(used), width)
    if mask.rows * len(widths) > MOST_NUMBERS:
        raise QueryError(f"{mask.rows} queries are too many to find a strategy for; ask in smaller batches")
    changes = _changes(steps, starts, steps.levels)
    sums = _block_sums(changes, used, widths)
    blocks = BlockGram(
        gram=sums.T @ sums,
        diagonal=np.add.reduceat(squares[used], np.cumsum(widths) - widths),
        sizes=widths.astype(np.float64),
    )
    T = overlapping_nodes(blocks)
    scaled = 2**BITS / (1 + T.sum(axis=0))
    scales, rows = np.rint(scaled), np.rint(T * scaled)
    rows = rows[rows.any(axis=1)]
    weight = np.zeros(len(starts))
    weight[used] = 1 / np.repeat(np.square(scales), widths)
    directly = _changes(steps, starts, np.square(steps.levels)) @ np.cumsum(weight[::-1])[::-1]
    told = scipy.linalg.solve_triangular(_root(rows, widths, scales), rows @ (sums / np.square(scales)).T, lower=True)
    return LongColumnStrategy(
        single=_single(mask, starts, used, np.repeat(scales, widths).astype(np.int64)),
        extra=_extra(mask, starts, used, np.repeat(rows, widths, axis=1).astype(np.int64)) if len(rows) else None,
        changes=changes,
        widths=widths,
        used=used,
        scales=scales,
        rows=rows,
        variances=directly - np.square(told).sum(axis=0),
    )


def _root(rows: Reals, widths: Integers, scales: Reals) -> Reals:
    """L with K = L L^T."""
    K = np.eye(len(rows)) + (rows * (widths / np.square(scales))) @ rows.T
    return np.asarray(scipy.linalg.cholesky(K, lower=True))


def _changes(steps: Steps, starts: Integers, levels: Integers) -> scipy.sparse.csr_array:
    """Rows of which `levels` are the values from each jump of the steps on, as changes from run to run."""
    first = np.zeros(len(levels), bool)
    first[steps.starts[:-1][np.diff(steps.starts) > 0]] = True
    jumps = (levels - np.where(first, 0, np.roll(levels, 1))).astype(np.float64)
    places = (steps.owner, np.searchsorted(starts, steps.at))
    return scipy.sparse.csr_array((jumps, places), shape=(steps.rows, len(starts)))


def _block_sums(changes: scipy.sparse.csr_array, used: Integers, widths: Integers) -> Reals:
    """The sum of every query's coefficients over every block: of few queries cell by cell, else block by block."""
    if changes.shape[0] <= FEW_QUERIES:
        coefficients = np.cumsum(changes.toarray(), axis=1)[:, used]
        return np.add.reduceat(coefficients, np.cumsum(widths) - widths, axis=1)
    block = np.full(changes.shape[1], -1)
    block[used] = np.repeat(np.arange(len(widths)), widths)
    sums = []
    for first in range(0, len(widths), BLOCKS_AT_ONCE):
        inside = block[:, None] == np.arange(first, min(first + BLOCKS_AT_ONCE, len(widths)))
        sums.append(changes @ np.cumsum(inside[::-1], axis=0, dtype=np.float64)[::-1])
    return np.concatenate(sums, axis=1)


def _single(mask: Mask, starts: Integers, used: Integers, weights: Integers) -> Mask:
    ends = np.append(starts[1:], mask.steps.size)
    runs = Steps.ranges(starts[used], ends[used], mask.steps.size)
    return Mask(mask.attrs, mask.sizes, Steps(runs.size, runs.starts, runs.at, runs.jump * weights[runs.owner]))


def _extra(mask: Mask, starts: Integers, used: Integers, rows: Integers) -> Mask:
    groups = np.full(len(starts), -1)
    groups[used] = np.arange(len(used))
    return MergedCells(attrs=mask.attrs, sizes=mask.sizes, starts=starts, groups=groups, count=len(used)).mask(rows)
