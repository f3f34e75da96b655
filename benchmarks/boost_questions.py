"""What is asked in Boost's evaluation (section 5.1): pools of counting queries, drawn by Zipf's law, over windows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product as combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.boost_data import CITIBIKE_COLUMNS, COVID_COLUMNS, Blocks

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]
Selector = Integers | tuple[int | slice, ...]
"""The bins of a query: an index of the histogram over the domain, flat or with one axis per column."""

FEW_CELLS = 4096
"""Up to this many cells a query is listed cell by cell."""

PER_BLOCK = 6_000
"""Questions that are asked before the next block of a stream arrives."""

TEMPLATES = (
    "gender; usertype; usertype,gender; ; age; start; end; hour; start,end; gender,age; duration; duration,age; "
    "duration,gender; duration,gender,age; duration,usertype; start,age; end,age; usertype,age; weekday; "
    "weekday,duration; hour,duration; weekday,hour; usertype,gender,age; hour,start; hour,end; weekday,start; "
    "weekday,end; weekday,start,end; hour,start,end; age,start,end"
)
"""The 30 analyses of CitiBike, each a GROUP BY of these columns; together they have 2,485 cells."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """Counting queries: for each column, the set of values that count, bit i for value i."""

    columns: tuple[str, ...]
    shape: tuple[int, ...]
    subsets: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.subsets)

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def histogram_shape(self) -> tuple[int, ...]:
        """Of the arrays that `selectors` index."""
        return (self.cells,) if self.cells <= FEW_CELLS else self.shape

    @cached_property
    def selectors(self) -> list[Selector]:
        """The bins of each query. In large domains a query has one value of a column, or all of them."""
        if self.cells <= FEW_CELLS:
            return [np.flatnonzero(row) for row in self.incidence]
        whole = [2**size - 1 for size in self.shape]
        return [
            tuple(slice(None) if s == all_of else s.bit_length() - 1 for s, all_of in zip(subset, whole, strict=True))
            for subset in self.subsets
        ]

    @cached_property
    def incidence(self) -> Reals:
        """A row per query and a column per cell, 1 where the cell counts; of small domains only."""
        rows = np.ones((len(self), 1))
        for place, size in enumerate(self.shape):
            bits = np.array([subset[place] for subset in self.subsets])[:, None] >> np.arange(size) & 1
            rows = (rows[:, :, None] * bits[:, None, :]).reshape(len(self), -1)
        return rows

    def fractions(self, blocks: Blocks) -> Reals:
        """The share of each block's rows that each query counts: a row per query, a column per block."""
        if self.cells <= FEW_CELLS:
            counted = self.incidence @ blocks.counts.T
        else:
            tables: dict[tuple[int, ...], Integers] = {}
            cube = blocks.counts.reshape(blocks.number, *self.shape)
            counted = np.empty((len(self), blocks.number))
            for query, selector in enumerate(self.selectors):
                assert isinstance(selector, tuple)
                other = tuple(axis + 1 for axis, value in enumerate(selector) if isinstance(value, slice))
                if other not in tables:
                    tables[other] = cube.sum(axis=other)
                counted[query] = tables[other].transpose()[tuple(v for v in reversed(selector) if isinstance(v, int))]
        fractions: Reals = counted / blocks.size
        return fractions

    def unlearned(self, fractions: Reals, alpha: float) -> float:
        """The share of queries that the uniform histogram answers within alpha, over all blocks."""
        rows = [math.prod(s.bit_count() for s in subset) / self.cells for subset in self.subsets]
        return float(np.mean(np.abs(fractions - np.array(rows)[:, None]) <= alpha))


def covid_pool() -> Pool:
    """Every combination of non-empty sets of values: 3 * 3 * 15 * 255 = 34,425 queries."""
    sets = [range(1, 2**size) for size in COVID_COLUMNS.values()]
    return Pool(columns=tuple(COVID_COLUMNS), shape=tuple(COVID_COLUMNS.values()), subsets=tuple(combinations(*sets)))


def citibike_pool() -> Pool:
    """The cells of the 30 analyses."""

    def cells(template: str) -> Iterator[tuple[int, ...]]:
        named = {name for name in template.strip().split(",") if name}
        assert named <= CITIBIKE_COLUMNS.keys()
        yield from combinations(
            *(
                [2**i for i in range(size)] if name in named else [2**size - 1]
                for name, size in CITIBIKE_COLUMNS.items()
            )
        )

    subsets = tuple(subset for template in TEMPLATES.split(";") for subset in cells(template))
    return Pool(columns=tuple(CITIBIKE_COLUMNS), shape=tuple(CITIBIKE_COLUMNS.values()), subsets=subsets)


POOLS = {"covid": covid_pool, "citibike": citibike_pool}


@dataclass(frozen=True, kw_only=True, eq=False)
class Questions:
    """A sequence of questions: a query of the pool over the blocks `first` to `last`, when `there` blocks have come."""

    queries: Integers
    first: Integers
    last: Integers
    there: Integers

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[tuple[int, int, int, int]]:
        parts: Sequence[Integers] = (self.queries, self.first, self.last, self.there)
        return zip(*(part.tolist() for part in parts), strict=True)


def drawn(pool: int, zipf: float, count: int, rng: np.random.Generator) -> Integers:
    """Queries with chances proportional to 1 / rank^zipf; which query has which rank is drawn first."""
    ranks = rng.permutation(pool)
    chances = 1.0 / np.arange(1, pool + 1) ** zipf
    return ranks[rng.choice(pool, count, p=chances / chances.sum())]


def single(pool: int, zipf: float, count: int, seed: int) -> Questions:
    """All about one block."""
    queries = drawn(pool, zipf, count, np.random.default_rng([seed, 1]))
    nothing = np.zeros(count, np.int64)
    return Questions(queries=queries, first=nothing, last=nothing, there=nothing + 1)


def static(pool: int, zipf: float, count: int, seed: int, *, blocks: int, mean: float | None = None) -> Questions:
    """Over windows of uniform length, or of lengths around a mean (Gaussian, deviation 5), that start anywhere."""
    rng = np.random.default_rng([seed, 2])
    queries = drawn(pool, zipf, count, rng)
    if mean is None:
        lengths = rng.integers(1, blocks + 1, count)
    else:
        lengths = np.clip(np.rint(rng.normal(mean, 5, count)), 1, blocks).astype(np.int64)
    first = rng.integers(0, blocks - lengths + 1)
    return Questions(queries=queries, first=first, last=first + lengths - 1, there=np.full(count, blocks))


def stream(pool: int, zipf: float, count: int, seed: int, *, blocks: int) -> Questions:
    """About the latest P blocks, P uniform among those that have come; blocks come at equal intervals."""
    rng = np.random.default_rng([seed, 3])
    queries = drawn(pool, zipf, count, rng)
    there = 1 + np.arange(count) * blocks // count
    return Questions(queries=queries, first=there - rng.integers(1, there + 1), last=there - 1, there=there)
