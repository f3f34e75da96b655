"""Rows of the query matrix: one per group, as products of masks over no more columns than the condition ties together.

A condition that ties too many columns together for a mask is a predicate: sets of cells, and how many must hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from bursar.compile.conditions import YES, Region, ValueLine, merge_strays, names_in, normal_form, truth_on
from bursar.compile.groups import Cells, GroupAxis, Groups
from bursar.compile.partwise import MOST_GROUPS, too_many_tied
from bursar.compile.values import Values
from bursar.core.domain import Domain
from bursar.core.queries import LARGEST_JOINT, Mask, Predicate, Product, Quorum, Steps, Within
from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql import FALSE, TRUE, And, AtLeast, Condition, IsTrue, Not, Or
from bursar.sql.query import Holds, leaves


@dataclass(frozen=True, eq=False)
class Grouped:
    """A product of masks and, for each of its rows, the group of every axis that the row is for."""

    product: Product
    groups: Cells  # (rows, axes)


def count_groups(regions: Sequence[Region], groups: Groups, domain: Domain) -> int:
    """How many groups the regions leave possible; cheap, before any row is built."""
    return math.prod(_possible(block, groups) for block in _blocks(regions, groups, domain))


def grouped(regions: Sequence[Region], groups: Groups, domain: Domain) -> Grouped:
    """The rows of the possible groups, and of nothing else.

    Guarantees: no row is zero; masks stand in the order of the domain, so that the order of GROUP BY does not matter.
    """
    masks: list[Mask] = []
    of_axis: dict[int, tuple[int, Cells]] = {}  # the mask that tells an axis's groups apart, and they by row of it
    for block in _blocks(regions, groups, domain):
        mask, codes = _mask(block, groups, domain)
        of_axis |= {axis: (len(masks), groups_of_rows) for axis, groups_of_rows in codes.items()}
        masks.append(mask)
    product = Product(tuple(masks))
    places = np.unravel_index(np.arange(product.rows), [mask.rows for mask in masks]) if masks else ()
    columns = [
        groups_of_rows[places[mask]] for mask, groups_of_rows in (of_axis[axis] for axis in range(len(groups.axes)))
    ]
    return Grouped(product, np.stack(columns, axis=1) if columns else np.zeros((product.rows, 0), np.int64))


def _blocks(regions: Sequence[Region], groups: Groups, domain: Domain) -> list[Region]:
    """The regions, those about columns of one axis as one; all cells of an axis that none of them is about."""
    blocks = list(regions)
    for axis in groups.axes:
        about = [block for block in blocks if set(block.attrs).intersection(axis.attrs)]
        if len(about) == 1 and set(axis.attrs) <= set(about[0].attrs):
            continue
        blocks = [block for block in blocks if block not in about]
        blocks.append(_merged(about, axis, domain))
    return sorted(blocks, key=lambda region: domain.place(region.attrs[0]))


def _merged(about: Sequence[Region], axis: GroupAxis, domain: Domain) -> Region:
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


def _own(block: Region, groups: Groups) -> dict[int, GroupAxis]:
    """The axes whose columns a block has; it has all columns of an axis or none."""
    return {number: axis for number, axis in enumerate(groups.axes) if axis.attrs[0] in block.attrs}


def _possible(block: Region, groups: Groups) -> int:
    """How many groups of its axes a region leaves possible."""
    axes = _own(block, groups)
    if not axes:
        return 1  # a region is never empty
    names = [name for name in block.attrs if any(name in axis.attrs for axis in axes.values())]
    others = tuple(place for place, name in enumerate(block.attrs) if name not in names)
    inside = np.nonzero(block.cells.astype(np.bool_).any(axis=others))
    codes, sizes = _codes(dict(zip(names, inside, strict=True)), axes)
    seen = np.zeros(math.prod(sizes), np.bool_)
    seen[np.ravel_multi_index(codes, sizes)] = True
    return int(seen.sum())


def _codes(cells: Mapping[str, Cells], axes: Mapping[int, GroupAxis]) -> tuple[list[Cells], list[int]]:
    """The groups that cells are in, and how many groups each axis has."""
    codes = [axis.of([cells[name] for name in axis.attrs]) for axis in axes.values()]
    return codes, [axis.size for axis in axes.values()]


def _mask(block: Region, groups: Groups, domain: Domain) -> tuple[Mask, dict[int, Cells]]:
    """One row per possible group of the block: its cells in that group; and the groups by axis."""
    sizes, axes = domain.sizes(block.attrs), _own(block, groups)
    if not axes:
        return Mask(block.attrs, sizes, _row(block.cells.ravel())), {}
    inside = np.nonzero(block.cells)
    flat = np.ravel_multi_index(inside, sizes)
    codes, shape = _codes(dict(zip(block.attrs, inside, strict=True)), axes)
    possible, row = np.unique(np.ravel_multi_index(codes, shape), return_inverse=True)
    order = np.lexsort((flat, row))
    weights = block.cells[inside].astype(np.int64)
    steps = _rows(flat[order], row[order], weights[order], len(possible), block.cells.size)
    return Mask(block.attrs, sizes, steps), dict(zip(axes, np.unravel_index(possible, shape), strict=True))


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


MOST_TIED = 256
"""Most values of a column that the WHERE ties to others: each needs masks of its own."""

MOST_SCATTERED = 2**24
"""Most numbers of a matrix of prefixes where the values do not lie in a row."""


@dataclass(frozen=True, eq=False)
class PrefixRows:
    """A product; along one of its axes lie prefixes, along the others the groups."""

    product: Product
    shape: tuple[int, ...]
    axis: int
    groups: Cells


@dataclass(frozen=True, eq=False)
class Prefixes:
    """Pieces with the rows of all prefixes in order, and the value that each prefix reaches up to.

    Where no row is possible there is no piece, and the values are all that are declared.
    """

    parts: list[PrefixRows]
    points: NDArray[np.int64]


def prefixes(
    regions: Sequence[Region] | None,
    value: Values,
    groups: Groups,
    domain: Domain,
    position: int,
    *,
    downwards: bool = False,
) -> Prefixes:
    """Prefix queries, for quantiles: for every value that the regions leave possible, the rows up to it.

    With `downwards`, the rows from it on, and values from the greatest to the least.
    """
    name = value.attribute.name
    about = [region for region in regions or () if name in region.attrs]
    possible = ~value.null
    if about:
        axis = about[0].attrs.index(name)
        possible &= np.any(about[0].cells, axis=tuple(i for i in range(about[0].cells.ndim) if i != axis))
    cells = np.flatnonzero(possible)
    if regions is None or not len(cells):
        return Prefixes([], np.sort(value.numbers[~value.null])[:: -1 if downwards else 1])
    cells = cells[np.argsort(value.numbers[cells], kind="stable")][:: -1 if downwards else 1]
    apart = [region for region in regions if name not in region.attrs]
    if name in groups.names or (about and len(about[0].attrs) > 1):
        if len(cells) > MOST_TIED:
            raise QueryError(
                f"a quantile of {name} with a condition that ties it to other columns, or in groups of its own, "
                f"takes at most {MOST_TIED} values",
                position=position,
            )
        region = about[0] if about else Region((name,), np.ones(value.attribute.size, np.bool_))
        return Prefixes(_tied(region, apart, name, cells, groups, domain), value.numbers[cells])
    others = grouped(apart, groups, domain)
    mask = Mask((name,), (value.attribute.size,), _up_to(cells, value.attribute.size, position))
    masks = sorted([*others.product.masks, mask], key=lambda mask_of_axis: domain.place(mask_of_axis.attrs[0]))
    shape = tuple(mask_of_axis.rows for mask_of_axis in masks)
    piece = PrefixRows(Product(tuple(masks)), shape, masks.index(mask), others.groups)
    return Prefixes([piece], value.numbers[cells])


def _up_to(cells: NDArray[np.int64], size: int, position: int) -> Steps:
    """One row per cell: it, and all cells in front of it."""
    if np.all(np.diff(cells) == 1):
        return Steps.ranges(np.full(len(cells), cells[0]), cells + 1, size)
    if np.all(np.diff(cells) == -1):
        return Steps.ranges(cells, np.full(len(cells), cells[0] + 1), size)
    if len(cells) * size > MOST_SCATTERED:
        raise QueryError("there are too many values for a quantile", position=position)
    rows = np.zeros((len(cells), size), np.int64)
    for row, cell in enumerate(cells):
        rows[row:, cell] = 1
    return Steps.dense(rows)


def _tied(
    region: Region, others: list[Region], name: str, cells: NDArray[np.int64], groups: Groups, domain: Domain
) -> list[PrefixRows]:
    axis = region.attrs.index(name)
    pieces: list[PrefixRows] = []
    for number in range(1, len(cells) + 1):
        chosen = np.zeros(region.cells.shape[axis], np.bool_)
        chosen[cells[:number]] = True
        shape = [1] * region.cells.ndim
        shape[axis] = -1
        part = Region(region.attrs, region.cells & chosen.reshape(shape))
        rows = grouped([*others, part], groups, domain)
        pieces.append(PrefixRows(rows.product, (rows.product.rows, 1), 1, rows.groups))
    return pieces


def predicate(condition: Condition, domain: Domain, group: Sequence[Within] = ()) -> Predicate | None:
    """The count of the rows of a group for which a condition holds; None where it is seen to hold nowhere.

    The column of the partitions comes first, so that it is never left out of the hull, then those of the group.
    """
    first = {domain.partition, *(within.column for within in group)}
    whole = normal_form(condition, negated=False)
    if whole == FALSE:
        return None
    names = domain.ordered([*names_in(whole), *(within.column for within in group)])
    attrs = tuple(sorted(names, key=lambda name: (name != domain.partition, name not in first)))
    parts = (*group, *(() if whole == TRUE else (_part(whole, int(YES), False, domain),)))
    count = Predicate(attrs, domain.sizes(attrs), parts[0] if len(parts) == 1 else Quorum(len(parts), parts))
    return count if count.norms(1)[0].largest() > 0 else None


def group_of(line: Cells, groups: Groups, domain: Domain) -> tuple[Within, ...]:
    """The cells of the group columns that make up one group."""
    chosen = [_groups(axis, domain) == code for axis, code in zip(groups.axes, line, strict=True)]
    return tuple(Within(axis.attrs[0], _ranges(cells)) for axis, cells in zip(groups.axes, chosen, strict=True))


def _groups(axis: GroupAxis, domain: Domain) -> Cells:
    """The group of each cell of the one column of an axis."""
    if len(axis.attrs) > 1:
        raise QueryError(
            f"groups that tie {' and '.join(axis.attrs)} together cannot stand beside a condition that ties too many "
            "columns together",
            position=axis.position,
        )
    return axis.of([np.arange(domain[axis.attrs[0]].size)])


def possible_groups(condition: Condition, groups: Groups, domain: Domain) -> Cells:
    """The groups that a condition leaves possible, sorted: one line per group, one column per axis.

    Edge cases: refused where there may be more than MOST_GROUPS.
    """
    count = predicate(condition, domain)
    if count is None:
        return np.zeros((0, len(groups.axes)), np.int64)
    masks = {mask.attrs[0]: mask for mask in count.hull}
    codes: list[list[int]] = []
    for axis in groups.axes:
        group_codes, name = _groups(axis, domain), axis.attrs[0]
        if name in masks:
            group_codes = group_codes[masks[name].steps.at_cells(np.arange(domain[name].size))[0] > 0]
        codes.append(np.unique(group_codes).tolist())
    if math.prod(map(len, codes)) > MOST_GROUPS:
        raise too_many_tied(count.attrs, min(leaf.position for leaf in leaves(condition) if leaf.position >= 0))
    lines = [line for line in product(*codes) if predicate(condition, domain, group_of(np.array(line), groups, domain))]
    return np.array(lines, np.int64).reshape(-1, len(groups.axes))


def _part(condition: Condition, level: int, below: bool, domain: Domain) -> Within | Quorum:
    """Where the truth of a condition, NO < UNKNOWN < YES, is at least the level; or where it is below it.

    The condition is a normal one: it names a column, and so does each of its parts.
    """
    names = names_in(condition)
    if len(names) == 1:
        return _within(condition, names[0], level, below, domain)
    if isinstance(condition, Holds):
        joint = f"{' and '.join(domain.ordered(names))} have {domain.cells(names):,} joint values"
        raise QueryError(
            f"{joint}, and up to {LARGEST_JOINT:,} can be compared or computed with; narrower ends or wider bins in "
            "the config would do",
            position=condition.position,
        )
    match condition:
        case Not():
            return _part(condition.part, 3 - level, not below, domain)  # NOT turns the truth t into 2 - t
        case IsTrue():
            return _part(condition.part, int(YES), below, domain)
        case AtLeast():
            parts = tuple(_part(part, int(YES), below, domain) for part in condition.parts)
            return Quorum(len(parts) - condition.count + 1 if below else condition.count, parts)
    assert isinstance(condition, And | Or)
    parts = tuple(_part(part, level, below, domain) for part in by_column(condition))
    # A minimum is below a level where one part is, a maximum where all are.
    everything = isinstance(condition, And) is not below
    return Quorum(len(parts) if everything else 1, parts)


def by_column(condition: And | Or) -> list[Condition]:
    """The parts, those about the same single column as one: kinds of value behind a cell may agree only together."""
    by_name: dict[str | int, list[Condition]] = {}
    for place, part in enumerate(condition.parts):
        names = names_in(part)
        by_name.setdefault(names[0] if len(names) == 1 else place, []).append(part)
    return [parts[0] if len(parts) == 1 else type(condition)(parts=tuple(parts)) for parts in by_name.values()]


def _within(condition: Condition, name: str, level: int, below: bool, domain: Domain) -> Within:
    line = ValueLine(domain[name])
    truth = truth_on(condition, (name,), [line])
    holds = np.broadcast_to(truth < level if below else truth >= level, [line.size])
    return Within(name, _ranges(merge_strays(holds, 0, line, condition)))


def _ranges(cells: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    """The runs of cells, each from its first to one past its last."""
    ends = np.flatnonzero(np.diff(np.concatenate([[False], cells, [False]]))).tolist()
    return tuple(zip(ends[::2], ends[1::2], strict=True))
