"""Repairs of conditions: comparisons of a column with constants, and what is made of days, as ranges of days."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from sqlglot import exp

from bursar.sql.syntax import AT_LEAST, COMPARISONS, Node, bare, operands

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
    low, high = (literal.this if literal.is_string else Decimal(literal.this) for literal in (default, right))
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
        first, *others = [bare(part) for part in node.expressions] or [None]
        if node.name.upper() not in (AT_LEAST, "AT_MOST") or not others:
            continue
        counted, most = isinstance(first, exp.Literal), node.name.upper() != AT_LEAST
        number, conditions = (str(first.this), others) if counted else ("1", [first, *others])
        least = int(number) + most if number.isdecimal() else 0
        if 1 <= least <= len(conditions):
            limited = exp.Literal.number(least)
            counted_test = exp.Anonymous(this=AT_LEAST, expressions=[limited, *(part.copy() for part in conditions)])
            node.replace(exp.Not(this=counted_test) if most else counted_test)


REPAIRS_OF_CONDITIONS: tuple[Callable[[Node], None], ...] = (
    column_first,
    plain_lists,
    defaults,
    null_tests,
    plain_dates,
    truth_columns,
    counted_conditions,
)


_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_DAYS = {"week": 7, "day": 1}
_NAMES = ("DATE_PART", "DATEPART")
_NUMBERED: dict[type, str] = {exp.Year: "year", exp.Quarter: "quarter", exp.Month: "month"}
_FORMATS = {"%Y": "year", "%Y-%m": "month", "%Y-%m-%d": "day"}
_PARTS: dict[type, str] = {
    exp.Dayname: "dayofweek",
    exp.DayOfWeekIso: "dayofweek",
    exp.Monthname: "month",
}


def named_periods(tree: Node) -> None:
    """DATE_PART('year', x) is EXTRACT(year FROM x); a text, or the number of a week, gives way to the period itself."""
    for node in list(tree.find_all(exp.Anonymous, exp.TimeToStr, exp.Week, exp.WeekOfYear, exp.Extract, *_PARTS)):
        match node:
            case exp.Anonymous(expressions=[exp.Literal() as part, column]) if node.name.upper() in _NAMES:
                node.replace(_part(part.name, column))
            case exp.TimeToStr() if (period := _FORMATS.get(node.args["format"].name)) is not None:
                node.replace(_first(period, node.this))
            case exp.Week() | exp.WeekOfYear():
                node.replace(_first("week", node.this))
            case exp.Extract() if node.this.name.lower() == "week":
                node.replace(_first("week", node.expression))
            case _ if type(node) in _PARTS:
                node.replace(_part(_PARTS[type(node)], node.this))


def _part(name: str, column: Node) -> Node:
    return exp.Extract(this=exp.Var(this=name), expression=column.copy())


def _first(period: str, column: Node) -> Node:
    return exp.TimestampTrunc(this=column.copy(), unit=exp.Var(this=period.upper()))


@dataclass(frozen=True)
class _Period:
    """A period of a column, by its number in the year before it or by its first day."""

    column: Node
    unit: str
    number: bool

    @staticmethod
    def of(node: Node) -> _Period | None:
        node = bare(node)
        match node:
            case exp.Extract():
                return _Period(node.expression, node.this.name.lower(), True)
            case exp.TimestampTrunc() | exp.DateTrunc() if node.args.get("unit") is not None:
                return _Period(node.this, node.args["unit"].name.lower(), False)
            case _ if type(node) in _NUMBERED:
                return _Period(node.this, _NUMBERED[type(node)], True)
        return None

    def span(self, literal: Node, year: int | None) -> tuple[date, date] | None:
        """The first day of the period that a constant means, and the first day behind it."""
        literal = bare(literal)
        literal = bare(literal.this) if isinstance(literal, exp.Cast) else literal
        if not isinstance(literal, exp.Literal) or self.unit not in {**_MONTHS, **_DAYS}:
            return None
        try:
            first = self._numbered(int(literal.this), year) if self.number else date.fromisoformat(str(literal.this))
            return None if first is None or not self._begins(first) else (first, self._next(first))
        except ValueError:
            return None

    def _numbered(self, number: int, year: int | None) -> date | None:
        if self.unit == "year":
            return date(number, 1, 1)
        if year is None or self.unit not in _MONTHS:  # a day of every month, a week of every year: many ranges
            return None
        return date(year, (number - 1) * _MONTHS[self.unit] + 1, 1)

    def _begins(self, day: date) -> bool:
        if self.unit in _DAYS:
            return self.unit == "day" or day.weekday() == 0
        return day.day == 1 and (day.month - 1) % _MONTHS[self.unit] == 0

    def _next(self, first: date) -> date:
        if self.unit in _DAYS:
            return first + timedelta(days=_DAYS[self.unit])
        months = first.month - 1 + _MONTHS[self.unit]
        return date(first.year + months // 12, months % 12 + 1, 1)


def ranges(tree: Node) -> None:
    """YEAR(x) = 2021 is a range of days, MONTH(x) = 3 beside it another; so is DATE_TRUNC('month', x) with a day."""
    tests = [node for node in tree.find_all(*COMPARISONS, exp.Between, exp.In) if _Period.of(node.this) is not None]
    replacements = [(node, _range(node)) for node in tests]
    for node, days in replacements:
        if days is not None:
            node.replace(exp.paren(days, copy=False))


def _range(node: Node) -> Node | None:
    period = _Period.of(node.this)
    if period is None or not isinstance(period.column, exp.Column):
        return None
    year = _year_beside(node, period.column)
    match node:
        case exp.Between():
            spans = [period.span(node.args[end], year) for end in ("low", "high")]
            low, high = spans
            return None if low is None or high is None else _between(period.column, low[0], high[1])
        case exp.In():
            several = [period.span(literal, year) for literal in node.expressions]
            whole = [_between(period.column, *span) for span in several if span is not None]
            return exp.or_(*whole) if whole and len(whole) == len(several) else None
    span = period.span(node.expression, year)
    if span is None:
        return None
    inside = _between(period.column, *span)
    match node:
        case exp.EQ():
            return inside
        case exp.NEQ():
            return exp.Not(this=exp.paren(inside))
        case exp.LT() | exp.GTE():
            return _compared(type(node), period.column, span[0])
    return _compared(exp.LT if isinstance(node, exp.LTE) else exp.GTE, period.column, span[1])


def _year_beside(node: Node, column: Node) -> int | None:
    """The one year that a column must be in for all conditions around this one to hold."""
    around = node
    while isinstance(around.parent, exp.And | exp.Paren):
        around = around.parent
    for part in operands(around, exp.And):
        period = _Period.of(part.this) if isinstance(part, exp.EQ) else None
        if period is not None and period.number and period.unit == "year" and period.column == column:
            number = bare(part.expression)
            return int(number.this) if isinstance(number, exp.Literal) and str(number.this).isdecimal() else None
    return None


def _between(column: Node, first: date, behind: date) -> Node:
    return exp.and_(_compared(exp.GTE, column, first), _compared(exp.LT, column, behind))


def _compared(op: Callable[..., Node], column: Node, day: date) -> Node:
    literal = exp.Cast(this=exp.Literal.string(day.isoformat()), to=exp.DataType.build("date"))
    return op(this=column.copy(), expression=literal)
