"""The matrix mechanism on the whole decomposition tree (Li et al.; Def. 2.2 of CacheDP)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import scipy.linalg
import scipy.sparse

from bursar.arrays import Reals
from bursar.core.domain import Domain
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.papers.cachedp.range_tree import split
from bursar.views.nodes import Range

MOST_CELLS = 4096
"""Most joint cells of a tree: its Gram matrix is factorised."""


@dataclass(frozen=True, eq=False)
class FullTree:
    """All nodes of the tree over some columns: the second column's tree hangs from each leaf of the first's, and so on.

    Differs: nothing but its branching, two, is fixed by the papers; nodes are cut in halves.
    """

    domain: Domain
    columns: tuple[str, ...]

    @cached_property
    def map(self) -> LinearMap:
        parts = [self._level(place) for place in range(len(self.columns))]
        return parts[0] if len(parts) == 1 else Stack(tuple(parts))

    @cached_property
    def norm(self) -> int:
        """|A|_1, the number of nodes on the longest path."""
        return round(float(self.rows.sum(axis=0).max()))

    @cached_property
    def rows(self) -> scipy.sparse.csr_matrix:
        return scipy.sparse.vstack([_sparse(part) for part in _parts(self.map)]).tocsr()

    @cached_property
    def _factor(self) -> tuple[Reals, bool]:
        factor: tuple[Reals, bool] = scipy.linalg.cho_factor((self.rows.T @ self.rows).toarray())
        return factor

    def weights(self, queries: Reals) -> Reals:
        """W A+ for queries over the joint cells, A+ = (A^T A)^-1 A^T since the leaves are among the rows."""
        solved = scipy.linalg.cho_solve(self._factor, queries.T)
        return np.asarray((self.rows @ solved).T)

    def dense(self, queries: LinearMap) -> Reals:
        """Queries on the columns of the tree as rows over the joint cells, the last column running fastest."""
        tables = []
        for part in _parts(queries):
            cells = _sparse(part).toarray().reshape(part.rows, *self.domain.sizes(part.attrs))
            order = [1 + part.attrs.index(name) for name in self.columns]
            tables.append(np.transpose(cells, [0, *order]).reshape(part.rows, -1))
        return np.concatenate(tables)

    def _level(self, place: int) -> Product:
        masks = []
        for other, name in enumerate(self.columns):
            size = self.domain[name].size
            if other < place:
                steps = Steps.identity(size)
            elif other > place:
                steps = Steps.total(size)
            else:
                steps = Steps.ranges(*_nodes(size, leaves=place == len(self.columns) - 1), size)
            masks.append(Mask((name,), (size,), steps))
        return Product(tuple(masks))


@lru_cache(maxsize=64)
def full_tree(domain: Domain, columns: tuple[str, ...]) -> FullTree | None:
    """The tree over the columns in the domain's order; None where it is too large."""
    return FullTree(domain, columns) if domain.cells(columns) <= MOST_CELLS else None


def _parts(queries: LinearMap) -> tuple[Product, ...]:
    parts = queries.parts if isinstance(queries, Stack) else (queries,)
    products = tuple(part for part in parts if isinstance(part, Product))
    assert len(products) == len(parts)
    return products


def _sparse(product: Product) -> scipy.sparse.csr_matrix:
    result = scipy.sparse.csr_matrix(np.ones((1, 1)))
    for mask in product.masks:
        rows = scipy.sparse.csr_matrix(mask.steps.at_cells(np.arange(mask.steps.size)).astype(float))
        result = scipy.sparse.kron(result, rows, format="csr")
    return result


def _nodes(size: int, *, leaves: bool) -> tuple[list[int], list[int]]:
    """Lows and highs of the nodes, level by level; without the leaves where another column's trees begin there."""
    level: list[Range] = [(0, size)]
    nodes: list[Range] = []
    while level:
        nodes += [node for node in level if leaves or node[1] - node[0] > 1]
        level = [child for node in level for child in split(node, 2)]
    return [low for low, _ in nodes], [high for _, high in nodes]


def hopeless(row: Reals, scale: float, alpha: float, beta: float) -> bool:
    """Whether one query alone misses the goal for sure: Pr[|sum_j c_j X_j| >= alpha] >= Pr[|c_1 X_1| >= alpha].

    Adding an independent symmetric error to a symmetric unimodal one makes large values no rarer (Anderson).
    """
    largest = float(np.abs(row).max(initial=0.0))
    return largest > 0 and math.exp(-alpha / (largest * scale)) > beta
