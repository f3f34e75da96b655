"""How many stored values each declaration changes, by how much in sum, and how many rows are in no answer: exact, for
the data owner's eyes alone.

Guarantees: values are read and put into cells by the rule that answers use (`coding`). What leaves are counts, sums and
names of columns, never noisy: nothing that serves analysts calls this.
Edge cases: rows are counted before a unit's rows are bounded; infinite numbers stand in no sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import duckdb

from bursar.compile.values import Decimals, Represented
from bursar.config.load import Config
from bursar.core.domain import Attribute, Bins, Categories, Dates, IntegerRange, Stray
from bursar.core.extensions.declared_view import open_view
from bursar.core.extensions.open_keys import OpenText
from bursar.core.source.coding import Coding, as_text, coding
from bursar.core.source.duckdb import SETTINGS
from bursar.core.source.raw import Connection, Raw, attempt, open_raw


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What becomes of the values of one column."""

    name: str
    filled: int  # values that are not NULL
    unread: int  # that are no number, day or truth
    outside: int  # that can be read, and are none of the declared ones
    rounded: int  # fractions in a column of whole numbers
    total: float | None  # the sum of the numbers as they are stored; None where there are none
    cells: Mapping[int, int]  # the numbers in `total`, by the cell that they count in


@contextmanager
def _opened(location: object, table: str | None, view: str | None) -> Iterator[tuple[Connection, Raw]]:
    """The rows of a file or a data frame, beside a database in memory that ends with the block."""
    connection = attempt(lambda: duckdb.connect(":memory:", config=SETTINGS), "DuckDB cannot be started")
    try:
        attempt(lambda: connection.execute("SET TimeZone = 'UTC'"), "DuckDB cannot be started")
        yield (
            connection,
            open_raw(connection, location, table) if view is None else open_view(connection, location, view),
        )
    finally:
        connection.close()


def effects(location: object, table: str | None, view: str | None, columns: Iterable[Attribute]) -> list[Effect]:
    """The effect of each declaration on the rows of a file or a data frame."""
    with _opened(location, table, view) as (connection, raw):
        sources = [(attribute, raw.column(attribute.name)) for attribute in columns]
        values = [as_text(stored.sql) if stored.storage == "VARCHAR" else stored.sql for _, stored in sources]
        read = ", ".join(f"{value} AS v{place}" for place, value in enumerate(values))
        load = f"CREATE TEMP TABLE stored_values AS SELECT {read or '1'} FROM {raw.relation}"
        attempt(lambda: connection.execute(load), raw.unreadable)
        counted = []
        for place, (attribute, stored) in enumerate(sources):
            code = coding(attribute, place=place, raw="v", storage=stored.storage)
            unreadable = f"the column {attribute.name} of {raw.name} cannot be read"
            counted.append(attempt(partial(_effect, connection, attribute, place, code), unreadable))
        return counted


def _effect(connection: Connection, attribute: Attribute, place: int, code: Coding) -> Effect:
    read, numeric = f"rows.r{place}", isinstance(attribute, IntegerRange | Bins)
    if code.keys:
        keys = f"SELECT unnest(CAST(? AS {code.key_type}[])) AS key, unnest(range({len(code.keys)})) AS cell"
        connection.execute(f"CREATE TEMP TABLE keys{place} AS {keys}", [list(code.keys)])
    number = f"isfinite({read})" if numeric else "FALSE"
    broken = f"NOT {code.outside} AND {read} <> floor({read})" if isinstance(attribute, IntegerRange) else "FALSE"
    which = ("TRUE", f"{read} IS NULL", f"{read} IS NOT NULL AND {code.outside}", broken, number)
    counted = ", ".join(f"CAST(coalesce(sum(n) FILTER ({each}), 0) AS BIGINT)" for each in which)
    total = f"coalesce(sum(n * {read}) FILTER ({number}), 0)" if numeric else "0"
    each = f"SELECT v{place} AS v, count(*) AS n FROM stored_values WHERE v IS NOT NULL GROUP BY ALL"
    rows = f"(SELECT {code.reading} AS r{place}, FALSE AS n{place}, n FROM ({each})) AS rows"
    lines = connection.execute(f"SELECT {code.cell}, {counted}, {total} FROM {rows} {code.join} GROUP BY 1").fetchall()
    filled, unread, outside, rounded = (sum(line[at] for line in lines) for at in range(1, 5))
    return Effect(
        name=attribute.name,
        filled=filled,
        unread=unread,
        outside=outside,
        rounded=rounded,
        total=float(sum(line[6] for line in lines)) if numeric else None,
        cells={int(line[0]): line[5] for line in lines if line[5]},
    )


SAME = 1e-9
"""Sums that differ by no more than this share of themselves differ by the rounding of floats."""


@dataclass(frozen=True, kw_only=True)
class ColumnChange:
    """One column: how many values there are, how many count as something else, and what a sum over them would be."""

    name: str
    filled: int
    unread: int
    outside: int
    rounded: int
    stored_sum: float | None  # None: the column has no numbers to add up
    declared_sum: float | None
    text: str  # all this in words; "" where nothing is changed


