"""Conditions, literals, aggregates and arithmetic of a syntax tree that has passed the allow-list, as plain data."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.query import (
    TRUE,
    Aggregate,
    AtLeast,
    Between,
    Branch,
    Case,
    Compare,
    Condition,
    Constant,
    Formula,
    Function,
    In,
    IsNull,
    IsTrue,
    Item,
    Like,
    Linear,
    Literal,
    Name,
    Not,
    Number,
    Op,
    Or,
    all_of,
    same_meaning,
)
from bursar.sql.syntax import (
    COMPARISONS,
    FLAGS,
    OF_ONE_COLUMN,
    Node,
    bare,
    case_parts,
    operands,
    position,
    read_name,
    reason,
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
    return all_of(equal, Not(part=null, position=place))


_FUNCTIONS: dict[type, Function] = {
    exp.Sum: Function.SUM,
    exp.Avg: Function.AVG,
    exp.Variance: Function.VAR_SAMP,
    exp.VariancePop: Function.VAR_POP,
    exp.Stddev: Function.STDDEV_SAMP,
    exp.StddevSamp: Function.STDDEV_SAMP,
    exp.StddevPop: Function.STDDEV_POP,
    exp.Median: Function.QUANTILE_CONT,
    exp.Quantile: Function.QUANTILE_DISC,
    exp.PercentileCont: Function.QUANTILE_CONT,
    exp.PercentileDisc: Function.QUANTILE_DISC,
}

ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Cast, exp.Nullif, exp.Coalesce)

_REAL = (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)

LONGEST_FORMULA = 16
"""Most aggregates in one formula: the ends of its interval are looked for among their error bars together."""


def read_item(node: Node, table: Name) -> Item | None:
    """A selected item that is made of aggregates; None for anything else."""
    node = bare(node)
    if is_aggregate(node):
        return _aggregate(node, table)
    if not isinstance(node, ARITHMETIC):
        return None
    formula = replace(_formula(node, table), position=position(node))
    if not formula.parts:
        raise QueryError("a question asks about rows, and this is a constant", position=position(node))
    if len(formula.parts) > LONGEST_FORMULA:
        raise QueryError(f"a formula has at most {LONGEST_FORMULA} aggregates in it", position=position(node))
    return _plain(formula)


def is_aggregate(node: Node) -> bool:
    """Whether this is an aggregate, with or without a FILTER."""
    node = bare(node.this) if isinstance(node, exp.Filter) else node
    return isinstance(node, exp.Count | exp.CountIf) or type(node) in _FUNCTIONS


def _aggregate(node: Node, table: Name) -> Aggregate:
    place = position(node)
    condition: Condition = TRUE
    if isinstance(node, exp.Filter):
        condition, node = read_condition(node.expression.this, table), bare(node.this)
    if isinstance(node, exp.CountIf):
        return Aggregate(condition=all_of(condition, read_condition(node.this, table)), position=place)
    if isinstance(node, exp.Count):
        return Aggregate(condition=condition, of=_counted(bare(node.this), table), position=place)
    function = _FUNCTIONS[type(node)]
    fraction = _fraction(node) if function in (Function.QUANTILE_CONT, Function.QUANTILE_DISC) else None
    of = _operand(bare(node.this), table, function)
    return Aggregate(condition=condition, function=function, of=of, fraction=fraction, position=place)


def _counted(what: Node, table: Name) -> Name | Case | None:
    """What COUNT(x) counts the values of: a column or a CASE; rows, for * and constants."""
    if what is None or isinstance(what, exp.Star):
        return None
    if isinstance(what, exp.Column):
        return read_column(what, table)
    if isinstance(what, exp.Case | exp.If):
        return _case(what, table)
    read_literal(what)
    return None


def _fraction(node: Node) -> Decimal:
    fraction = Decimal("0.5")
    if not isinstance(node, exp.Median):
        written = node.args.get("quantile" if isinstance(node, exp.Quantile) else "expression")
        literal = read_literal(written) if isinstance(bare(written), exp.Literal | exp.Neg) else None
        if isinstance(literal, bool) or not isinstance(literal, int | Decimal) or not 0 <= literal <= 1:
            raise QueryError(
                "a quantile is for a number from 0 to 1, as in QUANTILE_CONT(x, 0.9)", position=position(node)
            )
        fraction = Decimal(literal)
    return fraction


def _operand(node: Node, table: Name, function: Function) -> Name | Case:
    """What is added up: a column, or a CASE."""
    if isinstance(node, exp.Column):
        return read_column(node, table)
    if not isinstance(node, exp.Case | exp.If):
        raise QueryError(
            f"{function.value} takes a column, or a CASE of columns and constants", position=position(node)
        )
    if function in (Function.QUANTILE_CONT, Function.QUANTILE_DISC):
        raise QueryError("a quantile takes a column; use FILTER for a condition", position=position(node))
    return _case(node, table)


def _case(node: Node, table: Name) -> Case:
    """CASE in both of its forms, and IF."""
    pairs, otherwise, subject = case_parts(node)
    branches: list[Branch] = []
    for when, then in pairs:
        if subject is None:
            condition = read_condition(when, table)
        else:
            column = read_column(subject, table)
            condition = Compare(column=column, op=Op.EQ, literal=read_literal(when), position=position(when))
        branches.append(Branch(condition=condition, value=_branch(then, table), position=position(then)))
    if otherwise is not None:
        branches.append(Branch(condition=TRUE, value=_branch(otherwise, table), position=position(otherwise)))
    return Case(branches=tuple(branches), position=position(node))


def _branch(node: Node, table: Name) -> Number | Name | None:
    node = bare(node)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Column):
        return read_column(node, table)
    literal = read_literal(node)
    if isinstance(literal, bool) or not isinstance(literal, int | Decimal):
        raise QueryError("THEN and ELSE take a number, a column or NULL", position=position(node))
    return literal


def _formula(node: Node, table: Name) -> Formula:
    """Arithmetic, folded into one linear combination, or one over another."""
    node = bare(node)
    if is_aggregate(node):
        return as_formula(_aggregate(node, table))
    match node:
        case exp.Add():
            return _sum(_formula(node.this, table), _formula(node.expression, table), position(node))
        case exp.Sub():
            return _sum(_formula(node.this, table), _times(_formula(node.expression, table), -1), position(node))
        case exp.Neg():
            return _times(_formula(node.this, table), -1)
        case exp.Mul():
            sides = _formula(node.this, table), _formula(node.expression, table)
            constants = [side for side in sides if not side.parts]
            if not constants:
                raise QueryError("a product of two aggregates is not available; select both", position=position(node))
            return _times(sides[sides[0] is constants[0]], constants[0].above.constant)
        case exp.Div():
            return _quotient(_formula(node.this, table), _divisor(node.expression, table), position(node))
        case exp.Cast() if node.to.this in _REAL:
            return _formula(node.this, table)
        case exp.Coalesce() if _is_zero(node.expressions) and isinstance(bare(node.this), exp.Sum | exp.Filter):
            return _formula(node.this, table)  # the sum of no rows is 0 here
        case exp.Coalesce() | exp.Nullif() if isinstance(bare(node.this), exp.Column):
            raise QueryError(reason(node), position=position(node))
        case exp.Cast() | exp.Coalesce() | exp.Nullif():
            raise QueryError("only counts, sums, averages and constants can be computed with", position=position(node))
        case exp.Column():
            raise QueryError("a column stands inside of an aggregate here, as in SUM(x)", position=position(node))
    literal = read_literal(node)
    if isinstance(literal, bool) or not isinstance(literal, int | Decimal):
        raise QueryError("only counts, sums, averages and constants can be computed with", position=position(node))
    return Formula(above=Linear(constant=Fraction(literal)))


def _divisor(node: Node, table: Name) -> Formula:
    """What is divided by; NULLIF(x, 0) is x, for a ratio over nothing has no value anyway."""
    inner = bare(node)
    nullif = isinstance(inner, exp.Nullif) and _is_zero([inner.expression])
    return _formula(inner.this if nullif else inner, table)


def _is_zero(nodes: list[Node]) -> bool:
    return len(nodes) == 1 and isinstance(bare(nodes[0]), exp.Literal) and str(bare(nodes[0]).this) in ("0", "0.0")


def as_formula(aggregate: Aggregate) -> Formula:
    """A count, sum or average as arithmetic; refused for all other functions."""
    match aggregate.function:
        case Function.COUNT | Function.SUM:
            return Formula(above=Linear(terms=((Fraction(1), aggregate),)))
        case Function.AVG:
            above, below = (replace(aggregate, function=each) for each in (Function.SUM, Function.COUNT))
            return Formula(above=Linear(terms=((Fraction(1), above),)), below=Linear(terms=((Fraction(1), below),)))
    raise QueryError(
        f"only counts, sums, averages and constants can be computed with; select {aggregate.function.value} by itself",
        position=aggregate.position,
    )


def _sum(left: Formula, right: Formula, place: int) -> Formula:
    if same_meaning(left.below, right.below):
        return replace(left, above=_added(left.above, right.above))
    for constant, other in ((left, right), (right, left)):
        if not constant.parts and other.below is not None:
            return replace(other, above=_added(other.above, _scaled(other.below, constant.above.constant)))
    raise QueryError("ratios over different counts cannot be added up; select them side by side", position=place)


def _quotient(left: Formula, right: Formula, place: int) -> Formula:
    if not right.parts:
        if right.above.constant == 0:
            raise QueryError("this divides by 0", position=place)
        return _times(left, 1 / right.above.constant)
    if not same_meaning(left.below, right.below):
        raise QueryError("a ratio of ratios is not available; select them side by side", position=place)
    return Formula(above=left.above, below=right.above)


def _times(formula: Formula, factor: Fraction | int) -> Formula:
    return replace(formula, above=_scaled(formula.above, Fraction(factor)))


def _scaled(side: Linear, factor: Fraction) -> Linear:
    terms = tuple((weight * factor, part) for weight, part in side.terms) if factor else ()
    return Linear(terms=terms, constant=side.constant * factor)


def _added(left: Linear, right: Linear) -> Linear:
    weights: dict[Aggregate, Fraction] = {}
    for weight, part in (*left.terms, *right.terms):
        same = next((term for term in weights if same_meaning(term, part)), part)
        weights[same] = weights.get(same, Fraction(0)) + weight
    terms = tuple((weight, part) for part, weight in weights.items() if weight)
    return Linear(terms=terms, constant=left.constant + right.constant)


def _plain(formula: Formula) -> Item:
    """A formula that is one aggregate, as that aggregate: COUNT(*) * 1.0 is a count."""
    if formula.below is None and formula.above.constant == 0 and len(formula.above.terms) == 1:
        weight, part = formula.above.terms[0]
        if weight == 1:
            return part
    return formula
