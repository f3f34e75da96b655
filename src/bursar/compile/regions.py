"""A WHERE condition as sets of cells: a conjunction over disjoint sets of columns, each evaluated on its own grid."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bursar.compile.three_valued import NO, YES, Truth, ValueLine, leaf_truth
from bursar.core.domain import Domain
from bursar.core.queries import LARGEST_JOINT
from bursar.errors import QueryError
from bursar.sql import FALSE, TRUE, And, AtLeast, Condition, Constant, IsTrue, Not, Or
from bursar.sql.query import leaves

_MOST_KINDS = 8 * LARGEST_JOINT
"""Most combinations of kinds of value; there are more of them than cells where `other` stands for several."""


@dataclass(frozen=True, eq=False)
class Region:
    """The cells of a few columns where a condition holds: some, and not all. Or a whole number for each cell."""

    attrs: tuple[str, ...]  # in the order of the domain
    cells: NDArray[np.bool_] | NDArray[np.int64]  # one axis per column


def regions(condition: Condition, domain: Domain) -> tuple[Region, ...] | None:
    """The regions whose intersection is where the condition holds; None if it holds nowhere.

    Guarantees: the regions share no column and stand in the order of the domain. Equivalent conditions on one column
    give equal regions, and a column that a condition turns out not to depend on does not occur.
    """
    whole = normal(condition, negated=False)
    if isinstance(whole, Constant):
        return () if whole.value else None
    found: list[Region] = []
    for group in _groups(whole):
        part = And(parts=tuple(group))
        attrs = domain.ordered(leaf.column.text for leaf in leaves(part))
        cells = _evaluate(part, attrs, domain)
        if not cells.any():
            return None
        found += [region for region in _factors(Region(attrs, cells)) if not region.cells.all()]
    return tuple(sorted(found, key=lambda region: domain.place(region.attrs[0])))


def holds_on(condition: Condition, attrs: tuple[str, ...], domain: Domain) -> NDArray[np.bool_]:
    """The joint cells of some columns, of which there are not too many, where a condition on them holds."""
    return _evaluate(condition, attrs, domain)


def ties_too_many(condition: Condition, domain: Domain) -> bool:
    """Whether a condition ties columns together that have too many joint cells to look at one by one."""
    groups = _groups(normal(condition, negated=False))
    return any(too_many({leaf.column.text for part in group for leaf in leaves(part)}, domain) for group in groups)


def normal(condition: Condition, *, negated: bool) -> Condition:
    """The same condition with every NOT pushed down to a comparison, ANDs and ORs flat, constants folded.

    All steps are equivalences of three-valued logic.
    """
    match condition:
        case Constant():
            return TRUE if condition.value is not negated else FALSE
        case Not():
            return normal(condition.part, negated=not negated)
        case IsTrue():
            part = normal(condition.part, negated=False)
            if isinstance(part, Constant):
                return normal(part, negated=negated)
            held = replace(condition, part=part)
            return Not(part=held, position=held.position) if negated else held
        case AtLeast():
            known = [normal(part, negated=False) for part in condition.parts]
            rest = tuple(part for part in known if not isinstance(part, Constant))
            counted = replace(condition, parts=rest, count=condition.count - sum(part == TRUE for part in known))
            if not 1 <= counted.count <= len(rest):
                return normal(TRUE if counted.count < 1 else FALSE, negated=negated)
            return Not(part=counted, position=counted.position) if negated else counted
        case And() | Or():
            kind, absorbing = (And, FALSE) if isinstance(condition, And) is not negated else (Or, TRUE)
            parts: list[Condition] = []
            for part in condition.parts:
                one = normal(part, negated=negated)
                parts += one.parts if isinstance(one, kind) else [one]
            parts = [part for part in parts if not isinstance(part, Constant) or part == absorbing]
            if absorbing in parts:
                return absorbing
            if not parts:
                return TRUE if absorbing == FALSE else FALSE
            return parts[0] if len(parts) == 1 else kind(parts=tuple(parts))
        case _:
            return Not(part=condition, position=condition.position) if negated else condition


def _groups(whole: Condition) -> list[list[Condition]]:
    """What must hold together, in groups such that parts of different groups share no column."""
    groups: list[tuple[set[str], list[Condition]]] = []
    for part in whole.parts if isinstance(whole, And) else (whole,):
        columns = {leaf.column.text for leaf in leaves(part)}
        joined = [group for group in groups if group[0] & columns]
        groups = [group for group in groups if not group[0] & columns]
        members = [member for _, group in joined for member in group]
        groups.append((columns.union(*(names for names, _ in joined)), [*members, part]))
    return [members for _, members in groups]


def _evaluate(condition: Condition, attrs: tuple[str, ...], domain: Domain) -> NDArray[np.bool_]:
    """The cells of the joint grid of the columns where the condition holds; refused where a cell does not decide it."""
    lines = [ValueLine(domain[name]) for name in attrs]
    if too_many(attrs, domain):
        raise QueryError(
            f"a condition that ties {' and '.join(attrs)} together spans {domain.cells(attrs)} cells; {LARGEST_JOINT} "
            "are possible. Conditions on single columns joined by AND have no such limit, and neither has COUNT, in "
            "few groups",
            position=min(leaf.position for leaf in leaves(condition)),
        )
    holds = np.broadcast_to(truth_on(condition, attrs, lines) == YES, [line.size for line in lines])
    for axis, line in enumerate(lines):
        holds = merged(holds, axis, line, condition)
    return holds


def too_many(attrs: Collection[str], domain: Domain) -> bool:
    """Whether columns have too many joint cells to look at one by one."""
    cells, kinds = domain.cells(attrs), math.prod(ValueLine(domain[name]).size for name in attrs)
    return len(attrs) > 1 and (cells > LARGEST_JOINT or kinds > _MOST_KINDS)


def truth_on(condition: Condition, attrs: tuple[str, ...], lines: list[ValueLine]) -> Truth:
    """The three-valued truth on the grid of all kinds of value, with axes of length 1 where it does not depend."""
    match condition:
        case And():
            return functools.reduce(np.minimum, (truth_on(part, attrs, lines) for part in condition.parts))
        case Or():
            return functools.reduce(np.maximum, (truth_on(part, attrs, lines) for part in condition.parts))
        case Not():
            return 2 - truth_on(condition.part, attrs, lines)
        case IsTrue():
            return np.where(truth_on(condition.part, attrs, lines) == YES, YES, NO)
        case AtLeast():
            held = (truth_on(part, attrs, lines) == YES for part in condition.parts)
            number = functools.reduce(np.add, (one.astype(np.int64) for one in held))
            return np.where(number >= condition.count, YES, NO)
        case Constant():
            return np.full([1] * len(attrs), YES if condition.value else NO)
    axis = attrs.index(condition.column.text)
    shape = [1] * len(attrs)
    shape[axis] = -1
    return leaf_truth(lines[axis], condition).reshape(shape)


def merged(holds: NDArray[np.bool_], axis: int, line: ValueLine, condition: Condition) -> NDArray[np.bool_]:
    """From kinds of value to cells along one axis: the kinds behind a cell must agree."""
    first: dict[int, int] = {}
    doubled: list[int] = []
    for place, (_, cell) in enumerate(line.strays, line.attribute.declared):
        if first.setdefault(cell, place) == place:
            continue
        doubled.append(place)
        if not np.array_equal(holds.take(place, axis), holds.take(first[cell], axis)):
            name = line.attribute.name
            raise QueryError(
                f"{line.kept_together()}, and this condition would keep some of them and not the rest",
                position=min(leaf.position for leaf in leaves(condition) if leaf.column.text == name),
            )
    return np.delete(holds, doubled, axis) if doubled else holds


def _factors(region: Region) -> list[Region]:
    """The region as a product, with every column split off that only multiplies the rest."""
    found: list[Region] = []
    axis = 0
    while axis < len(region.attrs) and len(region.attrs) > 1:
        others = tuple(i for i in range(len(region.attrs)) if i != axis)
        own, rest = np.any(region.cells, axis=others), np.any(region.cells, axis=axis)
        if np.array_equal(region.cells, np.expand_dims(own, others) & np.expand_dims(rest, axis)):
            found.append(Region((region.attrs[axis],), own))
            region = Region(tuple(region.attrs[i] for i in others), rest)
        else:
            axis += 1
    return [*found, region]
