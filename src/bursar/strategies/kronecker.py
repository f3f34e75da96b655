"""Products of workloads: the product of the factors' strategies is the strategy of the product.

For V = V_1 x ... x V_d and X = X_1 x ... x X_d, tr(V X^-1) and the largest diagonal element are products, and so is the
dual bound of `optimal`: with Gaussian noise the product of the factors' optima is optimal, up to the factors' gaps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from bursar.arrays import Integers, Reals
from bursar.core.queries import Mask, Product
from bursar.strategies import low_rank
from bursar.strategies.cells import MergedCells
from bursar.strategies.largest_error import error_at, integer_largest_error, least_error
from bursar.strategies.measure import weights_on
from bursar.strategies.optimal import GAP_OF_MANY, MANY_CELLS, Remembered, integer_laplace, integer_optimum
from bursar.strategies.ranges import LONG_COLUMN, RangeFamily, least_variance, prefix_matrix

NORM_BITS = 58
"""Largest norm of a product's column, as a power of two; the kernel's limit is two bits more."""

MOST_WRITTEN_OUT = 2048
"""Most cells of a long column whose sines are written out as a matrix."""

ROUNDING_OF_WEIGHTS = 1e-13
"""Weights below this share of the largest are zeros that rounding has moved."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkloadFactor:
    """One factor of a product workload, with its strategy in whole numbers."""

    mask: Mask  # the strategy
    weights: Reals | None  # the workload's rows as combinations of the strategy's, W A^+; None where they are the same
    bound: float  # no strategy of sensitivity one has a smaller error (`rms_error`), queries counted by importance
    importance: Reals  # ones; or weights of sum one, where the largest error is to be small

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
    beta: float | None = None  # the chance but for which the largest error was to be small; None for the total

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
        return _outer([factor.variances for factor in self.factors])

    @property
    def weights(self) -> Reals:
        """The workload's queries as combinations of the measured rows."""
        result: Reals = np.ones((1, 1))
        for factor in self.factors:
            weights = np.eye(factor.mask.rows) if factor.weights is None else factor.weights
            result = np.asarray(np.kron(result, weights), np.float64)
        return result

    @property
    def ratio(self) -> float:
        """At most how many times the error of the best strategy for Gaussian noise; 1 for a workload of zeros.

        The bounds of factors multiply, as their weights do: also where the error is the largest one.
        """
        bound = math.prod(factor.bound for factor in self.factors)
        if bound == 0:
            return 1.0
        if self.beta is None:
            return self.sensitivity * math.sqrt(float(self.variances.sum())) / bound
        least = least_error(_outer([factor.importance for factor in self.factors]), bound**2, self.beta)
        return self.sensitivity * error_at(self.variances, self.beta) / least

    def estimate(self, values: ArrayLike) -> Reals:
        """The workload's answers from the measured ones, by least squares."""
        table = np.asarray(values, np.float64).reshape([factor.mask.rows for factor in self.factors])
        for axis, factor in enumerate(self.factors):
            if factor.weights is not None:
                table = np.moveaxis(np.tensordot(factor.weights, table, (1, axis)), 0, axis)
        return np.ascontiguousarray(table).reshape(-1)


Asked = Mask | tuple[MergedCells, Reals]


def kronecker(
    factors: Sequence[Asked], *, power: int = 2, gap: float = 1e-3, loss: float = 1e-4, beta: float | None = None
) -> KroneckerStrategy:
    """The product of each factor's optimum (power 2), or of its best strategy for Laplace noise (power 1).

    A factor is given as its merged cells and its rows over them; or as a mask whose rows share no cell, which is its
    own best strategy. `loss` is what rounding to whole numbers may cost in error where there is room for it: norms
    multiply, and many factors leave few bits to each. With `beta`, which needs power 2, the largest error but for that
    chance is to be small, not the total: every row of a factor is asked once for each combination of the others' rows.
    Then one factor of running totals over 512 cells or more gets sines, which are within 1 % of rho of the best.
    """
    all_rows = math.prod(factor.rows if isinstance(factor, Mask) else len(factor[1]) for factor in factors)
    sought = [factor[1] for factor in factors if not isinstance(factor, Mask)]
    if beta is not None and len(sought) == 1 and (totals := _running_totals(sought[0])) is not None:
        by_sines = [_itself(f, True) if isinstance(f, Mask) else _by_sines(*f, totals) for f in factors]
        return KroneckerStrategy(factors=tuple(by_sines), power=power, beta=beta)
    finders = [
        _finder(queries, power, gap, None if beta is None else beta * len(queries) / all_rows) for queries in sought
    ]
    strategies = iter(_whole(finders, power, loss))
    chosen = [
        _itself(factor, beta is not None) if isinstance(factor, Mask) else _factor(*factor, next(strategies))
        for factor in factors
    ]
    return KroneckerStrategy(factors=tuple(chosen), power=power, beta=beta)


