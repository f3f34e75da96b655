"""Per-person questions as maps over people: each person is one number of their own rows, counted or added up."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers
from bursar.compile.conditions import regions, ties_too_many
from bursar.compile.groups import Cells, Groups
from bursar.compile.masks import grouped
from bursar.compile.number_ranges import Range, Ranges, both, ranges_of, united, without
from bursar.compile.operands import Operand, value_remarks
from bursar.compile.outputs import ROOTS, SAMPLES, Outputs, OutputTerm, line_of
from bursar.compile.partwise import SharedRows
from bursar.core.domain import Domain, Unit, Value
from bursar.core.extensions.per_person import LARGEST_VALUE
from bursar.core.queries import Distinct, PerPerson, Product
from bursar.errors import QueryError
from bursar.estimation.derived import Combination, Extreme, Form, Quantile, Ratio, VarianceOfCounts
from bursar.lazy_dataclass import dataclass
from bursar.sql import (
    FALSE,
    TRUE,
    Aggregate,
    And,
    Between,
    CaseGroups,
    Compare,
    Condition,
    Function,
    In,
    IsNull,
    Key,
    Linear,
    Name,
    Not,
    Or,
)
from bursar.sql.per_person import SHAPE, PeopleQuery
from bursar.sql.query import EXTREMES, Constant, IsTrue, Stepped, all_of, leaves

MOST_VALUES = 1000
"""Most lines of a histogram of people's numbers, for each group."""

MOST_STEPS = 256
"""Most numbers that a quantile of people's numbers tells apart: their noise adds up over half of them."""

FEWER_STEPS = 32
"""The same of a variance, or of the least or greatest: bars add up over all of them."""

Bins = tuple[Range, ...]


