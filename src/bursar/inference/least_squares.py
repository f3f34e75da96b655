"""Reconstruction: what the rows in the log say together about the joint cells of some columns.

Cells that no measured row tells apart are merged, which loses nothing: a query that cuts through a merged cell is not
determined by the rows at all. Merged cells are a product of per-column classes and are split when new rows come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bursar.domain import Domain
from bursar.inference.estimate import Estimate, WeightedRows
from bursar.inference.gaussian_state import GaussianState
from bursar.kernel.accounting import Noise
from bursar.queries import LinearMap, Product, Stack

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

MERGED_CELLS = 2048
"""Most merged cells of one reconstruction."""

ROW_NUMBERS = 2**24
"""Most numbers that the rows of one reconstruction may take up; rows that come after that are left out."""


DUST = 1e-12
"""Weights below this share of a query's largest one are rounding, and are left out of estimate and error law alike."""


@dataclass(frozen=True, eq=False)
class Block:
    """One measurement as the reconstruction sees it."""

    product: Product
    values: Integers
    noise: Noise


@dataclass
class Reconstruction:
    """Everything known about the joint cells of `columns` from measurements on these columns or fewer.

    Coordinates are merged cells scaled to unit length (a cell of k original cells stands for their sum over sqrt k),
    which keeps splitting an isometry.
    """

    domain: Domain
    columns: tuple[str, ...]
    classes: dict[str, Integers] = field(init=False)  # per column: class of each of its cells
    rows: Reals = field(init=False)
    values: Reals = field(init=False)
    noises: list[Noise] = field(default_factory=list)
    state: GaussianState = field(init=False)

    def __post_init__(self) -> None:
        self.classes = {name: np.zeros(self.domain[name].size, np.int64) for name in self.columns}
        self.state = GaussianState.empty(np.array([float(self.domain.cells(self.columns))]))
        self.rows = np.zeros((0, 1))
        self.values = np.zeros(0)

    def add(self, block: Block) -> bool:
        """Take a measurement in; False where it would need too many cells or rows, and nothing changed."""
        finer = self._split_by(block.product)
        if finer is None:
            return False
        cells = math.prod(_count(c) for c in finer.values())
        if cells > MERGED_CELLS or (len(self.rows) + block.product.rows) * cells > ROW_NUMBERS:
            return False
        self._refine(finer)
        rows = self._coordinates(block.product)
        self.state.take(rows, block.values.astype(float), block.noise.variance())
        self.rows = np.concatenate([self.rows, rows])
        self.values = np.concatenate([self.values, block.values.astype(float)])
        self.noises += [block.noise] * len(rows)
        return True

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return 2 * self.state.covariance.nbytes + self.rows.nbytes

    def answer(self, queries: LinearMap) -> Estimate | None:
        """The best linear estimate of the queries, or None where the rows do not determine them."""
        weights = self.weights_of(queries)
        if weights is None:
            return None
        used = np.abs(weights).max(axis=0, initial=0) > 0
        noises = tuple(noise for noise, keep in zip(self.noises, used, strict=True) if keep)
        return Estimate(values=weights @ self.values, law=WeightedRows(weights=weights[:, used], noises=noises))

    def weights_of(self, queries: LinearMap) -> Reals | None:
        """How much each measured row counts in each query's estimate; None where the rows do not determine one."""
        parts = queries.parts if isinstance(queries, Stack) else (queries,)
        wanted: list[Reals] = [np.zeros((0, len(self.state.cells)))]
        for part in parts:
            if not isinstance(part, Product) or not self._constant(part):
                return None
            wanted.append(self._coordinates(part))
        matrix = np.concatenate(wanted)
        if not self.state.spans(matrix):
            return None
        precision = np.array([1 / noise.variance() for noise in self.noises])
        weights: Reals = (matrix @ self.state.covariance) @ self.rows.T * precision
        weights[np.abs(weights) < DUST * np.abs(weights).max(axis=1, keepdims=True, initial=0)] = 0.0
        return weights

    def _split_by(self, product: Product) -> dict[str, Integers] | None:
        """The classes after this product's rows are taken in; None where a column would need too many."""
        finer = dict(self.classes)
        for mask in product.masks:
            for name in mask.attrs:
                told_apart = mask.classes(name, MERGED_CELLS)
                if told_apart is None:
                    return None
                both = finer[name] * (int(told_apart.max()) + 1) + told_apart
                finer[name] = _numbered(both)
        return finer

    def _refine(self, finer: dict[str, Integers]) -> None:
        old = [self.classes[name] for name in self.columns]
        new = [finer[name] for name in self.columns]
        if all(_count(before) == _count(after) for before, after in zip(old, new, strict=True)):
            return  # a refinement into as many classes is the same partition; keep the old numbers
        parents = [before[_first(after)] for before, after in zip(old, new, strict=True)]
        shape = [_count(before) for before in old]
        parent = np.ravel_multi_index(np.ix_(*parents), shape).ravel() if parents else np.zeros(1, np.int64)
        kin = zip(old, new, parents, strict=True)
        shares = [np.bincount(after) / np.bincount(before)[parent_] for before, after, parent_ in kin]
        shrink = np.sqrt(_outer(shares))
        self.state = self.state.split(parent, shrink)
        self.rows = self.rows[:, parent] * shrink
        self.classes = finer

    def _constant(self, product: Product) -> bool:
        """Whether no row of the product cuts through a merged cell."""
        finer = self._split_by(product)
        return finer is not None and all(_count(finer[n]) == _count(self.classes[n]) for n in self.columns)

    def _coordinates(self, product: Product) -> Reals:
        """The rows of the product over the merged cells, scaled; constant on merged cells is assumed."""
        firsts = {name: _first(labels) for name, labels in self.classes.items()}
        result = np.ones((1,) * (1 + len(self.columns)))
        for mask in product.masks:
            values = mask.at(firsts).astype(float)
            shape = [1] * len(self.columns)
            order = np.argsort([self.columns.index(name) for name in mask.attrs])
            grid = values.reshape(len(values), *(len(firsts[name]) for name in mask.attrs))
            grid = np.transpose(grid, [0, *(1 + order)])
            for name in mask.attrs:
                shape[self.columns.index(name)] = len(firsts[name])
            grid = grid.reshape(len(values), *shape)
            result = (result[:, None] * grid[None]).reshape(-1, *np.broadcast_shapes(result.shape[1:], grid.shape[1:]))
        full = [len(firsts[name]) for name in self.columns]
        counts = _outer([np.bincount(self.classes[name]).astype(float) for name in self.columns])
        return np.broadcast_to(result, (len(result), *full)).reshape(len(result), len(counts)) * np.sqrt(counts)


def _count(classes: Integers) -> int:
    return int(classes.max(initial=0)) + 1


def _numbered(classes: Integers) -> Integers:
    """The same classes in the same order, numbered without gaps; in time that grows with the cells, not by sorting."""
    used = np.bincount(classes) > 0
    return (np.cumsum(used) - 1)[classes]


def _first(classes: Integers) -> Integers:
    """The first cell of each class."""
    first = np.empty(_count(classes), np.int64)
    first[classes[::-1]] = np.arange(len(classes))[::-1]  # where a class comes again, the last assignment stays
    return first


def _outer(vectors: Sequence[Reals]) -> Reals:
    result = np.ones(1)
    for vector in vectors:
        result = np.multiply.outer(result, vector).ravel()
    return result
