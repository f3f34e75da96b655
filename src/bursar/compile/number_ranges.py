"""Which whole numbers a condition leaves: ranges from a first number to one before a last, disjoint and rising."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from bursar.core.extensions.per_person import LARGEST_VALUE
from bursar.sql import And, Between, Compare, Condition, In, Not, Op, Or
from bursar.sql.names import Literal
from bursar.sql.query import Constant, IsTrue

Range = tuple[int, int]
Ranges = tuple[Range, ...]
Leaf = Compare | Between | In

EVERYTHING: Ranges = ((-LARGEST_VALUE, LARGEST_VALUE),)

Refused = Callable[[object], Exception]
"""The error for a part of a condition that is not about the number."""


def ranges_of(condition: Condition, scaled: Callable[[Literal, Leaf], Fraction], refused: Refused) -> Ranges:
    """The numbers for which a condition holds; `scaled` is a constant in units of the number, which is never NULL."""
    match condition:
        case Constant(value=value):
            return EVERYTHING if value else ()
        case And(parts=parts):
            return both(*(ranges_of(part, scaled, refused) for part in parts))
        case Or(parts=parts):
            return united(interval for part in parts for interval in ranges_of(part, scaled, refused))
        case Not(part=part):
            return without(EVERYTHING, ranges_of(part, scaled, refused))
        case IsTrue(part=part):
            return ranges_of(part, scaled, refused)
        case Between(low=low, high=high):
            return _from(math.ceil(scaled(low, condition)), math.floor(scaled(high, condition)) + 1)
        case In(literals=literals):
            return united(interval for each in literals for interval in _equal(scaled(each, condition)))
        case Compare(op=op, literal=literal):
            bound = scaled(literal, condition)
            match op:
                case Op.GT:
                    return _from(math.floor(bound) + 1, LARGEST_VALUE)
                case Op.GE:
                    return _from(math.ceil(bound), LARGEST_VALUE)
                case Op.LT:
                    return _from(-LARGEST_VALUE, math.ceil(bound))
                case Op.LE:
                    return _from(-LARGEST_VALUE, math.floor(bound) + 1)
                case Op.EQ:
                    return _equal(bound)
            return without(EVERYTHING, _equal(bound))
    raise refused(condition)


def united(ranges: Iterable[Range]) -> Ranges:
    """All numbers that are in one of the ranges; those that touch become one."""
    merged: list[Range] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return tuple(merged)


def without(ranges: Ranges, others: Ranges) -> Ranges:
    """The numbers of the ranges that are in none of the others."""
    for first, last in others:
        cut = [piece for low, high in ranges for piece in ((low, min(high, first)), (max(low, last), high))]
        ranges = tuple((low, high) for low, high in cut if low < high)
    return ranges


def both(*several: Ranges) -> Ranges:
    """The numbers that are in each of them."""
    common = EVERYTHING
    for ranges in several:
        common = without(common, without(EVERYTHING, ranges))
    return common


def _from(low: int, high: int) -> Ranges:
    low, high = max(low, -LARGEST_VALUE), min(high, LARGEST_VALUE)
    return ((low, high),) if low < high else ()


def _equal(bound: Fraction) -> Ranges:
    return _from(math.ceil(bound), math.floor(bound) + 1)
