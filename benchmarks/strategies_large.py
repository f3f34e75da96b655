"""Errors at sizes where no dense solution over all cells is wanted: by transforms that diagonalise the strategies.

A balanced binary tree's A^T A and the wavelet's are both diagonal in the Haar basis h, so an error is a sum of
h^T V h / eigenvalue; for sums of products these are products over the columns. Eigen-queries of ranges are sines,
those of boxes products, those of unions of range marginals come from an orthonormal basis of the rank. Where no
structure helps, principal vectors (Eigen-Design, Sec. 4.2) are found by a few multiplications.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from benchmarks.strategies_spaces import constant_first
from bursar.papers.eigen_design.weights import query_weights

Reals = NDArray[np.float64]
Sets = Sequence[tuple[int, ...]]
Deviations = Callable[[Reals], Reals]
"""The standard deviation of each query, given as rows, of a strategy of sensitivity one at noise one."""

SPARE = 1e-10
"""What every cell gets when columns are completed in a workload of low rank, so that nothing is divided by zero."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectrum:
    """The nonzero eigenvalues of a workload, largest first, and its eigen-queries, orthonormal rows."""

    costs: Reals
    queries: Reals

    @cached_property
    def squares(self) -> Reals:
        return np.square(self.queries)

    @property
    def bound(self) -> float:
        """The singular value bound."""
        return float(np.sqrt(self.costs).sum()) / math.sqrt(self.queries.shape[1])

    def error(self, factors: Reals) -> float:
        """The error of the weighted eigen-queries, before columns are completed."""
        weights = np.square(factors)
        return math.sqrt(float((weights @ self.squares).max() * (self.costs / weights).sum()))

    def completed_error(self, factors: Reals) -> float:
        """The same with completed columns."""
        norm, factor = self._completed(factors)
        inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
        return norm * math.sqrt(float(self.costs @ inverse.diagonal()))

    def deviations(self, factors: Reals) -> Deviations:
        """Of queries in the span of the eigen-queries, with completed columns."""
        norm, factor = self._completed(factors)

        def deviations(rows: Reals) -> Reals:
            seen = scipy.linalg.solve_triangular(factor, self.queries @ rows.T, lower=True, check_finite=False)
            return norm * np.asarray(np.linalg.norm(seen, axis=0))

        return deviations

    def _completed(self, factors: Reals) -> tuple[float, Reals]:
        """The sensitivity, and L with L L^T what all rows tell of the eigen-queries: weights, and the cells' part.

        Rows sqrt(d_j) e_j tell Q d Q^T of all n eigen-queries, and (Q d^-1 Q^T)^-1 of fewer.
        """
        weights = np.square(factors)
        norms = weights @ self.squares
        room = norms.max() * (1 + SPARE) - norms
        full = len(self.costs) == self.queries.shape[1]
        seen = (self.queries * (room if full else 1 / room)) @ self.queries.T
        seen = seen if full else scipy.linalg.inv(seen, overwrite_a=True, check_finite=False)
        seen[np.diag_indices_from(seen)] += weights
        return math.sqrt(norms.max()), scipy.linalg.cholesky(seen, lower=True, overwrite_a=True, check_finite=False)


def range_spectrum(cells: int) -> Spectrum:
    """All ranges: V = (n+1) tridiag(-1, 2, -1)^-1, whose eigenvectors are sines."""
    k = np.arange(1, cells + 1)
    costs = (cells + 1) / (4 * np.square(np.sin(np.pi * k / (2 * (cells + 1)))))
    waves = np.multiply.outer(np.pi * k / (cells + 1), k.astype(np.float64))
    np.sin(waves, out=waves)
    waves *= math.sqrt(2 / (cells + 1))
    return Spectrum(costs=costs, queries=waves)


def prefix_spectrum(cells: int) -> Spectrum:
    """All prefix sums: eigenvectors cos((2k-1)(2j+1) pi / (2 (2n+1))), counted from the cell that all sums have."""
    k, j = np.arange(1, cells + 1), np.arange(cells)
    angle = np.pi * (2 * k - 1) / (2 * (2 * cells + 1))
    waves = np.multiply.outer(angle, 2.0 * j + 1)
    np.cos(waves, out=waves)
    waves *= 2 / math.sqrt(2 * cells + 1)
    return Spectrum(costs=1 / (4 * np.square(np.sin(angle))), queries=waves)


