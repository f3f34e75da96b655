"""A second small table as everybody may see it, with days, numbers below 0 and bins; in DuckDB, and as counts."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import duckdb
import numpy as np

from bursar.core.domain import Bins, Categories, Dates, Domain, IntegerRange, Period

FIRST, DAYS = date(2023, 12, 20), 60
DOMAIN = Domain(
    (
        Dates(name="day", first=FIRST, last=FIRST + timedelta(days=DAYS - 1), by=Period.DAY),
        Categories(name="shop", values=("north", "south"), outside=0, null=0),
        IntegerRange(name="change", lower=-7, upper=8),
        Bins(name="minutes", edges=(0.0, 5.0, 10.0, 15.0, 30.0), null=0),
    )
)
SHOWN: dict[str, list[Any]] = {
    "day": [*(FIRST + timedelta(days=i) for i in range(DAYS)), None],
    "shop": ["north", "south"],
    "change": [*range(-7, 9), None],
    "minutes": [2.5, 7.5, 12.5, 22.5],
}
TYPES = {"day": "DATE", "shop": "VARCHAR", "change": "BIGINT", "minutes": "DOUBLE"}


def table() -> np.ndarray:
    rng = np.random.default_rng(11)
    sizes = DOMAIN.sizes(DOMAIN.names)
    return (rng.integers(1, 4, sizes) * (rng.random(sizes) < 0.06)).astype(np.int64)


COUNTS = table()


def counts(names: tuple[str, ...]) -> np.ndarray:
    gone = tuple(i for i, name in enumerate(DOMAIN.names) if name not in names)
    kept = [name for name in DOMAIN.names if name in names]
    return np.transpose(COUNTS.sum(axis=gone), [kept.index(name) for name in names])


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    """Put the table into DuckDB, row by row."""
    columns = ", ".join(f"{name} {TYPES[name]}" for name in DOMAIN.names)
    connection.execute(f"CREATE TABLE visits ({columns})")
    cells = [cell for cell in np.argwhere(COUNTS) for _ in range(COUNTS[tuple(cell)])]
    rows = [[SHOWN[name][i] for name, i in zip(DOMAIN.names, cell, strict=True)] for cell in cells]
    connection.executemany(f"INSERT INTO visits VALUES ({', '.join('?' * len(TYPES))})", rows)
