"""Repairs of conditions: other ways to write what a comparison of a column with constants says."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from bursar.sql.allowed import AT_LEAST, COMPARISONS, Node
from bursar.sql.conditions import bare

_FLIPPED: dict[type, type] = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}
_MIDNIGHT = (" 00:00", " 00:00:00", "T00:00:00")
_MOMENTS = (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ, exp.DataType.Type.DATETIME)


def column_first(tree: Node) -> None:
    """A comparison has its column, or what is made of one, on the left; 20 <= x <= 30 is two of them."""
    for node in list(tree.find_all(*COMPARISONS)):
        left, right = bare(node.this), bare(node.expression)
        if isinstance(left, COMPARISONS) and isinstance(right, exp.Literal) and node.this is left:
            node.replace(exp.and_(left.copy(), type(node)(this=left.expression.copy(), expression=right.copy())))
        elif isinstance(left, exp.Literal) and not isinstance(right, exp.Literal):
            node.replace(_FLIPPED.get(type(node), type(node))(this=right.copy(), expression=left.copy()))


def plain_lists(tree: Node) -> None:
    """x IN 'F' lacks its brackets."""
    for node in tree.find_all(exp.In):
        if isinstance(node.args.get("field"), exp.Literal):
            node.set("expressions", [node.args["field"].copy()])
            node.set("field", None)


def defaults(tree: Node) -> None:
    """COALESCE(x, 0) > 5 is x > 5, or x IS NULL as well where the default would pass; it is never unknown.

    Edge cases: texts are told apart only, for what they are in order depends on the column; and a text that is compared
    with itself stands for NULL, and would be looked for among the values.
    """
    for node in list(tree.find_all(*COMPARISONS)):
        left, right = bare(node.this), bare(node.expression)
        if not isinstance(left, exp.Coalesce) or len(left.expressions) != 1 or not isinstance(right, exp.Literal):
            continue
        column, default = left.this, bare(left.expressions[0])
        if not isinstance(column, exp.Column) or not isinstance(default, exp.Literal):
            continue
        null = exp.Is(this=column.copy(), expression=exp.Null())
        plain = type(node)(this=column.copy(), expression=right.copy())
        if default.is_string != right.is_string:
            continue
        if right.is_string and (default == right or not isinstance(node, exp.EQ | exp.NEQ)):
            continue
        if _passes(node, default, right):
            node.replace(exp.paren(exp.or_(plain, null)))
        elif node.find_ancestor(exp.Not, exp.Is, exp.Avg) is not None:  # where unknown is not the same as false
            node.replace(exp.paren(exp.and_(plain, exp.Not(this=null))))
        else:
            node.replace(plain)


def _passes(node: Node, default: Node, right: Node) -> bool:
    """Whether the default of a column meets the comparison."""
    low, high = (one.this if one.is_string else Decimal(one.this) for one in (default, right))
    order = (low > high) - (low < high)
    holding: dict[type, tuple[int, ...]] = {
        exp.EQ: (0,),
        exp.NEQ: (-1, 1),
        exp.LT: (-1,),
        exp.LTE: (-1, 0),
        exp.GT: (1,),
        exp.GTE: (0, 1),
    }
    return order in holding[type(node)]


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
    """DATE('2024-12-31'), TRY_CAST('2024-12-31' AS DATE) and TIMESTAMP '2024-12-31 00:00' are DATE '2024-12-31'."""
    for node in list(tree.find_all(exp.Date, exp.TryCast, exp.Cast)):
        literal = bare(node.this)
        if not isinstance(literal, exp.Literal):
            continue
        text = str(literal.this)
        if isinstance(node, exp.Cast) and node.to.this in _MOMENTS:
            text = next((text.removesuffix(end) for end in _MIDNIGHT if text.endswith(end)), text)
        elif type(node) is exp.Cast:
            continue
        node.replace(exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build("date")))


def truth_columns(tree: Node) -> None:
    """A column that stands for a condition is compared with TRUE."""
    for column in list(tree.find_all(exp.Column)):
        around = column.parent
        while isinstance(around, exp.Paren):
            around = around.parent
        when = isinstance(around, exp.If) and around.this is column
        if when or isinstance(around, exp.Where | exp.And | exp.Or | exp.Not):
            column.replace(exp.EQ(this=column.copy(), expression=exp.true()))


def counted_conditions(tree: Node) -> None:
    """AT_MOST(1, ...) is NOT AT_LEAST(2, ...), and a number that is missing is 1; what always or never holds stays."""
    for node in list(tree.find_all(exp.Anonymous)):
        first, *rest = [bare(part) for part in node.expressions] or [None]
        if node.name.upper() not in (AT_LEAST, "AT_MOST") or not rest:
            continue
        counted, most = isinstance(first, exp.Literal), node.name.upper() != AT_LEAST
        number, conditions = (str(first.this), rest) if counted else ("1", [first, *rest])
        least = int(number) + most if number.isdecimal() else 0
        if 1 <= least <= len(conditions):
            limited = exp.Literal.number(least)
            made = exp.Anonymous(this=AT_LEAST, expressions=[limited, *(part.copy() for part in conditions)])
            node.replace(exp.Not(this=made) if most else made)


REPAIRS_OF_CONDITIONS: tuple[Callable[[Node], None], ...] = (
    column_first,
    plain_lists,
    defaults,
    null_tests,
    plain_dates,
    truth_columns,
    counted_conditions,
)
