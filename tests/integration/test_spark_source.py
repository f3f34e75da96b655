"""Parquet files behind a real Spark, in local mode: for make soak, since Spark weighs half a gigabyte."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import bursar
from bursar.core.domain import Domain, IntegerRange, Unit
from bursar.core.source.servers.spark import SparkDialect, SparkFiles
from bursar.core.source.servers.sql_source import SqlSource
from bursar.errors import SourceError
from harness.places import KEY, QUESTION, TOWN, TRUE, SparkPlace, read
from harness.servers import spark_connect, stop_spark

pytestmark = [
    pytest.mark.soak,
    pytest.mark.filterwarnings("ignore:The SQL config", "ignore:PySpark does not yet fully support pandas"),
]


@pytest.fixture(scope="module", autouse=True)
def _stopped_at_the_end() -> Iterator[None]:
    yield
    stop_spark()


@pytest.fixture(scope="module")
def connect_url() -> Iterator[str]:
    with spark_connect() as url:
        yield url


@pytest.fixture(params=["in this process", "behind Spark Connect"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> SparkPlace:
    if request.param == "in this process":
        return SparkPlace(tmp_path)
    return SparkPlace(tmp_path, request.getfixturevalue("connect_url"))


def test_a_server_that_is_not_there_is_named_at_once(tmp_path: Path) -> None:
    pytest.importorskip("grpc_status")
    with pytest.raises(SourceError, match="cannot be read: Spark is away"):
        SparkFiles("sc://127.0.0.1:1", f"{tmp_path}/*.parquet")


def test_questions_are_answered_from_the_files(place: SparkPlace, tmp_path: Path) -> None:
    with bursar.create(place.config(tmp_path)) as db:
        answer = db.query(QUESTION, within=60)
        assert all(abs(row[0] - true) < 200 for row, true in zip(answer.values, TRUE, strict=False))


class Meddling(SparkFiles):
    """Somebody writes while the pass runs."""

    path, rows = Path(), ""

    def lines(self, sql: str, secret: str | None) -> Iterator[object]:  # type: ignore[override]
        if secret is not None:
            SparkPlace.write(self.path, self.rows)
        return super().lines(sql, secret)


@pytest.mark.parametrize(("name", "rows"), [("people.1.parquet", "range(7)"), ("people.2.parquet", "range(7)")])
def test_files_that_change_meanwhile_fail_the_pass(place: SparkPlace, tmp_path: Path, name: str, rows: str) -> None:
    """Spark itself says nothing about a file that is overwritten in place."""
    Meddling.path, Meddling.rows = tmp_path / name, rows
    with pytest.raises(SourceError, match="could not be counted"):
        read(SqlSource(lambda: Meddling(place.url, place.files), TOWN, Unit(column="id"), KEY, 10_000))
    assert place.open(unit=Unit(column="id")).table(()) < 2000


def test_files_that_are_not_there_and_types_that_cannot_be_read(place: SparkPlace, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read: Spark is away, or does not find them"):
        SparkFiles(place.url, f"{tmp_path}/none/*.parquet")
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 'a'::BLOB AS town, [1] AS age) TO '{tmp_path}/odd.parquet'")
    with pytest.raises(SourceError, match="the column town has a type that cannot be read"):
        read(SqlSource(lambda: SparkFiles(place.url, f"{tmp_path}/odd.parquet"), TOWN, Unit(), KEY, 10_000))


class Careless(SparkDialect):
    """Casts without looking first, so that the error quotes the row."""

    def matches(self, value: str, pattern: str) -> str:
        return "true"


def test_errors_never_quote_the_rows(
    place: SparkPlace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    numbers = Domain((IntegerRange(name="town", lower=0, upper=9),))
    monkeypatch.setattr(SparkFiles, "dialect", Careless())
    with pytest.raises(SourceError) as caught:
        place.open(numbers)
    told = "".join(traceback.format_exception(caught.value))
    assert "could not be counted" in told
    assert "CAST_INVALID_INPUT" not in told + "".join(capfd.readouterr())
