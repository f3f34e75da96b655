"""PIVOT, in both of its forms, as the SELECT that it stands for: an aggregate with a FILTER for each listed value."""

from __future__ import annotations

import itertools

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.names import DeclaredColumns, Name
from bursar.sql.syntax import Node, bare, position, read_name, without_alias

MOST_PIVOTED = 256
"""Most columns that a PIVOT can make."""

_LISTED = "PIVOT names its values, as in PIVOT t ON sex IN ('F', 'M') USING COUNT(*) GROUP BY region"


def with_listed_values(tree: Node, columns: DeclaredColumns) -> Node:
    """PIVOT t ON sex as PIVOT t ON sex IN (...), with all values that are declared; those of NULL are in none of them.

    Edge cases: left as it is, and refused later, where the column is made inside of a sub-select, or has no list.
    """
    tree = tree.copy()
    for pivot in tree.find_all(exp.Pivot):
        for node in pivot.expressions if isinstance(pivot.this, exp.Table | exp.Subquery) else ():
            column = _read_through(bare(node), pivot.this)
            listed = None if column is None or pivot.args.get("unpivot") else columns.values(column)
            if listed is not None:
                node.replace(exp.In(this=bare(node).copy(), expressions=[_constant(value) for value in listed]))
    return tree


def _read_through(node: Node, source: Node) -> Name | None:
    """The column of the table that a column of what is pivoted is; None where it is made of others."""
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        return None
    name = read_name(node.this)
    if isinstance(source, exp.Table):
        return name
    if not isinstance(source.this, exp.Select) or source.this.find(exp.Subquery, exp.Join) is not None:
        return None
    for item in source.this.expressions:
        if item.is_star:
            return name
        inner = bare(item.unalias())
        if item.alias_or_name and name.names(item.alias_or_name) and isinstance(inner, exp.Column):
            return read_name(inner.this)
    return None


def _constant(value: str | int) -> Node:
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    return exp.Literal.string(value) if isinstance(value, str) else exp.Literal.number(value)


def as_select(tree: Node) -> Node:
    """PIVOT t ON ... as SELECT * FROM what it stands for."""
    fields = [field if isinstance(field, exp.In) else None for field in map(bare, tree.expressions)]
    select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=_pivoted(tree, tree.this, fields, "using")))
    if tree.args.get("with_") is not None:
        select.set("with_", tree.args["with_"].copy())
    return select


def pivots(tree: Node) -> None:
    """FROM t PIVOT (COUNT(*) FOR sex IN ('F', 'M') GROUP BY region) as a sub-select, and PIVOT t ON in one."""
    for holder in list(tree.find_all(exp.Subquery, exp.CTE)):
        if isinstance(holder.this, exp.Pivot):
            holder.set("this", as_select(holder.this))
    for table in list(tree.find_all(exp.Table, exp.Subquery)):
        clauses = table.args.get("pivots") or []
        if len(clauses) != 1:
            continue
        source = table.copy()
        source.set("pivots", None)
        fields = [field if isinstance(field, exp.In) else None for field in clauses[0].args.get("fields") or []]
        select = _pivoted(clauses[0], source, fields, "expressions")
        alias = clauses[0].args.get("alias")
        if alias is not None:
            select.set("alias", alias.copy())
        table.replace(select)


def _pivoted(pivot: Node, source: Node, fields: list[Node | None], using: str) -> Node:
    if pivot.args.get("unpivot"):
        raise QueryError(
            "UNPIVOT is not available; UNION ALL puts SELECTs one below the other", position=position(pivot)
        )
    items, group = pivot.args.get(using) or [], pivot.args.get("group")
    listed = [field for field in fields if field is not None and field.expressions]
    if not items or len(listed) != len(fields) or not fields:
        raise QueryError(_LISTED, position=position(pivot, source))
    keys = [] if group is None else list(group.expressions)
    if group is None and isinstance(source, exp.Subquery):
        named = {field.this.name.casefold() for field in listed}
        named |= {column.name.casefold() for item in items for column in item.find_all(exp.Column)}
        keys = [
            exp.column(exp.to_identifier(item.alias_or_name, quoted=True))
            for item in source.this.expressions
            if item.alias_or_name.casefold() not in named
        ]
    elif group is None and using == "expressions":
        raise QueryError(
            "PIVOT says what its lines are: GROUP BY region, inside of its brackets", position=position(pivot)
        )
    elif group is None:
        raise QueryError(
            "PIVOT says what its lines are: GROUP BY region, at its end; PIVOT (SELECT sex FROM t) ON sex has one line",
            position=position(pivot, source),
        )
    columns: list[Node] = []
    for values in itertools.product(*(field.expressions for field in listed)):
        tests = [
            exp.EQ(this=field.this.copy(), expression=_without_name(value).copy())
            for field, value in zip(listed, values, strict=True)
        ]
        words = "_".join(_called(value) for value in values)
        for item in items:
            several = len(items) > 1 or bool(item.alias)
            name = f"{words}_{item.alias or without_alias(item).sql('duckdb').lower()}" if several else words
            columns.append(exp.alias_(_filtered(without_alias(item), tests), name, quoted=True))
        if len(columns) > MOST_PIVOTED:
            raise QueryError(f"a PIVOT makes at most {MOST_PIVOTED} columns", position=position(pivot))
    inner = exp.Select(expressions=[*(key.copy() for key in keys), *columns], from_=exp.From(this=source.copy()))
    if keys:
        inner.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("pivoted")))


def _without_name(value: Node) -> Node:
    """A value of IN without the name that it is given."""
    return bare(value.this if isinstance(value, exp.PivotAlias | exp.Alias) else value)


def _called(value: Node) -> str:
    node, alias = _without_name(value), value.args.get("alias")
    if alias is not None:
        return str(alias.name)
    if isinstance(node, exp.Boolean):
        return str(node.this).lower()
    return str(node.name) if isinstance(node, exp.Literal) else str(node.sql("duckdb"))


def _filtered(item: Node, tests: list[Node]) -> Node:
    if not isinstance(item, exp.AggFunc):
        raise QueryError("PIVOT takes aggregates such as COUNT(*)", position=position(item))
    return exp.Filter(this=item.copy(), expression=exp.Where(this=exp.and_(*(test.copy() for test in tests))))
