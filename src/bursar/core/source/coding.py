"""The row -> cell rule of the domain, written for DuckDB.

A raw value is first *read* as the column's kind of value, or found unreadable; then it is given its cell:

| column   | is read as                                                  | unreadable            |
|----------|-------------------------------------------------------------|-----------------------|
| text     | its text, compared character by character                   | nothing               |
| open     | its text in NFC, trimmed, no more than 200 characters       | nothing               |
| integers | a whole number, exactly, up to 127 bits                     | no number, a fraction |
| booleans | true, t or 1; false, f or 0; in any letter case             | anything else         |
| a range  | a 64-bit float, rounded *down*: 3.7 is 3, -0.5 is -1        | no number, NaN        |
| bins     | a 64-bit float                                              | no number, NaN        |
| dates    | a day; times are cut off as written, or in UTC if zoned     | no date               |

NULL takes the column's rule for NULL. A declared value takes its own cell. Any other value takes the column's rule
for values outside; clipped, it goes to the end on its side, infinities and numbers beyond 64 bits included. An
unreadable value is outside and has no side, so where values are clipped it follows the rule for NULL. An open column
keeps its texts; which cell each is in is decided when it is counted (`duckdb.py`).

Guarantees: every raw value, of whatever storage type, has exactly one cell in 0 ... size - 1; the cell depends on the
value, its storage type and the public domain, never on another row; no value raises an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bursar.core.domain import Attribute, Bins, Categories, Dates, IntegerRange, Period, Stray
from bursar.core.extensions.open_keys import OpenText
from bursar.core.extensions.open_texts import as_key
from bursar.errors import ConfigError

# Every other storage type is read through its text: some of DuckDB's rarer casts misread values or fail.
PLAIN_TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR"),
    *("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"),
)
EXACT_FLOATS = 2**53
MOST_HALVED = 128
"""Bins that are found by comparisons, one row by itself."""


@dataclass(frozen=True, kw_only=True)
class Coding:
    """How one column of raw values becomes cell numbers, in three pieces of SQL.

    With `raw` the column, `rows` a subquery that offers `reading` as r<place> and "raw IS NULL" as n<place>, and
    `keys` (if any) stored as the table keys<place>(key, cell) in their order, `cell` is the cell number.
    """

    reading: str
    cell: str
    type: str  # the smallest unsigned type that holds every cell number
    outside: str  # whether a value that can be read is none of the declared ones
    keys: tuple[str, ...] | tuple[float, ...] = ()
    key_type: str = ""
    join: str = ""


def coding(attribute: Attribute, *, place: int, raw: str, storage: str) -> Coding:
    """The coding of a column; `raw` is SQL for its raw value, `storage` the DuckDB type that it is stored in."""
    value = raw if storage.split("(")[0] in PLAIN_TYPES else as_text(raw)
    if isinstance(attribute, OpenText):
        text = f"CASE WHEN rows.n{place} THEN NULL ELSE rows.r{place} END"
        return Coding(reading=as_key(as_text(value)), cell=text, type="VARCHAR", outside="FALSE")
    read, key_cell = f"rows.r{place}", f"keys{place}.cell"
    keys: tuple[str, ...] | tuple[float, ...] = ()
    key_type = join = ""
    match attribute:
        case Categories():
            reading = _category(value, type(attribute.values[0]))
            keys, key_type = tuple(_text(v) for v in attribute.values), "VARCHAR"
            join = f"LEFT JOIN keys{place} ON {read} = keys{place}.key"
            below, above, inside = f"{key_cell} IS NULL", "FALSE", key_cell
        case IntegerRange():
            if max(abs(attribute.lower), abs(attribute.upper)) >= EXACT_FLOATS:
                raise ConfigError(f"column {attribute.name}: lower and upper must lie within 2^53; list the values")
            reading = _number(value)
            below, above = f"{read} < {attribute.lower}", f"{read} >= {attribute.upper + 1}"
            inside = f"floor({read}) - {attribute.lower}"
        case Bins():
            reading = _number(value)
            edges = [_double(edge) for edge in attribute.edges]
            below, above = f"{read} < {edges[0]}", f"{read} > {edges[-1]}"
            if attribute.declared <= MOST_HALVED:
                inside = halved(read, edges, 0, attribute.declared)
            else:  # a sort is quicker, and takes memory for all rows
                keys, key_type, inside = tuple(float(edge) for edge in attribute.edges[:-1]), "DOUBLE", key_cell
                join = f"ASOF LEFT JOIN keys{place} ON {read} >= keys{place}.key"
        case Dates():
            reading = f"TRY_CAST({value} AS DATE)"
            first, last = f"DATE '{attribute.start(0)}'", f"DATE '{attribute.start(attribute.declared - 1)}'"
            below = f"{read} < {first}"
            above = f"{read} >= CAST({last} + INTERVAL 1 {attribute.by.value} AS DATE)"
            inside = _periods(attribute, read, first)
        case _:
            raise ConfigError(f"column {attribute.name}: DuckDB has no rule for this kind of column")
    unreadable, low, high = strays(attribute)
    cell = (
        f"CASE WHEN rows.n{place} THEN {attribute.null_cell} WHEN {read} IS NULL THEN {unreadable} "
        f"WHEN {below} THEN {low} WHEN {above} THEN {high} ELSE {inside} END"
    )
    width, outside = _width(attribute.size), f"({below} OR {above})"
    return Coding(reading=reading, cell=cell, type=width, outside=outside, keys=keys, key_type=key_type, join=join)


def halved(read: str, edges: Sequence[str], low: int, high: int) -> str:
    """The number of the bin of a value that is known to be in one of low ... high - 1, by halving."""
    if high - low == 1:
        return str(low)
    middle = (low + high) // 2
    halves = (halved(read, edges, *half) for half in ((low, middle), (middle, high)))
    return "CASE WHEN {} < {} THEN {} ELSE {} END".format(read, edges[middle], *halves)


def as_text(value: str) -> str:
    """The value's text. A stored column may call different texts equal (COLLATE NOCASE); here they never are."""
    return f'(TRY_CAST({value} AS VARCHAR) COLLATE "binary")'


