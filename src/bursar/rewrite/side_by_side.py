"""The groups of a CASE over too many columns as columns of the answer, each aggregate under the condition of its group.

    SELECT CASE WHEN a THEN 'x' WHEN b THEN 'y' END AS c, COUNT(*) ... GROUP BY c
    SELECT COUNT(*) FILTER (WHERE a) AS x, COUNT(*) FILTER (WHERE b AND NOT (a) IS TRUE) AS y, ...

The other keys stay what they are, with their totals. What shows the groups of the CASE put together shows every
aggregate as it was, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from bursar.core.domain import Domain
from bursar.errors import QueryError
from bursar.goal import Goal
from bursar.sql import TRUE, Aggregate, Condition, Cut, Flag, Function, IsTrue, Item, Key, Linear, Not, Or, Piece, Query
from bursar.sql.aggregates import as_formula
from bursar.sql.query import Formula, aggregates_of, all_of, change_parts, flag_name
from bursar.rewrite.disjoint import disjoint
from bursar.compile.regions import ties_too_many

NO_GROUP = "no_group"
"""What the column of the rows is called that the CASE gives NULL."""

Under = Callable[[Item, Condition], Item | None]
"""What an item becomes for the rows that meet a condition as well; None where that cannot be asked."""


def side_by_side(query: Query, domain: Domain) -> Iterator[Query]:
    """Questions with the groups of one CASE over several columns side by side, or those of all such CASEs.

    A count that ties too many columns together can be asked as it is, in few groups; then in parts, like sums.
    """
    cuts = [place for place, key in enumerate(query.keys) if len(key.columns) > 1]
    choices = [[place] for place in cuts] + ([cuts] if len(cuts) > 1 else [])
    for places, counted in itertools.product(choices, (True, False)):
        found: Query | None = query
        for place in reversed(places):
            found = None if found is None else _beside(found, place, _under(query.where, domain, counted=counted))
        if found is not None:
            yield found


def regrouped(query: Query, keys: tuple[Key, ...], places: Sequence[tuple[int, ...]]) -> Query:
    """The question with other keys; `places` says where each of the old ones went: to one place, to several or to none.

    HAVING and LIMIT were about the old groups and are left out. So is the order, but for that of keys and flags which
    are still there.
    """
    sets, unasked = (
        tuple(dict.fromkeys(tuple(sorted({new for old in one for new in places[old]})) for one in every))
        for every in (query.sets, query.unasked)
    )
    unasked = tuple(one for one in unasked if one not in sets)
    flags = [_reflagged(flag, query.keys, keys, places) for flag in query.flags]
    kept = [flag for flag in flags if flag is not None]
    moved = [*places, *(() if flag is None else (len(keys) + kept.index(flag),) for flag in flags)]
    order = [(sort, moved[sort.key]) for sort in query.order if sort.output is None]
    return replace(
        query,
        keys=keys,
        sets=() if not unasked and sets == (tuple(range(len(keys))),) else sets,
        unasked=unasked,
        flags=tuple(kept),
        having=TRUE,
        order=tuple(replace(sort, key=new[0]) for sort, new in order if len(new) == 1),
        limit=None,
        offset=0,
    )


def _reflagged(flag: Flag, old: Sequence[Key], new: Sequence[Key], places: Sequence[tuple[int, ...]]) -> Flag | None:
    """The flag of what is left of its keys; None where nothing is, or a key of it became several."""
    kept = tuple(place for key in flag.keys for place in places[key])
    if not kept or any(len(places[key]) > 1 for key in flag.keys):
        return None
    name = flag_name(new, kept) if flag.name == flag_name(old, flag.keys) else flag.name
    return replace(flag, keys=kept, name=name)


def _beside(query: Query, place: int, under: Under) -> Query | None:
    """The question with the groups of one key side by side."""
    by = query.keys[place].by
    assert isinstance(by, Cut)
    keys = query.keys[:place] + query.keys[place + 1 :]
    found = regrouped(query, keys, [() if old == place else (old - (old > place),) for old in range(len(query.keys))])
    whole = query.aggregates if any(place not in one for one in query.sets) else ()
    taken = {item.name.casefold() for item in (*keys, *found.flags, *whole)}
    named = {item.name: [item.name] if whole else [] for item in query.aggregates}
    items: list[Item] = []
    for label, condition in _groups(by.pieces):
        for item in query.aggregates:
            made = under(item, condition)
            if made is None:
                return None
            name = _free(label if len(query.aggregates) == 1 else f"{label}_{item.name}", taken)
            taken.add(name.casefold())
            named[item.name].append(name)
            items.append(replace(made, name=name))
    return replace(found, aggregates=(*items, *whole), goal=_spread(query.goal, named))


def _groups(pieces: tuple[Piece, ...]) -> list[tuple[str, Condition]]:
    """The name of each group, and its condition: that of one of its pieces, and of no earlier piece of another."""
    if pieces[-1].condition != TRUE:
        pieces = (*pieces, Piece(condition=TRUE, label=None))
    found: list[tuple[str, Condition]] = []
    for label in dict.fromkeys(piece.label for piece in pieces):
        ways = []
        for place, piece in enumerate(pieces):
            others = [Not(part=IsTrue(part=one.condition)) for one in pieces[:place] if one.label != label]
            ways += [all_of(piece.condition, *others)] if piece.label == label else []
        condition = TRUE if TRUE in ways else ways[0] if len(ways) == 1 else Or(parts=tuple(ways))
        found.append((NO_GROUP if label is None else str(label), condition))
    return found


def _free(name: str, taken: set[str]) -> str:
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain([name], numbered) if one.casefold() not in taken)


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
    try:
        formula = item if isinstance(item, Formula) else as_formula(replace(item, name=""))
    except QueryError:
        return None

    def expanded(side: Linear) -> Linear:
        terms = ((weight, _narrowed(part, one)) for weight, part in side.terms for one in parts)
        return replace(side, terms=tuple(terms))

    below = None if formula.below is None else expanded(formula.below)
    return replace(formula, above=expanded(formula.above), below=below) if parts else None


def _narrowed(part: Aggregate, condition: Condition) -> Aggregate:
    return replace(part, condition=all_of(part.condition, condition))
