"""The data owner's look at the rows before there is a config: the only code that reads rows for anything but counting.

What comes out is for the owner's eyes and is *not* differentially private: it is a guess at what might be declared, and
`config.load` refuses a config as long as the owner has not confirmed that each guess is public.

Guarantees: no number, day or text leaves unless at least FEWEST rows stand behind it: a listed value occurs in so many
rows, and so many lie at or beyond either end of a range before it is rounded outwards. Identifiers and long lists of
texts are told by their names only. Errors speak of files and columns, never of rows.
Edge cases: FEWEST rows may all belong to one person; that is why the owner is asked. Of a long table a random
MOST_ROWS rows are looked at. Words like NA are missing values, and no value of a column.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import Enum
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import NamedTuple, TypeVar

import duckdb

from bursar.core.source.coding import as_text
from bursar.core.source.duckdb import SETTINGS
from bursar.core.source.raw import Connection, Raw, attempt, open_raw
from bursar.curate.plain_csv import MISSING
from bursar.errors import SourceError

T = TypeVar("T")
FEWEST = 5
MOST_ROWS = 1_000_000
MOST_VALUES = 100  # in a column of more, a value of one's own is an identifier
LONGEST_LIST = 200
MOSTLY = 0.8
"""The share of a column's values that must be numbers, or dates, for it to be a column of them."""

LARGEST = 10**15
LONG_TEXT = 40
SENTENCE = r"\S+(\s+\S+){2,}[.!?]|\S+(\s+\S+){6,}"
"""Three words and a full stop, or seven words: somebody wrote this, and did not choose it from a list."""

COMMON = (Fraction(1), Fraction(2), Fraction(5), Fraction(10))
ROUND = tuple(Fraction(tenths, 10) for tenths in (10, 15, 20, 25, 30, 40, 50, 60, 80, 100))
"""Where people let a range end, but for a power of ten."""

TIME = r"regexp_full_match(trim(v), '\d{1,2}:\d\d(:\d\d(\.\d+)?)?( ?[AaPp][Mm])?')"
TRUTH = "lower(v) IN ('true', 'false', 't', 'f')"
CODE = "regexp_matches(v, '^0[0-9]+$')"
SMALL = 12
FEW = 20  # as many different values as this are nothing that a name alone makes identifiers
UNKNOWN_PLACES = 16  # behind the point, where a number is written as 1e-5


class SurveyedKind(Enum):
    """What a column seems to hold."""

    VALUES = "a few different texts"
    TRUTHS = "true and false"
    WHOLE = "whole numbers"
    NUMBERS = "numbers"
    DATES = "dates"
    IDENTIFIER = "identifiers"
    UNIQUE = "whole numbers that are nearly all different, as identifiers are"
    TIMES = "times of day"
    TEXT = "many different texts"
    SPARSE = "nothing that enough rows share"


@dataclass(frozen=True, kw_only=True)
class SurveyedColumn:
    """One column: its name, its kind, and what that kind needs to be declared."""

    name: str
    kind: SurveyedKind
    values: tuple[str, ...] = ()  # in the order of the alphabet, which says nothing about how many have them
    low: Fraction | date | None = None  # rounded outwards
    high: Fraction | date | None = None
    repeats: int = 1  # identifiers: how many rows most of them have at most, rounded up
    places: int = 0  # numbers: how many digits stand behind the point, but in a few rows; -1: multiples of ten
    heaped: bool = False  # numbers: half of the rows hold one of them
    calendar: bool = False  # the ends are those of a calendar, not rounded
    gapless: bool = False  # values are missing in fewer than FEWEST rows


@dataclass(frozen=True, kw_only=True)
class Survey:
    """A public-looking number of rows, about twice the true one, and the columns in their order."""

    max_rows: int
    columns: tuple[SurveyedColumn, ...]


class _Facts(NamedTuple):
    """What is counted about one column, in the order in which it is asked for; it stays in here."""

    filled: int
    distinct: int
    numbers: int
    broken: int  # numbers that are not whole
    peak: int  # rows of the number that most rows have
    dates: int
    times: int
    truths: int
    padded: int  # texts of digits that begin with 0: codes, not numbers
    sentences: int  # of the different texts
    length: float
    low: float | None
    high: float | None
    first: date | None
    last: date | None
    places: int | None


