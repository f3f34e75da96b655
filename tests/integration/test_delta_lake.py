"""Tables of Delta Lake behind a real Spark, written by Delta's own library: for make soak, like all of Spark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bursar
from bursar.core.domain import Categories, Domain, IntegerRange, Unit
from bursar.core.source.servers.spark import SparkFiles
from bursar.core.source.servers.sql_source import SqlSource
from bursar.errors import SourceError
from harness.places import KEY, QUESTION, TOWN, TRUE, SparkPlace, read
from harness.servers import spark_connect, stop_spark

pytestmark = [
    pytest.mark.soak,
    pytest.mark.filterwarnings("ignore:The SQL config", "ignore:PySpark does not yet fully support pandas"),
]

try:
    import deltalake
    import pyarrow
except ImportError:  # pip install deltalake, and Bursar's extra for Spark
    deltalake = None


@pytest.fixture(scope="module", autouse=True)
def written_by_delta() -> None:
    if deltalake is None:
        pytest.skip("needs pip install deltalake pyarrow, which write such tables")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    yield SparkPlace.url
    stop_spark()


def people(low: int, high: int) -> Any:
    numbers = range(low, high)
    towns = ["y" if i % 3 else "x" for i in numbers]
    ages = pyarrow.array([i % 120 for i in numbers], pyarrow.int32())
    return pyarrow.table({"id": [str(i // 2) for i in numbers], "town": towns, "age": ages})


def append(folder: Path, low: int, high: int) -> None:
    deltalake.write_deltalake(str(folder), people(low, high), mode="append")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A folder with seven versions; the last has two thousand rows."""
    folder = tmp_path / "lake"
    append(folder, 0, 1000)
    append(folder, 1000, 1500)
    deltalake.DeltaTable(str(folder)).optimize.compact()  # 2
    deltalake.DeltaTable(str(folder)).delete("age < 10")  # 3
    deltalake.DeltaTable(str(folder)).create_checkpoint()
    append(folder, 0, 10)  # 4
    deltalake.DeltaTable(str(folder)).create_checkpoint()
    deltalake.write_deltalake(str(folder), people(0, 1000), mode="overwrite")  # 5
    append(folder, 1000, 2000)  # 6
    return folder


def opened(url: str, files: object, domain: Domain = TOWN, server: type[SparkFiles] = SparkFiles) -> SqlSource:
    return read(SqlSource(partial(server, url, str(files)), domain, Unit(column="id"), KEY, 10_000))


def test_every_version_has_the_rows_that_deltas_own_library_reads(url: str, lake: Path) -> None:
    compare_versions(url, lake, range(7))


def test_the_same_behind_spark_connect(lake: Path) -> None:
    with spark_connect() as url:
        compare_versions(url, lake, (1, 3))


def compare_versions(url: str, lake: Path, versions: Sequence[int]) -> None:
    for version in versions:
        rows = deltalake.DeltaTable(str(lake), version=version).to_pyarrow_table()
        unbound = SqlSource(partial(SparkFiles, url, f"{lake}@v{version}"), TOWN, Unit(), KEY, 10_000)
        counted = [rows["town"].to_pylist().count(town) for town in ("x", "y")]
        assert unbound.table(("town",)).tolist()[:2] == counted


def test_the_newest_version_is_read_where_none_is_named(url: str, lake: Path) -> None:
    assert opened(url, lake).content() == opened(url, f"{lake}@v6").content() != opened(url, f"{lake}@v5").content()


def test_questions_are_answered_from_a_version(url: str, lake: Path, tmp_path: Path) -> None:
    """What is committed later changes nothing, so that no new version of the data has to be declared."""
    place = SparkPlace(tmp_path, url)
    place.more = f'files = "{lake}@v6"\n'
    config = place.config(tmp_path)
    bursar.create(config).close()
    append(lake, 5000, 5100)
    with bursar.open(config) as db:
        answer = db.query(QUESTION, within=60)
        assert all(abs(row[0] - true) < 200 for row, true in zip(answer.values, TRUE, strict=False))


class Committing(SparkFiles):
    """Somebody commits while the pass runs: more rows, and other rows in place of all."""

    lake, mode = Path(), "append"

    def lines(self, sql: str, secret: str | None) -> Iterator[object]:  # type: ignore[override]
        deltalake.write_deltalake(str(self.lake), people(0, 50), mode=self.mode)
        return super().lines(sql, secret)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_later_commits_are_not_seen(url: str, lake: Path, mode: str) -> None:
    before = opened(url, lake).content()
    Committing.lake, Committing.mode = lake, mode
    assert opened(url, lake, server=Committing).content() == before
    assert opened(url, lake).content() != before
    assert opened(url, f"{lake}@v6").content() == before


