"""One suite for every store that a source can read: the same counts as the row -> cell rule written out in Python."""

from __future__ import annotations

import csv
import gzip
import hashlib
import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.domain import Attribute, Bins, Categories, Dates, Domain, IntegerRange, Period, Stray, Unit
from bursar.core.queries import Distinct, Mask, PerPerson, Predicate, Product, Quorum, Steps, Within
from bursar.core.source.duckdb import DuckDBSource
from bursar.errors import QueryError, SourceError
from harness import plainly
from harness.odd_values import position

KEY = b"a key that nobody else has......"


# --- the rule, in Python ---------------------------------------------------------------------------------------

DIGITS = r"[0-9](?:_?[0-9])*"
NUMBER = re.compile(rf"(?:\+?-|\+)?(?:{DIGITS}(?:\.(?:{DIGITS})?)?|\.{DIGITS})(?:[eE][+-]?{DIGITS})?")
NUMBER_WORD = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?: [0-9]{2}:[0-9]{2}:[0-9]{2})?")
NO_DAY = "2021-02-30"
AFTER, BEFORE = ("inf", "infinity", "10000-01-01"), ("-inf", "-infinity", "0001-01-01 (bc)")
FAR_DAYS = dict.fromkeys(AFTER, math.inf) | dict.fromkeys(BEFORE, -math.inf)


def number(value: object) -> float | None:
    """The number that a raw value is, as a float; None for NaN and for what is no number."""
    if isinstance(value, str):
        text = value.strip(" \t\n\v\f\r")
        readable = NUMBER.fullmatch(text) or NUMBER_WORD.fullmatch(text)
        value = float(text.replace("_", "").replace("+-", "-")) if readable else None
    if value is None or isinstance(value, date):
        return None
    assert isinstance(value, int | float)
    return None if math.isnan(value) else float(value)


def whole_number(value: object) -> int | None:
    """The integer that a raw value is, exactly, up to 127 bits; two signs in front make a float and no integer."""
    near = None if isinstance(value, str) and value.strip().startswith("+-") else number(value)
    if near is None or abs(near) >= 2**127 or near != math.floor(near):
        return None
    if abs(near) < 2**53 or isinstance(value, float):
        return int(near)
    exact = Decimal(value.strip().replace("_", "")) if isinstance(value, str) else Decimal(value)
    return int(exact.to_integral_value(ROUND_HALF_UP, Context(prec=60)))


def as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def category(attribute: Categories, value: object) -> object:
    kind = type(attribute.values[0])
    if kind is str:
        return as_text(value)
    if kind is int:
        return whole_number(value)
    words = {"true": True, "t": True, "false": False, "f": False}
    return words.get(as_text(value).lower(), {1.0: True, 0.0: False}.get(number(value)))  # type: ignore[arg-type]


def ordinal(attribute: Dates, value: object) -> float | None:
    if isinstance(value, str):
        if value.lower() in FAR_DAYS:
            return FAR_DAYS[value.lower()]
        value = date.fromisoformat(value[:10]) if DAY.fullmatch(value) and value != NO_DAY else None
    return attribute.ordinal(value) if isinstance(value, date) else None


def cell(attribute: Attribute, value: object) -> int:
    """The row -> cell rule of the domain."""
    if value is None:
        return attribute.null_cell
    place: float | None
    if isinstance(attribute, Categories):
        found = category(attribute, value)
        declared = [v for v in attribute.values if v == found and type(v) is type(found)]
        place = attribute.values.index(declared[0]) if declared else None
    elif isinstance(attribute, Dates):
        period = ordinal(attribute, value)
        place = None if period is None else period - attribute.ordinal(attribute.first)
    else:
        read = number(value)
        place = None if read is None else position(attribute, read)
    if place is not None and 0 <= place < attribute.declared:
        return int(place)
    if attribute.outside is Stray.CLIP:
        return attribute.null_cell if place is None else 0 if place < 0 else attribute.declared - 1
    outside = attribute.other if attribute.outside is Stray.OTHER else attribute.outside
    assert isinstance(outside, int)
    return outside


def bounded(rows: Sequence[tuple[int, ...]], units: Sequence[str | None], k: int, partition: int | None) -> Counter:
    """The rows that are kept: per unit the first k by partition, then by a keyed hash of the row and its number."""
    return Counter(row for _, row in bounded_rows(rows, units, k, partition))