def survey(
    location: object,
    table: str | None = None,
    *,
    named: Callable[[str], bool],
    calendar: Callable[[str], Sequence[range]] = lambda name: (),
    told: Callable[[str], None] = lambda step: None,
) -> Survey:
    """What the columns of a file, DuckDB table or data frame seem to be.

    `named`: whether a name is of identifiers. `calendar`: the whole numbers that a name lets people expect. `told`
    hears what is looked at next.
    """
    connection = attempt(lambda: duckdb.connect(":memory:", config=SETTINGS), "DuckDB cannot be started")
    try:
        raw = open_raw(connection, location, table)
        if isinstance(location, str | os.PathLike) and ".csv" in os.fspath(location).lower():
            _check_header(raw)
        told(f"reading {raw.name}")
        rows = _read(connection, raw)
        columns = []
        for place, (name, _) in enumerate(raw.columns):
            told(f"looking at {name}, column {place + 1} of {len(raw.columns)}")
            look = partial(_seen, connection, name, f"v{place}", named(name), calendar(name))
            columns.append(attempt(look, f"the column {name} of {raw.name} cannot be read"))
            gaps = partial(_gaps, connection, f"v{place}", columns[-1].kind)
            few = attempt(gaps, f"the column {name} of {raw.name} cannot be read") < FEWEST
            columns[-1] = replace(columns[-1], gapless=few)
        return Survey(max_rows=max(int(rounded_up(Fraction(2 * rows + 1))), 1000), columns=tuple(columns))
    finally:
        connection.close()


def rounded_up(amount: Fraction, to: Sequence[Fraction] = COMMON) -> Fraction:
    """The least of 1, 2, 5, 10, 20, 50, ... (or .5, .2, .1, ...) that is not below a positive amount."""
    power = Fraction(10) ** math.floor(math.log10(amount))
    return next(digit * power for digit in to if digit * power >= amount)


def widened(low: Fraction, high: Fraction, *, whole: bool) -> tuple[Fraction, Fraction]:
    """Round ends around `low` and `high`: from 0 where that is near, else multiples of a tenth of the way between.

    Edge cases: the ends of SMALL whole numbers, such as grades, stay as they are, as listed values do.
    """
    if whole and 0 <= low < high <= SMALL:
        return low, high
    if 0 <= low <= high / 2:
        return Fraction(0), rounded_up(high, ROUND) if high else Fraction(1)
    if low < 0 <= high:
        return -rounded_up(-low, ROUND), rounded_up(high, ROUND) if high else Fraction(0)
    step = rounded_up((high - low or abs(high)) / 10)
    step = max(step, Fraction(1)) if whole else step
    return low // step * step, (high // step + 1) * step


def _check_header(raw: Raw) -> None:
    """A first line of data would be taken for names, and names are shown."""
    names = [name for name, _ in raw.columns]
    if len(names) == 1 and re.search(r"[;\t|]", names[0]):
        raise SourceError(f"{raw.name} must have commas between its fields, and seems to have another separator")
    odd = [place for place, name in enumerate(names, 1) if re.fullmatch(r"\s*[-+.\d][-+.:/\d]*\s*", name)]
    if odd:
        raise SourceError(f"{raw.name} must begin with a line of column names; the name of column {odd[0]} is a number")


def _read(connection: Connection, raw: Raw) -> int:
    """Read the rows once, as texts v0, v1, ... in the table seen; how many there are."""
    connection.execute("SET TimeZone = 'UTC'")
    texts = ", ".join(f"{as_text(column.sql)} AS v{place}" for place, (_, column) in enumerate(raw.columns))
    sample = f"SELECT {texts} FROM {raw.relation} USING SAMPLE reservoir({MOST_ROWS} ROWS)"
    line = ""
    try:
        connection.execute(f"CREATE TEMP TABLE seen AS {sample}")
        return int(connection.execute(f"SELECT count(*) FROM {raw.relation}").fetchone()[0])
    except Exception as fault:  # of DuckDB's message, which may quote a row, a line number is all that leaves
        line = "".join(re.findall(r"^CSV Error on Line: (\d+)", str(fault).partition("\n")[0].partition(": ")[2])[:1])
    raise SourceError(f"{raw.unreadable}; line {line or '(unknown)'} is the first that cannot")


