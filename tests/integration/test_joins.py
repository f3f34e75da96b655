"""Joined tables in front of a whole session: DuckDB's numbers, the same prices, refusals by name, one charter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from bursar.answer import Answer
from bursar.config import load
from bursar.config.load import parse_draft
from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.source.duckdb import DuckDBSource
from bursar.errors import ConfigError, LedgerError, QueryError, SourceError
from bursar.session import Bursar, create
from bursar.session import open as open_session
from bursar.sources import source_of
from bursar.testing import stage
from harness.places import MariaDBPlace, PostgreSQLPlace
from harness.servers import PASSWORD, shared_mariadb, shared_postgresql
from harness.small import Silence

CONFIG = """
dataset = "clinic"
[source]
path = "clinic.duckdb"
table = "visits"
max_rows = 10000
[privacy]
unit = { column = "person" }
max_contributions = 40
[budget]
epsilon = 900
[tables.people]
columns = ["sex"]
[tables.wards]
key = { ward = "id" }
columns = ["floor"]
public = true
[columns.ward]
values = ["A", "B", "C"]
[columns.cost]
lower = 0
upper = 99
[columns.sex]
values = ["F", "M"]
[columns.floor]
lower = 1
upper = 3
"""


def tables() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(7)
    visits = pd.DataFrame(
        {
            "person": [f"p{who}" for who in rng.integers(0, 60, 400)],
            "ward": rng.choice(["A", "B", "C"], 400),
            "cost": rng.integers(0, 100, 400),
        }
    )
    people = pd.DataFrame({"person": [f"p{who}" for who in range(50)], "sex": rng.choice(["F", "M"], 50)})
    wards = pd.DataFrame({"id": ["A", "B"], "floor": [1, 2]})
    return {"visits": visits, "people": people, "wards": wards}


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clinic")
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        for name, frame in tables().items():
            connection.register("frame", frame)
            connection.execute(f"CREATE TABLE {name} AS FROM frame")
    (folder / "clinic.toml").write_text(CONFIG)
    return folder


def in_postgresql() -> str:
    """The url of a database with the tables, for a role that may read them."""
    place = PostgreSQLPlace(shared_postgresql())
    place.run("DROP TABLE people; CREATE TABLE visits (person text, ward text, cost int)")
    place.run("CREATE TABLE people (person text, sex text); CREATE TABLE wards (id text, floor int)")
    place.run(f"GRANT SELECT ON visits, people, wards TO {place.role}")
    for name, frame in tables().items():
        place.run(f"INSERT INTO {name} VALUES {', '.join(map(str, frame.itertuples(index=False, name=None)))}")
    return place.url


def in_mariadb() -> str:
    """The url of a database with the tables, for a user who may read them."""
    place = MariaDBPlace(shared_mariadb())
    place.run("DROP TABLE people", "CREATE TABLE visits (person VARCHAR(9), ward TEXT, cost INT)")
    place.run("CREATE TABLE people (person VARCHAR(9), sex TEXT)", "CREATE TABLE wards (id TEXT, floor INT)")
    for name, frame in tables().items():
        place.run(f"INSERT INTO {name} VALUES {', '.join(map(str, frame.itertuples(index=False, name=None)))}")
        place.run(f"GRANT SELECT ON {name} TO {place.user}")
    return place.url


URLS = {"a file": None, "in place": lambda: "duckdb:clinic.duckdb", "PostgreSQL": in_postgresql, "MariaDB": in_mariadb}


@pytest.fixture(scope="module", params=URLS)
def session(request: pytest.FixtureRequest, clinic: Path) -> Iterator[Bursar]:
    url = URLS[request.param]
    text = CONFIG if url is None else CONFIG.replace('path = "clinic.duckdb"', f'url = "{url()}"')
    config = parse_draft(text, clinic / "clinic.toml")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("BURSAR_SOURCE_PASSWORD", PASSWORD)
        with stage(config, source_of(config), randomness=Silence()) as opened:
            yield opened


SAME_AS_DUCKDB = (
    "SELECT p.sex, COUNT(*) AS n FROM visits v JOIN people p ON v.person = p.person GROUP BY p.sex",
    "SELECT sex, COUNT(*) AS n FROM visits LEFT JOIN people USING (person) GROUP BY sex",
    "SELECT w.floor, SUM(v.cost) AS s FROM visits AS v JOIN wards AS w ON w.id = v.ward GROUP BY w.floor",
    "SELECT floor, COUNT(*) AS n FROM wards INNER JOIN visits ON visits.ward = wards.id GROUP BY floor",
    "SELECT p.sex, COUNT(DISTINCT v.person) AS n FROM visits v JOIN people p ON p.person = v.person JOIN wards w ON "
    "v.ward = w.id WHERE w.floor = 2 AND v.cost < 50 GROUP BY p.sex",
    "SELECT V.ward, AVG(cost) AS a FROM visits V LEFT OUTER JOIN wards ON (V.ward = wards.id) GROUP BY V.ward",
    "SELECT w.id, COUNT(*) AS n FROM visits v JOIN wards w ON v.ward = w.id GROUP BY w.id",
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sql", SAME_AS_DUCKDB)
def test_without_noise_it_is_what_duckdb_says(sql: str, session: Bursar, clinic: Path) -> None:
    found = session.query(f"{sql} WITH ERROR 20")
    assert isinstance(found, Answer)
    shown = {label: list(line) for label, line in zip(found.labels, found.values, strict=True)}
    with duckdb.connect(str(clinic / "clinic.duckdb"), read_only=True) as connection:
        expected = {line[:1]: [float(number) for number in line[1:]] for line in connection.execute(sql).fetchall()}
    assert len(expected) >= 2
    for key, numbers in expected.items():
        assert shown[key] == pytest.approx(numbers)
    if "AVG" not in sql:
        assert not any(any(numbers) for key, numbers in shown.items() if key not in expected)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(*) FROM visits a JOIN visits b ON a.ward = b.ward", "different people are not joined"),
        ("SELECT COUNT(*) FROM people p JOIN wards w ON p.sex = w.id", "different people are not joined"),
        ("SELECT COUNT(*) FROM visits v JOIN people p ON v.ward = p.sex", "visits.person = people.person"),
        ("SELECT COUNT(*) FROM visits v JOIN people p ON v.person = p.person AND p.sex = 'F'", "declared keys"),
        ("SELECT COUNT(*) FROM visits v JOIN people p ON v.person <> p.person", "declared keys"),
        ("SELECT COUNT(*) FROM visits v JOIN wards w ON TRUE", "declared keys"),
        ("SELECT COUNT(*) FROM wards w LEFT JOIN visits v ON v.ward = w.id", "belongs to nobody; GROUP BY its key"),
        ("SELECT COUNT(*) FROM people p LEFT JOIN visits v ON v.person = p.person", "belongs to nobody; begin with"),
        ("SELECT COUNT(*) FROM visits v RIGHT JOIN wards w ON v.ward = w.id", "JOIN and LEFT JOIN are available"),
        ("SELECT COUNT(*) FROM visits CROSS JOIN wards", "JOIN and LEFT JOIN are available"),
        ("SELECT COUNT(*) FROM visits NATURAL JOIN people", "JOIN and LEFT JOIN are available"),
        ("SELECT COUNT(*) FROM visits v JOIN rooms r ON v.ward = r.id", "there is no table rooms"),
        ("SELECT COUNT(*) FROM visits v JOIN (SELECT * FROM people) p ON v.person = p.person", "declared table"),
        ("SELECT p.born, COUNT(*) FROM visits v JOIN people p ON v.person = p.person GROUP BY p.born", "no born"),
        ("SELECT z.sex, COUNT(*) FROM visits v JOIN people p ON v.person = p.person GROUP BY z.sex", "no table z"),
    ],
)
def test_other_joins_are_refused_by_name_and_free(sql: str, words: str, session: Bursar) -> None:
    before = session.kernel.spent()
    with pytest.raises(QueryError, match=words) as refused:
        session.query(f"{sql} WITH ERROR 100")
    assert not refused.value.rewrite
    assert session.kernel.spent() == before


def test_a_joined_question_costs_what_one_about_one_table_costs(session: Bursar) -> None:
    noise = Noise(kind=NoiseKind.LAPLACE, scale=8.0)

    def price(joined: str) -> int:
        strategy = session.engine.read(f"SELECT ward, COUNT(*) FROM visits {joined} GROUP BY ward WITH ERROR 9")[1].map
        return session.kernel.empty_book().price([Measured(strategy=strategy, noise=noise, version=1)])

    assert price("") == price("JOIN people USING (person) WHERE sex = 'F'") == 40 * 2**50 // 8


def test_the_files_of_each_table_are_named_by_it(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text(CONFIG.replace('path = "clinic.duckdb"', 'url = "spark:"\nfiles = "/data/{table}/*.parquet"'))
    url = load(path).url
    assert url is not None
    assert [url.files_of(name) for name in ("visits", "people")] == ["/data/visits/*.parquet", "/data/people/*.parquet"]


def test_a_real_session_with_a_ledger(clinic: Path) -> None:
    sql = "SELECT p.sex, COUNT(*) FROM visits v JOIN people p ON v.person = p.person GROUP BY p.sex WITH ERROR 60"
    with create(clinic / "clinic.toml") as created:
        first = created.query(sql)
        charter = created.ledger.charter
    assert [table["table"] for table in charter["tables"]] == ["people", "wards"]
    with open_session(clinic / "clinic.toml") as opened:
        assert opened.query(sql).values == first.values
    (clinic / "clinic.toml").write_text(CONFIG.replace('key = { ward = "id" }', 'key = "ward"'))
    with pytest.raises(LedgerError, match="tables"):
        open_session(clinic / "clinic.toml")
    (clinic / "clinic.toml").write_text(CONFIG)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('unit = { column = "person" }\nmax_contributions = 40', 'unit = "row"', "privacy.unit is the row"),
        ('path = "clinic.duckdb"', 'path = "clinic.csv"', "one database or DuckDB file"),
        ('path = "clinic.duckdb"', 'url = "spark:"\nfiles = "/data/*.parquet"', "where each table's files are"),
        ('columns = ["sex"]', 'columns = ["sox"]', "no declared column"),
        ('columns = ["sex"]', 'columns = ["sex", "floor"]', "each column has one table"),
        ('columns = ["sex"]', "columns = [3]", "no declared column"),
        ('key = { ward = "id" }', "key = 3", "names columns"),
        ("public = true", "public = 1", "true or false"),
        ('key = { ward = "id" }\n', "", "joined by a key"),
        ("[tables.wards]", "[tables.visits]", "the others are joined to"),
        ("public = true", "publik = true", "did you mean public"),
        ("[columns.sex]", "[columns.has_people]\nvalues = [1]\n[columns.sex]", "declared as a column too"),
    ],
)
def test_tables_that_cannot_be_joined_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in CONFIG
    path = tmp_path / "other.toml"
    path.write_text(CONFIG.replace(old, new, 1))
    with pytest.raises(ConfigError, match=words):
        load(path)


def test_replace_one_with_private_tables_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    text = CONFIG.replace("max_rows = 10000", "max_rows = 10000\npublic_size = 400")
    replaced = text.replace("max_contributions = 40", 'max_contributions = 40\nneighbours = "replace-one"')
    path.write_text(replaced)
    with pytest.raises(ConfigError, match="several private tables"):
        load(path)
    path.write_text(replaced.replace('[tables.people]\ncolumns = ["sex"]\n', ""))
    assert load(path).parents[0].public


def test_a_config_with_one_table_has_the_charter_it_always_had(tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text(CONFIG[: CONFIG.index("[tables.people]")] + CONFIG[CONFIG.index("[columns.ward]") :])
    assert sorted(load(path).charter) == ["budget", "columns", "dataset", "max_rows", "privacy"]


def test_tables_are_read_from_a_duckdb_file_alone(clinic: Path) -> None:
    config = load(clinic / "clinic.toml")
    facts: dict[str, Any] = {"key": bytes(32), "max_rows": 10, "table": "visits", "parents": config.parents}
    for location in (tables()["visits"], clinic / "clinic.toml"):
        with pytest.raises(SourceError, match="one DuckDB file"):
            DuckDBSource(location, config.domain, config.unit, **facts)
    with pytest.raises(SourceError, match="there is no file"):
        DuckDBSource(clinic / "gone.duckdb", config.domain, config.unit, **facts)
