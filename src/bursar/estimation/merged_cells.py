"""Merged cells: the classes of each column's cells that nothing measured so far tells apart, and masks over them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.queries import Mask, Product

Classes = dict[str, Integers]
"""Per column, in the order of the domain: the class of each of its cells."""

MERGED_CELLS = 2048
"""Most merged cells of one reconstruction."""


@dataclass(frozen=True, eq=False)
class MergedMask:
    """A mask as it is over merged cells; what is asked for is worked out once."""

    mask: Mask
    classes: Classes

    @property
    def numbers(self) -> int:
        """How many numbers the grid has."""
        return self.mask.rows * math.prod(count(self.classes[name]) for name in self.mask.attrs)

    @cached_property
    def whole(self) -> bool:
        """Whether no row of the mask cuts through a merged cell."""
        finer = told_apart(self.classes, Product((self.mask,)))
        return finer is not None and all(count(finer[name]) == count(self.classes[name]) for name in self.mask.attrs)

    @cached_property
    def grid(self) -> Reals:
        """The values of the rows, with an axis for each column, of length 1 where the mask is about others.

        That the mask is whole is assumed.
        """
        columns, firsts = list(self.classes), {name: first_cells(self.classes[name]) for name in self.mask.attrs}
        values = self.mask.at(firsts).astype(float)
        order = np.argsort([columns.index(name) for name in self.mask.attrs])
        grid = values.reshape(len(values), *(len(firsts[name]) for name in self.mask.attrs))
        shape = [len(firsts[name]) if name in firsts else 1 for name in columns]
        return np.transpose(grid, [0, *(1 + order)]).reshape(len(values), *shape)


def told_apart(classes: Mapping[str, Integers], product: Product) -> Classes | None:
    """The classes after a product's rows are taken in; None where a column would need too many."""
    finer = dict(classes)
    for mask in product.masks:
        for name in mask.attrs:
            own = mask.classes(name, MERGED_CELLS)
            if own is None:
                return None
            finer[name] = _numbered(finer[name] * (int(own.max()) + 1) + own)
    return finer


def count(classes: Integers) -> int:
    """How many classes there are."""
    return int(classes.max(initial=0)) + 1


def first_cells(classes: Integers) -> Integers:
    """The first cell of each class."""
    first = np.empty(count(classes), np.int64)
    first[classes[::-1]] = np.arange(len(classes))[::-1]  # where a class comes again, the last assignment stays
    return first


def _numbered(classes: Integers) -> Integers:
    """The same classes in the same order, numbered without gaps; in time that grows with the cells, not by sorting."""
    used = np.bincount(classes) > 0
    return (np.cumsum(used) - 1)[classes]
