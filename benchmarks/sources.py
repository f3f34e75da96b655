"""Tables where they are: `python -m benchmarks.sources [--quick] [--engines duckdb ...] [--rows N] [--out DIR]`.

The same rows (10^6 with --quick, else 10^7, or as many as are asked for; 200,000 people, at most 10 rows of each are
counted) in every engine. What is done next is told on stderr.
Servers are started for the purpose, one after the other; an engine that is not installed is left out and named.

`bare_s` is the engine's own GROUP BY of two columns over the raw table, as its driver fetches it. `first_s` is the pass
that codes, bounds and counts when data are opened, with reading the counts; `digest_s` the content hash alone, which is
computed from them. `next_s` is the data part of a fresh question over the same two columns, and `next_over_bare` what
it is of the bare statement: at most 1.2 is wanted. `peak_mb` is the most memory of our process, wanted below 400; it
loads nothing but what a question needs. `network_mb` is what came from a database's server: the counts, once. `cpu_s`
is the processor time of our process in `first_s`, without that of servers. Medians of five, except for `first_s`.

`duckdb unbounded` is `duckdb` with every row a person of its own: what bounding costs is the ratio of their `cpu_s`.
`duckdb in place` is a `duckdb:` url. `with a folder` is where the owner names one for what is above a limit of memory
(BURSAR_SPILL).
`postgresql kept` reads cells that the owner's role has put into a table (`fill_s`, once for all processes), and
`postgresql in place` leaves them there, as where memory is not enough: every question adds them up in the server.
"""

from __future__ import annotations

import multiprocessing
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import Figures, options, peak_mb, report
from bursar.core.domain import Bins, Categories, Dates, Domain, IntegerRange, Period, Unit
from bursar.core.source.servers.cell_table import CellTable, CellTableSource
from bursar.core.source.servers.kept_cells import MOST_BYTES
from bursar.core.source.servers.postgresql_cells import PostgreSQLCells, PostgreSQLFiller
from bursar.core.source.source import Source

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # how servers are started is known there

PEOPLE = 200_000
STATES = 50
TIMES = 5
KEY = bytes(32)
UNIT = Unit(column="id", max_contributions=10)
DOMAIN = Domain(
    (
        Categories(name="state", values=tuple(f"state {number}" for number in range(STATES))),
        IntegerRange(name="age", lower=0, upper=99),
        Dates(name="day", first=date(2024, 1, 1), last=date(2024, 12, 30), by=Period.WEEK),
        Bins(name="income", edges=tuple(float(edge) for edge in range(0, 100_001, 10_000))),
    )
)
ASKED = ("state", "age")


def columns(i: str, day: str, text: str = "CONCAT") -> str:
    """The same rows in every dialect, from a running number: remainders by primes look random enough."""
    return (
        f"({i} * 48271 % 2147483647) % {PEOPLE} AS id, "
        f"{text}('state ', ({i} * 16807 % 2147483647) % {STATES}) AS state, "
        f"({i} * 69621 % 2147483647) % 110 AS age, {day.format(f'({i} * 40692 % 2147483399) % 365')} AS day, "
        f"({i} * 30269 % 2147483629) % 110000 * 1e0 AS income"
    )


Opened = Callable[[], Source]


def in_duckdb(rows: int, folder: Path) -> Path:
    """By a process of its own: those that are started later would count the memory that this takes as theirs."""
    path = folder / "people.duckdb"
    process = multiprocessing.get_context("spawn").Process(target=_make_in_duckdb, args=(rows, path))
    process.start()
    process.join()
    return path


def _make_in_duckdb(rows: int, path: Path) -> None:
    import duckdb

    with duckdb.connect(str(path)) as connection:
        made = columns("i", "CAST(DATE '2024-01-01' + CAST({} AS INTEGER) AS DATE)")
        connection.execute(f"CREATE TABLE people AS SELECT {made} FROM range({rows}) AS r(i)")
        connection.execute(f"COPY people TO '{path.with_suffix('.parquet')}'")


def duckdb_bare(path: Path) -> Callable[[], object]:
    import duckdb

    connection: Any = duckdb.connect(str(path), read_only=True)
    return lambda: connection.execute("SELECT state, age, count(*) FROM people GROUP BY state, age").fetchnumpy()


def measured(name: str, prepare: Callable[..., tuple[Opened, Callable[[], Any]]], *given: object) -> dict[str, float]:
    """Figures of one engine, in a process of its own, so that memory is told apart."""
    tell(f"{name}: opening and asking")
    context = multiprocessing.get_context("spawn")
    ends = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(ends[1], prepare, given))
    process.start()
    ends[1].close()
    try:
        figures: dict[str, float] = ends[0].recv()
    except EOFError:
        figures = {}
    process.join()
    return figures


