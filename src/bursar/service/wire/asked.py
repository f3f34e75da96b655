"""What the engine is asked, and its answers as rows: types, names and order of columns as PostgreSQL clients expect."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.postgres import Postgres

from bursar.answer import Answer
from bursar.compile.stages import stage_columns
from bursar.compile.values import known_by_bin
from bursar.core.domain import IntegerRange, Value
from bursar.errors import BursarError, QueryError
from bursar.planner.goals import SessionGoal
from bursar.service.wire import types
from bursar.service.wire.failures import notice, refusal
from bursar.service.wire.protocol import Field
from bursar.service.wire.settings import SessionSettings
from bursar.service.wire.trees import Parsed
from bursar.service.wire.types import PgType, PgValue
from bursar.session import Bursar
from bursar.sql import Query, parse
from bursar.sql.query import Aggregate, CaseGroups, Function, Key, Made, Stepped, Trimmed


@dataclass(frozen=True)
class Context:
    """Who asks about what, and with which settings. The data set may be opened anew while somebody is connected."""

    asking: Callable[[], Bursar]
    database: str
    settings: SessionSettings

    @property
    def bursar(self) -> Bursar:
        """The data set as it is open now."""
        return self.asking()


@dataclass(frozen=True)
class ResultSet:
    """Rows, and what is to be said about them."""

    fields: Sequence[Field]
    rows: Sequence[Sequence[PgValue]]
    notices: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class SelectedItem:
    """One item of the select list: what it is shown as, and what the engine calls it."""

    shown: str
    inner: str
    moment: bool = False  # DATE_TRUNC, which gives a timestamp in PostgreSQL


MOST_LINES_AT_ONCE = 500
"""Of an answer that is made rows of in the event loop, while everybody waits."""

_parsed = functools.lru_cache(maxsize=256)(parse)
"""Clients send the same texts again and again."""


def field_of(name: str, kind: PgType) -> Field:
    """A column of a row description."""
    return Field(name, kind.oid, kind.size)


@dataclass(frozen=True)
class Asked:
    """A question for the engine, in its own spelling."""

    parsed: Parsed
    text: str
    selected: tuple[SelectedItem, ...]
    limit: int | None = None
    offset: int = 0

    def fields(self, context: Context) -> list[Field]:
        return [field for field, *_ in self._columns(self.query(context), context)]

    def run(self, context: Context) -> ResultSet:
        with self._refusing():
            answer = context.bursar.run(self.text, self._goal(context))
        assert isinstance(answer, Answer)  # EXPLAIN was cut off
        return self._shown(answer, context)

    def repeat(self, context: Context) -> ResultSet | None:
        """The same without any work or wait, where the answer was given before and nothing has happened since."""
        answer = context.bursar.repeated(self.text, self._goal(context))
        if answer is None or len(answer.labels) > MOST_LINES_AT_ONCE:
            return None
        return self._shown(answer, context)

    def _shown(self, answer: Answer, context: Context) -> ResultSet:
        query = self.query(context)
        columns = self._columns(query, context)
        lines = range(len(answer.values))[self.offset :]
        shown = lines if self.limit is None else lines[: self.limit]
        rows = [[read(answer, line) for _, read in columns] for line in shown]
        notices = [_paid(answer)]
        if any(_rounded(answer, query)):
            notices.append(notice("counts are rounded to whole numbers, which may add up to 0.5 to their error"))
        if len(shown) < len(answer.values):
            notices.append(notice(f"LIMIT shows {len(shown)} of {len(answer.values)} groups; all were paid for"))
        return ResultSet([field for field, _ in columns], rows, tuple(notices))

    def explain(self, context: Context) -> list[str]:
        with self._refusing():
            engine = context.bursar.engine.tables.asked(self.text, context.bursar.engine)
            explanation = engine.explain(engine.prepare(self.text, self._goal(context)))
        price = explanation.price if math.isfinite(explanation.price) else 0.0
        return [f"Question  (cost=0.000000..{price:.6f} rows=0 width=0)", *str(explanation).splitlines()]

    def _goal(self, context: Context) -> SessionGoal:
        """The accuracy that is set for the session, where the question names none."""
        goal = context.settings.goal()
        if self.parsed.says_goal:
            goal.pop("within", None)
            if self.parsed.says_confidence:
                goal.pop("confidence", None)
        return SessionGoal(**goal)

    def query(self, context: Context) -> Query:
        try:
            return _parsed(self.text)
        except QueryError:
            with self._refusing():  # joins that the config declares; or it is refused with a question that works
                return context.bursar.engine.read(self.text)[0]

    def _refusing(self) -> Refusing:
        return Refusing(self.parsed.text, self.text)

    def _columns(self, query: Query, context: Context) -> list[tuple[Field, Callable[[Answer, int], PgValue]]]:
        """The columns of the result in the order of the select list, each with how it is read off an answer."""
        if query.stages:
            return self._staged(context)
        columns: list[tuple[Field, Callable[[Answer, int], PgValue]]] = []
        keys = {key.name: (place, key) for place, key in enumerate(query.keys)}
        flags = {flag.name: place for place, flag in enumerate(query.flags, len(query.keys))}
        outputs = {item.name: (place, item) for place, item in enumerate(query.aggregates)}
        selected = self.selected
        if not selected or not all(s.inner in (*keys, *flags, *outputs) for s in selected):
            named = (*keys, *flags, *outputs)
            selected = tuple(SelectedItem(name, name) for name in named)  # a star: all that there is
        for item in selected:
            if item.inner in keys:
                place, key = keys[item.inner]
                kind = key_type(key, query, context, moment=item.moment)
                columns.append((field_of(item.shown, kind), _label(place, kind)))
            elif item.inner in flags:
                columns.append((field_of(item.shown, types.INT4), _label(flags[item.inner], types.INT4)))
            else:
                place, output = outputs[item.inner]
                count = isinstance(output, Aggregate) and output.function is Function.COUNT
                kind = types.INT8 if count else types.FLOAT8
                columns.append((field_of(item.shown, kind), _value(place, count)))
                if context.settings.bounds:
                    columns.append((field_of(f"{item.shown}_low", kind), _end(place, count, high=False)))
                    columns.append((field_of(f"{item.shown}_high", kind), _end(place, count, high=True)))
        return columns

    def _staged(self, context: Context) -> list[tuple[Field, Callable[[Answer, int], PgValue]]]:
        """The same where SELECTs stand around the one that is bought: types follow from what they make of its lines."""
        _, workload = context.bursar.engine.read(self.text)
        kinds = dict(stage_columns(workload))
        names = [item.inner for item in self.selected]
        shown = {item.inner: item.shown for item in self.selected} if set(names) == set(kinds) else {}
        columns: list[tuple[Field, Callable[[Answer, int], PgValue]]] = []
        for name in names if shown else kinds:
            kind = _TYPES.get(kinds[name], types.TEXT)
            columns.append((field_of(shown.get(name, name), kind), _named(name, kind)))
            if context.settings.bounds and kinds[name] is float:
                for suffix, high in (("low", False), ("high", True)):
                    columns.append((field_of(f"{shown.get(name, name)}_{suffix}", kind), _named_end(name, high=high)))
        return columns


_TYPES: dict[type, PgType] = {
    int: types.INT8,
    float: types.FLOAT8,
    bool: types.BOOL,
    date: types.DATE,
}


def _named(name: str, kind: PgType) -> Callable[[Answer, int], PgValue]:
    def read(answer: Answer, line: int) -> PgValue:
        if name in answer.keys:
            return label_as(answer.labels[line][answer.keys.index(name)], kind)
        return answer.values[line][answer.outputs.index(name)]

    return read


def _named_end(name: str, *, high: bool) -> Callable[[Answer, int], PgValue]:
    def read(answer: Answer, line: int) -> PgValue:
        if name not in answer.outputs:
            return None
        end = (answer.high if high else answer.low)[line][answer.outputs.index(name)]
        return end if math.isfinite(end) else None

    return read


@dataclass(frozen=True)
class Refusing:
    """Errors of the engine inside of the block are raised as those of the wire, with their place in what was sent."""

    sent: str
    text: str

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, at: object) -> None:
        if isinstance(error, BursarError):
            told = refusal(error)
            told.position = place_in(self.sent, self.text, told.position)
            raise told from None


def place_in(sent: str, text: str, position: int) -> int:
    """Where the word that stands at a place of the engine's text stands in the text that was sent; -1: nowhere."""
    if position < 0:
        return -1
    words = [(token.start, str(token.text).casefold()) for token in DuckDB().tokenize(text)]
    there = [word for start, word in words if start <= position]
    if not there:
        return -1
    same = [token.start for token in Postgres().tokenize(sent) if str(token.text).casefold() == there[-1]]
    return same[min(there.count(there[-1]), len(same)) - 1] if same else -1


