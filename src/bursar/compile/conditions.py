"""Three-valued truth of conditions over the cells of columns, and a WHERE as sets of cells of few columns.

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

One kind of cell need not agree: numbers that are not listed are unknown to an order (`x >= 4`) and to a calculation, as
NULL is, and their rows are left out; the answer says so.

A WHERE is a conjunction over disjoint sets of columns, each evaluated on its own grid.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bursar.compile.cell_terms import Stands, cell_values, counted_values, listed_type, values_on
from bursar.compile.scalar import like
from bursar.compile.values import Bound, Boundary, around, boundary, greatest, is_declared, least
from bursar.core.domain import Attribute, Categories, Dates, Domain, Stray
from bursar.core.queries import LARGEST_JOINT
from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql import (
    FALSE,
    TRUE,
    And,
    AtLeast,
    Between,
    Compare,
    Condition,
    Constant,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Not,
    Op,
    Or,
)
from bursar.sql.literals import moment_of, read_date
from bursar.sql.query import Holds, Leaf, columns_of, leaves
from bursar.sql.render import render_literal

Truth = NDArray[np.int8]
NO, UNKNOWN, YES = np.int8(0), np.int8(1), np.int8(2)
"""AND is the minimum, OR the maximum, NOT is 2 - x."""

OTHER = "other"

LAST_SECOND = time(23, 59, 59)
"""From here on a moment is the end of its day: nothing in a column of days lies behind it."""
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
        kinds: list[tuple[StrayKind, int]] = []
        if other is not None:
            if not attribute.ordered:
                kinds.append((StrayKind.UNLISTED, other))
            elif attribute.outside is Stray.OTHER:
                kinds += [(StrayKind.BELOW, other), (StrayKind.ABOVE, other)]
            if attribute.null is Stray.OTHER:
                kinds.append((StrayKind.NULL, other))
        if attribute.has_null:
            kinds.append((StrayKind.NULL, attribute.null_cell))
        return tuple(kinds)

    @property
    def size(self) -> int:
        return self.attribute.declared + len(self.strays)

    def holds(self, kind: StrayKind) -> bool:
        return any(kind is stray for stray, _ in self.strays)

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
    refused; so is an order on listed text. Literals are known to fit (`check_types`).
    """
    if isinstance(leaf, IsNull):
        return _is_null(line, leaf)
    if isinstance(leaf, Like):
        return _like(line, leaf)
    if isinstance(leaf, Holds):
        return _holding(leaf, (line.attribute.name,), [line])
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
        case IsNull() | Holds():
            return
        case Like():
            if not (isinstance(attribute, Categories) and attribute.of is str):
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
            example = attribute.values[0] if attribute.values else "any text"
            raise QueryError(
                f"{attribute.name} has values like {render_literal(example)}, and {render_literal(literal)} is none",
                position=leaf.position,
            )


def fitting(attribute: Attribute, leaf: Leaf, literal: Literal) -> Bound:
    """The literal as a value of an ordered column."""
    if isinstance(attribute, Dates):
        moment = moment_of(literal) if isinstance(literal, str) else None
        if moment is not None:
            return _last_day(attribute, leaf, literal, moment)
        if isinstance(literal, str):
            return read_date(literal, leaf.position)
        if isinstance(literal, date):
            return literal
        raise QueryError(f"{attribute.name} holds days, written DATE '2024-12-31'", position=leaf.position)
    if isinstance(literal, int | Decimal) and not isinstance(literal, bool):
        return literal
    raise QueryError(f"{attribute.name} holds numbers, and {render_literal(literal)} is none", position=leaf.position)


def _last_day(attribute: Dates, leaf: Leaf, literal: Literal, moment: datetime) -> date:
    """The day up to the end of which a condition reaches, as tools write it: <= '2024-12-31 23:59:59'."""
    end = isinstance(leaf, Between) and literal is leaf.high
    end = end or (isinstance(leaf, Compare) and leaf.op in (Op.LE, Op.GT))
    if end and moment.time() >= LAST_SECOND and not moment.utcoffset():
        return moment.date()
    raise QueryError(
        f"{attribute.name} is known by {attribute.by.value} only, and {render_literal(literal)} is within one",
        position=leaf.position,
    )


