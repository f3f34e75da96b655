"""Where a literal cuts the line of a column's cells.

The line of an ordered column is: everything below the declared range, its n declared cells, everything above. A
boundary is the cut just before a value (as < and >= make it) or just behind it (<= and >).
"""

from __future__ import annotations

import bisect
import calendar
import math
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from bursar.core.domain import Attribute, Bins, Dates, IntegerRange, Period
from bursar.sql import Compare, Name, Op

Bound = int | Decimal | date
"""A literal that fits an ordered column: a number, or a day."""


@dataclass(frozen=True, kw_only=True)
class Boundary:
    """`whole` places of the line lie wholly on the lower side; `cuts` if the next one has values on both sides."""

    whole: int
    cuts: bool


def boundary(attribute: Attribute, value: Bound, *, behind: bool) -> Boundary:
    """The cut just before the value, or just behind it."""
    match attribute, value:
        case IntegerRange(), int() | Decimal():
            first = math.floor(value) + 1 if behind else math.ceil(value)  # the least integer on the upper side
            return _in_cell(first - attribute.lower, attribute.declared, at_edge=True)
        case Bins(), int() | Decimal():
            return _in_bins(attribute.edges, float(value), behind)
        case Dates(), date():
            period = attribute.ordinal(value) - attribute.ordinal(attribute.first)
            if behind:
                ends = value == _last_day(attribute, value)
                return _in_cell(period + ends, attribute.declared, at_edge=ends)
            return _in_cell(period, attribute.declared, at_edge=value == _first_day(attribute, value))
    raise TypeError(f"{attribute.name} has no order that {value!r} fits into")


def before(attribute: Attribute, column: Name, cell: int) -> Compare:
    """The condition that holds for the declared cells before this one, or for all where it is one past the last."""
    if cell == attribute.declared:
        return Compare(column=column, op=Op.LE, literal=greatest(attribute))
    return Compare(column=column, op=Op.LT, literal=_least(attribute, cell))


def from_on(attribute: Attribute, column: Name, cell: int) -> Compare:
    """The condition that holds for this declared cell and all behind it, or for none where it is one past the last."""
    if cell == attribute.declared:
        return Compare(column=column, op=Op.GT, literal=greatest(attribute))
    return Compare(column=column, op=Op.GE, literal=_least(attribute, cell))


def least(attribute: Attribute) -> Bound:
    """The least value of the declared range."""
    return _least(attribute, 0)


def greatest(attribute: Attribute) -> Bound:
    """The greatest value of the declared range."""
    match attribute:
        case IntegerRange():
            return attribute.upper
        case Bins():
            return _number(attribute.edges[-1])
        case Dates():
            return _last_day(attribute, attribute.last)
    raise TypeError(f"{attribute.name} has no order")


def around(attribute: Attribute, cell: int) -> tuple[Bound, Bound]:
    """The edges of a declared cell: its least value and that of the next, or the greatest of all behind the last."""
    last = cell == attribute.declared - 1
    return _least(attribute, cell), greatest(attribute) if last else _least(attribute, cell + 1)


def nearest(attribute: Attribute, value: Bound, cell: int) -> int:
    """Of a declared cell that a value falls into and the one behind it, that whose lower edge is nearer."""
    match attribute, value:
        case Bins(), int() | Decimal():
            low, high = attribute.edges[cell : cell + 2]
            return cell if float(value) - low < high - float(value) else cell + 1
        case Dates(), date():
            first, last = _first_day(attribute, value), _last_day(attribute, value)
            return cell if value - first < last - value else cell + 1
    return cell


def _least(attribute: Attribute, cell: int) -> Bound:
    match attribute:
        case IntegerRange():
            return attribute.lower + cell
        case Bins():
            return _number(attribute.edges[cell])
        case Dates():
            return attribute.start(cell)
    raise TypeError(f"{attribute.name} has no order")


def _in_cell(cell: int, declared: int, *, at_edge: bool) -> Boundary:
    """A boundary inside a cell of the given number, or at its lower edge; cells are counted on beyond the range."""
    if cell < 0:
        return Boundary(whole=0, cuts=True)
    if cell < declared:
        return Boundary(whole=cell + 1, cuts=not at_edge)
    return Boundary(whole=declared + 1, cuts=cell > declared or not at_edge)


def _in_bins(edges: tuple[float, ...], value: float, behind: bool) -> Boundary:
    """Bins hold their lower edge and not their upper one, except the last, which holds both."""
    declared = len(edges) - 1
    if value < edges[0]:
        return Boundary(whole=0, cuts=True)
    if value > edges[-1]:
        return Boundary(whole=declared + 1, cuts=True)
    if value == edges[-1]:
        return Boundary(whole=declared + 1, cuts=False) if behind else Boundary(whole=declared, cuts=True)
    cell = bisect.bisect_right(edges, value) - 1
    return Boundary(whole=cell + 1, cuts=behind or value != edges[cell])


def _first_day(attribute: Dates, day: date) -> date:
    if attribute.by is Period.MONTH:
        return day.replace(day=1)
    return date.fromordinal(day.toordinal() - (day.weekday() if attribute.by is Period.WEEK else 0))


def _last_day(attribute: Dates, day: date) -> date:
    if attribute.by is Period.MONTH:
        return day.replace(day=calendar.monthrange(day.year, day.month)[1])
    ahead = 6 - day.weekday() if attribute.by is Period.WEEK else 0
    return date.fromordinal(min(day.toordinal() + ahead, date.max.toordinal()))


def _number(edge: float) -> int | Decimal:
    return int(edge) if edge.is_integer() and abs(edge) < 2**53 else Decimal(repr(edge))
