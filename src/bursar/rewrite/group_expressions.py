"""Repairs of what rows are grouped by, where it has a form of its own."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.allowed import Node, check_allowed
from bursar.sql.conditions import bare
from bursar.sql.groups import read_group
from bursar.sql.query import Name
from bursar.rewrite.periods import named_periods

_TRUTHS = (exp.Predicate, exp.And, exp.Or, exp.Not)


def plain_casts(tree: Node) -> None:
    """A cast of what rows are grouped by changes nothing, and x::DATE is x; TRUNC(x / 10) is x // 10."""
    for node in list(tree.find_all(exp.Cast, exp.TryCast, exp.Trunc)):
        inner = bare(node.this)
        if isinstance(node, exp.Trunc) and isinstance(inner, exp.Div):
            node.replace(exp.IntDiv(this=inner.this.copy(), expression=inner.expression.copy()))
        elif not isinstance(node, exp.Trunc):
            day = isinstance(inner, exp.Column) and node.to.this == exp.DataType.Type.DATE
            if day or (_is_key(node, tree) and groups(inner)):
                node.replace(inner.copy())


def truths(tree: Node) -> None:
    """A condition that rows are grouped by is a CASE of TRUE and FALSE."""
    group = tree.args.get("group")
    for item in [*tree.expressions, *([] if group is None else group.expressions)]:
        node = item.this if isinstance(item, exp.Alias) else item
        inner = bare(node)
        if isinstance(inner, _TRUTHS) and inner.find(exp.AggFunc) is None:
            yes = exp.If(this=inner.copy(), true=exp.true())
            no = exp.If(this=exp.Not(this=exp.paren(inner)), true=exp.false())
            node.replace(exp.Case(ifs=[yes, no]))


def named_nulls(tree: Node) -> None:
    """COALESCE(x, 'all') as a group is x; beside ROLLUP and its like, with a name for the total."""
    group = tree.args.get("group")
    totals = group is not None and group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None
    for node in list(tree.find_all(exp.Coalesce)):
        column, default = bare(node.this), [bare(one) for one in node.expressions]
        if not isinstance(column, exp.Column) or not all(isinstance(one, exp.Literal) for one in default):
            continue
        if totals and node.find_ancestor(exp.Group) is None and _is_key(node, tree):
            flag = exp.EQ(this=exp.Grouping(expressions=[column.copy()]), expression=exp.Literal.number(1))
            named = exp.If(this=flag, true=default[0].copy())
            node.replace(exp.Case(ifs=[named], default=column.copy()))
        elif _is_key(node, tree):
            node.replace(column.copy())


REPAIRS_OF_GROUPS: tuple[Callable[[Node], None], ...] = (named_periods, plain_casts, truths, named_nulls)


def groups(node: Node) -> bool:
    """Whether rows can be grouped by this."""
    try:
        check_allowed(node.copy(), [])
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            return all(groups(part) for part in node.expressions)
        return read_group(node, Name(text="")) is not None
    except QueryError:
        return False


def _is_key(node: Node, tree: Node) -> bool:
    """Whether this is selected, with a name or without, or stands in GROUP BY."""
    around = node.parent
    while isinstance(around, exp.Paren | exp.Alias):
        around = around.parent
    return around is tree or node.find_ancestor(exp.Group) is not None
