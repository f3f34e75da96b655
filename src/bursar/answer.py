"""What an analyst gets: values with error bars, what they cost, where they came from, what is left."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from datetime import date
from typing import NotRequired, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from bursar.compile.stages import run_stages, shown_labels
from bursar.compile.workload import Labels, Numbers, Workload, read
from bursar.core.domain import Value
from bursar.estimation.derived import Derived
from bursar.estimation.estimate import Estimate, error_bars
from bursar.goal import Contract, Goal
from bursar.lazy_dataclass import dataclass
from bursar.report.answer_columns import names_of
from bursar.report.exports import Shown

Table = tuple[tuple[float, ...], ...] | Numbers
"""One inner tuple per line of the answer, one number per aggregate."""

MOST_NAMED = 5
"""Groups that a note names; the table has all of them."""

NullableTable = tuple[tuple[float | None, ...], ...] | Numbers
"""The same, with None for what is NULL: an average of no rows, where no row is possible."""


class QuestionFacts(TypedDict):
    """What an answer says about its question."""

    question: str
    goal: str
    confidence: float


class OfferFacts(TypedDict):
    """What an answer says about where it came from."""

    source: str
    note: str
    reused: int
    bought: int


class Payment(TypedDict):
    """What an answer says about its cost."""

    unit: str
    charge: float
    left: float
    total: float
    payer: NotRequired[str]
    whole_charge: NotRequired[float]
    whole_left: NotRequired[float]


class AnswerFacts(QuestionFacts, OfferFacts, Payment):
    """Everything about an answer but its lines."""

    contract: str
    charging: str


class AnswerLines(TypedDict):
    """What an answer has from its question and its numbers."""

    keys: tuple[str, ...]
    outputs: tuple[str, ...]
    labels: tuple[tuple[Value, ...], ...] | Labels
    values: NullableTable
    low: Table
    high: Table
    unsure: tuple[tuple[int, int], ...]
    remarks: tuple[str, ...]
    mixed: bool


NO_ROWS = (
    "NULL is what has no rows to be computed from, or for all that is known may have none; its low and high are the "
    "ends of what would be possible at all"
)

MOST_FINER = 100
"""An error so many times smaller, and no more, is proposed for groups of which nothing is known."""


@dataclass(frozen=True, kw_only=True)
class Answer(Shown):
    """A table of noisy numbers. Each lies within low..high, all of them together, with the stated confidence."""

    question: str
    keys: tuple[str, ...]
    outputs: tuple[str, ...]
    labels: tuple[tuple[Value, ...], ...] | Labels
    values: NullableTable
    low: Table
    high: Table
    goal: str
    confidence: float
    contract: str
    source: str  # the proposer that answered
    note: str
    reused: int  # rows of the log it was computed from
    bought: int  # rows measured for it
    unit: str  # "epsilon" or "rho"
    charge: float  # to the payer
    left: float  # of `total`
    total: float  # what the payer may spend in all
    payer: str | None = None  # whose share pays; None where it is the data set's budget
    whole_charge: float | None = None  # to the data set's budget, where a share pays
    whole_left: float | None = None  # of the data set's budget, where a share pays
    remarks: tuple[str, ...] = ()  # what to know about the numbers beyond their errors
    unsure: tuple[tuple[int, int], ...] = ()  # lines and outputs, such as averages, that may be about nobody at all
    charging: str = ""  # how costs add up, where that is not by the loss of each cell
    mixed: bool = False  # whether outputs are other things than counts, so that no one error is for all of them

    @staticmethod
    def of(workload: Workload, estimate: Estimate, *, accuracy: Goal, **facts: Unpack[AnswerFacts]) -> Answer:
        """The answer to a workload: labels, values and error bars that hold together with the goal's confidence."""
        values, widths = estimate.values, error_bars(estimate.law, accuracy)
        numbers = workload.derive(values, values - widths, values + widths, estimate.law, accuracy.beta)
        return Answer(**lines_of(workload, numbers, accuracy.confidence), **facts)

    @property
    def value(self) -> float | None:
        """The one number of an answer that has only one; None where it is NULL."""
        if len(self.values) != 1 or len(self.outputs) != 1:
            raise ValueError("this answer has more than one number; look at .rows")
        return self.values[0][0]

    @property
    def free(self) -> bool:
        """Whether it used up nothing: no share, and not the data set's budget."""
        return self.charge == 0 and self.whole_charge in (None, 0)

    @property
    def error(self) -> float:
        """The widest error bar, to nine digits: its ends are rounded beside values of any size."""
        return max(self.errors, default=0.0)

    @property
    def errors(self) -> tuple[float, ...]:
        """The widest error bar of each output, to nine digits; of what is NULL, half of all that is possible."""
        return _widest(self._spans())

    @property
    def sure_errors(self) -> tuple[float, ...]:
        """The same of the lines alone that there are certainly rows in; 0 for an output that no line is sure of.

        What is NULL on any data, as LAG is on the first line, has no end, and no error.
        """
        spans = self._spans()
        spans[np.isnan(np.asarray(self.values, np.float64).reshape(spans.shape)) & np.isinf(spans)] = 0.0
        for line, output in self.unsure:
            spans[line, output] = 0.0
        return _widest(spans)

    def _spans(self) -> NDArray[np.float64]:
        values = np.asarray(self.values, np.float64)
        spans = np.maximum(np.subtract(self.high, values), np.subtract(values, self.low))
        spans = np.where(np.isnan(values), np.subtract(self.high, self.low) / 2, spans)
        return np.nan_to_num(spans.reshape(len(self.values), len(self.outputs)), posinf=math.inf)

    @property
    def rows(self) -> list[dict[str, Value]]:
        """One dictionary per line: the group columns, and per aggregate its value, low and high."""
        names = names_of(self.keys, self.outputs)
        lines: list[dict[str, Value]] = []
        for label, *numbers in zip(self.labels, self.values, self.low, self.high, strict=True):
            flat = [number for three in zip(*numbers, strict=True) for number in three]
            lines.append(dict(zip(names, [*label, *flat], strict=True)))
        return lines

    def facts(self) -> dict[str, object]:
        """Everything about the answer but its numbers, as plain JSON values."""
        table = ("keys", "labels", "values", "low", "high", "unsure")
        about = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in table}
        return {**about, "outputs": list(self.outputs), "error": self.error, "free": self.free}

    def to_json(self) -> dict[str, object]:
        """Everything as plain JSON values."""
        rows = [{name: _plain(value) for name, value in row.items()} for row in self.rows]
        return {**self.facts(), "error": _plain(self.error), "rows": rows}

    def to_bytes(self) -> bytes:
        """The stored form; `from_bytes` gives an equal answer."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return json.dumps(plain, default=_tag, sort_keys=True).encode()

    @staticmethod
    def from_bytes(body: bytes) -> Answer:
        """The answer that `to_bytes` has stored."""
        stored = json.loads(body, object_hook=_untag)
        for name, value in stored.items():
            stored[name] = _tuples(value)
        return Answer(**stored)

    def __str__(self) -> str:
        return "\n".join([self.table(), "", *self.footer()])

    def table(self) -> str:
        """Labels and numbers with their error bars, without the small print."""
        head, lines = [*self.keys, *self.outputs], self.cells()
        widths = [max(len(row[i]) for row in [head, *lines]) for i in range(len(head))]
        left = len(self.keys)
        shown = [
            "  ".join(t.ljust(w) if i < left else t.rjust(w) for i, (t, w) in enumerate(zip(row, widths, strict=True)))
            for row in [head, *lines]
        ]
        return "\n".join([shown[0], "-" * len(shown[0]), *shown[1:]])

    def cells(self) -> list[list[str]]:
        """The lines as people read them: group values, then each number with its error, as exactly in every line."""
        ends = list(zip(self.values, self.low, self.high, strict=True))
        digits = [
            max((_digits(value[place], low[place], high[place]) for value, low, high in ends), default=0)
            for place in self._places()
        ]
        return [[*map(_text, label), *map(_bar, *line, digits)] for label, line in zip(self.labels, ends, strict=True)]

    def _places(self) -> range:
        return range(len(self.outputs))

    def footer(self) -> list[str]:
        """The small print, in plain words."""
        sure = f"{100 * self.confidence:g}%"
        together = "on every number together"
        if self.contract == Contract.SIMULTANEOUS.value:
            together = "on every number, of this and all answers of the family together"
        where = " where there is certainly somebody," if self.unsure else ""
        error = f"{self._within()} or less{where} {together}, with {sure} confidence ({self.contract})"
        if self.source == "synthetic" and math.isinf(self.error):
            error = "no error bound: nothing that was measured says how far these numbers are from the truth"
        if not self.outputs:
            error = "none: these are declared values, whether or not anybody has them"
            if self.bought or self.reused:
                error = "these are declared values; which of them are shown was chosen by noisy numbers"
        if self.unsure and not any(self._sure_lines()):
            error = f"next to nothing is known: there may be nobody to answer about, with {sure} confidence"
        cost = f"free{self._why_free()}" if self.free else f"{self.unit} {self.charge:.6g}"
        return [
            f"error  {error}",
            f"cost   {cost}; {self.money_left()}",
            *([f"charge {self.charging}"] if self.charging else []),
            f"from   {self.source}: {self.note}",
            *(f"note   {remark}" for remark in (*self._unknown(), *self.remarks)),
        ]

    def _within(self) -> str:
        """The widest error, or that of each output where they are different things; of lines that have somebody."""
        errors = self.sure_errors
        if not self.mixed or len(self.outputs) == 1:
            return _plus_minus(max(errors, default=0.0))
        told = zip(self.outputs, errors, self._sure_lines(), strict=True)
        return ", ".join(
            f"{_plus_minus(error)} ({name})" if lines else f"unknown ({name})" for name, error, lines in told
        )

    def _sure_lines(self) -> list[int]:
        """How many lines each output certainly has somebody to be about in."""
        unsure = Counter(output for _, output in self.unsure)
        return [len(self.values) - unsure[output] for output in self._places()]

    def _unknown(self) -> list[str]:
        """What is unknown, apart: an average has a value only where there is somebody."""
        told: dict[str, list[str]] = {}
        for output, name in enumerate(self.outputs):
            lines = [line for line, place in self.unsure if place == output]
            if lines and self.keys:
                names = [" ".join(map(_text, self.labels[line])) for line in lines[:MOST_NAMED]]
                more = f" and {len(lines) - MOST_NAMED} more" if len(lines) > MOST_NAMED else ""
                groups = f"{len(lines)} of {len(self.values)} groups ({', '.join(names)}{more})"
                told.setdefault(groups, []).append(name)
        return [
            f"there may be nobody in {groups}: next to nothing is known about {', '.join(names)} there"
            for groups, names in told.items()
        ]

    def _why_free(self) -> str:
        """Why nothing was charged: it was paid for before, or more is known about other people anyway."""
        if self.bought:
            return " (more was learnt about other people before, and the most of anyone is what counts)"
        return " (it was bought before)" if self.reused else ""

    def money_left(self) -> str:
        """What is left, in words."""
        left = f"{self.left:.6g} of {self.total:.6g} is left"
        if self.payer is None:
            return left
        return f"{left} to {self.payer} (data set: {self.whole_charge:.6g}, {self.whole_left:.6g} is left)"


def lines_of(workload: Workload, numbers: Sequence[Derived], confidence: float) -> AnswerLines:
    """What an answer has from its question and its numbers: the lines that the question wants shown, in its order."""
    if isinstance(workload.labels, Labels):
        return _implicit(workload, workload.labels, numbers)
    if workload.stages:
        return _staged(workload, numbers)
    lines, remarks = np.arange(len(workload.labels)), workload.remarks
    if workload.after is not None:
        picked = workload.after.pick(numbers, len(lines), confidence)
        lines, remarks = picked.lines, (*remarks, *(claim.words for claim in picked.claims))
    values = [_known(output)[lines] for output in numbers]
    if any(np.isnan(column).any() for column in values):
        remarks = (*remarks, NO_ROWS, *_finer(numbers, lines))
    doubted = [np.flatnonzero(~output.sure[lines]) if output.sure is not None else () for output in numbers]
    return {
        "keys": workload.keys,
        "outputs": workload.outputs,
        "labels": tuple(workload.labels[line] for line in lines.tolist()),
        "unsure": tuple((int(line), output) for output, some in enumerate(doubted) for line in some),
        "remarks": remarks,
        "mixed": workload.mixed,
        "values": _by_line(values, len(lines)),
        "low": _ends_by_line([output.low[lines] for output in numbers], len(lines)),
        "high": _ends_by_line([output.high[lines] for output in numbers], len(lines)),
    }


def _staged(workload: Workload, numbers: Sequence[Derived]) -> AnswerLines:
    """The lines that SELECTs around the one that was bought leave: what is exact first, then numbers with errors."""
    table = run_stages(workload, numbers)
    named = table.columns.items()
    labels = {name: column for name, column in named if not isinstance(column, Derived)}
    outputs = {name: column for name, column in named if isinstance(column, Derived)}
    shown = np.flatnonzero(table.shown)
    numbers = list(outputs.values())
    lines: AnswerLines = {
        "keys": tuple(labels),
        "outputs": tuple(outputs),
        "labels": tuple(zip(*(shown_labels(column, shown) for column in labels.values()), strict=True))
        if labels
        else ((),) * len(shown),
        "unsure": tuple(
            (line, place)
            for place, output in enumerate(numbers)
            for line in np.flatnonzero(_doubted(output)[shown]).tolist()
        ),
        "remarks": (*workload.remarks, *table.remarks),
        "mixed": True,
        "values": _by_line([np.clip(_known(o), o.low, o.high)[shown] for o in numbers], len(shown)),
        "low": _ends_by_line([output.low[shown] for output in numbers], len(shown)),
        "high": _ends_by_line([output.high[shown] for output in numbers], len(shown)),
    }
    if any(np.isnan(_known(output)[shown]).any() for output in numbers):
        lines["remarks"] = (*lines["remarks"], NO_ROWS, *_finer(numbers, shown))
    return lines


def _doubted(output: Derived) -> NDArray[np.bool_]:
    """The lines that there may be nobody for it to be about; what is NULL on any data is no doubt."""
    certain = output.sure if output.absent is None or output.sure is None else output.sure | output.absent
    return np.zeros(len(output.value), np.bool_) if certain is None else ~certain


def _known(output: Derived) -> NDArray[np.float64]:
    """The values of an output, but NULL where nothing is known: any number would be taken for an estimate."""
    return np.where(output.unknown, np.nan, output.value)


def _finer(numbers: Sequence[Derived], lines: NDArray[np.int64]) -> list[str]:
    """Which error would be enough to know something where nothing is known; from noisy numbers, so it is a guess."""
    times = np.concatenate([np.zeros(0), *(output.finer[lines] for output in numbers if output.finer is not None)])
    unknown, near = times[times > 0], times[(times > 0) & (times <= MOST_FINER)]
    if not unknown.size:
        return []
    if not near.size:
        return ["where nothing is known there is hardly anybody, if there is anybody at all"]
    enough = f"an error about {math.ceil(near.max())} times smaller should be enough"
    if unknown.size == 1:
        return [f"{enough} for the number of which nothing is known"]
    return [f"{enough} for {len(near)} of the {len(unknown)} numbers of which nothing is known"]


def _by_line(columns: Sequence[NDArray[np.float64]], lines: int) -> tuple[tuple[float | None, ...], ...]:
    return tuple(zip(*map(_numbers, columns), strict=True)) if columns else ((),) * lines


def _ends_by_line(columns: Sequence[NDArray[np.float64]], lines: int) -> tuple[tuple[float, ...], ...]:
    return tuple(zip(*(column.tolist() for column in columns), strict=True)) if columns else ((),) * lines


def _implicit(workload: Workload, labels: Labels, numbers: Sequence[Derived]) -> AnswerLines:
    """The same where lines are made when they are looked at."""
    return {
        "keys": workload.keys,
        "outputs": workload.outputs,
        "labels": labels,
        "unsure": (),
        "remarks": workload.remarks,
        "mixed": workload.mixed,
        "values": Numbers(np.column_stack([output.value for output in numbers])),
        "low": Numbers(np.column_stack([output.low for output in numbers])),
        "high": Numbers(np.column_stack([output.high for output in numbers])),
    }


def _plus_minus(error: float) -> str:
    return f"±{error:,.0f}" if 1e4 <= error < 1e15 else f"±{error:.4g}"


def _widest(spans: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(f"{span:.9g}") for span in spans.max(axis=0, initial=0.0))


def _numbers(column: NDArray[np.float64]) -> list[float | None]:
    return [None if math.isnan(number) else number for number in column.tolist()]


def _text(value: Value) -> str:
    return "NULL" if value is None else str(value)


ROUNDING = 1e-11
"""An error of this part of a number is none: its ends were moved outwards by what computing them may have lost."""


def _digits(value: float | None, low: float, high: float) -> int:
    """How many decimals a number needs beside its error."""
    if value is None:
        return 0
    span = max(high - value, value - low)
    if value.is_integer() and high.is_integer() and low.is_integer():
        return 0
    if span <= ROUNDING * abs(value):  # as many as it has, up to four that count
        most = max(4, 3 - math.floor(math.log10(abs(value))))
        return max(1, len(f"{value:.{most}f}".rstrip("0").partition(".")[2]))
    return max(1, 1 - math.floor(math.log10(span))) if 0 < span < 1 else 1


def _bar(value: float | None, low: float, high: float, digits: int) -> str:
    """A number with its error, or with both ends where they are not equally far; NULL with them where it has some."""
    if value is None:
        return f"NULL ({low:,.6g} to {high:,.6g})" if math.isfinite(low) and math.isfinite(high) else "NULL"
    span = max(high - value, value - low)
    uneven = abs((high - value) - (value - low)) > 1e-6 * span and span > ROUNDING * abs(value)
    if not math.isfinite(span) or uneven:
        return f"{value:z,.{digits}f} ({low:z,.{digits}f} to {high:z,.{digits}f})"
    return f"{value:z,.{digits}f} ± {high - value:z,.{digits}f}"


def _plain(value: Value) -> Value:
    """A value that any reader of JSON understands: an end that is nowhere is null."""
    if isinstance(value, date):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _tag(value: object) -> dict[str, object]:
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, Labels | Numbers):
        return value.facts()
    raise TypeError(f"an answer cannot hold a {type(value).__name__}")


def _untag(plain: dict[str, object]) -> object:
    if plain.keys() == {"date"}:
        return date.fromisoformat(str(plain["date"]))
    lazy = read(plain)
    return plain if lazy is None else lazy


def _tuples(value: object) -> object:
    if not isinstance(value, list):
        return value
    if all(type(row) is list for row in value) and list not in {type(item) for row in value for item in row}:
        return tuple(map(tuple, value))  # a table: much faster than number by number
    return tuple(map(_tuples, value))
