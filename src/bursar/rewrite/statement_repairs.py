"""From a statement that was refused towards one that is accepted: an ordered tuple of small repairs of its tree.

A repair keeps what can be asked and drops what cannot; it never invents a condition. What comes out is only ever
shown to a person, and only after it has been read like any other question.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from bursar.errors import QueryError
from bursar.rewrite.conditions import REPAIRS_OF_CONDITIONS, named_periods, ranges
from bursar.sql.aggregates import is_aggregate, read_item
from bursar.sql.conditions import read_condition
from bursar.sql.groups import read_group, read_total
from bursar.sql.literals import read_literal
from bursar.sql.names import Literal, Name
from bursar.sql.parse import holds, outermost_terms, read_statement
from bursar.sql.syntax import (
    ALLOWED,
    COMPARISONS,
    FLAGS,
    Node,
    bare,
    case_parts,
    check_allowed,
    operands,
    without_alias,
)

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
        column, default = bare(node.this), [bare(part) for part in node.expressions]
        if not isinstance(column, exp.Column) or not all(isinstance(part, exp.Literal) for part in default):
            continue
        if totals and node.find_ancestor(exp.Group) is None and _is_key(node, tree):
            flag = exp.EQ(this=exp.Grouping(expressions=[column.copy()]), expression=exp.Literal.number(1))
            named = exp.If(this=flag, true=default[0].copy())
            node.replace(exp.Case(ifs=[named], default=column.copy()))
        elif _is_key(node, tree):
            node.replace(column.copy())


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


_MEANING = {"joins", "laterals", "with_", "into", "from_"}  # without these it would be a question about other rows


def repaired(tree: Node) -> Node:
    """A copy of the tree after all repairs; it may still be refused."""
    copy = tree.copy()
    if isinstance(copy, exp.Select):
        for repair in REPAIRS:
            repair(copy)
    return copy


def drop_clauses(tree: Node) -> None:
    """QUALIFY, DISTINCT and the like: they shape the answers and do not change the counts."""
    for name in set(tree.args) - ALLOWED[exp.Select] - _MEANING:
        tree.set(name, None)


def plain_table(tree: Node) -> None:
    """main.people is people, and a sample of people is people."""
    for table in tree.find_all(exp.Table):
        for part in ("db", "catalog", "sample"):
            table.set(part, None)


def plain_groups(tree: Node) -> None:
    """What cannot be grouped by becomes the columns in it; ALL and numbers, the columns that are selected."""
    group = tree.args.get("group")
    if group is not None:
        gone = {item.alias.casefold() for item in tree.expressions if item.alias and not _passes(without_alias(item))}
        parts = [part for part in group.expressions if not isinstance(bare(part), exp.Literal)]
        parts = [part for part in parts if not (isinstance(part, exp.Column) and part.name.casefold() in gone)]
        columns = [[part] if groups(part) else list(part.find_all(exp.Column)) for part in parts]
        copies = [part.copy() for parts in columns for part in parts]
        tree.set(
            "group", exp.Group(expressions=[column for i, column in enumerate(copies) if column not in copies[:i]])
        )


def standard_functions(tree: Node) -> None:
    """MEAN is AVG, PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x) a quantile; of the ends, a quantile near by is left."""
    for node in list(tree.find_all(exp.Anonymous, exp.WithinGroup, exp.Min, exp.Max)):
        match node:
            case exp.Anonymous() if node.name.upper() == "MEAN" and len(node.expressions) == 1:
                node.replace(exp.Avg(this=node.expressions[0].copy()))
            case exp.WithinGroup() if isinstance(node.this, exp.PercentileCont | exp.PercentileDisc):
                ordered = node.expression.find(exp.Ordered)
                node.replace(type(node.this)(this=ordered.this.copy(), expression=node.this.this.copy()))
            case exp.Min() | exp.Max() if not node.expressions:
                share = exp.Literal.number("0.05" if isinstance(node, exp.Min) else "0.95")
                node.replace(exp.PercentileCont(this=node.this.copy(), expression=share))


def counted_truths(tree: Node) -> None:
    """BOOL_OR, whether a condition holds for any row, is a single row's matter; for how many it holds can be asked."""
    for node in list(tree.find_all(exp.LogicalOr, exp.LogicalAnd, exp.Anonymous)):
        every = isinstance(node, exp.Anonymous) and node.name.upper() == "EVERY" and len(node.expressions) == 1
        if every or not isinstance(node, exp.Anonymous):
            test = bare(node.expressions[0] if every else node.this)
            test = bare(test.this) if isinstance(test, exp.Cast) else test
            some = isinstance(node, exp.LogicalOr)
            node.replace(exp.CountIf(this=test.copy() if some else exp.Not(this=exp.paren(test.copy()))))