def _seen(connection: Connection, name: str, column: str, named: bool, expected: Sequence[range]) -> SurveyedColumn:
    facts = _facts(connection, column)
    span = _calendar(facts, expected)
    match kind := _kind(named, span is not None, facts):
        case SurveyedKind.WHOLE | SurveyedKind.NUMBERS | SurveyedKind.UNIQUE:
            assert facts.low is not None
            assert facts.high is not None
            ends = span or widened(Fraction(facts.low), Fraction(facts.high), whole=kind is not SurveyedKind.NUMBERS)
            return SurveyedColumn(
                name=name,
                kind=kind,
                low=Fraction(ends[0]),
                high=Fraction(ends[1]),
                places=facts.places or 0,
                heaped=2 * facts.peak >= facts.numbers,
                calendar=span is not None,
            )
        case SurveyedKind.DATES:
            assert facts.first is not None
            assert facts.last is not None
            return SurveyedColumn(
                name=name, kind=kind, low=date(facts.first.year, 1, 1), high=date(facts.last.year, 12, 31)
            )
        case SurveyedKind.VALUES:
            listed = f"{_present('v')} OR lower(trim(v)) = 'none'"  # where words are chosen from, none may be one
            shared = f"SELECT v FROM {_each(column)} WHERE n >= {FEWEST} AND ({listed}) ORDER BY v"
            values = tuple(value for (value,) in connection.execute(shared).fetchall())
            return SurveyedColumn(name=name, kind=kind if values else SurveyedKind.SPARSE, values=values)
        case SurveyedKind.IDENTIFIER:
            rows = f"SELECT quantile_disc(n, 0.95) FROM {_each(column)} WHERE {_present('v')}"
            most = connection.execute(rows).fetchone()[0]
            return SurveyedColumn(name=name, kind=kind, repeats=int(rounded_up(Fraction(most))))
    return SurveyedColumn(name=name, kind=kind)


def _calendar(facts: _Facts, expected: Sequence[range]) -> tuple[int, int] | None:
    """The first range that holds a column of whole numbers; of a long one, which years are, the part that is used."""
    if not _numbers(facts) or not _whole(facts) or facts.low is None or facts.high is None:
        return None
    fitting = (span for span in expected if span[0] <= facts.low and facts.high <= span[-1])
    first = next(fitting, None)
    if first is None:
        return None
    return (first[0], first[-1]) if len(first) <= MOST_VALUES else (int(facts.low), int(facts.high))


def _numbers(facts: _Facts) -> bool:
    return facts.numbers >= MOSTLY * facts.filled and not facts.padded


def _whole(facts: _Facts) -> bool:
    """Whether a column of numbers is one of whole numbers: a few rows may have others, and no share of them."""
    return facts.broken < FEWEST and facts.broken <= (1 - MOSTLY) * facts.numbers


def _kind(named: bool, calendar: bool, facts: _Facts) -> SurveyedKind:
    enough = MOSTLY * facts.filled
    numbers, whole = _numbers(facts), _numbers(facts) and _whole(facts)
    many, nearly_unique = facts.distinct > MOST_VALUES, facts.distinct >= 0.9 * facts.filled
    if facts.filled < FEWEST:
        return SurveyedKind.SPARSE
    if named and (many or (nearly_unique and facts.distinct > FEW)) and (whole or not numbers):
        return SurveyedKind.IDENTIFIER
    if facts.truths >= enough and facts.filled - facts.truths < FEWEST:  # nine women in ten are no truth
        return SurveyedKind.TRUTHS
    if numbers:
        if facts.low is None or facts.high is None:
            return SurveyedKind.SPARSE
        if whole and many and nearly_unique and not calendar:
            return SurveyedKind.IDENTIFIER if facts.high - facts.low <= 2 * facts.filled else SurveyedKind.UNIQUE
        return SurveyedKind.WHOLE if whole else SurveyedKind.NUMBERS
    if facts.dates >= enough:
        return SurveyedKind.SPARSE if facts.first is None else SurveyedKind.DATES
    if many and facts.times >= enough:
        return SurveyedKind.TIMES
    if many and nearly_unique and facts.length <= LONG_TEXT:
        return SurveyedKind.IDENTIFIER
    written = 2 * facts.sentences >= facts.distinct or facts.length > LONG_TEXT
    return SurveyedKind.TEXT if facts.distinct > LONGEST_LIST or written else SurveyedKind.VALUES


