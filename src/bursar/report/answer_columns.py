"""An answer column by column, each of one type, as data frames and files want it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from enum import Enum
from itertools import chain, count
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bursar.core.domain import Value
from bursar.errors import Unsupported
from bursar.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


def library(name: str, *, extra: str, what: str) -> ModuleType:
    """The module of this name; where it is not installed, an error that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        needed = name.partition(".")[0]
        way = f"pip install {needed}, or pip install '.[{extra}]' in a checkout of Bursar"
        raise Unsupported(f"{what} needs {needed}\ntry: {way}") from None


Numbers = Sequence[tuple[float, ...]]
NullableNumbers = Sequence[tuple[float | None, ...]]

LARGEST_INTEGER = 2**63
"""Whole numbers beyond this fit into no column of a data frame, and are text there."""


class Tabular(Protocol):
    """What is read of an answer."""

    @property
    def question(self) -> str: ...

    @property
    def keys(self) -> tuple[str, ...]: ...

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the numbers."""

    @property
    def labels(self) -> Sequence[tuple[Value, ...]]:
        """The group of each line."""

    @property
    def values(self) -> NullableNumbers: ...

    @property
    def low(self) -> Numbers:
        """The lower ends of the error bars."""

    @property
    def high(self) -> Numbers:
        """The upper ends of the error bars."""

    @property
    def unsure(self) -> Sequence[tuple[int, int]]:
        """Lines and outputs, such as averages, that may be about nobody at all."""

    @property
    def confidence(self) -> float:
        """The probability with which all error bars hold."""

    @property
    def contract(self) -> str: ...

    def facts(self) -> dict[str, object]:
        """Everything about the answer but its numbers, as plain JSON values."""

    def cells(self) -> list[list[str]]:
        """The lines as people read them: group values, then each number with its error."""

    def footer(self) -> list[str]:
        """The small print."""


class ColumnKind(Enum):
    """What a column holds; NULLs may be in a column of any kind."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"


@dataclass(frozen=True, kw_only=True)
class AnswerColumn:
    """One column of an answer, of one kind."""

    name: str
    kind: ColumnKind
    values: tuple[Value, ...]

    @property
    def has_null(self) -> bool:
        """Whether a value is NULL."""
        return any(value is None for value in self.values)


def columns_of(answer: Tabular) -> list[AnswerColumn]:
    """The group columns, then for each aggregate its value, low and high.

    Guarantees: names are different. A column whose labels are of several types, such as whole numbers and "other", is
    text as a whole.
    """
    keys = [typed(name, [label[place] for label in answer.labels]) for place, name in enumerate(answer.keys)]
    numbers = [
        AnswerColumn(name=name, kind=ColumnKind.NUMBER, values=tuple(line[place] for line in table))
        for place, name in enumerate(answer.outputs)
        for table in (answer.values, answer.low, answer.high)
    ]
    columns = [*keys, *numbers]
    names = names_of(answer.keys, answer.outputs)
    return [replace(column, name=name) for name, column in zip(names, columns, strict=True)]


def names_of(keys: Sequence[str], outputs: Sequence[str]) -> list[str]:
    """The names of an answer's columns, a number behind those that are taken: a group may be called n_low beside n."""
    names = [*keys, *(output + ending for output in outputs for ending in ("", "_low", "_high"))]
    taken: set[str] = set()
    unique: list[str] = []
    for name in names:
        tried: Iterable[str] = chain([name], (f"{name}_{number}" for number in count(2)))
        unique.append(next(each for each in tried if each not in taken and (each == name or each not in names)))
        taken.add(unique[-1])
    return unique


def typed(name: str, values: Sequence[Value]) -> AnswerColumn:
    """A column of the one kind that all its values have, else of text."""
    kinds = {_kind(value) for value in values if value is not None}
    kind = kinds.pop() if len(kinds) == 1 else ColumnKind.TEXT
    shown = [str(v) if v is not None and kind is ColumnKind.TEXT else v for v in values]
    return AnswerColumn(name=name, kind=kind, values=tuple(shown))


def _kind(value: Value) -> ColumnKind:
    match value:
        case bool():
            return ColumnKind.BOOLEAN
        case int() if -LARGEST_INTEGER <= value < LARGEST_INTEGER:
            return ColumnKind.INTEGER
        case float():
            return ColumnKind.NUMBER
        case date():
            return ColumnKind.DATE
    return ColumnKind.TEXT


def to_pandas(answer: Tabular) -> pandas.DataFrame:
    """A pandas data frame; `frame.attrs` has goal, confidence, cost and source."""
    pd = library("pandas", extra="pandas", what="a pandas data frame")
    frame = pd.DataFrame({column.name: _pandas_series(pd, column) for column in columns_of(answer)})
    frame.attrs = answer.facts()
    return frame


def _pandas_series(pd: ModuleType, column: AnswerColumn) -> pandas.Series:
    if column.kind is ColumnKind.DATE:
        return pd.Series(np.array(column.values, dtype="datetime64[D]").astype("datetime64[s]"))
    plain = {ColumnKind.NUMBER: "float64", ColumnKind.INTEGER: "int64", ColumnKind.BOOLEAN: "bool"}
    nullable = {ColumnKind.NUMBER: "float64", ColumnKind.INTEGER: "Int64", ColumnKind.BOOLEAN: "boolean"}
    return pd.Series(column.values, dtype=(nullable if column.has_null else plain).get(column.kind))


def to_polars(answer: Tabular) -> polars.DataFrame:
    """A polars data frame."""
    pl = library("polars", extra="polars", what="a polars data frame")
    kinds = {
        ColumnKind.TEXT: pl.String,
        ColumnKind.INTEGER: pl.Int64,
        ColumnKind.NUMBER: pl.Float64,
        ColumnKind.BOOLEAN: pl.Boolean,
        ColumnKind.DATE: pl.Date,
    }
    columns = columns_of(answer)
    data = {column.name: list(column.values) for column in columns}
    return pl.DataFrame(data, schema={column.name: kinds[column.kind] for column in columns})


def arrow_types() -> dict[ColumnKind, pyarrow.DataType]:
    """The Arrow type of every kind of column."""
    pa = library("pyarrow", extra="arrow", what="an Arrow table")
    return {
        ColumnKind.TEXT: pa.string(),
        ColumnKind.INTEGER: pa.int64(),
        ColumnKind.NUMBER: pa.float64(),
        ColumnKind.BOOLEAN: pa.bool_(),
        ColumnKind.DATE: pa.date32(),
    }


def to_arrow(answer: Tabular) -> pyarrow.Table:
    """An Arrow table; the metadata of its schema has goal, confidence, cost and source as JSON under `bursar`."""
    pa = library("pyarrow", extra="arrow", what="an Arrow table")
    columns, kinds = columns_of(answer), arrow_types()
    schema = pa.schema(
        [(column.name, kinds[column.kind]) for column in columns], metadata={"bursar": json.dumps(answer.facts())}
    )
    return pa.table([pa.array(c.values, type=kinds[c.kind]) for c in columns], schema=schema)