def bounded_rows(
    rows: Sequence[tuple[int, ...]], units: Sequence[str | None], k: int, partition: int | None
) -> list[tuple[str, tuple[int, ...]]]:
    """The same, each with the unit whose row it is."""
    secret = hashlib.blake2b(b"choice", key=KEY, digest_size=32).hexdigest()
    kept: list[tuple[str, tuple[int, ...]]] = []
    for unit in {u for u in units if u is not None}:
        mine = Counter(row for row, u in zip(rows, units, strict=True) if u == unit)
        ranked = []
        for row, times in mine.items():
            for copy in range(1, times + 1):
                message = "/".join(map(str, [secret, len(unit), unit, *row, copy]))
                first = 0 if partition is None else row[partition]
                ranked.append((first, hashlib.sha256(message.encode()).hexdigest(), row))
        kept += [(unit, row) for _, _, row in sorted(ranked)[:k]]
    return kept


# --- the stores ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Column:
    """Raw values of one storage type."""

    type: str
    values: tuple[Any, ...]


Table = dict[str, Column]


def write_csv(folder: Path, table: Table, *, zipped: bool = False) -> Path:
    path = folder / ("it's a *[file]?.csv" + (".gz" if zipped else ""))
    opener: Callable[..., Any] = gzip.open if zipped else open
    with opener(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        for row in zip(*(column.values for column in table.values()), strict=True):
            writer.writerow(["" if value is None else as_text(value) for value in row])
    return path


def write_csv_gz(folder: Path, table: Table) -> Path:
    return write_csv(folder, table, zipped=True)


def write_duckdb(folder: Path, table: Table) -> Path:
    path = folder / "it's [a] database.duckdb"
    with duckdb.connect(str(path)) as connection:
        fill(connection, table)
    return path


def write_parquet(folder: Path, table: Table) -> Path:
    path = folder / "weird*[name]?.parquet"
    with duckdb.connect() as connection:
        fill(connection, table)
        connection.execute(f"COPY stored TO '{folder / 'plain.parquet'}'")
    (folder / "plain.parquet").rename(path)
    return path


def fill(connection: Any, table: Table) -> None:
    names = ['"' + name.replace('"', '""') + '"' for name in table]
    types = [f"{name} {column.type}" for name, column in zip(names, table.values(), strict=True)]
    connection.execute(f"CREATE TABLE stored ({', '.join(types)})")
    rows = list(zip(*(column.values for column in table.values()), strict=True))
    if rows:
        places = ", ".join([f"({', '.join('?' * len(names))})"] * len(rows))
        connection.execute(f"INSERT INTO stored VALUES {places}", [value for row in rows for value in row])


def pandas_frame(folder: Path, table: Table) -> Any:
    pandas = pytest.importorskip("pandas")
    types = {"VARCHAR": "object", "BIGINT": "Int64", "DOUBLE": "float64", "BOOLEAN": "boolean", "DATE": "object"}
    types["TIMESTAMP"] = "datetime64[us]"
    return pandas.DataFrame(
        {name: pandas.Series(list(column.values), dtype=types[column.type]) for name, column in table.items()}
    )


def polars_frame(folder: Path, table: Table) -> Any:
    polars = pytest.importorskip("polars")
    types = {"VARCHAR": polars.String, "BIGINT": polars.Int64, "DOUBLE": polars.Float64, "BOOLEAN": polars.Boolean}
    types |= {"DATE": polars.Date, "TIMESTAMP": polars.Datetime("us")}
    return polars.DataFrame(
        {name: polars.Series(list(column.values), dtype=types[column.type]) for name, column in table.items()}
    )


def arrow_table(folder: Path, table: Table) -> Any:
    arrow = pytest.importorskip("pyarrow")
    types = {"VARCHAR": arrow.string(), "BIGINT": arrow.int64(), "DOUBLE": arrow.float64(), "BOOLEAN": arrow.bool_()}
    types |= {"DATE": arrow.date32(), "TIMESTAMP": arrow.timestamp("us")}
    return arrow.table(
        {name: arrow.array(list(column.values), type=types[column.type]) for name, column in table.items()}
    )


def as_stored(store: Callable[..., Any], column: Column) -> list[object]:
    """What is left of the raw values in a store: CSV has only texts, and no empty ones; pandas takes NaN for NULL."""
    if store in (write_csv, write_csv_gz):
        texts = [None if value is None else as_text(value) for value in column.values]
        return [None if text == "" else text for text in texts]
    if store is pandas_frame:
        return [None if isinstance(value, float) and math.isnan(value) else value for value in column.values]
    return list(column.values)


STORES = [write_csv, write_csv_gz, write_parquet, write_duckdb, pandas_frame, polars_frame, arrow_table]
each_store = pytest.mark.parametrize("store", STORES, ids=lambda store: store.__name__)


@contextmanager
def opened(store: Callable[..., Any], table: Table, domain: Domain, unit: Unit) -> Iterator[DuckDBSource]:
    with tempfile.TemporaryDirectory() as folder:
        source = DuckDBSource(store(Path(folder), table), domain, unit, KEY, 1000)
        try:
            yield source
        finally:
            source.close()


# --- nasty columns ---------------------------------------------------------------------------------------------

NASTY = [
    "",
    " ",
    "'",
    '"',
    '""',
    "a,b",
    "a\nb",
    "\r\n",
    "NULL",
    "null",
    "nan",
    "NaN",
    "-inf",
    "Infinity",
    "\x00",
    "é",
    "é",
]
NASTY += [
    "1e400",
    "-1e400",
    "0x1F",
    "1_000",
    " 7 ",
    "+-3",
    "3.7",
    "-0.5",
    "9" * 50,
    "-" + "9" * 50,
    "true",
    "T",
    "False",
]
NASTY += [
    "9007199254740993",
    "1e3",
    NO_DAY,
    "2021-02-03",
    "2021-03-01 23:59:59",
    "10000-01-01",
    "infinity",
    "-infinity",
]
NASTY += [
    "0001-01-01 (BC)",
    "other",
    "a",
    "A",
    "a ",
    "0",
    "1",
    "-1",
    "5",
    "1.0",
    "🦆",
    "\u202e",
    "ſ",
    "--",
    "; DROP TABLE cells",
]

# Letters of other alphabets, marks and symbols, but no digits: those would make dates that DAY does not know.
texts = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=("Cs", "Nd"))) | st.text("0123456789+-._eE ")
whole = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 12)
floats = st.floats() | st.integers(-3, 12).map(float) | st.sampled_from([2.5, -0.0, 1e15, 9.999999999])
days = st.dates() | st.dates(date(2020, 12, 1), date(2021, 4, 1))


