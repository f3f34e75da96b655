"""Drafts from the catalogs of PostgreSQL and MariaDB: what types, CHECKs, keys and partitions tell; no row is looked
at."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from bursar.config import load_draft
from bursar.core.domain import Bins, Categories, Dates, IntegerRange
from bursar.curate.catalog import table_of
from bursar.curate.draft_from_data import add_table, init
from bursar.errors import ConfigError, SourceError
from harness.servers import PASSWORD, administer, shared_mariadb, shared_postgresql

TABLE = """
DROP SCHEMA IF EXISTS ward CASCADE; CREATE SCHEMA ward;
CREATE TYPE ward.sex AS ENUM ('F', 'M', 'X');
CREATE DOMAIN ward.share AS int CHECK (VALUE >= -5 AND VALUE <= 100);
CREATE TABLE ward.town (name text PRIMARY KEY);
CREATE TABLE ward.visits (
  visit_id bigint, sex ward.sex, smoker boolean, age int CHECK (age BETWEEN 0 AND 120), part ward.share,
  kind text CHECK (kind IN ('in', 'out', 'it''s')), stars int CHECK (stars IN (1, 2, 3)),
  cost int CHECK (cost >= 0 AND cost <= 100000), town text REFERENCES ward.town, note text,
  odd int CHECK (odd > 0 OR odd < 9), code uuid UNIQUE, day date
);
"""
PARTED = """
CREATE TABLE ward.parted (day date, n int) PARTITION BY RANGE (day);
CREATE TABLE ward.p1 PARTITION OF ward.parted FOR VALUES FROM ('2021-01-01') TO ('2021-07-01');
CREATE TABLE ward.p2 PARTITION OF ward.parted FOR VALUES FROM ('2021-07-01') TO ('2022-01-01');
CREATE TABLE ward.p3 PARTITION OF ward.parted DEFAULT
"""
ROWS = """
INSERT INTO ward.town VALUES ('a secret');
INSERT INTO ward.visits (note, age) VALUES ('a secret', 77)
"""
READER = f"""
DO $$ BEGIN CREATE ROLE drafter LOGIN PASSWORD '{PASSWORD}'; EXCEPTION WHEN duplicate_object THEN END $$;
GRANT USAGE ON SCHEMA ward TO drafter; GRANT SELECT ON ALL TABLES IN SCHEMA ward TO drafter
"""


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> str:
    server = shared_postgresql()
    administer(server.url(), TABLE, PARTED, ROWS, READER)
    monkeypatch.setenv("BURSAR_SOURCE_PASSWORD", PASSWORD)
    return server.url(user="drafter").replace("/postgres?", "/postgres/{}?")


@pytest.mark.heavy
def test_what_the_catalog_tells_is_drafted(url: str, tmp_path: Path) -> None:
    made = init(url.format("ward.visits"), tmp_path / "visits.toml")
    config = load_draft(tmp_path / "visits.toml")
    assert config.url is not None
    assert (config.url.schema, config.table, config.dataset, config.max_rows) == ("ward", "visits", "visits", 1000)
    assert "a secret" not in (tmp_path / "visits.toml").read_text()
    assert config.unconfirmed
    columns = {attribute.name: attribute for attribute in config.domain.attributes}
    assert set(columns) == {"sex", "smoker", "age", "part", "kind", "stars", "cost"}
    assert columns["sex"] == Categories(name="sex", values=("F", "M", "X"))
    assert columns["smoker"] == Categories(name="smoker", values=(True, False))
    assert columns["kind"] == Categories(name="kind", values=("in", "out", "it's"))
    assert columns["stars"] == Categories(name="stars", values=(1, 2, 3))
    assert columns["age"] == IntegerRange(name="age", lower=0, upper=120)
    assert columns["part"] == IntegerRange(name="part", lower=-5, upper=100)
    assert isinstance(columns["cost"], Bins)
    reasons = {omitted.name: omitted.reason for omitted in made.draft.left_out}
    assert "identifiers" in reasons["visit_id"]
    assert "identifiers" in reasons["code"]
    assert "refers to ward.town" in reasons["town"]
    assert "first, last and by" in reasons["day"]
    assert set(reasons) == {"visit_id", "code", "town", "day", "note", "odd"}


def test_the_bounds_of_partitions_are_the_days(url: str, tmp_path: Path) -> None:
    init(url.format("ward.parted"), tmp_path / "parted.toml")
    (column,) = load_draft(tmp_path / "parted.toml").domain.attributes
    assert isinstance(column, Dates)
    assert (column.first, column.last) == (date(2021, 1, 1), date(2021, 12, 31))


def test_rows_of_a_parted_table_are_estimated_once(url: str, tmp_path: Path) -> None:
    """PostgreSQL has an estimate for each part, and one more for all of them."""
    days = "INSERT INTO ward.parted SELECT date '2021-01-01' + i % 365, 1 FROM generate_series(1, 4000) AS i"
    administer(shared_postgresql().url(), days, "ANALYZE ward.parted")
    init(url.format("ward.parted"), tmp_path / "parted.toml")
    assert load_draft(tmp_path / "parted.toml").max_rows == 10_000


def test_rows_that_were_never_estimated_are_told_by_the_size_of_the_table(url: str, tmp_path: Path) -> None:
    """The least of `max_rows` is 1,000, so a table whose size nobody looked at would be refused at its opening."""
    fresh = "CREATE TABLE ward.fresh (age int CHECK (age BETWEEN 0 AND 120)) WITH (autovacuum_enabled = false)"
    filled = "INSERT INTO ward.fresh SELECT i % 90 FROM generate_series(1, 5000) AS i"
    administer(shared_postgresql().url(), fresh, filled, READER)
    init(url.format("ward.fresh"), tmp_path / "fresh.toml")
    assert 10_000 <= load_draft(tmp_path / "fresh.toml").max_rows <= 30_000


def test_a_database_with_another_encoding_is_refused_before_it_is_read(url: str, tmp_path: Path) -> None:
    other = "CREATE DATABASE latin ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    administer(shared_postgresql().url(), "DROP DATABASE IF EXISTS latin", other)
    with pytest.raises(SourceError, match=r"the table ward\.visits is in a database whose encoding is not UTF-8"):
        init(url.replace("/postgres/", "/latin/").format("ward.visits"), tmp_path / "a.toml")


def test_what_cannot_be_drafted_says_why(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    administer(shared_postgresql().url(), "CREATE VIEW ward.seen AS SELECT * FROM ward.visits", READER)
    reasons = {"ward.none": "there is no table ward.none", "ward.town": "no column can be drafted"}
    for table, reason in {**reasons, "ward.seen": "there is no table ward.seen.*; views are none"}.items():
        with pytest.raises((SourceError, ConfigError), match=reason):
            init(url.format(table), tmp_path / "a.toml")
    with pytest.raises(ConfigError, match="which table of the database"):
        table_of("postgresql://db/clinic")
    monkeypatch.setenv("BURSAR_SOURCE_PASSWORD", "wrong")
    with pytest.raises(SourceError, match=r"the catalog of ward\.visits cannot be read(.|\n)*BURSAR_SOURCE_PASSWORD"):
        init(url.format("ward.visits"), tmp_path / "a.toml")
    assert not (tmp_path / "a.toml").exists()
    assert table_of("postgresql://u@h:1/d/t?x=y") == ("postgresql://u@h:1/d?x=y", "public", "t")


def test_a_further_table_of_the_same_schema_is_drafted_into_a_config(url: str, tmp_path: Path) -> None:
    people = "CREATE TABLE ward.people (visit_id bigint PRIMARY KEY, sex ward.sex)"
    administer(shared_postgresql().url(), people, "CREATE TABLE public.elsewhere (visit_id int, a boolean)", READER)
    path = tmp_path / "ward.toml"
    init(url.format("ward.people"), path, unit="visit_id")
    first = path.read_text()
    for table, reason in {
        "elsewhere": "in the schema of the first",
        "ward.people": "people is declared already",
        "ward.town": "ward.town has no column visit_id",
    }.items():
        with pytest.raises(ConfigError, match=reason):
            add_table(url.format(table), path)
    assert path.read_text() == first
    add_table(url.format("ward.visits"), path)
    people, visits = load_draft(path).private
    assert visits.url == people.url
    assert (visits.table, visits.unit.column, visits.unit.max_contributions) == ("visits", "visit_id", 1)
    assert visits.domain.names == ("sex", "smoker", "age", "part", "kind", "stars", "cost")
    assert "a secret" not in path.read_text()
    assert ("tables", "visits", "columns", "age") in load_draft(path).unconfirmed


IN_MARIADB = """
CREATE TABLE ward.visits (
  visit_id bigint, sex enum('F', 'M', 'it''s'), smoker boolean, age int CHECK (age BETWEEN 0 AND 120),
  kind varchar(9) CHECK (kind IN ('in', 'out')), part int CHECK (part >= -5 AND part <= 100), cost int, note text,
  town varchar(20), code varchar(9) UNIQUE, ward int, bed int, day date, odd int CHECK (odd > 0 OR odd < 9),
  CHECK (cost >= 0 AND cost <= 100000), UNIQUE (ward, bed), FOREIGN KEY (town) REFERENCES ward.town (name)
) ENGINE = InnoDB
"""


def test_what_the_catalog_of_mariadb_tells_is_drafted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = shared_mariadb()
    server.administer(
        *("CREATE OR REPLACE DATABASE ward", "CREATE TABLE ward.town (name varchar(20) PRIMARY KEY)"),
        *(IN_MARIADB, "INSERT INTO ward.visits (note, age) VALUES ('a secret', 77)"),
        *(f"CREATE OR REPLACE USER drafter IDENTIFIED BY '{PASSWORD}'", "GRANT SELECT ON ward.visits TO drafter"),
    )
    monkeypatch.setenv("BURSAR_SOURCE_PASSWORD", PASSWORD)
    url = server.url("ward/{}", "drafter")
    made = init(url.format("visits"), tmp_path / "visits.toml")
    config = load_draft(tmp_path / "visits.toml")
    assert config.url is not None
    assert (config.url.schema, config.url.scheme, config.table, config.max_rows) == ("ward", "mysql", "visits", 1000)
    assert "a secret" not in (tmp_path / "visits.toml").read_text()
    columns = {attribute.name: attribute for attribute in config.domain.attributes}
    assert set(columns) == {"sex", "smoker", "age", "kind", "part", "cost"}
    assert columns["sex"] == Categories(name="sex", values=("F", "M", "it's"))
    assert columns["smoker"] == Categories(name="smoker", values=(True, False))
    assert columns["kind"] == Categories(name="kind", values=("in", "out"))
    assert columns["age"] == IntegerRange(name="age", lower=0, upper=120)
    assert columns["part"] == IntegerRange(name="part", lower=-5, upper=100)
    reasons = {omitted.name: omitted.reason for omitted in made.draft.left_out}
    assert "identifiers" in reasons["code"]
    assert "refers to town" in reasons["town"]
    assert "first, last and by" in reasons["day"]
    assert {"lower and upper, or edges" in reasons[name] for name in ("ward", "bed", "odd")} == {True}
    for table, reason in {"none": r"there is no table ward\.none", "": "which table"}.items():
        with pytest.raises((SourceError, ConfigError), match=reason):
            init(url.format(table), tmp_path / "a.toml")
    monkeypatch.setenv("BURSAR_SOURCE_PASSWORD", "wrong")
    with pytest.raises(SourceError, match=r"the catalog of ward\.visits cannot be read"):
        init(url.format("visits"), tmp_path / "a.toml")
