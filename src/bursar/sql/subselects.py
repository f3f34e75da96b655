"""Scalar sub-selects over the same table, as aggregates of the SELECT around them: one purchase answers both.

`COUNT(*) / (SELECT COUNT(*) FROM t)` by group is `COUNT(*) / SUM(COUNT(*)) OVER ()`, since the groups have all rows in
them; without groups, each side keeps its condition in a FILTER. What is left is refused where it is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from bursar.sql.syntax import Node

_OF_ROWS = (exp.Count, exp.Sum, exp.Avg)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren, exp.Cast, exp.Literal, exp.DataType, exp.Alias)
_CLAUSES = ("group", "having", "qualify", "distinct", "limit", "offset", "joins", "with_", "order", "windows")


def scalar_subselects(tree: Node) -> None:
    """Replace every scalar sub-select that can be; the tree keeps its meaning."""
    for select in list(tree.find_all(exp.Select)):
        inner = list(_scalars(select))
        if not inner:
            continue
        aggregated = any(node.parent_select is select for node in select.find_all(exp.AggFunc))
        if select.args.get("from_") is None:
            if len({_source(sub) for sub in inner}) == 1 and not aggregated and select.args.get("where") is None:
                select.set("from_", inner[0].this.args["from_"].copy())
                _ungrouped(select, inner)
        elif any(_source(sub) != _source_of(select) for sub in inner):
            continue
        elif select.args.get("group") is not None:
            _grouped(select, inner)
        elif aggregated:  # else there is a line for each row
            _ungrouped(select, inner)


def scalars_of_lines(tree: Node) -> None:
    """WHERE n > (SELECT AVG(n) FROM g), of a SELECT that reads the lines of g, compares with their AVG(n) OVER ().

    The total stands in a SELECT of its own around g, so that no condition chooses lines before it is known.
    """
    named = {cte.alias_or_name.casefold() for cte in tree.find_all(exp.CTE)}
    for select in list(tree.find_all(exp.Select)):
        source = select.args.get("from_")
        table = None if source is None else source.this
        if not isinstance(table, exp.Table) or table.name.casefold() not in named or select.args.get("joins"):
            continue
        clauses = [select.args[name] for name in ("where", "having", "qualify") if select.args.get(name) is not None]
        scalars = [
            sub
            for part in (*select.expressions, *clauses)
            for sub in part.find_all(exp.Subquery)
            if sub.parent_select is select
            and _is_scalar(sub.this)
            and sub.this.args.get("where") is None
            and sub.this.find(exp.Count) is None  # which groups occur is a question of its own
        ]
        same = [sub for sub in scalars if sub.this.args["from_"].this.name.casefold() == table.name.casefold()]
        grouped = select.args.get("group") is not None or any(
            node.parent_select is select for node in select.find_all(exp.AggFunc)
        )
        if not same or len(same) < len(scalars) or grouped:
            continue
        totals: list[Node] = [exp.Star()]
        for number, sub in enumerate(same):
            holder = exp.Paren(this=_value(sub))
            for node in list(holder.find_all(exp.AggFunc)):
                node.replace(exp.Window(this=node.copy()))
            name = f"of_all_{number + 1}"
            totals.append(exp.alias_(holder, name, quoted=True))
            sub.replace(exp.Column(this=exp.to_identifier(name, quoted=True)))
        alias = table.alias_or_name
        bare_table = table.copy()
        bare_table.set("alias", None)
        inner = exp.Select(expressions=totals, from_=exp.From(this=bare_table))
        source.set("this", exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(alias))))


def _scalars(select: Node) -> Iterator[Node]:
    """The sub-selects of a select list and of HAVING that are arithmetic of aggregates of one table's rows."""
    having = select.args.get("having")
    for part in [*select.expressions, *([] if having is None else [having.this])]:
        for sub in part.find_all(exp.Subquery):
            if sub.parent_select is select and not sub.args.get("alias") and _is_scalar(sub.this):
                yield sub


def _is_scalar(inner: Node) -> bool:
    if not isinstance(inner, exp.Select) or len(inner.expressions) != 1 or inner.args.get("from_") is None:
        return False
    if any(inner.args.get(name) for name in _CLAUSES) or not isinstance(inner.args["from_"].this, exp.Table):
        return False
    nodes = inner.expressions[0].walk(prune=lambda node: isinstance(node, exp.AggFunc))
    return all(isinstance(node, (*_OF_ROWS, *_ARITHMETIC, exp.Identifier)) for node in nodes) and not any(
        isinstance(node.this, exp.Distinct) for node in inner.expressions[0].find_all(exp.AggFunc)
    )


def _source(sub: Node) -> str:
    return _source_of(sub.this)


def _source_of(select: Node) -> str:
    """The table that a SELECT reads, under the name that its columns may be called by."""
    return str(select.args["from_"].sql("duckdb")).casefold()


def _ungrouped(select: Node, inner: list[Node]) -> None:
    """One line: what was WHERE of one side is FILTER of its aggregates."""
    where = select.args.get("where")
    if any(sub.find_ancestor(exp.Having) for sub in inner) or select.args.get("having") is not None:
        return
    if where is not None:
        aggregates = [node for item in select.expressions for node in item.find_all(exp.AggFunc)]
        for node in aggregates:
            if node.parent_select is select:
                _filter(node, where.this)
        select.set("where", None)
    for sub in inner:
        value, condition = _value(sub), sub.this.args.get("where")
        if condition is not None:
            holder = exp.Paren(this=value)
            for node in list(value.find_all(exp.AggFunc)):
                _filter(node, condition.this)
            value = holder.this
        sub.replace(exp.Paren(this=value))


def _filter(node: Node, condition: Node) -> None:
    if isinstance(node.parent, exp.Filter):
        both = exp.and_(node.parent.expression.this.copy(), condition.copy())
        node.parent.set("expression", exp.Where(this=both))
    else:
        node.replace(exp.Filter(this=node.copy(), expression=exp.Where(this=condition.copy())))


def _grouped(select: Node, inner: list[Node]) -> None:
    """By group: an aggregate of all rows is that of the groups together, if they are chosen by the same WHERE."""
    group, having, where = (select.args.get(name) for name in ("group", "having", "where"))
    plain = group.args.keys() <= {"expressions"} or not any(
        group.args.get(name) for name in ("rollup", "cube", "grouping_sets", "totals", "all")
    )
    same = all(sub.this.args.get("where") == where for sub in inner)
    chosen = having is not None and not any(sub.find_ancestor(exp.Having) for sub in inner)
    windows = any(item.find(exp.Window) for item in select.expressions) or select.args.get("qualify") is not None
    if not plain or not same or chosen or (having is not None and windows):
        return
    for sub in inner:
        holder = exp.Paren(this=_value(sub))
        for node in list(holder.find_all(exp.AggFunc)):
            node.replace(_over_groups(node))
        sub.replace(holder)
    if having is not None:  # after the totals are known
        select.set("qualify", exp.Qualify(this=having.this.copy()))
        select.set("having", None)


def _over_groups(node: Node) -> Node:
    """An aggregate of all rows, from those of the groups."""
    if isinstance(node, exp.Avg):
        total, number = (_over_groups(kind(this=node.this.copy())) for kind in (exp.Sum, exp.Count))
        somebody = exp.Nullif(this=number, expression=exp.Literal.number(0))
        return exp.Paren(this=exp.Div(this=total, expression=somebody))
    return exp.Window(this=exp.Sum(this=node.copy()))


def _value(sub: Node) -> Node:
    item = sub.this.expressions[0]
    value: Node = (item.this if isinstance(item, exp.Alias) else item).copy()
    return value
