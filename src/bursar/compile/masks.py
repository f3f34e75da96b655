"""Regions as rows: one row per group, never over more columns than the condition ties together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bursar.core.domain import Domain
from bursar.errors import QueryError
from bursar.core.queries import LARGEST_JOINT, Mask, Product, Steps
from bursar.compile.groups import Axis, Cells, Groups
from bursar.compile.regions import Region


@dataclass(frozen=True, eq=False)
class Grouped:
    """A product of masks and, for each of its rows, the group of every axis that the row is for."""

    product: Product
    groups: Cells  # (rows, axes)


def count_groups(found: Sequence[Region], groups: Groups, domain: Domain) -> int:
    """How many groups the regions leave possible; cheap, before any row is built."""
    return math.prod(_possible(block, groups) for block in _blocks(found, groups, domain))


def grouped(found: Sequence[Region], groups: Groups, domain: Domain) -> Grouped:
    """The rows of the possible groups, and of nothing else.

    Guarantees: no row is zero; masks stand in the order of the domain, so that the order of GROUP BY does not matter.
    """
    masks: list[Mask] = []
    of_axis: dict[int, tuple[int, Cells]] = {}  # the mask that tells an axis's groups apart, and they by row of it
    for block in _blocks(found, groups, domain):
        mask, codes = _mask(block, groups, domain)
        of_axis |= {axis: (len(masks), own) for axis, own in codes.items()}
        masks.append(mask)
    product = Product(tuple(masks))
    places = np.unravel_index(np.arange(product.rows), [mask.rows for mask in masks]) if masks else ()
    columns = [own[places[mask]] for mask, own in (of_axis[axis] for axis in range(len(groups.axes)))]
    return Grouped(product, np.stack(columns, axis=1) if columns else np.zeros((product.rows, 0), np.int64))


def _blocks(found: Sequence[Region], groups: Groups, domain: Domain) -> list[Region]:
    """The regions, those about columns of one axis as one; all cells of an axis that none of them is about."""
    blocks = list(found)
    for axis in groups.axes:
        about = [block for block in blocks if set(block.attrs).intersection(axis.attrs)]
        if len(about) == 1 and set(axis.attrs) <= set(about[0].attrs):
            continue
        blocks = [block for block in blocks if block not in about]
        blocks.append(_merged(about, axis, domain))
    return sorted(blocks, key=lambda region: domain.place(region.attrs[0]))


def _merged(about: Sequence[Region], axis: Axis, domain: Domain) -> Region:
    """Regions as one that has the columns of an axis too."""
    attrs = domain.ordered([*axis.attrs, *(name for region in about for name in region.attrs)])
    sizes = domain.sizes(attrs)
    if len(attrs) > 1 and math.prod(sizes) > LARGEST_JOINT:
        raise QueryError(
            f"groups that tie {' and '.join(axis.attrs)} together, and conditions that tie these to others, span "
            f"{math.prod(sizes)} cells; {LARGEST_JOINT} are possible",
            position=axis.position,
        )
    cells: NDArray[np.bool_] | NDArray[np.int64] = np.ones(sizes, np.bool_)
    for region in about:
        shape = [size if name in region.attrs else 1 for name, size in zip(attrs, sizes, strict=True)]
        cells = cells * region.cells.reshape(shape)
    return Region(attrs, cells)


def _own(block: Region, groups: Groups) -> dict[int, Axis]:
    """The axes whose columns a block has; it has all columns of an axis or none."""
    return {number: axis for number, axis in enumerate(groups.axes) if axis.attrs[0] in block.attrs}


def _possible(block: Region, groups: Groups) -> int:
    """How many groups of its axes a region leaves possible."""
    own = _own(block, groups)
    if not own:
        return 1  # a region is never empty
    names = [name for name in block.attrs if any(name in axis.attrs for axis in own.values())]
    rest = tuple(place for place, name in enumerate(block.attrs) if name not in names)
    inside = np.nonzero(block.cells.astype(np.bool_).any(axis=rest))
    codes, sizes = _codes(dict(zip(names, inside, strict=True)), own)
    seen = np.zeros(math.prod(sizes), np.bool_)
    seen[np.ravel_multi_index(codes, sizes)] = True
    return int(seen.sum())


def _codes(cells: Mapping[str, Cells], own: Mapping[int, Axis]) -> tuple[list[Cells], list[int]]:
    """The groups that cells are in, and how many groups each axis has."""
    codes = [axis.of([cells[name] for name in axis.attrs]) for axis in own.values()]
    return codes, [axis.size for axis in own.values()]


def _mask(block: Region, groups: Groups, domain: Domain) -> tuple[Mask, dict[int, Cells]]:
    """One row per possible group of the block: its cells in that group; and the groups by axis."""
    sizes, own = domain.sizes(block.attrs), _own(block, groups)
    if not own:
        return Mask(block.attrs, sizes, _row(block.cells.ravel())), {}
    inside = np.nonzero(block.cells)
    flat = np.ravel_multi_index(inside, sizes)
    codes, shape = _codes(dict(zip(block.attrs, inside, strict=True)), own)
    possible, row = np.unique(np.ravel_multi_index(codes, shape), return_inverse=True)
    order = np.lexsort((flat, row))
    weights = block.cells[inside].astype(np.int64)
    steps = _rows(flat[order], row[order], weights[order], len(possible), block.cells.size)
    return Mask(block.attrs, sizes, steps), dict(zip(own, np.unravel_index(possible, shape), strict=True))


def _row(cells: NDArray[np.bool_] | NDArray[np.int64]) -> Steps:
    """One row that has the numbers of the cells; quick and small for millions of them."""
    jumps = cells.astype(np.int64)
    jumps[1:] -= cells[:-1]
    at = np.flatnonzero(jumps)
    return Steps(len(cells), np.array([0, len(at)], np.int64), at.astype(np.int64), jumps[at])


def _rows(cells: Cells, row: Cells, weights: Cells, rows: int, size: int) -> Steps:
    """Rows with the weights on the given cells and 0 elsewhere; cells come sorted by row and then by number."""
    joined = np.zeros(len(cells) + 1, np.bool_)  # whether a cell follows on the one before it
    joined[1:-1] = (np.diff(cells) == 1) & (np.diff(row) == 0)
    before = np.where(joined[:-1], np.concatenate([[0], weights[:-1]]), 0)
    ends = np.flatnonzero(~joined[1:] & (cells < size - 1))  # a run up to the last cell never comes down again
    at = np.concatenate([cells, cells[ends] + 1])
    jump = np.concatenate([weights - before, -weights[ends]])
    owner = np.concatenate([row, row[ends]])
    changed = np.flatnonzero(jump)
    order = changed[np.lexsort((at[changed], owner[changed]))]
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner[order], minlength=rows))]).astype(np.int64)
    return Steps(size, starts, at[order], jump[order])
