"""Repairs of HAVING, ORDER BY and LIMIT, run on a statement whose other parts have been repaired."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.aggregates import read_item
from bursar.sql.allowed import COMPARISONS, FLAGS, Node, check_allowed
from bursar.sql.conditions import bare, case_parts, operands, read_condition, read_literal, unnamed
from bursar.sql.query import Literal, Name
from bursar.sql.result_clauses import holds, spoken_of
from bursar.sql.statement import read_statement


def to_where(tree: Node) -> None:
    """A condition on group columns alone goes from HAVING into WHERE, without the lines that put its column together.

    Edge cases: such lines have NULL there. Where that could pass, WHERE cannot say it, and the condition stays.
    """
    having, group = tree.args.get("having"), tree.args.get("group")
    if having is None:
        return
    parts = operands(having.this, exp.And)
    flags = [_flags(part, group) if _of_groups(part, tree) else None for part in parts]
    moved = [part for part, needed in zip(parts, flags, strict=True) if needed is not None]
    kept = [part for part, needed in zip(parts, flags, strict=True) if needed is None]
    _set_having(tree, [*kept, *(flag for needed in flags for flag in needed or ())])
    if moved:
        where = tree.args.get("where")
        tree.set("where", exp.Where(this=exp.and_(*([] if where is None else [where.this]), *moved, copy=True)))


def plain_limit(tree: Node) -> None:
    """FETCH FIRST 3 ROWS ONLY is LIMIT 3."""
    limit = tree.args.get("limit")
    if isinstance(limit, exp.Fetch):
        tree.set("limit", exp.Limit(expression=limit.args["count"].copy()) if limit.args.get("count") else None)


def plain_order(tree: Node) -> None:
    """To order by a CASE of the GROUPING of one key is to order by the flag, upwards or downwards."""
    order = tree.args.get("order")
    for item in [] if order is None else order.expressions:
        flags = list(item.this.find_all(*FLAGS)) if isinstance(bare(item.this), exp.Case | exp.If) else []
        if len(flags) == 1 and len(flags[0].expressions) == 1:
            apart, total = (_shown(bare(item.this), flag) for flag in (0, 1))
            if isinstance(apart, int | Decimal) and isinstance(total, int | Decimal) and apart != total:
                item.set("desc", bool(item.args.get("desc")) != (total < apart))
                item.set("this", flags[0].copy())


def also_selected(tree: Node) -> None:
    """An aggregate that groups are chosen or ordered by, or a flag that they are ordered by, is selected as well."""
    having, order = (tree.args.get(name) for name in ("having", "order"))
    chosen = [] if having is None else [part for part in spoken_of(having) if not isinstance(part, FLAGS)]
    known = [_item(unnamed(item)) for item in tree.expressions]
    for part in (*chosen, *([] if order is None else spoken_of(order))):
        item = None if isinstance(part, exp.Column) else _item(part)
        if item is not None and item not in known:
            tree.append("expressions", part.copy())
            known.append(item)


def possible(tree: Node) -> None:
    """Of HAVING and ORDER BY, the parts that can be read; of LIMIT and OFFSET, a number with an order.

    A condition on groups that could not go into WHERE stays: there is no such question without it.
    """
    having, order, limit, offset = (tree.args.get(name) for name in ("having", "order", "limit", "offset"))
    for name in ("having", "order", "limit", "offset"):
        tree.set(name, None)
    if having is not None:
        parts = operands(having.this, exp.And)
        kept = [p for p in parts if _of_groups(p, tree) or _reads(tree, "having", exp.Having(this=p.copy()))]
        _set_having(tree, kept)
    if order is not None:
        items = [p for p in order.expressions if _reads(tree, "order", exp.Order(expressions=[p.copy()]))]
        tree.set("order", exp.Order(expressions=[item.copy() for item in items]) if items else None)
    cuts = {"limit": limit, "offset": offset}
    if any(clause is not None for clause in cuts.values()) and tree.args.get("group") is not None:
        if tree.args.get("order") is None:
            items = [unnamed(item) for item in tree.expressions]
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


def _of_groups(part: Node, tree: Node) -> bool:
    """Whether a condition is on group columns alone."""
    outputs = {item.alias.casefold() for item in tree.expressions if item.find(exp.AggFunc) is not None}
    named = {column.name.casefold() for column in part.find_all(exp.Column)}
    return part.find(exp.AggFunc) is None and not named & outputs


def _flags(part: Node, group: Node) -> list[Node] | None:
    """Conditions on GROUPING under which a condition on group columns says in WHERE what it says in HAVING, if any."""
    columns = list(part.find_all(exp.Column))
    totals = group is not None and group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None
    if not totals or all(column in group.expressions for column in columns):
        return []
    if any(column != columns[0] for column in columns) or not _fails_null(part):
        return None
    return [exp.EQ(this=exp.Grouping(expressions=[columns[0].copy()]), expression=exp.Literal.number(0))]


def _fails_null(part: Node) -> bool:
    """Whether a condition on one column is unknown where that is NULL."""
    part = bare(part)
    if isinstance(part, exp.And | exp.Or):
        return _fails_null(part.this) and _fails_null(part.expression)
    if isinstance(part, exp.Not):
        return _fails_null(part.this)
    return isinstance(part, (*COMPARISONS, exp.Between, exp.In, exp.Like, exp.ILike)) and isinstance(
        bare(part.this), exp.Column
    )


def _shown(case: Node, number: int) -> Literal | None:
    """What a CASE gives where the flag in it is this number; None where that depends on more, or is no constant."""
    known = case.transform(lambda node: exp.Literal.number(number) if isinstance(node, FLAGS) else node)
    pairs, otherwise, subject = case_parts(known)
    tests = [when if subject is None else exp.EQ(this=subject.copy(), expression=when.copy()) for when, _ in pairs]
    if any(test.find(exp.Column) is not None for test in tests):
        return None
    try:
        held = [holds(read_condition(test, Name(text="")), (), ()) for test in tests]
        return read_literal([*(then for holding, (_, then) in zip(held, pairs, strict=True) if holding), otherwise][0])
    except QueryError:
        return None


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
