"""Which sets of groups HAVING leaves by their GROUPING: a flag is one number on all lines of a set."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from decimal import Decimal

from bursar.errors import QueryError
from bursar.sql.query import And, AtLeast, Between, Compare, Condition, Constant, Flag, In, IsTrue, Leaf, Not, Op, Or

_OPS = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


def holds(condition: Condition, flags: Sequence[Flag], grouped: Sequence[int]) -> bool:
    """Whether a condition, whose columns are places of flags, holds for the set that groups by the keys given."""
    match condition:
        case And(parts=parts):
            return all(holds(part, flags, grouped) for part in parts)
        case Or(parts=parts):
            return any(holds(part, flags, grouped) for part in parts)
        case Not(part=part):
            return not holds(part, flags, grouped)
        case IsTrue(part=part):
            return holds(part, flags, grouped)
        case AtLeast(count=count, parts=parts):
            return sum(holds(part, flags, grouped) for part in parts) >= count
        case Constant(value=value):
            return value
    return _compared(condition, flags[int(condition.column.text)].number(grouped))


def _compared(leaf: Leaf, number: int) -> bool:
    match leaf:
        case Compare(literal=int() | Decimal() as literal, op=op):
            return bool(_OPS[op](number, literal))
        case Between(low=int() | Decimal() as low, high=int() | Decimal() as high):
            return low <= number <= high
        case In(literals=literals) if all(isinstance(literal, int | Decimal) for literal in literals):
            return number in literals
    raise QueryError("GROUPING is a number, and is compared with numbers", position=leaf.position)
