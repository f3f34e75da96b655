"""The values behind the cells of a column: where a literal cuts between them, and the number that each counts as.

The line of an ordered column is: everything below the declared range, its n declared cells, everything above. A
boundary is the cut just before a value (as < and >= make it) or just behind it (<= and >). Where values are added up:

whole numbers, listed numbers    the value itself
decimals                         the number that the value is rounded to
bins                             the middle of the bin, or the number declared for it: off for each row by at most
                                 the way from there to the further edge
NULL                             nothing: it is left out, as SQL has it
other                            nothing either, as nobody knows these numbers; the answer says so

What a declaration makes of values follows from the config alone; whether the data hold such values is not looked at.
"""

from __future__ import annotations

import bisect
import calendar
import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from bursar.core.domain import Attribute, Bins, Categories, Dates, IntegerRange, Period, Stray, Value
from bursar.errors import ConfigError, QueryError
from bursar.lazy_dataclass import dataclass
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
        case IntegerRange() | Decimals(), int() | Decimal():
            place = _place(attribute, value)
            first = math.floor(place) + 1 if behind else math.ceil(place)  # the least number on the upper side
            return _in_cell(first, attribute.declared, at_edge=True)
        case Bins(), int() | Decimal():
            return _in_bins(attribute.edges, float(value), behind)
        case Dates(), date():
            period = attribute.ordinal(value) - attribute.ordinal(attribute.first)
            if behind:
                ends = value == _last_day(attribute, value)
                return _in_cell(period + ends, attribute.declared, at_edge=ends)
            return _in_cell(period, attribute.declared, at_edge=value == _first_day(attribute, value))
    raise TypeError(f"{attribute.name} has no order that {value!r} fits into")


def is_declared(attribute: Attribute, value: Bound) -> bool:
    """Whether some value of the column can be equal to this one; only numbers that lie between others cannot."""
    if isinstance(attribute, IntegerRange | Decimals) and isinstance(value, int | Decimal):
        return _place(attribute, value).denominator == 1
    return True


def _place(attribute: IntegerRange | Decimals, value: int | Decimal) -> Fraction:
    """How many steps a number lies behind the first declared one."""
    step = attribute.step if isinstance(attribute, Decimals) else 1
    return (Fraction(value) - Fraction(attribute.lower)) / Fraction(step)


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
        case Decimals():
            return _least(attribute, attribute.declared - 1)
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
        case Decimals():
            return attribute.number(cell)
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


LARGEST_NUMBER = 2**31
"""Most steps from 0 that a value may be: rows of squares, and their squares, must stay whole."""


@dataclass(frozen=True, kw_only=True)
class Represented(Bins):
    """Bins with a number that the values of each count as when they are added up.

    It says nothing about where rows fall, so a ledger is not bound to it.
    """

    representatives: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.representatives) != self.declared:
            raise ConfigError(
                f"column {self.name} has {self.declared} bins and {len(self.representatives)} representatives"
            )
        for number, low, high in zip(self.representatives, self.edges, self.edges[1:], strict=False):
            if not low <= number <= high:
                raise ConfigError(f"column {self.name}: {number:g} lies outside of its bin, {low:g} to {high:g}")


@dataclass(frozen=True, kw_only=True)
class Decimals(Bins):
    """Numbers that are rounded to the nearest of `lower`, `lower` + `step`, ...: each has a bin around it.

    Unlike the values of other bins they are known, so they can be compared and computed with as whole numbers can.
    """

    lower: Decimal
    step: Decimal

    def number(self, cell: int) -> Decimal:
        """The number that a declared cell stands for."""
        return self.lower + cell * self.step

    def declared_label(self, cell: int) -> Value:
        whole = self.lower == self.lower.to_integral_value() and self.step == self.step.to_integral_value()
        return int(self.number(cell)) if whole else float(self.number(cell))

    def facts(self) -> dict[str, object]:
        return {**super().facts(), "rounded": [str(self.lower), str(self.step)]}


def known_by_bin(attribute: Attribute) -> TypeGuard[Bins]:
    """Whether nobody can tell the values within a cell of numbers apart."""
    return isinstance(attribute, Bins) and not isinstance(attribute, Decimals)


@dataclass(frozen=True, kw_only=True)
class ListedKeys(Categories):
    """An open column with the texts that a question may tell apart, in the order of their cells; perhaps none."""

    cells: tuple[int, ...]
    capacity: int

    def __post_init__(self) -> None:
        if self.values:
            super().__post_init__()

    @property
    def of(self) -> type:
        return str

    def facts(self) -> dict[str, object]:
        return {"kind": "open", "capacity": self.capacity, "values": list(self.values), "cells": list(self.cells)}


@dataclass(frozen=True, eq=False)
class Values:
    """What cells count as, in whole numbers of `step`."""

    attribute: Attribute
    numbers: NDArray[np.int64]  # one per cell, 0 where there is none
    step: Fraction
    null: NDArray[np.bool_]  # cells that are left out: NULL, and `other`, whose values nobody knows
    off: Fraction  # how far a row's own value can be from what it counts as

    def times(self, factor: int) -> Values:
        """The same in finer steps."""
        return Values(self.attribute, self.numbers * factor, self.step / factor, self.null, self.off)


def holds_numbers(attribute: Attribute) -> bool:
    """Whether the values of a column can be added up."""
    return isinstance(attribute, IntegerRange | Bins) or (isinstance(attribute, Categories) and attribute.of is int)


