"""What rows are grouped by: a column, or something that is made of columns. The tree has passed the allow-list."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.allowed import FLAGS, Node, position
from bursar.sql.conditions import bare, case_parts, read_column, read_condition, read_literal
from bursar.sql.query import (
    TRUE,
    Compare,
    Cut,
    Key,
    Literal,
    Name,
    Number,
    Op,
    Piece,
    Stepped,
    Trimmed,
    all_of,
    leaves,
)

PERIODS = ("day", "week", "month", "quarter", "year")
"""What DATE_TRUNC goes back to the first day of."""

FIELDS = ("year", "quarter", "month", "day", "dayofweek")
"""What EXTRACT takes out of a day."""

MOST_BUCKETS = 1000

_FIELDS: dict[type, str] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfWeek: "dayofweek",
}


def read_group(node: Node, table: Name) -> Key | None:
    """A group column, or what rows are grouped by in its place; None for anything else."""
    node = bare(node)
    place = position(node)
    match node:
        case exp.Column() if isinstance(node.this, exp.Identifier):
            return Key(column=read_column(node, table), position=place)
        case exp.Case() | exp.If() if node.find(exp.AggFunc) is None:
            return _cut(node, table)
        case exp.WidthBucket():
            return _buckets(node, table)
        case exp.TimestampTrunc() | exp.DateTrunc():
            period = _word(node.args.get("unit"))
            if period not in PERIODS:
                raise QueryError(f"DATE_TRUNC goes back to {_listed(PERIODS)}", position=place)
            return Key(column=read_column(node.this, table), by=Trimmed(period=period), position=place)
        case exp.Extract():
            return _extracted(read_column(node.expression, table), _word(node.this), place)
        case _ if type(node) in _FIELDS:
            return _extracted(read_column(node.this, table), _FIELDS[type(node)], place)
        case exp.IntDiv() | exp.Floor() | exp.Mul() if node.find(exp.AggFunc) is None:
            return _stepped(node, table)
    return None


def read_total(node: Node, table: Name) -> Key | None:
    """A group column with a name for its total, CASE WHEN GROUPING(x) = 1 THEN 'all' ELSE x END; None for any other."""
    node = bare(node)
    if not isinstance(node, exp.Case | exp.If) or node.find(*FLAGS) is None:
        return None
    ((when, then), *more), otherwise, subject = case_parts(node)
    test = bare(when) if subject is None else exp.EQ(this=subject.copy(), expression=when.copy())
    sides = [bare(test.this), bare(test.expression)] if isinstance(test, exp.EQ) else []
    flags = [side.expressions[0] for side in sides if isinstance(side, FLAGS) and len(side.expressions) == 1]
    number = [str(side.this) for side in sides if isinstance(side, exp.Literal)]
    if not more and otherwise is not None and flags and number in (["0"], ["1"]):
        total, shown = (then, otherwise) if number == ["1"] else (otherwise, then)
        key, flagged = read_group(shown, table), read_group(flags[0], table)
        constant = isinstance(bare(total), exp.Literal | exp.Neg)
        if constant and key is not None and flagged is not None and key.same(flagged):
            return replace(key, total=read_literal(total), position=position(node))
    raise QueryError(
        "a CASE of GROUPING names a total, as in CASE WHEN GROUPING(x) = 1 THEN 'all' ELSE x END",
        position=position(node),
    )


def _word(node: Node) -> str:
    return "" if node is None else str(node.name).lower()


def _listed(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _extracted(column: Name, wanted: str, place: int) -> Key:
    known = "dayofweek" if wanted in ("dow", "weekday") else wanted
    if known not in FIELDS:
        raise QueryError(f"EXTRACT takes {_listed(FIELDS)} out of a day", position=place)
    return Key(column=column, by=Trimmed(period=known, number=True), position=place)


def _stepped(node: Node, table: Name) -> Key:
    """x // w, FLOOR(x / w) and FLOOR(x / w) * w."""
    place = position(node)
    inner, times = node, Decimal(1)
    if isinstance(node, exp.Mul):
        sides = [bare(node.this), bare(node.expression)]
        constants = [side for side in sides if isinstance(side, exp.Literal)]
        if len(constants) == 1:
            inner, times = sides[sides[0] is constants[0]], _number(constants[0])
    if isinstance(inner, exp.Floor):
        inner = bare(inner.this)
        inner = inner if isinstance(inner, exp.Div) else exp.Div(this=inner, expression=exp.Literal.number(1))
    elif not isinstance(inner, exp.IntDiv):
        raise QueryError("groups of equal width are written FLOOR(x / 10) * 10", position=place)
    width = _number(inner.expression)
    if width <= 0 or times <= 0:
        raise QueryError("a group has a width above 0, as in FLOOR(x / 10) * 10", position=place)
    towards_zero = isinstance(inner, exp.IntDiv)
    by = Stepped(width=width, times=times, towards_zero=towards_zero)
    return Key(column=read_column(inner.this, table), by=by, position=place)


