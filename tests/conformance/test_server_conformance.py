"""One suite for every server that a table can be in: equal rows have the cells of the rule written out in Python."""

from __future__ import annotations

import hashlib
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import psycopg
import pytest

from bursar.core.domain import Attribute, Bins, Categories, Dates, Domain, IntegerRange, Period, Unit
from bursar.core.extensions.joins import Parent
from bursar.core.queries import Distinct, Mask, Predicate, Product, Quorum, Steps, Within
from bursar.core.source.servers import duckdb_file
from bursar.core.source.servers.cell_rule import EVERY_ROW, rows_of_first
from bursar.core.source.servers.duckdb_file import DuckDBFile
from bursar.core.source.servers.mariadb import MariaDBServer
from bursar.core.source.servers.postgresql import PostgreSQLServer
from bursar.core.source.servers.spark import SparkFiles
from bursar.core.source.servers.sql_source import Server, SqlSource
from bursar.errors import QueryError, SourceError
from harness.odd_values import COLUMNS, ENDLESS, KINDS, UNUSUAL_FLOATS, bounded, cell, fits
from harness.places import KEY, read
from harness.servers import PASSWORD, shared_mariadb, shared_postgresql, spark_connect, stop_spark

Values = Mapping[str, Sequence[object]]


class Engine(ABC):
    """Where tables are made, and how a source opens them."""

    def __init__(self, types: Mapping[str, str], more: Values) -> None:
        """The types that columns of `COLUMNS` have here, and values beyond those that can be stored."""
        self.types, self.more = types, more

    @abstractmethod
    def make(self, name: str, types: Mapping[str, str], rows: Sequence[Sequence[object]]) -> None: ...

    @abstractmethod
    def connect(self, name: str, beside: Sequence[str] = ()) -> Server: ...

    def close(self) -> None:  # noqa: B027  most leave nothing behind
        pass

    def open(
        self,
        name: str,
        domain: Domain,
        unit: Unit | None = None,
        max_rows: int = 10_000,
        parents: Sequence[Parent] = (),
    ) -> SqlSource:
        beside = [parent.table for parent in parents]
        return read(SqlSource(lambda: self.connect(name, beside), domain, unit or Unit(), KEY, max_rows, parents))


STANDARD = {
    "words": "TEXT",
    "whole": "BIGINT",
    "exact": "DECIMAL(38, 10)",
    "real": "DOUBLE PRECISION",
    "flag": "BOOLEAN",
    "day": "DATE",
    "time": "TIMESTAMP",
    "zoned": "TIMESTAMPTZ",
}


class InDuckDB(Engine):
    def __init__(self, folder: Path) -> None:
        super().__init__(STANDARD, {"real": UNUSUAL_FLOATS, "day": ENDLESS, "time": ENDLESS})
        self.path = folder / "it's.duckdb"
        self.few = pytest.MonkeyPatch()
        self.few.setattr(duckdb_file, "GROUP_ROWS", 6)  # so that there are several groups of units

    def make(self, name: str, types: Mapping[str, str], rows: Sequence[Sequence[object]]) -> None:
        with duckdb.connect(str(self.path)) as connection:
            columns = ", ".join(f'"{column}" {kind}' for column, kind in types.items())
            connection.execute(f'CREATE OR REPLACE TABLE "{name}" ({columns})')
            if rows:
                marks = ", ".join("?" * len(types))
                connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', [list(row) for row in rows])

    def connect(self, name: str, beside: Sequence[str] = ()) -> Server:
        return DuckDBFile(self.path, "main", name, None, beside)

    def close(self) -> None:
        self.few.undo()


