"""Where a condition on one column holds: three-valued, for every kind of value that its cells can stand for.

A cell stands for more than its label says: `other` for values below the declared range, above it, or not listed, and
for NULL where NULL is sent there. These kinds are evaluated side by side. The rule, exact and conservative: **a
condition is answered if every row that a cell can stand for is kept, or none is**; else it is refused.

    outside = clip, or a declared value    the row has that value; there is nothing else behind the cell
    outside = other, ordered column        `other` holds values BELOW and ABOVE
    outside = other, listed values         `other` holds UNLISTED values; the literal 'other' means exactly this cell
    null = cell                            NULL is behind a cell of its own
    null = other, ordered column           `other` holds NULL too, or only NULL where outside is not other
    null = other, listed values            `other` holds NULL too; the row can be read as 'other' or as NULL, and a
                                           condition must not depend on which
    null = a declared value                the row has that value; IS NULL is refused, for nothing tells them apart
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bursar.compile.boundaries import Bound, Boundary, around, boundary, greatest, least
from bursar.core.domain import Attribute, Categories, Dates, IntegerRange, Stray
from bursar.errors import QueryError
from bursar.sql import Between, Compare, In, IsNull, Like, Literal, Op
from bursar.sql.conditions import read_date
from bursar.sql.query import Leaf
from bursar.sql.render import render_literal

Truth = NDArray[np.int8]
NO, UNKNOWN, YES = np.int8(0), np.int8(1), np.int8(2)
"""AND is the minimum, OR the maximum, NOT is 2 - x."""

OTHER = "other"
"""The literal that means the cell of unlisted values."""


class StrayKind(Enum):
    """What a value behind a cell without a declared value can be."""

    BELOW = "below"
    ABOVE = "above"
    UNLISTED = "unlisted"
    NULL = "null"


@dataclass(frozen=True)
class ValueLine:
    """All kinds of value behind the cells of a column: one for each declared cell, then `strays`, in cell order."""

    attribute: Attribute

    @cached_property
    def strays(self) -> tuple[tuple[StrayKind, int], ...]:
        """The kinds behind `other` and NULL, each with its cell."""
        attribute, other = self.attribute, self.attribute.other
        found: list[tuple[StrayKind, int]] = []
        if other is not None:
            if not attribute.ordered:
                found.append((StrayKind.UNLISTED, other))
            elif attribute.outside is Stray.OTHER:
                found += [(StrayKind.BELOW, other), (StrayKind.ABOVE, other)]
            if attribute.null is Stray.OTHER:
                found.append((StrayKind.NULL, other))
        if attribute.has_null:
            found.append((StrayKind.NULL, attribute.null_cell))
        return tuple(found)

    @property
    def size(self) -> int:
        return self.attribute.declared + len(self.strays)

    def holds(self, kind: StrayKind) -> bool:
        return any(kind is one for one, _ in self.strays)

    def kept_together(self) -> str:
        """What stands behind `other`, in words."""
        attribute = self.attribute
        if attribute.ordered:
            low, high = render_literal(least(attribute)), render_literal(greatest(attribute))
            named = f"values of {attribute.name} outside {low} to {high}"
        else:
            named = f"values of {attribute.name} that are not listed"
        unknown = " and NULL" if attribute.null is Stray.OTHER else ""
        return f"{named}{unknown} are kept together as {OTHER}"

    def spread(self, declared: Truth, answers: dict[StrayKind, np.int8]) -> Truth:
        """A truth for every kind of value on the line; NULL is unknown unless it is answered."""
        answers = {StrayKind.NULL: UNKNOWN, **answers}
        return np.concatenate([declared, np.array([answers[kind] for kind, _ in self.strays], np.int8)])


def leaf_truth(line: ValueLine, leaf: Leaf) -> Truth:
    """The truth of a comparison for every kind of value on the line.

    Edge cases: a bound that falls inside a bin, a week or a month, or among the values that `other` keeps together, is
    refused; so is an order on listed values. Literals are known to fit (`check_types`).
    """
    if isinstance(leaf, IsNull):
        return _is_null(line, leaf)
    if isinstance(leaf, Like):
        return _like(line, leaf)
    if isinstance(line.attribute, Categories):
        return _listed(line, line.attribute, leaf)
    match leaf:
        case Between():
            low, high = fitting(line.attribute, leaf, leaf.low), fitting(line.attribute, leaf, leaf.high)
            return np.minimum(2 - _less(line, leaf, low, behind=False), _less(line, leaf, high, behind=True))
        case In():
            return _equal(line, leaf, leaf.literals)
    if leaf.op in (Op.EQ, Op.NE):
        equal = _equal(line, leaf, (leaf.literal,))
        return equal if leaf.op is Op.EQ else 2 - equal
    less = _less(line, leaf, fitting(line.attribute, leaf, leaf.literal), behind=leaf.op in (Op.LE, Op.GT))
    return less if leaf.op in (Op.LT, Op.LE) else 2 - less


def check_types(attribute: Attribute, leaf: Leaf) -> None:
    """Refuse literals that are no values of the column's type, also where the condition does not matter in the end."""
    match leaf:
        case IsNull():
            return
        case Like():
            if not (isinstance(attribute, Categories) and isinstance(attribute.values[0], str)):
                raise QueryError(f"{attribute.name} holds no text for LIKE to look at", position=leaf.position)
            return
        case Compare():
            literals: tuple[Literal, ...] = (leaf.literal,)
        case Between():
            literals = (leaf.low, leaf.high)
        case In():
            literals = leaf.literals
    for literal in literals:
        if not isinstance(attribute, Categories):
            fitting(attribute, leaf, literal)
        elif not means_other(attribute, literal) and not fits_list(attribute, literal):
            raise QueryError(
                f"{attribute.name} has values like {render_literal(attribute.values[0])}, "
                f"and {render_literal(literal)} is none",
                position=leaf.position,
            )


