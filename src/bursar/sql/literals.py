"""Constants of a syntax tree: strings, numbers, truth values and days, and what is computed of them."""

from __future__ import annotations

import calendar
import re
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.names import Literal
from bursar.sql.read_terms import REAL, TEXT, WHOLE
from bursar.sql.syntax import (
    FLAGS,
    OF_ONE_COLUMN,
    Node,
    bare,
    position,
    reason,
)

LONGEST_NUMBER = 40
"""Most characters of a number; the exponent has at most three digits on top of that."""

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Coalesce, exp.Nullif)
COMPUTED = (*_ARITHMETIC, exp.Case, exp.If, *FLAGS, *OF_ONE_COLUMN)


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
        case exp.Cast() if node.to.this in DAYS and isinstance(bare(node.this), exp.Literal):
            text = str(bare(node.this).this)
            within_day = node.to.this != exp.DataType.Type.DATE and moment_of(text) is not None
            return text if within_day else read_date(text, place)  # which days a column can tell is not known yet
        case exp.Cast() if node.to.this in (*REAL, *WHOLE) and node.find(exp.Column) is None:
            number = read_literal(node.this)
            return read_number(number, place) if isinstance(number, str) else number
        case exp.Cast() if node.to.this in TEXT and isinstance(bare(node.this), exp.Literal):
            return str(bare(node.this).this)
        case exp.Cast() | exp.Date() | exp.TsOrDsToDate() if node.find(exp.Column) is None:
            day = read_literal(node.this)
            if isinstance(day, str):
                day = read_date(day, place)
            if isinstance(day, date):
                return day
            raise QueryError("only DATE '2024-12-31' can be cast", position=place)
        case exp.Cast():
            raise QueryError("only DATE '2024-12-31' can be cast", position=place)
        case exp.TimestampTrunc() | exp.DateTrunc() if node.find(exp.Column) is None:
            return truncated(_day(node.this, place), str(node.args["unit"].name).lower())
        case exp.Extract() if node.find(exp.Column) is None:
            return _field(_day(node.expression, place), str(node.this.name).lower(), place)
        case exp.Year() | exp.Quarter() | exp.Month() | exp.Day() | exp.DayOfMonth() if node.find(exp.Column) is None:
            return _field(_day(node.this, place), "day" if isinstance(node, exp.DayOfMonth) else node.key, place)
        case exp.DateFromParts():
            parts = [read_literal(node.args[name]) for name in ("year", "month", "day")]
            year, month, day_of_month = (part if isinstance(part, int) else -1 for part in parts)
            return read_date(f"{year:04d}-{month:02d}-{day_of_month:02d}", place)
        case exp.DPipe() | exp.Concat() | exp.Add() | exp.Sub() | exp.Mul() | exp.Div() if (
            node.find(exp.Column, exp.AggFunc, exp.Null, exp.Query) is None
        ):
            return _folded(node, place)
        case exp.Null():
            raise QueryError("a comparison with NULL is never true; ask for IS NULL or IS NOT NULL", position=place)
        case exp.Column() if node.this.args.get("quoted"):
            raise QueryError(
                "two columns cannot be compared, and this is the name of one; text is written 'like this'",
                position=place,
            )
        case exp.Column():
            raise QueryError("two columns cannot be compared; compare a column with a constant", position=place)
        case _ if isinstance(node, COMPUTED):
            raise QueryError(reason(node), position=place)
        case exp.AggFunc():
            raise QueryError("an aggregate is selected; it cannot stand in a condition", position=place)
    raise QueryError("a constant is expected here", position=place)


DAYS = tuple(
    kind
    for name, kind in exp.DataType.Type.__members__.items()
    if name in ("DATE", "TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPTZ", "DATETIME", "TIMESTAMP_S", "TIMESTAMP_MS")
)

_MIDNIGHT = r"(?:[ T]00:00(?::00(?:\.0+)?)?)?(?:Z| ?\+00(?::?00)?)?"


def read_date(text: str, place: int) -> date:
    """The day of a text in the form 2024-12-31; a time beside it must be midnight."""
    try:
        if day := re.fullmatch(rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}){_MIDNIGHT}", text.strip()):
            return date.fromisoformat(day[1])
    except ValueError:
        pass
    raise QueryError(f"{text!r} is not a day; days are written 2024-12-31", position=place)