def product_spectrum(grams: Sequence[Reals]) -> Spectrum:
    """Of a product of workloads: products of eigenvalues and of eigen-queries."""
    pairs = [np.linalg.eigh(V) for V in grams]
    costs = reduce(np.kron, [values for values, _ in pairs])
    order = np.argsort(costs)[::-1]
    queries = reduce(np.kron, [vectors.T for _, vectors in pairs])
    return Spectrum(costs=costs[order], queries=queries[order])


def marginal_spectrum(
    sizes: Sequence[int], sets: Sets, inside: Callable[[int], Reals], *, unit_norm: bool = False
) -> Spectrum:
    """Unions of products over sets of columns, with the sum over all cells elsewhere: as small as their rank."""
    basis = [constant_first(size) for size in sizes]
    factors = [b @ inside(size) @ b.T for b, size in zip(basis, sizes, strict=True)]
    members = [[range(size) if i in s else range(1) for i, size in enumerate(sizes)] for s in sets]
    kept = np.unique(np.concatenate([_numbers(m, sizes) for m in members]))
    small = np.zeros((len(kept), len(kept)))
    at = np.unravel_index(kept, sizes)
    for s in sets:
        totals = [_only_first(size, 1.0 if unit_norm else float(size)) for size in sizes]
        parts = [(factors[i] if i in s else totals[i])[np.ix_(at[i], at[i])] for i in range(len(sizes))]
        small += reduce(np.multiply, parts)
    values, vectors = np.linalg.eigh(small)
    rows = reduce(
        lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(len(kept), -1), [b[at[i]] for i, b in enumerate(basis)]
    )
    used = values > 1e-12 * values[-1]
    return Spectrum(costs=values[used][::-1], queries=vectors[:, used].T[::-1] @ rows)


def _numbers(members: Sequence[range], sizes: Sequence[int]) -> NDArray[np.int64]:
    return np.ravel_multi_index(np.meshgrid(*members, indexing="ij"), tuple(sizes)).ravel()


def _only_first(size: int, value: float) -> Reals:
    made = np.zeros((size, size))
    made[0, 0] = value
    return made


# -- principal vectors of any workload -----------------------------------------------------------------------------


def principal(gram: Reals, share: float, rng: np.random.Generator) -> Deviations:
    """Own weights for a share of all directions, one weight for the rest, and completed columns.

    The directions are those that three multiplications with V turn random vectors to: nearly the first eigenvectors.
    For any orthonormal rows q the cost is q^T V q (Thm. 1), so the weights are the best for these.
    X is diagonal + Q^T extra Q, which is inverted in the size of the share.
    """
    cells = len(gram)
    found = rng.normal(size=(cells, math.ceil(share * cells)))
    for _ in range(3):
        found = np.linalg.qr(gram @ found)[0]
    values, turn = np.linalg.eigh(found.T @ gram @ found)
    Q = turn.T @ found.T
    squares = np.square(Q)
    rest = np.maximum(1 - squares.sum(axis=0), 0.0)
    costs = np.append(values, np.trace(gram) - values.sum())
    amounts = np.square(query_weights(costs, np.concatenate([squares, rest[None]]), gap=1e-3).factors)
    common, extra = amounts[-1], amounts[:-1] - amounts[-1]
    extra = np.where(np.abs(extra) > 1e-12 * common, extra, 1e-12 * common)
    own = 1 - extra @ squares  # every column has norm one: the common weight, and what completes it
    core = np.linalg.inv(np.diag(1 / extra) + (Q / own) @ Q.T)

    def deviations(rows: Reals) -> Reals:
        scaled = rows / own
        inner = scaled @ Q.T
        return np.sqrt(np.einsum("ij,ij->i", rows, scaled) - np.einsum("ij,ij->i", inner @ core, inner))

    return deviations


def product_deviations(strategies: Sequence[Reals]) -> Deviations:
    """Of one strategy per column, for any queries over the joint cells."""
    inverses = [np.linalg.pinv(A) * np.linalg.norm(A, axis=0).max() for A in strategies]

    def deviations(rows: Reals) -> Reals:
        table = rows.reshape(-1, *(len(inverse) for inverse in inverses))
        for axis, inverse in enumerate(inverses, start=1):
            table = np.moveaxis(np.tensordot(table, inverse, (axis, 0)), -1, axis)
        return np.asarray(np.linalg.norm(table.reshape(len(rows), -1), axis=1))

    return deviations


