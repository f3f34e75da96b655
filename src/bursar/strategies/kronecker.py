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
from numpy.typing import ArrayLike

from bursar.arrays import Reals
from bursar.core.queries import Mask, Product
from bursar.strategies.cells import MergedCells
from bursar.strategies.optimal import Remembered, integer_laplace, integer_optimum

NORM_BITS = 58
"""Largest norm of a product's column, as a power of two; the kernel's limit is two bits more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkloadFactor:
    """One factor of a product workload, with its strategy in whole numbers."""

    mask: Mask  # the strategy
    weights: Reals | None  # the workload's rows as combinations of the strategy's, W A^+; None where they are the same
    bound: float  # no strategy of sensitivity one has a smaller error (`rms_error`)

    @property
    def variances(self) -> Reals:
        """Of each row of the workload, at noise of variance one."""
        if self.weights is None:
            return np.ones(self.mask.rows)
        variances: Reals = np.square(self.weights).sum(axis=1)
        return variances


@dataclass(frozen=True, kw_only=True, eq=False)
class KroneckerStrategy:
    """A product of integer strategies, measured as one map with one noise."""

    factors: tuple[WorkloadFactor, ...]
    power: int  # 2 for Gaussian noise, 1 for Laplace

    @cached_property
    def product(self) -> Product:
        return Product(tuple(factor.mask for factor in self.factors))

    @cached_property
    def sensitivity(self) -> float:
        """How far one row can move the answers, in L2 or L1: from exact integer norms."""
        (norm,) = self.product.norms(self.power)
        return float(norm.largest()) if self.power == 1 else math.sqrt(norm.largest())

    @cached_property
    def variances(self) -> Reals:
        """Of each query of the workload, in the order of its product, at noise of variance one."""
        result = np.ones(1)
        for factor in self.factors:
            result = np.multiply.outer(result, factor.variances).ravel()
        return result

    @property
    def ratio(self) -> float:
        """At most how many times the error of the best strategy for Gaussian noise; 1 for a workload of zeros."""
        bound = math.prod(factor.bound for factor in self.factors)
        return self.sensitivity * math.sqrt(float(self.variances.sum())) / bound if bound > 0 else 1.0

    def estimate(self, values: ArrayLike) -> Reals:
        """The workload's answers from the measured ones, by least squares."""
        table = np.asarray(values, np.float64).reshape([factor.mask.rows for factor in self.factors])
        for axis, factor in enumerate(self.factors):
            if factor.weights is not None:
                table = np.moveaxis(np.tensordot(factor.weights, table, (1, axis)), 0, axis)
        return np.ascontiguousarray(table).reshape(-1)


Asked = Mask | tuple[MergedCells, Reals]


def kronecker(factors: Sequence[Asked], *, power: int = 2, gap: float = 1e-3, loss: float = 1e-4) -> KroneckerStrategy:
    """The product of each factor's optimum (power 2), or of its best strategy for Laplace noise (power 1).

    A factor is given as its merged cells and its rows over them; or as a mask whose rows share no cell, which is its
    own best strategy. `loss` is what rounding to whole numbers may cost in error where there is room for it: norms
    multiply, and many factors leave few bits to each.
    """
    sought = [factor for factor in factors if not isinstance(factor, Mask)]
    strategies = iter(_whole([queries.T @ queries for _, queries in sought], power, gap, loss))
    chosen = [_itself(factor) if isinstance(factor, Mask) else _factor(*factor, next(strategies)) for factor in factors]
    return KroneckerStrategy(factors=tuple(chosen), power=power)


def _itself(mask: Mask) -> WorkloadFactor:
    return WorkloadFactor(mask=mask, weights=None, bound=math.sqrt(mask.rows))


def _factor(cells: MergedCells, queries: Reals, strategy: Remembered) -> WorkloadFactor:
    weights = queries @ np.linalg.pinv(strategy.rows.astype(np.float64))
    return WorkloadFactor(mask=cells.mask(strategy.rows), weights=weights, bound=strategy.bound)


def _whole(grams: Sequence[Reals], power: int, gap: float, loss: float) -> list[Remembered]:
    """A strategy for each Gram matrix; coarser ones where the product of all norms would be too large."""
    made_of = integer_optimum if power == 2 else integer_laplace
    share = loss / max(len(grams), 1)
    whole = [made_of(V, gap=gap, loss=share) for V in grams]
    if sum(_bits(w, power) for w in whole) <= NORM_BITS:
        return whole
    room = NORM_BITS - sum(_bits(w, power) for w in whole if w.bits == 0)
    coarse = max(room // (power * sum(w.bits > 0 for w in whole)), 1)
    return [w if w.bits <= coarse else made_of(V, gap=gap, bits=coarse) for w, V in zip(whole, grams, strict=True)]


def _bits(whole: Remembered, power: int) -> int:
    columns = (np.abs(whole.rows) ** power).sum(axis=0)
    return max(int(columns.max(initial=0)), 1).bit_length()