class InPostgreSQL(Engine):
    def __init__(self, folder: Path) -> None:
        unusual = ("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e-400", "-1e-400", "1e37", "1e36")
        endless = dict.fromkeys(("day", "time", "zoned"), ENDLESS)
        more = {"real": UNUSUAL_FLOATS, "exact": [Decimal(text) for text in unusual], **endless}
        super().__init__({**STANDARD, "exact": "NUMERIC"}, more)
        self.owner = psycopg.connect(shared_postgresql().url(), autocommit=True)
        self.owner.execute(
            f"DO $$ BEGIN CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'; EXCEPTION WHEN duplicate_object THEN END $$"
        )

    def make(self, name: str, types: Mapping[str, str], rows: Sequence[Sequence[object]]) -> None:
        columns = ", ".join(f'"{column}" {kind}' for column, kind in types.items())
        self.owner.execute(
            f'DROP TABLE IF EXISTS "{name}"; CREATE TABLE "{name}" ({columns}); GRANT SELECT ON "{name}" TO reader'
        )
        if rows:
            marks = ", ".join("%s" for _ in types)
            with self.owner.cursor() as cursor:
                cursor.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)

    def close(self) -> None:
        self.owner.close()

    def connect(self, name: str, beside: Sequence[str] = ()) -> Server:
        return PostgreSQLServer(shared_postgresql().url(user="reader"), "public", name, PASSWORD, 60, beside)


class InMariaDB(Engine):
    def __init__(self, folder: Path) -> None:
        types = {
            "words": "TEXT COLLATE utf8mb4_general_ci",
            "flag": "TINYINT",
            "time": "DATETIME(6)",
            "zoned": "TIMESTAMP(6)",
        }
        super().__init__({**STANDARD, **types}, {})
        self.owner = shared_mariadb().owner()
        self.run("CREATE OR REPLACE DATABASE clinic CHARACTER SET latin1")
        self.run(f"CREATE OR REPLACE USER reader@localhost IDENTIFIED BY '{PASSWORD}'")
        self.run("SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES'")
        self.run("SET SESSION time_zone = '+00:00'")

    def run(self, sql: str, rows: Sequence[Sequence[object]] | None = None) -> None:
        with self.owner.cursor() as cursor:
            cursor.execute(sql) if rows is None else cursor.executemany(sql, rows)

    def make(self, name: str, types: Mapping[str, str], rows: Sequence[Sequence[object]]) -> None:
        columns = ", ".join(f"`{column}` {kind} NULL" for column, kind in types.items())
        self.run(f"CREATE OR REPLACE TABLE clinic.`{name}` ({columns}) ENGINE = InnoDB")
        self.run(f"GRANT SELECT ON clinic.`{name}` TO reader@localhost")
        if rows:
            marks = ", ".join("%s" for _ in types)
            stored = [[_without_zone(value) for value in row] for row in rows]
            self.run(f"INSERT INTO clinic.`{name}` VALUES ({marks})", stored)

    def close(self) -> None:
        self.owner.close()

    def connect(self, name: str, beside: Sequence[str] = ()) -> Server:
        return MariaDBServer(shared_mariadb().url("clinic", "reader"), "clinic", name, PASSWORD, 60, beside)


def _without_zone(value: object) -> object:
    """Times as MariaDB takes them: in the zone of the session, which is UTC."""
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value


class InSpark(Engine):
    """Parquet files, two of each table where there are enough rows, read by a local Spark."""

    def __init__(self, folder: Path) -> None:
        pytest.importorskip("pyspark")
        if shutil.which("java") is None:
            pytest.skip("Spark needs Java (Debian: default-jdk-headless)")
        super().__init__(STANDARD, {"real": UNUSUAL_FLOATS})
        self.folder = folder

    def make(self, name: str, types: Mapping[str, str], rows: Sequence[Sequence[object]]) -> None:
        for old in self.folder.glob(f"{name}.*.parquet"):
            old.unlink()
        columns = ", ".join(f'"{column}" {kind}' for column, kind in types.items())
        for number, part in enumerate((rows[::2], rows[1::2]) if rows else ([],)):
            with duckdb.connect() as connection:
                connection.execute(f"SET TimeZone = 'UTC'; CREATE TABLE stored ({columns})")
                if part:
                    marks = ", ".join("?" * len(types))
                    connection.executemany(f"INSERT INTO stored VALUES ({marks})", [list(row) for row in part])
                connection.execute(f"COPY stored TO '{self.folder}/{name}.{number}.parquet'")

    url = "spark:local[2]"

    def connect(self, name: str, beside: Sequence[str] = ()) -> Server:
        files = {table: f"{self.folder}/{table}.*.parquet" for table in (name, *beside)}
        return SparkFiles(self.url, files.pop(name), None, files)

    def close(self) -> None:
        stop_spark()


