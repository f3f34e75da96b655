"""Queries over the joint grid of one or a few columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bursar.arrays import Integers
from bursar.core.queries.steps import Steps
from bursar.errors import QueryError

LARGEST_JOINT = 2**20
"""Most joint cells of a mask over several columns."""

CLASS_WORK = 2**26
"""Most numbers that are compared to find which cells a mask tells apart."""


@dataclass(frozen=True, eq=False)
class Mask:
    """Rows over the joint cells of `attrs`, numbered with the last column running fastest."""

    attrs: tuple[str, ...]
    sizes: tuple[int, ...]
    steps: Steps

    def __post_init__(self) -> None:
        cells = math.prod(self.sizes)
        named = all(isinstance(name, str) for name in self.attrs)
        whole = all(type(size) is int and size > 0 for size in self.sizes)
        if not (named and whole) or cells != self.steps.size or len(self.attrs) != len(self.sizes):
            raise QueryError("a mask does not fit the columns it is for")
        if len(self.attrs) > 1 and cells > LARGEST_JOINT:
            raise QueryError(
                f"a condition over {' and '.join(self.attrs)} spans {cells} cells; {LARGEST_JOINT} are possible"
            )

    @property
    def rows(self) -> int:
        return self.steps.rows

    def take(self, rows: Sequence[int] | Integers) -> Mask:
        return Mask(self.attrs, self.sizes, self.steps.take(rows))

    def sliced(self, name: str, cell: int) -> Mask:
        """The rows where the column has this value, over the other columns; rows that are zero there are left out."""
        axis = self.attrs.index(name)
        inside = np.arange(self.steps.size).reshape(self.sizes).take(cell, axis).ravel()
        step = max(1, CLASS_WORK // len(inside))
        portions = [np.arange(first, min(first + step, self.rows)) for first in range(0, self.rows, step)]
        found = [self.steps.take(rows).at_cells(inside) for rows in portions]
        rows = np.concatenate([np.zeros((0, len(inside)), np.int64), *(part[np.any(part, axis=1)] for part in found)])
        left = [i for i in range(len(self.attrs)) if i != axis]
        return Mask(tuple(self.attrs[i] for i in left), tuple(self.sizes[i] for i in left), Steps.dense(rows))

    def slice_keys(self, name: str) -> list[tuple[bytes, ...]]:
        """For each value of the column a key; values with equal keys have equal slices."""
        size = self.sizes[self.attrs.index(name)]
        if len(self.attrs) == 1 and self.rows * size <= CLASS_WORK:
            return [(values[values != 0].tobytes(),) for values in self.steps.at_cells(np.arange(size)).T]
        classes = self.classes(name, size)
        alike = list(range(size)) if classes is None else classes.tolist()
        keys: dict[int, tuple[bytes, ...]] = {}
        for cell, number in enumerate(alike):
            if number not in keys:
                steps = self.sliced(name, cell).steps
                keys[number] = (steps.starts.tobytes(), steps.at.tobytes(), steps.jump.tobytes())
        return [keys[number] for number in alike]

    def at(self, cells: Mapping[str, Integers]) -> Integers:
        """The values of the rows on the grid spanned by the given cells of each column: (rows, grid cells)."""
        grid = np.ravel_multi_index(np.ix_(*(cells[name] for name in self.attrs)), self.sizes)
        return self.steps.at_cells(grid.ravel())

    def classes(self, name: str, most: int) -> Integers | None:
        """A number for each cell of the column, equal where no row of this mask tells two cells apart.

        None where more than `most` classes would be needed.
        """
        axis = self.attrs.index(name)
        if len(self.attrs) == 1:
            firsts = self.steps.breaks()  # between two breaks no row changes
            if len(firsts) > most or len(firsts) * self.rows > CLASS_WORK:
                return None
            group = _number(self.steps.at_cells(firsts).T)
            return np.repeat(group, np.diff(np.append(firsts, self.sizes[0])))
        if self.rows * self.steps.size > CLASS_WORK:
            return None
        values = self.steps.at_cells(np.arange(self.steps.size)).reshape(self.rows, *self.sizes)
        group = _number(np.moveaxis(values, 1 + axis, 0).reshape(self.sizes[axis], -1))
        return group if group.max(initial=0) < most else None


def _number(patterns: Integers) -> Integers:
    """Equal rows get equal numbers, counted in the order of their first appearance."""
    numbers: dict[bytes, int] = {}
    rows = np.ascontiguousarray(patterns)
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows], np.int64)
