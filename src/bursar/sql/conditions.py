"""Conditions on columns, of a syntax tree that has passed the allow-list, as plain data."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.literals import COMPUTED, read_literal
from bursar.sql.names import Name
from bursar.sql.query import (
    TRUE,
    AtLeast,
    Between,
    Compare,
    Condition,
    Constant,
    Holds,
    In,
    IsNull,
    IsTrue,
    Like,
    Not,
    Op,
    Or,
    all_of,
)
from bursar.sql.read_terms import REAL, column_reader, read_term
from bursar.sql.syntax import (
    COMPARISONS,
    Node,
    bare,
    case_parts,
    operands,
    position,
    read_name,
    reason,
)
from bursar.sql.terms import Call, refs_of

_OPS = dict(zip(COMPARISONS, (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE), strict=True))


def read_cases(node: Node, table: Name) -> list[tuple[Condition, Node]]:
    """CASE in both of its forms, and IF: each condition with what follows from it; the ELSE under TRUE."""
    pairs, otherwise, subject = case_parts(node)
    cases: list[tuple[Condition, Node]] = []
    for when, then in pairs:
        if subject is None:
            condition = read_condition(when, table)
        else:
            column = read_column(subject, table)
            condition = Compare(column=column, op=Op.EQ, literal=read_literal(when), position=position(when))
        cases.append((condition, then))
    return [*cases, *([] if otherwise is None else [(TRUE, otherwise)])]


def read_condition(node: Node, table: Name) -> Condition:
    """A condition on columns of the table, which conditions may call by the given name."""
    node = bare(node)
    try:
        return _condition(node, table)
    except QueryError as refusal:
        condition = None if isinstance(node, exp.Connector | exp.Not) else _computed_condition(node, table)
        if condition is None:
            raise refusal from None
        return condition


def _computed_condition(node: Node, table: Name) -> Condition | None:
    """A condition on what is made of columns; None where there is nothing made, or it cannot be read."""
    if type(node) in _OPS and any(isinstance(bare(side), exp.Null) for side in (node.this, node.expression)):
        return None  # a comparison with NULL is never true, and hardly what was meant
    if type(node) in _OPS and any(isinstance(bare(side), exp.Predicate) for side in (node.this, node.expression)):
        return None
    if isinstance(node, exp.In) and any(isinstance(bare(item), exp.Column) for item in node.expressions):
        return None
    try:
        isolated = _isolated(node, table)
        if isolated is not None:
            return isolated
        term = read_term(node, column_reader(table), read_literal)
    except QueryError:
        return None
    columns = refs_of(term)
    if not columns or (isinstance(term, Call) and term.function not in _TRUTHS):
        return None
    return Holds(column=columns[0], term=term, position=position(node))


_TRUTHS = {"=", "<>", "<", "<=", ">", ">=", "in", "like", "ilike", "is null", "same", "not", "and", "or", "bool"} | {
    "starts_with",
    "ends_with",
    "contains",
    "case",
    "similar to",
    "regexp_matches",
    "regexp_full_match",
}


def _isolated(node: Node, table: Name) -> Compare | None:
    """A comparison of a multiple of a column, moved by a constant, as one of the column itself."""
    if type(node) not in _OPS:
        return None
    op, sides = _OPS[type(node)], [bare(node.this), bare(node.expression)]
    if sides[0].find(exp.Column) is None:
        op, sides = op.flipped, sides[::-1]
    line = _line(sides[0])
    if line is None or isinstance(sides[0], exp.Column) or sides[1].find(exp.Column) is not None:
        return None
    column, factor, shift = line
    value = read_literal(sides[1])
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or factor == 0:
        return None
    bound = (Fraction(value) - shift) / factor
    literal = int(bound) if bound.denominator == 1 else Decimal(bound.numerator) / Decimal(bound.denominator)
    if Fraction(literal) != bound:
        return None
    name = read_column(column, table)
    return Compare(column=name, op=op if factor > 0 else op.flipped, literal=literal, position=position(node))


def _line(node: Node) -> tuple[Node, Fraction, Fraction] | None:
    """A node as one column times a constant plus another."""
    node = bare(node)
    match node:
        case exp.Column():
            return node, Fraction(1), Fraction(0)
        case exp.Cast() if node.to.this in REAL:
            return _line(node.this)
        case exp.Neg():
            inner = _line(node.this)
            return None if inner is None else (inner[0], -inner[1], -inner[2])
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            pass
        case _:
            return None
    sides = [bare(node.this), bare(node.expression)]
    places = [place for place, side in enumerate(sides) if side.find(exp.Column) is not None]
    if len(places) != 1 or (isinstance(node, exp.Div) and places == [1]):
        return None
    inner, other = _line(sides[places[0]]), read_literal(sides[1 - places[0]])
    if inner is None or isinstance(other, bool) or not isinstance(other, int | Decimal):
        return None
    column, factor, shift = inner
    constant = Fraction(other)
    match node:
        case exp.Mul():
            return column, factor * constant, shift * constant
        case exp.Div():
            return None if constant == 0 else (column, factor / constant, shift / constant)
        case exp.Sub() if places == [1]:
            return column, -factor, constant - shift
        case exp.Sub():
            constant = -constant
    return column, factor, shift + constant


def _condition(node: Node, table: Name) -> Condition:
    place = position(node)
    match node:
        case exp.Column() if isinstance(node.this, exp.Identifier):
            return Compare(column=read_column(node, table), op=Op.EQ, literal=True, position=place)
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


def read_column(node: Node, table: Name) -> Name:
    """The name of a column; a qualifier must be the name of the table."""
    node = bare(node)
    if isinstance(node, COMPUTED):
        raise QueryError(reason(node), position=position(node))
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        raise QueryError("a column is expected here", position=position(node))
    qualifier = node.args.get("table")
    if qualifier is not None and not read_name(qualifier).agrees(table):
        raise QueryError(f"there is no table {qualifier.name} in this question", position=position(qualifier))
    return read_name(node.this)


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
            test = inner if bare(node.expression).this else Not(part=inner, position=inner.position)
            return IsTrue(part=test, position=position(node))
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
    if isinstance(other, exp.Boolean):
        return IsTrue(part=equal, position=place)  # known also where NULL counts as the other truth value
    return all_of(equal, Not(part=null, position=place))
