"""Randomized rounding: a real table, of any size, from relaxed rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bursar.errors import QueryError
from bursar.release.answers import relaxed_answers, table_answers
from bursar.release.entropy import entropy
from bursar.release.relaxed import Relaxed
from bursar.release.threshold_workload import ThresholdWorkload

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]


def rounded(relaxed: Relaxed, *, size: int, rng: Generator | None = None) -> Integers:
    """A table of `size` rows of codes, in which every column of a row is drawn from a relaxed row's distribution.

    Every relaxed row is used equally often, up to one. Columns are drawn independently given the relaxed row, so every
    answer of the table has the relaxed rows' answer as its mean, if `size` is a multiple of their number. The copies of
    one relaxed row share a column's values out evenly: this makes errors smaller than independent draws do.
    """
    if size < 0:
        raise QueryError("a table has no less than 0 rows")
    rng = entropy() if rng is None else rng
    copies = -(-size // relaxed.rows)
    chosen = np.tile(np.arange(relaxed.rows), copies)
    spare = copies * relaxed.rows - size
    kept = np.ones(len(chosen), bool)
    kept[rng.choice(relaxed.rows, spare, replace=False)] = False
    table = np.empty((size, len(relaxed.names)), np.int64)
    for column, name in enumerate(relaxed.names):
        table[:, column] = _drawn(relaxed.block(name), copies, rng).ravel()[kept]
    return rng.permutation(table)


def _drawn(block: NDArray[np.float32], copies: int, rng: Generator) -> Integers:
    """Values of one column: (copies, relaxed rows)."""
    values, rows = block.shape
    ends = np.cumsum(block, axis=0, dtype=np.float64)
    strata = rng.permuted(np.tile(np.arange(copies), (rows, 1)), axis=1).T
    points = (strata + rng.random((copies, rows))) / max(copies, 1) * ends[-1]
    found = np.empty((copies, rows), np.int64)
    for row in range(rows):
        found[:, row] = np.searchsorted(ends[:, row], points[:, row], side="right")
    return found.clip(max=values - 1)


@dataclass(frozen=True, kw_only=True)
class Rounding:
    """The largest error of a workload's answers against some answers, before and after rounding, as fractions."""

    before: float
    after: float


def rounding_errors(
    workload: ThresholdWorkload, relaxed: Relaxed, table: Integers, *, against: Reals, queries: Integers | None = None
) -> Rounding:
    """Compared with answers to the given queries (all, unless named): noisy ones, or in a study the true ones."""
    places = slice(None) if queries is None else queries
    after = table_answers(workload, table)[places] / max(len(table), 1)
    before = relaxed_answers(workload, relaxed)[places]
    return Rounding(before=_largest(before - against), after=_largest(after - against))


def _largest(differences: Reals) -> float:
    return float(np.abs(differences).max(initial=0))
