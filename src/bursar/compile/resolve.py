"""Name resolution: which declared columns, groups of values and partitions a question means.

1. Names: every column is called by its declared name.
2. Levels, columns of groups of listed values: a question about a level is one about the column below it. With
   `country = { Europe = ["FR", "DE"], Asia = ["JP"] }` over the column region, GROUP BY country groups by
   `CASE WHEN region IN ('FR', 'DE') THEN 'Europe' ... END`, and `country = 'Europe'` is `region IN ('FR', 'DE')`.
   `other` and NULL of the column are `other` and NULL of each of its levels. A level is a name for cells that exist
   without it: it changes no cell, no price and no promise.
3. Partitions: a question that does not name the partition column is about all sealed partitions, and so is the open
   end of a range. One that names a partition which is not sealed yet is refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bursar.compile.conditions import OTHER, YES, StrayKind, ValueLine, check_types, leaf_truth
from bursar.compile.groups import coded
from bursar.compile.values import ListedKeys, before, from_on, greatest, least, values_of
from bursar.core.domain import Attribute, Categories, Domain, Unit
from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql import (
    Aggregate,
    And,
    AtLeast,
    Branch,
    Case,
    CaseBranch,
    CaseGroups,
    Compare,
    Condition,
    Constant,
    Function,
    In,
    IsNull,
    IsTrue,
    Key,
    Name,
    Not,
    Op,
    Or,
    Query,
    Stepped,
    Trimmed,
)
from bursar.sql.names import Number
from bursar.sql.query import (
    Holds,
    Leaf,
    Made,
    aggregates_of,
    all_of,
    branches_of,
    change_parts,
    columns_of,
    map_leaves,
    rename_leaf,
)
from bursar.sql.terms import Call, Given, Ref, Term, change_calls, map_refs, map_terms, refs_of, walk_terms
from bursar.sql.tokens import needs_quotes


def of_table(query: Query, domain: Domain, table: str) -> Domain:
    """The columns of the table that a question is about; refused where there is none of that name."""
    if not query.table.names(table):
        raise QueryError(f"there is no table {query.table.text}; the table is {table}", position=query.table.position)
    return domain


def resolve(query: Query, domain: Domain, table: str) -> Query:
    """The same question with every column called by its declared name; an unknown name is refused."""
    domain = of_table(query, domain, table)
    for name in ambiguous_names(query, domain):
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

    def declared(name: Name) -> Name:
        return _declared(name, domain)

    renamed = change_leaves(query, lambda leaf: rename_leaf(leaf, declared))
    renamed = change_values(renamed, declared)
    resolved = tuple(replace(possible, column=key.column) for possible, key in zip(renamed.keys, keys, strict=True))
    return replace(renamed, keys=tuple(change_made(key, lambda term: map_refs(term, declared)) for key in resolved))


def with_bounds(query: Query, domain: Domain) -> tuple[Query, list[str]]:
    """The question with declared bounds of columns in the place of MIN and MAX, and the columns that they are of."""
    named: dict[str, None] = {}

    def call(old: Call) -> Term:
        if old.function not in ("declared min", "declared max"):
            return old
        column = old.parts[0]
        assert isinstance(column, Ref)
        attribute = domain[_declared(column.name, domain).text]
        named[attribute.name] = None
        most = old.function == "declared max"
        if isinstance(attribute, ListedKeys):
            raise QueryError(f"{attribute.name} is open: it has no first and no last text", position=old.position)
        if isinstance(attribute, Categories):
            ends = [value for value in attribute.values if not isinstance(value, bool)] or list(attribute.values)
            return Given(value=max(ends, key=_by_kind) if most else min(ends, key=_by_kind), position=old.position)
        return Given(value=greatest(attribute) if most else least(attribute), position=old.position)

    stages = tuple(stage.changed(lambda term: change_calls(term, call)) for stage in query.stages)
    return replace(query, stages=stages), list(named)


def _by_kind(value: str | int | bool) -> tuple[float, str]:
    return (0.0, value) if isinstance(value, str) else (float(value), "")


def change_made(key: Key, change: Callable[[Term], Term]) -> Key:
    """A key with the term that it is made by, if it is, replaced."""
    return replace(key, by=Made(term=change(key.by.term))) if isinstance(key.by, Made) else key


def people_of(query: Query, who: Unit | None, domain: Domain) -> Query:
    """The question with COUNT(DISTINCT unit) as a count of people, and COUNT(unit) as one of rows, which all have one.

    Edge cases: refused is anything else that is asked about the unit column, unless it is a declared one as well.
    """
    unit = None if who is None else who.column
    if unit is None:
        return query

    def changed(part: Aggregate) -> Aggregate:
        counts = part.function is Function.COUNT and isinstance(part.of, Name) and part.of.names(unit)
        return replace(part, of=None) if counts and (part.distinct or unit not in domain) else part

    counted = replace(query, aggregates=tuple(change_parts(item, changed) for item in query.aggregates))
    for name in (*counted.columns(), *(key.column for key in counted.keys)):
        if name.names(unit) and unit not in domain:
            raise QueryError(
                f"{name.text} tells people apart, and nobody is shown or picked by it; COUNT(DISTINCT {name.text}) "
                "counts people",
                position=name.position,
            )
    return counted


def ambiguous_names(query: Query, domain: Domain) -> list[Name]:
    """What sub-selects call by the name of a column that they hand on as well; quotes tell no two of them apart."""
    declared = {name.casefold() for name in domain.names}
    return [name for name in query.beside if name.text.casefold() in declared]


def change_leaves(query: Query, change: Callable[[Leaf], Condition]) -> Query:
    """The question with every comparison in it replaced."""

    def branch(old: Branch) -> Branch:
        return replace(old, condition=map_leaves(old.condition, change))

    def changed(part: Aggregate) -> Aggregate:
        of = part.of
        if isinstance(of, Case):
            of = replace(of, branches=tuple(map(branch, of.branches)))
        return replace(part, condition=map_leaves(part.condition, change), of=of)

    def piece(old: CaseBranch) -> CaseBranch:
        return replace(old, condition=map_leaves(old.condition, change))

    def key(old: Key) -> Key:
        return (
            replace(old, by=replace(old.by, pieces=tuple(map(piece, old.by.pieces))))
            if isinstance(old.by, CaseGroups)
            else old
        )

    aggregates = tuple(change_parts(item, changed) for item in query.aggregates)
    where, keys = map_leaves(query.where, change), tuple(map(key, query.keys))
    return replace(query, where=where, aggregates=aggregates, keys=keys)


def change_values(query: Query, change: Callable[[Name], Name]) -> Query:
    """The question with every column that is added up replaced."""

    def value(old: Number | Name | Call | None) -> Number | Name | Call | None:
        if isinstance(old, Call):
            changed = map_refs(old, change)
            assert isinstance(changed, Call)
            return changed
        return change(old) if isinstance(old, Name) else old

    def branch(old: Branch) -> Branch:
        return replace(old, value=value(old.value))

    def changed(part: Aggregate) -> Aggregate:
        if isinstance(part.of, Name | Call):
            of = value(part.of)
            assert isinstance(of, Name | Call)
            return replace(part, of=of)
        if isinstance(part.of, Case):
            return replace(part, of=replace(part.of, branches=tuple(map(branch, part.of.branches))))
        return part

    return replace(query, aggregates=tuple(change_parts(item, changed) for item in query.aggregates))


def guess(name: Name, declared: Sequence[str]) -> Name:
    """The declared name that was probably meant; the name itself if none is near."""
    lowered = {column.casefold(): column for column in reversed(declared)}
    near = difflib.get_close_matches(name.text.casefold(), lowered, n=1, cutoff=0.7)
    if any(name.names(column) for column in declared) or not near:
        return name
    return spelt(name, lowered[near[0]])


def spelt(name: Name, declared: str) -> Name:
    """The name with the letters of a declared one."""
    return replace(name, text=declared, quoted=needs_quotes(declared))


def _declared(name: Name, domain: Domain) -> Name:
    possible = [column for column in domain.names if name.names(column)]
    exact = [column for column in possible if column == name.text]
    if len(possible) == 1 or exact:
        return replace(name, text=(exact or possible)[0])
    if possible:
        raise QueryError(f"{name.text} can be {' or '.join(possible)}; put it in quotes", position=name.position)
    near = guess(name, domain.names)
    hint = f"did you mean {near.text}?" if near is not name else f"the columns are {', '.join(domain.names[:20])}"
    text = "; text is written 'like this'" if name.quoted and near is name else ""
    raise QueryError(f"there is no column {name.text}; {hint}{text}", position=name.position)


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
        return Categories(
            name=self.name,
            values=tuple(name for name, _ in self.groups),
            outside=outside,
            null=null,
            nullable=self.column.nullable,
        )


def with_levels(domain: Domain, levels: Sequence[Level]) -> Domain:
    """All columns that a question can name."""
    if not levels:
        return domain
    return Domain((*domain.attributes, *(level.attribute for level in levels)), domain.partition)


def without_levels(query: Query, levels: Sequence[Level]) -> Query:
    """The same question with every condition and aggregate about declared columns alone; the names in it are resolved.

    Guarantees: what is wrong with a condition on a level is said in the level's own words.
    """
    by_name = {level.name: level for level in levels}
    for part in (part for item in query.aggregates for part in aggregates_of(item)):
        counted = part.function is Function.COUNT and isinstance(part.of, Name)
        if part.distinct and isinstance(part.of, Name) and part.of.text in by_name:
            raise QueryError(
                f"{part.of.text} groups values of {by_name[part.of.text].column.name}, and only those can be counted "
                f"distinct; GROUP BY {part.of.text} shows which of its values occur",
                position=part.of.position,
            )
        for value in (branch.value for branch in branches_of(part)):
            if isinstance(value, Name) and value.text in by_name and not counted:
                values_of(by_name[value.text].attribute, value.position)  # refuses: a level holds no numbers

    def below(term: Term) -> Term:
        return _level_term(by_name[term.name.text]) if isinstance(term, Ref) and term.name.text in by_name else term

    def leaf(old: Leaf) -> Condition:
        if isinstance(old, Holds):
            term = map_terms(old.term, below)
            return replace(old, term=term, column=columns_of(replace(old, term=term))[0])
        return _below(old, by_name[old.column.text]) if old.column.text in by_name else old

    def name(old: Name) -> Name:
        return _column(by_name[old.text], old.position) if old.text in by_name else old  # NULL where the column is

    keys = tuple(_key_below(key, below) for key in query.keys)
    return change_values(change_leaves(replace(query, keys=keys), leaf), name)


def _key_below(key: Key, below: Callable[[Term], Term]) -> Key:
    changed = change_made(key, lambda term: map_terms(term, below))
    if not isinstance(changed.by, Made) or changed == key:
        return key
    return replace(changed, column=refs_of(changed.by.term)[0], alias=key.name)


def _level_term(level: Level) -> Term:
    """The group of a value, as a CASE of the column below."""
    column = Ref(name=_column(level))
    parts: list[Term] = []
    for label, values in level.groups:
        parts += [Call(function="in", parts=(column, *(Given(value=value) for value in values))), Given(value=label)]
    null = Call(function="is null", parts=(column,))
    return Call(function="case", parts=(*parts, null, Given(value=None), Given(value=OTHER)))


def group_below_levels(query: Query, levels: Sequence[Level]) -> Query:
    """The same question grouped by declared columns alone.

    This comes after sealing: to group by a level names no partition, as to group by its column does not.
    """
    by_name = {level.name: level for level in levels}
    keys = (_key(key, by_name[key.column.text]) if key.column.text in by_name else key for key in query.keys)
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


def within_sealed(query: Query, domain: Domain, sealed: int | None) -> Query:
    """The question with its WHERE narrowed to sealed partitions; the names in it are the declared ones.

    `sealed` is how many there are, from the first one on; None where the data have no partitions.
    """
    if domain.partition is None or sealed is None or sealed >= domain.partitions:
        return query
    column = domain[domain.partition]
    if sealed == 0:
        raise QueryError(f"no partition of {column.name} is sealed yet, so there is nothing to ask about")
    for condition in query.conditions():
        for leaf, negated in _signed(condition, negated=False):
            if [each.text for each in columns_of(leaf)] == [column.name]:
                _check(column, sealed, leaf, negated)
    name = Name(text=column.name, quoted=needs_quotes(column.name))
    return replace(query, where=all_of(query.where, _sealed(column, name, sealed)))


def end_with_sealed(query: Query, domain: Domain, sealed: int | None) -> Query:
    """The question with every condition that names partitions which are not sealed ended with the last sealed one."""
    if domain.partition is None or not sealed:
        return query
    column = domain[domain.partition]

    def change(leaf: Leaf) -> Condition:
        return _ended(column, sealed, leaf) if leaf.column.names(column.name) else leaf

    return change_leaves(query, change)


def _check(column: Attribute, sealed: int, leaf: Leaf, negated: bool) -> None:
    if _beyond(_cells(column, leaf, negated), sealed, open_ended=_open_ended(leaf, negated)):
        raise QueryError(
            f"this names partitions of {column.name} that are not sealed yet; the last sealed one is "
            f"{column.label(min(sealed, column.declared) - 1)}",
            position=leaf.position,
        )


def _beyond(cells: NDArray[np.bool_], sealed: int, *, open_ended: bool) -> bool:
    """Whether a comparison that holds in these cells names one that is not sealed, or leaves none that is."""
    left = not cells[:sealed].any() if open_ended else cells[sealed:].any()
    return bool(cells.any() and left)


def _open_ended(leaf: Leaf, negated: bool) -> bool:
    """Whether a comparison means "and whatever comes": it names no partition as its last."""
    if isinstance(leaf, Holds):  # a year names its days; a day of the week comes again
        calls = {part.function for part in walk_terms(leaf.term) if isinstance(part, Call)}
        return not calls & {"year", "trunc day", "trunc week", "trunc month", "trunc quarter", "trunc year"}
    return negated is not (isinstance(leaf, Compare) and leaf.op in (Op.GT, Op.GE, Op.NE))


def _cells(column: Attribute, leaf: Leaf, negated: bool) -> NDArray[np.bool_]:
    """The cells of the column where a comparison holds for some value behind them.

    An order says nothing about `other`, which holds values at both ends; what is asked about it is for the whole
    condition to decide.
    """
    line = ValueLine(column)
    truth = leaf_truth(line, leaf)
    holds = (2 - truth if negated else truth) == YES
    cells = np.zeros(column.size, np.bool_)
    cells[: column.declared] = holds[: column.declared]
    named = () if column.ordered and not isinstance(leaf, IsNull) else line.strays
    for place, (_, cell) in enumerate(named, column.declared):
        cells[cell] |= holds[place]
    return cells


def _signed(condition: Condition, *, negated: bool) -> Iterator[tuple[Leaf, bool]]:
    """Every comparison, and whether an odd number of NOTs stands around it."""
    match condition:
        case And() | Or() | AtLeast():
            for part in condition.parts:
                yield from _signed(part, negated=negated)
        case Not():
            yield from _signed(condition.part, negated=not negated)
        case IsTrue():
            yield from _signed(condition.part, negated=negated)
        case Constant():
            return
        case _:
            yield condition, negated


def _sealed(column: Attribute, name: Name, sealed: int) -> Condition:
    """The condition that holds in the sealed partitions and nowhere else; `other` and NULL are never among them."""
    if isinstance(column, Categories):
        return In(column=name, literals=column.values[:sealed])
    return all_of(from_on(column, name, 0), before(column, name, min(sealed, column.declared)))


def _ended(column: Attribute, sealed: int, leaf: Leaf) -> Condition:
    """Edge cases: what cannot be mended by ending it earlier stays as it is."""
    try:
        cells = _cells(column, leaf, negated=False)
    except QueryError:  # something else is wrong with it
        return leaf
    if isinstance(leaf, IsNull) or not _beyond(cells, sealed, open_ended=_open_ended(leaf, False)):
        return leaf
    last = min(sealed, column.declared) - 1
    if isinstance(column, Categories):
        sealed_values = tuple(value for value, holds in zip(column.values[:sealed], cells, strict=False) if holds)
        return In(column=leaf.column, literals=sealed_values or column.values[last : last + 1], position=leaf.position)
    first = int(np.argmax(cells)) if cells[:sealed].any() else last
    low, high = from_on(column, leaf.column, first), before(column, leaf.column, last + 1)
    if isinstance(leaf, In):
        single = [replace(leaf, literals=(literal,)) for literal in leaf.literals]
        inside = [literal_test for literal_test in single if _cells(column, literal_test, negated=False)[:sealed].any()]
        return (
            replace(leaf, literals=tuple(literal_test.literals[0] for literal_test in inside))
            if inside
            else all_of(low, high)
        )
    return high if isinstance(leaf, Compare) and leaf.op in (Op.LT, Op.LE) else all_of(low, high)
