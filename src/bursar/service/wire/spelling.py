"""PostgreSQL's spelling of a question to Bursar's, as a tree.

Names lose their schema, constants get the type of the column that they are compared with, and a few spellings that BI
tools use become ones that `bursar.sql` knows. Whatever is left over is for the engine to refuse: nothing is guessed,
and no meaning changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from sqlglot import exp

from bursar.core.domain import Attribute
from bursar.service.wire import types
from bursar.service.wire.failures import UNAVAILABLE, WireError
from bursar.service.wire.trees import (
    COMPARISONS,
    as_list,
    cast_type,
    constant,
    constant_of,
    relations,
    replace_nodes,
    uncast,
    unescaped,
)
from bursar.service.wire.types import BadValue, PgType, PgValue
from bursar.sql.syntax import Node


@dataclass(frozen=True)
class Spelling:
    """The columns of a question, by the names that it can call them by."""

    columns: Sequence[Attribute]

    def attribute(self, column: exp.Column) -> Attribute | None:
        """The column that a name means."""
        quoted = column.this.args.get("quoted")
        for attribute in self.columns:
            name = attribute.name
            if name == column.name or (not quoted and name.casefold() == column.name.casefold()):
                return attribute
        return None

    def type_of(self, column: exp.Column) -> PgType | None:
        """Its declared type."""
        attribute = self.attribute(column)
        return None if attribute is None else types.type_of(attribute)

    def rewrite(self, tree: Node) -> Node:
        """The same question as `bursar.sql` spells it. The tree is changed."""
        for table in relations(tree):
            table.set("db", None)
            table.set("catalog", None)
        for column in tree.find_all(exp.Column):
            column.set("db", None)
            column.set("catalog", None)
        for identifier in tree.find_all(exp.Identifier):
            if not identifier.args.get("quoted"):
                identifier.set("this", str(identifier.this).lower())
        for collation in list(tree.find_all(exp.Collate)):
            collation.replace(collation.this)
        for string in list(tree.find_all(exp.ByteString)):
            string.replace(exp.Literal.string(unescaped(str(string.this))))
        for like in tree.find_all(exp.Like, exp.ILike):
            if "\\" in like.expression.name:
                raise WireError(UNAVAILABLE, "patterns with a backslash are not available")
        tree = replace_nodes(tree, self._plainer)
        for node in list(tree.find_all(*COMPARISONS)):
            self._compared(node)
        return tree

    def _plainer(self, node: Node) -> Node:
        match node:
            case exp.Cast() if isinstance(node.this, exp.Column):
                attribute, cast = self.attribute(node.this), cast_type(node)
                same = attribute is not None and cast is not None and types.type_of(attribute).category == cast.category
                return node.this if same else node
            case exp.Cast() if isinstance(uncast(node.this), exp.TimestampTrunc | exp.DateTrunc | exp.Extract):
                return node.this
            case exp.Cast() if node.find(exp.AggFunc) is not None:
                cast = cast_type(node)
                if cast in (types.INT2, types.INT4, types.INT8):
                    return node.this
                return exp.cast(node.this, "double") if cast in (types.NUMERIC, types.FLOAT4, types.FLOAT8) else node
            case exp.EQ() | exp.NEQ():
                return as_list(node)
            case exp.Is(this=exp.Column() as column, expression=exp.Boolean() as truth) if _chooses_rows(node):
                return exp.EQ(this=column, expression=truth)
            case exp.WithinGroup(this=exp.PercentileCont() | exp.PercentileDisc() as quantile):
                order = node.expression.expressions
                if len(order) == 1 and not order[0].args.get("desc"):
                    name = "QUANTILE_CONT" if isinstance(quantile, exp.PercentileCont) else "QUANTILE_DISC"
                    return exp.Anonymous(this=name, expressions=[order[0].this, quantile.this])
        return node

    def _compared(self, node: Node) -> None:
        """Constants as the column that they are compared with has them."""
        left, right = node.this, node.args.get("expression")
        columns = [side for side in (left, right) if isinstance(side, exp.Column)]
        attribute = self.attribute(columns[0]) if len(columns) == 1 else None
        if attribute is None:
            return
        for side in list(node.iter_expressions()):
            value = constant_of(side)
            if value is not None and not isinstance(side, exp.Column):
                moved = self._typed(attribute, value, node, side)
                if moved is not None:
                    side.replace(constant(moved))

    def _typed(self, attribute: Attribute, value: PgValue, node: Node, side: Node) -> PgValue:
        """A constant as a value of the column; None where it stays as it is."""
        try:
            match types.type_of(attribute):
                case types.DATE if isinstance(value, str | date):
                    return _day(value, node, side)
                case types.INT4 | types.INT8 | types.NUMERIC if isinstance(value, str):
                    number = types.decode(value.encode(), types.NUMERIC.oid, 0)
                    whole = isinstance(number, Decimal) and number == number.to_integral_value()
                    return int(number) if whole and isinstance(number, Decimal) else number
                case types.BOOL if isinstance(value, str):
                    return types.decode(value.encode(), types.BOOL.oid, 0)
                case types.TEXT if isinstance(value, str):
                    return value
        except (BadValue, ValueError):
            kind = types.type_of(attribute)
            raise WireError(
                "22P02" if kind is not types.DATE else "22007",
                f"invalid input syntax for type {kind.sql_name}",
                hint=f"{attribute.name} is compared with a value of this type",
            ) from None
        return value


def _chooses_rows(node: Node) -> bool:
    """Whether rows are chosen where a condition holds, so that unknown is as good as false: WHERE, AND and OR."""
    around = node.parent
    while isinstance(around, exp.And | exp.Or | exp.Paren):
        around = around.parent
    return isinstance(around, exp.Where)


def _day(value: str | date, node: Node, side: Node) -> date:
    """The day of a moment. One that is not midnight lies behind its day: x < day 12:00 means x < day + 1."""
    moment = types.moment_of(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        return moment
    day = moment.date()
    if moment.time() == datetime.min.time():
        return day
    if isinstance(node, exp.Between):
        return day + timedelta(days=side is node.args["low"])
    if not isinstance(node, exp.LT | exp.LTE | exp.GT | exp.GTE):
        raise ValueError
    behind = (exp.GT, exp.LTE) if side is node.this else (exp.LT, exp.GTE)
    return day + timedelta(days=isinstance(node, behind))
