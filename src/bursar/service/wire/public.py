"""What is told for nothing, because it is public: declared values and bounds, and columns without rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from sqlglot import exp

from bursar.compile.values import Decimals
from bursar.core.domain import Attribute, Bins, Dates, IntegerRange
from bursar.service.wire import types
from bursar.service.wire.asked import Asked, Context, Refusing, ResultSet, SelectedItem, field_of, key_type, label_as
from bursar.service.wire.failures import NO_COLUMN, UNAVAILABLE, WireError, notice
from bursar.service.wire.protocol import Field
from bursar.service.wire.spelling import Spelling
from bursar.service.wire.trees import Parsed
from bursar.service.wire.types import PgType, PgValue
from bursar.sql.syntax import Node

FREE = "nothing was measured or charged"


@dataclass(frozen=True)
class DomainValues:
    """SELECT DISTINCT and GROUP BY without any aggregate: the values that are declared, whoever has them."""

    tree: Node
    selected: Sequence[SelectedItem]
    columns: Spelling
    limit: int | None
    offset: int

    def fields(self, context: Context) -> list[Field]:
        return [field_of(item.shown, kind) for item, kind in zip(self.selected, self._kinds(context), strict=True)]

    def _kinds(self, context: Context) -> list[PgType]:
        text, _ = self._text()
        query = Asked(Parsed(text, self.tree), text, ()).query(context)
        keys = {key.name: key for key in query.keys}
        return [key_type(keys[item.inner], query, context, moment=item.moment) for item in self.selected]

    def _text(self) -> tuple[str, str | None]:
        """The question for the number of people with each value, of which only the values are taken; and a pattern."""
        tree = self.tree.copy()
        items = [
            exp.alias_(item.unalias(), s.inner, quoted=True)
            for item, s in zip(tree.expressions, self.selected, strict=True)
        ]
        if tree.args.get("group") is None:
            tree.set("distinct", None)
            places = [exp.Literal.number(place) for place in range(1, len(items) + 1)]
            tree.set("group", exp.Group(expressions=places))
        pattern = self._pattern(tree, items)
        for name in ("limit", "offset", "distinct"):
            tree.set(name, None)
        counted = exp.alias_(exp.Count(this=exp.Star()), "bursar_n", quoted=True)
        tree.set("expressions", [*items, counted])
        return tree.sql("duckdb", comments=False), pattern

    def _pattern(self, tree: Node, items: Sequence[Node]) -> str | None:
        """The pattern of WHERE column ILIKE '%...%': of a list of values, those are shown that match."""
        where = tree.args.get("where")
        like = None if where is None else where.this
        if not isinstance(like, exp.ILike | exp.Like) or len(items) != 1 or like.this != items[0].this:
            return None
        if not isinstance(like.expression, exp.Literal):
            return None
        tree.set("where", None)
        return str(like.expression.this)

    def run(self, context: Context) -> ResultSet:
        kinds = self._kinds(context)
        text, pattern = self._text()
        with Refusing(text, text):
            query, workload = context.bursar.engine.read(text)
        lines: Sequence[int] = range(len(workload.labels))
        if workload.after is not None and workload.after.order:
            if any(order.output >= 0 for order in workload.after.order):
                raise WireError(UNAVAILABLE, "values are ordered by themselves, as ORDER BY 1")
            lines = workload.after.pick([], len(workload.labels), 0.5).lines.tolist()
        names = [key.name for key in query.keys]
        rows = [
            [
                label_as(workload.labels[line][names.index(s.inner)], kind)
                for s, kind in zip(self.selected, kinds, strict=True)
            ]
            for line in lines
        ]
        if pattern is not None:
            matches = _like(pattern)
            rows = [row for row in rows if isinstance(row[0], str) and row[0] != "other" and matches(row[0])]
        rows = rows[self.offset :] if self.limit is None else rows[self.offset : self.offset + self.limit]
        named = ", ".join(item.shown for item in self.selected)
        told = notice(f"the declared values of {named}, whether or not anybody has them; {FREE}")
        return ResultSet([field_of(s.shown, kind) for s, kind in zip(self.selected, kinds, strict=True)], rows, (told,))

    def explain(self, context: Context) -> list[str]:
        return ["Declared values  (cost=0.000000..0.000000 rows=0 width=0)", FREE]


def _like(pattern: str) -> Callable[[str], bool]:
    parts = [".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern]
    compiled = re.compile("".join(parts), re.IGNORECASE | re.DOTALL)
    return lambda text: compiled.fullmatch(text) is not None


@dataclass(frozen=True)
class DomainBounds:
    """MIN and MAX without an accuracy: the bounds that are declared."""

    tree: Node
    selected: Sequence[SelectedItem]
    bounds: Sequence[tuple[Attribute, bool]]

    def fields(self, context: Context) -> list[Field]:
        return [
            field_of(item.shown, types.type_of(attribute))
            for item, (attribute, _) in zip(self.selected, self.bounds, strict=True)
        ]

    def run(self, context: Context) -> ResultSet:
        names = ", ".join(dict.fromkeys(attribute.name for attribute, _ in self.bounds))
        told = notice(
            f"the declared bounds of {names}, whoever there is between them; {FREE}",
            "With WITH ERROR 50 behind it, those of numbers are measured: bounds beyond which at most 50 rows lie.",
        )
        return ResultSet(self.fields(context), [[_bound(*bound) for bound in self.bounds]], (told,))

    def explain(self, context: Context) -> list[str]:
        return ["Declared bounds  (cost=0.000000..0.000000 rows=0 width=0)", FREE]


def _bound(attribute: Attribute, most: bool) -> PgValue:
    match attribute:
        case IntegerRange():
            return attribute.upper if most else attribute.lower
        case Decimals():
            return attribute.number(attribute.declared - 1 if most else 0)
        case Bins():
            return Decimal(f"{attribute.edges[-1 if most else 0]:.15g}")
        case Dates():
            return attribute.start(attribute.declared) - timedelta(days=1) if most else attribute.start(0)
    return None


@dataclass(frozen=True)
class NoRows:
    """LIMIT 0: asked only to learn the columns."""

    tree: Node
    selected: Sequence[SelectedItem]
    columns: Spelling

    def fields(self, context: Context) -> list[Field]:
        fields: list[Field] = []
        for item, selected in zip(self.tree.expressions, self.selected, strict=True):
            node = item.unalias()
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                fields += [field_of(a.name, types.type_of(a)) for a in self.columns.columns]
            else:
                fields.append(field_of(selected.shown, self._type(node)))
        return fields

    def _type(self, node: Node) -> PgType:
        if isinstance(node, exp.Column):
            kind = self.columns.type_of(node)
            if kind is None:
                raise WireError(NO_COLUMN, f'column "{node.name}" does not exist')
            return kind
        if isinstance(node, exp.Count):
            return types.INT8
        if isinstance(node, exp.Boolean):
            return types.BOOL
        if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
            return types.TIMESTAMP
        return types.FLOAT8 if node.find(exp.AggFunc) is not None else types.TEXT

    def run(self, context: Context) -> ResultSet:
        return ResultSet(self.fields(context), [], (notice(f"LIMIT 0 shows no row; {FREE}"),))

    def explain(self, context: Context) -> list[str]:
        return ["No rows  (cost=0.000000..0.000000 rows=0 width=0)", FREE]