def means_other(attribute: Categories, literal: Literal) -> bool:
    """Whether a literal means the cell of unlisted values; a value that is itself listed as 'other' comes first."""
    return literal == OTHER and attribute.other is not None and OTHER not in attribute.values


def fits_list(attribute: Categories, literal: Literal) -> bool:
    """Whether a literal has the type of the listed values."""
    kind = attribute.of
    if kind is int:
        return isinstance(literal, int | Decimal) and not isinstance(literal, bool)
    return isinstance(literal, kind)


def _holding(leaf: Holds, attrs: tuple[str, ...], lines: list[ValueLine]) -> Truth:
    """The truth of a term for every kind of value on the lines of columns, with an axis for each of them."""
    named = {column.text for column in columns_of(leaf)}
    about = [line for name, line in zip(attrs, lines, strict=True) if name in named]
    domain = Domain(tuple(line.attribute for line in about))
    names = domain.names
    stands = [_stands(line, listed_type(line.attribute), counted=leaf.counted) for line in about]
    values = values_on(leaf.term, names, stands, domain, left_out=True)
    results = [None if result is None else result[0] for result in values.results]
    truths = [UNKNOWN if value is None else YES if value else NO for value in results]
    for value in results:
        if value is not None and not isinstance(value, bool):
            raise QueryError("a condition is expected here", position=leaf.position)
    shape = [line.size if name in named else 1 for name, line in zip(attrs, lines, strict=True)]
    return np.array(truths, np.int8)[values.places].reshape(shape)


@functools.lru_cache(maxsize=256)
def _stands(line: ValueLine, kind: type | None, *, counted: bool) -> tuple[Stands, ...]:
    """What each kind of value on a line stands for."""
    attribute = line.attribute
    declared = counted_values(attribute, -1) if counted else cell_values(attribute)
    text = isinstance(attribute, Categories) and attribute.of is str
    unlisted: Stands = (OTHER,) if text else None
    strays: list[Stands] = [
        (None,) if kind is StrayKind.NULL else unlisted if kind is StrayKind.UNLISTED else None
        for kind, _ in line.strays
    ]
    return (*declared[: attribute.declared], *strays)


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
    texts = [value for value in attribute.values if isinstance(value, str)]
    return tuple(text for text in texts if like(text, leaf.pattern, any_case=leaf.any_case))


def _like(line: ValueLine, leaf: Like) -> Truth:
    attribute = line.attribute
    assert isinstance(attribute, Categories)  # check_types has seen to it
    anything = set(leaf.pattern) == {"%"}
    matches = set(matching(attribute, leaf))
    declared = np.fromiter((value in matches for value in attribute.values), bool, attribute.declared)
    unlisted = anything or like(OTHER, leaf.pattern, any_case=leaf.any_case)
    return line.spread(np.where(declared, YES, NO), {StrayKind.UNLISTED: YES if unlisted else NO})


def _listed(line: ValueLine, attribute: Categories, leaf: Compare | Between | In) -> Truth:
    match leaf:
        case In():
            literals = leaf.literals
        case Compare() if leaf.op in (Op.EQ, Op.NE):
            literals = (leaf.literal,)
        case Between() if fits_list(attribute, leaf.low) and attribute.of is int:
            at_least = _compared(line, attribute, Op.GE, leaf.low)
            return np.minimum(at_least, _compared(line, attribute, Op.LE, leaf.high))
        case Compare() if fits_list(attribute, leaf.literal) and attribute.of is int:
            return _compared(line, attribute, leaf.op, leaf.literal)
        case _:
            raise QueryError(
                f"{attribute.name} has listed values without an order; list those you mean with IN",
                position=leaf.position,
            )
    others = [literal for literal in literals if means_other(attribute, literal)]
    values = {literal for literal in literals if not means_other(attribute, literal)}
    declared = np.fromiter((value in values for value in attribute.values), bool, attribute.declared)
    if attribute.outside is Stray.OTHER and not others and declared.sum() < len(values):
        unlisted = [literal for literal in literals if literal in values.difference(attribute.values)]
        raise QueryError(
            f"{render_literal(unlisted[0])} is not a declared value of {attribute.name}: "
            f"it cannot be told from the rest, which is called {OTHER}",
            position=leaf.position,
        )
    truth = line.spread(np.where(declared, YES, NO), {StrayKind.UNLISTED: YES if others else NO})
    for place, (_, cell) in enumerate(line.strays, attribute.declared):
        if others and cell == attribute.other:
            truth[place] = YES  # NULL too, where it is sent there: the literal means the cell
    return 2 - truth if isinstance(leaf, Compare) and leaf.op is Op.NE else truth


