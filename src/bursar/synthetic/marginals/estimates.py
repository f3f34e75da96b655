"""Estimates from noisy marginals: consistent tables, linear queries over them, marginals derived from other rows.

A table over columns A is the sum over S <= A of parts, x_A = sum_S expand(z_S) / prod_{A - S} n_i, where z_S is what is
left of the table over S when along every column its mean is taken away, and expanding repeats it along the other
columns. Noise of one variance in all cells of a table is noise of one variance in each of its parts, independent from
part to part. So least squares over all measurements is, part by part, a mean weighted by precision: exact, without a
matrix, and never on more cells than one marginal has.

The parts z_S are independent, and each has the covariance P_S / p_S: P_S takes the mean along every column of S away,
p_S is the precision. So a query q . x_A has the variance sum_S |P_S q_S|^2 / (p_S prod_{A - S} n_i^2), where q_S is q
summed over the columns outside S. For a product of masks, |P_S q_S|^2 is a product over the masks.

Ranges, trees and groups under a condition may determine every joint cell of a few columns too, by least squares over
their rows. Errors of such cells depend on each other, so these marginals help to make a table, and each has a bound of
its own; they are not mixed with measured ones where the law of the mixture matters.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE
from bursar.core.queries import LinearMap, Mask, Product, Stack
from bursar.estimation.estimate import Estimate
from bursar.estimation.least_squares import Reconstruction
from bursar.synthetic.marginals.evidence import MOST_COLUMNS, LogEvidence, MarginalSource, Names, marginal_map
from bursar.views.measurements import Measurements

CACHED_CELLS = 2**17
"""Parts of at most so many cells are cached: many marginals share them."""


class MarginalAccuracy:
    """The variance of each marginal, given its sources; needs no values, so it also serves plans.

    `sized`: the number of rows is public.
    """

    def __init__(self, domain: Domain, sources: Iterable[MarginalSource], *, sized: bool) -> None:
        self.domain, self.sources, self.sized = domain, tuple(sources), sized
        self.precisions: dict[Names, float] = defaultdict(float)
        self.heavy = any(source.heavy for source in self.sources)
        self._sources_of: dict[Names, list[int]] = defaultdict(list)
        for number, source in enumerate(self.sources):
            for part in [source.columns] if source.residual else subsets(source.columns):
                if self._varies(part):
                    self._sources_of[part].append(number)
                    self.precisions[part] += self._precision(source, part)
        if sized:
            self.precisions[()] = math.inf

    def variance(self, columns: Names) -> float | None:
        """The variance of each cell of a marginal; None where some part of it was never measured.

        sum_{S <= A} var(z_S) prod_{i in S} (1 - 1/n_i) prod_{i in A - S} n_i^-2
        """
        total = 0.0
        for part in subsets(columns):
            if not self._varies(part):
                continue
            if part not in self.precisions:
                return None
            inside = math.prod(1 - 1 / self.domain[name].size for name in part)
            outside = math.prod(self.domain[name].size for name in columns if name not in part)
            total += inside / (self.precisions[part] * outside**2)
        return total

    def _varies(self, part: Names) -> bool:
        """A column of one value has no residual."""
        return all(self.domain[name].size > 1 for name in part)

    def _precision(self, source: MarginalSource, part: Names) -> float:
        if source.residual:  # H^T H = length (1 - J/n) for each column, as in strategies/residual.py
            sizes = self.domain.sizes(part)
            return math.prod(2.0 if size == 2 else float(size) ** 2 for size in sizes) / source.variance
        return 1 / (source.variance * self.domain.cells(name for name in source.columns if name not in part))


class Consistent(MarginalAccuracy):
    """Estimates of all marginals that the evidence determines; any two agree on the columns that they share.

    Guarantees: unbiased; every cell of a marginal has the variance that `variance` says, which no other unbiased linear
    estimator from this evidence undercuts. With a public `size`, every marginal sums to it.
    """

    def __init__(self, domain: Domain, evidence: Sequence[LogEvidence], *, size: int | None) -> None:
        super().__init__(domain, (measured.source for measured in evidence), sized=size is not None)
        self.size, self.evidence = size, tuple(evidence)
        self._parts: dict[Names, Reals] = {}

    def estimate(self, columns: Names) -> Reals | None:
        """The counts of a marginal, one axis per column; None where some part of it was never measured."""
        if self.variance(columns) is None:
            return None
        result = np.zeros(self.domain.sizes(columns))
        for part in subsets(columns):
            if self._varies(part):
                outside = self.domain.cells(name for name in columns if name not in part)
                shape = [self.domain[name].size if name in part else 1 for name in columns]
                result += self._part(part).reshape(shape) / outside
        return result

    def total(self) -> float:
        """The number of rows, public or estimated; at least 1."""
        return max(float(self._part(())), 1.0) if () in self.precisions else 1.0

    def _part(self, part: Names) -> Reals:
        if part in self._parts:
            return self._parts[part]
        if part == () and self.size is not None:
            return np.array(float(self.size))
        mean = np.zeros(self.domain.sizes(part))
        for number in self._sources_of[part]:
            measured = self.evidence[number]
            weight = self._precision(measured.source, part) / self.precisions[part]
            mean += self._projected(measured, part) * weight
        if mean.size <= CACHED_CELLS:
            self._parts[part] = mean
        return mean

    def _projected(self, measured: LogEvidence, part: Names) -> Reals:
        if measured.source.residual:
            return _lifted(measured.table, self.domain.sizes(part))
        outside = tuple(axis for axis, name in enumerate(measured.source.columns) if name not in part)
        return _centred(measured.table.sum(axis=outside, dtype=np.float64))


def _centred(table: Reals) -> Reals:
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def _lifted(rows: NDArray[np.int64], sizes: tuple[int, ...]) -> Reals:
    """What the measured rows of residuals, n e_i - 1 or (1, -1), say about the cells."""
    table = rows.astype(np.float64)
    for axis, size in enumerate(sizes):
        if size == 2:
            table = np.concatenate([table, -table], axis=axis) / 2
        else:
            table = (table - table.mean(axis=axis, keepdims=True)) / size
    return table


def subsets(columns: Names) -> list[Names]:
    """All sets of the columns, from the empty one on, in the order of the columns."""
    return [part for count in range(len(columns) + 1) for part in combinations(columns, count)]


RESOLUTION = 2**16
"""Maps take whole numbers: an estimate is given to them as a multiple of 1 / RESOLUTION rows."""

MOST_DENSE_ENTRIES = 2**24
"""Largest dense matrix that the rows of one mask are written out in."""

MOST_CELLS = 2**24
"""Most joint cells of a question that is answered from estimates of all of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalEstimate:
    """Unbiased estimates of a map's rows, the variance of each, and whether Laplace noise is in them.

    `rounding_error` bounds what rounding to multiples of 1 / RESOLUTION has moved an estimate by.
    """

    values: Reals
    variances: Reals
    heavy: bool
    rounding_error: float


