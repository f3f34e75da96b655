"""The protocol of query maps, and the column norms that price them: how far a unit in a cell can move answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, Protocol

import numpy as np

from bursar.arrays import Integers
from bursar.core.queries.mask import Mask
from bursar.errors import QueryError

Header = dict[str, Any]
"""What the bytes of a map begin with: plain JSON values, which constructors check."""

Counts = Callable[[tuple[str, ...]], Integers]
"""Gives the table of exact counts over the named columns, one axis each, in the order of the names."""


class LinearMap(Protocol):
    """Integer linear queries over cells; row order is part of the identity of a map."""

    @property
    def attrs(self) -> tuple[str, ...]:
        """The columns that the queries look at."""

    @property
    def rows(self) -> int:
        """How many queries there are."""

    @property
    def digest(self) -> str:
        """Equal exactly for maps with equal rows in equal form."""

    def apply(self, counts: Counts) -> Integers:
        """The exact answers, one per row."""

    def norms(self, power: int) -> tuple[Norm, ...]:
        """The sum over rows of |q_j(v)|^power as a function of the cell v; the norms of the tuple add up."""

    def largest(self) -> int:
        """The largest |q_j(v)|, for overflow checks from public sizes."""

    def take(self, rows: Sequence[int]) -> LinearMap:
        """The given rows, in the given order, as a map of their own."""


LARGEST_NORM = 2**60
"""A pair can lose four times as much as a cell, which still fits in 64 bits."""

PAIR_CELLS = 2048
"""Most joint cells for which every pair is compared."""

PAIR_NUMBERS = 2**24
"""Most numbers that the rows of one mask may take up when pairs are compared."""

PAIR_WORK = 2**30
"""Most elementary steps spent on comparing pairs row by row."""


@dataclass(frozen=True, eq=False)
class Norm:
    """sum_j |q_j(v)|^power over the rows of a product of masks, for each cell v of its columns.

    It is an outer product of one vector per mask and never expanded here: the profile decides how fine it can
    afford to be.
    """

    masks: tuple[Mask, ...]
    power: int

    def __post_init__(self) -> None:
        if self.largest() > LARGEST_NORM:
            raise QueryError("the coefficients of this workload are too large")

    @property
    def cells(self) -> int:
        """How many joint cells its masks have."""
        return math.prod(mask.steps.size for mask in self.masks)

    @cached_property
    def attrs(self) -> tuple[tuple[str, ...], ...]:
        return tuple(mask.attrs for mask in self.masks)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for mask in self.masks for name in mask.attrs)

    @cached_property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(mask.sizes for mask in self.masks)

    @cached_property
    def vectors(self) -> tuple[Integers, ...]:
        return tuple(mask.steps.norms(self.power) for mask in self.masks)

    def largest(self) -> int:
        return self._largest

    @cached_property
    def _largest(self) -> int:
        return math.prod(int(v.max(initial=0)) for v in self.vectors)

    @cached_property
    def one_sign(self) -> bool:
        """Whether no row takes values of both signs."""
        return all(bool(np.all(m.steps.levels >= 0)) or bool(np.all(m.steps.levels <= 0)) for m in self.masks)

    @property
    def pair_factor(self) -> int:
        """Upper bound on the loss of a pair of cells, as a multiple of the largest norm of a cell."""
        return 2 if self.power == 1 or self.one_sign else 4

    def largest_pair(self) -> int:
        """Upper bound on the loss of a pair of cells."""
        return self.pair_factor * self.largest()

    def at(self, column: str, cell: int) -> Norm:
        """The norm of rows that have this value of a column, over the other columns."""
        masks = (mask.sliced(column, cell) if column in mask.attrs else mask for mask in self.masks)
        return replace(self, masks=tuple(masks))

    def slices(self, column: str, size: int) -> list[tuple[Norm, Integers]]:
        """The norms at the values of a column of this size, each with the values that have it.

        Guarantees: a value that is not listed has the norm 0 everywhere.
        """
        sliced = next((mask for mask in self.masks if column in mask.attrs), None)
        if sliced is None:
            return [(self, np.arange(size))]
        equal: dict[tuple[bytes, ...], list[int]] = {}
        for cell, key in enumerate(sliced.slice_keys(column)):
            equal.setdefault(key, []).append(cell)
        norms = [(self.at(column, cells[0]), np.array(cells)) for cells in equal.values()]
        return [(norm, cells) for norm, cells in norms if norm.largest() > 0]

    def pairs(self) -> Integers | None:
        """sum_j |q_j(v) - q_j(v')|^power for all pairs of cells; None where there are more than 2,048 cells.

        Squares follow from the Gram matrices, (x - y)^2 = x^2 + y^2 - 2xy, and so do first powers of rows of 0 and 1.
        Other rows are compared cell by cell; where any of this would be too much work, |x - y| <= |x| + |y| or
        (x - y)^2 <= 2x^2 + 2y^2 stands in (without the 2 for rows of one sign), which is never too low.
        """
        if (cells := self.cells) > PAIR_CELLS:
            return None
        norm = outer(list(self.vectors)).ravel()
        apart: Integers = norm[:, None] + norm[None, :]
        if any(mask.rows * mask.steps.size > PAIR_NUMBERS for mask in self.masks):
            return self.pair_factor // 2 * apart
        rows = [mask.steps.at_cells(np.arange(mask.steps.size)) for mask in self.masks]
        if self.power == 2 or all(np.isin(r, (0, 1)).all() for r in rows):
            return apart - 2 * outer([_gram(r) for r in rows])
        if math.prod(len(r) for r in rows) * cells**2 > PAIR_WORK:
            return self.pair_factor // 2 * apart
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