def _compared(line: ValueLine, attribute: Categories, order: Op, literal: Literal) -> Truth:
    """An order of listed numbers; for a number that is not listed it is unknown, as it is for NULL."""
    holds = np.fromiter((_ORDERS[order](value, literal) for value in attribute.values), bool, attribute.declared)
    return line.spread(np.where(holds, YES, NO), {StrayKind.UNLISTED: UNKNOWN})


_ORDERS = {Op.LT: operator.lt, Op.LE: operator.le, Op.GT: operator.gt, Op.GE: operator.ge}


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
        if not is_declared(line.attribute, value):
            continue  # nothing is equal to it, wherever it lies
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


TrueOn = Callable[[list[ValueLine]], NDArray[np.bool_]]
"""Where a condition is true, for every kind of value on the lines of its columns; with axes of length 1 where it does
not depend."""

_MOST_KINDS = 8 * LARGEST_JOINT
"""Most combinations of kinds of value; there are more of them than cells where `other` stands for several."""


@dataclass(frozen=True, eq=False)
class Region:
    """The cells of a few columns where a condition holds: some, and not all. Or a whole number for each cell."""

    attrs: tuple[str, ...]  # in the order of the domain
    cells: NDArray[np.bool_] | NDArray[np.int64]  # one axis per column


def regions(condition: Condition, domain: Domain) -> tuple[Region, ...] | None:
    """The factors of a condition: regions whose intersection is where it holds; None if it holds nowhere.

    Guarantees: the regions share no column and stand in the order of the domain. Equivalent conditions on one column
    give equal regions, and a column that a condition turns out not to depend on does not occur.
    """
    whole = normal_form(condition, negated=False)
    if isinstance(whole, Constant):
        return () if whole.value else None
    factors: list[Region] = []
    for group in tied_parts(whole):
        part = And(parts=tuple(group))
        attrs = domain.ordered(names_in(part))
        found = factors_where(part, attrs, domain, functools.partial(_true, part, attrs))
        if found is None:
            return None
        factors += found
    return tuple(sorted(factors, key=lambda region: domain.place(region.attrs[0])))


def holds_on(condition: Condition, attrs: tuple[str, ...], domain: Domain) -> NDArray[np.bool_]:
    """The joint cells of some columns, of which there are not too many, where a condition on them holds."""
    return _evaluate(condition, attrs, domain, functools.partial(_true, condition, attrs))


def _true(condition: Condition, attrs: tuple[str, ...], lines: list[ValueLine]) -> NDArray[np.bool_]:
    holds: NDArray[np.bool_] = truth_on(condition, attrs, lines) == YES
    return holds


def factors_where(condition: Condition, attrs: tuple[str, ...], domain: Domain, true: TrueOn) -> list[Region] | None:
    """The factors of a condition that ties columns together, and is true as `true` says; None if it holds nowhere."""
    cells = _evaluate(condition, attrs, domain, true)
    if not cells.any():
        return None
    return [region for region in _factors(Region(attrs, cells)) if not region.cells.all()]


def ties_too_many(condition: Condition, domain: Domain) -> bool:
    """Whether a condition ties columns together that have too many joint cells to look at one by one."""
    groups = tied_parts(normal_form(condition, negated=False))
    return any(too_many({name for part in group for name in names_in(part)}, domain) for group in groups)


def names_in(condition: Condition) -> list[str]:
    """The columns that a condition is about, each once."""
    return list(dict.fromkeys(column.text for leaf in leaves(condition) for column in columns_of(leaf)))


