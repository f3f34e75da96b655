"""The SELECT statement of the syntax tree as a Query. The tree has passed the allow-list."""

from __future__ import annotations

import itertools
from dataclasses import replace

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.aggregates import read_item
from bursar.sql.allowed import FLAGS, Node, position, reason
from bursar.sql.conditions import bare, read_condition, read_name
from bursar.sql.flatten import BESIDE
from bursar.sql.groups import read_flag, read_group, read_keys, read_total
from bursar.sql.query import TRUE, Flag, Item, Key, Name, Query, own_name
from bursar.sql.result_clauses import read_after


def read_statement(tree: Node) -> Query:
    """The question that a tree asks; goal, EXPLAIN and text are put in by the caller."""
    table, called = _table(tree)
    selected = [_item(node, called) for node in tree.expressions]
    aggregates = [item for item in selected if not isinstance(item, Key | Flag)]
    if not aggregates:
        raise QueryError("a question asks for at least one COUNT(*)", position=position(tree))
    where = tree.args.get("where")
    keys, sets = read_keys(tree, selected, called)
    for place, (node, item) in enumerate(zip(tree.expressions, selected, strict=True)):
        flag = read_flag(node.this if isinstance(node, exp.Alias) else node, keys, selected, called)
        if flag is not None:
            selected[place] = replace(flag, name=item.name or flag.name)
    query = Query(
        table=table,
        aggregates=_named(aggregates, selected),
        keys=keys,
        sets=sets,
        flags=tuple(item for item in selected if isinstance(item, Flag)),
        where=TRUE if where is None else read_condition(where.this, called),
        beside=tuple(tree.meta.get(BESIDE, ())),
    )
    return read_after(tree, query, selected, called)


def _table(tree: Node) -> tuple[Name, Name]:
    """The table, and the name by which conditions may call it: an alias hides the table's own name."""
    source = tree.args.get("from_")
    if source is None:
        raise QueryError("a question says FROM which table", position=max(position(tree), 0))
    table = source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise QueryError("FROM takes the name of one table", position=position(source))
    alias = table.args.get("alias")
    name = read_name(table.this)
    return name, name if alias is None else read_name(alias.this)


def _item(node: Node, table: Name) -> Key | Item | Flag:
    """A selected item; of a flag, the name that it is given: which keys it speaks of is known once all are read."""
    alias = None
    if isinstance(node, exp.Alias):
        alias, node = str(node.args["alias"].name), node.this
    node = bare(node)
    if isinstance(node, FLAGS):
        return Flag(name=alias or "", keys=(), position=position(node))
    key = read_total(node, table) or read_group(node, table)
    if key is not None:
        return replace(key, alias=alias)
    item = read_item(node, table)
    if item is None and isinstance(node, exp.Func | exp.IntDiv) and not isinstance(node, exp.Connector):
        raise QueryError(reason(node), position=position(node))
    if item is None:
        raise QueryError("SELECT takes group columns and aggregates such as COUNT(*)", position=position(node))
    return replace(item, name=alias or "")


def _named(aggregates: list[Item], selected: list[Key | Item | Flag]) -> tuple[Item, ...]:
    """The aggregates with a name each: count, count_2, ..., sum, ... where none was given."""
    taken: set[str] = set()
    for item in selected:
        name = item.name
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
