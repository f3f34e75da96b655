"""Aggregates and the arithmetic around them, of a syntax tree that has passed the allow-list, as plain data."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.conditions import read_cases, read_column, read_condition
from bursar.sql.literals import read_literal, read_number
from bursar.sql.names import Name, Number
from bursar.sql.query import (
    OF_PAIRS,
    PAIR,
    TRUE,
    Aggregate,
    Branch,
    Case,
    Condition,
    Formula,
    Function,
    Item,
    Linear,
    Not,
    all_of,
    same_meaning,
)
from bursar.sql.read_terms import REAL, WHOLE, column_reader, decimals_of, read_term
from bursar.sql.syntax import (
    Node,
    bare,
    position,
    reason,
)
from bursar.sql.terms import Call, refs_of

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
    exp.Min: Function.MIN,
    exp.Max: Function.MAX,
    exp.CovarPop: Function.COVAR_POP,
    exp.CovarSamp: Function.COVAR_SAMP,
    exp.Corr: Function.CORR,
    exp.RegrSlope: Function.REGR_SLOPE,
    exp.RegrIntercept: Function.REGR_INTERCEPT,
    exp.RegrR2: Function.REGR_R2,
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
    if isinstance(node, exp.Count) and isinstance(bare(node.this), exp.Distinct):
        return _distinct(bare(node.this), condition, table, place)
    if isinstance(node, exp.Count):
        return Aggregate(condition=condition, of=_counted(bare(node.this), table), position=place)
    function = _FUNCTIONS[type(node)]
    if function in OF_PAIRS:
        read = column_reader(table)
        if bare(node.expression) is None:
            raise QueryError(f"{function.value.upper()} takes two columns", position=place)
        both = Call(function=PAIR, parts=(read(bare(node.this)), read(bare(node.expression))), position=place)
        return Aggregate(condition=condition, function=function, of=both, position=place)
    fraction = _fraction(node) if function in (Function.QUANTILE_CONT, Function.QUANTILE_DISC) else None
    of = _operand(bare(node.this), table, function)
    return Aggregate(condition=condition, function=function, of=of, fraction=fraction, position=place)


def _counted(what: Node, table: Name) -> Name | Case | Call | None:
    """What COUNT(x) counts the values of: a column or a CASE; rows, for * and constants."""
    if what is None or isinstance(what, exp.Star):
        return None
    if isinstance(what, exp.Column):
        return read_column(what, table)
    if isinstance(what, exp.Case | exp.If):
        return _case(what, table)
    if what.find(exp.Column) is not None:
        return _computed(what, table)
    read_literal(what)
    return None


def _computed(node: Node, table: Name) -> Name | Case | Call:
    """What is added up, or counted, where it is made of columns."""
    node = bare(node)
    real = isinstance(node, exp.Cast | exp.TryCast) and node.to.this in REAL
    if real and (decimals_of(node.to) is None or not isinstance(bare(node.this), exp.Div)):
        return _operand(bare(node.this), table, None)
    inner = bare(node.this) if isinstance(node, exp.Cast | exp.TryCast) and node.to.this in WHOLE else node
    inner = bare(inner.this) if isinstance(inner, exp.Cast) and inner.to.this in WHOLE else inner
    if isinstance(inner, exp.Predicate | exp.And | exp.Or | exp.Not) and not isinstance(inner, exp.Column):
        test = read_condition(inner, table)
        yes = Branch(condition=test, value=1, position=position(node))
        no = Branch(condition=Not(part=test, position=test.position), value=0, position=position(node))
        return Case(branches=(yes, no), position=position(node))
    term = read_term(node, column_reader(table), read_literal)
    if not isinstance(term, Call):
        raise QueryError("a number is expected here", position=position(node))
    if not refs_of(term):
        raise QueryError("a column stands inside of an aggregate here, as in SUM(x)", position=position(node))
    return term


def _distinct(node: Node, condition: Condition, table: Name, place: int) -> Aggregate:
    """COUNT(DISTINCT x); of CASE WHEN condition THEN x END, the values of x where the condition holds."""
    what = bare(node.expressions[0]) if len(node.expressions) == 1 else None
    if isinstance(what, exp.Case | exp.If):
        branches = [branch for branch in _case(what, table).branches if branch.value is not None]
        if len(branches) == 1 and isinstance(branches[0].value, Name) and branches[0].condition != TRUE:
            condition = all_of(condition, branches[0].condition)
            return Aggregate(condition=condition, of=branches[0].value, distinct=True, position=place)
    if not isinstance(what, exp.Column):
        raise QueryError("COUNT(DISTINCT x) takes one column, or CASE WHEN condition THEN column END", position=place)
    return Aggregate(condition=condition, of=read_column(what, table), distinct=True, position=place)


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


def _operand(node: Node, table: Name, function: Function | None) -> Name | Case | Call:
    """What is added up: a column, a CASE, a constant, or what is made of columns."""
    if isinstance(node, exp.Column):
        return read_column(node, table)
    if isinstance(node, exp.Distinct):
        raise QueryError(reason(node), position=position(node))
    if function in (Function.QUANTILE_CONT, Function.QUANTILE_DISC, Function.MIN, Function.MAX):
        inner = bare(node.this) if isinstance(node, exp.Cast) and node.to.this in REAL else node
        if isinstance(inner, exp.Column):
            return read_column(inner, table)
        raise QueryError("a quantile takes a column; use FILTER for a condition", position=position(node))
    if isinstance(node, exp.Literal) and not node.is_string:
        number = read_number(str(node.this), position(node))
        return Case(branches=(Branch(condition=TRUE, value=number),), position=position(node))
    try:
        if isinstance(node, exp.Case | exp.If):
            return _case(node, table)
        return _computed(node, table)
    except QueryError:
        if node.find(exp.Column) is not None and isinstance(node, exp.Case | exp.If):
            return _computed(node, table)
        raise


def _case(node: Node, table: Name) -> Case:
    branches = [
        Branch(condition=condition, value=_branch(then, table), position=position(then))
        for condition, then in read_cases(node, table)
    ]
    return Case(branches=tuple(branches), position=position(node))


def _branch(node: Node, table: Name) -> Number | Name | Call | None:
    node = bare(node)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Column):
        return read_column(node, table)
    if node.find(exp.Column) is not None:
        term = read_term(node, column_reader(table), read_literal)
        if isinstance(term, Call):
            return term
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
