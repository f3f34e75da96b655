"""Several private tables in front of a whole session: DuckDB's numbers, one budget, one table per question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import bursar
from bursar.answer import Answer
from bursar.config import load
from bursar.errors import ConfigError, LedgerError, QueryError
from bursar.session import Bursar, add_table
from bursar.sources import source_of
from bursar.testing import memory_ledger
from harness.configs import JOINED, clinic
from harness.small import Silence

CONFIG = clinic(epsilon=900, visits=40) + "[tables.visits.columns.cost]\nlower = 0\nupper = 99\n" + JOINED
BUYS = """
[tables.buys]
path = "buys.csv"
unit = "customer"
max_contributions = 3
[tables.buys.columns.item]
values = ["x", "y"]
"""


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("clinic"), np.random.default_rng(7)
    people = pd.DataFrame({"person": [f"p{who}" for who in range(50)], "sex": rng.choice(["F", "M"], 50)})
    visits = pd.DataFrame(
        {
            "person": [f"p{who}" for who in rng.integers(0, 60, 400)],
            "ward": rng.choice(["A", "B", "C"], 400),
            "cost": rng.integers(0, 100, 400),
        }
    )
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        for name, frame in (("people", people), ("visits", visits)):
            connection.register("frame", frame)
            connection.execute(f"CREATE TABLE {name} AS FROM frame")
    pd.DataFrame({"customer": ["p1", "p1", "p2"], "item": ["x", "y", "x"]}).to_csv(folder / "buys.csv", index=False)
    (folder / "clinic.toml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def session(clinic: Path) -> Iterator[Bursar]:
    """Without noise, on a ledger in memory."""
    config = load(clinic / "clinic.toml")
    source = source_of(config)
    db = Bursar(config, memory_ledger(config, source), open_source=source, randomness=Silence())
    db.owner.add_table("visits")
    with db:
        yield db


SAME_AS_DUCKDB = (
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
    "SELECT ward, SUM(cost) AS s FROM visits GROUP BY ward",
    "SELECT p.sex, COUNT(*) AS n FROM visits v JOIN people p ON v.person = p.person GROUP BY p.sex",
    "SELECT p.sex, COUNT(*) AS n FROM people p JOIN visits v ON v.person = p.person GROUP BY p.sex",
    "SELECT V.ward, COUNT(DISTINCT person) AS n FROM Visits V GROUP BY V.ward",
    "WITH by_ward AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) SELECT ward, n FROM by_ward WHERE n > 0",
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sql", SAME_AS_DUCKDB)
def test_without_noise_it_is_what_duckdb_says(sql: str, session: Bursar, clinic: Path) -> None:
    found = session.query(sql, within=100)
    assert isinstance(found, Answer)
    shown = {label: list(line) for label, line in zip(found.labels, found.values, strict=True)}
    with duckdb.connect(str(clinic / "clinic.duckdb"), read_only=True) as connection:
        expected = {line[:1]: [float(number) for number in line[1:]] for line in connection.execute(sql).fetchall()}
    assert len(expected) >= 2
    assert {key: shown[key] for key in expected} == {key: pytest.approx(numbers) for key, numbers in expected.items()}


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT (SELECT COUNT(*) FROM visits) / (SELECT COUNT(*) FROM people)", "about one of them; ask about each"),
        ("SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM people", "about one of them; ask about each"),
        ("SELECT COUNT(*) FROM people p LEFT JOIN visits v ON v.person = p.person", "belongs to nobody"),
        ("SELECT COUNT(*) FROM visits v JOIN people p ON v.ward = p.sex", "visits.person = people.person"),
        ("SELECT COUNT(*) FROM visits a JOIN visits b ON a.ward = b.ward", "different people are not joined"),
        ("SELECT COUNT(*) FROM visits v, people p", "joins are not available"),
        ("SELECT COUNT(*) FROM rooms", "there is no table rooms"),
    ],
)
def test_a_question_over_two_tables_is_refused_and_free(sql: str, words: str, session: Bursar) -> None:
    before = session.kernel.spent()
    with pytest.raises(QueryError, match=words):
        session.query(sql, within=50)
    assert session.kernel.spent() == before


def test_every_door_finds_the_table(session: Bursar) -> None:
    sql = "SELECT COUNT(*) FROM visits WHERE cost > 50"
    assert session.explain(sql, within=100).price > 0
    with session.batch(within=100) as batch:
        first = batch.query(sql)
        with pytest.raises(QueryError, match="begin another one for people"):
            batch.query("SELECT COUNT(*) FROM people")
    assert first.value == pytest.approx(session.table("VISITS").query(sql, within=100).value)
    assert session.tables == ("people", "visits")
    assert session.table("visits").columns().columns.names == ("ward", "cost", "sex", "has_people")
    with pytest.raises(QueryError, match="there are people, visits"):
        session.table("rooms")
    other = session.as_analyst("bob").table("visits")
    assert other.query(sql, within=100).free


def test_what_is_bought_of_one_table_is_not_seen_by_views_of_another(session: Bursar) -> None:
    session.query("SELECT sex, COUNT(*) FROM people GROUP BY sex", within=40)
    visits = session.table("visits")
    assert not visits.query("SELECT sex, COUNT(*) FROM visits GROUP BY sex", within=39).free
    assert {tuple(block.columns) for block in visits.measurements().blocks} != set()
    told = str(session.spending())
    assert "visits.sex" in told
    assert "by visits.sex" in told
    assert len(session.thresholds(k=1, r=1, features=["sex"], within=60).values) > 0
    assert len(visits.thresholds(k=2, r=1, features=["ward", "sex"], within=300).values) > 0


@pytest.fixture
def created(clinic: Path, tmp_path: Path) -> Path:
    for name in ("clinic.duckdb", "buys.csv"):
        (tmp_path / name).write_bytes((clinic / name).read_bytes())
    (tmp_path / "clinic.toml").write_text(CONFIG.replace("epsilon = 900", "epsilon = 30"))
    bursar.create(tmp_path / "clinic.toml").close()
    return tmp_path / "clinic.toml"


@pytest.mark.heavy
def test_a_table_joins_the_same_ledger_later(created: Path) -> None:
    with bursar.open(created) as db:
        db.query("SELECT ward, COUNT(*) FROM visits GROUP BY ward", within=200)
        spent = db.budget().spent
        assert dict(db.budget().tables) == {"people": 0.0, "visits": pytest.approx(spent)}
        db.owner.checkpoint()
    text = created.read_text()
    created.write_text(text + BUYS)
    with pytest.raises(LedgerError, match="bursar add-table buys"):
        bursar.open(created)
    with add_table("buys", created) as db, pytest.raises(ConfigError, match="already"):
        db.owner.add_table("buys")
    with bursar.open(created, analyst="ana") as db:
        assert db.budget().spent == spent
        assert not db.query("SELECT item, COUNT(*) FROM buys GROUP BY item", within=50).free
        assert db.query("SELECT ward, COUNT(*) FROM visits GROUP BY ward", within=200).free
        assert db.budget().spent > spent
    with bursar.open(created) as db:
        assert "added buys" in [line.kind for line in db.log()]
    for other in (text, (text + BUYS).replace("max_contributions = 3", "max_contributions = 2")):
        created.write_text(other)
        with pytest.raises(LedgerError, match="private table buys that the config"):
            bursar.open(created)
    created.write_text(text + BUYS)
    with pytest.raises(QueryError, match="no private table rooms"):
        add_table("rooms", created)


@pytest.mark.heavy
def test_a_changed_table_stops_alone_until_it_is_declared(created: Path) -> None:
    with duckdb.connect(str(created.with_name("clinic.duckdb"))) as connection:
        connection.execute("INSERT INTO visits VALUES ('p1', 'A', 3)")
    with bursar.open(created) as db:
        db.query("SELECT COUNT(*) FROM people", within=20)
        with pytest.raises(bursar.SourceError, match="not the ones that were declared"):
            db.query("SELECT COUNT(*) FROM visits", within=200)
        assert db.owner.declare_version(table="visits") == 3
        assert not db.query("SELECT COUNT(*) FROM visits", within=200).free
        assert db.query("SELECT COUNT(*) FROM people", within=20).free
        assert db.owner.declare_version() == 5


@pytest.mark.heavy
def test_frames_are_given_by_table(created: Path) -> None:
    frame = pd.DataFrame({"person": ["a", "b"], "sex": ["F", "M"]})
    with pytest.raises(ConfigError, match="no private table rooms"):
        bursar.open(created, data={"rooms": frame})
    created.write_text(created.read_text() + BUYS)
    with add_table("buys", created, data=pd.DataFrame({"customer": ["q"], "item": ["x"]})) as db:
        assert db.query("SELECT COUNT(*) FROM buys", within=50).value is not None
