"""The join that BI tools write for the largest few series: as a choice of lines of the groups that are bought anyway.

SELECT month, region, COUNT(*) FROM t JOIN (SELECT region AS r, COUNT(*) AS m FROM t GROUP BY region ORDER BY m DESC
LIMIT 5) AS top ON region = r GROUP BY month, region keeps the groups of the five largest regions. A count or sum of a
region is the sum over its lines, so that nothing has to be bought for the choice.
"""

from __future__ import annotations

from sqlglot import exp

from bursar.sql.syntax import Node, bare, operands, plain_copy, without_alias

_GROUP, _SERIES = "size_of_group", "size_of_series"
_INNER = {"expressions", "from_", "where", "group", "order", "limit"}
_OUTER = {"expressions", "from_", "where", "group", "order", "limit", "offset", "joins", "kind", "hint"}


def series_limits(tree: Node) -> None:
    """Replace every such join; the tree keeps its meaning."""
    for select in list(tree.find_all(exp.Select)):
        joins = select.args.get("joins") or []
        chosen = _chosen(select, joins[0]) if len(joins) == 1 and _said(select) <= _OUTER else None
        if chosen is not None:
            select.args.clear()
            for name, value in chosen.args.items():
                select.set(name, value)


def _said(select: Node) -> set[str]:
    """The clauses that a SELECT has."""
    return {str(name) for name, value in select.args.items() if value}


def _chosen(select: Node, join: Node) -> Node | None:
    """The SELECT without its join, around its own groups; None where it is any other join."""
    inner = join.this.this if isinstance(join.this, exp.Subquery) else None
    plain = join.args.get("kind") in (None, "", "INNER") and not any(map(join.args.get, ("side", "method", "using")))
    if not isinstance(inner, exp.Select) or not plain or join.args.get("on") is None:
        return None
    if _said(inner) - _INNER or not _alike(select, inner):
        return None
    limit, order, group = (inner.args.get(name) for name in ("limit", "order", "group"))
    if limit is None or order is None or group is None or len(order.expressions) != 1:
        return None
    named = {item.alias.casefold(): without_alias(item) for item in inner.expressions if item.alias}
    sort = order.expressions[0]
    metric = named.get(bare(sort.this).name.casefold()) if isinstance(bare(sort.this), exp.Column) else bare(sort.this)
    keys = _keys(join.args["on"], named, select)
    if not isinstance(metric, exp.Count | exp.Sum) or isinstance(metric.this, exp.Distinct) or keys is None:
        return None
    grouped = {plain_copy(named.get(bare(part).name.casefold(), bare(part))) for part in group.expressions}
    unnamed = any(not item.alias for item in select.expressions if item.find(exp.AggFunc) is not None)
    names = [str(item.alias or item.name) for item in select.expressions]
    order_by, folded = _sorts(select, names), {name.casefold() for name in names}
    if unnamed or grouped != {plain_copy(key) for key in keys} or order_by is None:
        return None
    if not all(names) or len(folded) < len(names) or folded & {_GROUP, _SERIES}:
        return None
    chosen = _around(select, names, keys, metric, bool(sort.args.get("desc")), limit.expression)
    if order_by:
        chosen.set("order", exp.Order(expressions=order_by))
    for clause in ("limit", "offset"):
        if select.args.get(clause) is not None:
            chosen.set(clause, select.args[clause].copy())
    return chosen


