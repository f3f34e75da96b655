"""Several private tables: without one person, each changes by at most its own bound of that person's rows."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.config import Config, load
from bursar.core.source import duckdb as duckdb_source
from bursar.sources import source_of

WHO = st.sampled_from(["ann", "bob", "eve", None])
Row = tuple[Any, ...]
TABLES = {"people": ("person", "sex"), "visits": ("person", "ward"), "buys": ("customer", "item")}
VALUES = {"sex": ["F", "M"], "ward": ["A", "B"], "item": ["x", "y"]}

some_rows = st.fixed_dictionaries(
    {
        name: st.lists(st.tuples(WHO, st.sampled_from([*VALUES[column], "odd", None])), max_size=7)
        for name, (_, column) in TABLES.items()
    }
)
bounds = st.tuples(*(st.integers(1, 3) for _ in TABLES))
joins = st.sampled_from(["", '[tables.visits.tables.people]\ncolumns = ["sex"]\n'])


def config_of(folder: Path, most: tuple[int, ...], joined: str) -> Config:
    people, visits, buys = most
    (folder / "bursar.toml").write_text(
        f"""
dataset = "shop"
[source]
path = "shop.duckdb"
table = "people"
max_rows = 1000
[privacy]
unit = {{ column = "person" }}
max_contributions = {people}
[budget]
epsilon = 1
[columns.sex]
values = ["F", "M"]
[tables.visits]
max_contributions = {visits}
[tables.visits.columns.ward]
values = ["A", "B"]
{joined}
[tables.buys]
unit = "customer"
max_contributions = {buys}
[tables.buys.columns.item]
values = ["x", "y"]
"""
    )
    return load(folder / "bursar.toml")


def counted(rows: dict[str, list[Row]], most: tuple[int, ...], joined: str) -> list[tuple[Config, np.ndarray]]:
    """The joint counts of each private table, as its own source has them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with duckdb.connect(str(folder / "shop.duckdb")) as connection:
            for table, columns in TABLES.items():
                connection.execute(f"CREATE TABLE {table} ({', '.join(f'{column} VARCHAR' for column in columns)})")
                if rows[table]:
                    connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows[table])
        found = []
        for config in config_of(folder, most, joined).private:
            source = source_of(config)(bytes(32))
            found.append((config, source.table(config.domain.names)))
            source.close()
        return found


def without(rows: dict[str, list[Row]], who: str) -> dict[str, list[Row]]:
    return {name: [row for row in lines if row[0] != who] for name, lines in rows.items()}


def check(rows: dict[str, list[Row]], most: tuple[int, ...], joined: str, who: str) -> None:
    for (config, here), (_, there) in zip(
        counted(rows, most, joined), counted(without(rows, who), most, joined), strict=True
    ):
        gone = here - there
        assert np.all(gone >= 0), "somebody else's row came or changed"
        assert gone.sum() == min(sum(row[0] == who for row in rows[config.table]), config.unit.max_contributions), (
            config.table
        )


@pytest.mark.heavy
@settings(max_examples=6, deadline=None)
@given(rows=some_rows, most=bounds, joined=joins, who=st.sampled_from(["ann", "eve"]))
def test_a_person_is_at_most_k_rows_of_each_table(
    rows: dict[str, list[Row]], most: tuple[int, ...], joined: str, who: str
) -> None:
    check(rows, most, joined, who)


@pytest.mark.heavy
def test_a_bound_that_is_the_same_for_all_tables_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that takes the bound of another table counts rows that nobody has paid for."""
    original = duckdb_source.DuckDBSource.__init__

    def three(self: Any, location: Any, domain: Any, unit: Any, **rest: Any) -> None:
        original(self, location, domain, type(unit)(column=unit.column, max_contributions=3), **rest)

    monkeypatch.setattr(duckdb_source.DuckDBSource, "__init__", three)
    rows = {"people": [("ann", "F")], "visits": [("ann", "A")] * 3, "buys": []}
    with pytest.raises(AssertionError, match="visits"):
        check(rows, (1, 1, 1), "", "ann")