def tell(step: str) -> None:
    print(f"{time.strftime('%X')} {step}", file=sys.stderr, flush=True)


def _measure(end: Any, prepare: Callable[..., tuple[Opened, Callable[[], Any]]], given: tuple[object, ...]) -> None:
    opened, bare_of = prepare(*given)
    cpu = time.process_time()
    first, source = _timed(lambda: _read(opened()))
    digest, _ = _timed(source.content)
    cpu = time.process_time() - cpu
    nexts = [_timed(lambda: source.table(ASKED))[0] for _ in range(TIMES)]
    peak = peak_mb()  # before the bare statement, which fetches through the driver
    bare_statement = bare_of()
    bare = median(_timed(bare_statement)[0] for _ in range(TIMES))
    figures = {"bare_s": bare, "first_s": first + digest, "digest_s": digest, "next_s": median(nexts), "cpu_s": cpu}
    end.send({"next_over_bare": median(nexts) / bare, **figures, "peak_mb": peak})


def _read(source: Source) -> Source:
    source.table(())
    return source


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def duckdb_loaded(path: Path, rows: int, unit: Unit, spill: Path | None = None) -> tuple[Opened, Callable[[], Any]]:
    from bursar.core.source.duckdb import DuckDBSource

    return (
        lambda: DuckDBSource(path, DOMAIN, unit, KEY, 2 * rows, table="people", spill=spill),
        lambda: duckdb_bare(path),
    )


def duckdb_in_place(path: Path, rows: int, spill: Path | None = None) -> tuple[Opened, Callable[[], Any]]:
    from bursar.core.source.servers.duckdb_file import DuckDBFile
    from bursar.core.source.servers.sql_source import SqlSource

    return (
        lambda: SqlSource(lambda: DuckDBFile(path, "main", "people", spill), DOMAIN, UNIT, KEY, 2 * rows),
        lambda: duckdb_bare(path),
    )


BARE = "SELECT state, age, count(*) FROM people GROUP BY state, age"


def postgresql(url: str, direct: str, password: str, rows: int) -> tuple[Opened, Callable[[], Any]]:
    from bursar.core.source.servers.postgresql import PostgreSQLServer
    from bursar.core.source.servers.sql_source import SqlSource

    def bare() -> Callable[[], object]:
        import psycopg

        connection = psycopg.connect(direct, password=password)
        return lambda: connection.execute(BARE, binary=True).fetchall()

    return (
        lambda: SqlSource(
            lambda: PostgreSQLServer(url, "public", "people", password, 3600), DOMAIN, UNIT, KEY, 2 * rows
        ),
        bare,
    )


def cell_table(rows: int, most_bytes: int) -> CellTable:
    return CellTable(DOMAIN, UNIT, KEY, 2 * rows, most_bytes)


def postgresql_cells(
    url: str, direct: str, password: str, rows: int, most_bytes: int
) -> tuple[Opened, Callable[[], Any]]:
    table, bare = cell_table(rows, most_bytes), postgresql(url, direct, password, rows)[1]
    return lambda: CellTableSource(lambda: PostgreSQLCells(url, "kept", "people", password, 3600), table), bare


def mariadb(url: str, password: str, socket: str, rows: int) -> tuple[Opened, Callable[[], Any]]:
    from bursar.core.source.servers.mariadb import MariaDBServer
    from bursar.core.source.servers.sql_source import SqlSource

    def bare() -> Callable[[], object]:
        import pymysql

        connection = pymysql.connect(unix_socket=socket, user="reader", password=password, database="bench")

        def ask() -> object:
            with connection.cursor() as cursor:
                cursor.execute(BARE)
                return cursor.fetchall()

        return ask

    return (
        lambda: SqlSource(lambda: MariaDBServer(url, "bench", "people", password, 3600), DOMAIN, UNIT, KEY, 2 * rows),
        bare,
    )


def spark(files: str, rows: int) -> tuple[Opened, Callable[[], Any]]:
    from bursar.core.source.servers.spark import SparkFiles
    from bursar.core.source.servers.sql_source import SqlSource

    def bare() -> Callable[[], object]:
        from pyspark.sql import SparkSession

        session = SparkSession.builder.getOrCreate()
        session.read.parquet(files).createOrReplaceTempView("people")
        return lambda: session.sql(BARE).toArrow()

    return lambda: SqlSource(lambda: SparkFiles("spark:local[2]", files), DOMAIN, UNIT, KEY, 2 * rows), bare


