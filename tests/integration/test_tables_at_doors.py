"""Several private tables at every door of a server: catalog and questions over the wire, HTTP, the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
import pytest

import bursar
from bursar.errors import QueryError
from bursar.service.people import Role
from harness.configs import JOINED, clinic
from harness.patience import PATIENCE
from harness.serving import Served, let_in, serving

psycopg = pytest.importorskip("psycopg")
sqlalchemy = pytest.importorskip("sqlalchemy")

DAY = """
[tables.visits.columns.day]
first = 2024-01-01
last = 2024-01-31
by = "day"
"""
CONFIG = clinic(epsilon=900, visits=2, more="[goal]\nerror = 20") + DAY + JOINED
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    import duckdb

    folder, rng = tmp_path_factory.mktemp("clinic"), np.random.default_rng(21)
    people = pd.DataFrame({"person": [f"p{who}" for who in range(500)], "sex": rng.choice(["F", "M"], 500)})
    visits = pd.DataFrame(
        {
            "person": [f"p{who}" for who in [*range(500), *range(300)]],
            "ward": rng.choice(["A", "B", "C"], 800),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 31, 800), unit="D"),
        }
    )
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        for name, frame in (("people", people), ("visits", visits)):
            connection.register("frame", frame)
            connection.execute(f"CREATE TABLE {name} AS FROM frame")
    config = folder / "bursar.toml"
    config.write_text(CONFIG)
    bursar.create(config).close()
    tokens = let_in(config, ana=Role.ANALYST)
    with serving(config, tokens=tokens) as server:
        yield server


@pytest.fixture(scope="module")
def url(served: Served) -> str:
    """Where PostgreSQL clients find it: printed below the address of the pages."""
    for _ in range(10):
        if found := re.search(r"postgresql://\S*?:(\d+)/clinic", served.out.readline()):
            return f"postgresql+psycopg://ana:{served.tokens['ana']}@127.0.0.1:{found[1]}/clinic"
    raise AssertionError("no wire")


@pytest.mark.heavy
def test_sqlalchemy_reflects_all_tables(url: str) -> None:
    engine = sqlalchemy.create_engine(url)
    inspector = sqlalchemy.inspect(engine)
    assert sorted(inspector.get_table_names()) == ["people", "visits"]
    assert {c["name"]: str(c["type"]) for c in inspector.get_columns("visits")} == {
        "ward": "TEXT",
        "day": "DATE",
        "sex": "TEXT",
        "has_people": "BOOLEAN",
    }
    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine)
    visits, people = metadata.tables["visits"], metadata.tables["people"]
    assert [column.name for column in people.columns] == ["sex"]
    by_ward = sqlalchemy.select(visits.c.ward, sqlalchemy.func.count().label("n")).group_by(visits.c.ward)
    with engine.connect() as link:
        rows = link.execute(by_ward).all()
        assert abs(sum(row.n for row in rows) - 800) < 100
        assert link.execute(sqlalchemy.select(sqlalchemy.func.count()).select_from(people)).scalar() > 400
        oids = link.execute(sqlalchemy.text("SELECT oid::regclass::text, oid FROM pg_class ORDER BY oid")).all()
        assert [name for name, _ in oids] == ["people", "visits"]
        found = link.execute(sqlalchemy.text("SELECT 'visits'::regclass::oid")).scalar()
        assert found == oids[1][1]
    engine.dispose()


def test_psycopg_asks_about_each_table_and_their_join(url: str) -> None:
    with psycopg.connect(url.replace("+psycopg", "")) as link:
        link.autocommit = True
        days = link.execute("SELECT DISTINCT day FROM public.visits ORDER BY 1 LIMIT 2").fetchall()
        assert [str(day) for (day,) in days] == ["2024-01-01", "2024-01-02"]
        counted = link.execute("SELECT COUNT(*) FROM visits WHERE day >= %s", ("2024-01-16",)).fetchone()
        assert counted is not None
        assert 200 < counted[0] < 600
        joined = "SELECT p.sex, COUNT(*) FROM visits v JOIN people p ON v.person = p.person GROUP BY p.sex"
        assert abs(sum(n for _, n in link.execute(joined).fetchall()) - 800) < 100
        with pytest.raises(psycopg.Error, match="joins are not available"):
            link.execute("SELECT v.ward, COUNT(*) FROM people p, visits v GROUP BY 1")
        with pytest.raises(psycopg.errors.UndefinedTable, match="doctors") as unknown:
            link.execute("SELECT COUNT(*) FROM doctors")
        assert "people, visits" in str(unknown.value.diag.message_hint)
        with pytest.raises(psycopg.errors.UndefinedColumn, match="ward"):
            link.execute("SELECT ward FROM people")


def test_http_takes_values_and_tables(served: Served) -> None:
    with served.client("ana", "clinic") as ana:
        facts = ana.get("/columns").json()
        assert (facts["table"], facts["tables"]) == ("people", ["people", "visits"])
        other = ana.get("/columns", params={"table": "visits"}).json()
        assert [column["name"] for column in other["columns"]][:2] == ["ward", "day"]
        assert ana.get("/columns", params={"table": "doctors"}).status_code == 422
        by_place = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE ward = ?", "params": ["B"], "within": 30}
        by_name = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE ward IN (:w)", "params": {"w": ["B"]}, "within": 30}
        plain = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE ward = 'B'", "within": 30}
        first = ana.post("/query", json=by_place)
        assert first.status_code == 200, first.text
        assert first.json()["rows"] == ana.post("/query", json=plain).json()["rows"]
        assert ana.post("/query", json=by_name).json()["charge"] == 0
        explained = ana.post("/explain", json=by_place).json()
        assert explained["offers"][explained["chosen"]]["price"] == 0
        quoted = {**by_place, "params": ["B' OR ward = 'A"]}
        assert ana.post("/explain", json=quoted).status_code == 422, "a value is a value: no such ward is declared"
        for params, told in (([], "values for them: 0"), ({"w": "B"}, "come as a list"), ([[]], "at least 1")):
            refused = ana.post("/query", json={**by_place, "params": params})
            assert refused.status_code == 422
            assert told in refused.text
        assert ana.post("/query", json={**by_place, "params": [{"w": 1}]}).status_code == 422
        thresholds = {"k": 2, "r": 1, "features": ["ward", "sex"], "within": 200}
        assert ana.post("/thresholds/explain", json={**thresholds, "table": "visits"}).status_code == 200
        assert ana.post("/thresholds/explain", json=thresholds).status_code == 422, "the first table has no ward"


def test_remote_sessions_know_the_tables(served: Served) -> None:
    with bursar.connect(f"{served.url}/clinic", token=served.tokens["ana"]) as db:
        assert db.tables == ("people", "visits")
        assert db.table("visits").columns().columns.names[0] == "ward"
        asked = db.query("SELECT COUNT(*) AS n FROM visits WHERE ward = :w", {"w": "C"}, within=30)
        assert 150 < asked.value < 400
        with pytest.raises(QueryError, match="no private table doctors"):
            db.table("doctors").columns()


def test_pages_show_all_tables(served: Served, tmp_path: Path) -> None:
    with httpx.Client(base_url=served.url, timeout=PATIENCE) as visitor:
        origin = {"Origin": served.url}
        assert visitor.post("/-/login", data={"token": served.tokens["ana"]}, headers=origin).status_code == 303
        columns, ask = visitor.get("/clinic/columns").text, visitor.get("/clinic/ask").text
    for name in ("people", "visits"):
        assert f">Columns of {name}</h2>" in columns
        assert f"<h2>{name}</h2>" in ask
    assert "with at most 2 rows" in columns
    assert 'data-insert="ward"' in ask
    assert '"tables": ["people", "visits"]' in ask
    assert "FROM visits" in ask
