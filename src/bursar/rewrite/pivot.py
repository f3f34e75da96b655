"""Pivots: the groups of a CASE over too many columns as columns of the answer, each aggregate under its condition.

    SELECT CASE WHEN a THEN 'x' WHEN b THEN 'y' END AS c, COUNT(*) ... GROUP BY c
    SELECT COUNT(*) FILTER (WHERE a) AS x, COUNT(*) FILTER (WHERE b AND NOT (a) IS TRUE) AS y, ...

The other keys stay what they are, with their totals. What shows the groups of the CASE put together shows every
aggregate as it was, too.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from bursar.compile.conditions import ties_too_many
from bursar.compile.masks import by_column
from bursar.core.domain import Domain
from bursar.core.source.source import MOST_CELLS
from bursar.errors import QueryError
from bursar.goal import Goal
from bursar.sql import (
    TRUE,
    Aggregate,
    And,
    CaseBranch,
    CaseGroups,
    Condition,
    Constant,
    Flag,
    Function,
    IsTrue,
    Item,
    Key,
    Linear,
    Literal,
    Name,
    Not,
    Or,
    Query,
)
from bursar.sql.aggregates import as_formula
from bursar.sql.query import Formula, aggregates_of, all_of, change_parts, default_name, flag_name, leaves

NO_GROUP = "no_group"
"""What the column of the rows is called that the CASE gives NULL."""

Under = Callable[[Item, Condition], Item | None]
"""What an item becomes for the rows that meet a condition as well; None where that cannot be asked."""


def pivots(query: Query, domain: Domain) -> Iterator[Query]:
    """The pivot of each CASE over several columns, then that of all such CASEs.

    A count that ties too many columns together can be asked as it is, in few groups; then in parts, like sums.
    """
    cuts = [place for place, key in enumerate(query.keys) if len(key.columns) > 1]
    choices = [[place] for place in cuts] + ([cuts] if len(cuts) > 1 else [])
    for places, counted in itertools.product(choices, (True, False)):
        pivoted: Query | None = query
        for place in reversed(places):
            pivoted = None if pivoted is None else _beside(pivoted, place, _under(query.where, domain, counted=counted))
        if pivoted is not None:
            yield pivoted


def regrouped(query: Query, keys: tuple[Key, ...], places: Sequence[tuple[int, ...]]) -> Query:
    """The question with other keys; `places` says where each of the old ones went: to one place, to several or to none.

    HAVING and LIMIT were about the old groups and are left out. So is the order, but for that of keys and flags which
    are still there.
    """
    sets, unasked = (
        tuple(dict.fromkeys(tuple(sorted({new for old in grouping for new in places[old]})) for grouping in every))
        for every in (query.sets, query.unasked)
    )
    unasked = tuple(grouping for grouping in unasked if grouping not in sets)
    flags = [_reflagged(flag, query.keys, keys, places) for flag in query.flags]
    new_flags = [flag for flag in flags if flag is not None]
    moved = [*places, *(() if flag is None else (len(keys) + new_flags.index(flag),) for flag in flags)]
    order = [(sort, moved[sort.key]) for sort in query.order if sort.output is None]
    return replace(
        query,
        keys=keys,
        sets=() if not unasked and sets == (tuple(range(len(keys))),) else sets,
        unasked=unasked,
        flags=tuple(new_flags),
        having=TRUE,
        order=tuple(replace(sort, key=new[0]) for sort, new in order if len(new) == 1),
        limit=None,
        offset=0,
    )


def _reflagged(flag: Flag, old: Sequence[Key], new: Sequence[Key], places: Sequence[tuple[int, ...]]) -> Flag | None:
    """The flag of what is left of its keys; None where nothing is, or a key of it became several."""
    new_keys = tuple(place for key in flag.keys for place in places[key])
    if not new_keys or any(len(places[key]) > 1 for key in flag.keys):
        return None
    name = flag_name(new, new_keys) if flag.name == flag_name(old, flag.keys) else flag.name
    return replace(flag, keys=new_keys, name=name)


def _beside(query: Query, place: int, under: Under) -> Query | None:
    """The question with the groups of one key side by side."""
    by = query.keys[place].by
    assert isinstance(by, CaseGroups)
    if _excluded(by.pieces) > MOST_EXCLUDED:
        return None
    keys = query.keys[:place] + query.keys[place + 1 :]
    pivoted = regrouped(query, keys, [() if old == place else (old - (old > place),) for old in range(len(query.keys))])
    whole = query.aggregates if any(place not in grouping for grouping in query.sets) else ()
    taken = {item.name.casefold() for item in (*keys, *pivoted.flags, *whole)}
    named = {item.name: [item.name] if whole else [] for item in query.aggregates}
    items: list[Item] = []
    for label, condition in _groups(by.pieces):
        for item in query.aggregates:
            narrowed = under(item, condition)
            if narrowed is None:
                return None
            name = _free(label if len(query.aggregates) == 1 else f"{label}_{item.name}", taken)
            taken.add(name.casefold())
            named[item.name].append(name)
            items.append(replace(narrowed, name=name))
    return replace(pivoted, aggregates=(*items, *whole), goal=_spread(query.goal, named))


def _groups(pieces: tuple[CaseBranch, ...]) -> list[tuple[str, Condition]]:
    """The name of each group, and its condition: that of one of its pieces, and of no earlier piece of another."""
    if pieces[-1].condition != TRUE:
        pieces = (*pieces, CaseBranch(condition=TRUE, label=None))
    groups: list[tuple[str, Condition]] = []
    for label in dict.fromkeys(piece.label for piece in pieces):
        ways = []
        for place, piece in enumerate(pieces):
            others = [Not(part=IsTrue(part=earlier.condition)) for earlier in pieces[:place] if earlier.label != label]
            ways += [all_of(piece.condition, *others)] if piece.label == label else []
        condition = TRUE if TRUE in ways else ways[0] if len(ways) == 1 else Or(parts=tuple(ways))
        groups.append((NO_GROUP if label is None else str(label), condition))
    return groups


MOST_EXCLUDED = 1000
"""Most conditions of earlier pieces that are excluded: with more of them a question is longer than any can be."""


def _excluded(pieces: Sequence[CaseBranch]) -> int:
    """How many conditions the groups exclude: each piece those before it that are of another group."""
    before: Counter[Literal | None] = Counter()
    excluded = 0
    for piece in pieces:
        excluded += before.total() - before[piece.label]
        before[piece.label] += 1
    return excluded


def _free(name: str, taken: set[str]) -> str:
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(candidate for candidate in itertools.chain([name], numbered) if candidate.casefold() not in taken)


def _spread(goal: Goal | None, named: dict[str, list[str]]) -> Goal | None:
    """The goal with the error of each output for all that became of it."""
    if goal is None:
        return None
    became = [(part, [None] if part.output is None else named[part.output]) for part in goal.parts]
    return replace(goal, parts=tuple(replace(part, output=new) for part, names in became for new in names))


def _under(where: Condition, domain: Domain, *, counted: bool) -> Under:
    """How an item is asked under a condition; `counted`: counts as they are, however many columns are tied together."""

    def under(item: Item, condition: Condition) -> Item | None:
        parts = aggregates_of(item)
        tied = any(ties_too_many(all_of(where, part.condition, condition), domain) for part in parts)
        if not tied or (counted and all(part.function is Function.COUNT for part in parts)):
            return _filtered(item, condition)
        return _summed(item, disjoint(condition) or ())

    return under


def _filtered(item: Item, condition: Condition) -> Item:
    return change_parts(item, lambda part: _narrowed(part, condition))


def _summed(item: Item, parts: Sequence[Condition]) -> Item | None:
    """An item as arithmetic on what it is for each part; None for what is no sum, count, average or formula of them."""
    if len(parts) == 1:
        return _filtered(item, parts[0])
    if any(part.distinct for part in aggregates_of(item)):
        return None  # who is in two parts would be counted twice
    try:
        formula = item if isinstance(item, Formula) else as_formula(replace(item, name=""))
    except QueryError:
        return None

    def expanded(side: Linear) -> Linear:
        terms = ((weight, _narrowed(part, condition)) for weight, part in side.terms for condition in parts)
        return replace(side, terms=tuple(terms))

    below = None if formula.below is None else expanded(formula.below)
    return replace(formula, above=expanded(formula.above), below=below) if parts else None


def _narrowed(part: Aggregate, condition: Condition) -> Aggregate:
    return replace(part, condition=all_of(part.condition, condition))


MOST_PARTS = 8
"""Most parts of one condition: more would make a question that nobody can read."""

Parts = list[tuple[Condition, ...]]


def disjoint(condition: Condition) -> tuple[Condition, ...] | None:
    """Disjoint conjunctions: exactly one holds wherever the condition does; None where there would be too many."""
    conjunctions = _parts(_where(condition, True, True))
    return None if len(conjunctions) > MOST_PARTS else tuple(all_of(*part) for part in conjunctions)


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
    test = condition if truth is sure else Not(part=condition)
    return test if sure else Not(part=IsTrue(part=test))


def _parts(condition: Condition) -> Parts:
    """The parts of what `_where` makes; cut off where there are too many."""
    conjunctions: Parts = []
    match condition:
        case And(parts=parts):
            return _joined(_parts(part) for part in parts)
        case Or(parts=parts):
            for place, part in enumerate(parts):
                before = (_parts(_where(earlier, False, False)) for earlier in parts[:place])
                conjunctions = [*conjunctions, *_joined((_parts(part), *before))][: MOST_PARTS + 1]
                if len(conjunctions) > MOST_PARTS:
                    break
            return conjunctions
        case Constant(value=False):
            return []
    return [(condition,)]


def _joined(lists: Iterable[Parts]) -> Parts:
    """One of each list, in every combination."""
    joined: Parts = [()]
    for parts in lists:
        joined = [(*left, *right) for left, right in product(joined, parts)][: MOST_PARTS + 1]
    return joined


def group_by_columns(query: Query) -> Query:
    """Grouped by the columns themselves; where a key names several, by all of them."""
    if all(len(key.columns) == 1 for key in query.keys):
        return replace(query, keys=tuple(replace(key, by=None, through=None) for key in query.keys))
    named = {leaf.column.text: leaf.column for key in query.keys for leaf in leaves(Or(parts=_tests(key)))}
    named |= {key.column.text: key.column for key in query.keys}
    columns = list(dict.fromkeys(name for key in query.keys for name in key.columns))
    places = [tuple(map(columns.index, key.columns)) for key in query.keys]
    return regrouped(query, tuple(Key(column=named[name]) for name in columns), places)


def _tests(key: Key) -> tuple[Condition, ...]:
    return tuple(piece.condition for piece in key.by.pieces) if isinstance(key.by, CaseGroups) else ()


def only_counts(query: Query, domain: Domain) -> Iterator[Query]:
    """What can be counted of a question about too many joint cells: in its groups, in fewer, in none."""
    parts = [part for item in query.aggregates for part in aggregates_of(item)]
    tied = any(ties_too_many(all_of(query.where, part.condition), domain) for part in parts)
    if not tied and not any(_looks_at(query, part, domain) > MOST_CELLS for part in parts):
        return
    counted = [all(part.function is Function.COUNT for part in aggregates_of(item)) for item in query.aggregates]
    counts = tuple(item for item, good in zip(query.aggregates, counted, strict=True) if good)
    condition = next((part.condition for part in parts), TRUE)
    plain = replace(query, having=TRUE, order=(), limit=None, offset=0)
    every = plain if all(counted) else replace(plain, aggregates=counts or (_count(condition),))
    yield every
    fewer = replace(every, sets=(), unasked=(), flags=())
    for number in range(len(query.keys) - 1, -1, -1):
        yield replace(fewer, keys=query.keys[:number])
    yield replace(fewer, aggregates=every.aggregates[:1], keys=())


def _looks_at(query: Query, part: Aggregate, domain: Domain) -> int:
    """How many joint cells the columns have that an aggregate of a column looks at; groups of one column each."""
    named = [leaf.column.text for leaf in leaves(all_of(query.where, part.condition))]
    named += [part.of.text] if isinstance(part.of, Name) else []
    return domain.cells({*named, *(key.column.text for key in query.keys if len(key.columns) == 1)})


def _count(condition: Condition) -> Aggregate:
    count = Aggregate(condition=condition)
    return replace(count, name=default_name(count))
