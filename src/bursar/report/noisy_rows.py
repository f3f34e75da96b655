"""The noisy numbers of the log to take away, with what was measured and the noise that is in them.

They were paid for and are free to use: whoever may see them can fit a model of their own to them. Nothing here reads
data, and nothing is charged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Measured, Noise, Refined
from bursar.core.domain import Domain, Value
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Product, Stack, Thresholds
from bursar.report.answer_columns import library
from bursar.report.files import written

if TYPE_CHECKING:
    import pyarrow

MOST_CELLS = 2**22
"""Coefficients, rows times joint cells, that are written out at once for one measurement."""

PARQUET, JSON = "measurements.parquet", "measurements.json"


@dataclass(frozen=True, kw_only=True, eq=False)
class Agreeing:
    """What RAP measures: a row counts whoever agrees with one joint cell in at least `least` of the columns."""

    cells: Integers  # a line for each row: the cell of each column
    sizes: tuple[int, ...]  # how many cells each column has
    least: int

    def coefficients(self) -> Reals:
        """1 where a joint cell counts, the last column running fastest."""
        every = np.indices(self.sizes).reshape(len(self.sizes), -1)
        agree = (self.cells[:, :, None] == every[None]).sum(axis=1)
        counts: Reals = (agree >= self.least).astype(np.float64)
        return counts


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NoisyRows:
    """Rows of one measurement with one noise: values = coefficients of the joint cells times their counts, plus noise.

    `factors` are matrices over columns, one row per condition, one column per joint cell of their columns, the last one
    running fastest; the rows that were measured are all combinations of one row of each, the last factor running
    fastest, of which `rows` are here. Where the strategy is no product of such it is empty, and `agreeing` may say what
    the rows count; where both are empty (people counted by how many rows they have, or by a value they share) only the
    digest tells strategies apart.
    """

    record: int  # the position in the log
    at: float
    analyst: str
    question: str  # the digest of the question that paid for it
    proposer: str
    version: int  # of the data
    columns: tuple[str, ...]
    strategy: str  # its digest
    factors: tuple[tuple[tuple[str, ...], Integers], ...]
    rows: Integers
    values: Integers
    noise: Noise
    agreeing: Agreeing | None = None

    def __repr__(self) -> str:
        """Short: a log may have thousands of numbers."""
        where, noise = ", ".join(self.columns) or "all rows", f"{self.noise.kind.value} noise of {self.noise.scale:.4g}"
        return f"<record {self.record}: {len(self.values):,} over {where}, {noise}>"

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise; at most this for discrete Gaussian noise."""
        return float(np.sqrt(self.noise.variance()))

    @property
    def cells(self) -> int:
        sizes = [matrix.shape[1] for _, matrix in self.factors] if self.agreeing is None else self.agreeing.sizes
        return math.prod(sizes) if sizes else 0

    def coefficients(self) -> Reals | None:
        """The matrix of the rows over the joint cells of `columns`; None where there is none, or it is too large."""
        if self.cells == 0 or self.cells * len(self.rows) > MOST_CELLS:
            return None
        if self.agreeing is not None:
            return self.agreeing.coefficients()
        matrices = [matrix.astype(np.float64) for _, matrix in self.factors]
        shape = [len(matrix) for matrix in matrices]
        picked = np.unravel_index(self.rows, shape)
        lines = [
            reduce(np.multiply.outer, (matrix[place] for matrix, place in zip(matrices, places, strict=True))).ravel()
            for places in zip(*picked, strict=True)
        ]
        return np.array(lines).reshape(len(self.rows), self.cells)

    def to_json(self) -> dict[str, object]:
        """Everything as plain values."""
        factors = [{"columns": list(names), "rows": matrix.tolist()} for names, matrix in self.factors]
        agreeing = None
        if self.agreeing is not None:
            agreeing = {"least": self.agreeing.least, "cells": self.agreeing.cells.tolist()}
        return {
            "record": self.record,
            "at": self.at,
            "analyst": self.analyst,
            "question": self.question,
            "proposer": self.proposer,
            "version": self.version,
            "columns": list(self.columns),
            "strategy": self.strategy,
            "factors": factors,
            "agreeing": agreeing,
            "rows": self.rows.tolist(),
            "values": self.values.tolist(),
            "noise": {
                "kind": self.noise.kind.value,
                "scale": self.noise.scale,
                "standard_deviation": self.deviation,
            },
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NoisyLog:
    """All measurements that the asker may see, each number at the finest noise that the asker may see of it."""

    domain: Domain
    blocks: tuple[NoisyRows, ...]

    def __len__(self) -> int:
        return len(self.blocks)

    def __repr__(self) -> str:
        """How many, and over which columns; `blocks` has them."""
        numbers = sum(len(block.values) for block in self.blocks)
        names = ", ".join(dict.fromkeys(name for block in self.blocks for name in block.columns))
        return f"<measurements: {len(self.blocks):,}, numbers: {numbers:,}, columns: {names or 'none'}>"

    def cells_of(self, column: str) -> list[Value]:
        """What the cells of a column stand for, in the order of coefficients."""
        attribute = self.domain[column]
        return [attribute.label(cell) for cell in range(attribute.size)]

    def to_json(self) -> dict[str, object]:
        """Columns with their cells, and the measurements."""
        columns = [
            {"name": name, "cells": [_plain(cell) for cell in self.cells_of(name)]} for name in self.domain.names
        ]
        return {"columns": columns, "measurements": [block.to_json() for block in self.blocks]}

    def to_arrow(self) -> pyarrow.Table:
        """One line for each number. Needs `pyarrow`."""
        arrow = library("pyarrow", extra="arrow", what="a table of measurements")
        lines = [(block, place) for block in self.blocks for place in range(len(block.values))]
        return arrow.table(
            {
                "record": [block.record for block, _ in lines],
                "row": [int(block.rows[place]) for block, place in lines],
                "columns": [list(block.columns) for block, _ in lines],
                "value": [int(block.values[place]) for block, place in lines],
                "noise": [block.noise.kind.value for block, _ in lines],
                "scale": [block.noise.scale for block, _ in lines],
                "standard_deviation": [block.deviation for block, _ in lines],
                "strategy": [block.strategy for block, _ in lines],
                "question": [block.question for block, _ in lines],
                "analyst": [block.analyst for block, _ in lines],
                "version": [block.version for block, _ in lines],
            }
        )

    def write(self, folder: str | Path) -> tuple[Path, Path]:
        """Write `measurements.parquet`, one line a number, and `measurements.json`, with what was measured."""
        parquet = library("pyarrow.parquet", extra="arrow", what="a Parquet file")
        home = Path(folder)
        with written(home):
            home.mkdir(parents=True, exist_ok=True)
            parquet.write_table(self.to_arrow(), home / PARQUET)
            (home / JSON).write_text(json.dumps(self.to_json(), indent=1), encoding="utf-8")
        return home / PARQUET, home / JSON

    def to_mbi(self) -> list[object]:
        """`mbi.LinearMeasurement`s for private-pgm; of the latest version of the data. Needs `mbi`.

        Strategies that are not over the counts of joint cells, or have too many of these to write out, are left out.
        """
        mbi = library("mbi", extra="mbi", what="a list of mbi measurements")
        latest = max((block.version for block in self.blocks), default=0)
        measurements = []
        for block in self.blocks:
            matrix = block.coefficients() if block.version == latest and block.columns else None
            if matrix is not None:
                measurements.append(_linear_measurement(mbi, block, matrix))
        return measurements

    def mbi_domain(self) -> object:
        """The columns as private-pgm knows them: numbers of cells. Needs `mbi`."""
        mbi = library("mbi", extra="mbi", what="a domain of mbi")
        return mbi.Domain(self.domain.names, self.domain.sizes(self.domain.names))


class _Factor(Protocol):
    """A table of counts, as `mbi` has it."""

    def datavector(self) -> object: ...


def _linear_measurement(mbi: ModuleType, block: NoisyRows, matrix: Reals) -> object:
    """`matrix` has its cells in the order of the factors, which is that of the clique."""
    jax = library("jax.numpy", extra="mbi", what="a list of mbi measurements")
    constant = jax.asarray(matrix)

    def query(factor: _Factor) -> object:
        return constant @ factor.datavector()

    values = block.values.astype(np.float64)
    return mbi.LinearMeasurement(values, block.columns, stddev=block.deviation, query=query)


def noisy_log(domain: Domain, records: Iterable[Record], sees: Callable[[Record], bool]) -> NoisyLog:
    """The measurements among the records that somebody sees.

    A number that was made finer is here with the noise it has now, if the record that says so may be seen; else as it
    was before, which is as true. Rows of a measurement that is not seen are here as far as their refinements are.
    """
    finest: dict[tuple[int, int], tuple[Record, LinearMap, int, int, Noise]] = {}
    for record in filter(sees, records):
        event = record.event
        match event:
            case Measured(strategy=strategy, noise=noise):
                for row, value in enumerate(record.values.tolist()):
                    finest[record.position, row] = record, strategy, record.position, value, noise
            case Refined(block=block, measured=strategy, rows=rows, after=noise):
                for row, value in zip(rows.tolist(), record.values.tolist(), strict=True):
                    finest[block, row] = record, strategy, block, value, noise
    groups: dict[tuple[int, int, Noise], list[tuple[int, int]]] = {}
    keep: dict[tuple[int, int, Noise], tuple[Record, LinearMap]] = {}
    for (_, row), (record, strategy, block, value, noise) in finest.items():
        key = block, record.position, noise
        groups.setdefault(key, []).append((row, value))
        keep[key] = record, strategy
    blocks = [part for key, pairs in groups.items() for part in _parts(*keep[key], key[2], pairs)]
    return NoisyLog(domain=domain, blocks=tuple(blocks))


def _parts(record: Record, strategy: LinearMap, noise: Noise, pairs: Sequence[tuple[int, int]]) -> list[NoisyRows]:
    """Rows and values of one measurement, by the parts of its strategy."""
    event = record.event
    assert isinstance(event, Measured | Refined)
    rows, values = (np.array(numbers, np.int64) for numbers in zip(*pairs, strict=True))
    whole = NoisyRows(
        record=record.position,
        at=record.at,
        analyst=record.analyst,
        question=record.question,
        proposer=record.proposer,
        version=event.version,
        columns=strategy.attrs,
        strategy=strategy.digest,
        factors=(),
        rows=rows,
        values=values,
        noise=noise,
    )
    parts = strategy.parts if isinstance(strategy, Stack) else (strategy,)
    blocks, start = [], 0
    for part in parts:
        here = (rows >= start) & (rows < start + part.rows)
        if here.any():
            factors = _factors(part) if isinstance(part, Product) else ()
            columns = tuple(name for names, _ in factors for name in names) if factors else part.attrs
            part_rows = rows[here] - start
            agreeing = _agreeing(part, part_rows) if isinstance(part, Thresholds) else None
            blocks.append(
                replace(whole, columns=columns, factors=factors, agreeing=agreeing, rows=part_rows, values=values[here])
            )
        start += part.rows
    return blocks


def _factors(product: Product) -> tuple[tuple[tuple[str, ...], Integers], ...]:
    """The matrices of a product's masks; nothing where one of them is too large to be written out."""
    if any(mask.steps.rows * mask.steps.size > MOST_CELLS for mask in product.masks):
        return ()
    return tuple((mask.attrs, mask.steps.at_cells(np.arange(mask.steps.size))) for mask in product.masks)


def _agreeing(thresholds: Thresholds, rows: Integers) -> Agreeing:
    """Which joint cells some rows of thresholds are about."""
    cells = rows if thresholds.chosen is None else thresholds.chosen[rows]
    places = np.stack(np.unravel_index(cells, thresholds.sizes), axis=1)
    return Agreeing(cells=places, sizes=thresholds.sizes, least=thresholds.least)


def _plain(value: Value) -> object:
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def check_export() -> None:
    """Refuse before anything is read where what is needed is not installed."""
    library("pyarrow.parquet", extra="arrow", what="a Parquet file")
