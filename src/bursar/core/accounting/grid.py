"""Grids: how finely the loss over some columns' joint cells is kept.

Up to 2^17 joint cells every cell is kept; above that neighbouring values share a block, which carries the largest
loss of its cells. Block widths are powers of two, so blocks of two grids are nested along every column. Different
partitions share a block only where every other column is one block already.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bursar.arrays import Integers
from bursar.core.domain import Domain
from bursar.core.queries import Norm

FINEST = 2**17
"""Most blocks of one grid."""

LARGEST_SUM = 2**61
"""In units of 2^-50: sums of losses stop here, above every budget, so that they cannot wrap around."""


@dataclass(frozen=True)
class Grid:
    """Blocks over the joint cells of `attrs` (in domain order); a block spans `widths[i]` values of column i."""

    attrs: tuple[str, ...]
    sizes: tuple[int, ...]
    widths: tuple[int, ...]

    @staticmethod
    def over(domain: Domain, attrs: tuple[str, ...]) -> Grid:
        """The finest grid that is affordable; depends on the public sizes only."""
        names = domain.ordered(attrs)
        sizes = domain.sizes(names)
        widths = [1] * len(sizes)
        while math.prod(blocks := [_blocks(n, w) for n, w in zip(sizes, widths, strict=True)]) > FINEST:
            inner = [i for i, name in enumerate(names) if blocks[i] > 1 and name != domain.partition]
            longest = max(inner or range(len(sizes)), key=lambda i: blocks[i])
            widths[longest] *= 2
        return Grid(names, sizes, tuple(widths))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(_blocks(n, w) for n, w in zip(self.sizes, self.widths, strict=True))

    @property
    def exact(self) -> bool:
        """Whether every block is a single cell."""
        return all(w == 1 for w in self.widths)

    def place(self, norm: Norm, units: int) -> Integers:
        """The loss of a footprint on this grid: per block the largest norm of a cell in it, times `units`.

        The columns of the norm must be exactly those of the grid. The largest product over a block of a product
        grid is the product of the largest factors, so nothing is lost by reducing each part by itself.
        """
        width = dict(zip(self.attrs, self.widths, strict=True))
        result = np.array(units, np.int64)
        order: list[str] = []
        for names, sizes, vector in zip(norm.attrs, norm.sizes, norm.vectors, strict=True):
            part = vector.reshape(sizes)
            for axis, name in enumerate(names):
                part = _coarser(part, axis, width[name])
            result = np.multiply.outer(result, part)
            order += names
        return np.transpose(result, [order.index(name) for name in self.attrs])

    def project(self, loss: Integers, onto: Grid) -> Integers:
        """The largest loss over the columns that `onto` lacks, shaped to be added to an array on `onto`."""
        gone = tuple(i for i, name in enumerate(self.attrs) if name not in onto.attrs)
        kept = [i for i in range(len(self.attrs)) if i not in gone]
        result = loss.max(axis=gone) if gone else loss
        shape = [1] * len(onto.attrs)
        for axis, i in enumerate(kept):
            place = onto.attrs.index(self.attrs[i])
            mine, theirs = self.widths[i], onto.widths[place]
            if theirs > mine:
                result = _coarser(result, axis, theirs // mine)
            elif mine > theirs:
                result = np.repeat(result, mine // theirs, axis=axis)
                result = result[(slice(None),) * axis + (slice(onto.shape[place]),)]
            shape[place] = result.shape[axis]
        return result.reshape(shape)


def added(loss: Integers, more: Integers) -> Integers:
    """The sum of two losses of at most 2^61 each; what would exceed 2^61 is 2^61, whatever is added in any order."""
    total: Integers = np.minimum(loss + more, LARGEST_SUM)
    return total


def _blocks(size: int, width: int) -> int:
    return -(-size // width)


def _coarser(array: Integers, axis: int, width: int) -> Integers:
    if width == 1:
        return array
    return np.maximum.reduceat(array, np.arange(0, array.shape[axis], width), axis=axis)
