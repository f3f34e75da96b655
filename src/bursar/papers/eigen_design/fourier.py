"""Fourier bases: constant and oscillating functions per column, and their products; the natural basis of marginals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from bursar.arrays import Reals
from bursar.errors import QueryError
from bursar.strategies.hierarchical import identity, product, total
from bursar.strategies.measure import OUT_OF_SPAN, checked_gram, checked_size


def fourier_basis(*sizes: int) -> Reals:
    """Orthogonal rows of length sqrt n, the constant first; the product over columns.

    Walsh-Hadamard, with entries 1 and -1, where a size is a power of two (as Barak et al. for binary columns), the
    real discrete Fourier basis otherwise.
    """
    return product(*(_basis(checked_size(size)) for size in sizes))


def fourier(gram: ArrayLike, sizes: Sequence[int]) -> Reals:
    """The basis without the queries that the workload does not need (Eigen-Design, Sec. 5, Competing Approaches)."""
    V, Q = checked_gram(gram), fourier_basis(*sizes)
    if V.shape[0] != Q.shape[1]:
        raise QueryError("the columns' sizes do not fit the workload")
    shares = np.einsum("ij,ij->i", Q @ V, Q)
    return np.asarray(Q[shares > OUT_OF_SPAN * shares.max(initial=0.0)])


def _basis(size: int) -> Reals:
    if size & (size - 1) == 0:
        return np.asarray(scipy.linalg.hadamard(size), np.float64)
    turns = 2 * np.pi * np.outer(np.arange(size // 2 + 1), np.arange(size)) / size
    waves = np.concatenate([np.cos(turns), np.sin(turns)])
    nonzero = waves[np.square(waves).sum(axis=1) > 0.25]  # sin 0, and sin of the half turn, are no functions
    return np.asarray(nonzero * np.sqrt(size / np.square(nonzero).sum(axis=1, keepdims=True)))


def wavelet(*sizes: int) -> Reals:
    """The strategy of Xiao et al., with entries 1 and -1 (Eigen-Design, Fig. 2); over several columns the product.

    A node of odd size has the larger half in front.
    Guarantees: as many rows as cells, and of full rank; for a power of two the rows are orthogonal.
    """
    return product(*(_haar(size) for size in sizes))


def _haar(size: int) -> Reals:
    rows = [np.ones(checked_size(size))]
    nodes = [(0, size)]
    while nodes:
        low, high = nodes.pop(0)
        if high - low < 2:
            continue
        middle = (low + high + 1) // 2
        row = np.zeros(size)
        row[low:middle], row[middle:high] = 1.0, -1.0
        rows.append(row)
        nodes += [(low, middle), (middle, high)]
    return np.array(rows)


MOST_COLUMNS = 12


def bmax(sizes: Sequence[int], sets: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    """Which marginals to measure so that the largest variance over the wanted ones is small.

    k measured marginals have L2 sensitivity sqrt k, so S has variance k (cells summed). For a bound theta on the cells
    summed, marginals are measured greedily, each time the one that covers most of what is left; theta takes all
    its possible values, and the best product of k and what was summed at most wins.
    Edge cases: no wanted marginals need no measured ones; more than `MOST_COLUMNS` columns are refused.
    """
    marginals = sorted({tuple(sorted(set(columns))) for columns in sets})
    if len(sizes) > MOST_COLUMNS:
        raise QueryError(f"{len(sizes)} columns have too many marginals to choose from; {MOST_COLUMNS} are possible")
    if any(not set(s) <= set(range(len(sizes))) for s in marginals):
        raise QueryError("a marginal names a column that is not there")
    if not marginals:
        return []
    candidates = [t for k in range(len(sizes) + 1) for t in itertools.combinations(range(len(sizes)), k)]
    summed = {t: {s: _summed(sizes, s, t) for s in marginals if set(s) <= set(t)} for t in candidates}
    bounds = sorted({cells for covers in summed.values() for cells in covers.values()})
    choices = [_greedy(marginals, summed, bound) for bound in bounds]
    return min(choices, key=lambda chosen: (len(chosen) * _worst(marginals, summed, chosen), len(chosen)))


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


def _greedy(marginals: list[tuple[int, ...]], summed: Covers, bound: int) -> list[tuple[int, ...]]:
    left, chosen = set(marginals), []
    while left:
        best = max(summed, key=lambda t: (sum(s in left for s, cells in summed[t].items() if cells <= bound), -len(t)))
        chosen.append(best)
        left -= {s for s, cells in summed[best].items() if cells <= bound}
    return chosen


def _worst(marginals: list[tuple[int, ...]], summed: Covers, chosen: list[tuple[int, ...]]) -> int:
    return max(min(summed[t][s] for t in chosen if s in summed[t]) for s in marginals)
