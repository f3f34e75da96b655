"""One strategy for every question about some columns: what is bought once renting has become too dear.

Per column: all ranges where the column is ordered and long, any set of values otherwise; over several columns the
products of these. The strategy is the product of one strategy per column, and the worst question of the family is the
product of each column's worst: variances multiply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Mode
from bursar.core.domain import Domain
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.errors import QueryError
from bursar.strategies.hierarchical import product
from bursar.strategies.integers import to_integers
from bursar.strategies.measure import checked_size
from bursar.strategies.optimal import FEW_CELLS, integer_laplace, integer_optimum
from bursar.strategies.p_identity import BlockGram, long_block_width, overlapping_nodes, with_identity
from bursar.threads import one_thread

MOST_CELLS = 2048
"""Most joint cells of a universal strategy: what one reconstruction holds."""

MOST_SOUGHT = 64
"""Longest column for which extra queries are sought freely with Laplace noise: the search grows with the cube. Those of
longer ones begin as the nodes of a tree."""

NEAR_WORST, MOST_WORST = 0.5, 16
"""Beside a known total, questions of this share of the largest variance may be the worst; so many of them are tried."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OneColumn:
    """The strategy for one column: its rows, how cells follow from them, and the worst question's weights on them."""

    mask: Mask
    inverse: Reals | None  # (cells, rows), A^+; None where rows and cells are the same
    worst: Reals

    def weighed(self, queries: Reals) -> Reals:
        """Queries over the cells (on the last axis) as weights on the rows."""
        return queries if self.inverse is None else queries @ self.inverse

    @cached_property
    def parts(self) -> ColumnParts:
        """What a question may ask of the column, as far as it can be the worst beside a known total."""
        size = self.mask.sizes[0]
        if self.inverse is None:  # any set of values: how many there are is all that matters
            highs = np.arange(1, size + 1)
            return ColumnParts(size, np.zeros_like(highs), highs, highs.astype(float), highs / size)
        covariance = self.inverse @ self.inverse.T
        corner = np.pad(covariance.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
        lows, highs = np.triu_indices(size + 1, 1)
        spread = corner.diagonal()[highs] + corner.diagonal()[lows] - 2 * corner[lows, highs]
        shared = np.square(corner[-1][highs] - corner[-1][lows]) / (spread * corner[-1, -1])
        best = _frontier(spread, shared)
        return ColumnParts(size, lows[best], highs[best], spread[best], np.minimum(shared[best], 1.0))


@dataclass(frozen=True, eq=False)
class ColumnParts:
    """Ranges of a column, with their variances and how much of each the column's total explains."""

    size: int
    lows: Integers
    highs: Integers
    spread: Reals
    shared: Reals

    def queries(self, picked: Integers) -> Reals:
        cells = np.arange(self.size)
        inside = (self.lows[picked][:, None] <= cells) & (cells < self.highs[picked][:, None])
        return inside.astype(np.float64)


def _frontier(spread: Reals, shared: Reals) -> Integers:
    """Which entries no other one has both a larger spread and a smaller share than."""
    order = np.lexsort((shared, -spread))
    least = np.minimum.accumulate(np.append(np.inf, shared[order]))[:-1]
    return order[shared[order] < least]


@dataclass(frozen=True, kw_only=True, eq=False)
class Universal:
    """A strategy that determines every cell of some columns together."""

    columns: tuple[OneColumn, ...]
    mode: Mode

    @cached_property
    def product(self) -> Product:
        return Product(tuple(column.mask for column in self.columns))

    @property
    def ranges(self) -> bool:
        """Whether it is for the ranges of one column."""
        return len(self.columns) == 1 and self.columns[0].inverse is not None

    @cached_property
    def sensitivity(self) -> float:
        """How far one person can move the answers, in L1 (pure) or L2 (concentrated): from exact integer norms."""
        (norm,) = self.product.norms(1 if self.mode is Mode.PURE else 2)
        return float(norm.largest()) if self.mode is Mode.PURE else math.sqrt(norm.largest())

    @cached_property
    def worst(self) -> Reals:
        """How the family's worst question weighs the measured rows."""
        result = np.ones(1)
        for column in self.columns:
            result = np.multiply.outer(result, column.worst).ravel()
        return result

    def beside_total(self, weights: Reals) -> tuple[Reals, Reals]:
        """The weights on the rows and on the total, where the number of rows is known exactly.

        With x the cells as the rows give them and C their covariance, w.x + b (total - 1.x) has the least variance for
        b = w C 1 / 1 C 1. As A^+ A^+T = C, both are products of weights on the rows.
        """
        everybody = self._weights(Product(()))[0]
        share = weights @ everybody / float(everybody @ everybody)
        return weights - np.multiply.outer(share, everybody), np.asarray(share)

    @cached_property
    def worst_beside_total(self) -> Reals:
        """Questions of the family, as weights on the rows, of which one is about the worst where the total is known.

        Each column's part of a question has a variance s and a covariance t with the column's total, whose variance is
        v. Variances and covariances multiply, so the question has the variance prod s (1 - prod r), r = t^2/(s v): the
        largest is among products of parts that no other has a larger s and a smaller r than. Noise that is not normal
        makes some question near the largest variance the worst.
        Edge cases: none where the total tells everything.
        """
        spread, shared, picked = np.ones(1), np.ones(1), np.zeros((1, 0), np.int64)
        parts = [column.parts for column in self.columns]
        for part in parts:
            spread = np.multiply.outer(spread, part.spread).ravel()
            shared = np.multiply.outer(shared, part.shared).ravel()
            before, here = np.divmod(np.arange(len(spread)), len(part.spread))
            picked = np.column_stack([picked[before], here])
            best = _frontier(spread, shared)
            spread, shared, picked = spread[best], shared[best], picked[best]
        variances = spread * (1 - shared)
        order = np.argsort(-variances, kind="stable")
        near = order[variances[order] > NEAR_WORST * variances.max()]
        chosen = near[np.unique(np.linspace(0, len(near) - 1, MOST_WORST).astype(np.int64))] if len(near) else near
        rows = [np.ones((len(chosen), 1))]
        for column, part, part_rows in zip(self.columns, parts, picked[chosen].T, strict=True):
            own_rows = column.weighed(part.queries(part_rows))
            rows.append((rows[-1][:, :, None] * own_rows[:, None, :]).reshape(len(chosen), -1))
        return self.beside_total(rows[-1])[0]

    def weights(self, queries: LinearMap) -> Reals:
        """How least squares weighs the measured rows for each query; every query on these columns is determined."""
        parts = queries.parts if isinstance(queries, Stack) else (queries,)
        return np.concatenate([self._weights(part) for part in parts])

    def _weights(self, part: LinearMap) -> Reals:
        if not isinstance(part, Product):
            raise QueryError("only products of masks are weighed")
        grid = _over(part, self.product.attrs, [column.mask.sizes[0] for column in self.columns])
        for axis, column in enumerate(self.columns, start=1):
            grid = np.moveaxis(column.weighed(np.moveaxis(grid, axis, -1)), -1, axis)
        return np.ascontiguousarray(grid).reshape(part.rows, -1)


@one_thread()
def universal(domain: Domain, columns: Sequence[str], mode: Mode) -> Universal | None:
    """The strategy for all questions about the columns; None where they have too many joint cells."""
    names = domain.ordered(columns)
    if not names or domain.cells(names) > MOST_CELLS:
        return None
    chosen = [_one(name, domain[name].size, domain[name].ordered, mode) for name in names]
    return Universal(columns=tuple(chosen), mode=mode)


def _one(name: str, size: int, ordered: bool, mode: Mode) -> OneColumn:
    if not ordered or size <= FEW_CELLS:
        mask = Mask((name,), (size,), Steps.identity(size))
        return OneColumn(mask=mask, inverse=None, worst=np.ones(size))
    V = all_ranges(size)
    if mode is not Mode.PURE:
        rows = integer_optimum(V, gap=1e-3).rows
    elif size <= MOST_SOUGHT:
        rows = integer_laplace(V, gap=1e-3).rows
    else:
        width = long_block_width(size)
        nodes = overlapping_nodes(BlockGram.of(V, width))
        rows = to_integers(with_identity(nodes, width, size), V, power=1).rows
    A = rows.astype(np.float64)
    covariance: Reals = np.asarray(np.linalg.inv(A.T @ A), np.float64)
    low, high = _worst_range(covariance)
    inverse = covariance @ A.T
    mask = Mask((name,), (size,), Steps.dense(rows))
    return OneColumn(mask=mask, inverse=inverse, worst=inverse[low:high].sum(axis=0))


def _worst_range(covariance: Reals) -> tuple[int, int]:
    """The range [low, high) of largest variance, by sums of the covariance over all boxes that begin at the corner."""
    corner = np.pad(covariance.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    diagonal = corner.diagonal()
    low, high = np.unravel_index(int(np.argmax(diagonal[:, None] + diagonal[None, :] - 2 * corner)), corner.shape)
    return int(min(low, high)), int(max(low, high))


def _over(part: Product, names: Sequence[str], sizes: Sequence[int]) -> Reals:
    """The rows of a product written out over the joint cells of more columns: (rows, cells of each column...)."""
    result = np.ones((1,) * (1 + len(names)))
    for mask in part.masks:
        places = [names.index(name) for name in mask.attrs]
        values = mask.steps.at_cells(np.arange(mask.steps.size)).astype(np.float64).reshape(mask.rows, *mask.sizes)
        order = np.argsort(places)
        shape = [1] * len(names)
        for place in places:
            shape[place] = sizes[place]
        values = np.transpose(values, [0, *(1 + order)]).reshape(mask.rows, *shape)
        result = result[:, None] * values[None]
        result = result.reshape(-1, *result.shape[2:])
    return np.broadcast_to(result, (part.rows, *sizes))


def all_ranges(*sizes: int, unit_norm: bool = False) -> Reals:
    """All ranges, or all boxes over several columns: a product of one matrix per column.

    V_ij = (min(i, j) + 1) (n - max(i, j)) in one dimension.
    """
    checked_size(math.prod(sizes))
    return product(*(unit_ranges_gram(size) if unit_norm else ranges_gram(size) for size in sizes))


def ranges_gram(size: int) -> Reals:
    """The Gram matrix of all ranges: how many of them hold both cells."""
    cells = np.arange(size)
    return np.asarray((np.minimum.outer(cells, cells) + 1.0) * (size - np.maximum.outer(cells, cells)))


def unit_ranges_gram(size: int) -> Reals:
    """Each range counts 1 / its length: a double sum over where it starts and where it ends."""
    cells: NDArray[np.int64] = np.arange(size)
    length = cells[None, :] - cells[:, None] + 1.0
    starts = np.cumsum(np.where(length > 0, 1.0 / np.maximum(length, 1.0), 0.0), axis=0)
    both = np.cumsum(starts[:, ::-1], axis=1)[:, ::-1]  # sum over starts <= i and ends >= j
    return np.asarray(both[np.minimum.outer(cells, cells), np.maximum.outer(cells, cells)])
