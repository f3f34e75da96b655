"""Repairs of what rows are grouped by: plainer groups, fewer groups or none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bursar.core.domain import Domain
from bursar.core.source.source import MOST_CELLS
from bursar.sql import TRUE, Aggregate, Condition, Cut, Function, Key, Name, Or, Query
from bursar.sql.query import aggregates_of, all_of, leaves, own_name
from bursar.compile.regions import ties_too_many
from bursar.rewrite.side_by_side import regrouped


def plainly(query: Query) -> Query:
    """Grouped by the columns themselves; where a key names several, by all of them."""
    if all(len(key.columns) == 1 for key in query.keys):
        return replace(query, keys=tuple(replace(key, by=None, through=None) for key in query.keys))
    named = {leaf.column.text: leaf.column for key in query.keys for leaf in leaves(Or(parts=_tests(key)))}
    named |= {key.column.text: key.column for key in query.keys}
    columns = list(dict.fromkeys(name for key in query.keys for name in key.columns))
    places = [tuple(map(columns.index, key.columns)) for key in query.keys]
    return regrouped(query, tuple(Key(column=named[name]) for name in columns), places)


def _tests(key: Key) -> tuple[Condition, ...]:
    return tuple(piece.condition for piece in key.by.pieces) if isinstance(key.by, Cut) else ()


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
    for kept in range(len(query.keys) - 1, -1, -1):
        yield replace(fewer, keys=query.keys[:kept])
    yield replace(fewer, aggregates=every.aggregates[:1], keys=())


def _looks_at(query: Query, part: Aggregate, domain: Domain) -> int:
    """How many joint cells the columns have that an aggregate of a column looks at; groups of one column each."""
    named = [leaf.column.text for leaf in leaves(all_of(query.where, part.condition))]
    named += [part.of.text] if isinstance(part.of, Name) else []
    return domain.cells({*named, *(key.column.text for key in query.keys if len(key.columns) == 1)})


def _count(condition: Condition) -> Aggregate:
    made = Aggregate(condition=condition)
    return replace(made, name=own_name(made))
