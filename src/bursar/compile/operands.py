"""What aggregates are of: values of one or more columns under conditions, in whole numbers, and sums of them over rows.

Sums are rows as well: regions in which cells weigh what their values are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers
from bursar.compile.cell_terms import MOST_EVALUATED, JointValues, divisor_of, joint_values, multilinear
from bursar.compile.conditions import Region, names_in, too_many
from bursar.compile.first_holding import disjoint_regions, held_by_first, none_of
from bursar.compile.values import (
    LARGEST_NUMBER,
    Represented,
    Values,
    greatest,
    known_by_bin,
    least,
    recoding_remark,
    values_of,
)
from bursar.core.domain import Attribute, Categories, Domain, Stray
from bursar.core.queries import LARGEST_JOINT
from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql import FALSE, TRUE, Aggregate, Between, Branch, Condition, Function, In, IsNull, Name, Not, Or
from bursar.sql.query import Holds, all_of, branches_of
from bursar.sql.terms import Call, Given, Ref, refs_of

Change = Callable[[Integers], Integers]
"""What is added up in place of a value: itself, its distance from a centre, or the square of that."""


@dataclass(frozen=True, eq=False)
class Sum:
    """A sum over rows: `unit` times what the regions add up to; None where it is 0 whatever the data hold."""

    regions: tuple[Region, ...] | None
    unit: Fraction

    @staticmethod
    def of(weighed: tuple[Region, ...] | None, unit: Fraction) -> Sum:
        """In the largest unit that all weights are whole numbers of."""
        if weighed is None or not all(region.cells.any() for region in weighed):
            return Sum(None, unit)
        weighed, common = _reduced(weighed)
        return Sum(weighed, unit * common)

    @property
    def largest(self) -> int:
        """The most that one row can weigh, in units."""
        return math.prod(int(np.abs(region.cells.astype(np.int64)).max()) for region in self.regions or ())

    @property
    def least(self) -> float:
        """What it cannot be below, in units: 0 where no row has a weight below 0."""
        return 0.0 if all(region.cells.min() >= 0 for region in self.regions or ()) else -math.inf


LARGEST_ROOT = 2**10
"""Most steps from 0 that a value may be whose square is added up: rows of larger squares would pay for more digits of
their count than anybody asks for."""


@dataclass(frozen=True)
class Centred:
    """How values become small whole numbers: `centre` is taken off, and what is left is divided by `scale`."""

    centre: int
    scale: int
    off: Fraction  # how far a value can be from what it is rounded to

    def change(self, numbers: Integers) -> Integers:
        """Values in steps, as whole numbers of scale steps from the centre."""
        return (numbers - self.centre + self.scale // 2) // self.scale

    def square(self, numbers: Integers) -> Integers:
        """The squares of the small numbers."""
        return np.square(self.change(numbers))

    def ends(self, extent: tuple[int, int]) -> tuple[int, int]:
        """The least and the greatest of the small numbers."""
        low, high = self.change(np.array(extent, np.int64)).tolist()
        return low, high


@dataclass(frozen=True, eq=False)
class Operand:
    """What an aggregate is of: its branches with the values they have, all in whole numbers of `step`.

    A row has the value of the first branch whose condition is true.
    """

    aggregate: Aggregate
    where: Condition
    domain: Domain
    branches: tuple[tuple[Condition, Values | JointValues | int | None], ...]
    step: Fraction

    @staticmethod
    def of(aggregate: Aggregate, where: Condition, domain: Domain) -> Operand:
        branches = _reached(branches_of(aggregate))
        values = [_value(branch, domain) for branch in branches]
        steps = [step for value in values if (step := _step(value))] or [Fraction(1)]
        step = Fraction(math.gcd(*(each.numerator for each in steps)), math.lcm(*(each.denominator for each in steps)))
        whole = [_in_steps(value, step) for value in values]
        for branch, value in zip(branches, whole, strict=True):
            if _largest(value) > LARGEST_NUMBER:
                raise QueryError("these numbers are too large, or too fine, to be added up", position=branch.position)
        conditions = (branch.condition for branch in branches)
        return Operand(aggregate, where, domain, tuple(zip(conditions, whole, strict=True)), step)

    def known(self) -> Condition:
        """The condition that rows meet which have a value: of the FILTER, and that it is not NULL.

        Edge cases: numbers that are not declared are counted, but they have no value to add up.
        """
        return all_of(self.aggregate.condition, self._not_null())

    def _not_null(self) -> Condition:
        place = self.aggregate.position
        shares = [
            FALSE if value is None else TRUE if isinstance(value, int) else self._has_value(branch, value, place)
            for (_, value), branch in zip(self.branches, branches_of(self.aggregate), strict=False)
        ]
        valued = [number for number, (_, value) in enumerate(self.branches) if value is not None]
        if not valued:
            return FALSE
        if self.branches[-1][0] == TRUE and all(share == TRUE for share in shares):
            return TRUE
        tests = [condition for condition, _ in self.branches[: valued[-1] + 1]]
        if len(valued) == 1:
            return all_of(tests[-1], none_of(tests[:-1]), shares[valued[0]])
        first = held_by_first(list(zip(tests, shares, strict=False)), place)
        if not too_many(names_in(first), self.domain):
            return first
        apart = (all_of(tests[n], none_of(tests[:n]), shares[n]) for n in valued)  # as it is counted by itself
        return Or(parts=tuple(apart), position=place)

    def _has_value(self, branch: Branch, value: Values | JointValues, place: int) -> Condition:
        has_value = not_null if self.aggregate.function is Function.COUNT else has_number
        if isinstance(value, Values):
            return has_value(value.attribute, place)
        if not value.null.any():
            return TRUE
        assert isinstance(branch.value, Call | Name)
        of = Ref(name=branch.value) if isinstance(branch.value, Name) else branch.value
        if multilinear(of):  # NULL where one of its columns is: conditions on single columns, which are cheaper
            return all_of(*(has_value(attribute, place) for attribute in value.attributes))
        null = Call(function="is null", parts=(of,), position=place)
        column = Name(text=value.attributes[0].name, quoted=True, position=place)
        if isinstance(of, Call) and (known := known_quotient(of, value.attributes, has_value, place)) is not None:
            return known
        return Not(part=Holds(column=column, term=null, counted=True, position=place), position=place)

    def extent(self) -> tuple[int, int]:
        """The least and the greatest value that a row can have, in steps."""
        numbers = self._possible()
        return int(numbers.min(initial=numbers[0])), int(numbers.max(initial=numbers[0]))

    def _possible(self) -> Integers:
        """All values that a row can have, in steps; 0 where there is none."""
        possible: list[Integers] = []
        for kept_regions, value in self._taken:
            if isinstance(value, int):
                possible.append(np.array([value], np.int64))
            else:
                possible.append(value.numbers[_all_kept(kept_regions, value) & ~value.null])
        numbers = np.concatenate([np.zeros(0, np.int64), *possible])
        return numbers if len(numbers) else np.zeros(1, np.int64)

    def centred(self) -> Centred:
        """The values less the middle of their range, such that their squares can be added up."""
        for attribute in self.columns():
            if attribute.size > LARGEST_JOINT:
                raise QueryError(
                    f"{attribute.name} has {attribute.size} cells, and squares are added up over {LARGEST_JOINT} at "
                    "most; the data owner can declare bins",
                    position=self.aggregate.position,
                )
        low, high = self.extent()
        centre = (low + high) // 2
        if (reach := high - centre) <= LARGEST_ROOT:
            return Centred(centre, 1, Fraction(0))
        common = int(np.gcd.reduce(self._possible() - centre))
        if reach <= LARGEST_ROOT * common:
            return Centred(centre, common, Fraction(0))
        scale = -(-reach // LARGEST_ROOT)
        return Centred(centre, scale, (scale // 2) * self.step)

    def binned(self) -> list[Values | JointValues]:
        """The columns in it of which only the bins are known."""
        return [value for _, value in self.branches if isinstance(value, Values | JointValues) and value.off != 0]

    def columns(self) -> list[Attribute]:
        """The columns that values come from; none where they are constants alone."""
        values = [value for _, value in self.branches if isinstance(value, Values | JointValues)]
        return list({attribute.name: attribute for value in values for attribute in attributes_of(value)}.values())

    def by_column(self) -> bool:
        """Whether values come from a column, and not from constants alone."""
        return bool(self.columns())

    def whole(self) -> Sum:
        """The sum of the values themselves."""
        return self.total(lambda numbers: numbers, self.step)

    def total(self, change: Change, unit: Fraction) -> Sum:
        """The sum of changed values over the rows that meet the conditions, in whole numbers of `unit`."""
        pieces: list[tuple[tuple[Region, ...], int]] = []
        for kept_regions, value in self._taken:
            if isinstance(value, int):
                weight = int(change(np.array([value], np.int64))[0])
                pieces += [(kept_regions, weight)] if weight else []
            else:
                pieces.append((self._weighed(kept_regions, value, change), 1))
        pieces = [piece for piece in pieces if all(region.cells.any() for region in piece[0])]
        if not pieces:
            return Sum(None, unit)
        kept_regions, factor = pieces[0] if len(pieces) == 1 else (self._joined(pieces), 1)
        return Sum.of(kept_regions, unit * factor)

    def weighed(self, kept_regions: tuple[Region, ...], change: Change) -> tuple[Region, ...]:
        """Regions, in which each row counts as what is made of its value in addition; of a column by itself."""
        ((_, value),) = self.branches
        assert isinstance(value, Values)
        return self._weighed(kept_regions, value, change)

    @cached_property
    def _taken(self) -> list[tuple[tuple[Region, ...], Values | JointValues | int]]:
        """The rows that branches take, with the values that they have; of those that take any, and give a value."""
        tests, values = [condition for condition, _ in self.branches], [value for _, value in self.branches]
        common, asked = all_of(self.where, self.aggregate.condition), [value is not None for value in values]
        found = disjoint_regions(common, tests, asked, self.domain)
        valued = [value for value in values if value is not None]
        return [(kept, value) for kept, value in zip(found, valued, strict=True) if kept is not None]

    def _weighed(
        self, kept_regions: tuple[Region, ...], value: Values | JointValues, change: Change
    ) -> tuple[Region, ...]:
        """The regions with the numbers in the one that has the columns they come from."""
        columns = attributes_of(value)
        names = [attribute.name for attribute in columns]
        about = [region for region in kept_regions if set(names).intersection(region.attrs)]
        attrs = self.domain.ordered([*names, *(name for region in about for name in region.attrs)])
        sizes = self.domain.sizes(attrs)
        if len(attrs) > 1 and math.prod(sizes) > LARGEST_JOINT:
            raise QueryError(
                f"this ties {' and '.join(attrs)} together, which have {math.prod(sizes)} joint cells; {LARGEST_JOINT} "
                "are possible",
                position=self.aggregate.position,
            )
        inside = functools.reduce(np.multiply, (_spread(region, attrs) for region in about), np.ones(sizes, np.int64))
        shape = [size if name in names else 1 for name, size in zip(attrs, sizes, strict=True)]
        numbers = np.where(value.null, 0, change(value.numbers)).reshape(shape)
        weighed = Region(attrs, inside * numbers)
        return tuple(sorted([*(r for r in kept_regions if r not in about), weighed], key=self._place))

    def _joined(self, pieces: Sequence[tuple[tuple[Region, ...], int]]) -> tuple[Region, ...]:
        """Several disjoint sums as one: what all of them share stays apart, the rest is put on one grid."""
        shared = [region for region in pieces[0][0] if all(_has(piece, region) for piece, _ in pieces[1:])]
        apart = [([r for r in piece if not _has(shared, r)], weight) for piece, weight in pieces]
        attrs = self.domain.ordered(name for piece, _ in apart for region in piece for name in region.attrs)
        sizes = self.domain.sizes(attrs)
        if len(attrs) > 1 and math.prod(sizes) > LARGEST_JOINT:
            raise QueryError(
                f"a CASE that ties {' and '.join(attrs)} together spans {math.prod(sizes)} cells; "
                f"{LARGEST_JOINT} are possible",
                position=self.aggregate.position,
            )
        cells = np.zeros(sizes, np.int64)
        for piece, weight in apart:
            spread = [_spread(region, attrs) for region in piece]
            cells += functools.reduce(np.multiply, spread, np.full([1] * len(attrs), weight, np.int64))
        return tuple(sorted([*shared, Region(attrs, cells)], key=self._place))

    def _place(self, region: Region) -> int:
        return self.domain.place(region.attrs[0])


def _reached(branches: Sequence[Branch]) -> Sequence[Branch]:
    """The branches up to one that takes all rows."""
    last = next((place for place, branch in enumerate(branches) if branch.condition == TRUE), len(branches))
    return branches[: last + 1]


def value_remarks(operand: Operand, what: str) -> list[str]:
    """What is made of values before they are added up, and by how much that moves `what` is made of them."""
    remarks = []
    for value in operand.binned():
        if value.off is None:
            remarks.append("each value counts as the middle of its bin; by how much the result is off is not known")
            continue
        columns = attributes_of(value)
        in_bins = [attribute for attribute in columns if known_by_bin(attribute)]
        names = " and ".join(attribute.name for attribute in in_bins or columns)
        how = f"what is made of {names} is rounded to {float(value.step):g} for each row"
        if in_bins:
            middle = "the number declared for its bin" if _all_represented(in_bins) else "the middle of its bin"
            how = f"{names} {'are' if len(in_bins) > 1 else 'is'} known by bin only, and each value counts as {middle}"
        remarks.append(f"{how}: {what} may be off by at most {float(value.off):g} more")
    return remarks + [remark for attribute in operand.columns() if (remark := recoding_remark(attribute))]


def _all_represented(columns: Sequence[Attribute]) -> bool:
    return all(isinstance(attribute, Represented) for attribute in columns)


def attributes_of(value: Values | JointValues) -> tuple[Attribute, ...]:
    """The columns that a value is of."""
    return (value.attribute,) if isinstance(value, Values) else value.attributes


def _all_kept(kept_regions: Sequence[Region], value: Values | JointValues) -> NDArray[np.bool_]:
    """The cells of the columns of values that regions keep, each column by itself."""
    by_column = [np.broadcast_to(_kept(kept_regions, a.name), [a.size]) for a in attributes_of(value)]
    cells: NDArray[np.bool_] = functools.reduce(np.logical_and.outer, by_column)
    return cells


def _value(branch: Branch, domain: Domain) -> Values | JointValues | Fraction | None:
    if branch.value is None:
        return None
    if isinstance(branch.value, Call):
        return joint_values(branch.value, domain)
    if isinstance(branch.value, Name):
        attribute = domain[branch.value.text]
        if isinstance(attribute, Categories) and attribute.of is bool:
            return joint_values(Call(function="int", parts=(Ref(name=branch.value),), position=branch.position), domain)
        return values_of(domain[branch.value.text], branch.value.position)
    return Fraction(branch.value)


def _step(value: Values | JointValues | Fraction | None) -> Fraction:
    """What a value is whole numbers of; 0 where that can be anything."""
    if isinstance(value, Values | JointValues):
        return value.step
    return Fraction(1, value.denominator) if value else Fraction(0)


def _in_steps(value: Values | JointValues | Fraction | None, step: Fraction) -> Values | JointValues | int | None:
    if isinstance(value, Values | JointValues):
        return value.times(int(value.step / step))
    return None if value is None else int(value / step)


def _largest(value: Values | JointValues | int | None) -> int:
    return 0 if value is None else abs(value) if isinstance(value, int) else int(np.abs(value.numbers).max())


def not_null(attribute: Attribute, position: int) -> Condition:
    """That a column has a value; where it has no NULL, or has it sent to a value, it always does."""
    if isinstance(attribute.null, int):
        return TRUE
    column = Name(text=attribute.name, quoted=True, position=position)
    return Not(part=IsNull(column=column, position=position), position=position)


def has_number(attribute: Attribute, position: int) -> Condition:
    """That a column has a value which is declared."""
    if attribute.outside is not Stray.OTHER:
        return not_null(attribute, position)
    column = Name(text=attribute.name, quoted=True, position=position)
    if isinstance(attribute, Categories):
        return In(column=column, literals=tuple(attribute.values), position=position)
    return Between(column=column, low=least(attribute), high=greatest(attribute), position=position)


def known_quotient(
    of: Call,
    attributes: Sequence[Attribute],
    has_value: Callable[[Attribute, int], Condition] = has_number,
    place: int = -1,
) -> Condition | None:
    """That one division of many cells has a value, by conditions on its columns and on what it divides by; None for
    any other term, of which each cell is looked at."""
    divisor = divisor_of(of)
    if divisor is None or math.prod(attribute.size for attribute in attributes) <= MOST_EVALUATED:
        return None
    zero = Call(function="=", parts=(divisor, Given(value=0, position=place)), position=place)
    name = Name(text=refs_of(divisor)[0].text, quoted=True, position=place)
    some = Not(part=Holds(column=name, term=zero, counted=True, position=place), position=place)
    return all_of(*(has_value(attribute, place) for attribute in attributes), some)


def _kept(kept_regions: Sequence[Region], name: str) -> NDArray[np.bool_] | np.bool_:
    """The cells of a column that regions keep."""
    for region in kept_regions:
        if name in region.attrs:
            axis = region.attrs.index(name)
            cells: NDArray[np.bool_] = np.any(
                region.cells, axis=tuple(i for i in range(region.cells.ndim) if i != axis)
            )
            return cells
    return np.True_


def _has(regions: Sequence[Region], region: Region) -> bool:
    return any(other.attrs == region.attrs and np.array_equal(other.cells, region.cells) for other in regions)


def _spread(region: Region, attrs: tuple[str, ...]) -> Integers:
    """The cells of a region with an axis for each column."""
    shape = [region.cells.shape[region.attrs.index(name)] if name in region.attrs else 1 for name in attrs]
    return region.cells.astype(np.int64).reshape(shape)


def _reduced(whole: tuple[Region, ...]) -> tuple[tuple[Region, ...], int]:
    """The regions without their common factor, which is given beside; what counts as 1 everywhere is left out."""
    factor, reduced = 1, []
    for region in whole:
        common = int(np.gcd.reduce(np.abs(region.cells.astype(np.int64)), axis=None))
        cells = region.cells if common == 1 else region.cells // common
        factor *= common
        if not np.array_equal(cells, np.ones_like(cells)):
            reduced.append(Region(region.attrs, cells))
    return tuple(reduced), factor
