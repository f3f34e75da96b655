"""Joins of SELECTs that group the rows of one table in the same way: as one SELECT with a FILTER for each of them.

WITH a AS (SELECT region, COUNT(*) AS n FROM t WHERE year = 2023 GROUP BY region), b AS (... WHERE year = 2024 ...)
SELECT a.region, b.n - a.n FROM a JOIN b ON a.region = b.region has a line for each region, with two counts. Groups are
public here, so that every side has all of them. Only NULL is equal to nothing: a join drops its group, a LEFT JOIN
finds nothing beside it, and a RIGHT or FULL JOIN has lines of one side for it. A side of one line, such as a total,
stands beside every line; of counts and sums it is the total over the groups, and of an average the ratio of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import reduce
from itertools import chain

from sqlglot import exp

from bursar.lazy_dataclass import dataclass
from bursar.sql.syntax import Node, bare, operands, plain_copy, without_alias

_SIDE = {"expressions", "from_", "where", "group"}
_AROUND = {"expressions", "from_", "joins", "where", "order", "limit", "offset", "qualify", "with_", "kind", "hint"}
_KINDS = {"", "INNER", "CROSS", "OUTER"}


def group_joins(tree: Node) -> None:
    """Replace every such join; the tree keeps its meaning."""
    for select in list(tree.find_all(exp.Select)):
        if not select.args.get("joins") or _said(select) - _AROUND or select.find(exp.Star) in select.expressions:
            continue
        named = {cte.alias_or_name.casefold(): cte for cte in tree.find_all(exp.CTE)}
        _totals_of_lines(select, named, tree)
        if not select.args.get("joins"):
            continue
        sides = _sides(select, named)
        if sides is None or not _joined_by_keys(select, sides) or not _renamed(select, sides):
            continue
        select.set("joins", None)
        select.set("from_", _from(_as_one(sides)))
        for side in sides:
            _drop(side.source, tree)


@dataclass
class _Side:
    """A SELECT that is joined."""

    alias: str
    table: Node
    select: Node
    keys: dict[str, Node] = field(default_factory=dict)  # by the names they are selected under
    numbers: dict[str, Node] = field(default_factory=dict)
    source: Node | None = None  # in WITH
    left: bool = False  # whether lines that have nothing beside them are kept
    right: bool = False  # whether its own lines are kept that have nothing beside them

    @property
    def conditions(self) -> list[Node]:
        where = self.select.args.get("where")
        return [] if where is None else list(operands(where.this, exp.And))

    def named(self, name: str) -> str:
        """What one of its numbers is called in the one SELECT."""
        return f"{self.alias}.{name}".casefold()


def _totals_of_lines(select: Node, named: dict[str, Node], tree: Node) -> None:
    """A side of one line that adds up the lines of another one, as sub-selects where its columns stand."""
    for join in list(select.args["joins"]):
        cte = named.get(join.this.name.casefold()) if isinstance(join.this, exp.Table) else None
        side = None if cte is None else _side(str(join.this.alias_or_name), cte.this, cte)
        if side is None or side.keys or side.table.name.casefold() not in named or join.args.get("on") is not None:
            continue
        for column in list(select.find_all(exp.Column)):
            name = column.name.casefold()
            if column.parent_select is select and name in side.numbers and _names(column, side):
                total = side.select.copy()
                total.set("expressions", [side.numbers[name].copy()])
                column.replace(exp.Subquery(this=total))
        join.pop()
        _drop(cte, tree)


def _names(column: Node, side: _Side) -> bool:
    return column.table.casefold() in ("", side.alias.casefold())


def _said(select: Node) -> set[str]:
    return {str(name) for name, value in select.args.items() if value}


def _sides(select: Node, named: dict[str, Node]) -> list[_Side] | None:
    """The SELECTs that are joined, the grouped ones first; None where one of them is anything else."""
    source = select.args.get("from_")
    sides: list[_Side] = []
    for node in [*([] if source is None else [source.this]), *(join.this for join in select.args["joins"])]:
        cte = named.get(node.name.casefold()) if isinstance(node, exp.Table) else None
        inner = node.this if isinstance(node, exp.Subquery) else None if cte is None else cte.this
        side = _side(str(node.alias_or_name), inner, cte)
        if side is None or side.table.name.casefold() in named:
            return None
        sides.append(side)
    groups = [side for side in sides if side.keys]
    first = (groups or sides)[0]
    expressions = {plain_copy(key) for key in first.keys.values()}
    if any(plain_copy(side.table) != plain_copy(first.table) for side in sides):
        return None
    if any({plain_copy(key) for key in side.keys.values()} != expressions for side in groups):
        return None
    if groups and any(_parts(number) is None for side in sides if not side.keys for number in side.numbers.values()):
        return None
    columns = {node.name.casefold() for key in first.keys.values() for node in key.find_all(exp.Column)}
    apart = [condition for side in sides for condition in side.conditions if condition not in _common(sides)]
    if any(node.name.casefold() in columns for condition in apart for node in condition.find_all(exp.Column)):
        return None  # such a side has fewer groups
    return [*groups, *(side for side in sides if not side.keys)]


def _side(alias: str, inner: Node | None, cte: Node | None) -> _Side | None:
    source = None if inner is None else inner.args.get("from_")
    if not isinstance(inner, exp.Select) or _said(inner) - _SIDE or source is None or not alias:
        return None
    if not isinstance(source.this, exp.Table) or inner.find(exp.Window, exp.Subquery, exp.Star) in inner.expressions:
        return None
    side = _Side(alias, source.this, inner, source=cte)
    for item in inner.expressions:
        value, name = without_alias(item), str(item.alias or item.name)
        if not name or value.find(exp.Window, exp.Subquery) is not None or name.casefold() in side.keys | side.numbers:
            return None
        columns = side.keys if value.find(exp.AggFunc) is None else side.numbers
        columns[name.casefold()] = value
    group = inner.args.get("group")
    if group is None:
        return None if side.keys else side
    if not group.expressions or any(group.args.get(name) for name in ("all", "rollup", "cube", "grouping_sets")):
        return None
    grouped = {plain_copy(_grouped_by(part, inner, side)) for part in group.expressions}
    return side if grouped == {plain_copy(key) for key in side.keys.values()} else None


def _grouped_by(part: Node, inner: Node, side: _Side) -> Node:
    node = bare(part)
    if isinstance(node, exp.Literal) and str(node.this).isdecimal() and 0 < int(node.this) <= len(inner.expressions):
        return without_alias(inner.expressions[int(node.this) - 1])
    return side.keys.get(node.name.casefold(), node) if isinstance(node, exp.Column) else node


def _parts(number: Node) -> list[Node] | None:
    """What adds up over groups to a number of all rows: the number itself, or both sides of an average."""
    node = bare(number)
    if isinstance(node.this, exp.Distinct) or not isinstance(node, exp.Count | exp.Sum | exp.Avg):
        return None
    return [kind(this=node.this.copy()) for kind in (exp.Sum, exp.Count)] if isinstance(node, exp.Avg) else [number]


def _common(sides: Sequence[_Side]) -> list[Node]:
    """The conditions that every side has."""
    return [
        condition
        for condition in sides[0].conditions
        if all(plain_copy(condition) in [plain_copy(other) for other in side.conditions] for side in sides)
    ]


def _joined_by_keys(select: Node, sides: Sequence[_Side]) -> bool:
    """Whether every grouped side is joined by all of its keys, and one of a line by nothing."""
    source = select.args["from_"].this
    before = [_named(sides, str(source.alias_or_name))]
    for join in select.args["joins"]:
        side = _named(sides, str(join.this.alias_or_name))
        on, using = join.args.get("on"), join.args.get("using") or []
        side.left, side.right = (join.args.get("side") in (word, "FULL") for word in ("LEFT", "RIGHT"))
        if (join.args.get("kind") or "") not in _KINDS or join.args.get("method"):
            return False
        if side.right and [bool(each.keys) for each in sides] != [True, True]:
            return False
        pairs = [(str(name.name), str(name.name)) for name in using]
        for part in () if on is None else operands(on, exp.And):
            sides_of = [bare(part.this), bare(part.expression)] if isinstance(part, exp.EQ) else []
            if isinstance(part, exp.Boolean) and part.this:
                continue
            if not sides_of or not all(isinstance(node, exp.Column) for node in sides_of):
                return False
            inner = [node for node in sides_of if node.table.casefold() == side.alias.casefold()]
            others = [node for node in sides_of if node not in inner]
            if len(inner) != 1 or not others[0].table:
                return False
            pairs.append((str(inner[0].name), str(others[0].name)))
        grouped = [other for other in before if other.keys]
        matched = {
            plain_copy(side.keys[inner.casefold()])
            for inner, name in pairs
            for other in grouped
            if inner.casefold() in side.keys and plain_copy(side.keys[inner.casefold()]) == _plain_key(other, name)
        }
        keys = {plain_copy(key) for key in side.keys.values()} if grouped else set()
        if matched != keys or len(pairs) != len(keys):
            return False
        before.append(side)
    return True


def _plain_key(side: _Side, name: str) -> Node | None:
    key = side.keys.get(name.casefold())
    return None if key is None else plain_copy(key)


def _named(sides: Sequence[_Side], alias: str) -> _Side:
    return next(side for side in sides if side.alias.casefold() == alias.casefold())


def _renamed(select: Node, sides: Sequence[_Side]) -> bool:
    """The columns of the SELECT under the names of the one SELECT; False, and nothing changed, where one is unclear."""
    aliases = {str(item.alias).casefold() for item in select.expressions if item.alias}
    changes: list[tuple[Node, Node]] = []
    clauses = [select.args[name] for name in ("where", "order", "qualify") if select.args.get(name)]
    parts = [*select.expressions, *clauses]
    for column in chain.from_iterable(part.find_all(exp.Column) for part in parts):
        name, table = column.name.casefold(), column.table.casefold()
        about = [side for side in sides if table in ("", side.alias.casefold())]
        keys = {plain_copy(side.keys[name]) for side in about if name in side.keys}
        numbers = [side.named(name) for side in about if name in side.numbers]
        if len(keys) + len(numbers) != 1:
            if not keys and not numbers and not table and name in aliases:
                continue  # an output, in ORDER BY
            return False
        place = [plain_copy(key) for key in sides[0].keys.values()].index(next(iter(keys))) if keys else 0
        changes.append((column, _column(list(sides[0].keys)[place] if keys else numbers[0])))
    for column, changed in changes:
        if column.parent is select:
            column.replace(exp.alias_(changed, str(column.name), quoted=True))
        else:
            column.replace(changed)
    return True


def _as_one(sides: Sequence[_Side]) -> Node:
    """The one SELECT, and around it what the join makes of its lines."""
    common = _common(sides)
    every = {plain_copy(condition) for condition in common}
    keys = [exp.alias_(key.copy(), name, quoted=True) for name, key in sides[0].keys.items()]
    numbers: list[Node] = []
    around: list[Node] = [_column(name) for name in sides[0].keys]
    not_null = [exp.Not(this=exp.Is(this=_column(name), expression=exp.Null())) for name in sides[0].keys]
    for side in sides:
        conditions = [condition for condition in side.conditions if plain_copy(condition) not in every]
        for name, number in side.numbers.items():
            called = side.named(name)
            parts = (_parts(number) if keys and not side.keys else None) or [number]
            named = [called, *(f"{called} of" for _ in parts[1:])]
            for part, of in zip(parts, named, strict=True):
                numbers.append(exp.alias_(_filtered(part, conditions), of, quoted=True))
            value: Node = _column(called)
            if not side.keys:
                totals = [exp.Window(this=exp.Sum(this=_column(of))) for of in named]
                value = reduce(lambda above, below: exp.Div(this=above, expression=_unless_zero(below)), totals)
            elif side.left:
                value = exp.Case(ifs=[exp.If(this=exp.and_(*not_null), true=value)])
            around.append(exp.alias_(value, called, quoted=True))
    together = exp.Select(expressions=[*keys, *numbers], from_=exp.From(this=sides[0].table.copy()))
    if common:
        together.set("where", exp.Where(this=exp.and_(*(condition.copy() for condition in common))))
    if not keys:
        return together
    together.set("group", exp.Group(expressions=[key.copy() for key in sides[0].keys.values()]))
    if sides[-1].right:
        return _both_sides(sides, together, exp.and_(*not_null))
    select = exp.Select(expressions=around, from_=_from(together))
    grouped = [side for side in sides if side.keys]
    if any(not side.left for side in grouped[1:]):
        chosen = [_column(str(column.alias or column.name)) for column in around]
        select = exp.Select(expressions=chosen, from_=_from(select), where=exp.Where(this=exp.and_(*not_null)))
    return select


def _both_sides(sides: Sequence[_Side], together: Node, not_null: Node) -> Node:
    """Of two sides: a line for each group that is equal to itself, and for others one of each side that is kept."""
    selects: list[Node] = []
    alone = [sides[1:], *([sides[:1]] if sides[1].left else [])]
    for present, where in ((sides, not_null), *((side, exp.not_(not_null)) for side in alone)):
        items: list[Node] = [_column(name) for name in sides[0].keys]
        for side in sides:
            for called in map(side.named, side.numbers):
                items.append(exp.alias_(_column(called) if side in present else exp.Null(), called, quoted=True))
        where_clause = exp.Where(this=where.copy())
        selects.append(exp.Select(expressions=items, from_=_from(together.copy()), where=where_clause))
    return reduce(lambda above, below: exp.Union(this=above, expression=below, distinct=False), selects)


def _unless_zero(number: Node) -> Node:
    return exp.Nullif(this=number, expression=exp.Literal.number(0))


def _filtered(number: Node, conditions: Sequence[Node]) -> Node:
    """A number of the rows that meet conditions."""
    holder = exp.Paren(this=number.copy())
    for node in list(holder.find_all(exp.AggFunc)) if conditions else []:
        filtered = node.parent if isinstance(node.parent, exp.Filter) else None
        every = [condition.copy() for condition in conditions]
        if filtered is not None:
            filtered.set("expression", exp.Where(this=exp.and_(filtered.expression.this.copy(), *every)))
        else:
            node.replace(exp.Filter(this=node.copy(), expression=exp.Where(this=exp.and_(*every))))
    inner: Node = holder.this
    return inner


def _drop(cte: Node | None, tree: Node) -> None:
    """Take a SELECT out of WITH once nothing reads it."""
    if cte is None or cte.parent is None:
        return
    name, clause = cte.alias_or_name.casefold(), cte.parent
    if any(table.name.casefold() == name for table in tree.find_all(exp.Table)):
        return
    cte.pop()
    if not clause.expressions:
        clause.pop()


def _from(inner: Node) -> Node:
    return exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("joined"))))


def _column(name: str) -> Node:
    return exp.Column(this=exp.to_identifier(name, quoted=True))
