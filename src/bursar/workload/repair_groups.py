"""Repairs of what rows are grouped by: plainer groups, counts side by side in their place, fewer groups or none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bursar.domain import Domain
from bursar.sql import TRUE, Aggregate, Condition, Cut, Function, IsTrue, Key, Not, Or, Piece, Query
from bursar.sql.query import aggregates_of, all_of, leaves, own_name
from bursar.workload.regions import ties_too_many


def plainly(query: Query) -> Query:
    """Grouped by the columns themselves; where a key names several, by all of them."""
    if all(len(key.columns) == 1 for key in query.keys):
        return replace(query, keys=tuple(replace(key, by=None, through=None) for key in query.keys))
    named = {leaf.column.text: leaf.column for key in query.keys for leaf in leaves(Or(parts=_tests(key)))}
    named |= {key.column.text: key.column for key in query.keys}
    keys = tuple(Key(column=named[name]) for name in dict.fromkeys(name for key in query.keys for name in key.columns))
    return replace(query, keys=keys, sets=(), flags=(), order=(), limit=None, offset=0)


def _tests(key: Key) -> tuple[Condition, ...]:
    return tuple(piece.condition for piece in key.by.pieces) if isinstance(key.by, Cut) else ()


def side_by_side(query: Query) -> Iterator[Query]:
    """The groups of a CASE over several columns as counts beside one another, each of them under its condition."""
    cuts = [key for key in query.keys if len(key.columns) > 1]
    counts = all(isinstance(item, Aggregate) and replace(item, name="") == Aggregate() for item in query.aggregates)
    if len(cuts) != 1 or not isinstance(cuts[0].by, Cut) or not counts:
        return
    found: list[Aggregate] = []
    before: list[Condition] = []
    pieces = cuts[0].by.pieces
    rest = () if pieces[-1].condition == TRUE else (Piece(condition=TRUE, label=None),)
    for piece in (*pieces, *rest):
        label = "no_group" if piece.label is None else str(piece.label)
        found.append(Aggregate(name=label, condition=all_of(piece.condition, *before)))
        before.append(Not(part=IsTrue(part=piece.condition)))
    if len({item.name.casefold() for item in found}) == len(found):
        keys = tuple(key for key in query.keys if key not in cuts)
        plain = replace(query, having=TRUE, order=(), limit=None, offset=0, sets=(), flags=())
        yield replace(plain, keys=keys, aggregates=tuple(found))


def only_counts(query: Query, domain: Domain) -> Iterator[Query]:
    """What can be counted of a question that ties too many columns together: in its groups, in fewer, in none."""
    parts = [part for item in query.aggregates for part in aggregates_of(item)]
    tied = any(ties_too_many(all_of(query.where, part.condition), domain) for part in parts)
    if not tied:
        return
    counted = [all(part.function is Function.COUNT for part in aggregates_of(item)) for item in query.aggregates]
    counts = tuple(item for item, good in zip(query.aggregates, counted, strict=True) if good)
    condition = next((part.condition for part in parts), TRUE)
    plain = replace(query, having=TRUE, order=(), limit=None, offset=0, flags=())
    every = plain if all(counted) else replace(plain, aggregates=counts or (_count(condition),))
    yield every
    for kept in range(len(query.keys) - 1, -1, -1):
        yield replace(every, keys=query.keys[:kept], sets=())
    yield replace(every, aggregates=every.aggregates[:1], keys=(), sets=())


def _count(condition: Condition) -> Aggregate:
    made = Aggregate(condition=condition)
    return replace(made, name=own_name(made))
