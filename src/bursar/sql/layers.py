"""Layers of a statement: the SELECT that reads the table, and those around it, which read its lines.

Only the innermost one is bought. What is around it, and what its own select list does with aggregates and groups beyond
what `read_statement` knows, is a stage: a SELECT over lines of answers, which costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property, reduce
from itertools import chain, count
from typing import Any

from sqlglot import exp
from sqlglot.tokens import Token

from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql.aggregates import is_aggregate
from bursar.sql.names import DeclaredColumns, Name
from bursar.sql.query import Query
from bursar.sql.read_stage import BOUNDS, LineReader, count_of_lines, line_sort, name_of_function, read_stage
from bursar.sql.syntax import (
    FLAGS,
    Node,
    bare,
    check_allowed,
    check_keys,
    open_subselects,
    operands,
    plain_copy,
    position,
    read_name,
    without_alias,
)
from bursar.sql.terms import Fold, Stage, walk_terms
from bursar.sql.unions import branches_of_union, clauses_around, stacked, together

MOST_STAGES = 8
"""Most SELECTs around the one that reads the table."""

MOST_NAMED_PARTS = 10_000
"""Most parts of a tree that names of selected columns may stand for: each may be made of others."""

NO_TOTALS = "lines of ROLLUP, CUBE and GROUPING SETS are not computed with; select what you need of them"

Read = Callable[[Node], Query]
"""How the SELECT that reads the table is read."""


def read_layers(
    tree: Node,
    tokens: list[Token],
    read: Read,
    *,
    measured: bool = False,
    columns: DeclaredColumns | None = None,
    copies: int = 1,
) -> Query:
    """The question of a statement that may have SELECTs around the one that reads the table.

    MIN and MAX are measured where an accuracy is asked for, but for days and text, and else the declared bounds.
    `copies` says how often its lines stand in a UNION ALL that is around it.
    """
    around, base = _layers(tree)
    if isinstance(base, exp.SetOperation):
        query = _read_union(base, tokens, read, measured=measured, columns=columns, copies=copies)
        return _with_stages(query, list(query.stages), around, tokens)
    _declare_bounds(base, measured=measured, columns=columns)
    clauses = any(base.args.get(name) is not None for name in ("having", "order", "limit", "offset", "qualify"))
    refusal: QueryError | None = None
    if not (around and clauses):
        try:
            opened = open_subselects(base)
            check_allowed(opened, tokens)
            query = read(opened)
            if not query.aggregates and around:
                raise QueryError(
                    "this would count the groups that occur; ask for COUNT(DISTINCT column)", position=position(base)
                )
            return _with_stages(query, [], around, tokens)
        except QueryError as fault:
            refusal = fault
    try:
        query, stage = _split(open_subselects(base), tokens, read)
        return _with_stages(query, [stage], around, tokens)
    except QueryError:
        windows = base.args.get("group") is not None and base.find(exp.Window) is not None
        if windows or refusal is None:
            raise
        if _computes_with_totals(base):
            raise replace(refusal, reason=NO_TOTALS) from None  # where it is computed is what can be left out
        raise refusal from None


def _computes_with_totals(base: Node) -> bool:
    """Whether aggregates beside ROLLUP and its like are parts of something."""
    group = base.args.get("group")
    if group is None or group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is None:
        return False
    items = [without_alias(item) for item in base.expressions if item.find(*FLAGS) is None]
    return any(isinstance(item, exp.Func) and not is_aggregate(item) and item.find(exp.AggFunc) for item in items)


def _read_union(
    tree: Node,
    tokens: list[Token],
    read: Read,
    *,
    measured: bool,
    columns: DeclaredColumns | None,
    copies: int,
) -> Query:
    """SELECTs with UNION ALL between them: about the table, or about the same lines of a SELECT in WITH or FROM."""
    clause = tree.args.get("with_")
    branches = branches_of_union(tree, tokens, copies)
    layers: list[tuple[list[tuple[Node, Name | None]], Node]] = []
    for branch in branches:
        select = branch.copy()
        if clause is not None:
            select.set("with_", clause.copy())
        layers.append(_layers(select))
    if len({plain_copy(base) for _, base in layers}) > 1:
        layers = [([], base) if _hands_on(around) else (around, base) for around, base in layers]
    if all(not around for around, _ in layers):
        parts: list[tuple[Query, Stage]] = []
        for _, base in layers:
            _declare_bounds(base, measured=measured, columns=columns)
            parts.append(_split(open_subselects(base), tokens, read))
        return together(parts, tree)
    base = layers[0][1]
    if any(len(around) != 1 or plain_copy(other) != plain_copy(base) for around, other in layers):
        raise QueryError(
            "the SELECTs of a UNION ALL are all about the table, or all about the lines of one SELECT in WITH",
            position=position(tree),
        )
    query = read_layers(base, tokens, read, measured=measured, columns=columns, copies=copies * len(branches))
    names = [name for name, _ in query.stages[-1].columns] if query.stages else [*_keys(query), *query.names]
    stage = stacked([read_stage(around[0][0], around[0][1], names, tokens) for around, _ in layers], tree)
    _check_counted([*query.stages, stage])
    return replace(query, stages=(*query.stages, stage, *clauses_around(tree, stage)))


def _hands_on(around: Sequence[tuple[Node, Name | None]]) -> bool:
    """Whether what is around a SELECT hands its lines on as they are: SELECT * FROM it."""
    return all(
        len(select.expressions) == 1
        and isinstance(select.expressions[0], exp.Star)
        and not any(value for name, value in select.args.items() if name not in ("expressions", "from_", "kind"))
        and not any(select.expressions[0].args.values())
        for select, _ in around
    )


def _declare_bounds(base: Node, *, measured: bool, columns: DeclaredColumns | None) -> None:
    """MIN and MAX of columns of the table as what is declared; where numbers are measured, of days and text alone."""
    for node in list(base.find_all(exp.Min, exp.Max)):
        whole = node.parent if isinstance(node.parent, exp.Filter) else node
        column = bare(node.this)
        if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
            continue
        if isinstance(whole.parent, exp.Window):
            continue
        if not measured or (columns is not None and not columns.holds_numbers(read_name(column.this))):
            name = "DECLARED_MIN" if isinstance(node, exp.Min) else "DECLARED_MAX"
            declared = exp.Anonymous(this=name, expressions=[bare(node.this).copy()])
            declared.meta["start"] = position(node)
            whole.replace(declared)


def _with_stages(
    query: Query, stages: list[Stage], around: Sequence[tuple[Node, Name | None]], tokens: list[Token]
) -> Query:
    names = [name for name, _ in stages[-1].columns] if stages else [*_keys(query), *query.names]
    for select, called in reversed(around):
        stage = read_stage(select, called, names, tokens)
        stages = [*stages, stage]
        names = [name for name, _ in stage.columns]
    if not stages:
        return query
    _check_counted(stages)
    if query.sets or query.flags:
        raise QueryError(NO_TOTALS)
    return replace(query, stages=tuple(stages))


def _check_counted(stages: Sequence[Stage]) -> None:
    """Refuse to count all groups: those that occur are fewer than those that are listed, and how many is a question."""
    for stage in stages:
        if stage.where is not None or stage.qualify is not None or stage.limit is not None:
            return
        folds = [part for term in stage.all_terms() for part in walk_terms(term) if isinstance(part, Fold)]
        for fold in folds:
            if fold.function == "count" and fold.of is None and fold.condition is None:
                raise QueryError(
                    "this counts the groups that somebody is in; COUNT(DISTINCT column) does", position=fold.position
                )


def _keys(query: Query) -> list[str]:
    return [key.name for key in query.keys]


def _layers(tree: Node) -> tuple[list[tuple[Node, Name | None]], Node]:
    """The SELECTs around, outermost first, each with the name of what it reads; and the one that reads the table."""
    select = tree.copy()
    shared: list[tuple[Name, Node]] = []
    around: list[tuple[Node, Name | None]] = []
    while True:
        if isinstance(select, exp.SetOperation):
            break
        shared += _taken_ctes(select)
        inner, called = _source(select, shared)
        if inner is None or not _is_grouped(inner, shared) or select.args.get("joins"):
            break
        if len(around) == MOST_STAGES:
            raise QueryError(f"at most {MOST_STAGES} SELECTs can be around one", position=position(select))
        around.append((select, called))
        select = inner.copy()
    if shared and isinstance(select, exp.SetOperation):
        ctes = [exp.CTE(this=cte.copy(), alias=exp.TableAlias(this=_identifier(name))) for name, cte in shared]
        select.set("with_", exp.With(expressions=ctes))
    elif shared:
        ctes = [exp.CTE(this=cte.copy(), alias=exp.TableAlias(this=_identifier(name))) for name, cte in shared]
        select.set("with_", exp.With(expressions=[cte for cte in ctes if not _is_grouped(cte.this, shared)]))
        if not select.args["with_"].expressions:
            select.set("with_", None)
    return around, select


def _identifier(name: Name) -> Node:
    return exp.to_identifier(name.text, quoted=name.quoted)


def _taken_ctes(select: Node) -> list[tuple[Name, Node]]:
    clause = select.args.get("with_")
    if clause is None:
        return []
    select.set("with_", None)
    for cte in clause.expressions:
        if clause.args.get("recursive") or cte.args["alias"].args.get("columns"):
            raise QueryError(
                "WITH names plain sub-selects, without RECURSIVE or a list of columns", position=position(cte)
            )
    return [(read_name(cte.args["alias"].this), cte.this) for cte in clause.expressions]


def _source(select: Node, shared: Sequence[tuple[Name, Node]]) -> tuple[Node | None, Name | None]:
    """The sub-select that a SELECT reads, if it does, and the name by which it is called."""
    source = select.args.get("from_")
    if source is None:
        return None, None
    alias = source.this.args.get("alias")
    called = None if alias is None else read_name(alias.this)
    if isinstance(source.this, exp.Subquery):
        inner = bare(source.this.this)
        return (inner if isinstance(inner, exp.Select | exp.SetOperation) else None), called
    if isinstance(source.this, exp.Table) and isinstance(source.this.this, exp.Identifier):
        table = read_name(source.this.this)
        inner = next((cte for name, cte in reversed(shared) if table.agrees(name)), None)
        return inner, called or table
    return None, None


def _is_grouped(select: Node, shared: Sequence[tuple[Name, Node]]) -> bool:
    """Whether the lines of a SELECT are groups, or those of a sub-select that are."""
    if isinstance(select, exp.SetOperation):
        return any(_is_grouped(bare(side), shared) for side in (select.this, select.expression))
    if not isinstance(select, exp.Select):
        return False
    clauses = any(select.args.get(name) is not None for name in ("group", "having", "distinct"))
    if clauses or any(item.find(exp.AggFunc) is not None for item in select.expressions):
        return True
    names = [(name, cte) for name, cte in shared if cte is not select]
    inner, _ = _source(select, names)
    return inner is not None and inner is not select and _is_grouped(inner, names)


class _NamedNodes:
    """Groups or aggregates with the names of their columns, found whichever way they are spelled."""

    def __init__(self) -> None:
        self._nodes: list[tuple[Node, str]] = []
        self._names: dict[Node, str] = {}
        self._lengths: dict[type[Node], set[int]] = {}

    def __iter__(self) -> Iterator[tuple[Node, str]]:
        return iter(self._nodes)

    def add(self, node: Node, name: str) -> None:
        self._nodes.append((node, name))
        self._names.setdefault(plain_copy(node), name)
        self._lengths.setdefault(type(bare(node)), set()).add(_length(bare(node)))

    def name_of(self, node: Node) -> str | None:
        """Edge cases: None at once for what cannot be any of them; plain copies of all parts of a tree take long."""
        node = bare(node)
        possible = type(node) in self._lengths and _length(node) in self._lengths[type(node)]
        return self._names.get(plain_copy(node)) if possible else None


def _length(node: Node) -> int:
    """How many conditions a chain of ANDs, or of ORs, has."""
    return len(operands(node, type(node))) if isinstance(node, exp.Connector) else 1


@dataclass
class _Base:
    """The SELECT that is bought, as it is put together: its groups, and the aggregates that somebody needs."""

    keys: _NamedNodes = field(default_factory=_NamedNodes)
    aggregates: _NamedNodes = field(default_factory=_NamedNodes)
    names: dict[str, Node] = field(default_factory=dict)  # what is selected, by its name in lower case
    named: dict[str, Node] = field(default_factory=dict)  # what was put for names
    parts: int = 0  # of what was put for names, as often as it was

    @cached_property
    def _given(self) -> dict[Node, str]:
        """The first name that each selected node is given."""
        return {plain_copy(item): name for name, item in reversed(self.names.items())}

    def free(self, base: str) -> str:
        taken = {name.casefold() for _, name in (*self.keys, *self.aggregates)}
        numbered = (f"{base}_{number}" for number in count(2))
        return next(name for name in chain([base], numbered) if name.casefold() not in taken)

    def put(self, node: Node, inside: tuple[str, ...] = ()) -> Node:
        """A node with its groups and aggregates replaced by the names of their columns."""
        node = bare(node)
        key = self.keys.name_of(node)
        if key is not None:
            return _column(key, node)
        if isinstance(node, exp.Anonymous) and node.name.upper() in BOUNDS:
            return node.copy()
        if isinstance(node, exp.Window):
            return self._over(node)
        if is_aggregate(node) or isinstance(node, exp.AggFunc):
            return _column(self._aggregate(node), node)
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            name = node.name.casefold()
            if name in self.names and name not in inside:
                return self._named(name, node, inside)
        if isinstance(node, exp.Column):
            raise QueryError(f"{node.name} is selected but not in GROUP BY", position=position(node))
        return self._chain(node, inside) if isinstance(node, exp.Connector) else self._inside(node, inside)

    def _named(self, name: str, node: Node, inside: tuple[str, ...]) -> Node:
        """What a selected name stands for, which is put once and copied then."""
        if name not in self.named:
            self.named[name] = self.put(self.names[name], (*inside, name))
        self.parts += sum(1 for _ in self.named[name].walk())
        if self.parts > MOST_NAMED_PARTS:
            raise QueryError(
                "names that are made of other names make this too long; use fewer of them", position=position(node)
            )
        return self.named[name].copy()

    def _chain(self, node: Node, inside: tuple[str, ...]) -> Node:
        """ANDs, or ORs, in a row: a deep tree to the left, in which the first ones may be a group together."""
        kind, waiting = type(node), []
        while type(node) is kind and self.keys.name_of(node) is None:
            waiting.append(node.expression)
            node = bare(node.this)
        parts = [self.put(part, inside) for part in (node, *reversed(waiting))]
        return reduce(lambda left, right: kind(this=left, expression=right), parts)

    def _inside(self, node: Node, inside: tuple[str, ...] = ()) -> Node:
        copy = type(node)(**{name: self._part(part, inside) for name, part in node.args.items()})
        copy.meta.update(node.meta)
        return copy

    def _part(self, part: Any, inside: tuple[str, ...]) -> Any:
        """An argument of a node: another one, a list of them, or something else."""
        if isinstance(part, list):
            return [self._part(each, inside) for each in part]
        if isinstance(part, exp.DataType | exp.Var | exp.Identifier):
            return part.copy()
        return self.put(part, inside) if isinstance(part, exp.Expression) else part

    def _over(self, node: Node) -> Node:
        """A window function over lines: what is inside of it is put, and not the function itself."""
        copy = node.copy()
        inner = copy.this
        inner.replace(self._inside(inner.copy()))
        for part in copy.args.get("partition_by") or []:
            part.replace(self.put(part.copy()))
        for sort in copy.find_all(exp.Ordered):
            if sort.find_ancestor(exp.Window) is copy:
                sort.this.replace(self.put(sort.this.copy()))
        return copy

    def _aggregate(self, node: Node) -> str:
        name = self.aggregates.name_of(node)
        if name is not None:
            return name
        function = bare(node.this) if isinstance(node, exp.Filter) else node
        name = self.free(self._given.get(plain_copy(node)) or function.key)
        self.aggregates.add(node, name)
        return name


def _column(name: str, place: Node) -> Node:
    identifier = exp.to_identifier(name, quoted=True)
    identifier.meta["start"] = position(place)
    return exp.Column(this=identifier)


def _split(select: Node, tokens: list[Token], read: Read) -> tuple[Query, Stage]:
    """A SELECT that reads the table, as one that is bought, and a stage that makes of its lines what was asked."""
    if select.args.get("from_") is None:
        raise QueryError("a question says FROM which table", position=max(position(select), 0))
    check = select.copy()
    for name in ("qualify", "distinct"):
        check.set(name, None)
    check_allowed(check, tokens)
    if select.args.get("qualify") is not None:
        check_allowed(select.args["qualify"].this, tokens)
    if select.find(exp.Star, bfs=False) is not None and any(item.is_star for item in select.expressions):
        raise QueryError("SELECT takes group columns and aggregates such as COUNT(*)", position=position(select))
    if select.args.get("distinct") is not None:
        raise QueryError("SELECT DISTINCT is not available; GROUP BY lists every value", position=position(select))
    base = _Base(names={item.alias.casefold(): item.this for item in select.expressions if item.alias})
    group = _groups(select, base)
    put = [base.put(without_alias(item)) for item in select.expressions]
    having, qualify, order = (select.args.get(name) for name in ("having", "qualify", "order"))
    if having is not None:
        _check_equal(having.this, base)
    if any(clause is not None and _is_bound(clause) for clause in (having, qualify, order)):
        raise QueryError(
            "MIN and MAX are declared bounds here, and choose no groups; a quantile does", position=position(select)
        )
    where = None if having is None else base.put(having.this)
    chosen = None if qualify is None else base.put(qualify.this)
    outputs = _output_names(select.expressions, base)
    sorts = [] if order is None else [(sort, _sorted_by(sort, select, put, base)) for sort in order.expressions]
    bought = exp.Select(
        expressions=[exp.alias_(node.copy(), name, quoted=True) for node, name in (*base.keys, *base.aggregates)],
        from_=select.args["from_"].copy(),
    )
    if select.args.get("where") is not None:
        bought.set("where", select.args["where"].copy())
    if group is not None:
        bought.set("group", group)
    if not bought.expressions and not all(_is_bound(item) for item in select.expressions):
        raise QueryError("SELECT takes group columns and aggregates such as COUNT(*)", position=position(select))
    if not bought.expressions:  # declared bounds alone: one line, and nothing to buy
        bought.set("expressions", [exp.Count(this=exp.Star(), big_int=True)])
        query = replace(read(bought), aggregates=())
    else:
        query = read(bought)
    reader = LineReader([name for _, name in (*base.keys, *base.aggregates)], None)
    stage = Stage(
        columns=tuple((name, reader.read(node)) for name, node in zip(outputs, put, strict=True)),
        where=None if where is None else reader.read(where),
        qualify=None if chosen is None else reader.read(chosen),
        order=tuple(line_sort(sort, reader.read(node)) for sort, node in sorts),
        limit=count_of_lines(select.args.get("limit"), least=1),
        offset=count_of_lines(select.args.get("offset")) or 0,
    )
    return query, stage


def _is_bound(item: Node) -> bool:
    """Whether this is made of declared bounds."""
    calls = [node for node in item.find_all(exp.Anonymous) if node.name.upper() in BOUNDS]
    return bool(calls) and item.find(exp.Window) is None


def _check_equal(condition: Node, base: _Base) -> None:
    """Refuse to ask whether an aggregate is equal to something."""
    for node in condition.find_all(exp.EQ, exp.NEQ, exp.In):
        sides = [bare(node.this), *([bare(node.expression)] if node.expression is not None else [])]
        named = [base.names.get(side.name.casefold(), side) if isinstance(side, exp.Column) else side for side in sides]
        if any(side.find(exp.AggFunc) is not None for side in named):
            raise QueryError(
                "a number with an error is hardly ever equal to another; compare by <, <=, >, >= or BETWEEN",
                position=position(node),
            )


def _groups(select: Node, base: _Base) -> Node | None:
    """GROUP BY by the expressions themselves; the keys get the names that they are selected by, or their own."""
    group = select.args.get("group")
    if group is None:
        return None
    if group.find(exp.Rollup, exp.Cube, exp.GroupingSets, *FLAGS) is not None:
        raise QueryError(NO_TOTALS, position=position(group))
    check_keys(group)
    aliases = [(plain_copy(item.this), item.alias) for item in select.expressions if item.alias]
    parts: list[Node] = []
    for written in group.expressions:
        part = bare(written)
        if isinstance(part, exp.Literal) and not part.is_string and str(part.this).isdecimal():
            place = int(str(part.this))
            if not 1 <= place <= len(select.expressions):
                raise QueryError(
                    f"GROUP BY counts the selected columns from 1 to {len(select.expressions)}", position=position(part)
                )
            written = part = without_alias(select.expressions[place - 1])
        elif isinstance(part, exp.Column) and part.name.casefold() in base.names and part.args.get("table") is None:
            part = bare(base.names[part.name.casefold()])
        if part.find(exp.AggFunc, exp.Window) is not None:
            raise QueryError("GROUP BY cannot mean an aggregate", position=position(part))
        plain = plain_copy(part)
        alias = next((name for node, name in aliases if node == plain), "")
        name = part.name if isinstance(part, exp.Column) else "key"
        if base.keys.name_of(part) is None:
            base.keys.add(part, base.free(alias or name))
        parts.append(written.copy())  # by its alias, if that is how it was named: whether it may be is for the reader
    return exp.Group(expressions=parts) if parts else None


def _output_names(items: Sequence[Node], base: _Base) -> list[str]:
    """The names of what is selected: as given, of a group its own, of an aggregate that of the function."""
    names: list[str] = []
    taken: set[str] = set()
    for item in items:
        node = without_alias(item)
        name = item.alias or base.keys.name_of(node) or base.aggregates.name_of(node)
        name = name or (node.name if isinstance(node, exp.Column) else name_of_function(node))
        numbered = (f"{name}_{number}" for number in count(2))
        if item.alias and name.casefold() in taken:
            raise QueryError(f"two selected columns are called {name}", position=position(item))
        names.append(next(each for each in chain([name], numbered) if each.casefold() not in taken))
        taken.add(names[-1].casefold())
    return names


def _sorted_by(sort: Node, select: Node, put: Sequence[Node], base: _Base) -> Node:
    """What ORDER BY means: a place in the select list, a selected name, or anything that could be selected."""
    node = bare(sort.this)
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
        place = int(str(node.this))
        if not 1 <= place <= len(put):
            raise QueryError(f"ORDER BY counts the selected columns from 1 to {len(put)}", position=position(node))
        return put[place - 1]
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        for item, replaced in zip(select.expressions, put, strict=True):
            if item.alias and item.alias.casefold() == node.name.casefold():
                return replaced
    return base.put(node)
