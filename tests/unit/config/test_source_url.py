"""source.url: what it may be, and what does not go with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bursar.config import Config
from bursar.errors import ConfigError
from harness.configs import head, read

COLUMN = '[columns.sex]\nvalues = ["F", "M"]\n'


def config(folder: Path, lines: str) -> Config:
    return read(folder, head().replace('path = "people.csv"', lines) + COLUMN)


def test_a_table_in_postgresql(tmp_path: Path) -> None:
    found = config(tmp_path, 'url = "postgresql://reader@db.example.org:6432/clinic"\nschema = "ward"\ntimeout = 7')
    assert found.location is None
    assert found.url is not None
    assert (found.url.scheme, found.url.schema, found.url.seconds) == ("postgresql", "ward", 7)
    assert found.source_name == found.url.name == "db.example.org/clinic"
    assert found.url.password_file is None


def test_what_is_left_out_has_its_usual_value(tmp_path: Path) -> None:
    found = config(tmp_path, 'url = "postgres:///clinic"\npassword_file = "secrets/clinic"')
    assert found.url is not None
    assert (found.url.schema, found.url.seconds) == ("public", 600)
    assert found.url.password_file == tmp_path / "secrets" / "clinic"
    assert found.source_name == "this machine/clinic"


def test_a_duckdb_file_is_relative_to_the_config(tmp_path: Path) -> None:
    found = config(tmp_path, 'url = "duckdb:data/clinic%20one.duckdb"')
    assert found.url is not None
    assert (found.url.file, found.url.schema) == (tmp_path / "data" / "clinic one.duckdb", "main")
    assert found.source_name == "clinic one.duckdb"


def test_the_database_of_the_url_is_mariadbs_schema(tmp_path: Path) -> None:
    found = config(tmp_path, 'url = "mysql://reader@db/clinic%20one?unix_socket=/s"')
    assert found.url is not None
    assert found.url.schema == "clinic one"


def test_files_behind_spark(tmp_path: Path) -> None:
    for url in ("spark:local[*]", "spark://host:7077", "sc://host:15002/;user_id=ann"):
        found = config(tmp_path, f'url = "{url}"\nfiles = "/lake/*.parquet"')
        assert found.url is not None
        assert (found.url.url, found.url.files, found.source_name) == (url, "/lake/*.parquet", "/lake/*.parquet")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ('url = "oracle://db/clinic"', "must begin with one of"),
        ('url = "people.csv"', "must begin with one of"),
        ('url = "postgresql://[::1/clinic"', "source.url cannot be read"),
        ('url = "postgresql:///clinic"\npath = "people.csv"', "source.path and source.url do not go together"),
        ('url = "postgresql:///clinic"\nview = "SELECT 1"', "source.view and source.url do not go together"),
        ('path = "people.csv"\nschema = "ward"', "source.schema belongs to a table in a database"),
        ('path = "people.csv"\ntimeout = 3', "source.timeout belongs to a table in a database"),
        ('url = "postgresql:///clinic"\ntimeout = 0', "source.timeout must lie between 1 and"),
        ('url = "postgresql://a:secret@db/clinic"', "has a password in it"),
        ('url = "postgresql://db/clinic?passfile=secret"', "has a password in it"),
        ('url = "sc://db:15002/;use_ssl=true;TOKEN=secret@"\nfiles = "a"', "has a password in it"),
        ('url = "sc://db:15002"', "source.files is missing"),
        ('url = "mysql://reader@db/"', "source.url names no database"),
        ('url = "spark:local[*]"', "source.files is missing"),
        ('url = "postgresql:///clinic"\nfiles = "a"', "source.files belongs to Spark"),
        ("", "source.path is missing"),
    ],
)
def test_refusals_say_why(tmp_path: Path, lines: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        config(tmp_path, lines)
    assert "people.toml" in str(caught.value)
    assert "secret@" not in str(caught.value)
