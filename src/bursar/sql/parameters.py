"""What a question takes from outside of its text: the values of its parameters, and the day that it is asked on.

Both are put into the syntax tree as constants before anything else looks at the question: whatever is cached, logged or
kept under a key is the question that is really asked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

from sqlglot import exp

from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql.parse import Syntax, read_syntax
from bursar.sql.spelling import spelled
from bursar.sql.syntax import Node, position

Scalar = int | float | Decimal | str | bool | date | datetime | None
"""A value of a parameter."""

Value = Scalar | list[Scalar] | tuple[Scalar, ...]
Parameters = Sequence[Value] | Mapping[str, Value]
"""Values by place, for `?` and `$1`, or by name, for `:name` and `$name`. A list or tuple stands behind IN."""

Clock = Callable[[], datetime]
"""Tells the time, with its zone."""

_MENTIONS_CLOCK = re.compile(
    r"now\b|current_|today|getdate|sysdate|localtimestamp|transaction_timestamp", re.IGNORECASE
)

_CLOCKS = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentDatetime, exp.Localtimestamp)
_CLOCK_NAMES = {"NOW", "TODAY", "GETDATE", "SYSDATE", "GET_CURRENT_TIMESTAMP", "TRANSACTION_TIMESTAMP"}


@dataclass(frozen=True)
class ResolvedQuestion:
    """A question that means the same on every day, and what an analyst must know of how it came about."""

    text: str
    remarks: tuple[str, ...] = ()


def utc_clock() -> datetime:
    """The time of this machine, in UTC."""
    return datetime.now(UTC)


def resolve_day(text: str, clock: Clock = utc_clock) -> ResolvedQuestion:
    """The question with the day in the place of NOW(), CURRENT_DATE and their like.

    Guarantees: the clock is looked at once at most. Edge cases: NOW() is taken as its day, since columns hold days and
    no times of day. A text that cannot be parsed is handed back as it is, to be refused by whoever parses it.
    """
    if not isinstance(text, str) or _MENTIONS_CLOCK.search(text) is None:
        return ResolvedQuestion(text)
    try:
        syntax = read_syntax(text)
    except Exception:  # whoever parses it says what is wrong with it
        return ResolvedQuestion(text)
    clocks = [node for node in syntax.tree.walk() if _is_clock(node)]
    if not clocks:
        return ResolvedQuestion(text)
    day = clock().date()
    timed = not all(isinstance(node, exp.CurrentDate) for node in clocks)
    remark = f"{'NOW()' if timed else 'CURRENT_DATE'} was taken as {'the beginning of ' * timed}{day.isoformat()} (UTC)"
    for node in clocks:
        node.replace(constant(day))
    return ResolvedQuestion(_written(syntax), (remark,))


def _is_clock(node: Node) -> bool:
    return isinstance(node, _CLOCKS) or (
        isinstance(node, exp.Anonymous) and node.name.upper() in _CLOCK_NAMES and not node.expressions
    )


def bind(text: str, params: Parameters | None) -> str:
    """The question with values in the place of its parameters.

    Guarantees: values go into the syntax tree as constants, so that none can be read as anything else. What is not of a
    type of `Scalar`, and one value too many or too few, is refused.
    """
    if params is None:
        return text
    try:
        syntax = read_syntax(text)
        _put(syntax.tree, params)
    except QueryError as refusal:
        raise replace(refusal, text=text if isinstance(text, str) else "") from None
    return _written(syntax)


def _put(tree: Node, params: Parameters) -> None:
    """Replace every placeholder by its value."""
    places = list(tree.find_all(exp.Placeholder, exp.Parameter))
    values = _by_placeholder(places, params)
    for node, value in zip(places, values, strict=True):
        if isinstance(node.parent, exp.Ordered | exp.Group):
            raise QueryError(
                "a parameter stands for a value; what to group or order by is written out", position=position(node)
            )
        try:
            if isinstance(value, list | tuple):
                _put_list(node, value)
            else:
                node.replace(constant(value))
        except QueryError as refusal:
            raise replace(refusal, position=position(node)) from None


def _by_placeholder(places: Sequence[Node], params: Parameters) -> list[Value]:
    """The value of every placeholder."""
    names = [str(node.name) for node in places]
    if isinstance(params, Mapping):
        if any(name.isdecimal() for name in names):
            raise QueryError("the values of ? and $1 come as a list, in their order")
        if set(names) != set(params):
            needed, given = (", ".join(sorted({f":{name}" for name in group})) or "none" for group in (names, params))
            raise QueryError(f"the question has the parameters {needed}; there are values for {given}")
        return [params[name] for name in names]
    if isinstance(params, str | bytes) or not isinstance(params, Sequence):
        raise QueryError("params is a list of values, or a dict of values by name")
    if not all(name.isdecimal() for name in names):
        raise QueryError("the values of parameters with names come as a dict, by name")
    numbers = {int(name) for name in names}
    if numbers != set(range(1, len(params) + 1)):
        raise QueryError(f"parameters in the question: {len(numbers)}; values for them: {len(params)}")
    return [params[int(name) - 1] for name in names]


def _put_list(node: Node, values: Sequence[Scalar]) -> None:
    """x IN (?), x IN ? and x = ANY(?) with several values."""
    if not values:
        raise QueryError("a list of values is not empty")
    constants = [constant(value) for value in values]
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    compared = around.parent if isinstance(around, exp.Any) else None
    if isinstance(around, exp.In) and (around.args.get("field") is not None or around.expressions == [node]):
        around.set("field", None)
        around.set("expressions", constants)
    elif isinstance(compared, exp.EQ):
        compared.replace(exp.In(this=compared.this.copy(), expressions=constants))
    else:
        raise QueryError("a list of values stands behind IN, alone")


def _written(syntax: Syntax) -> str:
    """A tree as text again, with what was cut off before it was parsed."""
    explain = "EXPLAIN" if syntax.explain else ""
    return " ".join(filter(None, [explain, spelled(syntax.tree).sql("duckdb", comments=False), syntax.clause]))


def constant(value: Scalar) -> Node:
    """A value as a constant of a syntax tree."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case float() | Decimal() if not math.isfinite(value):
            raise QueryError("a number that is compared with is finite")
        case int() | float() | Decimal():
            number = exp.Literal.number(f"{value.copy_abs():f}" if isinstance(value, Decimal) else repr(abs(value)))
            return exp.Neg(this=number) if value < 0 else number
        case datetime():
            return exp.Literal.string(value.isoformat(" "))
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), "date")
        case str():
            return exp.Literal.string(value)
    raise QueryError(
        f"a parameter is a number, text, truth value, day or None, and this one is a {type(value).__name__}"
    )