def _around(select: Node, names: list[str], keys: list[Node], metric: Node, desc: bool, most: Node) -> Node:
    """Groups with the size of their series, and around them the choice of the first series up to the limit."""
    items = [
        exp.alias_(without_alias(item).copy(), name, quoted=True)
        for item, name in zip(select.expressions, names, strict=True)
    ]
    series = [exp.alias_(key.copy(), f"series_{place}", quoted=True) for place, key in enumerate(keys)]
    bought = exp.Select(
        expressions=[*items, *series, exp.alias_(metric.copy(), _GROUP, quoted=True)],
        from_=select.args["from_"].copy(),
        group=select.args["group"].copy(),
    )
    if select.args.get("where") is not None:
        bought.set("where", select.args["where"].copy())
    columns = [_column(f"series_{place}") for place in range(len(keys))]
    total = exp.Window(this=exp.Sum(this=_column(_GROUP)), partition_by=[column.copy() for column in columns])
    sized = exp.Select(expressions=[exp.Star(), exp.alias_(total, _SERIES, quoted=True)], from_=_from(bought, "groups"))
    sorts = [exp.Ordered(this=_column(_SERIES), desc=desc, nulls_first=False)]
    sorts += [exp.Ordered(this=column.copy(), desc=False, nulls_first=False) for column in columns]
    place = exp.Window(this=exp.DenseRank(), order=exp.Order(expressions=sorts))
    not_null = [exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null())) for column in columns]
    return exp.Select(
        expressions=[_column(name) for name in names],
        from_=_from(sized, "sized"),
        qualify=exp.Qualify(this=exp.and_(exp.LTE(this=place, expression=most.copy()), *not_null)),
    )


def _from(inner: Node, name: str) -> Node:
    return exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(name))))


def _column(name: str) -> Node:
    return exp.Column(this=exp.to_identifier(name, quoted=True))


def _sorts(select: Node, names: list[str]) -> list[Node] | None:
    """ORDER BY by the names of what is selected; None where it is by anything else."""
    order = select.args.get("order")
    sorts: list[Node] = []
    for sort in [] if order is None else order.expressions:
        node = bare(sort.this)
        called = str(node.name).casefold() if isinstance(node, exp.Column) else None
        matches = [
            name
            for place, (item, name) in enumerate(zip(select.expressions, names, strict=True), 1)
            if called == name.casefold()
            or plain_copy(node) == plain_copy(without_alias(item))
            or (isinstance(node, exp.Literal) and str(node.this) == str(place))
        ]
        if not matches:
            return None
        copy = sort.copy()
        copy.set("this", _column(matches[0]))
        sorts.append(copy)
    return sorts


def _alike(select: Node, inner: Node) -> bool:
    """Whether both read the same rows of one table, and the outer one groups them."""
    tables = [each.args["from_"].this for each in (select, inner) if each.args.get("from_") is not None]
    if len(tables) < 2 or not all(isinstance(table, exp.Table) and not table.args.get("alias") for table in tables):
        return False
    first, second = (each.args.get("where") for each in (select, inner))
    same = first == second or (None not in (first, second) and plain_copy(first.this) == plain_copy(second.this))
    return same and tables[0].name.casefold() == tables[1].name.casefold() and select.args.get("group") is not None


def _keys(on: Node, named: dict[str, Node], select: Node) -> list[Node] | None:
    """What the join compares with the keys of the inner SELECT, if that is the same and the outer one groups by it."""
    items = {item.alias.casefold(): without_alias(item) for item in select.expressions if item.alias}
    groups: list[Node] = []
    for part in select.args["group"].expressions:
        node = bare(part)
        place = int(str(node.this)) if isinstance(node, exp.Literal) and str(node.this).isdecimal() else 0
        if 0 < place <= len(select.expressions):
            node = without_alias(select.expressions[place - 1])
        groups += [plain_copy(node), plain_copy(items.get(node.name.casefold(), node))]
    keys: list[Node] = []
    for part in operands(on, exp.And):
        sides = [bare(part.this), bare(part.expression)] if isinstance(part, exp.EQ) else []
        pairs = [(sides[0], sides[1]), (sides[1], sides[0])] if sides else []
        key = next(
            (left for left, other in pairs if _same_key(left, other, named) and plain_copy(left) in groups), None
        )
        if key is None:
            return None
        keys.append(key)
    return keys or None


def _same_key(node: Node, other: Node, named: dict[str, Node]) -> bool:
    key = named.get(other.name.casefold()) if isinstance(other, exp.Column) else None
    return key is not None and bool(plain_copy(key) == plain_copy(node))