def changes(config: Config, data: object, names: Sequence[str] | None = None) -> tuple[ColumnChange, ...]:
    """What the declarations of these columns, or of all, do to the rows of the config's file, or of a data frame.

    Columns that joined tables bring along stand in other tables, and are not looked at.
    """
    attributes = [
        attribute
        for attribute in config.domain.attributes
        if attribute.name not in _elsewhere(config)
        and (names is None or attribute.name in names)
        and not isinstance(attribute, OpenText)  # every text is read as it is
    ]
    counted = effects(data, config.table, config.view, attributes)
    return tuple(_change(attribute, effect) for attribute, effect in zip(attributes, counted, strict=True))


def _elsewhere(config: Config) -> set[str]:
    """The columns that joined tables bring along."""
    return {name for parent in config.parents for name in (parent.has, *parent.columns)}


@dataclass(frozen=True, kw_only=True)
class RowsLeftOut:
    """How many rows there are, and how many of them no answer counts."""

    rows: int
    nobodys: int  # whose unit is NULL
    further: int  # of people who have more than max_contributions
    text: str  # all this in words; "" where every row counts


def rows_left_out(config: Config, data: object) -> RowsLeftOut | None:
    """What bounding people's rows does to those of the config's file, or of a data frame.

    None where each row stands for itself, or where the column that tells people apart stands in another table.
    """
    unit = config.unit
    if unit.column is None or unit.column in _elsewhere(config):
        return None
    with _opened(data, config.table, config.view) as (connection, raw):
        stored = raw.column(unit.column)
        person = as_text(stored.sql) if stored.storage == "VARCHAR" else stored.sql
        held = f"SELECT {person} AS person, count(*) AS held FROM {raw.relation} GROUP BY 1"
        further = "sum(greatest(held - ?, 0)) FILTER (person IS NOT NULL)"
        counts = ", ".join(("sum(held)", "sum(held) FILTER (person IS NULL)", further))
        counted = f"SELECT {counts} FROM ({held})"
        line = attempt(lambda: connection.execute(counted, [unit.max_contributions]).fetchall()[0], raw.unreadable)
    rows, nobodys, beyond = (int(number or 0) for number in line)
    most = "1 row" if unit.max_contributions == 1 else f"{unit.max_contributions:,} rows"
    told = [
        *([f"{beyond:,} beyond {most} of each {unit.column}"] if beyond else []),
        *([f"{nobodys:,} without a {unit.column}"] if nobodys else []),
    ]
    text = f"of {rows:,} rows, {rows - beyond - nobodys:,} count; left out: {', '.join(told)}" if told else ""
    return RowsLeftOut(rows=rows, nobodys=nobodys, further=beyond, text=text)


def _change(attribute: Attribute, effect: Effect) -> ColumnChange:
    declared = None if effect.total is None else _declared_sum(attribute, effect)
    return ColumnChange(
        name=effect.name,
        filled=effect.filled,
        unread=effect.unread,
        outside=effect.outside,
        rounded=effect.rounded,
        stored_sum=effect.total,
        declared_sum=declared,
        text=_text(attribute, effect, declared),
    )


def _declared_sum(attribute: Attribute, effect: Effect) -> float:
    """The sum over the declared values that the numbers count as; those that count as other or NULL have none."""
    return sum(rows * _number(attribute, cell) for cell, rows in effect.cells.items() if cell < attribute.declared)


def _number(attribute: Attribute, cell: int) -> float:
    match attribute:
        case Decimals():
            return float(attribute.number(cell))
        case Represented(representatives=numbers):
            return numbers[cell]
        case Bins(edges=edges):
            return (edges[cell] + edges[cell + 1]) / 2
        case IntegerRange(lower=lower):
            return lower + cell
    raise AssertionError(attribute)


def _text(attribute: Attribute, effect: Effect, declared: float | None) -> str:
    kind = {Dates: "days", Categories: "true or false"}.get(type(attribute), "numbers")
    lost = "NULL" if attribute.outside is Stray.CLIP else _as(attribute)
    ends = "beyond the ends" if attribute.ordered else "not listed"
    counted = [
        (effect.rounded, "rounded down to whole numbers"),
        (effect.outside, f"{ends}, counted as {_as(attribute)}"),
        (effect.unread, f"not readable as {kind}, counted as {lost}"),
    ]
    told = [f"{rows:,} {what}" for rows, what in counted if rows]
    text = f"of {effect.filled:,} values: {'; '.join(told)}" if told else ""
    before = effect.total
    if before is None or declared is None or abs(declared - before) <= SAME * max(abs(before), abs(declared)):
        return text
    share = f" ({100 * (declared - before) / abs(before):+.2g} %)" if before else ""
    return f"{f'{text}; ' if text else ''}the sum is {before:,.10g}, and {declared:,.10g} as declared{share}"


def _as(attribute: Attribute) -> str:
    match attribute.outside:
        case Stray.CLIP:
            return "the nearest end"
        case Stray():
            return "other"
        case cell:
            return str(attribute.label(cell))