def _gaps(connection: Connection, column: str, kind: SurveyedKind) -> int:
    """In how many rows a column of this kind would have NULL; what cannot be read as a number or a day is none."""
    types = {SurveyedKind.WHOLE: "DOUBLE", SurveyedKind.NUMBERS: "DOUBLE", SurveyedKind.DATES: "DATE"}
    read = f"TRY_CAST({column} AS {types[kind]}) IS NOT NULL" if kind in types else _present(column)
    return int(connection.execute(f"SELECT count(*) FILTER (NOT coalesce({read}, FALSE)) FROM seen").fetchone()[0])


def _each(column: str) -> str:
    """The different texts of a column and their rows: far fewer than all rows, as a rule, and quicker to look at."""
    return f"(SELECT {column} AS v, count(*) AS n FROM seen WHERE {column} IS NOT NULL GROUP BY ALL)"


def _present(value: str) -> str:
    return f"lower(trim({value})) NOT IN {MISSING}"


def _facts(connection: Connection, column: str) -> _Facts:
    read = (
        "SELECT v, n, TRY_CAST(v AS DOUBLE) AS x, TRY_CAST(v AS DATE) AS day, "
        f"CASE WHEN abs(x) <= {LARGEST} THEN x END AS number, "
        "CASE WHEN day BETWEEN DATE '0001-01-01' AND DATE '9998-12-31' THEN day END AS known, "
        r"nullif(length(regexp_extract(v, '^[^eE]*\.(\d*[1-9])0*\s*$', 1)), 0) AS written, "
        f"CASE WHEN x <> floor(x) THEN coalesce(written, {UNKNOWN_PLACES}) WHEN number % 10 <> 0 THEN 0 "
        "WHEN number % 100 <> 0 THEN -1 WHEN number % 1000 <> 0 THEN -2 WHEN number <> 0 THEN -3 END AS places "
        f"FROM {_each(column)} WHERE {_present('v')}"
    )
    rows = ("TRUE", "x IS NOT NULL", "x <> floor(x)", "day IS NOT NULL", TIME, TRUTH, CODE)
    filled, numbers, broken, dates, times, truths, padded = (f"coalesce(sum(n) FILTER ({each}), 0)" for each in rows)
    counted = (
        *(
            filled,
            "count(*)",
            numbers,
            broken,
            "coalesce(max(n) FILTER (x IS NOT NULL), 0)",
            dates,
            times,
            truths,
            padded,
        ),
        f"count(*) FILTER (regexp_full_match(trim(v), '{SENTENCE}'))",
        f"coalesce(sum(n * length(v)) / {filled}, 0)",
    )
    ends = [("number", "min"), ("number", "max"), ("known", "min"), ("known", "max"), ("places", "max")]
    reached = [f"{end}({of}, {FEWEST}), arg_{end}(n, {of}, {FEWEST})" for of, end in ends]
    row = connection.execute(f"SELECT {', '.join([*counted, *reached])} FROM ({read})").fetchone()
    lists = row[len(counted) :]
    return _Facts(*row[: len(counted)], *map(_reached, lists[::2], lists[1::2]))


def _reached(values: list[T] | None, rows: list[int] | None) -> T | None:
    """The first of these values with which FEWEST rows are together; None where they never are."""
    together = zip(values or [], accumulate(rows or []), strict=True)
    return next((value for value, so_far in together if so_far >= FEWEST), None)
