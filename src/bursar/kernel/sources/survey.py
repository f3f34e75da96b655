"""The data owner's look at the rows before there is a config: the only code that reads rows for anything but counting.

What comes out is for the owner's eyes and is *not* differentially private: it is a guess at what might be declared, and
`config.load` refuses a config as long as the owner has not confirmed that each guess is public.

Guarantees: no number, day or text leaves unless at least FEWEST rows stand behind it: a listed value occurs in so many
rows, and so many lie at or beyond either end of a range before it is rounded outwards. Identifiers and long lists of
texts are told by their names only. Errors speak of files and columns, never of rows.
Edge cases: FEWEST rows may all belong to one person; that is why the owner is asked. Of a long table a random
MOST_ROWS rows are looked at.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from fractions import Fraction
from typing import NamedTuple

import duckdb

from bursar.errors import SourceError
from bursar.kernel.sources.coding import as_text
from bursar.kernel.sources.duckdb import SETTINGS
from bursar.kernel.sources.raw import Connection, Raw, attempt, open_raw

FEWEST = 5
MOST_ROWS = 1_000_000
MOST_VALUES = 100
MOSTLY = 0.8
"""The share of a column's values that must be numbers, or dates, for it to be a column of them."""

LARGEST = 10**15
LONG_TEXT = 40


