"""Small domains, random maps over them, and what a map really does to a table when one row changes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bursar.core.domain import Domain, IntegerRange
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps, decode, encode
from bursar.errors import LedgerError

Numbers = NDArray[np.int64]


def domain_of(**sizes: int) -> Domain:
    """Columns with exactly so many cells each."""
    return Domain(tuple(IntegerRange(name=name, lower=0, upper=size - 1, null=0) for name, size in sizes.items()))


class Table:
    """A table of exact counts over all columns, which gives the table over some of them in any order."""

    def __init__(self, domain: Domain, cells: Numbers | None = None) -> None:
        self.domain = domain
        shape = domain.sizes(domain.names)
        self.cells = np.zeros(shape, np.int64) if cells is None else cells.reshape(shape)

    def __call__(self, attrs: tuple[str, ...]) -> Numbers:
        gone = tuple(i for i, name in enumerate(self.domain.names) if name not in attrs)
        kept = [name for name in self.domain.names if name in attrs]
        return np.transpose(self.cells.sum(axis=gone), [kept.index(name) for name in attrs])

    def changed(self, by: dict[int, int]) -> Table:
        """The same rows, and so many more in the given cells (numbered with the last column running fastest)."""
        cells = self.cells.ravel().copy()
        for cell, rows in by.items():
            cells[cell] += rows
        return Table(self.domain, cells)


def moved(linear_map: LinearMap, table: Table, by: dict[int, int]) -> list[int]:
    """How far each answer moves when rows come and go: two tables, two answers, one difference."""
    difference = linear_map.apply(table.changed(by)) - linear_map.apply(table)
    return [int(x) for x in difference]


def columns_matrix(linear_map: LinearMap, domain: Domain) -> list[list[int]]:
    """For every cell of the whole domain, how far a row there moves each answer."""
    empty = Table(domain)
    return [moved(linear_map, empty, {cell: 1}) for cell in range(domain.cells(domain.names))]


def mask_of(domain: Domain, attrs: Sequence[str], matrix: object) -> Mask:
    return Mask(tuple(attrs), domain.sizes(attrs), Steps.dense(matrix))


@st.composite
def masks(draw: st.DrawFn, domain: Domain, attrs: tuple[str, ...], values: st.SearchStrategy[int]) -> Mask:
    cells = domain.cells(attrs)
    rows = draw(st.integers(1, 3))
    numbers = draw(st.lists(values, min_size=rows * cells, max_size=rows * cells))
    return mask_of(domain, attrs, np.array(numbers, np.int64).reshape(rows, cells))


@st.composite
def products(draw: st.DrawFn, domain: Domain, values: st.SearchStrategy[int] | None = None) -> Product:
    """Masks over one or two columns each, in any order of columns; sometimes of no column at all.

    Up to two of them have no columns: several numbers in front of one product, some of them 0, some of them equal.
    """
    kinds = (st.integers(0, 1), st.integers(-3, 3), st.integers(0, 3))
    chosen = draw(st.sampled_from(kinds)) if values is None else values
    names = draw(st.permutations(domain.names))[: draw(st.integers(0, len(domain.names)))]
    found: list[Mask] = []
    while names:
        width = draw(st.integers(1, min(2, len(names))))
        found.append(draw(masks(domain, tuple(names[:width]), chosen)))
        names = names[width:]
    for bare in draw(st.lists(masks(domain, (), chosen), max_size=2)):
        found.insert(draw(st.integers(0, len(found))), bare)
    return Product(tuple(found))


def maps(domain: Domain, values: st.SearchStrategy[int] | None = None) -> st.SearchStrategy[LinearMap]:
    stacks = st.lists(products(domain, values), max_size=3).map(lambda parts: Stack(tuple(parts)))
    return st.one_of(products(domain, values), stacks)


def tables(domain: Domain) -> st.SearchStrategy[Table]:
    cells = domain.cells(domain.names)
    counts = st.lists(st.integers(0, 9), min_size=cells, max_size=cells)
    return counts.map(lambda found: Table(domain, np.array(found, np.int64)))


def check_other_bytes(linear_map: LinearMap, data: st.DataObject) -> None:
    """Encoded maps with up to three bytes changed are refused, or are the one encoding of another map."""
    body = bytearray(encode(linear_map))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        changed = decode(bytes(body))
    except LedgerError:
        return
    assert encode(changed) == bytes(body)


def cell_number(domain: Domain, cell: int, names: Sequence[str]) -> int:
    """Where a cell of the whole domain lies among the joint cells of some columns in the given order."""
    place = dict(zip(domain.names, np.unravel_index(cell, domain.sizes(domain.names)), strict=True))
    number = 0
    for name in names:
        number = number * domain[name].size + int(place[name])
    return number


def total_of(vectors: Sequence[Numbers], sizes: Sequence[Sequence[int]], cell: int) -> int:
    """The product of one entry per vector, for a cell of their joint grid."""
    result = 1
    for vector, size in reversed(list(zip(vectors, sizes, strict=True))):
        cell, own = divmod(cell, math.prod(size))
        result *= int(vector[own])
    return result