def key_type(key: Key, query: Query, context: Context, *, moment: bool) -> PgType:
    """The type of a column of labels: the declared one, or text where a label can be a word such as "other"."""
    attribute = next(a for a in context.bursar.config.columns.attributes if key.column.names(a.name))
    place = query.keys.index(key)
    if any(place not in grouping for grouping in query.sets):
        return types.TEXT
    if isinstance(key.by, CaseGroups):
        kinds = {type(piece.label) for piece in key.by.pieces if piece.label is not None}
        if kinds == {bool}:
            return types.BOOL
        if kinds == {date}:
            return types.DATE
        return types.INT8 if kinds == {int} else types.FLOAT8 if kinds and kinds <= {int, Decimal} else types.TEXT
    if attribute.other is not None or isinstance(key.by, Made):
        return types.TEXT
    match key.by:
        case Trimmed(number=True):
            return types.INT4
        case Trimmed():
            return types.TIMESTAMP if moment else types.DATE
        case Stepped(width=width, times=times):
            whole = width == width.to_integral_value() and times == times.to_integral_value()
            return types.INT8 if whole and isinstance(attribute, IntegerRange) else types.FLOAT8
    return types.TEXT if known_by_bin(attribute) else types.type_of(attribute)


def _label(place: int, kind: PgType) -> Callable[[Answer, int], PgValue]:
    return lambda answer, line: label_as(answer.labels[line][place], kind)


