"""Synthetic rows as files: what the cells of the domain stand for, column by column."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.core.domain import Domain
from bursar.report import files
from bursar.report.columns import AnswerColumn, ColumnKind, library, typed

Codes = NDArray[np.integer[Any]]

KINDS = (".csv", ".parquet")
AT_ONCE = 2**16
"""Rows that are written at once: memory does not grow with the file."""


def check(path: Path) -> None:
    """Refuse a file that could not be written, before anything is paid for."""
    files.check(path, kinds=KINDS)


def write_rows(domain: Domain, codes: Codes, path: Path) -> None:
    """The rows with the labels of their cells: values, ranges, dates, "other", and NULL as an empty field."""
    check(path)
    with files.written(path):
        (_write_parquet if path.suffix.lower() == ".parquet" else _write_csv)(labels_of(domain), codes, path)


def labels_of(domain: Domain) -> list[AnswerColumn]:
    """For every column what each of its cells stands for; labels of several types are text as a whole."""
    return [typed(own.name, [own.label(cell) for cell in range(own.size)]) for own in domain.attributes]


def _write_csv(columns: list[AnswerColumn], codes: Codes, path: Path) -> None:
    texts = [np.array([_text(value) for value in column.values], dtype=object) for column in columns]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([column.name for column in columns])
        for first in range(0, len(codes), AT_ONCE):
            part = codes[first : first + AT_ONCE]
            writer.writerows(zip(*(own[part[:, place]].tolist() for place, own in enumerate(texts)), strict=True))


def _write_parquet(columns: list[AnswerColumn], codes: Codes, path: Path) -> None:
    pa = library("pyarrow", extra="arrow", what="a Parquet file")
    parquet = library("pyarrow.parquet", extra="arrow", what="a Parquet file")
    kinds = {
        ColumnKind.TEXT: pa.string(),
        ColumnKind.INTEGER: pa.int64(),
        ColumnKind.NUMBER: pa.float64(),
        ColumnKind.BOOLEAN: pa.bool_(),
        ColumnKind.DATE: pa.date32(),
    }
    schema = pa.schema([(column.name, kinds[column.kind]) for column in columns])
    values = [pa.array(column.values, type=kinds[column.kind]) for column in columns]
    with parquet.ParquetWriter(path, schema) as writer:
        for first in range(0, len(codes), AT_ONCE):
            part = codes[first : first + AT_ONCE]
            taken = [own.take(pa.array(part[:, place])) for place, own in enumerate(values)]
            writer.write_table(pa.table(taken, schema=schema))


def _text(value: object) -> str:
    return "" if value is None else str(value)
