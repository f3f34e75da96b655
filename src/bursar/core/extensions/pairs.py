"""Pairs of cells: how far apart the answers at two cells can be, which is what replace-one is charged by.

A unit that is replaced moves from one cell to another of its partition, so its loss is that of a pair; the norms of one
partition are slices of the norms of all. Add-or-remove needs none of this.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from bursar.arrays import Integers
from bursar.core.queries.mask import Mask, Steps

if TYPE_CHECKING:
    from bursar.core.queries.linear_map import Norm

PAIR_CELLS = 2048
"""Most joint cells for which every pair is compared."""

PAIR_NUMBERS = 2**24
"""Most numbers that the rows of one mask may take up when pairs are compared."""

PAIR_WORK = 2**30
"""Most elementary steps spent on comparing pairs row by row."""

CLASS_WORK = 2**26
"""Most numbers that are compared to find which cells a mask tells apart."""


def largest_pair(norm: Norm) -> int:
    """Upper bound on the loss of a pair of cells."""
    return norm.pair_factor * norm.largest()


def at(norm: Norm, column: str, cell: int) -> Norm:
    """The norm of rows that have this value of a column, over the other columns."""
    masks = (sliced(mask, column, cell) if column in mask.attrs else mask for mask in norm.masks)
    return replace(norm, masks=tuple(masks))


def slices(norm: Norm, column: str, size: int) -> list[tuple[Norm, Integers]]:
    """The norms at the values of a column of this size, each with the values that have it.

    Guarantees: a value that is not listed has the norm 0 everywhere.
    """
    having = next((mask for mask in norm.masks if column in mask.attrs), None)
    if having is None:
        return [(norm, np.arange(size))]
    equal: dict[tuple[bytes, ...], list[int]] = {}
    for cell, key in enumerate(slice_keys(having, column)):
        equal.setdefault(key, []).append(cell)
    norms = [(norm.at(column, cells[0]), np.array(cells)) for cells in equal.values()]
    return [(part, cells) for part, cells in norms if part.largest() > 0]


def pairs(norm: Norm) -> Integers | None:
    """sum_j |q_j(v) - q_j(v')|^power for all pairs of cells; None where there are more than 2,048 cells.

    Squares follow from the Gram matrices, (x - y)^2 = x^2 + y^2 - 2xy, and so do first powers of rows of 0 and 1.
    Other rows are compared cell by cell; where any of this would be too much work, |x - y| <= |x| + |y| or
    (x - y)^2 <= 2x^2 + 2y^2 stands in (without the 2 for rows of one sign), which is never too low.
    """
    if (cells := norm.cells) > PAIR_CELLS:
        return None
    lost = outer(list(norm.vectors)).ravel()
    apart: Integers = lost[:, None] + lost[None, :]
    if any(mask.rows * mask.steps.size > PAIR_NUMBERS for mask in norm.masks):
        return norm.pair_factor // 2 * apart
    rows = [mask.steps.at_cells(np.arange(mask.steps.size)) for mask in norm.masks]
    if norm.power == 2 or all(np.isin(r, (0, 1)).all() for r in rows):
        return apart - 2 * outer([_gram(r) for r in rows])
    if math.prod(len(r) for r in rows) * cells**2 > PAIR_WORK:
        return norm.pair_factor // 2 * apart
    matrix = outer(rows)
    return np.stack([np.abs(matrix - matrix[:, [cell]]).sum(axis=0) for cell in range(cells)])


def outer(factors: list[Integers]) -> Integers:
    """The Kronecker product of vectors or matrices, the last factor running fastest."""
    return reduce(np.kron, factors) if factors else np.ones((1, 1), np.int64)


def _gram(rows: Integers) -> Integers:
    """rows^T rows, exact: in floating point where every sum stays below 2^53, else in integers."""
    if int(np.abs(rows).max(initial=0)) ** 2 * len(rows) < 2**53:
        exact: Integers = np.rint(rows.T.astype(float) @ rows.astype(float)).astype(np.int64)
    else:
        exact = rows.T @ rows
    return exact


def sliced(mask: Mask, name: str, cell: int) -> Mask:
    """The rows where the column has this value, over the other columns; rows that are zero there are left out."""
    axis = mask.attrs.index(name)
    inside = np.arange(mask.steps.size).reshape(mask.sizes).take(cell, axis).ravel()
    step = max(1, CLASS_WORK // len(inside))
    portions = [np.arange(first, min(first + step, mask.rows)) for first in range(0, mask.rows, step)]
    values = [mask.steps.take(rows).at_cells(inside) for rows in portions]
    rows = np.concatenate([np.zeros((0, len(inside)), np.int64), *(part[np.any(part, axis=1)] for part in values)])
    left = [i for i in range(len(mask.attrs)) if i != axis]
    return Mask(tuple(mask.attrs[i] for i in left), tuple(mask.sizes[i] for i in left), Steps.dense(rows))


def slice_keys(mask: Mask, name: str) -> list[tuple[bytes, ...]]:
    """For each value of the column a key; values with equal keys have equal slices."""
    size = mask.sizes[mask.attrs.index(name)]
    if len(mask.attrs) == 1 and mask.rows * size <= CLASS_WORK:
        return [(values[values != 0].tobytes(),) for values in mask.steps.at_cells(np.arange(size)).T]
    numbers = classes(mask, name, size)
    alike = list(range(size)) if numbers is None else numbers.tolist()
    keys: dict[int, tuple[bytes, ...]] = {}
    for cell, number in enumerate(alike):
        if number not in keys:
            steps = sliced(mask, name, cell).steps
            keys[number] = (steps.starts.tobytes(), steps.at.tobytes(), steps.jump.tobytes())
    return [keys[number] for number in alike]


def classes(mask: Mask, name: str, most: int) -> Integers | None:
    """A number for each cell of the column, equal where no row of this mask tells two cells apart.

    None where more than `most` classes would be needed.
    """
    axis = mask.attrs.index(name)
    if len(mask.attrs) == 1:
        firsts = mask.steps.breaks()  # between two breaks no row changes
        if len(firsts) > most or len(firsts) * mask.rows > CLASS_WORK:
            return None
        group = _number(mask.steps.at_cells(firsts).T)
        return np.repeat(group, np.diff(np.append(firsts, mask.sizes[0])))
    if mask.rows * mask.steps.size > CLASS_WORK:
        return None
    values = mask.steps.at_cells(np.arange(mask.steps.size)).reshape(mask.rows, *mask.sizes)
    group = _number(np.moveaxis(values, 1 + axis, 0).reshape(mask.sizes[axis], -1))
    return group if group.max(initial=0) < most else None


def _number(patterns: Integers) -> Integers:
    """Equal rows get equal numbers, counted in the order of their first appearance."""
    numbers: dict[bytes, int] = {}
    rows = np.ascontiguousarray(patterns)
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows], np.int64)
