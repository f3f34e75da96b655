"""Iceberg tables behind a real Spark, written by Iceberg's own library for Python: for make soak, like all of Spark."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bursar
from bursar.core.domain import Categories, Dates, Domain, IntegerRange, Period, Unit
from bursar.core.source.servers import file_list
from bursar.core.source.servers.spark import SparkFiles
from bursar.core.source.servers.sql_source import SqlSource
from bursar.errors import SourceError
from harness.icebergs import iceberg_catalog, local
from harness.places import KEY, QUESTION, TOWN, TRUE, SparkPlace, read
from harness.servers import spark_connect, stop_spark

pytestmark = [
    pytest.mark.soak,
    pytest.mark.filterwarnings("ignore:The SQL config", "ignore:PySpark does not yet fully support pandas"),
]


GONE = "are gone, or not as its metadata tell: expired, or overwritten"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield SparkPlace(tmp_path_factory.mktemp("none")).url
    stop_spark()


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Any]:
    with iceberg_catalog(tmp_path) as made:
        yield made


def people(low: int, high: int) -> Any:
    import pyarrow

    numbers = range(low, high)
    towns = ["y" if i % 3 else "x" for i in numbers]
    ages = pyarrow.array([i % 120 for i in numbers], pyarrow.int32())
    return pyarrow.table({"id": [str(i // 2) for i in numbers], "town": towns, "age": ages})


@pytest.fixture
def table(catalog: Any) -> Any:
    """A table with several snapshots; the last has two thousand rows."""
    made = catalog.create_table("db.people", people(0, 1).schema)
    made.append(people(0, 1000))
    made.append(people(1000, 1500))
    made.delete("age < 10")
    made.overwrite(people(0, 1000))
    made.append(people(1000, 2000))
    return made


def folder(table: Any) -> Path:
    return local(table.location())


def snapshots(table: Any) -> list[str]:
    """What `files` says for each snapshot, the oldest first."""
    return [f"{folder(table)}@{each.snapshot_id}" for each in table.snapshots()]


def opened(
    url: str, files: object, domain: Domain = TOWN, server: type[SparkFiles] = SparkFiles, unit: str | None = "id"
) -> SqlSource:
    return read(SqlSource(partial(server, url, str(files)), domain, Unit(column=unit), KEY, 10_000))


def compare(url: str, table: Any, files: Sequence[str]) -> None:
    for file in files:
        towns = table.scan(snapshot_id=int(file.rpartition("@")[2])).to_arrow()["town"].to_pylist()
        assert opened(url, file, unit=None).table(("town",)).tolist()[:2] == [towns.count("x"), towns.count("y")]


def test_every_snapshot_has_the_rows_that_icebergs_own_library_reads(url: str, table: Any) -> None:
    assert len(snapshots(table)) > 4
    compare(url, table, snapshots(table))


def test_the_same_behind_spark_connect(table: Any) -> None:
    with spark_connect() as url:
        compare(url, table, snapshots(table)[:3:2])


def test_the_newest_snapshot_is_read_where_none_is_named(url: str, table: Any) -> None:
    *_, before, last = snapshots(table)
    assert opened(url, folder(table)).content() == opened(url, last).content() != opened(url, before).content()


def test_questions_are_answered_from_a_snapshot(url: str, table: Any, tmp_path: Path) -> None:
    """What is committed later changes nothing, so that no new version of the data has to be declared."""
    place = SparkPlace(tmp_path, url)
    place.more = f'files = "{snapshots(table)[-1]}"\n'
    config = place.config(tmp_path)
    bursar.create(config).close()
    table.append(people(5000, 5100))
    with bursar.open(config) as db:
        answer = db.query(QUESTION, within=60)
        assert all(abs(row[0] - true) < 200 for row, true in zip(answer.values, TRUE, strict=False))


def test_later_commits_are_not_seen(url: str, table: Any) -> None:
    class Committing(SparkFiles):
        """Somebody commits while the pass runs."""

        def lines(self, sql: str, secret: str | None) -> Iterator[object]:  # type: ignore[override]
            table.overwrite(people(0, 50))
            return super().lines(sql, secret)

    before = opened(url, folder(table)).content()
    last = snapshots(table)[-1]
    assert opened(url, folder(table), server=Committing).content() == before
    assert opened(url, folder(table)).content() != before
    assert opened(url, last).content() == before


def files_of(table: Any) -> list[Path]:
    return [local(task.file.file_path) for task in table.scan().plan_files()]


def test_files_that_change_are_refused(url: str, table: Any) -> None:
    first, second = files_of(table)

    class Overwriting(SparkFiles):
        """Somebody overwrites a file of the snapshot while the pass runs."""

        def lines(self, sql: str, secret: str | None) -> Iterator[object]:  # type: ignore[override]
            shutil.copy(first, second)
            return super().lines(sql, secret)

    with pytest.raises(SourceError, match="could not be counted"):
        opened(url, folder(table), server=Overwriting)
    with pytest.raises(SourceError, match=GONE):
        opened(url, folder(table))


def test_a_snapshot_that_has_expired_is_refused(url: str, table: Any) -> None:
    """First files that it alone had go, then it is forgotten."""
    kept, gone = files_of(table), snapshots(table)[1]
    for file in (folder(table) / "data").iterdir():
        if file not in kept:
            file.unlink()
    opened(url, folder(table))
    with pytest.raises(SourceError, match=GONE):
        opened(url, gone)
    table.maintenance.expire_snapshots().by_id(int(gone.rpartition("@")[2])).commit()
    with pytest.raises(SourceError, match="does not have this snapshot, or not any more"):
        opened(url, gone)


@pytest.mark.parametrize(
    ("kind", "text"), [("snap-*.avro", "metadata of the Iceberg table cannot"), ("*-m0.avro", GONE)]
)
def test_manifests_that_are_gone_or_cut_off_are_refused(url: str, table: Any, kind: str, text: str) -> None:
    for file in (folder(table) / "metadata").glob(kind):
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(SourceError, match=text):
        opened(url, folder(table))
    for file in (folder(table) / "metadata").glob(kind):
        file.unlink()
    with pytest.raises(SourceError, match=GONE):
        opened(url, folder(table))


def test_columns_are_found_by_their_numbers(url: str, catalog: Any) -> None:
    """Two change their names, one its type, and one is dropped and made anew. By names other values would be read, and
    filters by names would leave out a file in which the column that has this name had nothing but NULL."""
    import pyarrow
    from pyiceberg.types import LongType, StringType

    empty = pyarrow.array([None] * 300, pyarrow.string())
    rows = people(0, 300).append_column("other", empty).append_column("note", pyarrow.array(["x"] * 300))
    table = catalog.create_table("db.people", rows.schema)
    table.append(rows)
    for old, new in (("id", "spare"), ("other", "id"), ("spare", "other")):
        with table.update_schema() as update:
            update.rename_column(old, new)
    with table.update_schema() as update:
        update.delete_column("note").update_column("age", LongType())
    with table.update_schema() as update:
        update.add_column("note", StringType())
    ages = pyarrow.array([7] * 10, pyarrow.int64())
    texts = {name: pyarrow.array([value] * 10, pyarrow.string()) for name, value in (("id", None), ("note", "y"))}
    table.append(pyarrow.table({"id": texts["id"], "town": ["x"] * 10, "age": ages, "other": ["new"] * 10, **texts}))
    domain = Domain((*TOWN.attributes, Categories(name="note", values=("x", "y"))))
    whole = opened(url, folder(table), domain, unit=None)
    assert whole.table(("note",)).tolist() == [0, 10, 0, 300]
    assert whole.table(("age",)).tolist()[7] == 13
    assert opened(url, folder(table), domain, unit="other").table(()) == 151  # 150 people, and a new one
    assert opened(url, folder(table), domain, unit="id").table(()) == 0
    first = opened(url, snapshots(table)[0], domain)  # with the names that it had
    assert first.table(("note",)).tolist() == [150, 0, 0, 0]


def test_partitions_are_read_from_the_files(url: str, catalog: Any) -> None:
    """Names of folders, from which Spark would read them, have other letters."""
    import pyarrow

    towns = ("a b/%c", "[x]*?{}", "=%41ö")
    named = pyarrow.array([None if i % 4 == 3 else towns[i % 4] for i in range(480)])
    rows = people(0, 480).set_column(1, "town", named)
    table = catalog.create_table("db.people", rows.schema)
    with table.update_spec() as update:
        update.add_identity("town")
    table.append(rows)
    domain = Domain((Categories(name="town", values=towns), IntegerRange(name="age", lower=0, upper=119)))
    source = opened(url, folder(table), domain, unit=None)
    assert source.table(("town",)).tolist() == [120, 120, 120, 0, 120]
    assert source.table(("age",)).tolist()[:120] == [4] * 120


def test_times_have_the_zone_that_they_were_written_with(url: str, catalog: Any) -> None:
    import pyarrow

    seconds = [1_700_000_000 + 7_919 * number for number in range(200)]
    days = [date.fromtimestamp(0) if second % 5 else None for second in seconds]
    kinds = {"day": pyarrow.date32(), "seen": pyarrow.timestamp("us"), "sent": pyarrow.timestamp("us", "Asia/Tokyo")}
    micros = pyarrow.array([second * 10**6 for second in seconds], pyarrow.int64())
    rows = pyarrow.table({"day": pyarrow.array(days), **{name: micros.cast(kinds[name]) for name in ("seen", "sent")}})
    schema = pyarrow.schema({**kinds, "sent": pyarrow.timestamp("us", "UTC")})
    table = catalog.create_table("db.people", schema)
    table.append(rows.cast(schema))
    days_utc = Counter(datetime.utcfromtimestamp(second).date() for second in seconds)
    first = date(2023, 11, 14)
    for name in ("seen", "sent"):
        domain = Domain((Dates(name=name, first=first, last=date(2023, 12, 14), by=Period.DAY),))
        counted = opened(url, folder(table), domain, unit=None).table((name,)).tolist()
        assert [counted[(day - first).days] for day in sorted(days_utc)] == [days_utc[day] for day in sorted(days_utc)]
    domain = Domain((Dates(name="day", first=date(1970, 1, 1), last=date(1970, 1, 2), by=Period.DAY),))
    assert opened(url, folder(table), domain, unit=None).table(("day",)).tolist()[0] == 200 - days.count(None)


def test_a_column_of_another_type_is_named(url: str, catalog: Any) -> None:
    import pyarrow

    rows = people(0, 10).set_column(1, "town", pyarrow.array([["x"]] * 10))
    table = catalog.create_table("db.people", rows.schema)
    table.append(rows)
    with pytest.raises(SourceError, match="the column town has a type that cannot be read"):
        opened(url, folder(table))


def test_files_that_iceberg_did_not_write_are_refused(url: str, catalog: Any, tmp_path: Path) -> None:
    """Their columns have no numbers; without the note about that, Spark finds it out."""
    import pyarrow.parquet

    table = catalog.create_table("db.people", people(0, 1).schema)
    (folder(table) / "data").mkdir()
    added = folder(table) / "data" / "added.parquet"
    pyarrow.parquet.write_table(people(0, 10), added)
    table.add_files([f"file://{added}"])
    with pytest.raises(SourceError, match="has files that Iceberg did not write, whose columns have no numbers"):
        opened(url, folder(table))
    with table.transaction() as transaction:
        transaction.remove_properties("schema.name-mapping.default")
    with pytest.raises(SourceError, match="could not be counted"):
        opened(url, folder(table))


def test_files_elsewhere_are_refused(url: str, catalog: Any, tmp_path: Path) -> None:
    elsewhere = {"write.data.path": f"file://{tmp_path}/elsewhere"}
    table = catalog.create_table("db.people", people(0, 1).schema, properties=elsewhere)
    table.append(people(0, 10))
    with pytest.raises(SourceError, match="files of the Iceberg table lie elsewhere than in the folder"):
        opened(url, folder(table))


def test_a_table_that_was_copied_to_another_folder_is_read_there(url: str, table: Any, tmp_path: Path) -> None:
    before = opened(url, folder(table)).content()
    shutil.move(folder(table), tmp_path / "moved")
    assert opened(url, tmp_path / "moved").content() == before


def test_a_table_without_rows_is_read(url: str, table: Any, catalog: Any) -> None:
    table.delete("age >= 0")
    assert opened(url, folder(table)).table(()) == 0
    fresh = catalog.create_table("db.fresh", people(0, 1).schema)
    assert opened(url, folder(fresh)).table(()) == 0


def test_an_older_spark_is_refused(url: str, table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "version", "4.0.3")
    with pytest.raises(SourceError, match=r"Iceberg tables are read with Spark 4\.1 or newer"):
        opened(url, folder(table))


def test_without_a_reader_of_avro_it_is_named(url: str, table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_list, "find_spec", lambda name: None)
    with pytest.raises(SourceError, match="pip install fastavro"):
        opened(url, folder(table))


@pytest.mark.parametrize("pattern", ["data/*.parquet", "data", "*/*.parquet", "*"])
def test_files_inside_of_a_table_are_refused(url: str, table: Any, pattern: str) -> None:
    """Spark would read rows that were removed along with the others."""
    with pytest.raises(SourceError, match="lie in the folder of a Delta, Iceberg or Hudi table"):
        opened(url, folder(table) / pattern)


@pytest.mark.parametrize(("version", "kind"), [("v1", "Delta"), ("1", "Iceberg")])
def test_a_version_of_no_table_is_refused(url: str, tmp_path: Path, version: str, kind: str) -> None:
    with pytest.raises(SourceError, match=f"there is no {kind} table in that folder"):
        opened(url, f"{tmp_path}@{version}")
