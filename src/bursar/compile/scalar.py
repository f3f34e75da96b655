"""Terms of exact values: what functions and operators make of constants, labels and the values behind cells.

As DuckDB has it, with NULL as None. Numbers are exact where their operations are: whole numbers and fractions.
"""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final

from bursar.compile.patterns import matches, replaced
from bursar.errors import QueryError
from bursar.sql.literals import truncated
from bursar.sql.terms import Call, Given, Ref, Term

Exact = str | int | Fraction | float | bool | date | None
"""A value that is known; floats only where a function such as a root gives one."""


class Unknown(Exception):
    """A value that nobody knows was needed: of a row outside of the declared range."""


LONGEST_TEXT: Final = 4096
"""Most letters of a text that a term makes."""


LONGEST_NUMBER: Final = 4096
"""Most binary digits of a number, above or below the line of a fraction: products of products have ever more."""


def evaluate(term: Term, values: Mapping[str, Exact]) -> Exact:
    """What a term is where columns have these values; a column that is missing is unknown."""
    match term:
        case Given():
            return exact(term.value)
        case Ref():
            if term.name.text not in values:
                raise Unknown
            return values[term.name.text]
        case Call(function="case"):
            return _case(term, values)
        case Call(function="and" | "or"):
            return _junction(term, values)
        case Call(function="coalesce"):
            return next((value for value in (evaluate(part, values) for part in term.parts) if value is not None), None)
        case Call():
            return apply(term.function, [evaluate(part, values) for part in term.parts], term.position)
    raise QueryError("aggregates stand around columns here, and not inside of conditions", position=term.position)


def exact(value: Exact | Decimal) -> Exact:
    """A constant as a value: decimals are fractions, and whole ones whole numbers."""
    if isinstance(value, bool) or not isinstance(value, Decimal | Fraction):
        return value
    fraction = Fraction(value)
    return int(fraction) if fraction.denominator == 1 else fraction


def _case(term: Call, values: Mapping[str, Exact]) -> Exact:
    *pairs, otherwise = term.parts
    for test, then in zip(pairs[::2], pairs[1::2], strict=True):
        if truth(evaluate(test, values), test.position) is True:
            return evaluate(then, values)
    return evaluate(otherwise, values)


def _junction(term: Call, values: Mapping[str, Exact]) -> bool | None:
    """AND and OR in three-valued logic."""
    deciding = term.function == "or"
    parts = [truth(evaluate(part, values), part.position) for part in term.parts]
    if deciding in parts:
        return deciding
    return None if None in parts else not deciding


def truth(value: Exact, position: int) -> bool | None:
    """A truth value; refused for anything else."""
    if value is None or isinstance(value, bool):
        return value
    raise QueryError("a condition is expected here", position=position)


def apply(function: str, values: Sequence[Exact], position: int = -1) -> Exact:
    """A function of values; NULL where one of them is, but for those functions that know NULL."""
    try:
        match function, values:
            case "is null", (value,):
                return value is None
            case "same", (left, right):
                both_null = left is None and right is None
                return both_null or (left is not None and right is not None and compared(left, right) == 0)
            case "concat", _:
                return _text_of("".join(map(_shown, (value for value in values if value is not None))))
            case "greatest" | "least", _:
                there = [value for value in values if value is not None]
                return _extreme(there, function == "greatest")
            case "in", (value, *others):
                return _member(value, others)
            case "nullif", (left, right):
                return None if left is not None and right is not None and compared(left, right) == 0 else left
        if any(value is None for value in values):
            return None
        return _FUNCTIONS[function](*values)
    except (KeyError, TypeError, AttributeError) as fault:
        raise QueryError(f"{function.upper()} is not for such values", position=position) from fault
    except (ArithmeticError, ValueError):
        return None  # what has no value: the root of a number below 0, a division by 0


def compared(left: Exact, right: Exact) -> int:
    """-1, 0 or 1; days are compared with days, also where these are written as text."""
    if isinstance(left, date) and isinstance(right, str):
        right = _day(right)
    if isinstance(right, date) and isinstance(left, str):
        left = _day(left)
    if isinstance(left, bool) != isinstance(right, bool):
        raise TypeError
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    if isinstance(left, date) and isinstance(right, date):
        return (left > right) - (left < right)
    if isinstance(left, int | Fraction | float) and isinstance(right, int | Fraction | float):
        return (left > right) - (left < right)
    raise TypeError