def moment_of(text: str) -> datetime | None:
    """The moment within a day, other than its first, that a text says; None for any other text."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return None if moment.time() == time(0) else moment


def truncated(day: date, period: str) -> date:
    """The first day of the period that a day is in."""
    match period:
        case "week":
            return date.fromordinal(max(1, day.toordinal() - day.weekday()))
        case "month":
            return day.replace(day=1)
        case "quarter":
            return date(day.year, day.month - (day.month - 1) % 3, 1)
        case "year":
            return date(day.year, 1, 1)
    return day


def _day(node: Node, place: int) -> date:
    day = read_literal(node)
    day = read_date(day, place) if isinstance(day, str) else day
    if not isinstance(day, date):
        raise QueryError("a day is expected here, as in DATE '2024-12-31'", position=place)
    return day


def _field(day: date, field: str, place: int) -> int:
    match field:
        case "quarter":
            return (day.month + 2) // 3
        case "year" | "month" | "day":
            return int(getattr(day, field))
    raise QueryError("of a constant day, YEAR, QUARTER, MONTH and DAY are available", position=place)


def _folded(node: Node, place: int) -> Literal:
    """A constant that is written as one made of others: 'W' || '%', 60 * 60, DATE '2024-01-31' - 30."""
    if isinstance(node, exp.Concat | exp.DPipe):
        parts = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]
        texts = [read_literal(part) for part in parts]
        if not all(isinstance(text, str) for text in texts):
            raise QueryError("a constant is expected here", position=place)
        return "".join(map(str, texts))
    if isinstance(bare(node.expression), exp.Interval):
        return _moved(read_literal(node.this), bare(node.expression), -1 if isinstance(node, exp.Sub) else 1, place)
    left, right = read_literal(node.this), read_literal(node.expression)
    if isinstance(left, date) and type(right) is int and isinstance(node, exp.Add | exp.Sub):
        return _shifted(left, right if isinstance(node, exp.Add) else -right, place)
    if any(isinstance(side, bool) or not isinstance(side, int | Decimal) for side in (left, right)):
        raise QueryError("a constant is expected here", position=place)
    above, below = Fraction(str(left)), Fraction(str(right))
    if isinstance(node, exp.Div) and below == 0:
        raise QueryError("this divides by 0", position=place)
    results = {exp.Add: above + below, exp.Sub: above - below, exp.Mul: above * below}
    number = above / below if isinstance(node, exp.Div) else results[type(node)]
    literal = int(number) if number.denominator == 1 else Decimal(number.numerator) / Decimal(number.denominator)
    if Fraction(literal) != number or abs(number) > 10**LONGEST_NUMBER:
        raise QueryError("this is not a number in range", position=place)
    return literal


_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}


def _moved(day: Literal, interval: Node, sign: int, place: int) -> date:
    """A day moved by an interval; a day that the month has not is its last one."""
    unit = str(interval.args["unit"].name).lower().rstrip("s") if interval.args.get("unit") is not None else ""
    amount = read_literal(interval.this)
    amount = read_number(amount.strip(), place) if isinstance(amount, str) else amount
    if isinstance(day, str):
        day = read_date(day, place)
    if not isinstance(day, date) or not isinstance(amount, int | Decimal) or amount != int(amount):
        raise QueryError("days are moved by whole intervals, as in DATE '2024-12-31' - INTERVAL 30 DAY", position=place)
    steps = sign * int(amount)
    if unit == "hour" and not steps % 24:
        return _shifted(day, steps // 24, place)
    if unit in _DAYS:
        return _shifted(day, steps * _DAYS[unit], place)
    if unit not in _MONTHS:
        raise QueryError("intervals are of days, weeks, months, quarters or years", position=place)
    months = day.year * 12 + day.month - 1 + steps * _MONTHS[unit]
    if not 12 <= months < 12 * 9999:
        raise QueryError("this is not a day in range", position=place)
    last = calendar.monthrange(months // 12, months % 12 + 1)[1]
    return date(months // 12, months % 12 + 1, min(day.day, last))


def _shifted(day: date, days: int, place: int) -> date:
    if not 1 <= day.toordinal() + days <= date.max.toordinal():
        raise QueryError("this is not a day in range", position=place)
    return date.fromordinal(day.toordinal() + days)


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
    whole = text.removeprefix("-")
    return int(text) if whole.isdecimal() and whole.isascii() else number
