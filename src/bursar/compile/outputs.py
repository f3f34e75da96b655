"""Aggregates as linear queries: the columns of rows that each item needs, and how the item is derived from them.

Sums are rows as well: regions in which cells weigh what their values are.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers
from bursar.compile.cell_terms import JointValues, joint_values, multilinear
from bursar.compile.conditions import Region, regions, ties_too_many
from bursar.compile.groups import Cells, Groups
from bursar.compile.masks import group_of, grouped, predicate, prefixes
from bursar.compile.partwise import MOST_GROUPS, SharedRows, too_many_tied
from bursar.compile.values import (
    LARGEST_NUMBER,
    Represented,
    Values,
    distinct_remark,
    greatest,
    least,
    left_out_remark,
    recoding_remark,
    values_of,
)
from bursar.core.domain import Attribute, Categories, Domain, Stray
from bursar.core.queries import LARGEST_JOINT, Distinct, Predicate
from bursar.core.source.source import MOST_CELLS
from bursar.errors import QueryError
from bursar.estimation.association import Associated, Association
from bursar.estimation.derived import Combination, Extreme, Form, Quantile, Ratio, Variance, single
from bursar.lazy_dataclass import dataclass
from bursar.sql import (
    FALSE,
    TRUE,
    Aggregate,
    And,
    Between,
    Branch,
    Condition,
    Formula,
    Function,
    In,
    IsNull,
    IsTrue,
    Item,
    Linear,
    Name,
    Not,
    Or,
)
from bursar.sql.query import EXTREMES, OF_PAIRS, Holds, all_of, branches_of, leaves
from bursar.sql.terms import Call, Ref, Term, refs_of

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


LARGEST_ROOT = 2**13
"""Most steps from 0 that a value may be whose square is added up: squares of a few such rows have room, with noise."""


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
        return np.square(self.change(numbers))

    def ends(self, extent: tuple[int, int]) -> tuple[int, int]:
        """The least and the greatest of the small numbers."""
        low, high = self.change(np.array(extent, np.int64)).tolist()
        return low, high


@dataclass(frozen=True, eq=False)
class Operand:
    """What an aggregate is of: its branches with the values they have, all in whole numbers of `step`."""

    aggregate: Aggregate
    where: Condition
    domain: Domain
    branches: tuple[tuple[Condition, Values | JointValues | int | None], ...]  # disjoint conditions
    step: Fraction

    @staticmethod
    def of(aggregate: Aggregate, where: Condition, domain: Domain) -> Operand:
        disjoint = _disjoint(branches_of(aggregate))
        values = [_value(branch, domain) for _, branch in disjoint]
        steps = [step for value in values if (step := _step(value))] or [Fraction(1)]
        step = Fraction(math.gcd(*(each.numerator for each in steps)), math.lcm(*(each.denominator for each in steps)))
        whole = [_in_steps(value, step) for value in values]
        for (_, branch), value in zip(disjoint, whole, strict=True):
            if _largest(value) > LARGEST_NUMBER:
                raise QueryError("these numbers are too large, or too fine, to be added up", position=branch.position)
        branches = tuple((condition, value) for (condition, _), value in zip(disjoint, whole, strict=True))
        return Operand(aggregate, where, domain, branches, step)

    def known(self) -> Condition:
        """The condition that rows meet which have a value: of the FILTER, and that it is not NULL.

        Edge cases: numbers that are not declared are counted, but they have no value to add up.
        """
        return all_of(self.aggregate.condition, self._not_null())

    def _not_null(self) -> Condition:
        place = self.aggregate.position
        there = [
            (condition, TRUE if isinstance(value, int) else self._has_value(branch, value, place))
            for (condition, value), branch in zip(self.branches, branches_of(self.aggregate), strict=False)
            if value is not None
        ]
        covered = any(branch.condition == TRUE for branch in branches_of(self.aggregate))
        if covered and len(there) == len(self.branches) and all(has_value == TRUE for _, has_value in there):
            return TRUE
        parts = tuple(all_of(condition, has_value) for condition, has_value in there)
        return parts[0] if len(parts) == 1 else Or(parts=parts, position=place) if parts else FALSE

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
        return Not(part=Holds(column=column, term=null, counted=True, position=place), position=place)

    def extent(self) -> tuple[int, int]:
        """The least and the greatest value that a row can have, in steps."""
        numbers = self._possible()
        return int(numbers.min(initial=numbers[0])), int(numbers.max(initial=numbers[0]))

    def _possible(self) -> Integers:
        """All values that a row can have, in steps; 0 where there is none."""
        possible: list[Integers] = []
        for condition, value in self.branches:
            kept_regions = None if value is None else regions(self._condition(condition), self.domain)
            if isinstance(value, int) and kept_regions is not None:
                possible.append(np.array([value], np.int64))
            elif isinstance(value, Values | JointValues) and kept_regions is not None:
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
        return list({attribute.name: attribute for value in values for attribute in _attributes(value)}.values())

    def by_column(self) -> bool:
        """Whether values come from a column, and not from constants alone."""
        return bool(self.columns())

    def whole(self) -> Sum:
        """The sum of the values themselves."""
        return self.total(lambda numbers: numbers, self.step)

    def total(self, change: Change, unit: Fraction) -> Sum:
        """The sum of changed values over the rows that meet the conditions, in whole numbers of `unit`."""
        pieces: list[tuple[tuple[Region, ...], int]] = []
        for condition, value in self.branches:
            kept_regions = None if value is None else regions(self._condition(condition), self.domain)
            if kept_regions is None or value is None:
                continue
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

    def _condition(self, branch: Condition) -> Condition:
        return all_of(self.where, self.aggregate.condition, branch)

    def _weighed(
        self, kept_regions: tuple[Region, ...], value: Values | JointValues, change: Change
    ) -> tuple[Region, ...]:
        """The regions with the numbers in the one that has the columns they come from."""
        columns = _attributes(value)
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


def _disjoint(branches: Sequence[Branch]) -> list[tuple[Condition, Branch]]:
    """Each branch with the condition that it is taken: its own, and none before it."""
    disjoint: list[tuple[Condition, Branch]] = []
    before: list[Condition] = []
    for branch in branches:
        disjoint.append((all_of(branch.condition, *before), branch))
        if branch.condition == TRUE:
            break
        before.append(Not(part=IsTrue(part=branch.condition), position=branch.position))
    return disjoint


def _attributes(value: Values | JointValues) -> tuple[Attribute, ...]:
    return (value.attribute,) if isinstance(value, Values) else value.attributes


def _all_kept(kept_regions: Sequence[Region], value: Values | JointValues) -> NDArray[np.bool_]:
    """The cells of the columns of values that regions keep, each column by itself."""
    by_column = [np.broadcast_to(_kept(kept_regions, a.name), [a.size]) for a in _attributes(value)]
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


def _digest(region: Region) -> bytes:
    """Equal for equal regions."""
    cells = np.ascontiguousarray(region.cells)
    return hashlib.blake2b(repr((region.attrs, cells.dtype.str)).encode() + cells.tobytes(), digest_size=16).digest()


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


_ROOTS = (Function.STDDEV_POP, Function.STDDEV_SAMP)
_SAMPLES = (Function.VAR_SAMP, Function.STDDEV_SAMP)
_QUANTILES = (Function.QUANTILE_CONT, Function.QUANTILE_DISC)


@dataclass(frozen=True, kw_only=True)
class OutputTerm:
    """A count or a sum inside of an item: its column, what one is there, and what it cannot be below."""

    column: int
    unit: Fraction = Fraction(1)
    least: float = 0.0
    largest: int = 1


class Outputs:
    """Columns that grow with each item that is added; rows that several items need are there once."""

    def __init__(self, where: Condition, groups: Groups, lines: Cells, domain: Domain, rows: SharedRows) -> None:
        self._where, self._groups, self._lines, self._domain = where, groups, lines, domain
        self._rows = rows
        self._columns: list[NDArray[np.int64]] = []
        self._of_regions: dict[tuple[bytes, ...], NDArray[np.int64]] = {}  # columns, by what they count
        self.largest: list[int] = []
        self.remarks: dict[str, None] = {}

    def index(self) -> NDArray[np.int64]:
        """The row of the map for each line and column."""
        columns = self._columns
        return np.stack(columns, axis=1) if columns else np.zeros((len(self._lines), 0), np.int64)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self._columns)

    def leave_out(self, largest: Sequence[int]) -> None:
        """Columns that are not asked for in these groups, and are 0 in them."""
        for each in largest:
            self._added(np.full(len(self._lines), -1, np.int64), each)

    def add(self, item: Item) -> Form:
        """The form of an item, whose columns are put behind those that are there."""
        try:
            return self._form(item)
        except QueryError as refusal:
            raise replace(refusal, position=item.position if refusal.position < 0 else refusal.position) from None
        except OverflowError:  # of a constant that no float is as large as
            raise QueryError("these numbers are too large to be added up", position=item.position) from None

    def _form(self, item: Item) -> Form:
        if isinstance(item, Formula):
            return self._formula(item)
        if item.function in OF_PAIRS:
            return self._association(item)
        if item.function is Function.COUNT:
            return single(self._part(item).column)
        self._remark(item)
        if item.function is Function.SUM:
            return self._combination(Linear(terms=((Fraction(1), item),)))
        if item.function is Function.AVG:
            return self._average(item)
        if item.function in (*_QUANTILES, *EXTREMES):
            return self._quantile(item)
        return self._variance(item)

    def _operand(self, item: Aggregate) -> Operand:
        return Operand.of(item, self._where, self._domain)

    def _part(self, item: Aggregate) -> OutputTerm:
        """The column of a count or a sum."""
        if item.function is Function.SUM:
            return self._sum(self._operand(item).whole())
        return self._distinct(item) if item.distinct else self._count(self._known(item))

    def _distinct(self, item: Aggregate) -> OutputTerm:
        """The column of a distinct count, which is measured by itself: it is no sum of anything else."""
        whole, of = all_of(self._where, self._known(item)), item.of.text if isinstance(item.of, Name) else None
        if of is not None and (remark := distinct_remark(self._domain[of])):
            self.remarks[remark] = None
        index = np.full(len(self._lines), -1, np.int64)
        kept_regions = None if (tied := ties_too_many(whole, self._domain)) else regions(whole, self._domain)
        if tied or (kept_regions is not None and self._looks_at(kept_regions) > MOST_CELLS):
            index = self._tied(whole, lambda count: Distinct(count, of))
        elif kept_regions is not None:
            counted = grouped(kept_regions, self._groups, self._domain)
            index[line_of(counted.groups, self._lines)] = self._rows.alone(Distinct(counted.product, of))
        return OutputTerm(column=self._added(index, 1))

    def _count(self, condition: Condition) -> OutputTerm:
        whole = all_of(self._where, condition)
        if ties_too_many(whole, self._domain):
            return OutputTerm(column=self._added(self._tied(whole), 1))
        kept_regions = regions(whole, self._domain)
        if kept_regions is not None and self._looks_at(kept_regions) > MOST_CELLS:
            return OutputTerm(column=self._added(self._tied(whole), 1))
        return OutputTerm(column=self._column(kept_regions, 1))

    def _looks_at(self, kept_regions: Sequence[Region]) -> int:
        """How many joint cells the columns of regions and groups have."""
        return self._domain.cells({*self._groups.names, *(name for region in kept_regions for name in region.attrs)})

    def _check_sum(self, kept_regions: Sequence[Region]) -> None:
        """Refuse what is no count and looks at too many joint cells."""
        if (cells := self._looks_at(kept_regions)) > MOST_CELLS:
            raise QueryError(
                f"this looks at {cells} joint cells at once; {MOST_CELLS} are possible for anything but a COUNT in few "
                "groups"
            )

    def _tied(self, whole: Condition, wrapped: Callable[[Predicate], Predicate | Distinct] = lambda p: p) -> Integers:
        """The rows of a condition that no mask holds: one predicate for each line, or what is made of it."""
        position = min((leaf.position for leaf in leaves(whole) if leaf.position >= 0), default=-1)
        if len(self._lines) > MOST_GROUPS:
            names = (*self._groups.names, *(leaf.column.text for leaf in leaves(whole)))
            raise too_many_tied(self._domain.ordered(names), position)
        index = np.full(len(self._lines), -1, np.int64)
        for place, line in enumerate(self._lines):
            count = predicate(whole, self._domain, group_of(line, self._groups, self._domain))
            if count is not None:
                index[place] = self._rows.tied(wrapped(count), position)
        return index

    def _sum(self, total: Sum) -> OutputTerm:
        self._check_sum(total.regions or ())
        column = self._column(total.regions, total.largest)
        return OutputTerm(column=column, unit=total.unit, least=total.least, largest=total.largest)

    def _column(self, kept_regions: Sequence[Region] | None, largest: int) -> int:
        if kept_regions is None:
            return self._added(np.full(len(self._lines), -1, np.int64), largest)
        key = tuple(map(_digest, kept_regions))
        if key not in self._of_regions:
            counted = grouped(kept_regions, self._groups, self._domain)
            index = np.full(len(self._lines), -1, np.int64)
            index[line_of(counted.groups, self._lines)] = self._rows.place(counted.product)
            self._of_regions[key] = index
        return self._added(self._of_regions[key], largest)

    def _added(self, index: NDArray[np.int64], largest: int) -> int:
        self._columns.append(index)
        self.largest.append(largest)
        return len(self._columns) - 1

    def _combination(self, side: Linear) -> Combination:
        parts = [(float(weight), self._part(part)) for weight, part in side.terms]
        return Combination(
            columns=tuple(part.column for _, part in parts),
            weights=tuple(weight * float(part.unit) for weight, part in parts),
            constant=float(side.constant),
            steps=tuple(1 / abs(float(part.unit)) for _, part in parts),
        )

    def _formula(self, formula: Formula) -> Form:
        for part in formula.parts:
            self._remark(part)
        if formula.below is None:
            return self._combination(formula.above)
        above, below = formula.above, formula.below
        if below.terms[0][0] < 0:
            above, below = (
                Linear(terms=tuple((-w, p) for w, p in s.terms), constant=-s.constant) for s in (above, below)
            )
        parts = {part: self._part(part) for part in dict.fromkeys(formula.parts)}
        sides = [{part: weight for weight, part in side.terms} for side in (above, below)]
        alone = len(below.terms) == 1 and below.constant == 0 and below.terms[0][1].function is Function.COUNT
        least = {part: term.least for part, term in parts.items()}
        if alone:
            least[below.terms[0][1]] = 1.0
        bounded = alone and not below.terms[0][1].distinct  # a person, or a value, may have many rows
        lowest, highest = self._range(above, below) if bounded else (-math.inf, math.inf)
        weights = [tuple(float(side.get(p, 0) * term.unit) for p, term in parts.items()) for side in sides]
        columns, steps = tuple(p.column for p in parts.values()), tuple(float(p.largest) for p in parts.values())
        return Ratio(
            above=Combination(columns=columns, weights=weights[0], constant=float(above.constant), steps=steps),
            below=Combination(columns=columns, weights=weights[1], constant=float(below.constant), steps=steps),
            least=tuple(least.values()),
            lowest=lowest,
            highest=highest,
        )

    def _range(self, above: Linear, below: Linear) -> tuple[float, float]:
        """What a ratio over a count can be, where each part above is about rows that are counted below."""
        share, counted = below.terms[0]
        ends = [min(above.constant, Fraction(0)), max(above.constant, Fraction(0))]  # a count is at least 1
        for weight, part in above.terms:
            if part == counted:
                part_ends = [weight, weight]
            elif _conjuncts(self._known(counted)) <= _conjuncts(self._known(part)):
                low, high = (Fraction(0), Fraction(1))
                if part.function is Function.SUM:
                    operand = self._operand(part)
                    low, high = (end * operand.step for end in operand.extent())
                    low, high = min(low, Fraction(0)), max(high, Fraction(0))
                part_ends = sorted([weight * low, weight * high])
            else:
                return -math.inf, math.inf
            ends = [end + more for end, more in zip(ends, part_ends, strict=True)]
        return float(ends[0] / share), float(ends[1] / share)

    def _known(self, part: Aggregate) -> Condition:
        """The condition of the rows that have a value to count."""
        if part.of is None:
            return part.condition
        if isinstance(part.of, Name):
            return all_of(part.condition, not_null(self._domain[part.of.text], part.of.position))
        if isinstance(part.of, Call) and part.function is Function.COUNT:
            null = Call(function="is null", parts=(part.of,), position=part.position)
            column = refs_of(part.of)[0]
            has_value = Not(part=Holds(column=column, term=null, counted=True, position=part.position))
            return all_of(part.condition, has_value)
        return self._operand(part).known()

    def _average(self, item: Aggregate) -> Form:
        """The centre of the values, and the average distance from it: that weighs half as much as the values do."""
        operand = self._operand(item)
        low, high = operand.extent()
        centre = (low + high) // 2 if operand.by_column() else 0
        total = self._sum(operand.total(lambda numbers: numbers - centre, operand.step))
        count = self._count(operand.known())
        columns, steps = (total.column, count.column), (float(total.largest), 1.0)
        return Ratio(
            above=Combination(columns=columns, weights=(float(total.unit), float(centre * operand.step)), steps=steps),
            below=Combination(columns=columns, weights=(0.0, 1.0), steps=steps),
            least=(total.least, 1.0),
            lowest=float(low * operand.step),
            highest=float(high * operand.step),
        )

    def _variance(self, item: Aggregate) -> Form:
        operand = self._operand(item)
        centred = operand.centred()
        low, high = centred.ends(operand.extent())
        self._remark_rounded(operand, centred)
        unit = operand.step * centred.scale
        count = self._count(operand.known())
        total = self._sum(operand.total(centred.change, unit))
        squares = self._sum(operand.total(centred.square, unit**2))
        return Variance(
            columns=(count.column, total.column, squares.column),
            units=(1.0, float(total.unit), float(squares.unit)),
            steps=(1.0, float(total.largest), float(squares.largest)),
            width=float((high - low) * unit),
            sample=item.function in _SAMPLES,
            root=item.function in _ROOTS,
        )

    def _association(self, item: Aggregate) -> Form:
        """Sums over the rows where both columns have a value, of values less the middle of their ranges."""
        assert isinstance(item.of, Call)
        explained, explaining = (self._column_of(item, part) for part in item.of.parts)
        known = all_of(self._where, explaining.known(), explained.known())
        kept_regions = regions(known, self._domain)
        sides = [(operand, operand.centred()) for operand in (explaining, explained)]
        units = [operand.step * centred.scale for operand, centred in sides]

        def total(x: Change | None, y: Change | None, unit: Fraction) -> OutputTerm:
            """The sum of what is made of each row's x and y, multiplied."""
            weighed = kept_regions
            for operand, change in ((explaining, x), (explained, y)):
                weighed = weighed if weighed is None or change is None else operand.weighed(weighed, change)
            return self._sum(Sum.of(weighed, unit))

        (_, x), (_, y) = sides
        parts = [
            self._count(all_of(explaining.known(), explained.known())),
            total(x.change, None, units[0]),
            total(None, y.change, units[1]),
            total(x.change, y.change, units[0] * units[1]),
            total(x.square, None, units[0] ** 2),
            total(None, y.square, units[1] ** 2),
        ]
        centres, widths = [], []
        for (operand, centred), unit in zip(sides, units, strict=True):
            low, high = centred.ends(operand.extent())
            self._remark_rounded(operand, centred)
            centres.append(float(centred.centre * operand.step))
            widths.append(float(2 * max(high, -low) * unit))
            self._remark_values(operand, "each value")
        return Association(
            kind=Associated(item.function.value),
            columns=tuple(term.column for term in parts),
            units=tuple(float(term.unit) for term in parts),
            steps=tuple(float(term.largest) for term in parts),
            centres=(centres[0], centres[1]),
            widths=(widths[0], widths[1]),
        )

    def _column_of(self, item: Aggregate, part: Term) -> Operand:
        """One of the two columns of an association, by itself."""
        assert isinstance(part, Ref)
        values_of(self._domain[part.name.text], part.position)  # refuses what holds no numbers
        return self._operand(replace(item, function=Function.SUM, of=part.name))

    def _quantile(self, item: Aggregate) -> Form:
        operand = self._operand(item)
        operand.whole()  # refuses what has no value
        ((_, value),) = operand.branches
        if not isinstance(value, Values):
            raise QueryError("a quantile is of a column of numbers", position=item.position)
        kept_regions = regions(all_of(self._where, item.condition), self._domain)
        self._check_sum(
            [*(kept_regions or ()), Region((value.attribute.name,), np.ones(value.attribute.size, np.bool_))]
        )
        most = item.function is Function.MAX
        rows = prefixes(kept_regions, value, self._groups, self._domain, item.position, downwards=most)
        columns: list[int] = []
        for part in rows.parts:
            placed = self._rows.place(part.product).reshape(part.shape)
            placed = np.moveaxis(placed, part.axis, -1).reshape(len(part.groups), -1)
            for column in placed.T:
                index = np.full(len(self._lines), -1, np.int64)
                index[line_of(part.groups, self._lines)] = column
                self._columns.append(index)
                self.largest.append(1)
                columns.append(len(self._columns) - 1)
        if item.function in EXTREMES:
            self.remarks[
                f"{item.function.value} is measured: a row lies at or {'above' if most else 'below'} it, if there is "
                f"any; DECLARED_{item.function.value}({value.attribute.name}) is the declared bound, for nothing"
            ] = None
            points = tuple(float(int(point) * operand.step) for point in rows.points)
            return Extreme(columns=tuple(columns), points=points, most=most)
        assert item.fraction is not None
        return Quantile(
            columns=tuple(columns),
            points=tuple(float(int(point) * operand.step) for point in rows.points),
            share=item.fraction,
            between=item.function is Function.QUANTILE_CONT,
        )

    def _remark_rounded(self, operand: Operand, centred: Centred) -> None:
        if centred.off:
            names = " and ".join(attribute.name for attribute in operand.columns())
            self.remarks[
                f"{names}: values are rounded to {float(operand.step * centred.scale):g}, so that their squares can be "
                f"added up: each may be off by at most {float(centred.off):g} more"
            ] = None

    def _remark(self, item: Aggregate) -> None:
        if item.function is Function.COUNT:
            # What is counted may be no number, and then it is no operand.
            for name in refs_of(item.of) if isinstance(item.of, Call) else ():
                if remark := left_out_remark(self._domain[name.text]):
                    self.remarks[remark] = None
            return
        each = {Function.AVG: "the average", Function.SUM: "for each row that is added up, the sum"}
        what = "the quantile" if item.function in _QUANTILES else each.get(item.function, "each value")
        self._remark_values(self._operand(item), what)

    def _remark_values(self, operand: Operand, what: str) -> None:
        """What is made of values before they are added up, and by how much that moves the result."""
        for value in operand.binned():
            if value.off is None:
                self.remarks[
                    "each value counts as the middle of its bin; by how much the result is off is not known"
                ] = None
                continue
            self.remarks[
                f"{' and '.join(a.name for a in _attributes(value))} is known by bin only, and each value counts as "
                f"{_counted_as(value)}: "
                f"{what} may be off by at most {float(value.off):g} more"
            ] = None
        for attribute in operand.columns():
            if remark := recoding_remark(attribute):
                self.remarks[remark] = None


def _counted_as(value: Values | JointValues) -> str:
    declared = all(isinstance(attribute, Represented) for attribute in _attributes(value))
    return "the number declared for its bin" if declared else "the middle of its bin"


def line_of(cells: Cells, lines: Cells) -> NDArray[np.int64]:
    """The line of each group; every group of an aggregate has one, for its condition contains the WHERE."""
    if not lines.shape[1]:
        return np.zeros(len(cells), np.int64)
    if np.array_equal(cells, lines):
        return np.arange(len(lines))
    least, most = lines.min(axis=0, initial=0), lines.max(axis=0, initial=0)
    spans = (most - least + 1).tolist()
    if math.prod(spans) < 2**62:  # lines are in order, and so are their cells as digits of one number
        steps = np.array([math.prod(spans[place + 1 :]) for place in range(len(spans))])
        return np.asarray(np.searchsorted((lines - least) @ steps, (cells - least) @ steps), np.int64)
    _, number = np.unique(np.concatenate([lines, cells]), axis=0, return_inverse=True)
    return number.reshape(-1)[len(lines) :]


def _conjuncts(condition: Condition) -> set[Condition]:
    if condition == TRUE:
        return set()
    return set(condition.parts) if isinstance(condition, And) else {condition}