def strays(attribute: Attribute) -> tuple[int, int, int]:
    """The cells of an unreadable value, of one below all declared values, and of one above them."""
    if attribute.outside is Stray.CLIP:
        return attribute.null_cell, 0, attribute.declared - 1
    cell = attribute.outside if isinstance(attribute.outside, int) else attribute.other
    assert cell is not None
    return cell, cell, cell


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _category(value: str, kind: type) -> str:
    """The value's text, spelt as `_text` spells a declared one."""
    text = as_text(value)
    if kind is str:
        return text
    number = f"TRY_CAST({value} AS DOUBLE)"
    if kind is bool:
        word = f"lower({text})"
        return (
            f"CASE WHEN {word} IN ('true', 't') OR {number} = 1 THEN 'true' "
            f"WHEN {word} IN ('false', 'f') OR {number} = 0 THEN 'false' END"
        )
    # A cast to an integer rounds; comparing it with the float finds fractions.
    whole = f"TRY_CAST({value} AS HUGEINT)"
    return f"CASE WHEN CAST({whole} AS DOUBLE) = {number} THEN CAST({whole} AS VARCHAR) END"


def _number(value: str) -> str:
    return f"nullif(TRY_CAST({value} AS DOUBLE), {_double(float('nan'))})"


def _double(number: float) -> str:
    return f"CAST('{float(number)!r}' AS DOUBLE)"


def _periods(attribute: Dates, day: str, first: str) -> str:
    """How many whole periods lie between the first declared one and that of the day."""
    if attribute.by is Period.MONTH:
        return f"year({day}) * 12 + month({day}) - 1 - {attribute.ordinal(attribute.first)}"
    return f"({day} - {first}) // {7 if attribute.by is Period.WEEK else 1}"


def _width(size: int) -> str:
    return "UTINYINT" if size <= 2**8 else "USMALLINT" if size <= 2**16 else "UINTEGER"
