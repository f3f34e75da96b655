"""Sums as rows: regions in which cells weigh what their values are."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers
from bursar.compile.regions import Region, regions
from bursar.compile.three_valued import ValueLine
from bursar.compile.values import LARGEST_NUMBER, Values, values_of
from bursar.core.domain import Attribute, Domain
from bursar.core.queries import LARGEST_JOINT
from bursar.errors import QueryError
from bursar.sql import FALSE, TRUE, Aggregate, Branch, Condition, IsNull, IsTrue, Name, Not, Or
from bursar.sql.query import all_of, branches_of

Change = Callable[[Integers], Integers]
"""What is added up in place of a value: itself, its distance from a centre, or the square of that."""


@dataclass(frozen=True, eq=False)
class Sum:
    """A sum over rows: `unit` times what the regions add up to; None where it is 0 whatever the data hold."""

    found: tuple[Region, ...] | None
    unit: Fraction

    @property
    def largest(self) -> int:
        """The most that one row can weigh, in units."""
        return math.prod(int(np.abs(region.cells.astype(np.int64)).max()) for region in self.found or ())

    @property
    def least(self) -> float:
        """What it cannot be below, in units: 0 where no row has a weight below 0."""
        return 0.0 if all(region.cells.min() >= 0 for region in self.found or ()) else -math.inf


@dataclass(frozen=True, eq=False)
class Operand:
    """What an aggregate is of: its branches with the values they have, all in whole numbers of 1/`parts`."""

    aggregate: Aggregate
    where: Condition
    domain: Domain
    branches: tuple[tuple[Condition, Values | int | None], ...]  # disjoint conditions
    parts: int

    @staticmethod
    def of(aggregate: Aggregate, where: Condition, domain: Domain) -> Operand:
        taken = _disjoint(branches_of(aggregate))
        known = [_value(branch, domain) for _, branch in taken]
        parts = math.lcm(*(_parts(value) for value in known))
        whole = [_in_parts(value, parts) for value in known]
        for (_, branch), value in zip(taken, whole, strict=True):
            if _largest(value) > LARGEST_NUMBER:
                raise QueryError("these numbers are too large, or too fine, to be added up", position=branch.position)
        branches = tuple((condition, value) for (condition, _), value in zip(taken, whole, strict=True))
        return Operand(aggregate, where, domain, branches, parts)

    def known(self) -> Condition:
        """The condition that rows meet which have a value: of the FILTER, and that it is not NULL."""
        return all_of(self.aggregate.condition, self._not_null())

    def _not_null(self) -> Condition:
        place = self.aggregate.position
        there = [
            (condition, TRUE if isinstance(value, int) else not_null(value.attribute, place))
            for condition, value in self.branches
            if value is not None
        ]
        covered = any(branch.condition == TRUE for branch in branches_of(self.aggregate))
        if covered and len(there) == len(self.branches) and all(known == TRUE for _, known in there):
            return TRUE
        parts = tuple(all_of(condition, known) for condition, known in there)
        return parts[0] if len(parts) == 1 else Or(parts=parts, position=place) if parts else FALSE

    def extent(self) -> tuple[int, int]:
        """The least and the greatest value that a row can have, in whole numbers of 1/parts."""
        ends: list[int] = []
        for condition, value in self.branches:
            found = None if value is None else regions(self._condition(condition), self.domain)
            if isinstance(value, int) and found is not None:
                ends.append(value)
            elif isinstance(value, Values) and found is not None:
                numbers = value.numbers[_kept(found, value.attribute.name) & ~(value.null | value.missing)]
                ends += [int(numbers.min()), int(numbers.max())] if len(numbers) else []
        return min(ends, default=0), max(ends, default=0)

    def binned(self) -> list[Values]:
        """The columns in it of which only the bins are known."""
        return [value for _, value in self.branches if isinstance(value, Values) and value.off]

    def columns(self) -> list[Attribute]:
        """The columns that values come from; none where they are constants alone."""
        return [value.attribute for _, value in self.branches if isinstance(value, Values)]

    def by_column(self) -> bool:
        """Whether values come from a column, and not from constants alone."""
        return bool(self.columns())

    def total(self, change: Change, power: int) -> Sum:
        """The sum of changed values over the rows that meet the conditions."""
        pieces: list[tuple[tuple[Region, ...], int]] = []
        for condition, value in self.branches:
            found = None if value is None else regions(self._condition(condition), self.domain)
            if found is None or value is None:
                continue
            if isinstance(value, int):
                weight = int(change(np.array([value], np.int64))[0])
                pieces += [(found, weight)] if weight else []
            else:
                pieces.append((self._weighed(found, value, change), 1))
        unit = Fraction(1, self.parts**power)
        pieces = [piece for piece in pieces if all(region.cells.any() for region in piece[0])]
        if not pieces:
            return Sum(None, unit)
        found, factor = pieces[0] if len(pieces) == 1 else (self._joined(pieces), 1)
        found, common = _reduced(found)
        return Sum(found, unit * factor * common)

    def _condition(self, branch: Condition) -> Condition:
        return all_of(self.where, self.aggregate.condition, branch)

    def _weighed(self, found: tuple[Region, ...], value: Values, change: Change) -> tuple[Region, ...]:
        """The regions with the numbers of the column in the one that has it."""
        name = value.attribute.name
        own = [region for region in found if name in region.attrs]
        region = own[0] if own else Region((name,), np.ones(value.attribute.size, np.bool_))
        axis = region.attrs.index(name)
        if np.any(_kept(found, name) & value.missing):
            raise QueryError(
                f"{ValueLine(value.attribute).kept_together()}, and have no value to add up",
                position=self.aggregate.position,
            )
        shape = [1] * len(region.attrs)
        shape[axis] = -1
        numbers = np.where(value.null | value.missing, 0, change(value.numbers)).reshape(shape)
        weighed = Region(region.attrs, region.cells * numbers)
        return tuple(sorted([*(r for r in found if r is not region), weighed], key=self._place))

    def _joined(self, pieces: Sequence[tuple[tuple[Region, ...], int]]) -> tuple[Region, ...]:
        """Several disjoint sums as one: what all of them share stays apart, the rest is put on one grid."""
        shared = [region for region in pieces[0][0] if all(_has(found, region) for found, _ in pieces[1:])]
        rest = [([r for r in found if not _has(shared, r)], weight) for found, weight in pieces]
        attrs = self.domain.ordered(name for found, _ in rest for region in found for name in region.attrs)
        sizes = self.domain.sizes(attrs)
        if len(attrs) > 1 and math.prod(sizes) > LARGEST_JOINT:
            raise QueryError(
                f"a CASE that ties {' and '.join(attrs)} together spans {math.prod(sizes)} cells; "
                f"{LARGEST_JOINT} are possible",
                position=self.aggregate.position,
            )
        cells = np.zeros(sizes, np.int64)
        for found, weight in rest:
            spread = [_spread(region, attrs) for region in found]
            cells += functools.reduce(np.multiply, spread, np.full([1] * len(attrs), weight, np.int64))
        return tuple(sorted([*shared, Region(attrs, cells)], key=self._place))

    def _place(self, region: Region) -> int:
        return self.domain.place(region.attrs[0])


def _disjoint(branches: Sequence[Branch]) -> list[tuple[Condition, Branch]]:
    """Each branch with the condition that it is taken: its own, and none before it."""
    found: list[tuple[Condition, Branch]] = []
    before: list[Condition] = []
    for branch in branches:
        found.append((all_of(branch.condition, *before), branch))
        if branch.condition == TRUE:
            break
        before.append(Not(part=IsTrue(part=branch.condition), position=branch.position))
    return found


def _value(branch: Branch, domain: Domain) -> Values | Fraction | None:
    if branch.value is None:
        return None
    if isinstance(branch.value, Name):
        return values_of(domain[branch.value.text], branch.value.position)
    return Fraction(branch.value)


def _parts(value: Values | Fraction | None) -> int:
    return 1 if value is None else value.parts if isinstance(value, Values) else value.denominator


def _in_parts(value: Values | Fraction | None, parts: int) -> Values | int | None:
    if isinstance(value, Values):
        return value.times(parts // value.parts)
    return None if value is None else int(value * parts)


def _largest(value: Values | int | None) -> int:
    return 0 if value is None else abs(value) if isinstance(value, int) else int(np.abs(value.numbers).max())


def not_null(attribute: Attribute, position: int) -> Condition:
    """That a column has a value; where it has no NULL, or has it sent to a value, it always does."""
    if isinstance(attribute.null, int):
        return TRUE
    column = Name(text=attribute.name, quoted=True, position=position)
    return Not(part=IsNull(column=column, position=position), position=position)


def _kept(found: Sequence[Region], name: str) -> NDArray[np.bool_] | np.bool_:
    """The cells of a column that regions keep."""
    for region in found:
        if name in region.attrs:
            axis = region.attrs.index(name)
            kept: NDArray[np.bool_] = np.any(region.cells, axis=tuple(i for i in range(region.cells.ndim) if i != axis))
            return kept
    return np.True_


def _has(regions: Sequence[Region], wanted: Region) -> bool:
    return any(one.attrs == wanted.attrs and np.array_equal(one.cells, wanted.cells) for one in regions)


def _spread(region: Region, attrs: tuple[str, ...]) -> Integers:
    """The cells of a region with an axis for each column."""
    shape = [region.cells.shape[region.attrs.index(name)] if name in region.attrs else 1 for name in attrs]
    return region.cells.astype(np.int64).reshape(shape)


def _reduced(found: tuple[Region, ...]) -> tuple[tuple[Region, ...], int]:
    """The regions without their common factor, which is given beside; what counts as 1 everywhere is left out."""
    factor, reduced = 1, []
    for region in found:
        common = int(np.gcd.reduce(np.abs(region.cells.astype(np.int64)), axis=None))
        cells = region.cells if common == 1 else region.cells // common
        factor *= common
        if not np.array_equal(cells, np.ones_like(cells)):
            reduced.append(Region(region.attrs, cells))
    return tuple(reduced), factor