def _day(text: str) -> date:
    matched = re.fullmatch(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]00:00(?::00(?:\.0+)?)?(?:Z|\+00(?::00)?)?)?", text)
    if matched is None:
        raise TypeError
    try:
        return date.fromisoformat(matched[1])
    except ValueError:
        raise TypeError from None


def _member(value: Exact, others: Sequence[Exact]) -> bool | None:
    if value is None:
        return None
    if any(other is not None and compared(value, other) == 0 for other in others):
        return True
    return None if None in others else False


def _extreme(values: Sequence[Exact], most: bool) -> Exact:
    best: Exact = None
    for value in values:
        if best is None or ((compared(value, best) > 0) == most and compared(value, best) != 0):
            best = value
    return best


def _number(value: Exact) -> int | Fraction | float:
    if isinstance(value, bool) or not isinstance(value, int | Fraction | float):
        raise TypeError
    return value


def _whole(value: Exact) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _text(value: Exact) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _text_of(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise QueryError(f"a text has at most {LONGEST_TEXT} letters")
    return text


def _shown(value: Exact) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction | float):
        raise TypeError  # decimals are written in more than one way
    return str(value)


def _add(left: Exact, right: Exact) -> Exact:
    if isinstance(left, date) and not isinstance(right, date):
        return left + timedelta(days=_whole(right))
    return exact_number(_number(left) + _number(right))


def _subtract(left: Exact, right: Exact) -> Exact:
    if isinstance(left, date) and isinstance(right, date):
        return (left - right).days
    if isinstance(left, date):
        return left - timedelta(days=_whole(right))
    return exact_number(_number(left) - _number(right))


def exact_number(number: int | Fraction | float) -> Exact:
    """A fraction that is whole as a whole number; refused where it is very long."""
    if (
        not isinstance(number, float)
        and max(number.numerator.bit_length(), number.denominator.bit_length()) > LONGEST_NUMBER
    ):
        raise QueryError(f"a number has at most {LONGEST_NUMBER} binary digits")
    return int(number) if isinstance(number, Fraction) and number.denominator == 1 else number


def _divide(left: Exact, right: Exact) -> Exact:
    above, below = _number(left), _number(right)
    if below == 0:
        return None
    if isinstance(above, float) or isinstance(below, float):
        return float(above) / float(below)
    return exact_number(Fraction(above) / Fraction(below))


def _whole_divide(left: Exact, right: Exact) -> Exact:
    above, below = _whole(left), _whole(right)
    return None if below == 0 else int(math.copysign(1, above) * math.copysign(1, below)) * (abs(above) // abs(below))


def _remainder(left: Exact, right: Exact) -> Exact:
    above, below = _number(left), _number(right)
    if below == 0:
        return None
    if isinstance(above, float) or isinstance(below, float):
        return math.fmod(above, below)
    remainder = Fraction(above).__abs__() % Fraction(below).__abs__()
    return exact_number(-remainder if above < 0 else remainder)


def _power(left: Exact, right: Exact) -> Exact:
    base, exponent = _number(left), _number(right)
    if isinstance(exponent, int) and 0 <= exponent <= 8 and not isinstance(base, float):
        return exact_number(base**exponent)
    return _finite(math.pow(base, exponent))


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError
    return number


def _round(value: Exact, decimals: Exact = 0) -> Exact:
    """Half away from 0, as SQL has it."""
    number, places = _number(value), _whole(decimals)
    if abs(places) > 30:
        raise TypeError
    scale = Fraction(10) ** places
    scaled = abs(Fraction(number)) * scale
    rounded = Fraction(math.floor(scaled + Fraction(1, 2))) / scale
    return exact_number(-rounded if number < 0 else rounded)


def _floor(value: Exact, decimals: Exact = 0) -> Exact:
    scale = Fraction(10) ** min(max(_whole(decimals), -30), 30)
    return exact_number(Fraction(math.floor(Fraction(_number(value)) * scale)) / scale)


def _as_whole(value: Exact) -> Exact:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"[+-]?[0-9]{1,30}", value.strip()) else None
    return _round(value)


