"""Merged cells of some columns: queries over them, and strategies over them turned back into queries over cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bursar.arrays import Integers, Reals
from bursar.core.extensions.pairs import classes
from bursar.core.queries import LARGEST_JOINT, Mask, Product, Steps
from bursar.errors import QueryError
from bursar.strategies.measure import LARGEST_DENSE, checked_gram, checked_size

MOST_NUMBERS = 2**26
"""Most numbers of a workload, or of a strategy, that are written out over merged cells."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MergedCells:
    """The joint cells of some columns in groups that no query of a workload tells apart.

    Cells are numbered with the last column running fastest; they come in runs of equal group.
    """

    attrs: tuple[str, ...]
    sizes: tuple[int, ...]
    starts: Integers  # the first cell of each run
    groups: Integers  # the group of each run, -1 where no query looks
    count: int

    def mask(self, rows: Integers) -> Mask:
        """Rows over groups as queries over cells."""
        if len(rows) * len(self.starts) > MOST_NUMBERS:
            raise QueryError(f"a strategy of {len(rows)} rows over {len(self.starts)} cells is too large")
        padded = np.concatenate([rows, np.zeros((len(rows), 1), np.int64)], axis=1)
        runs = Steps.dense(padded[:, self.groups])
        steps = Steps(math.prod(self.sizes), runs.starts, self.starts[runs.at], runs.jump)
        return Mask(self.attrs, self.sizes, steps)


def merged_mask(mask: Mask) -> tuple[MergedCells, Reals]:
    """The merged cells of a single mask, and its rows over them."""
    starts = mask.steps.breaks()
    if len(starts) * mask.rows > MOST_NUMBERS:
        raise QueryError(
            f"{mask.rows} queries that change at {len(starts)} cells are too many to find a strategy for; ask about "
            "fewer values, or with coarser bins"
        )
    return _merged(mask.attrs, mask.sizes, starts, mask.steps.at_cells(starts).astype(np.float64))


def is_disjoint(mask: Mask) -> bool:
    """Whether every row is a set of cells, none empty, and no two rows share a cell: then nothing beats asking them."""
    steps = mask.steps
    sets = bool(np.isin(steps.levels, (0, 1)).all()) and bool(np.all(np.diff(steps.starts) > 0))
    return sets and int(steps.norms(1).max(initial=0)) <= 1