class InSparkConnect(InSpark):
    """A cluster of two workers behind a server that speaks Spark Connect."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server = spark_connect()
        self.url = self._server.__enter__()

    def close(self) -> None:
        self._server.__exit__(None, None, None)


PANDAS = "ignore:PySpark does not yet fully support pandas"
HEAVY = (pytest.mark.soak, pytest.mark.filterwarnings("ignore:The SQL config", PANDAS))
SPARKS = [pytest.param(engine, marks=HEAVY) for engine in (InSpark, InSparkConnect)]
ENGINES = [InDuckDB, InPostgreSQL, InMariaDB, *SPARKS]


@pytest.fixture(scope="module", params=ENGINES, ids=lambda engine: engine.__name__)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made: Engine = request.param(tmp_path_factory.mktemp("engine"))
    yield made
    made.close()


def test_odd_values_have_the_cells_of_the_rule(engine: Engine) -> None:
    """Every kind of column over every type of storage, row by row."""
    values = {name: [*column, *engine.more.get(name, ()), None] for name, column in COLUMNS.items()}
    length = max(map(len, values.values()))
    padded = {name: [*column, *[None] * (length - len(column))] for name, column in values.items()}
    pairs = [(name, attribute) for name in COLUMNS for attribute in KINDS if fits(name, attribute)]
    copies = {f"{name} as {attribute.name}": (name, attribute) for name, attribute in pairs}
    types = {"id": "BIGINT"} | {copy: engine.types[name] for copy, (name, _) in copies.items()}
    rows = [[number, *(padded[name][number] for name, _ in copies.values())] for number in range(length)]
    engine.make("odd", types, rows)
    ids = IntegerRange(name="id", lower=0, upper=length - 1)
    source = engine.open("odd", Domain((ids, *(replace(kind, name=copy) for copy, (_, kind) in copies.items()))))
    wrong = []
    for copy, (name, attribute) in copies.items():
        counts = source.table(("id", copy))[:length]
        assert counts.sum(axis=1).tolist() == [1] * length
        for value, found in zip(padded[name], counts.argmax(axis=1), strict=True):
            if found != cell(attribute, value):
                wrong.append((copy, value, int(found), cell(attribute, value)))
    assert wrong == [], wrong
    assert sum(len(padded[name]) for name, _ in copies.values()) > 10_000


@pytest.mark.thinned(3)
def test_no_row_of_the_first_partitions_is_passed_over(engine: Engine) -> None:
    """And of the others, every value that is declared is."""
    values = [
        (name, value) for name, column in COLUMNS.items() for value in [*column, *engine.more.get(name, ()), None]
    ]
    types = {"id": "BIGINT"} | {name: engine.types[name] for name in COLUMNS}
    rows = [[place, *(value if name == own else None for name in COLUMNS)] for place, (own, value) in enumerate(values)]
    engine.make("odd days", types, rows)
    server = engine.connect("odd days")
    columns = {name: (server.dialect.name(name), stored) for name, stored in server.columns().items() if stored}

    def read(name: str, attribute: Attribute, first: int) -> set[int] | None:
        """The rows that are read for so many partitions; None where all are."""
        domain = Domain((replace(attribute, name=name),), partition=name)
        among = rows_of_first(server.dialect, columns, domain, first)
        if among == EVERY_ROW:
            return None
        own = ", ".join(str(place) for place, (whose, _) in enumerate(values) if whose == name)
        lines = server.lines(f"SELECT id FROM {server.relation} AS raw_ WHERE id IN ({own}) AND {among}", None)
        return {int(line[0]) for block in lines for line in block}

    narrowed, missed_one_earlier = 0, 0
    for name, attribute in product(COLUMNS, (kind for kind in KINDS if isinstance(kind, Dates | IntegerRange))):
        cells = {place: cell(attribute, value) for place, (own, value) in enumerate(values) if own == name}
        for first in (0, 1, 2, attribute.declared // 2, attribute.declared - 1, attribute.declared, attribute.size):
            found = read(name, attribute, first)
            if found is not None:
                narrowed += 1
                strays = {attribute.null_cell, attribute.other, 0, attribute.declared - 1}
                assert {place for place, at in cells.items() if at < first} <= found, (name, attribute, first)
                assert not {place for place in found if first <= cells[place] and cells[place] not in strays}
                missed_one_earlier += any(at < first + 1 and place not in found for place, at in cells.items())
    server.close()
    assert narrowed > 50
    assert missed_one_earlier > 10  # so that a condition that ends one partition too early would be found


# --- counts, bounds and hashes -----------------------------------------------------------------------------------

PEOPLE = {"id": "words", "age": "whole", "town": "words", "day": "day"}
NAMES = ["ann", "bob", None, "ann", "eve", "ann", "ann", "bob", None, "ünal's", "ünal's", "ann", "ann", "Ann", "ann "]
AGES = [3, 44, 5, 99, None, 3, 3, 120, 1, -4, 50, 7, 8, 3, 3]
TOWNS = ["x", "y", "x", None, "z", "x", "x", "y", "y", "x", "x", "y", "z", "x", "X"]
MONTHS = [3, 1, 2, 2, 2, 3, 3, 1, 1, 9, 3, 1, 2, 3, 3]
ROWS = list(zip(NAMES, AGES, TOWNS, [date(2021, month, 1) for month in MONTHS], strict=True))
DOMAIN = Domain(
    (
        IntegerRange(name="age", lower=0, upper=99),
        Categories(name="town", values=("x", "y")),
        Dates(name="day", first=date(2021, 1, 1), last=date(2021, 4, 1), by=Period.MONTH),
    ),
    partition="day",
)
CELLS = [tuple(cell(a, v) for a, v in zip(DOMAIN.attributes, row[1:], strict=True)) for row in ROWS]


def people(
    engine: Engine, domain: Domain = DOMAIN, unit: Unit | None = None, rows: Sequence[object] = ROWS
) -> SqlSource:
    engine.make("people", {name: engine.types[kind] for name, kind in PEOPLE.items()}, rows)  # type: ignore[arg-type]
    return engine.open("people", domain, unit)


def nonzero(counts: np.ndarray) -> dict[tuple[int, ...], int]:
    return {place: int(count) for place, count in np.ndenumerate(counts) if count}


def test_joint_counts_in_the_order_asked(engine: Engine) -> None:
    source = people(engine)
    for attrs in ((), ("town",), ("day", "town"), ("town", "age", "day"), ("age", "town", "day")):
        places = [DOMAIN.place(name) for name in attrs]
        counts = source.table(attrs)
        assert counts.shape == DOMAIN.sizes(attrs)
        assert counts.dtype == np.int64
        assert nonzero(counts) == Counter(tuple(row[place] for place in places) for row in CELLS), attrs


@pytest.mark.thinned(4)
@pytest.mark.parametrize("k", [1, 2, 3, 50])
@pytest.mark.parametrize("partition", [None, "day"])
def test_contributions_are_bounded_as_written(engine: Engine, k: int, partition: str | None) -> None:
    domain = Domain(DOMAIN.attributes, partition)
    unit = Unit(column="id", max_contributions=k)
    first = None if partition is None else domain.place(partition)
    kept = bounded(KEY, CELLS, NAMES, k, domain.sizes(domain.names), first)
    alone = people(engine, domain, unit)
    together = engine.open("people", domain, unit, max_rows=10**8)  # too many to keep people apart
    assert nonzero(alone.table(domain.names)) == nonzero(together.table(domain.names)) == kept
    assert alone.content() == together.content()


@pytest.mark.thinned(4)
@pytest.mark.parametrize("k", [1, 2, 50])
def test_people_and_values_are_counted_once(engine: Engine, k: int) -> None:
    source = people(engine, unit=Unit(column="id", max_contributions=k))
    kept = bounded_people(k)
    towns = Product((Mask(("town",), (4,), Steps.identity(4)),))
    whole = Predicate(("age",), (DOMAIN["age"].size,), Within("age", ((0, 60),)))
    for groups, place in ((towns, 1), (whole, None)):
        seen = {(unit, row[1] if place else 0) for unit, row in kept if place or row[0] < 60}
        expected = [sum(group == number for _, group in seen) for number in range(groups.rows)]
        assert source.distinct(Distinct(groups)).tolist() == expected
        ages = {(row[0], row[1] if place else 0) for _, row in kept if place or row[0] < 60}
        expected = [sum(group == number for _, group in ages) for number in range(groups.rows)]
        assert source.distinct(Distinct(groups, "age")).tolist() == expected
    assert people(engine).distinct(Distinct(towns, "age")).sum() > 0
    with pytest.raises(QueryError, match="people cannot be counted"):
        people(engine).distinct(Distinct(towns))
    with pytest.raises(QueryError, match="people cannot be counted"):
        engine.open("people", DOMAIN, Unit(column="id"), max_rows=10**8).distinct(Distinct(towns))


def bounded_people(k: int) -> list[tuple[str, tuple[int, ...]]]:
    """Units with each of the rows that are kept of them."""
    found = []
    for unit in {name for name in NAMES if name is not None}:
        mine = [name if name == unit else None for name in NAMES]
        kept = bounded(KEY, CELLS, mine, k, DOMAIN.sizes(DOMAIN.names), DOMAIN.place("day"))
        found += [(unit, row) for row in kept]
    return found


def test_whole_numbers_can_be_units(engine: Engine) -> None:
    engine.make(
        "numbered", {"id": engine.types["whole"], "age": engine.types["whole"]}, [(7, 1), (7, 1), (8, 2), (None, 3)]
    )
    source = engine.open("numbered", Domain((DOMAIN["age"],)), Unit(column="id"))
    assert nonzero(source.table(("age",))) == {(1,): 1, (2,): 1}


def test_columns_can_have_the_names_that_the_statement_uses(engine: Engine) -> None:
    whole = engine.types["whole"]
    names = ("u", "rows_", "unit_", "person_", "k0", "r0")
    engine.make("alike", dict.fromkeys(names, whole), [(1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6), (2, 3, 4, 5, 6, 7)])
    domain = Domain(tuple(IntegerRange(name=name, lower=0, upper=9) for name in names[1:]))
    for max_rows in (1000, 10**8):
        source = engine.open("alike", domain, Unit(column="u", max_contributions=1), max_rows=max_rows)
        assert nonzero(source.table(domain.names)) == {(2, 3, 4, 5, 6): 1, (3, 4, 5, 6, 7): 1}


@pytest.mark.thinned(3)
def test_every_partition_has_a_content_hash_of_its_own(engine: Engine) -> None:
    for unit in (Unit(), Unit(column="id", max_contributions=2)):
        before = people(engine, unit=unit).content()
        assert people(engine, unit=unit, rows=ROWS[::-1]).content() == before
        assert len(set(before)) == len(before) == DOMAIN["day"].size
        for month in (1, 2, 3):
            after = people(engine, unit=unit, rows=[*ROWS, ("new", 3, "x", date(2021, month, 1))]).content()
            assert [place for place, (a, b) in enumerate(zip(after, before, strict=True)) if a != b] == [month - 1]
        twice = people(engine, unit=unit, rows=[*ROWS, *[("new", 3, "x", date(2021, 2, 1))] * 2]).content()
        assert twice != before  # a digest by XOR would not notice
    plain = Domain(DOMAIN.attributes)
    assert len(people(engine, plain).content()) == 1
    assert people(engine, plain).content() != people(engine, plain, rows=ROWS[1:]).content()


@pytest.mark.thinned(6)
@pytest.mark.parametrize("unit", [Unit(), Unit(column="id", max_contributions=2)], ids=["rows", "people"])
def test_partitions_that_are_not_asked_for_stay_unread(engine: Engine, unit: Unit) -> None:
    every = people(engine, unit=unit)
    for max_rows in (10_000, 10**8):
        for first in range(DOMAIN["day"].size + 1):
            some = SqlSource(lambda: engine.connect("people"), DOMAIN, unit, KEY, max_rows)
            assert some.content(first)[:first] == every.content()[:first]
            counts, expected = some.table(("day", "age")), every.table(("day", "age"))
            assert counts[:first].tolist() == expected[:first].tolist()
            if first < 4:
                assert counts.sum() == expected[:first].sum()
    few = SqlSource(lambda: engine.connect("people"), DOMAIN, unit, KEY, 4)
    assert few.content(1)[0] == every.content()[0]  # of the rows that are read there are no more than four
    few = SqlSource(lambda: engine.connect("people"), DOMAIN, unit, KEY, 4)
    with pytest.raises(SourceError, match="more rows than max_rows = 4"):
        few.content()


def test_conditions_are_counted(engine: Engine) -> None:
    source = people(engine)
    condition = Quorum(
        1, (Within("town", ((0, 1), (2, 3))), Quorum(2, (Within("age", ((0, 9),)), Within("day", ((0, 1),)))))
    )
    predicate = Predicate(DOMAIN.names, DOMAIN.sizes(DOMAIN.names), condition)
    assert source.count(predicate) == sum(town in (0, 2) or (age < 9 and day == 0) for age, town, day in CELLS) > 0
    with pytest.raises(QueryError, match="does not fit the columns"):
        source.count(Predicate(("y",), (3,), Within("y", ((0, 1),))))


def test_no_rows_are_fine(engine: Engine) -> None:
    for unit in (Unit(), Unit(column="id", max_contributions=2)):
        source = people(engine, unit=unit, rows=[])
        assert source.table(("town", "age")).sum() == 0
        assert source.table(()).tolist() == 0
        assert [len(content) for content in source.content()] == [64] * DOMAIN["day"].size


def test_what_is_counted_was_fixed_at_the_opening(engine: Engine) -> None:
    source = people(engine)
    content = source.content()
    people(engine, rows=ROWS[:3])
    assert source.table(()).tolist() == len(ROWS)
    assert source.content() == content
    source.close()
    with pytest.raises(SourceError, match="the data could not be counted"):
        source.table(())


# --- joined tables ------------------------------------------------------------------------------------------------

TABLES = {
    "visits": {"person": "words", "stay": "whole", "kind": "words", "cost": "words"},
    "lines": {"number": "words", "kind": "words"},
    "patients": {"person": "words", "sex": "words", "height": "real"},
    "stays": {"stay": "words", "person": "words", "ward": "words", "day": "time"},
    "orders": {"id": "whole", "person": "whole", "shop": "words"},
    "kinds": {"id": "words", "price": "exact"},
}
PATIENTS = Parent(table="patients", keys=(), columns=("sex", "height"))
STAYS = Parent(table="stays", keys=(("stay", "stay"),), columns=("ward", "day"))
KINDS_OF = Parent(table="kinds", keys=(("kind", "id"),), columns=("price",), public=True)
ORDERS = Parent(table="orders", keys=(("number", "id"),), columns=("shop",), owner=True)
ALONE = Parent(table="stays", keys=(("stay", "stay"),), columns=())
JOINED = {
    "cost": Bins(name="cost", edges=(0.0, 1.5, 30.0)),
    "sex": Categories(name="sex", values=("F", "M")),
    "height": Bins(name="height", edges=(0.0, 1.5, 2.5)),
    "ward": Categories(name="ward", values=("A", "b", "ß")),
    "day": Dates(name="day", first=date(2021, 1, 1), last=date(2021, 3, 1), by=Period.MONTH),
    "price": IntegerRange(name="price", lower=0, upper=9),
    "shop": Categories(name="shop", values=("x", "y")),
}
WHO = ["ann", "Ann", "ann ", "ünal's", "eve", None, "", "7"]
STAY = [1, 2, -3, 2**60, None]
HEIGHTS = [1.0, -0.0, 2.5, 1e300, None, 3.0]
DAYS = [datetime(2021, month, 3, 23, 59, 59) for month in (1, 2, 9)]


def stored_rows() -> dict[str, list[tuple[object, ...]]]:
    """Rows with keys that are alike, missing, there twice, of two people; and values that are hard to read."""
    draw = np.random.default_rng(19)

    def some(values: Sequence[object]) -> object:
        return values[draw.integers(len(values))]

    costs = ["1", " 1 ", "1e400", "inf", "x", "", None, "2.5"]
    kinds = ["a", "A", "a ", "ä", "a\u0308", "", None, "no such kind"]
    texts = [None if key is None else str(key) for key in STAY] + ["01", "1 ", "x"]
    return {
        "visits": [(some(WHO), some(STAY), some(kinds), some(costs)) for _ in range(60)],
        "lines": [(some(["1", "2", "3", "01", "4", None]), some(kinds)) for _ in range(30)],
        "patients": [(some(WHO), some(["F", "M", "f", None]), some(HEIGHTS)) for _ in range(12)],
        "stays": [(some(texts), some(WHO), some(["A", "b", "B", "ß", "ss", None]), some(DAYS)) for _ in range(60)],
        "orders": [(some([1, 2, 3, None]), some([7, 8, None]), some(["x", "y", None])) for _ in range(12)],
        "kinds": [(kind, Decimal(price)) for price, kind in enumerate(kinds[:7])],
    }


def rows_with_parents(
    rows: Mapping[str, Sequence[tuple[object, ...]]], root: str, parents: Sequence[Parent], domain: Domain
) -> tuple[list[tuple[int, ...]], list[str | None]]:
    """The rule written out: cells of the joined rows, and whose each is."""

    def records(table: str) -> list[dict[str, object]]:
        return [dict(zip(TABLES[table], row, strict=True)) for row in rows[table]]

    def text(value: object) -> str | None:
        return None if value is None else str(value)

    def number(parent: Parent, row: Mapping[str, object]) -> int:
        total = 0
        for name in parent.columns:
            total = total * domain[name].size + cell(domain[name], row[name])
        return total

    secret = hashlib.blake2b(b"choice", key=KEY, digest_size=32).hexdigest()

    def kept(parent: Parent, own: Sequence[Mapping[str, object]]) -> Mapping[str, object]:
        person = str(own[0]["person"])

        def rank(row: Mapping[str, object]) -> str:
            message = f"{secret}/row of {parent.table}/{len(person)}/{person}/{number(parent, row)}"
            return hashlib.sha256(message.encode()).hexdigest()

        return min(own, key=rank) if parent.columns else own[0]

    def met(parent: Parent, row: Mapping[str, object], who: str | None) -> Mapping[str, object] | None:
        found = [
            theirs
            for theirs in records(parent.table)
            if all(row[mine] is not None and text(row[mine]) == text(theirs[key]) for mine, key in parent.keys)
            and (parent.public or (who is not None and text(theirs["person"]) == who))
        ]
        return None if not found else found[0] if parent.public else kept(parent, found)

    cells, units = [], []
    owner = next((parent for parent in parents if parent.owner), None)
    for row in records(root):
        whose = [text(row.get("person"))]
        if owner is not None:
            whose = sorted({str(theirs["person"]) for theirs in records(owner.table) if theirs["person"] is not None})
        for who in whose:
            joined = dict(row)
            for parent in parents:
                theirs = met(parent, row, who)
                joined |= {name: None if theirs is None else theirs[name] for name in parent.columns}
                joined[parent.has] = theirs is not None
            if owner is None or joined[owner.has]:
                cells.append(tuple(cell(attribute, joined[attribute.name]) for attribute in domain.attributes))
                units.append(who)
    return cells, units


SHAPES = {
    "people": ("visits", (PATIENTS,)),
    "people, stays and a public list": ("visits", (KINDS_OF, STAYS, PATIENTS)),
    "whether there is one": ("visits", (ALONE,)),
    "owned by orders": ("lines", (KINDS_OF, ORDERS)),
    "owned by orders of people": ("lines", (PATIENTS, ORDERS)),
}


def joined_domain(root: str, parents: Sequence[Parent]) -> Domain:
    names = [*(name for name in TABLES[root] if name in JOINED), *(name for p in parents for name in p.columns)]
    flags = [Categories(name=p.has, values=(True, False), outside=1, null=1) for p in parents if not p.owner]
    return Domain((*(JOINED[name] for name in names), *flags))


def make_tables(engine: Engine, rows: Mapping[str, Sequence[tuple[object, ...]]]) -> None:
    for table, columns in TABLES.items():
        engine.make(table, {name: engine.types[kind] for name, kind in columns.items()}, rows[table])


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", SHAPES)
def test_joined_rows_are_those_of_the_rule(engine: Engine, name: str) -> None:
    """Bounded and not, people apart and not; and another choice among a person's rows would be seen."""
    root, parents = SHAPES[name]
    domain, rows = joined_domain(root, parents), stored_rows()
    make_tables(engine, rows)
    cells, units = rows_with_parents(rows, root, parents, domain)
    assert len(set(cells)) > 2
    for k in (1, 2, 100):
        kept = bounded(KEY, cells, units, k, domain.sizes(domain.names), None)
        unit = Unit(column="person", max_contributions=k)
        apart = engine.open(root, domain, unit, parents=parents)
        together = engine.open(root, domain, unit, 10**8, parents)
        assert nonzero(apart.table(domain.names)) == nonzero(together.table(domain.names)) == kept
        assert apart.content() == together.content()


