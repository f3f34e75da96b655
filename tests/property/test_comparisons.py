"""Every comparison on every kind of column, exhaustively: what is answered is right, and what is refused had to be.

A comparison is decided by the cells if all rows behind a cell agree on it; DuckDB says which rows those are. Accepted
comparisons must be decided, and hold for just those cells; refused ones must not be decided.
"""

from __future__ import annotations

import dataclasses
import itertools
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from public_view import cell_and_view, raw_values, shows_other, sql_type

from bursar.compile.conditions import regions
from bursar.compile.values import Decimals
from bursar.core.domain import Attribute, Bins, Categories, Dates, Domain, IntegerRange, Period, Stray
from bursar.errors import QueryError
from bursar.sql import parse
from bursar.sql.render import render_literal

COLUMNS: dict[str, Attribute] = {
    "text": Categories(name="x", values=("F", "it's", "ß")),
    "text with a value other": Categories(name="x", values=("F", "other")),
    "codes": Categories(name="x", values=(1, 2, 7)),
    "flag": Categories(name="x", values=(True,)),
    "integer": IntegerRange(name="x", lower=-2, upper=3),
    "decimals": Decimals(name="x", edges=(-0.75, -0.25, 0.25, 0.75, 1.25), lower=Decimal("-0.5"), step=Decimal("0.5")),
    "bins": Bins(name="x", edges=(-1.5, 0.0, 0.1, 10.0)),
    "day": Dates(name="x", first=date(2024, 1, 3), last=date(2024, 1, 5), by=Period.DAY),
    "week": Dates(name="x", first=date(2024, 1, 3), last=date(2024, 1, 24), by=Period.WEEK),
    "month": Dates(name="x", first=date(2024, 1, 3), last=date(2024, 3, 9), by=Period.MONTH),
}
CASES = [
    pytest.param(dataclasses.replace(column, outside=outside, null=null), id=f"{name}-{outside}-{null}")
    for name, column in COLUMNS.items()
    for outside in (Stray.CLIP, Stray.OTHER, 0)
    for null in (Stray.CELL, Stray.OTHER, column.declared - 1)
    if column.ordered or outside is not Stray.CLIP
]


def literals(attribute: Attribute) -> list[str]:
    match attribute:
        case Categories():
            strange: dict[type, list[Any]] = {str: ["zzz", "yyy"], int: [5, 9], bool: []}
            values = [*attribute.values, *strange[type(attribute.values[0])]]
            named = ["'other'"] * (shows_other(attribute, True) and "other" not in attribute.values)
            return [*map(render_literal, values), *named]
        case IntegerRange():
            return ["-4", "-3", "-2.5", "-2", "-1", "0.5", "3", "3.5", "4", "5"]
        case Decimals():
            return ["-7.25", "-1", "-0.5", "-0.4", "0", "0.25", "0.5", "0.75", "1", "1.1", "1.5", "12"]
        case Bins():
            return ["-7.25", "-2", "-1.5", "-1", "0", "0.05", "0.1", "9.5", "10", "10.5", "12"]
    firsts = [date(2023, 12, 31), date(2024, 1, 1), date(2024, 1, 3), date(2024, 1, 5), date(2024, 1, 7)]
    later = [date(2024, 1, 8), date(2024, 1, 28), date(2024, 1, 31), date(2024, 3, 1), date(2024, 3, 31)]
    return [f"'{day}'" for day in (*firsts, *later, date(2024, 4, 1))]


def comparisons(attribute: Attribute) -> list[str]:
    written = literals(attribute)
    order = ["<", "<=", ">", ">="] if attribute.ordered else []
    found = [f"x {op} {literal}" for op in ["=", "<>", *order] for literal in written]
    found += [f"{literal} {op} x" for op in ["=", *order] for literal in written]
    found += [f"x {no}IN ({a}, {b})" for no in ("", "NOT ") for a, b in itertools.combinations(written, 2)]
    if attribute.ordered:
        found += [f"x {no}BETWEEN {a} AND {b}" for no in ("", "NOT ") for a, b in itertools.combinations(written, 2)]
    return [*found, "x IS NULL", "x IS NOT NULL"]


def rows(attribute: Attribute, *, named: bool) -> list[tuple[int, Any]]:
    """Every kind of row, at least two behind each cell that can hold two: the cell, and what the view shows."""
    values = raw_values(attribute)
    stranger: Any = None
    match attribute:
        case Dates():
            values += [date(2024, 1, 1) + timedelta(days=n) for n in range(-50, 150)]
        case IntegerRange():
            values += [-10, *range(-6, 7), 12]
        case Decimals():
            values += [-99.0, -1.0, -0.3, 0.1, 0.6, 1.1, 12.0, 99.0]
        case Bins():
            values += [-99.0, -2.0, -0.5, 0.01, 0.07, 5.0, 12.0, 99.0]
        case Categories():
            stranger = {str: "xxx", int: 11, bool: False}[type(attribute.values[0])]
            values += [stranger, *{str: ["yyy"], int: [9], bool: []}[type(attribute.values[0])]]
    found = [cell_and_view(attribute, value, named) for value in values]
    if not named and not attribute.ordered and attribute.null is Stray.OTHER:
        assert attribute.other is not None
        found.append((attribute.other, stranger))  # NULL that is sent to `other` reads as an unlisted value too
    return found


@pytest.mark.sampled(64)
@pytest.mark.parametrize("attribute", CASES)
def test_comparisons(attribute: Attribute) -> None:
    asked = comparisons(attribute)
    with_name = [condition for condition in asked if "'other'" in condition and shows_other(attribute, True)]
    without = [condition for condition in asked if condition not in with_name]
    # A row of `other` can be read as 'other' or as what it was; only the literal 'other' settles which.
    readings = rows(attribute, named=False) + rows(attribute, named=True)
    accepted = check(attribute, without, readings) + check(attribute, with_name, rows(attribute, named=True))
    assert accepted > 0


def check(attribute: Attribute, asked: list[str], shown: list[tuple[int, Any]]) -> int:
    """How many of the conditions are accepted; each is compared with the truth of every row behind every cell."""
    if not asked:
        return 0
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE people (cell INT, x {sql_type(attribute)})")
    connection.executemany("INSERT INTO people VALUES (?, ?)", list(dict.fromkeys(shown)))
    wanted = ", ".join(f"COALESCE({condition}, FALSE)" for condition in asked)
    truths = connection.execute(f"SELECT cell, {wanted} FROM people").fetchall()
    accepted = 0
    for number, condition in enumerate(asked, 1):
        by_cell = [{row[number] for row in truths if row[0] == cell} for cell in range(attribute.size)]
        decided = all(len(found) == 1 for found in by_cell)
        try:
            found = regions(parse(f"SELECT COUNT(*) FROM people WHERE {condition}").where, Domain((attribute,)))
        except QueryError:
            # NULL that counts as a declared value reads as that value; the question is refused all the same
            assert not decided or (isinstance(attribute.null, int) and "NULL" in condition), condition
            continue
        accepted += 1
        cells = [False] * attribute.size if found is None else [True] * attribute.size
        for region in found or ():
            cells = region.cells.tolist()
        assert by_cell == [{holds} for holds in cells], condition
    return accepted
