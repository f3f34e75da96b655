"""Fewer cells before a strategy is sought: cells that no query uses are dropped, cells that none tells apart merged.

It is lossless. A strategy over merged cells becomes one over all cells by copying columns, with equal norms and equal
errors; and any strategy over all cells can be averaged over each group of merged cells without a larger error, since
the error is convex in A^T A.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bursar.strategies.measure import Reals, checked_gram

UNUSED = -1
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, kw_only=True, eq=False)
class Merging:
    """Which merged cell every cell belongs to, in the order of first appearance; `UNUSED` where no query looks."""

    group: NDArray[np.int64]
    first: NDArray[np.int64]  # one cell of each merged cell

    @property
    def cells(self) -> int:
        """How many merged cells there are."""
        return len(self.first)

    def gram(self, gram: ArrayLike) -> Reals:
        """The Gram matrix over merged cells."""
        return np.asarray(gram, np.float64)[np.ix_(self.first, self.first)]

    def queries(self, workload: ArrayLike) -> Reals:
        """The workload's matrix over merged cells."""
        return np.asarray(workload, np.float64)[:, self.first]

    def spread(self, strategy: NDArray[Number]) -> NDArray[Number]:
        """A strategy over merged cells, over all cells: columns copied, zero where no query looks."""
        padded = np.concatenate([strategy, np.zeros((len(strategy), 1), strategy.dtype)], axis=1)
        return padded[:, self.group]


def merge_workload(workload: ArrayLike) -> Merging:
    """Merge the cells whose columns of W are equal."""
    columns = np.ascontiguousarray(np.asarray(workload, np.float64).T)
    return _merge(columns, np.asarray(columns.any(axis=1)))


def merge_gram(gram: ArrayLike) -> Merging:
    """Merge the cells whose rows of V = W^T W are equal: exactly those with equal columns of W.

    Guarantees: numbers are compared as they are. Where V was computed with rounding, equal columns may stay apart,
    which costs time and no accuracy.
    """
    V = checked_gram(gram)
    return _merge(np.ascontiguousarray(V), V.diagonal() > 0)


def _merge(rows: Reals, used: NDArray[np.bool_]) -> Merging:
    seen: dict[bytes, int] = {}
    positive = rows + 0.0  # so that -0.0 and 0.0 are one number
    number = [
        seen.setdefault(row.tobytes(), len(seen)) if use else UNUSED for row, use in zip(positive, used, strict=True)
    ]
    group = np.array(number, np.int64)
    _, first = np.unique(group[used], return_index=True)
    return Merging(group=group, first=np.flatnonzero(used)[first])
