"""What a question does with its answers: HAVING, ORDER BY, LIMIT and OFFSET. The tree has passed the allow-list."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.aggregates import ARITHMETIC, is_aggregate, read_item
from bursar.sql.allowed import FLAGS, Node, position
from bursar.sql.conditions import bare, operands, read_column, read_condition, read_literal
from bursar.sql.flatten import COLUMN
from bursar.sql.groups import read_flag, read_group, read_total
from bursar.sql.query import (
    And,
    AtLeast,
    Between,
    Compare,
    Condition,
    Constant,
    Flag,
    In,
    IsTrue,
    Item,
    Key,
    Leaf,
    Name,
    Not,
    Op,
    Or,
    Query,
    Sort,
    alike,
    all_of,
    flag_name,
    leaves,
)

Sets = tuple[tuple[int, ...], ...]


def read_after(tree: Node, query: Query, selected: Sequence[Key | Item | Flag], table: Name) -> Query:
    """The question with the clauses behind GROUP BY."""
    having, order, limit, offset = (tree.args.get(name) for name in ("having", "order", "limit", "offset"))
    columns = Columns.of(query, selected, table)
    parts = [] if having is None else operands(having.this, exp.And)
    flagged = [any(columns.flag(node) is not None for node in spoken_of(part)) for part in parts]
    sets, unasked = _chosen(list(itertools.compress(parts, flagged)), columns)
    return replace(
        query,
        sets=sets,
        unasked=unasked,
        having=all_of(*(_having(part, columns) for part, flags in zip(parts, flagged, strict=True) if not flags)),
        order=() if order is None else tuple(_sort(node, columns) for node in order.expressions),
        limit=None if limit is None else _cut(limit, order, "LIMIT", least=1),
        offset=0 if offset is None else _cut(offset, order, "OFFSET", least=0),
    )


@dataclass(frozen=True)
class Columns:
    """What the clauses can speak of: the selected columns in their order, and group columns that are not selected."""

    query: Query
    selected: tuple[str | int, ...]  # the name of an output, or the place of a key, or of a flag behind the keys
    aliases: dict[str, str | int]  # the same by the names that the question itself gives, in lower case
    table: Name

    @staticmethod
    def of(query: Query, selected: Sequence[Key | Item | Flag], table: Name) -> Columns:
        keys, flags, outputs = itertools.count(), itertools.count(len(query.keys)), iter(query.names)
        order: dict[type, Iterator[int]] = {Key: keys, Flag: flags}
        places = tuple(next(order[type(one)]) if type(one) in order else next(outputs) for one in selected)
        given = [one.alias if isinstance(one, Key) else one.name for one in selected]
        own = {flag_name(query.keys, flag.keys) for flag in query.flags}
        aliases = {
            name.casefold(): found
            for name, found, one in zip(given, places, selected, strict=True)
            if name and not (isinstance(one, Flag) and name in own)
        }
        return Columns(query, places, aliases, table)

    def find(self, node: Node) -> str | int:
        """What is meant: a group column, then an output name, or an aggregate that is selected as well."""
        node, place = bare(node), position(node)
        if isinstance(node, exp.Column):
            return self._named(node)
        key = read_total(node, self.table) or read_group(node, self.table)
        same = [] if key is None else self._same(key)
        if same:
            return same[0]
        if key is not None and key.total is not None:
            raise QueryError("this CASE is not selected; the answers have what SELECT lists", position=place)
        flag = read_flag(node, self.query.keys, self.query.keys, self.table)
        for number, known in enumerate(self.query.flags, len(self.query.keys)):
            if flag is not None and flag.keys == known.keys:
                return number
        if flag is not None:
            raise QueryError("this GROUPING is not selected; the answers have what SELECT lists", position=place)
        item = read_item(node, self.table)
        if item is None:
            raise QueryError("this can be a selected column, its name, or a selected aggregate", position=place)
        for output in self.query.aggregates:
            if alike(replace(output, name=""), item):
                return output.name
        raise QueryError("this aggregate is not selected; the answers have what SELECT lists", position=place)

    def ordered_by(self, node: Node) -> str | int:
        """What is meant in ORDER BY: a column by the name that the question gives it, before anything else."""
        node = bare(node)
        found = self._alias(node) if isinstance(node, exp.Column) else None
        return self.find(node) if found is None else found

    def _alias(self, node: Node) -> str | int | None:
        """What the question calls by this name; None for a name that is that of a column."""
        if node.args.get("table") is not None or COLUMN in node.meta:
            return None
        return self.aliases.get(read_column(node, self.table).text.casefold())

    def _same(self, key: Key) -> list[int]:
        """The places of a key, those with the same name for the total first; with another name it is another key."""
        places = [number for number, one in enumerate(self.query.keys) if key.same(one)]
        named = [number for number in places if self.query.keys[number].total == key.total]
        return named if named or key.total is not None else places

    def flag(self, node: Node) -> Flag | None:
        """The flag that is meant, selected or not; None where something else is."""
        node, keys = bare(node), self.query.keys
        if not isinstance(node, exp.Column):
            return read_flag(node, keys, keys, self.table)
        place = self._named(node)
        return self.query.flags[place - len(keys)] if isinstance(place, int) and place >= len(keys) else None

    def unnamed(self, node: Node, place: int) -> bool:
        """Whether a key whose total has a name is meant by itself, without that name."""
        if place >= len(self.query.keys) or self.query.keys[place].total is None or isinstance(node, exp.Literal):
            return False
        if isinstance(node, exp.Column):
            return self._alias(node) != place
        return read_total(node, self.table) is None

    def _named(self, node: Node) -> str | int:
        name = read_column(node, self.table)
        same = self._same(Key(column=name))
        if same:
            return same[0]
        for number, key in enumerate(self.query.keys):
            if key.alias is not None and name.names(key.alias):
                return number
        for number, flag in enumerate(self.query.flags, len(self.query.keys)):
            if name.names(flag.name):
                return number
        for output in self.query.names:
            if name.names(output):
                return output
        raise QueryError(f"{name.text} is not selected; the answers have what SELECT lists", position=position(node))


def _chosen(parts: list[Node], columns: Columns) -> tuple[Sets, Sets]:
    """The sets of groups that conditions on flags leave, and those that they do not."""
    query = columns.query
    if not parts:
        return query.sets, ()
    flags: list[Flag] = []

    def name(node: Node) -> str:
        flag = columns.flag(node)
        if flag is None:
            raise QueryError(
                "GROUPING chooses among sets of groups; what is beside it is joined by AND",
                position=position(node),
            )
        flags.append(flag)
        return str(len(flags) - 1)

    condition = all_of(*(_spoken(part, name) for part in parts))
    every = query.sets or (tuple(range(len(query.keys))),)
    kept = tuple(one for one in every if holds(condition, flags, one))
    if not kept:
        raise QueryError("no set of groups in GROUP BY has such a GROUPING", position=position(parts[0]))
    return kept if len(kept) < len(every) else query.sets, tuple(one for one in every if one not in kept)


def _spoken(condition: Node, name: Callable[[Node], str]) -> Condition:
    """A condition in which what it speaks of is a column of the given name."""
    copy = exp.Having(this=condition.copy())
    for part in spoken_of(copy):
        named = exp.to_identifier(name(part), quoted=True)
        named.meta["start"] = position(part)
        part.replace(exp.Column(this=named))
    return read_condition(copy.this, Name(text=""))


def _having(part: Node, columns: Columns) -> Condition:
    """A condition in which columns are names of outputs."""

    def name(node: Node) -> str:
        found = columns.find(node)
        if isinstance(found, int):
            key = columns.query.keys[found]
            raise QueryError(
                f"HAVING is about aggregates; a condition on {key.name} goes into WHERE", position=position(node)
            )
        return found

    condition = _spoken(part, name)
    for leaf in leaves(condition):
        if not isinstance(leaf, Compare | Between):
            raise QueryError(
                "HAVING compares an aggregate with a number, by <, <=, >, >= or BETWEEN", position=leaf.position
            )
        if isinstance(leaf, Compare) and leaf.op in (Op.EQ, Op.NE):
            raise QueryError(
                "a number with an error is hardly ever equal to another; compare by <, <=, >, >= or BETWEEN",
                position=leaf.position,
            )
        literals = (leaf.literal,) if isinstance(leaf, Compare) else (leaf.low, leaf.high)
        if any(isinstance(one, bool) or not isinstance(one, int | Decimal) for one in literals):
            raise QueryError("HAVING compares an aggregate with a number", position=leaf.position)
    return condition


def spoken_of(tree: Node) -> list[Node]:
    """The outermost aggregates, formulas and columns."""
    return [node for node in tree.walk(prune=_whole) if _whole(node)]


def _whole(node: Node) -> bool:
    if isinstance(node, (exp.Column, *FLAGS)) or is_aggregate(node):
        return True
    return isinstance(node, ARITHMETIC) and node.find(exp.AggFunc) is not None


def _sort(node: Node, columns: Columns) -> Sort:
    what, place = bare(node.this), position(node)
    if isinstance(what, exp.Literal) and not what.is_string:
        number = read_literal(what)
        if not isinstance(number, int) or not 1 <= number <= len(columns.selected):
            raise QueryError(f"ORDER BY counts the selected columns from 1 to {len(columns.selected)}", position=place)
        found = columns.selected[number - 1]
    else:
        found = columns.ordered_by(what)
    sort = Sort(descending=bool(node.args.get("desc")), nulls_first=bool(node.args.get("nulls_first")))
    if isinstance(found, str):
        return replace(sort, output=found)
    return replace(sort, key=found, unnamed=columns.unnamed(what, found))


def _cut(clause: Node, order: Node, word: str, *, least: int) -> int:
    place = position(clause)
    number = read_literal(clause.expression)
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise QueryError(f"{word} takes a whole number from {least} on", position=place)
    if order is None:
        raise QueryError(f"{word} needs an ORDER BY that says which groups come first", position=place)
    return number


_OPS = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


def holds(condition: Condition, flags: Sequence[Flag], grouped: Sequence[int]) -> bool:
    """Whether a condition, whose columns are places of flags, holds for the set that groups by the keys given."""
    match condition:
        case And(parts=parts):
            return all(holds(part, flags, grouped) for part in parts)
        case Or(parts=parts):
            return any(holds(part, flags, grouped) for part in parts)
        case Not(part=part):
            return not holds(part, flags, grouped)
        case IsTrue(part=part):
            return holds(part, flags, grouped)
        case AtLeast(count=count, parts=parts):
            return sum(holds(part, flags, grouped) for part in parts) >= count
        case Constant(value=value):
            return value
    return _compared(condition, flags[int(condition.column.text)].number(grouped))


def _compared(leaf: Leaf, number: int) -> bool:
    match leaf:
        case Compare(literal=int() | Decimal() as literal, op=op):
            return bool(_OPS[op](number, literal))
        case Between(low=int() | Decimal() as low, high=int() | Decimal() as high):
            return low <= number <= high
        case In(literals=literals) if all(isinstance(literal, int | Decimal) for literal in literals):
            return number in literals
    raise QueryError("GROUPING is a number, and is compared with numbers", position=leaf.position)