def _as_even(value: Exact) -> Exact:
    """The nearest whole number to a DOUBLE; halves to the even one, as DuckDB casts it."""
    number = _number(value)
    return round(number if isinstance(number, float) else Fraction(number))


def _as_real(value: Exact) -> Exact:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        return exact(Decimal(value)) if re.fullmatch(r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?", value.strip()) else None
    return _number(value)


def _as_truth(value: Exact) -> Exact:
    return value if isinstance(value, bool) else _whole(value) != 0


def _cased(text: str, change: Callable[[str], str]) -> str:
    """Letter by letter: one letter stays one."""
    return "".join(
        "ẞ" if letter == "ß" and change is str.upper else change(letter) if len(change(letter)) == 1 else letter
        for letter in text
    )


def _substring(value: Exact, start: Exact, length: Exact = None) -> str:
    text, first = _text(value), _whole(start)
    begin = first - 1 if first > 0 else len(text) + first if first < 0 else -1
    if length is None:
        return text[max(begin, 0) :]
    return text[max(begin, 0) : max(begin + _whole(length), 0)]


def like(text: str, pattern: str, *, any_case: bool) -> bool:
    """Whether a text matches a pattern, in which % stands for any text and _ for any character."""
    pieces = {"%": ".*", "_": "."}
    letters = pattern.lower() if any_case else pattern
    whole = re.compile("".join(pieces.get(letter, re.escape(letter)) for letter in letters), re.DOTALL)
    return whole.fullmatch(text.lower() if any_case else text) is not None


def _pattern(value: Exact) -> str:
    """A pattern; many signs for any text in it would make the search for a match long."""
    pattern = _text(value)
    if pattern.count("%") > 8:
        raise QueryError("a pattern has at most 8 signs %")
    return re.sub("%+", "%", pattern)


def _of_day(value: Exact) -> date:
    if isinstance(value, str):
        return _day(value)
    if not isinstance(value, date):
        raise TypeError
    return value


_FORMATS = {"%Y": "%04Y", "%m": "%m", "%d": "%d", "%B": "%B", "%b": "%b", "%A": "%A", "%a": "%a", "%j": "%j", "%%": "%"}


def _formatted(value: Exact, form: Exact) -> str:
    day, text = _of_day(value), _text(form)
    if set(re.findall("%.", text)) - set(_FORMATS):
        raise TypeError
    return day.strftime(text)


def _between(first: Exact, last: Exact, unit: str) -> int:
    """How many beginnings of a calendar unit lie between two days, the second one included; of weeks, whole ones."""
    start, end = truncated(_of_day(first), unit), truncated(_of_day(last), unit)
    months = 12 * (end.year - start.year) + end.month - start.month
    match unit:
        case "day":
            return (end - start).days
        case "week":
            return int((_of_day(last) - _of_day(first)).days / 7)
    return months // {"month": 1, "quarter": 3, "year": 12}[unit]


def _last_day(value: Exact) -> date:
    day = _of_day(value)
    return date(day.year, day.month, calendar.monthrange(day.year, day.month)[1])


def _split_part(value: Exact, separator: Exact, number: Exact) -> str:
    """A part of a text, counted from 1, or from the end by numbers below 0; the empty text where there is none."""
    text, place = _text(value), _whole(number)
    parts = text.split(_text(separator)) if separator else list(text)
    if place == 0 or abs(place) > len(parts):
        return ""
    return parts[place - 1] if place > 0 else parts[place]


def _similar(value: Exact, pattern: Exact) -> bool:
    if set(_text(pattern)) & set("%_"):
        raise QueryError("% and _ of SIMILAR TO mean different things in different databases; write REGEXP_MATCHES")
    return matches(_text(value), _text(pattern), whole=True)


def _searched(value: Exact, pattern: Exact, options: Exact = "") -> bool:
    if _text(options) not in ("", "c", "i"):
        raise QueryError("of the options of REGEXP_MATCHES, 'i' is available")
    return matches(_text(value), _text(pattern), whole=False, any_case=options == "i")


def _exchanged(value: Exact, pattern: Exact, new: Exact, options: Exact = "") -> str:
    if _text(options) not in ("", "g"):
        raise QueryError("of the options of REGEXP_REPLACE, 'g' is available")
    return _text_of(replaced(_text(value), _text(pattern), _text(new), every=options == "g"))


_FUNCTIONS: dict[str, Callable[..., Exact]] = {
    "+": _add,
    "-": _subtract,
    "*": lambda a, b: exact_number(_number(a) * _number(b)),
    "/": _divide,
    "//": _whole_divide,
    "%": _remainder,
    "neg": lambda a: -_number(a),
    "power": _power,
    "abs": lambda a: -_number(a) if _number(a) < 0 else _number(a),
    "sign": lambda a: (_number(a) > 0) - (_number(a) < 0),
    "sqrt": lambda a: _finite(math.sqrt(_number(a))),
    "ln": lambda a: _finite(math.log(_number(a))),
    "log": lambda a, base=10: _finite(math.log(_number(a)) / math.log(_number(base))),
    "exp": lambda a: _finite(math.exp(_number(a))),
    "round": _round,
    "floor": _floor,
    "ceil": lambda a: math.ceil(_number(a)),
    "int": _as_whole,
    "int even": _as_even,
    "real": _as_real,
    "bool": _as_truth,
    "text": _shown,
    "=": lambda a, b: compared(a, b) == 0,
    "<>": lambda a, b: compared(a, b) != 0,
    "<": lambda a, b: compared(a, b) < 0,
    "<=": lambda a, b: compared(a, b) <= 0,
    ">": lambda a, b: compared(a, b) > 0,
    ">=": lambda a, b: compared(a, b) >= 0,
    "not": lambda a: not _as_truth(a),
    "||": lambda a, b: _text_of(_shown(a) + _shown(b)),
    "upper": lambda a: _cased(_text(a), str.upper),
    "lower": lambda a: _cased(_text(a), str.lower),
    "length": lambda a: len(_text(a)),
    "reverse": lambda a: _text(a)[::-1],
    "left": lambda a, n: _text(a)[: _whole(n)],
    "right": lambda a, n: _text(a)[-_whole(n) :] if _whole(n) > 0 else _text(a)[-_whole(n) :] if n else "",
    "trim": lambda a: _text(a).strip(" "),
    "ltrim": lambda a: _text(a).lstrip(" "),
    "rtrim": lambda a: _text(a).rstrip(" "),
    "replace": lambda a, old, new: _text_of(_text(a).replace(_text(old), _text(new)) if old else _text(a)),
    "substr": _substring,
    "starts_with": lambda a, b: _text(a).startswith(_text(b)),
    "ends_with": lambda a, b: _text(a).endswith(_text(b)),
    "contains": lambda a, b: _text(b) in _text(a),
    "like": lambda a, b: like(_text(a), _pattern(b), any_case=False),
    "ilike": lambda a, b: like(_text(a), _pattern(b), any_case=True),
    "year": lambda a: _of_day(a).year,
    "quarter": lambda a: (_of_day(a).month + 2) // 3,
    "month": lambda a: _of_day(a).month,
    "week": lambda a: _of_day(a).isocalendar().week,
    "day": lambda a: _of_day(a).day,
    "dayofweek": lambda a: _of_day(a).isoweekday() % 7,
    "isodow": lambda a: _of_day(a).isoweekday(),
    "dayofyear": lambda a: _of_day(a).timetuple().tm_yday,
    "epoch": lambda a: (_of_day(a) - date(1970, 1, 1)).days * 86400,
    "monthname": lambda a: _of_day(a).strftime("%B"),
    "dayname": lambda a: _of_day(a).strftime("%A"),
    "strftime": _formatted,
    "last_day": _last_day,
    "strpos": lambda a, b: _text(a).find(_text(b)) + 1,
    "split_part": _split_part,
    "regexp_matches": _searched,
    "regexp_full_match": lambda a, b: matches(_text(a), _text(b), whole=True),
    "regexp_replace": _exchanged,
    "similar to": _similar,
    **{
        f"datediff {unit}": lambda a, b, unit=unit: _between(a, b, unit)
        for unit in ("day", "week", "month", "quarter", "year")
    },
    **{
        f"trunc {period}": lambda a, period=period: truncated(_of_day(a), period)
        for period in ("day", "week", "month", "quarter", "year")
    },
}

FUNCTIONS = tuple(_FUNCTIONS)
"""Every function of exact values, by the name that terms have for it."""
