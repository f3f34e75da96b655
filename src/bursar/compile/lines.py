"""Lines of answers as a table: labels, which are exact, and numbers and truths with error bars.

All of it looks at numbers that were bought, so it costs nothing. Error bars go along: they hold together with the
stated confidence, and every end here is the extreme of its formula over all numbers within them. So the new bars hold
whenever the old ones do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.compile.scalar import Exact, apply, exact
from bursar.core.domain import Value
from bursar.errors import QueryError
from bursar.estimation.derived import Derived
from bursar.lazy_dataclass import dataclass
from bursar.sql.terms import Call, Given, Ref, Term, Window

Flags = NDArray[np.bool_]
Whole = NDArray[np.int64]
Truths = NDArray[np.int8]

NO, UNKNOWN, YES = np.int8(0), np.int8(1), np.int8(2)
"""AND is the minimum, OR the maximum, NOT is 2 - x, also of the ends of what is possible."""


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """Values that are known exactly, one for each line."""

    values: tuple[Exact, ...]


@dataclass(frozen=True, eq=False)
class TruthColumn:
    """Truth by the noisy numbers, and the least and greatest that it can be."""

    value: Truths
    low: Truths
    high: Truths
    exact: bool = False  # whether it follows from labels alone


Column = LabelColumn | Derived | TruthColumn


@dataclass(frozen=True, eq=False)
class LineTable:
    """Columns by name; which lines are shown, by noisy numbers, and which are there for certain. Others may be."""

    columns: dict[str, Column]
    shown: Flags
    certain: Flags
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.shown)

    def take(self, lines: Whole) -> LineTable:
        """Some of the lines, in this order."""
        columns = {name: take(column, lines) for name, column in self.columns.items()}
        return replace(self, columns=columns, shown=self.shown[lines], certain=self.certain[lines])


def take(column: Column, lines: Whole) -> Column:
    """Some lines of a column."""
    match column:
        case LabelColumn():
            return LabelColumn(tuple(column.values[line] for line in lines.tolist()))
        case TruthColumn():
            return TruthColumn(column.value[lines], column.low[lines], column.high[lines], column.exact)
    sure = None if column.sure is None else column.sure[lines]
    finer = None if column.finer is None else column.finer[lines]
    absent = None if column.absent is None else column.absent[lines]
    return Derived(column.value[lines], column.low[lines], column.high[lines], sure, finer, absent)


def label_of(value: Exact) -> Value:
    """A value as it is shown."""
    return float(value) if isinstance(value, Fraction) else value


# ------------------------------------------------------------------------------------------------------- terms


def evaluate(term: Term, table: LineTable, computed: dict[Term, Column]) -> Column:
    """A term over the lines of an answer, with error bars; each term is computed once."""
    if term in computed:
        return computed[term]
    lines = len(table)
    match term:
        case Given():
            return LabelColumn((exact(term.value),) * lines)
        case Ref():
            if term.name.text not in table.columns:
                raise QueryError(f"{term.name.text} is selected but not in GROUP BY", position=max(term.position, 0))
            return table.columns[term.name.text]
        case Call(function="case"):
            return _case(term, [evaluate(part, table, computed) for part in term.parts], lines)
        case Call(function="/") if (share := _share(term, table, computed)) is not None:
            return share
        case Call():
            return _applied(term, [evaluate(part, table, computed) for part in term.parts], lines)
    raise QueryError("an aggregate stands around columns of lines here", position=term.position)


def _applied(term: Call, parts: Sequence[Column], lines: int) -> Column:
    function = term.function
    if function in ("and", "or", "not"):
        return _logical(function, [truth_of(part, term.position, lines) for part in parts])
    if all(isinstance(part, LabelColumn) for part in parts) and function not in ("low end", "high end"):
        rows = zip(*(part.values for part in parts if isinstance(part, LabelColumn)), strict=True)
        if function == "coalesce":
            return LabelColumn(tuple(next((v for v in row if v is not None), None) for row in rows))
        return LabelColumn(tuple(apply(function, row, term.position) for row in rows))
    if function in _COMPARED:
        return _compare(function, as_number(parts[0], term), as_number(parts[1], term))
    if function == "in":
        equal = [_compare("=", as_number(parts[0], term), as_number(part, term)) for part in parts[1:]]
        return _logical("or", equal)
    if function == "is null":
        return _null_test(parts[0])
    if function == "same":
        truths = [truth_of(part, term.position, lines) for part in parts]
        yes = np.logical_and.reduce([truth.value == YES for truth in truths])
        low = np.logical_and.reduce([truth.low == YES for truth in truths])
        high = np.logical_and.reduce([truth.high == YES for truth in truths])
        return TruthColumn(np.where(yes, YES, NO), np.where(low, YES, NO), np.where(high, YES, NO))
    if any(isinstance(part, TruthColumn) for part in parts) and function not in ("int", "int even", "real", "coalesce"):
        raise QueryError(f"{function.upper()} is not for such values", position=term.position)
    if function not in _NUMBERS:
        raise QueryError(f"{function.upper()} is not for numbers with an error", position=term.position)
    numbers = [as_number(part, term) for part in parts]
    try:
        made = _widened(_NUMBERS[function](numbers))
        return made if function in _OVER_NULL else replace(made, absent=_any_absent(numbers))
    except QueryError as refusal:
        raise replace(refusal, position=max(refusal.position, term.position)) from None


def _widened(number: Derived) -> Derived:
    """Ends that are none are all that is possible; and a value lies between its ends."""
    low = np.where(np.isnan(number.low), -np.inf, number.low)
    high = np.where(np.isnan(number.high), np.inf, number.high)
    return Derived(np.clip(number.value, low, high), low, high, number.sure)


def is_numeric(column: LabelColumn) -> bool:
    """Whether all labels of a column are numbers or NULL."""
    return all(value is None or (isinstance(value, int | float | Fraction)) for value in column.values)


def as_number(column: Column, term: Term | None = None) -> Derived:
    """A column as numbers; refused for text and days."""
    match column:
        case Derived():
            return column
        case TruthColumn():
            value = np.where(column.value == UNKNOWN, np.nan, (column.value == YES).astype(np.float64))
            low, high = (column.low == YES).astype(np.float64), (column.high == YES).astype(np.float64)
            return Derived(value, low, high, (column.low != UNKNOWN) & (column.high != UNKNOWN))
    if not is_numeric(column):
        raise QueryError("a number is expected here", position=-1 if term is None else term.position)
    value = np.array([np.nan if v is None else float(v) for v in column.values if not isinstance(v, str | date)])
    null = np.isnan(value)
    if not null.any():
        return Derived(value, value, value)
    return Derived(value, np.where(null, -np.inf, value), np.where(null, np.inf, value), ~null, absent=null)


def always_null(number: Derived) -> Flags:
    """Which lines are NULL wherever in the error bars the truth lies."""
    return np.zeros(len(number.value), np.bool_) if number.absent is None else number.absent


def _any_absent(parts: Sequence[Derived]) -> Flags | None:
    known = [part.absent for part in parts if part.absent is not None]
    return np.logical_or.reduce(known) if known else None


def is_null(column: Column) -> Flags:
    """Which lines are NULL, by the values that are shown."""
    match column:
        case LabelColumn():
            return np.array([value is None for value in column.values], np.bool_)
        case TruthColumn():
            return np.asarray(column.value == UNKNOWN)
    return np.isnan(column.value)


def never_null(column: Column) -> Flags:
    """Which lines are not NULL wherever in the error bars the truth lies."""
    match column:
        case LabelColumn():
            return ~is_null(column)
        case TruthColumn():
            return np.asarray((column.low != UNKNOWN) & (column.high != UNKNOWN))
    return np.ones(len(column.value), np.bool_) if column.sure is None else column.sure & ~np.isnan(column.value)


def truth_of(column: Column, position: int, lines: int) -> TruthColumn:
    """A column as a condition; refused for anything but truth values."""
    match column:
        case TruthColumn():
            return column
        case LabelColumn() if all(value is None or isinstance(value, bool) for value in column.values):
            truths = [UNKNOWN if value is None else YES if value else NO for value in column.values]
            value = np.array(truths, np.int8)
            return TruthColumn(value, value, value, exact=True)
    raise QueryError("a condition is expected here", position=position)


def _logical(function: str, parts: Sequence[TruthColumn]) -> TruthColumn:
    if function == "not":
        (part,) = parts
        return TruthColumn(2 - part.value, 2 - part.high, 2 - part.low, part.exact)
    combine: Callable[[Truths, Truths], Truths] = np.minimum if function == "and" else np.maximum
    value, low, high = parts[0].value, parts[0].low, parts[0].high
    for part in parts[1:]:
        value, low, high = combine(value, part.value), combine(low, part.low), combine(high, part.high)
    return TruthColumn(value, low, high, all(part.exact for part in parts))


_COMPARED: dict[str, Callable[[Reals, Reals], Flags]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _compare(function: str, left: Derived, right: Derived) -> TruthColumn:
    if function == "<>":
        return _logical("not", [_compare("=", left, right)])
    null = np.isnan(left.value) | np.isnan(right.value)
    value = np.where(null, UNKNOWN, np.where(_COMPARED[function](left.value, right.value), YES, NO))
    match function:
        case "=":
            never = (left.high < right.low) | (right.high < left.low)
            always = (left.low == left.high) & (right.low == right.high) & (left.low == right.low)
        case "<" | "<=":
            always, never = _COMPARED[function](left.high, right.low), ~_COMPARED[function](left.low, right.high)
        case _:
            always, never = _COMPARED[function](left.low, right.high), ~_COMPARED[function](left.high, right.low)
    sure = never_null(left) & never_null(right)
    low = np.where(always, np.where(sure, YES, UNKNOWN), NO)
    high = np.where(never, np.where(sure, NO, UNKNOWN), YES)
    absent = always_null(left) | always_null(right)
    low, high = np.where(absent, UNKNOWN, low), np.where(absent, UNKNOWN, high)
    return TruthColumn(
        value.astype(np.int8), np.minimum(low, value).astype(np.int8), np.maximum(high, value).astype(np.int8)
    )


def _null_test(column: Column) -> TruthColumn:
    value = np.where(is_null(column), YES, NO)
    if isinstance(column, LabelColumn):
        return TruthColumn(value, value, value, exact=True)
    sure = never_null(column)
    return TruthColumn(value, np.where(sure, value, NO).astype(np.int8), np.where(sure, value, YES).astype(np.int8))


def _case(term: Call, parts: Sequence[Column], lines: int) -> Column:
    """CASE: the value of the first branch that is taken; the bars of all that may be."""
    *pairs, otherwise = parts
    tests = [truth_of(test, term.position, lines) for test in pairs[::2]]
    values = [*pairs[1::2], otherwise]
    free = np.ones(lines, np.bool_)
    taken, possible = [], []
    open_still = np.ones(lines, np.bool_)
    for test in tests:
        taken.append(free & (test.value == YES))
        possible.append(open_still & (test.high == YES))
        free, open_still = free & (test.value != YES), open_still & (test.low != YES)
    taken.append(free)
    possible.append(open_still)
    columns = [value for value in values if isinstance(value, LabelColumn)]
    words = any(not is_numeric(column) for column in columns)
    if words and len(columns) < len(values):
        raise QueryError("the branches of a CASE are of one type", position=term.position)
    if words or (len(columns) == len(values) and all(test.exact for test in tests)):
        labels: list[Exact] = [None] * lines
        for column, lines_of in zip(columns, taken, strict=True):
            for line in np.flatnonzero(lines_of).tolist():
                labels[line] = column.values[line]
        return LabelColumn(tuple(labels))
    numbers = [as_number(value, term) for value in values]
    shown, low, high = (np.full(lines, end) for end in (np.nan, np.inf, -np.inf))
    sure, absent = np.ones(lines, np.bool_), np.ones(lines, np.bool_)
    for number, lines_of, may in zip(numbers, taken, possible, strict=True):
        shown = np.where(lines_of, number.value, shown)
        low, high = np.where(may, np.minimum(low, number.low), low), np.where(may, np.maximum(high, number.high), high)
        sure &= ~may | never_null(number)
        absent &= ~may | always_null(number)
    return replace(_widened(Derived(shown, low, high, sure)), absent=absent)


def _share(term: Call, table: LineTable, computed: dict[Term, Column]) -> Derived | None:
    """x / SUM(x) OVER (...), perhaps times a constant: x and the rest of the sum err apart, so ends are narrower.

    With r the rest, x / (x + r) rises in x and falls in r where both are at least 0.
    """
    above, below = term.parts
    below = below.parts[0] if isinstance(below, Call) and below.function in ("real", "nullif") else below
    if not isinstance(below, Window) or below.function != "sum" or below.order or len(below.parts) != 1:
        return None
    factor, of = _factor(above)
    if of != _factor(below.parts[0])[1] or _factor(below.parts[0])[0] != 1:
        return None
    part, whole = evaluate(of, table, computed), computed.get(below)
    if not isinstance(part, Derived) or not isinstance(whole, Derived) or np.any(part.low < 0):
        return None
    if not bool(np.all(table.certain)):
        return None
    rest_low, rest_high = np.maximum(whole.low - part.low, 0.0), np.maximum(whole.high - part.high, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(whole.value == 0, np.nan, part.value / whole.value)
        low = np.where(part.low + rest_high > 0, part.low / (part.low + rest_high), 0.0)
        high = np.where(part.high + rest_low > 0, part.high / (part.high + rest_low), 1.0)
    ends = (factor * low, factor * high) if factor >= 0 else (factor * high, factor * low)
    return _widened(Derived(factor * value, ends[0], ends[1], whole.low > 0))


def _factor(term: Term) -> tuple[float, Term]:
    """A term as a constant times another."""
    if isinstance(term, Call) and term.function == "real":
        return _factor(term.parts[0])
    if isinstance(term, Call) and term.function == "*":
        for given, other in (term.parts, term.parts[::-1]):
            number = exact(given.value) if isinstance(given, Given) else None
            if isinstance(number, int | Fraction) and not isinstance(number, bool):
                inner = _factor(other)
                return float(number) * inner[0], inner[1]
    return 1.0, term


Numbers = Sequence[Derived]


def _both(parts: Numbers) -> Flags:
    sure: Flags = np.logical_and.reduce([never_null(part) for part in parts])
    return sure


def _add(parts: Numbers) -> Derived:
    left, right = parts
    return Derived(left.value + right.value, left.low + right.low, left.high + right.high, _both(parts))


def _negative(parts: Numbers) -> Derived:
    (part,) = parts
    return Derived(-part.value, -part.high, -part.low, part.sure)


def _multiply(parts: Numbers) -> Derived:
    left, right = parts
    with np.errstate(invalid="ignore"):
        corners = np.stack([a * b for a in (left.low, left.high) for b in (right.low, right.high)])
    corners = np.where(np.isnan(corners), 0.0, corners)  # 0 times what has no end
    return Derived(left.value * right.value, corners.min(axis=0), corners.max(axis=0), _both(parts))


def _divide(parts: Numbers) -> Derived:
    """NULL where the divisor is 0; without ends where it may be."""
    left, right = parts
    across = (right.low <= 0) & (right.high >= 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(right.value == 0, np.nan, left.value / right.value)
        corners = np.stack([a / b for a in (left.low, left.high) for b in (right.low, right.high)])
    corners = np.where(np.isnan(corners), 0.0, corners)
    low, high = np.where(across, -np.inf, corners.min(axis=0)), np.where(across, np.inf, corners.max(axis=0))
    positive = across & (right.low == 0) & (left.low >= 0)
    return Derived(value, np.where(positive, 0.0, low), high, _both(parts) & ~across)


def _rising(function: Callable[[Reals], Reals], least: float = -np.inf) -> Callable[[Numbers], Derived]:
    """A function that rises; what lies below where it begins has no value."""

    def bars(parts: Numbers) -> Derived:
        part = parts[0]
        with np.errstate(all="ignore"):
            low, high = function(np.maximum(part.low, least)), function(np.maximum(part.high, least))
            value = np.where(part.value < least, np.nan, function(np.maximum(part.value, least)))
        return Derived(value, low, high, never_null(part) & (part.low >= least))

    return bars


def _absolute(parts: Numbers) -> Derived:
    (part,) = parts
    across = (part.low <= 0) & (part.high >= 0)
    ends = np.abs(part.low), np.abs(part.high)
    return Derived(np.abs(part.value), np.where(across, 0.0, np.minimum(*ends)), np.maximum(*ends), part.sure)


MOST_DECIMALS = 100
"""Most decimals that ROUND and FLOOR take, and most zeros before the point."""


def _scale(parts: Numbers) -> float:
    """Ten to the power of the decimals that are given."""
    given = set() if len(parts) < 2 else {*parts[1].value.tolist(), *parts[1].low.tolist(), *parts[1].high.tolist()}
    decimals = given.pop() if given else 0.0
    if given or not abs(decimals) <= MOST_DECIMALS:
        raise QueryError(f"a number is rounded to a constant number of decimals, at most {MOST_DECIMALS}")
    return float(10.0**decimals)


def _rounded(parts: Numbers) -> Derived:
    scale = _scale(parts)
    return _rising(lambda x: np.sign(x) * np.floor(np.abs(x) * scale + 0.5) / scale)(parts[:1])


def _floored(parts: Numbers) -> Derived:
    scale = _scale(parts)
    return _rising(lambda x: np.floor(x * scale) / scale)(parts[:1])


def _power(parts: Numbers) -> Derived:
    base, exponent = parts
    power = float(exponent.value[0]) if len(exponent.value) else 1.0
    if np.any(exponent.low != exponent.high) or power < 0:
        raise QueryError("numbers with an error are raised to constant powers from 0 on")
    if power == int(power) and int(power) % 2 == 0:
        return _rising(lambda x: np.power(x, power))([_absolute([base])])
    return _rising(lambda x: np.power(x, power), -np.inf if power == int(power) else 0.0)([base])


def _present(part: Derived) -> tuple[Reals, Reals]:
    """The ends where there may be a number, none where it is always NULL."""
    absent = always_null(part)
    return np.where(absent, np.nan, part.low), np.where(absent, np.nan, part.high)


def _greatest(most: bool) -> Callable[[Numbers], Derived]:
    def bars(parts: Numbers) -> Derived:
        pick = np.fmax if most else np.fmin
        value = parts[0].value
        present = [_present(part) for part in parts]
        ends = list(present[0])
        for part, (low, high) in zip(parts[1:], present[1:], strict=True):
            value = pick(value, part.value)
            ends = [pick(ends[0], low), pick(ends[1], high)]
        known = np.logical_and.reduce([never_null(part) | always_null(part) for part in parts])
        widest = np.fmin.reduce([low for low, _ in present]), np.fmax.reduce([high for _, high in present])
        ends = [np.where(known, *both) for both in zip(ends, widest, strict=True)]  # one that is NULL does not count
        return Derived(value, ends[0], ends[1], np.logical_or.reduce([never_null(part) for part in parts]))

    return bars


def _coalesce(parts: Numbers) -> Derived:
    value, sure = parts[0].value, never_null(parts[0])
    low, high = _present(parts[0])
    for part in parts[1:]:
        value = np.where(np.isnan(value), part.value, value)
        least, most = _present(part)
        low, high = np.where(sure, low, np.fmin(low, least)), np.where(sure, high, np.fmax(high, most))
        sure = sure | never_null(part)
    return Derived(value, low, high, sure, absent=np.logical_and.reduce([always_null(part) for part in parts]))


def _nullif(parts: Numbers) -> Derived:
    left, right = parts
    equal = _compare("=", left, right)
    value = np.where(equal.value == YES, np.nan, left.value)
    return Derived(value, left.low, left.high, never_null(left) & (equal.high != YES))


def _end(high: bool) -> Callable[[Numbers], Derived]:
    def bars(parts: Numbers) -> Derived:
        end = parts[0].high if high else parts[0].low
        return Derived(end, end, end, parts[0].sure)

    return bars


_OVER_NULL = ("coalesce", "nullif", "greatest", "least")
"""Functions that have a value although a part is NULL."""

_NUMBERS: dict[str, Callable[[Numbers], Derived]] = {
    "+": _add,
    "-": lambda parts: _add([parts[0], _negative(parts[1:])]),
    "*": _multiply,
    "/": _divide,
    "neg": _negative,
    "abs": _absolute,
    "sqrt": _rising(np.sqrt, 0.0),
    "ln": _rising(np.log, 0.0),
    "log": _rising(np.log10, 0.0),
    "exp": _rising(np.exp),
    "sign": _rising(np.sign),
    "round": _rounded,
    "floor": _floored,
    "ceil": _rising(np.ceil),
    "int": _rounded,
    "int even": _rising(np.rint),
    "real": lambda parts: parts[0],
    "power": _power,
    "greatest": _greatest(True),
    "least": _greatest(False),
    "coalesce": _coalesce,
    "nullif": _nullif,
    "low end": _end(False),
    "high end": _end(True),
}
