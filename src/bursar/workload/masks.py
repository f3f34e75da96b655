"""Regions as rows: one row per group, never over more columns than the condition ties together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bursar.domain import Domain
from bursar.queries import Mask, Product, Steps
from bursar.workload.groups import Cells, Groups
from bursar.workload.regions import Region


@dataclass(frozen=True, eq=False)
class Grouped:
    """A product of masks and, for each of its rows, the group of every group column that the row is for."""

    product: Product
    groups: Cells  # (rows, group columns)


def count_groups(found: Sequence[Region], groups: Groups, domain: Domain) -> int:
    """How many groups the regions leave possible; cheap, before any row is built."""
    return math.prod(_possible(block, groups) for block in _blocks(found, groups.names, domain))


def grouped(found: Sequence[Region], groups: Groups, domain: Domain) -> Grouped:
    """The rows of the possible groups, and of nothing else.

    Guarantees: no row is zero; masks stand in the order of the domain, so that the order of GROUP BY does not matter.
    """
    masks: list[Mask] = []
    keys: dict[str, Cells] = {}
    blocks = _blocks(found, groups.names, domain)
    for block in blocks:
        mask, cells = _mask(block, groups, domain)
        masks.append(mask)
        keys.update(cells)
    product = Product(tuple(masks))
    places = np.unravel_index(np.arange(product.rows), [mask.rows for mask in masks]) if masks else ()
    of_row = {name: place for mask, place in zip(masks, places, strict=True) for name in mask.attrs}
    columns = [keys[name][of_row[name]] for name in groups.names]
    return Grouped(product, np.stack(columns, axis=1) if columns else np.zeros((product.rows, 0), np.int64))


def _blocks(found: Sequence[Region], groups: Iterable[str], domain: Domain) -> list[Region]:
    """The regions, with one more, all of it, for every group column that none of them is about."""
    named = {name for region in found for name in region.attrs}
    free = [Region((name,), np.ones(domain[name].size, np.bool_)) for name in groups if name not in named]
    return sorted([*found, *free], key=lambda region: domain.place(region.attrs[0]))


def _possible(block: Region, groups: Groups) -> int:
    """How many groups of its group columns a region leaves possible."""
    own = [axis for axis, name in enumerate(block.attrs) if name in groups.names]
    if not own:
        return 1  # a region is never empty
    rest = tuple(axis for axis in range(len(block.attrs)) if axis not in own)
    inside = np.nonzero(block.cells.astype(np.bool_).any(axis=rest))
    codes, sizes = _codes(
        inside, [block.attrs[axis] for axis in own], [block.cells.shape[axis] for axis in own], groups
    )
    seen = np.zeros(math.prod(sizes), np.bool_)
    seen[np.ravel_multi_index(codes, sizes)] = True
    return int(seen.sum())


def _codes(
    cells: Sequence[Cells], names: Sequence[str], sizes: Sequence[int], groups: Groups
) -> tuple[list[Cells], list[int]]:
    """The groups that cells of columns are in, and how many groups each column has."""
    codes = [groups.of(name, one) for name, one in zip(names, cells, strict=True)]
    return codes, [groups.size(name, size) for name, size in zip(names, sizes, strict=True)]


def _mask(block: Region, groups: Groups, domain: Domain) -> tuple[Mask, dict[str, Cells]]:
    """One row per possible group of the block: its cells in that group; and the groups by column."""
    sizes = domain.sizes(block.attrs)
    own = [axis for axis, name in enumerate(block.attrs) if name in groups.names]
    if not own:
        return Mask(block.attrs, sizes, _row(block.cells.ravel())), {}
    inside = np.nonzero(block.cells)
    flat = np.ravel_multi_index(inside, sizes)
    names = [block.attrs[axis] for axis in own]
    codes, shape = _codes([inside[axis] for axis in own], names, [sizes[axis] for axis in own], groups)
    possible, row = np.unique(np.ravel_multi_index(codes, shape), return_inverse=True)
    order = np.lexsort((flat, row))
    weights = block.cells[inside].astype(np.int64)
    steps = _rows(flat[order], row[order], weights[order], len(possible), block.cells.size)
    cells = np.unravel_index(possible, shape)
    return Mask(block.attrs, sizes, steps), {block.attrs[axis]: cells[i] for i, axis in enumerate(own)}


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