def files_of(lake: Path) -> list[Path]:
    table = deltalake.DeltaTable(str(lake))
    return [lake / path for path in table.get_add_actions().column("path").to_pylist()]


class Overwriting(Committing):
    """Somebody overwrites a file of the version while the pass runs."""

    def lines(self, sql: str, secret: str | None) -> Iterator[object]:  # type: ignore[override]
        first, second = files_of(self.lake)
        shutil.copy(first, second)
        return SparkFiles.lines(self, sql, secret)


def test_files_that_change_are_refused(url: str, lake: Path) -> None:
    Overwriting.lake = lake
    with pytest.raises(SourceError, match="could not be counted"):
        opened(url, lake, server=Overwriting)
    with pytest.raises(SourceError, match="are gone, or not as its log tells: vacuumed, or overwritten"):
        opened(url, lake)


def test_a_version_that_was_vacuumed_is_refused(url: str, lake: Path) -> None:
    deltalake.DeltaTable(str(lake)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    opened(url, f"{lake}@v6")
    with pytest.raises(SourceError, match="are gone, or not as its log tells: vacuumed, or overwritten"):
        opened(url, f"{lake}@v1")
    (lake / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(SourceError, match="does not have this version, or not all of it"):
        opened(url, f"{lake}@v2")
    with pytest.raises(SourceError, match="does not have this version, or not all of it"):
        opened(url, f"{lake}@v99")


def test_values_of_partitions_are_read_from_the_names_of_folders(url: str, tmp_path: Path) -> None:
    towns = ("a b/%c", "[x]*?{}", "=%41")
    rows = people(0, 480)
    named = pyarrow.array([None if i % 4 == 3 else towns[i % 4] for i in range(480)])
    rows = rows.set_column(1, "town", named).append_column("day", pyarrow.array(["2024-02-29"] * 480))
    deltalake.write_deltalake(str(tmp_path / "lake"), rows, partition_by=["day", "town", "age"])
    domain = Domain((Categories(name="town", values=towns), IntegerRange(name="age", lower=0, upper=119)))
    source = read(SqlSource(partial(SparkFiles, url, f"{tmp_path}/lake"), domain, Unit(), KEY, 10_000))
    assert source.table(("town",)).tolist() == [120, 120, 120, 0, 120]
    assert source.table(("age",)).tolist()[:120] == [4] * 120


def test_names_that_spark_would_read_otherwise_are_refused(url: str, tmp_path: Path) -> None:
    """Delta's library for Python writes the bytes of UTF-8, each of which Spark takes for a letter."""
    rows = people(0, 10).set_column(1, "town", pyarrow.array(["ö"] * 10))
    deltalake.write_deltalake(str(tmp_path / "lake"), rows, partition_by=["town"])
    with pytest.raises(SourceError, match="do not lie in folders that Spark reads their partitions from"):
        opened(url, tmp_path / "lake")


def test_a_table_without_rows_is_read(url: str, lake: Path) -> None:
    deltalake.DeltaTable(str(lake)).delete()
    assert opened(url, lake).table(()) == 0


@pytest.mark.parametrize("pattern", ["lake/*.parquet", "lak?", "*/*.parquet", "lake/*/*.parquet"])
def test_files_inside_of_a_table_of_several_versions_are_refused(
    url: str, lake: Path, tmp_path: Path, pattern: str
) -> None:
    """Spark reads rows that were removed along with the others."""
    with pytest.raises(SourceError, match="lie in the folder of a Delta, Iceberg or Hudi table"):
        opened(url, tmp_path / pattern)


@pytest.mark.parametrize("pattern", ["", "/*.parquet", "/data/*.parquet"])
def test_other_tables_of_several_versions_are_refused(url: str, tmp_path: Path, pattern: str) -> None:
    place = SparkPlace(tmp_path, url)
    opened(url, place.files)
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / ".hoodie" / "hoodie.properties").write_text("{}")
    with pytest.raises(SourceError, match="lie in the folder of a Delta, Iceberg or Hudi table"):
        opened(url, f"{tmp_path}{pattern}")


def test_a_version_of_no_table_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no Delta table in that folder"):
        opened(url, f"{tmp_path}@v1")
