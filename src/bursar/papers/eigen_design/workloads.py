"""Workloads of the evaluation, as Gram matrices V = W^T W (Eigen-Design, Sec. 2.1 and 4).

All of them are over merged cells; with `unit_norm` every query counts 1 / its squared length.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bursar.arrays import Reals
from bursar.errors import QueryError
from bursar.strategies.hierarchical import product
from bursar.strategies.measure import checked_size
from bursar.strategies.universal import all_ranges as all_ranges
from bursar.strategies.universal import ranges_gram, unit_ranges_gram

AT_ONCE = 2**22
"""Most numbers of a workload's matrix that are written out at a time."""


def gram_of(workload: ArrayLike) -> Reals:
    """V = W^T W of any matrix of queries, one per row."""
    W = np.atleast_2d(np.asarray(workload, np.float64))
    checked_size(W.shape[1])
    return np.asarray(W.T @ W)


def identity(size: int) -> Reals:
    """Every cell by itself."""
    return np.eye(checked_size(size))


def total(size: int) -> Reals:
    """The sum of all cells."""
    return np.ones((checked_size(size), size))


def prefix(size: int, *, unit_norm: bool = False) -> Reals:
    """The cumulative distribution: all sums of the first k cells, k = 1..n. V_ij = n - max(i, j)."""
    cells = np.arange(checked_size(size))
    weights = 1.0 / (cells + 1.0) if unit_norm else np.ones(size)
    tails = np.cumsum(weights[::-1])[::-1]
    return np.asarray(tails[np.maximum.outer(cells, cells)])


def ranges_between(lows: ArrayLike, highs: ArrayLike, sizes: Sequence[int], *, unit_norm: bool = False) -> Reals:
    """The given boxes, [low, high) in every column: one row of lows and of highs per query, one number per column."""
    low, high = np.atleast_2d(np.asarray(lows, np.int64)), np.atleast_2d(np.asarray(highs, np.int64))
    if low.shape != high.shape or low.shape[1] != len(sizes) or np.any(low < 0) or np.any(high > np.asarray(sizes)):
        raise QueryError("a range reaches outside its column")
    cells = checked_size(math.prod(sizes))
    V = np.zeros((cells, cells))
    step = max(1, AT_ONCE // cells)
    for start in range(0, len(low), step):
        W = np.ones((len(low[start : start + step]), 1))
        for axis, size in enumerate(sizes):
            at = np.arange(size)
            inside = (low[start : start + step, axis, None] <= at) & (at < high[start : start + step, axis, None])
            W = (W[:, :, None] * inside[:, None, :]).reshape(len(W), -1)
        if unit_norm:
            W /= np.sqrt(np.maximum(W.sum(axis=1, keepdims=True), 1.0))
        V += W.T @ W
    return V


def permuted(gram: ArrayLike, order: ArrayLike) -> Reals:
    """The same workload with its cells in another order."""
    chosen = np.asarray(order, np.int64)
    return np.asarray(np.asarray(gram, np.float64)[np.ix_(chosen, chosen)])


def ways(columns: int, k: int) -> list[tuple[int, ...]]:
    """All sets of k columns."""
    return list(itertools.combinations(range(columns), k))


def marginals(sizes: Sequence[int], sets: Iterable[Sequence[int]], *, unit_norm: bool = False) -> Reals:
    """All counts of the marginals over the given sets of columns."""
    return _over_sets(sizes, sets, np.eye, unit_norm)


def range_marginals(sizes: Sequence[int], sets: Iterable[Sequence[int]], *, unit_norm: bool = False) -> Reals:
    """All boxes on the margins over the given sets of columns (Eigen-Design, Sec. 2.1)."""
    return _over_sets(sizes, sets, unit_ranges_gram if unit_norm else ranges_gram, unit_norm)


def _over_sets(
    sizes: Sequence[int], sets: Iterable[Sequence[int]], inside: Callable[[int], Reals], unit_norm: bool
) -> Reals:
    cells = checked_size(math.prod(sizes))
    V = np.zeros((cells, cells))
    for columns in sets:
        if not set(columns) <= set(range(len(sizes))):
            raise QueryError("a marginal names a column that is not there")
        factors = [inside(size) if i in columns else np.ones((size, size)) for i, size in enumerate(sizes)]
        outside = math.prod(size for i, size in enumerate(sizes) if i not in columns)
        V += product(*factors) / (outside if unit_norm else 1)
    return V
