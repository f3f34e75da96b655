"""Synthetic rows as they are handed over: with a report, as a data frame, as a CSV or Parquet file."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bursar.arrays import Codes
from bursar.core.domain import Domain
from bursar.report import files
from bursar.report.answer_columns import AnswerColumn, arrow_types, library, typed
from bursar.synthetic.report import Report

if TYPE_CHECKING:
    import pandas

KINDS = (".csv", ".parquet")
BATCH_ROWS = 2**16
"""Rows that are written at once: memory does not grow with the file."""


def check_file(path: Path) -> None:
    """Refuse a file that could not be written, before anything is paid for."""
    files.check(path, kinds=KINDS)


def write_rows(domain: Domain, codes: Codes, path: Path) -> None:
    """The rows with the labels of their cells: values, ranges, dates, "other", and NULL as an empty field."""
    check_file(path)
    with files.written(path):
        (_write_parquet if path.suffix.lower() == ".parquet" else _write_csv)(labels_of(domain), codes, path)


def labels_of(domain: Domain) -> list[AnswerColumn]:
    """For every column what each of its cells stands for; labels of several types are text as a whole."""
    return [typed(column.name, [column.label(cell) for cell in range(column.size)]) for column in domain.attributes]


def read_rows(columns: Domain, text: str) -> tuple[Domain, Codes]:
    """The rows of a CSV file that `write_rows` has written, and the columns that they are of, among these.

    Edge cases: a value that is written like another one of its column, such as an empty text beside NULL, is read as
    the first of them.
    """
    names, *rows = csv.reader(text.splitlines())
    domain = Domain(tuple(columns[name] for name in names))
    cells = [{_text(value): cell for cell, value in reversed([*enumerate(each.values)])} for each in labels_of(domain)]
    codes = [[of[value] for value in column] for of, column in zip(cells, zip(*rows, strict=True), strict=True)]
    return domain, np.array(codes, np.int32).T


def _write_csv(columns: list[AnswerColumn], codes: Codes, path: Path) -> None:
    texts = [np.array([_text(value) for value in column.values], dtype=object) for column in columns]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([column.name for column in columns])
        for first in range(0, len(codes), BATCH_ROWS):
            part = codes[first : first + BATCH_ROWS]
            writer.writerows(zip(*(text[part[:, place]].tolist() for place, text in enumerate(texts)), strict=True))


def _write_parquet(columns: list[AnswerColumn], codes: Codes, path: Path) -> None:
    pa = library("pyarrow", extra="arrow", what="a Parquet file")
    parquet = library("pyarrow.parquet", extra="arrow", what="a Parquet file")
    kinds = arrow_types()
    schema = pa.schema([(column.name, kinds[column.kind]) for column in columns])
    values = [pa.array(column.values, type=kinds[column.kind]) for column in columns]
    with parquet.ParquetWriter(path, schema) as writer:
        for first in range(0, len(codes), BATCH_ROWS):
            part = codes[first : first + BATCH_ROWS]
            batch = [labels.take(pa.array(part[:, place])) for place, labels in enumerate(values)]
            writer.write_table(pa.table(batch, schema=schema))


def _text(value: object) -> str:
    return "" if value is None else str(value)


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticData:
    """Rows that are made up, and a report on how far to believe them."""

    domain: Domain
    codes: Codes  # the cell of every row in every column
    report: Report
    charge: float  # what this run has added to what is spent

    def __len__(self) -> int:
        return len(self.codes)

    def __str__(self) -> str:
        return self.report.summary()

    def write(self, path: str | Path) -> None:
        """The rows as a CSV or Parquet file, by the ending of the name."""
        write_rows(self.domain, self.codes, Path(path))

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas data frame."""
        pd = library("pandas", extra="pandas", what="a pandas data frame")
        labels = labels_of(self.domain)
        return pd.DataFrame(
            {column.name: pd.Series(column.values).take(self.codes[:, at]).array for at, column in enumerate(labels)}
        )
