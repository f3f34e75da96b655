"""A strategy for ranges like some that were asked: those that end where they did, or not far from there.

Where questions come one at a time, a strategy for all ranges of a column pays for ends that nobody asks about, and one
for the ranges so far leaves the next question open.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.strategies.optimal import optimum

REACH = 4.0
"""How many times the distance to the next end the ends reach that are near one."""

GAP = 1e-2
"""Of the squared error: strategies for ranges not asked yet need no more."""


def nearby(ends: Integers, size: int) -> Integers:
    """The ends, in increasing order and all different, with those near them, inside a column of `size` cells.

    Where few are known, or they lie far apart, near is far.
    """
    steps = np.diff(ends, prepend=-size, append=2 * size)
    reach = np.maximum(REACH * np.minimum(steps[:-1], steps[1:]), 1).astype(np.int64)
    opened = np.zeros(size + 1, np.int64)
    np.add.at(opened, np.maximum(ends - reach, 0), 1)
    np.add.at(opened, np.minimum(ends + reach, size - 1) + 1, -1)
    near: Integers = np.flatnonzero(np.cumsum(opened)[:size] > 0)
    return near[near > 0]


@lru_cache(maxsize=32)
def ranges_between(firsts: bytes, ends: bytes) -> tuple[NDArray[np.bool_], Reals]:
    """The best strategy for all ranges from one end to a later one, over merged cells that begin at `firsts`.

    Arrays of 64-bit numbers come as bytes, so that the same strategy is not sought again. No end lies inside a merged
    cell. Says which merged cells lie in some range; the strategy is over these. As many ranges hold two cells as there
    are ends before the first of them, times the ends after the second.
    """
    first, end = np.frombuffer(firsts, np.int64), np.frombuffer(ends, np.int64)
    before = np.searchsorted(end, first, side="right")
    after = len(end) - before
    inside = (before > 0) & (after > 0)
    begun, left = before[inside], after[inside]
    gram = np.minimum.outer(begun, begun) * np.minimum.outer(left, left)
    return inside, optimum(gram / gram.max(), gap=GAP).strategy