def label_as(label: Value, kind: PgType) -> PgValue:
    """A label as a value of its column's type: in a column of text, every label is text."""
    if label is None or kind is not types.TEXT:
        return label
    return str(label)


def _value(place: int, count: bool) -> Callable[[Answer, int], PgValue]:
    def read(answer: Answer, line: int) -> PgValue:
        value = answer.values[line][place]
        return round(value) if count and value is not None else value

    return read


def _end(place: int, count: bool, *, high: bool) -> Callable[[Answer, int], PgValue]:
    """An end of an interval; of counts, the outermost whole number in it."""

    def read(answer: Answer, line: int) -> PgValue:
        end = (answer.high if high else answer.low)[line][place]
        if not count:
            return end
        if not math.isfinite(end):
            return None
        return math.floor(end) if high else math.ceil(end)

    return read


def _rounded(answer: Answer, query: Query) -> Iterator[bool]:
    if query.stages:
        return
    counts = [isinstance(item, Aggregate) and item.function is Function.COUNT for item in query.aggregates]
    for line in answer.values:
        yield any(count and v is not None and not v.is_integer() for count, v in zip(counts, line, strict=True))


def _paid(answer: Answer) -> bytes:
    """The small print of an answer."""
    lines = [" ".join(line.split()) for line in answer.footer()]
    return notice("; ".join(lines[:2]), "\n".join(lines[2:]))
