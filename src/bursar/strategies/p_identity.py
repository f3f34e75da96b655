"""Strategies for Laplace noise: every cell, and some extra queries (the p-identity family of McKenna et al., HDMM).

A = [I; T] diag(1 / s) with T >= 0 and s = 1 + column sums of T, so that every column has L1 norm one. Nodes of a tree
are a good start for T, if they may grow over their borders: overlapping nodes have a quarter less variance over ranges
than the tree. Where there are many cells, T is constant on blocks of neighbouring cells, and only the workload's sums
over pairs of blocks matter: the search then takes as long as that for the blocks, and loses about one per cent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bursar.arrays import Integers, Reals
from bursar.errors import QueryError
from bursar.strategies.hierarchical import identity, widths
from bursar.strategies.measure import checked_gram

CELLS_PER_QUERY = 16
"""How many cells there are for each extra query, unless told otherwise; and how many a node of the first level has."""

MOST_BLOCKS = 1024
"""Cells form blocks from here on."""

ENOUGH_BLOCKS = 256
"""Of a long column's cells, unless a block would have more of them than a node: more gain one per cent, and take long.
"""

RANDOM_STEPS, TREE_STEPS = 300, 100
"""Most steps of a search from numbers without a pattern, and from a tree."""

CONVERGED_WITHIN = 1e-4
"""A search from a tree ends once a step lessens the variance by no more than this share."""

FIRST_WEIGHT, FIRST_STEP = 0.3, 0.1
"""Of the nodes at the start of the search, and about how far the first step moves weights."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockGram:
    """A workload as far as queries that are constant on blocks of cells can tell."""

    gram: Reals  # the sum of V = W^T W over every pair of blocks
    diagonal: Reals  # the sum of diag V over every block
    sizes: Reals  # how many cells a block has

    @staticmethod
    def of(gram: Reals, width: int = 1) -> BlockGram:
        """Blocks of `width` cells side by side, the last of what is left."""
        starts = np.arange(0, len(gram), width)
        sums = np.add.reduceat(np.add.reduceat(gram, starts, axis=0), starts, axis=1) if width > 1 else gram
        diagonal = np.add.reduceat(gram.diagonal(), starts)
        return BlockGram(gram=sums, diagonal=diagonal, sizes=block_sizes(len(gram), width).astype(np.float64))

    def trace(self, T: Reals) -> tuple[float, Reals]:
        """tr(V (A^T A)^-1) and its gradient in T, which has one column per block.

        With Y = diag(s) V diag(s), N the sizes, G = (I + T^T T)^-1 = I - T^T M T over cells and M = (I + T N T^T)^-1,
        the trace is tr(Y G). Its gradient is -2 T G Y G through G, where T G = M T = R, and through s 2 / s_j times the
        sum of Y G over column j.
        """
        s = 1 + T.sum(axis=0)
        R = np.linalg.solve(np.eye(len(T)) + (T * self.sizes) @ T.T, T)
        RY = ((R * s) @ self.gram) * s
        columns = self.diagonal * np.square(s) - np.einsum("ij,ij->j", T, RY)
        gradient = 2 * columns / s - 2 * (RY - (RY @ T.T) @ (R * self.sizes))
        return float(columns.sum()), gradient

    def search(self, start: Reals, *, steps: int, within: float) -> Reals:
        """T >= 0 of locally least trace, found from a start."""
        from scipy.optimize import Bounds, minimize  # only here, and slow to import

        scale = float(self.diagonal.sum())
        unit = FIRST_STEP * math.sqrt(start.size)  # the first step of the search has length one

        def scaled(unknowns: Reals) -> tuple[float, Reals]:
            value, gradient = self.trace(unit * unknowns.reshape(start.shape))
            return value / scale, unit / scale * gradient.ravel()

        result = minimize(
            scaled,
            start.ravel() / unit,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(0.0, np.inf),
            options={"maxiter": steps, "ftol": within},
        )
        return np.asarray(unit * result.x).reshape(start.shape)


def block_sizes(cells: int, width: int) -> Integers:
    """How many cells each block has."""
    return np.diff(np.append(np.arange(0, cells, width), cells))


def block_width(cells: int, blocks: int = MOST_BLOCKS) -> int:
    """How many cells form a block: the least power of two that makes at most `blocks` of them."""
    width = 1
    while cells > blocks * width:
        width *= 2
    return width


def long_block_width(cells: int) -> int:
    """The same where time matters more than one per cent of the variance."""
    return max(min(block_width(cells, ENOUGH_BLOCKS), CELLS_PER_QUERY), block_width(cells))


def overlapping_nodes(blocks: BlockGram) -> Reals:
    """T over blocks: nodes of a tree of 16 cells each, 256, ... that have grown over their borders where it helps.

    Edge cases: without rows where there are too few cells for two nodes.
    """
    width = int(blocks.sizes[0])
    first = max(CELLS_PER_QUERY // width, 2)
    count = len(blocks.sizes)
    places = np.arange(count)
    levels = [first * node for node in widths(-(-count // first), CELLS_PER_QUERY)[1:]]
    nodes = [places // level == np.arange(-(-count // level))[:, None] for level in levels if level < count]
    if not nodes:
        return np.zeros((0, count))
    return blocks.search(FIRST_WEIGHT * np.concatenate(nodes), steps=TREE_STEPS, within=CONVERGED_WITHIN)


def with_identity(T: Reals, width: int, cells: int) -> Reals:
    """[I; T] diag(1 / s) over cells, from T over blocks."""
    over_cells = np.repeat(T, block_sizes(cells, width), axis=1)
    return np.asarray(np.concatenate([np.eye(cells), over_cells]) / (1 + over_cells.sum(axis=0)))


def p_identity(gram: ArrayLike, *, extra: int | None = None) -> Reals:
    """[I; T] diag(1 / s), T with `extra` rows, of locally least tr(V (A^T A)^-1), from a start without a pattern.

    Guarantees: every column has L1 norm one; the error is at most that of the identity.
    Edge cases: no extra query gives the identity.
    """
    V = checked_gram(gram)
    n = len(V)
    p = n // CELLS_PER_QUERY if extra is None else extra
    if p < 0:
        raise QueryError("the number of extra queries is not negative")
    if p == 0 or not V.any():
        return identity(n)
    blocks = BlockGram.of(V)
    T = blocks.search(_without_pattern(p, n), steps=RANDOM_STEPS, within=1e-9)
    return with_identity(T, 1, n) if blocks.trace(T)[0] <= np.trace(V) else identity(n)


def _without_pattern(p: int, n: int) -> Reals:
    """Numbers in [0, 1), the same every time: the fractional parts of i^2 times the golden ratio."""
    numbers = np.arange(1, p * n + 1, dtype=np.float64)
    return np.asarray(np.modf(np.square(numbers % 65521) * ((1 + np.sqrt(5)) / 2))[0]).reshape(p, n)