def normal_form(condition: Condition, *, negated: bool) -> Condition:
    """Negation normal form: every NOT pushed down to a comparison, ANDs and ORs flat, constants folded.

    All steps are equivalences of three-valued logic.
    """
    match condition:
        case Constant():
            return TRUE if condition.value is not negated else FALSE
        case Not():
            return normal_form(condition.part, negated=not negated)
        case IsTrue():
            part = normal_form(condition.part, negated=False)
            if isinstance(part, Constant):
                return normal_form(part, negated=negated)
            test = replace(condition, part=part)
            return Not(part=test, position=test.position) if negated else test
        case AtLeast():
            normals = [normal_form(part, negated=False) for part in condition.parts]
            open_parts = tuple(part for part in normals if not isinstance(part, Constant))
            counted = replace(
                condition, parts=open_parts, count=condition.count - sum(part == TRUE for part in normals)
            )
            if not 1 <= counted.count <= len(open_parts):
                return normal_form(TRUE if counted.count < 1 else FALSE, negated=negated)
            return Not(part=counted, position=counted.position) if negated else counted
        case And() | Or():
            kind, absorbing = (And, FALSE) if isinstance(condition, And) is not negated else (Or, TRUE)
            parts: list[Condition] = []
            for part in condition.parts:
                inner = normal_form(part, negated=negated)
                parts += inner.parts if isinstance(inner, kind) else [inner]
            parts = [part for part in parts if not isinstance(part, Constant) or part == absorbing]
            if absorbing in parts:
                return absorbing
            if not parts:
                return TRUE if absorbing == FALSE else FALSE
            return parts[0] if len(parts) == 1 else kind(parts=tuple(parts))
        case _:
            return Not(part=condition, position=condition.position) if negated else condition


def tied_parts(whole: Condition) -> list[list[Condition]]:
    """Of a normal form: what must hold together, in groups such that parts of different groups share no column."""
    groups: list[tuple[set[str], list[Condition]]] = []
    for part in whole.parts if isinstance(whole, And) else (whole,):
        columns = set(names_in(part))
        joined = [group for group in groups if group[0] & columns]
        groups = [group for group in groups if not group[0] & columns]
        members = [member for _, group in joined for member in group]
        groups.append((columns.union(*(names for names, _ in joined)), [*members, part]))
    return [members for _, members in groups]


def _evaluate(condition: Condition, attrs: tuple[str, ...], domain: Domain, true: TrueOn) -> NDArray[np.bool_]:
    """The cells of the joint grid of the columns where the condition holds; refused where a cell does not decide it."""
    lines = [ValueLine(domain[name]) for name in attrs]
    if too_many(attrs, domain):
        raise QueryError(
            f"a condition that ties {' and '.join(attrs)} together spans {domain.cells(attrs)} cells; {LARGEST_JOINT} "
            "are possible. Conditions on single columns joined by AND have no such limit, and neither has COUNT, in "
            "few groups",
            position=min(leaf.position for leaf in leaves(condition)),
        )
    holds = np.broadcast_to(true(lines), [line.size for line in lines])
    for axis, line in enumerate(lines):
        holds = merge_strays(holds, axis, line, condition)
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
            holding = (truth_on(part, attrs, lines) == YES for part in condition.parts)
            number = functools.reduce(np.add, (holds.astype(np.int64) for holds in holding))
            return np.where(number >= condition.count, YES, NO)
        case Constant():
            return np.full([1] * len(attrs), YES if condition.value else NO)
        case Holds():
            return _holding(condition, attrs, lines)
    axis = attrs.index(condition.column.text)
    shape = [1] * len(attrs)
    shape[axis] = -1
    return leaf_truth(lines[axis], condition).reshape(shape)


def merge_strays(holds: NDArray[np.bool_], axis: int, line: ValueLine, condition: Condition) -> NDArray[np.bool_]:
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
                position=min(
                    leaf.position
                    for leaf in leaves(condition)
                    if any(column.text == name for column in columns_of(leaf))
                ),
            )
    return np.delete(holds, doubled, axis) if doubled else holds


def _factors(region: Region) -> list[Region]:
    """The region as a product, with every column split off that only multiplies the rest."""
    factors: list[Region] = []
    axis = 0
    while axis < len(region.attrs) and len(region.attrs) > 1:
        others = tuple(i for i in range(len(region.attrs)) if i != axis)
        alone, remaining = np.any(region.cells, axis=others), np.any(region.cells, axis=axis)
        if np.array_equal(region.cells, np.expand_dims(alone, others) & np.expand_dims(remaining, axis)):
            factors.append(Region((region.attrs[axis],), alone))
            region = Region(tuple(region.attrs[i] for i in others), remaining)
        else:
            axis += 1
    return [*factors, region]
