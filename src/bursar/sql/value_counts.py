"""MODE and HISTOGRAM: what is read off the counts of values, as a question for these counts.

SELECT sex, MODE(region) FROM t GROUP BY sex takes, for each sex, the region with the largest count: the counts are
bought, and the choice among them is free. HISTOGRAM(region) is these counts, as lines instead of a map in one cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from sqlglot import exp

from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql.syntax import REMARKS, Node, bare, plain_copy, position, without_alias

_VALUE, _COUNT = "value of mode", "count of mode"

_TOTALS = ("rollup", "cube", "grouping_sets", "totals", "all")


def histograms(tree: Node) -> None:
    """SELECT HISTOGRAM(x) is SELECT x, COUNT(*) ... GROUP BY x, without the rows where x is NULL."""
    for select in list(tree.find_all(exp.Select)):
        items = [item for item in select.expressions if _is_histogram(without_alias(item))]
        if len(items) != 1 or any(
            item.find(exp.AggFunc, exp.Window) is not None for item in select.expressions if item is not items[0]
        ):
            continue
        keys = _keys(select)
        if keys is None:
            continue
        item = items[0]
        of = bare(without_alias(item).expressions[0])
        place = select.expressions.index(item)
        value = of.copy() if isinstance(of, exp.Column) else exp.alias_(of.copy(), "value")
        count = exp.alias_(exp.Count(this=exp.Star(), big_int=True), item.alias or "histogram", quoted=True)
        listed = [*select.expressions[:place], value, count, *select.expressions[place + 1 :]]
        select.set("expressions", listed)
        select.set("group", exp.Group(expressions=[*(key.copy() for key in keys), of.copy()]))
        where = select.args.get("where")
        not_null = exp.Not(this=exp.Is(this=of.copy(), expression=exp.Null()))
        parts = [*([] if where is None else [exp.paren(where.this.copy())]), not_null]
        select.set("where", exp.Where(this=exp.and_(*parts)))
        tree.meta.setdefault(REMARKS, []).append("HISTOGRAM is shown as lines, one for each value with its count")


def _is_histogram(node: Node) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() == "HISTOGRAM" and len(node.expressions) == 1


def modes(tree: Node) -> None:
    """MODE(x) is the x of the group with the largest count, among groups by x within those that are asked for."""
    named = {cte.alias_or_name.casefold() for cte in tree.find_all(exp.CTE)}
    for select in list(tree.find_all(exp.Select)):
        modes_of = [
            node for node in select.find_all(exp.Mode) if node.parent_select is select and node.this is not None
        ]
        source, keys = select.args.get("from_"), _keys(select)
        table = None if source is None else source.this
        if not modes_of or keys is None or not isinstance(table, exp.Table) or table.name.casefold() in named:
            continue
        if select.args.get("joins") or any(isinstance(node.parent, exp.Window) for node in modes_of):
            continue
        if len({plain_copy(node.this) for node in modes_of}) > 1:
            raise QueryError("MODE is asked for of one column at a time", position=position(modes_of[1]))
        _Counted(select, modes_of[0].this, keys).put()


def _keys(select: Node) -> list[Node] | None:
    """What a SELECT groups by, as expressions; None where that is not a plain list."""
    group = select.args.get("group")
    if group is None:
        return []
    if any(group.args.get(name) for name in _TOTALS):
        return None
    aliases = {item.alias.casefold(): without_alias(item) for item in select.expressions if item.alias}
    keys: list[Node] = []
    for part in map(bare, group.expressions):
        if isinstance(part, exp.Literal) and str(part.this).isdecimal():
            if not 1 <= int(str(part.this)) <= len(select.expressions):
                return None
            part = without_alias(select.expressions[int(str(part.this)) - 1])
        elif isinstance(part, exp.Column) and not part.table and part.name.casefold() in aliases:
            part = aliases[part.name.casefold()]
        keys.append(part)
    return keys


@dataclass
class _Counted:
    """A SELECT with MODE in it, as one over the lines of another, which groups by the value as well."""

    select: Node
    of: Node
    keys: Sequence[Node]
    numbers: list[Node] = field(default_factory=list)  # what the inner SELECT adds up, under names of their own

    def put(self) -> None:
        """Change the SELECT in its place."""
        select = self.select
        named = [(plain_copy(key), f"key {place}") for place, key in enumerate(self.keys)]
        inner_keys = [
            *(exp.alias_(key.copy(), name, quoted=True) for key, (_, name) in zip(self.keys, named, strict=True)),
            exp.alias_(self.of.copy(), _VALUE, quoted=True),
        ]
        for item in select.expressions:
            node = without_alias(item)
            if not item.alias and isinstance(node, exp.Column):
                item.replace(exp.alias_(node.copy(), node.name, quoted=True))
            elif not item.alias and isinstance(node, exp.Mode):
                item.replace(exp.alias_(node.copy(), "mode"))
        group = None if not named else exp.Group(expressions=[_column(name) for _, name in named])
        for clause in (*select.expressions, *(select.args.get(name) for name in ("having", "order", "qualify"))):
            for node in [] if clause is None else list(_outermost(clause, [key for key, _ in named])):
                key = next((name for key, name in named if plain_copy(node) == key), None)
                replaced = _column(key) if key is not None else self._folded(node)
                replaced.meta["start"] = position(node)
                node.replace(replaced)
        inner = exp.Select(expressions=[*inner_keys, *self.numbers], from_=select.args["from_"].copy())
        if select.args.get("where") is not None:
            inner.set("where", select.args["where"].copy())
        inner.set("group", exp.Group(expressions=[*(key.copy() for key in self.keys), self.of.copy()]))
        select.set("where", None)
        select.set("group", group)
        alias = exp.TableAlias(this=exp.to_identifier("counted"))
        select.set("from_", exp.From(this=exp.Subquery(this=inner, alias=alias)))

    def _folded(self, node: Node) -> Node:
        """An aggregate over rows as one over the lines of the inner SELECT."""
        function = bare(node.this) if isinstance(node, exp.Filter) else node
        if isinstance(function, exp.Mode):
            count = self._number(node, exp.Count(this=exp.Star(), big_int=True))
            chosen = exp.ArgMax(this=_column(_VALUE), expression=count)
            somebody = exp.GT(this=count.copy(), expression=exp.Literal.number(0))
            return exp.Filter(this=chosen, expression=exp.Where(this=somebody))
        distinct = isinstance(function.this, exp.Distinct)
        if isinstance(function, exp.Count | exp.CountIf | exp.Sum) and not distinct:
            return exp.Sum(this=self._number(node, function))
        if isinstance(function, exp.Avg) and not distinct:
            parts = [self._number(node, kind(this=function.this.copy())) for kind in (exp.Sum, exp.Count)]
            total, count = (exp.Sum(this=part) for part in parts)
            return exp.Div(this=total, expression=count, typed=False, safe=False)
        raise QueryError("beside MODE, counts, sums and averages can be asked for", position=position(node))

    def _number(self, node: Node, function: Node) -> Node:
        """The column of the inner SELECT that a number has, under the condition of a FILTER around the node."""
        number = function.copy()
        if isinstance(node, exp.Filter):
            number = exp.Filter(this=number, expression=node.expression.copy())
        for item in self.numbers:
            if item.this == number:
                return _column(item.alias)
        name = _COUNT if not self.numbers else f"{_COUNT} {len(self.numbers)}"
        self.numbers.append(exp.alias_(number, name, quoted=True))
        return _column(name)


def _outermost(clause: Node, keys: Sequence[Node]) -> Iterator[Node]:
    """The aggregates and keys in a clause, without what is inside of them."""
    waiting = [clause]
    while waiting:
        node = waiting.pop()
        aggregate = isinstance(bare(node.this) if isinstance(node, exp.Filter) else node, exp.AggFunc)
        if aggregate or (not isinstance(node, exp.Alias) and plain_copy(node) in keys):
            yield node
        else:
            waiting += node.iter_expressions()


def _column(name: str) -> Node:
    return exp.Column(this=exp.to_identifier(name, quoted=True))