@dataclass(frozen=True, eq=False)
class PersonNumber:
    """The number of each person: one sum over their rows, in whole numbers of `unit`, and what it can be."""

    name: str
    have: Condition  # what a row meets that gives its person a number that is not NULL
    where: Condition  # of the inner SELECT
    value: Product | None  # None: the number of all rows of a person, those beyond the bound too
    unit: Fraction
    lower: int
    upper: int
    counted_to: int  # the greatest that is told apart where people are only counted
    nullable: bool  # whether people can have rows and no number: of a sum, where all their values are NULL
    remarks: tuple[str, ...]

    @staticmethod
    def of(query: PeopleQuery, domain: Domain, unit: Unit) -> PersonNumber:
        """The number that the inner SELECT, whose names are resolved, makes of a person's rows."""
        (item,) = query.inner.aggregates
        if not isinstance(item, Aggregate) or item.function not in (Function.COUNT, Function.SUM) or item.distinct:
            raise QueryError(f"the number of a person is a COUNT or a SUM; {SHAPE}", position=item.position)
        most, operand = unit.max_contributions, Operand.of(item, query.inner.where, domain)
        remarks: list[str] = []
        have = query.inner.where  # what a row meets that makes its person one with a number
        if item.function is Function.COUNT:
            own_unit, value = Fraction(1), _all_rows(query, domain)
            counted = item.condition if item.of is None else operand.known()
            low, high = 1, 1
            if counted != TRUE:  # others of the person's rows count as 0
                value, low = _one_row(all_of(have, counted), domain, item.position), 0
        else:
            total, have = operand.whole(), all_of(have, operand.known())
            if total.regions is None:
                raise QueryError("nothing is added up here: the sum of every person is 0", position=item.position)
            value, own_unit = grouped(total.regions, Groups(()), domain).product, total.unit
            low, high = (int(end * operand.step / own_unit) for end in operand.extent())
            remarks += value_remarks(operand, f"for each row of a person, {query.number}")
        lowest, highest = min(low, most * low), max(high, most * high)
        lower, upper = lowest, highest
        if query.lower is not None:
            lower = max(math.ceil(query.lower / own_unit), lowest)
        if query.upper is not None:
            upper = (
                math.floor(query.upper / own_unit)
                if value is None
                else min(math.floor(query.upper / own_unit), highest)
            )
        if lower > upper or max(abs(lower), abs(upper)) > LARGEST_VALUE:
            raise QueryError("the bounds of a person's number leave nothing between them", position=item.position)
        ends = f"{float(lower * own_unit):,.10g} to {float(upper * own_unit):,.10g}"
        closer = "" if query.upper is not None else "; LEAST(..., a number) around it sets another bound"
        remarks.append(f"{query.number} of a person counts as {ends} where it is added up or shown{closer}")
        if value is not None and most > 1:
            remarks.append(f"up to {most} rows of each person are in {query.number}")
        counted_to = LARGEST_VALUE if value is None and query.upper is None else upper
        unknown = all_of(query.inner.where, Not(part=operand.known())) if item.function is Function.SUM else FALSE
        nullable = ties_too_many(unknown, domain) or regions(unknown, domain) is not None
        if nullable and (query.lower is not None or query.upper is not None):
            remarks.append(
                f"people of whom every value is NULL have no {query.number}, whatever LEAST and GREATEST say"
            )
        facts = (query.number, have, query.inner.where, value, own_unit, lower, upper, counted_to, nullable)
        return PersonNumber(*facts, tuple(remarks))

    def interval(self, condition: Condition) -> Range:
        """The numbers, in units, that a condition leaves: from the first to one before the second."""
        spans = self.ranges(condition)
        if len(spans) > 1:
            raise QueryError(
                f"this leaves {len(spans)} ranges of {self.name}; ask about one of them at a time, or group by a CASE "
                "that tells them apart",
                position=min((leaf.position for leaf in leaves(condition)), default=-1),
            )
        return spans[0] if spans else (0, 0)

    def ranges(self, condition: Condition) -> Ranges:
        """The same where it may be several ranges. IS NOT NULL leaves all of them: who has no number is in none."""
        parts = condition.parts if isinstance(condition, And) else (condition,)
        compared = all_of(*(part for part in parts if not (isinstance(part, Not) and isinstance(part.part, IsNull))))
        for leaf in leaves(condition):
            if not isinstance(leaf, Compare | Between | In | IsNull) or not leaf.column.names(self.name):
                raise self._about_rows(leaf)
        spans = ranges_of(compared, self._in_units, self._about_rows)
        if self.nullable and condition != TRUE and _of_nothing(condition):
            raise QueryError(
                f"people of whom every value is NULL have no {self.name} and would be among these; leave them out by "
                "IS NOT NULL in the inner WHERE",
                position=min((leaf.position for leaf in leaves(condition)), default=-1),
            )
        return spans

    def counted_as_zero(self, where: Condition, key: Key) -> bool:
        """Whether people without a number are under ELSE of a CASE: the sum of no value is 0 where they are counted."""
        other = isinstance(key.by, CaseGroups) and key.by.pieces[-1].condition == TRUE
        return self.nullable and where == TRUE and other

    def _about_rows(self, part: object) -> QueryError:
        return QueryError(
            f"outside, {self.name} is compared with numbers; conditions on columns stand in the inner WHERE",
            position=getattr(part, "position", -1),
        )

    def _in_units(self, literal: object, part: Compare | Between | In) -> Fraction:
        if isinstance(literal, bool) or not isinstance(literal, int | Decimal):
            raise QueryError(f"{self.name} is compared with numbers, without quotes", position=part.position)
        return Fraction(literal) / self.unit


def _all_rows(query: PeopleQuery, domain: Domain) -> Product | None:
    """How rows are counted: one by one, or, where all of a person's are, before their number is bounded."""
    whole = query.inner.where == TRUE and not query.inner.keys and domain.partition is None
    return None if whole else Product(())


def _one_row(condition: Condition, domain: Domain, position: int) -> Product:
    row_regions = None if ties_too_many(condition, domain) else regions(condition, domain)
    if row_regions is None:
        raise QueryError("what is counted of a person is about single columns, joined by AND", position=position)
    return grouped(row_regions, Groups(()), domain).product


