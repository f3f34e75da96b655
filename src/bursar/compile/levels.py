"""Columns of groups of listed values: a question about a level is one about the column below it.

With `country = { Europe = ["FR", "DE"], Asia = ["JP"] }` over the column region,

    GROUP BY country            groups by CASE WHEN region IN ('FR', 'DE') THEN 'Europe' ... END
    country = 'Europe'          is region IN ('FR', 'DE')

and so on for every condition. `other` and NULL of the column are `other` and NULL of each of its levels. A level is a
name for cells that exist without it: it changes no cell, no price and no promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bursar.compile.groups import coded
from bursar.compile.resolve_names import change_leaves, change_values
from bursar.compile.three_valued import OTHER, YES, StrayKind, ValueLine, check_types, leaf_truth
from bursar.compile.values import values_of
from bursar.core.domain import Categories, Domain
from bursar.sql import (
    CaseBranch,
    CaseGroups,
    Compare,
    Condition,
    Function,
    In,
    IsNull,
    Key,
    Name,
    Not,
    Op,
    Query,
    Stepped,
    Trimmed,
)
from bursar.sql.query import Leaf, aggregates_of, branches_of
from bursar.sql.tokens import needs_quotes


@dataclass(frozen=True, kw_only=True)
class Level:
    """Groups of the listed values of a column; every value is in exactly one of them."""

    name: str
    column: Categories
    groups: tuple[tuple[str, tuple[str | int | bool, ...]], ...]  # name and values, in their declared order

    @property
    def attribute(self) -> Categories:
        """The level as a column of its own: what it holds where the column below holds something else or nothing."""
        of = {value: place for place, (_, values) in enumerate(self.groups) for value in values}
        outside, null = (
            of[self.column.values[stray]] if isinstance(stray, int) else stray
            for stray in (self.column.outside, self.column.null)
        )
        return Categories(name=self.name, values=tuple(name for name, _ in self.groups), outside=outside, null=null)


def with_levels(domain: Domain, levels: Sequence[Level]) -> Domain:
    """All columns that a question can name."""
    if not levels:
        return domain
    return Domain((*domain.attributes, *(level.attribute for level in levels)), domain.partition)


def without_levels(query: Query, levels: Sequence[Level]) -> Query:
    """The same question with every condition and aggregate about declared columns alone; the names in it are resolved.

    Guarantees: what is wrong with a condition on a level is said in the level's own words.
    """
    known = {level.name: level for level in levels}
    for part in (part for item in query.aggregates for part in aggregates_of(item)):
        counted = part.function is Function.COUNT and isinstance(part.of, Name)
        for value in (branch.value for branch in branches_of(part)):
            if isinstance(value, Name) and value.text in known and not counted:
                values_of(known[value.text].attribute, value.position)  # refuses: a level holds no numbers

    def leaf(one: Leaf) -> Condition:
        return _below(one, known[one.column.text]) if one.column.text in known else one

    def name(one: Name) -> Name:
        return _column(known[one.text], one.position) if one.text in known else one  # NULL where the column is

    return change_values(change_leaves(query, leaf), name)


def with_pieces(query: Query, levels: Sequence[Level]) -> Query:
    """The same question grouped by declared columns alone.

    This comes after sealing: to group by a level names no partition, as to group by its column does not.
    """
    known = {level.name: level for level in levels}
    keys = (_key(key, known[key.column.text]) if key.column.text in known else key for key in query.keys)
    return replace(query, keys=tuple(keys))


def _column(level: Level, position: int = -1) -> Name:
    return Name(text=level.column.name, quoted=needs_quotes(level.column.name), position=position)


def _below(leaf: Leaf, level: Level) -> Condition:
    """A comparison of a level as one of the values in its groups: true, false and unknown for the same rows."""
    attribute, column = level.attribute, _column(level, leaf.column.position)
    check_types(attribute, leaf)
    line = ValueLine(attribute)
    truth = leaf_truth(line, leaf)
    if isinstance(leaf, IsNull):
        return replace(leaf, column=column)
    negated = isinstance(leaf, Compare) and leaf.op is Op.NE
    chosen = (2 - truth if negated else truth) == YES
    literals = [value for (_, values), yes in zip(level.groups, chosen, strict=False) if yes for value in values]
    if any(
        kind is StrayKind.UNLISTED and chosen[place] for place, (kind, _) in enumerate(line.strays, attribute.declared)
    ):
        literals.append(OTHER)
    inside = In(column=column, literals=tuple(literals), position=leaf.position)
    return Not(part=inside, position=leaf.position) if negated else inside


def _key(key: Key, level: Level) -> Key:
    """The groups of the level, as pieces of the column below; the answer still calls them by the level."""
    column, by = _column(level, key.column.position), key.by
    if isinstance(by, Stepped | Trimmed):
        coded(key, Domain((level.attribute,)))  # refuses: a level holds neither numbers nor days
    if by is None:
        pieces = [CaseBranch(condition=In(column=column, literals=values), label=name) for name, values in level.groups]
        if level.column.other is not None:
            pieces.append(CaseBranch(condition=Compare(column=column, op=Op.EQ, literal=OTHER), label=OTHER))
        by = CaseGroups(pieces=tuple(pieces))
    return replace(key, column=column, by=by, alias=key.name)
