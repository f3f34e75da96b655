"""A statement about the data: which question it is, or which public fact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from sqlglot import exp

from bursar.core.domain import Attribute
from bursar.service.wire import types
from bursar.service.wire.asked import Asked, Context, ResultSet, SelectedItem
from bursar.service.wire.failures import NO_COLUMN, NO_TABLE, UNAVAILABLE, WireError
from bursar.service.wire.protocol import Field
from bursar.service.wire.public import DomainBounds, DomainValues, NoRows
from bursar.service.wire.spelling import Spelling
from bursar.service.wire.trees import (
    Parsed,
    cast_type,
    constant_of,
    infer,
    relations,
    shown_name,
    uncast,
    unique,
    with_values,
)
from bursar.service.wire.types import PgValue
from bursar.sql.syntax import Node

Read = Asked | DomainValues | DomainBounds | NoRows
"""What a statement about the data turns out to be."""

MOST_READ = 1_000


class ReadBefore(dict[str, Read]):
    """What statements about one data set have turned out to be, by their text, where they have no parameters."""

    def __setitem__(self, text: str, read: Read) -> None:
        if len(self) >= MOST_READ:
            self.clear()
        super().__setitem__(text, read)


def is_data_table(table: exp.Table, context: Context) -> bool:
    """Whether a table of the data set is meant; refused where it is called by a wrong schema or database."""
    private = context.bursar.config.private
    names = [name for config in private for name in (config.table, *(parent.table for parent in config.parents))]
    placed = table.db.casefold() in ("", "public") and table.catalog in ("", context.database)
    return placed and any(_names(table, name) for name in names)


def _names(table: exp.Table, name: str) -> bool:
    called = str(table.name)
    return called == name if table.this.args.get("quoted") else called.casefold() == name.casefold()


def _about(tables: Sequence[exp.Table], context: Context) -> Context:
    """The context of the one private table that is asked about: of those that are named, the one that the others add
    columns to. Where there is none, the engine refuses the question by itself."""
    private = context.bursar.config.private
    named = [config for config in private if any(_names(table, config.table) for table in tables)]
    if len(private) == 1 or not named:
        return context
    root = next(
        (config for config in named if {c.table for c in named} <= {config.table, *(p.table for p in config.parents)}),
        named[0],
    )
    return replace(context, asking=lambda: context.asking().table(root.table))


def no_relation(table: exp.Table, context: Context) -> WireError:
    """As PostgreSQL words it."""
    place = table.this.meta.get("start", -1)
    name = ".".join(part for part in (table.db, table.name) if part)
    listed = [config.table for config in context.bursar.config.private]
    called = f"the table is called {listed[0]}" if len(listed) == 1 else f"the tables are {', '.join(listed)}"
    hint = f"{called}; \\d, or information_schema.columns, shows the columns"
    return WireError(NO_TABLE, f'relation "{name}" does not exist', hint=hint, position=place)


@dataclass
class DataQuestion:
    """A question about rows. Nothing is asked before `run`."""

    parsed: Parsed
    context: Context
    given: Sequence[int] = ()
    read_before: ReadBefore = field(default_factory=ReadBefore)
    route: str = "question"
    parameters: list[int] = field(init=False)
    _spelling: Spelling = field(init=False)

    def __post_init__(self) -> None:
        self.context = _about(relations(self.parsed.tree), self.context)
        self._spelling = Spelling(self.context.bursar.config.columns.attributes)
        self.parameters = infer(self.parsed, self.given, self._spelling.type_of)

    @property
    def known(self) -> bool:
        """Whether the very text was read before: its columns, and a repeated answer, are then found at once."""
        return self.parsed.text in self.read_before

    def repeat(self) -> ResultSet | None:
        """The answer, where it was given before and nothing has happened since."""
        question = self.read_before.get(self.parsed.text)
        return question.repeat(self.context) if isinstance(question, Asked) else None

    def fields(self) -> list[Field]:
        """The columns of the answer. Static: read off the question and the config."""
        question = self._asked([_example(oid) for oid in self.parameters])
        return question.fields(self.context)

    def run(self, values: Sequence[PgValue]) -> ResultSet:
        """The answer. This is what is charged for."""
        return self._asked(values).run(self.context)

    def explain(self, values: Sequence[PgValue]) -> list[str]:
        """What it would cost, as PostgreSQL shows plans: with the price where the cost of a plan stands."""
        return self._asked(values).explain(self.context)

    def _asked(self, values: Sequence[PgValue]) -> Read:
        if self.parameters:
            return self._read(values)
        if (question := self.read_before.get(self.parsed.text)) is None:
            question = self.read_before[self.parsed.text] = self._read(values)
        return question

    def _read(self, values: Sequence[PgValue]) -> Read:
        tree = _without_frame(with_values(self.parsed.tree, values))
        casts = [_shown_as_date(item) for item in tree.expressions] if isinstance(tree, exp.Select) else []
        names = [shown_name(item) for item in tree.expressions] if isinstance(tree, exp.Select) else []
        tree = self._spelling.rewrite(tree)
        if not isinstance(tree, exp.Select):
            return Asked(self.parsed, tree.sql("duckdb", comments=False), ())
        limit, offset = (_number(tree.args.get(word)) for word in ("limit", "offset"))
        selected: list[SelectedItem] = []
        for item, shown, inner, as_date in zip(tree.expressions, names, unique(names), casts, strict=True):
            bare = item.this if isinstance(item, exp.Alias) else item
            moment = isinstance(bare, exp.TimestampTrunc | exp.DateTrunc) and not as_date
            selected.append(SelectedItem(shown, inner, moment))
        if limit == 0:
            return NoRows(tree, selected, self._spelling)
        if not self.parsed.clause and (bounds := _bounds(tree, self._spelling)) is not None:
            return DomainBounds(tree, selected, bounds)
        if _is_around(tree):
            limit = offset = None
        elif not tree.args.get("having") and _no_aggregates(tree):
            if tree.args.get("distinct") is not None or tree.args.get("group") is not None:
                return DomainValues(tree, selected, self._spelling, limit, offset or 0)
            _known(tree, self._spelling)
            raise WireError(
                UNAVAILABLE,
                "single rows are never shown: a question is about groups of people",
                hint=_counting(tree, self.context),
            )
        if tree.args.get("order") is None and not _is_around(tree):  # any of the groups will do
            tree.set("limit", None)
            tree.set("offset", None)
        else:
            limit = offset = None
        aliased = [
            item
            if item.is_star
            else exp.alias_(item.this if isinstance(item, exp.Alias) else item, s.inner, quoted=True)
            for item, s in zip(tree.expressions, selected, strict=True)
        ]
        tree.set("expressions", aliased)
        text = " ".join(filter(None, [tree.sql("duckdb", comments=False), self.parsed.clause]))
        return Asked(self.parsed, text, tuple(selected), limit, offset or 0)


def _example(oid: int) -> PgValue:
    if oid in types.ELEMENT:
        return [_example(types.ELEMENT[oid].oid)]
    if oid in (types.DATE.oid, types.TIMESTAMP.oid, types.TIMESTAMPTZ.oid):
        return date(2000, 1, 1)
    if oid == types.BOOL.oid:
        return True
    return "" if oid in (types.TEXT.oid, types.VARCHAR.oid, types.BPCHAR.oid, types.UNKNOWN.oid) else 1


def _shown_as_date(item: Node) -> bool:
    item = item.this if isinstance(item, exp.Alias) else item
    return isinstance(item, exp.Cast) and cast_type(item) is types.DATE


def _without_frame(tree: Node) -> Node:
    """SELECT * FROM (question) AS t ORDER BY ... LIMIT ... is the question itself, ordered and cut."""
    while isinstance(tree, exp.Select) and len(tree.expressions) == 1 and isinstance(tree.expressions[0], exp.Star):
        source = tree.args.get("from_")
        inner = source.this.this if source is not None and isinstance(source.this, exp.Subquery) else None
        others = [
            name
            for name, value in tree.args.items()
            if value and name not in ("expressions", "from_", "order", "limit", "offset")
        ]
        cut = any(tree.args.get(name) for name in ("order", "limit", "offset"))
        if not isinstance(inner, exp.Select) or others:
            break
        if cut and any(inner.args.get(name) for name in ("order", "limit", "offset")):
            break
        if _no_aggregates(inner) and inner.args.get("group") is None and inner.args.get("distinct") is None:
            break
        for name in ("order", "limit", "offset"):
            if tree.args.get(name):
                inner.set(name, tree.args[name])
        for column in [] if inner.args.get("order") is None else inner.args["order"].find_all(exp.Column):
            column.set("table", None)
        tree = inner
    return tree


def _is_around(tree: Node) -> bool:
    """Whether a SELECT reads the lines of a grouped one, or computes with groups: the engine does it all then."""
    source = tree.args.get("from_")
    inner = source is not None and isinstance(source.this, exp.Subquery)
    grouped = [
        select for select in tree.find_all(exp.Select) if select is not tree and select.find(exp.AggFunc, exp.Group)
    ]
    return bool(grouped) and (inner or tree.args.get("with_") is not None)


def _number(clause: Node | None) -> int | None:
    value = None if clause is None else constant_of(clause.expression)
    return value if isinstance(value, int) else None


_AGGREGATES = {"QUANTILE_CONT", "QUANTILE_DISC", "QUANTILE", "MEDIAN", "COUNT_IF", "COUNTIF", "AT_LEAST"}


def _no_aggregates(tree: Node) -> bool:
    return not any(
        isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.upper() in _AGGREGATES)
        for item in tree.expressions
        for node in item.walk()
    )


def _known(tree: Node, columns: Spelling) -> None:
    """A column that is not there is what is wrong with a question, whatever else is."""
    for column in tree.find_all(exp.Column, bfs=False):
        if not column.is_star and columns.attribute(column) is None:
            names = ", ".join(attribute.name for attribute in columns.columns)
            raise WireError(
                NO_COLUMN,
                f'column "{column.name}" does not exist',
                f"there is no column {column.name}; the columns are {names}",
                position=column.this.meta.get("start", -1),
            )


def _counting(tree: Node, context: Context) -> str:
    """A question about groups that is near to one about rows."""
    columns = [item for item in tree.expressions if isinstance(uncast(item.unalias()), exp.Column)]
    table = context.bursar.config.table
    if len(columns) == 1:
        name = uncast(columns[0].unalias()).sql("duckdb")
        return f"SELECT {name}, COUNT(*) FROM {table} GROUP BY {name}"
    return f"SELECT COUNT(*) FROM {table}"


def _bounds(tree: Node, columns: Spelling) -> list[tuple[Attribute, bool]] | None:
    """The columns of MIN and MAX, and which of both, where nothing else is asked."""
    if any(tree.args.get(name) for name in ("group", "having", "distinct")):
        return None
    bounds: list[tuple[Attribute, bool]] = []
    for item in tree.expressions:
        node = item.unalias()
        column = node.this if isinstance(node, exp.Min | exp.Max) else None
        attribute = columns.attribute(column) if isinstance(column, exp.Column) else None
        if attribute is None or not attribute.ordered:
            return None
        bounds.append((attribute, isinstance(node, exp.Max)))
    where = tree.args.get("where")
    chosen = [] if where is None else [columns.attribute(column) for column in where.find_all(exp.Column)]
    return None if any(attribute in chosen for attribute, _ in bounds) else bounds or None