class Kind(Enum):
    """What a column seems to hold."""

    VALUES = "a few different texts"
    TRUTHS = "true and false"
    WHOLE = "whole numbers"
    NUMBERS = "numbers"
    DATES = "dates"
    IDENTIFIER = "identifiers"
    TEXT = "many different texts"
    SPARSE = "nothing that enough rows share"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One column: its name, its kind, and what that kind needs to be declared."""

    name: str
    kind: Kind
    values: tuple[str, ...] = ()  # in the order of the alphabet, which says nothing about how many have them
    low: Fraction | date | None = None  # rounded outwards
    high: Fraction | date | None = None
    repeats: int = 1  # identifiers: how many rows most of them have at most, rounded up


@dataclass(frozen=True, kw_only=True)
class Survey:
    """A public-looking number of rows, about twice the true one, and the columns in their order."""

    max_rows: int
    columns: tuple[Seen, ...]


class _Facts(NamedTuple):
    """What is counted about one column, in the order in which it is asked for; it stays in here."""

    filled: int
    distinct: int
    numbers: int
    whole: int
    dates: int
    truths: int
    padded: int  # texts of digits that begin with 0: codes, not numbers
    length: float
    low: float | None
    high: float | None
    first: date | None
    last: date | None


def survey(location: object, table: str | None = None, *, named: Callable[[str], bool]) -> Survey:
    """What the columns of a file, DuckDB table or data frame seem to be; `named`: whether a name is of identifiers."""
    connection = attempt(lambda: duckdb.connect(":memory:", config=SETTINGS), "DuckDB cannot be started")
    try:
        raw = open_raw(connection, location, table)
        if isinstance(location, str | os.PathLike) and ".csv" in os.fspath(location).lower():
            _check_header(raw)
        return attempt(lambda: _surveyed(connection, raw, named), raw.unreadable)
    finally:
        connection.close()


def rounded_up(amount: Fraction) -> Fraction:
    """The least of 1, 2, 5, 10, 20, 50, ... (or .5, .2, .1, ...) that is not below a positive amount."""
    power = Fraction(10) ** math.floor(math.log10(amount))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= amount)


def widened(low: Fraction, high: Fraction, *, whole: bool) -> tuple[Fraction, Fraction]:
    """Round ends around `low` and `high`: from 0 where that is near, else multiples of a tenth of the way between."""
    if 0 <= low <= high / 2:
        return Fraction(0), rounded_up(high) if high else Fraction(1)
    if low < 0 <= high:
        return -rounded_up(-low), rounded_up(high) if high else Fraction(0)
    step = rounded_up((high - low or abs(high)) / 10)
    step = max(step, Fraction(1)) if whole else step
    return low // step * step, (high // step + 1) * step


def _check_header(raw: Raw) -> None:
    """A first line of data would be taken for names, and names are shown."""
    names = [name for name, _ in raw.columns]
    if len(names) == 1 and re.search(r"[;\t|]", names[0]):
        raise SourceError(f"{raw.name} must have commas between its fields, and seems to have another separator")
    if any(re.fullmatch(r"\s*[-+.\d][-+.:/\d]*\s*", name) for name in names):
        raise SourceError(f"{raw.name} must begin with a line of column names, and a name there is a number")


def _surveyed(connection: Connection, raw: Raw, named: Callable[[str], bool]) -> Survey:
    connection.execute("SET TimeZone = 'UTC'")
    texts = ", ".join(f"{as_text(column.sql)} AS v{place}" for place, (_, column) in enumerate(raw.columns))
    connection.execute(
        f"CREATE TEMP TABLE seen AS SELECT {texts} FROM {raw.relation} USING SAMPLE reservoir({MOST_ROWS} ROWS)"
    )
    rows = connection.execute(f"SELECT count(*) FROM {raw.relation}").fetchone()[0]
    columns = [_seen(connection, name, f"v{place}", named(name)) for place, (name, _) in enumerate(raw.columns)]
    return Survey(max_rows=max(int(rounded_up(Fraction(2 * rows + 1))), 1000), columns=tuple(columns))


def _seen(connection: Connection, name: str, column: str, named: bool) -> Seen:
    facts = _facts(connection, column)
    match kind := _kind(named, facts):
        case Kind.WHOLE | Kind.NUMBERS:
            assert facts.low is not None
            assert facts.high is not None
            low, high = widened(Fraction(facts.low), Fraction(facts.high), whole=kind is Kind.WHOLE)
            return Seen(name=name, kind=kind, low=low, high=high)
        case Kind.DATES:
            assert facts.first is not None
            assert facts.last is not None
            return Seen(name=name, kind=kind, low=date(facts.first.year, 1, 1), high=date(facts.last.year, 12, 31))
        case Kind.VALUES:
            shared = f"SELECT {column} FROM seen GROUP BY {column} HAVING count({column}) >= {FEWEST} ORDER BY {column}"
            values = tuple(value for (value,) in connection.execute(shared).fetchall())
            return Seen(name=name, kind=kind if values else Kind.SPARSE, values=values)
        case Kind.IDENTIFIER:
            each = f"SELECT count(*) AS rows FROM seen WHERE {column} IS NOT NULL GROUP BY {column}"
            most = connection.execute(f"SELECT quantile_disc(rows, 0.95) FROM ({each})").fetchone()[0]
            return Seen(name=name, kind=kind, repeats=int(rounded_up(Fraction(most))))
    return Seen(name=name, kind=kind)


def _kind(named: bool, facts: _Facts) -> Kind:
    enough = MOSTLY * facts.filled
    numbers, whole = (found >= enough and not facts.padded for found in (facts.numbers, facts.whole))
    many = facts.distinct > MOST_VALUES
    own = many and facts.distinct >= 0.9 * facts.filled
    if facts.filled < FEWEST:
        return Kind.SPARSE
    if many and named and (whole or not numbers):
        return Kind.IDENTIFIER
    if facts.truths >= enough:
        return Kind.TRUTHS
    if numbers:
        if facts.low is None or facts.high is None:
            return Kind.SPARSE
        serial = own and whole and facts.high - facts.low <= 2 * facts.filled
        return Kind.IDENTIFIER if serial else Kind.WHOLE if whole else Kind.NUMBERS
    if facts.dates >= enough:
        return Kind.SPARSE if facts.first is None else Kind.DATES
    if own and facts.length <= LONG_TEXT:
        return Kind.IDENTIFIER
    return Kind.TEXT if many else Kind.VALUES


def _facts(connection: Connection, column: str) -> _Facts:
    read = (
        f"SELECT {column} AS v, TRY_CAST({column} AS DOUBLE) AS x, TRY_CAST({column} AS DATE) AS day, "
        f"CASE WHEN abs(x) <= {LARGEST} THEN x END AS number, "
        "CASE WHEN day BETWEEN DATE '0001-01-01' AND DATE '9998-12-31' THEN day END AS known FROM seen"
    )
    counted = (
        "count(v), count(DISTINCT v), count(x), count(*) FILTER (x = floor(x)), count(day), "
        "count(*) FILTER (lower(v) IN ('true', 'false', 't', 'f')), count(*) FILTER (regexp_matches(v, '^0[0-9]+$')), "
        "coalesce(avg(length(v)), 0)"
    )
    ends = ", ".join(f"{end}({of}, {FEWEST})[{FEWEST}]" for of in ("number", "known") for end in ("min", "max"))
    return _Facts(*connection.execute(f"SELECT {counted}, {ends} FROM ({read})").fetchone())
