"""Aggregates as linear queries: the columns of rows that each item needs, and how the item is derived from them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers
from bursar.compile.cell_terms import valueless_remarks
from bursar.compile.conditions import Region, regions, ties_too_many
from bursar.compile.groups import Cells, Groups
from bursar.compile.masks import group_of, grouped, predicate, prefixes
from bursar.compile.operands import Centred, Change, Operand, Sum, known_quotient, not_null, value_remarks
from bursar.compile.partwise import MOST_GROUPS, SharedRows, too_many_tied
from bursar.compile.values import (
    Values,
    distinct_remark,
    left_out_remark,
    values_of,
)
from bursar.core.domain import Domain
from bursar.core.queries import Distinct, Predicate
from bursar.core.source.source import MOST_CELLS
from bursar.errors import QueryError
from bursar.estimation.association import Associated, Association
from bursar.estimation.derived import Combination, Extreme, Form, Quantile, Ratio, Variance, single
from bursar.lazy_dataclass import dataclass
from bursar.sql import TRUE, Aggregate, And, Condition, Formula, Function, Item, Linear, Name, Not
from bursar.sql.query import EXTREMES, OF_PAIRS, Holds, all_of, branches_of, leaves
from bursar.sql.terms import Call, Ref, Term, refs_of

ROOTS = (Function.STDDEV_POP, Function.STDDEV_SAMP)
SAMPLES = (Function.VAR_SAMP, Function.STDDEV_SAMP)
LARGEST_WEIGHT = 1e100
"""The largest number that a count is multiplied with: the product is far from the largest float."""

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
            form = self._form(item)
            if any(abs(weight) > LARGEST_WEIGHT for part in _linear(form) for weight in part.weights):
                raise OverflowError
            return form
        except QueryError as refusal:
            raise replace(refusal, position=item.position if refusal.position < 0 else refusal.position) from None
        except OverflowError:  # of a constant that no float is as large as, or times a count
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
            columns = [self._domain[name] for name in self._domain.ordered(name.text for name in refs_of(part.of))]
            if (known := known_quotient(part.of, columns, place=part.position)) is not None:
                return all_of(part.condition, known)
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
            sample=item.function in SAMPLES,
            root=item.function in ROOTS,
        )

    def _association(self, item: Aggregate) -> Form:
        """Sums over the rows where both columns have a value, of values less the middle of their ranges."""
        assert isinstance(item.of, Call)
        explained, explaining = (self._column_of(item, part) for part in item.of.parts)
        both_known = all_of(self._where, explaining.known(), explained.known())
        kept_regions = regions(both_known, self._domain)
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
            self.remarks |= dict.fromkeys(value_remarks(operand, "each value"))
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
        self.remarks |= dict.fromkeys(value_remarks(self._operand(item), what))
        for branch in branches_of(item):
            if isinstance(branch.value, Call):
                self.remarks |= dict.fromkeys(valueless_remarks(branch.value, self._domain))


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


def _digest(region: Region) -> bytes:
    """Equal for equal regions."""
    cells = np.ascontiguousarray(region.cells)
    return hashlib.blake2b(repr((region.attrs, cells.dtype.str)).encode() + cells.tobytes(), digest_size=16).digest()


def _linear(form: Form) -> tuple[Combination, ...]:
    """The combinations that a form is made of."""
    return (form,) if isinstance(form, Combination) else (form.above, form.below) if isinstance(form, Ratio) else ()