def columns(size: int) -> st.SearchStrategy[Column]:
    times = days.map(lambda day: datetime(day.year, day.month, day.day, 23, 59, 59))
    kinds = {
        "VARCHAR": texts,
        "BIGINT": whole,
        "DOUBLE": floats,
        "BOOLEAN": st.booleans(),
        "DATE": days,
        "TIMESTAMP": times,
    }
    return st.one_of(
        st.lists(st.none() | values, min_size=size, max_size=size).map(
            lambda found, kind=kind: Column(type=kind, values=tuple(found))
        )
        for kind, values in kinds.items()
    )


@st.composite
def attributes(draw: st.DrawFn, name: str) -> Attribute:
    kind = draw(st.sampled_from([Categories, IntegerRange, Bins, Dates]))
    facts: dict[str, Any] = {"name": name}
    if kind is Categories:
        values = st.sampled_from([texts, whole | st.just(10**30), st.booleans()])
        facts["values"] = tuple(draw(st.lists(draw(values), min_size=1, max_size=8, unique=True)))
    elif kind is IntegerRange:
        facts["lower"] = draw(st.integers(-(2**53) + 1, 2**53 - 400) | st.integers(-3, 3))
        facts["upper"] = facts["lower"] + draw(st.integers(0, 300))
    elif kind is Bins:
        edges = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 12).map(float)
        facts["edges"] = tuple(sorted(draw(st.sets(edges, min_size=2, max_size=30))))
    else:
        facts["by"] = draw(st.sampled_from(Period))
        facts["first"] = draw(days.filter(lambda day: day < date(9990, 1, 1)))
        facts["last"] = date.fromordinal(facts["first"].toordinal() + draw(st.integers(0, 100)))
    declared = kind(**facts, outside=Stray.OTHER).declared
    one = st.integers(0, declared - 1)
    facts["outside"] = draw(one | st.just(Stray.OTHER) | (st.nothing() if kind is Categories else st.just(Stray.CLIP)))
    return kind(**facts, null=draw(one | st.sampled_from([Stray.OTHER, Stray.CELL])))


def comparable(attribute: Attribute, column: Column) -> bool:
    """Whether Python and DuckDB spell the raw values alike: not so for floats and times compared as text."""
    text = isinstance(attribute, Categories) and isinstance(attribute.values[0], str)
    return not (text and column.type in ("DOUBLE", "TIMESTAMP"))