def linear_estimate(queries: LinearMap, consistent: Consistent) -> MarginalEstimate | None:
    """Estimates of linear queries from measured marginals; None where some part of one was never measured.

    Edge cases: maps other than products and stacks of them have no estimate here, and too large ones have none.
    """
    estimates: list[MarginalEstimate] = []
    for part in queries.parts if isinstance(queries, Stack) else (queries,):
        estimate = _product(part, consistent) if isinstance(part, Product) else None
        if estimate is None:
            return None
        estimates.append(estimate)
    return MarginalEstimate(
        values=np.concatenate([estimate.values for estimate in estimates] or [np.zeros(0)]),
        variances=np.concatenate([estimate.variances for estimate in estimates] or [np.zeros(0)]),
        heavy=consistent.heavy,
        rounding_error=max((estimate.rounding_error for estimate in estimates), default=0.0),
    )


def _product(product: Product, consistent: Consistent) -> MarginalEstimate | None:
    domain = consistent.domain
    columns = domain.ordered(product.attrs)
    small = all(mask.rows * mask.steps.size <= MOST_DENSE_ENTRIES for mask in product.masks)
    if not small or domain.cells(columns) > MOST_CELLS:
        return None
    estimate = consistent.estimate(columns)
    if estimate is None:
        return None
    scaled = np.rint(estimate * RESOLUTION).astype(np.int64)
    values = product.apply(lambda names: scaled.transpose([columns.index(name) for name in names])) / RESOLUTION
    lengths = [_squared_norms(mask) for mask in product.masks]
    variances = np.zeros(product.rows)
    for part in subsets(columns):
        precision = consistent.precisions.get(part)
        if precision is None:  # a column of one value has no residual
            continue
        outside = float(domain.cells(name for name in columns if name not in part))
        norms = np.ones(1)
        for mask, squares in zip(product.masks, lengths, strict=True):
            norms = np.multiply.outer(norms, squares[frozenset(part) & frozenset(mask.attrs)]).ravel()
        variances += norms / (precision * outside**2)
    rounding_error = product.largest() * domain.cells(columns) / (2 * RESOLUTION)
    return MarginalEstimate(values=values, variances=variances, heavy=consistent.heavy, rounding_error=rounding_error)


