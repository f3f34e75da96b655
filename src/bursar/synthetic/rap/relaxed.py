"""Relaxed rows: a table in which a row has a distribution over the values of every column, not one value (RAP, 2.2).

Sparsemax keeps them distributions; every query of a workload can be answered on them; randomized rounding makes a table
of real rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bursar.arrays import Integers, Singles
from bursar.errors import QueryError, Unsupported
from bursar.synthetic.entropy import entropy
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload, inclusion_exclusion

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The function as machine code, made at its first call and kept on disk for the next process.

    Sums may be reordered, so results differ in their last digits between processors: nothing exact is computed here.
    Edge cases: without the package `numba` this is refused with the command that installs it.
    """
    try:
        from numba import njit
    except ImportError:
        raise Unsupported("synthetic data need a compiler: pip install numba") from None
    return cast(Function, njit(cache=True, fastmath=True, nogil=True)(function))


TILE = 128
"""Rows that are worked on together: a column of a hundred values of this number of rows stays in the first caches."""

PRECISION = np.float32(1e-7)
"""What rounding can do to a number near 1: steps no longer than that end the search, and shares below it are 0."""

MOST_STEPS = 64
"""More than Newton's method ever needs here; only rounding could make it go on."""


@compiled
def sparsemax(block: Singles) -> None:
    """In place, for every column z of the block: argmin over p >= 0 with sum p = 1 of ||p - z||_2 (Martins and
    Astudillo 2016, eq. 2), which is max(z - tau, 0) with the tau for which it sums to 1.

    sum max(z - t, 0) - 1 falls in t and is convex, so Newton's method finds tau: from wherever it starts, its first
    step ends at or below tau, and from there it rises until the set of values above t stays the same. It starts from
    t = 0, the answer for rows that are in the simplex already.
    """
    rows = block.shape[1]
    tau = np.empty(TILE, np.float32)
    total = np.empty(TILE, np.float32)
    count = np.empty(TILE, np.float32)
    for first in range(0, rows, TILE):
        last = min(first + TILE, rows)
        tau[:] = 0
        for _ in range(MOST_STEPS):
            _add_above(block, first, last, tau, total, count)
            moved = False
            for i in range(last - first):
                if count[i] == 0:  # everything lies below: the largest alone is a start from the left
                    new = block[:, first + i].max() - np.float32(1)
                else:
                    new = (total[i] - np.float32(1)) / count[i]
                moved |= abs(new - tau[i]) > PRECISION
                tau[i] = new
            if not moved:
                break
        _cut(block, first, last, tau)


@compiled
def _add_above(block: Singles, first: int, last: int, tau: Singles, total: Singles, count: Singles) -> None:
    """How many values of each row lie above tau, and their sum.

    Without a branch, so that several rows are worked on by one instruction: four times as fast.
    """
    total[:] = 0
    count[:] = 0
    for j in range(len(block)):
        line = block[j, first:last]
        for i in range(len(line)):
            z = line[i]
            above = z > tau[i]
            total[i] += z if above else np.float32(0)
            count[i] += np.float32(1) if above else np.float32(0)


@compiled
def _cut(block: Singles, first: int, last: int, tau: Singles) -> None:
    for j in range(len(block)):
        line = block[j, first:last]
        for i in range(len(line)):
            z = line[i] - tau[i]
            line[i] = z if z > PRECISION else np.float32(0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Relaxed:
    """n' rows of the relaxed space [0, 1]^d' (RAP, section 2.2), in which each column's numbers sum to 1.

    `values` has d' lines, one for each value of each column, and a place for every row in a line: what queries read is
    contiguous.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    values: Singles

    @property
    def rows(self) -> int:
        return int(self.values.shape[1])

    def block(self, name: str) -> Singles:
        """The numbers of one column: (values, rows)."""
        place = self.names.index(name)
        first = sum(self.sizes[:place])
        return self.values[first : first + self.sizes[place]]


def start(workload: ThresholdWorkload, *, rows: int, rng: Generator) -> Relaxed:
    """RAP, Alg. 1 line 2: independent uniform numbers, then sparsemax on every column of each row."""
    if rows < 1:
        raise QueryError("a synthetic table has at least one row")
    values = rng.random((workload.width, rows), np.float32)
    relaxed = Relaxed(names=workload.names, sizes=workload.sizes, values=values)
    for name in workload.names:
        sparsemax(relaxed.block(name))
    return relaxed


MATMUL_OVERHEAD = 30_000
"""How many multiplications take about as long as setting up one product of matrices."""


def relaxed_answers(workload: ThresholdWorkload, relaxed: Relaxed) -> Singles:
    """Every query's answer on relaxed rows as a fraction, clipped to [0, 1], in the order of the query numbers."""
    answered = np.empty(workload.queries, np.float32)
    for (first, last), answers in _by_set(workload, relaxed):
        np.clip(answers, 0, 1, out=answered[first:last])
    return answered


def relaxed_counts(workload: ThresholdWorkload, relaxed: Relaxed, *, size: float) -> Integers:
    """The same as whole numbers out of `size`: what a selection compares the data with."""
    answered = np.empty(workload.queries, np.int64)
    for (first, last), answers in _by_set(workload, relaxed):
        np.rint(np.clip(answers, 0, 1) * size, out=answered[first:last], casting="unsafe")
    return answered


def table_answers(workload: ThresholdWorkload, codes: Integers) -> Integers:
    """Every query's count on a table of codes, one column per column of the workload."""
    columns = dict(zip(workload.names, codes.T, strict=True))

    def counts(names: tuple[str, ...]) -> Integers:
        shape = workload.shape(names)
        cells = np.ravel_multi_index([columns[name] for name in names], shape)
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)

    return workload.candidates.apply(counts)


