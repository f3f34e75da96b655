"""Conditions and literals of the syntax tree as plain data. The tree has passed the allow-list."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.allowed import COMPARISONS, FLAGS, OF_ONE_COLUMN, Node, position, reason
from bursar.sql.query import (
    AtLeast,
    Between,
    Compare,
    Condition,
    Constant,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Name,
    Not,
    Op,
    Or,
    all_of,
)

LONGEST_NUMBER = 40
"""Most characters of a number; the exponent has at most three digits on top of that."""

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Coalesce, exp.Nullif)
_COMPUTED = (*_ARITHMETIC, exp.Case, exp.If, *FLAGS, *OF_ONE_COLUMN)

_OPS = dict(zip(COMPARISONS, (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE), strict=True))


def read_condition(node: Node, table: Name) -> Condition:
    """A condition on columns of the table, which conditions may call by the given name."""
    node = bare(node)
    place = position(node)
    match node:
        case exp.And():
            return all_of(*(read_condition(part, table) for part in operands(node, exp.And)))
        case exp.Or():
            return Or(parts=tuple(read_condition(part, table) for part in operands(node, exp.Or)), position=place)
        case exp.Not():
            return Not(part=read_condition(node.this, table), position=place)
        case exp.Boolean():
            return Constant(value=bool(node.this), position=place)
        case exp.Between():
            low, high = read_literal(node.args["low"]), read_literal(node.args["high"])
            return Between(column=read_column(node.this, table), low=low, high=high, position=place)
        case exp.In():
            literals = tuple(read_literal(item) for item in node.expressions)
            return In(column=read_column(node.this, table), literals=literals, position=place)
        case exp.Like() | exp.ILike():
            return _like(node, table)
        case exp.Is():
            return _is(node, table)
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            same = _same(node, table)
            return same if isinstance(node, exp.NullSafeEQ) else Not(part=same, position=place)
        case _ if type(node) in _OPS:
            return _compare(node, table)
        case exp.Anonymous():
            return _at_least(node, table)
        case exp.Case() | exp.If():
            raise QueryError(reason(node), position=place)
    raise QueryError("a condition is expected here, for example a column compared with a value", position=place)


def case_parts(node: Node) -> tuple[list[tuple[Node, Node]], Node | None, Node | None]:
    """CASE in both of its forms, and IF: each WHEN with its THEN; the ELSE; and what a CASE compares, if it does."""
    if isinstance(node, exp.If):
        return [(node.this, node.args["true"])], node.args.get("false"), None
    pairs = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
    return pairs, node.args.get("default"), node.args.get("this")


def read_column(node: Node, table: Name) -> Name:
    """The name of a column; a qualifier must be the name of the table."""
    node = bare(node)
    if isinstance(node, _COMPUTED):
        raise QueryError(reason(node), position=position(node))
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        raise QueryError("a column is expected here", position=position(node))
    qualifier = node.args.get("table")
    if qualifier is not None and not read_name(qualifier).agrees(table):
        raise QueryError(f"there is no table {qualifier.name} in this question", position=position(qualifier))
    return read_name(node.this)


def read_name(node: Node) -> Name:
    return Name(text=str(node.this), quoted=bool(node.args.get("quoted")), position=position(node))


def read_literal(node: Node) -> Literal:
    """A string, number, truth value or date."""
    node = bare(node)
    place = position(node)
    match node:
        case exp.Literal() if node.is_string:
            return str(node.this)
        case exp.Literal():
            return read_number(str(node.this), place)
        case exp.Neg() if node.find(exp.Column) is not None:
            raise QueryError(reason(node), position=place)
        case exp.Neg():
            number = read_literal(node.this)
            if isinstance(number, Decimal):
                return number.copy_negate()
            if isinstance(number, int) and not isinstance(number, bool):
                return -number
        case exp.Boolean():
            return bool(node.this)
        case exp.Cast() if node.to.this == exp.DataType.Type.DATE and isinstance(bare(node.this), exp.Literal):
            return read_date(str(bare(node.this).this), place)
        case exp.Cast():
            raise QueryError("only DATE '2024-12-31' can be cast", position=place)
        case exp.Null():
            raise QueryError("a comparison with NULL is never true; ask for IS NULL or IS NOT NULL", position=place)
        case exp.Column() if node.this.args.get("quoted"):
            raise QueryError(
                "two columns cannot be compared, and this is the name of one; text is written 'like this'",
                position=place,
            )
        case exp.Column():
            raise QueryError("two columns cannot be compared; compare a column with a constant", position=place)
        case _ if isinstance(node, _COMPUTED):
            raise QueryError(reason(node), position=place)
        case exp.AggFunc():
            raise QueryError("an aggregate is selected; it cannot stand in a condition", position=place)
    raise QueryError("a constant is expected here", position=place)


def read_date(text: str, place: int) -> date:
    """The day of a text in the form 2024-12-31."""
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise QueryError(f"{text!r} is not a day; days are written 2024-12-31", position=place)


def read_number(text: str, place: int) -> int | Decimal:
    """The number that a text writes, exactly; bounded, so that rounding it to a whole number stays cheap."""
    try:
        if len(text) > LONGEST_NUMBER:
            raise InvalidOperation
        number = Decimal(text)
        if not number.is_finite() or abs(number.adjusted()) > 999:
            raise InvalidOperation
    except InvalidOperation:
        raise QueryError("this is not a number in range", position=place) from None
    return int(text) if text.isdecimal() and text.isascii() else number


def bare(node: Node) -> Node:
    """The node without brackets around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def unnamed(item: Node) -> Node:
    """A selected item without brackets around it, and without the name that it is given."""
    return bare(item.this if isinstance(item, exp.Alias) else item)


