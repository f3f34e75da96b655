"""Trees of sums: the total, its parts, their parts, down to single cells.

A tree over n cells with branching k is the balanced one over k^L >= n cells, cut off after cell n; so every level
asks for every cell exactly once, and all columns have the same norm.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bursar.arrays import Reals
from bursar.errors import QueryError
from bursar.strategies.measure import checked_gram, checked_size

MOST_STEPS = 500
CONVERGED_BELOW = 1e-9


def hierarchical(*sizes: int, branching: int = 2) -> Reals:
    """The tree of Hay et al., one row per node; over several columns the product of their trees."""
    return product(*(weighted_levels(size, np.ones(len(widths(size, branching))), branching) for size in sizes))


def widths(size: int, branching: int = 2) -> list[int]:
    """How many cells a node of each level has, from the root k^L down to 1."""
    if branching < 2:
        raise QueryError("a node of a tree has at least two children")
    levels = [1]
    while levels[0] < size:
        levels.insert(0, levels[0] * branching)
    return levels


def weighted_levels(size: int, weights: Sequence[float] | Reals, branching: int = 2) -> Reals:
    """The tree with all rows of a level times the level's weight; levels of weight zero are left out."""
    cells = np.arange(checked_size(size))
    levels = widths(size, branching)
    if len(weights) != len(levels):
        raise QueryError(f"this tree has {len(levels)} levels")
    rows = [
        weight * (cells // width == np.arange(-(-size // width))[:, None])
        for weight, width in zip(weights, levels, strict=True)
        if weight > 0
    ]
    return np.concatenate(rows) if rows else np.zeros((0, size))


def tree(gram: ArrayLike, *, branching: int = 2, power: int = 2) -> Reals:
    """The tree whose level weights suit the workload best, of L2 (power 2) or L1 (power 1) sensitivity one."""
    V = checked_gram(gram)
    return weighted_levels(len(V), level_weights(V, branching=branching, power=power), branching)


def best_tree(gram: ArrayLike, *, branchings: Sequence[int], power: int = 2) -> Reals:
    """The best of the trees of these branchings, as if each level were full: to about a thousandth the best of them."""
    V = checked_gram(gram)
    trees = [(_weighed(V, branching, power), branching) for branching in branchings]
    (weights, _), branching = min(trees, key=lambda tree: tree[0][1])
    return weighted_levels(len(V), weights, branching)


def level_weights(gram: ArrayLike, *, branching: int = 2, power: int = 2) -> Reals:
    """Weights l, sum l^power = 1, of least tr(V (A^T A)^-1) over the balanced tree.

    All A^T A of such trees share eigenspaces: the functions that are constant on the nodes of a level and sum to zero
    in each parent. With e_i the part of tr V in space i and s_m the width of level m, the trace is
    sum_i e_i / mu_i, mu_i = sum over levels m >= i of l_m^2 s_m. Minimised by w <- w sqrt(-gradient / load), w = l^2,
    which lowers the trace at each step: for power 2 to the least, for power 1 (where the constraint sum sqrt(w) <= 1
    is replaced by its tangent, which is stricter) to a stationary point.
    Edge cases: an all-zero workload gives equal weights.
    """
    return _weighed(checked_gram(gram), branching, power)[0]


def _weighed(V: Reals, branching: int, power: int) -> tuple[Reals, float]:
    """The weights of the levels, and the trace."""
    levels = widths(len(V), branching)
    energies = _energies(V, branching)
    size = np.array(levels, np.float64)
    w = np.full(len(levels), 1.0 / len(levels) ** (2 / power))
    if not V.any():
        return np.sqrt(w), 0.0
    for _ in range(MOST_STEPS):
        mu = np.cumsum((w * size)[::-1])[::-1]
        gain = size * np.cumsum(energies / np.square(np.maximum(mu, np.finfo(float).tiny)))
        load = np.ones_like(w) if power == 2 else 1 / np.sqrt(np.maximum(w, 1e-30))
        step = w * np.sqrt(gain / load)
        step /= (step ** (power / 2)).sum() ** (2 / power)
        moved = np.abs(step - w).max()
        w = step
        if moved < CONVERGED_BELOW:
            break
    mu = np.cumsum((w * size)[::-1])[::-1]
    return np.sqrt(np.where(w > 1e-20, w, 0.0)), float((energies / np.maximum(mu, np.finfo(float).tiny)).sum())


def _energies(V: Reals, branching: int) -> Reals:
    """The part of tr V in the functions that are constant on a level's nodes and not on the level above's."""
    block, shares, width = V, [float(np.trace(V))], 1
    while width < len(V):
        starts = np.arange(0, len(block), branching)
        block = np.add.reduceat(np.add.reduceat(block, starts, axis=0), starts, axis=1)
        width *= branching
        shares.insert(0, float(np.trace(block)) / width)
    return np.maximum(np.diff(shares, prepend=0.0), 0.0)


def identity(size: int) -> Reals:
    """Ask for every cell."""
    return np.eye(checked_size(size))


def total(size: int) -> Reals:
    """Ask for the sum of all cells only: for workloads that ask for nothing else."""
    return np.ones((1, checked_size(size)))


def product(*strategies: Reals) -> Reals:
    """One strategy per column, every row times every row: a strategy over the joint cells, last column fastest.

    Guarantees: both sensitivities are the products of the factors'.
    """
    joint = np.ones((1, 1))
    for strategy in strategies:
        joint = np.asarray(np.kron(joint, strategy), np.float64)
    return joint
