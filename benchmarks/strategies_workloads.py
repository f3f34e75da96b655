"""The workloads and data that the benchmark of strategies draws: their seeds are the workload's, never the noise's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bursar.strategy import workloads

Reals = NDArray[np.float64]


def predicates(cells: int, rng: np.random.Generator) -> Reals:
    """2n predicates that hold in each cell with probability one half."""
    return rng.integers(0, 2, (2 * cells, cells)).astype(np.float64)


def random_ranges(sizes: Sequence[int], rng: np.random.Generator) -> Reals:
    """As many boxes as cells; in every column first the length, then the place, each equally likely."""
    count = math.prod(sizes)
    rows = np.ones((count, 1))
    for size in sizes:
        length = rng.integers(1, size + 1, count)
        low = rng.integers(0, size - length + 1)
        inside = (low[:, None] <= np.arange(size)) & (np.arange(size) < (low + length)[:, None])
        rows = (rows[:, :, None] * inside[:, None, :]).reshape(count, -1)
    return rows


def random_sets(columns: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Half of all marginals with at least one column, chosen at random."""
    every = [s for k in range(1, columns + 1) for s in itertools.combinations(range(columns), k)]
    chosen = rng.choice(len(every), max(1, len(every) // 2), replace=False)
    return sorted(every[i] for i in chosen)


def some_boxes(sizes: Sequence[int], columns: Sequence[int], count: int, rng: np.random.Generator) -> Reals:
    """Queries drawn from all boxes over the given columns: two different edges in each, equally likely."""
    rows = np.ones((count, 1))
    for i, size in enumerate(sizes):
        edges = np.array([rng.choice(size + 1, 2, replace=False) for _ in range(count)])
        low, high = edges.min(axis=1)[:, None], edges.max(axis=1)[:, None]
        inside = (low <= np.arange(size)) & (np.arange(size) < high) if i in columns else np.ones((count, size), bool)
        rows = (rows[:, :, None] * inside[:, None, :]).reshape(count, -1)
    return rows


def counts(sizes: Sequence[int], people: int, rng: np.random.Generator) -> Reals:
    """A generated table: one skewed law per column, mixed over four kinds of people."""
    mixture = np.zeros(math.prod(sizes))
    for weight in (0.4, 0.3, 0.2, 0.1):
        part = np.ones(1)
        for size in sizes:
            part = np.outer(part, rng.dirichlet(np.full(size, 0.6))).ravel()
        mixture += weight * part
    return rng.multinomial(people, mixture).astype(np.float64)


CENSUS = ((8, 16, 16), 15_000_000)
ADULT = ((8, 8, 16, 2), 33_000)
"""Sizes and numbers of rows of Table 1; the rows here are generated."""


def two_way(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    return workloads.ways(len(sizes), 2)
