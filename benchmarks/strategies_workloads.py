"""The workloads and data that the benchmark of strategies draws: their seeds are the workload's, never the noise's."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import data_folder
from bursar.papers.eigen_design import workloads

Reals = NDArray[np.float64]
Edges = tuple[NDArray[np.int64], NDArray[np.int64]]
"""One row of lows and of highs per box, one number per column."""


def predicates(cells: int, rng: np.random.Generator) -> Reals:
    """2n predicates that hold in each cell with probability one half."""
    return rng.integers(0, 2, (2 * cells, cells)).astype(np.float64)


def random_ranges(sizes: Sequence[int], rng: np.random.Generator) -> Reals:
    """As many boxes as cells; in every column first the length, then the place, each equally likely."""
    count = math.prod(sizes)
    lengths = [rng.integers(1, size + 1, count) for size in sizes]
    lows = [rng.integers(0, size - length + 1) for size, length in zip(sizes, lengths, strict=True)]
    low, length = np.stack(lows, axis=1), np.stack(lengths, axis=1)
    return box_rows((low, low + length), sizes)


def random_sets(columns: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Half of all marginals with at least one column, chosen at random."""
    every = [s for k in range(1, columns + 1) for s in itertools.combinations(range(columns), k)]
    chosen = rng.choice(len(every), max(1, len(every) // 2), replace=False)
    return sorted(every[i] for i in chosen)


def some_boxes(sizes: Sequence[int], columns: Sequence[int], count: int, rng: np.random.Generator) -> Edges:
    """Queries drawn from all boxes over the given columns: two different edges in each, equally likely."""
    lows, highs = np.zeros((count, len(sizes)), np.int64), np.tile(np.array(sizes), (count, 1))
    for i in columns:
        edges = np.sort([rng.choice(sizes[i] + 1, 2, replace=False) for _ in range(count)], axis=1)
        lows[:, i], highs[:, i] = edges.T
    return lows, highs


def box_rows(edges: Edges, sizes: Sequence[int]) -> Reals:
    """Boxes [low, high) as rows over all cells."""
    rows = np.ones((len(edges[0]), 1))
    for i, size in enumerate(sizes):
        at = np.arange(size)
        inside = (edges[0][:, i, None] <= at) & (at < edges[1][:, i, None])
        rows = (rows[:, :, None] * inside[:, None, :]).reshape(len(rows), -1)
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


CENSUS, FINE_CENSUS = (8, 16, 16), (16, 32, 16)
"""Age, occupation and income of Table 1 in 2048 cells, and in 8192; the rows are generated."""

PEOPLE = 15_000_000

ADULT, FINE_ADULT = (8, 8, 16, 2), (32, 8, 16, 2)
"""Age, work class, education and income of Table 1 in 2048 cells, and in 8192."""

ADULTS = 32_561
WORK = 8  # values, of which the last stands for "?" and "Never-worked" together


def census(sizes: Sequence[int], rng: np.random.Generator) -> Reals:
    return counts(sizes, PEOPLE, rng)


def adult(sizes: Sequence[int], rng: np.random.Generator) -> tuple[Reals, str]:
    """The UCI file adult.data of $BURSAR_DATA in equal bins of age, 17 to 90; or a stand-in. And which it is."""
    folder = data_folder()
    if folder is None or not (folder / "adult" / "adult.data").is_file():
        return counts(sizes, ADULTS, rng), "stand-in"
    with (folder / "adult" / "adult.data").open() as file:
        rows = [[word.strip() for word in line] for line in csv.reader(file) if len(line) == 15]
    people = [row for row in rows if row[0].isdigit()]
    work = sorted({row[1] for row in people} - {"?", "Never-worked"})
    income = sorted({row[14] for row in people})
    places = (
        [(int(row[0]) - 17) * sizes[0] // 74 for row in people],
        [work.index(row[1]) if row[1] in work else WORK - 1 for row in people],
        [int(row[4]) - 1 for row in people],
        [income.index(row[14]) for row in people],
    )
    table = np.zeros(tuple(sizes))
    np.add.at(table, places, 1)
    return table.ravel(), "real"


def two_way(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    return workloads.ways(len(sizes), 2)
