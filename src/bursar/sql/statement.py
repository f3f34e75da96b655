"""The SELECT statement of the syntax tree as a Query. The tree has passed the allow-list."""

from __future__ import annotations

import itertools
from dataclasses import replace

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.aggregates import read_item
from bursar.sql.allowed import Node, position
from bursar.sql.conditions import bare, read_column, read_condition, read_literal, read_name
from bursar.sql.query import TRUE, Item, Key, Name, Query, own_name


def read_statement(tree: Node) -> Query:
    """The question that a tree asks; goal, EXPLAIN and text are put in by the caller."""
    table, called = _table(tree)
    selected = [_item(node, called) for node in tree.expressions]
    aggregates = [item for item in selected if not isinstance(item, Key)]
    if not aggregates:
        raise QueryError("a question asks for at least one COUNT(*)", position=position(tree))
    where = tree.args.get("where")
    return Query(
        table=table,
        aggregates=_named(aggregates, selected),
        keys=_keys(tree, selected, called),
        where=TRUE if where is None else read_condition(where.this, called),
    )


def _table(tree: Node) -> tuple[Name, Name]:
    """The table, and the name by which conditions may call it: an alias hides the table's own name."""
    source = tree.args.get("from_")
    if source is None:
        raise QueryError("a question says FROM which table", position=position(tree))
    table = source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise QueryError("FROM takes the name of one table", position=position(source))
    alias = table.args.get("alias")
    name = read_name(table.this)
    return name, name if alias is None else read_name(alias.this)


def _item(node: Node, table: Name) -> Key | Item:
    alias = None
    if isinstance(node, exp.Alias):
        alias, node = str(node.args["alias"].name), node.this
    node = bare(node)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
        return Key(column=read_column(node, table), alias=alias, position=position(node))
    item = read_item(node, table)
    if item is None:
        raise QueryError("SELECT takes group columns and aggregates such as COUNT(*)", position=position(node))
    return replace(item, name=alias or "")


def _keys(tree: Node, selected: list[Key | Item], table: Name) -> tuple[Key, ...]:
    group = tree.args.get("group")
    grouped = [] if group is None else [_group(node, selected, table) for node in group.expressions]
    columns = [item for item in selected if isinstance(item, Key)]
    keys: list[Key] = []
    for key in columns:
        by = [item for item in grouped if item.column.agrees(key.column)]
        if not by:
            raise QueryError(f"{key.column.text} is selected but not in GROUP BY", position=key.position)
        keys.append(replace(key, through=by[0].through))
    for item in grouped:
        if not any(item.column.agrees(key.column) for key in keys):
            keys.append(item)
    return tuple(keys)


def _group(node: Node, selected: list[Key | Item], table: Name) -> Key:
    """What one item of GROUP BY means: a place in the select list, a column, or else an output name, in this order."""
    node = bare(node)
    place = position(node)
    if isinstance(node, exp.Literal) and not node.is_string:
        number = read_literal(node)
        if not isinstance(number, int) or not 1 <= number <= len(selected):
            raise QueryError(f"GROUP BY counts the selected columns from 1 to {len(selected)}", position=place)
        item = selected[number - 1]
        if not isinstance(item, Key):
            raise QueryError("GROUP BY cannot mean an aggregate", position=place)
        return replace(item, alias=None, position=place)
    name = read_column(node, table)
    columns = [item for item in selected if isinstance(item, Key)]
    if node.args.get("table") is None and not any(item.column.agrees(name) for item in columns):
        for item in columns:
            if item.alias is not None and name.names(item.alias):
                return Key(column=item.column, through=name, position=place)
    return Key(column=name, position=place)


def _named(aggregates: list[Item], selected: list[Key | Item]) -> tuple[Item, ...]:
    """The aggregates with a name each: count, count_2, ..., sum, ... where none was given."""
    taken: set[str] = set()
    for item in selected:
        name = (item.alias or item.column.text) if isinstance(item, Key) else item.name
        if name and name.casefold() in taken:
            raise QueryError(f"two selected columns are called {name}", position=item.position)
        taken.add(name.casefold())
    named: list[Item] = []
    for item in aggregates:
        base = own_name(item)
        numbered = (f"{base}_{number}" for number in itertools.count(2))
        free = next(name for name in itertools.chain([base], numbered) if name not in taken)
        named.append(item if item.name else replace(item, name=free))
        taken.add(named[-1].name.casefold())
    return tuple(named)
