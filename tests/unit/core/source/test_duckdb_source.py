"""The DuckDB source: what it refuses, that it is locked, that it bounds contributions, and its hashes."""

from __future__ import annotations

import hashlib
import os
import random
import struct
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bursar.core.domain import Categories, Domain, IntegerRange, Unit
from bursar.core.extensions.open_keys import OpenText
from bursar.core.source import duckdb as duckdb_module
from bursar.core.source import raw as raw_module
from bursar.core.source.duckdb import SETTINGS, DuckDBSource, started
from bursar.core.source.raw import FAILED
from bursar.core.source.servers.duckdb_file import DuckDBFile
from bursar.core.source.source import MOST_CELLS, Source
from bursar.errors import QueryError, SourceError
from bursar.sources import spill_folder

KEY = bytes(range(32))
DOMAIN = Domain((IntegerRange(name="age", lower=0, upper=9), Categories(name="town", values=("a", "b"))))
SECRET_VALUE = "a value that nobody may see"


def write(path: Path, rows: list[tuple[object, ...]], header: str = "id,age,town") -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def opened(location: object, unit: Unit | None = None, **options: Any) -> DuckDBSource:
    facts: dict[str, Any] = {"domain": DOMAIN, "key": KEY, "max_rows": 1000} | options
    return DuckDBSource(location, unit=unit or Unit(), **facts)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return write(tmp_path / "people.csv", [(1, 3, "a"), (1, 4, "b"), (2, 3, "a"), (3, 99, "zzz")])


# --- memory ----