def fitting(attribute: Attribute, leaf: Leaf, literal: Literal) -> Bound:
    """The literal as a value of an ordered column."""
    if isinstance(attribute, Dates):
        if isinstance(literal, str):
            return read_date(literal, leaf.position)
        if isinstance(literal, date):
            return literal
        raise QueryError(f"{attribute.name} holds days, written DATE '2024-12-31'", position=leaf.position)
    if isinstance(literal, int | Decimal) and not isinstance(literal, bool):
        return literal
    raise QueryError(f"{attribute.name} holds numbers, and {render_literal(literal)} is none", position=leaf.position)


def means_other(attribute: Categories, literal: Literal) -> bool:
    """Whether a literal means the cell of unlisted values; a value that is itself listed as 'other' comes first."""
    return literal == OTHER and attribute.other is not None and OTHER not in attribute.values


def fits_list(attribute: Categories, literal: Literal) -> bool:
    """Whether a literal has the type of the listed values."""
    kind = type(attribute.values[0])
    if kind is int:
        return isinstance(literal, int | Decimal) and not isinstance(literal, bool)
    return isinstance(literal, kind)


def _is_null(line: ValueLine, leaf: IsNull) -> Truth:
    attribute = line.attribute
    if isinstance(attribute.null, int):
        raise QueryError(
            f"NULL counts as {attribute.label(attribute.null)} in {attribute.name}, so it cannot be told apart",
            position=leaf.position,
        )
    return line.spread(
        np.full(attribute.declared, NO), {kind: YES if kind is StrayKind.NULL else NO for kind in StrayKind}
    )


def matching(attribute: Categories, leaf: Like) -> tuple[str, ...]:
    """The listed values that a pattern matches."""
    pieces = {"%": ".*", "_": "."}
    pattern = leaf.pattern.lower() if leaf.any_case else leaf.pattern
    whole = re.compile("".join(pieces.get(letter, re.escape(letter)) for letter in pattern), re.DOTALL)
    texts = [value for value in attribute.values if isinstance(value, str)]
    return tuple(text for text in texts if whole.fullmatch(text.lower() if leaf.any_case else text))