def _by_set(workload: ThresholdWorkload, relaxed: Relaxed) -> Iterator[tuple[tuple[int, int], Singles]]:
    """The answers to the queries of one set after the other, with the numbers of its first and beyond its last."""
    for number, names in enumerate(workload.sets):
        least = len(names) if workload.least is None else workload.least
        yield (int(workload.starts[number]), int(workload.starts[number + 1])), _thresholds(relaxed, names, least)


def _thresholds(relaxed: Relaxed, names: tuple[str, ...], least: int) -> Singles:
    """RAP, Def. 4.4, for all targets at once: marginals of subsets of the columns, added up over the joint values."""
    if least == len(names):
        return marginal(relaxed, names).ravel()
    form = inclusion_exclusion(len(names), least)
    shape = [len(relaxed.block(name)) for name in names]
    total = np.zeros(shape, np.float32)
    for subset, coefficient in zip(form.subsets, form.coefficients, strict=True):
        part = marginal(relaxed, tuple(names[i] for i in subset))
        total += coefficient * part.reshape([size if i in subset else 1 for i, size in enumerate(shape)])
    return total.ravel()


def marginal(relaxed: Relaxed, names: tuple[str, ...]) -> Singles:
    """The mean over rows of the products of one entry of each column, for all joint values: one axis per column.

    Two columns are multiplied as matrices, once for each joint value of the others and only on rows that have some of
    it: most entries of relaxed rows are 0.
    """
    blocks = [relaxed.block(name) for name in names]
    if len(blocks) == 1:
        means: Singles = blocks[0].mean(axis=1)
        return means
    across = _quickest(blocks)
    left, right = (np.ascontiguousarray(block.T) for i, block in enumerate(blocks) if i not in across)
    right = right / np.float32(relaxed.rows)
    looped = [blocks[i] for i in across]
    shape = [len(block) for block in looped]
    joint = np.zeros((*shape, left.shape[1], right.shape[1]), np.float32)
    for place in np.ndindex(*shape):
        weights = np.ones(relaxed.rows, np.float32)
        for block, value in zip(looped, place, strict=True):
            weights = weights * block[value]
        rows = np.flatnonzero(weights)
        np.matmul((left[rows] * weights[rows, None]).T, right[rows], out=joint[place])
    multiplied = [i for i in range(len(blocks)) if i not in across]
    ordered: Singles = joint.transpose(np.argsort([*across, *multiplied]))
    return ordered


def _quickest(blocks: list[Singles]) -> tuple[int, ...]:
    """All columns but the two whose matrices are to be multiplied: what costs the least steps."""
    support = [np.count_nonzero(block) / len(block) for block in blocks]  # rows that have a value, on average

    rows = int(blocks[0].shape[1])

    def steps(across: tuple[int, ...]) -> float:
        products = math.prod(len(block) for i, block in enumerate(blocks) if i not in across)
        alike = rows * math.prod(support[i] / rows for i in across)
        return math.prod(len(blocks[i]) for i in across) * (products * alike + MATMUL_OVERHEAD)

    return min(combinations(range(len(blocks)), len(blocks) - 2), key=steps)


def randomized_rounding(relaxed: Relaxed, *, size: int, rng: Generator | None = None) -> Integers:
    """A table of `size` rows of codes, in which every column of a row is drawn from a relaxed row's distribution.

    Every relaxed row is used equally often, up to one. Columns are drawn independently given the relaxed row, so every
    answer of the table has the relaxed rows' answer as its mean, if `size` is a multiple of their number. The copies of
    one relaxed row share a column's values out evenly: this makes errors smaller than independent draws do.
    """
    if size < 0:
        raise QueryError("a table has no less than 0 rows")
    rng = entropy() if rng is None else rng
    copies = -(-size // relaxed.rows)
    spare = copies * relaxed.rows - size
    used = np.ones(copies * relaxed.rows, bool)
    used[rng.choice(relaxed.rows, spare, replace=False)] = False
    table = np.empty((size, len(relaxed.names)), np.int64)
    for column, name in enumerate(relaxed.names):
        table[:, column] = _drawn(relaxed.block(name), copies, rng).ravel()[used]
    return rng.permutation(table)


def _drawn(block: NDArray[np.float32], copies: int, rng: Generator) -> Integers:
    """Values of one column: (copies, relaxed rows)."""
    values, rows = block.shape
    ends = np.cumsum(block, axis=0, dtype=np.float64)
    strata = rng.permuted(np.tile(np.arange(copies), (rows, 1)), axis=1).T
    points = (strata + rng.random((copies, rows))) / max(copies, 1) * ends[-1]
    drawn = np.empty((copies, rows), np.int64)
    for row in range(rows):
        drawn[:, row] = np.searchsorted(ends[:, row], points[:, row], side="right")
    return drawn.clip(max=values - 1)
