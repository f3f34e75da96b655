"""Which declared column, and whether the declared table, each name of a question means."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace

from bursar.core.domain import Domain
from bursar.errors import QueryError
from bursar.sql import Aggregate, Branch, Case, CaseBranch, CaseGroups, Condition, Key, Name, Query
from bursar.sql.query import Leaf, change_parts, map_leaves
from bursar.sql.tokens import needs_quotes


def resolve(query: Query, domain: Domain, table: str) -> Query:
    """The same question with every column called by its declared name; an unknown name is refused."""
    if not query.table.names(table):
        raise QueryError(f"there is no table {query.table.text}; the table is {table}", position=query.table.position)
    for name in doubled(query, domain):
        raise QueryError(
            f"the sub-select hands on two columns {name.text}; give the one that is not the column of the table "
            "another name",
            position=name.position,
        )
    keys = []
    for key in query.keys:
        column = _declared(key.column, domain)
        itself, what = (column.text, column.text) if key.by is None else (None, f"what is made of {column.text}")
        if key.through is not None and any(key.through.names(name) for name in domain.names if name != itself):
            raise QueryError(
                f"GROUP BY {key.through.text} means the column of that name, and {what} is not in GROUP BY",
                position=key.through.position,
            )
        keys.append(replace(key, column=column))

    known = change_leaves(query, lambda leaf: replace(leaf, column=_declared(leaf.column, domain)))
    known = change_values(known, lambda name: _declared(name, domain))
    return replace(
        known, keys=tuple(replace(one, column=key.column) for one, key in zip(known.keys, keys, strict=True))
    )


def doubled(query: Query, domain: Domain) -> list[Name]:
    """What sub-selects call by the name of a column that they hand on as well; quotes tell no two of them apart."""
    declared = {name.casefold() for name in domain.names}
    return [name for name in query.beside if name.text.casefold() in declared]


def change_leaves(query: Query, change: Callable[[Leaf], Condition]) -> Query:
    """The question with every comparison in it replaced."""

    def branch(one: Branch) -> Branch:
        return replace(one, condition=map_leaves(one.condition, change))

    def changed(part: Aggregate) -> Aggregate:
        of = part.of
        if isinstance(of, Case):
            of = replace(of, branches=tuple(map(branch, of.branches)))
        return replace(part, condition=map_leaves(part.condition, change), of=of)

    def piece(one: CaseBranch) -> CaseBranch:
        return replace(one, condition=map_leaves(one.condition, change))

    def key(one: Key) -> Key:
        return (
            replace(one, by=replace(one.by, pieces=tuple(map(piece, one.by.pieces))))
            if isinstance(one.by, CaseGroups)
            else one
        )

    aggregates = tuple(change_parts(item, changed) for item in query.aggregates)
    where, keys = map_leaves(query.where, change), tuple(map(key, query.keys))
    return replace(query, where=where, aggregates=aggregates, keys=keys)


def change_values(query: Query, change: Callable[[Name], Name]) -> Query:
    """The question with every column that is added up replaced."""

    def branch(one: Branch) -> Branch:
        return replace(one, value=change(one.value)) if isinstance(one.value, Name) else one

    def changed(part: Aggregate) -> Aggregate:
        if isinstance(part.of, Name):
            return replace(part, of=change(part.of))
        if isinstance(part.of, Case):
            return replace(part, of=replace(part.of, branches=tuple(map(branch, part.of.branches))))
        return part

    return replace(query, aggregates=tuple(change_parts(item, changed) for item in query.aggregates))


def guess(name: Name, declared: Sequence[str]) -> Name:
    """The declared name that was probably meant; the name itself if none is near."""
    lowered = {one.casefold(): one for one in reversed(declared)}
    near = difflib.get_close_matches(name.text.casefold(), lowered, n=1, cutoff=0.7)
    if any(name.names(one) for one in declared) or not near:
        return name
    return spelt(name, lowered[near[0]])


def spelt(name: Name, declared: str) -> Name:
    """The name with the letters of a declared one."""
    return replace(name, text=declared, quoted=needs_quotes(declared))


def _declared(name: Name, domain: Domain) -> Name:
    possible = [one for one in domain.names if name.names(one)]
    exact = [one for one in possible if one == name.text]
    if len(possible) == 1 or exact:
        return replace(name, text=(exact or possible)[0])
    if possible:
        raise QueryError(f"{name.text} can be {' or '.join(possible)}; put it in quotes", position=name.position)
    near = guess(name, domain.names)
    hint = f"did you mean {near.text}?" if near is not name else f"the columns are {', '.join(domain.names[:20])}"
    raise QueryError(f"there is no column {name.text}; {hint}", position=name.position)