def _squared_norms(mask: Mask) -> dict[frozenset[str], Reals]:
    """|P_T q_T|^2 of every row of a mask, for each set T of its columns."""
    cells = mask.steps.at_cells(np.arange(mask.steps.size)).astype(np.float64).reshape(mask.rows, *mask.sizes)
    squares: dict[frozenset[str], Reals] = {}
    for part in subsets(mask.attrs):
        outside = tuple(1 + axis for axis, name in enumerate(mask.attrs) if name not in part)
        table = cells.sum(axis=outside)
        for axis in range(1, table.ndim):
            table = table - table.mean(axis=axis, keepdims=True)
        squares[frozenset(part)] = np.square(table).reshape(mask.rows, -1).sum(axis=1)
    return squares


MOST_DERIVED_CELLS = 2048
"""Most joint cells of a marginal that is derived from other rows."""


class JointReconstructions(Protocol):
    """Least squares over all rows about some columns."""

    def on(self, names: Names) -> Reconstruction: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class DerivedMarginal:
    """A marginal that follows from other rows, with the law of its errors."""

    columns: Names
    map: Product
    estimate: Estimate

    def record(self, version: int) -> Record:
        """The marginal as if it had been measured: with one noise for all cells, as large as the mean of theirs."""
        scale = math.sqrt(self.estimate.law.mean_square())
        noise = Noise(kind=NoiseKind.GAUSSIAN, scale=min(max(scale, SMALLEST_SCALE), LARGEST_SCALE))
        return Record(
            position=0,
            at=0.0,
            analyst="",
            question="",
            proposer="",
            run=0,
            event=Measured(strategy=self.map, noise=noise, version=version),
            values=np.rint(self.estimate.values).astype(np.int64),
        )


def derive_marginals(
    domain: Domain, measurements: Measurements, reconstructions: JointReconstructions, accuracy: MarginalAccuracy
) -> Sequence[DerivedMarginal]:
    """Every column set in the log that measured marginals do not determine and other rows do, the smallest first."""
    derived = []
    for columns in sorted(measurements.blocks, key=lambda names: (len(names), names)):
        small = 0 < len(columns) <= MOST_COLUMNS and domain.cells(columns) <= MOST_DERIVED_CELLS
        if small and accuracy.variance(columns) is None:
            cells = marginal_map(domain, columns)
            estimate = reconstructions.on(columns).answered(cells)
            if estimate is not None:
                derived.append(DerivedMarginal(columns=columns, map=cells, estimate=estimate))
    return derived