def listed_quantiles(tree: Node) -> None:
    """QUANTILE_CONT(x, [0.25, 0.5]) is a column for each; so are quarters, APPROX_QUANTILES(x, 4), but for the ends."""
    items: list[Node] = []
    for item in tree.expressions:
        node = bare(without_alias(item))
        ordered = None
        if isinstance(node, exp.WithinGroup):
            node, ordered = node.this, node.expression.find(exp.Ordered)
        shares: list[Node] = []
        if isinstance(node, exp.ApproxQuantiles) and str(node.expression.name).isdecimal():
            parts = min(int(node.expression.name), MOST_QUANTILES)
            shares = [exp.Literal.number(f"{Decimal(part) / parts:.6f}".rstrip("0")) for part in range(1, parts)]
        elif isinstance(node, exp.PercentileCont | exp.PercentileDisc):
            listed = bare(node.this if ordered is not None else node.expression)
            shares = list(listed.expressions) if isinstance(listed, exp.Array) else []
        of = node.this if ordered is None else ordered.this
        kind = exp.PercentileDisc if isinstance(node, exp.PercentileDisc) else exp.PercentileCont
        quantiles = [kind(this=of.copy(), expression=share.copy()) for share in shares[:MOST_QUANTILES]]
        name = item.alias or "quantile"
        items += [exp.alias_(each, f"{name}_{place}") for place, each in enumerate(quantiles, 1)] or [item]
    tree.set("expressions", items)


MOST_QUANTILES = 16
"""Most columns that a list of quantiles becomes."""


def most_frequent(tree: Node) -> None:
    """APPROX_TOP_COUNT(x, 5), the values that most rows have, is a grouped count in descending order."""
    if len(tree.expressions) != 1 or tree.args.get("group") is not None:
        return
    node = bare(without_alias(tree.expressions[0]))
    named = isinstance(node, exp.Anonymous) and node.name.upper() in ("APPROX_TOP_COUNT", "APPROX_TOP_K")
    parts = [bare(part) for part in node.expressions] if named else []
    if len(parts) == 2 and isinstance(parts[0], exp.Column) and isinstance(parts[1], exp.Literal):
        count = exp.Count(this=exp.Star(), big_int=True)
        tree.set("expressions", [parts[0].copy(), count])
        tree.set("group", exp.Group(expressions=[parts[0].copy()]))
        tree.set("order", exp.Order(expressions=[exp.Ordered(this=count.copy(), desc=True)]))
        tree.set("limit", exp.Limit(expression=parts[1].copy()))


def unrounded(tree: Node) -> None:
    """ROUND, and a cast, of what is made of aggregates is that itself."""
    for node in list(tree.find_all(exp.Round, exp.Cast, exp.TryCast)):
        if node.find(exp.AggFunc) is not None and node.parent is not None:
            node.replace(node.this)


def used_names(tree: Node) -> None:
    """The name of an aggregate in another selected item is that aggregate."""
    aliases = [item for item in tree.expressions if item.alias and is_aggregate(without_alias(item))]
    named = {item.alias.casefold(): item.this for item in aliases}
    for item in tree.expressions:
        for column in [] if isinstance(without_alias(item), exp.Column) else list(item.find_all(exp.Column)):
            if column.name.casefold() in named and column.find_ancestor(exp.AggFunc) is None:
                column.replace(named[column.name.casefold()].copy())


def factors(tree: Node) -> None:
    """SUM(2 * x) is 2 * SUM(x), SUM(2) is 2 * COUNT(*), and a cast of what is added up changes nothing."""
    for node in list(tree.find_all(exp.Sum, exp.Avg)):
        inner, filtered = bare(node.this), isinstance(node.parent, exp.Filter)
        sides = {"this": bare(inner.this), "expression": bare(inner.expression)}
        columns = [side for side, part in sides.items() if isinstance(part, exp.Column)]
        if isinstance(inner, exp.Cast) and columns:
            node.set("this", sides["this"].copy())
        elif isinstance(node, exp.Sum) and isinstance(inner, exp.Literal) and not inner.is_string:
            counted = node.replace(exp.Count(this=exp.Star(), big_int=True))
            _times(counted.parent if filtered else counted, exp.Mul, {"this": inner, "expression": None})
        elif (isinstance(inner, exp.Mul) and len(columns) == 1) or (isinstance(inner, exp.Div) and columns == ["this"]):
            node.set("this", sides[columns[0]].copy())
            _times(node.parent if filtered else node, type(inner), {**sides, columns[0]: None})


