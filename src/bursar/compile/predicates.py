"""A condition that ties too many columns together for a mask, as a predicate: sets of cells, and how many must hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from bursar.compile.groups import Cells, GroupAxis, Groups
from bursar.compile.partwise import MOST_GROUPS, too_many_tied
from bursar.compile.regions import merged, normal, truth_on
from bursar.compile.three_valued import YES, ValueLine
from bursar.core.domain import Domain
from bursar.core.queries import Predicate, Quorum, Within
from bursar.errors import QueryError
from bursar.sql import FALSE, TRUE, And, AtLeast, Condition, IsTrue, Not, Or
from bursar.sql.query import leaves


def predicate(condition: Condition, domain: Domain, group: Sequence[Within] = ()) -> Predicate | None:
    """The count of the rows of a group for which a condition holds; None where it is seen to hold nowhere.

    The column of the partitions comes first, so that it is never left out of the hull, then those of the group.
    """
    own = {domain.partition, *(within.column for within in group)}
    asked = normal(condition, negated=False)
    if asked == FALSE:
        return None
    names = domain.ordered([*(leaf.column.text for leaf in leaves(asked)), *(within.column for within in group)])
    attrs = tuple(sorted(names, key=lambda name: (name != domain.partition, name not in own)))
    parts = (*group, *(() if asked == TRUE else (_part(asked, int(YES), False, domain),)))
    made = Predicate(attrs, domain.sizes(attrs), parts[0] if len(parts) == 1 else Quorum(len(parts), parts))
    return made if made.norms(1)[0].largest() > 0 else None


def group_of(line: Cells, groups: Groups, domain: Domain) -> tuple[Within, ...]:
    """The cells of the group columns that make up one group."""
    own = [_groups(axis, domain) == code for axis, code in zip(groups.axes, line, strict=True)]
    return tuple(Within(axis.attrs[0], _ranges(cells)) for axis, cells in zip(groups.axes, own, strict=True))


def _groups(axis: GroupAxis, domain: Domain) -> Cells:
    """The group of each cell of the one column of an axis."""
    if len(axis.attrs) > 1:
        raise QueryError(
            f"groups that tie {' and '.join(axis.attrs)} together cannot stand beside a condition that ties too many "
            "columns together",
            position=axis.position,
        )
    return axis.of([np.arange(domain[axis.attrs[0]].size)])


def possible_groups(condition: Condition, groups: Groups, domain: Domain) -> Cells:
    """The groups that a condition leaves possible, sorted: one line per group, one column per axis.

    Edge cases: refused where there may be more than MOST_GROUPS.
    """
    made = predicate(condition, domain)
    if made is None:
        return np.zeros((0, len(groups.axes)), np.int64)
    masks = {mask.attrs[0]: mask for mask in made.hull}
    codes: list[list[int]] = []
    for axis in groups.axes:
        found, name = _groups(axis, domain), axis.attrs[0]
        if name in masks:
            found = found[masks[name].steps.at_cells(np.arange(domain[name].size))[0] > 0]
        codes.append(np.unique(found).tolist())
    if math.prod(map(len, codes)) > MOST_GROUPS:
        raise too_many_tied(made.attrs, min(leaf.position for leaf in leaves(condition) if leaf.position >= 0))
    lines = [line for line in product(*codes) if predicate(condition, domain, group_of(np.array(line), groups, domain))]
    return np.array(lines, np.int64).reshape(-1, len(groups.axes))


def _part(condition: Condition, level: int, below: bool, domain: Domain) -> Within | Quorum:
    """Where the truth of a condition, NO < UNKNOWN < YES, is at least the level; or where it is below it.

    The condition is a normal one: it names a column, and so does each of its parts.
    """
    names = _names(condition)
    if len(names) == 1:
        return _within(condition, names[0], level, below, domain)
    match condition:
        case Not():
            return _part(condition.part, 3 - level, not below, domain)  # NOT turns the truth t into 2 - t
        case IsTrue():
            return _part(condition.part, int(YES), below, domain)
        case AtLeast():
            parts = tuple(_part(part, int(YES), below, domain) for part in condition.parts)
            return Quorum(len(parts) - condition.count + 1 if below else condition.count, parts)
    assert isinstance(condition, And | Or)
    parts = tuple(_part(part, level, below, domain) for part in by_column(condition))
    # A minimum is below a level where one part is, a maximum where all are.
    everything = isinstance(condition, And) is not below
    return Quorum(len(parts) if everything else 1, parts)


def _names(condition: Condition) -> Sequence[str]:
    return list(dict.fromkeys(leaf.column.text for leaf in leaves(condition)))


def by_column(condition: And | Or) -> list[Condition]:
    """The parts, those about the same single column as one: kinds of value behind a cell may agree only together."""
    found: dict[str | int, list[Condition]] = {}
    for place, part in enumerate(condition.parts):
        names = _names(part)
        found.setdefault(names[0] if len(names) == 1 else place, []).append(part)
    return [parts[0] if len(parts) == 1 else type(condition)(parts=tuple(parts)) for parts in found.values()]


def _within(condition: Condition, name: str, level: int, below: bool, domain: Domain) -> Within:
    line = ValueLine(domain[name])
    truth = truth_on(condition, (name,), [line])
    holds = np.broadcast_to(truth < level if below else truth >= level, [line.size])
    return Within(name, _ranges(merged(holds, 0, line, condition)))


def _ranges(cells: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    """The runs of cells, each from its first to one past its last."""
    ends = np.flatnonzero(np.diff(np.concatenate([[False], cells, [False]]))).tolist()
    return tuple(zip(ends[::2], ends[1::2], strict=True))
