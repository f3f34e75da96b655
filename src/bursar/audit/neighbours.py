"""Two made-up tables over the public columns of a config that differ by one privacy unit, with all its rows."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bursar.config import Config
from bursar.core.domain import Attribute, Bins, Dates, IntegerRange, Neighbours, Unit

ROWS = 30
"""Rows of others, each a unit of its own."""

MOST_OF_ONE = 20_000
"""Most rows that are made up for the unit that the tables differ by."""


@dataclass(frozen=True, kw_only=True)
class NeighbourTables:
    """The two files, and how many rows the longer one has."""

    without: Path
    including: Path
    rows: int


def person_cells(config: Config) -> list[int]:
    """Where all rows of the unit are: the last declared cell of each column."""
    return [attribute.declared - 1 for attribute in config.domain.attributes]


def rows_of_one(unit: Unit) -> int:
    """How many rows the unit has: where a unit can have several, more than count."""
    return 1 if unit.column is None else min(2 * unit.max_contributions + 1, MOST_OF_ONE)


def write_neighbours(config: Config, folder: Path) -> NeighbourTables:
    """Two CSV files; the second has one more unit, or one unit with other values."""
    attributes, unit = config.domain.attributes, config.unit
    person, many = person_cells(config), rows_of_one(unit)
    spread = [[_others(a, row * (7 + place), unit) for place, a in enumerate(attributes)] for row in range(ROWS)]
    others = [(f"other {number}", cells) for number, cells in enumerate(spread)]
    without = [("one", [0 for _ in attributes])] * many if unit.neighbours is Neighbours.REPLACE_ONE else []
    tables = NeighbourTables(without=folder / "without.csv", including=folder / "with.csv", rows=ROWS + many)
    _write(config, tables.without, [*others, *without])
    _write(config, tables.including, [*others, *[("one", person)] * many])
    return tables


def _others(attribute: Attribute, number: int, unit: Unit) -> int:
    """A cell of somebody else; a declared column that says whose a row is must not name the one unit."""
    return number % (attribute.size if attribute.name != unit.column else max(attribute.declared - 1, 1))


def _write(config: Config, path: Path, rows: list[tuple[str, list[int]]]) -> None:
    attributes, column = config.domain.attributes, config.unit.column
    apart = column is not None and column not in config.domain.names
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*config.domain.names, column if apart else "unused"])
        for name, cells in rows:
            writer.writerow([*(raw_value(a, cell) for a, cell in zip(attributes, cells, strict=True)), name])


def raw_value(attribute: Attribute, cell: int) -> object:
    """A value that falls into the given cell; empty for NULL."""
    if attribute.has_null and cell == attribute.null_cell:
        return ""
    if cell == attribute.other:
        if isinstance(attribute, IntegerRange):
            return attribute.upper + 1
        if isinstance(attribute, Bins):
            return attribute.edges[-1] + 1
        return attribute.start(attribute.declared) + timedelta(days=1) if isinstance(attribute, Dates) else "\u2205"
    if isinstance(attribute, Bins):
        return attribute.edges[cell]
    return attribute.label(cell)