def _times(whole: Node, op: type[exp.Binary], sides: dict[str, Node]) -> None:
    """Put an aggregate into the open side of a product or quotient, unless the other side is 1."""
    (factor,) = (side for side in sides.values() if side is not None)
    if not isinstance(factor, exp.Literal) or Decimal(factor.this) != 1:
        whole.replace(op(**{name: (whole if side is None else side).copy() for name, side in sides.items()}))


def cases(tree: Node) -> None:
    """SUM(x > 3) adds up truth values, which CASE writes as numbers; and SUM(COALESCE(x, 0)) is one of a CASE, too.

    What is unknown adds nothing to a sum; an average leaves it out, so that only what is false may count as 0.
    """
    for node in list(tree.find_all(exp.Sum, exp.Avg)):
        inner = bare(node.this)
        inner = bare(inner.this) if isinstance(inner, exp.Cast) else inner
        if isinstance(inner, exp.Predicate | exp.And | exp.Or | exp.Not):
            yes, zero = exp.If(this=inner.copy(), true=exp.Literal.number(1)), exp.Literal.number(0)
            no = exp.If(this=exp.Not(this=exp.paren(inner)), true=zero)
            never_null = isinstance(node, exp.Sum) or isinstance(inner, exp.Is)
            node.set("this", exp.Case(ifs=[yes], default=zero) if never_null else exp.Case(ifs=[yes, no]))
        elif isinstance(inner, exp.Coalesce) and isinstance(inner.this, exp.Column) and len(inner.expressions) == 1:
            null = exp.If(this=exp.Is(this=inner.this.copy(), expression=exp.Null()), true=inner.expressions[0].copy())
            node.set("this", exp.Case(ifs=[null], default=inner.this.copy()))


def count_instead(tree: Node) -> None:
    """Of what cannot be computed, the aggregates in it; of those that cannot be asked, COUNT(*) under their FILTER."""
    items: list[Node] = []
    for item in tree.expressions:
        inner = without_alias(item)
        if _passes(inner) or isinstance(inner, FLAGS):
            items.append(item)
        elif inner.is_star or any(not isinstance(part, FLAGS) for part in inner.find_all(exp.AggFunc)):
            parts = _aggregates(inner) or [_counted(inner)]
            named = isinstance(item, exp.Alias) and len(parts) == 1 and not isinstance(parts[0], exp.Count | exp.Filter)
            items += [exp.alias_(parts[0], item.alias)] if named else parts
            if isinstance(item, exp.Alias) and len(parts) == 1 and not named:
                _order_by(tree, item.alias, parts[0])
        else:
            items += [column.copy() for column in inner.find_all(exp.Column)]
    if not any(item.find(exp.AggFunc) for item in items if not isinstance(without_alias(item), FLAGS)):
        items.append(exp.Count(this=exp.Star(), big_int=True))
    tree.set("expressions", [item for i, item in enumerate(items) if item not in items[:i]])


def _order_by(tree: Node, name: str, instead: Node) -> None:
    """ORDER BY a name that is no longer given, by what stands in the place of what had it."""
    order = tree.args.get("order")
    for column in [] if order is None else list(order.find_all(exp.Column)):
        if column.name.casefold() == name.casefold() and not column.table:
            column.replace(instead.copy())


def own_names(tree: Node) -> None:
    """A name that is given twice is left to the first."""
    taken: set[str] = set()
    items: list[Node] = []
    for item in tree.expressions:
        name = item.alias_or_name.casefold()
        items.append(item.this if isinstance(item, exp.Alias) and name in taken else item)
        taken.add(name)
    tree.set("expressions", items)


def group_selected(tree: Node) -> None:
    """A column that is selected beside a count is a group column."""
    group = tree.args.get("group")
    columns = [] if group is None else list(group.expressions)
    grouped = [] if group is None else [*group.find_all(exp.Column), *columns]
    named = {part.name.casefold() for part in grouped if isinstance(part, exp.Column)}
    others = [_of_total(without_alias(item)) for item in tree.expressions if item.alias.casefold() not in named]
    columns += [item.copy() for item in others if groups(item) and item not in grouped]
    tree.set("group", exp.Group(expressions=columns) if columns else None)


def known_flags(tree: Node) -> None:
    """GROUPING of what rows are not grouped by is left out."""
    group = tree.args.get("group")
    grouped = [] if group is None else [*group.find_all(exp.Column), *group.expressions]
    items = [(item, without_alias(item)) for item in tree.expressions]
    allowed = [
        item for item, inner in items if not isinstance(inner, FLAGS) or all(p in grouped for p in inner.expressions)
    ]
    tree.set("expressions", allowed)


def own_table(tree: Node) -> None:
    """A qualifier is not needed where there is one table."""
    for column in tree.find_all(exp.Column):
        for part in ("table", "db", "catalog"):
            column.set(part, None)


