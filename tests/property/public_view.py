"""The public view of a small table, built by hand from the rule in core/domain.py.

Clipped values are clipped, recoded ones recoded, and rows of `other` keep the value that sent them there, or read
'other'. Values inside a bin, a week or a month stay as they are, so that a condition which looked inside one would be
found out. Decimals are what they are rounded to.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import duckdb
import numpy as np

from bursar.compile.values import Decimals
from bursar.core.domain import Attribute, Bins, Categories, Dates, Domain, IntegerRange, Stray

NAMES = ("age", "Home Town", "sex")


def sql_type(attribute: Attribute) -> str:
    if isinstance(attribute, Categories):
        return {str: "VARCHAR", int: "BIGINT", bool: "BOOLEAN"}[type(attribute.values[0])]
    return {IntegerRange: "BIGINT", Bins: "DOUBLE", Decimals: "DECIMAL(9, 2)", Dates: "DATE"}[type(attribute)]


def raw_values(attribute: Attribute) -> list[Any]:
    """Values as they may stand in the data: every declared cell, both ends outside, and NULL."""
    match attribute:
        case Categories():
            strange: dict[type, list[Any]] = {str: ["zzz"], int: [5], bool: [False]}
            return [None, *attribute.values, *strange[type(attribute.values[0])]]
        case IntegerRange():
            return [None, *range(-4, 6)]
        case Decimals():
            return [None, -9.75, -0.7, -0.5, -0.26, -0.24, 0.0, 0.3, 0.5, 0.9, 1.0, 1.2, 1.3, 7.5]
        case Bins():
            return [None, -7.25, -1.5, -1.0, 0.0, 0.05, 0.1, 9.5, 10.0, 10.5]
    days = (-40, -1, 0, 1, 2, 3, 4, 6, 7, 9, 14, 25, 27, 31, 59, 80, 95)
    return [None, *(date(2024, 1, 1) + timedelta(days=n) for n in days)]


def declared_cell(attribute: Attribute, value: Any) -> int | None:
    """The declared cell of a value that is not NULL; None where it lies outside."""
    match attribute:
        case Categories():
            return attribute.values.index(value) if value in attribute.values else None
        case IntegerRange():
            cell = value - attribute.lower
        case Bins():
            edges = attribute.edges
            within = edges[0] <= value <= edges[-1]
            cell = min(sum(edge <= value for edge in edges), attribute.declared) - 1 if within else -1
        case Dates():
            cell = attribute.ordinal(value) - attribute.ordinal(attribute.first)
    return cell if 0 <= cell < attribute.declared else None


def some_value(attribute: Attribute, cell: int) -> Any:
    if isinstance(attribute, Decimals):
        return attribute.number(cell)
    return next(v for v in raw_values(attribute) if v is not None and declared_cell(attribute, v) == cell)


def shows_other(attribute: Attribute, named: bool) -> bool:
    """Whether the view reads 'other' where a listed value is not; only text that is not itself listed can."""
    return (
        named
        and isinstance(attribute, Categories)
        and set(map(type, attribute.values)) == {str}
        and (attribute.other is not None and "other" not in attribute.values)
    )


def cell_and_view(attribute: Attribute, value: Any, named: bool) -> tuple[int, Any]:
    """The cell that a raw value falls into, and what the public view shows for it."""
    inside = None if value is None else declared_cell(attribute, value)
    if inside is not None:
        return inside, attribute.number(inside) if isinstance(attribute, Decimals) else value
    rule = attribute.null if value is None else attribute.outside
    if rule is Stray.OTHER:
        assert attribute.other is not None
        return attribute.other, "other" if shows_other(attribute, named) else value
    if rule is Stray.CELL:
        return attribute.null_cell, None
    if rule is Stray.CLIP:
        rule = 0 if value < some_value(attribute, 0) else attribute.declared - 1
    assert isinstance(rule, int)
    return rule, some_value(attribute, rule)


class View:
    """All combinations of raw values, some of them several times, as DuckDB and as cells see them."""

    connection = duckdb.connect()

    def __init__(self, domain: Domain, *, named: bool, seed: int) -> None:
        self.domain = domain
        run = self.connection.execute
        self.cells: list[dict[Any, int]] = []
        for number, attribute in enumerate(domain.attributes):
            run(f"CREATE OR REPLACE TABLE column{number} (raw INT, cell INT, shown {sql_type(attribute)})")
            pairs = [cell_and_view(attribute, value, named) for value in raw_values(attribute)]
            self.connection.executemany(
                f"INSERT INTO column{number} VALUES (?, ?, ?)", [(raw, *pair) for raw, pair in enumerate(pairs)]
            )
            self.cells.append({shown: cell for cell, shown in pairs})
        shown = ", ".join(f'c{n}.shown AS "{name}", c{n}.cell AS cell{n}' for n, name in enumerate(NAMES))
        run(
            f"CREATE OR REPLACE TABLE everything AS SELECT {shown}, "
            f"hash(c0.raw, c1.raw, c2.raw, {seed}) % 4 AS often "
            "FROM column0 c0, column1 c1, column2 c2"
        )

    def answers(self, text: str, source: str) -> list[dict[str, Any]]:
        """DuckDB's answers to the text itself, by the names of the outputs."""
        names = ", ".join(f'"{name}"' for name in NAMES)
        self.connection.execute(f"CREATE OR REPLACE VIEW people AS SELECT {names} FROM {source}")
        result = self.connection.execute(text)
        outputs = [column[0] for column in result.description]
        return [dict(zip(outputs, row, strict=True)) for row in result.fetchall()]

    def column(self, typed: str) -> str:
        return next(name for name in NAMES if name.casefold() == typed.casefold())

    def counts(self, names: tuple[str, ...]) -> np.ndarray:
        """The exact table over some columns, from the cells."""
        table = np.zeros(self.domain.sizes(names), np.int64)
        columns = [f"cell{NAMES.index(name)}" for name in names]
        grouped = ", ".join([*columns, "SUM(often)"])
        by = f" GROUP BY {', '.join(columns)}" if columns else ""
        for *cells, count in self.connection.execute(f"SELECT {grouped} FROM everything{by}").fetchall():
            table[tuple(cells)] = count
        return table
