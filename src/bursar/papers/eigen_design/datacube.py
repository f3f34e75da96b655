"""Marginals answered from a few measured marginals: the BMAX choice of Ding et al.

A marginal over the columns S can be summed up from a measured one over T, a superset of S; its noise grows by the
number of cells that are summed, the product of the sizes of T without S.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from bursar.errors import QueryError
from bursar.strategies.measure import Reals, checked_size
from bursar.strategies.simple import identity, product, total

MOST_COLUMNS = 12


def bmax(sizes: Sequence[int], sets: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    """Which marginals to measure so that the largest variance over the wanted ones is small.

    k measured marginals have L2 sensitivity sqrt k, so S has variance k (cells summed). For a bound theta on the cells
    summed, marginals are measured greedily, each time the one that covers most of what is left; theta takes all
    its possible values, and the best product of k and what was summed at most wins.
    Edge cases: no wanted marginals need no measured ones; more than `MOST_COLUMNS` columns are refused.
    """
    wanted = sorted({tuple(sorted(set(columns))) for columns in sets})
    if len(sizes) > MOST_COLUMNS:
        raise QueryError(f"{len(sizes)} columns have too many marginals to choose from; {MOST_COLUMNS} are possible")
    if any(not set(s) <= set(range(len(sizes))) for s in wanted):
        raise QueryError("a marginal names a column that is not there")
    if not wanted:
        return []
    candidates = [t for k in range(len(sizes) + 1) for t in itertools.combinations(range(len(sizes)), k)]
    summed = {t: {s: _summed(sizes, s, t) for s in wanted if set(s) <= set(t)} for t in candidates}
    bounds = sorted({cells for covers in summed.values() for cells in covers.values()})
    choices = [_greedy(wanted, summed, bound) for bound in bounds]
    return min(choices, key=lambda chosen: (len(chosen) * _worst(wanted, summed, chosen), len(chosen)))


def datacube(sizes: Sequence[int], sets: Iterable[Sequence[int]]) -> Reals:
    """The marginals of `bmax`, one below the other, as a strategy; inference then uses all of them together."""
    cells = checked_size(math.prod(sizes))
    rows = [
        product(*(identity(size) if i in chosen else total(size) for i, size in enumerate(sizes)))
        for chosen in bmax(sizes, sets)
    ]
    return np.concatenate(rows) if rows else np.zeros((0, cells))


Covers = dict[tuple[int, ...], dict[tuple[int, ...], int]]


def _summed(sizes: Sequence[int], small: tuple[int, ...], large: tuple[int, ...]) -> int:
    return math.prod(sizes[i] for i in large if i not in small)


def _greedy(wanted: list[tuple[int, ...]], summed: Covers, bound: int) -> list[tuple[int, ...]]:
    left, chosen = set(wanted), []
    while left:
        best = max(summed, key=lambda t: (sum(s in left for s, cells in summed[t].items() if cells <= bound), -len(t)))
        chosen.append(best)
        left -= {s for s, cells in summed[best].items() if cells <= bound}
    return chosen


def _worst(wanted: list[tuple[int, ...]], summed: Covers, chosen: list[tuple[int, ...]]) -> int:
    return max(min(summed[t][s] for t in chosen if s in summed[t]) for s in wanted)