def operands(node: Node, kind: Any) -> list[Node]:
    """All operands of a chain of ANDs, or of ORs, from left to right; long chains are deep trees to the left."""
    waiting: list[Node] = [node]
    found: list[Node] = []
    while waiting:
        one = bare(waiting.pop())
        if type(one) is kind:
            waiting += [one.expression, one.this]
        else:
            found.append(one)
    return found


def _compare(node: Node, table: Name) -> Condition:
    op, left, right = _OPS[type(node)], bare(node.this), bare(node.expression)
    place = position(node)
    if isinstance(left, exp.Column):
        return Compare(column=read_column(left, table), op=op, literal=read_literal(right), position=place)
    if isinstance(right, exp.Column):
        column = read_column(right, table)
        return Compare(column=column, op=op.flipped, literal=read_literal(left), position=place)
    if isinstance(left, exp.Predicate) or isinstance(right, exp.Predicate):
        raise QueryError("a column is compared with one constant; two comparisons are joined by AND", position=place)
    numbers = [side for side in map(read_literal, (left, right)) if isinstance(side, int | Decimal)]
    if len(numbers) < 2 or any(isinstance(number, bool) for number in numbers):
        raise QueryError("a column is expected on one side", position=place)
    order = (numbers[0] > numbers[1]) - (numbers[0] < numbers[1])
    holding = {-1: (Op.LT, Op.LE, Op.NE), 0: (Op.EQ, Op.LE, Op.GE), 1: (Op.GT, Op.GE, Op.NE)}
    return Constant(value=op in holding[order], position=place)


def _at_least(node: Node, table: Name) -> Condition:
    place = position(node)
    wrong = QueryError("this is written AT_LEAST(2, condition, condition, ...)", position=place)
    if len(node.expressions) < 2 or not isinstance(bare(node.expressions[0]), exp.Literal):
        raise wrong
    count = read_literal(node.expressions[0])
    if not isinstance(count, int) or not 1 <= count < len(node.expressions):
        raise wrong
    parts = tuple(read_condition(part, table) for part in node.expressions[1:])
    return AtLeast(count=count, parts=parts, position=place)


def _like(node: Node, table: Name) -> Condition:
    pattern = read_literal(node.expression)
    if not isinstance(pattern, str):
        raise QueryError("a pattern is text, as in LIKE 'A%'", position=position(node))
    column, any_case = read_column(node.this, table), isinstance(node, exp.ILike)
    like = Like(column=column, pattern=pattern, any_case=any_case, position=position(node))
    return Not(part=like, position=like.position) if node.args.get("negate") else like


def _is(node: Node, table: Name) -> Condition:
    if isinstance(bare(node.expression), exp.Boolean):
        if isinstance(node.this, exp.Paren) and not isinstance(bare(node.this), exp.Column):
            inner = read_condition(node.this, table)
            wanted = inner if bare(node.expression).this else Not(part=inner, position=inner.position)
            return IsTrue(part=wanted, position=position(node))
        return _same(node, table)
    if not isinstance(bare(node.expression), exp.Null):
        raise QueryError("IS is for NULL, TRUE and FALSE", position=position(node))
    return IsNull(column=read_column(node.this, table), position=position(node))


def _same(node: Node, table: Name) -> Condition:
    """IS NOT DISTINCT FROM and IS TRUE: equal and known, or NULL on both sides; never unknown."""
    sides = [bare(node.this), bare(node.expression)]
    columns = [side for side in sides if isinstance(side, exp.Column)]
    if len(columns) != 1:
        raise QueryError("compare one column with a constant", position=position(node))
    column, place = read_column(columns[0], table), position(node)
    other = sides[1 - sides.index(columns[0])]
    null = IsNull(column=column, position=place)
    if isinstance(other, exp.Null):
        return null
    equal = Compare(column=column, op=Op.EQ, literal=read_literal(other), position=place)
    return all_of(equal, Not(part=null, position=place))