def run_duckdb(rows: int, folder: Path) -> Figures:
    path = in_duckdb(rows, folder)
    ways: dict[str, tuple[Any, ...]] = {
        "duckdb": (duckdb_loaded, path, rows, UNIT),
        "duckdb with a folder": (duckdb_loaded, path, rows, UNIT, folder),
        "duckdb unbounded": (duckdb_loaded, path, rows, Unit()),
        "duckdb in place": (duckdb_in_place, path, rows),
        "duckdb in place with a folder": (duckdb_in_place, path, rows, folder),
    }
    return {name: measured(name, *way) for name, way in ways.items()}


def run_postgresql(rows: int, folder: Path) -> Figures:
    from harness import servers
    from harness.network import network

    settings = {"fsync": "off", "max_wal_size": "'8GB'", "shared_buffers": "'256MB'", "work_mem": "'64MB'"}
    made = columns("i", "date '2024-01-01' + CAST({} AS int)")
    with servers.postgresql(settings) as server:
        servers.administer(
            server.url(),
            f"CREATE TABLE people AS SELECT {made} FROM generate_series(0::bigint, {rows} - 1) AS i",
            f"CREATE ROLE reader LOGIN PASSWORD '{servers.PASSWORD}'; GRANT SELECT ON people TO reader",
            "CREATE SCHEMA kept; GRANT USAGE ON SCHEMA kept TO reader",
            "VACUUM ANALYZE people",
        )
        figures: Figures = {}
        own, door = (place / f".s.PGSQL.{server.port}" for place in (server.folder, folder))
        given = (server.url(user="reader", host=str(folder)), server.url(user="reader"), servers.PASSWORD, rows)
        for name, most_bytes in (("postgresql", None), ("postgresql kept", MOST_BYTES), ("postgresql in place", 0)):
            filled = {} if most_bytes is None else {"fill_s": fill(server.url(), cell_table(rows, most_bytes))}
            way = (postgresql, *given) if most_bytes is None else (postgresql_cells, *given, most_bytes)
            with network(own, door) as between:
                figures[name] = measured(name, *way) | {"network_mb": between.received / 2**20} | filled
            door.unlink()
        return figures


def fill(owner: str, table: CellTable) -> float:
    """How long the owner's role takes to put the cells into their table."""
    tell("postgresql: filling the table of cells")
    place = ("public", "people", 3600)
    return _timed(lambda: table.fill(lambda: PostgreSQLFiller(owner, *place, cells="kept", reader="reader"), None))[0]


def run_mariadb(rows: int, folder: Path) -> Figures:
    from harness import servers
    from harness.network import network

    made = columns("seq", "CAST(DATE '2024-01-01' + INTERVAL {} DAY AS DATE)")
    with servers.mariadb() as server:
        server.administer(
            "CREATE DATABASE bench",
            "USE bench",
            f"CREATE TABLE bench.people ENGINE = InnoDB SELECT {made} FROM seq_0_to_{rows - 1}",
            f"CREATE USER reader IDENTIFIED BY '{servers.PASSWORD}'",
            "GRANT SELECT ON bench.people TO reader",
        )
        direct, door = server.folder / "socket", folder / "mariadb"
        url = server.url("bench", "reader").replace(str(direct), str(door))
        with network(direct, door) as between:
            figures = measured("mariadb", mariadb, url, servers.PASSWORD, str(direct), rows)
        return {"mariadb": {**figures, "network_mb": between.received / 2**20}}


def run_spark(rows: int, folder: Path) -> Figures:
    import pyspark  # noqa: F401

    if not (folder / "people.parquet").exists():
        in_duckdb(rows, folder)
    return {"spark": measured("spark", spark, str(folder / "people.parquet"), rows)}


ENGINES = {"duckdb": run_duckdb, "postgresql": run_postgresql, "mariadb": run_mariadb, "spark": run_spark}


def main() -> None:
    """Measure every engine that is there."""
    from _pytest.outcomes import Skipped

    engines = {"nargs": "+", "choices": list(ENGINES), "default": list(ENGINES), "help": "which of them"}
    number = {"type": lambda text: int(float(text)), "default": None, "help": "how many, 1e8 for example"}
    args = options(__doc__ or "", engines=engines, rows=number)
    rows = args.rows or (10**6 if args.quick else 10**7)
    folder = Path(tempfile.mkdtemp(prefix="sources-"))
    figures: Figures = {}
    try:
        for name in args.engines:
            tell(f"{name}: {rows} rows are made")
            try:
                figures |= ENGINES[name](rows, folder)
            except (Skipped, ImportError) as reason:
                print(f"{name} is left out: {reason}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report("sources", args, figures)


if __name__ == "__main__":
    main()
