"""Sparsemax: the nearest point of the simplex, for one column of all relaxed rows at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np

from bursar.arrays import Singles
from bursar.errors import Unsupported

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The function as machine code, made at its first call and kept on disk for the next process.

    Sums may be reordered, so results differ in their last digits between processors: nothing exact is computed here.
    Edge cases: without the package `numba` this is refused with the command that installs it.
    """
    try:
        from numba import njit
    except ImportError:
        raise Unsupported("synthetic data need a compiler: pip install numba") from None
    return cast(Function, njit(cache=True, fastmath=True, nogil=True)(function))


TILE = 128
"""Rows that are worked on together: a column of a hundred values of so many rows stays in the first caches."""

TINY = np.float32(1e-7)
"""What rounding can do to a number near 1: steps no longer than that end the search, and shares below it are 0."""

MOST_STEPS = 64
"""More than Newton's method ever needs here; only rounding could make it go on."""


@compiled
def sparsemax(block: Singles) -> None:
    """In place, for every column z of the block: argmin over p >= 0 with sum p = 1 of ||p - z||_2 (Martins and
    Astudillo 2016, eq. 2), which is max(z - tau, 0) with the tau for which it sums to 1.

    sum max(z - t, 0) - 1 falls in t and is convex, so Newton's method finds tau: from wherever it starts, its first
    step ends at or below tau, and from there it rises until the set of values above t stays the same. It starts from
    t = 0, the answer for rows that are in the simplex already.
    """
    rows = block.shape[1]
    tau = np.empty(TILE, np.float32)
    total = np.empty(TILE, np.float32)
    count = np.empty(TILE, np.float32)
    for first in range(0, rows, TILE):
        last = min(first + TILE, rows)
        tau[:] = 0
        for _ in range(MOST_STEPS):
            _add_above(block, first, last, tau, total, count)
            moved = False
            for i in range(last - first):
                if count[i] == 0:  # everything lies below: the largest alone is a start from the left
                    new = block[:, first + i].max() - np.float32(1)
                else:
                    new = (total[i] - np.float32(1)) / count[i]
                moved |= abs(new - tau[i]) > TINY
                tau[i] = new
            if not moved:
                break
        _cut(block, first, last, tau)


@compiled
def _add_above(block: Singles, first: int, last: int, tau: Singles, total: Singles, count: Singles) -> None:
    """How many values of each row lie above tau, and their sum."""
    total[:] = 0
    count[:] = 0
    for j in range(len(block)):
        line = block[j, first:last]
        for i in range(len(line)):
            z = line[i]
            if z > tau[i]:
                total[i] += z
                count[i] += np.float32(1)


@compiled
def _cut(block: Singles, first: int, last: int, tau: Singles) -> None:
    for j in range(len(block)):
        line = block[j, first:last]
        for i in range(len(line)):
            z = line[i] - tau[i]
            line[i] = z if z > TINY else np.float32(0)