def without_odd_dates(column: Column) -> Column:
    """Leaves out random digits that could spell a date in a way that DAY does not know."""
    odd = re.compile("[0-9]|epoch", re.IGNORECASE)
    known = (v for v in column.values if not v or v.lower() in FAR_DAYS or DAY.fullmatch(v) or not odd.search(v))
    return Column(type=column.type, values=tuple(known))


# --- the suite -------------------------------------------------------------------------------------------------


@pytest.mark.sampled(6)
@each_store
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_value_is_counted_in_its_cell(store: Callable[..., Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["a", "A b", 'quo"te', "it's", "select", "ü", "c1"]))
    attribute = data.draw(attributes(name))
    column = data.draw(columns(size=20).filter(lambda found: comparable(attribute, found)))
    if isinstance(attribute, Dates) and column.type == "VARCHAR":
        column = without_odd_dates(column)
    table = {"before": Column(type="BIGINT", values=tuple(range(len(column.values)))), name: column}
    expected = np.bincount([cell(attribute, v) for v in as_stored(store, column)], minlength=attribute.size)
    with opened(store, table, Domain((attribute,)), Unit()) as source:
        assert source.table((name,)).tolist() == expected.tolist()


def people() -> tuple[Table, Domain]:
    names = ["ann", "bob", None, "ann", "eve", "ann", "ann", "bob", None, "ünal's", "ünal's", "ann", "ann"]
    table = {
        "id": Column(type="VARCHAR", values=tuple(names)),
        "age": Column(type="BIGINT", values=(3, 44, 5, 99, None, 3, 3, 120, 1, -4, 50, 7, 8)),
        "town": Column(type="VARCHAR", values=("x", "y", "x", None, "z", "x", "x", "y", "y", "x", "x", "y", "z")),
        "day": Column(
            type="DATE", values=tuple(date(2021, month, 1) for month in (3, 1, 2, 2, 2, 3, 3, 1, 1, 9, 3, 1, 2))
        ),
    }
    domain = Domain(
        (
            IntegerRange(name="age", lower=0, upper=99),
            Categories(name="town", values=("x", "y")),
            Dates(name="day", first=date(2021, 1, 1), last=date(2021, 4, 1), by=Period.MONTH),
        ),
        partition="day",
    )
    return table, domain


@pytest.mark.thinned(4)
@each_store
def test_joint_counts_in_the_order_asked(store: Callable[..., Any]) -> None:
    table, domain = people()
    orders = ((), ("town",), ("day", "town"), ("town", "age", "day"), ("age", "town", "day"))
    with opened(store, table, domain, Unit()) as source:
        counted = {attrs: source.table(attrs) for attrs in orders}
    for attrs, counts in counted.items():
        cells = [[cell(domain[name], v) for v in as_stored(store, table[name])] for name in attrs]
        expected = Counter(zip(*cells, strict=True)) if attrs else Counter({(): 13})
        assert counts.shape == domain.sizes(attrs)
        assert counts.dtype == np.int64
        assert {place: count for place, count in np.ndenumerate(counts) if count} == dict(expected), attrs


@pytest.mark.sampled(3)
@each_store
@pytest.mark.parametrize("k", [1, 2, 3, 50])
@pytest.mark.parametrize("partition", [None, "day"])
def test_contributions_are_bounded_as_written(store: Callable[..., Any], k: int, partition: str | None) -> None:
    table, domain = people()
    domain = Domain(domain.attributes, partition=partition)
    codes = [[cell(domain[name], v) for v in as_stored(store, table[name])] for name in domain.names]
    units = [None if u is None else str(u) for u in as_stored(store, table["id"])]
    place = None if partition is None else domain.place(partition)
    expected = bounded(list(zip(*codes, strict=True)), units, k, place)
    with opened(store, table, domain, Unit(column="id", max_contributions=k)) as source:
        counts = source.table(domain.names)
    assert {where: count for where, count in np.ndenumerate(counts) if count} == dict(expected)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(NASTY), st.integers(0, 3), st.integers(0, 2)), max_size=40),
    st.integers(1, 4),
)
def test_any_unit_is_bounded_as_written(rows: list[tuple[str, int, int]], k: int) -> None:
    table = {
        "who": Column(type="VARCHAR", values=tuple(row[0] for row in rows)),
        "a": Column(type="BIGINT", values=tuple(row[1] for row in rows)),
        "b": Column(type="BIGINT", values=tuple(row[2] for row in rows)),
    }
    domain = Domain((IntegerRange(name="a", lower=0, upper=3), IntegerRange(name="b", lower=0, upper=2)), partition="b")
    expected = bounded([row[1:] for row in rows], [row[0] for row in rows], k, 1)
    with opened(arrow_table, table, domain, Unit(column="who", max_contributions=k)) as source:
        counts = source.table(("a", "b"))
    assert {where: count for where, count in np.ndenumerate(counts) if count} == dict(expected)


