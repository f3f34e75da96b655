"""What a question answers without noise, and what DuckDB answers to the same text over the public view of the rows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from bursar.answer import lines_of
from bursar.compile import Workload, compile
from bursar.compile.values import Decimals
from bursar.core.domain import Attribute, Bins, Categories, Dates, Domain, IntegerRange, Period, Stray
from bursar.sql import parse

PEOPLE = Domain(
    (
        IntegerRange(name="age", lower=16, upper=40),
        IntegerRange(name="hours", lower=0, upper=12),
        Bins(name="income", edges=(0.0, 10.0, 20.0, 50.0)),
        Categories(name="sex", values=("F", "M")),
        Categories(name="region", values=("Lakeside", "Westmoor", "Zürich-ß", "it's")),
        Categories(name="member", values=(True, False), outside=1, null=1),
        Categories(name="code", values=(1, 2, 7), outside=0),
        Dates(name="joined", first=date(2022, 11, 20), last=date(2023, 2, 10), by=Period.DAY),
        Dates(name="born", first=date(1990, 1, 1), last=date(1991, 12, 31), by=Period.MONTH),
    )
)

TYPES = {IntegerRange: "BIGINT", Bins: "DOUBLE", Decimals: "DECIMAL(12, 6)", Dates: "DATE"}


def sparse_cells(domain: Domain, generator: random.Random, number: int) -> list[tuple[int, ...]]:
    """Rows as cells; few of them, so that many groups are empty."""
    used = [generator.sample(range(a.size), min(a.size, 6)) for a in domain.attributes]
    return [tuple(generator.choice(cells) for cells in used) for _ in range(number)]


def dense_cells(domain: Domain, generator: random.Random, number: int) -> list[tuple[int, ...]]:
    """Rows as cells: every cell of a column is used, and some far more often than others, so that few counts tie."""
    weights = [[1 + 9 * generator.random() for _ in range(a.size)] for a in domain.attributes]
    columns = [
        generator.choices(range(a.size), weight, k=number) for a, weight in zip(domain.attributes, weights, strict=True)
    ]
    return list(zip(*columns, strict=True))


def shown_value(attribute: Attribute, cell: int) -> Any:
    """What the public view has for a cell: of a bin its middle, of a month its first day."""
    if attribute.has_null and cell == attribute.null_cell:
        return None
    if cell == attribute.other:
        return "other" if attribute.null is not Stray.OTHER else None
    match attribute:
        case Decimals():
            return attribute.number(cell)
        case Bins():
            return sum(attribute.edges[cell : cell + 2]) / 2
        case Dates():
            return attribute.start(cell)
        case Categories():
            return attribute.values[cell]
    return attribute.label(cell)


class Rows:
    """Generated rows, as DuckDB and as cells see them."""

    def __init__(
        self,
        seed: int,
        number: int = 40,
        domain: Domain = PEOPLE,
        cells_of: Callable[[Domain, random.Random, int], list[tuple[int, ...]]] = sparse_cells,
    ) -> None:
        self.domain = domain
        cells = cells_of(domain, random.Random(seed), number)
        self.table = np.zeros((len(cells), len(domain.attributes)), np.int64)
        self.table[:] = cells if cells else 0
        self.connection = duckdb.connect()
        columns = []
        for place, attribute in enumerate(domain.attributes):
            listed = {str: "VARCHAR", int: "BIGINT", bool: "BOOLEAN"}
            kind = listed[type(attribute.values[0])] if isinstance(attribute, Categories) else TYPES[type(attribute)]
            self.connection.execute(f"CREATE TABLE column{place} (cell INTEGER, shown {kind})")
            shown = [(cell, shown_value(attribute, cell)) for cell in range(attribute.size)]
            self.connection.executemany(f"INSERT INTO column{place} VALUES (?, ?)", shown)
            columns.append(f'(SELECT shown FROM column{place} WHERE cell = c{place}) AS "{attribute.name}"')
        codes = pd.DataFrame(self.table, columns=[f"c{place}" for place in range(len(columns))])
        codes["place"] = range(len(codes))  # ties are decided by the order of rows
        self.connection.execute(f"CREATE TABLE people AS SELECT {', '.join(columns)} FROM codes ORDER BY place")

    def counts(self, names: tuple[str, ...]) -> np.ndarray:
        if not names:
            return np.array(len(self.table))
        counted = np.zeros(self.domain.sizes(names), np.int64)
        places = [self.domain.place(name) for name in names]
        np.add.at(counted, tuple(self.table[:, place] for place in places), 1)
        return counted

    def theirs(self, text: str) -> list[tuple[Any, ...]]:
        """DuckDB's answer, with its columns in their order."""
        return [tuple(map(plain, row)) for row in self.connection.execute(text).fetchall()]

    def columns(self, text: str) -> list[str]:
        self.connection.execute(text)
        return [column[0] for column in self.connection.description or ()]

    def ours(self, text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The answer without noise: names of columns, and lines."""
        workload = compile(parse(text), self.domain, "people")
        lines = lines_of(workload, exact_numbers(workload, self), 0.95)
        names = [*lines["keys"], *lines["outputs"]]
        both = zip(lines["labels"], lines["values"], strict=True)
        return names, [tuple(map(plain, (*label, *line))) for label, line in both]


def exact_numbers(workload: Workload, rows: Rows) -> Any:
    values = np.asarray(workload.map.apply(rows.counts), np.float64)
    return workload.derive(values, values, values)


def plain(value: Any) -> Any:
    """A value that both sides write in the same way."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, datetime):
        return value.date() if value.time() == datetime.min.time() else value
    if isinstance(value, timedelta):
        return value.days
    if isinstance(value, int | float | Decimal):
        number = float(value)
        return None if not math.isfinite(number) else round(number, 6) + 0.0
    return value


def empty(line: Sequence[Any], keys: int) -> bool:
    """Whether a line is one of nobody: its counts and sums are 0, and all else NULL."""
    return all(value is None or value == 0 for value in line[keys:])