def _like(line: ValueLine, leaf: Like) -> Truth:
    attribute = line.attribute
    assert isinstance(attribute, Categories)  # check_types has seen to it
    anything = set(leaf.pattern) == {"%"}
    if line.holds(StrayKind.UNLISTED) and not anything:
        raise QueryError(
            f"{line.kept_together()}, and some of them may match the pattern; list the values you mean with IN",
            position=leaf.position,
        )
    found = set(matching(attribute, leaf))
    declared = np.fromiter((value in found for value in attribute.values), bool, attribute.declared)
    return line.spread(np.where(declared, YES, NO), {StrayKind.UNLISTED: YES})


def _listed(line: ValueLine, attribute: Categories, leaf: Compare | Between | In) -> Truth:
    match leaf:
        case In():
            literals = leaf.literals
        case Compare() if leaf.op in (Op.EQ, Op.NE):
            literals = (leaf.literal,)
        case _:
            raise QueryError(
                f"{attribute.name} has listed values without an order; list those you mean with IN",
                position=leaf.position,
            )
    rest = [literal for literal in literals if means_other(attribute, literal)]
    wanted = {literal for literal in literals if not means_other(attribute, literal)}
    declared = np.fromiter((value in wanted for value in attribute.values), bool, attribute.declared)
    if attribute.outside is Stray.OTHER and not rest and declared.sum() < len(wanted):
        unlisted = [literal for literal in literals if literal in wanted.difference(attribute.values)]
        raise QueryError(
            f"{render_literal(unlisted[0])} is not a declared value of {attribute.name}: "
            f"it cannot be told from the rest, which is called {OTHER}",
            position=leaf.position,
        )
    truth = line.spread(np.where(declared, YES, NO), {StrayKind.UNLISTED: YES if rest else NO})
    for place, (_, cell) in enumerate(line.strays, attribute.declared):
        if rest and cell == attribute.other:
            truth[place] = YES  # NULL too, where it is sent there: the literal means the cell
    return 2 - truth if isinstance(leaf, Compare) and leaf.op is Op.NE else truth


def _less(line: ValueLine, leaf: Leaf, value: Bound, *, behind: bool) -> Truth:
    """Whether values lie on the lower side of a boundary."""
    edge = boundary(line.attribute, value, behind=behind)
    _check(line, leaf, value, edge)
    places = np.zeros(line.attribute.declared + 2, np.int8)
    places[: edge.whole] = YES
    return _along(line, places)


def _equal(line: ValueLine, leaf: Leaf, literals: Iterable[Literal]) -> Truth:
    places = np.zeros(line.attribute.declared + 2, np.int8)
    for literal in literals:
        value = fitting(line.attribute, leaf, literal)
        if isinstance(line.attribute, IntegerRange) and isinstance(value, Decimal) and math.floor(value) != value:
            continue  # no whole number is equal to it, wherever it lies
        edges = [boundary(line.attribute, value, behind=behind) for behind in (False, True)]
        for edge in edges:
            _check(line, leaf, value, edge)
        places[edges[0].whole : edges[1].whole] = YES
    return _along(line, places)


def _along(line: ValueLine, places: Truth) -> Truth:
    """From below, declared cells, above to the kinds on the line."""
    return line.spread(places[1:-1], {StrayKind.BELOW: places[0], StrayKind.ABOVE: places[-1]})


def _check(line: ValueLine, leaf: Leaf, value: Bound, edge: Boundary) -> None:
    """Refuse a boundary that runs through a place of the line where values are kept together."""
    attribute = line.attribute
    if not edge.cuts:
        return
    shown = render_literal(value)
    if 1 <= edge.whole <= attribute.declared:
        low, high = (render_literal(bound) for bound in around(attribute, edge.whole - 1))
        period = attribute.by.value if isinstance(attribute, Dates) else None
        label = f"{'' if period is None else f'the {period} of '}{attribute.label(edge.whole - 1)}"
        raise QueryError(
            f"{attribute.name} is known by {period or 'bin'} only, and {shown} cuts through {label}; "
            f"the nearest edges are {low} and {high}",
            position=leaf.position,
        )
    if line.holds(StrayKind.BELOW if edge.whole == 0 else StrayKind.ABOVE):
        raise QueryError(f"{line.kept_together()}, and {shown} lies among them", position=leaf.position)