def values_of(attribute: Attribute, position: int) -> Values:
    """The numbers of a column; refused where its cells are none."""
    step = Fraction(1)
    match attribute:
        case IntegerRange():
            declared, off = np.arange(attribute.lower, attribute.upper + 1, dtype=np.int64), Fraction(0)
            if max(abs(attribute.lower), abs(attribute.upper)) > LARGEST_NUMBER:
                raise QueryError(f"the numbers in {attribute.name} are too large to be added up", position=position)
        case Categories() if attribute.of is int:
            listed = [int(value) for value in attribute.values]
            if max(map(abs, listed)) > LARGEST_NUMBER:
                raise QueryError(f"the numbers in {attribute.name} are too large to be added up", position=position)
            declared, off = np.array(listed, np.int64), Fraction(0)
        case Bins():
            declared, step, off = _bin_values(attribute)
        case _:
            raise QueryError(f"{attribute.name} holds no numbers; it can be counted and grouped by", position=position)
    numbers = np.zeros(attribute.size, np.int64)
    numbers[: attribute.declared] = declared
    return Values(attribute, numbers, step, np.arange(attribute.size) >= attribute.declared, off)


def _bin_values(attribute: Bins) -> tuple[NDArray[np.int64], Fraction, Fraction]:
    """What bins count as, in the decimals they are written in, or in steps that they all are whole numbers of, or in as
    fine a grid as there is room for."""
    edges = [_written(edge) for edge in attribute.edges]
    if isinstance(attribute, Decimals):
        points = [Fraction(attribute.number(cell)) for cell in range(attribute.declared)]
    elif isinstance(attribute, Represented):
        points = [_written(number) for number in attribute.representatives]
    else:
        points = [(low + high) / 2 for low, high in pairwise(edges)]
    step = _step_of(points)
    numbers = [round(point / step) for point in points]
    counted = [number * step for number in numbers]
    off = max(max(high - number, number - low) for (low, high), number in zip(pairwise(edges), counted, strict=True))
    if isinstance(attribute, Decimals) and counted == points:
        off = Fraction(0)  # what a value is rounded to is its value
    return np.array(numbers, np.int64), step, off


def _step_of(points: Sequence[Fraction]) -> Fraction:
    """One of what is written, if no point is more than LARGEST_NUMBER of it; else the greatest that divides all of
    them, or the least that they can be rounded to."""
    largest = max(1, math.ceil(max(map(abs, points))))
    parts = math.lcm(*(point.denominator for point in points))
    if parts * largest <= LARGEST_NUMBER:
        return Fraction(1, parts)
    common = Fraction(math.gcd(*(int(point * parts) for point in points)), parts)
    if largest <= LARGEST_NUMBER * common:
        return common
    parts = LARGEST_NUMBER // largest
    return Fraction(1, parts) if parts else Fraction(-(-largest // LARGEST_NUMBER))


def _written(number: float) -> Fraction:
    return Fraction(Decimal(repr(float(number))))


def recoding_remark(attribute: Attribute) -> str:
    """What is made of the numbers of a column before they are added up; nothing where that is not done."""
    remarks = [_outside(attribute) or _left_out(attribute), _null(attribute)]
    remarks.append(_rounded(attribute))
    given = [part for part in remarks if part]
    return f"{attribute.name}: {'; '.join(given)}" if given else ""


def _rounded(attribute: Attribute) -> str:
    match attribute:
        case IntegerRange():
            return "decimals are rounded down"
        case Decimals():
            return f"numbers are rounded to the nearest {attribute.step}"
    return ""


def left_out_remark(attribute: Attribute) -> str:
    """Which values of a column are in no comparison and no calculation, as nobody knows them; empty: all are."""
    left_out = _left_out(attribute)
    return f"{attribute.name}: {left_out}" if left_out else ""


def distinct_remark(attribute: Attribute) -> str:
    """What a distinct count of a column has once; nothing where that is each of its values."""
    remarks = [_outside(attribute), _null(attribute)]
    remarks.append(_rounded(attribute))
    if known_by_bin(attribute):
        remarks.insert(0, "bins are counted, not numbers")
    elif isinstance(attribute, Dates) and attribute.by is not Period.DAY:
        remarks.insert(0, f"each {attribute.by.value} is counted once")
    if attribute.outside is Stray.OTHER and not isinstance(attribute, ListedKeys):
        remarks.append("all values that are not declared count as one")
    given = [part for part in remarks if part]
    return f"{attribute.name}: {'; '.join(given)}" if given else ""


def _outside(attribute: Attribute) -> str:
    match attribute:
        case IntegerRange():
            low, high = str(attribute.lower), str(attribute.upper)
            ends = f"{low} or {high}"
        case Decimals():
            low, high = str(least(attribute)), str(greatest(attribute))
            ends = f"{low} or {high}"
        case Bins():
            low, high = (f"{edge:.15g}" for edge in (attribute.edges[0], attribute.edges[-1]))
            ends = "if they were in the first or the last bin"
        case _ if isinstance(attribute.outside, int):
            return f"values that are not listed count as {_named(attribute, attribute.outside)}"
        case _:
            return ""
    if attribute.outside is Stray.OTHER:
        return ""
    named = _named(attribute, attribute.outside) if isinstance(attribute.outside, int) else ends
    return f"values outside {low} to {high} count as {named}"


def _left_out(attribute: Attribute) -> str:
    if attribute.outside is not Stray.OTHER:
        return ""
    if attribute.ordered:
        return f"values outside {least(attribute)} to {greatest(attribute)} are left out"
    return "values that are not listed are left out"


def _null(attribute: Attribute) -> str:
    if not isinstance(attribute.null, int):
        return ""
    return f"missing values count as {_named(attribute, attribute.null)}"


def _named(attribute: Attribute, cell: int) -> str:
    label = attribute.label(cell)
    return f"if they were in {label}" if known_by_bin(attribute) else str(label)