@pytest.mark.heavy
def test_what_does_not_fit_into_memory_goes_into_the_folder_or_fails(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "spill"
    folder.mkdir(mode=0o700)
    source = opened(people, spill=folder)
    assert source._connection.execute("SELECT current_setting('temp_directory')").fetchone() == (str(folder),)
    source.close()
    monkeypatch.setitem(SETTINGS, "memory_limit", "48MB")
    monkeypatch.setitem(SETTINGS, "threads", "1")
    much = "CREATE TABLE much AS SELECT i::VARCHAR AS id, hash(i) AS place FROM range(2000000) AS r(i) ORDER BY place"
    with started(None) as connection, pytest.raises(duckdb.OutOfMemoryException):
        connection.execute(much)
    with started(folder) as connection:
        connection.execute(much)
        assert connection.execute("SELECT count(*) FROM much").fetchone() == (2_000_000,)
        assert any(folder.iterdir())
        assert not list(folder.glob("*.duckdb"))  # it has no name, so a process that is killed does not leave it behind
    assert list(folder.iterdir()) == []


def test_what_lies_in_the_folder_has_no_name(people: Path, tmp_path: Path) -> None:
    """So whoever reads the folder finds nothing to open, and a process that is killed leaves nothing behind."""
    folder = tmp_path / "spill"
    folder.mkdir(mode=0o700)
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.execute(f"CREATE TABLE rows AS FROM '{people}'")
    servers = [opened(people, spill=folder), DuckDBFile(tmp_path / "rows.duckdb", "main", "rows", folder)]
    assert list(folder.iterdir()) == []
    if Path("/proc/self/fd").exists():  # they are there all the same, as files of this process
        opened_files = [os.path.realpath(file) for file in Path("/proc/self/fd").iterdir()]
        assert sum(file.startswith(str(folder)) and file.endswith("(deleted)") for file in opened_files) == 2
    for server in servers:
        server.close()


@pytest.mark.heavy
def test_where_there_is_a_folder_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """Of a table in memory, a part of each row would stay there, and at some number of rows no limit would do."""
    columns = ", ".join(f"CAST(i % {90 + place} AS UTINYINT) AS c{place}" for place in range(6))
    much = f"CREATE TABLE much AS SELECT {columns} FROM range(8000000) AS r(i)"
    folder = {"temp_directory": str(tmp_path), "max_temp_directory_size": "1TB"}
    limits = {"memory_limit": "10MB", "threads": 1}
    in_memory = duckdb.connect(":memory:", config={**SETTINGS, **folder, **limits})
    with in_memory as connection, pytest.raises(duckdb.OutOfMemoryException):
        connection.execute(much)
    with started(tmp_path, limits) as connection:
        connection.execute(much)
        assert connection.execute("SELECT count(*) FROM much").fetchone() == (8_000_000,)


def test_memory_is_limited_where_there_is_a_folder(people: Path, tmp_path: Path) -> None:
    ask = "SELECT current_setting('memory_limit'), current_setting('threads')"
    limited, free = (opened(people, spill=folder)._connection.execute(ask).fetchone() for folder in (tmp_path, None))
    assert limited[0] == "228.8 MiB" != free[0]
    assert limited[1] <= 4
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.execute("CREATE TABLE rows (age INTEGER)")
    in_place = DuckDBFile(tmp_path / "rows.duckdb", "main", "rows", tmp_path)
    assert in_place._connection.execute(ask).fetchone() == limited
    in_place.close()


@pytest.mark.heavy
def test_many_rows_are_bounded_in_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.duckdb"
    with duckdb.connect(str(path)) as connection:
        made = "SELECT i % 20011 AS id, i * 48271 % 9 AS age, 'b' AS town FROM range(600000) AS r(i)"
        connection.execute(f"CREATE TABLE rows AS {made}")
    facts = {"unit": Unit(column="id", max_contributions=3), "max_rows": 10**6, "spill": tmp_path}
    expected = opened(path, **facts).content()
    monkeypatch.setattr(duckdb_module, "LIMITS", {"memory_limit": "20MB", "threads": 1})
    monkeypatch.setattr(duckdb_module, "GROUP_ROWS", 10_000)
    assert opened(path, **facts).content() == expected
    monkeypatch.setattr(duckdb_module, "GROUP_ROWS", 10**6)
    with pytest.raises(SourceError):
        opened(path, **facts)


def test_the_folder_is_named_by_its_path_and_is_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BURSAR_SPILL", raising=False)
    assert spill_folder() is None
    for named in ("spill", str(tmp_path / "none")):
        monkeypatch.setenv("BURSAR_SPILL", named)
        with pytest.raises(SourceError, match="BURSAR_SPILL names no folder"):
            spill_folder()
    tmp_path.chmod(0o750)
    monkeypatch.setenv("BURSAR_SPILL", str(tmp_path))
    with pytest.raises(SourceError, match="others can use the folder"):
        spill_folder()
    tmp_path.chmod(0o700)
    assert spill_folder() == tmp_path


# --- opening ---------------------------------------------------------------------------------------------------


def refusal(location: object, unit: Unit | None = None, **options: Any) -> str:
    """The text of the SourceError, after checking that it carries no trace of what DuckDB said."""
    with pytest.raises(SourceError) as caught:
        opened(location, unit, **options)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert SECRET_VALUE not in str(caught.value)
    return str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.csv") == f"there is no file {tmp_path / 'none.csv'}"
    assert refusal(str(tmp_path)) == f"there is no file {tmp_path}"
    assert "there is no file" in refusal("nul\0byte.csv")


def test_an_unknown_kind_of_file(tmp_path: Path) -> None:
    path = write(tmp_path / "people.xlsx", [])
    assert "its name must end in .csv, .csv.gz, .parquet, .duckdb or .db" in refusal(path)


def test_a_missing_column_is_named_and_no_other(tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", [], header=f"id,age,{SECRET_VALUE}")
    assert refusal(path) == f"{path} has no column town"
    assert refusal(path, Unit(column="person")) == f"{path} has no column town"


def test_column_names_are_matched_exactly(tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", [], header="id,Age,town")
    assert refusal(path) == f"{path} has no column age"


def test_a_missing_unit_column_is_named(people: Path) -> None:
    assert refusal(people, Unit(column="person")) == f"{people} has no column person"


def test_a_column_that_is_there_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", [], header="age,town,age,other,other")
    assert refusal(path) == f"{path} has two columns age"
    assert opened(write(path, [], header="age,town,other,other")).table(()) == 0


def test_too_many_rows(people: Path) -> None:
    assert refusal(people, max_rows=3) == f"{people} has more rows than max_rows = 3"
    assert opened(people, max_rows=4).table(()) == 4


@pytest.mark.parametrize(
    "text",
    [
        f"id,age,town\n1,2,a\n1,2,{SECRET_VALUE},4\n",
        f"id,age,town\n1,{SECRET_VALUE}\n",
        f'id,age,town\n1,2,"{SECRET_VALUE}\n',
        "id,age,town\n1,2,\udcff\n",
        "",
        '"id,age\n',
    ],
    ids=["long line", "short line", "open quote", "not UTF-8", "empty", "open header"],
)
def test_a_damaged_csv_file_has_one_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    expected = "cannot be read as CSV: UTF-8, one line of column names, then fields separated by commas"
    assert refusal(path) == f"{path} {expected}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("people.parquet", "cannot be read as Parquet"),
        ("people.duckdb", "cannot be read as a DuckDB file, or another process is writing to it"),
        ("people.db", "cannot be read as a DuckDB file, or another process is writing to it"),
        ("people.csv.gz", "cannot be read as CSV: UTF-8, one line of column names, then fields separated by commas"),
    ],
)
def test_a_damaged_file_of_another_kind(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(SECRET_VALUE * 100)
    assert refusal(path) == f"{path} {text}"


@pytest.mark.parametrize("frame", [5, None, [1, 2], object()], ids=["number", "none", "list", "object"])
def test_what_is_no_data_frame(frame: object) -> None:
    assert "the data frame cannot be read" in refusal(frame)


def test_a_frame_that_breaks_while_it_is_read() -> None:
    pandas = pytest.importorskip("pandas")

    class Breaks:
        def __str__(self) -> str:
            raise ValueError(SECRET_VALUE)

    frame = pandas.DataFrame({"age": [1], "town": pandas.Series([Breaks()], dtype=object)})
    assert "the data frame cannot be read" in refusal(frame)


def test_a_short_key_is_refused(people: Path) -> None:
    assert refusal(people, key=b"short") == "a source needs a secret key of 16 to 64 bytes"


def test_a_file_that_changes_while_it_is_read(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(connection: Any, location: object, *names: str | None) -> Any:
        found = raw_module.open_raw(connection, location, *names)
        write(people, [(1, 1, "a")])
        return found

    monkeypatch.setattr("bursar.core.source.duckdb.open_raw", slow)
    assert refusal(people) == f"{people} was changed while it was read; open it again"


# --- DuckDB files ----------------------------------------------------------------------------------------------


def database(path: Path, *statements: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


ONE_ROW = "AS SELECT 1 AS id, 3 AS age, 'a' AS town"


def test_the_only_table_needs_no_name(tmp_path: Path) -> None:
    path = database(tmp_path / "a.duckdb", f'CREATE TABLE "odd ""name" {ONE_ROW}', f"CREATE VIEW v {ONE_ROW}")
    assert opened(path).table(()) == 1
    assert opened(path, table='odd "name').table(()) == 1


def test_one_of_several_tables_is_named(tmp_path: Path) -> None:
    path = database(
        tmp_path / "a.db", f"CREATE TABLE one {ONE_ROW}", "CREATE SCHEMA s", f"CREATE TABLE s.two {ONE_ROW}"
    )
    assert opened(path, table="two").table(()) == 1
    assert refusal(path) == f"{path} has several tables or none; name the one to use"
    assert refusal(path, table="three") == f"{path} has no single table three"
    assert refusal(path, table="ONE") == f"{path} has no single table ONE"


def test_a_view_is_no_table(tmp_path: Path) -> None:
    path = database(tmp_path / "a.duckdb", f"CREATE VIEW v {ONE_ROW}")
    assert refusal(path, table="v") == f"{path} has no single table v"


def test_a_collation_does_not_merge_values_or_units(tmp_path: Path) -> None:
    columns = "id VARCHAR COLLATE NOCASE, age INTEGER, town VARCHAR COLLATE NOCASE"
    rows = "('x', 1, 'a'), ('X', 2, 'A'), ('x', 3, 'b')"
    path = database(tmp_path / "a.duckdb", f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES {rows}")
    domain = Domain((Categories(name="town", values=("a", "A")), DOMAIN["age"]))
    assert opened(path, domain=domain).table(("town",)).tolist() == [1, 1, 1, 0]
    assert opened(path, Unit(column="id"), domain=domain).table(()) == 2


def test_the_file_is_let_go_of(tmp_path: Path) -> None:
    path = database(tmp_path / "a.duckdb", f"CREATE TABLE t {ONE_ROW}")
    source = opened(path)
    before = source._stamp()
    database(path, "INSERT INTO t VALUES (2, 4, 'b')")
    assert source.table(()) == 1
    assert source._stamp() != before
    assert opened(path).table(()) == 2


def test_changes_in_the_write_ahead_log_are_seen(tmp_path: Path) -> None:
    path = database(tmp_path / "a.duckdb", f"CREATE TABLE t {ONE_ROW}")
    source = opened(path)
    before = source._stamp()
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO t VALUES (2, 4, 'b')")
        assert Path(f"{path}.wal").exists()
        assert source._stamp() != before


# --- the lock --------------------------------------------------------------------------------------------------

FORBIDDEN = [
    "SELECT * FROM read_csv('{path}')",
    "SELECT * FROM '{path}'",
    "SELECT * FROM read_text('{path}')",
    "SELECT * FROM glob('{folder}/*')",
    "ATTACH '{folder}/new.duckdb'",
    "COPY cells TO '{folder}/out.csv'",
    "COPY cells FROM '{path}'",
    "EXPORT DATABASE '{folder}/out'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET temp_directory = '{folder}'",
    "SET memory_limit = '1GB'",
    "SET GLOBAL threads = 1",
    "RESET temp_directory",
    "PRAGMA enable_profiling",
]


@pytest.mark.parametrize("cursor", [False, True])
def test_the_database_reaches_nothing_after_opening(people: Path, cursor: bool) -> None:
    source = opened(people)
    connection = source._connection.cursor() if cursor else source._connection
    before = sorted(os.listdir(people.parent))
    for sql in FORBIDDEN:
        with pytest.raises(duckdb.Error):
            connection.execute(sql.format(path=people, folder=people.parent)).fetchall()
        assert sorted(os.listdir(people.parent)) == before, sql
        assert source.table(()) == 4, sql


def test_the_same_commands_work_in_an_open_database(people: Path) -> None:
    """The power of the test above: without the lock, the file would be read and written."""
    with duckdb.connect(":memory:", config=SETTINGS) as connection:
        assert len(connection.execute(f"SELECT * FROM read_csv('{people}')").fetchall()) == 4
        connection.execute(f"COPY (SELECT 1) TO '{people.parent}/out.csv'")
        connection.execute("SET GLOBAL threads = 1")


@pytest.mark.parametrize("unit", [None, Unit(column="id", max_contributions=2)], ids=["row", "person"])
def test_only_counts_of_cells_are_left(people: Path, unit: Unit | None) -> None:
    source = opened(people, unit)
    found = source._connection.execute("SELECT database_name, table_name FROM duckdb_tables()").fetchall()
    assert sorted(found) == [
        ("memory", "cells"),
        *([] if unit is None else [("memory", "people"), ("memory", "totals")]),
    ]
    columns = source._connection.execute("DESCRIBE cells").fetchall()
    coded = [("c0", "UTINYINT"), ("c1", "UTINYINT"), ("rows", "BIGINT")]
    assert [column[:2] for column in columns] == coded
    if unit is not None:
        columns = source._connection.execute("DESCRIBE people").fetchall()
        assert [column[:2] for column in columns] == [("unit", "UINTEGER"), *coded]
        columns = source._connection.execute("DESCRIBE totals").fetchall()
        assert [column[:2] for column in columns] == [("unit", "UINTEGER"), ("rows", "BIGINT")]
    assert source._connection.execute("SELECT * FROM duckdb_views() WHERE NOT internal").fetchall() == []
    assert [name for (name,) in source._connection.execute("SELECT name FROM pragma_database_list").fetchall()] == [
        "memory"
    ]


def test_people_have_numbers_that_are_others_at_every_opening(tmp_path: Path) -> None:
    people = write(tmp_path / "people.csv", [(f"id {who}", who % 10, "a") for who in range(300)])

    def numbers() -> list[tuple[int, int]]:
        source = opened(people, Unit(column="id"))
        return source._connection.execute("SELECT unit, c0 FROM people ORDER BY ALL").fetchall()

    first, second = numbers(), numbers()
    assert [number for number, _ in first] == [number for number, _ in second] == list(range(1, 301))
    assert first != second  # who has which number


def test_nothing_goes_to_a_temporary_directory(people: Path) -> None:
    setting = opened(people)._connection.execute("SELECT current_setting('temp_directory')").fetchone()
    assert setting == ("",)


# --- failures after the opening --------------------------------------------------------------------------------


def test_every_later_failure_has_the_same_text(people: Path) -> None:
    texts = set()
    closed = opened(people)
    closed.close()
    broken = opened(people)
    broken._connection.execute("DROP TABLE cells")
    for fail in (
        lambda: closed.table(("age",)),
        closed.content,
        lambda: broken.table(()),
        broken.content,
    ):
        with pytest.raises(SourceError) as caught:
            fail()
        assert caught.value.__context__ is None
        texts.add(str(caught.value))
    assert texts == {FAILED}


@pytest.mark.parametrize(
    ("attrs", "text"),
    [(("height",), "there is no column height"), (("age", "age"), "a table of counts has each column once")],
)
def test_a_table_of_nonsense_is_refused(people: Path, attrs: tuple[str, ...], text: str) -> None:
    with pytest.raises(QueryError, match=text):
        opened(people).table(attrs)


def test_a_table_that_is_too_large_is_refused_from_its_size(people: Path) -> None:
    wide = Domain(tuple(IntegerRange(name=name, lower=0, upper=2**13 - 2) for name in ("id", "age", "town")))
    source = opened(people, domain=wide)
    assert source.table(("id", "age")).size == MOST_CELLS
    with pytest.raises(QueryError, match=f"id, age, town have {2**39} cells together; at most {MOST_CELLS}"):
        source.table(("id", "age", "town"))


def test_a_domain_without_columns_counts_rows(people: Path) -> None:
    assert opened(people, domain=Domain(())).table(()) == 4


def test_threads_count_at_the_same_time(tmp_path: Path) -> None:
    source: Source = opened(write(tmp_path / "a.csv", [(i, i % 10, "ab"[i % 2]) for i in range(500)]))
    expected = source.table(("age", "town")).tolist()
    wrong: list[object] = []

    def ask() -> None:
        for _ in range(30):
            found = source.table(("age", "town")).tolist()
            if found != expected:
                wrong.append(found)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# --- contributions ---------------------------------------------------------------------------------------------

WHO = Domain(
    (
        Categories(name="id", values=tuple(range(5))),
        IntegerRange(name="age", lower=0, upper=3),
        IntegerRange(name="month", lower=0, upper=2),
    ),
    partition="month",
)
Rows = list[tuple[int, int, int]]
some_rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2)), max_size=30)


def kept(rows: Rows, k: int, *, key: bytes = KEY) -> np.ndarray:
    """Counts of the rows that are kept, by unit, age and month."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "rows.csv", list(rows), header="id,age,month")
        source = DuckDBSource(path, WHO, Unit(column="id", max_contributions=k), key, 1000)
        counts = source.table(("id", "age", "month"))
        source.close()
    return counts


@settings(max_examples=30, deadline=None)
@given(
    some_rows, some_rows.map(lambda rows: [(4, age, month) for _, age, month in rows]), st.integers(1, 4), st.randoms()
)
def test_a_unit_that_comes_or_goes_changes_only_its_own_rows(
    others: Rows, own: Rows, k: int, shuffle: random.Random
) -> None:
    others = [row for row in others if row[0] != 4]
    together = others + own
    shuffle.shuffle(together)
    without, with_unit = kept(others, k), kept(together, k)
    assert (with_unit[:4] == without[:4]).all()
    assert without[4].sum() == 0
    assert with_unit[4].sum() == min(k, len(own))
    mine = Counter((age, month) for _, age, month in own)
    assert all(count <= mine[cell] for cell, count in np.ndenumerate(with_unit[4]))


@pytest.mark.heavy
@settings(max_examples=20, deadline=None)
@given(some_rows, some_rows, st.integers(1, 4))
def test_rows_of_a_later_partition_displace_nothing(early: Rows, late: Rows, k: int) -> None:
    early = [(unit, age, month % 2) for unit, age, month in early]
    late = [(unit, age, 2) for unit, age, _ in late]
    assert (kept(early + late, k)[:, :, :2] == kept(early, k)[:, :, :2]).all()


@settings(max_examples=20, deadline=None)
@given(some_rows, st.integers(1, 3), st.integers(0, 12))
@example([(unit, age, 0) for unit in range(4) for age in range(3)], 1, 0)
def test_it_does_not_matter_how_many_units_are_bounded_at_once(rows: Rows, k: int, at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb_module, "GROUP_ROWS", at_once)
        counts = kept(rows, k)
    assert (counts == kept(rows, k)).all()
    held = Counter(unit for unit, _, _ in rows)
    assert counts.sum(axis=(1, 2)).tolist() == [min(held[unit], k) for unit in range(counts.shape[0])]


def test_the_choice_is_uniform_over_the_rows_and_differs_between_units() -> None:
    """99 equal rows and one other, of 400 units: about 4 of them keep the other; a choice by kinds of row, 200."""
    domain = Domain((IntegerRange(name="age", lower=0, upper=1),))
    with tempfile.TemporaryDirectory() as folder:
        rows = [(unit, int(row == 0)) for unit in range(400) for row in range(100)]
        path = write(Path(folder) / "rows.csv", rows, header="id,age")
        source = DuckDBSource(path, domain, Unit(column="id"), KEY, 10**6)
    assert 0 < source.table(("age",))[1] < 25


def test_another_key_makes_another_choice() -> None:
    rows = [(unit, age, 0) for unit in range(5) for age in range(4)]
    choices = {kept(rows, 2, key=bytes([number] * 32)).tobytes() for number in range(3)}
    assert len(choices) > 1
    assert kept(rows, 2).tobytes() == kept(rows[::-1], 2).tobytes()


def test_rows_of_nobody_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", [("", 1, "a"), ("", 2, "a"), (7, 3, "a"), ('""', 4, "a")])
    assert opened(path).table(()) == 4
    assert opened(path, Unit(column="id", max_contributions=3)).table(("age",)).nonzero()[0].tolist() == [3]


def test_without_a_unit_column_every_row_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", [(1, 1, "a")] * 7)
    assert opened(path).table(("age",))[1] == 7
    assert opened(path, Unit(column="id")).table(("age",))[1] == 1


# --- hashes ----------------------------------------------------------------------------------------------------


def content(path: Path, rows: list[tuple[object, ...]], **options: Any) -> tuple[str, ...]:
    return opened(write(path, rows), **options).content()


def test_content_depends_on_the_cells_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows: list[tuple[object, ...]] = [(1, 3, "a"), (2, 4, "b"), (3, 3, "a"), (4, 5, "z")]
    same = content(path, rows)
    assert content(path, rows[::-1]) == same
    assert content(path, [*rows[:3], (99, 5, "also other")]) == same
    assert content(tmp_path / "b.csv", rows) == same
    source = opened(path)
    assert source.content() == source.content() == opened(path).content()


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 3, "a"), (2, 4, "b"), (3, 3, "b")],
        [(1, 3, "a"), (2, 4, "b")],
        [(1, 3, "a"), (2, 4, "b"), (3, 3, "a"), (4, 3, "a")],
        [(1, 4, "a"), (2, 3, "b"), (3, 3, "a")],
        [],
    ],
)
def test_one_changed_cell_changes_the_content(tmp_path: Path, rows: list[tuple[object, ...]]) -> None:
    assert content(tmp_path / "a.csv", rows) != content(tmp_path / "a.csv", [(1, 3, "a"), (2, 4, "b"), (3, 3, "a")])


def test_content_is_keyed(people: Path) -> None:
    source, other = opened(people), opened(people, key=KEY[::-1])
    assert source.content() != other.content()


def test_content_has_a_fixed_format(people: Path) -> None:
    """A ledger remembers it for years: if it moved, every data set in use would seem to have changed."""
    expected = hashlib.blake2b(key=hashlib.blake2b(b"content", key=KEY, digest_size=32).digest(), digest_size=32)
    ages, towns, rows = (3, 4, 9), (0, 1, 2), (2, 1, 1)
    for part in (DOMAIN.digest.encode(), *(struct.pack("<3q", *column) for column in (ages, towns, rows))):
        expected.update(struct.pack("<q", len(part)) + part)
    assert opened(people).content() == (expected.hexdigest(),)


@pytest.mark.parametrize("lines", [1, 2, 3, 5])
def test_content_is_the_same_however_few_lines_are_hashed_at_once(
    lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    months = IntegerRange(name="month", lower=0, upper=5)
    domain = Domain((DOMAIN["age"], OpenText(name="name", capacity=8), months), partition="month")
    rows = [(person, person * 7 % 10, f"name {person % 4}", person % 13 % 5) for person in range(40)]
    path = write(tmp_path / "a.csv", [*rows, (41, 3, "", 4)], header="id,age,name,month")
    whole = opened(path, domain=domain).content()
    assert len(set(whole)) == domain.partitions == len(whole)
    monkeypatch.setattr(duckdb_module, "BLOCK_LINES", lines)
    assert opened(path, domain=domain).content() == whole


def test_the_stamp_follows_the_file(people: Path) -> None:
    source = opened(people)
    before = source._stamp()
    assert source._stamp() == before == opened(people)._stamp()
    stat = people.stat()
    os.utime(people, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert source._stamp() != before
    os.utime(people, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert source._stamp() == before
    with people.open("a") as file:
        file.write("9,9,b\n")
    os.utime(people, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert source._stamp() != before


def test_frames_are_copied() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1, 2], "town": ["a", "b"]})
    source = opened(frame)
    frame.loc[0, "age"] = 9
    assert source.table(("age",)).nonzero()[0].tolist() == [1, 2]
