"""Sub-selects in FROM, and WITH: opened where they only choose rows, columns and groups, so that one SELECT is left."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.allowed import FLAGS, OF_ONE_COLUMN, Node, position
from bursar.sql.conditions import bare, read_name
from bursar.sql.query import Name

_INNER = frozenset({"expressions", "from_", "where"})
_SIMPLE = "a sub-select in FROM may choose rows, columns and groups of values, and nothing else"

BESIDE = "beside"
"""Where a statement keeps the names that its sub-selects give to something beside *, which has names of its own."""

COLUMN = "column"
"""What marks a name in ORDER BY that is a column of the table, whatever else is called so."""

_LISTS = (exp.Group, exp.Paren, exp.Tuple, exp.Rollup, exp.Cube, exp.GroupingSets)

_GROUPS = (exp.Case, exp.If, exp.IntDiv, exp.Mul, *OF_ONE_COLUMN)


def flat(tree: Node) -> Node:
    """The statement without sub-selects in FROM; as it is, where there are none.

    Guarantees: it asks for the same rows, and columns keep the names that they are shown by.
    """
    if not isinstance(tree, exp.Select) or (tree.args.get("with_") is None and not _nested(tree)):
        return tree
    tree = tree.copy()
    shared: list[tuple[Name, Node]] = []
    clause = tree.args.get("with_")
    for one in [] if clause is None else clause.expressions:
        if clause.args.get("recursive") or one.args["alias"].args.get("columns"):
            raise QueryError(
                "WITH names plain sub-selects, without RECURSIVE or a list of columns", position=position(one)
            )
        shared.append((read_name(one.args["alias"].this), _opened(one.this, shared)))
    tree.set("with_", None)
    return _open(tree, shared)


def innermost(tree: Node) -> Node:
    """The sub-select that reads the table itself."""
    while isinstance(tree, exp.Select):
        clause, source = tree.args.get("with_"), tree.args.get("from_")
        inner = clause.expressions[0].this if clause is not None else None if source is None else source.this
        inner = inner.this if isinstance(inner, exp.Subquery) else inner
        if not isinstance(inner, exp.Select):
            break
        tree = inner
    return tree


def _is_group(item: Node) -> bool:
    """Whether a named item may be something that rows are grouped by."""
    named = isinstance(item, exp.Alias) and isinstance(bare(item.this), _GROUPS)
    return named and item.find(exp.AggFunc, exp.Query, exp.Star) is None


def _nested(tree: Node) -> bool:
    source = tree.args.get("from_")
    return source is not None and isinstance(source.this, exp.Subquery)


def _open(tree: Node, shared: list[tuple[Name, Node]]) -> Node:
    """The statement with the sub-select in its FROM, if there is one, put into it."""
    source = tree.args.get("from_")
    inner, called = None, None
    if source is not None and isinstance(source.this, exp.Subquery):
        inner, called = _opened(source.this.this, shared), source.this.args.get("alias")
    elif source is not None and isinstance(source.this, exp.Table) and isinstance(source.this.this, exp.Identifier):
        own = read_name(source.this.this)
        inner = next((select for name, select in reversed(shared) if own.agrees(name)), None)
        called = source.this.args.get("alias") or exp.TableAlias(this=source.this.this)
    if inner is None:
        return tree
    columns = _Columns.of(inner)
    _substitute(tree, columns, None if called is None else read_name(called.this))
    items = [inner.expressions if item.is_star else [item] for item in tree.expressions]
    tree.set("expressions", [item.copy() for some in items for item in some])
    tree.meta[BESIDE] = [*inner.meta.get(BESIDE, ()), *columns.beside()]
    where, own_where = inner.args.get("where"), tree.args.get("where")
    parts = [exp.paren(one.this.copy(), copy=False) for one in (where, own_where) if one is not None]
    tree.set("where", exp.Where(this=exp.and_(*parts, copy=False)) if parts else None)
    tree.set("from_", inner.args["from_"].copy())
    return tree


def _opened(inner: Node, shared: list[tuple[Name, Node]]) -> Node:
    """A sub-select that reads the table itself, and only chooses rows, columns and groups of values."""
    inner = bare(inner)
    if not isinstance(inner, exp.Select):
        raise QueryError(_SIMPLE, position=position(inner))
    for name, value in inner.args.items():
        if value and name not in _INNER:
            raise QueryError(f"{_SIMPLE}; the rest belongs into the question around it", position=position(inner))
    if inner.args.get("from_") is None:
        raise QueryError("a sub-select says FROM which table", position=position(inner))
    for item in inner.expressions:
        column = item.this if isinstance(item, exp.Alias) else item
        plain = isinstance(column, exp.Star | exp.Column) and not column.args.get("db")
        if any(any(star.args.values()) for star in column.find_all(exp.Star)) or not (plain or _is_group(item)):
            raise QueryError(f"{_SIMPLE}; compute in the question around it", position=position(item))
    inner = _open(inner.copy(), shared)
    own = inner.args["from_"].this.args.get("alias") if isinstance(inner.args["from_"].this, exp.Table) else None
    table = own.this if own is not None else inner.args["from_"].this.this
    for column in inner.find_all(exp.Column):
        qualifier = column.args.get("table")
        if qualifier is not None and isinstance(table, exp.Identifier):
            if not read_name(qualifier).agrees(read_name(table)):
                raise QueryError(f"there is no table {qualifier.name} in this sub-select", position=position(qualifier))
            column.set("table", None)
    if own is not None:
        inner.args["from_"].this.set("alias", None)
    return inner


@dataclass(frozen=True)
class _Columns:
    """The columns and groups that a sub-select hands on; all columns of the table where it selects *."""

    named: tuple[tuple[Name, Node], ...]
    everything: bool

    @staticmethod
    def of(inner: Node) -> _Columns:
        named: list[tuple[Name, Node]] = []
        for item in inner.expressions:
            column = bare(item.this if isinstance(item, exp.Alias) else item)
            if isinstance(column, _GROUPS) or (
                isinstance(column, exp.Column) and isinstance(column.this, exp.Identifier)
            ):
                shown = item.args["alias"] if isinstance(item, exp.Alias) else column.this
                named.append((read_name(shown), column))
        for number, (name, column) in enumerate(named):
            if any(name.agrees(other) for other, _ in named[:number]):
                raise QueryError(f"two columns of the sub-select are called {name.text}", position=position(column))
        return _Columns(tuple(named), any(item.find(exp.Star) is not None for item in inner.expressions))

    def beside(self) -> list[Name]:
        """The names that something other than the column of that name has beside the whole table."""
        own = [(name, isinstance(item, exp.Column) and read_name(item.this).agrees(name)) for name, item in self.named]
        return [name for name, same in own if self.everything and not same]

    def find(self, name: Name) -> Node | None:
        return next((column for own, column in self.named if name.agrees(own)), None)


def _substitute(tree: Node, columns: _Columns, called: Name | None) -> None:
    """Every column of the statement as the sub-select has it; a selected one keeps the name that it had."""
    outputs = [read_name(item.args["alias"]) for item in tree.expressions if isinstance(item, exp.Alias)]
    called_so, grouped = {name.text.casefold() for name in outputs}, _grouped(tree)
    for column in list(tree.find_all(exp.Column)):
        if not isinstance(column.this, exp.Identifier) or column.find_ancestor(exp.From) is not None:
            continue
        qualifier, name = column.args.get("table"), read_name(column.this)
        if qualifier is not None and (called is None or not read_name(qualifier).agrees(called)):
            raise QueryError(f"there is no table {qualifier.name} in this question", position=position(qualifier))
        column.set("table", None)
        inner = columns.find(name)
        if qualifier is None and name.text.casefold() in called_so and _is_output(column, grouped):
            continue
        if column.find_ancestor(exp.Order) is not None:
            column.meta[COLUMN] = True
        if inner is None:
            if columns.everything or (
                column.find_ancestor(exp.Group, exp.Having, exp.Order) and any(name.agrees(one) for one in outputs)
            ):
                continue
            raise QueryError(f"the sub-select does not hand on a column {name.text}", position=position(column))
        selected = column.parent is tree and column.arg_key == "expressions"
        if not isinstance(inner, exp.Column):
            column.replace(exp.alias_(inner.copy(), column.this.copy()) if selected else inner.copy())
            continue
        known = inner.this.copy()
        known.meta["start"] = position(column)
        if selected and not read_name(known).agrees(name):
            column.replace(exp.alias_(exp.Column(this=known), column.this.copy()))
        else:
            column.set("this", known)


def _grouped(tree: Node) -> list[Name]:
    """The columns that rows are grouped by as they are."""
    items = [bare(item.this if isinstance(item, exp.Alias) else item) for item in tree.expressions]
    group = tree.args.get("group")
    listed = [] if group is None else [one for one in group.find_all(exp.Column) if isinstance(one.parent, _LISTS)]
    columns = [item for item in (*items, *listed) if isinstance(item, exp.Column)]
    return [read_name(column.this) for column in columns if isinstance(column.this, exp.Identifier)]


def _is_output(column: Node, grouped: list[Name]) -> bool:
    """Whether the name of an output means that output, and not a column of the sub-select that is called the same.

    In ORDER BY it does where it stands alone; in HAVING outside of aggregates, unless rows are grouped by the column.
    """
    parent = column.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    if isinstance(parent, exp.Ordered):
        return True
    name = read_name(column.this)
    inside = isinstance(column.find_ancestor(exp.Having, exp.AggFunc, *FLAGS), exp.Having)
    return inside and not any(name.agrees(one) for one in grouped)
