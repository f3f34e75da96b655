"""Answers as data frames: pandas, polars, Arrow. What the answer says about itself comes along where there is room."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from bursar.report.columns import Column, Kind, Tabular, columns_of
from bursar.report.libraries import library

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


def to_pandas(answer: Tabular) -> pandas.DataFrame:
    """A pandas data frame; `frame.attrs` has goal, confidence, cost and source."""
    pd = library("pandas", extra="pandas", what="a pandas data frame")
    frame = pd.DataFrame({column.name: _pandas_series(pd, column) for column in columns_of(answer)})
    frame.attrs = answer.facts()
    return frame


def _pandas_series(pd: Any, column: Column) -> Any:
    if column.kind is Kind.DATE:
        return pd.Series(np.array(column.values, dtype="datetime64[D]").astype("datetime64[s]"))
    plain = {Kind.NUMBER: "float64", Kind.INTEGER: "int64", Kind.BOOLEAN: "bool"}
    nullable = {Kind.NUMBER: "float64", Kind.INTEGER: "Int64", Kind.BOOLEAN: "boolean"}
    return pd.Series(column.values, dtype=(nullable if column.has_null else plain).get(column.kind))


def to_polars(answer: Tabular) -> polars.DataFrame:
    """A polars data frame."""
    pl = library("polars", extra="polars", what="a polars data frame")
    kinds = {
        Kind.TEXT: pl.String,
        Kind.INTEGER: pl.Int64,
        Kind.NUMBER: pl.Float64,
        Kind.BOOLEAN: pl.Boolean,
        Kind.DATE: pl.Date,
    }
    columns = columns_of(answer)
    data = {column.name: list(column.values) for column in columns}
    return pl.DataFrame(data, schema={column.name: kinds[column.kind] for column in columns})


def to_arrow(answer: Tabular) -> pyarrow.Table:
    """An Arrow table; the metadata of its schema has goal, confidence, cost and source as JSON under `bursar`."""
    pa = library("pyarrow", extra="arrow", what="an Arrow table")
    kinds = {
        Kind.TEXT: pa.string(),
        Kind.INTEGER: pa.int64(),
        Kind.NUMBER: pa.float64(),
        Kind.BOOLEAN: pa.bool_(),
        Kind.DATE: pa.date32(),
    }
    columns = columns_of(answer)
    schema = pa.schema(
        [(column.name, kinds[column.kind]) for column in columns], metadata={"bursar": json.dumps(answer.facts())}
    )
    return pa.table([pa.array(c.values, type=kinds[c.kind]) for c in columns], schema=schema)
