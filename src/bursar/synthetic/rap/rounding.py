"""Randomized rounding: a real table, of any size, from relaxed rows."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bursar.arrays import Integers
from bursar.errors import QueryError
from bursar.synthetic.entropy import entropy
from bursar.synthetic.rap.relaxed import Relaxed


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
