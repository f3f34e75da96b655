"""Repairs of HAVING, ORDER BY and LIMIT, run on a statement whose other parts have been repaired."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.after import spoken_of
from bursar.sql.aggregates import read_item
from bursar.sql.allowed import FLAGS, Node, check_allowed
from bursar.sql.conditions import bare, case_parts, operands
from bursar.sql.query import Name
from bursar.sql.statement import read_statement


def to_where(tree: Node) -> None:
    """A condition on group columns alone goes from HAVING into WHERE."""
    having = tree.args.get("having")
    if having is None:
        return
    outputs = {item.alias.casefold() for item in tree.expressions if item.find(exp.AggFunc) is not None}
    parts = operands(having.this, exp.And)
    moved = [
        part
        for part in parts
        if part.find(exp.AggFunc) is None and not any(c.name.casefold() in outputs for c in part.find_all(exp.Column))
    ]
    _set_having(tree, [part for part in parts if part not in moved])
    if moved:
        where = tree.args.get("where")
        tree.set("where", exp.Where(this=exp.and_(*([] if where is None else [where.this]), *moved, copy=True)))


def plain_limit(tree: Node) -> None:
    """FETCH FIRST 3 ROWS ONLY is LIMIT 3."""
    limit = tree.args.get("limit")
    if isinstance(limit, exp.Fetch):
        tree.set("limit", exp.Limit(expression=limit.args["count"].copy()) if limit.args.get("count") else None)


def plain_order(tree: Node) -> None:
    """To order by a CASE of GROUPING is to order by the flag."""
    order = tree.args.get("order")
    for item in [] if order is None else order.expressions:
        flags = list(item.this.find_all(*FLAGS)) if isinstance(bare(item.this), exp.Case | exp.If) else []
        pairs, otherwise, _ = case_parts(bare(item.this)) if len(flags) == 1 else ([], None, None)
        numbers = [bare(then) for _, then in pairs] + [bare(otherwise)]
        if len(numbers) == 2 and all(isinstance(one, exp.Literal) and not one.is_string for one in numbers):
            if float(numbers[0].this) < float(numbers[1].this):
                item.set("desc", not item.args.get("desc"))
            item.set("this", flags[0].copy())


def also_selected(tree: Node) -> None:
    """An aggregate that groups are chosen or ordered by, or a flag that they are ordered by, is selected as well."""
    having, order = (tree.args.get(name) for name in ("having", "order"))
    chosen = [] if having is None else [part for part in spoken_of(having) if not isinstance(part, FLAGS)]
    known = [_item(_unnamed(item)) for item in tree.expressions]
    for part in (*chosen, *([] if order is None else spoken_of(order))):
        item = None if isinstance(part, exp.Column) else _item(part)
        if item is not None and item not in known:
            tree.append("expressions", part.copy())
            known.append(item)


def possible(tree: Node) -> None:
    """Of HAVING and ORDER BY, the parts that can be read; of LIMIT and OFFSET, a number with an order."""
    having, order, limit, offset = (tree.args.get(name) for name in ("having", "order", "limit", "offset"))
    for name in ("having", "order", "limit", "offset"):
        tree.set(name, None)
    if having is not None:
        parts = operands(having.this, exp.And)
        _set_having(tree, [p for p in parts if _reads(tree, "having", exp.Having(this=p.copy()))])
    if order is not None:
        items = [p for p in order.expressions if _reads(tree, "order", exp.Order(expressions=[p.copy()]))]
        tree.set("order", exp.Order(expressions=[item.copy() for item in items]) if items else None)
    cuts = {"limit": limit, "offset": offset}
    if any(clause is not None for clause in cuts.values()) and tree.args.get("group") is not None:
        if tree.args.get("order") is None:
            items = [_unnamed(item) for item in tree.expressions]
            first = next(item for item in items if item.find(exp.AggFunc) is not None and not isinstance(item, FLAGS))
            tree.set("order", exp.Order(expressions=[exp.Ordered(this=first.copy(), desc=True, nulls_first=False)]))
        for name, clause in cuts.items():
            if clause is not None and _reads(tree, name, clause):
                tree.set(name, clause.copy())


REPAIRS_AFTER: tuple[Callable[[Node], None], ...] = (
    plain_limit,
    plain_order,
    to_where,
    also_selected,
    possible,
)


def _unnamed(item: Node) -> Node:
    return bare(item.this if isinstance(item, exp.Alias) else item)


def _item(node: Node) -> object:
    if isinstance(node, FLAGS):
        return node
    try:
        check_allowed(node.copy(), [])
        return read_item(node, Name(text=""))
    except QueryError:
        return None


def _set_having(tree: Node, parts: list[Node]) -> None:
    tree.set("having", exp.Having(this=exp.and_(*parts, copy=True)) if parts else None)


def _reads(tree: Node, name: str, clause: Node) -> bool:
    """Whether the statement can be read with this clause in it."""
    copy = tree.copy()
    copy.set(name, clause.copy())
    try:
        check_allowed(copy, [])
        read_statement(copy)
    except QueryError:
        return False
    return True
