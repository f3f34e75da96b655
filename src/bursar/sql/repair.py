"""From a statement that was refused towards one that is accepted: an ordered tuple of small repairs of its tree.

A repair keeps what can be asked and drops what cannot; it never invents a condition. What comes out is only ever
shown to a person, and only after it has been read like any other question.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.aggregates import is_aggregate, read_item
from bursar.sql.allowed import ALLOWED, AT_LEAST, FLAGS, Node, check_allowed
from bursar.sql.conditions import bare
from bursar.sql.groups import read_group
from bursar.sql.query import Name
from bursar.sql.repair_after import REPAIRS_AFTER

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
        gone = {item.alias.casefold() for item in tree.expressions if item.alias and not _passes(_unnamed(item))}
        parts = [part for part in group.expressions if not isinstance(bare(part), exp.Literal)]
        parts = [part for part in parts if not (isinstance(part, exp.Column) and part.name.casefold() in gone)]
        kept = [[part] if _groups(part) else list(part.find_all(exp.Column)) for part in parts]
        found = [part.copy() for parts in kept for part in parts]
        tree.set("group", exp.Group(expressions=[one for i, one in enumerate(found) if one not in found[:i]]))


def known_names(tree: Node) -> None:
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


def counted_conditions(tree: Node) -> None:
    """AT_MOST(1, ...) is NOT AT_LEAST(2, ...); a number that is missing is 1, and no number exceeds the conditions."""
    for node in list(tree.find_all(exp.Anonymous)):
        first, *rest = [bare(part) for part in node.expressions] or [None]
        if node.name.upper() not in (AT_LEAST, "AT_MOST") or not rest:
            continue
        number = int(first.this) if isinstance(first, exp.Literal) and str(first.this).isdecimal() else 0
        conditions = rest if isinstance(first, exp.Literal) else [first, *rest]
        least = number + (node.name.upper() != AT_LEAST)
        limited = exp.Literal.number(min(max(least, 1), len(conditions)))
        made = exp.Anonymous(this=AT_LEAST, expressions=[limited, *(part.copy() for part in conditions)])
        node.replace(made if node.name.upper() == AT_LEAST else exp.Not(this=made))


def cases(tree: Node) -> None:
    """SUM(x > 3) adds up truth values: CASE writes them as numbers."""
    for node in list(tree.find_all(exp.Sum, exp.Avg)):
        inner = bare(node.this)
        inner = bare(inner.this) if isinstance(inner, exp.Cast) else inner
        if isinstance(inner, exp.Predicate | exp.And | exp.Or | exp.Not):
            one, zero = exp.Literal.number(1), exp.Literal.number(0)
            node.set("this", exp.Case(ifs=[exp.If(this=inner.copy(), true=one)], default=zero))


def count_instead(tree: Node) -> None:
    """Of what cannot be computed, the aggregates in it; of those that cannot be asked, COUNT(*) under their FILTER."""
    items: list[Node] = []
    for item in tree.expressions:
        inner = _unnamed(item)
        if _passes(inner) or isinstance(inner, FLAGS):
            items.append(item)
        elif isinstance(inner, exp.Star) or inner.find(exp.AggFunc) is not None:
            parts = _aggregates(inner) or [_counted(inner)]
            named = isinstance(item, exp.Alias) and len(parts) == 1 and not isinstance(parts[0], exp.Count | exp.Filter)
            items += [exp.alias_(parts[0], item.alias)] if named else parts
        else:
            items += [column.copy() for column in inner.find_all(exp.Column)]
    if not any(item.find(exp.AggFunc) for item in items if not isinstance(_unnamed(item), FLAGS)):
        items.append(exp.Count(this=exp.Star(), big_int=True))
    tree.set("expressions", [item for i, item in enumerate(items) if item not in items[:i]])


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
    known = [] if group is None else [*group.find_all(exp.Column), *columns]
    named = {part.name.casefold() for part in known if isinstance(part, exp.Column)}
    others = [_unnamed(item) for item in tree.expressions if item.alias.casefold() not in named]
    columns += [item.copy() for item in others if _groups(item) and item not in known]
    tree.set("group", exp.Group(expressions=columns) if columns else None)


def known_flags(tree: Node) -> None:
    """GROUPING of what rows are not grouped by is left out."""
    group = tree.args.get("group")
    known = [] if group is None else [*group.find_all(exp.Column), *group.expressions]
    told = [(item, _unnamed(item)) for item in tree.expressions]
    kept = [item for item, inner in told if not isinstance(inner, FLAGS) or all(p in known for p in inner.expressions)]
    tree.set("expressions", kept)


def own_table(tree: Node) -> None:
    """A qualifier is not needed where there is one table."""
    for column in tree.find_all(exp.Column):
        for part in ("table", "db", "catalog"):
            column.set(part, None)


def null_tests(tree: Node) -> None:
    """x = NULL is x IS NULL, x IS 'a' is x = 'a', and NULL in a list of values is dropped."""
    for node in list(tree.find_all(exp.EQ, exp.NEQ, exp.In, exp.Is)):
        if isinstance(node, exp.In):
            node.set("expressions", [item for item in node.expressions if not isinstance(bare(item), exp.Null)])
        elif isinstance(node, exp.Is):
            if isinstance(bare(node.expression), exp.Literal):
                node.replace(exp.EQ(this=node.this.copy(), expression=node.expression.copy()))
        elif isinstance(bare(node.expression), exp.Null):
            test = exp.Is(this=node.this.copy(), expression=exp.Null())
            node.replace(exp.Not(this=test) if isinstance(node, exp.NEQ) else test)


def plain_dates(tree: Node) -> None:
    """DATE('2024-12-31') and TRY_CAST('2024-12-31' AS DATE) are DATE '2024-12-31'."""
    for node in list(tree.find_all(exp.Date, exp.TryCast)):
        if isinstance(bare(node.this), exp.Literal):
            node.replace(exp.Cast(this=bare(node.this).copy(), to=exp.DataType.build("date")))


def truth_columns(tree: Node) -> None:
    """A column that stands for a condition is compared with TRUE."""
    for column in list(tree.find_all(exp.Column)):
        around = column.parent
        while isinstance(around, exp.Paren):
            around = around.parent
        when = isinstance(around, exp.If) and around.this is column
        if when or isinstance(around, exp.Where | exp.And | exp.Or | exp.Not):
            column.replace(exp.EQ(this=column.copy(), expression=exp.true()))


REPAIRS: tuple[Callable[[Node], None], ...] = (
    drop_clauses,
    plain_table,
    plain_groups,
    own_table,
    null_tests,
    plain_dates,
    truth_columns,
    known_names,
    counted_conditions,
    cases,
    count_instead,
    own_names,
    group_selected,
    known_flags,
    *REPAIRS_AFTER,
)


def _unnamed(item: Node) -> Node:
    return bare(item.this if isinstance(item, exp.Alias) else item)


def _passes(node: Node) -> bool:
    """Whether this can be selected: a group, an aggregate, or arithmetic on aggregates."""
    copy = node.copy()
    own_table(copy)
    try:
        check_allowed(copy, [])
        return _groups(copy) or read_item(copy, Name(text="")) is not None
    except QueryError:
        return False


def _groups(node: Node) -> bool:
    """Whether rows can be grouped by this."""
    try:
        check_allowed(node.copy(), [])
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            return all(_groups(part) for part in node.expressions)
        return read_group(node, Name(text="")) is not None
    except QueryError:
        return False


def _aggregates(node: Node) -> list[Node]:
    """The outermost aggregates inside of a node that can be asked for."""
    waiting, found = [node], []
    while waiting:
        one = bare(waiting.pop(0))
        if is_aggregate(one):
            found += [one.copy()] if _passes(one) else []
        else:
            waiting = [*one.iter_expressions(), *waiting]
    return found


def _counted(node: Node) -> Node:
    """COUNT(*) under the condition that FILTER stated."""
    count = exp.Count(this=exp.Star(), big_int=True)
    condition = node.expression.this if isinstance(node, exp.Filter) else None
    return count if condition is None else exp.Filter(this=count, expression=exp.Where(this=condition.copy()))
