"""Strategies for marginals in closed form, at any number of cells.

With P_S the projection on the functions that vary with every column of S and with no other, every marginal's Gram
matrix is a sum of multiples of the P_S, and so is A^T A = sum_S m_S P_S of Fourier, DataCube and Eigen-Design. Then all
columns have one norm: sensitivity^2 = sum_S m_S dim(S) / n.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bursar.papers.eigen_design.fourier import bmax
from bursar.strategies.universal import all_ranges

Reals = NDArray[np.float64]
Set = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Spaces:
    """All sets S of some columns, and what is known of their spaces."""

    sizes: tuple[int, ...]

    @cached_property
    def sets(self) -> list[Set]:
        columns = range(len(self.sizes))
        return [s for k in range(len(self.sizes) + 1) for s in itertools.combinations(columns, k)]

    @cached_property
    def dimensions(self) -> Reals:
        return np.array([math.prod(self.sizes[i] - 1 for i in s) for s in self.sets], np.float64)

    @property
    def cells(self) -> int:
        return math.prod(self.sizes)

    def marginals(self, wanted: Sequence[Set], *, unit_norm: bool = False) -> Reals:
        """The eigenvalue of the wanted marginals' Gram matrix on every space: cells that a count adds up, if S <= A."""
        added = [1 if unit_norm else math.prod(n for i, n in enumerate(self.sizes) if i not in a) for a in wanted]
        return np.array(
            [sum(x for a, x in zip(wanted, added, strict=True) if set(s) <= set(a)) for s in self.sets], float
        )

    def range_marginals(self, wanted: Sequence[Set]) -> Reals:
        """tr(V P_S) for all boxes on the margins, over the dimension of S."""
        traces = np.zeros(len(self.sets))
        for a in wanted:
            for number, s in enumerate(self.sets):
                if set(s) <= set(a):
                    traces[number] += math.prod(self._range_trace(n, i in s, i in a) for i, n in enumerate(self.sizes))
        return np.divide(traces, self.dimensions, out=np.zeros_like(traces), where=self.dimensions > 0)

    @staticmethod
    def _range_trace(size: int, varies: bool, asked: bool) -> float:
        if not asked:
            return float(size)
        V = all_ranges(size)
        mean = float(V.sum()) / size
        return float(np.trace(V)) - mean if varies else mean

    def bound(self, eigenvalues: Reals) -> float:
        """The singular value bound where the workload has these eigenvalues."""
        return float((self.dimensions * np.sqrt(eigenvalues)).sum()) / math.sqrt(self.cells)

    def strategies(self, wanted: Sequence[Set], eigenvalues: Reals) -> dict[str, Reals]:
        """The m_S of each strategy of the paper for these marginals, at sensitivity one; 0 where nothing is asked."""
        made = {
            "eigen": np.sqrt(eigenvalues),
            "fourier": (eigenvalues > 0).astype(np.float64),
            "datacube": self.marginals(bmax(self.sizes, wanted)),
        }
        return {name: m / (m @ self.dimensions / self.cells) for name, m in made.items()}

    def error(self, eigenvalues: Reals, strategy: Reals) -> float:
        """The error of a strategy of sensitivity one over a workload with these eigenvalues (or mean ones)."""
        asked = eigenvalues > 0
        return math.sqrt(float((self.dimensions * eigenvalues)[asked] @ (1 / strategy[asked])))

    def count_deviation(self, marginal: Set, strategy: Reals) -> float:
        """The standard deviation of one count of a marginal at noise one."""
        own = self.marginals([marginal])
        return self.error(own, strategy) / math.sqrt(math.prod(self.sizes[i] for i in marginal))

    def deviations(self, queries: Reals, strategy: Reals) -> Reals:
        """The same of any queries that the strategy answers, one per row."""
        table = queries.reshape(-1, *self.sizes)
        for axis, size in enumerate(self.sizes, start=1):
            table = np.moveaxis(np.tensordot(constant_first(size), table, (1, axis)), 0, axis)
        total = np.zeros(len(queries))
        for s, m in zip(self.sets, strategy, strict=True):
            if m > 0:
                inside = tuple(slice(1, None) if i in s else slice(0, 1) for i in range(len(self.sizes)))
                total += np.square(table[(slice(None), *inside)]).reshape(len(queries), -1).sum(axis=1) / m
        return np.sqrt(total)


def constant_first(size: int) -> Reals:
    """An orthonormal basis whose first row is constant."""
    waves = np.cos(np.pi * np.outer(np.arange(size), np.arange(size) + 0.5) / size)
    return np.asarray(waves / np.linalg.norm(waves, axis=1, keepdims=True))
