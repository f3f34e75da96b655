"""Numbers of rows up to each value of a column, as rows: what quantiles are read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bursar.core.domain import Domain
from bursar.errors import QueryError
from bursar.core.queries import Mask, Product, Steps
from bursar.compile.groups import Cells, Groups
from bursar.compile.masks import grouped
from bursar.compile.regions import Region
from bursar.compile.values import Values

MOST_TIED = 256
"""Most values of a column that the WHERE ties to others: each needs masks of its own."""

MOST_SCATTERED = 2**24
"""Most numbers of a matrix of prefixes where the values do not lie in a row."""


@dataclass(frozen=True, eq=False)
class Piece:
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

    parts: list[Piece]
    points: NDArray[np.int64]


def prefixes(found: Sequence[Region] | None, value: Values, groups: Groups, domain: Domain, position: int) -> Prefixes:
    """For every value that the regions leave possible, the rows up to it."""
    name = value.attribute.name
    own = [region for region in found or () if name in region.attrs]
    known = ~(value.null | value.missing)
    if own:
        axis = own[0].attrs.index(name)
        known &= np.any(own[0].cells, axis=tuple(i for i in range(own[0].cells.ndim) if i != axis))
    cells = np.flatnonzero(known)
    if found is None or not len(cells):
        return Prefixes([], np.sort(value.numbers[~(value.null | value.missing)]))
    cells = cells[np.argsort(value.numbers[cells], kind="stable")]
    rest = [region for region in found if name not in region.attrs]
    if name in groups.names or (own and len(own[0].attrs) > 1):
        if len(cells) > MOST_TIED:
            raise QueryError(
                f"a quantile of {name} with a condition that ties it to other columns, or in groups of its own, "
                f"takes at most {MOST_TIED} values",
                position=position,
            )
        region = own[0] if own else Region((name,), np.ones(value.attribute.size, np.bool_))
        return Prefixes(_tied(region, rest, name, cells, groups, domain), value.numbers[cells])
    others = grouped(rest, groups, domain)
    mask = Mask((name,), (value.attribute.size,), _up_to(cells, value.attribute.size, position))
    masks = sorted([*others.product.masks, mask], key=lambda one: domain.place(one.attrs[0]))
    shape = tuple(one.rows for one in masks)
    piece = Piece(Product(tuple(masks)), shape, masks.index(mask), others.groups)
    return Prefixes([piece], value.numbers[cells])


def _up_to(cells: NDArray[np.int64], size: int, position: int) -> Steps:
    """One row per cell: it, and all cells in front of it."""
    if np.all(np.diff(cells) == 1):
        return Steps.ranges(np.full(len(cells), cells[0]), cells + 1, size)
    if len(cells) * size > MOST_SCATTERED:
        raise QueryError("there are too many values for a quantile", position=position)
    rows = np.zeros((len(cells), size), np.int64)
    for row, cell in enumerate(cells):
        rows[row:, cell] = 1
    return Steps.dense(rows)


def _tied(
    region: Region, rest: list[Region], name: str, cells: NDArray[np.int64], groups: Groups, domain: Domain
) -> list[Piece]:
    axis = region.attrs.index(name)
    pieces: list[Piece] = []
    for number in range(1, len(cells) + 1):
        chosen = np.zeros(region.cells.shape[axis], np.bool_)
        chosen[cells[:number]] = True
        shape = [1] * region.cells.ndim
        shape[axis] = -1
        part = Region(region.attrs, region.cells & chosen.reshape(shape))
        made = grouped([*rest, part], groups, domain)
        pieces.append(Piece(made.product, (made.product.rows, 1), 1, made.groups))
    return pieces
