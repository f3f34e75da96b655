"""What a question asks for, item by item: the columns of rows it needs, and how the item follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bursar.compile.groups import Cells, Groups
from bursar.compile.masks import grouped, prefixes
from bursar.compile.partwise import MOST_GROUPS, too_many_tied
from bursar.compile.predicates import group_of, predicate
from bursar.compile.recoded import recoded
from bursar.compile.regions import Region, regions, ties_too_many
from bursar.compile.shared_rows import SharedRows
from bursar.compile.values import LARGEST_NUMBER, Represented, Values
from bursar.compile.weights import Operand, Sum, not_null
from bursar.core.domain import Domain
from bursar.core.source.source import MOST_CELLS
from bursar.errors import QueryError
from bursar.estimation.derived import Combination, Form, Quantile, Ratio, Variance, single
from bursar.sql import Aggregate, And, Condition, Formula, Function, Item, Linear, Name
from bursar.sql.query import TRUE, all_of, leaves

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
        self.largest: list[int] = []
        self.remarks: dict[str, None] = {}

    def index(self) -> NDArray[np.int64]:
        """The row of the map for each line and column."""
        columns = self._columns
        return np.stack(columns, axis=1) if columns else np.zeros((len(self._lines), 0), np.int64)

    def add(self, item: Item) -> Form:
        """The form of an item, whose columns are put behind those that are there."""
        try:
            return self._form(item)
        except QueryError as refusal:
            raise replace(refusal, position=item.position if refusal.position < 0 else refusal.position) from None

    def _form(self, item: Item) -> Form:
        if isinstance(item, Formula):
            return self._formula(item)
        if item.function is Function.COUNT:
            return single(self._part(item).column)
        self._remark(item)
        if item.function is Function.SUM:
            return self._combination(Linear(terms=((Fraction(1), item),)))
        if item.function is Function.AVG:
            return self._average(item)
        return self._quantile(item) if item.function in _QUANTILES else self._variance(item)

    def _operand(self, item: Aggregate) -> Operand:
        return Operand.of(item, self._where, self._domain)

    def _part(self, item: Aggregate) -> OutputTerm:
        """The column of a count or a sum."""
        if item.function is Function.SUM:
            return self._sum(self._operand(item).total(lambda numbers: numbers, 1))
        return self._count(self._known(item))

    def _count(self, condition: Condition) -> OutputTerm:
        asked = all_of(self._where, condition)
        if ties_too_many(asked, self._domain):
            return OutputTerm(column=self._added(self._tied(asked), 1))
        found = regions(asked, self._domain)
        if found is not None and self._looks_at(found) > MOST_CELLS:
            return OutputTerm(column=self._added(self._tied(asked), 1))
        return OutputTerm(column=self._column(found, 1))

    def _looks_at(self, found: Sequence[Region]) -> int:
        """How many joint cells the columns of regions and groups have."""
        return self._domain.cells({*self._groups.names, *(name for region in found for name in region.attrs)})

    def _check_sum(self, found: Sequence[Region]) -> None:
        """Refuse what is no count and looks at too many joint cells."""
        if (cells := self._looks_at(found)) > MOST_CELLS:
            raise QueryError(
                f"this looks at {cells} joint cells at once; {MOST_CELLS} are possible for anything but a COUNT in few "
                "groups"
            )

    def _tied(self, asked: Condition) -> NDArray[np.int64]:
        """The rows of a condition that no mask holds: one predicate for each line."""
        position = min((leaf.position for leaf in leaves(asked) if leaf.position >= 0), default=-1)
        if len(self._lines) > MOST_GROUPS:
            names = (*self._groups.names, *(leaf.column.text for leaf in leaves(asked)))
            raise too_many_tied(self._domain.ordered(names), position)
        index = np.full(len(self._lines), -1, np.int64)
        for place, line in enumerate(self._lines):
            made = predicate(asked, self._domain, group_of(line, self._groups, self._domain))
            if made is not None:
                index[place] = self._rows.tied(made, position)
        return index

    def _sum(self, total: Sum) -> OutputTerm:
        self._check_sum(total.found or ())
        column = self._column(total.found, total.largest)
        return OutputTerm(column=column, unit=total.unit, least=total.least, largest=total.largest)

    def _column(self, found: Sequence[Region] | None, largest: int) -> int:
        index = np.full(len(self._lines), -1, np.int64)
        if found is not None:
            counted = grouped(found, self._groups, self._domain)
            index[line_of(counted.groups, self._lines)] = self._rows.place(counted.product)
        return self._added(index, largest)

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
        least = {part: known.least for part, known in parts.items()}
        if alone:
            least[below.terms[0][1]] = 1.0
        lowest, highest = self._range(above, below) if alone else (-math.inf, math.inf)
        weights = [tuple(float(side.get(p, 0) * known.unit) for p, known in parts.items()) for side in sides]
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
                own = [weight, weight]
            elif _conjuncts(self._known(counted)) <= _conjuncts(self._known(part)):
                low, high = (Fraction(0), Fraction(1))
                if part.function is Function.SUM:
                    operand = self._operand(part)
                    low, high = (Fraction(end, operand.parts) for end in operand.extent())
                    low, high = min(low, Fraction(0)), max(high, Fraction(0))
                own = sorted([weight * low, weight * high])
            else:
                return -math.inf, math.inf
            ends = [end + more for end, more in zip(ends, own, strict=True)]
        return float(ends[0] / share), float(ends[1] / share)

    def _known(self, part: Aggregate) -> Condition:
        """The condition of the rows that have a value to count."""
        if part.of is None:
            return part.condition
        if isinstance(part.of, Name):
            return all_of(part.condition, not_null(self._domain[part.of.text], part.of.position))
        return self._operand(part).known()

    def _average(self, item: Aggregate) -> Form:
        """The centre of the values, and the average distance from it: that weighs half as much as the values do."""
        operand = self._operand(item)
        low, high = operand.extent()
        centre = (low + high) // 2 if operand.by_column() else 0
        total = self._sum(operand.total(lambda numbers: numbers - centre, 1))
        count = self._count(operand.known())
        columns, steps = (total.column, count.column), (float(total.largest), 1.0)
        parts = operand.parts
        return Ratio(
            above=Combination(columns=columns, weights=(float(total.unit), centre / parts), steps=steps),
            below=Combination(columns=columns, weights=(0.0, 1.0), steps=steps),
            least=(total.least, 1.0),
            lowest=low / parts,
            highest=high / parts,
        )

    def _variance(self, item: Aggregate) -> Form:
        operand = self._operand(item)
        low, high = operand.extent()
        centre = (low + high) // 2
        if (high - centre) ** 2 > LARGEST_NUMBER:
            raise QueryError("these values lie too far apart for their squares to be added up", position=item.position)
        count = self._count(operand.known())
        total = self._sum(operand.total(lambda numbers: numbers - centre, 1))
        squares = self._sum(operand.total(lambda numbers: (numbers - centre) ** 2, 2))
        return Variance(
            columns=(count.column, total.column, squares.column),
            units=(1.0, float(total.unit), float(squares.unit)),
            steps=(1.0, float(total.largest), float(squares.largest)),
            width=(high - low) / operand.parts,
            sample=item.function in _SAMPLES,
            root=item.function in _ROOTS,
        )

    def _quantile(self, item: Aggregate) -> Form:
        operand = self._operand(item)
        operand.total(lambda numbers: numbers, 1)  # refuses what has no value
        ((_, value),) = operand.branches
        assert isinstance(value, Values)
        assert item.fraction is not None
        found = regions(all_of(self._where, item.condition), self._domain)
        self._check_sum([*(found or ()), Region((value.attribute.name,), np.ones(value.attribute.size, np.bool_))])
        rows = prefixes(found, value, self._groups, self._domain, item.position)
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
        return Quantile(
            columns=tuple(columns),
            points=tuple(float(Fraction(int(point), operand.parts)) for point in rows.points),
            share=item.fraction,
            between=item.function is Function.QUANTILE_CONT,
        )

    def _remark(self, item: Aggregate) -> None:
        if item.function is Function.COUNT:
            return
        operand = self._operand(item)
        for value in operand.binned():
            each = {Function.AVG: "the average", Function.SUM: "for each row that is added up, the sum"}
            what = "the quantile" if item.function in _QUANTILES else each.get(item.function, "each value")
            self.remarks[
                f"{value.attribute.name} is known by bin only, and each value counts as {_counted_as(value)}: "
                f"{what} may be off by at most {float(value.off):g} more"
            ] = None
        for attribute in operand.columns():
            if said := recoded(attribute):
                self.remarks[said] = None


def _counted_as(value: Values) -> str:
    declared = isinstance(value.attribute, Represented)
    return "the number declared for its bin" if declared else "the middle of its bin"


def line_of(cells: Cells, lines: Cells) -> NDArray[np.int64]:
    """The line of each group; every group of an aggregate has one, for its condition contains the WHERE."""
    if not lines.shape[1]:
        return np.zeros(len(cells), np.int64)
    _, number = np.unique(np.concatenate([lines, cells]), axis=0, return_inverse=True)
    return number.reshape(-1)[len(lines) :]


def _conjuncts(condition: Condition) -> set[Condition]:
    if condition == TRUE:
        return set()
    return set(condition.parts) if isinstance(condition, And) else {condition}
