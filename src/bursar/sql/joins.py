"""JOIN ... ON along declared keys: the joined tables add columns to the rows of one table, and no rows.

    SELECT p.sex, COUNT(*) FROM visits v JOIN people p ON v.person = p.person GROUP BY p.sex

asks about rows of visits that have a row of people; with LEFT JOIN about all of them. With several private tables, a
question is about the one that it names.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from bursar.core.extensions.joins import Parent
from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql.names import DeclaredColumns, Name
from bursar.sql.parse import read_query, read_syntax
from bursar.sql.pivots import as_select
from bursar.sql.query import Described, Query
from bursar.sql.syntax import Node, bare, operands, position, read_name
from bursar.sql.tokens import described

Pairs = frozenset[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class DeclaredTables:
    """The table that questions are about, and those that may be joined to it."""

    root: str
    unit: str | None
    parents: tuple[Parent, ...] = ()

    def joins(self, text: str) -> bool:
        """Whether a text may join them."""
        return bool(self.parents) and isinstance(text, str) and "join" in text.casefold()

    def parent(self, name: Name) -> Parent | None:
        """The table of a typed name that may be joined; None where none is declared."""
        return next((parent for parent in self.parents if name.names(parent.table)), None)

    def on(self, parent: Parent) -> Pairs:
        """The columns that are equal: of the root table, and of the parent."""
        unit_pair = [] if parent.public or parent.owner or self.unit is None else [(self.unit, self.unit)]
        return frozenset([*parent.keys, *unit_pair])

    def path(self, parent: Parent) -> str:
        """How the two are joined, as it is written."""
        each = (f"{self.root}.{mine} = {parent.table}.{theirs}" for mine, theirs in sorted(self.on(parent)))
        pairs = " AND ".join(each)
        return f"{self.root} JOIN {parent.table} ON {pairs}"


def parse_joined(
    text: str, tables: DeclaredTables, *, measured: bool = False, columns: DeclaredColumns | None = None
) -> Query | None:
    """The question of a text that joins declared tables, about the one table; None where it joins nothing."""
    if not tables.joins(text):
        return None
    try:
        syntax = read_syntax(text)
        if not isinstance(syntax.tree, exp.Select) or not syntax.tree.args.get("joins"):
            return None
        tree = _Joined(tables, syntax.tree.copy()).opened()
        query = read_query(tree, syntax.tokens, measured=measured or syntax.goal is not None, columns=columns)
        return syntax.asked(query, text, measured=measured)
    except QueryError as refusal:
        raise replace(refusal, text=text) from None


class _Joined:
    """One statement: its tables by what they are called, and its columns by the table they stand in."""

    def __init__(self, tables: DeclaredTables, tree: Node) -> None:
        self.tables, self.tree = tables, tree
        self.called: dict[str, Parent | None] = {}  # by lower-case name or alias; None for the root table

    def opened(self) -> Node:
        """The statement about the root table alone, with the columns of the others under their own names."""
        tree = self.tree
        source, joins = tree.args["from_"], tree.args["joins"]
        nodes = [source.this, *(join.this for join in joins)]
        for node in nodes:
            self._call(node)
        roots = [node for node in nodes if self._parent(node) is None]
        if len(roots) != 1:
            raise self._strangers(nodes[-1])
        outer = [join for join in joins if join.args.get("side")]
        if roots[0] is not source.this and outer:
            named, root = self._parent(source.this), self.tables.root
            assert named is not None
            zeros = "; GROUP BY its key shows every value, with COUNT(*) 0 where there is none" if named.public else ""
            raise QueryError(
                f"a row of {named.table} without rows of {root} belongs to nobody{zeros}; begin with {root} and LEFT "
                "JOIN the other",
                position=position(source.this),
            )
        conditions: list[Node] = []
        for join in joins:
            parent = self._parent(join.this) or self._parent(source.this)
            assert parent is not None
            conditions += self._condition(join, parent)
        self._rename()
        for condition in conditions:
            tree.where(condition, copy=False)
        source.set("this", roots[0])
        tree.set("joins", None)
        return tree

    def _call(self, node: Node) -> None:
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise QueryError("JOIN takes the name of a declared table", position=position(node))
        name, alias = read_name(node.this), node.args.get("alias")
        parent = None if name.names(self.tables.root) else self.tables.parent(name)
        if parent is None and not name.names(self.tables.root):
            raise QueryError(f"there is no table {name.text}; {self._paths()}", position=name.position)
        called = (name if alias is None else read_name(alias.this)).text.casefold()
        if called in self.called:
            raise self._strangers(node)
        self.called[called] = parent

    def _parent(self, node: Node) -> Parent | None:
        alias = node.args.get("alias")
        return self.called[str((node.this if alias is None else alias.this).this).casefold()]

    def _paths(self) -> str:
        return f"declared is {'; '.join(self.tables.path(parent) for parent in self.tables.parents)}"

    def _strangers(self, node: Node) -> QueryError:
        return QueryError(
            f"rows of different people are not joined, nor a table with itself; {self._paths()}",
            position=position(node),
        )

    def _condition(self, join: Node, parent: Parent) -> list[Node]:
        """What a join asks of a row of the root table; refused where it is not the declared one."""
        side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
        if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER") or join.args.get("method"):
            raise QueryError(f"JOIN and LEFT JOIN are available; {self._paths()}", position=position(join))
        if self._pairs(join, parent) not in (self.tables.on(parent), frozenset(parent.keys)):
            raise QueryError(
                f"{self.tables.root} and {parent.table} are joined by their declared keys: {self.tables.path(parent)}",
                position=position(join),
            )
        if side == "LEFT" or parent.owner:
            return []
        return [exp.EQ(this=exp.column(parent.has, quoted=True), expression=exp.true())]

    def _pairs(self, join: Node, parent: Parent) -> Pairs | None:
        using = join.args.get("using")
        if using:
            return frozenset((name, name) for name in (str(node.this) for node in using))
        on = join.args.get("on")
        pairs: list[tuple[str, str]] = []
        for part in [] if on is None else operands(bare(on), exp.And):
            equal = bare(part)
            sides = [bare(equal.this), bare(equal.expression)] if isinstance(equal, exp.EQ) else []
            if len(sides) != 2 or not all(isinstance(side, exp.Column) and side.table for side in sides):
                return None
            tables = [self._table(side) for side in sides]
            if set(tables) != {None, parent}:
                return None
            mine, theirs = sides if tables[0] is None else reversed(sides)
            pairs.append((str(mine.this.this), str(theirs.this.this)))
        return frozenset(self._spelt(pair, parent) for pair in pairs)

    def _spelt(self, pair: tuple[str, str], parent: Parent) -> tuple[str, str]:
        """A pair of typed names in the letters of the declared ones, where case does not matter."""
        folded = {(a.casefold(), b.casefold()): (a, b) for a, b in self.tables.on(parent)}
        return folded.get((pair[0].casefold(), pair[1].casefold()), pair)

    def _table(self, column: Node) -> Parent | None:
        name = read_name(column.args["table"])
        if name.text.casefold() not in self.called:
            raise QueryError(f"there is no table {name.text} in this question", position=name.position)
        return self.called[name.text.casefold()]

    def _rename(self) -> None:
        """Columns without the names of their tables; a key of a parent is the column that it equals."""
        for column in list(self.tree.find_all(exp.Column)):
            if not column.args.get("table") or column.find_ancestor(exp.Join) is not None:
                continue
            parent, name = self._table(column), read_name(column.this)
            column.set("table", None)
            if parent is None:
                continue
            keys = {theirs: mine for mine, theirs in self.tables.on(parent)}
            key = next((mine for theirs, mine in keys.items() if name.names(theirs)), None)
            if any(name.names(of_parent) for of_parent in parent.columns):
                continue
            if key is None:
                listed = ", ".join(parent.columns)
                raise QueryError(f"{parent.table} has the columns {listed}, and no {name.text}", position=name.position)
            renamed = exp.Identifier(this=key, quoted=True)
            renamed.meta.update(column.this.meta)
            column.set("this", renamed)


@lru_cache(maxsize=1024)
def tables_named(text: str) -> tuple[frozenset[str], ...]:
    """The tables behind FROM and JOIN of each SELECT that has any, in lower case; none where a text cannot be read.

    Of DESCRIBE, the table that is described.
    """
    told = described(text)
    if told is not None:
        return (frozenset([told[1].text.casefold()]),) if told[0] is Described.COLUMNS else ()
    try:
        tree = read_syntax(text).tree
    except QueryError:
        return ()
    if isinstance(tree, exp.Pivot):
        tree = as_select(tree)
    ctes = {cte.alias_or_name.casefold() for cte in tree.find_all(exp.CTE)}
    named: dict[int, set[str]] = {}
    for table in tree.find_all(exp.Table):
        select, name = table.find_ancestor(exp.Select), table.name.casefold()
        if select is not None and name and name not in ctes:
            named.setdefault(id(select), set()).add(name)
    return tuple(frozenset(names) for names in named.values())