def without_factor(mask: Mask) -> tuple[Mask, int]:
    """A mask without the factor that all of its coefficients have, and that factor."""
    steps, factor = mask.steps, int(np.gcd.reduce(mask.steps.jump, initial=0)) or 1
    return Mask(mask.attrs, mask.sizes, Steps(steps.size, steps.starts, steps.at, steps.jump // factor)), factor


def times(mask: Mask, factor: int) -> Mask:
    """Every row of a mask so many times."""
    steps = mask.steps
    return Mask(mask.attrs, mask.sizes, Steps(steps.size, steps.starts, steps.at, steps.jump * factor))


def factors_on_overlaps(product: Product) -> Product:
    """The same queries, with the factors of masks whose rows share no cell at the first mask whose rows do.

    Multiples of groups, as rows are planned in that may err less than others, are groups again then.
    Edge cases: where no rows share a cell, the product is its own strategy, and stays as it is.
    """
    reduced = [without_factor(mask) for mask in product.masks]
    disjoint = [is_disjoint(mask) for mask, _ in reduced]
    factor = math.prod(multiple for (_, multiple), apart in zip(reduced, disjoint, strict=True) if apart)
    if factor == 1 or all(disjoint):
        return product
    masks = [mask if apart else whole for (mask, _), apart, whole in zip(reduced, disjoint, product.masks, strict=True)]
    masks[disjoint.index(False)] = times(masks[disjoint.index(False)], factor)
    return Product(tuple(masks))


def merged_products(products: Sequence[Product]) -> tuple[MergedCells, Reals]:
    """The merged joint cells of all columns in use, and all rows over them, one below the other.

    Edge cases: more than 4096 merged cells, or more joint cells than one query can span, are refused.
    """
    sizes = {name: size for p in products for m in p.masks for name, size in zip(m.attrs, m.sizes, strict=True)}
    classes = {name: _classes(name, size, products) for name, size in sizes.items()}
    firsts = {name: np.unique(labels, return_index=True)[1] for name, labels in classes.items()}
    shape = [len(first) for first in firsts.values()]
    checked_size(math.prod(shape))
    if len(sizes) > 1 and math.prod(sizes.values()) > LARGEST_JOINT:
        cells = math.prod(sizes.values())
        raise QueryError(f"{' and '.join(sizes)} span {cells} cells together; {LARGEST_JOINT} are possible")
    if sum(p.rows for p in products) * math.prod(shape) > MOST_NUMBERS:
        raise QueryError("these are too many queries to find a strategy for; ask in smaller batches")
    rows = np.concatenate([_over_classes(p, firsts) for p in products])
    group = np.zeros((), np.int64)
    for labels, count in zip(classes.values(), shape, strict=True):
        group = np.add.outer(group * count, labels)
    flat = group.ravel()
    starts = np.flatnonzero(np.concatenate([[True], flat[1:] != flat[:-1]]))
    return _merged(tuple(sizes), tuple(sizes.values()), starts, rows[:, flat[starts]])


def _merged(attrs: tuple[str, ...], sizes: tuple[int, ...], starts: Integers, rows: Reals) -> tuple[MergedCells, Reals]:
    """Equal columns become one group; `rows` are over runs."""
    merging = merge_workload(rows)
    checked_size(max(merging.cells, 1))
    cells = MergedCells(attrs=attrs, sizes=sizes, starts=starts, groups=merging.group, count=merging.cells)
    return cells, merging.queries(rows)


def _classes(name: str, size: int, products: Sequence[Product]) -> Integers:
    """A number for each cell of a column, equal where no query of any product tells two cells apart."""
    labels = np.zeros(size, np.int64)
    for product in products:
        for mask in product.masks:
            if name in mask.attrs:
                told_apart = classes(mask, name, LARGEST_DENSE)
                if told_apart is None:
                    raise QueryError(f"these queries tell too many values of {name} apart to find a strategy for them")
                both = labels * (int(told_apart.max()) + 1) + told_apart
                labels = np.unique(both, return_inverse=True)[1].astype(np.int64)
    return labels


def _over_classes(product: Product, firsts: dict[str, Integers]) -> Reals:
    """The rows of a product over the joint classes of all columns."""
    names = list(firsts)
    result = np.ones((1, *[1] * len(names)))
    for mask in product.masks:
        values = mask.at(firsts).astype(np.float64)
        grid = values.reshape(len(values), *(len(firsts[name]) for name in mask.attrs))
        order = np.argsort([names.index(name) for name in mask.attrs])
        shape = [len(firsts[name]) if name in mask.attrs else 1 for name in names]
        grid = np.transpose(grid, [0, *(1 + order)]).reshape(len(values), *shape)
        result = result[:, None] * grid[None]
        result = result.reshape(-1, *result.shape[2:])
    full = [len(first) for first in firsts.values()]
    return np.broadcast_to(result, (len(result), *full)).reshape(len(result), -1)


UNUSED = -1
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, kw_only=True, eq=False)
class Merging:
    """Which merged cell every cell belongs to, in the order of first appearance; `UNUSED` where no query looks."""

    group: NDArray[np.int64]
    first: NDArray[np.int64]  # one cell of each merged cell

    @property
    def cells(self) -> int:
        """How many merged cells there are."""
        return len(self.first)

    def gram(self, gram: ArrayLike) -> Reals:
        """The Gram matrix over merged cells."""
        return np.asarray(gram, np.float64)[np.ix_(self.first, self.first)]

    def queries(self, workload: ArrayLike) -> Reals:
        """The workload's matrix over merged cells."""
        return np.asarray(workload, np.float64)[:, self.first]

    def spread(self, strategy: NDArray[Number]) -> NDArray[Number]:
        """A strategy over merged cells, over all cells: columns copied, zero where no query looks."""
        padded = np.concatenate([strategy, np.zeros((len(strategy), 1), strategy.dtype)], axis=1)
        return padded[:, self.group]


def merge_workload(workload: ArrayLike) -> Merging:
    """Merge the cells whose columns of W are equal."""
    columns = np.ascontiguousarray(np.asarray(workload, np.float64).T)
    return _merge(columns, np.asarray(columns.any(axis=1)))


def merge_gram(gram: ArrayLike) -> Merging:
    """Merge the cells whose rows of V = W^T W are equal: exactly those with equal columns of W.

    Guarantees: numbers are compared as they are. Where V was computed with rounding, equal columns may stay apart,
    which costs time and no accuracy.
    """
    V = checked_gram(gram)
    return _merge(np.ascontiguousarray(V), V.diagonal() > 0)


def _merge(rows: Reals, used: NDArray[np.bool_]) -> Merging:
    seen: dict[bytes, int] = {}
    positive = rows + 0.0  # so that -0.0 and 0.0 are one number
    number = [
        seen.setdefault(row.tobytes(), len(seen)) if use else UNUSED for row, use in zip(positive, used, strict=True)
    ]
    group = np.array(number, np.int64)
    _, first = np.unique(group[used], return_index=True)
    return Merging(group=group, first=np.flatnonzero(used)[first])