def _number(node: Node) -> Decimal:
    literal = read_literal(node)
    if isinstance(literal, bool) or not isinstance(literal, int | Decimal):
        raise QueryError("a number is expected here", position=position(node))
    return Decimal(literal)


def _buckets(node: Node, table: Name) -> Key:
    """WIDTH_BUCKET(x, low, high, n): 0 below low, n + 1 from high on, and n buckets of equal width between them."""
    place, column = position(node), read_column(node.this, table)
    bounds = [node.args.get(name) for name in ("min_value", "max_value", "num_buckets")]
    if any(bound is None for bound in bounds):
        raise QueryError("WIDTH_BUCKET takes a column, two ends and a number of buckets", position=place)
    low, high, buckets = map(_number, bounds)
    if not low < high or buckets != int(buckets) or not 1 <= buckets <= MOST_BUCKETS:
        raise QueryError(
            f"WIDTH_BUCKET takes a lower end, a higher one, and from 1 to {MOST_BUCKETS} buckets", position=place
        )
    number = int(buckets)
    width = (Fraction(high) - Fraction(low)) / number
    edges = [_decimal(Fraction(low) + i * width, place) for i in range(number + 1)]

    def compare(op: Op, edge: Number) -> Compare:
        return Compare(column=column, op=op, literal=edge, position=place)

    inner = [all_of(compare(Op.GE, edges[i]), compare(Op.LT, edges[i + 1])) for i in range(number)]
    pieces = [compare(Op.LT, edges[0]), *inner, compare(Op.GE, edges[-1])]
    by = Cut(
        pieces=tuple(Piece(condition=piece, label=label) for label, piece in enumerate(pieces)),
        buckets=(low, high, number),
    )
    return Key(column=column, by=by, position=place)


def _decimal(edge: Fraction, place: int) -> Number:
    """An edge as a constant, which must be exact."""
    if edge.denominator == 1:
        return int(edge)
    written = Decimal(edge.numerator) / Decimal(edge.denominator)
    if Fraction(written) != edge:
        raise QueryError("these buckets have edges without an exact decimal form; write them as CASE", position=place)
    return written


def _cut(node: Node, table: Name) -> Key:
    """CASE in both of its forms, and IF, with labels for values."""
    place = position(node)
    pairs, otherwise, subject = case_parts(node)
    pieces: list[Piece] = []
    for when, then in pairs:
        if subject is None:
            condition = read_condition(when, table)
        else:
            own = read_column(subject, table)
            condition = Compare(column=own, op=Op.EQ, literal=read_literal(when), position=position(when))
        pieces.append(Piece(condition=condition, label=_label(then)))
    if otherwise is not None:
        pieces.append(Piece(condition=TRUE, label=_label(otherwise)))
    kinds = {Decimal if type(piece.label) is int else type(piece.label) for piece in pieces if piece.label is not None}
    if len(kinds) > 1:
        raise QueryError("the labels of a CASE that rows are grouped by are of one type", position=place)
    columns = [leaf.column for piece in pieces for leaf in leaves(piece.condition)]
    if not columns:
        raise QueryError("a CASE that rows are grouped by is about columns, and this is about none", position=place)
    return Key(column=columns[0], by=Cut(pieces=tuple(pieces)), position=place)


def _label(node: Node) -> Literal | None:
    node = bare(node)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Column):
        raise QueryError("the labels of a CASE that rows are grouped by are constants", position=position(node))
    return read_literal(node)
