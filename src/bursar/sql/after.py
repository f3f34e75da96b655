"""What a question does with its answers: HAVING, ORDER BY, LIMIT and OFFSET. The tree has passed the allow-list."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.aggregates import ARITHMETIC, is_aggregate, read_item
from bursar.sql.allowed import FLAGS, Node, position
from bursar.sql.conditions import bare, read_column, read_condition, read_literal
from bursar.sql.groups import read_group
from bursar.sql.keys import read_flag
from bursar.sql.query import (
    TRUE,
    Between,
    Compare,
    Condition,
    Flag,
    Item,
    Key,
    Name,
    Op,
    Query,
    Sort,
    leaves,
)


def read_after(tree: Node, query: Query, selected: Sequence[Key | Item | Flag], table: Name) -> Query:
    """The question with the clauses behind GROUP BY."""
    having, order, limit, offset = (tree.args.get(name) for name in ("having", "order", "limit", "offset"))
    columns = Columns.of(query, selected, table)
    return replace(
        query,
        having=TRUE if having is None else read_having(having, columns),
        order=() if order is None else tuple(_sort(node, columns) for node in order.expressions),
        limit=None if limit is None else _cut(limit, order, "LIMIT", least=1),
        offset=0 if offset is None else _cut(offset, order, "OFFSET", least=0),
    )


@dataclass(frozen=True)
class Columns:
    """What the clauses can speak of: the selected columns in their order, and group columns that are not selected."""

    query: Query
    selected: tuple[str | int, ...]  # the name of an output, or the place of a key, or of a flag behind the keys
    table: Name

    @staticmethod
    def of(query: Query, selected: Sequence[Key | Item | Flag], table: Name) -> Columns:
        keys, flags, outputs = itertools.count(), itertools.count(len(query.keys)), iter(query.names)
        order: dict[type, Iterator[int]] = {Key: keys, Flag: flags}
        places = tuple(next(order[type(one)]) if type(one) in order else next(outputs) for one in selected)
        return Columns(query, places, table)

    def find(self, node: Node) -> str | int:
        """What is meant: a group column, then an output name, or an aggregate that is selected as well."""
        node, place = bare(node), position(node)
        if isinstance(node, exp.Column):
            return self._named(node)
        key = read_group(node, self.table)
        for number, one in enumerate(self.query.keys):
            if key is not None and key.same(one):
                return number
        flag = read_flag(node, self.query.keys, self.query.keys, self.table)
        for number, known in enumerate(self.query.flags, len(self.query.keys)):
            if flag is not None and flag.keys == known.keys:
                return number
        item = read_item(node, self.table)
        if item is None:
            raise QueryError("this can be a selected column, its name, or a selected aggregate", position=place)
        for output in self.query.aggregates:
            if replace(output, name="") == item:
                return output.name
        raise QueryError("this aggregate is not selected; the answers have what SELECT lists", position=place)

    def _named(self, node: Node) -> str | int:
        name = read_column(node, self.table)
        for number, key in enumerate(self.query.keys):
            if key.by is None and name.agrees(key.column):
                return number
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


def read_having(having: Node, columns: Columns) -> Condition:
    """A condition in which columns are names of outputs."""
    copy = having.copy()
    for part in spoken_of(copy):
        found = columns.find(part)
        if isinstance(found, int):
            where = "to leave groups out, leave their set out of GROUP BY"
            if found < len(columns.query.keys):
                where = f"a condition on {columns.query.keys[found].name} goes into WHERE"
            raise QueryError(f"HAVING is about aggregates; {where}", position=position(part))
        named = exp.to_identifier(found, quoted=True)
        named.meta["start"] = position(part)
        part.replace(exp.Column(this=named))
    condition = read_condition(copy.this, Name(text=""))
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
        found = columns.find(what)
    sort = Sort(descending=bool(node.args.get("desc")), nulls_first=bool(node.args.get("nulls_first")))
    return replace(sort, output=found) if isinstance(found, str) else replace(sort, key=found)


def _cut(clause: Node, order: Node, word: str, *, least: int) -> int:
    place = position(clause)
    number = read_literal(clause.expression)
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise QueryError(f"{word} takes a whole number from {least} on", position=place)
    if order is None:
        raise QueryError(f"{word} needs an ORDER BY that says which groups come first", position=place)
    return number