def test_every_store_gives_the_same_content_hash() -> None:
    table, domain = people()
    hashes = set()
    for store in STORES:
        with opened(store, table, domain, Unit(column="id", max_contributions=2)) as source:
            hashes.add(source.content())
    assert len(hashes) == 1


@pytest.mark.thinned(4)
@pytest.mark.parametrize("store", [write_csv, arrow_table])  # the others give the same hashes as these
@pytest.mark.parametrize("unit", [Unit(), Unit(column="id", max_contributions=2)], ids=["row", "person"])
def test_every_partition_has_a_content_hash_of_its_own(store: Callable[..., Any], unit: Unit) -> None:
    """Rows that come into a partition change its hash, and those of no earlier one; where each row is a unit, of no
    other one."""
    table, domain = people()

    def contents(*days: date, raised: date | None = None) -> tuple[str, ...]:
        rows = [*zip(*(column.values for column in table.values()), strict=True)]
        rows = [(who, 44 if day == raised else age, town, day) for who, age, town, day in rows]
        rows += [("ann", 3, "x", day) for day in days]
        grown = {
            name: Column(type=column.type, values=tuple(row[place] for row in rows))
            for place, (name, column) in enumerate(table.items())
        }
        with opened(store, grown, domain, unit) as source:
            return source.content()

    before = contents()
    assert len(before) == len(set(before)) == domain["day"].size
    for month in (1, 2, 3):
        day = date(2021, month, 1)
        for after in (contents(day), contents(raised=day)):
            assert after[: month - 1] == before[: month - 1]
            assert after[month - 1] != before[month - 1] or unit.column is not None
            assert after[month:] == before[month:] or unit.column is not None
    assert contents(date(2021, 4, 1))[:3] == before[:3]


@pytest.mark.thinned(4)
@each_store
def test_no_rows_are_fine(store: Callable[..., Any]) -> None:
    table, domain = people()
    empty = {name: Column(type=column.type, values=()) for name, column in table.items()}
    with opened(store, empty, domain, Unit(column="id", max_contributions=2)) as source:
        assert source.table(("town", "age")).sum() == 0
        assert source.table(()).tolist() == 0
        assert [len(content) for content in source.content()] == [64] * domain["day"].size


# --- conditions over more columns than a table can have ---------------------------------------------------------

WIDE = Domain(tuple(IntegerRange(name=f"x{place}", lower=0, upper=9) for place in range(12)))
WIDE_ROWS = np.random.default_rng(5).integers(0, 11, (300, 12)).tolist()
"""10 stands for NULL."""


def wide_table() -> Table:
    values = zip(*WIDE_ROWS, strict=True)
    return {
        name: Column(type="BIGINT", values=tuple(None if value == 10 else value for value in column))
        for name, column in zip(WIDE.names, values, strict=True)
    }


def in_range(part: Within | Quorum, row: dict[str, int]) -> bool:
    if isinstance(part, Within):
        return any(row[part.column] in range(*ends) for ends in part.ranges)
    return sum(in_range(each, row) for each in part.parts) >= part.least


ONES = tuple(Within(name, ((1, 2),)) for name in WIDE.names)
CONDITIONS = {
    "one of many": Quorum(1, ONES),
    "some of many": Quorum(3, ONES),
    "all of a few": Quorum(2, (Within("x1", ((0, 5), (7, 9))), Within("x5", ((2, 11),)))),
    "one alone": Quorum(1, (Within("x3", ((4, 11),)),)),
    "one inside another": Quorum(2, (Within("x0", ((0, 6),)), Quorum(2, ONES[1:]))),
    "nothing": Quorum(2, (Within("x0", ()), ONES[1])),
    "a set": Within("x11", ((0, 1), (3, 8), (10, 11))),
}