@pytest.mark.thinned(3)
def test_a_change_of_any_joined_table_changes_the_content(engine: Engine) -> None:
    root, parents = SHAPES["people, stays and a public list"]
    domain, rows = joined_domain(root, parents), stored_rows()
    rows["visits"] = [("eve", 1, "a", "1")]
    rows |= {"patients": [("eve", "F", 1.0)], "stays": [("1", "eve", "A", DAYS[0])]}

    def content(changed: Mapping[str, list[tuple[object, ...]]]) -> tuple[str, ...]:
        make_tables(engine, {**rows, **changed})
        return engine.open(root, domain, Unit(column="person"), parents=parents).content()

    before = content({})
    assert content({"patients": [("eve", "F", 1.0), ("ann", "M", 2.0)]}) == before  # nobody who has a visit
    for changed in (
        {"patients": [("eve", "M", 1.0)]},
        {"stays": [("1", "eve", "b", DAYS[0])]},
        {"kinds": [("a", Decimal(5))]},
        {"patients": []},
    ):
        assert content(changed) != before


def test_what_cannot_be_joined_is_refused(engine: Engine) -> None:
    rows = stored_rows()
    root, parents = SHAPES["people, stays and a public list"]
    domain, unit = joined_domain(root, parents), Unit(column="person")
    make_tables(engine, rows)
    with pytest.raises(SourceError, match="more rows than max_rows = 59"):
        engine.open(root, domain, unit, 59, parents)
    with pytest.raises(SourceError, match="needs a unit column"):
        engine.open(root, domain, Unit(), parents=parents)
    by_day = Parent(table="stays", keys=(("stay", "day"),), columns=())
    with pytest.raises(SourceError, match="the column day must be text or a whole number"):
        engine.open(root, joined_domain(root, (by_day,)), unit, parents=(by_day,))
    nothing = Parent(table="stays", keys=(("stay", "nothing"),), columns=())
    with pytest.raises(SourceError, match="the table stays: the column nothing is not there"):
        engine.open(root, joined_domain(root, (nothing,)), unit, parents=(nothing,))
    for parents in ((ORDERS,), (replace(PATIENTS, table="kinds", keys=(("kind", "id"),), columns=()),)):
        with pytest.raises(SourceError, match=r"one owner table|the column person is not there"):
            engine.open(root, joined_domain(root, parents), unit, parents=parents)
    make_tables(engine, {**rows, "kinds": [("a", Decimal(1)), ("a", Decimal(1))]})
    with pytest.raises(SourceError, match="the public table kinds has several rows for one key"):
        engine.open(root, joined_domain(root, (KINDS_OF,)), unit, parents=(KINDS_OF,))


# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        (Categories(name="age", values=("1", "2")), "age is no text in the database"),
        (Categories(name="town", values=("a\x00",)), "the character 0"),
        (Categories(name="town", values=tuple(map(str, range(10_001)))), "10001 listed values or bins"),
        (Categories(name="age", values=(10**37,)), "at most 37 digits"),
        (IntegerRange(name="age", lower=2**53 - 9, upper=2**53), "must lie within 2"),
        (Bins(name="age", edges=(0.0, 1e291)), "must lie between 1e-290 and 1e\\+290"),
        (Dates(name="day", first=date(9991, 1, 1), last=date(9991, 1, 2), by=Period.DAY), "up to the year 9990"),
        (IntegerRange(name="nothing", lower=0, upper=1), "the column nothing is not there"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_engines_could_not_agree_about_is_refused(engine: Engine, attribute: Bins, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        people(engine, Domain((attribute,)))


def test_other_refusals(engine: Engine) -> None:
    people(engine)
    with pytest.raises(SourceError, match="more rows than max_rows = 14"):
        engine.open("people", DOMAIN, max_rows=14)
    with pytest.raises(SourceError, match="the unit column day must be text or a whole number"):
        engine.open("people", DOMAIN, Unit(column="day"))
    with pytest.raises(SourceError, match="16 to 64 bytes"):
        SqlSource(lambda: engine.connect("people"), DOMAIN, Unit(), b"short", 100)
    wide = Domain(tuple(IntegerRange(name=name, lower=0, upper=10**6) for name in ("age", "b")))
    with pytest.raises(SourceError, match="different rows would have to be kept in memory"):
        engine.open("people", wide, max_rows=10**9)
