"""Sparse levels: a tree of halves of which only every third level is ever measured.

A column is halved again and again down to single cells. Measured are the cells, the nodes three halvings above them,
six above, and so on, but never the root. Fewer levels mean fewer rows over each person, and a row costs its whole loss
again; more levels mean fewer rows to a question. With Laplace noise, where precision grows with the square of the loss,
eight children to a node are about right for questions of all sizes; the rule looks at the size of the domain only.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np

from bursar.arrays import Integers

Range = tuple[int, int]
"""Cells [low, high) of one column."""

Box = tuple[Range, ...]
"""One range per column."""

HALVINGS = 3
"""Halvings between two levels that are measured."""

FEW_CELLS = 16
"""Columns of so few cells have one level: their cells."""


@lru_cache(maxsize=64)
def levels(size: int) -> tuple[Integers, ...]:
    """Where the nodes of each level begin, from the coarsest level to single cells; one begins where another ends."""
    halved = [np.array([0, size])]
    while len(halved[-1]) <= size:
        cuts = halved[-1]
        middles = cuts[:-1] + np.diff(cuts) // 2
        halved.append(np.union1d(cuts, middles))
    if size <= FEW_CELLS:
        return (halved[-1],)
    return tuple(halved[:0:-HALVINGS][::-1])


def decompose(low: int, high: int, cuts: tuple[Integers, ...]) -> list[tuple[int, int]]:
    """The fewest nodes of the levels that make up a range, from left to right."""
    if high - low <= 1:  # single cells are nodes of the finest level
        return [(low, high)] if low < high else []
    coarsest, finer = cuts[0], cuts[1:]
    first, last = np.searchsorted(coarsest, low), np.searchsorted(coarsest, high, side="right")
    inside = coarsest[first:last].tolist()
    if len(inside) < 2:
        return decompose(low, high, finer)
    nodes = list(itertools.pairwise(inside))
    return [*decompose(low, inside[0], finer), *nodes, *decompose(inside[-1], high, finer)]


def is_node(low: int, high: int, cuts: tuple[Integers, ...]) -> bool:
    """Whether a range is a node of one of the levels."""
    for level in cuts:
        place = int(np.searchsorted(level, low))
        if place + 1 < len(level) and level[place] == low and level[place + 1] == high:
            return True
    return False
