"""Errors at sizes where no dense matrix over all cells is wanted: by transforms that diagonalise the strategies.

A balanced binary tree's A^T A and the wavelet's are both diagonal in the Haar basis h, so an error is a sum of
h^T V h / eigenvalue; for sums of products these are products over the columns. Eigen-queries of ranges are sines,
those of unions of range marginals come from an orthonormal basis of the rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Sets = Sequence[tuple[int, ...]]
AT_ONCE = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectrum:
    """The nonzero eigenvalues of a workload, largest first, and the squared entries of its eigen-queries."""

    costs: Reals
    squares: Reals

    @property
    def bound(self) -> float:
        """The singular value bound."""
        return float(np.sqrt(self.costs).sum()) / math.sqrt(self.squares.shape[1])

    def error(self, factors: Reals) -> float:
        """The error of the weighted eigen-queries, before columns are completed."""
        weights = np.square(factors)
        return math.sqrt(float((weights @ self.squares).max() * (self.costs / weights).sum()))


def range_spectrum(cells: int) -> Spectrum:
    """All ranges: V = (n+1) tridiag(-1, 2, -1)^-1, whose eigenvectors are sines."""
    k = np.arange(1, cells + 1)
    costs = (cells + 1) / (4 * np.square(np.sin(np.pi * k / (2 * (cells + 1)))))
    squares = np.multiply.outer(np.pi * k / (cells + 1), k.astype(np.float64))
    np.square(np.sin(squares, out=squares), out=squares)
    squares *= 2 / (cells + 1)
    return Spectrum(costs=costs, squares=squares)


def prefix_spectrum(cells: int) -> Spectrum:
    """All prefix sums: eigenvectors cos((2k-1)(2j+1) pi / (2 (2n+1))), counted from the cell that all sums have."""
    k, j = np.arange(1, cells + 1), np.arange(cells)
    angle = np.pi * (2 * k - 1) / (2 * (2 * cells + 1))
    squares = np.multiply.outer(angle, 2.0 * j + 1)
    np.square(np.cos(squares, out=squares), out=squares)
    squares *= 4 / (2 * cells + 1)
    return Spectrum(costs=1 / (4 * np.square(np.sin(angle))), squares=squares)


def marginal_spectrum(sizes: Sequence[int], sets: Sets, inside: Callable[[int], Reals]) -> Spectrum:
    """Unions of products over sets of columns, with the sum over all cells elsewhere: as small as their rank."""
    basis = [_constant_first(size) for size in sizes]
    factors = [b @ inside(size) @ b.T for b, size in zip(basis, sizes, strict=True)]
    totals = [_only_first(size) for size in sizes]
    members = [[range(size) if i in s else range(1) for i, size in enumerate(sizes)] for s in sets]
    kept = np.unique(np.concatenate([_numbers(m, sizes) for m in members]))
    small = np.zeros((len(kept), len(kept)))
    at = np.unravel_index(kept, sizes)
    for s in sets:
        parts = [(factors[i] if i in s else totals[i])[np.ix_(at[i], at[i])] for i in range(len(sizes))]
        small += reduce(np.multiply, parts)
    values, vectors = np.linalg.eigh(small)
    rows = reduce(
        lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(len(kept), -1), [b[at[i]] for i, b in enumerate(basis)]
    )
    used = values > 1e-12 * values[-1]
    return Spectrum(costs=values[used][::-1], squares=np.square(vectors[:, used].T[::-1] @ rows))


def _numbers(members: Sequence[range], sizes: Sequence[int]) -> NDArray[np.int64]:
    return np.ravel_multi_index(np.meshgrid(*members, indexing="ij"), tuple(sizes)).ravel()


def _constant_first(size: int) -> Reals:
    """An orthonormal basis whose first row is constant."""
    waves = np.cos(np.pi * np.outer(np.arange(size), np.arange(size) + 0.5) / size)
    return waves / np.linalg.norm(waves, axis=1, keepdims=True)


def _only_first(size: int) -> Reals:
    made = np.zeros((size, size))
    made[0, 0] = size
    return made


def haar_rows(size: int) -> Iterator[tuple[int, Reals]]:
    """The orthonormal Haar rows, coarsest first, some at a time, each with the number of cells it looks at."""
    yield size, np.full((1, size), 1 / math.sqrt(size))
    width = size
    while width > 1:
        for start in range(0, size // width, AT_ONCE):
            nodes = np.arange(start, min(start + AT_ONCE, size // width))
            rows = np.zeros((len(nodes), size))
            for row, node in enumerate(nodes):
                rows[row, node * width : node * width + width // 2] = 1
                rows[row, node * width + width // 2 : (node + 1) * width] = -1
            yield width, rows / math.sqrt(width)
        width //= 2


def range_energies(size: int, order: NDArray[np.int64] | None = None) -> Reals:
    """h^T V h for all ranges, the cells in another order: (n+1) sum c^2 - (sum c)^2 with c the prefix sums of h."""
    found = []
    for _, rows in haar_rows(size):
        prefix = np.cumsum(rows if order is None else rows[:, order], axis=1)
        found.append((size + 1) * np.square(prefix).sum(axis=1) - np.square(prefix.sum(axis=1)))
    return np.concatenate(found)


def prefix_energies(size: int) -> Reals:
    """h^T V h for all prefix sums."""
    return np.concatenate([np.square(np.cumsum(rows, axis=1)).sum(axis=1) for _, rows in haar_rows(size)])


def total_energies(size: int) -> Reals:
    """h^T V h for the sum over all cells."""
    return np.concatenate([np.square(rows.sum(axis=1)) for _, rows in haar_rows(size)])


def set_energies(sizes: Sequence[int], sets: Sets) -> Reals:
    """h^T V h for all range marginals over the sets of columns."""
    return sum(  # type: ignore[return-value]
        reduce(np.kron, [range_energies(n) if i in s else total_energies(n) for i, n in enumerate(sizes)]) for s in sets
    )


def haar_error(sizes: Sequence[int], energies: Reals, system: str) -> float:
    """The error of `wavelet` or `hierarchical` from the workload's energies in the Haar basis."""
    eigenvalues = reduce(np.kron, [_eigenvalues(size, system) for size in sizes])
    sensitivity = math.prod(1 + math.log2(size) for size in sizes)  # squared: one row of ones per level
    return math.sqrt(sensitivity * float((energies / eigenvalues).sum()))


def _eigenvalues(size: int, system: str) -> Reals:
    """Of A^T A at each Haar row: the cells it looks at, or the widths of all levels on whose nodes it is constant."""
    widths = np.concatenate([np.full(len(rows), width) for width, rows in haar_rows(size)]).astype(np.float64)
    if system == "wavelet":
        return widths
    finer = widths - 1  # sum of the widths below: width/2 + width/4 + ... + 1
    finer[0] = 2 * size - 1
    return finer