def _passes(node: Node) -> bool:
    """Whether this can be selected: a group, an aggregate, or arithmetic on aggregates."""
    copy = node.copy()
    own_table(copy)
    try:
        check_allowed(copy, [])
        total = read_total(copy, Name(text="")) is not None
        return total or groups(copy) or read_item(copy, Name(text="")) is not None
    except QueryError:
        return False


def _of_total(node: Node) -> Node:
    """What a CASE that names a total is grouped by; anything else, as it is."""
    flag = node.find(*FLAGS) if isinstance(node, exp.Case | exp.If) and _passes(node) else None
    return node if flag is None else flag.expressions[0]


def _aggregates(node: Node) -> list[Node]:
    """The outermost aggregates inside of a node that can be asked for."""
    waiting, aggregates = [node], []
    while waiting:
        inner = bare(waiting.pop(0))
        if is_aggregate(inner):
            aggregates += [inner.copy()] if _passes(inner) else []
        else:
            waiting = [*inner.iter_expressions(), *waiting]
    return aggregates


def _counted(node: Node) -> Node:
    """COUNT(*) under the condition that FILTER stated."""
    count = exp.Count(this=exp.Star(), big_int=True)
    condition = node.expression.this if isinstance(node, exp.Filter) else None
    return count if condition is None else exp.Filter(this=count, expression=exp.Where(this=condition.copy()))


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
    staying = [part for part, needed in zip(parts, flags, strict=True) if needed is None]
    _set_having(tree, [*staying, *(flag for needed in flags for flag in needed or ())])
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


def select_chosen(tree: Node) -> None:
    """An aggregate that groups are chosen or ordered by, or a flag that they are ordered by, is selected as well."""
    having, order = (tree.args.get(name) for name in ("having", "order"))
    chosen = [] if having is None else [part for part in outermost_terms(having) if not isinstance(part, FLAGS)]
    selected = [_item(without_alias(item)) for item in tree.expressions]
    for part in (*chosen, *([] if order is None else outermost_terms(order))):
        item = None if isinstance(part, exp.Column) else _item(part)
        if item is not None and item not in selected:
            tree.append("expressions", part.copy())
            selected.append(item)


def readable_clauses(tree: Node) -> None:
    """Of HAVING and ORDER BY, the parts that can be read; of LIMIT and OFFSET, a number with an order.

    A condition on groups that could not go into WHERE stays: there is no such question without it.
    """
    having, order, limit, offset = (tree.args.get(name) for name in ("having", "order", "limit", "offset"))
    for name in ("having", "order", "limit", "offset"):
        tree.set(name, None)
    if having is not None:
        parts = operands(having.this, exp.And)
        readable = [p for p in parts if _of_groups(p, tree) or _reads(tree, "having", exp.Having(this=p.copy()))]
        _set_having(tree, readable)
    if order is not None:
        items = [p for p in order.expressions if _reads(tree, "order", exp.Order(expressions=[p.copy()]))]
        tree.set("order", exp.Order(expressions=[item.copy() for item in items]) if items else None)
    cuts = {"limit": limit, "offset": offset}
    if any(clause is not None for clause in cuts.values()) and tree.args.get("group") is not None:
        if tree.args.get("order") is None:
            items = [without_alias(item) for item in tree.expressions]
            first = next(item for item in items if item.find(exp.AggFunc) is not None and not isinstance(item, FLAGS))
            tree.set("order", exp.Order(expressions=[exp.Ordered(this=first.copy(), desc=True, nulls_first=False)]))
        for name, clause in cuts.items():
            if clause is not None and _reads(tree, name, clause):
                tree.set(name, clause.copy())


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
    decided = case.transform(lambda node: exp.Literal.number(number) if isinstance(node, FLAGS) else node)
    pairs, otherwise, subject = case_parts(decided)
    tests = [when if subject is None else exp.EQ(this=subject.copy(), expression=when.copy()) for when, _ in pairs]
    if any(test.find(exp.Column) is not None for test in tests):
        return None
    try:
        truths = [holds(read_condition(test, Name(text="")), (), ()) for test in tests]
        return read_literal(
            [*(then for holding, (_, then) in zip(truths, pairs, strict=True) if holding), otherwise][0]
        )
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


REPAIRS: tuple[Callable[[Node], None], ...] = (
    drop_clauses,
    plain_table,
    own_table,
    named_periods,
    most_frequent,
    listed_quantiles,
    counted_truths,
    plain_casts,
    truths,
    named_nulls,
    plain_groups,
    *REPAIRS_OF_CONDITIONS,
    ranges,
    standard_functions,
    unrounded,
    used_names,
    factors,
    cases,
    count_instead,
    own_names,
    group_selected,
    known_flags,
    plain_limit,
    plain_order,
    to_where,
    select_chosen,
    readable_clauses,
)
