"""All answers of a workload, from relaxed rows or from a table: millions at once, in memory bounded by the answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from bursar.arrays import Integers, Singles
from bursar.synthetic.rap.relaxed import Relaxed
from bursar.synthetic.rap.surrogates import inclusion_exclusion
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload

CALL = 30_000
"""How many multiplications take about as long as setting up one product of matrices."""


def relaxed_answers(workload: ThresholdWorkload, relaxed: Relaxed) -> Singles:
    """Every query's answer on relaxed rows as a fraction, clipped to [0, 1], in the order of the query numbers."""
    found = np.empty(workload.queries, np.float32)
    for (first, last), answers in _by_set(workload, relaxed):
        np.clip(answers, 0, 1, out=found[first:last])
    return found


def relaxed_counts(workload: ThresholdWorkload, relaxed: Relaxed, *, size: float) -> Integers:
    """The same as whole numbers out of `size`: what a selection compares the data with."""
    found = np.empty(workload.queries, np.int64)
    for (first, last), answers in _by_set(workload, relaxed):
        np.rint(np.clip(answers, 0, 1) * size, out=found[first:last], casting="unsafe")
    return found


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
    found = np.zeros((*shape, left.shape[1], right.shape[1]), np.float32)
    for place in np.ndindex(*shape):
        weights = np.ones(relaxed.rows, np.float32)
        for block, value in zip(looped, place, strict=True):
            weights = weights * block[value]
        rows = np.flatnonzero(weights)
        np.matmul((left[rows] * weights[rows, None]).T, right[rows], out=found[place])
    rest = [i for i in range(len(blocks)) if i not in across]
    ordered: Singles = found.transpose(np.argsort([*across, *rest]))
    return ordered


def _quickest(blocks: list[Singles]) -> tuple[int, ...]:
    """All columns but the two whose matrices are to be multiplied: what costs the least steps."""
    held = [np.count_nonzero(block) / len(block) for block in blocks]  # rows that have a value, on average

    rows = int(blocks[0].shape[1])

    def steps(across: tuple[int, ...]) -> float:
        products = math.prod(len(block) for i, block in enumerate(blocks) if i not in across)
        alike = rows * math.prod(held[i] / rows for i in across)
        return math.prod(len(blocks[i]) for i in across) * (products * alike + CALL)

    return min(combinations(range(len(blocks)), len(blocks) - 2), key=steps)
