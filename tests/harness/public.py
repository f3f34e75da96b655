"""A small table as everybody may see it: clipped, binned, with `other` and NULL; in DuckDB, and as exact counts."""

from __future__ import annotations

from itertools import product
from typing import Any

import duckdb
import numpy as np

from bursar.core.domain import Bins, Categories, Domain, IntegerRange, Stray

DOMAIN = Domain(
    (
        IntegerRange(name="age", lower=0, upper=5),
        Bins(name="income", edges=(0.0, 10.0, 20.0, 50.0)),
        Categories(name="sex", values=("F", "M")),
        Categories(name="code", values=(7, 1, 2), outside=0, null=0),
        Categories(name="town", values=("Aachen", "Aalen", "Bonn"), outside=2, null=Stray.CELL),
    )
)
SHOWN: dict[str, list[Any]] = {
    "age": [0, 1, 2, 3, 4, 5, None],
    "income": [5.0, 15.0, 35.0, None],  # the middles of the bins
    "sex": ["F", "M", "other", None],
    "code": [7, 1, 2],
    "town": ["Aachen", "Aalen", "Bonn", None],
}
TYPES = {"age": "BIGINT", "income": "DOUBLE", "sex": "VARCHAR", "code": "BIGINT", "town": "VARCHAR"}


def table() -> np.ndarray:
    """Counts of all cells: many of them 0, so that some groups are empty."""
    rng = np.random.default_rng(7)
    sizes = DOMAIN.sizes(DOMAIN.names)
    counts = rng.integers(0, 4, sizes) * (rng.random(sizes) < 0.15)
    counts[:, :, DOMAIN["sex"].size - 2] *= rng.random(counts[:, :, 0].shape) < 0.05
    return counts.astype(np.int64)


COUNTS = table()


def counts(names: tuple[str, ...]) -> np.ndarray:
    gone = tuple(i for i, name in enumerate(DOMAIN.names) if name not in names)
    kept = [name for name in DOMAIN.names if name in names]
    return np.transpose(COUNTS.sum(axis=gone), [kept.index(name) for name in names])


def connect() -> duckdb.DuckDBPyConnection:
    """DuckDB with the table in it, row by row."""
    connection = duckdb.connect()
    columns = ", ".join(f"{name} {TYPES[name]}" for name in DOMAIN.names)
    connection.execute(f"CREATE TABLE people ({columns})")
    cells = product(*(range(size) for size in COUNTS.shape))
    rows = [
        [SHOWN[name][i] for name, i in zip(DOMAIN.names, cell, strict=True)]
        for cell in cells
        for _ in range(COUNTS[cell])
    ]
    connection.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(TYPES))})", rows)
    return connection
