"""Products of workloads: the product of the factors' strategies is the strategy of the product.

For V = V_1 x ... x V_d and X = X_1 x ... x X_d, tr(V X^-1) and the largest diagonal element are products, and so is the
dual bound of `optimal`: with Gaussian noise the product of the factors' optima is optimal, up to the factors' gaps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bursar.queries import Product
from bursar.strategy.cells import MergedCells
from bursar.strategy.integers import IntegerStrategy, to_integers
from bursar.strategy.measure import Reals, svd_bound
from bursar.strategy.optimal import optimum
from bursar.strategy.p_identity import for_laplace

NORM_BITS = 58
"""Largest norm of a product's column, as a power of two; the kernel's limit is two bits more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Factor:
    """One factor of a product workload, with a strategy in whole numbers over merged cells."""

    cells: MergedCells
    queries: Reals  # the workload's rows over merged cells
    rows: NDArray[np.int64]  # the strategy's
    bound: float  # no strategy of sensitivity one has a smaller error (`rms_error`)

    @cached_property
    def weights(self) -> Reals:
        """The workload's rows as combinations of the strategy's: W A^+."""
        weights: Reals = self.queries @ np.linalg.pinv(self.rows.astype(np.float64))
        return weights


@dataclass(frozen=True, kw_only=True, eq=False)
class KroneckerStrategy:
    """A product of integer strategies, measured as one map with one noise."""

    factors: tuple[Factor, ...]
    power: int  # 2 for Gaussian noise, 1 for Laplace

    @cached_property
    def product(self) -> Product:
        return Product(tuple(factor.cells.mask(factor.rows) for factor in self.factors))

    @cached_property
    def sensitivity(self) -> float:
        """How far one row can move the answers, in L2 or L1: from exact integer norms."""
        return math.prod(float(_column_norms(f.rows, self.power).max(initial=0)) for f in self.factors) ** (1 / self.power)

    @cached_property
    def variances(self) -> Reals:
        """Of each query of the workload, in the order of its product, at noise of variance one."""
        result = np.ones(1)
        for factor in self.factors:
            result = np.multiply.outer(result, np.square(factor.weights).sum(axis=1)).ravel()
        return result

    @property
    def ratio(self) -> float:
        """At most how many times the error of the best strategy for Gaussian noise; 1 for a workload of zeros."""
        bound = math.prod(factor.bound for factor in self.factors)
        return self.sensitivity * math.sqrt(float(self.variances.sum())) / bound if bound > 0 else 1.0

    def estimate(self, values: ArrayLike) -> Reals:
        """The workload's answers from the measured ones, by least squares."""
        table = np.asarray(values, np.float64).reshape([len(factor.rows) for factor in self.factors])
        for axis, factor in enumerate(self.factors):
            table = np.moveaxis(np.tensordot(factor.weights, table, (1, axis)), 0, axis)
        return np.ascontiguousarray(table).reshape(-1)


def kronecker(
    factors: Sequence[tuple[MergedCells, Reals]], *, power: int = 2, gap: float = 1e-3, loss: float = 1e-4
) -> KroneckerStrategy:
    """The product of each factor's optimum (power 2), or of its best strategy for Laplace noise (power 1).

    A factor is given as its merged cells and its rows over them. `loss` is what rounding to whole numbers may cost in
    error where there is room for it: norms multiply, and many factors leave few bits to each.
    """
    found = []
    for cells, queries in factors:
        V = queries.T @ queries
        found.append((cells, queries, V, *_real(V, power, gap)))
    whole = [to_integers(A, V, power=power, loss=loss / len(found)) for _, _, V, A, _ in found]
    room = NORM_BITS - sum(_bits(w, power) for w in whole if w.bits == 0)
    coarse = max(room // (power * max(sum(w.bits > 0 for w in whole), 1)), 1)
    if sum(_bits(w, power) for w in whole) > NORM_BITS:
        whole = [
            w if w.bits <= coarse else to_integers(A, V, power=power, bits=coarse)
            for w, (_, _, V, A, _) in zip(whole, found, strict=True)
        ]
    made = [
        Factor(cells=cells, queries=queries, rows=w.rows, bound=bound)
        for w, (cells, queries, _, _, bound) in zip(whole, found, strict=True)
    ]
    return KroneckerStrategy(factors=tuple(made), power=power)


def _real(V: Reals, power: int, gap: float) -> tuple[Reals, float]:
    if power == 1:
        return for_laplace(V), svd_bound(V)
    found = optimum(V, gap=gap)
    return found.strategy, found.bound


def _bits(whole: IntegerStrategy, power: int) -> int:
    return max(whole.norm(power), 1).bit_length()


def _column_norms(rows: NDArray[np.int64], power: int) -> NDArray[np.int64]:
    norms: NDArray[np.int64] = (np.abs(rows) ** power).sum(axis=0)
    return norms