class PeopleOutputs(Outputs):
    """The columns of a per-person question: people counted, or their numbers added up, by group and by bin."""

    def __init__(
        self,
        number: PersonNumber,
        where: Condition,
        groups: Groups,
        lines: Cells,
        domain: Domain,
        rows: SharedRows,
        histogram: Bins = (),
        *,
        everybody: bool = False,
    ) -> None:
        """`everybody`: COUNT(*) of a bin has people without a number too, as if it were 0."""
        super().__init__(TRUE, groups, lines, domain, rows)
        self._number, self._outer, self._histogram = number, where, histogram
        self._counted = number.where if everybody else number.have
        self.remarks.update(dict.fromkeys(number.remarks))

    def _part(self, item: Aggregate) -> OutputTerm:
        """The column of a count of people, or of a sum of their numbers."""
        number, condition = self._number, all_of(self._outer, item.condition)
        if item.distinct or not (item.of is None or (isinstance(item.of, Name) and item.of.names(number.name))):
            raise self._other_column(item)
        if item.function is Function.SUM:
            low, high = self._summed(item)
            return self._people(((low, high),), 0, number.unit)
        if condition == TRUE and not self._histogram:
            return self._everybody(item)
        low, high = self._kept(condition, number.counted_to)
        return self._people(((low, high),), None, Fraction(1), number.have if item.of is not None else self._counted)

    def _other_column(self, item: Aggregate) -> QueryError:
        name = self._number.name
        return QueryError(
            f"outside, COUNT(*), and SUM, AVG, STDDEV, MEDIAN, MIN and MAX of {name} are asked for",
            position=item.position,
        )

    def _kept(self, condition: Condition, upper: int) -> tuple[int, int]:
        low, high = self._number.interval(condition)
        return max(low, self._number.lower), min(high, upper + 1)

    def _summed(self, item: Aggregate) -> Range:
        """The numbers that are added up; refused where it matters which people are beyond the bound of what one adds.

        People are told apart by all rows they have, but count with a bounded number of them where that is added up.
        """
        number, condition = self._number, all_of(self._outer, item.condition)
        cuts = [end for ends in (number.interval(condition), *self._histogram) for end in ends]
        beyond = [cut for cut in cuts if number.upper < cut < number.counted_to]
        if beyond:
            raise QueryError(
                f"{number.name} counts as {number.upper} at most where it is added up, so that nobody above is told "
                f"apart; LEAST(COUNT(*), {max(beyond)}) AS {number.name} inside sets another bound",
                position=item.position,
            )
        return self._kept(condition, number.upper)

    def _groups_of(self, condition: Condition) -> tuple[Product, NDArray[np.int64]] | None:
        if ties_too_many(condition, self._domain):
            raise QueryError("a condition on the rows of people is about single columns, joined by AND")
        row_regions = regions(condition, self._domain)
        if row_regions is None:
            return None
        counted = grouped(row_regions, self._groups, self._domain)
        return counted.product, line_of(counted.groups, self._lines)

    def _everybody(self, item: Aggregate) -> OutputTerm:
        """People with any row; for COUNT of the number, with a row that has a value."""
        condition = self._number.where if item.of is None else self._number.have
        index, counted = np.full(len(self._lines), -1, np.int64), self._groups_of(condition)
        if counted is not None:
            index[counted[1]] = self._rows.alone(Distinct(counted[0]))
        return OutputTerm(column=self._added(index, 1))

    def _people(self, bins: Bins, centre: int | None, unit: Fraction, among: Condition | None = None) -> OutputTerm:
        number = self._number
        upper = number.upper if centre is not None else number.counted_to
        bins = tuple((max(low, a), min(high, b)) for low, high in bins for a, b in self._histogram or ((low, high),))
        shown = [place for place, (low, high) in enumerate(bins) if low < high]
        width = max(len(self._histogram), 1)
        index = np.full((len(self._lines), width), -1, np.int64)
        counted = self._groups_of(number.have if among is None else among)
        largest = 1
        if counted is not None and shown:
            people = PerPerson(
                groups=counted[0],
                value=number.value,
                lower=number.lower,
                upper=upper,
                bins=tuple(bins[place] for place in shown),
                centre=centre,
            )
            largest = people.change
            index[np.ix_(counted[1], np.array(shown))] = self._rows.alone(people).reshape(len(counted[1]), len(shown))
        least = -math.inf if centre is not None and (number.lower < 0 or centre != 0) else 0.0
        column = self._added(index.reshape(-1), largest)
        return OutputTerm(column=column, unit=unit, least=least, largest=largest)

    def _average(self, item: Aggregate) -> Form:
        """The centre of the numbers, and the average distance from it."""
        number = self._number
        low, high = self._summed(item)
        centre, unit = (low + high - 1) // 2, float(number.unit)
        total = self._people(((low, high),), centre, number.unit)
        count = self._part(replace(item, function=Function.COUNT))
        columns, steps = (total.column, count.column), (float(total.largest), 1.0)
        return Ratio(
            above=Combination(columns=columns, weights=(unit, centre * unit), steps=steps),
            below=Combination(columns=columns, weights=(0.0, 1.0), steps=steps),
            least=(total.least, 1.0),
            lowest=low * unit,
            highest=(high - 1) * unit,
        )

    def _range(self, above: Linear, below: Linear) -> tuple[float, float]:
        return -math.inf, math.inf

    def _quantile(self, item: Aggregate) -> Form:
        if item.function in EXTREMES:
            return self._extreme(item)
        columns, points = self._at_each(item, MOST_STEPS)
        assert item.fraction is not None
        return Quantile(
            columns=columns,
            points=points,
            share=item.fraction,
            between=item.function is Function.QUANTILE_CONT,
            apart=True,
        )

    def _extreme(self, item: Aggregate) -> Form:
        most = item.function is Function.MAX
        columns, points = self._at_each(item, FEWER_STEPS)
        self.remarks[
            f"{item.function.value} is measured: somebody lies at or {'above' if most else 'below'} it, if there is any"
        ] = None
        if most:
            columns, points = columns[::-1], points[::-1]
        return Extreme(columns=columns, points=points, most=most, apart=True)

    def _variance(self, item: Aggregate) -> Form:
        columns, points = self._at_each(item, FEWER_STEPS)
        return VarianceOfCounts(
            columns=columns, points=points, sample=item.function in SAMPLES, root=item.function in ROOTS
        )

    def _at_each(self, item: Aggregate, most_steps: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Columns of the people at each number, who are counted together, as everybody is at one; and the numbers."""
        number = self._number
        if self._histogram:
            raise QueryError(
                f"{item.function.value} of {number.name} is one of all people, or by the keys of the inner SELECT, and "
                f"not by {number.name}",
                position=item.position,
            )
        low, high = self._summed(item)
        width = max(1, -(-(high - low) // most_steps))
        bins = tuple((first, min(first + width, high)) for first in range(low, high, width))
        index, counted = np.full((len(self._lines), len(bins)), -1, np.int64), self._groups_of(number.have)
        if counted is not None and bins:
            people = PerPerson(counted[0], number.value, number.lower, number.upper, bins)
            index[counted[1]] = self._rows.alone(people).reshape(len(counted[1]), len(bins))
        if width > 1:
            off = float((width - 1) * number.unit / 2)
            self.remarks[
                f"{number.name} counts as the middle of one of {len(bins)} steps between its bounds: each may "
                f"be off by at most {off:g} more; LEAST and GREATEST around it make them finer"
            ] = None
        points = tuple(float((a + b - 1) * number.unit / 2) for a, b in bins)
        return tuple(self._added(column, 1) for column in index.T), points

    def _remark(self, item: Aggregate) -> None:
        if item.distinct or not (item.of is None or (isinstance(item.of, Name) and item.of.names(self._number.name))):
            raise self._other_column(item)


def keyed(query: PeopleQuery) -> tuple[list[int], int | None]:
    """For each key outside, the place of the inner key that it names; and the place of the number, where it is one.

    Edge cases: refused where they are not all inner keys.
    """
    inner = [key.name for key in query.inner.keys]
    places: list[int] = []
    number: int | None = None
    for place, key in enumerate(query.keys):
        matches = [at for at, name in enumerate(inner) if key.by is None and key.column.names(name)]
        if key.column.names(query.number) and number is None:
            number = place
        elif len(matches) != 1:
            raise QueryError(
                f"{key.column.text} is not grouped by in the inner SELECT; outside, its keys and {query.number} are",
                position=key.column.position,
            )
        places += matches
    if sorted(places) != list(range(len(inner))) or query.sets:
        raise QueryError(
            "the outer SELECT groups by all that the inner one groups by beside the person",
            position=query.table.position,
        )
    return places, number


def histogram_of(number: PersonNumber, where: Condition, key: Key) -> tuple[Bins, list[Value]]:
    """The ranges of numbers that are lines of the answer, rising, and what each is called.

    Edge cases: refused where there are too many, and where a group is more than one range. Who is beyond the upper
    bound of the number is in the last line.
    """
    low, high = number.interval(where)
    low, high = max(low, number.lower), min(high, number.counted_to + 1)
    match key.by:
        case CaseGroups():
            bins, labels = _cases(number, (low, high), key.by, key.position)
            if number.counted_as_zero(where, key):
                nobody = min(max(0, number.lower), number.upper)
                last = key.by.pieces[-1].label
                if not any(a <= nobody < b and label == last for (a, b), label in zip(bins, labels, strict=True)):
                    raise QueryError(
                        f"people of whom every value is NULL have no {number.name} and would be under ELSE; leave them "
                        "out by IS NOT NULL in the inner WHERE, or write a last WHEN in place of ELSE",
                        position=key.position,
                    )
            return bins, labels
        case Stepped(width=width, times=times, towards_zero=False):
            step, each = Fraction(width) / number.unit, Fraction(times)
        case None:
            step, each = Fraction(1), number.unit
        case _:
            raise QueryError(
                f"people are grouped by {number.name}, by FLOOR({number.name} / 10) * 10, or by a CASE over it",
                position=key.position,
            )
    first, last = math.floor(low / step), math.floor(min(high - 1, number.upper) / step)
    if last - first >= MOST_VALUES:
        raise QueryError(
            f"{number.name} can have {last - first + 1} values, and a histogram has {MOST_VALUES}; LEAST and GREATEST "
            f"around it leave fewer, and so do wider groups, FLOOR({number.name} / 1000) * 1000",
            position=key.position,
        )
    cuts = [low, *(math.ceil(place * step) for place in range(first + 1, last + 1)), high]
    bins = tuple((a, b) for a, b in itertools.pairwise(cuts) if a < b)
    return bins, [_plain(math.floor(a / step) * each) for a, _ in bins]


def _cases(number: PersonNumber, within: Range, by: CaseGroups, position: int) -> tuple[Bins, list[Value]]:
    """The range of each label of a CASE: of the numbers that no earlier branch has taken."""
    left: Ranges = (within,) if within[0] < within[1] else ()
    taken: dict[Value, Ranges] = {}
    for condition, label in [*((piece.condition, piece.label) for piece in by.pieces), (TRUE, None)]:
        case_ranges = both(left, number.ranges(condition))
        left = without(left, case_ranges)
        name = _plain(Fraction(label)) if isinstance(label, Decimal) else label
        taken[name] = united((*taken.get(name, ()), *case_ranges))
    if any(len(ranges) > 1 for ranges in taken.values()):
        raise QueryError(f"a group of people is one range of {number.name}", position=position)
    named = sorted((ranges[0], label) for label, ranges in taken.items() if ranges)
    return tuple(ranges for ranges, _ in named), [label for _, label in named]


def _of_nothing(condition: Condition) -> bool | None:
    """What a condition is where the number is NULL, in three-valued logic."""
    match condition:
        case Constant(value=value):
            return value
        case IsNull():
            return True
        case IsTrue(part=part):
            return _of_nothing(part) is True
        case Not(part=part):
            inner = _of_nothing(part)
            return None if inner is None else not inner
        case And(parts=parts) | Or(parts=parts):
            inside, deciding = [_of_nothing(part) for part in parts], isinstance(condition, Or)
            return deciding if deciding in inside else None if None in inside else not deciding
    return None


def _plain(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def spread(lines: Cells, bins: int) -> tuple[Integers, Integers]:
    """The line and the bin of each line of an answer that has a line for each of both."""
    return np.repeat(np.arange(len(lines)), bins), np.tile(np.arange(bins), len(lines))