# -- wavelets and trees --------------------------------------------------------------------------------------------


def haar(rows: Reals, sizes: Sequence[int]) -> Reals:
    """Every row in the orthonormal Haar basis of each column, coarsest first."""
    table = rows.reshape(-1, *sizes)
    for axis in range(1, len(sizes) + 1):
        low, parts = np.moveaxis(table, axis, -1), []
        while low.shape[-1] > 1:
            first, second = low[..., 0::2], low[..., 1::2]
            parts.append((first - second) / math.sqrt(2))
            low = (first + second) / math.sqrt(2)
        table = np.moveaxis(np.concatenate([low, *parts[::-1]], axis=-1), -1, axis)
    return np.ascontiguousarray(table).reshape(len(rows), -1)


def haar_deviations(sizes: Sequence[int], system: str) -> Deviations:
    """Of `wavelet` or `hierarchical`, for any queries."""
    scale = math.sqrt(_sensitivity(sizes)) / np.sqrt(reduce(np.kron, [_eigenvalues(size, system) for size in sizes]))
    return lambda rows: np.asarray(np.linalg.norm(haar(rows, sizes) * scale, axis=1))


def haar_error(sizes: Sequence[int], energies: Reals, system: str) -> float:
    """The error of `wavelet` or `hierarchical` from the workload's energies in the Haar basis."""
    eigenvalues = reduce(np.kron, [_eigenvalues(size, system) for size in sizes])
    return math.sqrt(_sensitivity(sizes) * float((energies / eigenvalues).sum()))


def haar_energies(size: int, trace: Callable[[Reals], Reals], order: NDArray[np.int64] | None = None) -> Reals:
    """h^T V h for every Haar row h of a column, the cells in another order; `trace` gives it for rows."""
    found = []
    for start in range(0, size, 512):
        unit = np.eye(min(512, size - start), size, start)
        rows = _unhaar(unit, size)
        found.append(trace(rows if order is None else rows[:, order]))
    return np.concatenate(found)


def of_ranges(rows: Reals) -> Reals:
    """h^T V h for all ranges: (n+1) sum c^2 - (sum c)^2 with c the prefix sums of h."""
    prefix = np.cumsum(rows, axis=1)
    energies: Reals = (rows.shape[1] + 1) * np.square(prefix).sum(axis=1) - np.square(prefix.sum(axis=1))
    return energies


def of_prefixes(rows: Reals) -> Reals:
    """h^T V h for all prefix sums."""
    return np.asarray(np.square(np.cumsum(rows, axis=1)).sum(axis=1))


def of_total(rows: Reals) -> Reals:
    """h^T V h for the sum over all cells."""
    return np.asarray(np.square(rows.sum(axis=1)))


def set_energies(sizes: Sequence[int], sets: Sets) -> Reals:
    """h^T V h for all range marginals over the sets of columns."""
    own = [(haar_energies(n, of_ranges), haar_energies(n, of_total)) for n in sizes]
    made = [reduce(np.kron, [ranges if i in s else total for i, (ranges, total) in enumerate(own)]) for s in sets]
    return np.asarray(np.sum(made, axis=0))


def _unhaar(coefficients: Reals, size: int) -> Reals:
    low, at = coefficients[:, :1], 1
    while at < size:
        high = coefficients[:, at : 2 * at]
        low = np.stack([low + high, low - high], axis=-1).reshape(len(low), -1) / math.sqrt(2)
        at *= 2
    return low


def _sensitivity(sizes: Sequence[int]) -> float:
    """Squared: one row of ones per level."""
    return math.prod(1 + math.log2(size) for size in sizes)


def _eigenvalues(size: int, system: str) -> Reals:
    """Of A^T A at each Haar row: the cells it looks at, or the widths of all levels on whose nodes it is constant."""
    levels = [1, *(2**level for level in range(size.bit_length() - 1))]
    widths = np.concatenate([np.full(n, size // (1 if i == 0 else n)) for i, n in enumerate(levels)]).astype(np.float64)
    if system == "wavelet":
        return widths
    finer = widths - 1  # sum of the widths below: width/2 + width/4 + ... + 1
    finer[0] = 2 * size - 1
    return finer
