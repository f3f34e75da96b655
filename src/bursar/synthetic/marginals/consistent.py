"""Consistent marginals: weighted least squares over every marginal that was measured.

A table over columns A is the sum over S <= A of parts, x_A = sum_S expand(z_S) / prod_{A - S} n_i, where z_S is what is
left of the table over S when along every column its mean is taken away, and expanding repeats it along the other
columns. Noise of one variance in all cells of a table is noise of one variance in each of its parts, independent from
part to part. So least squares over all measurements is, part by part, a mean weighted by precision: exact, without a
matrix, and never on more cells than one marginal has.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.core.domain import Domain
from bursar.synthetic.marginals.evidence import LogEvidence, MarginalSource, Names

KEPT_CELLS = 2**17
"""Parts of at most so many cells are kept: they are shared by many marginals."""


class MarginalAccuracy:
    """How well each marginal is known from given sources; needs no values, so it also judges plans.

    `sized`: the number of rows is public.
    """

    def __init__(self, domain: Domain, sources: Iterable[MarginalSource], *, sized: bool) -> None:
        self.domain, self.sources, self.sized = domain, tuple(sources), sized
        self.precisions: dict[Names, float] = defaultdict(float)
        self.heavy = any(source.heavy for source in self.sources)
        self._about: dict[Names, list[int]] = defaultdict(list)
        for number, source in enumerate(self.sources):
            for part in [source.columns] if source.residual else subsets(source.columns):
                if self._varies(part):
                    self._about[part].append(number)
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
        if source.residual:  # H^T H = length (1 - J/n) for each column, as in strategy.residual
            sizes = self.domain.sizes(part)
            return math.prod(2.0 if size == 2 else float(size) ** 2 for size in sizes) / source.variance
        return 1 / (source.variance * self.domain.cells(name for name in source.columns if name not in part))


class Consistent(MarginalAccuracy):
    """Estimates of all marginals that the evidence determines; any two agree on the columns that they share.

    Guarantees: unbiased; every cell of a marginal has the variance that `variance` says, which no other unbiased linear
    estimator from this evidence undercuts. With a public `size`, every marginal sums to it.
    """

    def __init__(self, domain: Domain, evidence: Sequence[LogEvidence], *, size: int | None) -> None:
        super().__init__(domain, (own.source for own in evidence), sized=size is not None)
        self.size, self.evidence = size, tuple(evidence)
        self._kept: dict[Names, Reals] = {}

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
        if part in self._kept:
            return self._kept[part]
        if part == () and self.size is not None:
            return np.array(float(self.size))
        mean = np.zeros(self.domain.sizes(part))
        for number in self._about[part]:
            own = self.evidence[number]
            mean += self._projected(own, part) * (self._precision(own.source, part) / self.precisions[part])
        if mean.size <= KEPT_CELLS:
            self._kept[part] = mean
        return mean

    def _projected(self, own: LogEvidence, part: Names) -> Reals:
        if own.source.residual:
            return _lifted(own.table, self.domain.sizes(part))
        gone = tuple(axis for axis, name in enumerate(own.source.columns) if name not in part)
        return _centred(own.table.sum(axis=gone, dtype=np.float64))


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
