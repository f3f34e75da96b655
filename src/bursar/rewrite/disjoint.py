"""A condition as parts of which no two hold for the same row, each of them conditions on single columns joined by AND.

A sum under a condition that ties too many columns together is the sum of those under its parts:

    a OR b          holds where a does, and where b does and a does not
    NOT (a AND b)   holds where a does not, and where a does and b does not
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from bursar.sql import And, Condition, Constant, IsTrue, Not, Or
from bursar.sql.query import all_of, leaves
from bursar.compile.predicates import by_column

MOST_PARTS = 8
"""Most parts of one condition: more would make a question that nobody can read."""

Parts = list[tuple[Condition, ...]]


def disjoint(condition: Condition) -> tuple[Condition, ...] | None:
    """Conditions of which exactly one holds wherever the given one does; None where there would be too many."""
    found = _parts(_where(condition, True, True))
    return None if len(found) > MOST_PARTS else tuple(all_of(*part) for part in found)


def _where(condition: Condition, truth: bool, sure: bool) -> Condition:
    """ANDs and ORs of single columns that hold where the truth of a condition is the given one; `sure`: and known."""
    match condition:
        case Constant(value=value):
            return Constant(value=value is truth)
        case And() | Or() if len({leaf.column.text for leaf in leaves(condition)}) > 1:
            kind = And if isinstance(condition, And) is truth else Or
            return kind(parts=tuple(_where(part, truth, sure) for part in by_column(condition)))
        case Not(part=part):
            return _where(part, not truth, sure)
        case IsTrue(part=part):
            return _where(part, truth, truth)
    wanted = condition if truth is sure else Not(part=condition)
    return wanted if sure else Not(part=IsTrue(part=wanted))


def _parts(condition: Condition) -> Parts:
    """The parts of what `_where` makes; cut off where there are too many."""
    found: Parts = []
    match condition:
        case And(parts=parts):
            return _joined(_parts(part) for part in parts)
        case Or(parts=parts):
            for place, part in enumerate(parts):
                before = (_parts(_where(one, False, False)) for one in parts[:place])
                found = [*found, *_joined((_parts(part), *before))][: MOST_PARTS + 1]
                if len(found) > MOST_PARTS:
                    break
            return found
        case Constant(value=False):
            return []
    return [(condition,)]


def _joined(lists: Iterable[Parts]) -> Parts:
    """One of each list, in every combination."""
    found: Parts = [()]
    for one in lists:
        found = [(*left, *right) for left, right in product(found, one)][: MOST_PARTS + 1]
    return found
