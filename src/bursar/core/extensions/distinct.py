"""Distinct counts: how many people, or how many values of a column, there are among the rows of each group.

Such a count is no sum over rows: somebody with three rows in a group is there once. What one person can change is
bounded all the same, and the bound is what is priced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bursar.arrays import Flags, Integers
from bursar.core.domain import Domain, Neighbours, Unit
from bursar.core.extensions.hull import Hull
from bursar.core.extensions.pairs import outer
from bursar.core.extensions.predicate import Predicate
from bursar.core.queries.linear_map import Counts, Header, LinearMap, Norm
from bursar.core.queries.mask import Steps
from bursar.core.queries.product import Product
from bursar.core.source.raw import FAILED, attempt
from bursar.errors import QueryError, Unsupported

if TYPE_CHECKING:
    from bursar.core.accounting.accountant import Accountant
    from bursar.core.accounting.profile import Footprint
    from bursar.core.noise.law import Noise
    from bursar.core.source.duckdb import DuckDBSource

NOBODY = "rows have no unit column, or partitions, so there are no people whose rows could be counted"


class Reach(NamedTuple):
    """What one unit can change: `times` numbers, each by at most `change`; `norms` say which cells lose by it."""

    times: int
    change: int
    norms: tuple[Norm, ...]


@dataclass(frozen=True, eq=False)
class Distinct:
    """For each row of `groups`: how many units, or values of the column `of`, occur among the rows that are in it.

    Guarantees: no cell is in two groups, so that a row of the data changes at most one count, and by at most one.
    Edge cases: refused are groups that overlap or that weigh cells. NULL is a value unless the groups leave it out.
    """

    groups: Product | Predicate
    of: str | None = None

    def __post_init__(self) -> None:
        if type(self.groups) not in (Product, Predicate) or not (self.of is None or isinstance(self.of, str)):
            raise QueryError("a distinct count is of people, or of values of a column, in groups of rows")
        masks = self.groups.masks if isinstance(self.groups, Product) else ()
        if any(np.any((mask.steps.levels != 0) & (mask.steps.levels != 1)) for mask in masks) or (
            self.groups.norms(1)[0].largest() > 1
        ):
            raise QueryError("the groups of a distinct count overlap")

    @cached_property
    def attrs(self) -> tuple[str, ...]:
        counted = () if self.of is None or self.of in self.groups.attrs else (self.of,)
        return (*self.groups.attrs, *counted)

    @property
    def rows(self) -> int:
        return self.groups.rows

    @cached_property
    def digest(self) -> str:
        from bursar.core.queries.map_codec import encode  # the codec knows every kind of map

        return hashlib.blake2b(encode(self), digest_size=16).hexdigest()

    def packed(self) -> tuple[Header, list[Integers]]:
        """A header and arrays that say all there is to say."""
        from bursar.core.queries.map_codec import shape_of

        arrays: list[Integers] = []
        groups = self.groups.packed()[0] if isinstance(self.groups, Predicate) else shape_of(self.groups, arrays)
        return {"kind": "distinct", "of": self.of, "groups": groups}, arrays

    @staticmethod
    def unpacked(header: Header, numbers: Integers) -> Distinct:
        from bursar.core.queries.map_codec import products_of

        inner = header["groups"]
        if isinstance(inner, dict):
            return Distinct(Predicate.unpacked(inner, numbers), header["of"])
        groups = products_of({"kind": "product", "products": [inner]}, numbers)
        assert isinstance(groups, Product)
        return Distinct(groups, header["of"])

    def apply(self, counts: Counts) -> Integers:
        """The exact numbers of values from a table of all joint cells; people are not in it."""
        if self.of is None:
            raise QueryError("a table of counts does not tell people apart")
        table = counts(self.attrs)
        cells = dict(zip(self.attrs, np.nonzero(table), strict=True))
        return self.counted(cells[self.of], [cells[name] for name in self.groups.attrs])

    def counted(self, what: Integers, cells: Sequence[Integers]) -> Integers:
        """The counts, from the cells of the groups' columns that occur and what occurs in each of them."""
        if isinstance(self.groups, Predicate):
            inside = self.groups.holds(cells)
            return np.array([len(np.unique(what[inside]))], np.int64)
        number, there = self.group_of(dict(zip(self.groups.attrs, cells, strict=True)), len(what))
        number, what = number[there], what[there]
        order = np.lexsort((what, number))
        changes = np.diff(number[order], prepend=-1) != 0
        changes[1:] |= np.diff(what[order]) != 0
        return np.bincount(number[order][changes], minlength=self.rows).astype(np.int64)

    def group_of(self, cells: Mapping[str, Integers], rows: int) -> tuple[Integers, Flags]:
        """The group of each row, given its cells, and whether it is in one."""
        number, there = np.zeros(rows, np.int64), np.ones(rows, np.bool_)
        for mask in self.groups.masks if isinstance(self.groups, Product) else ():
            joint = np.zeros(rows, np.int64)
            for name, size in zip(mask.attrs, mask.sizes, strict=True):
                joint = joint * size + cells[name]
            row = _row_of(mask.steps)[joint]
            number, there = number * mask.rows + row, there & (row >= 0)
        return number, there

    def norms(self, power: int) -> tuple[Norm, ...]:
        """1 in the cells of groups: a row moves the count of its own group alone, whatever other rows are there."""
        masks = self.groups.hull if isinstance(self.groups, Predicate) else self.groups.masks
        return (Hull(masks, power) if self.rows == 1 else Unshared(masks, power),)

    def reach(self, unit: Unit, power: int) -> Reach:
        """Of people: somebody is in d = min(k, groups) groups at most, and changes each count by one.

        Where that is fewer than k, everybody loses d times what a change by one costs, in whatever cells they are.
        Else the cells of the groups lose k times it, which counts once with what questions about other cells cost.

        Guarantees: never min(k, groups) on the cells of the groups: k rows in one group would be booked too low.
        """
        if unit.column is None or unit.neighbours is Neighbours.REPLACE_ONE:
            raise Unsupported('people are counted where the unit is a column, and neighbours = "add-remove"')
        most = unit.max_contributions
        times = min(most, self.rows)
        return Reach(times, 1, self.norms(power) if times == most else (Norm((), power),))

    def largest(self) -> int:
        return 1

    def take(self, rows: Sequence[int]) -> LinearMap:
        groups = self.groups.take(rows)
        if not isinstance(groups, Product | Predicate):
            raise QueryError("the groups of a distinct count are taken one by one")
        return Distinct(groups, self.of)


