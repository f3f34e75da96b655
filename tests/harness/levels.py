"""A small table with groups of listed values, as everybody may see it; in DuckDB, and as exact counts."""

from __future__ import annotations

from itertools import product
from typing import Any

import duckdb
import numpy as np

from bursar.compile import Level
from bursar.core.domain import Categories, Domain, IntegerRange

REGION = Categories(name="region", values=("FR", "DE", "JP", "BR", "KR"))
SHOP = Categories(name="shop", values=(10, 20, 30), outside=0, null=1)
DOMAIN = Domain((REGION, SHOP, IntegerRange(name="age", lower=0, upper=3)))
LEVELS = (
    Level(
        name="continent",
        column=REGION,
        groups=(("Europe", ("FR", "DE")), ("Asia", ("JP", "KR")), ("America", ("BR",))),
    ),
    Level(name="half", column=REGION, groups=(("north", ("FR", "DE", "JP", "KR")), ("south", ("BR",)))),
    Level(name="chain", column=SHOP, groups=(("big", (10, 30)), ("small", (20,)))),
)
SHOWN: dict[str, list[Any]] = {
    "region": [*REGION.values, "other", None],
    "shop": [10, 20, 30],
    "age": [0, 1, 2, 3, None],
}


def table() -> np.ndarray:
    rng = np.random.default_rng(23)
    sizes = DOMAIN.sizes(DOMAIN.names)
    return (rng.integers(1, 5, sizes) * (rng.random(sizes) < 0.6)).astype(np.int64)


COUNTS = table()


def counts(names: tuple[str, ...]) -> np.ndarray:
    gone = tuple(i for i, name in enumerate(DOMAIN.names) if name not in names)
    kept = [name for name in DOMAIN.names if name in names]
    return np.transpose(COUNTS.sum(axis=gone), [kept.index(name) for name in names])


def connect() -> duckdb.DuckDBPyConnection:
    """DuckDB with the table in it, row by row; each level is one more column."""
    connection = duckdb.connect()
    columns = "region VARCHAR, shop BIGINT, age BIGINT, continent VARCHAR, half VARCHAR, chain VARCHAR"
    connection.execute(f"CREATE TABLE people ({columns})")
    rows = []
    for cell in product(*(range(size) for size in COUNTS.shape)):
        values = {name: SHOWN[name][i] for name, i in zip(DOMAIN.names, cell, strict=True)}
        above = [_group(level, values[level.column.name]) for level in LEVELS]
        rows += [[*values.values(), *above]] * int(COUNTS[cell])
    connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", rows)
    return connection


def _group(level: Level, value: Any) -> Any:
    return next((name for name, values in level.groups if value in values), value)