def _outer(vectors: Sequence[Reals]) -> Reals:
    result = np.ones(1)
    for vector in vectors:
        result = np.multiply.outer(result, vector).ravel()
    return result


def _itself(mask: Mask, of_sum_one: bool) -> WorkloadFactor:
    share = 1 / mask.rows if of_sum_one else 1.0
    bound = math.sqrt(mask.rows * share)
    return WorkloadFactor(mask=mask, weights=None, bound=bound, importance=np.full(mask.rows, share))


def _factor(cells: MergedCells, queries: Reals, strategy: Remembered) -> WorkloadFactor:
    weights = weights_on(strategy.rows.astype(np.float64), queries)
    weights[np.abs(weights) < ROUNDING_OF_WEIGHTS * np.abs(weights).max(initial=0.0)] = 0.0
    importance = np.ones(len(queries)) if strategy.weights is None else strategy.weights
    return WorkloadFactor(mask=cells.mask(strategy.rows), weights=weights, bound=strategy.bound, importance=importance)


def _running_totals(queries: Reals) -> Integers | None:
    """Up to which cell each row goes where all are running totals of a long column, in one multiple; else None.

    Edge cases: None where a row is empty.
    """
    cells, level = queries.shape[1], float(queries[0, 0])
    if not LONG_COLUMN <= cells <= MOST_WRITTEN_OUT or level <= 0:
        return None
    ends = np.count_nonzero(queries, axis=1)
    totals = np.where(np.arange(cells) < ends[:, None], level, 0.0)
    return ends if ends.min() > 0 and np.array_equal(totals, queries) else None


def _by_sines(cells: MergedCells, queries: Reals, ends: Integers) -> WorkloadFactor:
    """Running totals by sines: next to the best for their largest error, and known at once.

    The bound is that of the mean square with one row for each end.
    """
    n, level = queries.shape[1], float(queries[0, 0])
    rows = prefix_matrix(n)
    importance = np.zeros(len(queries))
    importance[np.unique(ends, return_index=True)[1]] = 1 / n
    return WorkloadFactor(
        mask=cells.mask(rows),
        weights=level * np.cumsum(np.linalg.inv(rows), axis=0)[ends - 1],
        bound=level * math.sqrt(least_variance(RangeFamily.PREFIXES, n) / n),
        importance=importance,
    )


class Finder(Protocol):
    """The strategy for a factor, in whole numbers: on a grid of at most 2^bits where bits are given."""

    def __call__(self, *, bits: int | None = None, loss: float = 1e-4) -> Remembered: ...


def _finder(queries: Reals, power: int, gap: float, beta: float | None) -> Finder:
    if queries.shape[1] > MANY_CELLS:
        gap = max(gap, GAP_OF_MANY)
    if beta is not None:
        return partial(integer_largest_error, queries, beta=beta)
    if power == 1 and low_rank.applies(queries):
        return partial(low_rank.integer_low_rank, queries, gap=gap)
    return partial(integer_optimum if power == 2 else integer_laplace, queries.T @ queries, gap=gap)


def _whole(finders: Sequence[Finder], power: int, loss: float) -> list[Remembered]:
    """A strategy for each factor; coarser ones where the product of all norms would be too large."""
    share = loss / max(len(finders), 1)
    whole = [find(loss=share) for find in finders]
    if sum(_bits(w, power) for w in whole) <= NORM_BITS:
        return whole
    room = NORM_BITS - sum(_bits(w, power) for w in whole if w.bits == 0)
    coarse = max(room // (power * sum(w.bits > 0 for w in whole)), 1)
    return [w if w.bits <= coarse else find(bits=coarse) for w, find in zip(whole, finders, strict=True)]


def _bits(whole: Remembered, power: int) -> int:
    columns = (np.abs(whole.rows) ** power).sum(axis=0)
    return max(int(columns.max(initial=0)), 1).bit_length()
