"""From a question that was refused towards ones that are accepted; the caller tries them in order.

A repair changes as little as it can: a misspelt name, a literal of the wrong type, a bound that is moved to the nearest
edge, and at last a bound that keeps the values outside of the declared range out of the question.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bursar.compile.conditions import OTHER, fits_list, fitting, matching, means_other, ties_too_many
from bursar.compile.resolve import change_leaves, change_values, guess, resolve, spelt
from bursar.compile.values import before, boundary, from_on, greatest, holds_numbers, least, nearest
from bursar.core.domain import Attribute, Categories, Dates, Domain, Stray
from bursar.errors import QueryError
from bursar.rewrite.pivot import group_by_columns, only_counts, pivots
from bursar.sql import (
    FALSE,
    TRUE,
    Aggregate,
    And,
    Between,
    Branch,
    Case,
    CaseGroups,
    Compare,
    Condition,
    Function,
    In,
    IsNull,
    Item,
    Key,
    Like,
    Literal,
    Name,
    Not,
    Op,
    Or,
    Query,
)
from bursar.sql.literals import moment_of, read_number
from bursar.sql.query import (
    Holds,
    Leaf,
    Made,
    aggregates_of,
    all_of,
    branches_of,
    change_parts,
    default_name,
    leaves,
    map_leaves,
    rename_leaf,
)

_MOST_GUESSES = 10_000
"""Most listed values among which a misspelt one is looked for."""

MOST_SINGLE_BOUNDS = 9
"""Most bounds that are tried one at a time, those of three columns, before all of them together."""

_ORDER = {Op.LT: operator.lt, Op.LE: operator.le, Op.GT: operator.gt, Op.GE: operator.ge}


def repairs(query: Query, domain: Domain, table: str) -> Iterator[Query]:
    """Questions near to the given one, the nearest first."""
    try:
        query = resolve(_renamed(_outputs_to_having(query, domain), domain, table), domain, table)
    except QueryError:
        return
    tests = [leaf for condition in query.conditions() for leaf in leaves(condition)]
    compared = {leaf.column.text for leaf in tests if not isinstance(leaf, IsNull)}

    def changed(leaf: Leaf) -> Condition:
        """Where NULL counts as a value, that is not what NULL means beside other values of the column."""
        name, attribute = leaf.column.text, domain[leaf.column.text]
        counted = isinstance(leaf, IsNull) and isinstance(attribute.null, int) and name in compared
        return leaf if counted else _repaired(leaf, attribute)

    repaired = change_leaves(query, changed)
    keys = tuple(_whole_buckets(new, old) for new, old in zip(repaired.keys, query.keys, strict=True))
    query = replace(repaired, keys=keys)
    yield query
    columns = {column.text: column for column in query.columns()}
    bounds = [bound for name, column in columns.items() for bound in _bounds(domain[name], column)]
    if not _ties_a_sum(query, domain):
        for bound in bounds[:MOST_SINGLE_BOUNDS]:
            yield replace(query, where=all_of(query.where, bound))
            yield _filtered(query, bound)
    yield from _bounded(query, bounds, domain)
    simpler = _with_outputs(query, tuple(_simpler(item, domain) for item in query.aggregates))
    yield simpler
    yield from _bounded(simpler, bounds, domain)
    yield replace(query, keys=tuple(_inside(key, domain) for key in query.keys))
    made_keys = any(isinstance(key.by, Made) for key in query.keys)
    if not made_keys and not any(isinstance(test, Holds) for test in tests):
        yield from pivots(query, domain)
        plain = group_by_columns(query)
        yield plain
        yield from _bounded(plain, bounds, domain)
        yield from only_counts(query, domain)


def _bounded(query: Query, bounds: Sequence[Condition], domain: Domain) -> Iterator[Query]:
    """The question with all bounds in its WHERE; nothing where they cannot help, for no bound unties columns."""
    if not _ties_a_sum(query, domain):
        yield replace(query, where=all_of(query.where, *bounds))


def _ties_a_sum(query: Query, domain: Domain) -> bool:
    """Whether something other than a count is under a condition that ties too many joint cells together."""
    parts = [part for item in query.aggregates for part in aggregates_of(item) if part.function is not Function.COUNT]
    return any(ties_too_many(all_of(query.where, part.condition), domain) for part in parts)


def _outputs_to_having(query: Query, domain: Domain) -> Query:
    """The question with conditions on outputs, which are no columns, in HAVING."""

    def of_outputs(part: Condition) -> bool:
        names = [leaf.column for leaf in leaves(part)]
        if not names or any(name.names(column) for name in names for column in domain.names):
            return False
        return all(any(name.names(output) for output in query.names) for name in names)

    def leaf(test: Leaf) -> Leaf:
        return replace(test, column=Name(text=next(name for name in query.names if test.column.names(name))))

    parts = query.where.parts if isinstance(query.where, And) else (query.where,)
    moved = [map_leaves(part, leaf) for part in parts if of_outputs(part)]
    others = [part for part in parts if not of_outputs(part)]
    return replace(query, where=all_of(*others), having=all_of(query.having, *moved))


def _whole_buckets(key: Key, before: Key) -> Key:
    """Buckets whose edges would have to be moved give way to the column itself."""
    moved = isinstance(key.by, CaseGroups) and key.by.buckets is not None and key.by != before.by
    return replace(key, by=None, through=None) if moved else key


def _inside(key: Key, domain: Domain) -> Key:
    """A CASE whose pieces are about declared values only."""
    if not isinstance(key.by, CaseGroups):
        return key
    named = {leaf.column.text: leaf.column for piece in key.by.pieces for leaf in leaves(piece.condition)}
    bound = [condition for name, column in named.items() for condition in _bounds(domain[name], column)[-1:]]
    pieces = [
        replace(p, condition=p.condition if p.condition == TRUE else all_of(*bound, p.condition)) for p in key.by.pieces
    ]
    return replace(key, by=CaseGroups(pieces=tuple(pieces)))


def _with_outputs(query: Query, items: tuple[Item, ...]) -> Query:
    """The question with other aggregates in their places, which HAVING and ORDER BY then speak of."""
    named = {old.name: new.name for old, new in zip(query.aggregates, items, strict=True)}

    def leaf(test: Leaf) -> Leaf:
        return replace(test, column=replace(test.column, text=named[test.column.text]))

    order = tuple(sort if sort.output is None else replace(sort, output=named[sort.output]) for sort in query.order)
    return replace(query, aggregates=items, having=map_leaves(query.having, leaf), order=order)


def _simpler(item: Item, domain: Domain) -> Item:
    """What can be asked of a column without numbers, or with too many: how many values there are, or their average."""

    def changed(part: Aggregate) -> Aggregate:
        columns = [branch.value for branch in branches_of(part) if isinstance(branch.value, Name)]
        kinds = {holds_numbers(domain[column.text]) for column in columns}
        if part.function is Function.COUNT or not columns:
            return part
        if kinds == {True}:
            return part if part.function is Function.SUM else replace(part, function=Function.AVG, fraction=None)
        attribute = domain[columns[0].text]
        if isinstance(part.of, Name) and _holds_truth(attribute):
            return replace(part, function=_of_truth(part.function), fraction=None, of=_truth_case(columns[0]))
        return replace(part, function=Function.COUNT, fraction=None)

    simpler = change_parts(item, changed)
    return replace(simpler, name=default_name(simpler)) if item.name == default_name(item) else simpler


def _holds_truth(attribute: Attribute) -> bool:
    return isinstance(attribute, Categories) and attribute.of is bool


def _of_truth(function: Function) -> Function:
    return Function.SUM if function is Function.SUM else Function.AVG


def _truth_case(column: Name) -> Case:
    """1 where a column of truth values is true, 0 where it is false."""
    tests = [(Compare(column=column, op=Op.EQ, literal=truth), int(truth)) for truth in (True, False)]
    return Case(branches=tuple(Branch(condition=test, value=value) for test, value in tests))


def _renamed(query: Query, domain: Domain, table: str) -> Query:
    """Every name as it was probably meant."""
    meant = query.table if query.table.names(table) else spelt(query.table, table)
    keys = tuple(replace(key, column=guess(key.column, domain.names), through=None) for key in query.keys)
    query = replace(query, table=meant, keys=keys, beside=())
    query = change_values(query, lambda name: guess(name, domain.names))
    return change_leaves(query, lambda leaf: rename_leaf(leaf, lambda name: guess(name, domain.names)))


def _repaired(leaf: Leaf, attribute: Attribute) -> Condition:
    """A comparison that the cells of the column decide, as near as possible to the given one."""
    if isinstance(leaf, IsNull):
        return _null(leaf, attribute)
    if isinstance(leaf, Like):
        return _matched(leaf, attribute)
    if isinstance(leaf, Holds):
        return leaf
    leaf = _typed(leaf, attribute)
    try:
        return _listed(leaf, attribute) if isinstance(attribute, Categories) else _moved(leaf, attribute)
    except QueryError:  # the literal fits no value of the column
        return leaf


def _typed(leaf: Compare | Between | In, attribute: Attribute) -> Compare | Between | In:
    """The comparison with its literals in the type of the column, where they can be read so."""
    match leaf:
        case Compare():
            return replace(leaf, literal=_value(leaf.literal, attribute))
        case Between():
            return replace(leaf, low=_value(leaf.low, attribute), high=_value(leaf.high, attribute))
        case In():
            return replace(leaf, literals=tuple(_value(literal, attribute) for literal in leaf.literals))


def _value(literal: Literal, attribute: Attribute) -> Literal:
    if isinstance(attribute, Dates):
        moment = moment_of(literal) if isinstance(literal, str) else None
        return literal if moment is None else moment.date()
    if isinstance(attribute, Categories):
        if means_other(attribute, literal) or fits_list(attribute, literal):
            return literal
        if _holds_truth(attribute) and literal in (0, 1):
            return bool(literal)
        shown = {str(value).casefold(): value for value in attribute.values}
        return shown.get(str(literal).casefold(), literal)
    try:
        return read_number(literal, -1) if isinstance(literal, str) else literal
    except QueryError:
        return literal


def _moved(leaf: Compare | Between | In, attribute: Attribute) -> Condition:
    """The comparison with every bound that cuts through a cell moved to an edge of it."""
    match leaf:
        case Between():
            low = Compare(column=leaf.column, op=Op.GE, literal=leaf.low)
            high = Compare(column=leaf.column, op=Op.LE, literal=leaf.high)
            moved = [_moved(bound, attribute) for bound in (low, high)]
            return leaf if moved == [low, high] else all_of(*moved)
        case In():
            single = [Compare(column=leaf.column, op=Op.EQ, literal=literal) for literal in leaf.literals]
            ranges = [_moved(equality, attribute) for equality in single]
            literals = tuple(
                equality.literal for equality, moved in zip(single, ranges, strict=True) if equality == moved
            )
            parts = dict.fromkeys(moved for equality, moved in zip(single, ranges, strict=True) if equality != moved)
            if not parts:
                return leaf
            return Or(parts=(*([replace(leaf, literals=literals)] if literals else []), *parts))
        case Compare(op=Op.NE):
            equal = replace(leaf, op=Op.EQ)
            inside = _moved(equal, attribute)
            return leaf if inside == equal else Not(part=inside)
    value, op, cells = fitting(attribute, leaf, leaf.literal), leaf.op, attribute.declared
    sides = {Op.LT: (False,), Op.GE: (False,), Op.LE: (True,), Op.GT: (True,)}.get(op, (False, True))
    edges = [boundary(attribute, value, behind=behind) for behind in sides]
    cuts = [edge.whole - 1 for edge in edges if edge.cuts]  # -1 below the declared cells, `cells` above
    if not cuts or (cuts[0] in (-1, cells) and attribute.outside is not Stray.OTHER):
        return leaf
    cell = cuts[0]
    if op is Op.EQ:
        return _in_cell(attribute, leaf.column, cell) if 0 <= cell < cells else leaf
    place = nearest(attribute, value, cell) if 0 <= cell < cells else max(cell, 0)
    if op in (Op.LT, Op.LE):
        return before(attribute, leaf.column, max(place, 1)) if cell >= 0 else leaf
    return from_on(attribute, leaf.column, min(place, cells - 1)) if cell < cells else leaf


def _in_cell(attribute: Attribute, column: Name, cell: int) -> Condition:
    """The condition that holds for one declared cell."""
    if isinstance(attribute, Categories):
        return Compare(column=column, op=Op.EQ, literal=attribute.values[cell])
    return all_of(from_on(attribute, column, cell), before(attribute, column, cell + 1))


def _listed(leaf: Compare | Between | In, attribute: Categories) -> Condition:
    """Equality with listed values, whatever the comparison was."""
    match leaf:
        case In():
            return replace(
                leaf, literals=tuple(dict.fromkeys(_declared(literal, attribute) for literal in leaf.literals))
            )
        case Compare() if leaf.op in (Op.EQ, Op.NE):
            return replace(leaf, literal=_declared(leaf.literal, attribute))
        case Compare():
            bounds = [(leaf.op, leaf.literal)]
        case Between():
            bounds = [(Op.GE, leaf.low), (Op.LE, leaf.high)]
    if not all(fits_list(attribute, bound) for _, bound in bounds):
        return leaf
    values = tuple(value for value in attribute.values if all(_ORDER[op](value, bound) for op, bound in bounds))
    return In(column=leaf.column, literals=values) if values else FALSE


def _declared(literal: Literal, attribute: Categories) -> Literal:
    """The listed value that was probably meant, or `other`."""
    if means_other(attribute, literal) or literal in attribute.values or not fits_list(attribute, literal):
        return literal
    if isinstance(literal, str) and attribute.declared <= _MOST_GUESSES:
        lowered = {str(value).casefold(): value for value in attribute.values}
        near = difflib.get_close_matches(literal.casefold(), lowered, n=1)
        if near:
            return lowered[near[0]]
    return OTHER if attribute.outside is Stray.OTHER and OTHER not in attribute.values else literal


def _matched(leaf: Like, attribute: Attribute) -> Condition:
    """The listed values that a pattern matches, where `other` holds values that it may match as well."""
    if not isinstance(attribute, Categories) or attribute.other is None or set(leaf.pattern) == {"%"}:
        return leaf
    values = matching(attribute, leaf)
    return In(column=leaf.column, literals=values) if values else FALSE


def _null(leaf: IsNull, attribute: Attribute) -> Condition:
    """The cell that NULL is in, with all that is in it."""
    if isinstance(attribute.null, int):
        return _in_cell(attribute, leaf.column, attribute.null)
    if attribute.null is not Stray.OTHER:
        return leaf
    if not attribute.ordered:
        return Compare(column=leaf.column, op=Op.EQ, literal=OTHER)
    outside = Not(part=Between(column=leaf.column, low=least(attribute), high=greatest(attribute)))
    return Or(parts=(leaf, outside)) if attribute.outside is Stray.OTHER else leaf


def _bounds(attribute: Attribute, column: Name) -> list[Condition]:
    """Conditions that keep out of the question what `other` holds together."""
    if isinstance(attribute, Categories):
        mixed = attribute.null is Stray.OTHER and OTHER not in attribute.values
        return [Compare(column=column, op=Op.NE, literal=OTHER)] if mixed else []
    if attribute.outside is not Stray.OTHER:
        return []
    low, high = from_on(attribute, column, 0), before(attribute, column, attribute.declared)
    return [low, high, Between(column=column, low=least(attribute), high=greatest(attribute))]


def _filtered(query: Query, bound: Condition) -> Query:
    """The bound in every FILTER."""

    def changed(part: Aggregate) -> Aggregate:
        return replace(part, condition=all_of(part.condition, bound)) if leaves(part.condition) else part

    return replace(query, aggregates=tuple(change_parts(item, changed) for item in query.aggregates))