@pytest.mark.thinned(4)
@each_store
def test_conditions_over_many_columns_are_counted(store: Callable[..., Any]) -> None:
    cells = tuple(WIDE[column].size for column in WIDE.names)
    with opened(store, wide_table(), WIDE, Unit()) as source:
        counted = {name: source.count(Predicate(WIDE.names, cells, CONDITIONS[name])) for name in CONDITIONS}
    null = WIDE["x0"].null_cell
    coded = [
        {column: null if value == 10 else value for column, value in zip(WIDE.names, row, strict=True)}
        for row in WIDE_ROWS
    ]
    assert counted == {name: sum(in_range(CONDITIONS[name], row) for row in coded) for name in CONDITIONS}
    assert [name for name, count in counted.items() if count == 0] == ["nothing"]


def test_a_condition_that_does_not_fit_the_columns_is_refused_before_counting() -> None:
    with opened(write_csv, wide_table(), WIDE, Unit()) as source:
        for attrs, sizes in ((("y",), (12,)), (("x0",), (5,))):
            with pytest.raises(QueryError, match="does not fit the columns of the data"):
                source.count(Predicate(attrs, sizes, Within(attrs[0], ((0, 1),))))


def test_a_failure_while_counting_has_the_one_text() -> None:
    with opened(write_csv, wide_table(), WIDE, Unit()) as source:
        source.close()
        with pytest.raises(SourceError, match="the data could not be counted"):
            source.count(Predicate(("x0",), (11,), Within("x0", ((0, 1),))))


# --- people and values, each once --------------------------------------------------------------------------------


@pytest.mark.sampled(6)
@each_store
@pytest.mark.parametrize("k", [1, 2, 50])
def test_people_and_values_are_counted_once(store: Callable[..., Any], k: int) -> None:
    table, domain = people()
    codes = [[cell(domain[name], v) for v in as_stored(store, table[name])] for name in domain.names]
    units = [None if u is None else str(u) for u in as_stored(store, table["id"])]
    rows = bounded_rows(list(zip(*codes, strict=True)), units, k, domain.place("day"))
    town, age = domain["town"].size, domain["age"].size
    each_town = Mask(("town",), (town,), Steps.identity(town))
    young = Mask(("age",), (age,), Steps.ranges([0], [45], age))
    either = Predicate(("town", "age"), (town, age), Quorum(1, (Within("town", ((1, 2),)), Within("age", ((0, 9),)))))
    groups = (Product(()), Product((each_town,)), Product((young, each_town)), either)
    with opened(store, table, domain, Unit(column="id", max_contributions=k)) as source:
        for group in groups:
            for of in (None, "age", "town"):
                distinct = Distinct(group, of)
                assert source.distinct(distinct).tolist() == plainly.answers(distinct, rows, domain).tolist()
        by_age = Product((Mask(("age",), (age,), Steps.dense([[*range(100), 0]])),))
        for group in groups[:3]:
            for value, bins, centre in ((by_age, ((0, 200),), 0), (by_age, ((0, 50), (50, 500)), None)):
                per = PerPerson(groups=group, value=value, lower=0, upper=120, bins=bins, centre=centre)
                assert source.per_person(per).tolist() == plainly.answers(per, rows, domain).tolist()


def test_rows_without_a_unit_are_no_people() -> None:
    table, domain = people()
    with opened(arrow_table, table, domain, Unit()) as source:
        assert source.distinct(Distinct(Product(()), "town")).tolist() == [4]
        with pytest.raises(QueryError, match="no unit column"):
            source.distinct(Distinct(Product(())))
        with pytest.raises(QueryError, match="does not fit the columns"):
            source.distinct(Distinct(Product(()), "height"))
        source.close()
        with pytest.raises(SourceError, match="the data could not be counted"):
            source.distinct(Distinct(Product(()), "town"))


def test_all_rows_of_people_are_counted_before_they_are_bounded() -> None:
    table, domain = people()
    whole = PerPerson(groups=Product(()), value=None, lower=0, upper=99, bins=tuple((n, n + 1) for n in range(1, 8)))
    unit = Unit(column="id", max_contributions=1)
    with opened(arrow_table, table, Domain(domain.attributes), unit) as source:
        assert source.per_person(whole).tolist() == [1, 2, 0, 0, 0, 1, 0]  # eve; bob and ünal; ann
    for reason, where in (("partitions", (domain, unit)), ("no unit", (Domain(domain.attributes), Unit()))):
        with opened(arrow_table, table, *where) as source, pytest.raises(QueryError, match="no unit column, or"):
            source.per_person(whole)
        assert reason
    with opened(arrow_table, table, Domain(domain.attributes), unit) as source:
        source.close()
        with pytest.raises(SourceError, match="the data could not be counted"):
            source.per_person(whole)