class Unshared(Hull):
    """The norm of rows that no two cells share: a pair loses at most what both lose, even where it is one cell."""

    @property
    def pair_factor(self) -> int:
        return 2

    def pairs(self) -> Integers | None:
        """q(v) + q(v') for all pairs of cells, those of a cell with itself too; None where there are too many."""
        if super().pairs() is None:
            return None
        norm = outer(list(self.vectors)).ravel()
        apart: Integers = np.add.outer(norm, norm)
        return apart


def _row_of(steps: Steps) -> Integers:
    """The one row that is 1 in each cell; -1 where none is."""
    changes = np.zeros(steps.size, np.int64)
    np.add.at(changes, steps.at, (steps.owner + 1) * steps.jump)
    row: Integers = np.cumsum(changes) - 1
    return row


def check_counted(domain: Domain, distinct: Distinct) -> None:
    """Raise the QueryError that `Source.distinct` promises."""
    groups = distinct.groups
    sizes = groups.sizes if isinstance(groups, Predicate) else sum((mask.sizes for mask in groups.masks), ())
    named = all(name in domain for name in distinct.attrs)
    if not named or domain.sizes(groups.attrs) != tuple(sizes):
        raise QueryError("a distinct count does not fit the columns of the data")


def count_distinct(source: DuckDBSource, distinct: Distinct) -> Integers:
    """`Source.distinct` of a source in DuckDB."""
    domain, of = source._domain, distinct.of
    check_counted(domain, distinct)
    if of is None and not source._people:
        raise QueryError(NOBODY)
    place = None if of is None else domain.place(of)
    of_texts = f"dense_rank() OVER (ORDER BY t{place})"
    what = "unit" if place is None else of_texts if place in source._open else f"c{place}"
    columns = [f"c{domain.place(name)}" for name in distinct.groups.attrs]
    selected = ", ".join([f"{what} AS what", *columns])

    def counted() -> Integers:
        fetched = source._fetch(f"SELECT DISTINCT {selected} FROM {source._kept if place is None else source._cells}")
        return distinct.counted(fetched["what"], [fetched[column] for column in columns])

    return attempt(counted, FAILED)


def over_units(
    accountant: Accountant, reach: Reach, noise: Noise, *, version: int, block: Hashable
) -> tuple[Footprint, ...]:
    """The footprints of numbers that are no sums over rows: what a unit can change of them is known as a whole."""
    from bursar.core.accounting.profile import Footprint, fine_units  # which are made of queries

    def units_of(finer: int) -> int:
        return reach.times * accountant.units(noise, finer, change=reach.change)

    units, finer = fine_units(units_of)
    footprint = partial(Footprint, units=units, version=version, finer=finer, block=block)
    return tuple(footprint(norm=norm) for norm in reach.norms)
