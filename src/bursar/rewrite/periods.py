"""Repairs of what is made of days: other names of EXTRACT and DATE_TRUNC, and conditions on them as ranges of days."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from sqlglot import exp

from bursar.sql.allowed import COMPARISONS, Node
from bursar.sql.conditions import bare, operands

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
    found = [node for node in tree.find_all(*COMPARISONS, exp.Between, exp.In) if _Period.of(node.this) is not None]
    made = [(node, _range(node)) for node in found]
    for node, days in made:
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
            several = [period.span(one, year) for one in node.expressions]
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
